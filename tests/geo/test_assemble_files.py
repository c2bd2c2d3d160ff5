"""Which files belong together, in which order, and what their records hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.geo.predictions import AFFINE, GEO_A, MIX_A, read, tile, write
from tfrio.errors import FeatureKindError, GeoError, UsageError
from tfrio.geo import array_source, export_image, import_image, open_export
from tfrio.geo.assemble_files import PredictionFile, find_files, list_shards, survey
from tfrio.geo.mixer import write_mixer

if TYPE_CHECKING:
    from pathlib import Path


def touch(folder: Path, *names: str) -> None:
    for name in names:
        write(folder / name, [{"b": np.zeros(12)}])


def found(*args: Any, **options: Any) -> list[str]:
    return [file.path.rpartition("/")[2] for file in find_files(*args, **options)]


@pytest.mark.parametrize(
    ("name", "prefix", "number", "total"),
    [
        ("d/pred-00005.tfrecord.gz", "d/pred", 5, None),
        ("d/pred00005.tfrecord", "d/pred", 5, None),
        ("d/pred-00001-of-00004.tfrecord", "d/pred", 1, 4),
        ("d/pred.tfrecord-00001-of-00004", "d/pred.tfrecord", 1, 4),
        ("d/pred.tfrecord", "d/pred.tfrecord", None, None),
        ("d/map-20240131.tfrecord", "d/map-20240131.tfrecord", None, None),
    ],
)
def test_names(name: str, prefix: str, number: int | None, total: int | None) -> None:
    file = PredictionFile.of(name)
    assert (file.prefix, file.number, file.total) == (prefix, number, total)


def test_shards_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    names = [f"p-{n:05d}.tfrecord" for n in (2, 10, 0, 1, *range(3, 10))]
    touch(tmp_path, *names)
    given = [tmp_path / name for name in names]
    for paths in (given, tmp_path, str(tmp_path / "p-*.tfrecord"), tmp_path / "p"):
        assert found(paths) == sorted(names)


def test_files_without_numbers_keep_the_order_given(tmp_path: Path) -> None:
    touch(tmp_path, "b.tfrecord", "a.tfrecord", "c20240131.tfrecord")
    names = ["b.tfrecord", "a.tfrecord"]
    assert found([tmp_path / name for name in names]) == names
    assert found(tmp_path / "c20240131.tfrecord") == ["c20240131.tfrecord"]


def test_a_lone_name_with_digits_is_no_shard(tmp_path: Path) -> None:
    touch(tmp_path, "map00123.tfrecord", "run-20240131.tfrecord")
    assert found(tmp_path / "map00123.tfrecord") == ["map00123.tfrecord"]
    assert found(tmp_path / "run-20240131.tfrecord") == ["run-20240131.tfrecord"]
    assert find_files(tmp_path / "map00123.tfrecord", partial=True)[0].number == 123


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("p-00000.tfrecord", "p-00002.tfrecord"), "shard 00001 missing; there are 00000, 00002"),
        (("p-00000-of-00002.tfrecord",), "shard 00001 missing; there are 00000"),
        (("p-00000.tfrecord", "p-00000.tfrecord.gz"), "shard 00000 is there more than once"),
        (("p-00099.tfrecord",), "shards 00000 to 00098 missing; there are 00099"),
    ],
)
def test_gaps_and_doubles(tmp_path: Path, names: tuple[str, ...], text: str) -> None:
    touch(tmp_path, *names)
    with pytest.raises(GeoError, match=text):
        find_files(tmp_path)


def test_gaps_are_allowed_for_a_part(tmp_path: Path) -> None:
    touch(tmp_path, "p-00000.tfrecord", "p-00002.tfrecord")
    assert len(find_files(tmp_path, partial=True)) == 2


class TestTwoExports:
    """A folder with two exports and a file beside them that is part of neither."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for name in ("A-00000", "A-00001", "B-00000", "A-OUT-00000"):
            rows = (0, 1) if name.endswith("0") else (2, 3)
            write(tmp_path / f"{name}.tfrecord", ({"b": tile(i).ravel()} for i in rows))
        for name in ("A", "B"):
            write_mixer(tmp_path / f"{name}-mixer.json", MIX_A)
        return tmp_path

    def test_the_mixer_chooses_its_own_shards(self, folder: Path) -> None:
        report = import_image(folder, folder / "m.tif", mixer=folder / "A-mixer.json")
        assert report.patches == 4
        assert read(report.path).shape == (1, 6, 8)
        names = found(folder, prefix=str(folder / "A"))
        assert names == ["A-00000.tfrecord", "A-00001.tfrecord"]

    def test_an_ambiguous_call_lists_all(self, folder: Path) -> None:
        with pytest.raises(GeoError, match=r"A-mixer.json, .*B-mixer.json. Say which with mixer="):
            import_image(folder, folder / "m.tif")
        listed = r"several sets of files: .*A \(2 files\); .*A-OUT \(1 file\); .*B \(1 file\)"
        with pytest.raises(GeoError, match=listed):
            import_image(folder, folder / "m.tif", mixer=MIX_A)
        with pytest.raises(GeoError, match="several sets of files"):
            import_image(folder / "*.tfrecord", folder / "m.tif", mixer=MIX_A)
        assert not (folder / "m.tif").exists()

    def test_a_prefix_is_exact(self, folder: Path) -> None:
        assert found(folder / "A") == ["A-00000.tfrecord", "A-00001.tfrecord"]


def test_the_only_mixer_beside_is_taken(tmp_path: Path) -> None:
    write(tmp_path / "p.tfrecord", ({"b": tile(i).ravel()} for i in range(4)))
    with pytest.raises(GeoError, match="mixers here: none"):
        import_image(tmp_path / "p.tfrecord", tmp_path / "m.tif")
    write_mixer(tmp_path / "scene-mixer.json", MIX_A)
    assert import_image(tmp_path / "p.tfrecord", tmp_path / "m.tif").patches == 4


def test_survey(tmp_path: Path) -> None:
    rows = [{"b": np.zeros(12), "c": bytes(12), "i": k} for k in range(5)]
    write(tmp_path / "p-00000.tfrecord", rows[:3])
    write(tmp_path / "p-00001.tfrecord", rows[3:])
    looked = survey(find_files(tmp_path), features=None, index="i")
    assert looked.counts == (3, 2)
    assert looked.records == 5
    assert {n: (f.kind, f.values) for n, f in looked.features.items()} == {
        "b": ("float", 12),
        "c": ("bytes", 12),
    }
    assert looked.index is not None
    assert looked.index.tolist() == list(range(5))
    assert looked.where(4) == f"{tmp_path / 'p-00001.tfrecord'}, record 1"
    assert looked.where(9) == "past the last record"
    assert survey(find_files(tmp_path), features=["c"], index=None).index is None


def test_what_cannot_be_placed(tmp_path: Path) -> None:
    def look(name: str, rows: list[dict[str, Any]], **options: Any) -> None:
        files = find_files(write(tmp_path / f"{name}.tfrecord", rows))
        survey(files, features=options.get("features"), index=options.get("index", "auto"))

    with pytest.raises(GeoError, match="no record in these files"):
        look("none", [])
    with pytest.raises(GeoError, match="'w' holds 2 byte strings per record"):
        look("words", [{"w": [b"a", b"b"]}])
    with pytest.raises(GeoError, match="'e' holds no values"):
        look("empty", [{"e": np.zeros(0)}])
    kinds = [
        write(tmp_path / "k0.tfrecord", [{"v": 1}]),
        write(tmp_path / "k1.tfrecord", [{"v": b"x"}]),
    ]
    with pytest.raises(FeatureKindError, match="more than one kind"):
        survey(find_files(kinds), features=None, index=None)
    with pytest.raises(UsageError, match="no feature 'z' in the predictions; there are v"):
        look("z", [{"v": 1}], features=["z"])


def test_sequences_are_no_patches(tmp_path: Path) -> None:
    import tfrio

    with tfrio.Writer(tmp_path / "s.tfrecord") as writer:
        writer.write_sequence({"n": 1}, {"t": [[1.0], [2.0]]})
    with pytest.raises(GeoError, match="SequenceExamples"):
        survey(find_files(tmp_path / "s.tfrecord"), features=None, index=None)


def test_cloud_storage_shards_are_found_by_prefix(tmp_path: Path) -> None:
    source = array_source(GEO_A, AFFINE, crs="EPSG:32618")
    export_image(source, tmp_path / "x", patch=(4, 3), naming="gcs", max_file_size=150)
    (tmp_path / "x-manifest.json").unlink()  # as Earth Engine leaves it
    report = import_image(tmp_path / "x", tmp_path / "m.tif")
    assert report.patches == 4
    for given in (tmp_path / "x", tmp_path / "xmixer.json", tmp_path):
        np.testing.assert_array_equal(open_export(given).values, GEO_A[:6, :8])
    with pytest.raises(FileNotFoundError, match="y: no such file"):
        list_shards(tmp_path / "y")
    with pytest.raises(FileNotFoundError, match="no such file"):
        list_shards(tmp_path / "lost" / "x")
