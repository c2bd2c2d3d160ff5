"""Split, merge, filter, sharded writing: payload bytes untouched, order kept, restartable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.records import golden
from tests.records.golden import FRAMES, PAYLOADS, THREE, put
from tfrio.errors import CorruptRecordError, TfrioWarning, UsageError
from tfrio.examples import reshard as module
from tfrio.examples.reshard import merge, reshard
from tfrio.records.names import base_name
from tfrio.records.reader import read_records
from tfrio.records.sharded import ShardedWriter
from tfrio.records.shards import expand
from tfrio.records.verify import verify
from tfrio.records.writer import RecordWriter


def test_three_records_to_two_shards_and_back(tmp_path: Path) -> None:
    report = reshard(put(tmp_path, "three", THREE), tmp_path / "out", shards=2)
    assert [base_name(row.path) for row in report.files] == [
        "out-00000-of-00002.tfrecord",
        "out-00001-of-00002.tfrecord",
    ]
    assert [row.records for row in report.files] == [2, 1]
    back = merge(tmp_path / "out", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == THREE
    assert back.records == 3
    kept = merge(tmp_path / "back", tmp_path / "f", keep=lambda p: p != PAYLOADS[1])
    assert (tmp_path / "f").read_bytes() == FRAMES[0] + FRAMES[2]
    assert (kept.records, kept.left_out) == (2, 1)
    assert json.loads(json.dumps(report.to_dict()))["files"][0]["records"] == 2


@pytest.mark.parametrize(
    ("options", "sizes", "first"),
    [
        ({"shards": 5}, [1, 1, 1, 0, 0], "out-00000-of-00005.tfrecord"),
        ({"max_records": 2}, [2, 1], "out-00000-of-00002.tfrecord"),
        ({"max_bytes": 92}, [2, 1], "out-00000.tfrecord"),
        ({"max_bytes": 91}, [1, 1, 1], "out-00000.tfrecord"),
        ({"max_bytes": 1}, [1, 1, 1], "out-00000.tfrecord"),
        ({"max_records": 9, "compression": "gzip"}, [3], "out-00000-of-00001.tfrecord.gz"),
        ({"shards": 1, "suffix": ".rec"}, [3], "out-00000-of-00001.rec"),
    ],
)
def test_shards_by_number_records_or_bytes(
    tmp_path: Path, options: dict[str, object], sizes: list[int], first: str
) -> None:
    report = reshard(put(tmp_path, "three", THREE), tmp_path / "out", **options)  # type: ignore[arg-type]
    assert [row.records for row in report.files] == sizes
    assert base_name(report.files[0].path) == first
    got = [p for row in report.files for p in read_records(row.path)]
    assert got == list(PAYLOADS)


def test_an_empty_input_gives_one_empty_shard(tmp_path: Path) -> None:
    path = put(tmp_path, "a", b"")
    for options in ({"max_records": 2}, {"max_bytes": 100}, {"shards": 1}):
        prefix = tmp_path / f"out-{next(iter(options))}"
        (row,) = reshard(path, prefix, **options).files  # type: ignore[arg-type]
        assert row.records == 0


@pytest.mark.parametrize(
    "options", [{}, {"shards": 0}, {"shards": 1.5}, {"shards": 2, "max_bytes": 3}]
)
def test_exactly_one_limit_is_needed(tmp_path: Path, options: dict[str, Any]) -> None:
    needed = "give one of shards, max_records and max_bytes|shards must be a whole number"
    with pytest.raises(UsageError, match=needed):
        reshard(put(tmp_path, "a", THREE), tmp_path / "out", **options)
    with pytest.raises(UsageError, match=needed):
        ShardedWriter(tmp_path / "out", **options)


def test_an_interrupted_run_goes_on_behind_its_finished_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    payloads = [b"%d" % i * 30 for i in range(100)]
    path = put(tmp_path, "a", b"".join(golden.frame(p) for p in payloads))
    (tmp_path / "whole").mkdir()
    whole = reshard(path, tmp_path / "whole" / "x", max_records=13)
    finish = RecordWriter.close
    closed: list[str] = []

    def stop_after_three(writer: RecordWriter) -> None:
        if len(closed) == 3:
            raise KeyboardInterrupt
        closed.append(writer.path)
        finish(writer)

    monkeypatch.setattr(RecordWriter, "close", stop_after_three)
    with pytest.raises(KeyboardInterrupt):
        reshard(path, tmp_path / "x", max_records=13)
    monkeypatch.undo()
    assert sorted(p.name for p in tmp_path.glob("x-*")) == [
        *(base_name(p) for p in closed),
        "x-shards.json",
    ]
    kept = [Path(p).stat().st_mtime_ns for p in closed]
    again = reshard(path, tmp_path / "x", max_records=13)
    assert again.resumed == 3
    assert [Path(p).stat().st_mtime_ns for p in closed] == kept
    assert [row.digest for row in again.files] == [row.digest for row in whole.files]
    assert json.loads((tmp_path / "x-shards.json").read_text())["complete"] is True
    with pytest.raises(FileExistsError, match="x-00000-of-00008.tfrecord exists already"):
        reshard(path, tmp_path / "x", max_records=13)
    assert reshard(path, tmp_path / "x", max_records=13, overwrite=True).resumed == 0


def test_shards_that_would_remain_beside_the_new_ones_are_refused(tmp_path: Path) -> None:
    path = put(tmp_path, "a", THREE)
    reshard(path, tmp_path / "x", max_bytes=1)
    with pytest.raises(UsageError, match="x-00000.tfrecord: a shard of another set"):
        reshard(path, tmp_path / "x", max_bytes=1000, overwrite=True)
    reshard(path, tmp_path / "y", shards=2)
    with pytest.raises(UsageError, match="y-00000-of-00002.tfrecord: a shard of another set"):
        reshard(path, tmp_path / "y", shards=2, compression="gzip", overwrite=True)


def test_other_work_or_other_data_starts_anew(tmp_path: Path) -> None:
    path = put(tmp_path, "a", THREE)
    reshard(path, tmp_path / "x", max_records=1)
    place = tmp_path / "x-shards.json"
    place.write_text(place.read_text().replace('"complete": true', '"complete": false'))
    for shard in tmp_path.glob("x-0*"):
        shard.unlink()
    assert reshard(path, tmp_path / "x", max_records=2).resumed == 0
    place.write_text("not json")
    again = reshard(path, tmp_path / "x", max_records=2, overwrite=True)
    assert again.resumed == 0
    place.write_text(place.read_text().replace('"complete": true', '"complete": false'))
    (tmp_path / "x-00000-of-00002.tfrecord").unlink()
    assert reshard(path, tmp_path / "x", max_records=2, overwrite=True).resumed == 0


@pytest.mark.parametrize("shards", [None, 2])
def test_damage_stops_or_is_skipped_and_told_once(tmp_path: Path, shards: int | None) -> None:
    path = put(tmp_path, "a", golden.PAYLOAD_FLIP)

    def run(errors: str) -> object:
        if shards:
            return reshard(path, tmp_path / "o", shards=shards, errors=errors)  # type: ignore[arg-type]
        return merge(path, tmp_path / "o", errors=errors)  # type: ignore[arg-type]

    with pytest.raises(CorruptRecordError):
        run("raise")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    with pytest.warns(TfrioWarning) as warned:
        report = run("skip")
    assert len(warned) == 1
    assert report.records == 2  # type: ignore[attr-defined]
    assert report.damages.skipped_records == 1  # type: ignore[attr-defined]
    if shards:
        with pytest.raises(UsageError, match="must be 'raise' or 'skip'"):
            run("return")


def test_progress_ends_at_the_total(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    paths = [put(tmp_path, name, THREE) for name in ("a", "b")]
    merge(paths, tmp_path / "o", progress=lambda *now: calls.append(now))
    assert calls[-1] == (276, 276)
    assert calls == sorted(calls)


@settings(max_examples=40, deadline=None)
@given(
    payloads=st.lists(st.binary(max_size=60), max_size=30),
    limit=st.sampled_from(["shards", "max_records", "max_bytes"]),
    n=st.integers(1, 200),
)
def test_any_split_merges_back_to_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes], limit: str, n: int
) -> None:
    folder = tmp_path_factory.mktemp("r")
    data = b"".join(golden.frame(p) for p in payloads)
    path = put(folder, "in", data)
    if limit != "max_bytes":
        n = n % 12 + 1
    report = reshard(path, folder / "s", **{limit: n})  # type: ignore[arg-type]
    for row in report.files:
        if limit == "max_records":
            assert row.records <= n
        if limit == "max_bytes":
            assert row.bytes <= n or row.records == 1
    if limit == "shards":
        sizes = [row.records for row in report.files]
        assert len(sizes) == n
        assert max(sizes) - min(sizes) <= 1
    merge([row.path for row in report.files], folder / "back")
    assert (folder / "back").read_bytes() == data


def test_a_forgotten_sharded_writer_warns_and_leaves_no_shard(tmp_path: Path) -> None:
    forgotten = [ShardedWriter(tmp_path / "t", shards=2)]
    for payload in PAYLOADS:
        forgotten[0].write(payload)
    with pytest.warns(ResourceWarning, match="never closed"):
        forgotten.clear()
    assert list(tmp_path.iterdir()) == []


def test_dealt_out_shards_take_turns(tmp_path: Path) -> None:
    with ShardedWriter(tmp_path / "t", shards=2) as writer:
        for payload in PAYLOADS:
            writer.write(payload)
        assert list(tmp_path.glob("t-*")) == [], "no shard has a name before all are complete"
    assert [list(read_records(p)) for p in writer.paths] == [
        [PAYLOADS[0], PAYLOADS[2]],
        [PAYLOADS[1]],
    ]
    assert [base_name(p) for p in writer.paths] == [
        "t-00000-of-00002.tfrecord",
        "t-00001-of-00002.tfrecord",
    ]


@pytest.mark.parametrize("total", [True, False])
@pytest.mark.parametrize("limit", [{"max_records": 2}, {"max_bytes": 100}])
def test_filled_shards_are_named_with_or_without_their_total(
    tmp_path: Path, total: bool, limit: dict[str, int]
) -> None:
    import numpy as np

    writer = ShardedWriter(tmp_path / "t", suffix=".tfrecord.gz", total=total, **limit)  # type: ignore[arg-type]
    writer.write_framed(THREE, np.array([46, 92, 138]))
    writer.write(PAYLOADS[0])
    names = [base_name(p) for p in writer.close()]
    assert writer.close() == writer.paths
    of = "-of-00002" if total else ""
    assert names == [f"t-00000{of}.tfrecord.gz", f"t-00001{of}.tfrecord.gz"]
    assert writer.records == 4
    assert [p for f in expand(tmp_path) for p in read_records(f)] == [*PAYLOADS, PAYLOADS[0]]
    with pytest.raises(UsageError, match="writer is closed"):
        writer.write(b"")


class Interrupted(Exception):
    """Raised amid writing."""


@pytest.mark.parametrize("options", [{"shards": 3}, {"max_records": 1}])
def test_an_exception_leaves_no_shard(tmp_path: Path, options: dict[str, int]) -> None:
    def write() -> None:
        with ShardedWriter(tmp_path / "t", **options) as writer:  # type: ignore[arg-type]
            for payload in PAYLOADS:
                writer.write(payload)
            raise Interrupted

    with pytest.raises(Interrupted):
        write()
    assert list(tmp_path.iterdir()) == []


def test_a_remote_prefix_is_refused() -> None:
    with pytest.raises(UsageError, match="needs a local folder"):
        ShardedWriter("memory://x/t", shards=2)


def test_the_manifest_lies_beside_the_shards() -> None:
    assert module.manifest_path("o/x") == "o/x-shards.json"


def test_merging_never_replaces_a_file_unless_told(tmp_path: Path) -> None:
    """Also the last of its inputs, where the name of the output was forgotten."""
    first, second = put(tmp_path, "a", FRAMES[0]), put(tmp_path, "b", FRAMES[1])
    with pytest.raises(FileExistsError, match="exists already; name another, or set overwrite"):
        merge([first], second)
    assert second.read_bytes() == FRAMES[1]
    merge([first, second], second, overwrite=True)
    assert second.read_bytes() == FRAMES[0] + FRAMES[1]


def test_splitting_refuses_to_mix_with_another_set_of_the_same_prefix(tmp_path: Path) -> None:
    path = put(tmp_path, "a", THREE)
    reshard(path, tmp_path / "t", shards=2)
    for options in ({"shards": 3}, {"max_bytes": 100}):
        with pytest.raises(UsageError, match="a shard of another set with the same prefix"):
            reshard(path, tmp_path / "t", **options)  # type: ignore[arg-type]
    reshard(path, tmp_path / "t", shards=2, overwrite=True)
    reshard(path, tmp_path / "t2", shards=3)
    assert len(list(tmp_path.glob("t-0*"))) == 2


def test_two_sets_under_one_name_are_found(tmp_path: Path) -> None:
    for total in (1, 3):
        for index in range(total):
            put(tmp_path, f"t-{index:05d}-of-{total:05d}.tfrecord", THREE)
    report = verify(tmp_path)
    assert not report.ok
    assert "several sets of shards under one name, of 00001 and of 00003" in str(report.findings[0])


def test_remote_shards_are_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="splitting needs a local folder"):
        reshard(put(tmp_path, "a", THREE), "memory://d/s", shards=2)
