"""Mixing, repeating and shuffling, in the random order of old."""

from __future__ import annotations

from itertools import chain, islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrio.compat import cycle, sample_iterators, shuffle_iterator

SOURCES = [[0, 1, 2, 3], [10, 11], [20, 21, 22]]
# Seed, infinite, first twelve items of a shuffled mix in ratios 3:1:2 through a queue of 3, and
# the next draw: what the published package gave.
ORDERS = [
    (0, False, [20, 11, 10, 1, 21, 0, 2, 3, 22], 532165),
    (1, True, [20, 0, 2, 21, 1, 3, 0, 2, 10, 22, 3, 20], 723457),
    (2, False, [10, 2, 1, 0, 20, 3, 11, 21, 22], 349052),
    (3, True, [10, 0, 20, 1, 11, 3, 2, 10, 0, 11, 2, 10], 103230),
    (4, False, [20, 21, 10, 1, 0, 3, 2, 22, 11], 499768),
    (5, True, [0, 21, 10, 11, 20, 2, 10, 3, 1, 22, 11, 1], 435150),
]


def makers(sources):
    return [lambda items=items: iter(items) for items in sources]


@pytest.mark.parametrize(("seed", "infinite", "expected", "next_draw"), ORDERS)
def test_seeded_order_and_use_of_the_global_generator_are_those_of_old(
    seed, infinite, expected, next_draw
):
    np.random.seed(seed)  # noqa: NPY002
    mixed = sample_iterators(makers(SOURCES), [3, 1, 2], infinite=infinite)
    assert list(islice(shuffle_iterator(mixed, 3), 12)) == expected
    assert np.random.randint(10**6) == next_draw  # noqa: NPY002


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        (3, [0, 1, 3, 4, 6, 2, 5, 8, 9, 7]),
        (1, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (10, [5, 0, 4, 6, 7, 2, 9, 3, 1, 8]),
    ],
)
def test_shuffle_of_ten_with_seed_0(queue, expected):
    np.random.seed(0)  # noqa: NPY002
    assert list(shuffle_iterator(iter(range(10)), queue)) == expected


def test_a_random_state_gives_the_order_of_the_global_seed():
    state = np.random.RandomState(0)
    assert list(shuffle_iterator(range(10), 3, generator=state)) == [0, 1, 3, 4, 6, 2, 5, 8, 9, 7]


def test_a_generator_leaves_the_global_one_alone():
    np.random.seed(3)  # noqa: NPY002
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    rng = np.random.default_rng(7)
    mixed = sample_iterators(makers(SOURCES), [1, 1, 1], infinite=False, generator=rng)
    assert sorted(shuffle_iterator(mixed, 4, generator=rng)) == sorted(chain(*SOURCES))
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_something_else_than_a_generator_is_refused():
    with pytest.raises(TypeError, match="default_rng"):
        next(shuffle_iterator(range(3), 2, generator=random_like()))


def random_like():
    import random

    return random.Random(0)


@given(st.lists(st.integers(), max_size=30), st.integers(1, 12))
def test_shuffling_loses_and_repeats_nothing(items, queue):
    rng = np.random.default_rng(0)
    if len(items) >= queue:
        assert sorted(shuffle_iterator(items, queue, generator=rng)) == sorted(items)
    else:
        with pytest.warns(UserWarning, match=rf"\(N={queue}\)"):
            assert sorted(shuffle_iterator(items, queue, generator=rng)) == sorted(items)


def test_the_first_item_comes_after_queue_plus_one_were_pulled():
    pulled = []
    source = (pulled.append(k) or k for k in range(10))
    next(shuffle_iterator(source, 3))
    assert pulled == [0, 1, 2, 3]


def test_finite_sampling_yields_everything_once_in_each_ones_order():
    out = list(sample_iterators(makers(SOURCES), [1, 2, 3], infinite=False))
    assert sorted(out) == sorted(chain(*SOURCES))
    for items in SOURCES:
        assert [item for item in out if item in items] == items


def test_only_proportions_count():
    runs = []
    for ratios in ([8, 2], [0.8, 0.2]):
        np.random.seed(11)  # noqa: NPY002
        runs.append(list(sample_iterators(makers(["aaaa", "bbbb"]), ratios, infinite=False)))
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    "ratios", [[1, -1, 1], [1, float("nan"), 1], [0, 0, 0], [1, 1], [1, float("inf"), 1]]
)
def test_impossible_ratios_are_refused(ratios):
    with pytest.raises(ValueError, match="ratios"):
        next(sample_iterators(makers(SOURCES), ratios))


@pytest.mark.parametrize("infinite", [True, False])
def test_no_iterators_end_at_once(infinite):
    assert list(sample_iterators([], [], infinite)) == []


def test_an_error_of_a_source_passes_through():
    def bad():
        raise RuntimeError("broken")
        yield

    with pytest.raises(RuntimeError, match="broken"):
        next(sample_iterators([bad], [1]))


def test_cycle_opens_again_each_round():
    rounds = iter([[1, 2], [3], []])
    assert list(cycle(lambda: iter(next(rounds)))) == [1, 2, 3]
