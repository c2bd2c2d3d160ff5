"""The manifest: everything back as it was, wrong files refused."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tfrio.errors import GeoError
from tfrio.geo.grid import PatchGrid, Window
from tfrio.geo.manifest import (
    Account,
    BandRow,
    GridRow,
    Manifest,
    ShardRow,
    decode_mask,
    encode_mask,
    json_number,
    read_manifest,
    write_manifest,
)
from tfrio.geo.mixer import Mixer
from tfrio.types import XY, Affine6, Shape

AFFINE = (30.0, 0.0, 500000.0, 0.0, -30.0, 4500000.0)
BAND = BandRow(name="b", dtype="int16", feature="b", kind="float", stored="float32", nodata=-1.0)
ACCOUNT = Account(patches=4, pixels=70, covered=48, dropped=22, masked=5)


def manifest(**changes: object) -> Manifest:
    grid = GridRow(crs="EPSG:32618", affine=AFFINE, size=(10, 7), patch=(4, 3), kernel=(4, 2))
    values: dict[str, object] = {"grid": grid, "bands": [BAND, BAND], "account": ACCOUNT}
    return Manifest(**{**values, **changes})  # type: ignore[arg-type]


def test_file_round_trip(tmp_path: Path) -> None:
    shard = ShardRow(
        name="a-00000.tfrecord", records=4, first=0, bytes=9, size=9, digest="crc32c:00000000"
    )
    masked = np.zeros((2, 3, 4), bool)
    masked[1, 2, 3] = True
    whole = manifest(shards=[shard], kept=[0, 1, 3], masks={3: encode_mask(masked)})
    path = tmp_path / "a-manifest.json"
    write_manifest(path, whole)
    back = read_manifest(path)
    assert back == whole
    assert np.array_equal(back.masked(3), masked)
    assert not back.masked(0).any()
    assert back.written == [0, 1, 3]


def test_numbers_that_json_lacks_survive(tmp_path: Path) -> None:
    band = BandRow(
        name="b", dtype="float32", feature="b", kind="float", stored="float32",
        fill=json_number(-math.inf), nodata=json_number(math.nan),
    )  # fmt: skip
    write_manifest(tmp_path / "m", manifest(bands=[band]))
    (back,) = read_manifest(tmp_path / "m").bands
    assert back.fill_value == -math.inf
    assert back.nodata_value is not None
    assert math.isnan(back.nodata_value)
    assert BAND.nodata_value == -1.0


def test_grid_and_mixer() -> None:
    whole = manifest()
    assert whole.patch_grid() == PatchGrid(XY(10, 7), XY(4, 3), XY(4, 2))
    assert whole.mixer() == Mixer("EPSG:32618", Affine6(*AFFINE), XY(4, 3), 2, 4)
    assert whole.written == [0, 1, 2, 3]
    assert whole.window(3) == Window(4, 3, 4, 3)


def test_no_mixer_can_describe_these() -> None:
    grid = GridRow(crs="EPSG:32618", affine=AFFINE, size=(10, 7), patch=(4, 3), stride=(2, 3))
    assert manifest(grid=grid).mixer() is None
    assert manifest(kept=[0, 1, 3]).mixer() is None
    points = GridRow(
        crs="EPSG:32618", affine=AFFINE, size=(10, 7), patch=(4, 3), origins=[(5, 2), (0, 4)]
    )
    whole = manifest(grid=points)
    assert whole.mixer() is None
    assert whole.total_patches == 2
    assert whole.window(1) == Window(0, 4, 4, 3)
    with pytest.raises(GeoError, match="follow no grid"):
        whole.patch_grid()


@given(hnp.arrays(bool, hnp.array_shapes(min_dims=3, max_dims=3, max_side=9)))
def test_masks_round_trip(masked: np.ndarray) -> None:
    bands, height, width = masked.shape
    entries = encode_mask(masked)
    assert len(entries) in (1, bands)
    assert np.array_equal(decode_mask(entries, bands, Shape(height, width)), masked)


@given(st.integers(1, 4))
def test_bands_that_agree_share_one_entry(bands: int) -> None:
    one = np.eye(3, 5, dtype=bool)
    assert len(encode_mask(np.broadcast_to(one, (bands, 3, 5)))) == 1
    assert encode_mask(np.ones((bands, 3, 5), bool)) == ["*"]
    assert encode_mask(np.zeros((bands, 3, 5), bool)) == [""]


@pytest.mark.parametrize("entry", ["!", "AAAA", "eJwDAAAAAAE="])
def test_a_damaged_mask_is_told(entry: str) -> None:
    with pytest.raises(GeoError, match="mask of the manifest"):
        decode_mask([entry], 1, Shape(3, 5))


def test_a_mask_for_other_bands_is_told() -> None:
    with pytest.raises(GeoError, match="2 bands does not fit 3 bands"):
        decode_mask(["", "*"], 3, Shape(3, 5))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": "tfrio-manifest/9"}', "Install a newer tfrio"),
        ('{"format": "tfrio-table/1"}', "not that of an image export. Name the mixer"),
        ('{"projection": {}}', "not a manifest of tfrio"),
        ('{"format": "tfrio-manifest/1"}', "missing required field `grid`"),
        ("\xff", "not a manifest of tfrio"),
    ],
)
def test_what_is_no_manifest_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x-manifest.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(GeoError, match=message):
        read_manifest(path)
