"""How much Python runs for a record: counts of calls, which are the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tfrio.examples.decode import read, read_batches
from tfrio.examples.opened import open as open_examples
from tfrio.examples.stats import stats
from tfrio.examples.writer import Writer


def calls(work: Callable[[], Any]) -> int:
    """Return how many functions, of Python and of C, are called on this thread."""
    found = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal found
        found += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def images(path: Path, count: int) -> Path:
    with Writer(path) as writer:
        for k in range(count):
            writer.write({"image": b"x" * (100 + k % 50), "label": k})
    return path


def test_a_batch_costs_no_call_for_each_of_its_records(tmp_path: Path) -> None:
    path = images(tmp_path / "a", 20_000)
    few = calls(lambda: list(read_batches(path, 20_000, threads=1)))
    assert few < 5_000
    assert calls(lambda: list(read_batches(path, 1_000, threads=1))) < 30_000
    assert calls(lambda: stats(path, threads=1)) < 20_000


def test_a_row_costs_a_few_calls(tmp_path: Path) -> None:
    path = images(tmp_path / "a", 20_000)
    assert calls(lambda: list(read(path, threads=1))) < 3 * 20_000
    rows = open_examples(path)
    assert calls(lambda: [rows[k] for k in range(1_000)]) < 20 * 1_000
    with Writer(tmp_path / "b") as writer:
        assert calls(lambda: [writer.write({"x": k, "y": 0.5}) for k in range(1_000)]) < 20 * 1_000


def test_the_values_of_a_list_cost_nothing(tmp_path: Path) -> None:
    found = []
    for size in (10, 100_000):
        bands = {f"B{k}": np.arange(size, dtype=np.float32) for k in range(10)}
        path = tmp_path / str(size)
        with Writer(path) as writer:
            written = calls(lambda bands=bands, writer=writer: writer.write(bands))
        found.append((written, calls(lambda path=path: list(read(path, threads=1)))))
    (write_few, read_few), (write_many, read_many) = found
    assert write_many < write_few + 100
    assert read_many < read_few + 300
