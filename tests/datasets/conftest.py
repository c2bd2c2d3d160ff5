"""Numbered records in every form of file."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np
import pytest

from tfrio import Writer

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


def ids(batches) -> list[int]:
    """Return the ids of batches (or rows) in order."""
    return [int(number) for batch in batches for number in np.asarray(batch["id"]).ravel()]


@pytest.fixture(scope="session")
def numbered(tmp_path_factory) -> dict[str, str]:
    """Return the glob of 103 numbered records in four files, by form."""
    folder = tmp_path_factory.mktemp("numbered")
    return {form: write_numbered(folder / form, form=form) for form in FORMS}
