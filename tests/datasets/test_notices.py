"""What a dataset warns of, and what it refuses to wait for."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from torch.utils.data import DataLoader

from tests.datasets.conftest import write_numbered
from tfrio import Writer
from tfrio.datasets import reader, source
from tfrio.datasets.arrays import ArrayDataset
from tfrio.datasets.notices import looks_sorted
from tfrio.errors import TfrioWarning, UsageError
from tfrio.torch import TFRecordDataset


def write_sorted(folder, suffix="", **options):
    """Write 1,000 records that lie class after class."""
    path = folder / f"sorted.tfrecord{suffix}"
    with Writer(path, **options) as writer:
        writer.write_batch({"x": np.arange(1000.0), "label": np.arange(1000) // 100})
    return path


@pytest.mark.parametrize("shuffle", ["buffer", "blocks"])
def test_a_local_shuffle_of_sorted_labels_is_told(tmp_path, shuffle, recwarn):
    path = write_sorted(tmp_path)
    data = ArrayDataset(path, batch_size=4, seed=7, shuffle=shuffle, window=20)
    with pytest.warns(TfrioWarning, match="look sorted by 'label'.*20 neighbours of 1000"):
        list(data)
    list(data)  # told once
    for quiet in ({"shuffle": shuffle, "window": 200}, {"shuffle": "full"}, {}):
        list(ArrayDataset(path, batch_size=4, seed=7, **quiet))
    assert not recwarn


@pytest.mark.parametrize(("size", "told"), [(256, False), (8192, True)])
def test_blocks_mix_where_a_window_takes_in_ten_of_them(tmp_path, size, told):
    path = write_sorted(tmp_path, ".gz", block_size=size)
    data = ArrayDataset(path, batch_size=4, seed=7, shuffle="blocks", window=99, index="memory")
    blocks = data._open().sources.blocks().size
    assert (99 * blocks < 10_000) == told
    if told:
        with pytest.warns(TfrioWarning, match="look sorted"):
            list(data)
    else:
        list(data)


@pytest.fixture
def forward_only(monkeypatch):
    """Make compressed files ones that can only be read from their start, as far ones are."""
    monkeypatch.setattr(source, "WHOLE_BYTES", 0)
    monkeypatch.setattr(source, "RUN_BYTES", 1000)
    monkeypatch.setattr(reader, "CHUNK_BYTES", 1000)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("through", ["dataset", "loader", "workers", "DataLoader"])
def test_sorted_files_read_from_their_start_are_told_after_an_epoch(
    tmp_path, forward_only, through, printed, capfd
):
    path = write_sorted(tmp_path)
    path.with_suffix(".gz").write_bytes(gzip.compress(path.read_bytes()))
    data = TFRecordDataset(path.with_suffix(".gz"), batch_size=4, shuffle=True, window=20, seed=1)
    assert not data._open().sources.seekable
    batches = {
        "dataset": data,
        "loader": data.loader(),
        "workers": data.loader(num_workers=2),
        "DataLoader": DataLoader(data, batch_size=None, num_workers=2),
    }[through]
    for epoch in range(2):
        data.set_epoch(epoch)
        assert sum(len(batch["x"]) for batch in batches) == 1000
    told = capfd.readouterr().err
    assert told.count("look sorted by 'label', and the shuffle mixes only 20 neighbours") == 1
    assert told.startswith(__file__)


def test_mixed_files_read_from_their_start_are_not_told(tmp_path, forward_only, recwarn):
    path = tmp_path / "mixed"
    with Writer(path) as writer:
        writer.write_batch({"x": np.arange(1000.0), "label": np.arange(1000) * 7919 % 10})
    (tmp_path / "a.gz").write_bytes(gzip.compress(path.read_bytes()))
    list(TFRecordDataset(tmp_path / "a.gz", batch_size=4, shuffle=True, window=20, seed=1))
    assert not recwarn


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_a_plain_data_loader_tells_of_sorted_files(tmp_path, printed, capfd):
    data = TFRecordDataset(write_sorted(tmp_path), batch_size=50, shuffle="buffer", window=20)
    list(DataLoader(data, batch_size=None, num_workers=2))
    assert capfd.readouterr().err.count("look sorted by 'label'") == 1


def test_a_loader_with_workers_tells_once_and_in_this_process(tmp_path, recwarn):
    data = TFRecordDataset(write_sorted(tmp_path), batch_size=50, shuffle="buffer", window=20)
    loader = data.loader(num_workers=2)
    list(loader), list(loader)
    assert ["look sorted" in str(told.message) for told in recwarn] == [True]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_infinite_dataset_without_a_batch_is_refused(tmp_path, workers):
    glob = write_numbered(tmp_path, (10,))
    few = TFRecordDataset(glob, batch_size=16, drop_last=True, infinite=True)
    ranks = TFRecordDataset(glob, batch_size=4, infinite=True, rank=0, world_size=11)
    for data in (few, ranks):
        with pytest.raises(UsageError, match="infinite dataset without a batch"):
            next(iter(data.loader(num_workers=workers)))


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([0] * 20 + [1] * 20 + [2] * 20, True),
        ([0, 1] * 30, False),
        ([0] * 60, False),
        (range(60), False),
        ([1] * 30 + [0] * 30, True),
    ],
)
def test_what_looks_sorted(values, wanted):
    assert looks_sorted(np.array(values)) is wanted
