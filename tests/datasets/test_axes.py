"""Arrays of numbers come with the axes that every file of a dataset notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfrio import Writer
from tfrio.datasets.arrays import ArrayDataset


def write(path: Path, *shape: int, sidecar: bool = True) -> None:
    with Writer(path, sidecar=sidecar) as writer:
        for i in range(4):
            writer.write({"id": i, "x": np.full(shape, i, np.float32)})


def batches(folder: Path, **options: Any) -> list[Any]:
    return [*ArrayDataset(folder, batch_size=4, seed=7, index="memory", **options)]


@pytest.mark.parametrize("shuffle", [False, True])
def test_axes_that_all_files_note(tmp_path: Path, shuffle: bool) -> None:
    for name in "ab":
        write(tmp_path / f"{name}.tfrecord", 2, 3)
    found = batches(tmp_path, shuffle=shuffle)
    assert [batch["x"].shape for batch in found] == [(4, 2, 3)] * 2
    for batch in found:
        assert (batch["x"] == batch["id"].reshape(4, 1, 1)).all()


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (6,)])
@pytest.mark.parametrize("first", ["a", "b"])
def test_no_file_lends_its_axes_to_others(
    tmp_path: Path, first: str, shape: tuple[int, ...]
) -> None:
    second = {"a": "b", "b": "a"}[first]
    write(tmp_path / f"{first}.tfrecord", 2, 3)
    write(tmp_path / f"{second}.tfrecord", *shape, sidecar=shape != (2, 3))
    for batch in batches(tmp_path):
        assert batch["x"].shape == (4, 6)
        assert (batch["x"] == batch["id"].reshape(4, 1)).all()


def test_steps_have_their_axes_too(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.tfrecord", sequence=True) as writer:
        for steps in (1, 3):
            writer.write_sequence({"id": steps}, {"s": np.full((steps, 2, 3), steps, np.float32)})
    (batch,) = ArrayDataset(tmp_path, batch_size=2, index="memory")
    assert batch["s"].shape == (2, 3, 2, 3)
    assert batch["s"][1].tolist() == np.full((3, 2, 3), 3.0).tolist()
