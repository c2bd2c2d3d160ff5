"""The plan over all small combinations, against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrio.datasets.plan import Done, Picks, deal, make_order, plan, shares
from tfrio.errors import UsageError

COUNTS = [[], [0], [1], [3, 0, 4], [5, 1, 7], [2] * 9]


def records_of(the_plan):
    """Return (file, record) of each record of a plan, padding left out, and the padded ones."""
    real, padded = [], []
    for run in the_plan.ranges():
        side = padded if run.padded else real
        side.extend((run.file, record) for record in range(run.start, run.stop))
    return real, padded


def everything(counts):
    return [(file, record) for file, count in enumerate(counts) for record in range(count)]


@pytest.mark.parametrize("shuffle", ["none", "full", "blocks", "buffer"])
@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_each_record_once_over_ranks_and_workers(counts, shuffle):
    for world, workers, batch in itertools.product((1, 2, 3, 5), (1, 2, 3), (1, 2, 4)):
        seen = []
        for rank, worker in itertools.product(range(world), range(workers)):
            part = plan(
                counts,
                seed=3,
                epoch=1,
                rank=rank,
                world=world,
                worker=worker,
                workers=workers,
                batch=batch,
                shuffle=shuffle,
                window=4,
                uneven="keep",
            )
            real, padded = records_of(part)
            assert padded == []
            seen += real
        assert sorted(seen) == everything(counts)


@pytest.mark.parametrize("shuffle", ["none", "full", "blocks", "buffer"])
def test_batches_do_not_depend_on_the_number_of_workers(shuffle):
    counts = [5, 1, 7]
    for world, rank, batch in [(1, 0, 4), (2, 1, 3), (3, 2, 2)]:
        common = {"seed": 9, "rank": rank, "world": world, "batch": batch, "shuffle": shuffle}
        alone = plan(counts, **common, window=4)
        wanted = [alone.picks(k, k + 1).record.tolist() for k in range(len(alone))]
        for workers in (1, 2, 3, 5):
            parts = [
                plan(counts, **common, window=4, worker=w, workers=workers) for w in range(workers)
            ]
            got = [
                parts[k % workers].picks(k // workers, k // workers + 1).record.tolist()
                for k in range(len(alone))
            ]
            assert got == wanted
            assert sum(len(part) for part in parts) == len(alone)


def test_groups_of_batches_come_in_order():
    for total, batch, workers, group in itertools.product(
        (0, 1, 13, 40), (1, 3), (1, 2, 3), (1, 2, 5)
    ):
        common = {"seed": 9, "batch": batch, "shuffle": "full"}
        alone = plan([total], **common)
        wanted = [alone.picks(k, k + 1).record.tolist() for k in range(len(alone))]
        parts = [
            plan([total], **common, worker=w, workers=workers, group=group) for w in range(workers)
        ]
        got, turns = [], alone.rank_batches
        for turn in range(-(-turns // group)):
            part, first = parts[turn % workers], turn // workers * group
            last = min(first + group, len(part))
            got += [part.picks(k, k + 1).record.tolist() for k in range(first, last)]
        assert got == wanted
        assert sum(len(part) for part in parts) == len(alone)


@pytest.mark.parametrize(
    ("uneven", "sizes"), [("drop", [34] * 3), ("pad", [35] * 3), ("keep", [35, 34, 34])]
)
def test_uneven_ends(uneven, sizes):
    dealt = shares(103, world=3, uneven=uneven)
    assert [len(share) for share in dealt] == sizes
    batches = {plan([103], rank=r, world=3, batch=4, uneven=uneven).rank_batches for r in range(3)}
    assert batches == {9}
    visited = [p for share in dealt for p in share.positions(np.arange(len(share))).tolist()]
    assert len(set(visited)) == {"drop": 102, "pad": 103, "keep": 103}[uneven]


def test_padding_repeats_first_records_and_flags_them():
    dealt = [plan(range_counts, rank=r, world=4, uneven="pad") for r in range(4)]
    picked = [p.picks(0, len(p)) for p in dealt]
    assert [p.record.tolist() for p in picked] == [[0, 1, 2], [3, 4, 5], [6, 7, 0], [8, 9, 1]]
    assert [int((~p.real).sum()) for p in picked] == [0, 0, 1, 1]


range_counts = [10]


@pytest.mark.parametrize("world", [1, 2, 4, 7])
def test_more_ranks_than_records(world):
    for total in range(4):
        for uneven, want in [("drop", total // world), ("pad", -(-total // world))]:
            assert {len(s) for s in shares(total, world=world, uneven=uneven)} == {want}


def test_unequal_files_over_four_ranks():
    lengths = [len(s) for s in shares(110, world=4, uneven="keep")]
    assert lengths == [28, 28, 27, 27]


@pytest.mark.parametrize("uneven", ["drop", "pad", "keep"])
def test_resume_on_another_number_of_ranks_reads_each_record_once(uneven):
    for total, old, new in itertools.product((0, 1, 10, 103), (1, 2, 3), (1, 2, 5)):
        for taken in (0, 1, 12, 40):
            before = shares(total, world=old, uneven=uneven)
            counts = tuple(min(taken, len(share)) for share in before)
            seen = [
                position
                for share, count in zip(before, counts, strict=True)
                for position in share.positions(np.arange(min(count, share.real))).tolist()
            ]
            after = shares(total, world=new, uneven="keep", done=[Done(old, counts)])
            for share in after:
                seen += share.positions(np.arange(len(share))).tolist()
            assert sorted(seen) == list(range(total))


def test_resume_twice_with_ranks_out_of_step():
    done = [Done(3, (12, 9, 0)), Done(2, (5, 7))]
    left = [p for s in shares(103, world=4, uneven="keep", done=done) for p in stream(s)]
    assert len(left) == len(set(left)) == 103 - 21 - 12


def stream(share):
    return share.positions(np.arange(len(share))).tolist()


def test_skip_continues_where_the_stream_stopped():
    for batch, taken in itertools.product((1, 3, 4), (0, 1, 5, 12, 13)):
        full = plan([9, 4], seed=1, shuffle="full", batch=1).picks(0, 13)
        rest = plan([9, 4], seed=1, shuffle="full", batch=batch, skip=taken)
        picks = rest.picks(0, len(rest))
        assert picks.record.tolist() == full.record.tolist()[taken:]
        assert rest.batch_sizes(0, len(rest)).sum() == 13 - taken


@pytest.mark.parametrize("shuffle", ["full", "blocks", "buffer"])
def test_epochs_are_dealt_anew_and_repeatable(shuffle):
    counts, blocks = [30, 40, 33], np.arange(0, 103, 5)

    def of_rank_0(epoch, seed=1):
        dealt = plan(
            counts, seed=seed, epoch=epoch, world=2, shuffle=shuffle, window=20, blocks=blocks
        )
        return records_of(dealt)[0]

    assert of_rank_0(0) == of_rank_0(0)
    assert set(of_rank_0(0)) != set(of_rank_0(1))
    assert of_rank_0(0) != of_rank_0(0, seed=2)


def test_drop_last_leaves_whole_batches():
    for total, batch, workers in itertools.product((0, 3, 4, 9), (4, 7), (1, 2)):
        parts = [
            plan([total], batch=batch, worker=w, workers=workers, drop_last=True)
            for w in range(workers)
        ]
        sizes = np.concatenate([p.batch_sizes(0, len(p)) for p in parts])
        assert sizes.tolist() == [batch] * (total // batch)
        assert [p.picks(0, len(p)).record.size for p in parts] == [
            int(p.batch_sizes(0, len(p)).sum()) for p in parts
        ]


def test_the_docstring_promise_of_ranges():
    runs = list(plan([3, 4], batch=2, worker=1, workers=2).ranges())
    assert [(r.file, r.start, r.stop) for r in runs] == [(0, 2, 3), (1, 0, 1), (1, 3, 4)]


@pytest.mark.parametrize(
    "bad",
    [
        {"rank": 3, "world": 3},
        {"rank": -1},
        {"worker": 2, "workers": 2},
        {"batch": 0},
        {"group": 0},
        {"shuffle": "wild"},
        {"uneven": "maybe"},
        {"window": 0},
    ],
    ids=str,
)
def test_impossible_plans_are_refused(bad):
    with pytest.raises(UsageError, match=str(next(iter(bad)))):
        plan([5], **bad)


def test_deal_of_nothing():
    assert len(deal(0, uneven="pad")) == 0
    assert make_order([], shuffle="buffer").total == 0


@given(
    counts=st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(sum),
    data=st.data(),
)
def test_records_are_found_in_their_files(counts, data):
    places = [(file, record) for file, count in enumerate(counts) for record in range(count)]
    numbers = data.draw(st.lists(st.integers(0, len(places) - 1), max_size=12))
    starts = np.array([0, *np.cumsum(counts)], np.int64)
    picks = Picks.of(np.array(numbers, np.int64), starts)
    found = list(zip(picks.file.tolist(), picks.record.tolist(), strict=True))
    assert found == [places[number] for number in numbers]
    assert picks.real.all()
    assert (picks.file.dtype, picks.record.dtype) == (np.int32, np.int64)
