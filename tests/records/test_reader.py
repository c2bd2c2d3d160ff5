"""Reading records in order: golden files, compression, short reads, damage modes."""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import random
import tracemalloc
import zlib
from pathlib import Path

import pytest
from google.protobuf import wrappers_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.records import golden
from tests.records.golden import PAYLOADS, THREE, put
from tfrio.errors import CorruptRecordError, NotTFRecordError, TfrioWarning, UsageError
from tfrio.records.check import check_file
from tfrio.records.damage import Damage, DamageReport
from tfrio.records.reader import RecordStream, read_records
from tfrio.records.writer import RecordWriter
from tfrio.testing.reference import read_frames


class Dribble(io.RawIOBase):
    """A stream that cannot seek and returns few bytes a call."""

    def __init__(self, data: bytes, most: int = 7) -> None:
        self._data = io.BytesIO(data)
        self._most = most

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._data.read(self._most if size < 0 else min(size, self._most))


FORMS = {
    "plain": THREE,
    "gzip": golden.THREE_GZ,
    "gzip members": golden.THREE_MEMBERS,
    "zlib": golden.THREE_ZLIB,
    "zlib level 0": zlib.compress(THREE, 0),
    "zlib level 9": zlib.compress(THREE, 9),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("threads", [1, 3])
def test_compression_is_found_by_content_not_by_name(
    tmp_path: Path, form: str, threads: int
) -> None:
    path = put(tmp_path, "any-name.txt", FORMS[form])
    assert list(read_records(path, threads=threads)) == list(PAYLOADS)


def test_zlib_with_full_flush_between_records(tmp_path: Path) -> None:
    packer = zlib.compressobj(6)
    parts = [packer.compress(f) + packer.flush(zlib.Z_FULL_FLUSH) for f in golden.FRAMES]
    path = put(tmp_path, "a", b"".join(parts) + packer.flush())
    assert list(read_records(path, compression="zlib")) == list(PAYLOADS)


@pytest.mark.parametrize("form", FORMS)
def test_short_reads_of_a_stream_are_looped_until_full(form: str) -> None:
    assert list(read_records(Dribble(FORMS[form]))) == list(PAYLOADS)


def test_a_record_of_5_million_bytes_through_a_stream_of_64_kib_reads() -> None:
    payload = random.Random(5).randbytes(5_000_003)
    stream = Dribble(gzip.compress(golden.frame(payload), 1), 64 << 10)
    (got,) = read_records(stream)
    assert hashlib.sha256(got).digest() == hashlib.sha256(payload).digest()


class SmallSize(io.BytesIO):
    """An object whose size is that of its compressed form, as with transparent decompression."""

    size = 86


def test_a_size_that_is_too_small_is_only_a_hint() -> None:
    assert list(read_records(SmallSize(THREE))) == list(PAYLOADS)


@pytest.mark.parametrize("content", [b"", golden.EMPTY_GZ, zlib.compress(b"")])
def test_empty_files_hold_no_records(tmp_path: Path, content: bytes) -> None:
    assert list(read_records(put(tmp_path, "a", content))) == []


@pytest.mark.parametrize(
    ("content", "forced", "text"),
    [
        (golden.THREE_GZ, "none", r"this file is gzip \(magic 1f 8b\)"),
        (THREE, "gzip", "not gzip; looks like plain TFRecord"),
        (golden.THREE_GZ, "zlib", r"not zlib; this file is gzip"),
    ],
)
def test_a_forced_compression_that_does_not_fit_is_named(
    tmp_path: Path, content: bytes, forced: str, text: str
) -> None:
    with pytest.raises(NotTFRecordError, match=text):
        list(read_records(put(tmp_path, "three.gz.tfrecord", content), compression=forced))


def test_an_unknown_compression_lists_the_allowed_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'gzipp'; use one of 'none', 'gzip', 'zlib'"):
        list(read_records(put(tmp_path, "a", THREE), compression="gzipp"))


CUTS = [
    (golden.CUT_HEADER, "header cut: 7 of 12 bytes at offset 138; 3 whole records precede", 3),
    (golden.CUT_PAYLOAD, "payload cut: 8 of 30 bytes at offset 138; 3 whole records precede", 3),
    (golden.CUT_FOOTER, "footer cut: 2 of 4 bytes; record 2 at offset 92; 2 whole records", 2),
    (golden.LENGTH_CRC_FLIP, "length checksum mismatch at offset 46", 1),
    (golden.ZERO_TAIL, "offset 138.*stored 00000000, computed 07980329", 3),
    (golden.HUGE_LENGTH, "claims 1125899906842624 bytes but 2 remain", 0),
    (golden.header((1 << 64) - 1) + b"xx", "claims 18446744073709551615 bytes but 2 remain", 0),
]


@pytest.mark.parametrize(("content", "text", "whole"), CUTS)
def test_each_failure_says_what_where_and_how_many_records_precede(
    tmp_path: Path, content: bytes, text: str, whole: int
) -> None:
    path = put(tmp_path, "bad.tfrecord", content)
    got: list[bytes] = []
    with pytest.raises(CorruptRecordError, match=text) as caught:
        got.extend(read_records(path))
    assert got == list(PAYLOADS[:whole])
    assert caught.value.path == str(path)
    assert caught.value.record == whole


@pytest.mark.parametrize("k", range(1, 46))
def test_a_cut_names_the_field_and_its_bytes_add_up(tmp_path: Path, k: int) -> None:
    path = put(tmp_path, "cut.tfrecord", THREE[: 46 + k])
    with pytest.raises(CorruptRecordError) as caught:
        list(read_records(path))
    error = caught.value
    assert error.record == 1
    assert error.offset == 46
    expected = {"header": (12, k), "payload": (30, k - 12), "footer": (4, k - 42)}
    field = "header" if k < 12 else "payload" if k < 42 else "footer"
    assert (error.field, error.expected, error.got) == (field, *expected[field])


def test_a_length_of_2_to_the_50_allocates_next_to_nothing(tmp_path: Path) -> None:
    path = put(tmp_path, "huge.tfrecord", golden.HUGE_LENGTH)
    tracemalloc.start()
    with pytest.raises(CorruptRecordError, match="but 2 remain"):
        list(read_records(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_the_error_survives_pickling_with_its_attributes(tmp_path: Path) -> None:
    path = put(tmp_path, "payload_flip_rec1.tfrecord", golden.PAYLOAD_FLIP)
    with pytest.raises(CorruptRecordError) as caught:
        list(read_records([put(tmp_path, "three", THREE), path]))
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert (again.path, again.record, again.offset) == (str(path), 1, 46)
    rebuilt = CorruptRecordError(str(again))  # as a DataLoader worker does
    assert "payload_flip_rec1.tfrecord" in str(rebuilt)
    assert "offset 46" in str(rebuilt)


def test_skip_drops_counts_and_warns_once_per_file(tmp_path: Path) -> None:
    path = put(tmp_path, "payload_flip_rec1.tfrecord", golden.PAYLOAD_FLIP)
    report = DamageReport()
    with pytest.warns(TfrioWarning, match="skipped 1 damaged record ") as warned:
        got = list(read_records([path, put(tmp_path, "t", THREE)], errors="skip", report=report))
    assert got == [PAYLOADS[0], PAYLOADS[2], *PAYLOADS]
    assert len(warned) == 1
    assert report.to_dict() == {
        "skipped_records": 1,
        "bytes_lost": 46,
        "where": [[str(path), 1, 46]],
    }


def test_return_gives_the_damage_with_its_payload_in_place(tmp_path: Path) -> None:
    path = put(tmp_path, "a", golden.PAYLOAD_FLIP)
    first, damage, last = read_records(path, errors="return")
    assert (first, last) == (PAYLOADS[0], PAYLOADS[2])
    assert isinstance(damage, Damage)
    assert damage.payload == golden.PAYLOAD_FLIP[58:88]
    assert not damage.repairable


def test_more_bad_records_than_max_bad_stop_the_job(tmp_path: Path) -> None:
    frames = [golden.frame(b"payload %d" % i) for i in range(100)]
    for i in (3, 20, 21, 50, 99):
        frames[i] = golden.flipped(frames[i], 14)
    path = put(tmp_path, "rotten.tfrecord", b"".join(frames))
    with pytest.raises(CorruptRecordError, match="4 bad records > max_bad 3"):
        list(read_records(path, errors="skip", max_bad=3))
    report = DamageReport()
    with pytest.warns(TfrioWarning):
        got = list(read_records(path, errors="skip", max_bad=5, report=report))
    assert len(got) == 95
    assert report.skipped_records == 5


def test_a_damaged_block_counts_with_all_its_records(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord.gz"
    with RecordWriter(path) as writer:
        for payload in PAYLOADS:
            writer.write(payload)
    path.write_bytes(golden.flipped(path.read_bytes(), 60))  # in the only block
    report = DamageReport()
    with pytest.warns(TfrioWarning, match="skipped 3 damaged records"):
        assert list(read_records(path, errors="skip", report=report)) == []
    assert (report.skipped_records, len(report.damages)) == (3, 1)
    assert check_file(path).bad == 3
    with pytest.raises(CorruptRecordError, match="3 bad records > max_bad 2"):
        list(read_records(path, errors="skip", max_bad=2))


def test_an_unknown_error_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'raise', 'skip' or 'return'"):
        list(read_records(put(tmp_path, "a", THREE), errors="ignore"))  # type: ignore[call-overload]


def test_reading_starts_at_a_record_beyond_4_gb_of_a_sparse_file(tmp_path: Path) -> None:
    path = tmp_path / "sparse.tfrecord"
    with path.open("wb") as file:
        file.seek(5_000_000_000)
        file.write(golden.FRAMES[0])
    assert list(read_records(path, start=5_000_000_000)) == [PAYLOADS[0]]
    with RecordStream(path, start=5_000_000_000) as stream:
        assert stream.position == 5_000_000_000


@pytest.mark.parametrize("content", [golden.THREE_GZ, golden.THREE_ZLIB])
def test_start_counts_uncompressed_bytes(tmp_path: Path, content: bytes) -> None:
    assert list(read_records(put(tmp_path, "a", content), start=46)) == list(PAYLOADS[1:])


def test_foreign_payloads_come_raw_with_their_crc_checked(tmp_path: Path) -> None:
    payloads = [b"\x08\x96\x01", random.Random(1).randbytes(500)]
    path = put(tmp_path, "waymo", b"".join(golden.frame(p) for p in payloads))
    assert list(read_records(path)) == payloads
    numbers = put(tmp_path, "numbers", golden.frame(payloads[0]))
    parse = wrappers_pb2.Int64Value.FromString  # any callable that takes bytes
    assert [message.value for message in map(parse, read_records(numbers))] == [150]


def test_checks_of_payloads_can_be_turned_off_by_name(tmp_path: Path) -> None:
    path = put(tmp_path, "a", golden.PAYLOAD_FLIP)
    assert len(list(read_records(path, verify=False))) == 3


@settings(max_examples=60, deadline=None)
@given(
    payloads=st.lists(st.binary(max_size=300), max_size=20),
    buffer_size=st.integers(64, 400),
    packed=st.sampled_from(["none", "gzip", "zlib"]),
)
def test_any_records_come_back_through_any_buffer(
    payloads: list[bytes], buffer_size: int, packed: str
) -> None:
    data = b"".join(golden.frame(p) for p in payloads)
    pack = {"none": bytes, "gzip": gzip.compress, "zlib": zlib.compress}[packed]
    got = []
    with RecordStream(io.BytesIO(pack(data)), buffer_size=buffer_size, threads=1) as stream:
        while True:
            found, cut = read_frames(bytes(stream.buffer))
            assert cut is None or (not stream.final and cut.code.endswith("cut"))
            got += found
            stream.advance(sum(len(p) + 16 for p in found), len(found))
            if stream.final:
                break
            stream.fill()
        assert stream.position == len(data)
    assert got == payloads


def test_a_large_file_is_mapped_and_a_record_larger_than_the_mapping_is_seen(
    tmp_path: Path,
) -> None:
    large = random.Random(2).randbytes(40 << 20)
    data = THREE + golden.frame(large) + THREE
    path = put(tmp_path, "large.tfrecord", data)
    got = list(read_records(path))
    assert [len(p) for p in got] == [30, 30, 30, 40 << 20, 30, 30, 30]
    assert got[3] == large
