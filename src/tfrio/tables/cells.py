"""The values of one column for some rows, on the way from a table to a feature. Pure.

Numbers keep the source's type here, so that what float32 or int64 cannot hold is found before it
is written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tfrio.errors import EncodeError
from tfrio.examples.columns import BytesColumn
from tfrio.tables.fields import Field, walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tfrio.tables.fields import Form, Kind

__all__ = ["Cells", "cells_of_values", "changed", "filled", "stored", "text_of"]

# Above 2^24 float32 skips whole numbers: its significand has 24 bits (IEEE 754 binary32).
_WHOLE = 1 << 24
_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, slots=True)
class Cells:
    """Lists of values, one for each row.

    Args:
        values: All values one after another.
        offsets: Shape (rows + 1,): row i holds ``values[offsets[i]:offsets[i + 1]]``.
        present: Shape (rows,): False where the cell is null.
        shapes: Shape (rows, axes): the array shape of each row; None where every cell is one
            value.
    """

    values: NDArray[Any] | BytesColumn
    offsets: NDArray[np.int64]
    present: NDArray[np.bool_]
    shapes: NDArray[np.int64] | None = None

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return len(self.present)

    def row_of(self, value: int) -> int:
        """Return the row that holds a value."""
        return int(np.searchsorted(self.offsets, value, side="right")) - 1

    def shape(self) -> tuple[int, ...] | None:
        """Return the shape that all present rows share, None where they differ."""
        if self.shapes is None:
            return ()
        known = self.shapes[self.present]
        if len(known) and (known == known[0]).all():
            return tuple(int(axis) for axis in known[0])
        return None


def text_of(value: object) -> bytes:
    """Return the bytes stored for text, and for what has no kind of its own as JSON."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return json.dumps(value, ensure_ascii=False, default=str).encode()


def cells_of_values(field: Field, values: Sequence[object]) -> Cells:
    """Gather plain Python values.

    Args:
        field: What the column holds.
        values: One value a row, None for null.

    Returns:
        The cells.
    """
    as_bytes = field.kind == "bytes" or field.form not in ("bool", "int", "float")
    single = field.form == "json" or (field.shape == () and field.form != "null")
    present = np.array([value is not None for value in values], bool)
    known: list[Any] = [value for value in values if value is not None]
    walked = [] if single else [cast("tuple[Any, list[Any]]", walk(value)) for value in known]
    flat = known if single else [part for _, parts in walked for part in parts]
    lengths = np.zeros(len(values), np.int64)
    lengths[present] = 1 if single else [len(parts) for _, parts in walked]
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    gathered = (
        BytesColumn.of(map(text_of, flat)) if as_bytes else _numbers(flat, field.form, field.name)
    )
    shapes = None if single else _row_shapes(present, [shape for shape, _ in walked])
    return Cells(gathered, offsets, present, shapes)


def _numbers(flat: list[Any], form: Form, name: str) -> NDArray[Any]:
    """Return numbers in the type of the column; a null within a list is NaN."""
    if form != "float":
        try:
            return np.array(flat, np.int64)
        except (OverflowError, TypeError):
            pass  # beyond int64, or a null within a list
    try:
        return np.array([np.nan if value is None else value for value in flat], np.float64)
    except OverflowError:
        raise EncodeError(
            f"column '{name}' holds a whole number of more than 308 digits, which no number type "
            f"holds. Store its text with types={{'{name}': 'bytes'}}",
            feature=name,
        ) from None


def _row_shapes(present: NDArray[np.bool_], shapes: list[tuple[int, ...]]) -> NDArray[np.int64]:
    """Return one shape a row; fewer axes count as trailing ones, null rows as zero."""
    axes = max(map(len, shapes), default=0)
    rows = np.zeros((len(present), axes), np.int64)
    if shapes:
        rows[present] = [(*shape, *[1] * (axes - len(shape))) for shape in shapes]
    return rows


def filled(cells: Cells, fill: float | str | bytes) -> Cells:
    """Put one value wherever a cell is null.

    Args:
        cells: The cells.
        fill: The value.

    Returns:
        Cells without nulls.
    """
    if cells.present.all():
        return cells
    values: Any = cells.values
    spots = cells.offsets[:-1][~cells.present]
    if isinstance(values, BytesColumn):
        listed = np.array([*values.tolist(), None], object)[:-1]
        values = BytesColumn.of(np.insert(listed, spots, text_of(fill)))
    else:
        wide = np.result_type(values.dtype, np.min_scalar_type(fill))
        values = np.insert(values.astype(wide), spots, fill)
    lengths = np.diff(cells.offsets) + ~cells.present
    shapes = cells.shapes
    if shapes is not None:
        shapes = np.where(cells.present[:, None], shapes, 1)
    return replace(
        cells,
        values=values,
        offsets=np.concatenate(([0], np.cumsum(lengths))),
        present=np.ones(cells.rows, bool),
        shapes=shapes,
    )


def stored(cells: Cells, kind: Kind, *, name: str, where: str) -> NDArray[Any] | BytesColumn:
    """Convert the values to what the feature stores.

    Args:
        cells: The cells.
        kind: Kind of the feature.
        name: Name of the feature, for the error.
        where: The source and its first row here, for the error.

    Returns:
        float32 or int64 array, or bytes.

    Raises:
        EncodeError: A finite number beyond the range of float32, a whole number beyond int64,
            or a fraction where int64 was asked for.
    """
    values = cells.values
    if kind == "bytes" or isinstance(values, BytesColumn):
        return values
    if kind == "int64":
        bad = _unfit_for_int64(values)
        target: Any = np.int64
    else:
        with np.errstate(over="ignore"):
            bad = np.isinf(values.astype(np.float32)) & np.isfinite(values.astype(np.float64))
        target = np.float32
    if bad.any():
        first = int(bad.argmax())
        raise EncodeError(
            f"{where}, row {cells.row_of(first)}: {values[first]!s} of column '{name}' does not "
            f"fit {np.dtype(target).name}. Scale the column, or store its text with "
            f"types={{'{name}': 'bytes'}}",
            feature=name,
        )
    return values.astype(target)


def _unfit_for_int64(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        limit = -float(_INT64.min)
        return np.asarray(~((values >= -limit) & (values < limit) & (values % 1 == 0)))
    if values.dtype == np.uint64:
        return np.asarray(values > _INT64.max)
    return np.zeros(values.shape, bool)


def changed(values: NDArray[Any] | BytesColumn, kind: Kind) -> NDArray[np.bool_]:
    """Tell which whole numbers float32 does not hold exactly.

    Fractions round as they must and are not reported; an identifier that turns into its
    neighbour is.

    Args:
        values: Values as the source has them.
        kind: Kind they are stored as.

    Returns:
        Shape of ``values``, True where the number stored is another one.
    """
    if isinstance(values, BytesColumn) or kind != "float" or values.dtype.kind == "b":
        return np.zeros(len(values), bool)
    if values.dtype.kind == "f":
        # float64 columns that hold whole numbers are the usual form of an identifier with nulls.
        finite = np.isfinite(values)
        whole = finite & (np.where(finite, values, 0) % 1 == 0)
        return np.asarray(whole & (np.abs(values) > _WHOLE) & (values.astype(np.float32) != values))
    big = (values > _WHOLE) | (values < -_WHOLE) if values.dtype.kind == "i" else values > _WHOLE
    lost = np.zeros(values.shape, bool)
    spots = np.flatnonzero(big)
    # Python compares whole numbers and floats exactly; NumPy would round the former first.
    lost[spots] = [int(np.float32(v)) != v for v in values[spots].tolist()]
    return lost
