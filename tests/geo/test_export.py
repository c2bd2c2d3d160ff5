"""Exports of a raster whose every value tells its place, read back by protobuf."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.geo.rasters import AFFINE, examples, geo_a, payloads, tiles, write_raster
from tfrio.errors import GeoError, TfrioWarning, UsageError
from tfrio.geo import array_source, export_image, export_images, read_manifest, read_mixer
from tfrio.geo.mixer import Mixer
from tfrio.types import XY, Affine6


@pytest.fixture
def raster(tmp_path: Path) -> Path:
    return write_raster(tmp_path / "geo-a.tif", geo_a(), names=["b"])


def test_names_mixer_and_order(raster: Path, tmp_path: Path) -> None:
    report = export_image(raster, tmp_path / "out" / "s", patch=(4, 3))
    assert [Path(p).name for p in report.shards] == ["s-00000.tfrecord.gz"]
    assert Path(report.shards[0]).read_bytes()[:2] == b"\x1f\x8b"
    assert report.mixer is not None
    assert read_mixer(report.mixer) == Mixer("EPSG:32618", Affine6(*AFFINE), XY(4, 3), 2, 4)
    found = tiles(report.shards, "b", 3, 4)
    assert [tile[0, 0] for tile in found] == [0, 4, 300, 304]
    assert [tile[-1, -1] for tile in found] == [203, 207, 503, 507]
    assert "22 of 70 pixels dropped (right 2 cols, bottom 1 row)" in str(report)
    assert (report.patches, report.dropped, report.masked) == (4, 22, 0)


def test_patch_is_width_then_height(raster: Path, tmp_path: Path) -> None:
    report = export_image(raster, tmp_path / "s", patch=(4, 3))
    assert examples(report.shards)[0]["b"] == [0, 1, 2, 3, 100, 101, 102, 103, 200, 201, 202, 203]


def test_kernel_takes_real_neighbours_and_fills_beyond(raster: Path, tmp_path: Path) -> None:
    report = export_image(raster, tmp_path / "s", patch=[4, 3], kernel=[2, 2], default_value=-1)
    first, _, _, last = tiles(report.shards, "b", 5, 6)
    assert first[0].tolist() == [-1] * 6
    assert first[1].tolist() == [-1, 0, 1, 2, 3, 4]
    assert first[2].tolist() == [-1, 100, 101, 102, 103, 104]
    assert (last[0, 0], last[-1, -1]) == (203, 608)
    assert read_mixer(str(report.mixer)).patch == XY(4, 3)


def test_kernel_is_width_then_height(raster: Path, tmp_path: Path) -> None:
    report = export_image(raster, tmp_path / "s", patch=(4, 3), kernel=(4, 2), default_value=-1)
    last = tiles(report.shards, "b", 5, 8)[3]
    assert last[1:-1, 2:-2].tolist() == [
        [304, 305, 306, 307], [404, 405, 406, 407], [504, 505, 506, 507],
    ]  # fmt: skip
    manifest = read_manifest(report.manifest)
    assert (manifest.grid.patch, manifest.grid.kernel) == ((4, 3), (4, 2))


@pytest.mark.parametrize(("kernel", "side"), [((1, 1), (4, 3)), ((3, 1), (6, 3)), ((5, 3), (8, 5))])
def test_odd_kernels_are_halved_and_rounded_down(
    raster: Path, tmp_path: Path, kernel: tuple[int, int], side: tuple[int, int]
) -> None:
    report = export_image(raster, tmp_path / "s", patch=(4, 3), kernel=kernel)
    assert len(examples(report.shards)[0]["b"]) == side[0] * side[1]


def test_shards_are_filled_but_never_beyond_the_size(raster: Path, tmp_path: Path) -> None:
    size = len(payloads(export_image(raster, tmp_path / "a", patch=(2, 3)).shards)[0]) + 16
    report = export_image(
        raster, tmp_path / "s", patch=(2, 3), max_file_size=4 * size + size // 2, compressed=False
    )
    names = [Path(p).name for p in report.shards]
    assert names == ["s-00000.tfrecord", "s-00001.tfrecord", "s-00002.tfrecord"]
    assert [Path(p).stat().st_size for p in report.shards] == [4 * size, 4 * size, 2 * size]
    assert [row.records for row in report.content.shards] == [4, 4, 2]
    assert [row.first for row in report.content.shards] == [0, 4, 8]
    firsts = [tile[0, 0] for tile in tiles(report.shards, "b", 3, 2)]
    assert firsts == [0, 2, 4, 6, 8, 300, 302, 304, 306, 308]
    assert read_mixer(str(report.mixer)).total_patches == 10


def test_a_record_larger_than_a_shard_is_told(raster: Path, tmp_path: Path) -> None:
    with pytest.warns(TfrioWarning, match="one record takes up to .* more than max_file_size 9"):
        report = export_image(raster, tmp_path / "s", patch=(4, 3), max_file_size=9)
    assert len(report.shards) == 4


def test_edges(raster: Path, tmp_path: Path) -> None:
    pad = export_image(raster, tmp_path / "p", patch=(4, 3), edge="pad", default_value=-1)
    found = tiles(pad.shards, "b", 3, 4)
    assert len(found) == 9
    assert found[8].tolist() == [[608, 609, -1, -1], [-1] * 4, [-1] * 4]
    assert read_mixer(str(pad.mixer)).patches_per_row == 3
    assert pad.dropped == 0
    shift = export_image(raster, tmp_path / "q", patch=(4, 3), edge="shift")
    assert [t[0, 0] for t in tiles(shift.shards, "b", 3, 4)] == [
        0,
        4,
        6,
        300,
        304,
        306,
        400,
        404,
        406,
    ]
    assert shift.mixer is None
    assert shift.dropped == 0
    assert sum(read_manifest(shift.manifest).patch_grid().owned(i).pixels for i in range(9)) == 70


def test_stride_overlaps_and_has_no_mixer(raster: Path, tmp_path: Path) -> None:
    report = export_image(raster, tmp_path / "s", patch=(4, 3), stride=(2, 3))
    firsts = [tile[0, 0] for tile in tiles(report.shards, "b", 3, 4)]
    assert firsts == [0, 2, 4, 6, 300, 302, 304, 306]
    assert report.mixer is None
    assert not list(tmp_path.glob("*mixer*"))
    assert read_manifest(report.manifest).grid.stride == (2, 3)


@pytest.mark.parametrize(
    ("dtype", "kind", "first"),
    [
        ("uint8", "bytes_list", [bytes([0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23])]),
        ("int16", "int64_list", [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]),
        ("uint32", "int64_list", [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]),
        ("int8", "int64_list", [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]),
        ("float64", "float_list", [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]),
    ],
)
def test_native_kinds(tmp_path: Path, dtype: str, kind: str, first: list[object]) -> None:
    values = (10 * np.arange(7)[:, None] + np.arange(10)).astype(dtype)
    path = write_raster(tmp_path / "a.tif", values, names=["b"])
    report = export_image(path, tmp_path / "s", patch=(4, 3), dtype="native")
    assert examples(report.shards)[0]["b"] == first
    (band,) = report.content.bands
    assert f"{band.kind}_list" == kind
    floats = export_image(path, tmp_path / "f", patch=(4, 3))
    assert floats.content.bands[0].kind == "float"


def test_native_integers_keep_their_sign_and_size(tmp_path: Path) -> None:
    values = np.array([[-5, 2**31 - 1, 0, -(2**31)], [7, 8, 9, 10], [1, 1, 1, 1]], "int32")
    path = write_raster(tmp_path / "a.tif", values, names=["b"])
    report = export_image(path, tmp_path / "s", patch=(4, 3), dtype="native")
    assert examples(report.shards)[0]["b"] == values.ravel().tolist()
    with pytest.warns(TfrioWarning, match="above 16,777,216 were rounded to float32"):
        export_image(path, tmp_path / "f", patch=(4, 3))


def test_bands_keep_their_order_in_the_record(tmp_path: Path) -> None:
    stack = np.stack([geo_a(), geo_a() + 1, geo_a() + 2])
    path = write_raster(tmp_path / "a.tif", stack, names=["red", "green", "blue"])
    report = export_image(path, tmp_path / "s", patch=(4, 3))
    payload = payloads(report.shards)[0]
    assert payload.index(b"red") < payload.index(b"green") < payload.index(b"blue")
    some = export_image(path, tmp_path / "t", patch=(4, 3), bands=["blue", 1])
    assert [band.name for band in some.content.bands] == ["blue", "red"]
    named = export_image(path, tmp_path / "u", patch=(4, 3), bands={"x": "green", "y": 3})
    assert examples(named.shards)[0]["y"][0] == 2


def test_collapse_promotes_to_the_furthest_type(tmp_path: Path) -> None:
    red = (10 * np.arange(7)[:, None] + np.arange(10)).astype("uint8")
    source = [
        array_source({"r": red, "g": red + np.uint8(1)}, AFFINE, crs="EPSG:32618"),
        array_source({"n": red.astype("float32") / 2}, AFFINE, crs="EPSG:32618"),
    ]
    report = export_image(source, tmp_path / "s", patch=(4, 3), dtype="native", collapse_bands=True)
    (first, *_) = examples(report.shards)
    assert list(first) == ["r"]
    stacked = np.array(first["r"]).reshape(3, 3, 4)
    assert np.array_equal(stacked[1], red[:3, :4] + 1)
    assert np.array_equal(stacked[2], red[:3, :4] / 2)
    two = export_image(source[0], tmp_path / "t", patch=(4, 3), dtype="native", collapse_bands=True)
    assert [len(value) for value in examples(two.shards)[0]["r"]] == [24]
    mixed = export_image(
        [source[0], array_source({"i": red.astype("int16")}, AFFINE, crs="EPSG:32618")],
        tmp_path / "u", patch=(4, 3), dtype="native", collapse_bands=True,
    )  # fmt: skip
    assert mixed.content.bands[0].kind == "int64"


def test_masked_threshold_leaves_out_patches_and_the_mixer(tmp_path: Path) -> None:
    values = geo_a()
    values[3:6, :2] = -1  # 6 of 12 pixels of patch 2
    values[3:5, 2] = -1
    path = write_raster(tmp_path / "a.tif", values, names=["b"], nodata=-1)
    report = export_image(path, tmp_path / "s", patch=(4, 3), masked_threshold=0.5)
    assert report.content.kept == [0, 1, 3]
    assert report.mixer is None
    assert not list(tmp_path.glob("*mixer*"))
    assert len(examples(report.shards)) == 3
    assert report.left_out == 1
    assert report.content.account.dropped == 34
    fine = export_image(path, tmp_path / "t", patch=(4, 3), masked_threshold=8 / 12)
    assert fine.patches == 4
    assert fine.mixer is None
    write_raster(tmp_path / "m.tif", np.full((7, 10), -1, "int16"), nodata=-1)
    with pytest.raises(GeoError, match="masked above masked_threshold"):
        export_image(tmp_path / "m.tif", tmp_path / "u", patch=(4, 3), masked_threshold=0)


def test_margins_do_not_count_for_the_threshold(tmp_path: Path) -> None:
    values = geo_a()
    values[:, 4] = -1
    path = write_raster(tmp_path / "a.tif", values, nodata=-1)
    report = export_image(path, tmp_path / "s", patch=(4, 3), kernel=(2, 2), masked_threshold=0)
    assert report.content.kept == [0, 2]


def test_format_options_are_taken_and_never_changed(raster: Path, tmp_path: Path) -> None:
    given = {
        "patchDimensions": [4, 3], "kernelSize": [2, 2], "compressed": False,
        "maxFileSize": 1000, "defaultValue": -1,
    }  # fmt: skip
    before = json.dumps(given)
    for number in range(2):
        report = export_image(raster, tmp_path / f"s{number}", format_options=given)
        assert tiles(report.shards, "b", 5, 6)[0][0, 0] == -1
        assert report.shards[0].endswith(".tfrecord")
    assert json.dumps(given) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"patchSize": [4, 3]},
            "unknown format option 'patchSize'; valid ones are patchDimensions",
        ),
        ({"patchDimensions": [4, 3], "tfrecordPatchDimensions": 4}, "is given twice"),
        ({}, "patch is missing"),
        ({"patchDimensions": [4, 3, 2]}, "patch must be two whole numbers"),
        ({"patchDimensions": 4, "maskedThreshold": 7}, "share of pixels from 0 to 1"),
        ({"patchDimensions": 4, "maxFileSize": "1e9"}, "max_file_size must be a whole number"),
        ({"patchDimensions": 4, "sequenceData": "no"}, "sequence_data must be True or False"),
    ],
)
def test_wrong_format_options(
    raster: Path, tmp_path: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        export_image(raster, tmp_path / "s", format_options=options)
    assert not list(tmp_path.glob("s-*"))


def test_an_option_in_both_places_must_agree(raster: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="kernel is given twice"):
        export_image(
            raster,
            tmp_path / "s",
            kernel=(2, 4),
            format_options={"patchDimensions": 4, "kernelSize": 2},
        )


@pytest.mark.parametrize(
    ("dtype", "given", "written", "warns"),
    [
        ("uint8", -1, 0, True),
        ("uint8", 300, 255, True),
        ("uint8", 7.9, 7, False),
        ("int16", -7.9, -7, False),
        ("float32", 0.25, 0.25, False),
    ],
)
def test_default_values_fit_their_band(
    tmp_path: Path, dtype: str, given: float, written: float, warns: bool
) -> None:
    values = np.full((3, 8), 9, dtype)
    source = array_source(np.ma.masked_array(values, values == 9), AFFINE, crs="EPSG:32618")
    if warns:
        with pytest.warns(TfrioWarning, match=f"default_value {given} is outside {dtype}"):
            report = export_image(source, tmp_path / "s", patch=(4, 3), default_value=given)
    else:
        report = export_image(source, tmp_path / "s", patch=(4, 3), default_value=given)
    assert set(examples(report.shards)[0]["b1"]) == {written}
    assert report.masked == 24


def test_gcs_names(raster: Path, tmp_path: Path) -> None:
    one = export_image(raster, tmp_path / "s", patch=(4, 3), naming="gcs")
    assert sorted(p.name for p in tmp_path.glob("s*")) == [
        "s-manifest.json", "s.json", "s.tfrecord.gz",
    ]  # fmt: skip
    assert one.mixer == str(tmp_path / "s.json")
    export_image(raster, tmp_path / "m", patch=(4, 3), naming="gcs", max_file_size=300)
    assert sorted(p.name for p in tmp_path.glob("m*")) == [
        "m-manifest.json", "m00000.tfrecord.gz", "m00001.tfrecord.gz", "mmixer.json",
    ]  # fmt: skip


def test_several_images_get_names_of_their_own(raster: Path, tmp_path: Path) -> None:
    options = {"patch": (4, 3)}
    reports = export_images([raster] * 3, tmp_path / "base", options=options)
    assert [Path(r.shards[0]).name for r in reports] == [
        f"base_{n}-00000.tfrecord.gz" for n in range(3)
    ]
    assert len(list(tmp_path.glob("base_*-mixer.json"))) == 3
    (tmp_path / "base_0-00000.tfrecord.gz").unlink()
    with pytest.raises(UsageError, match="exists: an export with the prefix"):
        export_images([raster] * 3, tmp_path / "base", options=options)
    assert not (tmp_path / "base_0-00000.tfrecord.gz").exists()


def test_a_taken_prefix_is_refused_and_may_be_replaced(raster: Path, tmp_path: Path) -> None:
    export_image(raster, tmp_path / "s", patch=(2, 3), max_file_size=60)
    before = sorted(p.name for p in tmp_path.iterdir())
    with pytest.raises(UsageError, match="overwrite=True"):
        export_image(raster, tmp_path / "s", patch=(4, 3))
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    report = export_image(raster, tmp_path / "s", patch=(4, 3), compressed=False, overwrite=True)
    assert sorted(p.name for p in tmp_path.glob("s-*")) == [
        "s-00000.tfrecord", "s-manifest.json", "s-mixer.json",
    ]  # fmt: skip
    assert len(examples(report.shards)) == 4
    other = export_image(raster, tmp_path / "s-OUT", patch=(4, 3))
    assert other.patches == 4


def test_statistics_leave_out_masked_pixels_and_margins(tmp_path: Path) -> None:
    values = geo_a().astype("float32")
    values[0, 0] = np.nan
    values[6, :] = 1e6  # below the last row of patches, seen by margins only
    path = write_raster(tmp_path / "a.tif", values, names=["b"])
    report = export_image(path, tmp_path / "s", patch=(4, 3), kernel=(2, 4), statistics=True)
    valid = values[:6, :8].astype("float64")
    found = report.statistics["b"]
    assert found.count == 47
    assert (found.min, found.max) == (1, 507)
    assert found.mean == pytest.approx(np.nanmean(valid))
    assert found.std == pytest.approx(np.nanstd(valid))
    overlap = export_image(
        path, tmp_path / "t", patch=(4, 3), stride=(2, 3), statistics=True, edge="drop"
    )
    assert overlap.statistics["b"].count == 59
    assert report.content.statistics == read_manifest(report.manifest).statistics


def test_an_index_can_travel_with_each_patch(raster: Path, tmp_path: Path) -> None:
    report = export_image(raster, tmp_path / "s", patch=(4, 3), patch_index="patch")
    assert [row["patch"] for row in examples(report.shards)] == [[0], [1], [2], [3]]
    assert read_manifest(report.manifest).index_feature == "patch"
    with pytest.raises(UsageError, match="b occur twice"):
        export_image(raster, tmp_path / "t", patch=(4, 3), patch_index="b")


@pytest.mark.parametrize("prefix", ["", "out/"])
def test_a_prefix_is_more_than_a_folder(raster: Path, prefix: str) -> None:
    with pytest.raises(UsageError, match="needs a name after the folder"):
        export_image(raster, prefix, patch=(4, 3))


def test_no_patch_fits(raster: Path, tmp_path: Path) -> None:
    with pytest.raises(GeoError, match=r"no whole patch of 11x3 fits into 10 x 7"):
        export_image(raster, tmp_path / "s", patch=(11, 3))
    assert not list(tmp_path.glob("s*"))


def test_every_worker_count_writes_the_same_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    path = write_raster(tmp_path / "a.tif", rng.integers(0, 99, (2, 61, 83), "uint8"))
    options = {"patch": (7, 5), "kernel": (4, 2), "max_file_size": 25_000}
    ones = export_image(path, tmp_path / "one", workers=1, **options)  # type: ignore[arg-type]
    many = export_image(path, tmp_path / "many", workers=3, **options)  # type: ignore[arg-type]
    assert len(ones.shards) > 3
    for one, other in zip(ones.shards, many.shards, strict=True):
        assert Path(one).read_bytes() == Path(other).read_bytes()
    for row in ones.content.shards:
        assert row.size == (tmp_path / row.name).stat().st_size


def test_shards_hold_what_their_rows_say(raster: Path, tmp_path: Path) -> None:
    google_crc32c = pytest.importorskip("google_crc32c")
    report = export_image(raster, tmp_path / "s", patch=(4, 3), max_file_size=150)
    for row in report.content.shards:
        data = (tmp_path / row.name).read_bytes()
        assert row.digest == f"crc32c:{google_crc32c.value(data):08x}"
        assert len(payloads([tmp_path / row.name])) == row.records


def test_checksums_are_those_of_another_implementation(raster: Path, tmp_path: Path) -> None:
    google_crc32c = pytest.importorskip("google_crc32c")
    report = export_image(raster, tmp_path / "s", patch=(4, 3), compressed=False)
    data = Path(report.shards[0]).read_bytes()
    (length, stored) = struct.unpack_from("<QI", data)
    crc = google_crc32c.value(data[:8])
    assert stored == (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    (stored,) = struct.unpack_from("<I", data, 12 + length)
    crc = google_crc32c.value(data[12 : 12 + length])
    assert stored == (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def test_progress_ends_at_the_total(raster: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int, int]] = []
    report = export_image(
        raster, tmp_path / "s", patch=(4, 3), max_file_size=150,
        progress=lambda *told: seen.append(told), compressed=False,
    )  # fmt: skip
    assert seen[-1] == (4, 4, report.size)
    assert sorted(seen) == seen


def padded_window(
    values: np.ndarray, column: int, row: int, width: int, height: int, fill: float
) -> np.ndarray:
    """Cut a window that may reach beyond an array, pixel by pixel."""
    out = np.full((height, width), fill, values.dtype)
    for y in range(height):
        for x in range(width):
            if 0 <= row + y < values.shape[0] and 0 <= column + x < values.shape[1]:
                out[y, x] = values[row + y, column + x]
    return out


@given(
    size=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    patch=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    kernel=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    per_shard=st.integers(1, 20),
    signs=st.tuples(st.sampled_from([1, -1]), st.sampled_from([1, -1])),
    edge=st.sampled_from(["drop", "pad", "shift"]),
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_grid_gives_the_patches_that_slow_code_cuts(
    tmp_path: Path,
    size: tuple[int, int],
    patch: tuple[int, int],
    kernel: tuple[int, int],
    per_shard: int,
    signs: tuple[int, int],
    edge: str,
) -> None:
    width, height = size
    values = (1000 * np.arange(height)[:, None] + np.arange(width)).astype("int32")
    affine = (10.0 * signs[0], 0.0, 5.0, 0.0, 7.0 * signs[1], 3.0)
    source = array_source({"b": values}, affine, crs="EPSG:32618")
    margin = (kernel[0] // 2, kernel[1] // 2)
    stored = (patch[0] + 2 * margin[0], patch[1] + 2 * margin[1])
    record = 40 + 10 * stored[0] * stored[1]
    try:
        report = export_image(
            source, tmp_path / "s", patch=patch, kernel=kernel, edge=edge, default_value=-1,
            max_file_size=record * per_shard, compressed=False, workers=1, overwrite=True,
            dtype="native",
        )  # type: ignore[arg-type]  # fmt: skip
    except GeoError:
        assert edge == "drop"
        assert patch[0] > width or patch[1] > height
        return
    grid = read_manifest(report.manifest).patch_grid()
    found = tiles(report.shards, "b", stored[1], stored[0])
    assert len(found) == grid.total
    for tile, window in zip(found, grid.windows(), strict=True):
        expected = padded_window(
            values, window.column - margin[0], window.row - margin[1], *stored, -1
        )
        assert np.array_equal(tile, expected)
