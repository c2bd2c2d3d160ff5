"""Splits are disjoint, complete, and depend on nothing but names, numbers and the seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrio.datasets.split import spatial_blocks, split_groups, split_records, stable_names
from tfrio.errors import UsageError
from tfrio.types import XY

PATHS = [f"/data/part-{number}.tfrecord" for number in range(5)]
COUNTS = [40, 0, 20, 33, 10]


def as_sets(paths, parts):
    return [
        {(path, int(r)) for path, records in zip(paths, part, strict=False) for r in records}
        for part in parts
    ]


@pytest.mark.parametrize("by", ["record", "hash", "file"])
def test_parts_cover_all_once_whatever_the_listing(by):
    options = {"fractions": [0.8, 0.2], "seed": 3, "by": by}
    parts = as_sets(PATHS, split_records(PATHS, COUNTS, **options))
    assert len(parts[0] | parts[1]) == 103
    assert not parts[0] & parts[1]
    turned = split_records(PATHS[::-1], COUNTS[::-1], **options)
    moved = split_records([p.replace("/data", "/elsewhere") for p in PATHS], COUNTS, **options)
    assert as_sets(PATHS[::-1], turned) == parts
    assert as_sets(PATHS, moved) == parts
    others = [
        as_sets(PATHS, split_records(PATHS, COUNTS, **{**options, "seed": seed}))
        for seed in range(4, 12)
    ]
    assert any(other != parts for other in others)


def test_record_split_has_exact_sizes():
    parts = split_records(PATHS, COUNTS, fractions=[0.8, 0.2])
    assert [sum(map(len, part)) for part in parts] == [82, 21]
    parts = split_records(PATHS, COUNTS, fractions=[0.7, 0.1, 0.2])
    assert [sum(map(len, part)) for part in parts] == [72, 10, 21]


def test_hash_split_moves_no_record_when_more_are_appended():
    before = as_sets(PATHS, split_records(PATHS, COUNTS, fractions=[0.5, 0.5], by="hash"))
    grown = [count + 7 for count in COUNTS]
    after = as_sets(PATHS, split_records(PATHS, grown, fractions=[0.5, 0.5], by="hash"))
    assert before[0] <= after[0]
    assert before[1] <= after[1]


def test_file_split_keeps_files_whole():
    parts = split_records(PATHS, COUNTS, fractions=[0.5, 0.5], by="file")
    for file, count in enumerate(COUNTS):
        assert sorted(len(part[file]) for part in parts) == [0, count]


@settings(max_examples=30, deadline=None)
@given(
    groups=st.lists(st.integers(0, 12), max_size=80),
    first=st.floats(0, 1),
    seed=st.integers(0, 2**32),
)
def test_groups_stay_together(groups, first, seed):
    parts = split_groups(np.array(groups, np.int64), [first, 1 - first], seed=seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(groups)))
    sides = [{groups[record] for record in part} for part in parts]
    assert not sides[0] & sides[1]


def test_groups_of_bytes_and_share():
    groups = [f"site-{number // 3}".encode() for number in range(3000)]
    parts = split_groups(groups, [0.8, 0.2])
    assert 0.75 < len(parts[0]) / 3000 < 0.85


def test_spatial_blocks_are_x_then_y():
    blocks = spatial_blocks(np.arange(12), patches_per_row=4, block=XY(2, 3))
    assert blocks == [(0, 0), (0, 0), (0, 1), (0, 1)] * 3
    assert spatial_blocks(np.array([9]), patches_per_row=4, block=(1, 2)) == [(1, 1)]


def test_same_base_names_are_told_apart_by_folder():
    assert stable_names(["/d/a/x.tfrecord", "/d/b/x.tfrecord"]) == ["a/x.tfrecord", "b/x.tfrecord"]
    assert stable_names(["/d/a/x", "/d/b/y"]) == ["x", "y"]
    assert stable_names([]) == []


@pytest.mark.parametrize("fractions", [[], [0.5], [1.5, -0.5], [0.5, 0.6]])
def test_fractions_must_sum_to_one(fractions):
    with pytest.raises(UsageError, match="sum to 1"):
        split_records(PATHS, COUNTS, fractions=fractions)


def test_unknown_way_is_refused():
    with pytest.raises(UsageError, match="by must be"):
        split_records(PATHS, COUNTS, fractions=[1.0], by="day")
