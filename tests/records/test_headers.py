"""Hopping from header to header finds what a walk over all bytes finds."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.records import golden
from tests.records.golden import THREE, put
from tfrio import _core
from tfrio.records.headers import header_offsets

LENGTHS = st.one_of(st.integers(0, 40), st.sampled_from([4072, 4080, 4084, 5000, 70_000]))


@settings(max_examples=60, deadline=None)
@given(lengths=st.lists(LENGTHS, max_size=60))
def test_it_finds_what_a_scan_finds(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int]
) -> None:
    data = b"".join(golden.frame(bytes(n)) for n in lengths)
    path = put(tmp_path_factory.mktemp("h"), "a", data)
    found = header_offsets(path)
    assert found is not None
    assert found[1] == len(data)
    assert found[0].tolist() == (_core.scan(data, final=True).spans[:, 0] - 12).tolist()


@settings(max_examples=60, deadline=None)
@given(lengths=st.lists(LENGTHS, min_size=1, max_size=8), cut=st.floats(0, 1))
def test_a_cut_file_is_never_counted(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], cut: float
) -> None:
    frames = [golden.frame(bytes(n)) for n in lengths]
    ends = {0, *np.cumsum([len(f) for f in frames]).tolist()}
    data = b"".join(frames)
    size = int(cut * len(data))
    path = put(tmp_path_factory.mktemp("h"), "a", data[:size])
    assert (header_offsets(path) is not None) == (size in ends)


@pytest.mark.parametrize("at", [0, 8, 46, 54, 92])
def test_a_damaged_header_is_none(tmp_path: Path, at: int) -> None:
    assert header_offsets(put(tmp_path, "a", golden.flipped(THREE, at, 1))) is None


def test_payloads_of_large_records_are_not_read(tmp_path: Path) -> None:
    """A sparse file of 10 GB: reading it all would take longer than the tests may."""
    path = tmp_path / "a"
    header = _header(5_000_000_000)
    with path.open("wb") as file:
        for k in range(2):
            file.seek(k * 5_000_000_016)
            file.write(header)
    os.truncate(path, 2 * 5_000_000_016)
    found = header_offsets(path)
    assert found is not None
    assert found[0].tolist() == [0, 5_000_000_016]


def _header(length: int) -> bytes:
    size = length.to_bytes(8, "little")
    return size + _core.masked_crc32c(size).to_bytes(4, "little")
