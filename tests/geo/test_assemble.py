"""Predictions back to the map, with rasterio as the oracle."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pyproj
import pytest
import rasterio

from tests.geo.predictions import AFFINE, GEO_A, MIX_A, predictions, read, tile, write
from tfrio.errors import CorruptRecordError, GeoError, TfrioWarning, UsageError
from tfrio.geo import Mixer, import_image
from tfrio.types import XY, Affine6

if TYPE_CHECKING:
    from pathlib import Path

COVERED = GEO_A[:6, :8]


def test_the_map_is_in_its_place(tmp_path: Path) -> None:
    for shard in (0, 1):
        rows = ({"b": tile(i).ravel()} for i in (2 * shard, 2 * shard + 1))
        write(tmp_path / f"pred-{shard:05d}.tfrecord", rows)
    report = import_image(tmp_path / "pred-*.tfrecord", tmp_path / "map.tif", mixer=MIX_A)
    with rasterio.open(tmp_path / "map.tif") as dataset:
        assert dataset.crs == "EPSG:32618"
        assert tuple(dataset.transform)[:6] == AFFINE
        assert (dataset.width, dataset.height) == (8, 6)
        assert dataset.tags()["AREA_OR_POINT"] == "Area"
        assert dataset.block_shapes == [(256, 256)]
        assert dataset.compression.name == "deflate"
        assert dataset.descriptions == ("b",)
        assert dataset.xy(5, 6) == (500195, 4499835)
        assert dataset.xy(0, 0) == (500015, 4499985)
        assert dataset.read(1)[5, 6] == 506
    np.testing.assert_array_equal(read(tmp_path / "map.tif")[0], COVERED)
    assert (report.patches, report.expected, report.covered, report.missing) == (4, 4, 48, 0)
    assert report.nodata is None
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".tfrecord", ".tfrecord", ".tif"]


@pytest.mark.parametrize("kernel", [XY(4, 2), XY(2, 2), XY(1, 4), XY(3, 5)])
def test_padded_predictions_are_cropped_on_the_right_axes(tmp_path: Path, kernel: XY) -> None:
    path = write(tmp_path / "p.tfrecord", ({"b": tile(i, kernel).ravel()} for i in range(4)))
    import_image(path, tmp_path / "map.tif", mixer=MIX_A, kernel=kernel)
    np.testing.assert_array_equal(read(tmp_path / "map.tif")[0], COVERED)


def test_the_only_kernel_that_fits_is_inferred(tmp_path: Path) -> None:
    path = write(tmp_path / "p.tfrecord", ({"b": tile(i, XY(2, 2)).ravel()} for i in range(4)))
    import_image(path, tmp_path / "map.tif", mixer=MIX_A)
    np.testing.assert_array_equal(read(tmp_path / "map.tif")[0], COVERED)


@pytest.mark.parametrize(
    ("indices", "values", "options", "text"),
    [
        (range(3), 12, {}, r"mixer says 4 patches, the predictions hold 3 \(.*p.tfrecord 3\)"),
        ((0, 1, 2, 3, 3), 12, {}, "mixer says 4 patches, the predictions hold 5"),
        (range(4), 20, {"kernel": (2, 2)}, r"p.tfrecord: .* 20 values .* neither 4x3 nor 6x5"),
        (range(4), 11, {}, r"p.tfrecord: .* 11 values .* neither 4x3 nor that patch with a margin"),
        (range(4), 12, {"crs": "SR-ORG:6974"}, "unknown authority SR-ORG; pass crs="),
        (range(4), 12, {"crs": "nonsense"}, "CRS 'nonsense': not understood"),
        (range(4), 12, {"nodata": 0.5, "dtype": "int16"}, "nodata 0.5 is no int16"),
        (range(4), 12, {"dtype": "uint8"}, "does not hold the predictions, .* from 0 to 507"),
    ],
)
def test_what_does_not_fit_is_an_error_and_no_file(
    tmp_path: Path, indices: Any, values: int, options: dict[str, Any], text: str
) -> None:
    rows = ({"b": np.resize(tile(i), values)} for i in indices)
    path = write(tmp_path / "p.tfrecord", rows)
    with pytest.raises(GeoError, match=text):
        import_image(path, tmp_path / "map.tif", mixer=MIX_A, **options)
    assert [p.name for p in tmp_path.iterdir()] == ["p.tfrecord"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"blend": "median"}, "blend must be one of crop, mean, hann"),
        ({"mask": "some"}, "mask must be one of any, all, off"),
        ({"layout": "hcw"}, "layout must be one of chw, hwc"),
        ({"orientation": "south"}, "orientation must be one of north-up, keep"),
        ({"compress": "jpeg"}, "compress must be one of deflate"),
        ({"bands": ["c"]}, "no feature 'c' in the predictions; there are b"),
        ({"index": "i"}, "no feature 'i' in the predictions; there are b"),
        ({"argmax": True}, "argmax needs at least two bands"),
        ({"blend": "mean"}, "'b' holds whole numbers"),
        ({"extent": "source"}, "needs the manifest"),
        ({"colors": ["red"]}, "'red' is no colour"),
        ({"kernel": (0, 1)}, "kernel must be two whole numbers"),
    ],
)
def test_wrong_options(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    path = predictions(tmp_path)
    with pytest.raises(UsageError, match=text):
        import_image(path, tmp_path / "map.tif", mixer=MIX_A, **options)
    assert not (tmp_path / "map.tif").exists()


def test_the_name_of_the_map(tmp_path: Path) -> None:
    path = predictions(tmp_path)
    with pytest.raises(UsageError, match=r"give a name ending in \.tif"):
        import_image(path, tmp_path / "map.png", mixer=MIX_A)
    with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
        import_image(path, tmp_path / "no" / "map.tif", mixer=MIX_A)


def test_a_damaged_record_stops_everything(tmp_path: Path) -> None:
    path = write(tmp_path / "p.tfrecord", ({"b": tile(i).ravel()} for i in range(4)))
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptRecordError, match="record 3"):
        import_image(path, tmp_path / "map.tif", mixer=MIX_A)
    assert [p.name for p in tmp_path.iterdir()] == ["p.tfrecord"]


def test_one_record_of_another_length_is_named(tmp_path: Path) -> None:
    rows = [{"b": tile(i).ravel()} for i in range(4)]
    rows[2] = {"b": tile(2).ravel()[:11]}
    path = write(tmp_path / "p.tfrecord", rows)
    with pytest.raises(GeoError, match=r"p.tfrecord, record 2: feature 'b' has 11 values"):
        import_image(path, tmp_path / "map.tif", mixer=MIX_A)
    rows[2] = {"c": tile(2).ravel()}
    write(path, rows)
    with pytest.raises(GeoError, match="record 2: feature 'b' is absent"):
        import_image(path, tmp_path / "map.tif", mixer=MIX_A, bands=["b"])


class TestOrder:
    """Records in any order, or only some of them."""

    def indexed(self, path: Path, indices: Any) -> Path:
        return write(path, ({"b": tile(i % 4).ravel(), "patch_index": i} for i in indices))

    def test_an_index_places_records_in_any_order(self, tmp_path: Path) -> None:
        path = self.indexed(tmp_path / "p.tfrecord", (2, 0, 3, 1))
        report = import_image(path, tmp_path / "map.tif", mixer=MIX_A)
        np.testing.assert_array_equal(read(report.path)[0], COVERED)
        assert report.bands == ("b",)

    @pytest.mark.parametrize(
        ("indices", "text"),
        [
            ((0, 1, 3), "the predictions hold 3; patch 2 is missing"),
            ((0, 1, 1, 3), "patch 1 is predicted twice: .*record 1 and .*record 2"),
            ((0, 1, 2, 4), "record 3: patch index 4 is no patch"),
        ],
    )
    def test_a_wrong_index(self, tmp_path: Path, indices: Any, text: str) -> None:
        path = self.indexed(tmp_path / "p.tfrecord", indices)
        with pytest.raises(GeoError, match=text):
            import_image(path, tmp_path / "map.tif", mixer=MIX_A)

    def test_an_index_stored_as_float(self, tmp_path: Path) -> None:
        rows = ({"b": tile(i).ravel(), "n": float(i)} for i in (2, 0, 3, 1))
        path = write(tmp_path / "p.tfrecord", rows)
        report = import_image(path, tmp_path / "map.tif", mixer=MIX_A, index="n")
        np.testing.assert_array_equal(read(report.path)[0], COVERED)
        rows = ({"b": tile(i).ravel(), "n": i + 0.5, "t": b"x"} for i in range(4))
        path = write(tmp_path / "q.tfrecord", rows)
        with pytest.raises(GeoError, match="record 0: 0.5 of feature 'n' is no patch index"):
            import_image(path, tmp_path / "map.tif", mixer=MIX_A, index="n", overwrite=True)
        with pytest.raises(GeoError, match="feature 't' is bytes, no index"):
            import_image(
                path, tmp_path / "map.tif", mixer=MIX_A, index="t", bands=["b"], overwrite=True
            )

    def test_a_partial_import_is_asked_for(self, tmp_path: Path) -> None:
        path = self.indexed(tmp_path / "p.tfrecord", (3, 0))
        report = import_image(path, tmp_path / "map.tif", mixer=MIX_A, partial=True)
        expected = np.full((6, 8), report.nodata)
        expected[:3, :4], expected[3:, 4:] = COVERED[:3, :4], COVERED[3:, 4:]
        np.testing.assert_array_equal(read(report.path)[0], expected)
        assert (report.patches, report.covered, report.missing) == (2, 24, 24)

    def test_a_shard_alone_lands_where_its_number_says(self, tmp_path: Path) -> None:
        path = write(tmp_path / "p-00001.tfrecord", ({"b": tile(i).ravel()} for i in (2, 3)))
        with pytest.raises(GeoError, match="shard 00000 missing; there are 00001"):
            import_image(path, tmp_path / "map.tif", mixer=MIX_A)
        report = import_image(path, tmp_path / "map.tif", mixer=MIX_A, partial=True)
        values = read(report.path)[0]
        np.testing.assert_array_equal(values[3:], COVERED[3:])
        assert (values[:3] == report.nodata).all()


def test_south_up_grids_turn_north_up(tmp_path: Path) -> None:
    mixer = Mixer("EPSG:32618", Affine6(30, 0, 500000, 0, 30, 4499790), XY(4, 3), 2, 4)
    path = predictions(tmp_path)
    kept = import_image(path, tmp_path / "kept.tif", mixer=mixer, orientation="keep")
    turned = import_image(path, tmp_path / "turned.tif", mixer=mixer)
    assert turned.affine == Affine6(30, 0, 500000, 0, -30, 4499970)
    assert kept.affine == mixer.affine
    point = [(500045, 4499805)]
    with rasterio.open(kept.path) as before, rasterio.open(turned.path) as after:
        assert list(before.sample(point)) == list(after.sample(point)) == [[1]]
        np.testing.assert_array_equal(after.read(1), before.read(1)[::-1])


@pytest.mark.parametrize(
    "crs",
    [
        "EPSG:32618",
        "ESRI:102033",
        pyproj.CRS("+proj=laea +lat_0=52 +lon_0=10 +ellps=GRS80 +units=m").to_wkt(),
        "+proj=sinu +R=6371007.181 +units=m",
    ],
)
def test_every_form_of_crs(tmp_path: Path, crs: str) -> None:
    mixer = Mixer(crs, AFFINE, XY(4, 3), 2, 4)
    import_image(predictions(tmp_path), tmp_path / "map.tif", mixer=mixer)
    with rasterio.open(tmp_path / "map.tif") as dataset:
        found = pyproj.CRS(dataset.crs.to_wkt())
    assert found.equals(pyproj.CRS(crs), ignore_axis_order=True)


def test_an_unknown_crs_can_be_overridden(tmp_path: Path) -> None:
    mixer = Mixer("SR-ORG:6974", AFFINE, XY(4, 3), 2, 4)
    path = predictions(tmp_path)
    with pytest.raises(GeoError, match="'SR-ORG:6974': unknown authority SR-ORG"):
        import_image(path, tmp_path / "map.tif", mixer=mixer)
    report = import_image(path, tmp_path / "map.tif", mixer=mixer, crs="EPSG:6933")
    assert report.crs == "EPSG:6933"


def test_a_rotated_grid_keeps_all_six_terms(tmp_path: Path) -> None:
    terms = Affine6(30, 0.5, 500000, -0.5, -30, 4500000)
    mixer = Mixer("EPSG:32618", terms, XY(4, 3), 2, 4)
    report = import_image(predictions(tmp_path), tmp_path / "map.tif", mixer=mixer)
    with rasterio.open(report.path) as dataset:
        assert tuple(dataset.transform)[:6] == terms


class TestFeatures:
    """What a record may hold."""

    def test_class_and_probabilities(self, tmp_path: Path) -> None:
        scores = np.random.default_rng(0).random((4, 3, 3, 4), np.float32)
        rows = (
            {"label": s.argmax(0).ravel(), **{f"p{k}": s[k].ravel() for k in range(3)}}
            for s in scores
        )
        path = write(tmp_path / "p.tfrecord", rows)
        order = ["label", "p2", "p0", "p1"]
        report = import_image(path, tmp_path / "all.tif", mixer=MIX_A, bands=order)
        assert report.bands == tuple(order)
        assert report.dtype == "float32"
        alone = import_image(path, tmp_path / "label.tif", mixer=MIX_A, bands=["label"])
        assert alone.dtype == "uint8"
        best = import_image(
            path, tmp_path / "best.tif", mixer=MIX_A, bands=["p0", "p1", "p2"], argmax=True
        )
        assert (best.bands, best.dtype) == (("class",), "uint8")
        np.testing.assert_array_equal(read(best.path), read(alone.path))
        np.testing.assert_array_equal(read(report.path)[0], read(alone.path)[0])

    @pytest.mark.parametrize("layout", ["chw", "hwc"])
    def test_planes_in_one_feature(self, tmp_path: Path, layout: str) -> None:
        cube = np.stack([GEO_A, 2 * GEO_A, 3 * GEO_A]).astype(np.float32)
        tiles = [cube[:, r : r + 3, c : c + 4] for r in (0, 3) for c in (0, 4)]
        flat = (t if layout == "chw" else np.moveaxis(t, 0, -1) for t in tiles)
        path = write(tmp_path / "p.tfrecord", ({"p": t.ravel()} for t in flat))
        report = import_image(path, tmp_path / "map.tif", mixer=MIX_A, layout=layout)
        np.testing.assert_array_equal(read(report.path), cube[:, :6, :8])
        assert report.bands == ("p_0", "p_1", "p_2")

    def test_bytes_are_uint8(self, tmp_path: Path) -> None:
        rows = ({"b": (tile(i) % 251).astype(np.uint8).tobytes()} for i in range(4))
        report = import_image(write(tmp_path / "p.tfrecord", rows), tmp_path / "m.tif", mixer=MIX_A)
        np.testing.assert_array_equal(read(report.path)[0], COVERED % 251)
        assert report.dtype == "uint8"

    def test_text_beside_the_patch_is_named(self, tmp_path: Path) -> None:
        rows = ({"b": tile(i).ravel(), "id": b"x" * (i + 1)} for i in range(4))
        path = write(tmp_path / "p.tfrecord", rows)
        with pytest.raises(GeoError, match="record 1: feature 'id' has 2 bytes"):
            import_image(path, tmp_path / "map.tif", mixer=MIX_A)
        import_image(path, tmp_path / "map.tif", mixer=MIX_A, bands=["b"])

    def test_one_value_per_patch(self, tmp_path: Path) -> None:
        path = write(tmp_path / "p.tfrecord", ({"b": float(i)} for i in range(4)))
        report = import_image(path, tmp_path / "map.tif", mixer=MIX_A)
        assert read(report.path).tolist() == [[[0, 1], [2, 3]]]
        assert report.affine == Affine6(120, 0, 500000, 0, -90, 4500000)

    def test_a_coarser_grid_must_divide_the_patch(self, tmp_path: Path) -> None:
        path = write(tmp_path / "p.tfrecord", ({"b": np.arange(4.0)} for _ in range(4)))
        with pytest.raises(GeoError, match="4 values per patch"):
            import_image(path, tmp_path / "map.tif", mixer=MIX_A)
        path = write(tmp_path / "p.tfrecord", ({"b": np.arange(2.0) + 2 * i} for i in range(4)))
        report = import_image(path, tmp_path / "map.tif", mixer=MIX_A, cells=(2, 1))
        assert read(report.path).tolist() == [[[0, 1, 2, 3], [4, 5, 6, 7]]]
        assert report.affine == Affine6(60, 0, 500000, 0, -90, 4500000)

    @pytest.mark.parametrize(
        ("low", "high", "dtype"),
        [(0, 8, "uint8"), (-1, 8, "int16"), (0, 40_000, "uint16"), (0, 70_000, "int32")],
    )
    def test_the_smallest_dtype_that_holds_all(
        self, tmp_path: Path, low: int, high: int, dtype: str
    ) -> None:
        rows = ({"b": np.resize([low, high], 12)} for _ in range(4))
        path = write(tmp_path / "p.tfrecord", rows)
        assert import_image(path, tmp_path / "map.tif", mixer=MIX_A).dtype == dtype


def test_hectares_by_class(tmp_path: Path) -> None:
    rows = ({"c": (tile(i) % 3).astype(np.uint8).tobytes()} for i in range(4))
    path = write(tmp_path / "p.tfrecord", rows)
    names = ["water", "forest", "bare"]
    colors = {0: "#0000ff", 1: (0, 128, 0), 2: (200, 200, 100, 255)}
    report = import_image(path, tmp_path / "map.tif", mixer=MIX_A, class_names=names, colors=colors)
    counts = np.bincount((COVERED % 3).ravel())
    assert [row.pixels for row in report.classes] == counts.tolist()
    assert [row.name for row in report.classes] == names
    assert report.hectares == pytest.approx({k: counts[k] * 0.09 for k in range(3)})
    with rasterio.open(report.path) as dataset:
        assert dataset.colormap(1)[1] == (0, 128, 0, 255)
        assert dataset.tags(1)["CLASS_2"] == "bare"
    assert "forest" in str(report)
    assert report.as_dict()["classes"][0]["hectares"] == report.hectares[0]


def test_geographic_areas_are_geodesic(tmp_path: Path) -> None:
    mixer = Mixer("EPSG:4326", Affine6(0.25, 0, 10, 0, -0.25, 60), XY(4, 3), 2, 4)
    rows = ({"c": np.full(12, i)} for i in range(4))
    report = import_image(write(tmp_path / "p.tfrecord", rows), tmp_path / "m.tif", mixer=mixer)
    geod = pyproj.Geod(ellps="WGS84")
    steps = np.linspace(10, 11, 200)
    x = np.r_[steps, steps[::-1]]
    y = np.r_[np.full(200, 60.0), np.full(200, 59.25)]
    expected = abs(geod.polygon_area_perimeter(x, y)[0]) / 10_000
    assert report.hectares[0] == pytest.approx(expected, rel=1e-5)
    assert report.hectares[0] == pytest.approx(report.hectares[1])
    assert report.hectares[0] < report.hectares[2]


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    import_image(
        predictions(tmp_path),
        tmp_path / "map.tif",
        mixer=MIX_A,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_cog_with_overviews(tmp_path: Path) -> None:
    mixer = Mixer("EPSG:32618", AFFINE, XY(300, 200), 2, 6)
    values = np.arange(60_000, dtype=np.float32)
    path = write(tmp_path / "p.tfrecord", ({"b": values + i} for i in range(6)))
    report = import_image(path, tmp_path / "map.tif", mixer=mixer, cog=True)
    with rasterio.open(report.path) as dataset:
        assert dataset.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
        assert dataset.overviews(1)
        tiles = [values.reshape(200, 300) + i for i in range(6)]
        expected = np.vstack([np.hstack(tiles[i : i + 2]) for i in (0, 2, 4)])
        np.testing.assert_array_equal(dataset.read(1), expected)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["map.tif", "p.tfrecord"]


def test_adjacent_exports_merge_without_a_seam(tmp_path: Path) -> None:
    east = Mixer("EPSG:32618", AFFINE._replace(c=500_240), XY(4, 3), 1, 2)
    north = Mixer("EPSG:32618", AFFINE._replace(f=4_500_060), XY(4, 2), 3, 3)
    wide = np.arange(8 * 12).reshape(8, 12)
    sets = {
        "a": [wide[r : r + 3, c : c + 4] for r in (2, 5) for c in (0, 4)],
        "b": [wide[r : r + 3, 8:12] for r in (2, 5)],
        "c": [wide[:2, c : c + 4] for c in (0, 4, 8)],
    }
    paths = [
        write(tmp_path / f"{name}.tfrecord", ({"v": t.ravel()} for t in tiles))
        for name, tiles in sets.items()
    ]
    report = import_image(paths, tmp_path / "map.tif", mixer=[MIX_A, east, north])
    np.testing.assert_array_equal(read(report.path)[0], wide)
    assert report.affine == AFFINE._replace(f=4_500_060)
    half = Mixer("EPSG:32618", AFFINE._replace(c=500_255), XY(4, 3), 1, 2)
    with pytest.raises(GeoError, match="does not share the pixels"):
        import_image(paths[:2], tmp_path / "no.tif", mixer=[MIX_A, half])
    with pytest.raises(UsageError, match="2 exports need as many sets"):
        import_image(paths, tmp_path / "no.tif", mixer=[MIX_A, half])


def test_warnings_turned_into_errors_leave_no_file(tmp_path: Path) -> None:
    path = predictions(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TfrioWarning, match="nodata 5 is also the value of 1 valid pixels"):
            import_image(path, tmp_path / "map.tif", mixer=_noted(tmp_path), nodata=5)
    assert not (tmp_path / "map.tif").exists()
    assert not list(tmp_path.glob(".*"))


def _noted(folder: Path) -> Path:
    """Export GEO-A, so that a manifest says nothing is masked."""
    from tfrio.geo import export_image

    source = folder / "geo-a.tif"
    with rasterio.open(
        source,
        "w",
        driver="GTiff",
        width=10,
        height=7,
        count=1,
        dtype="int16",
        crs="EPSG:32618",
        transform=rasterio.Affine(*AFFINE),
    ) as dataset:
        dataset.write(GEO_A, 1)
    export_image(source, folder / "export", patch=(4, 3))
    return folder / "export-mixer.json"


def test_the_real_earth_engine_shard(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "ee" / "phen_asynch"
    name = "TEST_coeff_output_SIF_C_S_Amer"
    shard, mixer = folder / f"{name}-00005.tfrecord", folder / f"{name}-mixer.json"
    with pytest.raises(GeoError, match="shards 00000 to 00004 missing"):
        import_image(shard, tmp_path / "map.tif", mixer=mixer)
    with pytest.warns(TfrioWarning, match="Nothing tells which pixels the export masked"):
        report = import_image(shard, tmp_path / "map.tif", mixer=mixer, partial=True, nodata=-9999)
    assert (report.size, report.patches, report.expected) == (XY(768, 1280), 2, 15)
    assert set(report.bands) == {"constant", "sin_1", "cos_1", "sin_2", "cos_2"}
    with rasterio.open(report.path) as dataset:
        valid = dataset.read_masks(1) > 0
        assert dataset.crs == "EPSG:4326"
        # Patches 10 and 11 are row 3, columns 1 and 2; the rest is nodata.
        assert not valid[: 3 * 256].any()
        assert not valid[4 * 256 :].any()
        assert not valid[3 * 256 : 4 * 256, :256].any()
        assert valid[3 * 256 : 4 * 256, 512:].any()
        rows, columns = np.nonzero(valid)
        x, y = dataset.xy(rows, columns)
    # What is valid is land east of Chile's coast, and in the south it begins there: Arica, Iquique,
    # Antofagasta, Caldera, Coquimbo, Los Vilos (latitude, longitude).
    latitudes = [-31.9, -30.0, -27.1, -23.6, -20.2, -18.5]
    longitudes = [-71.5, -71.4, -70.8, -70.4, -70.15, -70.3]
    beyond = np.asarray(x) - np.interp(y, latitudes, longitudes)
    assert beyond.min() > -0.35
    south = np.asarray(y) < -29
    assert abs(beyond[south].min()) < 0.35
