"""The grid of an export: a CRS, an affine and a size; and the arithmetic to choose one.

The choice follows Earth Engine's ``Export.image``: see ``snapped_frame`` for how ``scale`` is
turned into a grid. Nothing here reads a file or needs a projection library.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfrio.errors import GeoError, UsageError
from tfrio.geo.grid import Window, shift_affine
from tfrio.types import XY, Affine6

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "METRES_PER_DEGREE",
    "Bounds",
    "Frame",
    "affine_terms",
    "covering_frame",
    "dimension_frame",
    "lattice_offset",
    "snapped_frame",
]

# One degree on the equator of WGS 84 (radius 6378137 m). This very double gives the pixel sizes and
# origins of real Earth Engine exports bit for bit; its neighbour 111319.49079327358 does not.
METRES_PER_DEGREE = 111319.49079327357
# Origins closer than this to a pixel corner are on it; in pixels.
_TOLERANCE = 1e-6


def affine_terms(given: Sequence[float], *, name: str = "transform") -> Affine6:
    """Check the terms from pixel to map that a user gives.

    Args:
        given: [a, b, c, d, e, f]; the three constant terms of a 3 x 3 matrix may follow.
        name: What they are called in the error.

    Returns:
        The terms.

    Raises:
        UsageError: Not six finite numbers, or pixels of no area.
    """
    try:
        terms = [float(term) for term in given]
    except (TypeError, ValueError):
        terms = []
    if len(terms) not in (6, 9) or not all(map(math.isfinite, terms[:6])):
        raise UsageError(
            f"{name} must have six terms [a, b, c, d, e, f], all finite; got {given!r}"
        )
    affine = Affine6(*terms[:6])
    if affine.a * affine.e == affine.b * affine.d:
        raise UsageError(f"{name} {terms[:6]} has pixels of no area: a and e are their sides")
    return affine


@dataclass(frozen=True, slots=True)
class Bounds:
    """A box in map units."""

    left: float
    bottom: float
    right: float
    top: float

    def __str__(self) -> str:
        """Return the box as a message shows it, to eight digits."""
        return (
            f"(left {self.left:.8g}, bottom {self.bottom:.8g}, right {self.right:.8g}, "
            f"top {self.top:.8g})"
        )


@dataclass(frozen=True, slots=True)
class Frame:
    """A grid of pixels on the map.

    Args:
        crs: CRS as text: an authority code or a WKT.
        affine: Terms from pixel to map, (c, f) the outer corner of the first pixel.
        size: Extent (x, y) in pixels.
    """

    crs: str
    affine: Affine6
    size: XY

    @property
    def bounds(self) -> Bounds:
        """Return the box around all four corners."""
        a, b, c, d, e, f = self.affine
        corners = [(0, 0), (self.size.x, 0), (0, self.size.y), (self.size.x, self.size.y)]
        xs = [a * column + b * row + c for column, row in corners]
        ys = [d * column + e * row + f for column, row in corners]
        return Bounds(min(xs), min(ys), max(xs), max(ys))

    @property
    def window(self) -> Window:
        """Return all pixels."""
        return Window(0, 0, self.size.x, self.size.y)

    def cropped(self, window: Window) -> Frame:
        """Return the grid of a window of this one."""
        affine = shift_affine(self.affine, window.column, window.row)
        return Frame(self.crs, affine, XY(window.width, window.height))

    def pixel_of(self, x: float, y: float) -> tuple[float, float]:
        """Return (column, row) of a map point; the centre of the first pixel is (0.5, 0.5)."""
        a, b, c, d, e, f = self.affine
        det = a * e - b * d
        return (e * (x - c) - b * (y - f)) / det, (a * (y - f) - d * (x - c)) / det

    def box_of(self, bounds: Bounds) -> Window:
        """Return the pixels that a box in map units touches, its corners taken through."""
        points = [
            self.pixel_of(x, y)
            for x in (bounds.left, bounds.right)
            for y in (bounds.bottom, bounds.top)
        ]
        left = _floor(min(column for column, _ in points))
        right = _ceil(max(column for column, _ in points))
        top = _floor(min(row for _, row in points))
        bottom = _ceil(max(row for _, row in points))
        return Window(left, top, right - left, bottom - top)

    def describe(self) -> str:
        """Return the grid as one line."""
        a, b, c, d, e, f = self.affine
        crs = self.crs if len(self.crs) < 40 else self.crs[:37] + "..."
        turned = "" if b == d == 0 else f", rotated (shear {b:g}, {d:g})"
        return (
            f"{self.size.x} x {self.size.y} pixels of {abs(a):.10g} x {abs(e):.10g} in {crs}, "
            f"origin ({c:.10g}, {f:.10g}){turned}"
        )


def _floor(value: float) -> int:
    """Round down, except where the value is a whole number but for rounding."""
    near = round(value)
    return near if abs(value - near) < _TOLERANCE else math.floor(value)


def _ceil(value: float) -> int:
    near = round(value)
    return near if abs(value - near) < _TOLERANCE else math.ceil(value)


def _sized(width: int, height: int, bounds: Bounds) -> XY:
    if bounds.left > bounds.right:
        raise GeoError(
            f"the region crosses the line where x starts again: {bounds}. Export its two sides, or "
            "choose a crs in which it is one piece"
        )
    if width < 1 or height < 1:
        raise GeoError(f"the region {bounds} holds no pixel of this grid. Check region and scale")
    return XY(width, height)


def snapped_frame(crs: str, pixel: float, bounds: Bounds) -> Frame:
    """Lay a north-up grid of square pixels over a box, snapped to multiples of the pixel.

    The origin is (floor(left / pixel) * pixel, ceil(top / pixel) * pixel), as in every Earth
    Engine export made with ``scale``.

    Args:
        crs: CRS of the grid.
        pixel: Side of a pixel in units of the CRS.
        bounds: Box to cover, in the CRS.

    Returns:
        The smallest such grid that covers the box.
    """
    left, top = _floor(bounds.left / pixel), _ceil(bounds.top / pixel)
    right, bottom = _ceil(bounds.right / pixel), _floor(bounds.bottom / pixel)
    size = _sized(right - left, top - bottom, bounds)
    return Frame(crs, Affine6(pixel, 0.0, left * pixel, 0.0, -pixel, top * pixel), size)


def covering_frame(crs: str, affine: Affine6, bounds: Bounds) -> Frame:
    """Return the part of an endless grid that covers a box.

    Args:
        crs: CRS of the grid.
        affine: Terms that fix its pixels; the origin may lie anywhere.
        bounds: Box to cover, in the CRS.

    Returns:
        The grid, whose origin is a whole number of pixels from that of ``affine``.
    """
    box = Frame(crs, affine, XY(1, 1)).box_of(bounds)
    size = _sized(box.width, box.height, bounds)
    return Frame(crs, shift_affine(affine, box.column, box.row), size)


def dimension_frame(crs: str, size: XY, bounds: Bounds) -> Frame:
    """Divide a box into a given number of pixels, north up.

    Args:
        crs: CRS of the grid.
        size: Pixels (x, y).
        bounds: Box, in the CRS.

    Returns:
        The grid that fills the box exactly.
    """
    across = (bounds.right - bounds.left) / size.x
    down = (bounds.top - bounds.bottom) / size.y
    if across <= 0 or down <= 0:
        raise GeoError(f"the region {bounds} has no area. Give another region")
    return Frame(crs, Affine6(across, 0.0, bounds.left, 0.0, -down, bounds.top), size)


def lattice_offset(frame: Frame, other: Frame) -> tuple[int, int] | None:
    """Tell whether two grids of one CRS share their pixels.

    Args:
        frame: The grid to look from.
        other: The other grid.

    Returns:
        (column, row) of the first pixel of ``other`` in ``frame``; None where pixels are of
        another size or corners do not meet.
    """
    size = max(frame.size.x, frame.size.y, other.size.x, other.size.y)
    scale = max(abs(term) for term in (*frame.affine[:2], *frame.affine[3:5]))
    terms = zip(
        (*frame.affine[:2], *frame.affine[3:5]),
        (*other.affine[:2], *other.affine[3:5]),
        strict=True,
    )
    # Over the whole raster the two grids may not drift apart by a thousandth of a pixel.
    if any(abs(one - two) * size > 1e-3 * scale for one, two in terms):
        return None
    column, row = frame.pixel_of(other.affine.c, other.affine.f)
    if abs(column - round(column)) > 1e-3 or abs(row - round(row)) > 1e-3:
        return None
    return round(column), round(row)
