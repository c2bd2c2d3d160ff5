"""What values an import writes: their ranges, the dtype that holds them, the nodata value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import GeoError, UsageError
from tfrio.examples.decode import read_batches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike

    from tfrio.geo.assemble_bands import BandsPlan, FeaturePlan

__all__ = ["ValueRange", "choose_dtype", "choose_nodata", "known_dtype", "value_ranges"]

# GDAL keeps the nodata value of a band as a float64, which holds whole numbers exactly up to here.
_EXACT = 1 << 53
_WHOLE_TYPES = ("uint8", "int16", "uint16", "int32", "uint32", "int64")
# The largest whole number up to which float32 holds all of them (24-bit significand).
_FLOAT32_WHOLE = 1 << 24


@dataclass(frozen=True, slots=True)
class ValueRange:
    """What the values of a feature are.

    Args:
        low: Smallest value; NaN is not counted.
        high: Largest value.
        whole: Whether all are whole numbers.
        used: Shape (256,), which values of 0 to 255 occur.
    """

    low: float
    high: float
    whole: bool
    used: np.ndarray[Any, np.dtype[np.bool_]]

    @property
    def distinct(self) -> int:
        """Return how many values there are, at most."""
        if self.low >= 0 and self.high <= 255:
            return int(self.used.sum())
        return int(self.high - self.low) + 1 if self.low <= self.high else 0

    def join(self, other: ValueRange) -> ValueRange:
        """Return the range of both."""
        return ValueRange(
            min(self.low, other.low),
            max(self.high, other.high),
            self.whole and other.whole,
            self.used | other.used,
        )


def value_ranges(
    paths: Sequence[str], plan: BandsPlan, *, everything: bool = False
) -> dict[str, ValueRange]:
    """Look through the features of whole numbers.

    Args:
        paths: The files.
        plan: The plan.
        everything: Look through the others too, since they are to become whole numbers.

    Returns:
        The range by feature; features left out are unread.
    """
    wanted = {f.look.name: f.schema for f in plan.features if f.whole or everything}
    found: dict[str, ValueRange] = {}
    for batch in read_batches(paths, plan.batch, schema=wanted) if wanted else ():
        for name, feature in wanted.items():
            column = batch[name]
            values = column.data if feature.kind == "bytes" else column
            part = _range_of(np.asarray(values))
            found[name] = found[name].join(part) if name in found else part
    return found


def _range_of(values: np.ndarray[Any, Any]) -> ValueRange:
    flat = values.ravel()
    whole = True
    if flat.dtype.kind == "f":
        flat = flat[~np.isnan(flat)]
        whole = bool((np.isfinite(flat) & (flat == np.rint(flat))).all())
    used = np.zeros(256, np.bool_)
    if not flat.size:
        return ValueRange(math.inf, -math.inf, True, used)
    low, high = flat.min(), flat.max()
    if whole and low <= 255 and high >= 0:
        inside = flat if low >= 0 and high <= 255 else flat[(flat >= 0) & (flat <= 255)]
        used = np.bincount(inside.astype(np.int64), minlength=256) > 0
    # Python's own numbers: int64 keeps all its digits.
    return ValueRange(low.item(), high.item(), whole, used)


def choose_dtype(
    plan: BandsPlan,
    ranges: dict[str, ValueRange],
    *,
    dtype: np.dtype[Any] | None,
    nodata: float | None,
) -> np.dtype[Any]:
    """Choose the dtype of the raster; a GeoTIFF has one for all bands.

    Args:
        plan: The bands.
        ranges: Ranges of the whole-number features.
        dtype: What the caller asks for.
        nodata: Nodata value asked for, which must fit too.

    Returns:
        The dtype of the source where export noted it and it holds every value, else the smallest
        one that does; float32 where a band has fractions.

    Raises:
        GeoError: The dtype asked for does not hold every value.
    """
    joined = _joined(plan, ranges)
    if dtype is not None:
        _check_holds(dtype, joined, plan, ranges)
        return dtype
    fractions = any(not _is_whole(feature, ranges) for feature in plan.features)
    if fractions:
        large = joined is not None and max(-joined.low, joined.high) > _FLOAT32_WHOLE
        return np.dtype("float64" if large else "float32")
    extra = [nodata] if nodata is not None else []
    if any(not float(value).is_integer() for value in extra):
        return np.dtype("float32")
    assert joined is not None
    low, high = min([joined.low, *extra]), max([joined.high, *extra])
    noted = [np.dtype(row.dtype) for row in plan.noted if row is not None]
    if len(noted) == len(plan.names):
        common = np.result_type(*noted)
        common = np.dtype("uint8") if common.kind == "b" else common
        if common.kind in "iu" and holds(common, low, high):
            return common
    # Beyond int64 only features of floats go: float32 holds what they store.
    fits = (t for t in (*_WHOLE_TYPES, "uint64") if holds(np.dtype(t), low, high))
    return np.dtype(next(fits, "float32"))


def known_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return a dtype that a GeoTIFF can have.

    Raises:
        UsageError: It cannot, or is none.
    """
    try:
        wanted = np.dtype(dtype)
    except TypeError:
        wanted = np.dtype("V")
    if wanted.name not in (*_WHOLE_TYPES, "int8", "uint64", "float32", "float64"):
        raise UsageError(
            f"dtype {dtype!r} is none of {', '.join(_WHOLE_TYPES)}, int8, uint64, float32, float64"
        )
    return wanted


def _is_whole(feature: FeaturePlan, ranges: dict[str, ValueRange]) -> bool:
    return feature.whole and ranges[feature.look.name].whole


def _joined(plan: BandsPlan, ranges: dict[str, ValueRange]) -> ValueRange | None:
    found: ValueRange | None = None
    for feature in plan.features:
        part = ranges.get(feature.look.name)
        if part is not None:
            found = part if found is None else found.join(part)
    return found


def _check_holds(
    dtype: np.dtype[Any],
    joined: ValueRange | None,
    plan: BandsPlan,
    ranges: dict[str, ValueRange],
) -> None:
    names = [feature.look.name for feature in plan.features]
    fractions = [name for name in names if name not in ranges or not ranges[name].whole]
    if dtype.kind in "iu" and fractions:
        raise GeoError(
            f"dtype {dtype} would cut the fractions of '{fractions[0]}'. Pass argmax=True for "
            "classes, or a float dtype",
            feature=fractions[0],
        )
    if joined is not None and dtype.kind in "iu" and not holds(dtype, joined.low, joined.high):
        raise GeoError(
            f"dtype {dtype} does not hold the predictions, which go from {joined.low} to "
            f"{joined.high}. Pass a wider dtype, or none to have one chosen"
        )


def holds(dtype: np.dtype[Any], low: float, high: float) -> bool:
    """Tell whether an integer dtype holds a range (an empty range fits any)."""
    info = np.iinfo(dtype)
    return bool(low > high or (info.min <= low and high <= info.max))


def choose_nodata(
    plan: BandsPlan,
    ranges: dict[str, ValueRange],
    dtype: np.dtype[Any],
    *,
    nodata: float | None,
    needed: bool,
) -> tuple[np.dtype[Any], float | None, str]:
    """Choose the nodata value.

    Args:
        plan: The bands.
        ranges: Ranges of the whole-number features.
        dtype: The dtype chosen.
        nodata: Value asked for, None to choose.
        needed: Whether some pixel is going to be nodata.

    Returns:
        The dtype (wider where every value is taken), the value (None: no pixel needs one), and a
        note for the user, often empty.

    Raises:
        GeoError: The value asked for does not fit the dtype.
    """
    if nodata is not None:
        return dtype, _fitting(nodata, dtype), ""
    noted = {None if row is None else row.nodata_value for row in plan.noted}
    if len(noted) == 1:
        own = noted.pop()
        if own is not None and _representable(own, dtype):
            return dtype, own, ""
    if dtype.kind == "f":
        return dtype, math.nan, ""
    return _free_value(_joined(plan, ranges), dtype) if needed else (dtype, None, "")


def _representable(value: float, dtype: np.dtype[Any]) -> bool:
    if dtype.kind == "f":
        return True
    low, high = _nodata_limits(dtype)
    return math.isfinite(value) and value == int(value) and low <= value <= high


def _nodata_limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the least and greatest nodata value of an integer raster."""
    info = np.iinfo(dtype)
    return max(int(info.min), -_EXACT), min(int(info.max), _EXACT)


def _fitting(value: float, dtype: np.dtype[Any]) -> float:
    if not _representable(value, dtype):
        raise GeoError(
            f"nodata {value} is no {dtype}. Pass another nodata, or a dtype that holds it"
        )
    return value


def _free_value(
    joined: ValueRange | None, dtype: np.dtype[Any]
) -> tuple[np.dtype[Any], float | None, str]:
    least, greatest = _nodata_limits(dtype)
    if joined is None or joined.high < greatest:
        return dtype, greatest, ""
    if least < 0 and joined.low > least:
        return dtype, least, ""
    if dtype == np.uint8 and not joined.used.all():
        return dtype, int(np.flatnonzero(~joined.used)[-1]), ""
    larger = (np.dtype(t) for t in _WHOLE_TYPES if np.dtype(t).itemsize > dtype.itemsize)
    chosen = next((t for t in larger if holds(t, joined.low, joined.high + 1)), None)
    if chosen is None:
        raise GeoError(
            f"values from {joined.low} to {joined.high} leave no {dtype} for nodata that a GeoTIFF "
            "can hold. Pass nodata=, or dtype='float64'"
        )
    value = _nodata_limits(chosen)[0 if chosen.kind == "i" else 1]
    note = f"every value of {dtype} is taken: the raster is {chosen} with nodata {value}"
    return chosen, value, note
