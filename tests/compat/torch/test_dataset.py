"""The PyTorch datasets: orders as ever, exact shares, repeatable shuffles."""

from __future__ import annotations

import pickle
from itertools import islice

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from tests.compat.bytes_of import (
    example,
    floats,
    ints,
    numbers,
    sequence,
    strings,
    write,
    write_index,
    write_numbers,
)
from tfrio.compat.torch import MultiTFRecordDataset, TFRecordDataset

# More workers than processors are the point of some tests.
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


def indexed(tmp_path, count):
    return write_numbers(tmp_path / "a", count), write_index(tmp_path / "i", count)


def mix(tmp_path, *, index=True, **options):
    for name, count in (("a", 4), ("b", 3)):
        write_numbers(tmp_path / name, count, first=10 * (name == "b"))
        write_index(tmp_path / f"{name}.idx", count)
    pattern = f"{tmp_path}/{{}}.idx" if index else None
    return MultiTFRecordDataset(f"{tmp_path}/{{}}", pattern, {"a": 0.8, "b": 0.2}, **options)


def loaded(dataset, **options):
    return [int(v) for batch in DataLoader(dataset, 2, **options) for v in batch["i"]]


def test_reads_again_and_again(tmp_path):
    dataset = TFRecordDataset(write_numbers(tmp_path / "a", 3), None)
    assert numbers(dataset) == numbers(dataset) == [0, 1, 2]


@pytest.mark.parametrize(("count", "workers"), [(10, 2), (2, 4), (7, 3), (5, 1)])
def test_workers_read_contiguous_parts(tmp_path, count, workers):
    read = loaded(TFRecordDataset(*indexed(tmp_path, count)), num_workers=workers)
    assert sorted(read) == list(range(count))
    if (count, workers) == (10, 2):
        assert read == [0, 1, 5, 6, 2, 3, 7, 8, 4, 9]
    if workers == 1:
        assert read == list(range(count))


def test_without_workers_an_index_gives_a_rotation(tmp_path):
    dataset = TFRecordDataset(*indexed(tmp_path, 5))
    np.random.seed(7)  # noqa: NPY002
    assert numbers(dataset) == [4, 0, 1, 2, 3]


def test_a_shuffle_queue_with_numpys_seed(tmp_path):
    dataset = TFRecordDataset(write_numbers(tmp_path / "a", 10), None, shuffle_queue_size=4)
    np.random.seed(0)  # noqa: NPY002
    assert numbers(dataset) == [0, 3, 1, 4, 5, 8, 9, 6, 2, 7]


@pytest.mark.parametrize("queue", [None, 0])
def test_no_queue_no_shuffle(tmp_path, queue):
    dataset = TFRecordDataset(write_numbers(tmp_path / "a", 4), shuffle_queue_size=queue)
    assert numbers(dataset) == [0, 1, 2, 3]


def test_torchs_seed_gives_the_order_of_workers(tmp_path):
    dataset = TFRecordDataset(*indexed(tmp_path, 12), shuffle_queue_size=5)

    def order(seed):
        torch.manual_seed(seed)
        return loaded(dataset, num_workers=2)

    first = order(1)
    assert order(1) == first
    assert any(order(seed) != first for seed in (2, 3))


@pytest.mark.parametrize("workers", [0, 2])
def test_own_seed_and_epochs(tmp_path, workers):
    dataset = TFRecordDataset(*indexed(tmp_path, 12), shuffle_queue_size=5, seed=3)
    orders = []
    for epoch in (0, 0, 1):
        dataset.set_epoch(epoch)
        orders.append(loaded(dataset, num_workers=workers))
    assert orders[0] == orders[1] != orders[2]
    assert all(sorted(order) == list(range(12)) for order in orders)


def test_own_generator(tmp_path):
    path = write_numbers(tmp_path / "a", 12)
    orders = [
        numbers(TFRecordDataset(path, shuffle_queue_size=5, generator=np.random.default_rng(3)))
        for _ in range(2)
    ]
    assert orders[0] == orders[1] != list(range(12))
    with pytest.raises(ValueError, match="seed or generator"):
        TFRecordDataset(path, seed=1, generator=np.random.default_rng(1))


def test_transform_gets_each_row_after_shuffling(tmp_path):
    path = write_numbers(tmp_path / "a", 3)
    assert list(TFRecordDataset(path, transform=lambda row: int(row["i"][0]) * 2)) == [0, 2, 4]
    assert list(TFRecordDataset(path, transform=lambda row: None)) == [None] * 3


def test_sequences_are_pairs(tmp_path):
    payload = sequence({"n": ints(3)}, {"s": [ints(1), ints(2)]})
    dataset = TFRecordDataset(
        write(tmp_path / "a", payload, payload),
        description={"n": "int"},
        sequence_description={"s": "int"},
        transform=lambda pair: (int(pair[0]["n"][0]), np.concatenate(pair[1]["s"]).tolist()),
    )
    assert list(dataset) == [(3, [1, 2])] * 2


def test_batches_of_the_default_collate(tmp_path):
    payloads = [example(i=ints(k), f=floats(k, k), b=strings(b"x%d" % k)) for k in range(4)]
    (batch,) = DataLoader(TFRecordDataset(write(tmp_path / "a", *payloads)), batch_size=4)
    assert batch["b"] == [b"x0", b"x1", b"x2", b"x3"]
    assert (batch["i"].dtype, batch["i"].tolist()) == (torch.int64, [[0], [1], [2], [3]])
    assert batch["f"].tolist() == [[k, k] for k in range(4)]


def test_rows_without_batching(tmp_path):
    dataset = TFRecordDataset(write_numbers(tmp_path / "a", 2))
    rows = list(DataLoader(dataset, batch_size=None))
    assert [type(row) for row in rows] == [dict, dict]
    assert [row["i"].tolist() for row in rows] == [[0], [1]]


def test_a_loader_that_shuffles_is_refused(tmp_path):
    with pytest.raises(ValueError, match="shuffle"):
        DataLoader(TFRecordDataset(write_numbers(tmp_path / "a", 2)), shuffle=True)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("index", [True, False])
def test_a_finite_mix_covers_once(tmp_path, workers, index):
    dataset = mix(tmp_path, index=index, infinite=False)
    assert sorted(loaded(dataset, num_workers=workers)) == [0, 1, 2, 3, 10, 11, 12]


def test_a_mix_is_infinite_by_default(tmp_path):
    read = numbers(islice(mix(tmp_path, index=False), 400))
    assert set(read) == {0, 1, 2, 3, 10, 11, 12}
    assert 0.7 < sum(k < 10 for k in read) / 400 < 0.9


def test_an_infinite_mix_with_more_workers_than_records_goes_on(tmp_path):
    loader = DataLoader(mix(tmp_path), batch_size=1, num_workers=3)
    assert len(list(islice(loader, 30))) == 30


def test_a_mix_pickles(tmp_path):
    dataset = pickle.loads(pickle.dumps(mix(tmp_path, infinite=False, seed=1)))
    assert sorted(numbers(dataset)) == [0, 1, 2, 3, 10, 11, 12]


def test_attributes_are_the_arguments(tmp_path):
    dataset = TFRecordDataset("d", "i", ["k"], 5, len, ["s"], "gzip", verify=False)
    assert (
        vars(dataset).items()
        >= {
            "data_path": "d",
            "index_path": "i",
            "description": ["k"],
            "shuffle_queue_size": 5,
            "transform": len,
            "sequence_description": ["s"],
            "compression_type": "gzip",
            "verify": False,
        }.items()
    )
    assert mix(tmp_path).splits == {"a": 0.8, "b": 0.2}


def test_a_dataset_without_a_length_is_true(tmp_path):
    assert TFRecordDataset(tmp_path / "a")
    assert mix(tmp_path)
