"""Sources made of others: bands side by side, a series of rasters, extra masks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import GeoError, UsageError
from tfrio.geo.burn import burn
from tfrio.geo.frame import Frame, lattice_offset
from tfrio.geo.grid import Window
from tfrio.geo.source import Band, Block, Mask, read_padded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrio.geo.source import Reader, Source

__all__ = [
    "MaskedSource",
    "SeriesSource",
    "StackSource",
    "check_same_grid",
    "leaves",
    "source_names",
    "stack",
    "unique_names",
]


def check_same_grid(sources: Sequence[Source]) -> Frame:
    """Check that sources share one grid.

    Args:
        sources: At least one.

    Returns:
        Their grid.

    Raises:
        GeoError: They differ; the message states both origins.
    """
    first = sources[0]
    for other in sources[1:]:
        difference = _difference(first.frame, other.frame)
        if difference:
            raise GeoError(
                f"grids differ: {difference} ({first.name}, {other.name}). Ask for one grid "
                "(region, crs, scale, crs_transform or dimensions) and both are resampled to it"
            )
    return first.frame


def _difference(one: Frame, other: Frame) -> str:
    """Say in what two grids differ, "" where they are the same."""
    if one.crs != other.crs:
        return f"CRS {one.crs[:60]} vs {other.crs[:60]}"
    if lattice_offset(one, other) == (0, 0) and one.size == other.size:
        return ""
    for name, index in (("origin x", 2), ("origin y", 5), ("pixel width", 0), ("pixel height", 4)):
        if abs(one.affine[index] - other.affine[index]) > 1e-3 * abs(one.affine.a):
            return f"{name} {one.affine[index]:.12g} vs {other.affine[index]:.12g}"
    if one.size != other.size:
        return f"size {one.size} vs {other.size}"
    return f"affine {tuple(one.affine)} vs {tuple(other.affine)}"


@dataclass(frozen=True, slots=True)
class StackSource:
    """Bands of several sources on one grid, side by side."""

    parts: tuple[Source, ...]
    bands: tuple[Band, ...]

    @property
    def name(self) -> str:
        """Return all names."""
        return ", ".join(part.name for part in self.parts)

    @property
    def frame(self) -> Frame:
        """Return the grid."""
        return self.parts[0].frame

    @property
    def extent(self) -> Window:
        """Return where any part has pixels; beyond its own, a part is masked."""
        windows = [part.extent for part in self.parts]
        left, top = min(w.column for w in windows), min(w.row for w in windows)
        right, bottom = max(w.right for w in windows), max(w.bottom for w in windows)
        return Window(left, top, right - left, bottom - top)

    @property
    def stamp(self) -> str:
        """Return all stamps."""
        return "|".join(part.stamp for part in self.parts)

    @property
    def tiled(self) -> bool:
        """Tell whether all parts are stored in tiles."""
        return all(part.tiled for part in self.parts)

    def open(self) -> _StackReader:
        """Open all parts."""
        return _StackReader(self.parts)


class _StackReader:
    def __init__(self, parts: Sequence[Source]) -> None:
        self._parts = parts
        self._readers: list[Reader] = []
        try:
            self._readers.extend(part.open() for part in parts)
        except BaseException:
            self.close()
            raise

    def read(self, window: Window) -> Block:
        """Read a window of every part; beyond a part's own extent its bands are masked."""
        block = Block([], [])
        for part, reader in zip(self._parts, self._readers, strict=True):
            zeros = [np.dtype(band.dtype).type(0) for band in part.bands]
            got = read_padded(reader, window, part.extent, part.bands, zeros)
            block.values.extend(got.values)
            block.masked.extend(got.masked)
        return block

    def close(self) -> None:
        """Release the handles of all parts."""
        for reader in self._readers:
            reader.close()


def leaves(source: Source) -> list[Source]:
    """Return the sources that a source is made of, in order; itself where it is made of none."""
    inner = getattr(source, "inner", None)
    parts = (inner,) if inner is not None else getattr(source, "parts", None)
    return [leaf for part in parts for leaf in leaves(part)] if parts else [source]


def source_names(source: Source) -> list[str]:
    """Return the names of all sources that a source is made of, each once, in order."""
    return list(dict.fromkeys(leaf.name for leaf in leaves(source)))


def stack(sources: Sequence[Source]) -> Source:
    """Put the bands of sources on one grid side by side.

    Args:
        sources: Sources that share a grid.

    Returns:
        One source; a band whose name is taken gets the name of its file before its own.
    """
    if len(sources) == 1:
        return sources[0]
    check_same_grid(sources)
    bands = [band for source in sources for band in source.bands]
    files = [source.name for source in sources for _ in source.bands]
    names = unique_names([band.name for band in bands], files)
    renamed = [replace(band, name=name) for band, name in zip(bands, names, strict=True)]
    return StackSource(tuple(sources), tuple(renamed))


def unique_names(names: Sequence[str], files: Sequence[str]) -> list[str]:
    """Put the stem of its file before each name that occurs twice.

    Raises:
        UsageError: Names are still the same.
    """
    stems = [file.replace("\\", "/").rpartition("/")[2].partition(".")[0] for file in files]
    found = [
        f"{stem}_{name}" if names.count(name) > 1 else name
        for name, stem in zip(names, stems, strict=True)
    ]
    twice = sorted({name for name in found if found.count(name) > 1})
    if twice:
        raise UsageError(
            f"bands {', '.join(twice)} occur in several sources. Give the sources as a mapping "
            "from name to source, and labels a name= of their own"
        )
    return found


@dataclass(frozen=True, slots=True)
class SeriesSource:
    """An array band made of one band of several sources, in order (a time series).

    Args:
        parts: Sources with one scalar band each, on one grid.
        band_name: Name of the array band.
    """

    parts: tuple[Source, ...]
    band_name: str

    @property
    def name(self) -> str:
        """Return all names."""
        return ", ".join(part.name for part in self.parts)

    @property
    def frame(self) -> Frame:
        """Return the grid."""
        return self.parts[0].frame

    @property
    def extent(self) -> Window:
        """Return where any part has pixels."""
        return StackSource(self.parts, ()).extent

    @property
    def bands(self) -> tuple[Band, ...]:
        """Return the array band; it has the widest of the dtypes."""
        members = [band for part in self.parts for band in part.bands]
        dtype = np.result_type(*(np.dtype(band.dtype) for band in members)).name
        alike = len({str(band.nodata) for band in members}) == 1
        nodata = members[0].nodata if alike else None
        maskable = any(band.maskable for band in members)
        return (Band(self.band_name, dtype, nodata, len(members), maskable),)

    @property
    def stamp(self) -> str:
        """Return all stamps."""
        return "|".join(part.stamp for part in self.parts)

    @property
    def tiled(self) -> bool:
        """Tell whether all parts are stored in tiles."""
        return all(part.tiled for part in self.parts)

    def open(self) -> _SeriesReader:
        """Open all parts."""
        return _SeriesReader(self.parts, self.bands[0].dtype)


class _SeriesReader:
    def __init__(self, parts: Sequence[Source], dtype: str) -> None:
        self._inner = _StackReader(parts)
        self._dtype = np.dtype(dtype)

    def read(self, window: Window) -> Block:
        """Read a window of every step, as one band of several planes."""
        got = self._inner.read(window)
        masked: Mask | None = None
        if any(mask is not None for mask in got.masked):
            empty = np.zeros((window.height, window.width), np.bool_)
            masked = np.stack([empty if mask is None else mask for mask in got.masked])
        return Block([np.stack(got.values).astype(self._dtype, copy=False)], [masked])

    def close(self) -> None:
        """Release the handles of all steps."""
        self._inner.close()


@dataclass(frozen=True, slots=True)
class MaskedSource:
    """A source with further pixels masked in all its bands.

    Args:
        inner: The source.
        mask_band: Index of a band that is not exported; where it is 0 or masked, all are masked.
        polygon: GeoJSON geometry in the grid's CRS; pixels whose centre lies outside are masked.
    """

    inner: Source
    mask_band: int | None = None
    polygon: Any = None

    @property
    def name(self) -> str:
        """Return the name of the source."""
        return self.inner.name

    @property
    def frame(self) -> Frame:
        """Return the grid."""
        return self.inner.frame

    @property
    def extent(self) -> Window:
        """Return where pixels exist."""
        return self.inner.extent

    @property
    def bands(self) -> tuple[Band, ...]:
        """Return the bands without the mask band."""
        kept = [band for n, band in enumerate(self.inner.bands) if n != self.mask_band]
        return tuple(replace(band, maskable=True) for band in kept)

    @property
    def stamp(self) -> str:
        """Return the stamp of the source and of the masks."""
        return f"{self.inner.stamp}|{self.mask_band}|{self.polygon}"

    @property
    def tiled(self) -> bool:
        """Tell whether the source is stored in tiles."""
        return self.inner.tiled

    def open(self) -> _MaskedReader:
        """Open the source."""
        return _MaskedReader(self)


class _MaskedReader:
    def __init__(self, source: MaskedSource) -> None:
        self._source = source
        self._inner = source.inner.open()

    def read(self, window: Window) -> Block:
        """Read a window, with the further pixels masked in every band."""
        block = self._inner.read(window)
        hidden = np.zeros((window.height, window.width), np.bool_)
        number = self._source.mask_band
        if number is not None:
            values, masked = block.values.pop(number), block.masked.pop(number)
            hidden |= values == 0
            if masked is not None:
                hidden |= masked
        if self._source.polygon is not None:
            hidden |= self._outside(window)
        if hidden.any():
            block.masked = [
                np.broadcast_to(hidden, values.shape) if masked is None else masked | hidden
                for values, masked in zip(block.values, block.masked, strict=True)
            ]
        return block

    def _outside(self, window: Window) -> Mask:
        inside = burn([(self._source.polygon, 1)], self._source.frame.affine, window, dtype="uint8")
        mask: Mask = inside == 0
        return mask

    def close(self) -> None:
        """Release the handle of the source."""
        self._inner.close()
