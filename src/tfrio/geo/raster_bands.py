"""Which bands of a raster are taken, under which names, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tfrio.errors import GeoError, UsageError
from tfrio.geo.source import Band

__all__ = ["BandSelection", "alpha_band", "band_of", "has_mask_band", "select_bands"]

BandSelection: TypeAlias = Sequence[str | int] | Mapping[str, str | int]


def alpha_band(dataset: Any) -> int:
    """Return the number of the alpha band, 0 where there is none.

    GDAL itself takes an alpha band for a mask only in rasters of two or four bands.
    """
    names = [interp.name for interp in dataset.colorinterp]
    return names.index("alpha") + 1 if "alpha" in names and len(names) > 1 else 0


def has_mask_band(dataset: Any) -> bool:
    """Tell whether a mask band says where all bands are masked."""
    return any(flag.name == "per_dataset" for flags in dataset.mask_flag_enums for flag in flags)


def select_bands(
    dataset: Any, path: str, bands: BandSelection | None
) -> dict[str, tuple[int, ...]]:
    """Return the raster band numbers of each band, by band name."""
    names = _names(dataset)
    if bands is None:
        return {
            name: (number,) for number, name in enumerate(names, 1) if number != alpha_band(dataset)
        }
    if isinstance(bands, str):
        raise UsageError(f"bands must be a list or a mapping, not the text {bands!r}")
    if isinstance(bands, Mapping):
        return {name: _numbers(what, names, path) for name, what in bands.items()}
    numbers = [_numbers(what, names, path) for what in bands]
    found = {names[group[0] - 1]: group for group in numbers}
    if len(found) < len(numbers):
        firsts = [names[group[0] - 1] for group in numbers]
        twice = ", ".join(dict.fromkeys(name for name in firsts if firsts.count(name) > 1))
        raise UsageError(
            f"{path}: bands {list(bands)!r} take {twice} twice, and a record holds a name once. "
            "Take it once, or give each a name of its own: bands={'new': 'old', ...}"
        )
    return found


def _names(dataset: Any) -> list[str]:
    """Return band names: descriptions where all differ, else b1, b2 ... as Earth Engine does."""
    given = [text.strip() if text else "" for text in dataset.descriptions]
    names = [text or f"b{number}" for number, text in enumerate(given, 1)]
    return names if len(set(names)) == len(names) else [f"b{n}" for n in range(1, len(names) + 1)]


def _numbers(what: Any, names: list[str], path: str) -> tuple[int, ...]:
    """Turn a name, a number or a range like "3:15" into raster band numbers."""
    if isinstance(what, str) and what in names:
        return (names.index(what) + 1,)
    first, _, last = str(what).partition(":")
    try:
        start, end = int(first), int(last or first)
    except ValueError:
        start = end = 0
    if not 1 <= start <= end <= len(names):
        raise UsageError(
            f"{path}: no band {what!r}; bands are {', '.join(names)} (1 to {len(names)})"
        )
    return tuple(range(start, end + 1))


def band_of(dataset: Any, name: str, numbers: tuple[int, ...], shared: bool, path: str) -> Band:
    """Describe a band: its dtype, its nodata value, whether pixels of it may be masked."""
    dtypes = {dataset.dtypes[number - 1] for number in numbers}
    if len(dtypes) > 1:
        raise GeoError(f"{path}: array band {name!r} mixes {', '.join(sorted(dtypes))}", path=path)
    dtype = dtypes.pop()
    if np.dtype(dtype).kind not in "biuf":
        raise GeoError(
            f"{path}: band {name!r} is {dtype}; TFRecord has no such numbers. Export its real and "
            "imaginary part, or its amplitude, as bands of their own",
            path=path,
        )
    nodata = dataset.nodatavals[numbers[0] - 1]
    return Band(
        name=name,
        dtype=dtype,
        nodata=None if nodata is None else float(nodata),
        depth=None if len(numbers) == 1 else len(numbers),
        maskable=shared or nodata is not None,
    )
