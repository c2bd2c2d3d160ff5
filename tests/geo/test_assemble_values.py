"""Ranges of values, dtypes and nodata values of the bands."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.geo.predictions import MIX_A, read, write
from tfrio.errors import GeoError, UsageError
from tfrio.geo import import_image
from tfrio.geo.assemble_values import ValueRange, _range_of

if TYPE_CHECKING:
    from pathlib import Path


@given(st.lists(st.integers(-300, 600), min_size=1), st.lists(st.integers(-300, 600), min_size=1))
def test_ranges_join(first: list[int], second: list[int]) -> None:
    joined = _range_of(np.array(first)).join(_range_of(np.array(second)))
    every = first + second
    assert (joined.low, joined.high, joined.whole) == (min(every), max(every), True)
    inside = {value for value in every if 0 <= value <= 255}
    assert set(np.flatnonzero(joined.used)) == inside
    if min(every) >= 0 and max(every) <= 255:
        assert joined.distinct == len(set(every))
    else:
        assert joined.distinct >= len(set(every))


def test_ranges_of_fractions_and_nan() -> None:
    assert not _range_of(np.array([0.5, 2.0])).whole
    assert _range_of(np.array([np.nan, 2.0], np.float32)).high == 2
    empty = _range_of(np.array([np.nan], np.float32))
    assert (empty.low, empty.high, empty.distinct) == (math.inf, -math.inf, 0)
    huge = _range_of(np.array([2**62 + 1]))
    assert huge.high == 2**62 + 1
    assert isinstance(huge, ValueRange)


def written(path: Path, values: Any, name: str = "b") -> Path:
    return write(path, ({name: np.resize(values, 12)} for _ in range(4)))


@pytest.mark.parametrize(
    ("values", "options", "dtype", "nodata"),
    [
        ([2**40, 0], {}, "int64", None),
        ([0, 255], {"nodata": -1}, "int16", -1),
        ([0, 8], {"nodata": 0.5}, "float32", 0.5),
        ([0, 8], {"dtype": "float64"}, "float64", math.nan),
        ([0, 8], {"dtype": np.int8}, "int8", None),
        ([1.5], {"dtype": "float64", "nodata": -1}, "float64", -1),
    ],
)
def test_dtype_and_nodata(
    tmp_path: Path, values: Any, options: Any, dtype: str, nodata: float | None
) -> None:
    path = written(tmp_path / "p.tfrecord", values)
    report = import_image(path, tmp_path / "m.tif", mixer=MIX_A, **options)
    assert report.dtype == dtype
    assert report.nodata == pytest.approx(nodata, nan_ok=True)
    assert set(np.unique(read(report.path))) == set(values)


@pytest.mark.parametrize("dtype", ["float16", "bool", "complex64", "no such"])
def test_dtypes_no_geotiff_has(tmp_path: Path, dtype: str) -> None:
    path = written(tmp_path / "p.tfrecord", [0, 1])
    with pytest.raises(UsageError, match="is none of uint8"):
        import_image(path, tmp_path / "m.tif", mixer=MIX_A, dtype=dtype)


def test_float_labels_become_whole_numbers_where_asked(tmp_path: Path) -> None:
    path = written(tmp_path / "p.tfrecord", [0.0, 3.0])
    report = import_image(path, tmp_path / "m.tif", mixer=MIX_A, dtype="uint8")
    assert (report.dtype, len(report.classes)) == ("uint8", 2)
    path = written(tmp_path / "q.tfrecord", [0.0, 300.0])
    with pytest.raises(GeoError, match=r"uint8 does not hold .* from 0.0 to 300.0"):
        import_image(path, tmp_path / "m.tif", mixer=MIX_A, dtype="uint8", overwrite=True)


def test_fractions_are_not_cut(tmp_path: Path) -> None:
    path = written(tmp_path / "p.tfrecord", [0.25, 3.0])
    with pytest.raises(GeoError, match="dtype uint8 would cut the fractions of 'b'"):
        import_image(path, tmp_path / "m.tif", mixer=MIX_A, dtype="uint8")


@pytest.mark.parametrize(("large", "dtype"), [(2**20, "float32"), (2**30 + 1, "float64")])
def test_whole_numbers_beside_fractions(tmp_path: Path, large: int, dtype: str) -> None:
    rows = ({"n": np.full(12, large), "p": np.full(12, 0.5)} for _ in range(4))
    path = write(tmp_path / "p.tfrecord", rows)
    report = import_image(path, tmp_path / "m.tif", mixer=MIX_A)
    assert report.dtype == dtype
    assert read(report.path)[0, 0, 0] == large


@pytest.mark.parametrize(
    ("values", "dtype", "nodata"),
    [
        ([0, 7], "uint8", 255),
        ([0, 255], "uint8", 254),
        ([-5, 32_767], "int16", -32_768),
        ([0, 65_535], "int32", -(2**31)),
        ([-32_768, 32_767], "int32", -(2**31)),
    ],
)
def test_a_free_nodata_value(tmp_path: Path, values: Any, dtype: str, nodata: int) -> None:
    rows = ({"b": np.resize(values, 12), "patch_index": i} for i in (0, 3))
    path = write(tmp_path / "p.tfrecord", rows)
    report = import_image(path, tmp_path / "m.tif", mixer=MIX_A, partial=True)
    assert (report.dtype, report.nodata) == (dtype, nodata)
    raster = read(report.path)[0]
    assert (raster[:3, 4:] == nodata).all()
    assert not (raster[:3, :4] == nodata).any()
