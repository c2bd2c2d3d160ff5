"""Records into shards, patches into windows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrio.geo.grid import PatchGrid, Window
from tfrio.geo.patches import grid_patches, point_patches
from tfrio.geo.plan import (
    Lanes,
    Span,
    batches,
    grouped,
    records_per_shard,
    runs,
    shard_spans,
    window_pixels,
)
from tfrio.types import XY


def test_a_shard_holds_as_many_records_as_fit() -> None:
    size = 4 * 256 * 256 * 10 + 16
    assert records_per_shard(104_857_600, size) == 39
    assert [len(span) for span in shard_spans(100, 39)] == [39, 39, 22]
    assert records_per_shard(104_857_600, 3_145_815) == 33
    assert records_per_shard(5, 6) == 1


@given(st.integers(1, 500), st.integers(1, 60))
def test_spans_hold_each_record_once(records: int, per_shard: int) -> None:
    spans = shard_spans(records, per_shard)
    assert [n for span in spans for n in range(span.start, span.stop)] == list(range(records))
    assert all(len(span) == per_shard for span in spans[:-1])


@given(
    st.builds(XY, st.integers(1, 40), st.integers(1, 40)),
    st.builds(XY, st.integers(1, 9), st.integers(1, 9)),
    st.builds(XY, st.integers(0, 3), st.integers(0, 3)),
    st.integers(1, 400),
    st.data(),
)
def test_batches_hold_each_patch_once_and_cover_it(
    size: XY, patch: XY, margin: XY, most: int, data: st.DataObject
) -> None:
    grid = PatchGrid(size, patch, XY(2 * margin.x + 1, 2 * margin.y + 1), edge="shift")
    patches = grid_patches(grid)
    kept = data.draw(st.lists(st.integers(0, grid.total - 1), unique=True, min_size=1))
    patches = patches.keeping(sorted(kept))
    start = data.draw(st.integers(0, len(patches) - 1))
    stop = data.draw(st.integers(start, len(patches)))
    found = list(batches(patches, Span(start, stop), patch, margin, most))
    positions = [batch.first + n for batch in found for n in range(len(batch.origins))]
    assert positions == list(range(start, stop))
    for batch in found:
        assert len({row for _, row in batch.origins}) == 1
        assert len(batch.origins) == 1 or batch.window.pixels <= most
        for column, row in batch.origins:
            padded = Window(column, row, patch.x, patch.y).grown(margin)
            assert batch.window.column <= padded.column
            assert batch.window.right >= padded.right
            assert (batch.window.row, batch.window.bottom) == (padded.row, padded.bottom)


@given(st.lists(st.integers(0, 50)).map(sorted))
def test_runs_reproduce_their_starts(starts: list[int]) -> None:
    found = [starts[first] + step * n for first, count, step in runs(starts) for n in range(count)]
    assert found == starts


def test_a_regular_row_is_one_run() -> None:
    assert runs([0, 4, 8, 12]) == [(0, 4, 4)]
    assert runs([0, 4, 8, 9]) == [(0, 3, 4), (3, 1, 1)]
    assert runs([]) == []


def test_patches_at_points_count_themselves() -> None:
    patches = point_patches([(5, 2), (9, 6)], XY(4, 3), XY(10, 7))
    assert len(patches) == patches.total == 2
    assert patches[1] == (9, 6)
    assert patches.counted(1) == Window(9, 6, 1, 1)
    assert patches.keeping([1])[0] == (9, 6)
    assert patches.keeping([1]).index(0) == 1


def test_a_patch_outside_the_grid_is_no_patch() -> None:
    with pytest.raises(IndexError):
        grid_patches(PatchGrid(XY(10, 7), XY(4, 3)))[4]


def test_windows_of_tiles_are_narrow_and_small_batches_go_together() -> None:
    record, pixels = 1 << 20, 200 * 100
    strip = XY(90_000, 100)
    narrow = window_pixels(record, pixels, strip, tiled=True)
    assert 4 * pixels <= narrow < 5 * pixels
    assert window_pixels(record, pixels, strip, tiled=False) > 10 * narrow
    assert window_pixels(record, pixels, XY(801, 100), tiled=True) == 101 * 100
    assert window_pixels(1 << 40, 6, strip, tiled=True) == 1
    patches = grid_patches(PatchGrid(XY(8, 30), XY(4, 3)))
    each = list(batches(patches, Span(0, 20), XY(4, 3), XY(0, 0), 24))
    groups = list(grouped(each, 60))
    assert [len(group) for group in groups] == [3, 3, 3, 1]
    assert [batch for group in groups for batch in group] == each
    assert list(grouped([], 60)) == []


@given(st.integers(1, 500), st.integers(1, 90), st.integers(1, 9))
def test_lanes_are_ranges_of_columns_for_every_worker(width: int, part: int, workers: int) -> None:
    lanes = Lanes(width, part, workers)
    found = [lanes.lane(column) for column in range(0, width, part)]
    assert set(found) <= set(range(workers))
    if len(found) <= 16:
        assert found == sorted(found)
        assert 2 * len(found) <= lanes.ahead < 2 * (len(found) + workers)
        assert max(found.count(lane) for lane in found) <= -(-len(found) // workers)
    assert lanes.lane(-3) == 0


@pytest.mark.parametrize(
    ("parts", "workers", "fair"),
    [(8, 2, True), (9, 2, True), (3, 2, False), (1, 2, False), (4, 4, True), (10, 8, False)],
)
def test_lanes_are_for_equal_shares(parts: int, workers: int, fair: bool) -> None:
    assert Lanes(parts * 30 - 7, 30, workers).fair is fair
