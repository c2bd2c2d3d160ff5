"""Plans on threads and processes: order, bounds, errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tfrio.errors import UsageError
from tfrio.parallel import ordered_map, run_tasks, worker_count


@contextmanager
def doubling() -> Iterator[Callable[[int], int]]:
    def double(item: int) -> int:
        time.sleep(0.002 * (item % 3))
        return 2 * item

    yield double


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_keep_the_order(threads: int) -> None:
    assert list(ordered_map(doubling, range(30), threads)) == list(range(0, 60, 2))


@pytest.mark.parametrize("threads", [1, 3])
def test_items_are_taken_only_a_little_ahead(threads: int) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(50):
            taken.append(number)
            yield number

    stream = ordered_map(doubling, items(), threads)
    for done, _ in enumerate(stream, 1):
        assert len(taken) <= done + threads + 1
    assert len(taken) == 50


@pytest.mark.parametrize("threads", [1, 3])
def test_every_worker_is_closed_whatever_happens(threads: int) -> None:
    opened, closed = [], []

    @contextmanager
    def worker() -> Iterator[Callable[[int], int]]:
        opened.append(threading.get_ident())
        try:
            yield lambda item: 6 // (item - 7)
        finally:
            closed.append(1)

    with pytest.raises(ZeroDivisionError):
        list(ordered_map(worker, range(20), threads))
    assert 1 <= len(opened) <= threads
    assert len(closed) == len(opened)
    opened.clear()
    closed.clear()
    stream = ordered_map(worker, range(5), threads)
    next(stream)
    stream.close()
    assert len(closed) == len(opened)


def test_processes_return_what_is_done() -> None:
    assert sorted(run_tasks(abs, [-3, 1, -2], "processes", 2)) == [1, 2, 3]
    with pytest.raises(TypeError):
        list(run_tasks(abs, ["x", -1], "processes", 1))  # type: ignore[list-item]


def test_worker_counts() -> None:
    assert 1 <= worker_count(None) <= 8
    assert worker_count(3) == 3
    for wrong in (0, -1, True, 1.5):
        with pytest.raises(UsageError, match="workers must be"):
            worker_count(wrong)  # type: ignore[arg-type]


def test_threads_stay_in_their_lanes() -> None:
    taken: list[list[int]] = []

    @contextmanager
    def worker() -> Iterator[Callable[[int], int]]:
        mine: list[int] = []
        taken.append(mine)

        def work(item: int) -> int:
            mine.append(item)
            time.sleep(0.001 * (item % 3))
            return item

        yield work

    items = list(range(40))
    assert list(ordered_map(worker, items, 3, lane=lambda n: n // 4 % 3, ahead=12)) == items
    found = [{n // 4 % 3 for n in mine} for mine in taken]
    assert sorted(found, key=min) == [{0}, {1}, {2}]
    assert sorted(n for mine in taken for n in mine) == items


def test_lanes_work_at_once() -> None:
    """One thread cannot meet the others at a barrier."""
    barrier = threading.Barrier(3, timeout=20)

    @contextmanager
    def worker() -> Iterator[Callable[[int], int]]:
        yield lambda item: barrier.wait() * 0 + item

    assert list(ordered_map(worker, range(9), 3, lane=lambda n: n % 3, ahead=3)) == list(range(9))
