"""Compression: found by content, inflated in pieces, blocks that tell their size."""

from __future__ import annotations

import gzip
import io
import os
import random
import struct
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.records import golden
from tfrio.compression import (
    BLOCK_SIZE,
    Member,
    check_level,
    deflate_member,
    detect,
    inflate,
    member_at,
    open_chunks,
)
from tfrio.compression.blocks import HEADER_SIZE, block_header, parse_header
from tfrio.compression.inflate import inflate_block
from tfrio.compression.source import usable_threads
from tfrio.errors import CompressedDataError, NotTFRecordError, UsageError
from tfrio.records.reader import RecordStream
from tfrio.storage.reading import ObjectReader

DATA = random.Random(0).randbytes(3000) * 900 + b"end"


def blocked(data: bytes, size: int = 100_000, level: int = 2) -> bytes:
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    return b"".join(deflate_member(piece, 1, level=level) for piece in pieces)


def named_gzip(data: bytes) -> bytes:
    """Return gzip with file name, comment and header checksum."""
    head = b"\x1f\x8b\x08\x1a" + bytes(4) + b"\x00\x03name\0a comment\0"
    head += struct.pack("<H", zlib.crc32(head) & 0xFFFF)
    return head + golden.raw_deflate(data) + struct.pack("<II", zlib.crc32(data), len(data))


FORMS = {
    "plain": DATA,
    "gzip": gzip.compress(DATA, 1),
    "members": gzip.compress(DATA[:999], 1) + gzip.compress(b"") + gzip.compress(DATA[999:], 9),
    "many small members": b"".join(
        gzip.compress(DATA[i : i + 7], 1) for i in range(0, 20_000, 7)
    ) + gzip.compress(DATA[20_006:]),
    "named": named_gzip(DATA),
    "blocked": blocked(DATA),
    "blocked then ordinary": blocked(DATA[:500_000]) + gzip.compress(DATA[500_000:], 1),
    "ordinary then blocked": gzip.compress(DATA[:500_000], 1) + blocked(DATA[500_000:]),
    "bgzf": golden.bgzf(DATA),
    "zlib": zlib.compress(DATA, 6),
}  # fmt: skip


def drain(source: object, size: int) -> bytes:
    buffer = memoryview(bytearray(size))
    parts = []
    while got := source.readinto(buffer):  # type: ignore[attr-defined]
        parts.append(bytes(buffer[:got]))
    return b"".join(parts)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [997, 1 << 20])
def test_every_form_gives_the_same_bytes(form: str, threads: int, size: int) -> None:
    source = open_chunks(io.BytesIO(FORMS[form]), threads=threads)
    try:
        assert drain(source, size) == DATA
        assert source.ended
        assert source.consumed == len(FORMS[form])
    finally:
        source.close()
    kind = "zlib" if form == "zlib" else "none" if form == "plain" else "gzip"
    assert source.compression == kind


def test_members_are_counted() -> None:
    for form, members in (("plain", 0), ("gzip", 1), ("members", 3), ("zlib", 1), ("blocked", 28)):
        for threads in (1, 2):
            source = open_chunks(io.BytesIO(FORMS[form]), threads=threads)
            drain(source, 1 << 16)
            assert source.members == members
            source.close()


def test_closing_early_stops_all_threads() -> None:
    before = threading.active_count()
    for form in ("gzip", "blocked", "zlib"):
        source = open_chunks(io.BytesIO(FORMS[form]), threads=3)
        assert source.readinto(memoryview(bytearray(300_000))) == 300_000
        source.close()
    assert threading.active_count() == before


@pytest.mark.parametrize("form", ["gzip", "blocked"])
def test_a_forgotten_stream_leaves_no_thread_behind(form: str) -> None:
    before = threading.active_count()
    noise = random.Random(1).randbytes(40 << 20)
    stream = RecordStream(io.BytesIO(FORMS[form] + gzip.compress(noise, 0)), threads=3)
    assert stream.fill()
    forgotten = [stream]
    del stream
    forgotten.clear()
    for _ in range(200):
        if threading.active_count() == before:
            break
        time.sleep(0.02)
    assert threading.active_count() == before


def test_small_files_start_no_thread() -> None:
    before = threading.active_count()
    source = open_chunks(io.BytesIO(gzip.compress(b"abc")), threads=4)
    assert drain(source, 100) == b"abc"
    assert threading.active_count() == before
    source.close()


@pytest.mark.parametrize("form", ["plain", "gzip", "blocked", "zlib"])
def test_a_start_is_an_uncompressed_offset(form: str) -> None:
    source = open_chunks(io.BytesIO(FORMS[form]), start=1_234_567)
    assert drain(source, 1 << 20) == DATA[1_234_567:]
    source.close()


@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_without_data_are_not_the_end(threads: int) -> None:
    empty = deflate_member(b"", 0)
    data = empty + blocked(DATA[:250_000]) + empty + empty + gzip.compress(b"") + blocked(DATA)
    source = open_chunks(io.BytesIO(data), threads=threads)
    assert drain(source, 1 << 20) == DATA[:250_000] + DATA
    source.close()


def test_an_error_waits_until_all_before_it_was_handed_out() -> None:
    data = bytearray(FORMS["blocked"])
    whole = blocked(DATA[:300_000])
    data[len(whole) + HEADER_SIZE + 50] ^= 1
    for threads in (1, 3):
        source = open_chunks(io.BytesIO(bytes(data)), threads=threads)
        buffer = memoryview(bytearray(1 << 20))
        assert source.readinto(buffer) == 300_000
        with pytest.raises(CompressedDataError, match="gzip block at compressed bytes") as caught:
            source.readinto(buffer)
        assert caught.value.resumable
        assert (caught.value.expected, caught.value.got) == (100_000, 1)
        assert drain(source, 1 << 20) == DATA[400_000:]
        source.close()


def test_a_failing_disk_is_told_as_it_is() -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() > 1000:
                raise OSError("input/output error")
            return super().read(1000)

    for threads in (1, 3):
        source = open_chunks(Failing(FORMS["gzip"]), threads=threads)
        with pytest.raises(OSError, match="input/output error"):
            drain(source, 1 << 20)
        source.close()


def test_detection_prefers_a_valid_record_header() -> None:
    assert detect(golden.header(0x9C78)) == "none"
    assert detect(golden.THREE_GZ) == "gzip"
    assert detect(golden.THREE_ZLIB) == "zlib"
    assert detect(b"x\x9c not really zlib" * 9) == "none"
    assert detect(b"") == "none"
    assert detect(zlib.compress(b"")) == "zlib"


def test_a_forced_compression_that_does_not_fit_names_what_is_there() -> None:
    with pytest.raises(NotTFRecordError, match="not gzip; its first bytes are 3c 68 74 6d"):
        open_chunks(io.BytesIO(b"<html><body>"), "gzip")
    open_chunks(io.BytesIO(b""), "gzip").close()


def test_a_block_tells_its_sizes() -> None:
    member = deflate_member(DATA, 17)
    assert member_at(member) == Member(len(member), len(DATA), 17)
    assert gzip.decompress(member) == DATA
    header = parse_header(member)
    assert header is not None
    assert header.length == HEADER_SIZE
    assert inflate_block(member, header, name="x", start=0) == DATA
    assert member_at(gzip.compress(DATA)) is None
    assert member_at(b"no gzip at all") is None
    assert member_at(golden.bgzf(DATA)) == Member(
        struct.unpack("<H", golden.bgzf(DATA)[16:18])[0] + 1, -1, -1
    )


def test_sizes_beyond_32_bits_fit_in_the_header() -> None:
    header = block_header(5_000_000_000, 6_000_000_000, 3)
    assert member_at(header) == Member(5_000_000_000, 6_000_000_000, 3)


def test_a_header_is_asked_for_until_it_is_whole_and_its_checksum_holds() -> None:
    for whole in (deflate_member(b"x", 1)[:HEADER_SIZE], named_gzip(b"")[:27]):
        for size in range(len(whole)):
            assert parse_header(whole[:size]) is None
        header = parse_header(whole)
        assert header is not None
        assert header.length == len(whole)
        with pytest.raises(ValueError, match="checksum of the gzip header differs"):
            parse_header(golden.flipped(whole, len(whole) - 1))
    with pytest.raises(ValueError, match="no gzip magic"):
        parse_header(b"PK")


def test_a_huge_claimed_member_is_inflated_as_it_arrives(tmp_path: Path) -> None:
    body = golden.raw_deflate(b"abc")
    trailer = struct.pack("<II", zlib.crc32(b"abc"), 3)
    source = open_chunks(io.BytesIO(block_header(1 << 60, 1 << 60, 1) + body + trailer))
    assert drain(source, 100) == b"abc"
    source.close()


@pytest.mark.parametrize("level", [0, 10, 2.5, "6"])
def test_levels_are_1_to_9(level: object) -> None:
    with pytest.raises(UsageError, match="must be 1 to 9"):
        check_level(level)  # type: ignore[arg-type]


def test_threads_are_at_most_4_unless_asked_for() -> None:
    assert 1 <= usable_threads(None) <= 4
    assert usable_threads(9) == 9
    assert usable_threads(0) == 1
    assert BLOCK_SIZE == 1 << 20


@settings(max_examples=80, deadline=None)
@given(
    pieces=st.lists(st.tuples(st.binary(max_size=2000), st.sampled_from("gbn")), max_size=8),
    cut=st.integers(0, 400),
    threads=st.sampled_from([1, 2]),
)
def test_a_cut_anywhere_gives_all_before_it_then_one_error(
    pieces: list[tuple[bytes, str]], cut: int, threads: int
) -> None:
    packers = {"g": gzip.compress, "b": lambda data: deflate_member(data, 1), "n": named_gzip}
    members = [packers[how](data) for data, how in pieces]
    whole = b"".join(members)
    if cut >= len(whole):
        return
    kept = whole[: len(whole) - cut]
    source = open_chunks(io.BytesIO(kept), "gzip", threads=threads)
    got = bytearray()
    buffer = memoryview(bytearray(777))
    errors = 0
    for _ in range(100):
        try:
            size = source.readinto(buffer)
        except CompressedDataError as error:
            assert error.code == "cut"  # noqa: PT017 - errors are counted here
            errors += 1
            continue
        if not size:
            break
        got += buffer[:size]
    source.close()
    data = b"".join(piece for piece, _ in pieces)
    assert data.startswith(bytes(got))
    ends = [sum(map(len, members[:i])) for i in range(len(members) + 1)]
    assert errors == (len(kept) not in ends)


_HASH_OF_BLOCKS = """
import hashlib, random, sys
from concurrent.futures import ThreadPoolExecutor
from tfrio.compression import deflate_member, zlib_compressor

source = random.Random(1)
blocks = [source.randbytes(source.randrange(30)) * source.randrange(1, 40) for _ in range(300)]
blocks += [source.randbytes(source.randrange(1, 300)) * source.randrange(1, 900) for _ in range(30)]
blocks += [source.randbytes(200_000), bytes(1 << 20), b""]
noise = [source.randbytes(source.randrange(200_000)) for _ in range(5)]

def pack(k):
    level = k % 9 + 1
    deflate_member(noise[k % 5], 1, level=level)  # what the next one finds in the memory it gets
    stream = zlib_compressor(level)
    return deflate_member(blocks[k], 1, level=level) + stream.compress(blocks[k]) + stream.flush()

order = list(range(len(blocks)))
random.Random(sys.argv[1]).shuffle(order)
with ThreadPoolExecutor(3) as pool:
    packed = dict(zip(order, pool.map(pack, order)))
print(hashlib.sha256(b"".join(packed[k] for k in sorted(packed))).hexdigest())
"""


def test_the_same_input_gives_the_same_bytes_in_any_process_thread_and_memory() -> None:
    """MALLOC_PERTURB_ makes glibc fill new memory with a byte; elsewhere it does nothing."""
    found = {
        subprocess.run(
            [sys.executable, "-c", _HASH_OF_BLOCKS, fill],
            env={**os.environ, "PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": fill},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for fill in ("0", "1", "85", "170", "255")
    }
    assert len(found) == 1


@pytest.mark.parametrize("level", range(1, 10))
def test_every_level_can_be_read_and_is_no_larger_than_the_one_below(level: int) -> None:
    data = b"".join(golden.frame(b"%d" % (i * i)) for i in range(20_000))
    member = deflate_member(data, 20_000, level=level)
    assert gzip.decompress(member) == data
    lower = deflate_member(data, 20_000, level=max(level - 1, 1))
    assert len(member) <= len(lower) * 1.02


def test_a_flipped_bit_of_a_block_is_told() -> None:
    data = b"abc" * 300 + DATA[:300]
    member = deflate_member(data, 3)
    header = parse_header(member)
    assert header is not None
    without_meaning = 0  # the last byte of the deflate data may be filled up with any bits
    for bit in range(header.length * 8, len(member) * 8):
        bad = golden.flipped(member, bit // 8, 1 << bit % 8)
        try:
            assert inflate_block(bad, header, name="x", start=7) == data
            without_meaning += 1
        except CompressedDataError as error:
            assert "in the gzip block at compressed bytes 7 to" in error.message  # noqa: PT017
    assert without_meaning < 8


@pytest.mark.parametrize(
    ("usize", "why"),
    [
        (1 << 40, "1099511627776 bytes claimed of "),
        (899, "900 bytes inflated where 899 should be"),
        (901, "900 bytes inflated where 901 should be"),
        (0, "1 bytes inflated where 0 should be"),
    ],
)
def test_a_block_that_claims_another_size_is_told(usize: int, why: str) -> None:
    member = deflate_member(b"abc" * 300, 3)
    bad = block_header(len(member), usize, 3) + member[HEADER_SIZE:]
    header = parse_header(bad)
    assert header is not None
    with pytest.raises(CompressedDataError, match=why):
        inflate_block(bad, header, name="x", start=0)


@pytest.mark.parametrize("feed", [1, 3, 7])
def test_members_of_any_size_are_read_however_little_is_fed_at_once(
    monkeypatch: pytest.MonkeyPatch, feed: int
) -> None:
    for name in ("_FEED", "_FIRST_FEED", "_READ"):
        monkeypatch.setattr(inflate, name, feed)
    data = b"".join(gzip.compress(b"%d" % n * (n % 5), 6) for n in range(40))
    source = open_chunks(io.BytesIO(data), threads=1)
    room = bytearray(1000)
    got = source.readinto(memoryview(room))
    assert bytes(room[:got]) == b"".join(b"%d" % n * (n % 5) for n in range(40))
    assert source.members == 40


def test_bytes_given_back_come_again_though_they_were_dropped() -> None:
    reader = ObjectReader(io.BytesIO(b"0123456789"), "a", owned=False)
    given = inflate.Input(reader, b"", 0)
    taken = bytes(given.take(4))
    assert bytes(given.view(3)) == b"456"
    given = inflate.Input(reader, b"", 10)  # nothing of what is given back is at hand
    given.give_back(taken + b"456")
    assert given.offset == 3
    assert given.peek(99) == b"0123456"
