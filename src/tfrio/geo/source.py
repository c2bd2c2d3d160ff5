"""What an export asks of its pixels: named bands on a grid, read window by window, with masks.

A source is a small description that can be copied to another thread or process; ``open`` gives
the handle that reads. Any class with these few members is a source.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrio.geo.frame import Frame
    from tfrio.geo.grid import Window

__all__ = ["Band", "Block", "Mask", "Pixels", "Reader", "Source", "nodata_mask", "read_padded"]

Pixels: TypeAlias = npt.NDArray[Any]
Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Band:
    """One band.

    Args:
        name: Its name.
        dtype: NumPy dtype of its values.
        nodata: Value that means "no data", None where there is none.
        depth: Steps of an array band (a time series in each pixel); None for a scalar band.
        maskable: Whether pixels may be masked by anything else than NaN.
    """

    name: str
    dtype: str
    nodata: float | None = None
    depth: int | None = None
    maskable: bool = False


@dataclass(slots=True)
class Block:
    """Pixels of a window.

    Args:
        values: One array per band, (height, width) or (depth, height, width). They belong to
            whoever asked and may be changed.
        masked: One array per band of the same shape, True where masked; None where nothing is.
    """

    values: list[Pixels]
    masked: list[Mask | None]


class Reader(Protocol):
    """An open source. Not to be shared between threads."""

    def read(self, window: Window) -> Block:
        """Read a window that lies within the source's extent."""
        ...

    def close(self) -> None:
        """Release the handle."""
        ...


class Source(Protocol):
    """Bands on a grid. Members are read-only; instances can be pickled."""

    @property
    def name(self) -> str:
        """What to call it in messages."""
        ...

    @property
    def frame(self) -> Frame:
        """The grid."""
        ...

    @property
    def extent(self) -> Window:
        """Where pixels exist, in pixels of the grid; it may be larger or smaller than that."""
        ...

    @property
    def bands(self) -> tuple[Band, ...]:
        """The bands, in order."""
        ...

    @property
    def stamp(self) -> str:
        """Text that changes when the pixels may have changed."""
        ...

    @property
    def tiled(self) -> bool:
        """Whether narrow windows cost no more than whole rows: tiles, decoded once and kept."""
        ...

    def open(self) -> Reader:
        """Open it for reading."""
        ...


def nodata_mask(values: Pixels, nodata: float | None) -> Mask | None:
    """Find masked pixels by their values.

    Args:
        values: Pixels of one band.
        nodata: The nodata value. It is compared in the band's own precision, so that 2147483647
            masks the float32 value 2147483648, which is what such a file really holds.

    Returns:
        True where a value is nodata or NaN; None where none is.
    """
    floating = np.issubdtype(values.dtype, np.floating)
    masked: Mask | None = np.isnan(values) if floating else None
    own = _in_dtype(nodata, values.dtype)
    if own is not None:
        same = values == own
        masked = same if masked is None else masked | same
    return masked if masked is not None and masked.any() else None


def _in_dtype(nodata: float | None, dtype: np.dtype[Any]) -> Any:
    """Return the nodata value as a value of the dtype, None where the dtype has no such value."""
    if nodata is None or math.isnan(nodata):
        return None
    if np.issubdtype(dtype, np.floating):
        with np.errstate(over="ignore"):
            return dtype.type(nodata)
    if dtype == np.bool_:
        return dtype.type(nodata) if nodata in (0, 1) else None
    info = np.iinfo(dtype)
    whole = nodata == int(nodata) if math.isfinite(nodata) else False
    return dtype.type(int(nodata)) if whole and info.min <= nodata <= info.max else None


def read_padded(
    reader: Reader,
    window: Window,
    extent: Window,
    bands: Sequence[Band],
    fills: Sequence[np.generic],
) -> Block:
    """Read a window that may reach beyond the source; what lies beyond is masked and filled.

    Args:
        reader: The open source.
        window: What to read.
        extent: Where pixels exist.
        bands: The bands of the source.
        fills: Value for what lies beyond, per band, in the band's dtype.

    Returns:
        The pixels of the whole window.
    """
    inside = _common(window, extent)
    if inside == window:
        return reader.read(window)
    block = reader.read(inside) if inside.pixels else None
    rows, columns = inside.moved(-window.column, -window.row).slices
    values: list[Pixels] = []
    masks: list[Mask | None] = []
    for number, (band, fill) in enumerate(zip(bands, fills, strict=True)):
        steps = () if band.depth is None else (band.depth,)
        shape = (*steps, window.height, window.width)
        whole = np.full(shape, fill, fill.dtype)
        masked = np.ones(shape, np.bool_)
        if block is not None:
            whole[..., rows, columns] = block.values[number]
            inner = block.masked[number]
            masked[..., rows, columns] = False if inner is None else inner
        values.append(whole)
        masks.append(masked)
    return Block(values, masks)


def _common(one: Window, other: Window) -> Window:
    """Return the pixels in both windows, an empty window where none is."""
    left, top = max(one.column, other.column), max(one.row, other.row)
    right, bottom = min(one.right, other.right), min(one.bottom, other.bottom)
    return type(one)(left, top, max(right - left, 0), max(bottom - top, 0))
