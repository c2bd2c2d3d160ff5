"""The account of an import: what was placed, what is missing, how large each class is."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrio.types import XY, Affine6

__all__ = ["ClassArea", "ImportReport"]


@dataclass(frozen=True, slots=True)
class ClassArea:
    """One class of one band.

    Args:
        band: Name of the band.
        value: The class.
        name: What it is called, empty without class names.
        pixels: Pixels of the raster.
        hectares: Their area, on the ellipsoid where the CRS is geographic.
    """

    band: str
    value: int
    name: str
    pixels: int
    hectares: float


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import wrote.

    Args:
        path: The raster.
        size: Raster (x, y) in pixels.
        crs: CRS of the raster.
        affine: Terms from pixel to map.
        bands: Names of the bands, in order.
        dtype: NumPy dtype of the raster.
        nodata: Nodata value of the raster, None where it has none.
        patches: Patches placed.
        expected: Patches of the export.
        pixels: Pixels of the raster.
        covered: Pixels that a placed patch gave a value, masked ones not counted.
        masked: Pixels of placed patches that are nodata because they were masked at export.
        invalid: Pixels of placed patches that are nodata because a prediction is NaN.
        missing: Pixels that no placed patch reaches.
        dropped: Pixels of the source in no patch of the export, None where only a mixer is known.
        classes: Area of each class.
        notes: What the user should know.
        quicklook: The quicklook PNG, None where none was asked for.
    """

    path: str
    size: XY
    crs: str
    affine: Affine6
    bands: tuple[str, ...]
    dtype: str
    nodata: float | None
    patches: int
    expected: int
    pixels: int
    covered: int
    masked: int
    invalid: int
    missing: int
    dropped: int | None
    classes: tuple[ClassArea, ...] = ()
    notes: tuple[str, ...] = ()
    quicklook: str | None = field(default=None)

    @property
    def hectares(self) -> Mapping[int, float]:
        """Return hectares by class of the first band that has classes."""
        first = self.classes[0].band if self.classes else ""
        return {row.value: row.hectares for row in self.classes if row.band == first}

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        plain = asdict(self)
        plain["size"] = [self.size.x, self.size.y]
        plain["affine"] = list(self.affine)
        return plain

    def __str__(self) -> str:
        """Return the account as a few lines."""
        lines = [
            f"{self.path}: {self.size.x} x {self.size.y} pixels, {len(self.bands)} "
            f"band{'s' * (len(self.bands) != 1)} of {self.dtype}",
            f"patches    {self.patches:,} of {self.expected:,} placed",
            f"covered    {self.covered:,} of {self.pixels:,} pixels",
        ]
        left_out = (("masked", self.masked), ("invalid", self.invalid), ("missing", self.missing))
        lines += [f"{name:<10} {_pixels_are(count)} nodata" for name, count in left_out if count]
        if self.dropped:
            are = "pixel of the source is" if self.dropped == 1 else "pixels of the source are"
            lines.append(f"dropped    {self.dropped:,} {are} in no patch")
        for row in self.classes:
            name = row.name or f"class {row.value}"
            area = f"{row.hectares:14,.2f} ha  {row.pixels:>12,} pixels"
            lines.append(f"{row.band}: {name:<16} {area}")
        return "\n".join([*lines, *self.notes])


def _pixels_are(count: int) -> str:
    return "1 pixel is" if count == 1 else f"{count:,} pixels are"
