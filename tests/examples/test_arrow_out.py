"""Arrays whose axes Arrow cannot hold, or that hold nothing, as Arrow arrays."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.examples.helpers import example, put
from tfrio.errors import SchemaError
from tfrio.examples.arrow import to_arrow
from tfrio.examples.decode import read
from tfrio.examples.schema import Feature
from tfrio.examples.writer import Writer

pa = pytest.importorskip("pyarrow")


def words(*shape: int) -> np.ndarray[Any, Any]:
    """Make an array of byte strings, each another one."""
    made = np.empty(int(np.prod(shape)), object)
    made[:] = [b"w%d" % i for i in range(made.size)]
    return made.reshape(shape)


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    """Make an array of numbers, each another one."""
    return np.arange(np.prod(shape), dtype=np.int64).reshape(shape)


@pytest.mark.parametrize("make", [words, numbers])
@pytest.mark.parametrize("sequence", [False, True])
def test_arrays_that_differ_in_an_inner_axis_are_flat_lists(
    tmp_path: Path, make: Callable[..., Any], sequence: bool
) -> None:
    arrays = [make(2, 3), make(2, 1), make(2, 0)]
    with Writer(tmp_path / "a", sequence=sequence) as writer:
        if sequence:
            writer.write_sequence({}, {"x": arrays})
        else:
            for array in arrays:
                writer.write({"x": array})
    table = pa.table(to_arrow(tmp_path / "a"))
    table.validate(full=True)
    wanted = [array.reshape(-1).tolist() for array in arrays]
    assert table["x"].to_pylist() == ([wanted] if sequence else wanted)


@pytest.mark.parametrize("make", [words, numbers])
@pytest.mark.parametrize("shape", [(2, 0), (0, 3), (2, 0, 3), (2, 3, 0)])
def test_arrays_without_values_keep_their_axes(
    tmp_path: Path, make: Callable[..., Any], shape: tuple[int, ...]
) -> None:
    with Writer(tmp_path / "a") as writer:
        for _ in range(3):
            writer.write({"x": make(*shape)})
    table = pa.table(to_arrow(tmp_path / "a"))
    table.validate(full=True)
    assert table["x"].to_pylist() == [make(*shape).tolist()] * 3


def test_an_error_that_names_what_is_no_text_reaches_the_consumer(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff")
    path.write_bytes(Path(put(tmp_path / "a", example({"x": [1, 2]}))).read_bytes()[:-5])
    with pytest.raises(OSError, match="payload cut"):
        pa.table(to_arrow(path, schema={"x": Feature("int64")}))
    with pytest.raises(SchemaError, match="no feature can be named"):
        list(read(tmp_path / "a", schema={"\ud800": Feature("int64")}))
