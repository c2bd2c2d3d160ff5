"""The last steps of the demo: back to the map, held against the raster itself, and drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfrio import geo
from tfrio.cli.demo import scene
from tfrio.cli.demo.picture import COLOURS, LegendRow, draw
from tfrio.cli.demo.road import KERNEL, PATCH, classes, judge, must
from tfrio.errors import require
from tfrio.types import XY

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tfrio.cli.demo.road import Road

__all__ = ["Account", "account_of", "back_to_the_map", "draw_picture"]

_NAMES = {"Urban": "Urban or bare soil"}
"""The labels know no bare soil; its spectrum is nearest to the urban one."""


@dataclass(frozen=True, slots=True)
class Account:
    """Where every pixel of the scene went.

    Args:
        patches: Patches written and placed again.
        pixels: Pixels of the scene.
        covered: Pixels in a patch.
        dropped: Pixels in no patch.
        masked: Covered pixels without data.
        hectares: Area of each class on the map.
    """

    patches: int
    pixels: int
    covered: int
    dropped: int
    masked: int
    hectares: dict[str, float]


def _read(path: Path) -> NDArray[np.float32]:
    with require("rasterio", extra="geo").open(path) as file:
        bands: NDArray[np.float32] = file.read()
        return bands


def back_to_the_map(road: Road) -> str:
    """(g) Import the predictions, and compare with the model run straight on the raster."""
    predictions = sorted((road.folder / "predictions").glob("*.tfrecord.gz"))
    mixer = road.folder / "export" / "scene-mixer.json"
    geo.import_image(
        predictions,
        road.map,
        mixer=mixer,
        bands=["class"],
        dtype="uint8",
        nodata=0,
        extent="source",
    )
    names = [f"p_{label.lower()}" for label in road.model.labels]
    geo.import_image(
        predictions,
        road.probabilities,
        mixer=mixer,
        bands=names,
        nodata=float("nan"),
        extent="source",
    )
    margin = road.grid.margin
    around = ((0, 0), (margin.y, margin.y), (margin.x, margin.x))
    direct = judge(road.model, np.pad(road.pixels, around).astype(np.float32))
    valid = _valid(road)
    expected = np.where(valid, classes(direct), 0)
    must(np.array_equal(_read(road.map)[0], expected), "classes")
    must(
        np.array_equal(_read(road.probabilities), np.where(valid, direct, np.nan), equal_nan=True),
        "probabilities",
    )
    return (
        f"landcover.tif and probabilities.tif equal the model run straight on the raster on all "
        f"{int(valid.sum()):,} covered pixels, and are nodata where it is masked or not covered"
    )


def _valid(road: Road) -> NDArray[np.bool_]:
    """Return which pixels the map must have: covered by a patch and not masked."""
    valid: NDArray[np.bool_] = np.all(road.pixels, axis=0)
    covered = road.grid.covered
    valid[covered.y :] = False
    valid[:, covered.x :] = False
    return valid


def account_of(road: Road) -> Account:
    """Count where every pixel of the scene went."""
    coverage = road.grid.coverage
    counts = np.bincount(_read(road.map)[0].astype(np.uint8).ravel(), minlength=4)
    hectare = scene.PIXEL**2 / 10_000
    return Account(
        patches=road.grid.total,
        pixels=coverage.pixels,
        covered=coverage.covered,
        dropped=coverage.dropped,
        masked=coverage.covered - int(counts[1:].sum()),
        hectares={
            _NAMES.get(label, label): float(counts[k] * hectare)
            for k, label in enumerate(road.model.labels, 1)
        },
    )


def draw_picture(road: Road, account: Account) -> str:
    """(h) Draw scene and map side by side."""
    colours = [COLOURS[label] for label in road.model.labels]
    rows = [
        LegendRow(name, colour, area)
        for (name, area), colour in zip(account.hectares.items(), colours, strict=True)
    ]
    draw(
        road.folder / "demo.png",
        road.pixels,
        _read(road.map)[0].astype(np.uint8),
        legend=rows,
        patch=PATCH,
        counts=XY(road.grid.columns, road.grid.rows),
        pixel=scene.PIXEL,
    )
    return f"demo.png: the scene in true colour beside the map (kernel {KERNEL}: no seams)"
