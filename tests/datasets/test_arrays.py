"""NumPy datasets: every record once, in an order that is a function of seed and epoch alone."""

from __future__ import annotations

import itertools
import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.datasets.conftest import COUNTS, FORMS, TOTAL, ids, write_numbered
from tfrio import Writer
from tfrio.datasets.arrays import ArrayDataset
from tfrio.datasets.mixing import mix
from tfrio.datasets.reader import Reader
from tfrio.datasets.state import merge_states
from tfrio.errors import (
    FeatureKindError,
    MissingFeatureError,
    TfrioWarning,
    UsageError,
)
from tfrio.records.access import RecordFile
from tfrio.records.shards import expand

SHUFFLES = (False, True, "full", "blocks", "buffer")


def dataset(glob, **options):
    return ArrayDataset(glob, **{"batch_size": 4, "seed": 7, "index": "memory", **options})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_each_record_once_with_all_its_values(numbered, form, shuffle):
    data = dataset(numbered[form], shuffle=shuffle, window=16)
    seen = []
    for batch in data:
        numbers = batch["id"].ravel()
        seen += numbers.tolist()
        assert np.array_equal(batch["x"], np.stack([numbers, numbers + 0.5], 1))
        assert batch["name"] == [f"n{n}".encode() * (n % 3) for n in numbers]
        assert batch["list/lengths"].tolist() == (numbers % 4).tolist()
        for row, number in zip(batch["list"], numbers, strict=True):
            inner = list(range(number % 4))
            assert row.tolist() == inner + [0] * (batch["list"].shape[1] - len(inner))
    assert sorted(seen) == list(range(TOTAL))
    assert (seen == list(range(TOTAL))) == (shuffle is False)


@pytest.mark.parametrize("form", FORMS)
def test_rows(numbered, form):
    rows = list(dataset(numbered[form], batch_size=None))
    assert [int(row["id"][0]) for row in rows] == list(range(TOTAL))
    assert rows[7]["name"] == b"n7"
    assert rows[7]["list"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("form", ["plain", "gzip"])
def test_passes_are_epochs(numbered, form, shuffle):
    data = dataset(numbered[form], shuffle=shuffle, window=16)
    first, second = ids(data), ids(data)
    assert data.epoch == 2
    again = dataset(numbered[form], shuffle=shuffle, window=16)
    again.set_epoch(1)
    assert ids(again) == second
    assert (first == second) == (shuffle is False)
    other = dataset(numbered[form], shuffle=shuffle, window=16, seed=8)
    assert (ids(other) == first) == (shuffle is False)


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_threads_change_nothing(numbered, threads, monkeypatch):
    monkeypatch.setattr("tfrio.datasets.reader.CHUNK_RECORDS", 8)
    wanted = ids(dataset(numbered["plain"], shuffle=True, threads=0))
    for form in FORMS:
        data = dataset(numbered[form], shuffle="full", threads=threads)
        assert ids(data) == wanted


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shuffle", [False, "blocks", "buffer", "full"])
def test_ranks_share_the_records(numbered, form, shuffle):
    seen = []
    for rank in range(3):
        part = dataset(
            numbered[form], shuffle=shuffle, window=16, uneven="keep", rank=rank, world_size=3
        )
        got = ids(part)
        assert len(got) == [35, 34, 34][rank]
        assert len(part) == 9
        seen += got
    assert sorted(seen) == list(range(TOTAL))


def test_padding_is_marked(numbered):
    parts = [dataset(numbered["plain"], uneven="pad", rank=r, world_size=3) for r in range(3)]
    marked = [[int(b) for batch in part for b in batch["padding"]] for part in parts]
    assert [len(inner) for inner in marked] == [35, 35, 35]
    assert [sum(inner) for inner in marked] == [0, 1, 1]
    assert [inner[-1] for inner in marked] == [0, 1, 1]


@pytest.mark.filterwarnings("ignore:rank 7. 0 batches")
@pytest.mark.parametrize(
    ("world", "batch", "drop_last"), list(itertools.product((1, 3, 8), (4, 7, 16), (False, True)))
)
def test_length_is_what_comes(numbered, world, batch, drop_last):
    data = dataset(
        numbered["plain"], batch_size=batch, drop_last=drop_last, rank=world - 1, world_size=world
    )
    assert len(data) == len(list(data))
    rows = dataset(numbered["plain"], batch_size=None, rank=0, world_size=world)
    assert len(rows) == len(list(rows)) == TOTAL // world


@pytest.mark.parametrize("shuffle", [False, "full", "blocks", "buffer"])
@pytest.mark.parametrize("form", ["plain", "blocked", "gzip"])
def test_resume_is_exact_at_any_batch(numbered, form, shuffle):
    options = {"shuffle": shuffle, "window": 16}
    reference = dataset(numbered[form], **options)
    whole, following = ids(reference), ids(reference)
    for taken in (0, 1, 5, 25, 26):
        data = dataset(numbered[form], **options)
        stream = iter(data)
        before = ids(itertools.islice(stream, taken))
        state = json.loads(json.dumps(data.state_dict()))
        stream.close()
        assert len(json.dumps(state)) < 400
        resumed = dataset(numbered[form], **options)
        resumed.load_state_dict(state)
        if taken == 26:  # the epoch is over: the next one follows, whole
            assert ids(resumed) == following
        else:
            assert before + ids(resumed) == whole
            assert ids(resumed) == following


def test_resume_with_another_batch_size_and_rows(numbered):
    whole = ids(dataset(numbered["plain"], shuffle=True))
    data = dataset(numbered["plain"], shuffle=True)
    before = ids(itertools.islice(iter(data), 3))
    for batch_size in (None, 1, 7):
        resumed = dataset(numbered["plain"], shuffle=True, batch_size=batch_size)
        resumed.load_state_dict(data.state_dict())
        assert before + ids(resumed) == whole


def test_resume_reads_nothing_again(numbered, monkeypatch):
    data = dataset(numbered["plain"], shuffle=True, threads=0)
    list(itertools.islice(iter(data), 5))
    asked = []
    real = Reader._work

    def work(self, task):
        asked.append(task.picks.record.size)
        return real(self, task)

    monkeypatch.setattr(Reader, "_work", work)
    resumed = dataset(numbered["plain"], shuffle=True, threads=0)
    resumed.load_state_dict(data.state_dict())
    assert len(ids(resumed)) == sum(asked) == TOTAL - 20


@pytest.mark.parametrize("uneven", ["keep", "drop", "pad"])
@pytest.mark.parametrize(("old", "new"), [(3, 2), (1, 4), (2, 1)])
def test_resume_on_another_number_of_ranks(numbered, uneven, old, new):
    options = {"shuffle": True, "uneven": uneven}
    seen, state = [], None
    for rank in range(old):
        data = dataset(numbered["plain"], **options, rank=rank, world_size=old)
        seen += ids(itertools.islice(iter(data), 3))
        state = data.state_dict()
    assert len(seen) == 12 * old
    for rank in range(new):
        data = dataset(numbered["plain"], shuffle=True, uneven="keep", rank=rank, world_size=new)
        data.load_state_dict(state)
        seen += ids(data)
        assert data.epoch == 1
    assert sorted(seen) == list(range(TOTAL))


def test_resume_of_ranks_out_of_step(numbered):
    seen, states = [], []
    for rank, taken in enumerate((1, 4, 2)):
        data = dataset(numbered["plain"], shuffle=True, rank=rank, world_size=3)
        seen += ids(itertools.islice(iter(data), taken))
        states.append(data.state_dict())
    for rank in range(2):
        data = dataset(numbered["plain"], shuffle=True, uneven="keep", rank=rank, world_size=2)
        data.load_state_dict(merge_states(states))
        seen += ids(data)
    assert sorted(seen) == list(range(TOTAL))


def test_state_before_the_first_batch_and_of_epochs(numbered):
    data = dataset(numbered["plain"], shuffle=True)
    data.set_epoch(3)
    state = data.state_dict()
    assert (state["epoch"], state["consumed"]) == (3, 0)
    third = ids(data)
    resumed = dataset(numbered["plain"], shuffle=True)
    resumed.load_state_dict(state)
    resumed.set_epoch(3)  # the usual loop sets the epoch it resumes
    assert ids(resumed) == third


def test_another_epoch_drops_a_loaded_state(numbered):
    data = dataset(numbered["plain"], shuffle=True)
    list(itertools.islice(iter(data), 3))
    resumed = dataset(numbered["plain"], shuffle=True)
    resumed.load_state_dict(data.state_dict())
    resumed.set_epoch(1)
    assert len(ids(resumed)) == TOTAL


def test_a_pass_broken_off_starts_again(numbered):
    data = dataset(numbered["plain"], shuffle=True)
    first = ids(itertools.islice(iter(data), 3))
    assert ids(itertools.islice(iter(data), 3)) == first


def test_state_of_items_a_loader_handed_out(numbered):
    data = dataset(numbered["plain"], shuffle=True)
    assert data.state_dict(items=5)["consumed"] == 20
    assert data.state_dict(items=26)["epoch"] == 1
    rows = dataset(numbered["plain"], batch_size=None)
    assert rows.state_dict(items=5)["consumed"] == 5


def test_misfit_states_are_refused(numbered, tmp_path):
    state = dataset(numbered["plain"], shuffle=True).state_dict()
    other = write_numbered(tmp_path, (10, 33, 61))
    with pytest.raises(UsageError, match="another data set"):
        dataset(other, shuffle=True).load_state_dict(state)
    with pytest.raises(UsageError, match="seed 7"):
        dataset(numbered["plain"], shuffle=True, seed=1).load_state_dict(state)
    with pytest.raises(UsageError, match="shuffle"):
        dataset(numbered["plain"]).load_state_dict(state)
    with pytest.raises(UsageError, match="missing"):
        dataset(numbered["plain"]).load_state_dict({"epoch": 1})


def test_infinite_goes_on_with_the_next_epoch(numbered):
    wanted = dataset(numbered["plain"], shuffle=True)
    both = ids(wanted) + ids(wanted)
    data = dataset(numbered["plain"], shuffle=True, infinite=True)
    stream = iter(data)
    assert ids(itertools.islice(stream, 52)) == both
    state = data.state_dict()
    assert (state["epoch"], state["consumed"]) == (2, 0)
    assert len(ids(itertools.islice(stream, 1))) == 4
    assert data.state_dict()["consumed"] == 4
    with pytest.raises(TypeError, match="no length"):
        len(data)


def test_whole_files_for_ranks_on_request(numbered):
    seen = []
    for rank in range(2):
        part = dataset(numbered["plain"], shard_by="files", rank=rank, world_size=2)
        seen.append(ids(part))
    assert sorted(seen[0] + seen[1]) == list(range(TOTAL))
    with pytest.warns(TfrioWarning, match=r"5 ranks, 3 files: ranks 3,4 idle"):
        assert ids(dataset(numbered["plain"], shard_by="files", rank=3, world_size=5)) == []


def test_shuffle_without_a_seed_warns_where_ranks_must_agree(numbered):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone = ids(dataset(numbered["plain"], shuffle=True, seed=None))
    assert alone == ids(dataset(numbered["plain"], shuffle=True, seed=0))
    data = dataset(numbered["plain"], shuffle=True, seed=None, rank=0, world_size=2)
    with pytest.warns(TfrioWarning, match="seed 0"):
        list(data)


@pytest.mark.parametrize("by", ["record", "hash", "file"])
def test_parts_share_nothing_in_any_epoch(numbered, by):
    parts = dataset(numbered["plain"], shuffle=True).split([0.8, 0.2], seed=0, by=by)
    seen = [ids(part) for part in parts]
    assert sorted(seen[0] + seen[1]) == list(range(TOTAL))
    assert [set(ids(part)) for part in parts] == [set(inner) for inner in seen]
    if by == "record":
        assert [len(inner) for inner in seen] == [82, 21]


@pytest.mark.parametrize("form", ["gzip", "blocked"])
def test_parts_of_compressed_files(numbered, form):
    for shuffle in (False, "blocks", "buffer", "full"):
        parts = dataset(numbered[form], shuffle=shuffle, window=16).split([0.5, 0.5])
        assert sorted(ids(parts[0]) + ids(parts[1])) == list(range(TOTAL))


def test_parts_resume_and_are_told_apart(numbered):
    first, second = dataset(numbered["plain"], shuffle=True).split([0.5, 0.5])
    whole = ids(first)
    first.set_epoch(0)
    before = ids(itertools.islice(iter(first), 4))
    state = first.state_dict()
    with pytest.raises(UsageError, match="another data set"):
        second.load_state_dict(state)
    again = dataset(numbered["plain"], shuffle=True).split([0.5, 0.5])[0]
    again.load_state_dict(state)
    assert before + ids(again) == whole
    with pytest.raises(UsageError, match="part already"):
        first.split([0.5, 0.5])


def test_parts_and_mixtures_find_their_rank_when_they_need_it(numbered, monkeypatch):
    data = dataset(numbered["plain"], uneven="keep")
    first, second = data.split([0.5, 0.5])
    mixed = mix([first, second], [0.5, 0.5], length=40)
    seen = []
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        seen.append((ids(first), ids(mixed)))
        first.set_epoch(0)
        mixed.set_epoch(0)
    assert len(set(seen[0][0]) | set(seen[1][0])) == 51
    assert not set(seen[0][0]) & set(seen[1][0])
    assert len(seen[0][1]) == len(seen[1][1]) == 20
    assert seen[0][1] != seen[1][1]


@pytest.mark.parametrize("how", [{}, {"by": "file"}, {"key": "list"}, {"groups": range(TOTAL)}])
def test_a_split_of_whole_files_is_the_same_on_any_number_of_ranks(numbered, how):
    whole = dataset(numbered["plain"]).split([0.6, 0.4], **how)
    wanted = [set(ids(part)) for part in whole]
    for world in (2, 3):
        seen = [[], []]
        for rank in range(world):
            data = dataset(numbered["plain"], shard_by="files", rank=rank, world_size=world)
            for number, part in enumerate(data.split([0.6, 0.4], **how)):
                seen[number] += ids(part)
        assert [set(part) for part in seen] == wanted
        assert len(seen[0]) + len(seen[1]) == TOTAL


def test_split_by_key_and_groups(numbered):
    data = dataset(numbered["plain"])
    names = {batch_name for batch in data for batch_name in batch["name"]}
    assert len(names) > 3
    parts = data.split([0.5, 0.5], key="list")
    lengths = [{n % 4 for n in ids(part)} for part in parts]
    assert not lengths[0] & lengths[1]
    days = [number // 10 for number in range(TOTAL)]
    parts = data.split([0.7, 0.3], groups=days)
    seen = [{n // 10 for n in ids(part)} for part in parts]
    assert not seen[0] & seen[1]
    with pytest.raises(UsageError, match="groups for 103"):
        data.split([0.5, 0.5], groups=[1, 2])
    with pytest.raises(UsageError, match="not both"):
        data.split([0.5, 0.5], groups=days, key="id")


def test_features_schema_and_scalars(numbered):
    some = next(iter(dataset(numbered["plain"], features=["x", "id"])))
    assert list(some) == ["x", "id"]
    flat = next(iter(dataset(numbered["plain"], features=["id"], scalars=True)))
    assert flat["id"].shape == (4,)
    given = next(iter(dataset(numbered["plain"], schema={"id": "int64"}, ragged="lists")))
    assert [inner.tolist() for inner in given["id"]] == [[0], [1], [2], [3]]
    with pytest.raises(MissingFeatureError, match="nope"):
        dataset(numbered["plain"], features=["nope"])
    with pytest.raises(FeatureKindError, match="int64"):
        list(dataset(numbered["plain"], schema={"id": "float"}))


def test_transform_is_applied(numbered):
    rows = dataset(numbered["plain"], batch_size=None, transform=lambda row: int(row["id"][0]))
    assert list(rows) == list(range(TOTAL))


def test_pickles_with_its_resumed_state(numbered):
    data = dataset(numbered["plain"], shuffle=True)
    whole = ids(data)
    data.set_epoch(0)
    before = ids(itertools.islice(iter(data), 3))
    data.load_state_dict(data.state_dict())
    again = pickle.loads(pickle.dumps(data))
    assert before + ids(again) == whole


def test_sorted_classes_are_mixed_and_the_state_stays_small(tmp_path):
    glob = write_numbered(tmp_path, (1000,))
    data = dataset(glob, batch_size=50, shuffle="full")
    order = np.array(ids(data))
    assert abs(np.corrcoef(order, np.arange(1000))[0, 1]) < 0.1
    buffered = dataset(glob, batch_size=50, shuffle="buffer", window=10)
    assert np.corrcoef(ids(buffered), np.arange(1000))[0, 1] > 0.99


@pytest.mark.parametrize("form", ["gzip", "blocked"])
def test_a_rank_reads_little_more_than_its_own(tmp_path, form, monkeypatch):
    glob = write_numbered(tmp_path, (50, 50, 50, 50), form=form)
    read = []
    real = RecordFile.sound_frames

    def sound_frames(self, start, stop):
        read.append(stop - start)
        return real(self, start, stop)

    monkeypatch.setattr(RecordFile, "sound_frames", sound_frames)
    for rank in range(2):
        read.clear()
        assert len(ids(dataset(glob, rank=rank, world_size=2))) == 100
        assert sum(read) <= 120


def test_remote_files(numbered):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for form in ("plain", "gzip"):
        for number, path in enumerate(expand(numbered[form])):
            memory.pipe(f"/{form}/part-{number}.tfrecord", Path(path).read_bytes())
        for shuffle in (False, True, "full"):
            data = dataset(f"memory://{form}/part-*.tfrecord", shuffle=shuffle)
            assert sorted(ids(data)) == list(range(TOTAL))


@pytest.mark.parametrize(
    "bad",
    [
        {"batch_size": 0},
        {"shuffle": "wild"},
        {"uneven": "never"},
        {"window": 0},
        {"chunk": 0},
        {"shard_by": "luck"},
        {"rank": 2, "world_size": 2},
        {"errors": "ignore"},
    ],
    ids=str,
)
def test_impossible_options_are_refused(numbered, bad):
    with pytest.raises(UsageError, match=str(next(iter(bad)))):
        dataset(numbered["plain"], **bad)


def test_no_files(tmp_path):
    with pytest.raises((UsageError, FileNotFoundError)):
        dataset(str(tmp_path / "*.tfrecord"))


def test_data_set_without_records(tmp_path):
    glob = write_numbered(tmp_path, (0,), form="gzip")
    data = dataset(glob, schema={"id": "int64"})
    assert list(data) == []
    assert len(data) == 0
    assert data.num_records == 0


@pytest.mark.parametrize("batch_size", [4, None])
def test_records_without_features(tmp_path, batch_size):
    with Writer(tmp_path / "none.tfrecord") as writer:
        for _ in range(10):
            writer.write({})
    found = list(dataset(tmp_path / "none.tfrecord", batch_size=batch_size))
    assert [dict(item) for item in found] == [{}] * (3 if batch_size else 10)


def test_the_counts_of_this_file():
    assert TOTAL == sum(COUNTS) == 103
