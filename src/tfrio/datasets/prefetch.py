"""Work ahead on threads, results in order, never more than a few in memory."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from tfrio.errors import UsageError
from tfrio.storage import FORKED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["ordered_map"]

Task = TypeVar("Task")
Result = TypeVar("Result")


def ordered_map(
    work: Callable[[Task], Result], tasks: Iterable[Task], *, threads: int, ahead: int
) -> Iterator[Result]:
    """Apply a function to each task on threads and yield the results in order.

    Args:
        work: The function; it should spend its time without the GIL.
        tasks: The tasks, taken only as far ahead as results may wait.
        threads: Number of threads; 0 works in the caller's own.
        ahead: Results that may be ready or under way before they are asked for, at least 1.

    Yields:
        ``work(task)`` for each task. An error is raised in its turn. When the caller stops early,
        tasks not begun are dropped and the threads end.
    """
    if threads < 1:
        yield from map(work, tasks)
        return
    pending: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="tfrio-read")
    process = os.getpid()
    try:
        for task in tasks:
            pending.append(pool.submit(work, task))
            if len(pending) > ahead:
                yield pending.popleft().result()
                _check_process(process)
        while pending:
            yield pending.popleft().result()
            _check_process(process)
    finally:
        if os.getpid() == process:  # a forked child has none of the threads
            pool.shutdown(wait=True, cancel_futures=True)


def _check_process(process: int) -> None:
    if os.getpid() != process:
        raise UsageError(f"this pass over a dataset {FORKED}")
