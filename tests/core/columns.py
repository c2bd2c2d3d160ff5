"""Columns of the native core as plain Python, to compare with other readers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tfrio import _core


def bits(kind: int, values: Any) -> Any:
    """Return values in a form that compares exactly: floats as their bytes."""
    return values.tobytes() if kind == _core.KIND_FLOAT else values.tolist()


def items(column: Any, kind: int, count: int, n: int) -> list[Any]:
    """Return the n lists of values (rows, or steps) of a column."""
    offsets = column.value_offsets
    ends = [i * count for i in range(n + 1)] if offsets is None else offsets.tolist()
    if kind != _core.KIND_BYTES:
        return [bits(kind, column.values[a:b]) for a, b in pairwise(ends)]
    at = column.byte_offsets.tolist()
    data = column.values.tobytes()
    strings = [data[a:b] for a, b in pairwise(at)]
    return [strings[a:b] for a, b in pairwise(ends)]


def rows(column: Any, kind: int, count: int = -1) -> list[Any]:
    """Return one entry a row: None where absent, else its list, or the list of its steps.

    A step is None where it carries no kind.
    """
    present = column.present.tolist()
    if column.step_offsets is None:
        lists = items(column, kind, count, len(present))
    else:
        ends = column.step_offsets.tolist()
        steps = items(column, kind, count, ends[-1])
        if column.step_present is not None:
            carry = column.step_present.tolist()
            assert not all(carry)
            assert not any(step for step, there in zip(steps, carry, strict=True) if not there)
            steps = [step if there else None for step, there in zip(steps, carry, strict=True)]
        lists = [steps[a:b] for a, b in pairwise(ends)]
    return [value if there else None for value, there in zip(lists, present, strict=True)]


def decode(data: bytes, features: list[tuple[bytes, int, int, int]], **options: Any) -> list[Any]:
    """Decode framed records, which must be fine, and return the rows of each column."""
    decoder = _core.ExampleDecoder(features, **options)
    feed = decoder.feed(data, final=True)
    assert feed.fault is None, (feed.fault, feed.fault.reason)
    assert feed.consumed == len(data)
    columns = decoder.take()
    return [rows(c, f[1], f[2]) for c, f in zip(columns, features, strict=True)]
