"""Quick batching: the same as PyTorch's default, whatever the rows hold."""

from __future__ import annotations

import copy
import pickle
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import default_collate

from tfrio.compat.torch import _collate
from tfrio.compat.torch._collate import Row

COLUMNS = st.sampled_from(
    [
        lambda k: np.array([k, k + 1], np.int64),
        lambda k: np.array([[k, 0.5]], np.float32),
        lambda k: np.full(3000, k, np.float32),
        lambda k: np.zeros((0,), np.int64),
        lambda k: np.array(k, np.int64),
        lambda k: np.array([k], np.float64),
        lambda k: torch.tensor([k]),
        lambda k: k,
        lambda k: k / 2,
        lambda k: b"x%d" % k,
        lambda k: {"inner": np.array([k])},
        lambda k: [np.array([k]), np.array([k])],
    ]
)


def described(batch):
    if isinstance(batch, torch.Tensor):
        return batch.dtype, batch.tolist()
    if isinstance(batch, dict):
        return {key: described(value) for key, value in batch.items()}
    return [described(item) for item in batch] if isinstance(batch, list | tuple) else batch


@given(st.dictionaries(st.sampled_from("abcd"), COLUMNS, min_size=1), st.integers(1, 5))
def test_batches_are_those_of_the_default(columns, size):
    rows = [{name: make(k) for name, make in columns.items()} for k in range(size)]
    quick = default_collate([Row(row) for row in rows])
    assert type(quick) is dict
    assert described(quick) == described(default_collate(rows))


@pytest.mark.parametrize(
    "second", [np.zeros(3, np.int64), np.zeros((2, 1), np.int64), np.zeros(1, np.float32)]
)
def test_unequal_arrays_end_as_they_do_by_default(second):
    rows = [{"a": np.zeros(2, np.int64)}, {"a": second}]
    with pytest.raises(RuntimeError) as plain:
        default_collate(rows)
    with pytest.raises(RuntimeError) as quick:
        default_collate([Row(row) for row in rows])
    assert str(quick.value) == str(plain.value)


def test_a_row_that_lacks_a_feature():
    with pytest.raises(KeyError, match="b"):
        default_collate([Row(a=1, b=2), Row(a=1)])


def test_small_arrays_are_joined_and_large_ones_left_to_torch(monkeypatch):
    calls = Counter()

    def counted(values, *, collate_fn_map):
        calls[len(values[0])] += 1
        return default_collate(values)

    monkeypatch.setattr(_collate, "collate", counted)
    default_collate([Row(a=np.zeros(2, np.int64), b=np.zeros(2000, np.float32)) for _ in range(3)])
    assert calls == {2000: 1}


def test_the_batch_does_not_share_memory_with_its_rows():
    row = Row(a=np.zeros(2, np.int64))
    batch = default_collate([row])
    row["a"][:] = 5
    assert batch["a"].tolist() == [[0, 0]]


def test_copies_and_pickles_are_plain_dicts():
    row = Row(a=1)
    assert isinstance(row, dict)
    for other in (copy.copy(row), copy.deepcopy(row), pickle.loads(pickle.dumps(row)), row.copy()):
        assert type(other) is dict
        assert other == row
