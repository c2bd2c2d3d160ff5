"""What a dataset takes its features for where no schema is given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tfrio
from tfrio.errors import FeatureKindError, MissingFeatureError, SchemaError


def write(path: Path, *rows: dict) -> None:
    with tfrio.Writer(path) as writer:
        for row in rows:
            writer.write(row)


def test_small_files_that_differ_are_looked_at_together(tmp_path):
    write(tmp_path / "p-0", *[{"x": [1], "tag": b"a"}] * 3)
    (tmp_path / "p-1").write_bytes(b"")
    write(tmp_path / "p-2", *[{"x": [2, 3], "tag": [b"b", b"c"]}] * 2)
    write(tmp_path / "p-3", {"y": 0.5})
    data = tfrio.ArrayDataset(str(tmp_path / "p-*"), batch_size=6)
    (batch,) = data
    assert batch["x"].tolist() == [[1, 0]] * 3 + [[2, 3]] * 2 + [[0, 0]]
    assert batch["x/lengths"].tolist() == [1, 1, 1, 2, 2, 0]
    assert batch["x/present"].tolist() == batch["tag/present"].tolist() == [True] * 5 + [False]
    assert batch["y/present"].tolist() == [False] * 5 + [True]
    assert [list(tags) for tags in batch["tag"]] == [[b"a"]] * 3 + [[b"b", b"c"]] * 2 + [[]]


def test_two_kinds_in_two_files_are_told_at_once(tmp_path):
    write(tmp_path / "p-0", {"x": 1})
    write(tmp_path / "p-1", {"x": 1.5})
    with pytest.raises(FeatureKindError, match="int64 first in record 0 of .*p-0, float first in"):
        tfrio.ArrayDataset(str(tmp_path / "p-*"))


def test_no_more_files_are_looked_at_than_it_takes(tmp_path, monkeypatch):
    from tfrio.datasets import setup

    opened = []

    class Noted(setup.RecordStream):
        def __init__(self, path, **options):
            opened.append(Path(path).name)
            super().__init__(path, **options)

    monkeypatch.setattr(setup, "RecordStream", Noted)
    for k in range(4):
        write(tmp_path / f"many-{k}", *[{"x": k}] * 600)
        write(tmp_path / f"large-{k}", {"x": np.zeros(1_100_000, np.float32)})
    tfrio.ArrayDataset(str(tmp_path / "many-*"))
    assert opened == ["many-0", "many-1"]
    opened.clear()
    tfrio.ArrayDataset(str(tmp_path / "large-*"))
    assert opened == ["large-0"]


def test_a_later_file_with_damage_tells_nothing_and_stops_nobody(tmp_path):
    write(tmp_path / "p-0", {"x": 1})
    write(tmp_path / "p-1", {"x": 2})
    data = bytearray((tmp_path / "p-1").read_bytes())
    data[-6] ^= 1
    (tmp_path / "p-1").write_bytes(data)
    rows = tfrio.ArrayDataset(str(tmp_path / "p-*"), errors="skip")
    with pytest.warns(match="left out 1 damaged record"):
        assert [row["x"].tolist() for row in rows] == [[1]]


@pytest.mark.parametrize("batch_size", [None, 3])
def test_a_missing_feature_is_told_with_those_that_are_there(tmp_path, batch_size):
    write(tmp_path / "a", {"x": 1, "y": 1}, {"x": 2, "y": 2}, {"y": 3, "z": b"q"})
    data = tfrio.ArrayDataset(
        tmp_path / "a", batch_size=batch_size, schema={"x": tfrio.Feature("int64", ())}
    )
    with pytest.raises(
        MissingFeatureError, match=r"'x' missing in record 2 of .*a; present: \['y', 'z'\]; give"
    ) as caught:
        list(data)
    assert (caught.value.record, caught.value.feature) == (2, "x")


def test_a_record_beyond_those_looked_at_is_named(tmp_path):
    write(tmp_path / "a", *[{"x": [1]}] * 1000, {"x": [1, 2]})
    with pytest.raises(SchemaError, match="'x': 2 values, expected 1, record 1000"):
        list(tfrio.ArrayDataset(tmp_path / "a", batch_size=500))
