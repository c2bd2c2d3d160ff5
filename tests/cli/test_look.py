"""`tfrio info` and `tfrio verify`, for people and programs."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrio
from tests.support.samples import write_shards


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    return write_shards(tmp_path / "with space ç")


def flip(path: Path) -> None:
    """Flip one bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 8
    path.write_bytes(data)


def test_info_tells_features_and_that_all_is_well(cli, shards) -> None:
    done = cli("info", shards[0].parent)
    assert done.code == 0
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[0].startswith("3 files, 60 records, ")
    assert lines[0].endswith("(gzip): tf.train.Example")
    assert "id int64 1 always" in lines
    assert "ragged float 0 to 3 always" in lines
    assert lines[-1] == "every checksum is right, nothing is missing"
    assert done.err == ""


def test_info_as_json(cli, shards) -> None:
    report = cli("info", "--json", *shards).json
    assert (report["records"], report["content"]) == (60, "example")
    features = {feature["name"]: feature for feature in report["features"]}
    assert features["ragged"]["lengths"] == [0, 3]
    assert report["compressions"] == ["gzip"]


def test_info_of_damage_leaves_with_1(cli, shards) -> None:
    flip(shards[1])
    done = cli("info", shards[0].parent)
    assert done.code == 1
    assert shards[1].name in done.out
    assert "1 finding" in done.out


def test_info_names_other_messages_and_leaves_with_0(cli, tmp_path) -> None:
    with tfrio.RecordWriter(tmp_path / "odd.tfrecord") as writer:
        writer.write(b"\xff" * 40)
    done = cli("info", tmp_path / "odd.tfrecord")
    assert done.code == 0
    assert "payload is not tf.train.Example" in done.out


def test_verify_tells_each_file(cli, shards) -> None:
    done = cli("verify", shards[0].parent)
    assert done.code == 0
    rows = [line for line in done.out.splitlines() if ".tfrecord.gz" in line]
    assert [" ".join(row.split()[-3:]) for row in rows] == [
        f"20 {path.stat().st_size:,} gzip" for path in shards
    ]
    assert "60 sound records in 3 files" in done.out


def test_verify_names_damage_and_missing_shards(cli, shards) -> None:
    flip(shards[2])
    shards[1].unlink()
    done = cli("verify", shards[0].parent)
    assert done.code == 1
    assert "missing shard 00001 of 3" in done.out
    assert shards[2].name in done.out
    assert "2 findings" in done.out
    assert "`tfrio repair` writes a new file" in done.out
    assert "Run `tfrio verify`" not in done.out


def test_verify_as_json_with_digest(cli, shards) -> None:
    import hashlib

    done = cli("verify", "--json", "--digest", shards[0].parent)
    assert done.code == 0
    first = done.json["files"][0]
    assert first["digest"] == hashlib.sha256(shards[0].read_bytes()).hexdigest()
    assert done.json["ok"] is True


def test_verify_verbose_tells_what_was_left_out(cli, shards) -> None:
    (shards[0].parent / "_SUCCESS").touch()
    done = cli("verify", "-v", shards[0].parent)
    assert "left out: " in done.out
    assert "_SUCCESS" in done.out


def test_a_stranger_is_named(cli, tmp_path) -> None:
    path = tmp_path / "page.tfrecord"
    path.write_text("<!DOCTYPE html><html>not found</html>")
    done = cli("verify", path)
    assert done.code == 1
    assert "HTML" in done.out


@pytest.mark.parametrize("command", ["info", "verify", "head"])
def test_a_missing_file_is_one_line_and_1(cli, command: str) -> None:
    done = cli(command, "nothing here.tfrecord")
    assert done.code == 1
    assert done.err.startswith("tfrio: nothing here.tfrecord: ")
    assert done.err.count("\n") == 1
    assert done.out == ""


def test_info_compares_with_a_schema(cli, shards, tmp_path) -> None:
    saved = tmp_path / "schema.json"
    assert cli("schema", "infer", *shards, "-o", saved).code == 0
    done = cli("info", "--schema", saved, *shards)
    assert done.code == 0
    assert "records fit" in done.out
    saved.write_text(saved.read_text().replace("int64", "bytes"))
    done = cli("info", "--schema", saved, *shards)
    assert done.code == 1
    assert "the schema says bytes" in done.out
    assert cli("info", "--json", "--schema", saved, *shards).json["schema"]["ok"] is False


@pytest.mark.parametrize("command", ["info", "verify"])
def test_of_an_empty_file_nobody_says_that_nothing_is_missing(cli, tmp_path, command) -> None:
    (tmp_path / "a.tfrecord").touch()
    done = cli(command, tmp_path / "a.tfrecord")
    assert done.code == 0
    assert "0 bytes: valid without a record" in done.out
    assert "nothing is missing" not in done.out


def test_a_mixture_of_messages_is_told_with_its_files(cli, tmp_path) -> None:
    with tfrio.Writer(tmp_path / "a.tfrecord") as writer:
        writer.write({"id": 1})
        writer.write({"id": 2})
    with tfrio.Writer(tmp_path / "b.tfrecord") as writer:
        writer.write_sequence({"id": 3}, {"words": [[5]]})
    lines = cli("info", tmp_path).out.splitlines()
    assert lines[0].endswith(": files of different messages")
    assert lines[1] == f"tf.train.Example: 2 records in 1 file: {tmp_path / 'a.tfrecord'}"
    assert lines[2] == f"tf.train.SequenceExample: 1 record in 1 file: {tmp_path / 'b.tfrecord'}"
