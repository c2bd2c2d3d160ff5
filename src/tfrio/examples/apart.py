"""One column over files that note different things of a feature. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.examples.axes import RowAxes
from tfrio.examples.codecs import fit_shape
from tfrio.examples.columns import Array, Column, NoBytes, as_objects
from tfrio.examples.shaping import Job, Places, column_of, per_row
from tfrio.examples.told import common_form, shape_only

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tfrio.examples.layout import NativeColumn
    from tfrio.examples.schema import Feature
    from tfrio.examples.told import Note

__all__ = ["apart_column"]


def apart_column(
    job: Job, native: NativeColumn, mask: Array, note: Callable[[str], Note | None]
) -> Column:
    """Return a column whose rows are each what their own file says.

    Args:
        job: The feature, as lists of any length, and where its rows came from.
        native: The column as decoded, ragged.
        mask: bool array (rows,) of what is present.
        note: What a file says of the feature.

    Returns:
        A column of the form that the files of all present rows say, or that all of them fit;
        where there is none, or a file's own records differ, a list with one value a row, None where
        it is absent.
    """
    places = [job.origin.place(row) for row in range(len(mask))]
    notes = [note(place["path"]) for place in places]
    forms = _forms(job, notes, places)
    fits = _fitting(native, forms) if mask.any() else mask
    forms = [form if fine else None for form, fine in zip(forms, fits.tolist(), strict=True)]
    if not any(isinstance(one, RowAxes) for one in notes):
        told = [form for form, there in zip(forms, mask.tolist(), strict=True) if there]
        common = common_form(told) if any(told) else job.feature
        if common is not None:
            return column_of(replace(job, feature=common), _conformed(native, common), len(mask))
    values = _values(job, native, forms)
    return [value if there else None for value, there in zip(values, mask.tolist(), strict=True)]


def _forms(
    job: Job, notes: Sequence[Note | None], places: Sequence[Mapping[str, Any]]
) -> list[Feature | None]:
    """Return the form of each row; None for a flat list."""
    shapes: dict[Any, Feature | None] = {None: None}
    forms: list[Feature | None] = []
    for one, place in zip(notes, places, strict=True):
        if isinstance(one, RowAxes):
            shape = one.at(place["record"])
            if shape not in shapes:
                shapes[shape] = replace(job.feature, shape=shape)
            forms.append(shapes[shape])
        else:
            forms.append(one if one and one.kind == job.feature.kind else None)
    return forms


def _fitting(native: NativeColumn, forms: Sequence[Feature | None]) -> Array:
    """Return which rows have as many values as their form asks for, bool array (rows,)."""
    assert native.value_offsets is not None
    sizes = np.array([_size(form) for form in forms], np.int64).reshape(-1, 2)
    if native.step_offsets is not None:
        sizes = np.repeat(sizes, np.diff(native.step_offsets), axis=0)
    exact, each = sizes[:, 0], sizes[:, 1]
    lengths = np.diff(native.value_offsets)
    fine = np.where(exact >= 0, lengths == exact, lengths % np.maximum(each, 1) == 0)
    fine &= (each > 0) | (lengths == 0) | (exact >= 0)
    if native.step_offsets is None:
        return np.asarray(fine)
    bad = np.concatenate([[0], np.cumsum(~fine)])
    return np.asarray(np.diff(bad[native.step_offsets]) == 0)


def _size(form: Feature | None) -> tuple[int, int]:
    """Return the number of values that a form asks for, or -1 and what must divide it."""
    if form is None or form.count >= 0:
        return (-1, 1) if form is None else (form.count, 1)
    sizes = [d for d in form.shape or () if isinstance(d, int) and d >= 0]
    return -1, int(np.prod(sizes, dtype=np.int64))


def _values(job: Job, native: NativeColumn, forms: Sequence[Feature | None]) -> list[Any]:
    """Return one value a row, each in its form."""
    if native.step_offsets is None and all(map(shape_only, forms)):
        rows = per_row(column_of(job, native, len(forms)))
        return [_shaped(values, form) for values, form in zip(rows, forms, strict=True)]
    found: list[Any] = []
    for form, run in groupby(forms):
        start, stop = len(found), len(found) + sum(1 for _ in run)
        part = _rows_of(native, start, stop)
        feature = form or job.feature
        inner = Job(job.key, feature, _Shifted(job.origin, start))
        values = per_row(column_of(inner, _conformed(part, feature), stop - start))
        bare = form is None and native.step_offsets is None
        found += [_shaped(value, None) for value in values] if bare else values
    return found


def _shaped(value: Any, form: Feature | None) -> Any:
    """Return the flat values of a row in their axes; without any as rows have them."""
    array = value if isinstance(value, np.ndarray) else as_objects(value)
    if form is not None:
        return fit_shape(array, tuple(d for d in form.shape or (-1,) if isinstance(d, int)))
    if array.dtype != object:
        return array
    return array[0] if array.size == 1 else array.tolist() or NoBytes()


def _conformed(native: NativeColumn, form: Feature) -> NativeColumn:
    """Return a ragged column that fits a fixed form as a fixed one; absent rows are blank."""
    count = form.count
    if count < 0 or native.value_offsets is None:
        return native
    full = np.diff(native.value_offsets) > 0
    if native.byte_offsets is not None:
        sizes = np.zeros((len(full), count), np.int64)
        sizes[full] = np.diff(native.byte_offsets).reshape(-1, count) if count else 0
        ends = np.concatenate([native.byte_offsets[:1], native.byte_offsets[0] + sizes.cumsum()])
        return native._replace(byte_offsets=ends, value_offsets=None)
    values = np.zeros((len(full), count), native.values.dtype)
    values[full] = native.values.reshape(-1, count) if count else 0
    return native._replace(values=values.reshape(-1), value_offsets=None)


def _rows_of(native: NativeColumn, start: int, stop: int) -> NativeColumn:
    """Return some rows of a ragged column."""
    assert native.value_offsets is not None
    present = native.present[start:stop]
    steps, carry = native.step_offsets, native.step_present
    if steps is not None:
        bounds = steps[start : stop + 1]
        start, stop = int(bounds[0]), int(bounds[-1])
        steps, carry = bounds - start, None if carry is None else carry[start:stop]
    offsets = native.value_offsets[start : stop + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    ends = native.byte_offsets
    values = native.values if ends is not None else native.values[first:last]
    ends = None if ends is None else ends[first : last + 1]
    return native._replace(
        values=values,
        byte_offsets=ends,
        value_offsets=offsets - first,
        step_offsets=steps,
        present=present,
        step_present=carry,
    )


@dataclass(frozen=True, slots=True)
class _Shifted:
    """Where the rows of a part of a batch came from."""

    origin: Places
    first: int

    def where(self, row: int) -> str:
        """Say where a row came from, in words."""
        return self.origin.where(self.first + row)

    def place(self, row: int) -> Mapping[str, Any]:
        """Return path and record of a row, for the attributes of an error."""
        return self.origin.place(self.first + row)
