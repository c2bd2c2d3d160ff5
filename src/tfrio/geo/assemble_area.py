"""How large a pixel is on the ground, in hectares: on the plane for a projected CRS, on the
ellipsoid for a geographic one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfrio.geo.grid import Window
    from tfrio.types import Affine6

__all__ = ["PixelArea", "authalic", "pixel_area"]

_HECTARE = 10_000.0  # square metres


def authalic(latitude: NDArray[np.float64], eccentricity: float) -> NDArray[np.float64]:
    """Return q, the authalic function of a latitude: a zone's area is a² / 2 · Δlon · Δq.

    Snyder, Map Projections: A Working Manual (USGS 1395, 1987), equation 3-12.

    Args:
        latitude: Geodetic latitude in radians, any shape.
        eccentricity: First eccentricity of the ellipsoid, 0 for a sphere.

    Returns:
        q, same shape, without unit.
    """
    sine = np.sin(latitude)
    if eccentricity < 1e-9:
        return np.asarray(2 * sine)
    e = eccentricity
    square = (e * sine) ** 2
    logarithm = np.log((1 - e * sine) / (1 + e * sine)) / (2 * e)
    return np.asarray((1 - e * e) * (sine / (1 - square) - logarithm))


@dataclass(frozen=True, slots=True)
class PixelArea:
    """The area of each pixel of a raster.

    Args:
        affine: Terms from pixel to map.
        unit: Metres, or radians for a geographic CRS, in one unit of the map.
        radius: Semi-major axis in metres; 0 for a projected CRS.
        eccentricity: First eccentricity of the ellipsoid.
    """

    affine: Affine6
    unit: float
    radius: float = 0.0
    eccentricity: float = 0.0

    def of(self, window: Window) -> NDArray[np.float64]:
        """Return hectares per pixel, to be broadcast over the window.

        Args:
            window: Pixels of the raster.

        Returns:
            Shape (height, 1), or (height, width) where latitude changes along a row.
        """
        a, b, _, d, e, f = self.affine
        cell = abs(a * e - b * d) * self.unit**2
        if not self.radius:
            return np.full((window.height, 1), cell / _HECTARE)
        rows = np.arange(window.row, window.bottom + 1, dtype=np.float64)
        if b == d == 0:
            edges = np.clip((e * rows + f) * self.unit, -math.pi / 2, math.pi / 2)
            bands = np.abs(np.diff(authalic(edges, self.eccentricity)))
            area = bands * abs(a) * self.unit * self.radius**2 / 2
            return np.asarray(area[:, None] / _HECTARE)
        return self._tilted(window, cell)

    def _tilted(self, window: Window, cell: float) -> NDArray[np.float64]:
        """Return hectares where rows are no parallels: the surface element at each centre."""
        _, _, _, d, e, f = self.affine
        rows = np.arange(window.row, window.bottom)[:, None] + 0.5
        columns = np.arange(window.column, window.right)[None, :] + 0.5
        latitude = (d * columns + e * rows + f) * self.unit
        square = self.eccentricity**2
        element = np.cos(latitude) * (1 - square) / (1 - square * np.sin(latitude) ** 2) ** 2
        return np.asarray(cell * self.radius**2 * np.abs(element) / _HECTARE)


def pixel_area(affine: Affine6, crs: str) -> PixelArea:
    """Prepare the areas of a raster's pixels.

    Args:
        affine: Terms from pixel to map.
        crs: CRS as a code or WKT that pyproj understands.

    Returns:
        The areas. A projected CRS is taken as the plane it is: an equal-area projection gives
        true areas, UTM areas within two tenths of a percent inside the zone.
    """
    parsed: Any = require("pyproj", extra="geo").CRS.from_user_input(crs)
    axes = parsed.axis_info
    unit = float(axes[0].unit_conversion_factor) if axes else 1.0
    if not parsed.is_geographic:
        return PixelArea(affine, unit)
    ellipsoid = parsed.ellipsoid
    flattening = 1 / ellipsoid.inverse_flattening if ellipsoid.inverse_flattening else 0.0
    eccentricity = math.sqrt(flattening * (2 - flattening))
    return PixelArea(affine, unit, float(ellipsoid.semi_major_metre), eccentricity)
