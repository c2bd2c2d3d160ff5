"""Real rasters: each goes out and comes back equal, in place, or is refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rasterio

from tests.geo.rasters import tiles, write_raster
from tfrio.errors import GeoError, TfrioWarning
from tfrio.geo import export_image, import_image

REFUSED = {
    "au-gcp.tif": "is placed by ground control points, not by a grid",
    "box.shp": "not a raster that can be read",
    "corrupt.tif": "rows [0-9]+ to .* cannot be read .* damaged or cut",
    "float.tif": "has no CRS",
    "float32.tif": "has no CRS",
    "float_nan.tif": "has no CRS",
    "issue1446.geojson": "not a raster that can be read",
    "rotated.tif": "has no CRS",
    "RGB.nc": "holds several rasters, not one. Give one of them.*netcdf:.*Band1",
    "PLANET_SCOPE_3D.nc": "holds several rasters",
    "sentinel_2_L1C_utm.nc": "holds several rasters",
}
EXPORTED = {
    "au-3577-rotated.tif": (30, 20),
    "au-3577.tif": (32, 20),
    "N10W110.hgt.zip": (200, 150),
    "RGB.byte.tif": (128, 100),
    "RGB2.byte.tif": (128, 100),
    "RGBA.uint16.tif": (100, 60),
    "all-nodata.tif": (35, 400),
    "alpha.tif": (256, 200),
    "byte.tif": (7, 5),
    "float_raster_with_extra_nodata.tif": (9, 7),
    "float_raster_with_nodata.tif": (6, 5),
    "goes.tif": (128, 100),
    "rgb-byte-tenth.tif": (20, 16),
    "rgb1_fake_nir_epsg3857.tif": (128, 100),
    "shade.tif": (256, 200),
    "test_esri_wkt.tif": (1, 2),
    "world.byte.tif": (256, 200),
    "MODIS_ARRAY.nc": (64, 50),
}
SIDE_FILES = (".cpg", ".dbf", ".prj", ".shx", ".msk", ".parquet")


def find(shared: Path, name: str) -> Path:
    (path,) = (shared / "data" / "inputs").glob(f"*/{name}")
    return path


def test_every_file_is_either_exported_or_refused_below(shared: Path) -> None:
    files = {p.name for p in (shared / "data" / "inputs").glob("*/*")}
    rasters = {name for name in files if not name.endswith(SIDE_FILES)}
    assert rasters == set(REFUSED) | set(EXPORTED)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused(shared: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(GeoError, match=REFUSED[name]) as caught:
        export_image(find(shared, name), tmp_path / "s", patch=(3, 2))
    assert "\n" not in str(caught.value)
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_a_missing_file_is_no_riddle(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere.tif: no such file"):
        export_image(tmp_path / "nowhere.tif", tmp_path / "s", patch=(3, 2))


@pytest.mark.filterwarnings("ignore::tfrio.errors.TfrioWarning")
@pytest.mark.parametrize("name", sorted(EXPORTED))
def test_round_trip(shared: Path, tmp_path: Path, name: str) -> None:
    path, patch = find(shared, name), EXPORTED[name]
    report = export_image(path, tmp_path / "s", patch=patch, kernel=(4, 2), dtype="native")
    bands = [band.name for band in report.content.bands]
    import_image(
        list(report.shards), tmp_path / "back.tif", mixer=report.manifest, bands=bands,
        mask="off", orientation="keep",
    )  # fmt: skip
    with rasterio.open(path) as source, rasterio.open(tmp_path / "back.tif") as back:
        columns, rows = source.width // patch[0], source.height // patch[1]
        assert back.shape == (rows * patch[1], columns * patch[0])
        assert tuple(back.transform) == pytest.approx(tuple(source.transform), rel=1e-15)
        assert back.crs == source.crs
        for number in range(1, len(bands) + 1):
            original = source.read(number)[: back.height, : back.width]
            valid = source.read_masks(number)[: back.height, : back.width] > 0
            if original.dtype.kind == "f":
                valid &= ~np.isnan(original)
            assert np.array_equal(back.read(number)[valid], original[valid])


@pytest.mark.filterwarnings("ignore::tfrio.errors.TfrioWarning")
@pytest.mark.parametrize("name", ["RGB.byte.tif", "RGB2.byte.tif", "shade.tif", "RGBA.uint16.tif"])
def test_masks_come_back(shared: Path, tmp_path: Path, name: str) -> None:
    path = find(shared, name)
    report = export_image(path, tmp_path / "s", patch=(60, 40), dtype="native", bands=[1])
    import_image(list(report.shards), tmp_path / "back.tif", mixer=report.manifest)
    with rasterio.open(path) as source, rasterio.open(tmp_path / "back.tif") as back:
        valid = source.read_masks(1)[: back.height, : back.width] > 0
        assert np.array_equal(back.read_masks(1) > 0, valid)
        assert report.masked == int((~valid).sum())


def test_no_crs_can_be_said(shared: Path, tmp_path: Path) -> None:
    path = find(shared, "rotated.tif")
    report = export_image(path, tmp_path / "s", patch=(3, 4), source_crs="EPSG:32618")
    with rasterio.open(path) as source:
        assert report.content.affine == tuple(source.transform)[:6]
    assert report.content.crs == "EPSG:32618"


def test_control_points_export_on_a_grid_that_is_asked_for(shared: Path, tmp_path: Path) -> None:
    report = export_image(
        find(shared, "au-gcp.tif"), tmp_path / "s", patch=(40, 30), crs="EPSG:3577", scale=30000
    )
    with rasterio.open(find(shared, "au-3577.tif")) as plain:
        expected = plain.read(1)
        left, top = plain.transform.c, plain.transform.f
    affine = report.content.affine
    column, row = round((affine.c - left) / 30000), round((affine.f - top) / -30000)
    values = np.zeros_like(expected)

    for index, tile in enumerate(tiles(report.shards, "b1", 30, 40)):
        window = report.content.window(index)
        y, x = window.row + row, window.column + column
        part = values[max(y, 0) : y + 30, max(x, 0) : x + 40]
        part[...] = tile[max(-y, 0) :, max(-x, 0) :][: part.shape[0], : part.shape[1]]
    covered = values > 0
    assert covered.sum() > 3000
    assert (values[covered] == expected[covered]).mean() > 0.85


def test_parts_of_a_container_stack(shared: Path, tmp_path: Path) -> None:
    path = find(shared, "RGB.nc")
    parts = {f"band{n}": f"netcdf:{path}:Band{n}" for n in (1, 2, 3)}
    report = export_image(parts, tmp_path / "s", patch=(128, 100), source_crs="EPSG:32618")
    assert [band.name for band in report.content.bands] == ["band1", "band2", "band3"]


def test_lost_digits_warn(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", np.full((4, 5), 2**24 + 1, "int32"))
    with pytest.warns(TfrioWarning, match="rounded to float32"):
        export_image(path, tmp_path / "s", patch=(5, 4))
