"""Batches of tensors travel whole, small ones through the pipe, large ones as one block."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from torch.utils.data import default_collate, default_convert

from tfrio.datasets.tensors import TensorBatch, TensorMaker
from tfrio.examples.columns import Ragged
from tfrio.examples.schema import Schema


def batch():
    return TensorBatch(
        {
            "a": torch.arange(6, dtype=torch.float32).reshape(3, 2),
            "b": [b"x", b"", b"zz"],
            "c": torch.tensor([1, 2, 3])[::1],
            "d": torch.arange(12, dtype=torch.uint8).reshape(3, 4)[:, ::2],
            "e": torch.empty((3, 0)),
            "f": torch.tensor([True, False, True]),
        },
        rows=3,
    )


def equal(first, second):
    assert type(first) is type(second) is TensorBatch
    assert list(first) == list(second)
    assert first.rows == second.rows
    for name, value in first.items():
        if isinstance(value, torch.Tensor):
            assert value.dtype == second[name].dtype
            assert torch.equal(value, second[name])
        else:
            assert value == second[name]


def test_pickle_keeps_everything():
    again = pickle.loads(pickle.dumps(batch()))
    equal(again, batch())
    again["a"] += 1  # tensors that arrive may be written to


def test_empty_batches_pickle():
    for empty in (TensorBatch(rows=2), TensorBatch({"a": torch.empty(0)}, rows=0)):
        equal(pickle.loads(pickle.dumps(empty)), empty)


def test_what_cannot_be_packed_is_sent_as_it_is():
    special = TensorBatch({"n": torch.eye(2).to_sparse(), "a": torch.ones(2)}, rows=2)
    again = pickle.loads(pickle.dumps(special))
    assert torch.equal(again["n"].to_dense(), torch.eye(2))


def test_copies_and_torchs_own_tools_keep_the_rows():
    equal(copy.copy(batch()), batch())
    equal(default_convert(batch()), batch())
    assert default_collate([{"a": torch.ones(2)}] * 2)["a"].shape == (2, 2)


def test_to_moves_tensors_and_keeps_the_rest():
    moved = batch().to("meta")
    assert moved["a"].device.type == "meta"
    assert moved["b"] == [b"x", b"", b"zz"]
    assert moved.rows == 3


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [
        ("float32", torch.float32),
        ("int64", torch.int64),
        ("uint8", torch.uint8),
        ("bool", torch.bool),
        ("float16", torch.float16),
        ("uint16", torch.int32),
        ("uint32", torch.int64),
    ],
)
def test_every_type_becomes_a_tensor(dtype, wanted):
    maker = TensorMaker(Schema(), ragged="padded", marks=False)
    values = np.array([[1, 0], [1, 1], [0, 1]]).astype(dtype)
    for array in (values, values.T, values[::2]):
        tensor = maker.array(array)
        assert tensor.dtype == wanted
        assert tensor.tolist() == array.tolist()
    fixed = values.copy()
    fixed.flags.writeable = False
    assert maker.array(fixed).tolist() == values.tolist()


def test_nested_starts_at_any_offset():
    maker = TensorMaker(Schema(), ragged="nested", marks=False)
    column = Ragged(np.arange(10), np.array([2, 2, 5, 6]))
    nested = maker.nested(column)
    assert [part.tolist() for part in nested.unbind()] == [[], [2, 3, 4], [5]]
