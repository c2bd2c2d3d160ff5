"""How bands become features: names, kinds, tensor depths and fill values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sized
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from tfrio.errors import GeoError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrio.geo.options import ExportOptions
    from tfrio.geo.source import Band

__all__ = ["FeatureRow", "Kind", "Recipe", "fill_value", "make_recipe"]

Kind: TypeAlias = Literal["bytes", "float", "int64"]
_ORDER: tuple[Kind, ...] = ("bytes", "int64", "float")
_STORED = {"bytes": "uint8", "int64": "int64", "float": "float32"}


@dataclass(frozen=True, slots=True)
class FeatureRow:
    """One feature of a record.

    Args:
        name: Its name.
        kind: Its kind.
        bands: Indices of the bands it holds, in order.
        steps: True for a feature list of a SequenceExample.
    """

    name: str
    kind: Kind
    bands: tuple[int, ...]
    steps: bool = False

    @property
    def stored(self) -> np.dtype[Any]:
        """Return the NumPy dtype of the stored values."""
        return np.dtype(_STORED[self.kind])


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything needed to turn pixels into records.

    Args:
        features: Features, in the order of the record.
        fills: Value for masked pixels of each band, in the band's dtype.
        depths: Tensor depth of each band; None for a scalar band.
        sequence: One SequenceExample per pixel instead of one Example per patch.
        drop_masked: Leave out the masked steps of array bands.
        index_feature: Name of the feature that holds the patch's index, or "".
        notes: What the user should know about the fills.
    """

    features: tuple[FeatureRow, ...]
    fills: tuple[np.generic, ...]
    depths: tuple[int | None, ...]
    sequence: bool
    drop_masked: bool
    index_feature: str
    notes: tuple[str, ...] = ()

    def planes(self, feature: FeatureRow) -> int:
        """Return how many values of a pixel a feature holds."""
        return sum(self.depths[band] or 1 for band in feature.bands)


def make_recipe(bands: Sequence[Band], options: ExportOptions) -> Recipe:
    """Decide how bands become features.

    Args:
        bands: Bands of the source.
        options: Options of the export.

    Returns:
        The recipe.

    Raises:
        UsageError: Tensor depths do not fit the array bands, or names collide.
    """
    if not bands:
        raise UsageError("there is no band to export. Name at least one")
    notes: list[str] = []
    features = _collapsed(bands, options) if options.collapse_bands else _single(bands, options)
    index = options.patch_index or ""
    _check_names([band.name for band in bands], index)
    return Recipe(
        features=tuple(features),
        fills=tuple(fill_value(band, options.default_value, notes) for band in bands),
        depths=_depths(bands, options),
        sequence=options.sequence_data,
        drop_masked=options.drop_masked,
        index_feature=index,
        notes=tuple(notes),
    )


def _check_names(names: list[str], index: str) -> None:
    every = [*names, index] if index else names
    twice = sorted({name for name in every if every.count(name) > 1})
    if twice:
        raise UsageError(f"band names {', '.join(twice)} occur twice. Rename with bands={{...}}")


def _single(bands: Sequence[Band], options: ExportOptions) -> list[FeatureRow]:
    return [
        FeatureRow(
            band.name,
            _kind(band, options),
            (index,),
            steps=options.sequence_data and band.depth is not None,
        )
        for index, band in enumerate(bands)
    ]


def _collapsed(bands: Sequence[Band], options: ExportOptions) -> list[FeatureRow]:
    """Return one feature for all bands, promoted to the furthest kind."""
    kind = max((_kind(band, options) for band in bands), key=_ORDER.index)
    name = bands[0].name
    return [FeatureRow(name, kind, tuple(range(len(bands))), steps=options.sequence_data)]


def _kind(band: Band, options: ExportOptions) -> Kind:
    """Return the kind of a band: float as the guide says, or the service's own."""
    dtype = np.dtype(band.dtype)
    if options.dtype == "float" or dtype.kind == "f":
        return "float"
    return "bytes" if dtype in (np.uint8, np.bool_) else "int64"


def _depths(bands: Sequence[Band], options: ExportOptions) -> tuple[int | None, ...]:
    arrays = [band.name for band in bands if band.depth is not None]
    given = _depth_map(arrays, options.tensor_depths)
    if given is not None:
        _check_depths(arrays, given)
    return tuple(
        None if band.depth is None else (given or {}).get(band.name, band.depth) for band in bands
    )


def _depth_map(
    arrays: list[str], given: Mapping[str, int] | Sequence[int] | None
) -> Mapping[str, int] | None:
    """Return the depths by band name; a list is in the order of the array bands."""
    if given is None or isinstance(given, Mapping):
        return given
    if not isinstance(given, Sized) or isinstance(given, str) or len(given) != len(arrays):
        listed = ", ".join(arrays) or "none"
        raise UsageError(
            f"tensor_depths {given!r} does not fit the array bands ({listed}). "
            "Give a mapping from each array band to its depth"
        )
    return dict(zip(arrays, given, strict=True))


def _check_depths(arrays: list[str], given: Mapping[str, int]) -> None:
    missing = [name for name in arrays if name not in given]
    extra = [name for name in given if name not in arrays]
    if missing or extra:
        parts = [f"misses {', '.join(missing)}"] if missing else []
        parts += [f"names {', '.join(map(str, extra))}, no array band"] if extra else []
        raise UsageError(f"tensor_depths {' and '.join(parts)}. Give a depth to each array band")
    for name, depth in given.items():
        if isinstance(depth, bool) or not isinstance(depth, Integral) or int(depth) < 1:
            raise UsageError(f"tensor depth of {name} must be a whole number >= 1; got {depth!r}")


def fill_value(band: Band, default: float | None, notes: list[str]) -> np.generic:
    """Choose the value written where a band is masked.

    Args:
        band: The band.
        default: The value asked for; None takes the band's own nodata value, or 0 where it has
            none (or NaN, which would spread).
        notes: A sentence is added here when the value asked for does not fit the band.

    Returns:
        The value in the band's dtype. For integer bands the fraction is dropped and the rest
        clamped, as Earth Engine does.
    """
    dtype = np.dtype(band.dtype)
    wanted = default
    if wanted is None:
        own = band.nodata
        wanted = own if own is not None and math.isfinite(own) else 0.0
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            if default is not None and math.isfinite(wanted) and np.isinf(np.float32(wanted)):
                notes.append(
                    f"default_value {default} is beyond float32; band {band.name} gets infinity"
                )
            value: np.generic = dtype.type(wanted)
            return value
    if not math.isfinite(wanted):
        raise GeoError(
            f"default_value {wanted} cannot be stored in band {band.name} ({dtype}). "
            "Give a whole number"
        )
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    whole = min(max(int(wanted), int(low)), int(high))
    if default is not None and whole != int(wanted):
        notes.append(
            f"default_value {default} is outside {dtype} of band {band.name}; {whole} is written"
        )
    clamped: np.generic = dtype.type(whole)
    return clamped
