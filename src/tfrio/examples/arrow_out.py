"""Columns to Arrow arrays, nothing copied but masks. Pure but for memory addresses."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tfrio.examples.arrow_c import LIST, PLACE, ArrayNode, TypeNode
from tfrio.examples.columns import Array, BytesColumn, Ragged
from tfrio.examples.schema import Feature, Schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrio.examples.columns import Batch

__all__ = ["arrow_schema", "batch_array", "flat_schema", "is_null"]

# Format strings of the C data interface. Lists and binary are always the large ones (64-bit
# offsets): one type whatever the data, and our offsets as they are.
_NUMBERS: Final = {
    "float16": "e",
    "float32": "f",
    "float64": "g",
    "int8": "c",
    "uint8": "C",
    "int16": "s",
    "uint16": "S",
    "int32": "i",
    "uint32": "I",
    "int64": "l",
    "uint64": "L",
    "bool": "b",
}


def flat_schema(schema: Schema) -> Schema:
    """Return a schema without what Arrow has no type for.

    Arrays whose shape differs from record to record stay what is stored: encoded bytes, or a flat
    list.
    """
    return Schema({name: _flat(feature) for name, feature in schema.items()})


def is_null(feature: Feature) -> bool:
    """Return whether a column is of Arrow's null type: no kind, and no steps to count either."""
    return feature.kind == "unknown" and feature.place == "context"


def arrow_schema(schema: Schema) -> TypeNode:
    """Return the struct type of the batches of a flat schema, feature lists marked as such."""
    return TypeNode("+s", nullable=False, children=[_field(n, f) for n, f in schema.items()])


def batch_array(schema: Schema, batch: Batch) -> ArrayNode:
    """Return a batch as a struct array of the type that ``arrow_schema`` gives."""
    children = []
    for name, feature in schema.items():
        mask = None if feature.default is not None else batch.present[name]
        node = _array(batch[name], feature, batch.rows, mask)
        if name in batch.step_present:
            _set_nulls(node.children[0], batch.step_present[name])
        children.append(node)
    return ArrayNode(batch.rows, [None], children=children)


def _flat(feature: Feature) -> Feature:
    free = feature.shape is None or feature.dims or -1 in feature.shape
    if feature.codec is not None and (free or feature.codec in ("image", "tensor")):
        shape = None if feature.many else ()
        return replace(feature, codec=None, dtype=None, shape=shape, many=False, default=None)
    inner_free = -1 in (feature.shape or ())[1:]
    return replace(feature, shape=None) if feature.dims or inner_free else feature


def _field(name: str, feature: Feature) -> TypeNode:
    notes = {PLACE: LIST} if feature.place == "list" else {}
    return replace(_type(feature), name=name, nullable=_nullable(feature), metadata=notes)


def _nullable(feature: Feature) -> bool:
    return feature.default is None and not feature.required


def _type(feature: Feature) -> TypeNode:
    """Return the type of one feature: its values, then a list for each axis and level."""
    dtype = feature.out_dtype
    if is_null(feature):
        return TypeNode("n")
    if feature.kind == "unknown":
        node = TypeNode("n", "item")
    elif dtype is None:
        node = TypeNode("U" if feature.dtype == "str" else "Z", "item")
    else:
        node = TypeNode(_NUMBERS[dtype.name], "item")
    free = feature.shape is None or -1 in feature.shape
    for size in reversed(_fixed(feature)):
        node = TypeNode(f"+w:{size}", "item", children=[node])
    # An absent row has no byte strings, which a list of fixed size would need.
    lists = int(free or (dtype is None and bool(feature.shape)))
    lists += feature.many + len(feature.row_lengths) + (feature.place == "list")
    for _ in range(lists):
        node = TypeNode("+L", "item", children=[node])
    return node


def _fixed(feature: Feature) -> tuple[int, ...]:
    """Return the axes that are lists of fixed size."""
    sizes = tuple(d for d in feature.shape or () if isinstance(d, int))
    if -1 in sizes:
        return feature.inner
    return sizes[1:] if feature.out_dtype is None else sizes


def _array(column: Any, feature: Feature, rows: int, mask: Array | None) -> ArrayNode:
    if is_null(feature):
        return ArrayNode(rows, null_count=rows)
    node = _values(column, _fixed(feature), text=feature.dtype == "str")
    if feature.kind == "unknown":
        node.children[0].children = [ArrayNode(0)]  # the steps hold no values, so of no type
    if mask is not None and not mask.all():
        _set_nulls(node, mask)
    return node


def _set_nulls(node: ArrayNode, there: Array) -> None:
    node.null_count = len(there) - int(there.sum())
    node.buffers[0] = np.packbits(there, bitorder="little")


def _values(column: Any, sizes: Sequence[int], *, text: bool) -> ArrayNode:
    """Return the array of a column; byte strings in arrays are lists of lists of fixed sizes."""
    if isinstance(column, np.ndarray) and column.dtype == object:
        return _strings(column, sizes, text=text)
    if isinstance(column, Ragged):
        inner = _values(column.values, sizes, text=text)
        each = 1 if isinstance(column.values, np.ndarray | Ragged) else max(math.prod(sizes), 1)
        return ArrayNode(len(column), [None, column.offsets // each], children=[inner])
    if isinstance(column, list):  # text
        column = BytesColumn.of([value.encode() for value in column])
    if isinstance(column, BytesColumn):
        return _nested(ArrayNode(len(column), [None, column.offsets, column.data]), sizes)
    return _numbers(column)


def _strings(column: Array, sizes: Sequence[int], *, text: bool) -> ArrayNode:
    """Return byte strings in arrays; a first axis that is no list of fixed size is one of any."""
    flat = column.reshape(-1).tolist()
    leaf = _values(flat if text else BytesColumn.of(flat), (), text=text)
    node = _boxed(leaf, column.shape, column.ndim - len(sizes))
    if column.ndim - 1 == len(sizes):
        return node
    offsets = np.arange(len(column) + 1, dtype=np.int64) * column.shape[1]
    return ArrayNode(len(column), [None, offsets], children=[node])


def _nested(node: ArrayNode, sizes: Sequence[int]) -> ArrayNode:
    """Return an array in lists of fixed sizes, the last of them innermost."""
    for size in reversed(sizes):
        node = ArrayNode(node.length // size if size else 0, [None], children=[node])
    return node


def _numbers(column: Array) -> ArrayNode:
    """Return an array of numbers; each axis behind the first is a list of fixed size."""
    flat = np.ascontiguousarray(column).reshape(-1)
    data = np.packbits(flat, bitorder="little") if flat.dtype == np.bool_ else flat
    return _boxed(ArrayNode(len(flat), [None, data]), column.shape, 1)


def _boxed(node: ArrayNode, shape: tuple[int, ...], first: int) -> ArrayNode:
    """Return an array in lists of fixed size, one for each axis from ``first`` on."""
    for axis in range(len(shape) - 1, first - 1, -1):
        node = ArrayNode(math.prod(shape[:axis]), [None], children=[node])
    return node
