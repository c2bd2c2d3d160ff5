"""What the records of an image export hold, and where its patches lie: pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from tfrio.errors import MissingFeatureError
from tfrio.examples.schema import Feature, Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tfrio.datasets.order import Int64
    from tfrio.types import Affine6, Shape

__all__ = ["BandLayout", "PatchLayout"]


@dataclass(frozen=True, slots=True)
class BandLayout:
    """Where one band is stored."""

    name: str
    feature: str
    kind: Literal["bytes", "float", "int64"]
    dtype: str
    """NumPy type of bytes values."""
    plane: int = 0
    """First plane of the band within its feature."""
    depth: int = 1
    """Planes of the band; more than one for an array band."""
    whole: bool = False
    """Whether its values are whole numbers, however they are stored."""
    mean: float | None = None
    std: float | None = None


@dataclass(frozen=True, slots=True)
class PatchLayout:
    """What an export's records hold and where its patches lie."""

    paths: tuple[str, ...]
    first: Int64 | None
    """Number within the export of the first record of each file; None: the files are all of it."""
    bands: tuple[BandLayout, ...]
    stored: Shape
    """Shape of a stored patch, margins included."""
    margin: Shape
    """Margin (rows, columns) on each side."""
    affine: Affine6
    """From pixel to map, of the grid without margins."""
    cells: Int64
    """Grid row, grid column, pixel row and pixel column of each patch, shape (patches, 4)."""
    index_feature: str = ""
    """int64 feature with the patch's index; none: the records are in order."""
    written: Int64 | None = None
    """Index of the patch of each record, where some patches were left out."""
    masked: Callable[[int], NDArray[np.bool_] | None] | None = None
    """Where a patch is masked: booleans (bands, height, width) without margins; None: nowhere."""
    total: int | None = None
    """Number of records that the files hold when none is missing; None: any number."""
    placed: bool = True
    """Whether it is known which patch each record is; if not, its index, row and col are -1."""
    shown: tuple[str, ...] | None = None
    """Names of the bands to show where none are asked for; None: all."""

    def schema(self, names: Sequence[str]) -> Schema:
        """Return the schema of the features that hold these bands.

        Args:
            names: Names of bands.

        Returns:
            The schema, with the index feature where there is one.

        Raises:
            MissingFeatureError: There is no such band; the message lists those there are.
        """
        known = {band.name: band for band in self.bands}
        features: dict[str, Feature | str] = {}
        for name in names:
            if name not in known:
                raise MissingFeatureError(f"no band '{name}'; there are: {sorted(known)}")
            features[known[name].feature] = self._feature(known[name].feature)
        if self.index_feature:
            features[self.index_feature] = Feature("int64", ())
        return Schema(features)  # type: ignore[arg-type]

    def _feature(self, name: str) -> Feature:
        bands = [band for band in self.bands if band.feature == name]
        planes = sum(band.depth for band in bands)
        shape: tuple[int, ...] = (planes, self.stored.height, self.stored.width)
        first = bands[0]
        if first.kind == "bytes":
            return Feature("bytes", shape, codec="raw", dtype=first.dtype)
        return Feature(first.kind, shape)

    def places(self, index: Int64) -> tuple[Int64, Int64]:
        """Return the row and the column in the grid of each patch, -1 where not known."""
        if not self.placed:
            return np.full_like(index, -1), np.full_like(index, -1)
        return self.cells[index, 0], self.cells[index, 1]

    def transforms(self, index: Int64, *, margin: bool) -> NDArray[np.float64]:
        """Return the six affine terms of each patch, shape (n, 6); NaN where it is not known.

        Args:
            index: Index of each patch, shape (n,).
            margin: Whether the upper left pixel is that of the margin.
        """
        if not self.placed:
            return np.full((index.size, 6), np.nan)
        a, b, c, d, e, f = self.affine
        row = self.cells[index, 2] - (self.margin.height if margin else 0)
        column = self.cells[index, 3] - (self.margin.width if margin else 0)
        terms = np.tile(np.array(self.affine, np.float64), (index.size, 1))
        terms[:, 2] = c + a * column + b * row
        terms[:, 5] = f + d * column + e * row
        return terms
