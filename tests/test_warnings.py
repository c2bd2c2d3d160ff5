"""Warnings point at the user's own line."""

from __future__ import annotations

import re
import threading
import warnings
from pathlib import Path

import pytest
from torch.utils.data import DataLoader

import tfrio
from tests.examples.helpers import example, put
from tfrio.errors import TfrioWarning, UnclosedWriterWarning, warn_user
from tfrio.torch import TFRecordDataset

SOURCE = Path(tfrio.__file__).resolve().parent


@pytest.fixture
def caught():
    """Return the warnings of a test, all of them."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield found


def test_every_warning_goes_through_the_helper() -> None:
    calls = [
        path.name for path in SOURCE.rglob("*.py") if "warnings.warn(" in path.read_text("utf-8")
    ]
    assert calls == ["errors.py"]


def test_reading_and_writing_name_the_file_that_called(tmp_path, caught) -> None:
    path = put(tmp_path / "a", *[example({"x": [1]})] * 1000, example({"x": [1, 2]}))
    with tfrio.Writer(tmp_path / "b") as writer:
        for _ in tfrio.read_batches(path, 100):
            pass
        writer.write({"x": [1e39]})
        writer.write({"y": 1e39})
        writer.flush()
    assert len(caught) == 3
    assert {w.filename for w in caught} == {__file__}


def test_a_forgotten_writer_is_told_where_it_was_dropped(tmp_path, caught) -> None:
    writer = tfrio.Writer(tmp_path / "a")
    writer.write({"x": 1.0})
    del writer
    assert [(w.filename, w.category) for w in caught] == [(__file__, UnclosedWriterWarning)]


def test_shards_missing_beside_a_glob_name_the_caller(tmp_path, caught) -> None:
    for number in (0, 2):
        put(tmp_path / f"a-0000{number}-of-00003.tfrecord", example({"x": [1]}))
    tfrio.count(str(tmp_path / "a-*"))
    assert [w.filename for w in caught] == [__file__]


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("through", ["dataset", "loader", "DataLoader"])
def test_damage_left_out_names_the_loop(tmp_path, caught, through) -> None:
    path = Path(put(tmp_path / "a.tfrecord", *[example({"x": [1.0, 2.0]})] * 9))
    data = bytearray(path.read_bytes())
    data[len(data) // 9 * 4 + 20] ^= 1
    path.write_bytes(data)
    made = TFRecordDataset(path, batch_size=2, errors="skip", index="memory")
    batches = {
        "dataset": made,
        "loader": made.loader(),
        "DataLoader": DataLoader(made, batch_size=None),
    }[through]
    assert sum(len(batch["x"]) for batch in batches) == 8
    told = [w for w in caught if issubclass(w.category, TfrioWarning)]
    assert [w.filename for w in told] == [__file__]
    assert re.search("left out 1 damaged record", str(told[0].message))


def test_on_a_thread_no_file_of_the_package_is_named(caught) -> None:
    place = {"warn": warn_user, "__name__": "tfrio.inner"}
    thread = threading.Thread(target=eval, args=("warn('told on a thread')", place))
    thread.start()
    thread.join()
    assert [w.filename for w in caught] == ["sys"]
