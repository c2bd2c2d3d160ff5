"""Names given and names found again."""

from __future__ import annotations

import random

import pytest

from tfrio.errors import UsageError
from tfrio.geo.naming import Names, group_exports, parse_shard_name


def test_drive_names() -> None:
    names = Names("out/scene", 2)
    assert names.all_shards == ["out/scene-00000.tfrecord.gz", "out/scene-00001.tfrecord.gz"]
    assert names.mixer == "out/scene-mixer.json"
    assert names.manifest == "out/scene-manifest.json"
    assert Names("a", 1, compressed=False).all_shards == ["a-00000.tfrecord"]


def test_cloud_storage_names_have_no_hyphen() -> None:
    names = Names("scene", 2, "gcs")
    assert names.all_shards == ["scene00000.tfrecord.gz", "scene00001.tfrecord.gz"]
    assert names.mixer == "scenemixer.json"


def test_cloud_storage_names_of_one_shard_have_no_number() -> None:
    names = Names("scene", 1, "gcs")
    assert (names.all_shards, names.mixer) == (["scene.tfrecord.gz"], "scene.json")


def test_refusals() -> None:
    with pytest.raises(UsageError, match='"drive" or "gcs"'):
        Names("a", 1, "s3")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="five digits"):
        Names("a", 100_001)


@pytest.mark.parametrize("naming", ["drive", "gcs"])
@pytest.mark.parametrize("count", [1, 3, 12])
@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("prefix", ["scene", "scene2020", "a-OUT", "d/e-12345", "x.tfrecord"])
def test_what_we_name_we_find(naming: str, count: int, compressed: bool, prefix: str) -> None:
    names = Names(prefix, count, naming, compressed)  # type: ignore[arg-type]
    files = [*names.all_shards, names.mixer, names.manifest]
    random.Random(7).shuffle(files)
    (found,) = group_exports(files)
    assert found.prefix == prefix
    assert list(found.shards) == names.all_shards
    assert (found.mixer, found.manifest) == (names.mixer, names.manifest)
    assert (found.missing, found.repeated) == ([], [])


def test_two_exports_and_their_predictions_do_not_mix() -> None:
    files = [
        "A-00001.tfrecord", "A-00000.tfrecord", "A-mixer.json", "B-00000.tfrecord.gz",
        "B-mixer.json", "A-OUT-00000.TFRecord", "notes.txt",
    ]  # fmt: skip
    found = {export.prefix: export for export in group_exports(files)}
    assert sorted(found) == ["A", "A-OUT", "B"]
    assert found["A"].shards == ("A-00000.tfrecord", "A-00001.tfrecord")
    assert found["A-OUT"].mixer is None


def test_lost_and_doubled_shards_are_told() -> None:
    (export,) = group_exports(
        ["s-00003.tfrecord", "s-00000.tfrecord", "s-00000.tfrecord.gz", "s-00002.tfrecord"]
    )
    assert export.missing == [1]
    assert export.repeated == [0]


def test_a_number_at_the_end_of_the_only_name_is_no_shard_number() -> None:
    (export,) = group_exports(["run20210.tfrecord.gz", "run20210.json"])
    assert export.prefix == "run20210"
    assert export.numbers == (0,)


def test_shards_that_tell_their_number() -> None:
    names = ["a-00000-of-00003.tfrecord", "a-00002-of-00003.tfrecord", "a-mixer.json"]
    (found,) = group_exports(names, counted=True)
    assert (found.prefix, found.numbers, found.mixer) == ("a", (0, 2), "a-mixer.json")
    assert found.missing == [1]
    assert group_exports(names[:1], counted=True)[0].missing == [1, 2]
    # An export bears no such names: overwriting one must not remove these.
    assert "a" not in [export.prefix for export in group_exports(names)]


def test_parts_of_a_name() -> None:
    parts = parse_shard_name("d/A-00012.tfrecord.gz")
    assert parts is not None
    assert (parts.prefix, parts.number, parts.dash) == ("d/A", 12, True)
    assert parse_shard_name("A-mixer.json") is None
