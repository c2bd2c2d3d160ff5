"""The loader counts what it hands out: resumed at any batch, with any number of workers."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import traceback

import pytest

from tests.datasets.conftest import flipped, ids
from tfrio.datasets.tensors import Told
from tfrio.errors import CorruptRecordError, TfrioWarning, UsageError
from tfrio.torch import Loader, TFRecordDataset

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


def loader(glob, workers=0, *, data=None, **options):
    given = {"batch_size": 4, "seed": 7, "shuffle": True, "index": "memory", **(data or {})}
    return TFRecordDataset(glob, **given).loader(num_workers=workers, **options)


@pytest.mark.parametrize("workers", [0, 2])
def test_each_pass_is_the_next_epoch(numbered, workers):
    reference = TFRecordDataset(numbered["plain"], batch_size=4, seed=7, shuffle=True)
    made = loader(numbered["plain"], workers)
    assert isinstance(made, Loader)
    assert len(made) == 26
    for _ in range(3):
        assert ids(made) == ids(reference)


@pytest.mark.parametrize(("before", "after"), [(0, 0), (2, 0), (0, 2), (2, 1)])
@pytest.mark.parametrize("taken", [0, 1, 5, 25, 26])
def test_resume_with_any_number_of_workers(numbered, before, after, taken):
    reference = loader(numbered["plain"])
    whole, following = ids(reference), ids(reference)
    first = loader(numbered["plain"], before, prefetch_factor=4)
    stream = iter(first)
    seen = ids(itertools.islice(stream, taken))
    state = json.loads(json.dumps(first.state_dict()))
    del stream
    resumed = loader(numbered["plain"], after)
    resumed.load_state_dict(state)
    if taken == 26:
        assert ids(resumed) == following
    else:
        assert seen + ids(resumed) == whole
        assert ids(resumed) == following


def test_state_of_a_later_epoch_and_after_its_end(numbered):
    made = loader(numbered["blocked"], data={"window": 16})
    ids(made)
    second = ids(made)
    assert made.state_dict()["epoch"] == 2
    again = loader(numbered["blocked"], data={"window": 16})
    again.set_epoch(1)
    seen = ids(itertools.islice(iter(again), 7))
    resumed = loader(numbered["blocked"], 2, data={"window": 16})
    resumed.load_state_dict(again.state_dict())
    resumed.set_epoch(1)
    assert seen + ids(resumed) == second


def test_a_pass_broken_off_starts_again(numbered):
    made = loader(numbered["plain"], 2)
    first = ids(itertools.islice(iter(made), 3))
    assert made.state_dict()["consumed"] == 12
    assert ids(itertools.islice(iter(made), 3)) == first


def test_load_into_a_loader_whose_workers_live(numbered):
    made = loader(numbered["plain"], 2)
    whole = ids(made)
    other = loader(numbered["plain"])
    seen = ids(itertools.islice(iter(other), 9))
    made.load_state_dict(other.state_dict())
    assert seen + ids(made) == whole


def test_infinite_over_epochs(numbered):
    endless = {"infinite": True}
    reference = loader(numbered["plain"])
    wanted = ids(reference) + ids(reference) + ids(reference)
    for workers in (0, 2, 3):
        made = loader(numbered["plain"], workers, data=endless)
        stream = iter(made)
        seen = ids(itertools.islice(stream, 60))
        assert seen == wanted[: len(seen)]
        assert made.state_dict()["epoch"] == 2
        resumed = loader(numbered["plain"], data=endless)
        resumed.load_state_dict(made.state_dict())
        assert seen + ids(itertools.islice(iter(resumed), 10)) == wanted[: len(seen) + 40]
        del stream


@pytest.mark.parametrize("workers", [0, 2])
def test_state_each_step_is_small_and_follows(numbered, workers):
    made = loader(numbered["plain"], workers)
    for epoch in range(2):
        for number, _ in enumerate(made, 1):
            state = made.state_dict()
            assert len(json.dumps(state)) < 300
            stands = (epoch + 1, 0) if number == 26 else (epoch, 4 * number)
            assert (state["epoch"], state["consumed"]) == stands
            fresh = loader(numbered["plain"])
            fresh.load_state_dict(state)  # the order is that of this epoch


@pytest.mark.filterwarnings("ignore:epoch 0. left out")
@pytest.mark.parametrize(("workers", "transform"), [(0, None), (2, None), (2, dict)])
def test_batches_of_damaged_records_alone_are_counted(tmp_path, workers, transform):
    bad = (8, 9, 10, 11, 40)
    path = flipped(tmp_path, bad)
    options = {"errors": "skip", "shuffle": False, "transform": transform}
    made = loader([path], workers, data=options)
    assert ids(made) == [number for number in range(100) if number not in bad]
    stream = iter(loader([path], workers, data=options))
    assert ids(itertools.islice(stream, 3)) == [*range(8), 12, 13, 14, 15]
    again = loader([path], workers, data=options)
    ids(itertools.islice(iter(again), 3))
    assert again.state_dict()["consumed"] == 16


def test_transformed_batches_come_from_workers(numbered):
    made = loader(numbered["plain"], 2, data={"transform": _doubled, "shuffle": False})
    assert ids(made) == [2 * number for number in range(103)]


def _doubled(batch):
    return {"id": 2 * batch["id"], "text": "kept"}


@pytest.mark.parametrize("workers", [0, 2])
def test_damage_arrives_with_all_that_is_known_of_it(tmp_path, workers):
    path = flipped(tmp_path, (41,))
    with pytest.raises(CorruptRecordError, match="record 41 at offset") as caught:
        list(loader([path], workers, data={"shuffle": False}))
    error = caught.value
    assert (error.path, error.record, error.field) == (path, 41, "payload")
    assert error.offset > 0
    assert error.expected != error.got
    if workers:
        assert "In a worker process" in error.__notes__[0]


@pytest.mark.parametrize(("workers", "transform"), [(0, None), (2, None), (2, dict)])
def test_what_was_left_out_is_told_and_counted_here(tmp_path, workers, transform):
    bad = (2, 41, 70)
    path = flipped(tmp_path, bad)
    made = loader([path], workers, data={"errors": "skip", "transform": transform})
    for epoch in range(2):
        with pytest.warns(TfrioWarning, match=f"epoch {epoch}: left out 3 damaged records"):
            assert len(ids(made)) == 97
        found = made.dataset.report.where[3 * epoch :]
        assert sorted(record for _, record, _ in found) == list(bad)
    few = loader([path], workers, data={"errors": "skip", "max_bad": 2, "transform": transform})
    with pytest.raises(CorruptRecordError, match="3 bad records > max_bad 2"):
        list(few)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_rank_without_a_batch_is_told(numbered, workers):
    few = {"batch_size": 64, "drop_last": True, "rank": 1, "world_size": 2}
    with pytest.warns(TfrioWarning, match="rank 1: 0 batches, as its 51 records"):
        assert list(loader(numbered["plain"], workers, data=few)) == []


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_beyond_the_data_is_refused(numbered, workers):
    made = loader(numbered["plain"], workers)
    state = {**made.state_dict(), "consumed": 104}
    with pytest.raises(UsageError, match="104 records consumed by one rank of 1, where 103"):
        made.load_state_dict(state)
    assert len(ids(made)) == 103


@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0)])
def test_rows_are_loaded_one_by_one_and_resumed(numbered, before, after):
    rows = {"batch_size": None}
    reference = loader(numbered["plain"], data=rows)
    whole = ids(reference)
    first = loader(numbered["plain"], before, data=rows)
    assert len(first) == 103
    seen = ids(itertools.islice(iter(first), 41))
    again = loader(numbered["plain"], after, data=rows)
    again.load_state_dict(first.state_dict())
    assert seen + ids(again) == whole
    assert ids(again) == ids(reference)


@pytest.mark.filterwarnings("ignore:epoch 0. left out")
@pytest.mark.parametrize("workers", [0, 2])
def test_damaged_rows_are_counted(tmp_path, workers):
    options = {"errors": "skip", "shuffle": False, "batch_size": None}
    made = loader([flipped(tmp_path, (2, 3, 40))], workers, data=options)
    stream = iter(made)
    assert ids(itertools.islice(stream, 3)) == [0, 1, 4]
    assert made.state_dict()["consumed"] == 5
    assert ids(stream) == [number for number in range(5, 100) if number != 40]
    assert sorted(record for _, record, _ in made.dataset.report.where) == [2, 3, 40]


def test_rows_in_turns_are_for_another_loader(numbered):
    with pytest.raises(UsageError, match="chunk=4 is for a DataLoader that makes batches"):
        loader(numbered["plain"], data={"batch_size": None, "chunk": 4})


def _broken(batch):
    raise OSError(5, "no such luck")


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("kind", ["tfrio", "other"])
def test_no_worker_outlives_an_error(numbered, tmp_path, kind, persistent):
    path = flipped(tmp_path, (9,)) if kind == "tfrio" else numbered["plain"]
    transform = None if kind == "tfrio" else _broken
    made = loader(path, 2, data={"transform": transform}, persistent_workers=persistent)
    others = {*multiprocessing.active_children()}
    with pytest.raises((CorruptRecordError, OSError)) as caught:
        list(made)
    assert {*multiprocessing.active_children()} <= others
    assert ("no such luck" in str(caught.value)) == (kind == "other")
    if kind == "other":
        assert "in worker process" in str(caught.value)


def test_a_traceback_of_a_worker_is_left_behind(numbered):
    try:
        raise CorruptRecordError("sent with its traceback, as tblib does")
    except CorruptRecordError as error:
        sent = error
    with pytest.raises(CorruptRecordError) as caught:
        loader(numbered["plain"], 2)._heard(Told(None, [], sent))
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [frame.name for frame in frames][1:] == ["_heard"]


@pytest.mark.parametrize("wrong", [{"workers": -1}, {"workers": "2"}, {"prefetch_factor": 0}])
def test_counts_of_a_loader_are_checked(numbered, wrong):
    with pytest.raises(UsageError, match=r"must be a whole number|whole number"):
        loader(numbered["plain"], **wrong)
