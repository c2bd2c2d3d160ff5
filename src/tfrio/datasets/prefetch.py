"""Work ahead on threads, results in order, never more than a few in memory."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

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
    try:
        for task in tasks:
            pending.append(pool.submit(work, task))
            if len(pending) > ahead:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
