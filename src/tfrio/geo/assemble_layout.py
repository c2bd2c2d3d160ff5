"""Pure arithmetic: what the values of one feature in one record mean as planes of pixels.

A prediction may hold the patch, the patch with its margins, several planes of either, one value
for the whole patch or a coarser grid. A number of values that can be read in two ways is never
guessed: the error lists the ways.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tfrio.errors import GeoError
from tfrio.geo.grid import kernel_candidates, margin_of
from tfrio.types import XY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["Layout", "Reading", "planes", "read_layout", "readings"]

Layout: TypeAlias = Literal["chw", "hwc"]


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read the values of a feature.

    Args:
        depth: Planes per patch.
        stored: Pixels (x, y) of one plane as stored, margins included.
        margin: Pixels (x, y) to cut off on each side.
        scale: Map pixels (x, y) that one stored pixel stands for.
    """

    depth: int
    stored: XY
    margin: XY = XY(0, 0)
    scale: XY = XY(1, 1)

    @property
    def size(self) -> XY:
        """Return the pixels (x, y) of one plane without margins."""
        return XY(self.stored.x - 2 * self.margin.x, self.stored.y - 2 * self.margin.y)

    @property
    def values(self) -> int:
        """Return the number of values per record."""
        return self.depth * self.stored.x * self.stored.y

    def __str__(self) -> str:
        """Return a short text: ``3 planes of 6x5 (kernel 2x2)``."""
        many = f"{self.depth} planes of " if self.depth > 1 else ""
        if self.scale != XY(1, 1):
            return f"{many}{self.stored} (one value for {self.scale} pixels)"
        if self.margin == XY(0, 0):
            return f"{many}{self.stored}"
        return f"{many}{self.stored} (kernel {2 * self.margin.x}x{2 * self.margin.y})"


def readings(
    values: int, patch: XY, *, kernel: XY | None, depth: int | None, cells: XY | None = None
) -> list[Reading]:
    """List the ways to read so many values.

    Args:
        values: Values per record.
        patch: Patch (x, y) without margins.
        kernel: Kernel (x, y), None when nothing tells it.
        depth: Planes per patch, None when nothing tells it.
        cells: Cells (x, y) per patch of a coarser grid, None to try the plausible ones.

    Returns:
        Each way once, the patch itself first.
    """
    if cells is not None:
        return list(_coarse(values, patch, depth, [cells]))
    whole = [*_sized(values, patch, XY(0, 0), depth), *_padded(values, patch, kernel, depth)]
    return whole or list(_coarse(values, patch, depth or 1, _cell_sizes(patch)))


def _sized(values: int, stored: XY, margin: XY, depth: int | None) -> Iterator[Reading]:
    """Yield the reading as whole planes of this size, if it is one."""
    planes, rest = divmod(values, stored.x * stored.y)
    if not rest and planes and depth in (None, planes):
        yield Reading(planes, stored, margin)


def _padded(values: int, patch: XY, kernel: XY | None, depth: int | None) -> Iterator[Reading]:
    if kernel is not None:
        margin = margin_of(kernel)
        if margin != XY(0, 0):
            yield from _sized(values, _grown(patch, margin), margin, depth)
        return
    planes, rest = divmod(values, depth or 1)
    if rest:
        return
    for candidate in kernel_candidates(patch, planes):
        # A margin wider than half the patch, or on one axis only, occurs in practice only when
        # somebody chose it; taking it for granted would let a wrong length pass as a patch.
        if 0 < candidate.x <= patch.x and 0 < candidate.y <= patch.y:
            margin = margin_of(candidate)
            yield Reading(depth or 1, _grown(patch, margin), margin)


def _grown(patch: XY, margin: XY) -> XY:
    return XY(patch.x + 2 * margin.x, patch.y + 2 * margin.y)


def _cell_sizes(patch: XY) -> Iterator[XY]:
    """Yield grids of square cells that divide the patch, and the single cell."""
    for side in range(2, min(patch.x, patch.y) + 1):
        if patch.x % side == 0 and patch.y % side == 0:
            yield XY(patch.x // side, patch.y // side)
    if patch.x != patch.y:
        yield XY(1, 1)


def _coarse(values: int, patch: XY, depth: int | None, cells: Iterator[XY] | list[XY]) -> Any:
    for grid in cells:
        if patch.x % grid.x == 0 and patch.y % grid.y == 0:
            scale = XY(patch.x // grid.x, patch.y // grid.y)
            for reading in _sized(values, grid, XY(0, 0), depth):
                yield Reading(reading.depth, grid, XY(0, 0), scale)


def read_layout(
    feature: str,
    values: int,
    patch: XY,
    *,
    kernel: XY | None = None,
    depth: int | None = None,
    cells: XY | None = None,
    where: str = "predictions",
) -> Reading:
    """Decide how to read a feature, or say why that cannot be decided.

    Args:
        feature: Name of the feature, for the error.
        values: Values per record.
        patch: Patch (x, y) without margins.
        kernel: Kernel (x, y), None to infer it.
        depth: Planes per patch, None to infer it.
        cells: Cells (x, y) per patch of a coarser grid.
        where: File and record, for the error.

    Returns:
        The only reading.

    Raises:
        GeoError: No reading fits, or several do.
    """
    found = readings(values, patch, kernel=kernel, depth=depth, cells=cells)
    if len(found) == 1:
        return found[0]
    start = f"{where}: feature '{feature}' has {values:,} values per patch"
    if found:
        ways = "; ".join(str(reading) for reading in found)
        raise GeoError(
            f"{start}, which can be read as {ways}. Pass kernel=(x, y) or depth= to say which",
            feature=feature,
            got=values,
        )
    raise GeoError(
        f"{start}: {_expected(patch, kernel, depth, cells)}. "
        f"{_advice(values, patch, kernel, depth)}",
        feature=feature,
        expected=patch.x * patch.y * (depth or 1),
        got=values,
    )


def _expected(patch: XY, kernel: XY | None, depth: int | None, cells: XY | None) -> str:
    many = f"{depth} planes of " if depth not in (None, 1) else ""
    if cells is not None:
        return f"not {many}a grid of {cells} cells that divides the patch {patch}"
    if kernel is None:
        return f"neither {many}{patch} nor that patch with a margin"
    padded = _grown(patch, margin_of(kernel))
    return f"not {many}{patch}" if padded == patch else f"neither {many}{patch} nor {padded}"


def _advice(values: int, patch: XY, kernel: XY | None, depth: int | None) -> str:
    if kernel is None:
        lopsided = kernel_candidates(patch, values // (depth or 1))
        fits = ", ".join(f"({max(k.x, 1)}, {max(k.y, 1)})" for k in lopsided)
        if fits:
            return f"Only an uncommon kernel fits; if it is right pass kernel={fits}"
    return (
        "Are these predictions of this export? Write whole patches, row by row, pass kernel=, "
        "depth= or cells= if they are another form, or name other features with bands="
    )


def planes(values: NDArray[Any], reading: Reading, layout: Layout = "chw") -> NDArray[Any]:
    """Turn flat values into planes without margins.

    Args:
        values: Shape (n, values per record).
        reading: How to read a record.
        layout: ``"chw"`` plane after plane (Earth Engine's order), ``"hwc"`` all planes of a
            pixel together.

    Returns:
        A view of shape (n, depth, height, width).
    """
    n, (x, y) = len(values), (reading.stored.x, reading.stored.y)
    if layout == "hwc":
        stacked = values.reshape(n, y, x, reading.depth).transpose(0, 3, 1, 2)
    else:
        stacked = values.reshape(n, reading.depth, y, x)
    margin = reading.margin
    return stacked[:, :, margin.y : y - margin.y, margin.x : x - margin.x]
