"""Small rasters for the tests, and exports read back by protobuf alone."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from affine import Affine

from tfrio.compat.example_pb2 import Example, SequenceExample

AFFINE = (30.0, 0.0, 500000.0, 0.0, -30.0, 4500000.0)


def geo_a(dtype: str = "int16") -> np.ndarray:
    """Return a raster of 10 x 7 pixels with value 100 * row + column."""
    return (100 * np.arange(7)[:, None] + np.arange(10)).astype(dtype)


def write_raster(
    path: Path,
    values: np.ndarray,
    *,
    names: Iterable[str] = (),
    crs: str | None = "EPSG:32618",
    affine: tuple[float, ...] = AFFINE,
    nodata: float | None = None,
    mask: np.ndarray | None = None,
    **profile: Any,
) -> Path:
    """Write (height, width) or (bands, height, width) to a GeoTIFF; `mask` is True where valid."""
    bands = values[None] if values.ndim == 2 else values
    count, height, width = bands.shape
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(
        path, "w", driver="GTiff", width=width, height=height, count=count,
        dtype=bands.dtype.name, crs=crs, transform=Affine(*affine), nodata=nodata, **profile,
    ) as out:  # fmt: skip
        out.write(bands)
        for number, name in enumerate(names, 1):
            out.set_band_description(number, name)
        if mask is not None:
            out.write_mask(mask)
    return path


def payloads(paths: Iterable[str | Path]) -> list[bytes]:
    """Take records apart with nothing of ours."""
    found = []
    for path in paths:
        data = Path(path).read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        at = 0
        while at < len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            found.append(data[at + 12 : at + 12 + length])
            at += length + 16
    return found


def examples(paths: Iterable[str | Path]) -> list[dict[str, Any]]:
    """Return each record as a dictionary of lists, by protobuf."""
    return [
        {name: _values(feature) for name, feature in Example.FromString(p).features.feature.items()}
        for p in payloads(paths)
    ]


def sequences(paths: Iterable[str | Path]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return (context, feature lists) of each record, by protobuf."""
    found = []
    for payload in payloads(paths):
        record = SequenceExample.FromString(payload)
        context = {name: _values(f) for name, f in record.context.feature.items()}
        lists = {
            name: [_values(step) for step in steps.feature]
            for name, steps in record.feature_lists.feature_list.items()
        }
        found.append((context, lists))
    return found


def _values(feature: Any) -> list[Any]:
    kind = feature.WhichOneof("kind")
    return list(getattr(feature, kind).value) if kind else []


def tiles(paths: Iterable[str | Path], name: str, height: int, width: int) -> list[np.ndarray]:
    """Return one feature of each record as an array (height, width)."""
    return [np.array(row[name]).reshape(height, width) for row in examples(paths)]
