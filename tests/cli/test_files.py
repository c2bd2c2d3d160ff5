"""count, index, repair, split and merge on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrio
from tests.support.samples import write_shards


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    return write_shards(tmp_path / "with space ç")


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A plain file of five records, the third damaged in its payload."""
    path = tmp_path / "damaged.tfrecord"
    with tfrio.RecordWriter(path) as writer:
        for k in range(5):
            writer.write(b"payload %d" % k)
    data = bytearray(path.read_bytes())
    data[2 * 25 + 15] ^= 1
    path.write_bytes(data)
    return path


def test_count_for_people_and_programs(cli, shards) -> None:
    lines = cli("count", shards[0].parent).out.splitlines()
    assert lines[-1].split() == ["total", "60", f"{sum(p.stat().st_size for p in shards):,}"]
    rows = cli("count", "--json", shards[0].parent).json
    assert rows == [
        {"path": str(path), "records": 20, "bytes": path.stat().st_size} for path in shards
    ]


def test_count_of_a_damaged_file_is_an_error(cli, damaged) -> None:
    assert cli("count", damaged).code == 0  # by headers, which are sound
    done = cli("count", "--verify", damaged)
    assert done.code == 1
    assert "record 2 at offset 50" in done.err


def test_index_beside_the_files(cli, shards) -> None:
    done = cli("index", "--json", *shards)
    assert [row["records"] for row in done.json] == [20, 20, 20]
    assert all(Path(row["index"]).is_file() for row in done.json)
    assert tfrio.open(shards)[41]["id"][0] == 41


def test_text_index_as_others_write_it(cli, tmp_path) -> None:
    path = tmp_path / "plain.tfrecord"
    with tfrio.RecordWriter(path) as writer:
        for payload in (b"abc", b"", b"defgh"):
            writer.write(payload)
    assert cli("index", "--text", path).code == 0
    assert Path(f"{path}.index").read_text() == "0 19\n19 16\n35 21\n"


def test_index_of_a_damaged_file(cli, damaged) -> None:
    assert cli("index", damaged).code == 1
    done = cli("index", "--text", "--allow-partial", damaged, "--out", f"{damaged}.idx")
    assert done.code == 0
    assert Path(f"{damaged}.idx").read_text().split()[::2] == ["0", "25", "75", "100"]


def test_one_index_name_for_many_files_is_wrong_use(cli, shards, tmp_path) -> None:
    done = cli("index", *shards, "--out", tmp_path / "x.idx")
    assert done.code == 2
    assert "there are 3 files" in done.err


def test_repair_keeps_every_whole_record(cli, damaged, tmp_path) -> None:
    before = damaged.read_bytes()
    out = tmp_path / "saved.tfrecord.gz"
    done = cli("repair", damaged, out)
    assert done.code == 0
    assert "kept 4" in done.out
    assert "record 2 at offset 50" in done.out
    assert list(tfrio.read_records(out)) == [b"payload %d" % k for k in (0, 1, 3, 4)]
    assert damaged.read_bytes() == before
    again = cli("repair", damaged, out)
    assert (again.code, "--overwrite" in again.err) == (2, True)
    assert cli("repair", "--json", "--overwrite", damaged, out).json["kept"] == 4


def test_split_and_merge_keep_every_byte(cli, shards, tmp_path) -> None:
    prefix = tmp_path / "new" / "part"
    done = cli("split", *shards, prefix, "--shards", "4")
    assert done.code == 0
    parts = sorted(prefix.parent.glob("part-*.tfrecord"))
    assert [p.name for p in parts] == [f"part-{k:05d}-of-00004.tfrecord" for k in range(4)]
    assert "part-00003-of-00004.tfrecord: 15 records" in done.out
    merged = tmp_path / "merged.tfrecord"
    assert cli("merge", *parts, merged).code == 0
    assert list(tfrio.read_records(merged)) == list(tfrio.read_records(shards))


def test_split_by_records_to_gzip(cli, shards, tmp_path) -> None:
    report = cli(
        *("split", "--json", shards[0], tmp_path / "s", "--max-records", "8"),
        *("--compression", "gzip"),
    ).json
    assert [row["records"] for row in report["files"]] == [8, 8, 4]
    assert all(row["path"].endswith(".tfrecord.gz") for row in report["files"])


def test_split_needs_to_know_how(cli, shards, tmp_path) -> None:
    done = cli("split", *shards, tmp_path / "x")
    assert done.code == 2
    assert "--max-records" in done.err


def test_merge_stops_at_damage_or_leaves_it_out(cli, damaged, tmp_path) -> None:
    out = tmp_path / "out.tfrecord"
    assert cli("merge", damaged, out).code == 1
    assert not out.exists()
    done = cli("merge", "--skip-bad", damaged, out)
    assert done.code == 0
    assert "1 damaged record left out" in done.out
    assert "skipped 1 damaged" in done.err
    again = cli("merge", "--skip-bad", damaged, out)
    assert (again.code, "exists already" in again.err, "--overwrite" in again.err) == (
        2,
        True,
        True,
    )
    limited = ("merge", "--skip-bad", "--max-bad", "0", "--overwrite")
    assert cli(*limited, damaged, out).code == 1


def test_filter_keeps_what_holds(cli, shards, tmp_path) -> None:
    out = tmp_path / "kept.tfrecord"
    done = cli("filter", "id % 20 == 7 and len(ragged) == 3", shards[0].parent, out)
    assert done.code == 0
    assert [row["id"][0] for row in tfrio.read(out)] == [7, 27, 47]
    assert "57 records left out" in done.out
    wrong = cli("filter", "id.real == 1", *shards, tmp_path / "x")
    assert (wrong.code, "not allowed" in wrong.err) == (2, True)
    assert not (tmp_path / "x").exists()
