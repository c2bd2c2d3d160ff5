"""tfrecord_lite: rows of NumPy arrays, no checksum checked, reading only."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from tfrecord_lite import tf_record_iterator  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.worker import Job


def rows(most: int) -> Callable[[Job], int]:
    def run(job: Job) -> int:
        return sum(1 for _ in islice(tf_record_iterator(job.path), min(job.limit, most)))

    return run


TASKS = {
    "read scalars": rows(50_000),
    "read shuffled": rows(50_000),
    "read rows": rows(50_000),
    "read patches": rows(200),
    "read bytes": rows(20_000),
}
