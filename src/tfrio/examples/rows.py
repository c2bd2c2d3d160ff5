"""Batches to rows: one dict a record, built from whole columns. Pure."""

from __future__ import annotations

from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.examples.columns import Batch, BytesColumn, Column, NoBytes, NoSteps, Ragged

if TYPE_CHECKING:
    from tfrio.examples.columns import Array
    from tfrio.examples.schema import Schema

__all__ = ["batch_rows"]


def batch_rows(batch: Batch, schema: Schema, *, bound: bool) -> list[dict[str, Any]]:
    """Turn a batch into rows.

    Args:
        batch: The columns.
        schema: What they are.
        bound: Whether the schema was given by the user: every row then has every feature, None
            where an optional one is absent. Otherwise a row has the features its record has,
            and a bytes feature with one value is that value.

    Returns:
        One dict a record. Numbers are arrays (NumPy scalars where the schema says scalar), bytes
        are ``bytes``, a list of them or, with several axes, an array of objects; feature lists are
        lists of steps, None where a step carries no kind, or, with a fixed step shape, one array
        (steps, ...). Arrays share the batch's memory. Empty lists are ``NoBytes`` and ``NoSteps``.
    """
    columns = [
        _steps(column, batch.step_present.get(key))
        if schema[key].place == "list"
        else _values(column, unwrap=not bound)
        for key, column in batch.items()
    ]
    if not columns:
        return [{} for _ in range(batch.rows)]
    keys = tuple(batch)
    # One dict a row with no bytecode in between: a third quicker than a comprehension.
    rows: list[dict[str, Any]] = list(map(dict, map(zip, repeat(keys), zip(*columns, strict=True))))
    for key, mask in batch.present.items():
        if mask.all() or schema[key].default is not None:
            continue
        for i in np.flatnonzero(~mask).tolist():
            if bound:
                rows[i][key] = None
            else:
                del rows[i][key]
    return rows


def _steps(column: Column, carry: Array | None) -> list[Any]:
    """Return the steps of each row; None for those that carry no kind."""
    rows = _values(column, unwrap=False)
    if isinstance(column, Ragged):
        offsets = column.offsets
    else:  # rows that have each a form of their own
        rows = [_values(one, unwrap=False) if isinstance(one, Ragged) else one for one in rows]
        offsets = np.cumsum([0, *(0 if row is None else len(row) for row in rows)])
    _name_empty(rows, np.diff(offsets), NoSteps)
    if carry is None:
        return rows
    bare = np.flatnonzero(~carry)
    outer = np.searchsorted(offsets, bare, "right") - 1
    for row, step in zip(outer.tolist(), (bare - offsets[outer]).tolist(), strict=True):
        rows[row] = list(rows[row])
        rows[row][step] = None
    return rows


def _name_empty(rows: list[Any], lengths: Array, kind: type[list[Any]]) -> None:
    """Put empty lists that tell what they are in place of others."""
    for row in np.flatnonzero(lengths == 0).tolist():
        if isinstance(rows[row], list):
            rows[row] = kind()


def _values(column: Column, *, unwrap: bool) -> list[Any]:
    """Return a column as a list of one value a row."""
    if isinstance(column, Ragged):
        return _lists(column, unwrap=unwrap)
    return column.tolist() if isinstance(column, BytesColumn) else list(column)


def _lists(column: Ragged, *, unwrap: bool) -> list[Any]:
    inner, bounds = column.values, pairwise(column.offsets.tolist())
    if isinstance(inner, np.ndarray):
        return [inner[a:b] for a, b in bounds]
    items = _values(inner, unwrap=False)
    lists = [items[a:b] for a, b in bounds]
    if isinstance(inner, Ragged):
        return lists
    _name_empty(lists, column.lengths, NoBytes)
    if unwrap and isinstance(inner, BytesColumn):
        return [v[0] if len(v) == 1 else v for v in lists]
    return lists
