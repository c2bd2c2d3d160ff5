"""Time bringing predictions back to a map against writing the same windows with rasterio alone.

Run: python -m benchmarks.import [--side 10240] [--repeat 3] [--only none] [--folder /tmp/bench]

The predictions are float32 patches of 256 x 256 pixels with margins of none, in plain TFRecord.
Each case runs in a process of its own and reports seconds, processor time and peak memory. Cases
take turns, so that a slow minute of the disk meets all of them; figures are medians. rasterio
alone writes the same blocks from memory, in the same order, with the same options. What two
threads can gain at all on this machine is measured too, with nothing but zlib.
"""

# The name says what is timed; nothing imports it.
# ruff: noqa: N999

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks import apart

PATCH = 256
TILES = 16


def tiles() -> np.ndarray:
    """Return some patches of smooth scores with a little noise, as a network gives them."""
    random = np.random.default_rng(7)
    y, x = np.mgrid[:PATCH, :PATCH] / 40
    found = [
        np.sin(x + k) * np.cos(y - k) + random.normal(0, 0.002, (PATCH, PATCH))
        for k in range(TILES)
    ]
    return np.stack(found).astype(np.float32)


def numbers(side: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, row and column of each patch."""
    across = side // PATCH
    for number in range(across * across):
        row, column = divmod(number, across)
        yield number, row * PATCH, column * PATCH


def make_predictions(path: Path, side: int) -> None:
    """Write the predictions of a square mosaic, and its mixer."""
    import tfrio
    from tfrio.geo.mixer import Mixer, write_mixer
    from tfrio.types import XY, Affine6

    across = side // PATCH
    flat = tiles().reshape(TILES, -1)
    with tfrio.Writer(path) as writer:
        for number, _, _ in numbers(side):
            writer.write_batch({"score": flat[number % TILES][None]})
    affine = Affine6(10, 0, 500000, 0, -10, 4500000)
    mixer = Mixer("EPSG:32618", affine, XY(PATCH, PATCH), across, across * across)
    write_mixer(mixer_of(path), mixer)


def mixer_of(path: Path) -> Path:
    return path.with_name(f"{path.stem}-mixer.json")


def rasterio_alone(_: Path, side: int, out: Path, compress: str, workers: int) -> None:
    import rasterio
    from affine import Affine

    profile = {
        "driver": "GTiff", "width": side, "height": side, "count": 1, "dtype": "float32",
        "crs": "EPSG:32618", "transform": Affine(10, 0, 500000, 0, -10, 4500000),
        "tiled": True, "blockxsize": PATCH, "blockysize": PATCH, "nodata": float("nan"),
        "bigtiff": "if_safer", "num_threads": workers,
    }  # fmt: skip
    if compress != "none":
        profile |= {"compress": compress, "predictor": 3, "zlevel": 6}
    blocks = tiles()
    with rasterio.open(out / "alone.tif", "w", **profile) as dataset:
        for number, row, column in numbers(side):
            window = ((row, row + PATCH), (column, column + PATCH))
            dataset.write(blocks[number % TILES], 1, window=window)


def ours(source: Path, _: int, out: Path, compress: str, workers: int) -> None:
    from tfrio.geo import import_image

    options = {"mixer": mixer_of(source), "compress": compress, "workers": workers}
    import_image(source, out / "ours.tif", overwrite=True, **options)


def blended(source: Path, _: int, out: Path) -> None:
    from tfrio.geo import import_image

    options = {"mixer": mixer_of(source), "compress": "none", "blend": "hann"}
    import_image(source, out / "b.tif", overwrite=True, **options)


def read_only(source: Path, _: int, __: Path) -> None:
    """Only read the predictions, checksums and all."""
    import tfrio

    for _batch in tfrio.read_batches(source, 128):
        pass


def zlib_alone(_: Path, side: int, __: Path, ___: str, workers: int) -> None:
    """Deflate a tenth of the mosaic's blocks on so many threads: the limit of the machine."""
    blocks = [tile.tobytes() for tile in tiles()]
    count = (side // PATCH) ** 2 // 10
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda number: zlib.compress(blocks[number % TILES], 6), range(count)))


def case(function: Callable[..., None], compress: str, workers: int) -> apart.Case:
    return lambda source, side, out: function(source, side, out, compress, workers)


CASES: dict[str, apart.Case] = {
    "read only": read_only,
    "rasterio none": case(rasterio_alone, "none", 1),
    "ours none": case(ours, "none", 1),
    "rasterio deflate": case(rasterio_alone, "deflate", 1),
    "ours deflate": case(ours, "deflate", 1),
    "rasterio deflate 2": case(rasterio_alone, "deflate", 2),
    "ours deflate 2": case(ours, "deflate", 2),
    "zlib deflate": case(zlib_alone, "deflate", 1),
    "zlib deflate 2": case(zlib_alone, "deflate", 2),
    "ours hann": blended,
}


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def measured(names: list[str], source: Path, side: int, repeat: int) -> dict[str, dict[str, float]]:
    """Run cases in turn, several times over, and print their medians."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(repeat):
        for name in names:
            runs[name] += apart.measure("benchmarks.import", (name,), source, side)
    rows = {name: medians(found) for name, found in runs.items()}
    for name, row in rows.items():
        seconds = [run["seconds"] for run in runs[name]]
        spread = f"({min(seconds):.2f} to {max(seconds):.2f})"
        times = f"{row['seconds']:7.2f} s {spread:18s} processor {row['cpu']:7.2f} s"
        print(f"  {name:20s} {times}   peak {row['peak_mb']:5.0f} MB", flush=True)
    return rows


def compare(source: Path, side: int, repeat: int, only: str) -> None:
    names = [name for name in CASES if only in name]
    rows = measured(names, source, side, repeat)
    ratios = [
        ("uncompressed, against rasterio alone", "rasterio none", "ours none", "0.5"),
        ("deflate, against rasterio alone", "rasterio deflate", "ours deflate", "0.5"),
        ("deflate, 2 threads each", "rasterio deflate 2", "ours deflate 2", "0.5"),
        ("2 threads against 1, deflate", "ours deflate", "ours deflate 2", ">1"),
        ("the same of rasterio alone", "rasterio deflate", "rasterio deflate 2", "-"),
        ("the same of zlib alone: the limit", "zlib deflate", "zlib deflate 2", "-"),
    ]
    for title, peer, mine, aim in ratios:
        if peer not in rows or mine not in rows:
            continue
        wall = rows[peer]["seconds"] / rows[mine]["seconds"]
        cpu = rows[peer]["cpu"] / rows[mine]["cpu"]
        print(f"  {title:38s} {wall:5.2f} x   processor time {cpu:5.2f} x   (aim {aim})")
    most = max(row["peak_mb"] for name, row in rows.items() if name.startswith("ours"))
    print(f"  {'peak memory of ours':38s} {most:5.0f} MB  (aim below 500)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=10240, help="pixels of a side")
    parser.add_argument("--folder", type=Path, help="where to keep the predictions")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each case")
    parser.add_argument("--only", default="", help="cases whose names hold this, such as none")
    parser.add_argument("--source", type=Path)
    parser.add_argument("--case")
    given = parser.parse_args()
    if given.case:
        apart.run_case(CASES[given.case], given.source, given.side)
        return
    side = given.side // PATCH * PATCH
    folder = given.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"scores{side}.tfrecord"
    if not source.exists():
        make_predictions(source, side)
    print(f"{side} x {side} float32, patch {PATCH} x {PATCH}, {source.stat().st_size:,} bytes")
    compare(source, side, given.repeat, given.only)
    if given.folder is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
