"""What can be exported: stacks, series, arrays, xarray objects; and what cannot."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio.crs

from tests.geo.rasters import AFFINE, examples, geo_a, tiles, write_raster
from tfrio.errors import GeoError, UsageError
from tfrio.geo import array_source, export_image
from tfrio.geo.arrays import xarray_source
from tfrio.geo.frame import Frame
from tfrio.geo.grid import Window
from tfrio.geo.source import Band, Block, nodata_mask
from tfrio.types import XY, Affine6

HALF = (30.0, 0.0, 500015.0, 0.0, -30.0, 4500000.0)


def test_image_and_label_stack(tmp_path: Path) -> None:
    stack = np.stack([geo_a(), geo_a() + 1, geo_a() + 2])
    image = write_raster(tmp_path / "image.tif", stack)
    label = write_raster(tmp_path / "label.tif", (geo_a() % 3).astype("uint8"))
    report = export_image([image, label], tmp_path / "s", patch=(4, 3), dtype="native")
    first = examples(report.shards)[0]
    assert sorted(first) == ["b2", "b3", "image_b1", "label_b1"]
    assert first["label_b1"] == [(geo_a() % 3).astype("uint8")[:3, :4].tobytes()]
    named = export_image({"x": image, "label": label}, tmp_path / "t", patch=(4, 3))
    assert [band.name for band in named.content.bands] == ["x_b1", "x_b2", "x_b3", "label"]


def test_half_a_pixel_is_an_error_that_states_both_origins(tmp_path: Path) -> None:
    one = write_raster(tmp_path / "image.tif", geo_a())
    other = write_raster(tmp_path / "label.tif", geo_a(), affine=HALF)
    with pytest.raises(GeoError, match="grids differ: origin x 500000 vs 500015 .*label.tif"):
        export_image([one, other], tmp_path / "s", patch=(4, 3))
    report = export_image(
        [one, other], tmp_path / "s", patch=(4, 3), crs_transform=AFFINE, dimensions=(10, 7)
    )
    assert len(report.content.bands) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"crs": "EPSG:32619"}, "CRS EPSG:32618 vs EPSG:32619"),
        ({"affine": (30, 0, 500000, 0, -30, 4500030)}, "origin y 4500000 vs 4500030"),
        ({"affine": (20, 0, 500000, 0, -30, 4500000)}, "pixel width 30 vs 20"),
        ({"affine": (30, 0, 500000, 0, -20, 4500000)}, "pixel height -30 vs -20"),
        ({"affine": (30, 1, 500000, 0, -30, 4500000)}, "affine"),
    ],
)
def test_other_differences(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    one = write_raster(tmp_path / "a.tif", geo_a())
    other = write_raster(tmp_path / "b.tif", geo_a(), **changes)
    with pytest.raises(GeoError, match=message):
        export_image([one, other], tmp_path / "s", patch=(4, 3))


def test_sizes_must_agree_too(tmp_path: Path) -> None:
    one = write_raster(tmp_path / "a.tif", geo_a())
    other = write_raster(tmp_path / "b.tif", geo_a()[:6])
    with pytest.raises(GeoError, match="size 10x7 vs 10x6"):
        export_image([one, other], tmp_path / "s", patch=(4, 3))
    report = export_image([one, other], tmp_path / "s", patch=(5, 7), default_value=-1,
                          region=(500000, 4499790, 500300, 4500000), region_crs="EPSG:32618",
                          crs_transform=AFFINE)  # fmt: skip
    last = tiles(report.shards, "b_b1", 7, 5)[1]
    assert last[6].tolist() == [-1] * 5


def test_a_list_of_rasters_is_a_time_series(tmp_path: Path) -> None:
    steps = [write_raster(tmp_path / f"{n}.tif", geo_a() + n, nodata=-9) for n in range(3)]
    report = export_image({"ndvi": steps, "b": steps[0]}, tmp_path / "s", patch=(4, 3))
    first = examples(report.shards)[0]
    assert np.array(first["ndvi"]).reshape(3, 3, 4)[2, 1, 1] == 103
    assert report.content.bands[0].depth == 3
    many = write_raster(tmp_path / "m.tif", np.stack([geo_a(), geo_a()]))
    with pytest.raises(UsageError, match="a series needs rasters of one band each"):
        export_image({"ndvi": [many]}, tmp_path / "t", patch=(4, 3))


def test_grouped_bands_are_an_array_band(tmp_path: Path) -> None:
    stack = np.stack([geo_a() + n for n in range(5)])
    path = write_raster(tmp_path / "a.tif", stack)
    report = export_image(path, tmp_path / "s", patch=(4, 3), bands={"first": 1, "rest": "3:5"})
    first = examples(report.shards)[0]
    assert np.array(first["rest"]).reshape(3, 3, 4)[:, 0, 0].tolist() == [2, 3, 4]
    for wrong in ("0:3", "4:9", "3:2", "x", 6):
        with pytest.raises(UsageError, match="bands are b1, b2, b3, b4, b5"):
            export_image(path, tmp_path / "t", patch=(4, 3), bands=[wrong])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((3, 4)), "geo.array_source"),
        ([], "no source"),
        (7, "cannot export int"),
    ],
)
def test_what_is_no_source(tmp_path: Path, given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        export_image(given, tmp_path / "s", patch=(2, 1))


def test_arrays(tmp_path: Path) -> None:
    source = array_source(geo_a(), AFFINE, crs="EPSG:32618", names=["b"], nodata=101)
    assert source.frame.affine == Affine6(*AFFINE)
    report = export_image(source, tmp_path / "s", patch=(4, 3))
    assert report.masked == 1
    cube = array_source(np.stack([geo_a(), geo_a()]), AFFINE, crs="EPSG:32618")
    assert [band.name for band in cube.bands] == ["b1", "b2"]
    some = export_image(cube, tmp_path / "t", patch=(4, 3), bands={"z": "b2"})
    assert list(examples(some.shards)[0]) == ["z"]
    with pytest.raises(UsageError, match="no band 'q'; bands are b1, b2"):
        export_image(cube, tmp_path / "u", patch=(4, 3), bands=["q"])


@pytest.mark.parametrize(
    ("values", "names", "message"),
    [
        (np.zeros(5), None, "must be"),
        (np.zeros((2, 3, 4)), ["a"], "1 names for 2 bands"),
        ({"a": np.zeros((3, 4)), "b": np.zeros((4, 3))}, None, "arrays must be"),
        (np.zeros((3, 4), complex), None, "which TFRecord cannot hold"),
    ],
)
def test_wrong_arrays(values: Any, names: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        array_source(values, AFFINE, crs="EPSG:32618", names=names)


def test_the_stamp_of_an_array_tells_values_and_masks() -> None:
    stamps = {
        array_source(values, AFFINE, crs="EPSG:32618").stamp
        for values in (
            geo_a(),
            geo_a() + 1,
            geo_a("int32"),
            geo_a().T,
            np.ma.masked_equal(geo_a(), 101),
            np.ma.masked_equal(geo_a(), 102),
        )
    }
    assert len(stamps) == 6


class Ramp:
    """A source of somebody else's, with the members that count and no more."""

    name, stamp, tiled = "ramp", "1", False
    bands = (Band("ramp", "int16"),)
    frame = Frame("EPSG:32618", Affine6(*AFFINE), XY(10, 7))
    extent = frame.window

    def open(self) -> Ramp:
        return self

    def read(self, window: Window) -> Block:
        return Block([geo_a()[window.slices].copy()], [None])

    def close(self) -> None: ...


def test_any_class_with_the_few_members_is_a_source(tmp_path: Path) -> None:
    plain = export_image(Ramp(), tmp_path / "s", patch=(4, 3), kernel=(2, 2), default_value=-1)
    assert tiles(plain.shards, "ramp", 5, 6)[3][0, 0] == 203
    named = export_image({"x": Ramp()}, tmp_path / "t", patch=(4, 3))
    assert list(examples(named.shards)[0]) == ["x"]
    finer = export_image(
        Ramp(), tmp_path / "u", patch=(20, 14), crs_transform=[15, 0, 500000, 0, -15, 4500000],
        dimensions=(20, 14),
    )  # fmt: skip
    (tile,) = tiles(finer.shards, "ramp", 14, 20)
    assert np.array_equal(tile, np.kron(geo_a(), np.ones((2, 2))))


def test_sources_pickle() -> None:
    source = array_source(geo_a(), AFFINE, crs="EPSG:32618")
    back = pickle.loads(pickle.dumps(source))
    block = back.open().read(Window(2, 1, 3, 2))
    assert block.values[0].tolist() == [[102, 103, 104], [202, 203, 204]]


def test_nodata_that_the_dtype_cannot_hold_masks_nothing() -> None:
    values = np.array([[0, 255]], "uint8")
    for nodata in (256.0, -1.0, 0.5, float("nan"), float("inf")):
        assert nodata_mask(values, nodata) is None
    assert nodata_mask(np.array([[0, -(2**63)]], "int64"), -(2.0**63)) is not None
    assert nodata_mask(np.array([[True, False]]), 0).tolist() == [[False, True]]  # type: ignore[union-attr]


xr = pytest.importorskip("xarray")


def cube(**changes: Any) -> Any:
    """Return a Dataset: scalar band b and array band a over three times."""
    x = 500015 + 30 * np.arange(10)
    y = 4499985 - 30 * np.arange(7)
    times = np.stack([geo_a(), geo_a() + 1, geo_a() + 2])
    return xr.Dataset(
        {"b": (("y", "x"), geo_a()), "a": (("time", "y", "x"), times)},
        coords={"x": x, "y": y, "time": [1, 2, 3]},
        attrs={"crs": "EPSG:32618", **changes},
    )


def test_a_dataset_exports_like_the_raster(tmp_path: Path) -> None:
    report = export_image(cube(), tmp_path / "s", patch=(4, 3))
    assert report.content.affine == Affine6(*AFFINE)
    first = examples(report.shards)[0]
    assert np.array(first["a"]).reshape(3, 3, 4)[:, 1, 1].tolist() == [101, 102, 103]
    assert [band.depth for band in report.content.bands] == [None, 3]


def test_dimensions_may_come_in_any_order_and_name(tmp_path: Path) -> None:
    turned = cube().transpose("time", "x", "y").rename(x="lon", y="lat")
    report = export_image(turned, tmp_path / "s", patch=(4, 3), bands=["b"])
    assert tiles(report.shards, "b", 3, 4)[3][0, 0] == 304


def test_south_up_coordinates_stay_south_up(tmp_path: Path) -> None:
    report = export_image(cube().isel(y=slice(None, None, -1)), tmp_path / "s", patch=(4, 3))
    assert report.content.affine == Affine6(30, 0, 500000, 0, 30, 4499790)
    assert np.array(examples(report.shards)[0]["b"])[0] == 600


def test_a_band_dimension_becomes_scalar_bands(tmp_path: Path) -> None:
    data = cube()["a"].rename(time="band").assign_coords(band=["red", "green", "blue"])
    data.attrs["crs"] = "EPSG:32618"
    report = export_image(data, tmp_path / "s", patch=(4, 3))
    assert [band.name for band in report.content.bands] == ["red", "green", "blue"]


def test_dask_arrays_are_read_piece_by_piece(tmp_path: Path) -> None:
    dask_array = pytest.importorskip("dask.array")
    read: list[tuple[int, ...]] = []

    def piece(block: np.ndarray) -> np.ndarray:
        read.append(block.shape)
        return block

    lazy = cube()
    chunks = dask_array.from_array(geo_a(), chunks=(3, 10)).map_blocks(piece, dtype="int16")
    lazy["b"] = (("y", "x"), chunks)
    read.clear()
    report = export_image(lazy, tmp_path / "s", patch=(4, 3), bands=["b"], workers=1)
    assert tiles(report.shards, "b", 3, 4)[3][0, 0] == 304
    assert (7, 10) not in read


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.assign_attrs(crs=None), "tells no CRS"),
        (lambda d: d.drop_vars("x"), "'x' has no coordinates"),
        (lambda d: d.isel(x=[0, 1, 3]), "not evenly spaced"),
        (lambda d: d.isel(x=[0]), "two are needed"),
        (lambda d: d.rename(x="i", y="j"), "cannot tell which of the dimensions"),
        (lambda d: d[["a"]].expand_dims(run=2), "at most one besides y and x"),
    ],
)
def test_wrong_datasets(tmp_path: Path, change: Any, message: str) -> None:
    with pytest.raises(GeoError, match=message):
        export_image(change(cube()), tmp_path / "s", patch=(4, 3))


def test_fill_values_of_attributes_mask() -> None:
    data = cube()
    data["b"].attrs["_FillValue"] = 101
    source = xarray_source(data)
    assert source.bands[0].nodata == 101
    block = source.open().read(source.frame.window)
    assert block.masked[0] is not None
    assert np.argwhere(block.masked[0]).tolist() == [[1, 1]]


def test_a_crs_can_be_said(tmp_path: Path) -> None:
    bare = cube().assign_attrs(crs=None)
    report = export_image(bare, tmp_path / "s", patch=(4, 3), source_crs="EPSG:32618")
    assert report.content.crs == "EPSG:32618"


class FarArray(xr.backends.BackendArray):  # type: ignore[misc,name-defined]
    """An array behind a network, as xee makes them: windows only, each a request."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.shape, self.dtype = values, values.shape, values.dtype
        self.asked: list[int] = []

    def __getitem__(self, key: Any) -> Any:
        support = xr.core.indexing.IndexingSupport.BASIC
        return xr.core.indexing.explicit_indexing_adapter(key, self.shape, support, self._fetch)

    def _fetch(self, key: Any) -> np.ndarray:
        piece: np.ndarray = self.values[key]
        self.asked.append(piece.size)
        return piece


def as_xee_gives_it(dims: tuple[str, str, str], far: FarArray, crs: str = "EPSG:4326") -> Any:
    """Return a Dataset like xee's: float32, the CRS an attribute of each variable alone."""
    lazy = xr.core.indexing.LazilyIndexedArray(far)
    attrs = {"id": "B4", "crs": crs, "crs_transform": "[1, 0, 0, 0, 1, 0]", "data_type": "{}"}
    encoding = {"source": "B4", "preferred_chunks": {"time": 48}}
    x, y = (name for name in dims if name != "time")
    if y in ("x", "lon"):
        x, y = y, x
    coords = {
        "time": np.array(["2024-05-01", "2024-05-06"], "datetime64[ns]"),
        x: 10 + 0.25 * np.arange(143) + 0.125,
        y: 50 - 0.25 * np.arange(61) - 0.125,
    }
    return xr.Dataset(
        {"B4": xr.Variable(dims, lazy, attrs, encoding)}, coords, {"system:id": "collection"}
    )


@pytest.mark.parametrize("dims", [("time", "y", "x"), ("time", "lon", "lat")])
def test_what_xee_opens_is_exported_window_by_window(
    tmp_path: Path, dims: tuple[str, str, str]
) -> None:
    values = np.random.default_rng(5).normal(0, 1, (2, 61, 143)).astype("float32")
    values[1, 2, 3] = np.nan
    far = FarArray(values if dims[1] == "y" else values.transpose(0, 2, 1))
    data = as_xee_gives_it(dims, far)
    report = export_image(data, tmp_path / "s", patch=(11, 7), workers=2)
    assert report.content.crs == "EPSG:4326"
    assert report.content.affine == Affine6(0.25, 0, 10, 0, -0.25, 50)
    assert [band.depth for band in report.content.bands] == [2]
    first = np.array(examples(report.shards)[0]["B4"]).reshape(2, 7, 11)
    expected = np.nan_to_num(values[:, :7, :11])
    assert np.array_equal(first, expected)
    last = np.array(examples(report.shards)[-1]["B4"]).reshape(2, 7, 11)
    assert np.array_equal(last, values[:, 49:56, 132:143])
    assert max(far.asked) < values.size / 4


def test_variables_of_several_crss_are_refused(tmp_path: Path) -> None:
    data = as_xee_gives_it(("time", "y", "x"), FarArray(np.zeros((2, 61, 143), "float32")))
    data["other"] = data["B4"].assign_attrs(crs="EPSG:3857")
    with pytest.raises(GeoError, match="several CRSs: EPSG:4326, EPSG:3857"):
        export_image(data, tmp_path / "s", patch=(11, 7))
    report = export_image(data, tmp_path / "s", patch=(11, 7), source_crs="EPSG:4326")
    assert len(report.content.bands) == 2


@pytest.mark.parametrize("where", ["coords", "data_vars"])
def test_a_grid_mapping_tells_the_crs(where: str) -> None:
    data = cube().assign_attrs(crs=None)
    wkt = rasterio.crs.CRS.from_epsg(32618).to_wkt()
    mapping = xr.DataArray(0, attrs={"crs_wkt": wkt})
    data = getattr(data, "assign_coords" if where == "coords" else "assign")(utm=mapping)
    data["b"].attrs["grid_mapping"] = "utm"
    assert xarray_source(data).frame.crs == "EPSG:32618"
    assert [band.name for band in xarray_source(data).bands] == ["b", "a"]


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    affine = np.array(AFFINE)
    source = array_source({"b": geo_a(), "c": np.stack([geo_a()] * 2)}, affine, crs="EPSG:32618")
    plain = {"patch": (4, 3), "kernel": (2, 4), "stride": 3, "max_file_size": 900}
    given = {name: np.array(value) for name, value in plain.items()}
    given["stride"], given["max_file_size"] = np.int64(3), np.int64(900)
    depths = {
        "tensor_depths": {"c": 1},
        "default_value": -1,
        "region": (5e5, 4499820, 5e5 + 240, 45e5),
    }
    numpy = {
        "tensor_depths": {"c": np.int32(1)},
        "default_value": np.float32(-1),
        "region": np.array(depths["region"]),
    }
    where = {"region_crs": "EPSG:32618"}
    one = export_image(source, tmp_path / "a", **plain, **depths, **where)  # type: ignore[arg-type]
    other = export_image(source, tmp_path / "b", **given, **numpy, **where)  # type: ignore[arg-type]
    assert examples(one.shards) == examples(other.shards)
    assert one.content.grid == other.content.grid
    with pytest.raises(UsageError, match="patch must be two whole numbers"):
        export_image(source, tmp_path / "c", patch=np.array([4.0, 3.0]))  # type: ignore[arg-type]
    report = export_image(
        source, tmp_path / "d", patch=(4, 3), crs_transform=affine, dimensions=np.array([8, 6])
    )
    assert report.content.grid.size == (8, 6)
