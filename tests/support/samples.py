"""A small data set for tests of the docs and the command line: a scene, a table, shards."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

BANDS = ("B2", "B3", "B4", "B8")


def write_scene(path: Path, *, width: int = 300, height: int = 200) -> None:
    """Write a GeoTIFF of four uint16 bands on a UTM grid, nodata 0, one corner masked."""
    import rasterio
    from rasterio.transform import Affine

    rows, columns = np.indices((height, width))
    bands = np.stack([300 + 7 * (rows * k % 311) + 3 * (columns % (97 + k)) for k in range(1, 5)])
    bands[:, :20, :30] = 0
    profile = {
        "driver": "GTiff",
        "count": 4,
        "height": height,
        "width": width,
        "dtype": "uint16",
        "crs": "EPSG:32618",
        "transform": Affine(10, 0, 500_000, 0, -10, 4_500_000),
        "nodata": 0,
        "tiled": True,
        "blockxsize": 128,
        "blockysize": 128,
    }
    with rasterio.open(path, "w", **profile) as file:
        file.write(bands.astype(np.uint16))
        file.descriptions = BANDS


def write_points(path: Path, *, count: int = 12) -> None:
    """Write a GeoJSON of points with numbers, text and some nulls."""
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [-75 + 0.01 * k, 40 + 0.02 * k]},
            "properties": {
                "class": k % 3,
                "ndvi": None if k % 5 == 4 else k / 16,
                "name": f"plot {k}",
            },
        }
        for k in range(count)
    ]
    collection = {"type": "FeatureCollection", "features": features}
    path.write_text(json.dumps(collection), encoding="utf-8")


def write_shards(folder: Path, *, shards: int = 3, records: int = 20) -> list[Path]:
    """Write shards ``train-0000k-of-0000n.tfrecord.gz`` of small Examples."""
    import tfrio

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for shard in range(shards):
        path = folder / f"train-{shard:05d}-of-{shards:05d}.tfrecord.gz"
        with tfrio.Writer(path) as writer:
            for k in range(shard * records, (shard + 1) * records):
                values = np.arange(k % 4, dtype=np.float32)
                writer.write({"id": [k], "x": np.float32([k, k / 2]), "ragged": values})
        paths.append(path)
    return paths


def write_all(folder: Path) -> Path:
    """Write ``scene.tif``, ``samples.geojson`` and ``shards/`` into a folder."""
    write_scene(folder / "scene.tif")
    write_points(folder / "samples.geojson")
    write_shards(folder / "shards")
    return folder
