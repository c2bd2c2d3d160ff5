"""Draw docs/pictures/layouts.svg: one 2 x 2 patch with a time series, as tensor and as sequences.

python docs/pictures/draw_layouts.py
"""

from __future__ import annotations

from pathlib import Path

CELL = 30
COLOURS = ("#e4f1f0", "#c9e3e1", "#a5d0cd")  # one a step
INK = "#2c7f7f"
PIXELS = "abcd"  # row-major in the patch of two columns and two rows
STEPS = 3


def cell(x: float, y: float, words: str, colour: str) -> str:
    """Return one value as a square with its name."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{CELL}" height="{CELL}" fill="{colour}" stroke="{INK}"/>'
        f'<text x="{x + CELL / 2:g}" y="{y + 20:g}" text-anchor="middle">{words}</text>'
    )


def note(x: float, y: float, words: str, colour: str = "#56616b") -> str:
    """Return a line of text."""
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}">{words}</text>'


def source() -> list[str]:
    """Draw the three steps of the patch, one behind the other."""
    parts = [note(20, 40, "array band ndvi,"), note(20, 58, "patch 2x2, 3 steps")]
    for step in reversed(range(STEPS)):
        left, top = 30 + 34 * step, 132 - 26 * step
        for number, pixel in enumerate(PIXELS):
            x, y = left + CELL * (number % 2), top + CELL * (number // 2)
            parts.append(cell(x, y, f"{pixel}{step}", COLOURS[step]))
    return [*parts, note(20, 222, "a b above c d; steps 0 1 2")]


def tensor() -> list[str]:
    """Draw the list of the tensor: step after step."""
    parts = [note(250, 40, "tensor: one list per patch, step after step [3, 2 x 2]")]
    for step in range(STEPS):
        for number, pixel in enumerate(PIXELS):
            x = 250 + CELL * (len(PIXELS) * step + number)
            parts.append(cell(x, 54, f"{pixel}{step}", COLOURS[step]))
    return parts


def sequences() -> list[str]:
    """Draw one record per pixel, one Feature per step."""
    parts = [note(250, 122, "sequence_data: one SequenceExample per pixel, one Feature per step")]
    for number, pixel in enumerate(PIXELS):
        x, y = 250 + 190 * (number % 2), 136 + 48 * (number // 2)
        parts.append(note(x, y + 20, f"record {number}"))
        steps = range(STEPS)
        parts += [cell(x + 68 + 36 * k, y, f"{pixel}{k}", COLOURS[k]) for k in steps]
    return parts


def drawing() -> str:
    """Return the whole picture as SVG."""
    body = "\n".join([*source(), *tensor(), *sequences()])
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 650 240" '
        'font-family="sans-serif" font-size="13" fill="#1f2a30">\n'
        f'<rect width="650" height="240" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    Path(__file__).with_name("layouts.svg").write_text(drawing(), encoding="utf-8")
