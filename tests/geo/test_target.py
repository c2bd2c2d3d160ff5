"""Grids asked for: region, crs, scale, crs_transform, dimensions, resampling."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import rasterio
from affine import Affine
from rasterio.warp import Resampling, reproject, transform_bounds

from tests.geo.rasters import AFFINE, geo_a, tiles, write_raster
from tfrio.errors import GeoError, UsageError
from tfrio.geo import array_source, export_image, read_mixer
from tfrio.geo.frame import METRES_PER_DEGREE, Bounds, Frame
from tfrio.geo.target import GridRequest, choose_frame, geometry_of
from tfrio.types import XY, Affine6

NATIVE = Frame("EPSG:32618", Affine6(*AFFINE), XY(10, 7))
X, Y = 500000, 4500000


@pytest.fixture
def raster(tmp_path: Path) -> Path:
    return write_raster(tmp_path / "a.tif", geo_a(), names=["b"])


def ask(**options: object) -> GridRequest:
    return GridRequest(region_crs="EPSG:32618", **options)  # type: ignore[arg-type]


def test_native_grid_by_default() -> None:
    assert choose_frame(NATIVE, ask()) == NATIVE
    assert choose_frame(NATIVE, ask(crs="EPSG:32618")) == NATIVE


def test_a_region_takes_whole_native_pixels() -> None:
    frame = choose_frame(NATIVE, ask(region=(X + 35, Y - 100, X + 95, Y - 10)))
    assert frame == Frame("EPSG:32618", Affine6(30, 0, X + 30, 0, -30, Y), XY(3, 4))
    whole = choose_frame(NATIVE, ask(region=(X - 999, Y - 999, X + 999, Y + 999)))
    assert whole == NATIVE
    with pytest.raises(
        GeoError, match=r"the region \(left .*, top .*\) lies outside the source \(left "
    ):
        choose_frame(NATIVE, ask(region=(0, 0, 10, 10)))


def test_scale_is_snapped() -> None:
    frame = choose_frame(NATIVE, ask(scale=45, region=(X + 35, Y - 100, X + 95, Y - 10)))
    assert frame.affine == Affine6(45, 0, 11111 * 45, 0, -45, 100000 * 45)
    assert frame.size == XY(3, 3)


def test_scale_in_degrees_uses_earth_engines_metres() -> None:
    frame = choose_frame(NATIVE, GridRequest(crs="EPSG:4326", scale=30))
    pixel = 30 / METRES_PER_DEGREE
    assert frame.affine.a == pixel
    assert frame.affine.c == round(frame.affine.c / pixel) * pixel
    left, bottom, right, top = transform_bounds("EPSG:32618", "EPSG:4326", X, Y - 210, X + 300, Y)
    bounds = frame.bounds
    assert bounds.left <= left < bounds.left + pixel
    assert bounds.top >= top > bounds.top - pixel
    assert bounds.right >= right
    assert bounds.bottom <= bottom


def test_feet_are_not_metres() -> None:
    feet = Frame("EPSG:2263", Affine6(100, 0, 980000, 0, -100, 200000), XY(10, 7))
    frame = choose_frame(feet, GridRequest(scale=30.480060960121921))
    assert frame.affine.a == pytest.approx(100)


def test_crs_transform_keeps_the_lattice() -> None:
    terms = [20, 0, X + 7, 0, -20, Y + 3]
    frame = choose_frame(NATIVE, ask(crs_transform=terms, region=(X, Y - 50, X + 50, Y)))
    assert frame.affine == Affine6(20, 0, X - 13, 0, -20, Y + 3)
    exact = choose_frame(NATIVE, ask(crs_transform=terms, dimensions=(5, 4)))
    assert exact == Frame("EPSG:32618", Affine6(*map(float, terms)), XY(5, 4))
    with pytest.raises(UsageError, match="leave them out"):
        choose_frame(
            NATIVE, ask(crs_transform=terms, dimensions=(5, 4), region=(X, Y - 9, X + 9, Y))
        )


def test_dimensions() -> None:
    assert choose_frame(NATIVE, ask(dimensions=(20, 7))).affine.a == 15
    assert choose_frame(NATIVE, ask(dimensions=100)).size == XY(100, 70)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 30, "dimensions": 4}, "scale cannot go with"),
        ({"scale": 30, "crs_transform": [1, 0, 0, 0, 1, 0]}, "scale cannot go with"),
        ({"scale": 0}, "above 0"),
        ({"crs_transform": [1, 2, 3]}, "six terms"),
        ({"resampling": "best"}, "resampling must be one of nearest, bilinear"),
    ],
)
def test_wrong_requests(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ask(**options)


def test_another_crs_needs_a_pixel_size() -> None:
    with pytest.raises(UsageError, match="say how large pixels are"):
        choose_frame(NATIVE, ask(crs="EPSG:4326"))
    with pytest.raises(UsageError, match="'EPSG:1' is not a CRS"):
        choose_frame(NATIVE, ask(crs="EPSG:1"))


def test_regions_of_every_kind() -> None:
    polygon = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [0, 1], [0, 0]]]}
    feature = {"type": "Feature", "properties": {}, "geometry": polygon}
    assert geometry_of(polygon) == geometry_of(feature) == polygon
    assert geometry_of(SimpleNamespace(__geo_interface__=feature)) == polygon
    many = geometry_of({"type": "FeatureCollection", "features": [feature]})
    assert many == {"type": "GeometryCollection", "geometries": [polygon]}
    ring = geometry_of((1, 2, 3, 5))["coordinates"][0]
    assert ring[0] == [1, 2]
    assert ring[2] == [3, 5]
    for wrong in ("text", (3, 2, 1, 5), {"type": "Thing"}, 7):
        with pytest.raises(UsageError, match="region"):
            geometry_of(wrong)
    assert Bounds(1, 2, 3, 5).left == 1


def test_margins_of_a_region_are_real_pixels(raster: Path, tmp_path: Path) -> None:
    report = export_image(
        raster, tmp_path / "s", patch=(4, 3), kernel=(2, 4), default_value=-1,
        region=(X + 60, Y - 150, X + 180, Y - 60), region_crs="EPSG:32618",
    )  # fmt: skip
    (tile,) = tiles(report.shards, "b", 7, 6)
    assert np.array_equal(tile, geo_a()[0:7, 1:7])
    mixer = read_mixer(str(report.mixer))
    assert (mixer.affine.c, mixer.affine.f) == (X + 60, Y - 60)


def test_pixels_of_a_shifted_lattice_are_taken_as_they_are(raster: Path, tmp_path: Path) -> None:
    report = export_image(
        raster, tmp_path / "s", patch=(12, 9), default_value=-1,
        crs_transform=[30, 0, X - 30, 0, -30, Y + 60], dimensions=(12, 9),
    )  # fmt: skip
    (tile,) = tiles(report.shards, "b", 9, 12)
    assert np.array_equal(tile[2:, 1:11], geo_a())
    assert (tile[:2] == -1).all()
    assert report.masked == 12 * 9 - 70


@pytest.mark.parametrize("resampling", ["nearest", "bilinear", "average"])
@pytest.mark.parametrize("kind", ["raster", "array"])
def test_resampling_is_rasterios(tmp_path: Path, resampling: str, kind: str) -> None:
    y, x = np.mgrid[0:60, 0:80]
    values = (np.sin(x / 9) * np.cos(y / 7) * 100).astype("float32")
    if kind == "raster":
        source: object = write_raster(tmp_path / "a.tif", values, names=["b"])
    else:
        source = array_source({"b": values}, AFFINE, crs="EPSG:32618")
    terms = [0.0005, 0, -75.0, 0, -0.0004, 40.65]
    report = export_image(
        source, tmp_path / "s", patch=(50, 35), crs="EPSG:4326", crs_transform=terms,
        dimensions=(50, 35), resampling=resampling, default_value=-999, workers=1,
    )  # fmt: skip
    (tile,) = tiles(report.shards, "b", 35, 50)
    expected = np.full((35, 50), np.nan, "float32")
    reproject(
        values, expected, src_transform=Affine(*AFFINE), src_crs="EPSG:32618", src_nodata=np.nan,
        dst_transform=Affine(*terms), dst_crs="EPSG:4326", resampling=Resampling[resampling],
        init_dest_nodata=True, dst_nodata=np.nan,
    )  # fmt: skip
    both = ~np.isnan(expected) & (tile != -999)
    assert both.sum() > 1000
    assert (np.isnan(expected) == (tile == -999)).mean() > 0.97
    close = np.isclose(tile[both], expected[both], atol=1e-3)
    assert close.mean() > (0.95 if resampling == "nearest" else 0.97)


def test_warped_margins_come_from_the_source(raster: Path, tmp_path: Path) -> None:
    options = {"crs_transform": [15, 0, X + 60, 0, -15, Y - 60], "dimensions": (8, 6)}
    report = export_image(
        raster, tmp_path / "s", patch=(8, 6), kernel=(4, 8), default_value=-1, **options
    )  # type: ignore[arg-type]
    (tile,) = tiles(report.shards, "b", 14, 12)
    fine = np.kron(geo_a(), np.ones((2, 2)))
    assert np.array_equal(tile, fine[0:14, 2:14])


def test_warped_pixels_beyond_the_source_are_masked(tmp_path: Path) -> None:
    for number, bands in enumerate((1, 2, 3, 4)):
        stack = np.stack([np.zeros((7, 10), "uint8")] * bands)
        path = write_raster(tmp_path / f"{number}.tif", stack, photometric="MINISBLACK")
        report = export_image(
            path, tmp_path / f"s{number}", patch=(16, 12), default_value=9,
            crs_transform=[15, 0, X - 60, 0, -15, Y], dimensions=(16, 12),
        )  # fmt: skip
        (tile,) = tiles(report.shards, "b1", 12, 16)
        assert (tile[:, :4] == 9).all()
        assert (tile[:, 4:] == 0).all()


def test_wkt_crs_goes_into_the_mixer(tmp_path: Path) -> None:
    wkt = rasterio.crs.CRS.from_string("+proj=laea +lat_0=12 +lon_0=34 +datum=WGS84").to_wkt()
    path = write_raster(tmp_path / "a.tif", geo_a(), crs=wkt)
    report = export_image(path, tmp_path / "s", patch=(4, 3))
    mixer = read_mixer(str(report.mixer))
    assert mixer.crs.startswith("PROJCS[")
    assert rasterio.crs.CRS.from_user_input(mixer.crs) == rasterio.crs.CRS.from_wkt(wkt)
    assert json.loads(Path(str(report.mixer)).read_text())["projection"]["crs"] == mixer.crs
    esri = write_raster(tmp_path / "e.tif", geo_a(), crs="ESRI:102033")
    assert export_image(esri, tmp_path / "e", patch=(4, 3)).content.crs == "ESRI:102033"


def test_south_up_and_rotated_grids_keep_their_terms(tmp_path: Path) -> None:
    for number, affine in enumerate([(30, 0, X, 0, 30, Y - 210), (30, 0.5, X, -0.5, -30, Y)]):
        path = write_raster(tmp_path / f"{number}.tif", geo_a(), names=["b"], affine=affine)
        report = export_image(path, tmp_path / f"s{number}", patch=(4, 3))
        assert read_mixer(str(report.mixer)).affine == Affine6(*map(float, affine))
        assert tiles(report.shards, "b", 3, 4)[3][0, 0] == 304


def test_a_region_in_another_crs_than_said_is_told(raster: Path, tmp_path: Path) -> None:
    with pytest.raises(GeoError, match=r"read as EPSG:4326, has no place .*: region_crs"):
        export_image(raster, tmp_path / "s", patch=(4, 3), region=(X, Y - 90, X + 90, Y))


def test_a_grid_over_the_line_where_longitude_starts_again_is_told(tmp_path: Path) -> None:
    source = array_source(geo_a(), (30000, 0, 160000, 0, -30000, 4500000), crs="EPSG:32601")
    with pytest.raises(GeoError, match="crosses the line where x starts again.*two sides"):
        export_image(source, tmp_path / "s", patch=(4, 3), crs="EPSG:4326", scale=30000)


def test_a_grid_that_does_not_meet_the_source_is_told(raster: Path, tmp_path: Path) -> None:
    grid = {"crs_transform": [30, 0, X + 300, 0, -30, Y], "dimensions": (12, 9)}
    with pytest.raises(GeoError, match="does not meet the source .*Check crs"):
        export_image(raster, tmp_path / "s", patch=(4, 3), **grid)  # type: ignore[arg-type]
    touching = {**grid, "crs_transform": [30, 0, X + 270, 0, -30, Y]}
    report = export_image(raster, tmp_path / "t", patch=(4, 3), **touching)  # type: ignore[arg-type]
    assert report.masked == 9 * 12 - 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "30"}, "scale must be metres per pixel, above 0; got '30'"),
        ({"scale": float("nan")}, "scale must be"),
        ({"crs_transform": [30, 0, 0, 0, float("nan"), 0]}, "six terms .* all finite"),
        ({"crs_transform": [0, 0, 1, 0, -30, 0]}, "pixels of no area"),
        ({"crs_transform": [30, 0, 1, 0, -30, 0, 0]}, "six terms"),
        ({"crs_transform": 30}, "six terms"),
    ],
)
def test_more_wrong_requests(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        GridRequest(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["bool", "float16", "uint64", "int8"])
def test_arrays_of_any_dtype_are_resampled(tmp_path: Path, dtype: str) -> None:
    values = (geo_a() % 2).astype(dtype)
    finer = {"crs_transform": [15, 0, X, 0, -15, Y], "dimensions": (20, 14)}
    report = export_image(
        array_source({"b": values}, AFFINE, crs="EPSG:32618"), tmp_path / "s", patch=(20, 14),
        **finer,  # type: ignore[arg-type]
    )  # fmt: skip
    (tile,) = tiles(report.shards, "b", 14, 20)
    assert np.array_equal(tile, np.kron(values.astype("float32"), np.ones((2, 2))))


def test_sources_keep_their_names_when_resampled(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "inputs"
    points, plain = (next(folder.glob(f"*/{name}.tif")) for name in ("au-gcp", "au-3577"))
    report = export_image(
        [points, plain], tmp_path / "s", patch=(40, 30), crs="EPSG:3577", scale=30000
    )
    assert [band.name for band in report.content.bands] == ["au-gcp_b1", "au-3577_b1"]
    assert report.content.source == [str(points), str(plain)]
