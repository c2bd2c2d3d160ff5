"""Neighbourhood patches in table records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tfrio
from tfrio.errors import SchemaError, UsageError
from tfrio.tables import read_patches
from tfrio.tables.patches import patch_size
from tfrio.types import XY

if TYPE_CHECKING:
    from pathlib import Path


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    with tfrio.Writer(path) as writer:
        for row in rows:
            writer.write(row)
    return path


def test_sizes() -> None:
    assert patch_size(66_049) == XY(257, 257)
    assert patch_size(12, XY(4, 3)) == XY(4, 3)
    with pytest.raises(
        SchemaError, match=r"66049 values = 257x257, not 256x256 \(odd neighbourhood 2\*128\+1\?\)"
    ):
        patch_size(66_049, XY(256, 256))
    with pytest.raises(SchemaError, match="12 values form no square"):
        patch_size(12)


def test_patches_and_single_values(tmp_path: Path) -> None:
    values = np.arange(2 * 25, dtype=np.float32).reshape(2, 25)
    path = written(tmp_path / "t.tfrecord.gz", [{"B2": v, "class": 1} for v in values])
    (batch,) = read_patches(path, 8)
    assert list(batch) == ["B2"]
    np.testing.assert_array_equal(batch["B2"], values.reshape(2, 5, 5))
    (cut,) = read_patches(path, 8, features=["class", "B2"], crop=(4, 3))
    np.testing.assert_array_equal(cut["B2"], values.reshape(2, 5, 5)[:, :3, :4])
    assert cut["class"].tolist() == [1, 1]


def test_what_is_no_patch(tmp_path: Path) -> None:
    path = written(tmp_path / "t.tfrecord", [{"a": np.zeros(12), "b": np.zeros(4)}, {"a": [1.0]}])
    with pytest.raises(SchemaError, match="feature 'a' has 1 to 12 values"):
        next(read_patches(path, 8))
    (batch,) = read_patches(path, 8, features=["b"], size=2)
    assert batch["b"].shape == (2, 2, 2)
    assert batch.present["b"].tolist() == [True, False]
    with pytest.raises(UsageError, match="crop 3x2 is larger than 'b'"):
        next(read_patches(path, 8, features=["b"], crop=(3, 2)))
