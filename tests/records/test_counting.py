"""Counting and the first records, by headers or in full."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from tests.records import golden
from tests.records.golden import PAYLOADS, THREE, put
from tfrio.errors import CorruptRecordError, NotTFRecordError
from tfrio.records import counting
from tfrio.records.counting import count, head
from tfrio.records.reader import RecordStream
from tfrio.records.writer import RecordWriter
from tfrio.storage import atomic_write


def folder_of_all(tmp_path: Path) -> Path:
    put(tmp_path, "a.tfrecord", THREE)
    put(tmp_path, "b.tfrecord.gz", golden.THREE_MEMBERS)
    put(tmp_path, "c.tfrecord", golden.THREE_ZLIB)
    with RecordWriter(tmp_path / "d.tfrecord.gz", block_size=40) as writer:
        for payload in PAYLOADS:
            writer.write(payload)
    put(tmp_path, "e.tfrecord.gz", golden.EMPTY_GZ)
    return tmp_path


@pytest.mark.parametrize("verify", [True, False])
def test_every_form_is_counted_file_by_file(tmp_path: Path, verify: bool) -> None:
    report = count(folder_of_all(tmp_path), verify=verify)
    assert [f.records for f in report.files] == [3, 3, 3, 3, 0]
    assert report.records == 12
    assert report.bytes == sum(p.stat().st_size for p in tmp_path.iterdir())
    first = json.loads(json.dumps(report.to_dict()))["files"][0]
    assert first == {"path": str(tmp_path / "a.tfrecord"), "records": 3, "bytes": 138}


def test_foreign_payloads_and_urls_count_too(tmp_path: Path) -> None:
    path = put(tmp_path, "waymo", golden.frame(b"\x08\x96\x01") + golden.frame(b"?"))
    assert count(path).records == 2
    with atomic_write("memory://count/a.tfrecord") as file:
        file.write(THREE)
    assert count("memory://count/a.tfrecord").records == 3


@pytest.mark.parametrize(
    "content", [golden.ZERO_TAIL, golden.CUT_FOOTER, golden.LENGTH_FLIP, golden.THREE_GZ[:-9]]
)
@pytest.mark.parametrize("verify", [True, False])
def test_damage_is_an_error_and_never_a_count(tmp_path: Path, content: bytes, verify: bool) -> None:
    with pytest.raises(CorruptRecordError):
        count(put(tmp_path, "a", content), verify=verify)


def test_a_flipped_payload_is_seen_only_when_asked(tmp_path: Path) -> None:
    path = put(tmp_path, "a", golden.PAYLOAD_FLIP)
    assert count(path).records == 3
    with pytest.raises(CorruptRecordError):
        count(path, verify=True)


def test_a_stranger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotTFRecordError):
        count(put(tmp_path, "a", b"<html></html>"))


def test_blocked_gzip_is_counted_without_inflating(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_of_all(tmp_path)
    monkeypatch.setattr(counting, "tally", None)
    assert count(tmp_path / "d.tfrecord.gz").records == 3
    assert count(tmp_path / "a.tfrecord").records == 3


def test_head_reads_no_more_than_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = [golden.frame(random.Random(i).randbytes(9000)) for i in range(2000)]
    path = put(tmp_path, "a.tfrecord.gz", gzip.compress(b"".join(frames), 0))
    fills: list[int] = []
    fill = RecordStream.fill
    monkeypatch.setattr(RecordStream, "fill", lambda s: (fills.append(1), fill(s))[1])
    assert head(path, 2) == [f[12:-4] for f in frames[:2]]
    assert len(fills) == 1
    assert head([put(tmp_path, "b", THREE), put(tmp_path, "c", THREE)], 4) == [
        *PAYLOADS,
        PAYLOADS[0],
    ]
    assert head(path, 0) == []
