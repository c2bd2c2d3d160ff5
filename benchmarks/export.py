"""Time the export of a large raster against a straightforward script and against only reading.

Run: python -m benchmarks.export [--side 10240] [--folder /tmp/bench] [--only deflate]

Each case runs in a process of its own and reports seconds and peak memory. The script it is
measured against is what one writes with rasterio and protobuf in an afternoon: a window per patch,
an Example per window, a framed record per Example.

What two workers can gain at most is measured, too: two processes that do nothing but read, or
nothing but compress, half of the patches each.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks import apart

BANDS = 4
PATCH = 256
SCRIPT_PATCHES = 160
MASK_DELTA = 0xA282EAD8


def make_source(path: Path, side: int, compress: str | None) -> None:
    """Write a tiled raster of smooth ground with noise, as a satellite sees it."""
    import rasterio
    from affine import Affine

    profile = {
        "driver": "GTiff", "width": side, "height": side, "count": BANDS, "dtype": "uint16",
        "crs": "EPSG:32618", "transform": Affine(10, 0, 500000, 0, -10, 4500000),
        "tiled": True, "blockxsize": PATCH, "blockysize": PATCH, "interleave": "pixel",
    }  # fmt: skip
    if compress:
        profile |= {"compress": compress, "zlevel": 6, "predictor": 2, "num_threads": 2}
    random = np.random.default_rng(7)
    with rasterio.open(path, "w", **profile) as out:
        ramp = np.linspace(0, 40, side)
        for row in range(0, side, PATCH):
            y = np.linspace(row, row + PATCH, PATCH)[:, None] / 400
            ground = 1500 + 900 * np.sin(ramp) * np.cos(y)
            noise = random.normal(0, 60, (BANDS, PATCH, side))
            block = (ground + noise + 200 * np.arange(BANDS)[:, None, None]).astype("uint16")
            out.write(block, window=((row, row + PATCH), (0, side)))


def windows(side: int, half: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield (row, column) of all patches, or of the upper (0) or lower (1) half of them."""
    rows = range(0, side - PATCH + 1, PATCH)
    cut = len(rows) // 2
    for row in rows if half is None else (rows[:cut], rows[cut:])[half]:
        for column in range(0, side - PATCH + 1, PATCH):
            yield row, column


def read_only(source: Path, side: int, half: int | None = None) -> None:
    """Only read the windows of all patches."""
    import rasterio

    with rasterio.open(source) as data:
        for row, column in windows(side, half):
            data.read(window=((row, row + PATCH), (column, column + PATCH)))


def few(side: int) -> list[tuple[int, int]]:
    """Return the windows the script is timed on: its cost per patch is always the same."""
    return list(windows(side))[:SCRIPT_PATCHES]


def script(
    source: Path, side: int, out: Path, opener: Callable[[Path], object] | None = None
) -> None:
    """Export with rasterio windows and protobuf Examples."""
    import google_crc32c
    import rasterio

    from tfrio.compat.example_pb2 import Example

    def masked(data: bytes) -> int:
        crc = int(google_crc32c.value(data))
        return (((crc >> 15) | (crc << 17)) + MASK_DELTA) & 0xFFFFFFFF

    name = out / "script.tfrecord"
    stream = opener(name) if opener else name.open("wb")
    with rasterio.open(source) as data, contextlib.closing(stream) as file:  # type: ignore[type-var]
        for row, column in few(side):
            pixels = data.read(window=((row, row + PATCH), (column, column + PATCH)))
            example = Example()
            for band in range(BANDS):
                feature = example.features.feature[f"b{band + 1}"]
                feature.float_list.value.extend(pixels[band].astype("float32").ravel())
            payload = example.SerializeToString()
            length = struct.pack("<Q", len(payload))
            file.write(length + struct.pack("<I", masked(length)) + payload)  # type: ignore[attr-defined]
            file.write(struct.pack("<I", masked(payload)))  # type: ignore[attr-defined]


def script_gzip(source: Path, side: int, out: Path) -> None:
    """The same into gzip of Python's own module, at its level 6."""
    import gzip

    script(source, side, out, lambda name: gzip.open(f"{name}.gz", "wb", 6))  # noqa: SIM115


def ours(source: Path, out: Path, workers: int, gzip: bool) -> None:
    from tfrio.geo import export_image

    export_image(source, out / "ours", patch=PATCH, compressed=gzip, workers=workers)


def compress_only(side: int, half: int | None = None) -> None:
    """Only compress as many bytes of patches, as we do, on one thread."""
    from tfrio.compression import deflate_member

    random = np.random.default_rng(7)
    record = random.normal(1500, 60, (BANDS, PATCH, PATCH)).astype("uint16").astype("float32")
    data = record.tobytes()
    for _number in windows(side, half):
        deflate_member(data, 1)


def write_only(side: int, out: Path) -> None:
    """Only write as many bytes as plain shards have."""
    data = np.full(BANDS * PATCH * PATCH, 1500, np.float32).tobytes()
    with (out / "written").open("wb", buffering=0) as file:
        for _number in windows(side):
            file.write(data)


def pixels_ours(source: Path, _: int, out: Path) -> None:
    """One SequenceExample per pixel of a million pixels."""
    from tfrio.geo import export_image

    export_image(
        source, out / "pixels", patch=250, compressed=False, sequence_data=True,
        bands={"b1": 1, "series": "2:4"}, region=box(1000), region_crs="EPSG:32618", workers=1,
    )  # fmt: skip


def box(side: int) -> tuple[float, float, float, float]:
    return 500000, 4500000 - 10 * side, 500000 + 10 * side, 4500000


def pixels_script(source: Path, _: int, out: Path, count: int = 50_000) -> None:
    """The same with a protobuf loop, for as many pixels as take a few seconds."""
    import google_crc32c
    import rasterio

    from tfrio.compat.example_pb2 import SequenceExample

    with rasterio.open(source) as data, (out / "pixels.tfrecord").open("wb") as file:
        pixels = data.read(window=((0, 250), (0, 250))).astype("float32")
        flat = pixels.reshape(BANDS, -1)[:, :count]
        for number in range(flat.shape[1]):
            example = SequenceExample()
            example.context.feature["b1"].float_list.value.append(flat[0, number])
            steps = example.feature_lists.feature_list["series"].feature
            for band in range(1, BANDS):
                steps.add().float_list.value.append(flat[band, number])
            payload = example.SerializeToString()
            length = struct.pack("<Q", len(payload))
            for part in (length, payload):
                crc = google_crc32c.value(part)
                mask = (((crc >> 15) | (crc << 17)) + MASK_DELTA) & 0xFFFFFFFF
                file.write(part + struct.pack("<I", mask))


CASES: dict[str, apart.Case] = {
    "read": lambda source, side, _: read_only(source, side),
    "read upper": lambda source, side, _: read_only(source, side, 0),
    "read lower": lambda source, side, _: read_only(source, side, 1),
    "write": lambda _source, side, out: write_only(side, out),
    "compress": lambda _source, side, _out: compress_only(side),
    "compress upper": lambda _source, side, _out: compress_only(side, 0),
    "compress lower": lambda _source, side, _out: compress_only(side, 1),
    "script": script,
    "script gzip": script_gzip,
    "ours plain 1": lambda source, _, out: ours(source, out, 1, False),
    "ours plain 2": lambda source, _, out: ours(source, out, 2, False),
    "ours gzip 1": lambda source, _, out: ours(source, out, 1, True),
    "ours gzip 2": lambda source, _, out: ours(source, out, 2, True),
    "make deflate": lambda source, side, _: make_source(source, side, "deflate"),
    "make uncompressed": lambda source, side, _: make_source(source, side, None),
    "pixels ours": pixels_ours,
    "pixels script": pixels_script,
}


def measure(*cases: str, source: Path, side: int, repeat: int = 1) -> float:
    """Run cases at the same time, each in its own process; return seconds of the slowest.

    Of several repetitions the best counts.
    """
    return min(_once(cases, source, side) for _ in range(repeat))


def _once(cases: tuple[str, ...], source: Path, side: int) -> float:
    rows = apart.measure("benchmarks.export", cases, source, side)
    for case, row in zip(cases, rows, strict=True):
        times = f"{row['seconds']:7.2f} s   processor {row['cpu']:7.2f} s"
        print(f"  {case:14s} {times}   peak {row['peak_mb']:5.0f} MB", flush=True)
    return max(row["seconds"] for row in rows)


def compare(source: Path, side: int) -> None:
    names = [
        "read", "write", "ours plain 1", "ours plain 2", "ours gzip 1", "ours gzip 2", "compress",
    ]  # fmt: skip
    times = {name: measure(name, source=source, side=side, repeat=2) for name in names}
    for kind in ("read", "compress"):
        halves = (f"{kind} upper", f"{kind} lower")
        times[f"{kind} 2"] = measure(*halves, source=source, side=side, repeat=2)
    times["read and write"] = times["read"] + times["write"]
    share = len(list(windows(side))) / len(few(side))
    for name in ("script", "script gzip"):
        times[name] = share * measure(name, source=source, side=side)
    print(f"  the script was timed on {len(few(side))} patches; its times count {share:.3g} times")
    rows = [
        ("plain against the script", "script", "ours plain 1", "aim 3, uncompressed 10"),
        ("gzip against the script", "script gzip", "ours gzip 1", ""),
        ("plain against only reading", "read", "ours plain 1", "aim 0.6"),
        ("the same, 2 workers", "read", "ours plain 2", ""),
        ("plain against reading, then writing", "read and write", "ours plain 1", "the limit is 1"),
        ("gzip against only compressing", "compress", "ours gzip 1", "share of the compressor"),
        ("2 workers against 1, plain", "ours plain 1", "ours plain 2", "aim 1.7"),
        ("2 processes against 1, reading", "read", "read 2", "limit of the machine"),
        ("2 workers against 1, gzip", "ours gzip 1", "ours gzip 2", "aim 1.7"),
        ("2 processes against 1, compressing", "compress", "compress 2", "limit of the machine"),
    ]  # fmt: skip
    for title, peer, mine, note in rows:
        print(f"  {title:40s} {times[peer] / times[mine]:5.2f} x{f'   ({note})' if note else ''}")


def compare_pixels(source: Path, side: int) -> None:
    print("sequences: 1,000,000 pixels of ours, 50,000 of the script")
    mine = measure("pixels ours", source=source, side=side, repeat=2)
    peer = measure("pixels script", source=source, side=side)
    print(f"  {'pixels against the script':40s} {20 * peer / mine:5.2f} x   (aim 20)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=10240, help="pixels of a side")
    parser.add_argument("--folder", type=Path, help="where to keep the sources")
    parser.add_argument("--source", type=Path)
    parser.add_argument("--only", choices=["deflate", "uncompressed", "pixels"])
    parser.add_argument("--case")
    given = parser.parse_args()
    if given.case:
        import rasterio  # noqa: F401 - imports do not count

        import tfrio.geo.export  # noqa: F401

        apart.run_case(CASES[given.case], given.source, given.side)
        return
    folder = given.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    for title in ("deflate", "uncompressed"):
        source = folder / f"{title}-{given.side}.tif"
        if not source.exists() and given.only in (None, title, "pixels"):
            # In a process of its own: a child's peak memory begins at that of its parent.
            measure(f"make {title}", source=source, side=given.side)
        if given.only in (None, title):
            print(f"{title}: {given.side} x {given.side} x {BANDS} uint16, patch {PATCH} x {PATCH}")
            compare(source, given.side)
    if given.only in (None, "pixels"):
        compare_pixels(source, given.side)
    if given.folder is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
