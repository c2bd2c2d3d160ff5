"""The package `tfrecord`: rows, no checksum checked."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import tfrecord as package  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from benchmarks.worker import Job

SCALARS = {f"f{k}": "float" for k in range(8)}
BYTES = {"image": "byte", "label": "int", "id": "byte"}


def count(items: Iterable[Any]) -> int:
    return sum(1 for _ in items)


def rows(description: Any, most: int, compression: str | None = None) -> Callable[[Job], int]:
    def run(job: Job) -> int:
        found = package.tfrecord_loader(job.path, None, description, compression_type=compression)
        return count(islice(found, min(job.limit, most)))

    return run


def sequences(job: Job) -> int:
    found = package.tfrecord_loader(
        job.path, None, {"label": "int"}, sequence_description={"token": "int", "state": "float"}
    )
    return count(islice(found, 2000))


def writer(row: Callable[[int], Any], most: int) -> Callable[[Job], int]:
    def run(job: Job) -> int:
        out = package.TFRecordWriter(job.out)
        records = min(job.limit, most)
        for i in range(records):
            out.write(row(i))
        out.close()
        return records

    return run


PATCH = np.random.default_rng(2).random(256 * 256 * 8, dtype=np.float32)
IMAGE = np.random.default_rng(3).bytes(30_000)

TASKS = {
    "read scalars": rows(SCALARS, 50_000),
    "read shuffled": rows(SCALARS, 50_000),
    "read scalars gzip": rows(SCALARS, 50_000, "gzip"),
    "read rows": rows(SCALARS, 50_000),
    "read patches": rows({"patch": "float"}, 200),
    "read patches gzip": rows({"patch": "float"}, 200, "gzip"),
    "read whole numbers gzip": rows({"patch": "float"}, 200, "gzip"),
    "read bytes": rows(BYTES, 20_000),
    "read sequences": sequences,
    "write scalars": writer(lambda i: {f"f{k}": (i / 8 + k, "float") for k in range(8)}, 20_000),
    "write patches": writer(lambda _: {"patch": (PATCH, "float")}, 20),
    "write bytes": writer(
        lambda i: {"image": (IMAGE, "byte"), "label": (i, "int"), "id": (b"sample", "byte")}, 4000
    ),
}
