"""The last steps of the demo: back to the map, held against the raster itself, and drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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


def name_of(label: str) -> str:
    """Return what a class is called: the labels know no bare soil, which looks most like Urban."""
    return "Urban or bare soil" if label == "Urban" else label


def _read(path: Path) -> NDArray[Any]:
    with require("rasterio", extra="geo").open(path) as file:
        bands: NDArray[Any] = file.read()
        return bands


def back_to_the_map(road: Road) -> str:
    """(g) Import the predictions, and compare with the model run straight on the raster."""
    labels = road.model.labels
    _import(
        road,
        road.map,
        bands=["class"],
        dtype="uint8",
        nodata=0,
        class_names={k: name_of(label) for k, label in enumerate(labels, 1)},
        colors={k: COLOURS[label] for k, label in enumerate(labels, 1)},
    )
    scores = [f"p_{label.lower()}" for label in labels]
    _import(road, road.probabilities, bands=scores, nodata=float("nan"))
    margin = road.grid.margin
    around = ((0, 0), (margin.y, margin.y), (margin.x, margin.x))
    direct = judge(road.model, np.pad(road.pixels, around).astype(np.float32))
    valid = _valid(road)
    must(np.array_equal(_read(road.map)[0], np.where(valid, classes(direct), 0)), "classes")
    expected = np.where(valid, direct, np.nan)
    must(np.array_equal(_read(road.probabilities), expected, equal_nan=True), "probabilities")
    return (
        f"landcover.tif and probabilities.tif equal the model run straight on the raster on all "
        f"{int(valid.sum()):,} covered pixels, and are nodata where it is masked or not covered"
    )


def _import(road: Road, out: Path, **options: Any) -> None:
    """Import features of the predictions on the grid of the whole scene."""
    predictions = sorted((road.folder / "predictions").glob("*.tfrecord.gz"))
    mixer = road.folder / "export" / "scene-mixer.json"
    options |= {"extent": "source", "overwrite": True}
    report = geo.import_image(predictions, out, mixer=mixer, **options)
    road.reports[out.name] = report


def _valid(road: Road) -> NDArray[np.bool_]:
    """Return which pixels the map must have: covered by a patch and not masked."""
    valid: NDArray[np.bool_] = np.all(road.pixels, axis=0)
    covered = road.grid.covered
    valid[covered.y :] = False
    valid[:, covered.x :] = False
    return valid


def account_of(road: Road) -> Account:
    """Take the account of the scene from the reports of export and import."""
    placed = road.reports[road.map.name]
    coverage = road.grid.coverage
    return Account(
        patches=placed.patches,
        pixels=coverage.pixels,
        covered=coverage.covered,
        dropped=coverage.dropped,
        masked=placed.masked,
        hectares={row.name: row.hectares for row in placed.classes},
    )


def draw_picture(road: Road, account: Account) -> str:
    """(h) Draw scene and map side by side."""
    rows = [
        LegendRow(name_of(label), COLOURS[label], account.hectares.get(name_of(label), 0.0))
        for label in road.model.labels
    ]
    draw(
        road.folder / "demo.png",
        road.pixels,
        _read(road.map)[0],
        legend=rows,
        patch=PATCH,
        counts=XY(road.grid.columns, road.grid.rows),
        pixel=scene.PIXEL,
    )
    return f"demo.png: the scene in true colour beside the map (kernel {KERNEL}: no seams)"
