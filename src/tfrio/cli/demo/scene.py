"""The demo's inputs out of the package spyndex: a Sentinel-2 scene and labelled spectra."""

from __future__ import annotations

import csv
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import MissingExtraError, require

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BANDS", "SPECTRA_BANDS", "Samples", "load_samples", "load_scene", "write_scene"]

BANDS = ("B2", "B3", "B4", "B8")
"""Blue, green, red and near infrared of Sentinel-2 at 10 m, in the scene's order."""

SPECTRA_BANDS = {"SR_B2": "B2", "SR_B3": "B3", "SR_B4": "B4", "SR_B5": "B8"}
"""Landsat 8's blue, green, red and near infrared, and the Sentinel-2 band each stands for."""

CRS = "EPSG:32723"
ORIGIN = (600_000.0, 7_700_000.0)  # metres; the upper left corner of the nominal grid
PIXEL = 10.0  # metres, the native size of the four bands
MASKED_CORNER = 48  # pixels along each leg of the masked triangle, upper right
NODATA = 0


@dataclass(frozen=True, slots=True)
class Samples:
    """Labelled spectra: reflectance (n, 4) in 0..1, bands as in ``BANDS``, and a label each."""

    reflectance: NDArray[np.float64]
    labels: tuple[str, ...]

    def write_csv(self, path: Path) -> None:
        """Write the spectra as CSV, one column a band and one for the label.

        Args:
            path: The file to write.
        """
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([*BANDS, "class"])
            for values, label in zip(self.reflectance.tolist(), self.labels, strict=True):
                writer.writerow([*values, label])


def _data_file(name: str) -> Any:
    """Read a JSON file of spyndex without importing it (that would pull in what we do not need)."""
    spec = importlib.util.find_spec("spyndex")
    if spec is None or spec.origin is None:
        raise MissingExtraError(
            "the demo's scene comes with the package 'spyndex': pip install 'tfrio[demo]'"
        )
    return json.loads((Path(spec.origin).parent / "data" / name).read_text(encoding="utf-8"))


def load_scene() -> NDArray[np.uint16]:
    """Read the Sentinel-2 scene.

    Returns:
        Digital numbers (reflectance times 10,000), shape (4, 300, 300), with one corner set to
        ``NODATA``, as a cloud mask would.
    """
    scene = np.array(_data_file("S2_10m.json"), dtype=np.uint16)
    rows, columns = np.indices(scene.shape[1:])
    corner = (scene.shape[2] - 1 - columns) + rows < MASKED_CORNER
    scene[:, corner] = NODATA
    return scene


def load_samples() -> Samples:
    """Read the 120 labelled Landsat 8 spectra.

    Returns:
        Reflectance and labels, in the file's order.
    """
    table = _data_file("spectral.json")
    keys = list(table["class"])
    reflectance = [[table[band][key] for band in SPECTRA_BANDS] for key in keys]
    return Samples(np.array(reflectance), tuple(table["class"][key] for key in keys))


def write_scene(path: Path, scene: NDArray[np.uint16]) -> None:
    """Write the scene as a tiled GeoTIFF on a nominal UTM grid (the source has no georeference).

    Args:
        path: The file to write.
        scene: Digital numbers, shape (bands, height, width).
    """
    rasterio = require("rasterio", extra="geo")
    affine = require("affine", extra="geo")
    profile = {
        "driver": "GTiff",
        "count": scene.shape[0],
        "height": scene.shape[1],
        "width": scene.shape[2],
        "dtype": scene.dtype.name,
        "crs": CRS,
        "transform": affine.Affine(PIXEL, 0, ORIGIN[0], 0, -PIXEL, ORIGIN[1]),
        "nodata": NODATA,
        "tiled": True,
        "blockxsize": 256,
        "blockysize": 256,
        "compress": "deflate",
    }
    with rasterio.open(path, "w", **profile) as file:
        file.write(scene)
        file.descriptions = BANDS
