"""rustfrecord: rows of torch tensors, reading only."""

from __future__ import annotations

import warnings
from itertools import islice
from typing import TYPE_CHECKING

from rustfrecord import Reader  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.worker import Job

warnings.simplefilter("ignore")


def rows(most: int, *, compressed: bool = False) -> Callable[[Job], int]:
    def run(job: Job) -> int:
        reader = Reader(job.path, compressed=compressed)
        return sum(1 for _ in islice(iter(reader), min(job.limit, most)))

    return run


TASKS = {
    "read scalars": rows(50_000),
    "read shuffled": rows(50_000),
    "read scalars gzip": rows(50_000, compressed=True),
    "read rows": rows(50_000),
    "read patches": rows(200),
    "read patches gzip": rows(200, compressed=True),
    "read whole numbers gzip": rows(200, compressed=True),
    "read bytes": rows(20_000),
}
