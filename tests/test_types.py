"""Paths and counts of the wrong type are refused in words, by every public function alike."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrio
from tfrio.errors import UsageError
from tfrio.types import path_text, paths_list, whole_number

READERS: dict[str, Callable[[Any], Any]] = {
    "read": lambda p: list(tfrio.read(p)),
    "read_batches": lambda p: list(tfrio.read_batches(p, 2)),
    "read_records": lambda p: list(tfrio.read_records(p)),
    "open": lambda p: len(tfrio.open(p, index="memory")),
    "RecordSequence": lambda p: len(tfrio.RecordSequence(p, index="memory")),
    "stats": tfrio.stats,
    "info": tfrio.info,
    "verify": tfrio.verify,
    "count": tfrio.count,
    "infer_schema": tfrio.infer_schema,
    "check_schema": lambda p: tfrio.check_schema(p, {"a": "int64"}),
    "to_arrow": tfrio.to_arrow,
    "ArrayDataset": lambda p: tfrio.ArrayDataset(p, batch_size=2),
}
WRITERS: dict[str, Callable[[Any, Any], Any]] = {
    "Writer": lambda _, out: tfrio.Writer(out).close(),
    "RecordWriter": lambda _, out: tfrio.RecordWriter(out).close(),
    "ShardedWriter": lambda _, out: tfrio.ShardedWriter(out, shards=2).close(),
    "save_schema": lambda _, out: tfrio.save_schema({"a": "int64"}, out),
    "merge": tfrio.merge,
    "repair": tfrio.repair,
    "reshard": lambda path, out: tfrio.reshard(path, out, shards=2),
    "filter_examples": lambda path, out: tfrio.filter_examples(path, out, where="a > 0"),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of three records."""
    path = tmp_path / "a.tfrecord"
    with tfrio.Writer(path) as writer:
        for i in range(3):
            writer.write({"a": i})
    return path


@pytest.mark.parametrize("name", READERS)
def test_what_is_no_path_is_refused_in_words(name: str, file: Path) -> None:
    for odd in (None, 5, 1.5, [None], [file, 3], b"", "", bytearray(b"a")):
        with pytest.raises(UsageError, match="path"):
            READERS[name](odd)
    with pytest.raises(UsageError, match="no path was given"):
        READERS[name]([])
    with pytest.raises(FileNotFoundError, match="no such file"):
        READERS[name](file.with_name("nope"))


@pytest.mark.parametrize("name", READERS)
def test_bytes_are_paths_as_the_system_has_them(name: str, file: Path) -> None:
    READERS[name](os.fsencode(file))
    READERS[name]([os.fsencode(file), file, str(file)])


@pytest.mark.parametrize("name", WRITERS)
def test_outputs_are_paths_too(name: str, file: Path, tmp_path: Path) -> None:
    for odd in (None, 5, [file], ""):
        with pytest.raises(UsageError, match="path"):
            WRITERS[name](file, odd)
    WRITERS[name](file, os.fsencode(tmp_path / "out"))
    assert [p for p in tmp_path.iterdir() if p.name.startswith("out")]


COUNTS: dict[str, Callable[[Path, Any], Any]] = {
    "batch_size": lambda p, n: list(tfrio.read_batches(p, n)),
    "batch_size of Arrow": lambda p, n: tfrio.to_arrow(p, batch_size=n),
    "batch_size of a dataset": lambda p, n: tfrio.ArrayDataset(p, batch_size=n),
    "chunk": lambda p, n: tfrio.ArrayDataset(p, chunk=n),
    "sample": lambda p, n: tfrio.infer_schema(p, sample=n),
    "shards": lambda p, n: tfrio.reshard(p, p.with_name("out"), shards=n),
    "max_records": lambda p, n: tfrio.ShardedWriter(p.with_name("out"), max_records=n).abort(),
    "threads": lambda p, n: tfrio.stats(p, threads=n),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_whole_numbers(name: str, file: Path) -> None:
    for odd in (1.5, "4", 0, -1, True, [1]):
        with pytest.raises(
            UsageError, match=f"{name.split(maxsplit=1)[0]} must be a whole number of at"
        ):
            COUNTS[name](file, odd)
    COUNTS[name](file, np.int64(2))


def test_threads_and_max_bad_may_be_none_at_all(file: Path) -> None:
    assert len(list(tfrio.read(file, threads=0, errors="skip", max_bad=0))) == 3
    for odd in (1.5, "4", -1):
        with pytest.raises(UsageError, match="threads must be a whole number of at least 0"):
            list(tfrio.read(file, threads=odd))  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="max_bad must be a whole number of at least 0"):
            list(tfrio.read(file, errors="skip", max_bad=odd))  # type: ignore[arg-type]


def test_the_checks_themselves() -> None:
    assert path_text(b"a\xff") == "a\udcff"
    assert path_text(Path("a")) == "a"
    assert paths_list(iter(["a", "b"])) == ["a", "b"]
    assert paths_list(b"ab") == [b"ab"]
    assert whole_number(np.uint8(3), "n") == 3
    with pytest.raises(UsageError, match="n must be a whole number of at least 2, got 1"):
        whole_number(1, "n", least=2)
