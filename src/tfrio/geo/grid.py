"""Pure arithmetic of patch grids: where each patch lies, what it owns, what is left out.

Nothing here reads a file. Pairs are ``XY`` (x, y), windows count pixels from the raster's
upper left corner and may reach outside the raster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from tfrio.errors import UsageError
from tfrio.types import XY, Affine6, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Axis",
    "Coverage",
    "Edge",
    "PatchGrid",
    "Window",
    "kernel_candidates",
    "margin_of",
    "scale_affine",
    "shift_affine",
]

Edge: TypeAlias = Literal["drop", "pad", "shift"]


@dataclass(frozen=True, slots=True)
class Window:
    """A rectangle of pixels: its upper left pixel and its extent."""

    column: int
    row: int
    width: int
    height: int

    @property
    def shape(self) -> Shape:
        """Return the extent as an array shape."""
        return Shape(self.height, self.width)

    @property
    def pixels(self) -> int:
        """Return the number of pixels."""
        return self.width * self.height

    @property
    def right(self) -> int:
        """Return the first column to the right of the window."""
        return self.column + self.width

    @property
    def bottom(self) -> int:
        """Return the first row below the window."""
        return self.row + self.height

    @property
    def slices(self) -> tuple[slice, slice]:
        """Return (rows, columns) to index an array (..., height, width) of the raster."""
        return slice(self.row, self.bottom), slice(self.column, self.right)

    def grown(self, margin: XY) -> Window:
        """Return the window with a margin on each of its four sides."""
        return Window(
            self.column - margin.x,
            self.row - margin.y,
            self.width + 2 * margin.x,
            self.height + 2 * margin.y,
        )

    def moved(self, columns: int, rows: int) -> Window:
        """Return the window moved right and down by so many pixels."""
        return Window(self.column + columns, self.row + rows, self.width, self.height)

    def clipped(self, size: XY) -> Window:
        """Return the part inside a raster of this size (extent zero where nothing is)."""
        column = min(max(self.column, 0), size.x)
        row = min(max(self.row, 0), size.y)
        right = min(max(self.right, column), size.x)
        bottom = min(max(self.bottom, row), size.y)
        return Window(column, row, right - column, bottom - row)


@dataclass(frozen=True, slots=True)
class Axis:
    """Patches along one axis of a raster.

    Args:
        length: Pixels of the raster along this axis.
        patch: Pixels of a patch, without margin.
        stride: Pixels from the start of one patch to the start of the next.
        edge: What happens to the last pixels when patches do not divide the length.
    """

    length: int
    patch: int
    stride: int
    edge: Edge = "drop"

    @property
    def count(self) -> int:
        """Return the number of patches."""
        room = self.length - self.patch
        if self.edge == "drop":
            return room // self.stride + 1 if room >= 0 else 0
        reaching = -(-max(room, 0) // self.stride) + 1
        beginning_inside = -(-self.length // self.stride)
        return min(reaching, beginning_inside)

    def start(self, index: int) -> int:
        """Return the first pixel of a patch."""
        start = index * self.stride
        if self.edge == "shift":
            return min(start, max(self.length - self.patch, 0))
        return start

    def owned(self, index: int) -> tuple[int, int]:
        """Return first and past-the-last pixel that this patch is the first to cover."""
        start = self.start(index)
        end = min(start + self.patch, self.length)
        if index:
            start = min(max(start, self.start(index - 1) + self.patch), end)
        return start, end

    @property
    def reach(self) -> int:
        """Return the first pixel past the last patch, at most the length."""
        return self.owned(self.count - 1)[1] if self.count else 0

    @property
    def covered(self) -> int:
        """Return the number of pixels in at least one patch."""
        if self.stride <= self.patch or self.count < 2:
            return self.reach
        first, last = self.owned(self.count - 1)
        return (self.count - 1) * self.patch + last - first


@dataclass(frozen=True, slots=True)
class Coverage:
    """An account of pixels: every pixel of the raster is either covered or dropped.

    Args:
        pixels: Pixels of the raster.
        covered: Pixels in at least one patch.
        right: Columns beyond the last patch on the right.
        bottom: Rows beyond the last patch at the bottom.
        padded: Patch pixels outside the raster, margins not counted.
        repeated: Patch pixels that an earlier patch has too, margins not counted.
    """

    pixels: int
    covered: int
    right: int
    bottom: int
    padded: int
    repeated: int

    @property
    def dropped(self) -> int:
        """Return the number of pixels in no patch."""
        return self.pixels - self.covered

    def __str__(self) -> str:
        """Return the account as one line."""
        if not self.dropped:
            return f"all {self.pixels:,} pixels covered"
        parts = []
        if self.right:
            parts.append(f"right {self.right} col{'s' * (self.right != 1)}")
        if self.bottom:
            parts.append(f"bottom {self.bottom} row{'s' * (self.bottom != 1)}")
        where = f" ({', '.join(parts)})" if parts else " (between patches)"
        return f"{self.dropped:,} of {self.pixels:,} pixels dropped{where}"


@dataclass(frozen=True, slots=True)
class PatchGrid:
    """A raster cut into patches, counted row by row from the upper left corner.

    Args:
        size: Raster (x, y) in pixels.
        patch: Patch (x, y) in pixels, without margin.
        kernel: Kernel (x, y) in pixels; each side of a patch gets half of it, rounded down.
        stride: Step (x, y) from patch to patch; the patch itself by default.
        edge: ``"drop"`` leaves out patches that do not fit, ``"pad"`` lets them reach beyond
            the raster, ``"shift"`` moves the last ones inward.

    Raises:
        UsageError: A number is not positive or the edge rule is unknown.
    """

    size: XY
    patch: XY
    kernel: XY = XY(1, 1)
    stride: XY | None = None
    edge: Edge = "drop"

    def __post_init__(self) -> None:
        """Check every number."""
        for name in ("size", "patch", "kernel"):
            object.__setattr__(self, name, XY.of(getattr(self, name), name=name))
        if self.stride is not None:
            object.__setattr__(self, "stride", XY.of(self.stride, name="stride"))
        if self.edge not in get_args(Edge):
            raise UsageError(f'edge must be "drop", "pad" or "shift"; got {self.edge!r}')

    @property
    def step(self) -> XY:
        """Return the step (x, y) from patch to patch."""
        return self.stride or self.patch

    @property
    def margin(self) -> XY:
        """Return the margin (x, y) on each side of a patch."""
        return margin_of(self.kernel)

    @property
    def padded(self) -> XY:
        """Return the stored patch (x, y): patch and both margins."""
        return XY(self.patch.x + 2 * self.margin.x, self.patch.y + 2 * self.margin.y)

    @property
    def across(self) -> Axis:
        """Return the patches along x."""
        return Axis(self.size.x, self.patch.x, self.step.x, self.edge)

    @property
    def down(self) -> Axis:
        """Return the patches along y."""
        return Axis(self.size.y, self.patch.y, self.step.y, self.edge)

    @property
    def columns(self) -> int:
        """Return the number of patches in a row."""
        return self.across.count

    @property
    def rows(self) -> int:
        """Return the number of rows of patches."""
        return self.down.count

    @property
    def total(self) -> int:
        """Return the number of patches."""
        return self.columns * self.rows

    @property
    def regular(self) -> bool:
        """Tell whether a mixer can describe the grid: patches side by side from the origin."""
        shifted = self.edge == "shift" and bool(
            self.size.x % self.patch.x or self.size.y % self.patch.y
        )
        return self.step == self.patch and not shifted

    def place(self, index: int) -> tuple[int, int]:
        """Return (row, column) of a patch in the grid of patches.

        Raises:
            IndexError: There is no such patch.
        """
        if not 0 <= index < self.total:
            raise IndexError(f"patch {index} of {self.total}")
        return divmod(index, self.columns)

    def window(self, index: int) -> Window:
        """Return the pixels of a patch, without margin."""
        row, column = self.place(index)
        return Window(self.across.start(column), self.down.start(row), self.patch.x, self.patch.y)

    def padded_window(self, index: int) -> Window:
        """Return the pixels of a patch with its margins."""
        return self.window(index).grown(self.margin)

    def owned(self, index: int) -> Window:
        """Return the pixels this patch is the first to cover: disjoint, their union all covered."""
        row, column = self.place(index)
        left, right = self.across.owned(column)
        top, bottom = self.down.owned(row)
        return Window(left, top, right - left, bottom - top)

    def windows(self) -> Iterator[Window]:
        """Yield the window of each patch in order, without margin."""
        return (self.window(index) for index in range(self.total))

    def affine(self, raster: Affine6, index: int) -> Affine6:
        """Return the affine of a patch without its margin."""
        window = self.window(index)
        return shift_affine(raster, window.column, window.row)

    @property
    def covered(self) -> XY:
        """Return the extent (x, y) from the origin to the last covered pixel."""
        return XY(self.across.reach, self.down.reach) if self.total else XY(0, 0)

    @property
    def coverage(self) -> Coverage:
        """Return the account of pixels."""
        across, down = self.across, self.down
        stored = self.total * self.patch.x * self.patch.y
        inside = _inside(across) * _inside(down)
        covered = across.covered * down.covered
        return Coverage(
            pixels=self.size.x * self.size.y,
            covered=covered,
            right=self.size.x - across.reach,
            bottom=self.size.y - down.reach,
            padded=stored - inside,
            repeated=inside - covered,
        )


def _inside(axis: Axis) -> int:
    """Count patch pixels within the raster along one axis, repeated ones each time."""
    if not axis.count:
        return 0
    last = axis.count - 1
    ends = (min(axis.start(i) + axis.patch, axis.length) - axis.start(i) for i in range(last + 1))
    return sum(ends)


def margin_of(kernel: XY) -> XY:
    """Return the margin on each side: half the kernel, rounded down, as Earth Engine does."""
    return XY(kernel.x // 2, kernel.y // 2)


def shift_affine(affine: Affine6, columns: float, rows: float) -> Affine6:
    """Move the origin of an affine right and down.

    Args:
        affine: Terms from pixel to map.
        columns: Pixels to the right.
        rows: Pixels down.

    Returns:
        The affine whose pixel (0, 0) was (columns, rows).
    """
    a, b, c, d, e, f = affine
    return Affine6(a, b, a * columns + b * rows + c, d, e, d * columns + e * rows + f)


def scale_affine(affine: Affine6, columns: float, rows: float) -> Affine6:
    """Return the affine of larger pixels with the same origin.

    Args:
        affine: Terms from pixel to map.
        columns: Old pixels in the width of a new one.
        rows: Old pixels in its height.
    """
    a, b, c, d, e, f = affine
    return Affine6(a * columns, b * rows, c, d * columns, e * rows, f)


def kernel_candidates(patch: XY, values: int) -> list[XY]:
    """List the even kernels with which a stored patch has this many values.

    Args:
        patch: Patch (x, y) without margin.
        values: Values stored per patch and band.

    Returns:
        Kernels (x, y), 0 where there is no margin along an axis, smallest x first; empty
        when no kernel fits. (An odd kernel stores what the even one below it does.)
    """
    found = []
    for width in range(patch.x, values // patch.y + 1, 2):
        height, rest = divmod(values, width)
        if not rest and height >= patch.y and (height - patch.y) % 2 == 0:
            found.append(XY(width - patch.x, height - patch.y))
    return found
