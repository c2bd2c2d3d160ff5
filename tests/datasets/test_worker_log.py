"""What workers of somebody's own DataLoader leave out is told to the process of the dataset."""

from __future__ import annotations

import gc
import pickle
import tempfile
from pathlib import Path

import pytest
from torch.utils.data import DataLoader

from tests.datasets.conftest import flipped, ids
from tfrio.datasets.worker_log import WorkerLog
from tfrio.records.damage import Damage
from tfrio.torch import TFRecordDataset

pytestmark = [
    pytest.mark.filterwarnings("ignore:epoch .. left out"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

BAD = (2, 41, 70)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the logs of a test apart."""
    logs = tmp_path / "logs"
    logs.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(logs))
    return logs


def damage(record: int) -> Damage:
    """Return some damage."""
    return Damage("a", record, 16 * record, "payload-crc", "payload", 1, 2, 30, None, "ç\n")


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_what_workers_leave_out_is_in_the_report(tmp_path, folder, context):
    data = TFRecordDataset(flipped(tmp_path, BAD), batch_size=4, errors="skip", index="memory")
    loader = DataLoader(
        data,
        batch_size=None,
        num_workers=2,
        multiprocessing_context=context,
        persistent_workers=True,
    )
    for epoch in range(2):
        data.set_epoch(epoch)
        assert len(ids(loader)) == 97
        found = [record for _, record, _ in data.report.where]
        assert len(found) == 3 * (epoch + 1)
        assert sorted(found[3 * epoch :]) == list(BAD)
    assert data.report.skipped_records == 6
    assert data.report.bytes_lost > 0
    in_process = TFRecordDataset(data.paths, batch_size=4, errors="skip", index="memory")
    list(in_process)
    first = sorted(data.report.damages[:3], key=lambda one: one.record)
    assert first == in_process.report.damages


def test_single_rows_and_a_pass_broken_off(tmp_path, folder):
    path = flipped(tmp_path, (2, 90))
    data = TFRecordDataset(path, errors="skip", index="memory", features=["id"])
    rows = iter(DataLoader(data, batch_size=5, num_workers=1))
    next(rows)
    assert data.report.where[0][1] == 2  # the worker may be further


def test_no_file_is_left(tmp_path, folder):
    data = TFRecordDataset(flipped(tmp_path, BAD), batch_size=4, errors="skip", index="memory")
    ids(DataLoader(data, batch_size=None, num_workers=2))
    gc.collect()
    assert len(list(folder.iterdir())) == 1
    del data
    gc.collect()
    assert list(folder.iterdir()) == []


def test_without_damage_there_is_no_file(tmp_path, folder):
    data = TFRecordDataset(flipped(tmp_path, ()), batch_size=4)
    assert len(ids(DataLoader(data, batch_size=None, num_workers=2))) == 100
    assert data.report.skipped_records == 0
    assert list(folder.iterdir()) == []


def test_lines_are_read_once_and_whole(folder):
    log = WorkerLog()
    assert log.news() == []
    log.append([damage(1), damage(2)])
    assert log.news() == [damage(1), damage(2)]
    assert log.news() == []
    log.append([])
    log.append([damage(3)])
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])  # another process is writing
    assert log.news() == []
    path.write_bytes(whole)
    assert log.news() == [damage(3)]


def test_a_log_reaches_other_processes_and_stays_with_its_owner(folder):
    log = WorkerLog()
    copy = pickle.loads(pickle.dumps(log))
    copy.append([damage(1)])
    del copy
    assert log.news() == [damage(1)]
    assert len(list(folder.iterdir())) == 1
    del log
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_no_error(folder):
    log = WorkerLog()
    folder.rmdir()
    log.append([damage(1)])
    assert log.news() == []
