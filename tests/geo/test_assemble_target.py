"""The raster an import aims at: grids turned, exports merged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.geo.predictions import AFFINE, GEO_A, MIX_A, predictions
from tfrio.errors import GeoError, UsageError
from tfrio.geo import array_source, export_image, read_manifest
from tfrio.geo.assemble_target import (
    check_crs,
    north_up,
    resolve_target,
    target_of,
)
from tfrio.geo.frame import Frame
from tfrio.geo.mixer import write_mixer
from tfrio.tables import export_table
from tfrio.types import XY, Affine6

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("affine", "expected", "rows", "columns"),
    [
        (AFFINE, AFFINE, False, False),
        ((30, 0, 5, 0, 30, 7), (30, 0, 5, 0, -30, 217), True, False),
        ((-30, 0, 5, 0, -30, 7), (30, 0, -295, 0, -30, 7), False, True),
        ((30, 1, 5, -1, 30, 7), (30, 1, 5, -1, 30, 7), False, False),
    ],
)
def test_north_up(affine: Any, expected: Any, rows: bool, columns: bool) -> None:
    frame, by_rows, by_columns = north_up(Frame("EPSG:32618", Affine6(*affine), XY(10, 7)))
    assert (frame.affine, by_rows, by_columns) == (Affine6(*expected), rows, columns)
    if not (affine[1] or affine[3]):
        assert frame.bounds == Frame("EPSG:32618", Affine6(*affine), XY(10, 7)).bounds


def test_crs() -> None:
    assert check_crs("EPSG:32618", "m") == "EPSG:32618"
    assert check_crs("+proj=laea +lat_0=52 +lon_0=10", "m").startswith("PROJCS")
    with pytest.raises(GeoError, match="m.json: CRS 'FOO:1': unknown authority FOO"):
        check_crs("FOO:1", "m.json")


class TestResolve:
    """Every way to name an export."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        source = array_source(GEO_A, AFFINE, crs="EPSG:32618")
        export_image(source, tmp_path / "a", patch=(4, 3), kernel=(2, 4))
        return tmp_path

    def test_every_form_gives_the_same(self, folder: Path) -> None:
        manifest = read_manifest(folder / "a-manifest.json")
        forms = [folder / "a", folder / "a-mixer.json", folder / "a-manifest.json", folder]
        for form in [*forms, manifest]:
            target = resolve_target(form, None)
            assert (target.kernel, target.frame.size) == (XY(2, 4), XY(8, 6))
            assert target.manifest == manifest
        assert resolve_target(None, folder / "a-00000.tfrecord.gz").manifest == manifest
        other = predictions(folder, name="x")
        assert resolve_target(None, [other]).prefix == str(folder / "a")

    def test_the_export_of_the_same_prefix_is_found_among_several(self, folder: Path) -> None:
        source = array_source(GEO_A, AFFINE, crs="EPSG:32618")
        export_image(source, folder / "b", patch=(2, 3), naming="gcs", max_file_size=150)
        for asked, name in [
            (folder / "a-00000.tfrecord.gz", "a"),
            (str(folder / "a-*.tfrecord.gz"), "a"),
            (folder / "a", "a"),
            ([folder / "b00000.tfrecord.gz", folder / "b00001.tfrecord.gz"], "b"),
        ]:
            assert resolve_target(None, asked).prefix == str(folder / name)
        for asked in (folder, predictions(folder, name="x")):
            with pytest.raises(GeoError, match=r"mixers here: .*a-.*, .*b-.*Say which with mixer="):
                resolve_target(None, asked)

    def test_manifests_of_tables_are_no_exports(self, folder: Path) -> None:
        export_table([{"a": 1}], folder / "samples.tfrecord.gz")
        assert (folder / "samples-manifest.json").exists()
        assert target_of(str(folder)).prefix == str(folder / "a")
        other = predictions(folder, name="x")
        assert resolve_target(None, other).prefix == str(folder / "a")

    def test_a_folder_of_two_exports_asks_for_a_prefix(self, folder: Path) -> None:
        write_mixer(folder / "b-mixer.json", MIX_A)
        predictions(folder, name="b-00000")
        with pytest.raises(GeoError, match="needed; mixers here: .* Give the prefix or the mixer"):
            target_of(str(folder))

    def test_records_in_place_of_a_prefix_are_told(self, folder: Path) -> None:
        for asked in ("a-*.tfrecord.gz", "a-00000.tfrecord.gz"):
            with pytest.raises(GeoError, match=f"by its prefix: give {folder / 'a'}$"):
                target_of(str(folder / asked))
        with pytest.raises(GeoError, match=r"neither .*nope-manifest\.json nor"):
            target_of(str(folder / "nope"))

    def test_a_mixer_alone_tells_no_kernel(self, folder: Path) -> None:
        (folder / "a-manifest.json").unlink()
        for form in (folder / "a", folder / "a-mixer.json", MIX_A):
            target = resolve_target(form, None)
            assert (target.kernel, target.manifest) == (None, None)
        with pytest.raises(UsageError, match="extent='source' needs the manifest"):
            resolve_target(MIX_A, None, whole=True)

    def test_cloud_storage_names(self, tmp_path: Path) -> None:
        write_mixer(tmp_path / "b.json", MIX_A)
        assert resolve_target(tmp_path / "b.json", None).prefix == str(tmp_path / "b")
        write_mixer(tmp_path / "cmixer.json", MIX_A)
        assert resolve_target(tmp_path / "c", None).prefix == str(tmp_path / "c")

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(GeoError, match=r"neither .*x-manifest.json nor .*x-mixer.json exists"):
            resolve_target(tmp_path / "x", None)
        with pytest.raises(UsageError, match="no predictions were given"):
            resolve_target(None, [])

    def test_a_mixer_with_five_numbers(self, folder: Path) -> None:
        text = json.loads((folder / "a-mixer.json").read_text())
        text["projection"]["affine"]["doubleMatrix"].pop()
        (folder / "a-mixer.json").write_text(json.dumps(text))
        with pytest.raises(GeoError, match="must hold six finite numbers .* found 5 terms"):
            resolve_target(folder / "a-mixer.json", None)

    def test_pixels_are_no_patches(self, tmp_path: Path) -> None:
        source = array_source(GEO_A, AFFINE, crs="EPSG:32618")
        export_image(source, tmp_path / "s", patch=(4, 3), sequence_data=True)
        with pytest.raises(GeoError, match="one SequenceExample per pixel"):
            resolve_target(tmp_path / "s", None)


@pytest.mark.parametrize(
    ("crs", "words"),
    [
        ("EPSG:99999", "EPSG has no 99999; pass crs="),
        ("SR-ORG:6974", "unknown authority SR-ORG; pass crs="),
        ("somewhere", "not understood; pass crs="),
    ],
)
def test_a_crs_that_is_none_is_told_once(
    crs: str, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(GeoError, match=words):
        check_crs(crs, "x-mixer.json")
    assert capfd.readouterr().err == ""
