"""Files that are read: closed in silence when their reader was left in the middle."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path

import tfrio
from tfrio.storage.reading import LocalReader


def test_a_reader_left_in_the_middle_closes_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with tfrio.RecordWriter(path) as writer:
        writer.write(b"payload")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reader = LocalReader(path, "a")
        descriptor = reader.fileno()
        loop = [reader]
        loop.append(loop)  # a cycle, as a traceback makes one
        del reader, loop
        gc.collect()
    again = path.open("rb")
    assert again.fileno() == descriptor  # it was given back
    again.close()
