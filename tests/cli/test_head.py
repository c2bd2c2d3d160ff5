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


def test_an_empty_file_has_no_records(cli, tmp_path) -> None:
    (tmp_path / "empty.tfrecord").write_bytes(b"")
    done = cli("head", tmp_path / "empty.tfrecord")
    assert (done.code, done.out) == (0, "no records\n")
    assert cli("head", "--json", tmp_path / "empty.tfrecord").out == ""


def test_names_that_are_no_utf8_are_shown_when_asked(cli, tmp_path) -> None:
    path = odd_name(tmp_path)
    refused = cli("head", path)
    assert refused.code == 1
    assert "Read it with --utf8 surrogateescape" in refused.err
    assert "tfrio.read" not in refused.err
    assert "a\\xff:" in cli("head", "--utf8", "surrogateescape", path).out
    assert json.loads(cli("head", "--json", "--utf8", "surrogateescape", path).out) == {
        "a\\xff": [7]
    }
    assert "a\\xff" in cli("stats", "--utf8", "surrogateescape", path).out
    assert cli("stats", path).code == 1
    told = cli("info", path)
    assert told.code == 0
    assert "a\\xff" in told.out
    assert "is not UTF-8, so protobuf and TensorFlow refuse" in told.out
    assert cli("info", "--json", path).json["features"][0]["name"] == "a\\xff"


def odd_name(folder: Path) -> Path:
    """Write a record with a feature whose name is no UTF-8."""
    path = folder / "odd.tfrecord"
    with tfrio.Writer(path, utf8="surrogateescape") as writer:
        writer.write({"a\udcff": 7})
    return path


def test_damaged_records_are_left_out_when_asked(cli, tmp_path) -> None:
    path = tmp_path / "a.tfrecord"
    with tfrio.Writer(path) as writer:
        for i in range(3):
            writer.write({"a": i})
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    for command in ("head", "stats"):
        done = cli(command, path)
        assert done.code == 1
        assert "or give --skip-bad" in done.err
        assert 'errors="' not in done.err
        assert cli(command, "--skip-bad", path).code == 0
    assert cli("head", "--skip-bad", path).out.count("record ") == 2
    assert 'errors="' not in cli("count", "--help").out + cli("schema", "infer", path).err


@pytest.mark.parametrize(
    "value",
    [
        b"\x89PNG\r\n\x1a\n..",
        b"\xff\xd8\xff",
        b"RIFF1234WEBP",
        b"RIFF1234WAVE",
        b"GIF8",
        b"BMW",
        b"BM" + bytes(30),
        b"\xc3\xbf\xc3\x98\xc3\xbf..",
        b"",
        b"II",
        b"text",
    ],
)
def test_head_and_stats_see_the_same_images(cli, tmp_path, value: bytes) -> None:
    with tfrio.Writer(tmp_path / "a.tfrecord") as writer:
        writer.write({"x": value})
    formats = tfrio.stats(tmp_path / "a.tfrecord")["x"].formats
    shown = cli("head", tmp_path / "a.tfrecord").out
    mangled = any(name.startswith("UTF-8") for name in formats)
    told = [f"looks like {name} (was ff d8)" if mangled else f"{name} image" for name in formats]
    assert [text in shown for text in told] == [True] * len(formats)
    assert ("image" in shown or "looks like" in shown) == bool(formats)


def test_images_are_told_with_their_size(cli, tmp_path) -> None:
    header = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00\x00\x00\x00\x02" + bytes(50)
    with tfrio.Writer(tmp_path / "a.tfrecord") as writer:
        writer.write({"image": header})
    line = cli("head", tmp_path / "a.tfrecord").out.splitlines()[1]
    assert line.split() == ["image:", "bytes,", "74", "long", "PNG", "256\u00d72"]
