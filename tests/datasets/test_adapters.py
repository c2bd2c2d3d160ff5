"""Random access sources and plain dicts."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tests.datasets.conftest import TOTAL, ids
from tfrio.datasets.adapters import ArraySource, numeric
from tfrio.datasets.arrays import ArrayDataset


@pytest.mark.parametrize("form", ["plain", "blocked", "gzip"])
def test_random_access(numbered, form):
    source = ArraySource(numbered[form], index="memory")
    assert len(source) == TOTAL
    assert source[3]["x"].tolist() == [3.0, 3.5]
    assert source[np.int64(-1)]["id"].tolist() == [102]
    assert [int(row["id"][0]) for row in source.__getitems__([9, 2])] == [9, 2]
    with pytest.raises(IndexError, match="103 of 103"):
        source[103]


def test_protocol_of_a_grain_source(numbered):
    source = ArraySource(numbered["plain"], features=["id"], index="memory")
    again = pickle.loads(pickle.dumps(source))
    assert repr(again) == repr(source)
    assert "103 records, 3 files" in repr(source)
    assert list(again.schema) == ["id"]
    assert again[7]["id"] == 7


def test_transform_and_images_and_scalars(numbered):
    source = ArraySource(
        numbered["plain"], scalars=True, transform=lambda row: row["id"] * 2, index="memory"
    )
    assert source[4] == 8


def test_numeric_leaves_plain_dicts_of_arrays(numbered):
    data = ArrayDataset(numbered["plain"], batch_size=4, index="memory")
    batches = list(numeric(data))
    assert ids(batches) == list(range(TOTAL))
    assert type(batches[0]) is dict
    assert sorted(batches[0]) == ["id", "list", "list/lengths", "x"]
