"""What one feature holds over many records, counted column by column. Pure."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tfrio.examples.images import IMAGE_STARTS, image_format
from tfrio.examples.layout import shown_name

if TYPE_CHECKING:
    from tfrio.examples.columns import Array
    from tfrio.examples.layout import NativeColumn
    from tfrio.examples.schema import Kind, Place

__all__ = ["HEADINGS", "FeatureStats", "is_fill"]

# What ``FeatureStats.cells`` holds.
HEADINGS: Final = (
    *("feature", "kind", "values"),
    *("present", "empty", "min", "max", "mean", "std", "NaN", "fill", "bytes"),
)

# What adds up over parts.
_COUNTS: Final = (
    *("present", "empty", "values", "nan", "infinite", "filled", "stored_bytes", "name_bytes"),
)

# A varint grows by a byte at each of these: 2**7, 2**14 ... 2**63.
_VARINT_STEPS: Final = np.array([1 << (7 * k) for k in range(1, 10)], np.uint64)
_IMAGE_STARTS: Final = np.frombuffer(b"".join(sorted(IMAGE_STARTS)), ">u2")
_HEAD: Final = 32  # bytes that tell an image's format


@dataclass(slots=True)
class FeatureStats:
    """What one feature holds.

    Attributes:
        name: As stored.
        place: Context (or Example), or feature list.
        kinds: Records by kind; more than one is a fault of the data.
        present: Records that have it.
        empty: Lists without a value (of records, or of steps).
        values: Values in all.
        lengths: Fewest and most values in a list.
        steps: Fewest and most steps of a record; None but for feature lists.
        minimum: Smallest number, NaN left out; for bytes, the length of the shortest value.
        maximum: Largest number; for bytes, the length of the longest value.
        mean: Mean of the finite numbers; for bytes, of the lengths.
        nan: Values that are NaN.
        infinite: Values that are infinite.
        filled: Values left out of the four numbers, as they only fill a place.
        stored_bytes: Bytes that values and names take, packed, without the record's own frame.
        name_bytes: Of these, what the repeated name takes.
        formats: Images by format, as their first bytes tell.
    """

    name: str
    place: Place
    kinds: Counter[Kind] = field(default_factory=Counter)
    present: int = 0
    empty: int = 0
    values: int = 0
    lengths: tuple[int, int] | None = None
    steps: tuple[int, int] | None = None
    minimum: float | int | None = None
    maximum: float | int | None = None
    mean: float | None = None
    nan: int = 0
    infinite: int = 0
    filled: int = 0
    stored_bytes: int = 0
    name_bytes: int = 0
    formats: Counter[str] = field(default_factory=Counter)
    _squares: float = 0.0  # sum of squared distances from the mean
    _counted: int = 0

    @property
    def std(self) -> float | None:
        """Return the standard deviation (of all, not of a sample); None without numbers."""
        return math.sqrt(max(self._squares, 0.0) / self._counted) if self._counted else None

    def add(self, native: NativeColumn, kind: Kind, *, fill: float | None = None) -> None:
        """Count the records of a column.

        Args:
            native: A column of lists of free length.
            kind: Its kind.
            fill: Number to leave out of minimum, maximum, mean and deviation.
        """
        present = int(native.present.sum())
        if not present:
            return
        self.present += present
        self.kinds[kind] += present
        self._add_lengths(native)
        if native.byte_offsets is None:
            self._add_numbers(native.values, fill)
        else:
            self._add_bytes(native.values, native.byte_offsets)
        names = present * (len(self.name.encode("utf-8", "surrogateescape")) + 2)
        self.name_bytes += names
        self.stored_bytes += names + 6 * present  # entry, value, list and packed headers

    def merge(self, other: FeatureStats) -> None:
        """Add what was counted elsewhere."""
        self.kinds += other.kinds
        self.formats += other.formats
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.lengths = _span(self.lengths, other.lengths)
        self.steps = _span(self.steps, other.steps)
        if other.minimum is not None and other.maximum is not None:
            self._add_range(other.minimum, other.maximum)
        self._add_moments(other._counted, other.mean or 0.0, other._squares)

    def to_dict(self, records: int) -> dict[str, Any]:
        """Return everything for JSON.

        Args:
            records: Records in all, to tell how many lack the feature.
        """
        return {
            "name": shown_name(self.name),
            "place": self.place,
            "kinds": dict(self.kinds),
            "present": self.present,
            "absent": records - self.present,
            "empty": self.empty,
            "values": self.values,
            "lengths": self.lengths,
            "steps": self.steps,
            "minimum": _json_number(self.minimum),
            "maximum": _json_number(self.maximum),
            "mean": _json_number(self.mean),
            "std": _json_number(self.std),
            "nan": self.nan,
            "infinite": self.infinite,
            "filled": self.filled,
            "stored_bytes": self.stored_bytes,
            "name_bytes": self.name_bytes,
            "formats": dict(self.formats),
        }

    def cells(self, records: int, total: int) -> list[str]:
        """Return the feature's line in a table for people.

        Args:
            records: Records in all.
            total: Bytes of all features.
        """
        formats = ", ".join(f"{name} {count:,}" for name, count in self.formats.items())
        kind = " or ".join(self.kinds) or "no kind"
        kind = f"steps of {kind}" if self.place == "list" else kind
        values = _range(self.lengths or (0, 0))
        return [
            shown_name(self.name),
            f"{kind} ({formats})" if formats else kind,
            f"{values}, steps {_range(self.steps)}" if self.steps else values,
            "always" if self.present == records else f"{self.present:,} of {records:,}",
            f"{self.empty:,}" if self.empty else "",
            *map(_cell, (self.minimum, self.maximum, self.mean, self.std)),
            f"{self.nan:,}" if self.nan else "",
            f"{self.filled:,}" if self.filled else "",
            f"{self.stored_bytes / total:.1%}",
        ]

    def _add_lengths(self, native: NativeColumn) -> None:
        assert native.value_offsets is not None
        lengths = np.diff(native.value_offsets)
        if native.step_offsets is None:
            lengths = lengths[native.present.view(np.bool_)]
        else:
            steps = np.diff(native.step_offsets)[native.present.view(np.bool_)]
            self.steps = _span(self.steps, (int(steps.min()), int(steps.max())))
        if len(lengths):
            self.lengths = _span(self.lengths, (int(lengths.min()), int(lengths.max())))
        self.empty += int((lengths == 0).sum())
        self.values += int(lengths.sum())

    def _add_numbers(self, values: Array, fill: float | None) -> None:
        self.stored_bytes += 4 * len(values) if values.dtype.kind == "f" else _varint_bytes(values)
        if fill is not None:
            real = ~is_fill(values, fill)
            self.filled += len(values) - int(real.sum())
            values = values[real]
        if values.dtype.kind == "f":
            finite = values[np.isfinite(values)]
            if len(finite) != len(values):
                nan = int(np.isnan(values).sum())
                self.nan += nan
                self.infinite += len(values) - len(finite) - nan
                values = values[~np.isnan(values)]
        else:
            finite = values
        if len(values):
            self._add_range(values.min().item(), values.max().item())
        self._add_finite(finite)

    def _add_bytes(self, data: Array, offsets: Array) -> None:
        sizes = np.diff(offsets)
        self.stored_bytes += int(sizes.sum()) + 2 * len(sizes)
        if not len(sizes):
            return
        self._add_range(int(sizes.min()), int(sizes.max()))
        self._add_finite(sizes)
        self._add_formats(data, offsets[:-1][sizes >= 3], offsets[1:][sizes >= 3])

    def _add_formats(self, data: Array, starts: Array, ends: Array) -> None:
        begin = data[starts].astype(np.uint16) << 8 | data[starts + 1]
        likely = np.isin(begin, _IMAGE_STARTS)
        heads = np.minimum(ends, starts + _HEAD)[likely].tolist()
        for start, end in zip(starts[likely].tolist(), heads, strict=True):
            found = image_format(data[start:end].tobytes())
            if found is not None:
                self.formats[found] += 1

    def _add_range(self, low: float, high: float) -> None:
        self.minimum = low if self.minimum is None else min(self.minimum, low)
        self.maximum = high if self.maximum is None else max(self.maximum, high)

    def _add_finite(self, values: Array) -> None:
        if len(values):
            wide = values.astype(np.float64)
            mean = float(wide.mean())
            self._add_moments(len(wide), mean, float(((wide - mean) ** 2).sum()))

    def _add_moments(self, count: int, mean: float, squares: float) -> None:
        """Join mean and squares with those of another part (Chan, Golub, LeVeque 1979)."""
        if not count:
            return
        before = self.mean or 0.0
        total = self._counted + count
        step = mean - before
        self.mean = before + step * count / total
        self._squares += squares + step * step * self._counted * count / total
        self._counted = total


def is_fill(values: Array, fill: float) -> Array:
    """Return which numbers, as they are stored, are the one that fills masked pixels.

    Args:
        values: float32 or int64 array.
        fill: The number; a fraction is no integer's.

    Returns:
        bool array of the same shape.
    """
    return np.asarray(values == (np.float32(fill) if values.dtype.kind == "f" else fill))


def _range(pair: tuple[int, int]) -> str:
    low, high = pair
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _varint_bytes(values: Array) -> int:
    unsigned = values.view(np.uint64)
    return int(np.searchsorted(_VARINT_STEPS, unsigned, "right").sum()) + len(values)


def _span(first: tuple[int, int] | None, second: tuple[int, int] | None) -> Any:
    if first is None or second is None:
        return first or second
    return min(first[0], second[0]), max(first[1], second[1])


def _json_number(value: float | None) -> float | str | None:
    """Return a number as JSON has it; infinities are text."""
    return value if value is None or math.isfinite(value) else str(value)
