"""`tfrio head`: the first records, readable or as JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tfrio
from tests.records.golden import frame
from tests.support.samples import write_shards


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    return write_shards(tmp_path, records=4)


def test_records_are_readable(cli, shards) -> None:
    done = cli("head", "-n", "1", shards[1])
    assert done.code == 0
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines == ["record 0", "id: int64 x 1 4", "ragged: float32 x 0", "x: float32 x 2 4 2"]


def test_absent_features_are_told(cli, shards) -> None:
    done = cli("head", "-n", "2", "--keys", "id,nope", shards[0])
    assert done.code == 0
    assert done.out.count("nope: absent") == 2
    assert "ragged" not in done.out
    assert cli("head", "-k", "id,nope", "--strict", shards[0]).code == 1
    assert cli("head", "-k", "id", "--strict", shards[0]).code == 0


def test_json_has_one_record_a_line(cli, shards) -> None:
    done = cli("head", "--json", "-n", "6", *shards)
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["id"] for row in rows] == [[k] for k in range(6)]
    assert rows[3] == {"id": [3], "ragged": [0, 1, 2], "x": [3, 1.5]}


def test_json_of_bytes(cli, tmp_path) -> None:
    with tfrio.Writer(tmp_path / "b.tfrecord") as writer:
        writer.write({"text": "ç", "raw": b"\xff\x00"})
    row = json.loads(cli("head", "--json", tmp_path / "b.tfrecord").out)
    assert row == {"raw": {"base64": "/wA="}, "text": "ç"}


def test_a_record_without_features_is_told(cli, tmp_path) -> None:
    with tfrio.Writer(tmp_path / "e.tfrecord") as writer:
        writer.write({})
    assert "no features" in cli("head", tmp_path / "e.tfrecord").out


def test_raw_payloads_whatever_they_hold(cli, tmp_path) -> None:
    path = tmp_path / "other.tfrecord"
    with tfrio.RecordWriter(path) as writer:
        writer.write(b"\xff\x01\x02")
    assert cli("head", path).code == 1
    done = cli("head", "--raw", path)
    assert done.code == 0
    assert "ff 01 02" in done.out
    assert json.loads(cli("head", "--raw", "--json", path).out) == {"payload": {"base64": "/wEC"}}


def test_a_negative_number_is_wrong_use(cli, shards) -> None:
    done = cli("head", "-n", "-3", shards[0])
    assert done.code == 2
    assert done.err.count("\n") == 1


def test_whole_records_are_shown_before_the_damage_is_told(cli, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    frames = frame(bytes.fromhex("0a0c0a0a0a016112051a030a0101")) * 3
    path.write_bytes(frames + frames[:20])
    done = cli("head", "-n", 5, path)
    assert done.code == 1
    assert [f"record {k}" in done.out for k in range(4)] == [True, True, True, False]
    assert "3 whole records precede" in done.err


def test_a_path_that_is_not_there_is_told_though_it_is_not_reached(cli, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frame(bytes.fromhex("0a0c0a0a0a016112051a030a0101")) * 3)
    done = cli("head", path, tmp_path / "nope.tfrecord")
    assert done.code == 1
    assert "nope.tfrecord: no such file, folder or shard prefix" in done.err
