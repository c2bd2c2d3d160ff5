"""The demo's picture: the scene in true colour beside the land-cover map, with a legend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import require

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tfrio.types import XY

__all__ = ["COLOURS", "LegendRow", "draw"]

Colour = tuple[int, int, int]

COLOURS: dict[str, Colour] = {
    "Urban": (214, 158, 116),
    "Vegetation": (64, 130, 92),
    "Water": (58, 116, 196),
}
PAPER: Colour = (252, 251, 248)
INK: Colour = (38, 42, 46)
QUIET: Colour = (112, 118, 124)
EMPTY: Colour = (226, 224, 219)

ZOOM = 2  # screen pixels per pixel of the scene
MARGIN = 36
GAP = 28
HEAD = 116  # height above the panels
FOOT = 136  # height below the panels


@dataclass(frozen=True, slots=True)
class LegendRow:
    """One class in the legend: its name on the picture, its colour, its area in hectares."""

    text: str
    colour: Colour
    hectares: float


def _true_colour(scene: NDArray[np.uint16]) -> NDArray[np.uint8]:
    """Stretch red, green, blue (bands 3, 2, 1): linear to reflectance 0.2, then gamma 1.6."""
    reflectance = scene[[2, 1, 0]].astype(np.float32) / 10_000
    image = np.clip(reflectance / 0.2, 0, 1) ** (1 / 1.6) * 255
    image = np.where(scene.any(axis=0), image, np.array(EMPTY)[:, None, None])
    return image.astype(np.uint8).transpose(1, 2, 0)


def _class_colours(classes: NDArray[np.uint8], colours: list[Colour]) -> NDArray[np.uint8]:
    """Colour the map: value 0 is nodata, value k the k-th class."""
    palette = np.array([EMPTY, *colours], np.uint8)
    painted: NDArray[np.uint8] = palette[classes]
    return painted


class _Page:
    """A picture under construction, with the few strokes that the demo needs."""

    def __init__(self, width: int, height: int) -> None:
        self._image_module = require("PIL.Image", extra="demo")
        self._fonts = require("PIL.ImageFont", extra="demo")
        self.image: Any = self._image_module.new("RGB", (width, height), PAPER)
        self.pen: Any = require("PIL.ImageDraw", extra="demo").Draw(self.image, "RGBA")

    def text(self, at: tuple[int, int], text: str, size: int, colour: Colour = INK) -> None:
        """Write a line; `at` is its upper left corner."""
        self.pen.text(at, text, fill=colour, font=self._fonts.load_default(size=size))

    def panel(self, at: tuple[int, int], pixels: NDArray[np.uint8]) -> None:
        """Paste an image, enlarged, with a thin frame."""
        height, width = pixels.shape[0] * ZOOM, pixels.shape[1] * ZOOM
        large = self._image_module.fromarray(pixels).resize((width, height), 0)
        self.image.paste(large, at)
        self.pen.rectangle([at[0] - 1, at[1] - 1, at[0] + width, at[1] + height], outline=QUIET)

    def grid(self, at: tuple[int, int], patch: XY, counts: XY) -> None:
        """Draw the borders of the patches over a panel."""
        right, bottom = counts.x * patch.x * ZOOM, counts.y * patch.y * ZOOM
        for column in range(1, counts.x + 1):
            x = at[0] + column * patch.x * ZOOM
            self.pen.line([x, at[1], x, at[1] + bottom], fill=(255, 255, 255, 90))
        for row in range(1, counts.y + 1):
            y = at[1] + row * patch.y * ZOOM
            self.pen.line([at[0], y, at[0] + right, y], fill=(255, 255, 255, 90))

    def legend(self, at: tuple[int, int], rows: list[LegendRow]) -> None:
        """Draw one swatch, name and area a row, the areas right-aligned."""
        font = self._fonts.load_default(size=17)
        for number, row in enumerate(rows):
            y = at[1] + number * 27
            self.pen.rounded_rectangle([at[0], y, at[0] + 26, y + 17], 4, fill=row.colour)
            self.text((at[0] + 38, y - 2), row.text, 17)
            area = f"{row.hectares:,.1f} ha"
            self.pen.text((at[0] + 400, y - 2), area, fill=QUIET, font=font, anchor="ra")

    def scale_bar(self, at: tuple[int, int], metres: int, pixel: float) -> None:
        """Draw a bar of so many metres."""
        length = round(metres / pixel * ZOOM)
        self.pen.rectangle([at[0], at[1], at[0] + length, at[1] + 5], fill=INK)
        self.text((at[0] + length + 12, at[1] - 9), f"{metres / 1000:g} km", 17)


def draw(
    path: Path,
    scene: NDArray[np.uint16],
    classes: NDArray[np.uint8],
    *,
    legend: list[LegendRow],
    patch: XY,
    counts: XY,
    pixel: float,
) -> None:
    """Draw scene and map side by side.

    Args:
        path: The PNG to write.
        scene: Digital numbers, shape (4, height, width), 0 where masked.
        classes: Shape (height, width): 0 where there is no data, k for the k-th legend row.
        legend: The classes, in the order of their values.
        patch: Size of a patch in pixels.
        counts: Patches along x and y.
        pixel: Size of a pixel in metres.
    """
    height, width = classes.shape[0] * ZOOM, classes.shape[1] * ZOOM
    page = _Page(2 * (MARGIN + width) + GAP, HEAD + height + FOOT)
    left, right = (MARGIN, HEAD), (MARGIN + width + GAP, HEAD)
    page.text((MARGIN, 24), "From TFRecord back to the map", 30)
    page.text((MARGIN, HEAD - 30), f"Sentinel-2, true colour, cut into {patch} patches", 17, QUIET)
    page.text((right[0], HEAD - 30), "Land cover, put together from predictions", 17, QUIET)
    page.panel(left, _true_colour(scene))
    page.grid(left, patch, counts)
    page.panel(right, _class_colours(classes, [row.colour for row in legend]))
    below = HEAD + height + 22
    page.scale_bar((MARGIN, below + 6), 1000, pixel)
    page.text((MARGIN, below + 38), "Grey: masked or outside whole patches.", 17, QUIET)
    page.text(
        (MARGIN, below + 64), "The source has no georeference: the grid is nominal.", 17, QUIET
    )
    page.legend((right[0], below), legend)
    page.image.save(path)
