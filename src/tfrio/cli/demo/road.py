"""The demo's eight steps, each a few calls of the public API on real data."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio import geo, tables
from tfrio.cli.demo import damage, scene
from tfrio.cli.demo.model import Model, fit, neighbourhood_mean
from tfrio.errors import TfrioError, require
from tfrio.examples.decode import read, read_batches
from tfrio.examples.writer import Writer
from tfrio.geo.grid import PatchGrid
from tfrio.types import XY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfrio.geo.assemble_report import ImportReport

__all__ = ["KERNEL", "PATCH", "Road", "classes", "judge", "must"]

PATCH = XY(72, 48)
KERNEL = XY(5, 3)
SHARD_BYTES = 400_000  # before compression: six patches a shard
REFLECTANCE = np.float32(1e-4)  # Sentinel-2 stores reflectance times 10,000


@dataclass
class Road:
    """The folder of one walk, and what was made on the way.

    Args:
        folder: Where everything is written; what an earlier walk left there is replaced.
    """

    folder: Path
    pixels: NDArray[np.uint16] = field(init=False)
    model: Model = field(init=False)
    grid: PatchGrid = field(init=False)
    reports: dict[str, ImportReport] = field(default_factory=dict)

    @property
    def raster(self) -> Path:
        """Return the scene's GeoTIFF."""
        return self.folder / "scene.tif"

    @property
    def map(self) -> Path:
        """Return the land-cover map."""
        return self.folder / "landcover.tif"

    @property
    def probabilities(self) -> Path:
        """Return the probabilities of the classes, one band each."""
        return self.folder / "probabilities.tif"

    @property
    def shards(self) -> list[Path]:
        """Return the shards of the export, in order."""
        return sorted((self.folder / "export").glob("scene-*.tfrecord.gz"))

    @property
    def sidecars(self) -> list[Path]:
        """Return mixer and manifest."""
        return sorted((self.folder / "export").glob("scene-*.json"))

    def make_inputs(self) -> str:
        """(a) Write the scene as GeoTIFF and the labelled spectra as CSV."""
        self._clear()
        self.pixels = scene.load_scene()
        scene.write_scene(self.raster, self.pixels)
        samples = scene.load_samples()
        samples.write_csv(self.folder / "samples.csv")
        size = XY(self.pixels.shape[2], self.pixels.shape[1])
        self.grid = PatchGrid(size, PATCH, KERNEL)
        masked = int((~self.pixels.any(axis=0)).sum())
        return (
            f"Sentinel-2 scene, {size} pixels, 4 bands, {masked:,} pixels masked; "
            f"{len(samples.labels)} labelled Landsat spectra. The source has no georeference: "
            f"the grid ({scene.CRS}, {scene.PIXEL:g} m) is nominal"
        )

    def _clear(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in ("export", "predictions", "damaged", "incomplete"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def table_there_and_back(self) -> str:
        """(b) Send the labelled spectra to TFRecord and back, and compare."""
        source = self.folder / "samples.csv"
        records, back = self.folder / "samples.tfrecord.gz", self.folder / "samples.parquet"
        tables.export_table(source, self.folder / "samples", overwrite=True)
        tables.import_table(records, back, overwrite=True)
        table = require("pyarrow.parquet", extra="table").read_table(back)
        samples = scene.load_samples()
        for number, band in enumerate(scene.BANDS):
            values = table[band].to_numpy().astype(np.float32)
            must(np.array_equal(values, samples.reflectance[:, number].astype(np.float32)), band)
        must(tuple(map(_text, table["class"].to_pylist())) == samples.labels, "class")
        return f"{len(samples.labels)} rows to samples.tfrecord.gz and back to Parquet: equal"

    def cut_patches(self) -> str:
        """(c) Cut the scene into patches with margins, over several shards."""
        report = geo.export_image(
            self.raster,
            self.folder / "export" / "scene",
            patch=PATCH,
            kernel=KERNEL,
            max_file_size=SHARD_BYTES,
        )
        return (
            f"{report.patches} patches of {PATCH}, kernel {KERNEL}, in {len(self.shards)} gzip "
            f"shards with mixer and manifest; {self.grid.coverage}"
        )

    def find_damage(self) -> str:
        """(d) Verify the export, then a copy with a flipped bit and one without a shard."""
        export = [*self.shards, *self.sidecars]
        must(damage.findings(self.folder / "export") == [], "the export is not clean")
        flipped = damage.flip_bit(export, self.folder / "damaged", shard=1, byte=20_000, bit=3)
        deleted = damage.delete_shard(export, self.folder / "incomplete", shard=2)
        wrong = "\n".join(damage.findings(flipped.parent))
        must(flipped.name in wrong, f"the flipped bit in {flipped} was not found")
        missing = "\n".join(damage.findings(deleted.parent))
        must("missing shard 00002" in missing, f"{deleted} was not missed")
        return (
            f"clean. One bit flipped in a copy: found in {flipped.name}. "
            "One shard deleted in another: shard 00002 is named as missing"
        )

    def train(self) -> str:
        """(e) Fit a small classifier, reading only the TFRecord file."""
        columns: dict[str, list[Any]] = {name: [] for name in (*scene.BANDS, "class")}
        for batch in read_batches(self.folder / "samples.tfrecord.gz", 64):
            for name, values in columns.items():
                values.extend(batch[name])
        reflectance = np.array([columns[b] for b in scene.BANDS], np.float32).reshape(4, -1)
        labels = [_text(value) for value in columns["class"]]
        self.model = fit(reflectance, labels)
        found = self.model.probabilities(reflectance).argmax(axis=0)
        right = sum(self.model.labels[k] == label for k, label in zip(found, labels, strict=True))
        tool = "PyTorch" if importlib.util.find_spec("torch") else "NumPy"
        return (
            f"softmax regression ({tool}) on {len(labels)} spectra out of samples.tfrecord.gz: "
            f"{right} of {len(labels)} right"
        )

    def predict(self) -> str:
        """(f) Predict patch by patch, and write class and probabilities as TFRecord."""
        folder = self.folder / "predictions"
        folder.mkdir()
        patches = 0
        for number, shard in enumerate(self.shards):
            with Writer(folder / f"landcover-{number:05d}.tfrecord.gz") as writer:
                for row in read(shard):
                    writer.write(self._predicted(row))
                    patches += 1
        return f"{patches} patches predicted from the shards alone, {PATCH} pixels each"

    def _predicted(self, row: dict[str, Any]) -> dict[str, Any]:
        shape = self.grid.padded.shape
        bands = np.stack([row[b].reshape(shape.height, shape.width) for b in scene.BANDS])
        probabilities = judge(self.model, bands)
        features = {"class": classes(probabilities)}
        for label, plane in zip(self.model.labels, probabilities, strict=True):
            features[f"p_{label.lower()}"] = plane
        return {name: values.reshape(-1) for name, values in features.items()}


def judge(model: Model, bands: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return class probabilities for stored values with margins.

    Args:
        model: The fitted model.
        bands: Digital numbers, shape (4, height, width), margins of ``KERNEL`` included and 0
            where there is no data.

    Returns:
        Shape (classes, height, width), without margins.
    """
    reflectance = bands.astype(np.float32) * REFLECTANCE
    valid: NDArray[np.bool_] = np.any(bands, axis=0)
    return model.probabilities(neighbourhood_mean(reflectance, valid, KERNEL))


def classes(probabilities: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the likeliest class of each pixel, counted from 1 (0 is left to nodata)."""
    likeliest: NDArray[np.int64] = probabilities.argmax(axis=0)
    return likeliest + 1


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def must(holds: bool, what: str) -> None:
    """Stop the demo where two things that must be equal are not."""
    if not holds:
        raise TfrioError(f"the demo found a difference where there must be none: {what}")
