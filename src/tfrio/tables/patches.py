"""Neighbourhood patches in table records: flat lists back to squares.

Earth Engine's ``neighborhoodToArray`` with a kernel of radius r gives 2 r + 1 pixels a side, so a
radius of 128 means 257, not 256; the record holds only the flat list.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import SchemaError, UsageError
from tfrio.examples.columns import Batch
from tfrio.examples.decode import read_batches
from tfrio.tables.arrow import look_at_table
from tfrio.types import XY, names_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrio.types import PathsLike

__all__ = ["patch_size", "read_patches"]


def patch_size(values: int, size: XY | None = None, *, feature: str = "patch") -> XY:
    """Return the size of a patch of so many values.

    Args:
        values: Number of values.
        size: Size (x, y) the caller expects; None takes a square.
        feature: Name of the feature, for the error.

    Returns:
        The size.

    Raises:
        SchemaError: The values do not form that size, or no square.
    """
    side = math.isqrt(values)
    square = f"{values} values = {side}x{side}" if side * side == values else f"{values} values"
    if size is not None and size.x * size.y != values:
        odd = side * side == values and side % 2 == 1
        hint = f" (odd neighbourhood 2*{side // 2}+1?)" if odd else ""
        raise SchemaError(
            f"feature '{feature}': {square}, not {size}{hint}. Leave size= out, and pass crop= for "
            "fewer pixels",
            feature=feature,
        )
    if size is None and side * side != values:
        raise SchemaError(
            f"feature '{feature}': {values} values form no square. Pass size=(x, y)",
            feature=feature,
        )
    return size or XY(side, side)


def read_patches(
    paths: PathsLike,
    batch_size: int,
    *,
    features: Sequence[str] | None = None,
    size: XY | int | tuple[int, int] | None = None,
    crop: XY | int | tuple[int, int] | None = None,
) -> Iterator[Batch]:
    """Read table records whose features are patches.

    Args:
        paths: TFRecord files.
        batch_size: Records a batch.
        features: Features to read; None reads all numbers with more than one value.
        size: Size (x, y) of the stored patches; None takes them as squares.
        crop: Size (x, y) to cut to, from the upper left pixel.

    Yields:
        A ``Batch``: numbers (rows, height, width) by feature; single values (rows,).

    Raises:
        SchemaError: A feature forms no such patch, or its length varies.
    """
    schema = look_at_table(paths).schema
    every = [name for name, feature in schema.items() if _many(feature)]
    names = every if features is None else names_list(features, "features")
    sizes = {name: _size_of(schema, name, size) for name in names}
    kept = None if crop is None else XY.of(crop, name="crop")
    for name, whole in sizes.items():
        single = kept is None or whole == XY(1, 1)
        if kept is not None and not single and (kept.x > whole.x or kept.y > whole.y):
            raise UsageError(f"crop {kept} is larger than '{name}', which is {whole}")
    wanted = schema.select(names).updated(
        {n: _shaped(schema[n], s) for n, s in sizes.items() if s != XY(1, 1)}
    )
    for batch in read_batches(paths, batch_size, schema=wanted):
        columns = {name: _cut(batch[name], kept) for name in names}
        yield Batch(columns, present=batch.present, rows=batch.rows)


def _many(feature: Any) -> bool:
    return feature.kind in ("float", "int64") and (feature.lengths or (0, 0))[1] > 1


def _size_of(schema: Any, name: str, size: XY | int | tuple[int, int] | None) -> XY:
    low, high = schema.select([name])[name].lengths or (0, 0)
    if low != high or not high:
        raise SchemaError(
            f"feature '{name}' has {low} to {high} values, so its records are no patches of one "
            "size. Choose others with features=",
            feature=name,
        )
    if high == 1:
        return XY(1, 1)
    return patch_size(high, None if size is None else XY.of(size, name="size"), feature=name)


def _shaped(feature: Any, size: XY) -> Any:
    return type(feature)(feature.kind, shape=(size.y, size.x), required=feature.required)


def _cut(values: Any, crop: XY | None) -> Any:
    return (
        values
        if crop is None or values.ndim < 3
        else np.ascontiguousarray(values[:, : crop.y, : crop.x])
    )
