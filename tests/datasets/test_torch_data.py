"""Datasets for PyTorch under real DataLoader workers of every start method."""

from __future__ import annotations

import itertools
import multiprocessing
import pickle
import re
import sys

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, random_split
from torchdata.stateful_dataloader import StatefulDataLoader

from tests.datasets.conftest import TOTAL, caught, flipped, ids, write_numbered
from tests.support.s3 import s3_server
from tfrio import Writer
from tfrio.datasets.arrays import ArrayDataset
from tfrio.errors import (
    CorruptRecordError,
    MissingExtraError,
    MissingFeatureError,
    TfrioWarning,
    UsageError,
)
from tfrio.torch import TensorBatch, TFRecordDataset, TFRecordMapDataset

# DataLoader warns where it is given more workers than this machine has cores.
pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


def dataset(glob, **options):
    return TFRecordDataset(glob, **{"batch_size": 4, "seed": 7, "index": "memory", **options})


def arrays(glob, **options):
    return ArrayDataset(glob, **{"batch_size": 4, "seed": 7, "index": "memory", **options})


def loaded(data, workers, **options):
    return DataLoader(data, batch_size=None, num_workers=workers, **options)


def test_batches_are_tensors_with_the_arrays_values(numbered):
    pairs = zip(dataset(numbered["plain"]), arrays(numbered["plain"]), strict=True)
    for tensors, wanted in pairs:
        assert isinstance(tensors, TensorBatch)
        assert tensors.rows == len(wanted["id"])
        assert list(tensors) == list(wanted)
        for name, value in tensors.items():
            if isinstance(value, torch.Tensor):
                assert np.array_equal(value.numpy(), wanted[name])
            else:
                assert value == wanted[name]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_order_is_that_of_no_workers(numbered, shuffle, workers):
    wanted = ids(arrays(numbered["plain"], shuffle=shuffle))
    assert ids(loaded(dataset(numbered["plain"], shuffle=shuffle), workers)) == wanted


@pytest.mark.parametrize("form", ["gzip", "blocked"])
def test_workers_on_compressed_files(numbered, form):
    wanted = ids(arrays(numbered[form], shuffle=True, window=16))
    assert ids(loaded(dataset(numbered[form], shuffle=True, window=16), 2)) == wanted


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_start_methods_and_set_epoch_with_persistent_workers(numbered, context):
    reference = arrays(numbered["plain"], shuffle=True)
    wanted = [ids(reference) for _ in range(2)]
    data = dataset(numbered["plain"], shuffle=True)
    loader = loaded(data, 2, multiprocessing_context=context, persistent_workers=True)
    for epoch, expected in enumerate(wanted):
        data.set_epoch(epoch)
        assert ids(loader) == expected


@pytest.mark.parametrize("options", [{"ragged": "x"}, {"seed": "x"}, {"seed": 1.5}])
def test_options_that_make_no_sense_are_refused(numbered, options):
    with pytest.raises(UsageError, match=f"{next(iter(options))} must be"):
        dataset(numbered["plain"], **options)
    with pytest.raises(UsageError, match="epoch must be a whole number of at least 0, got -1"):
        dataset(numbered["plain"]).set_epoch(-1)


def test_forgotten_set_epoch_is_told(numbered, monkeypatch):
    monkeypatch.setattr(TFRecordDataset, "_worker", lambda self: (0, 2))
    monkeypatch.setattr(TFRecordDataset, "_in_worker", lambda self: True)
    data = dataset(numbered["plain"], shuffle=True)
    first = ids(data)
    with pytest.warns(TfrioWarning, match="call set_epoch before each pass"):
        assert ids(data) == first
    data.set_epoch(1)
    assert ids(data) != first


def test_early_break_starts_again(numbered):
    data = dataset(numbered["plain"])
    loader = loaded(data, 2, persistent_workers=True)
    for _ in range(2):
        assert ids(itertools.islice(loader, 3)) == list(range(12))
    assert ids(loader) == list(range(TOTAL))


def test_readers_of_ranks_and_workers_are_disjoint(numbered):
    seen = []
    for rank in range(3):
        data = dataset(
            numbered["plain"], shuffle=True, uneven="keep", rank=rank, world_size=3, batch_size=5
        )
        seen += ids(loaded(data, 2))
    assert sorted(seen) == list(range(TOTAL))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("inside", [False, True])
def test_length_is_what_comes(numbered, workers, drop_last, inside):
    for world, batch in itertools.product((1, 3), (4, 7)):
        place = {"rank": world - 1, "world_size": world}
        if inside:
            data = dataset(numbered["plain"], batch_size=batch, drop_last=drop_last, **place)
            loader = loaded(data, workers)
        else:
            data = dataset(
                numbered["plain"], batch_size=None, chunk=batch, features=["id"], **place
            )
            loader = DataLoader(data, batch_size=batch, num_workers=workers, drop_last=drop_last)
        assert len(loader) == len(list(loader))


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("chunk", [1, 3])
def test_length_where_the_data_loader_makes_batches_of_rows(
    numbered, workers, drop_last, chunk, recwarn
):
    for uneven, batch in (("keep", 4), ("drop", 10), ("pad", 2)):
        place = {"rank": 1, "world_size": 3, "uneven": uneven}
        data = dataset(numbered["plain"], batch_size=None, chunk=chunk, features=["id"], **place)
        made = DataLoader(data, batch_size=batch, num_workers=workers, drop_last=drop_last)
        assert len(made) == len(list(made))
        assert len(data) == (35 if uneven == "pad" else 34)
    assert not [found for found in recwarn if "Length of IterableDataset" in str(found.message)]


def test_few_records_for_many_workers(tmp_path):
    glob = write_numbered(tmp_path, (50,))
    seen = []
    for rank in range(8):
        data = dataset(glob, batch_size=16, rank=rank, world_size=8, uneven="keep")
        seen += ids(loaded(data, 8 if rank == 0 else 0))
    assert sorted(seen) == list(range(50))
    none = dataset(glob, batch_size=16, rank=0, world_size=8, drop_last=True)
    with pytest.warns(TfrioWarning, match="rank 0: 0 batches"):
        assert list(none) == []


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [0, 1, 5, 25, 26])
def test_stateful_dataloader_continues_exactly(numbered, workers, taken):
    wanted = ids(arrays(numbered["plain"], shuffle=True))

    def stateful():
        data = dataset(numbered["plain"], shuffle=True)
        return StatefulDataLoader(data, batch_size=None, num_workers=workers, prefetch_factor=None)

    loader = stateful()
    before = ids(itertools.islice(loader, taken))
    state = loader.state_dict()
    resumed = stateful()
    resumed.load_state_dict(state)
    rest = ids(resumed)
    if taken == 26 and not workers:
        assert sorted(rest) == list(range(TOTAL))
        assert rest != wanted
    else:
        assert before + rest == wanted


@pytest.mark.parametrize("persistent", [False, True])
def test_stateful_dataloader_at_the_end_of_an_epoch(numbered, persistent):
    reference = arrays(numbered["plain"], shuffle=True)
    ids(reference)
    second = ids(reference)

    def stateful():
        data = dataset(numbered["plain"], shuffle=True)
        return StatefulDataLoader(
            data, batch_size=None, num_workers=2, persistent_workers=persistent
        )

    loader = stateful()
    ids(loader)
    resumed = stateful()
    resumed.load_state_dict(loader.state_dict())
    assert ids(resumed) == second


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_a_state_beside_workers_is_refused(numbered, context, persistent):
    reference = arrays(numbered["plain"], shuffle=True)
    first, second = ids(reference), ids(reference)

    def own():
        data = dataset(numbered["plain"], shuffle=True)
        return data, loaded(data, 2, multiprocessing_context=context, persistent_workers=persistent)

    data, loader = own()
    assert data.state_dict()["consumed"] == 0
    batches = iter(loader)
    before = ids(itertools.islice(batches, 5))
    with pytest.raises(UsageError, match=r"worker processes read epoch 0 .*StatefulDataLoader"):
        data.state_dict()
    resumed, rest = own()
    resumed.load_state_dict(data.state_dict(items=5))
    assert resumed.state_dict()["consumed"] == 20
    assert before + ids(rest) == first
    ids(batches)
    with pytest.raises(UsageError, match="at the end of an epoch, call set_epoch"):
        data.state_dict()
    for one, again in ((data, loader), (resumed, rest)):
        one.set_epoch(1)
        state = one.state_dict()
        assert (state["epoch"], state["consumed"]) == (1, 0)
        assert ids(again) == second


def test_a_state_of_this_process_is_given_after_workers_and_beside_them(numbered):
    data = dataset(numbered["plain"])
    peeked = next(iter(data))
    assert data.state_dict()["consumed"] == len(peeked["id"])
    here = iter(loader := data.loader())
    next(here), next(here)
    ids(loaded(data, 2))
    with pytest.raises(UsageError, match="worker processes"):
        data.state_dict()
    assert loader.state_dict()["consumed"] == 8
    next(iter(data))
    assert data.state_dict()["consumed"] == 4


def test_the_state_is_asked_of_the_loader_with_workers(numbered):
    data = dataset(numbered["plain"])
    loader = data.loader(num_workers=1)
    batches = iter(loader)
    next(batches), next(batches)
    assert loader.state_dict()["consumed"] == 8
    with pytest.raises(UsageError, match=r"state_dict\(\) of the loader"):
        data.state_dict()


def test_stateful_dataloader_with_rows_and_outer_batches(numbered):
    def stateful():
        data = dataset(numbered["plain"], batch_size=None, chunk=4, features=["id"], shuffle=True)
        return StatefulDataLoader(data, batch_size=4, num_workers=2)

    wanted = ids(stateful())
    loader = stateful()
    before = ids(itertools.islice(loader, 5))
    resumed = stateful()
    resumed.load_state_dict(loader.state_dict())
    assert before + ids(resumed) == wanted
    assert sorted(wanted) == list(range(TOTAL))


def draw(batch):
    return {"id": batch["id"], "luck": torch.full((len(batch["id"]),), np.random.rand())}  # noqa: NPY002


def test_workers_draw_different_random_numbers(numbered):
    data = dataset(numbered["plain"], transform=draw)
    drawn = [float(batch["luck"][0]) for batch in loaded(data, 4)]
    assert len(set(drawn)) == len(drawn)


@pytest.mark.parametrize("kind", [TFRecordDataset, TFRecordMapDataset])
@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_comes_home_with_its_attributes(tmp_path, kind, workers):
    path = flipped(tmp_path, (9,))
    options = {"batch_size": None} if kind is TFRecordDataset else {"batch_size": 4}
    data = kind(path, index="memory", features=["id"])
    error = caught(
        CorruptRecordError, lambda: list(DataLoader(data, num_workers=workers, **options))
    )
    assert "payload checksum mismatch in record 9" in str(error)
    assert (error.path, error.record, error.field) == (path, 9, "payload")
    assert (type(error.offset), type(error.expected), type(error.got)) == (int, int, int)
    assert error.expected != error.got


def test_workers_end_with_the_error_that_they_sent(tmp_path):
    data = TFRecordDataset(flipped(tmp_path, (9,)), batch_size=4)
    others = {*multiprocessing.active_children()}
    caught(CorruptRecordError, lambda: list(loaded(data, 2)))
    assert {
        *multiprocessing.active_children()
    } <= others  # else they take 5 s each, some time later


def test_an_error_of_the_schema_comes_home_as_it_is(tmp_path):
    with Writer(tmp_path / "a") as writer:
        for number in range(20):
            writer.write({"x": 1.0} if number != 7 else {"y": 1.0})
    data = TFRecordDataset(tmp_path / "a", schema={"x": "float"}, batch_size=5)
    error = caught(MissingFeatureError, lambda: list(loaded(data, 2)))
    assert (error.feature, error.record) == ("x", 7)


@pytest.mark.parametrize("loader", [DataLoader, StatefulDataLoader])
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_batches_are_told_once(numbered, loader, workers, printed, capfd):
    data = dataset(numbered["plain"], features=["id"], batch_size=5, uneven="keep")
    twice = loader(data, batch_size=3, num_workers=workers, drop_last=True)
    for _ in range(3):
        assert next(iter(twice))["id"].shape[:2] == (3, 5)
    told = capfd.readouterr().err
    assert told.count("TfrioWarning") == 1
    text = (
        r"test_torch_data.py:\d+: .*makes batches of 5, and the DataLoader puts 3 of them .*\(3, 5,"
    )
    assert re.search(text, told)
    assert "dataset.loader()" in told


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("inner", [True, False])
def test_one_batching_is_not_told(numbered, workers, inner, printed, capfd):
    data = dataset(numbered["plain"], features=["id"], batch_size=5 if inner else None)
    once = DataLoader(data, batch_size=None if inner else 5, num_workers=workers)
    list(once)
    list(data.loader(num_workers=workers) if inner else once)
    assert "TfrioWarning" not in capfd.readouterr().err


def test_batches_of_batches_in_spawned_workers(numbered, capfd):
    data = dataset(numbered["plain"], features=["id"], batch_size=5)
    next(iter(DataLoader(data, num_workers=1, multiprocessing_context="spawn")))
    assert "puts n of them into one: shape (n, 5, ...)" in capfd.readouterr().err


def test_a_bare_name_is_one_name(numbered):
    assert list(dataset(numbered["plain"], features="id").schema) == ["id"]
    assert list(TFRecordMapDataset(numbered["plain"], features="id", index="memory").schema) == [
        "id"
    ]


def test_nested_and_listed_ragged(numbered):
    nested = next(iter(dataset(numbered["plain"], ragged="nested")))["list"]
    assert [part.tolist() for part in nested.unbind()] == [[], [0], [0, 1], [0, 1, 2]]
    listed = next(iter(dataset(numbered["plain"], ragged="lists")))["list"]
    assert [part.tolist() for part in listed] == [[], [0], [0, 1], [0, 1, 2]]


def test_yielded_tensors_are_never_overwritten(numbered, monkeypatch):
    monkeypatch.setattr("tfrio.datasets.reader.CHUNK_RECORDS", 8)
    batches = list(dataset(numbered["plain"]))
    copies = [batch["x"].clone() for batch in batches]
    for batch in batches:
        batch["x"] += 1
    assert all(torch.equal(b["x"] - 1, c) for b, c in zip(batches, copies, strict=True))


def test_workers_on_an_object_store(monkeypatch):
    with s3_server() as (endpoint, _):
        settings = {"ENDPOINT": endpoint, "ALLOW_HTTP": "true", "REGION": "us-east-1"}
        settings.update(ACCESS_KEY_ID="x", SECRET_ACCESS_KEY="x")
        for name, value in settings.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        with Writer("s3://bucket/a.tfrecord") as writer:
            for number in range(20):
                writer.write({"id": number})
        data = dataset("s3://bucket/a.tfrecord")
        assert ids(data) == list(range(20))
        assert ids(data.loader(num_workers=1)) == list(range(20))
        for other in (data, TFRecordMapDataset("s3://bucket/a.tfrecord", index="memory")):
            with pytest.raises(UsageError, match='multiprocessing_context="spawn"'):
                list(loaded(other, 1, multiprocessing_context="fork"))


# --- map style ---


def test_map_style(numbered):
    for glob in numbered.values():
        data = TFRecordMapDataset(glob, index="memory")
        assert len(data) == TOTAL
        assert data[2]["id"].tolist() == [2]
        assert data[-1]["id"].tolist() == [102]
        assert data[44]["name"] == b"n44" * (44 % 3)
        assert [int(row["id"]) for row in data.__getitems__([50, 3, 50])] == [50, 3, 50]
        for beyond in (TOTAL, -TOTAL - 1):
            with pytest.raises(IndexError, match=str(beyond)):
                data[beyond]


@pytest.mark.parametrize("workers", [0, 2])
def test_map_style_under_a_data_loader(numbered, workers):
    data = TFRecordMapDataset(numbered["plain"], features=["id", "x"], index="memory")
    loader = DataLoader(data, batch_size=10, shuffle=True, num_workers=workers)
    assert sorted(ids(loader)) == list(range(TOTAL))
    parts = random_split(data, [82, 21], generator=torch.Generator().manual_seed(1))
    assert sorted(int(row["id"]) for part in parts for row in part) == list(range(TOTAL))


@pytest.mark.parametrize("number", [slice(0, 3), [0, 3], 1.5, "a"])
def test_map_style_takes_whole_numbers(numbered, number):
    data = TFRecordMapDataset(numbered["plain"], features="id", index="memory")
    with pytest.raises(UsageError, match=r"whole number, got .*__getitems__"):
        data[number]
    assert data[torch.tensor(5)]["id"] == data[np.int64(5)]["id"] == 5


def test_map_style_transform_and_pickle(numbered):
    data = TFRecordMapDataset(numbered["plain"], transform=_only_id, index="memory")
    assert data[5] == 5
    assert pickle.loads(pickle.dumps(data))[7] == 7


def _only_id(row):
    return int(row["id"])


def test_importing_without_torch_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("tfrio.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"tfrio\[torch\]"):
        import tfrio.torch  # noqa: F401
