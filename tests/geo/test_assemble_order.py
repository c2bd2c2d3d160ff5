"""Which patch each record is; a place that cannot be told is not guessed."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tfrio.errors import GeoError
from tfrio.geo.assemble_order import first_records
from tfrio.geo.manifest import ShardRow


def shard(name: str, records: int, first: int) -> ShardRow:
    return ShardRow(name=name, records=records, first=first, bytes=0, size=0, digest="")


@pytest.mark.parametrize(
    ("numbers", "counts", "total", "firsts"),
    [
        ([5], [2], 15, [10]),  # a real export: 8 shards, the last with one patch
        ([0], [2], 15, [0]),
        ([1, 3], [4, 4], 40, [4, 12]),
        ([0, 2], [4, 1], 9, [0, 8]),
        ([3], [5], 20, [15]),
    ],
)
def test_where_shards_begin(
    numbers: list[int], counts: list[int], total: int, firsts: list[int]
) -> None:
    assert first_records(numbers, counts, total) == firsts


@pytest.mark.parametrize(
    ("numbers", "counts", "total", "text"),
    [
        ([7], [1], 15, "may begin at patch 7 or 14"),
        ([None], [2], 15, "its name has no shard number"),
        ([0, 1, 2], [3, 2, 1], 9, "shards hold 3, 2, 1 records, not equally many"),
        ([0, 1], [3, 4], 9, "not equally many"),
        ([0, 2], [4, 2], 20, "not equally many"),
        ([9], [5], 12, "fits nowhere"),
    ],
)
def test_what_cannot_be_told(
    numbers: list[int | None], counts: list[int], total: int, text: str
) -> None:
    with pytest.raises(GeoError, match=text) as caught:
        first_records(numbers, counts, total, name="p-00007.tfrecord")
    assert "p-00007.tfrecord" in str(caught.value)
    assert "pass first_patch=" in str(caught.value)


def test_the_manifest_settles_it() -> None:
    rows = [shard("a-00000", 2, 0), shard("a-00001", 2, 2), shard("a-00002", 1, 4)]
    assert first_records([2], [1], 5, shards=rows) == [4]
    with pytest.raises(GeoError, match="not equally many"):
        first_records([1, 2], [2, 2], 5, shards=rows)


@given(st.integers(1, 60), st.integers(1, 9), st.data())
def test_shards_of_a_real_division_are_placed_right_or_not_at_all(
    total: int, each: int, data: st.DataObject
) -> None:
    spans = [(start, min(each, total - start)) for start in range(0, total, each)]
    chosen = sorted(data.draw(st.sets(st.integers(0, len(spans) - 1), min_size=1)))
    assume(len(chosen) < len(spans))
    try:
        firsts = first_records(chosen, [spans[n][1] for n in chosen], total)
    except GeoError:
        assert len(chosen) == 1
        return
    assert firsts == [spans[n][0] for n in chosen]
