"""Patches where something is: around points, under polygons; and a split by spatial block."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfrio.errors import GeoError, UsageError, require
from tfrio.geo.grid import scale_affine
from tfrio.geo.patches import Patches, grid_patches, point_patches
from tfrio.geo.vectors import read_features
from tfrio.types import XY, real_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrio.geo.frame import Frame
    from tfrio.geo.grid import Edge, PatchGrid
    from tfrio.geo.options import Pair

__all__ = ["PatchesAt", "Split", "centred_origin", "choose_patches", "is_validation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchesAt:
    """Where to take patches.

    Points give one patch each, whose middle pixel holds the point. Polygons and lines keep the
    patches of the grid that they touch.

    Args:
        where: A vector file, GeoJSON, a sequence of (x, y) pairs, or anything with
            ``__geo_interface__``.
        crs: Their CRS; by default what the file says, else longitude and latitude.
    """

    where: Any
    crs: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A division into training and validation by blocks of the raster.

    Neighbouring patches are alike, so a random split tells too well. All patches that begin in
    one block fall on the same side.

    Args:
        validation: Share of blocks for validation, between 0 and 1.
        block: Block (x, y) in pixels; eight patches by default.
        seed: Another number gives another division.
    """

    validation: float = 0.2
    block: Pair | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the share and the block."""
        if self.block is not None:
            XY.of(self.block, name="block")
        if not 0 < real_number(self.validation, "validation") < 1:
            raise UsageError(f"validation must lie between 0 and 1; got {self.validation!r}")

    def divide(self, patches: Patches) -> tuple[list[int], list[int]]:
        """Return the indices of the patches for training and for validation."""
        patch = patches.patch
        block = XY(8 * patch.x, 8 * patch.y) if self.block is None else XY.of(self.block)
        sides: tuple[list[int], list[int]] = ([], [])
        for position in range(len(patches)):
            column, row = patches[position]
            chosen = is_validation(column // block.x, row // block.y, self.validation, self.seed)
            sides[chosen].append(patches.index(position))
        return sides


def is_validation(column: int, row: int, share: float, seed: int) -> bool:
    """Tell on which side a block falls: the same everywhere, whatever the number of blocks.

    Args:
        column: Column of the block.
        row: Row of the block.
        share: Share of blocks for validation.
        seed: Seed of the division.
    """
    digest = hashlib.blake2b(f"{seed}:{column}:{row}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def centred_origin(column: float, row: float, patch: XY) -> tuple[int, int]:
    """Return the upper left pixel of a patch whose middle pixel holds a point.

    Args:
        column: Column of the point; the first pixel reaches from 0 to 1.
        row: Row of the point.
        patch: Patch (x, y).
    """
    return math.floor(column) - patch.x // 2, math.floor(row) - patch.y // 2


def choose_patches(
    grid: PatchGrid, frame: Frame, at: PatchesAt | None, edge: Edge
) -> tuple[Patches, int]:
    """Choose the patches to write.

    Args:
        grid: The grid of patches.
        frame: The grid of pixels.
        at: Where to take them, None for the whole grid.
        edge: What happens to patches at points that reach beyond the raster.

    Returns:
        The patches, and how many points gave none.

    Raises:
        GeoError: No patch is left.
    """
    if at is None:
        return grid_patches(grid), 0
    features = read_features(at.where, crs=at.crs, target=frame.crs)
    kinds = {feature.geometry["type"] for feature in features}
    if kinds <= {"Point", "MultiPoint"}:
        points = [xy for feature in features for xy in _coordinates(feature.geometry)]
        return _at_points(points, grid, frame, edge)
    if kinds & {"Point", "MultiPoint"}:
        raise UsageError(f"patches can be taken at points or under polygons, not both: {kinds}")
    touched = _touched(grid, frame, [feature.geometry for feature in features])
    return grid_patches(grid).keeping(touched), 0


def _coordinates(geometry: Mapping[str, Any]) -> list[tuple[float, float]]:
    single = geometry["type"] == "Point"
    pairs = [geometry["coordinates"]] if single else geometry["coordinates"]
    return [(float(pair[0]), float(pair[1])) for pair in pairs]


def _at_points(
    points: list[tuple[float, float]], grid: PatchGrid, frame: Frame, edge: Edge
) -> tuple[Patches, int]:
    origins = []
    for x, y in points:
        column, row = frame.pixel_of(x, y)
        if 0 <= column < frame.size.x and 0 <= row < frame.size.y:
            placed = _placed(centred_origin(column, row, grid.patch), grid, edge)
            if placed is not None:
                origins.append(placed)
    if not origins:
        raise GeoError(
            f"none of the {len(points)} points gives a whole patch of {grid.patch} within the "
            f'raster {frame.describe()}. Check their CRS, or use edge="pad"'
        )
    return point_patches(origins, grid.patch, grid.size), len(points) - len(origins)


def _placed(origin: tuple[int, int], grid: PatchGrid, edge: Edge) -> tuple[int, int] | None:
    """Apply the edge rule to one patch; None drops it."""
    room = (grid.size.x - grid.patch.x, grid.size.y - grid.patch.y)
    inside = all(0 <= place <= most for place, most in zip(origin, room, strict=True))
    if edge == "pad" or inside:
        return origin
    if edge == "drop":
        return None
    column, row = (max(min(p, most), 0) for p, most in zip(origin, room, strict=True))
    return column, row


def _touched(grid: PatchGrid, frame: Frame, geometries: list[Mapping[str, Any]]) -> list[int]:
    """Return the patches of the grid that touch a geometry: draw it with patches as pixels."""
    features = require("rasterio.features", extra="geo")
    affine = require("affine", extra="geo")
    if grid.step != grid.patch:
        raise UsageError("patches under polygons need a grid without stride")
    coarse = affine.Affine(*scale_affine(frame.affine, grid.patch.x, grid.patch.y))
    drawn = features.rasterize(
        [(geometry, 1) for geometry in geometries],
        out_shape=(grid.rows, grid.columns),
        transform=coarse,
        all_touched=True,
        dtype="uint8",
    )
    found = [int(index) for index in drawn.reshape(-1).nonzero()[0]]
    if not found:
        raise GeoError("no patch of the grid touches the polygons. Check their CRS")
    return found
