"""Orders are permutations, computed anywhere in them, and mix as well as they say."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrio.datasets import order as orders
from tfrio.datasets.order import BlockOrder, FullOrder, permuted_blocks, riffled_blocks, subkey


def whole(order):
    return order.take(np.arange(order.total))


@settings(max_examples=60, deadline=None)
@given(total=st.integers(1, 3000), key=st.integers(0, 2**64 - 1), held=st.booleans())
def test_full_order_is_a_permutation(total, key, held):
    order = FullOrder(total, key)
    with pytest.MonkeyPatch.context() as patch:
        if not held:
            patch.setattr(orders, "HELD", 0)
        found = whole(order)
        assert np.array_equal(np.sort(found), np.arange(total))
        some = np.arange(total)[:: max(1, total // 7)]
        assert np.array_equal(order.take(some), found[some])


@pytest.mark.parametrize("held", [True, False])
def test_every_place_is_equally_likely(held, monkeypatch):
    if not held:
        monkeypatch.setattr(orders, "HELD", 0)
    places = np.zeros((7, 7))
    for seed in range(4000):
        places[np.arange(7), whole(FullOrder(7, subkey(seed)))] += 1
    expected = 4000 / 7
    chi_square = ((places - expected) ** 2 / expected).sum()
    # 36 degrees of freedom: 99.99 % of fair tables stay below 77.
    assert chi_square < 77


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.integers(0, 60), max_size=40),
    window=st.integers(1, 200),
    run=st.integers(1, 70),
    key=st.integers(0, 2**64 - 1),
)
def test_block_orders_are_permutations(counts, window, run, key):
    total = sum(counts)
    riffled = riffled_blocks(np.array(counts, np.int64), window=window, key=key, run=run)
    permuted = permuted_blocks(np.arange(0, total, run), total, window=window, key=key)
    for order in (riffled, permuted):
        assert order.total == total
        found = whole(order)
        assert np.array_equal(np.sort(found), np.arange(total))
        back = np.arange(total)[::-1]
        assert np.array_equal(order.take(back), found[back])


def test_a_window_is_all_that_is_mixed():
    order = BlockOrder(np.array([0]), np.array([100]), 10, 5)
    found = whole(order)
    assert np.array_equal(found // 10, np.arange(100) // 10)
    assert not np.array_equal(found, np.arange(100))


def test_riffled_files_are_read_front_to_back():
    counts = np.array([500, 160, 300])
    order = riffled_blocks(counts, window=64, key=8, run=16)
    records = order.unmixed(np.arange(960))
    starts = np.array([0, 500, 660, 960])
    file = np.searchsorted(starts, records, side="right") - 1
    for number in range(3):
        inside = records[file == number]
        assert np.array_equal(inside, np.arange(starts[number], starts[number + 1]))
        # A file lasts the whole epoch: its middle record comes near the middle.
        middle = np.flatnonzero(file == number)[inside.size // 2] / 960
        assert 0.25 < middle < 0.75


def position_correlation(order):
    return abs(np.corrcoef(whole(order), np.arange(order.total))[0, 1])


def test_how_well_records_sorted_by_class_are_mixed():
    """10,000 records sorted by class: what each shuffle leaves of the old order."""
    full = FullOrder(10_000, subkey(1))
    blocks = permuted_blocks(np.arange(0, 10_000, 100), 10_000, window=1000, key=subkey(1))
    buffered = riffled_blocks(np.array([10_000]), window=100, key=subkey(1))
    assert position_correlation(full) < 0.05
    assert position_correlation(blocks) < 0.25
    assert position_correlation(buffered) > 0.99


def test_the_permutation_is_that_of_every_version_before():
    # A state saved by one version goes on in the next one.
    assert FullOrder(12, 5).take(np.arange(12)).tolist() == [9, 11, 1, 3, 2, 4, 6, 7, 0, 10, 5, 8]


def test_pickle_carries_no_permutation():
    order = FullOrder(100_000, 7)
    first = order.take(np.arange(5))
    blob = pickle.dumps(order)
    assert len(blob) < 500
    assert np.array_equal(pickle.loads(blob).take(np.arange(5)), first)


def test_subkeys_differ():
    keys = {subkey(a, b) for a in range(50) for b in range(50)}
    assert len(keys) == 2500
    assert subkey(1, 2) != subkey(2, 1)
    assert subkey(-1) == subkey(2**64 - 1)
