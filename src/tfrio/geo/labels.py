"""Label bands burnt from vector features while patches are cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import GeoError, UsageError, require
from tfrio.geo.burn import burn
from tfrio.geo.grid import Window
from tfrio.geo.source import Band, Block, nodata_mask
from tfrio.geo.vectors import read_features

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrio.geo.frame import Frame

__all__ = ["LabelSource", "Labels"]

# Beyond the grid labels go on, for the margins; this is further than any margin reaches.
_FAR = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """A label band to burn from vector features.

    Args:
        where: A vector file, GeoJSON, or anything with ``__geo_interface__``.
        attribute: Property that holds the value to burn; 1 is burnt where None.
        name: Name of the band.
        dtype: NumPy dtype of the band.
        background: Value where no feature lies.
        nodata: Value that means "no data", for example the background where that is unlabelled.
        all_touched: Burn each pixel a feature touches, not only those whose centre is inside.
        crs: CRS of the features; by default what the file says, else longitude and latitude.
    """

    where: Any
    attribute: str | None = None
    name: str = "label"
    dtype: str = "uint8"
    background: float = 0
    nodata: float | None = None
    all_touched: bool = False
    crs: str | None = None

    def on(self, frame: Frame) -> LabelSource:
        """Return the band on a grid.

        Raises:
            UsageError: A feature lacks the attribute, or its value does not fit the dtype.
        """
        features = read_features(self.where, crs=self.crs, target=frame.crs)
        if not features:
            raise GeoError(f"the labels {self.where!r} hold no feature. Give another file")
        shapes = [(feature.geometry, self._value(feature.properties)) for feature in features]
        return LabelSource(self, frame, tuple(shapes))

    def _value(self, properties: Mapping[str, Any]) -> float:
        if self.attribute is None:
            return 1
        value = properties.get(self.attribute)
        try:
            number = float(value)  # type: ignore[arg-type]
            fits = np.dtype(self.dtype).type(number) == number
        except (TypeError, ValueError, OverflowError):
            fits = False
        if not fits:
            raise UsageError(
                f"attribute {self.attribute!r} is {value!r}, which is no {self.dtype}. Known "
                f"attributes: {', '.join(map(str, properties)) or 'none'}"
            )
        return number


@dataclass(frozen=True, slots=True)
class LabelSource:
    """A label band on a grid."""

    labels: Labels
    frame: Frame
    shapes: tuple[tuple[Any, float], ...]

    @property
    def name(self) -> str:
        """Return the name of the file, or of the band."""
        return self.labels.where if isinstance(self.labels.where, str) else self.labels.name

    @property
    def extent(self) -> Window:
        """Return everywhere: labels do not end with the raster."""
        return Window(-_FAR, -_FAR, 2 * _FAR, 2 * _FAR)

    @property
    def bands(self) -> tuple[Band, ...]:
        """Return the one band."""
        labels = self.labels
        maskable = labels.nodata is not None
        return (Band(labels.name, labels.dtype, labels.nodata, None, maskable),)

    @property
    def stamp(self) -> str:
        """Return all shapes, and how they are burnt."""
        how = (self.labels.background, self.labels.nodata, self.labels.all_touched)
        return f"{self.shapes} {self.labels.dtype} {how}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Return a warning where no feature lies on the grid."""
        features = require("rasterio.features", extra="geo")
        box = self.frame.bounds
        for geometry, _ in self.shapes:
            left, bottom, right, top = features.bounds(geometry)
            if left <= box.right and right >= box.left and bottom <= box.top and top >= box.bottom:
                return ()
        return (
            f"labels {self.name}: none of the {len(self.shapes)} features lies on the grid, so "
            f"band {self.labels.name} is {self.labels.background} everywhere. Check their CRS",
        )

    @property
    def tiled(self) -> bool:
        """Return False: each window goes through all shapes."""
        return False

    def open(self) -> _LabelReader:
        """Return a reader; there is nothing to open."""
        return _LabelReader(self)


class _LabelReader:
    def __init__(self, source: LabelSource) -> None:
        self._source = source

    def read(self, window: Window) -> Block:
        """Burn the shapes that touch a window."""
        labels = self._source.labels
        values = burn(
            self._source.shapes,
            self._source.frame.affine,
            window,
            dtype=labels.dtype,
            background=labels.background,
            all_touched=labels.all_touched,
        )
        return Block([values], [nodata_mask(values, labels.nodata)])

    def close(self) -> None:
        """Do nothing."""
