"""How bands become features: kinds, depths, fills."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tfrio.errors import GeoError, UsageError
from tfrio.geo.options import ExportOptions
from tfrio.geo.recipe import FeatureRow, fill_value, make_recipe
from tfrio.geo.source import Band
from tfrio.types import XY

BYTE, SMALL, REAL = Band("u", "uint8"), Band("i", "int16"), Band("f", "float64")
SERIES, LONG = Band("s", "uint8", depth=3), Band("t", "float32", depth=5)


def options(**given: Any) -> ExportOptions:
    return ExportOptions(patch=XY(4, 3), **given)


def kinds(*bands: Band, **given: Any) -> list[str]:
    return [feature.kind for feature in make_recipe(bands, options(**given)).features]


def test_kinds_follow_the_guide_or_the_service() -> None:
    flag, wide = Band("b", "bool"), Band("w", "uint32")
    assert kinds(BYTE, SMALL, REAL, flag, wide) == ["float"] * 5
    found = kinds(BYTE, SMALL, REAL, flag, wide, dtype="native")
    assert found == ["bytes", "int64", "float", "bytes", "int64"]


@pytest.mark.parametrize(
    ("bands", "kind"),
    [((BYTE, BYTE), "bytes"), ((BYTE, SMALL), "int64"), ((SMALL, BYTE, REAL), "float")],
)
def test_collapsed_bands_take_the_furthest_kind(bands: tuple[Band, ...], kind: str) -> None:
    different = [Band(f"{number}", band.dtype) for number, band in enumerate(bands)]
    recipe = make_recipe(different, options(collapse_bands=True, dtype="native"))
    assert recipe.features == (FeatureRow("0", kind, tuple(range(len(bands)))),)  # type: ignore[arg-type]
    assert recipe.planes(recipe.features[0]) == len(bands)


def test_array_bands_are_feature_lists_in_sequences_only() -> None:
    plain = make_recipe([REAL, SERIES], options())
    assert [feature.steps for feature in plain.features] == [False, False]
    sequence = make_recipe([REAL, SERIES], options(sequence_data=True))
    assert [feature.steps for feature in sequence.features] == [False, True]
    assert plain.planes(plain.features[1]) == 3


def test_depths_are_given_by_name_or_in_order() -> None:
    bands = [SERIES, REAL, LONG]
    assert make_recipe(bands, options()).depths == (3, None, 5)
    for given in ({"t": 2, "s": 7}, [7, 2], (7, 2)):
        assert make_recipe(bands, options(tensor_depths=given)).depths == (7, None, 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"s": 1}, "tensor_depths misses t. Give a depth to each array band"),
        ({"s": 1, "t": 1, "f": 1}, "names f, no array band"),
        ({"s": 1, "q": 1}, "misses t and names q, no array band"),
        ([1], r"does not fit the array bands \(s, t\)"),
        ([1, 2, 3], "does not fit the array bands"),
        ("12", "does not fit the array bands"),
        ({"s": 0, "t": 1}, "depth of s must be a whole number >= 1; got 0"),
        ({"s": 1, "t": 1.5}, "depth of t must be a whole number >= 1; got 1.5"),
        ({"s": True, "t": 1}, "depth of s must be a whole number"),
    ],
)
def test_depths_that_do_not_fit_are_told(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_recipe([SERIES, REAL, LONG], options(tensor_depths=given))


def test_names_must_differ_from_each_other_and_from_the_index() -> None:
    with pytest.raises(UsageError, match="band names f occur twice"):
        make_recipe([REAL, BYTE, REAL], options())
    with pytest.raises(UsageError, match="band names u occur twice"):
        make_recipe([REAL, BYTE], options(patch_index="u"))
    with pytest.raises(UsageError, match="no band to export"):
        make_recipe([], options())


@pytest.mark.parametrize(
    ("dtype", "default", "nodata", "value", "notes"),
    [
        ("uint8", None, None, 0, 0),
        ("int16", None, -9.0, -9, 0),
        ("uint8", 3.9, None, 3, 0),
        ("int16", -3.9, None, -3, 0),
        ("uint8", 300, None, 255, 1),
        ("uint8", -1, None, 0, 1),
        ("bool", 2, None, 1, 1),
        ("int64", 1e30, None, 2**63 - 1, 1),
        ("float32", None, math.nan, 0, 0),
        ("float32", math.nan, None, math.nan, 0),
        ("float64", 1e39, None, 1e39, 1),
        ("float32", 1e39, None, math.inf, 1),
        ("float32", math.inf, None, math.inf, 0),
        ("uint8", None, 256.0, 255, 0),
    ],
)
def test_fills(
    dtype: str, default: float | None, nodata: float | None, value: float, notes: int
) -> None:
    told: list[str] = []
    found = fill_value(Band("band", dtype, nodata), default, told)
    assert found.dtype == np.dtype(dtype)
    assert np.array_equal(found, np.dtype(dtype).type(value), equal_nan=dtype.startswith("f"))
    assert len(told) == notes
    assert all("band" in note and str(default) in note for note in told)


def test_an_integer_band_has_no_value_for_nan() -> None:
    for default in (math.nan, math.inf):
        with pytest.raises(GeoError, match=r"cannot be stored in band u \(uint8\)"):
            fill_value(BYTE, default, [])
