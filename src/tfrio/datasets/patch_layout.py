"""What the records of an image export hold, and where its patches lie: pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from tfrio.errors import GeoError, MissingFeatureError, SchemaError
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

    def check_total(self, held: int) -> None:
        """Refuse files that hold another number of patches than the side files say.

        Args:
            held: Number of records in the files.

        Raises:
            GeoError: Patches are missing, or there are too many.
        """
        if self.total in (None, held):
            return
        remedy = (
            "Fetch the missing shards, or pass partial=True to read the patches of these"
            if held < (self.total or 0)
            else "Are these files of this export?"
        )
        raise GeoError(
            f"{self.paths[0]}: this and the other shards of the export hold {held} patches, its "
            f"side files say {self.total}. {remedy}",
            path=self.paths[0],
            expected=self.total,
            got=held,
        )

    def check_alike(self, other: PatchLayout, names: Sequence[str], number: int) -> None:
        """Refuse an export whose patches cannot be mixed with those of another.

        Args:
            other: The other one.
            names: Names of the bands shown.
            number: Number of this source, for the error.

        Raises:
            SchemaError: Patches differ in size or margin, or bands in where they are stored.
        """
        mine, others = self._stored(names), other._stored(names)
        if mine != others:
            raise SchemaError(
                f"source {number} stores its patches otherwise than source 0: {mine} against "
                f"{others} (size, margin; feature, kind, dtype, plane and depth of each band). "
                "Mix exports made with the same options"
            )

    def _stored(self, names: Sequence[str]) -> list[object]:
        bands = {b.name: (b.feature, b.kind, b.dtype, b.plane, b.depth) for b in self.bands}
        return [self.stored, self.margin, *(bands.get(name) for name in names)]

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
