"""Rasters as sources: bands, masks, tiles, resampling, and what makes none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine
from rasterio.enums import ColorInterp

from tests.geo.rasters import AFFINE, geo_a, write_raster
from tfrio.errors import GeoError, UsageError
from tfrio.geo.frame import Frame
from tfrio.geo.grid import Window
from tfrio.geo.raster import open_raster
from tfrio.types import XY, Affine6


def read(path: Path, window: Window, **options: Any) -> Any:
    reader = open_raster(path, **options).open()
    try:
        return reader.read(window)
    finally:
        reader.close()


def test_a_window_is_what_rasterio_reads_and_ours_to_change(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", np.stack([geo_a(), geo_a() + 1]), names=["r", "g"])
    source = open_raster(path)
    assert [band.name for band in source.bands] == ["r", "g"]
    assert source.frame == Frame("EPSG:32618", Affine6(*AFFINE), XY(10, 7))
    assert source.exact
    block = read(path, Window(2, 1, 3, 4))
    assert block.masked == [None, None]
    assert np.array_equal(block.values[1], geo_a()[1:5, 2:5] + 1)
    block.values[0][:] = 0
    assert np.array_equal(read(path, Window(2, 1, 3, 4)).values[0], geo_a()[1:5, 2:5])


def test_bands_by_name_number_and_range_in_the_order_asked_for(tmp_path: Path) -> None:
    stack = np.stack([geo_a() + n for n in range(4)])
    path = write_raster(tmp_path / "a.tif", stack, names=["r", "g", "b", "n"])
    block = read(path, Window(0, 0, 10, 7), bands=["n", 1])
    assert [v[0, 0] for v in block.values] == [3, 0]
    source = open_raster(path, bands={"all": "2:4", "again": "g"})
    assert [(band.name, band.depth) for band in source.bands] == [("all", 3), ("again", None)]
    block = read(path, Window(0, 0, 10, 7), bands={"all": "2:4", "again": "g"})
    assert block.values[0][:, 0, 0].tolist() == [1, 2, 3]
    assert block.values[1][0, 0] == 1


@pytest.mark.parametrize("bands", [[1, 1], ["g", 2], ["1:2", 1], [2, "r", "g"]])
def test_a_band_taken_twice_is_refused_with_the_remedy(tmp_path: Path, bands: Any) -> None:
    path = write_raster(tmp_path / "a.tif", np.stack([geo_a()] * 2), names=["r", "g"])
    with pytest.raises(UsageError, match="take [rg] twice.*name of its own: bands={"):
        open_raster(path, bands=bands)
    assert len(open_raster(path, bands={"a": 1, "b": 1}).bands) == 2


def test_bands_must_be_a_list_or_a_mapping(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", geo_a())
    with pytest.raises(UsageError, match="not the text 'b1'"):
        open_raster(path, bands="b1")
    for wrong in ("0", 0, 2, "1:2", "z", "2:1", 1.5):
        with pytest.raises(UsageError, match=r"bands are b1 \(1 to 1\)"):
            open_raster(path, bands=[wrong])  # type: ignore[list-item]


def test_descriptions_that_repeat_are_no_names(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", np.stack([geo_a()] * 3), names=["v", "v", "w"])
    assert [band.name for band in open_raster(path).bands] == ["b1", "b2", "b3"]


def test_nodata_nan_and_mask_bands_mask(tmp_path: Path) -> None:
    values = geo_a("float32")
    values[2, 3] = np.nan
    path = write_raster(tmp_path / "a.tif", values, nodata=101)
    (mask,) = read(path, Window(0, 0, 10, 7)).masked
    assert np.argwhere(mask).tolist() == [[1, 1], [2, 3]]
    valid = np.ones((7, 10), bool)
    valid[4, 5] = False
    path = write_raster(tmp_path / "m.tif", np.stack([geo_a()] * 2), mask=valid)
    block = read(path, Window(3, 2, 5, 4))
    assert [np.argwhere(mask).tolist() for mask in block.masked] == [[[2, 2]]] * 2
    assert all(band.maskable for band in open_raster(path).bands)


@pytest.mark.parametrize("bands", [2, 3, 4])
def test_an_alpha_band_masks_and_is_no_band(tmp_path: Path, bands: int) -> None:
    stack = np.stack([geo_a("uint8")] * bands)
    stack[-1] = 255
    stack[-1, 3, 8] = 0
    path = write_raster(tmp_path / "a.tif", stack, photometric="MINISBLACK", alpha="NO")
    with rasterio.open(path, "r+") as data:
        data.colorinterp = [*[ColorInterp.undefined] * (bands - 1), ColorInterp.alpha]
    source = open_raster(path)
    assert len(source.bands) == bands - 1
    assert source.alpha == bands
    for mask in read(path, Window(0, 0, 10, 7)).masked:
        assert np.argwhere(mask).tolist() == [[3, 8]]


def test_tiles_are_told_from_rows(tmp_path: Path) -> None:
    values = np.zeros((70, 100), "uint8")
    rows = write_raster(tmp_path / "rows.tif", values)
    tiles = write_raster(tmp_path / "t.tif", values, tiled=True, blockxsize=32, blockysize=16)
    one = write_raster(tmp_path / "one.tif", values, tiled=True, blockxsize=112, blockysize=80)
    found = [open_raster(path).tiled for path in (rows, tiles, one)]
    assert found == [False, True, False]
    warped = open_raster(tiles).warped_to(open_raster(rows).frame, XY(1, 1), "nearest")
    assert not warped.tiled


def vrt(tmp_path: Path, nodata: list[int | None], values: np.ndarray) -> Path:
    """Write bands whose nodata values differ, as only a VRT can."""
    base = write_raster(tmp_path / "base.tif", values)
    bands = "".join(
        f'<VRTRasterBand dataType="Int16" band="{number}">'
        + (f"<NoDataValue>{value}</NoDataValue>" if value is not None else "")
        + f"<SimpleSource><SourceFilename>{base}</SourceFilename>"
        f"<SourceBand>{number}</SourceBand></SimpleSource></VRTRasterBand>"
        for number, value in enumerate(nodata, 1)
    )
    affine = ", ".join(map(str, Affine(*AFFINE).to_gdal()))
    path = tmp_path / "a.vrt"
    path.write_text(
        f'<VRTDataset rasterXSize="10" rasterYSize="7"><SRS>EPSG:32618</SRS>'
        f"<GeoTransform>{affine}</GeoTransform>{bands}</VRTDataset>"
    )
    return path


@pytest.mark.parametrize("bands", [None, ["b2"], ["b3", "b1"], {"z": "2:2", "y": 3}])
def test_each_band_keeps_its_own_nodata_when_resampled(tmp_path: Path, bands: Any) -> None:
    from tfrio.geo import export_image

    values = np.stack([geo_a(), geo_a(), geo_a()])
    path = vrt(tmp_path, [101, None, 303], values)
    finer = [15, 0, 500000 - 30, 0, -15, 4500000 + 30]
    native = export_image(path, tmp_path / "n", patch=(10, 7), bands=bands, statistics=True)
    fine = export_image(
        path, tmp_path / "f", patch=(24, 18), bands=bands, statistics=True,
        crs_transform=finer, dimensions=(24, 18),
    )  # fmt: skip
    assert [band.nodata for band in native.content.bands] == [
        band.nodata for band in fine.content.bands
    ]
    for name, row in native.statistics.items():
        again = fine.statistics[name]
        assert again.count == 4 * row.count
        assert (again.min, again.max) == (row.min, row.max)


def test_a_resampled_raster_is_what_gdal_makes(tmp_path: Path) -> None:
    from rasterio.enums import Resampling
    from rasterio.warp import reproject

    path = write_raster(tmp_path / "a.tif", geo_a("float32"))
    frame = Frame("EPSG:32618", Affine6(20, 0, 500030, 0, -20, 4499970), XY(11, 6))
    reader = open_raster(path).warped_to(frame, XY(0, 0), "bilinear").open()
    block = reader.read(frame.window)
    reader.close()
    expected = np.zeros((6, 11), "float32")
    with rasterio.open(path) as data:
        reproject(
            rasterio.band(data, 1), expected, dst_transform=Affine(*frame.affine),
            dst_crs=frame.crs, resampling=Resampling.bilinear,
        )  # fmt: skip
    assert np.allclose(block.values[0], expected)


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"crs": None}, "has no CRS. Say which with source_crs"),
        ({"affine": (1, 0, 0, 0, 1, 0)}, "has a CRS but no transform"),
    ],
)
def test_pixels_without_a_place_are_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = write_raster(tmp_path / "a.tif", geo_a(), **changes)
    with pytest.raises(GeoError, match=message):
        open_raster(path)


def test_complex_numbers_are_refused(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", geo_a("complex64"))
    with pytest.raises(GeoError, match="band 'b1' is complex64; TFRecord has no such numbers"):
        open_raster(path)


def test_an_array_band_of_two_dtypes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.vrt"
    base = write_raster(tmp_path / "base.tif", geo_a())
    path.write_text(
        vrt(tmp_path, [None, None], np.stack([geo_a()] * 2))
        .read_text()
        .replace('dataType="Int16" band="2"', 'dataType="Float32" band="2"')
    )
    assert base.exists()
    with pytest.raises(GeoError, match="array band 'x' mixes float32, int16"):
        open_raster(path, bands={"x": "1:2"})
    found = [band.dtype for band in open_raster(path).bands]
    assert found == ["int16", "float32"]
    assert read(path, Window(1, 2, 4, 3)).values[1].dtype == np.float32


def test_each_step_of_an_array_band_keeps_its_own_nodata(tmp_path: Path) -> None:
    from tfrio.geo import export_image

    path = vrt(tmp_path, [101, None, 303], np.stack([geo_a(), geo_a(), geo_a()]))
    bands = {"t": "1:3", "b": 3}
    options: dict[str, Any] = {"bands": bands, "statistics": True, "default_value": -1}
    native = export_image(path, tmp_path / "n", patch=(10, 7), **options)
    assert native.statistics["t"].count == 3 * 70 - 2
    assert native.statistics["b"].count == 69
    assert [band.name for band in native.content.bands] == ["t", "b"]
    assert native.content.bands[0].nodata is None
    assert native.content.source == [str(path)]
    fine = export_image(
        path, tmp_path / "f", patch=(24, 18), **options,
        crs_transform=[15, 0, 500000 - 30, 0, -15, 4500000 + 30], dimensions=(24, 18),
    )  # fmt: skip
    assert fine.statistics["t"].count == 4 * (3 * 70 - 2)


def test_a_relative_path_is_read_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_raster(tmp_path / "a.tif", geo_a())
    monkeypatch.chdir(tmp_path)
    source = open_raster("a.tif")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert source.name == "a.tif"
    reader = source.open()
    assert reader.read(Window(1, 2, 3, 2)).values[0][0, 0] == 201
    reader.close()
