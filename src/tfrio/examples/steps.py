"""Rows of steps to a feature list: what each step holds, and the kind of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import EncodeError
from tfrio.examples.columns import NoSteps
from tfrio.examples.exact import Stored, as_array, is_missing, missing_as_none, store
from tfrio.examples.wire import Target, WireColumn, kindless, list_wire

if TYPE_CHECKING:
    from tfrio.examples.encode import RowEncoder
    from tfrio.examples.schema import Feature, Kind

__all__ = ["has_steps", "list_column"]


def has_steps(value: Any) -> bool:
    """Return whether a value can only be steps of a feature list: it has lists inside, or None."""
    if isinstance(value, np.ndarray):
        return value.ndim > 1 or value.dtype.kind == "O"
    if isinstance(value, NoSteps):
        return True
    if not isinstance(value, Sequence):
        value = missing_as_none(value)
        if not isinstance(value, list):
            axes = getattr(value, "ndim", 1)
            return isinstance(axes, int) and axes > 1
    if isinstance(value, bytes | str | bytearray) or not len(value):
        return False
    first = value[0]
    if is_missing(first):
        return isinstance(value, list)
    return isinstance(first, list | tuple) or np.ndim(first) > 0


def list_column(
    encoder: RowEncoder, name: str, rows: Sequence[Any], feature: Feature | None
) -> tuple[Target, WireColumn]:
    """Return rows of steps as a feature list.

    Args:
        encoder: Knows the kinds so far.
        name: The feature list.
        rows: The steps of each row.
        feature: What the schema says of it.

    Returns:
        What to write, and the column.

    Raises:
        EncodeError: A row is no list of steps, or a step cannot be stored without changing it.
    """
    wire = feature.stored_as(name) if feature else name
    parts = [_steps_of(name, steps, feature) for steps in rows]
    counts = [len(part) for part in parts]
    missing = [*map(is_missing, chain(*parts))]
    if any(missing):
        encoder.bare.add(name)
    if all(missing):  # none has a kind, nor gets one
        encoder.listed.add(name)
        return Target(wire, "unknown", "list"), kindless(counts)
    made, kind = _made(encoder, name, parts, feature)
    if kind == "unknown":
        known = feature.kind if feature else encoder.kinds.get((wire, "list"), "unknown")
        kind = next((m.kind for m in made if m is not None and m.kind != "unknown"), known)
    kind = encoder.known_kind(wire, kind, "list")
    if feature is None:
        for one in made:
            if one is not None:
                encoder.note_shape(name, one.shape, "list")
    none = store([], name, encoder.exactness, kind=kind)
    made = [one if one is None or len(one.flat) else none for one in made]
    return Target(wire, kind, "list"), list_wire(made, counts, none)


def _made(
    encoder: RowEncoder, name: str, parts: Sequence[Any], feature: Feature | None
) -> tuple[list[Stored | None], Kind]:
    """Return all steps, None for one without a kind, and the one kind that their values have."""
    steps = [(i, step) for part in parts for i, step in enumerate(part)]
    made = [
        None if is_missing(step) else _step(encoder, name, i, step, feature) for i, step in steps
    ]
    kinds = {one.kind for one in made if one is not None and len(one.flat)}
    if kinds == {"int64", "float"}:  # as in lists of both
        return [
            None if one is None else store(step, name, encoder.exactness, kind="float")
            for one, (_, step) in zip(made, steps, strict=True)
        ], "float"
    if len(kinds) > 1:
        raise EncodeError(
            f"feature list '{name}' mixes {' and '.join(sorted(kinds))}; convert the steps to one "
            "kind",
            feature=name,
        )
    return made, next(iter(kinds), "unknown")


def _step(encoder: RowEncoder, name: str, i: int, step: Any, feature: Feature | None) -> Stored:
    try:
        return encoder.stored(name, step, feature, "list")
    except EncodeError as error:
        error.message = f"{error.message} (step {i})"
        raise


def _steps_of(name: str, steps: Any, feature: Feature | None) -> Any:
    """Return the steps of a row as a sequence; refuse a single value."""
    if not isinstance(steps, Sequence | np.ndarray):
        steps = missing_as_none(steps)
        if not isinstance(steps, Sequence) and hasattr(steps, "__array__"):
            steps = as_array(steps, name)
    view = isinstance(steps, memoryview) and steps.format in ("B", "b", "c")
    single = isinstance(steps, str | bytes | bytearray) or view
    single = single or getattr(steps, "ndim", 1) == 0
    if single or not isinstance(steps, Sequence | np.ndarray):
        raise EncodeError(
            f"feature list '{name}' needs steps, [[1, 2], [3]]; got a single "
            f"{type(steps).__name__}. Put it in the context, or write [value]",
            feature=name,
        )
    _check_kindless(name, steps, feature)
    return steps


def _check_kindless(name: str, steps: Any, feature: Feature | None) -> None:
    """Refuse steps without a kind, which have no values, where the schema fixes their number."""
    if feature is None or feature.count <= 0:
        return
    for i, step in enumerate(steps):
        if is_missing(step):
            raise EncodeError(
                f"feature list '{name}': step {i} is None, a step without values; the schema says "
                f"{feature.shape}. Leave it out, or give values",
                feature=name,
            )
