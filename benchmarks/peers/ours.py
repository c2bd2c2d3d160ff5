"""tfrio's side of the tasks; both checksums are verified throughout."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import workloads
from tfrio.examples.decode import read, read_batches
from tfrio.examples.schema import Feature
from tfrio.examples.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.worker import Job

SCALARS = {f"f{k}": Feature("float", ()) for k in range(8)}
PATCHES = {"patch": Feature("float", workloads.PATCH)}
BYTES = {"image": Feature("bytes", ()), "label": Feature("int64", ()), "id": Feature("bytes", ())}
SEQUENCES = {
    "label": Feature("int64", ()),
    "token": Feature("int64", (), place="list"),
    "state": Feature("float", (4,), place="list"),
}


def batches(
    schema: Any, size: int, *, threads: int = 1, reuse: bool = False
) -> Callable[[Job], int]:
    def run(job: Job) -> int:
        out = _buffers(size) if reuse else None
        found = read_batches(job.path, size, schema=schema, threads=threads, out=out)
        return sum(batch.rows for batch in found)

    return run


@cache
def _buffers(size: int) -> dict[str, np.ndarray]:
    return {"patch": np.zeros((size, *workloads.PATCH), np.float32)}


def rows(job: Job) -> int:
    count = 0
    for _ in read(job.path, schema=SCALARS, threads=1):
        count += 1
    return count


def rows_unbound(job: Job) -> int:
    count = 0
    for _ in read(job.path, threads=1):
        count += 1
    return count


@cache
def _columns(name: str, limit: int) -> Any:
    if name == "patches":
        return {"patch": workloads.patch_column(limit)}
    makers = {
        "scalars": workloads.scalar_columns,
        "bytes": workloads.byte_columns,
        "sequences": workloads.sequence_columns,
    }
    return makers[name](limit)


def write(name: str, **options: Any) -> Callable[[Job], int]:
    def run(job: Job) -> int:
        columns = _columns(name, job.limit)
        with Writer(job.out, sidecar=False, threads=1, **options) as writer:
            if name == "patches":
                for begin in range(0, job.limit, 8):
                    writer.write_batch({"patch": columns["patch"][begin : begin + 8]})
            else:
                writer.write_batch(columns)
        return job.limit

    return run


@cache
def _dicts(limit: int) -> list[dict[str, float]]:
    columns = {k: v.tolist() for k, v in workloads.scalar_columns(limit).items()}
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def write_rows(job: Job) -> int:
    found = _dicts(min(job.limit, 200_000))
    with Writer(job.out) as writer:
        for row in found:
            writer.write(row)
    return len(found)


TASKS = {
    "read scalars": batches(SCALARS, 8192),
    "read shuffled": batches(SCALARS, 8192),
    "read scalars gzip": batches(SCALARS, 8192),
    "read scalars gzip, by the clock": batches(SCALARS, 8192),
    "read scalars blocked, 2 threads": batches(SCALARS, 8192, threads=2),
    "read rows": rows,
    "read rows, no schema": rows_unbound,
    "read patches": batches(PATCHES, 8, reuse=True),
    "read patches, fresh arrays": batches(PATCHES, 8),
    "read patches gzip": batches(PATCHES, 8, reuse=True),
    "read whole numbers gzip": batches(PATCHES, 8, reuse=True),
    "read patches gzip, by the clock": batches(PATCHES, 8, reuse=True),
    "read patches, by the clock": batches(PATCHES, 8, reuse=True),
    "read patches, 2 threads": batches(PATCHES, 8, threads=2, reuse=True),
    "read patches blocked, 2 threads": batches(PATCHES, 8, threads=2, reuse=True),
    "read bytes": batches(BYTES, 64),
    "read sequences": batches(SEQUENCES, 1024),
    "write scalars": write("scalars"),
    "write rows": write_rows,
    "write patches": write("patches"),
    "write bytes": write("bytes"),
    "write sequences": write("sequences", sequence=True),
    "write scalars gzip": write("scalars", compression="gzip"),
    "write patches gzip": write("patches", compression="gzip"),
}
