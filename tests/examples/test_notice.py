"""Warnings point at the user's own line."""

from __future__ import annotations

import warnings
from pathlib import Path

from tests.examples.helpers import example, put
from tfrio.examples.decode import read_batches
from tfrio.examples.writer import Writer


def test_warnings_name_the_file_that_called(tmp_path: Path) -> None:
    path = put(tmp_path / "a", *[example({"x": [1]})] * 1000, example({"x": [1, 2]}))
    with warnings.catch_warnings(record=True) as caught, Writer(tmp_path / "b") as writer:
        warnings.simplefilter("always")
        for _ in read_batches(path, 100):
            pass
        writer.write({"x": [1e39]})
        writer.write({"y": 1e39})
        writer.flush()
    assert len(caught) == 3
    assert {w.filename for w in caught} == {__file__}
