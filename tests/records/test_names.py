"""Shard names as pure text: order, prefixes, splits, gaps."""

from __future__ import annotations

import random

import pytest

from tfrio.records.names import (
    ShardName,
    find_gaps,
    has_prefix,
    in_split,
    is_record_name,
    natural_key,
    parse_name,
    shard_path,
    stem_of,
)


def test_natural_order_puts_2_before_10() -> None:
    names = [f"p-{n}.tfrecord" for n in (1, 2, 10, 99999, 100000)]
    shuffled = random.Random(3).sample(names, len(names))
    assert sorted(shuffled, key=natural_key) == names


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("out-00001-of-00004.tfrecord.gz", ("out", 1, 4, ".tfrecord.gz", 5)),
        ("d/b-train.tfrecord-00001-of-00004", ("b-train.tfrecord", 1, 4, "", 5)),
        ("s3://b/k/scene-00007.tfrecord.gz", ("scene", 7, None, ".tfrecord.gz", 5)),
        ("data_tfrecord-00000-of-00001.gz", ("data_tfrecord", 0, 1, ".gz", 5)),
        ("a_0001_of_0040.tfrec", ("a", 1, 40, ".tfrec", 4)),
        ("a.00001-of-00040.tfrecord", ("a", 1, 40, ".tfrecord", 5)),
        ("part-3-of-10.tfrecord", ("part", 3, 10, ".tfrecord", 1)),
        ("p-2.tfrecord", None),
        ("three.tfrecord", None),
    ],
)
def test_parts_of_a_shard_name(name: str, parts: tuple[object, ...] | None) -> None:
    found = parse_name(name)
    assert found == (ShardName(*parts) if parts else None)  # type: ignore[arg-type]


def test_a_split_is_matched_by_its_exact_name() -> None:
    assert in_split("b-foo.tfrecord-00000-of-00001", "foo")
    assert not in_split("b-foo_bar.tfrecord-00000-of-00001", "foo")
    assert in_split("foo-00000-of-00001.tfrecord", "foo")
    assert not in_split("xfoo-00000-of-00001.tfrecord", "foo")


def test_a_prefix_owns_its_shards_and_no_siblings() -> None:
    assert has_prefix("A-00000.tfrecord.gz", "A")
    assert has_prefix("A.tfrecord", "A")
    assert not has_prefix("A-OUT-00000.tfrecord.gz", "A")
    assert not has_prefix("B-00000.tfrecord.gz", "A")
    assert has_prefix("b-foo.tfrecord-00000-of-00001", "b-foo.tfrecord")


@pytest.mark.parametrize(
    "name",
    ["a.tfrecord", "a.tfrecords", "a.tfrec", "a.TFRECORD.GZ", "a-00000-of-00002.tfrecord.gz",
     "a.tfrecord-00000-of-00002"],
)  # fmt: skip
def test_names_that_say_tfrecord(name: str) -> None:
    assert is_record_name(name)


@pytest.mark.parametrize("name", ["a.json", "part-00000", "a.record", "tfrecord", "a.gz"])
def test_names_that_leave_it_open(name: str) -> None:
    assert not is_record_name(name)


def test_stem_and_path_of_a_shard() -> None:
    assert stem_of("d/b-train.tfrecord-00001-of-00004") == "b-train"
    assert shard_path("o/x", 3, 12, ".tfrecord") == "o/x-00003-of-00012.tfrecord"
    assert shard_path("o/x", 3, None, ".tfrecord.gz") == "o/x-00003.tfrecord.gz"


def test_missing_and_extra_shards_are_told() -> None:
    (gap,) = find_gaps(["d/a-00000-of-00003", "d/a-00002-of-00003"])
    assert "missing shard 00001 of 3" in gap.message
    assert (gap.missing, gap.extra) == ((1,), ())
    (gap,) = find_gaps(["a-00000-of-00001", "a-00004-of-00001"])
    assert gap.extra == (4,)
    (gap,) = find_gaps(["e-00000.tfrecord.gz", "e-00003.tfrecord.gz"])
    assert gap.missing == (1, 2)
    assert find_gaps([f"a-{i:05d}-of-00003" for i in range(3)]) == []


@pytest.mark.parametrize(
    "form", ["a-{}-of-{}", "a_{:05d}-of-{:05d}.gz", "a.{:03d}_of_{:03d}.tfrec"]
)
@pytest.mark.parametrize("lost", [0, 2, 4])
def test_lost_shards_are_told_in_every_form_of_a_total(form: str, lost: int) -> None:
    names = [form.format(number, 5) for number in range(5)]
    assert find_gaps(names) == []
    (gap,) = find_gaps(names[:lost] + names[lost + 1 :])
    assert (gap.missing, gap.prefix) == ((lost,), "a")


def test_a_name_cannot_ask_for_much_memory() -> None:
    assert find_gaps(["a-00000-of-99999999999.tfrecord"]) == []
    (gap,) = find_gaps(["a-00000-of-999999.tfrecord"])
    assert len(gap.message) < 200


def test_shards_may_be_counted_from_1() -> None:
    names = [f"a-{number:05d}-of-00005" for number in range(1, 6)]
    assert find_gaps(names) == []
    (gap,) = find_gaps(names[:2] + names[3:])
    assert (gap.missing, gap.extra) == ((3,), ())
    (gap,) = find_gaps(names[:4])  # the last or one before the first: at least told
    assert len(gap.missing) == 1


def test_dates_and_numbers_without_padding_are_no_shard_sequence() -> None:
    assert find_gaps(["scene-20240101.tfrecord", "scene-20240115.tfrecord"]) == []
    assert find_gaps(["p-1.tfrecord", "p-10.tfrecord"]) == []
    assert find_gaps(["p-99999.tfrecord", "p-100000.tfrecord"]) == []
