"""Arrow arrays to columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tfrio.errors import EncodeError
from tfrio.examples.arrow_c import LIST, PLACE, ArrayNode, TypeNode, copied
from tfrio.examples.columns import Array, Batch, BytesColumn, Ragged, as_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["batch_of"]

_NUMBERS: Final = {
    "e": "<f2",
    "f": "<f4",
    "g": "<f8",
    "c": "<i1",
    "C": "<u1",
    "s": "<i2",
    "S": "<u2",
    "i": "<i4",
    "I": "<u4",
    "l": "<i8",
    "L": "<u8",
}
# What no Example can hold, by the start of its format string: in words, and what to do.
_REFUSED: Final = {
    "tdD": ("dates (date32)", "cast it to int32, days since 1970"),
    "tdm": ("dates (date64)", "cast it to int64, milliseconds since 1970"),
    "tt": ("times of day", "cast time32 to int32 and time64 to int64, or either to string"),
    "ts": ("timestamps", "cast it to int64, which counts in their unit since 1970"),
    "tD": ("durations", "cast it to int64, which counts in their unit"),
    "ti": ("calendar intervals", "give their months, days and nanoseconds as columns of int64"),
    "d": ("decimals", "cast it to float64, or to string to keep every digit"),
    "n": ("lists of nulls without a type", "cast it to a list of a type, like list of int64"),
    "+m": ("maps", "give keys and values as two columns of lists"),
    "+r": ("run-end encoded values", "decode it (pyarrow.compute.run_end_decode)"),
    "+u": ("unions", "give a column for each type"),
    "+s": ("structs inside lists", "give a column of lists for each of their fields"),
}
_INLINE: Final = 12  # a view of up to this many bytes holds them itself


def batch_of(kind: TypeNode, array: ArrayNode) -> Batch:
    """Return a struct array as a batch.

    Args:
        kind: Its type: one field a feature. Structs inside become features ``outer/inner``.
        array: The array; its memory is copied.

    Returns:
        The batch; nulls are absent.

    Raises:
        EncodeError: A type that no Example can hold, a null inside a list, or two columns of one
            name.
    """
    if kind.format != "+s":
        raise EncodeError(
            "Arrow data must be a table: a stream of struct arrays, one field a column"
        )
    columns: dict[str, Any] = {}
    present: dict[str, Array] = {}
    lists: set[str] = set()
    step_present: dict[str, Array] = {}
    for name, field, child, mask in _leaves(kind, array, "", None):
        if name in columns:
            raise EncodeError(
                f"two columns are named '{name}' (a struct's field counts as outer/inner), but an "
                "Example holds each name once: rename or drop one of them first",
                feature=name,
            )
        if field.metadata.get(PLACE) == LIST and field.format in ("+l", "+L"):
            columns[name], carry = _steps(field, child, name)
            lists.add(name)
            if not carry.all():
                step_present[name] = carry
        else:
            columns[name] = _column(field, child, name)
        present[name] = _valid(child) if mask is None else _valid(child) & mask
    return Batch(
        columns,
        present=present,
        rows=array.length,
        lists=frozenset(lists),
        step_present=step_present,
    )


def _leaves(
    kind: TypeNode, array: ArrayNode, prefix: str, mask: Array | None
) -> Iterator[tuple[str, TypeNode, ArrayNode, Array | None]]:
    """Yield name, type, array and the mask of the structs around it, for each column."""
    for field, child in zip(kind.children, array.children, strict=True):
        placed = _sliced(child, array.offset, array.length)
        if field.format == "+s":
            inner = _valid(placed) if mask is None else _valid(placed) & mask
            yield from _leaves(field, placed, f"{prefix}{field.name}/", inner)
        elif field.format != "n":
            yield prefix + field.name, field, placed, mask


def _sliced(array: ArrayNode, offset: int, length: int) -> ArrayNode:
    """Return a child as its parent's offset and length show it."""
    return ArrayNode(
        length,
        array.buffers,
        array.null_count,
        array.offset + offset,
        array.children,
        array.dictionary,
    )


def _valid(array: ArrayNode) -> Array:
    """Return which values are not null, bool (length,)."""
    if not array.null_count or not array.buffers or not array.buffers[0]:
        return np.ones(array.length, np.bool_)
    return _bits(array.buffers[0], array.offset, array.length)


def _bits(address: int, offset: int, length: int) -> Array:
    packed = copied(address, np.uint8, (offset + length + 7) // 8)
    bits = np.unpackbits(packed, count=offset + length, bitorder="little")[offset:]
    return bits.astype(np.bool_)


def _column(kind: TypeNode, array: ArrayNode, name: str) -> Any:
    start, count = array.offset, array.length
    if kind.dictionary is not None and array.dictionary is not None:
        return _taken(kind, array, name)
    if kind.format in _NUMBERS:
        return copied(array.buffers[1], _NUMBERS[kind.format], start + count)[start:]
    if kind.format == "b":
        return _bits(array.buffers[1], start, count) if count else np.zeros(0, np.bool_)
    if kind.format in ("z", "u", "Z", "U"):
        return _binary(array, _offsets(array, wide=kind.format in ("Z", "U")))
    if kind.format in ("vz", "vu"):
        return _viewed(array)
    if kind.format in ("+l", "+L"):
        return _folded(kind.children[0], *_lists(kind, array, name))
    if kind.format.startswith("+w:"):
        return _fixed_lists(kind, array, name, int(kind.format[3:]))
    if kind.format in ("+vl", "+vL"):
        return _list_views(kind, array, name)
    if kind.format.startswith("w:"):
        return _fixed_binary(array, int(kind.format[2:]))
    raise _refusal(kind.format, name)


def _refusal(code: str, name: str) -> EncodeError:
    other = (f"an Arrow type unknown here ({code!r})", "cast it to numbers, text or binary")
    words, remedy = next((told for key, told in _REFUSED.items() if code.startswith(key)), other)
    return EncodeError(
        f"column '{name}' holds {words}, which no Example can hold: {remedy} first", feature=name
    )


def _steps(kind: TypeNode, array: ArrayNode, name: str) -> tuple[Ragged, Array]:
    """Return rows of steps, and which steps are not null: these carry no kind.

    A step is a list of values where it holds one value, too.
    """
    offsets = _offsets(array, wide=kind.format == "+L")
    steps = _sliced(array.children[0], int(offsets[0]), int(offsets[-1] - offsets[0]))
    offsets, inner, carry = offsets - offsets[0], kind.children[0], _valid(steps)
    if not inner.children and not carry.all():
        raise _null_inside(name)  # a single value, which a step without a kind has not
    if [deep.format for deep in inner.children] == ["n"]:
        return Ragged(_no_values(inner, steps, name), offsets), carry
    values = _column(inner, steps, name)
    if not isinstance(values, Ragged):
        count, width = len(values), 1
        if isinstance(values, np.ndarray) and values.ndim > 1:
            width = values.shape[1]
            values = values.reshape(count * width, *values.shape[2:])
        values = Ragged(values, np.arange(count + 1, dtype=np.int64) * width)
    if not carry.all():
        values = _emptied(values, carry)
    return Ragged(values, offsets), carry


def _no_values(kind: TypeNode, steps: ArrayNode, name: str) -> Ragged:
    """Return steps that hold no value anywhere, and so have no type."""
    bounds = _offsets(steps, wide=kind.format == "+L")
    if bounds[0] != bounds[-1]:
        raise _null_inside(name)
    return Ragged([], bounds - bounds[0])


def _emptied(steps: Ragged, carry: Array) -> Ragged:
    """Return steps of which those that are null hold nothing, whatever lies under the null."""
    order, bounds = _spans(steps.offsets[:-1], steps.lengths * carry)
    return Ragged(_picked(steps.values, order), bounds)


def _lists(kind: TypeNode, array: ArrayNode, name: str) -> tuple[Any, Array]:
    """Return the values of lists of free length, and where each list starts and ends in them."""
    offsets = _offsets(array, wide=kind.format == "+L")
    inner = _inner(kind, array, name, int(offsets[0]), int(offsets[-1]))
    return inner, offsets - offsets[0]


def _taken(kind: TypeNode, array: ArrayNode, name: str) -> Any:
    """Return the values of a dictionary-encoded array; nulls take the first."""
    assert kind.dictionary is not None
    assert array.dictionary is not None
    values = _column(kind.dictionary, array.dictionary, name)
    which = copied(array.buffers[1], _NUMBERS[kind.format], array.offset + array.length)
    chosen = np.where(_valid(array), which[array.offset :], 0)
    if isinstance(values, BytesColumn):
        texts = values.tolist() or [b""]
        return BytesColumn.of([texts[i] for i in chosen.tolist()])
    return values[chosen] if len(values) else np.zeros(len(chosen), values.dtype)


def _offsets(array: ArrayNode, *, wide: bool) -> Array:
    dtype = np.int64 if wide else np.int32
    if not array.length:
        return np.zeros(1, np.int64)
    found = copied(array.buffers[1], dtype, array.offset + array.length + 1)
    return found[array.offset :].astype(np.int64)


def _binary(array: ArrayNode, offsets: Array) -> BytesColumn:
    data = copied(array.buffers[2] if len(array.buffers) > 2 else None, np.uint8, int(offsets[-1]))
    return BytesColumn(data, offsets)


def _fixed_binary(array: ArrayNode, size: int) -> BytesColumn:
    bounds = np.arange(array.offset, array.offset + array.length + 1, dtype=np.int64) * size
    return BytesColumn(copied(array.buffers[1], np.uint8, int(bounds[-1])), bounds)


def _viewed(array: ArrayNode) -> BytesColumn:
    """Return the values of views: short ones in place, long ones in one of several buffers."""
    count = array.offset + array.length
    views = copied(array.buffers[1], np.uint8, 16 * count).reshape(-1, 16)[array.offset :]
    words = views.view("<i4")
    lengths = copied(array.buffers[-1], np.int64, max(len(array.buffers) - 3, 0))
    pools = [
        copied(address, np.uint8, size)
        for address, size in zip(array.buffers[2:-1], lengths.tolist(), strict=True)
    ]
    values = []
    for view, (size, _, pool, at) in zip(views, words.tolist(), strict=True):
        source, begin = (view, 4) if size <= _INLINE else (pools[pool], at)
        values.append(source[begin : begin + size].tobytes())
    return BytesColumn.of(values)


def _list_views(kind: TypeNode, array: ArrayNode, name: str) -> Ragged:
    """Return lists that lie anywhere in their values, as lists one after another."""
    dtype = np.int64 if kind.format == "+vL" else np.int32
    count, child = array.offset + array.length, array.children[0]
    starts, sizes = (
        copied(buffer, dtype, count)[array.offset :].astype(np.int64)
        for buffer in array.buffers[1:3]
    )
    order, bounds = _spans(starts, sizes * _valid(array))
    if not _valid(child)[order].all():
        raise _null_inside(name)
    return Ragged(_picked(_column(kind.children[0], child, name), order), bounds)


def _spans(starts: Array, sizes: Array) -> tuple[Array, Array]:
    """Return the positions that spans cover, one span after another, and the bounds of each."""
    bounds = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    return np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], sizes), bounds


def _picked(values: Any, order: Array) -> Any:
    """Return the values at some positions."""
    if isinstance(values, Ragged):
        inner, bounds = _spans(values.offsets[:-1][order], values.lengths[order])
        return Ragged(_picked(values.values, inner), bounds)
    if isinstance(values, BytesColumn):
        texts = values.tolist()
        return BytesColumn.of([texts[i] for i in order.tolist()])
    return values[order]


def _null_inside(name: str) -> EncodeError:
    return EncodeError(
        f"column '{name}' has a null inside a list; fill it or drop it first", feature=name
    )


def _inner(kind: TypeNode, array: ArrayNode, name: str, start: int, stop: int) -> Any:
    child = _sliced(array.children[0], start, stop - start)
    if not _valid(child).all():
        raise _null_inside(name)
    return _column(kind.children[0], child, name)


def _fixed_lists(kind: TypeNode, array: ArrayNode, name: str, size: int) -> Any:
    first, count = array.offset, array.length
    child = _sliced(array.children[0], first * size, count * size)
    kept = np.repeat(_valid(array), size)
    if not (_valid(child) | ~kept).all():
        raise _null_inside(name)
    values = _column(kind.children[0], child, name)
    if not isinstance(values, np.ndarray):
        folded = _folded(kind.children[0], values, np.arange(count + 1, dtype=np.int64) * size)
        if not isinstance(folded.values, np.ndarray):
            return folded
        values = folded.values
    return values.reshape(count, size, *values.shape[1:])


def _folded(inner: TypeNode, values: Any, offsets: Array) -> Ragged:
    """Return lists of values; byte strings in inner lists of fixed size are an array of objects."""
    if inner.format.startswith("+w:") and isinstance(values, Ragged):
        size = int(inner.format[3:])
        flat = as_objects(values.values[int(values.offsets[0]) : int(values.offsets[-1])])
        return Ragged(flat.reshape(len(values), size), offsets)
    return Ragged(values, offsets)
