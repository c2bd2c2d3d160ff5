"""Turn strips of pixels into framed records, a batch of patches at a time, in one native call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tfrio import _core
from tfrio.geo.cut import Strip, cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tfrio.geo.recipe import FeatureRow, Kind, Recipe
    from tfrio.types import Shape

__all__ = ["Encoder", "Framed", "record_size"]

_KINDS: dict[Kind, int] = {
    "bytes": _core.KIND_BYTES,
    "float": _core.KIND_FLOAT,
    "int64": _core.KIND_INT64,
}
# Bytes of values handed to the native encoder at once: a few pages more than the second cache
# level holds gains nothing, and the record's bytes are still warm when they are written.
_ENCODE_BYTES = 1 << 20

Column: TypeAlias = "tuple[Any, Any, Any, Any, Any, int]"
Array: TypeAlias = "NDArray[Any]"


@dataclass(frozen=True, slots=True)
class Framed:
    """Framed records: their bytes and where each ends."""

    data: NDArray[np.uint8]
    ends: NDArray[np.int64]

    def sliced(self, start: int, stop: int) -> Framed:
        """Return records [start, stop) of these."""
        begin = int(self.ends[start - 1]) if start else 0
        end = int(self.ends[stop - 1]) if stop > start else begin
        return Framed(self.data[begin:end], self.ends[start:stop] - begin)


class Encoder:
    """Encodes patches of one export. Not to be shared between threads.

    Args:
        recipe: How bands become features.
        shape: Shape of a stored patch, margins included.
    """

    def __init__(self, recipe: Recipe, shape: Shape) -> None:
        self._recipe = recipe
        self._shape = shape
        features = [
            (
                feature.name.encode(),
                _KINDS[feature.kind],
                _core.PLACE_LIST if feature.steps else _core.PLACE_CONTEXT,
            )
            for feature in recipe.features
        ]
        if recipe.index_feature:
            name = recipe.index_feature.encode()
            features.append((name, _core.KIND_INT64, _core.PLACE_CONTEXT))
        # In the order of the bands, as the service writes; a reader must not care.
        self._encoder = _core.ExampleEncoder(features, sequence=recipe.sequence, sort=False)
        self._out: dict[tuple[int, int], Array] = {}

    def encode(
        self, strip: Strip, starts: Sequence[int], indices: Sequence[int]
    ) -> Iterator[Framed]:
        """Encode the patches of a strip.

        Args:
            strip: Pixels of the whole row of patches, margins included.
            starts: First column of each patch within the strip, ascending.
            indices: Index of each patch, for the index feature.

        Yields:
            Records in order: one per patch, or one per pixel for sequences.
        """
        size = sum(
            self._recipe.planes(feature) * feature.stored.itemsize * self._shape.size
            for feature in self._recipe.features
        )
        group = max(_ENCODE_BYTES // size, 1)
        for first in range(0, len(starts), group):
            part = slice(first, first + group)
            columns, rows = self._columns(strip, starts[part], indices[part])
            done = self._encoder.encode(rows, columns)
            yield Framed(done.data, done.ends)

    def _columns(
        self, strip: Strip, starts: Sequence[int], indices: Sequence[int]
    ) -> tuple[list[Column], int]:
        """Return one column per feature, and the number of records."""
        rows = len(starts) * (self._shape.size if self._recipe.sequence else 1)
        columns = []
        for number, feature in enumerate(self._recipe.features):
            tensor = self._tensor(strip, number, feature, starts)
            if self._recipe.sequence:
                columns.append(self._pixel_column(strip, feature, starts, tensor))
            else:
                columns.append(_column(feature.kind, tensor, len(starts)))
        if self._recipe.index_feature:
            each = rows // max(len(starts), 1)
            numbers = np.repeat(np.asarray(indices, np.int64), each)
            columns.append(_column("int64", numbers, rows))
        return columns, rows

    def _tensor(
        self, strip: Strip, number: int, feature: FeatureRow, starts: Sequence[int]
    ) -> Array:
        """Cut the patches of a feature: (patches, planes, height, width), reused memory."""
        planes = self._recipe.planes(feature)
        shape = (len(starts), planes, self._shape.height, self._shape.width)
        out = self._out.get((number, len(starts)))
        if out is None:
            out = self._out[number, len(starts)] = np.empty(shape, feature.stored)
        done = 0
        for band in feature.bands:
            values = strip.values[band]
            with np.errstate(over="ignore"):  # noted where the pixels are looked at, by band
                cut(values, starts, self._shape, out[:, done : done + values.shape[0]])
            done += values.shape[0]
        return out

    def _pixel_column(
        self, strip: Strip, feature: FeatureRow, starts: Sequence[int], tensor: Array
    ) -> Column:
        """Return the column of a feature with one record per pixel."""
        pixels = len(starts) * self._shape.size
        steps = tensor.shape[1]
        series = np.ascontiguousarray(np.moveaxis(tensor, 1, -1)).reshape(pixels, steps)
        if not feature.steps:
            return _column(feature.kind, series, pixels)
        keep = self._valid_steps(strip, feature, starts, steps)
        if keep is None:
            offsets = np.arange(pixels + 1, dtype=np.int64) * steps
            return _step_column(feature.kind, series.reshape(-1), offsets)
        offsets = np.zeros(pixels + 1, np.int64)
        np.cumsum(keep.sum(axis=1), out=offsets[1:])
        return _step_column(feature.kind, series[keep], offsets)

    def _valid_steps(
        self, strip: Strip, feature: FeatureRow, starts: Sequence[int], steps: int
    ) -> NDArray[np.bool_] | None:
        """Return which steps of each pixel to keep (pixels, steps), None for all."""
        if not self._recipe.drop_masked:
            return None
        masks = [strip.masked[band] for band in feature.bands]
        if all(mask is None for mask in masks):
            return None
        masked = np.zeros((len(starts), steps, self._shape.height, self._shape.width), np.bool_)
        done = 0
        for band, mask in zip(feature.bands, masks, strict=True):
            planes = strip.values[band].shape[0]
            if mask is not None:
                cut(mask, starts, self._shape, masked[:, done : done + planes])
            done += planes
        return ~np.moveaxis(masked, 1, -1).reshape(-1, steps)


def _column(kind: Kind, tensor: Array, rows: int) -> Column:
    """Return a column of `rows` rows of equal length; bytes are one value a row."""
    flat = tensor.reshape(-1)
    each = flat.size // max(rows, 1)
    if kind == "bytes":
        return flat, np.arange(rows + 1, dtype=np.int64) * each, None, None, None, 1
    return flat, None, None, None, None, each


def _step_column(kind: Kind, values: Array, offsets: NDArray[np.int64]) -> Column:
    """Return a column of feature lists with one value in each step."""
    singles = np.arange(values.size + 1, dtype=np.int64) if kind == "bytes" else None
    return values, singles, None, offsets, None, 1


def record_size(recipe: Recipe, dtypes: Sequence[str], shape: Shape, patches: int) -> int:
    """Return the size of the largest record an export can have.

    Args:
        recipe: How bands become features.
        dtypes: NumPy dtype of each band.
        shape: Shape of a stored patch; a single pixel for sequences.
        patches: Number of patches, for the index feature.

    Returns:
        Bytes, framing included. Records of floats and bytes all have it; integers are written
        with as many bytes as they need, so those records may be smaller.
    """
    worst = [_longest(np.dtype(dtype)) for dtype in dtypes]
    values = [
        np.full((depth or 1, shape.height, shape.width), value)
        for depth, value in zip(recipe.depths, worst, strict=True)
    ]
    strip = Strip(values, [None] * len(values))
    (framed,) = Encoder(recipe, shape).encode(strip, [0], [max(patches - 1, 0)])
    return int(framed.ends[0])


def _longest(dtype: np.dtype[Any]) -> Any:
    """Return the value of a dtype that takes most bytes as a varint: -1, or the largest."""
    if dtype.kind == "u":
        return dtype.type(np.iinfo(dtype).max)
    return dtype.type(-1) if dtype.kind == "i" else dtype.type(0)
