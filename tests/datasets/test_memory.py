"""Memory stays flat over epochs: nothing of one epoch is kept into the next."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from tests.datasets.conftest import ids, write_numbered
from tfrio.torch import TFRecordDataset

PAGE = os.sysconf("SC_PAGE_SIZE")


def resident():
    """Return the bytes of private memory of this process (a mapped data file does not count)."""
    gc.collect()
    _, pages, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
    return (pages - shared) * PAGE


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("form", "shuffle"), [("plain", "full"), ("blocked", "blocks"), ("gzip", "buffer")]
)
def test_epochs_leave_nothing_behind(tmp_path, form, shuffle):
    glob = write_numbered(tmp_path, (150, 150), form=form, size=20_000)
    data = TFRecordDataset(
        glob, batch_size=8, shuffle=shuffle, window=64, seed=1, features=["id", "blob"], threads=2
    )
    sizes = []
    for _ in range(10):
        assert len(ids(data)) == 300
        sizes.append(resident())
    # One epoch holds 6 MB of values: a leak of them would show as 42 MB.
    assert sizes[-1] - sizes[2] < 8e6
