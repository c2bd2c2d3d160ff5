"""Results come in order, errors in their turn, and stopping early stops the threads."""

from __future__ import annotations

import threading
import time

import pytest

from tfrio.datasets.prefetch import ordered_map


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_results_are_in_order(threads):
    def work(number):
        time.sleep(0.002 if number % 3 == 0 else 0)
        return number * 2

    assert list(ordered_map(work, range(20), threads=threads, ahead=4)) == list(range(0, 40, 2))
    assert list(ordered_map(work, [], threads=threads, ahead=4)) == []


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_an_error_is_raised_in_its_turn(threads):
    def work(number):
        return 1 // (5 - number)

    results = ordered_map(work, range(9), threads=threads, ahead=2)
    assert [next(results) for _ in range(5)] == [0, 0, 0, 0, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_no_more_is_taken_than_may_wait():
    taken = []

    def tasks():
        for number in range(100):
            taken.append(number)
            yield number

    results = ordered_map(lambda n: n, tasks(), threads=2, ahead=3)
    assert next(results) == 0
    assert len(taken) == 4
    results.close()


def test_stopping_early_ends_the_threads():
    before = threading.active_count()
    results = ordered_map(lambda n: n, range(1000), threads=3, ahead=3)
    next(results)
    results.close()
    assert threading.active_count() == before
