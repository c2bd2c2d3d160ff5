"""States are small, survive JSON, and are refused where they do not fit."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tfrio.datasets.order import FileOrder, FullOrder
from tfrio.datasets.plan import Done
from tfrio.datasets.state import (
    Progress,
    check_extent,
    check_fit,
    data_digest,
    merge_states,
    order_digest,
)
from tfrio.errors import UsageError

NOW = {"data": "d", "order": "o", "seed": 7}


def saved(progress, *, rank=0, world=3, **other):
    state = progress.to_dict(**{**NOW, **other}, rank=rank, world=world)
    return json.loads(json.dumps(state))


def test_round_trip_through_json():
    progress = Progress(4, 12, (Done(2, (3, 5)),))
    state = saved(progress, rank=1)
    assert len(json.dumps(state)) < 300
    assert Progress.from_dict(state, rank=1, world=3) == progress


def test_worker_state_round_trip():
    progress = Progress(0, 12, worker=1, workers=2, delivered=8)
    assert Progress.from_dict(saved(progress), rank=0, world=3) == progress


def test_another_world_leaves_out_what_was_consumed():
    progress = Progress.from_dict(saved(Progress(1, 12)), rank=0, world=2)
    assert progress == Progress(1, 0, (Done(3, (12, 12, 12)),))
    assert Progress.from_dict(saved(Progress(1, 0)), rank=0, world=2) == Progress(1)


def test_merged_states_of_ranks_out_of_step():
    states = [saved(Progress(1, taken), rank=rank) for rank, taken in enumerate((12, 9, 4))]
    merged = merge_states(states[::-1])
    assert Progress.from_dict(merged, rank=2, world=3).consumed == 4
    assert Progress.from_dict(merged, rank=0, world=5).done == (Done(3, (12, 9, 4)),)


def test_states_that_do_not_belong_together_are_refused():
    states = [saved(Progress(1, 3), rank=rank) for rank in (0, 1)]
    with pytest.raises(UsageError, match="each rank"):
        merge_states(states)
    with pytest.raises(UsageError, match=r"ranks \[2\] have ended epoch 1, the others have not"):
        merge_states([*states, saved(Progress(2, 3), rank=2)])
    with pytest.raises(UsageError, match="'seed'"):
        merge_states([*states, saved(Progress(1, 3), rank=2, seed=8)])
    with pytest.raises(UsageError, match="no states"):
        merge_states([])


@pytest.mark.parametrize(
    ("change", "words"),
    [({"data": "x"}, "another data set"), ({"seed": 1}, "seed"), ({"order": "x"}, "shuffle")],
)
def test_misfit_is_refused(change, words):
    check_fit(saved(Progress()), **NOW)
    with pytest.raises(UsageError, match=words):
        check_fit(saved(Progress()), **{**NOW, **change})


def test_other_dicts_and_versions_are_refused():
    for other in ({"epoch": 3}, {}, None):
        with pytest.raises(UsageError, match="not a state of a tfrio dataset: consumed, data, "):
            check_fit(other, **NOW)
    with pytest.raises(UsageError, match="version 99"):
        Progress.from_dict({**saved(Progress()), "version": 99}, rank=0, world=1)


@pytest.mark.parametrize(
    "change",
    [
        {"consumed": "12"},
        {"consumed": -1},
        {"consumed": 1.5},
        {"consumed": [1, 2]},
        {"consumed": [1, 2, -3]},
        {"epoch": -1},
        {"epoch": None},
        {"world": "3"},
        {"world": 0},
        {"done": [[2, [3, -5]]]},
        {"done": [[2, [3]]]},
        {"worker": [0, 2, "8"]},
    ],
)
def test_damaged_states_are_refused(change):
    state = {**saved(Progress(1, 12)), **change}
    with pytest.raises(UsageError, match="state is damaged"):
        Progress.from_dict(state, rank=0, world=3)


def test_more_consumed_than_there_is_is_refused():
    # 103 records on 3 ranks: 35 at most for one. After 10 each, 73 are left for 2 ranks.
    earlier = (Done(3, (10, 10, 10)),)
    for progress, world in ((Progress(0, 35), 3), (Progress(0, 37, earlier), 2)):
        check_extent(saved(progress, world=world), 103)
        beyond = saved(replace(progress, consumed=progress.consumed + 1), world=world)
        with pytest.raises(UsageError, match=f"{progress.consumed + 1} records consumed by one"):
            check_extent(beyond, 103)
    with pytest.raises(UsageError, match="36 records consumed by one rank of 3, where 103"):
        check_extent({**saved(Progress()), "consumed": [0, 36, 0]}, 103)


def test_digests_follow_the_data_and_the_order():
    base = data_digest(["a", "b"], [3, 4], [30, 40])
    assert base == data_digest(["a", "b"], [3, 4], [30, 40])
    others = [
        data_digest(["b", "a"], [3, 4], [30, 40]),
        data_digest(["a", "b"], [4, 3], [30, 40]),
        data_digest(["a", "b"], [3, 4], [30, 41]),
        data_digest(["a", "b"], [3, 4], [30, 40], selection=[np.array([0]), np.array([1])]),
    ]
    assert len({base, *others}) == 5
    orders = [FileOrder(100), FullOrder(100, 1), FullOrder(100, 2), FileOrder(0)]
    assert len({order_digest(order, {}) for order in orders}) == 4
    assert order_digest(orders[0], {"window": 1}) != order_digest(orders[0], {"window": 2})
