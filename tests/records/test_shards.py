"""The lister: folders, globs, prefixes, splits, markers, content, URLs."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import fsspec
import pytest

from tests.records import golden
from tests.records.golden import FRAMES, put
from tfrio.errors import TfrioWarning, UsageError
from tfrio.records.counting import count
from tfrio.records.names import base_name
from tfrio.records.shards import each_source, expand, list_files


def names(paths: list[str] | tuple[str, ...]) -> list[str]:
    return [base_name(path) for path in paths]


def test_any_extension_is_found_by_content(tmp_path: Path) -> None:
    wanted = ["a.tfrecord", "b.tfrecords", "c.tfrec", "d.record", "noextension", "part-r-00000"]
    for name in wanted:
        put(tmp_path, name, FRAMES[0])
    assert names(expand(tmp_path)) == wanted
    assert count(tmp_path).records == 6


def test_markers_checksums_empty_parts_and_strangers_are_left_out_and_told(
    tmp_path: Path,
) -> None:
    put(tmp_path, "part-00000.gz", gzip.compress(FRAMES[0]))
    put(tmp_path, "part-00001.gz", b"")
    put(tmp_path, "_SUCCESS", b"")
    put(tmp_path, ".part-00000.gz.crc", b"crc\0")
    put(tmp_path, "part-00000.crc", b"crc\0")
    put(tmp_path, "x-mixer.json", b'{"totalPatches": 1}')
    put(tmp_path, "table.csv.gz", gzip.compress(b"id,label\n1,2\n"))
    put(tmp_path, "a.tfrecord.tfrindex", b"TFRINDEX")
    listing = list_files(tmp_path)
    assert names(listing.files) == ["part-00000.gz"]
    reasons = {base_name(i.path): i.reason for i in listing.ignored}
    assert reasons["_SUCCESS"] == "a hidden or marker file"
    assert reasons["part-00001.gz"] == "an empty file"
    assert reasons["part-00000.crc"] == "a checksum file of Hadoop"
    assert "JSON" in reasons["x-mixer.json"]
    assert "gzip of something else" in reasons["table.csv.gz"]
    assert reasons["a.tfrecord.tfrindex"] == "an index"
    assert len(listing.to_dict()["ignored"]) == 7


def test_what_may_be_damaged_tfrecord_is_never_left_out_in_silence(tmp_path: Path) -> None:
    put(tmp_path, "part-00000", golden.flipped(FRAMES[0], 1))
    put(tmp_path, "bad.tfrecord", b"<html>")
    assert names(expand(tmp_path)) == ["bad.tfrecord", "part-00000"]


def test_shards_come_in_natural_order(tmp_path: Path) -> None:
    for n in (2, 10, 1, 99999, 100000):
        put(tmp_path, f"p-{n}.tfrecord", FRAMES[0])
    wanted = [f"p-{n}.tfrecord" for n in (1, 2, 10, 99999, 100000)]
    assert names(expand(tmp_path)) == wanted
    assert names(expand(f"{tmp_path}/p-*.tfrecord")) == wanted
    given = [tmp_path / "p-10.tfrecord", tmp_path / "p-2.tfrecord"]
    assert expand(given) == [str(p) for p in given], "an order given by the user is kept"


def test_a_split_does_not_take_in_another_that_begins_alike(tmp_path: Path) -> None:
    put(tmp_path, "b-foo.tfrecord-00000-of-00001", FRAMES[0])
    put(tmp_path, "b-foo_bar.tfrecord-00000-of-00001", FRAMES[1])
    assert names(expand(tmp_path, split="foo")) == ["b-foo.tfrecord-00000-of-00001"]
    assert names(expand(tmp_path / "b-foo")) == ["b-foo.tfrecord-00000-of-00001"]
    with pytest.raises(FileNotFoundError, match="no shard of split 'fo' among 2 files"):
        expand(tmp_path, split="fo")


def test_a_prefix_takes_only_its_own_export(tmp_path: Path) -> None:
    for name in (
        "A-00000.tfrecord",
        "A-00001.tfrecord",
        "A-OUT-00000.tfrecord",
        "B-00000.tfrecord",
    ):
        put(tmp_path, name, FRAMES[0])
    put(tmp_path, "A-mixer.json", b"{}")
    assert names(expand(tmp_path / "A")) == ["A-00000.tfrecord", "A-00001.tfrecord"]


def test_a_shard_that_is_missing_is_warned_of_unless_files_are_named(tmp_path: Path) -> None:
    files = [put(tmp_path, f"a-{i:05d}-of-00003", FRAMES[0]) for i in (0, 2)]
    put(tmp_path, "a-OUT-00004.tfrecord", FRAMES[0])
    for paths in (tmp_path / "a", f"{tmp_path}/a-000*"):
        with pytest.warns(TfrioWarning, match="missing shard 00001 of 3") as warned:
            assert len(expand(paths)) == 2
        assert len(warned) == 1
    assert len(expand(files)) == 2
    put(tmp_path, "a-00001-of-00003", FRAMES[0])
    assert len(expand(f"{tmp_path}/a-00000*")) == 1, "the others lie beside it"


def test_a_relative_prefix_gives_relative_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "A-00000.tfrecord", FRAMES[0])
    monkeypatch.chdir(tmp_path)
    assert expand("A") == ["A-00000.tfrecord"]


def test_nothing_found_says_what_was_looked_for(tmp_path: Path) -> None:
    put(tmp_path, "train.tfrecord", FRAMES[0])
    with pytest.raises(FileNotFoundError, match="did you mean train.tfrecord"):
        expand(tmp_path / "trian.tfrecord")
    with pytest.raises(FileNotFoundError, match="no TFRecord file matches"):
        expand(f"{tmp_path}/*.gz")
    empty = tmp_path / "empty"
    empty.mkdir()
    put(empty, "_SUCCESS", b"")
    with pytest.raises(FileNotFoundError, match="no TFRecord files in this folder .*_SUCCESS"):
        expand(empty)
    with pytest.raises(UsageError, match="expected a path .*, got 3"):
        expand([3])  # type: ignore[list-item]


def test_names_with_glob_characters_and_spaces_that_exist_are_files(tmp_path: Path) -> None:
    path = put(tmp_path, "été [1] *.tfrecord", FRAMES[0])
    assert expand(path) == [os.fspath(path)]


def test_double_star_goes_into_subfolders(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    put(tmp_path / "a" / "b", "x.tfrecord", FRAMES[0])
    assert names(expand(f"{tmp_path}/**/*.tfrecord")) == ["x.tfrecord"]


def test_urls_list_like_folders() -> None:
    fs = fsspec.filesystem("memory")
    fs.pipe({"/lister/p-2.tfrecord": FRAMES[0], "/lister/p-10.tfrecord": FRAMES[1]})
    fs.pipe("/lister/_SUCCESS", b"")
    try:
        assert names(expand("memory://lister")) == ["p-2.tfrecord", "p-10.tfrecord"]
        assert names(expand("memory://lister/p-*.tfrecord")) == ["p-2.tfrecord", "p-10.tfrecord"]
        assert names(expand("memory://lister/p-2.tfrecord")) == ["p-2.tfrecord"]
    finally:
        fs.rm("/lister", recursive=True)


def test_file_objects_pass_through_beside_paths(tmp_path: Path) -> None:
    path = put(tmp_path, "a.tfrecord", FRAMES[0])
    with path.open("rb") as file:
        assert list(each_source([file, path])) == [file, str(path)]
        assert list(each_source(file)) == [file]
