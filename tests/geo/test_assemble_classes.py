"""Bands of classes among others: names, colours and areas go to them, or a warning says why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import rasterio

from tests.geo.predictions import MIX_A, write
from tfrio.errors import TfrioWarning
from tfrio.geo import import_image

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ["water", "forest", "city"]
COLORS = ["#0000ff", "#008000", "#c80000"]


def tags(path: Path) -> list[dict[str, str]]:
    with rasterio.open(path) as dataset:
        return [dataset.tags(band) for band in dataset.indexes]


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    """Write a class and two probabilities for each pixel."""
    rows: list[dict[str, Any]] = [
        {
            "p0": np.linspace(0, 1, 12, dtype=np.float32),
            "label": np.arange(12) % 3,
            "p1": np.linspace(1, 0, 12, dtype=np.float32),
        }
        for _ in range(4)
    ]
    return write(tmp_path / "scores.tfrecord.gz", rows)


def test_names_go_to_the_band_of_classes_and_its_areas_are_counted(
    tmp_path: Path, scores: Path
) -> None:
    """A class and its probabilities in one float32 file: the class band is a class band still."""
    out = tmp_path / "map.tif"
    report = import_image(scores, out, mixer=MIX_A, bands=["p0", "label", "p1"], class_names=NAMES)
    named = {f"CLASS_{value}": name for value, name in enumerate(NAMES)}
    assert report.dtype == "float32"
    assert tags(out) == [{}, named, {}]
    assert [(row.band, row.name, row.pixels) for row in report.classes] == [
        ("label", name, 16) for name in NAMES
    ]
    assert report.hectares == pytest.approx(dict.fromkeys(range(3), 16 * 0.09))


def test_masked_pixels_are_no_class_in_a_float_raster(tmp_path: Path, scores: Path) -> None:
    with pytest.warns(TfrioWarning, match="16 predicted pixels"):
        report = import_image(
            scores, tmp_path / "map.tif", mixer=MIX_A, nodata=2, bands=["label"], dtype="float32"
        )
    assert {row.value: row.pixels for row in report.classes} == {0: 16, 1: 16}
    assert report.masked == 16


def test_colours_that_the_raster_cannot_hold_are_a_warning(tmp_path: Path, scores: Path) -> None:
    out = tmp_path / "map.tif"
    with pytest.warns(TfrioWarning, match="one band of uint8 or uint16; this one has 3 of float32"):
        import_image(scores, out, mixer=MIX_A, class_names=NAMES, colors=COLORS)
    import_image(
        scores, out, mixer=MIX_A, bands=["label"], class_names=NAMES, colors=COLORS, overwrite=True
    )
    with rasterio.open(out) as dataset:
        assert dataset.colormap(1)[1] == (0, 128, 0, 255)


def test_names_for_no_class_are_a_warning(tmp_path: Path, scores: Path) -> None:
    out = tmp_path / "map.tif"
    with pytest.warns(TfrioWarning, match="no band holds whole numbers only"):
        import_image(scores, out, mixer=MIX_A, bands=["p0", "p1"], class_names=NAMES)
    assert tags(out) == [{}, {}]


def test_names_tell_that_whole_floats_are_classes(tmp_path: Path) -> None:
    rows = ({"class": (np.arange(12) % 3).astype(np.float32)} for _ in range(4))
    floats, out = write(tmp_path / "floats.tfrecord", rows), tmp_path / "map.tif"
    assert not import_image(floats, out, mixer=MIX_A).classes
    report = import_image(floats, out, mixer=MIX_A, class_names=NAMES, overwrite=True)
    assert [row.name for row in report.classes] == NAMES
    assert report.dtype == "float32"
