"""Columns to Arrow arrays, nothing copied but masks. Pure but for memory addresses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tfrio.examples.arrow_c import ArrayNode, TypeNode
from tfrio.examples.columns import Array, BytesColumn, Ragged
from tfrio.examples.schema import Feature, Schema

if TYPE_CHECKING:
    from tfrio.examples.columns import Batch

__all__ = ["arrow_schema", "batch_array", "flat_schema"]

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


def arrow_schema(schema: Schema) -> TypeNode:
    """Return the struct type of the batches of a flat schema."""
    fields = [replace(_type(f), name=name, nullable=_nullable(f)) for name, f in schema.items()]
    return TypeNode("+s", nullable=False, children=fields)


def batch_array(schema: Schema, batch: Batch) -> ArrayNode:
    """Return a batch as a struct array of the type that ``arrow_schema`` gives."""
    children = []
    for name, feature in schema.items():
        mask = None if feature.default is not None else batch.present[name]
        children.append(_array(batch[name], feature, batch.rows, mask))
    return ArrayNode(batch.rows, [None], children=children)


def _flat(feature: Feature) -> Feature:
    free = feature.shape is None or feature.dims or -1 in feature.shape
    if feature.codec is not None and (free or feature.codec in ("image", "tensor")):
        shape = None if feature.many else ()
        return replace(feature, codec=None, dtype=None, shape=shape, many=False, default=None)
    if feature.dims or (feature.out_dtype is None and len(feature.shape or ()) > 1):
        return replace(feature, shape=None)
    return feature


def _nullable(feature: Feature) -> bool:
    return feature.default is None and not feature.required


def _type(feature: Feature) -> TypeNode:
    """Return the type of one feature: its values, then a list for each axis and level."""
    dtype = feature.out_dtype
    if feature.kind == "unknown":
        return TypeNode("n")
    if dtype is None:
        node = TypeNode("U" if feature.dtype == "str" else "Z", "item")
    else:
        node = TypeNode(_NUMBERS[dtype.name], "item")
    fixed = [d for d in feature.shape or () if isinstance(d, int) and d >= 0]
    for size in reversed(fixed):
        node = TypeNode(f"+w:{size}" if dtype is not None else "+L", "item", children=[node])
    lists = (feature.shape is None or -1 in feature.shape) + feature.many
    lists += len(feature.row_lengths) + (feature.place == "list")
    for _ in range(lists):
        node = TypeNode("+L", "item", children=[node])
    return node


def _array(column: Any, feature: Feature, rows: int, mask: Array | None) -> ArrayNode:
    if feature.kind == "unknown":
        return ArrayNode(rows, null_count=rows)
    node = _values(column, text=feature.dtype == "str")
    if mask is not None and not mask.all():
        node.null_count = rows - int(mask.sum())
        node.buffers[0] = np.packbits(mask, bitorder="little")
    return node


def _values(column: Any, *, text: bool) -> ArrayNode:
    if isinstance(column, Ragged):
        inner = _values(column.values, text=text)
        return ArrayNode(len(column), [None, column.offsets], children=[inner])
    if isinstance(column, BytesColumn):
        return ArrayNode(len(column), [None, column.offsets, column.data])
    if isinstance(column, list):  # text
        return _values(BytesColumn.of([value.encode() for value in column]), text=text)
    return _numbers(column)


def _numbers(column: Array) -> ArrayNode:
    """Return an array of numbers; each axis behind the first is a list of fixed size."""
    flat = np.ascontiguousarray(column).reshape(-1)
    data = np.packbits(flat, bitorder="little") if flat.dtype == np.bool_ else flat
    node = ArrayNode(len(flat), [None, data])
    for axis in range(column.ndim - 1, 0, -1):
        node = ArrayNode(int(np.prod(column.shape[:axis])), [None], children=[node])
    return node
