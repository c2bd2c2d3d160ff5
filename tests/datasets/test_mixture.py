"""Mixtures keep their weights, and any stretch of draws can be had by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrio.datasets.mixture import ROUND, Draws, MixedOrder, epoch_length
from tfrio.datasets.order import FileOrder, FullOrder, subkey
from tfrio.datasets.plan import plan
from tfrio.errors import UsageError

WEIGHTS = st.lists(st.floats(1e-3, 10), min_size=1, max_size=5).map(tuple)


def mixed(counts, weights, *, total=None, stop="first", seed=0, shuffled=False):
    draws = Draws(tuple(weights), subkey(seed))
    total = epoch_length(draws, counts, stop) if total is None else total

    def order_of(source, turn):
        if not shuffled:
            return FileOrder(counts[source])
        return FullOrder(counts[source], subkey(seed, source, turn))

    return MixedOrder(draws, tuple(counts), total, order_of)


@settings(max_examples=40, deadline=None)
@given(weights=WEIGHTS, key=st.integers(0, 2**64 - 1), rounds=st.integers(1, 9))
def test_shares_are_exact_to_one_draw_a_round(weights, key, rounds):
    draws = Draws(weights, key)
    counts = draws.before(rounds)
    wanted = np.array(weights) / sum(weights) * ROUND * rounds
    assert counts.sum() == ROUND * rounds
    assert (np.abs(counts - wanted) <= rounds + 1e-6).all()


@settings(max_examples=40, deadline=None)
@given(weights=WEIGHTS, key=st.integers(0, 2**64 - 1))
def test_each_source_is_drawn_in_its_own_order(weights, key):
    order = MixedOrder(Draws(weights, key), (10,) * len(weights), 3 * ROUND, None)
    source, ordinal = order.sources(np.arange(3 * ROUND))
    for number in range(len(weights)):
        assert np.array_equal(ordinal[source == number], np.arange((source == number).sum()))
    some = np.array([5, ROUND - 1, ROUND, 2 * ROUND + 77])
    assert np.array_equal(order.sources(some)[0], source[some])


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_rare_source_keeps_its_share_with_any_number_of_workers(workers):
    order = mixed([1000, 1000], (0.99, 0.01), total=20_000)
    counts = np.zeros(2, int)
    for worker in range(workers):
        part = plan([1000, 1000], batch=32, worker=worker, workers=workers, order=order)
        counts += np.bincount(part.picks(0, len(part)).file, minlength=2)
    assert counts.sum() == 20_000
    assert abs(counts[1] / 20_000 - 0.01) < 0.003


def test_rare_draws_are_unbiased_over_keys():
    drawn = [Draws((1.0, 0.1 / ROUND), subkey(k)).before(1)[1] for k in range(3000)]
    assert 0.08 < np.mean(drawn) < 0.12


@pytest.mark.parametrize("counts", [[5, 7], [1, 1], [100, 3, 40], [9000, 20]], ids=str)
def test_stop_first_repeats_nothing(counts):
    order = mixed(counts, [1.0, 0.5, 2.0][: len(counts)])
    records = order.take(np.arange(order.total))
    assert len(set(records.tolist())) == order.total
    used = np.bincount(order.sources(np.arange(order.total))[0], minlength=len(counts))
    source = order.sources(np.array([order.total]))[0][0]
    assert used[source] == counts[source]


@pytest.mark.parametrize("counts", [[5, 7], [1, 1], [100, 3, 40], [9000, 20]], ids=str)
@pytest.mark.parametrize("shuffled", [False, True])
def test_stop_all_brings_every_record(counts, shuffled):
    order = mixed(counts, [1.0, 0.5, 2.0][: len(counts)], stop="all", shuffled=shuffled)
    records = order.take(np.arange(order.total))
    assert set(records.tolist()) == set(range(sum(counts)))
    assert len(set(order.take(np.arange(order.total - 1)).tolist())) == sum(counts) - 1


def test_every_pass_of_a_source_is_whole():
    order = mixed([7, 100], (0.5, 0.5), total=60, shuffled=True)
    records = order.take(np.arange(60))
    small = records[records < 7]
    assert sorted(small[:7].tolist()) == sorted(small[7:14].tolist()) == list(range(7))
    assert small[:7].tolist() != small[7:14].tolist()


def test_an_order_is_kept_for_the_present_passes_only():
    order = mixed([2, 100], (0.5, 0.5), total=4000, shuffled=True)
    for start in range(0, 4000, 50):
        order.take(np.arange(start, start + 50))
    assert len(order._orders) < 20


@pytest.mark.parametrize("weights", [(), (0.0, 1.0), (-1.0,), (float("nan"),), (float("inf"),)])
def test_bad_weights_are_refused(weights):
    with pytest.raises(UsageError, match="above 0"):
        Draws(weights, 1)


def test_empty_source_and_unknown_stop_are_refused():
    draws = Draws((1.0, 1.0), 1)
    with pytest.raises(UsageError, match="source 1"):
        epoch_length(draws, [3, 0], "first")
    with pytest.raises(UsageError, match="stop"):
        epoch_length(draws, [3, 1], "last")
