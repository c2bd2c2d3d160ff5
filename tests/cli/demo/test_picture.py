"""The picture shows scene and map in their places and colours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tfrio.cli.demo import picture
from tfrio.types import XY

Image = pytest.importorskip("PIL.Image")


def test_both_panels_hold_their_pixels(tmp_path: Path) -> None:
    scene = np.full((4, 60, 90), 500, np.uint16)
    scene[:, :10, :10] = 0
    classes = np.ones((60, 90), np.uint8)
    classes[30:, 45:] = 2
    classes[:10, :10] = 0
    rows = [
        picture.LegendRow("Vegetation", picture.COLOURS["Vegetation"], 12.5),
        picture.LegendRow("Water", picture.COLOURS["Water"], 3.0),
    ]
    path = tmp_path / "demo.png"
    picture.draw(path, scene, classes, legend=rows, patch=XY(30, 20), counts=XY(3, 3), pixel=10.0)
    image = np.asarray(Image.open(path))
    height, width = picture.HEAD + 120 + picture.FOOT, 2 * (picture.MARGIN + 180) + picture.GAP
    assert image.shape == (height, width, 3)
    left, right = picture.MARGIN, picture.MARGIN + 180 + picture.GAP
    assert tuple(image[picture.HEAD + 4, left + 4]) == picture.EMPTY
    assert tuple(image[picture.HEAD + 4, right + 4]) == picture.EMPTY
    assert tuple(image[picture.HEAD + 40, right + 60]) == picture.COLOURS["Vegetation"]
    assert tuple(image[picture.HEAD + 100, right + 150]) == picture.COLOURS["Water"]
    grey = image[picture.HEAD + 50, left + 50]
    assert grey[0] == grey[1] == grey[2]
