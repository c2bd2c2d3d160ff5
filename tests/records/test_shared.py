"""Hand-made and real files beside the checkout give what their case table states."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfrio.errors import CorruptRecordError, NotTFRecordError
from tfrio.records.reader import read_records
from tfrio.records.sequence import RecordSequence
from tfrio.records.verify import verify

# Name -> sound records, damages.
EXPECTED = {
    "empty.tfrecord": (0, 0),
    "empty.tfrecord.gz": (0, 0),
    "hugelen.tfrecord": (0, 1),
    "junk_between.tfrecord": (3, 1),
    "lencrc_flip_rec1.tfrecord": (2, 1),
    "length_flip_rec1.tfrecord": (2, 1),
    "payload_flip_rec1.tfrecord": (2, 1),
    "seq.tfrecord": (1, 0),
    "three.gz.tfrecord": (3, 0),
    "three.tfrecord": (3, 0),
    "three.tfrecord.gz": (3, 0),
    "three.zlib.tfrecord": (3, 0),
    "three_cut.tfrecord.gz": (49, 1),
    "three_members.tfrecord.gz": (3, 0),
    "trunc_footer.tfrecord": (2, 1),
    "trunc_header.tfrecord": (3, 1),
    "trunc_payload.tfrecord": (3, 1),
    "value_flip_rec1.tfrecord": (2, 1),
    "zero_tail.tfrecord": (3, 1),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_hand_made_file_is_counted_rightly(shared: Path, name: str) -> None:
    (file,) = verify(shared / "fixtures" / name).files
    assert (file.good, file.bad) == EXPECTED[name]
    if file.bad:
        with pytest.raises(CorruptRecordError):
            list(read_records(shared / "fixtures" / name))


@pytest.mark.parametrize("name", ["html.tfrecord", "lfs_pointer.tfrecord"])
def test_strangers_are_refused(shared: Path, name: str) -> None:
    with pytest.raises(NotTFRecordError):
        list(read_records(shared / "fixtures" / name))


def test_every_real_file_reads_with_its_checksums_and_by_number(shared: Path) -> None:
    files = [
        p
        for p in sorted((shared / "data" / "wild").glob("*/*"))
        if p.is_file() and p.suffix != ".tfrindex"
    ]
    report = verify(files)
    assert all(file.ok for file in report.files)
    assert report.records == 83_997
    for file in report.files:
        if file.records and (file.bytes or 0) < 1 << 20:
            records = RecordSequence(file.path, index="memory")
            assert len(records) == file.records
            assert records[-1] == list(read_records(file.path))[-1]
            records.close()
