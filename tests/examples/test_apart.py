"""Columns whose rows have axes of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.examples.helpers import payloads
from tfrio.examples.decode import read, read_batches
from tfrio.examples.writer import Writer


@pytest.mark.filterwarnings("ignore::tfrio.errors.TfrioWarning")
@pytest.mark.parametrize("size", [1, 2, 3])
def test_an_empty_row_of_byte_strings_keeps_its_kind(tmp_path: Path, size: int) -> None:
    with Writer(tmp_path / "a") as writer:
        for shape in (2, 3), (1, 2, 2), (0,):
            writer.write({"w": np.full(shape, b"q", object)})
    with Writer(tmp_path / "b") as writer:
        for batch in read_batches(tmp_path / "a", size):
            writer.write_batch(batch)
    assert payloads(tmp_path / "b") == payloads(tmp_path / "a")
    assert [np.shape(row["w"]) for row in read(tmp_path / "b")] == [(2, 3), (1, 2, 2), (0,)]
