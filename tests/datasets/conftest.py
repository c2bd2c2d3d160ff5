"""Numbered records in every form of file."""

from __future__ import annotations

import gzip
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest

from tfrio import Writer
from tfrio.records.shards import expand

COUNTS = (10, 0, 33, 60)
TOTAL = sum(COUNTS)
FORMS = ("plain", "blocked", "gzip", "zlib")


def write_numbered(folder: Path, counts=COUNTS, *, form="plain", first=0, size=0) -> str:
    """Write files of records {id, x, name, list}; return their glob.

    Ordinary gzip and zlib are made by Python, since tfrio writes blocked gzip. ``size`` adds that
    many bytes a record that do not compress.
    """
    folder.mkdir(parents=True, exist_ok=True)
    number = first
    suffix = ".tfrecord.gz" if form == "blocked" else ".tfrecord"
    for file, count in enumerate(counts):
        path = folder / f"part-{file:05d}-of-{len(counts):05d}{suffix}"
        with Writer(path) as writer:
            for _ in range(count):
                writer.write(row_of(number, size))
                number += 1
        if form in ("gzip", "zlib"):
            data = path.read_bytes()
            path.write_bytes(gzip.compress(data) if form == "gzip" else zlib.compress(data))
    return str(folder / f"part-*{suffix}")


def row_of(number: int, size: int = 0):
    row = {
        "id": number,
        "x": np.array([number, number + 0.5], np.float32),
        "name": f"n{number}".encode() * (number % 3),
        "list": np.arange(number % 4),
    }
    if size:
        row["blob"] = np.random.default_rng(number).bytes(size)
    return row


def flipped(folder, numbers=(1,)):
    """Return a file of 100 records whose records ``numbers`` have a flipped payload bit."""
    glob = write_numbered(folder, (100,))
    path = expand(glob)[0]
    data = bytearray(Path(path).read_bytes())
    at, record = 0, 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 8], "little")
        if record in numbers:
            data[at + 12 + size // 2] ^= 1
        at, record = at + size + 16, record + 1
    Path(path).write_bytes(data)
    return path


def caught(kind, work):
    """Return the error that work ends with, without its traceback, which holds on to workers.

    PyTorch waits 5 s for each worker of an iterator that the garbage collector finds.
    """
    try:
        work()
    except kind as error:
        return error.with_traceback(None)
    return pytest.fail(f"no {kind.__name__}")


def ids(batches) -> list[int]:
    """Return the ids of batches (or rows) in order."""
    return [int(number) for batch in batches for number in np.asarray(batch["id"]).ravel()]


@pytest.fixture(scope="session")
def numbered(tmp_path_factory) -> dict[str, str]:
    """Return the glob of 103 numbered records in four files, by form."""
    folder = tmp_path_factory.mktemp("numbered")
    return {form: write_numbered(folder / form, form=form) for form in FORMS}


@pytest.fixture
def printed(monkeypatch):
    """Print warnings, those of worker processes too, as they are outside of pytest."""

    def show(message, category, filename, line, *_):
        sys.stderr.write(f"{filename}:{line}: {category.__name__}: {message}\n")

    monkeypatch.setattr(warnings, "showwarning", show)
    warnings.simplefilter("always")
