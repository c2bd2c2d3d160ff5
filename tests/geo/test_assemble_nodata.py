"""Nodata: fill values, NaN and clashes."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import pytest
import rasterio

from tests.geo.predictions import AFFINE, GEO_A, MIX_A, read, tile, write
from tfrio.errors import GeoError, TfrioWarning
from tfrio.geo import Mixer, array_source, export_image, import_image
from tfrio.types import XY

if TYPE_CHECKING:
    from pathlib import Path


class TestNodata:
    """Fill values, NaN and clashes; masks of a manifest are tested with the export."""

    def test_a_fill_value_is_masked_where_no_mask_is_known(self, tmp_path: Path) -> None:
        rows = [{"b": tile(i).ravel().astype(np.float32)} for i in range(4)]
        rows[1]["b"][:5] = -9999
        path = write(tmp_path / "p.tfrecord", rows)
        with pytest.warns(TfrioWarning, match=r"nodata -9999 is the value of 5 predicted pixels"):
            report = import_image(path, tmp_path / "map.tif", mixer=MIX_A, nodata=-9999)
        assert (report.masked, report.covered) == (5, 43)
        with rasterio.open(report.path) as dataset:
            assert dataset.nodata == -9999
            assert (dataset.read_masks(1) == 0).sum() == 5

    def test_a_nodata_that_is_a_class_warns(self, tmp_path: Path) -> None:
        path = write(tmp_path / "p.tfrecord", ({"c": tile(i).ravel() % 9} for i in range(4)))
        zeros = int((GEO_A[:6, :8] % 9 == 0).sum())
        with pytest.warns(TfrioWarning, match=rf"nodata 0 is the value of {zeros} predicted"):
            import_image(path, tmp_path / "map.tif", mixer=MIX_A, nodata=0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            import_image(path, tmp_path / "map.tif", mixer=MIX_A, nodata=9, overwrite=True)

    def test_nan_becomes_nodata(self, tmp_path: Path) -> None:
        rows = [{"b": tile(i).ravel().astype(np.float32)} for i in range(4)]
        rows[0]["b"][3] = np.nan
        path = write(tmp_path / "p.tfrecord", rows)
        report = import_image(path, tmp_path / "map.tif", mixer=MIX_A, nodata=-1)
        assert report.invalid == 1
        assert read(report.path)[0, 0, 3] == -1
        plain = import_image(path, tmp_path / "map.tif", mixer=MIX_A, overwrite=True)
        assert np.isnan(plain.nodata)
        assert np.isnan(read(plain.path)[0, 0, 3])

    def test_nan_scores_have_no_class(self, tmp_path: Path) -> None:
        rows = [{"p": np.linspace(0, 1, 24, dtype=np.float32)} for _ in range(4)]
        rows[3]["p"][5] = np.nan
        path = write(tmp_path / "p.tfrecord", rows)
        report = import_image(path, tmp_path / "map.tif", mixer=MIX_A, argmax=True)
        values = read(report.path)[0]
        assert report.nodata == 255
        assert values[4, 5] == 255
        assert (values == 1).sum() == 47

    def test_a_full_uint8_makes_room(self, tmp_path: Path) -> None:
        mixer = Mixer("EPSG:32618", AFFINE, XY(16, 8), 2, 4)
        every = np.arange(256, dtype=np.uint8).reshape(2, 128)
        rows = ({"b": every[i].tobytes(), "patch_index": i} for i in (0, 1))
        path = write(tmp_path / "p.tfrecord", rows)
        report = import_image(path, tmp_path / "map.tif", mixer=mixer, partial=True)
        assert (report.dtype, report.nodata) == ("int16", -32768)
        assert "every value of uint8 is taken" in report.notes[0]
        values = read(report.path)[0]
        assert sorted(values[:8].ravel()) == list(range(256))
        assert (values[8:] == -32768).all()

    @pytest.mark.parametrize(
        ("value", "nodata"),
        [(1 << 40, 1 << 53), (1 << 53, -(1 << 53)), ((1 << 63) - 1, -(1 << 53))],
    )
    def test_whole_numbers_of_64_bits_get_a_nodata_that_gdal_can_hold(
        self, tmp_path: Path, value: int, nodata: int
    ) -> None:
        rows = ({"b": np.full(12, value, np.int64), "patch_index": i} for i in (0, 1))
        path = write(tmp_path / "p.tfrecord", rows)
        report = import_image(path, tmp_path / "map.tif", mixer=MIX_A, partial=True)
        assert (report.dtype, report.nodata) == ("int64", nodata)
        with rasterio.open(report.path) as dataset:
            assert (dataset.read_masks(1) == 0).sum() == 24
            assert (dataset.read(1)[dataset.read_masks(1) > 0] == value).all()

    @pytest.mark.parametrize("nodata", [(1 << 63) - 1, -(1 << 63), (1 << 53) + 1])
    def test_a_nodata_that_gdal_cannot_hold_is_refused(self, tmp_path: Path, nodata: int) -> None:
        path = write(tmp_path / "p.tfrecord", ({"b": np.full(12, 1 << 40)} for _ in range(4)))
        with pytest.raises(GeoError, match="Pass another nodata"):
            import_image(path, tmp_path / "map.tif", mixer=MIX_A, nodata=nodata)

    def test_no_room_for_nodata_is_told(self, tmp_path: Path) -> None:
        ends = np.array([-(1 << 63), (1 << 63) - 1] * 6)
        rows = ({"b": ends, "patch_index": i} for i in (0, 1))
        path = write(tmp_path / "p.tfrecord", rows)
        with pytest.raises(GeoError, match="leave no int64 for nodata"):
            import_image(path, tmp_path / "map.tif", mixer=MIX_A, partial=True)
        assert not (tmp_path / "map.tif").exists()


def test_numbers_beyond_int64_become_floats(tmp_path: Path) -> None:
    values = np.full((7, 10), 2**63 - 1)
    values[0, 0] = 5
    source = array_source(values, AFFINE, crs="EPSG:32618")
    export_image(source, tmp_path / "a", patch=(5, 7), dtype="float")
    report = import_image(tmp_path / "a-*.gz", tmp_path / "m.tif", mixer=tmp_path / "a")
    assert report.dtype in ("uint64", "float32")
    assert read(tmp_path / "m.tif")[0].astype(float)[:2, 0].tolist() == [5, 2.0**63]


def test_nan_without_nodata_says_where(tmp_path: Path) -> None:
    tiles = [tile(i).astype(np.float32).ravel() for i in range(4)]
    tiles[3][5] = np.nan
    path = write(tmp_path / "p.tfrecord", ({"p": values} for values in tiles))
    text = (
        r"band 'p': the prediction for pixel \(column, row\) = \(5, 4\) of the map is NaN, and int"
    )
    with pytest.raises(GeoError, match=text):
        import_image(path, tmp_path / "m.tif", mixer=MIX_A, dtype="int16")
    assert not (tmp_path / "m.tif").exists()


def test_text_among_the_features_says_bands(tmp_path: Path) -> None:
    rows = ({"b": tile(i).ravel(), "name": b"hello"} for i in range(4))
    path = write(tmp_path / "p.tfrecord", rows)
    with pytest.raises(GeoError, match="'name' has 5 values .*name other features with bands="):
        import_image(path, tmp_path / "m.tif", mixer=MIX_A)


def test_a_record_without_its_index(tmp_path: Path) -> None:
    rows = [{"b": tile(i).ravel(), "patch_index": i} for i in range(4)]
    del rows[2]["patch_index"]
    path = write(tmp_path / "p.tfrecord", rows)
    with pytest.raises(GeoError, match="record 2 of all has no 'patch_index'.*pass index=None"):
        import_image(path, tmp_path / "m.tif", mixer=MIX_A, index="patch_index")
