"""Out and back: random grids, signs, kernels, CRSs, shards and orders; and every edge rule."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyproj
import pytest
import rasterio
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrio
from tests.geo.predictions import AFFINE, GEO_A, read
from tfrio.errors import GeoError
from tfrio.geo import array_source, export_image, import_image, read_manifest, read_mixer
from tfrio.types import XY

CRS = [
    "EPSG:32618",
    "EPSG:4326",
    "ESRI:102033",
    "+proj=laea +lat_0=52 +lon_0=10 +ellps=GRS80 +units=m",
]


@dataclass(frozen=True)
class Case:
    """One random export."""

    values: np.ndarray[Any, Any]
    patch: XY
    kernel: XY
    affine: tuple[float, ...]
    crs: str
    dtype: str
    compressed: bool
    per_shard: int
    shuffled: bool
    seed: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw an export; patches are not square and the kernel's sides differ."""
    patch = XY(draw(st.integers(1, 9)), draw(st.integers(1, 9)))
    kernel = XY(2 * draw(st.integers(0, 3)) or 1, 2 * draw(st.integers(0, 3)) or 1)
    width = patch.x + draw(st.integers(0, 31))
    height = patch.y + draw(st.integers(0, 31))
    kind = draw(st.sampled_from(["uint8", "int16", "uint16", "int32", "float32"]))
    seed = draw(st.integers(0, 2**32 - 1))
    bands = draw(st.integers(1, 2))
    values = np.random.default_rng(seed).integers(0, 200, (bands, height, width)).astype(kind)
    x, y = draw(st.floats(-90, 90)), draw(st.floats(-45, 45))
    pixel = draw(st.sampled_from([30.0, 0.05, 8.983152841195215e-5]))
    signs = draw(st.tuples(st.sampled_from([1, -1]), st.sampled_from([1, -1])))
    return Case(
        values=values,
        patch=patch,
        kernel=kernel,
        # GeoTIFF has no negative zero: adding 0.0 makes it positive.
        affine=(signs[0] * pixel, 0.0, x + 0.0, 0.0, signs[1] * pixel * 0.75, y + 0.0),
        crs=draw(st.sampled_from(CRS)),
        dtype=draw(st.sampled_from(["float", "native"])),
        compressed=draw(st.booleans()),
        per_shard=draw(st.integers(1, 9)),
        shuffled=draw(st.booleans()),
        seed=seed,
    )


def exported(case: Case, source: Any, prefix: Path) -> Any:
    """Export with a few records per shard."""
    stored = (case.patch.x + 6) * (case.patch.y + 6) * 10 * len(case.values) + 200
    return export_image(
        source,
        prefix,
        patch=case.patch,
        kernel=case.kernel,
        dtype=case.dtype,  # type: ignore[arg-type]
        compressed=case.compressed,
        max_file_size=stored * case.per_shard,
        patch_index="n" if case.shuffled else None,
    )


def shuffle(folder: Path, prefix: str, seed: int) -> Path:
    """Write the records of all shards to one file in random order."""
    shards = sorted(folder.glob(f"{prefix}-0*.tfrecord*"))
    payloads = [payload for shard in shards for payload in tfrio.read_records(shard)]
    out = folder / "shuffled.tfrecord"
    with tfrio.RecordWriter(out) as writer:
        for position in np.random.default_rng(seed).permutation(len(payloads)):
            writer.write(payloads[position])
    return out


def cores(prefix: Path, case: Case) -> list[np.ndarray[Any, Any]]:
    """Return every stored patch of an export without its margins, in order."""
    manifest = read_manifest(f"{prefix}-manifest.json")
    margin = XY(case.kernel.x // 2, case.kernel.y // 2)
    height, width = case.patch.y + 2 * margin.y, case.patch.x + 2 * margin.x
    found = []
    for row in tfrio.read(str(prefix)):
        for band in manifest.bands:
            value = row[band.feature]
            flat = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value
            plane = flat.reshape(height, width)
            found.append(plane[margin.y : height - margin.y, margin.x : width - margin.x])
    return found


@settings(max_examples=60, deadline=None)
@given(cases())
def test_export_import_export_is_the_same(case: Case) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = array_source(case.values, case.affine, crs=case.crs)
        exported(case, source, folder / "a")
        given_back = shuffle(folder, "a", case.seed) if case.shuffled else folder / "a"
        report = import_image(
            given_back, folder / "map.tif", mixer=folder / "a-mixer.json", orientation="keep"
        )
        covered = case.values[:, : report.size.y, : report.size.x]
        assert report.size.x == case.values.shape[2] // case.patch.x * case.patch.x
        assert report.size.y == case.values.shape[1] // case.patch.y * case.patch.y
        np.testing.assert_array_equal(read(report.path), covered)
        assert report.dtype == case.values.dtype
        exported(case, report.path, folder / "b")
        first, again = (read_mixer(folder / f"{name}-mixer.json") for name in "ab")
        assert replace(first, crs="") == replace(again, crs="")
        # GeoTIFF keeps a CRS without a code by its parameters, not by its text.
        assert pyproj.CRS(again.crs).equals(pyproj.CRS(first.crs), ignore_axis_order=True)
        if ":" in case.crs:
            assert (folder / "a-mixer.json").read_bytes() == (folder / "b-mixer.json").read_bytes()
        for one, other in zip(cores(folder / "a", case), cores(folder / "b", case), strict=True):
            np.testing.assert_array_equal(one, other)


@settings(max_examples=20, deadline=None)
@given(cases())
def test_turning_north_up_moves_no_pixel(case: Case) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        exported(case, array_source(case.values, case.affine, crs=case.crs), folder / "a")
        given_back = shuffle(folder, "a", case.seed) if case.shuffled else folder / "a"
        report = import_image(given_back, folder / "map.tif", mixer=folder / "a-mixer.json")
        a, _, c, _, e, f = case.affine
        with rasterio.open(report.path) as dataset:
            assert dataset.transform.a > 0 > dataset.transform.e
            height, width = dataset.height, dataset.width
            rows, columns = np.mgrid[:height, :width]
            points = zip(
                (a * (columns + 0.5) + c).ravel(), (e * (rows + 0.5) + f).ravel(), strict=True
            )
            sampled = np.array(list(dataset.sample(points)))
        expected = case.values[:, :height, :width].reshape(len(case.values), -1).T
        np.testing.assert_array_equal(sampled, expected)


def source_a(**options: Any) -> Any:
    return array_source(GEO_A, AFFINE, crs="EPSG:32618", **options)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({"edge": "pad"}, (7, 10)),
        ({"edge": "shift"}, (7, 10)),
        ({"stride": (2, 3)}, (6, 10)),
        ({"stride": (3, 2), "kernel": (4, 2), "edge": "pad"}, (7, 10)),
        ({"stride": (2, 2), "edge": "shift", "kernel": (1, 4)}, (7, 10)),
    ],
)
def test_every_edge_rule_comes_back(
    tmp_path: Path, options: Any, size: tuple[int, int], compressed: bool
) -> None:
    export_image(source_a(), tmp_path / "a", patch=(4, 3), compressed=compressed, **options)
    for blend in ("crop", "mean", "hann"):
        report = import_image(
            tmp_path / "a", tmp_path / "m.tif", mixer=tmp_path / "a", blend=blend, overwrite=True
        )
        np.testing.assert_array_equal(read(report.path)[0], GEO_A[: size[0], : size[1]])
        assert report.covered == size[0] * size[1]


def test_gaps_between_patches_are_nodata(tmp_path: Path) -> None:
    export_image(source_a(), tmp_path / "a", patch=(2, 3), stride=(4, 4))
    report = import_image(tmp_path / "a", tmp_path / "m.tif", mixer=tmp_path / "a")
    values = read(report.path)[0]
    expected = np.full_like(GEO_A, report.nodata)[:7]
    for row in (0, 4):
        for column in (0, 4, 8):
            spot = np.s_[row : row + 3, column : column + 2]
            expected[spot] = GEO_A[spot]
    np.testing.assert_array_equal(values, expected)
    assert report.missing == report.pixels - report.covered == 70 - 36


def test_the_whole_grid_of_the_source(tmp_path: Path) -> None:
    export_image(source_a(), tmp_path / "a", patch=(4, 3))
    report = import_image(tmp_path / "a", tmp_path / "m.tif", mixer=tmp_path / "a", extent="source")
    values = read(report.path)[0]
    assert values.shape == GEO_A.shape
    np.testing.assert_array_equal(values[:6, :8], GEO_A[:6, :8])
    assert (values[6:] == report.nodata).all()
    assert (report.missing, report.dropped) == (22, 22)


def masked_a(nodata: int = -999) -> np.ndarray[Any, Any]:
    values = GEO_A.copy()
    values[0, 1] = values[4, 6] = nodata
    values[3:6, 4:8] = nodata
    return values


def test_the_mask_of_the_export_becomes_nodata(tmp_path: Path) -> None:
    source = array_source(masked_a(), AFFINE, crs="EPSG:32618", nodata=-999)
    export_image(source, tmp_path / "a", patch=(4, 3), default_value=-5)
    rows = ({"class": np.full(12, 1)} for _ in range(4))
    with tfrio.Writer(tmp_path / "p.tfrecord") as writer:
        for row in rows:
            writer.write(row)
    report = import_image(
        tmp_path / "p.tfrecord", tmp_path / "m.tif", mixer=tmp_path / "a-mixer.json"
    )
    expected = np.where(masked_a()[:6, :8] == -999, report.nodata, 1)
    np.testing.assert_array_equal(read(report.path)[0], expected)
    assert report.masked == 13
    assert report.classes[0].pixels == 35
    assert report.nodata == 255
    unmasked = import_image(
        tmp_path / "p.tfrecord",
        tmp_path / "m.tif",
        mixer=tmp_path / "a-mixer.json",
        mask="off",
        overwrite=True,
    )
    assert unmasked.masked == 0
    assert (read(unmasked.path) == 1).all()


def test_a_band_that_comes_back_has_its_own_mask_and_nodata(tmp_path: Path) -> None:
    source = array_source(masked_a(), AFFINE, crs="EPSG:32618", nodata=-999)
    export_image(source, tmp_path / "a", patch=(4, 3), default_value=-5)
    report = import_image(tmp_path / "a", tmp_path / "m.tif", mixer=tmp_path / "a")
    np.testing.assert_array_equal(read(report.path)[0], masked_a()[:6, :8])
    assert (report.nodata, report.dtype) == (-999, "int16")


@pytest.mark.parametrize("blend", ["mean", "hann"])
def test_margins_do_not_fill_what_was_masked(tmp_path: Path, blend: Any) -> None:
    source = array_source(masked_a().astype(np.float32), AFFINE, crs="EPSG:32618", nodata=-999)
    export_image(source, tmp_path / "a", patch=(4, 3), kernel=(4, 2), default_value=-5)
    report = import_image(tmp_path / "a", tmp_path / "m.tif", mixer=tmp_path / "a", blend=blend)
    np.testing.assert_array_equal(read(report.path)[0] == -999, masked_a()[:6, :8] == -999)
    assert report.masked == 13


def test_patches_left_out_become_nodata(tmp_path: Path) -> None:
    source = array_source(masked_a(), AFFINE, crs="EPSG:32618", nodata=-999)
    export_image(source, tmp_path / "a", patch=(4, 3), masked_threshold=0.5)
    assert not (tmp_path / "a-mixer.json").exists()
    assert read_manifest(tmp_path / "a-manifest.json").written == [0, 1, 2]
    report = import_image(tmp_path / "a", tmp_path / "m.tif", mixer=tmp_path / "a")
    np.testing.assert_array_equal(read(report.path)[0], masked_a()[:6, :8])
    assert (report.patches, report.expected, report.missing) == (3, 4, 12)
    with tfrio.Writer(tmp_path / "p.tfrecord") as writer:
        for _ in range(4):
            writer.write({"c": np.zeros(12, np.int64)})
    with pytest.raises(GeoError, match="the export wrote 3 patches, the predictions hold 4"):
        import_image(tmp_path / "p.tfrecord", tmp_path / "n.tif", mixer=tmp_path / "a")


def test_array_bands_and_collapsed_bands(tmp_path: Path) -> None:
    series = np.stack([GEO_A + 1000 * step for step in range(3)])
    source = array_source({"b": GEO_A, "t": series}, AFFINE, crs="EPSG:32618")
    for collapse in (False, True):
        prefix = tmp_path / f"c{collapse}"
        export_image(source, prefix, patch=(4, 3), collapse_bands=collapse)
        report = import_image(prefix, tmp_path / "m.tif", mixer=prefix, overwrite=True)
        assert report.bands == ("b", "t_0", "t_1", "t_2")
        expected = np.concatenate([GEO_A[None], series])[:, :6, :8]
        np.testing.assert_array_equal(read(report.path), expected)


def test_a_zero_class_is_no_nodata(tmp_path: Path) -> None:
    classes = (GEO_A % 9).astype(np.uint8)
    classes[2, 3] = 255
    source = array_source(classes, AFFINE, crs="EPSG:32618", nodata=255)
    export_image(source, tmp_path / "a", patch=(4, 3), dtype="native")
    report = import_image(tmp_path / "a", tmp_path / "m.tif", mixer=tmp_path / "a", overwrite=True)
    assert report.nodata == 255
    np.testing.assert_array_equal(read(report.path)[0], classes[:6, :8])
    zero = next(row for row in report.classes if row.value == 0)
    assert zero.pixels == int((classes[:6, :8] == 0).sum())


def test_missing_shards_are_named_from_the_manifest(tmp_path: Path) -> None:
    export_image(source_a(), tmp_path / "a", patch=(4, 3), max_file_size=160)
    shards = sorted(tmp_path.glob("a-0*.tfrecord.gz"))
    assert len(shards) == 2
    shards[0].unlink()
    with pytest.raises(GeoError, match="shard 00000 missing; there are 00001"):
        import_image(tmp_path / "a", tmp_path / "m.tif", mixer=tmp_path / "a")
    report = import_image(tmp_path / "a", tmp_path / "m.tif", mixer=tmp_path / "a", partial=True)
    assert report.patches == 2
    np.testing.assert_array_equal(read(report.path)[0, 3:], GEO_A[3:6, :8])


def test_a_manifest_of_another_export_is_refused(tmp_path: Path) -> None:
    export_image(source_a(), tmp_path / "a", patch=(4, 3))
    export_image(source_a(), tmp_path / "b", patch=(3, 4))
    (tmp_path / "b-mixer.json").replace(tmp_path / "a-mixer.json")
    with pytest.raises(GeoError, match="describe different grids"):
        import_image(tmp_path / "a", tmp_path / "m.tif", mixer=tmp_path / "a-mixer.json")
