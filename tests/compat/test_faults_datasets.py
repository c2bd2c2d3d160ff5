"""Known faults of the published package in datasets and mixes, by symptom: none is left."""

from __future__ import annotations

import os
import pickle
import resource
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from tests.compat.bytes_of import (
    numbers,
    sequence,
    write,
    write_gzip,
    write_index,
    write_numbers,
)
from tfrio import compat
from tfrio.compat import TFRecordWriter, tfrecord_loader
from tfrio.compat.torch.dataset import MultiTFRecordDataset, TFRecordDataset


# F3
def test_f03_a_dataset_without_transform_cannot_be_pickled(tmp_path):
    dataset = TFRecordDataset(write_numbers(tmp_path / "a", 3), None)
    assert numbers(pickle.loads(pickle.dumps(dataset))) == [0, 1, 2]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_f03_workers_cannot_be_spawned(tmp_path, method):
    dataset = TFRecordDataset(write_numbers(tmp_path / "a", 4), None)
    loader = DataLoader(dataset, 2, num_workers=1, multiprocessing_context=method)
    assert [batch["i"].tolist() for batch in loader] == [[[0], [1]], [[2], [3]]]


# F4
def test_f04_cycle_over_an_empty_source_hangs():
    assert list(compat.cycle(lambda: iter([]))) == []


def test_f04_an_infinite_mix_with_more_shards_than_records_hangs(tmp_path):
    for name, count in (("a", 4), ("b", 3)):
        write_numbers(tmp_path / name, count)
        write_index(tmp_path / f"{name}.idx", count)
    rows = compat.multi_tfrecord_loader(
        f"{tmp_path}/{{}}", f"{tmp_path}/{{}}.idx", {"a": 1, "b": 1}, shard=(0, 8)
    )
    assert list(rows) == []


def test_f04_an_empty_split_among_good_ones_hangs(tmp_path):
    write_numbers(tmp_path / "a", 2)
    write(tmp_path / "b")
    rows = compat.multi_tfrecord_loader(f"{tmp_path}/{{}}", None, {"a": 0.1, "b": 0.9})
    assert numbers(islice(rows, 50)) == [0, 1] * 25


# F5
def test_f05_workers_without_an_index_read_every_record_each(tmp_path):
    dataset = TFRecordDataset(write_numbers(tmp_path / "a", 10), None)
    read = [int(v) for batch in DataLoader(dataset, 2, num_workers=2) for v in batch["i"]]
    assert read == [0, 1, 5, 6, 2, 3, 7, 8, 4, 9]


@pytest.mark.parametrize("kind", ["plain", "gzip", "blocked gzip", "zlib"])
def test_f05_a_shard_without_an_index_is_the_whole_file(tmp_path, kind):
    path = write_numbers(tmp_path / "a", 7)
    if kind == "gzip":
        path = write_gzip(tmp_path / "b", path)
    elif kind != "plain":
        with TFRecordWriter(path, compression_type=kind.split()[-1]) as writer:
            for k in range(7):
                writer.write({"i": (k, "int")})
    shards = [numbers(tfrecord_loader(path, None, shard=(k, 3))) for k in range(3)]
    assert shards == [[0, 1], [2, 3], [4, 5, 6]]


# F17
def test_f17_a_ratio_of_0_crashes_once_the_others_are_dry():
    makers = [lambda: iter([1, 2]), lambda: iter([3])]
    assert list(compat.sample_iterators(makers, [1, 0], infinite=False)) == [1, 2]


# F18
def test_f18_no_length_and_no_random_access_even_with_an_index(tmp_path):
    path, index = write_numbers(tmp_path / "a", 5), write_index(tmp_path / "i", 5)
    dataset = TFRecordDataset(path, index, transform=lambda row: int(row["i"][0]) * 2)
    assert len(dataset) == 5
    assert [dataset[k] for k in (0, 3, 4, -1)] == [0, 6, 8, 8]
    with pytest.raises(IndexError):
        dataset[5]
    without = TFRecordDataset(path)
    with pytest.raises(TypeError, match="without an index_path"):
        len(without)
    with pytest.raises(TypeError, match="without an index_path"):
        without[0]


def test_f18_the_length_of_a_finite_mix(tmp_path):
    for name, count in (("a", 4), ("b", 3)):
        write_numbers(tmp_path / name, count)
        write_index(tmp_path / f"{name}.idx", count)
    patterns = (f"{tmp_path}/{{}}", f"{tmp_path}/{{}}.idx", {"a": 1, "b": 1})
    assert len(MultiTFRecordDataset(*patterns, infinite=False)) == 7
    with pytest.raises(TypeError, match="finite"):
        len(MultiTFRecordDataset(*patterns))


# F19
def test_f19_workers_are_reseeded_over_the_users_seeds(tmp_path):
    path, index = write_numbers(tmp_path / "a", 20), write_index(tmp_path / "i", 20)
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    dataset = TFRecordDataset(path, index, shuffle_queue_size=8, seed=4)
    first, second = numbers(dataset), numbers(dataset)
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second  # each epoch has its own order
    dataset.set_epoch(0)
    assert numbers(dataset) == first
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


# F22
def test_f22_a_mix_of_many_splits_opens_too_many_files(tmp_path):
    for k in range(120):
        write_numbers(tmp_path / str(k), 2, first=2 * k)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    busy = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 64
    rows = compat.multi_tfrecord_loader(
        f"{tmp_path}/{{}}", None, {str(k): 1 for k in range(120)}, infinite=False
    )
    resource.setrlimit(resource.RLIMIT_NOFILE, (busy + 48, hard))
    try:
        assert sorted(numbers(rows)) == list(range(240))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# F23
@pytest.mark.parametrize("workers", [0, 2])
def test_f23_every_rank_reads_everything(tmp_path, monkeypatch, workers):
    dataset = TFRecordDataset(write_numbers(tmp_path / "a", 11), write_index(tmp_path / "i", 11))
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 3)
    ranks = []
    for rank in range(3):
        monkeypatch.setattr(torch.distributed, "get_rank", lambda rank=rank: rank)
        assert len(dataset) == [3, 4, 4][rank]
        loader = DataLoader(dataset, batch_size=None, num_workers=workers)
        ranks.append(sorted(int(row["i"][0]) for row in loader))
    assert ranks == [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9, 10]]


def test_f23_a_spawned_worker_knows_the_rank_of_its_parent(tmp_path, monkeypatch):
    dataset = TFRecordDataset(write_numbers(tmp_path / "a", 10))
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    sent = pickle.dumps(dataset)
    monkeypatch.undo()
    assert numbers(pickle.loads(sent)) == [5, 6, 7, 8, 9]


# F24
@pytest.mark.parametrize("shard", [(-1, 2), (2, 2), (0, 0), (1,)])
def test_f24_impossible_shards_are_silently_empty(tmp_path, shard):
    path = write_numbers(tmp_path / "a", 5)
    with pytest.raises(ValueError, match="shard"):
        next(tfrecord_loader(path, shard=shard))


def test_f24_an_impossible_queue_is_silently_empty():
    with pytest.raises(ValueError, match="queue_size must be at least 1"):
        next(compat.shuffle_iterator(iter(range(3)), 0))


def test_f24_an_unknown_type_of_an_empty_list_goes_unseen(tmp_path):
    path = write(tmp_path / "a", sequence({}, {"e": []}))
    with pytest.raises(KeyError, match="is no type name"):
        next(tfrecord_loader(path, sequence_description={"e": "flaot"}))


def test_f24_an_index_with_gaps_is_followed_without_a_word(tmp_path):
    path = write_numbers(tmp_path / "a", 4)
    (tmp_path / "i").write_text("0 30\n60 30\n")
    with pytest.warns(UserWarning, match="leaves out bytes"):
        assert sorted(numbers(tfrecord_loader(path, tmp_path / "i"))) == [0, 1, 2, 3]
