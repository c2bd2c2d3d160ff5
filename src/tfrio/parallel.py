"""Run a plan on threads, on processes or on a Dask cluster.

Threads share one stream of small items whose results come back in order. Processes and clusters
get whole tasks, each of which leaves its result where it belongs and returns a small row.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, ExitStack
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from tfrio.errors import UsageError, require

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

__all__ = ["Executor", "ordered_map", "run_tasks", "worker_count"]

Item = TypeVar("Item")
Result = TypeVar("Result")

Executor: TypeAlias = Any
"""``"threads"``, ``"processes"``, the address of a Dask scheduler, or a ``distributed.Client``."""

# More threads gain nothing where memory bandwidth is the limit.
_MOST_THREADS = 8


def worker_count(workers: int | None) -> int:
    """Return how many workers to use.

    Args:
        workers: What the user asked for; None takes one per usable core, 8 at most.

    Raises:
        UsageError: Below 1.
    """
    if workers is None:
        usable = (
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        )
        return min(usable or 1, _MOST_THREADS)
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise UsageError(f"workers must be a whole number of at least 1; got {workers!r}")
    return workers


class _Workers(Generic[Item, Result]):
    """One opened worker per thread, all closed at the end."""

    def __init__(
        self, make: Callable[[], AbstractContextManager[Callable[[Item], Result]]]
    ) -> None:
        self._make = make
        self._local = threading.local()
        self._lock = threading.Lock()
        self.opened = ExitStack()

    def __call__(self, item: Item) -> Result:
        call = getattr(self._local, "call", None)
        if call is None:
            worker = self._make()
            call = self._local.call = worker.__enter__()
            with self._lock:
                self.opened.push(worker)
        result: Result = call(item)
        return result


def ordered_map(
    make: Callable[[], AbstractContextManager[Callable[[Item], Result]]],
    items: Iterable[Item],
    threads: int,
    *,
    lane: Callable[[Item], int] | None = None,
    ahead: int = 0,
) -> Generator[Result]:
    """Apply a function to items on several threads; results come in the order of the items.

    Args:
        make: Opens a worker: a context that gives the function. Called once per thread.
        items: What to work on; taken only a little ahead of the results.
        threads: Number of threads; 1 works in the caller's own.
        lane: Number of the thread, from 0, that works on an item, because it has worked nearby.
            By default whichever is free.
        ahead: How many more items to look ahead, so that each thread finds some in its lane.

    Yields:
        The results. At most ``threads`` + 1 + ``ahead`` wait at any time, so memory is bounded.
    """
    if threads == 1:
        with make() as call:
            yield from map(call, items)
        return
    workers = _Workers(make)
    lanes = 1 if lane is None else threads
    pools = [ThreadPoolExecutor(threads // lanes, "tfrio") for _ in range(lanes)]
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pools[lane(item) if lane else 0].submit(workers, item))
            if len(waiting) > threads + ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        for pool in pools:
            pool.shutdown(wait=True)
        workers.opened.close()


def run_tasks(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    executor: Executor,
    workers: int,
) -> Iterator[Result]:
    """Run independent tasks in other processes; results come as they are done.

    Args:
        function: A module-level function; it and the items must pickle.
        items: One task each.
        executor: ``"processes"``, a Dask scheduler's address or a Dask client.
        workers: Number of processes; a Dask cluster has its own.

    Yields:
        The results, in the order in which they are done.
    """
    if executor == "processes":
        # Not forked: native libraries with threads of their own do not survive that.
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            try:
                for done in as_completed([pool.submit(function, item) for item in items]):
                    yield done.result()
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return
    distributed = require("distributed", extra="dask")
    with ExitStack() as stack:
        client = executor
        if isinstance(executor, str):
            client = stack.enter_context(distributed.Client(executor))
        # Not pure: a task writes a file, so a result remembered from before would not do.
        futures = client.map(function, list(items), pure=False)
        try:
            for future in distributed.as_completed(futures):
                yield future.result()
        finally:
            client.cancel(futures)
