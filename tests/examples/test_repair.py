"""Repair keeps every whole record and says what it dropped."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from tests.records import golden
from tests.records.golden import PAYLOADS, THREE, put
from tfrio.errors import NotTFRecordError, UsageError
from tfrio.examples.repair import repair
from tfrio.records.reader import read_records
from tfrio.records.writer import RecordWriter


@pytest.mark.parametrize(
    ("content", "kept", "text"),
    [
        (golden.CUT_PAYLOAD, 3, "kept 3, dropped 20 bytes"),
        (golden.JUNK_BETWEEN, 3, "37 bytes dropped, goes on at offset 83"),
        (golden.LENGTH_CRC_FLIP, 3, r"kept 3, dropped 0 bytes; .* \(1 repaired header\)"),
        (golden.LENGTH_FLIP, 3, "header repaired, payload intact"),
        (golden.LENGTH_FLIP, 3, "record 1 at offset 46 "),
        (golden.THREE_GZ + bytes(99), 3, "record 3 at uncompressed offset "),
        (golden.ZERO_TAIL, 3, "dropped 4096 bytes"),
        (THREE, 3, "nothing to do"),
        (golden.THREE_GZ + bytes(99), 3, "kept 3, dropped 0 bytes"),
    ],
)
def test_what_can_be_saved_is_byte_for_byte_the_original(
    tmp_path: Path, content: bytes, kept: int, text: str
) -> None:
    path = put(tmp_path, "damaged", content)
    report = repair(path, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == THREE
    assert report.kept == kept
    assert re.search(text, report.text), report.text
    assert path.read_bytes() == content, "the input is never touched"


def test_a_damaged_payload_is_dropped_and_told(tmp_path: Path) -> None:
    report = repair(put(tmp_path, "a", golden.PAYLOAD_FLIP), tmp_path / "out")
    assert list(read_records(tmp_path / "out")) == [PAYLOADS[0], PAYLOADS[2]]
    assert (report.kept, report.dropped_bytes, report.repaired_headers) == (2, 46, 0)
    assert json.loads(json.dumps(report.to_dict()))["damages"][0]["record"] == 1


def test_where_nothing_can_be_kept_no_file_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord.gz"
    with RecordWriter(path) as writer:
        for payload in PAYLOADS:
            writer.write(payload)
    path.write_bytes(golden.flipped(path.read_bytes(), 60))  # in the only block
    report = repair(path, tmp_path / "out.tfrecord.gz")
    assert (report.kept, report.clean) == (0, False)
    assert "out.tfrecord.gz is not written, as nothing could be kept" in report.text
    assert "3 records of this gzip block lost, 138 bytes dropped" in report.text
    assert report.damages[0].to_dict()["lost_records"] == 3
    assert [p.name for p in tmp_path.iterdir()] == ["a.tfrecord.gz"]


def test_a_cut_gzip_file_gives_up_every_whole_record(tmp_path: Path) -> None:
    frames = [golden.frame(bytes([i]) * 4000) for i in range(50)]
    cut = gzip.compress(b"".join(frames), 0)[: 50 * 2000]
    report = repair(put(tmp_path, "a.gz", cut), tmp_path / "out.tfrecord.gz")
    assert report.kept == 24
    assert list(read_records(tmp_path / "out.tfrecord.gz")) == [f[12:-4] for f in frames[:24]]


def test_the_input_is_never_overwritten_unless_told(tmp_path: Path) -> None:
    path = put(tmp_path, "a", golden.CUT_PAYLOAD)
    with pytest.raises(UsageError, match="repair writes a new file"):
        repair(path, tmp_path / "." / "a")
    other = put(tmp_path, "b", b"something else")
    with pytest.raises(FileExistsError):
        repair(path, other)
    assert path.read_bytes() == golden.CUT_PAYLOAD
    assert other.read_bytes() == b"something else"
    repair(path, path, overwrite=True)
    assert path.read_bytes() == THREE


def test_a_stranger_is_refused_and_leaves_no_output(tmp_path: Path) -> None:
    with pytest.raises(NotTFRecordError):
        repair(put(tmp_path, "a", b"<html></html>"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_progress_ends_at_the_size(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    repair(put(tmp_path, "a", THREE), tmp_path / "o", progress=lambda *now: calls.append(now))
    assert calls[-1] == (138, 138)
