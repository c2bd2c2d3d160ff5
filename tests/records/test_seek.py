"""Entering deflate data in the middle: at any bit, in any block, by any writer."""

from __future__ import annotations

import gzip
import io
import random
import zlib
from pathlib import Path

import numpy as np
import pytest
from isal import igzip_lib, isal_zlib

from tests.records import golden
from tests.records.golden import put
from tfrio import _core
from tfrio.records import seek
from tfrio.records.reader import RecordStream
from tfrio.records.seek import NO_POINTS, SeekPoints, find_points, inflate_from
from tfrio.storage import open_read


def texts() -> dict[str, bytes]:
    rng = np.random.default_rng(1)
    return {
        "noise": rng.bytes(200_000),
        "runs": b"abc" * 100_000,
        "walk": (np.cumsum(rng.normal(size=150_000)) * 4).astype("<i2").tobytes(),
        "few symbols": rng.integers(0, 4, 200_000, dtype="u1").tobytes(),
        "one byte": b"x",
        "nothing": b"",
    }


def deflated(data: bytes) -> dict[str, bytes]:
    """Return raw deflate data by several writers and settings."""
    found = {f"zlib {level}": golden.raw_deflate(data, level) for level in (0, 1, 6, 9)}
    for name, strategy in (("huffman", 2), ("rle", 3), ("fixed", 4)):
        found[name] = golden.raw_deflate(data, 6, strategy)
    found |= {f"isal {level}": isal_zlib.compress(data, level, -15) for level in range(4)}
    rng = random.Random(2)
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    modes = [zlib.Z_FULL_FLUSH, zlib.Z_SYNC_FLUSH, zlib.Z_PARTIAL_FLUSH, zlib.Z_BLOCK]
    parts = [
        packer.compress(data[i : i + 9001]) + packer.flush(rng.choice(modes))
        for i in range(0, len(data), 9001)
    ]
    found["flushed"] = b"".join(parts) + packer.flush()
    return found


@pytest.mark.parametrize("text", list(texts()))
def test_every_block_found_can_be_entered(text: str) -> None:
    data = texts()[text]
    bits = set()
    for stream in deflated(data).values():
        walk = _core.walk_deflate(stream + b"behind", 0, 8000)
        assert walk.ended
        assert walk.out == len(data)
        assert (walk.bit + 7) // 8 == len(stream)
        for bit, out in walk.points.tolist():
            at, inside = divmod(bit, 8)
            bits.add(inside)
            inflater = igzip_lib.IgzipDecompressor(
                flag=igzip_lib.DECOMP_DEFLATE, zdict=data[max(out - 32768, 0) : out]
            )
            first = seek._primed(stream[at], inside) if inside else stream[at : at + 1]
            assert inflater.decompress(first + stream[at + 1 :] + b"trailer") == data[out:]
            assert inflater.unused_data == b"trailer"
    assert len(bits) == 8 or text not in ("walk", "few symbols")


@pytest.mark.parametrize("text", ["noise", "walk", "one byte"])
def test_cut_or_damaged_data_ends_the_walk_in_peace(text: str) -> None:
    data = texts()[text]
    rng = random.Random(3)
    for stream in deflated(data[:20_000]).values():
        for size in {0, 1, len(stream) // 2, len(stream) - 1}:
            assert not _core.walk_deflate(stream[:size], 0, 1000).ended
        for _ in range(40):
            bad = golden.flipped(stream, rng.randrange(len(stream)), 1 << rng.randrange(8))
            _core.walk_deflate(bad, rng.randrange(8), 100)
    with pytest.raises(ValueError, match="spacing"):
        _core.walk_deflate(b"", 0, 0)
    with pytest.raises(IndexError):
        _core.walk_deflate(b"", 99, 1)


def points_of(path: Path) -> SeekPoints:
    with RecordStream(path) as stream:
        tap = find_points(stream)
        while not stream.final:
            stream.fill()
            stream.advance(len(stream.buffer), 0)
        return tap.points()


def packed(kind: str, data: bytes) -> bytes:
    middle = 70_001
    return {
        "gzip": gzip.compress(data, 6),
        "bgzf": golden.bgzf(data),
        "zlib": zlib.compress(data, 6),
        "members": b"".join(
            gzip.compress(data[i : i + middle], 1) for i in range(0, len(data), middle)
        ),
        "small members": b"".join(
            gzip.compress(data[i : i + 500], 1) for i in range(0, len(data), 500)
        ),
    }[kind]


@pytest.mark.parametrize("kind", ["gzip", "bgzf", "zlib", "members", "small members"])
def test_inflating_from_any_point_gives_the_rest_of_the_file(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seek, "SPACING", 20_000)
    data = texts()["walk"]
    path = put(tmp_path, "a", packed(kind, data))
    points = points_of(path)
    assert len(points.windows) >= 4
    assert any(points.windows) == (kind != "small members")
    assert (np.diff(points.data) >= 20_000).all()
    reader = open_read(path)
    for number in range(-1, len(points.windows)):
        start = int(points.data[number]) if number >= 0 else 0
        compression = "zlib" if kind == "zlib" else "gzip"
        assert b"".join(inflate_from(reader, compression, points, number)) == data[start:]
    assert points.before(0) == -1
    assert points.before(int(points.data[1])) == 1
    assert points.before(len(data)) == len(points.windows) - 1
    reader.close()


def test_the_number_of_points_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seek, "SPACING", 1000)
    monkeypatch.setattr(seek, "MOST_POINTS", 5)
    path = put(tmp_path, "a", packed("members", texts()["few symbols"]))
    assert 2 <= len(points_of(path).windows) <= 5


def test_plain_files_streams_and_damaged_data_have_no_or_fewer_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seek, "SPACING", 20_000)
    data = packed("gzip", texts()["walk"])
    assert points_of(put(tmp_path, "p", golden.THREE)).windows == ()
    file = io.BytesIO(data)
    with RecordStream(file) as stream:
        assert find_points(stream).points().windows == ()
    whole = points_of(put(tmp_path, "a", data))
    cut = put(tmp_path, "c", data[: len(data) // 2])
    with RecordStream(cut) as stream:
        tap = find_points(stream)
        while len(stream.buffer) or not stream.final:
            stream.advance(len(stream.buffer), 0)
            if not stream.more():
                break
    assert 0 < len(tap.points().windows) < len(whole.windows)
    assert NO_POINTS.before(5) == -1
