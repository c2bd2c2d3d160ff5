"""Draw docs/pictures/patches.svg: a raster cut into patches, one with its margin.

Run it with: python docs/pictures/draw_patches.py
"""

from __future__ import annotations

from pathlib import Path

from tfrio.geo.grid import PatchGrid, Window
from tfrio.types import XY

GRID = PatchGrid(XY(300, 200), XY(72, 48), XY(33, 17))
CHOSEN = 6  # the patch drawn with its margin
SCALE = 2
LEFT, TOP = 20, 46


def rectangle(window: Window, style: str) -> str:
    """Return the SVG rectangle of a window of pixels."""
    x, y = LEFT + window.column * SCALE, TOP + window.row * SCALE
    size = f'width="{window.width * SCALE}" height="{window.height * SCALE}"'
    return f'<rect x="{x}" y="{y}" {size} {style}/>'


def text(x: float, y: float, words: str, style: str = "") -> str:
    """Return a line of text, its baseline at (x, y) screen pixels."""
    return f'<text x="{x:g}" y="{y:g}" {style}>{words}</text>'


def numbers() -> list[str]:
    """Write the index of each patch at its upper left corner."""
    return [
        text(LEFT + w.column * SCALE + 6, TOP + w.row * SCALE + 18, str(i), 'fill="#56616b"')
        for i, w in enumerate(GRID.windows())
    ]


def notes() -> list[str]:
    """Explain what is drawn, to the right of the raster."""
    x = LEFT + GRID.size.x * SCALE + 24
    grid, lines = GRID, []
    account = [
        ("#56616b", f"raster {grid.size}"),
        ("#2c7f7f", f"{grid.total} patches of {grid.patch}"),
        ("#c2571a", f"kernel {grid.kernel}: margin {grid.margin}"),
        ("#c2571a", f"stored: {grid.padded} pixels"),
        ("#8a8f94", f"dropped: right {grid.coverage.right} columns,"),
        ("#8a8f94", f"bottom {grid.coverage.bottom} rows"),
    ]
    for number, (colour, words) in enumerate(account):
        lines.append(text(x, TOP + 24 + 26 * number, words, f'fill="{colour}"'))
    return lines


def drawing() -> str:
    """Return the whole picture as SVG."""
    width, height = LEFT * 2 + GRID.size.x * SCALE + 260, TOP + GRID.size.y * SCALE + 20
    whole = Window(0, 0, GRID.size.x, GRID.size.y)
    patch = 'fill="#e4f1f0" stroke="#2c7f7f"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="16">',
        f'<rect width="{width}" height="{height}" fill="#fcfbf8"/>',
        text(LEFT, 28, "Patches count row by row from the upper left corner", 'fill="#26333d"'),
        rectangle(whole, 'fill="#e6e4df" stroke="#8a8f94"'),
        *(rectangle(window, patch) for window in GRID.windows()),
        rectangle(
            GRID.padded_window(CHOSEN),
            'fill="#f4b98a" fill-opacity="0.55" stroke="#c2571a" stroke-dasharray="6 4"',
        ),
        rectangle(GRID.window(CHOSEN), 'fill="#f4a261" stroke="#c2571a" stroke-width="2"'),
        *numbers(),
        *notes(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("patches.svg").write_text(drawing(), encoding="utf-8")
