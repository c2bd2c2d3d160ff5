"""Framing: golden files, every cut, every flipped bit, bytes put in and taken out."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.test_decoder import THREE
from tfrio import _core
from tfrio.testing import reference


def payloads(data: bytes) -> list[bytes]:
    scan = _core.scan(data)
    return [data[at : at + size] for at, size in scan.spans.tolist()]


def outcome(data: bytes) -> tuple[list[bytes], tuple[str, int, int] | None]:
    """Return payloads and damage as the native core sees them."""
    scan = _core.scan(data, final=True)
    fault = scan.fault
    found = [data[at : at + size] for at, size in scan.spans.tolist()]
    assert scan.consumed == sum(len(p) + 16 for p in found)
    return found, fault and (fault.code, fault.record, fault.offset)


def expected(data: bytes) -> tuple[list[bytes], tuple[str, int, int] | None]:
    """Return the same as the plain reader sees it."""
    found, damage = reference.read_frames(data)
    return found, damage and (damage.code, damage.record, damage.offset)


def test_golden_frames() -> None:
    assert _core.frame([]) == b""
    assert _core.frame([b""]).hex() == "000000000000000029039807d8ea82a2"
    example = bytes.fromhex("0a0c0a0a0a016112051a030a0101")
    framed = "0e00000000000000c5e5693f0a0c0a0a0a016112051a030a010139e87850"
    assert _core.frame([example]).hex() == framed
    assert _core.frame([bytearray(b"ab"), memoryview(b"c")]) == _core.frame([b"ab"]) + _core.frame(
        [b"c"]
    )


@given(st.lists(st.binary(max_size=300), max_size=6))
def test_frames_come_back(records: list[bytes]) -> None:
    data = _core.frame(records)
    assert data == b"".join(map(reference.frame, records))
    assert outcome(data) == (records, None)
    assert _core.count(data).records == len(records)


def test_every_flipped_bit_of_a_file_is_reported() -> None:
    reported = 0
    for bit in range(len(THREE) * 8):
        data = bytearray(THREE)
        data[bit // 8] ^= 1 << (bit % 8)
        found, damage = outcome(bytes(data))
        assert found == payloads(THREE)[: bit // 8 // 46]
        assert damage == expected(bytes(data))[1]
        reported += damage is not None
    assert reported == 1104


def test_every_cut_is_reported() -> None:
    for size in range(len(THREE)):
        found, damage = outcome(THREE[:size])
        assert (found, damage) == expected(THREE[:size])
        assert (damage is None) == (size % 46 == 0)
        waiting = _core.scan(THREE[:size])
        assert waiting.fault is None
        assert waiting.consumed == size // 46 * 46


@pytest.mark.parametrize("n", range(1, 65))
def test_bytes_put_in_or_taken_out_are_reported(n: int) -> None:
    rng = random.Random(n)
    for at in range(0, len(THREE), 5):
        longer = THREE[:at] + rng.randbytes(n) + THREE[at:]
        shorter = THREE[:at] + THREE[at + n :]
        for data in (longer, shorter):
            found, damage = outcome(data)
            assert (found, damage) == expected(data)
            assert len(found) <= 3
            # What comes off at a border of records leaves a sound, shorter file.
            assert damage is not None or set(found) <= set(payloads(THREE))


def test_faults_say_what_was_expected() -> None:
    data = bytearray(THREE)
    data[46 + 20] ^= 1
    fault = _core.scan(data).fault
    assert (fault.code, fault.field, fault.record, fault.offset) == (
        "payload-crc",
        "payload",
        1,
        46,
    )
    assert fault.got == struct.unpack_from("<I", THREE, 88)[0]
    assert fault.expected == _core.masked_crc32c(data[58:88])
    assert (fault.feature, fault.step, fault.at, fault.reason) == (b"", -1, -1, "")
    assert "payload-crc" in repr(fault)
    cut = _core.count(THREE[:-2], final=True).fault
    assert (cut.code, cut.field, cut.expected, cut.got) == ("footer-cut", "footer", 4, 2)


def test_a_length_is_not_believed() -> None:
    for length in (1 << 50, (1 << 64) - 1):
        header = struct.pack("<Q", length)
        data = header + struct.pack("<I", _core.masked_crc32c(header)) + b"xx"
        for final in (False, True):
            fault = _core.scan(data, final=final).fault
            assert (fault.code, fault.expected, fault.got) == ("too-long", length, 2)


def test_checks_left_out_on_request() -> None:
    data = bytearray(THREE)
    data[46 + 20] ^= 1
    assert _core.count(data, verify_payload=False).records == 3
    assert _core.scan(data, 0, 1).consumed == 46
    assert _core.scan(data, 92).spans.tolist() == [[104, 30]]
    with pytest.raises(IndexError):
        _core.scan(data, -1)


def test_find_record_steps_over_damage() -> None:
    junk = THREE[:46] + bytes(37) + THREE[46:]
    assert _core.find_record(junk, 47) == (83, True)
    broken = bytearray(THREE)
    broken[46 + 20] ^= 1
    assert _core.find_record(broken, 47) == (92, True)
    assert _core.find_record(broken, 46) == (92, True)
    assert _core.find_record(THREE[:-6], 47 + 46, final=True) == (-1, True)
    assert _core.find_record(THREE[:-6], 92) == (92, False)
    assert _core.find_record(b"", 0) == (-1, True)


@given(st.binary(max_size=60), st.lists(st.binary(max_size=40), min_size=1, max_size=3))
def test_find_record_finds_what_follows_junk(junk: bytes, records: list[bytes]) -> None:
    data = junk + _core.frame(records)
    at, certain = _core.find_record(data, 0, final=True)
    assert certain
    assert 0 <= at <= len(junk)
    assert _core.count(data, at).records >= 1


def test_frame_refuses_what_is_not_bytes() -> None:
    with pytest.raises(TypeError):
        _core.frame(["text"])


def test_golden_files(shared: Path) -> None:
    for path in sorted((shared / "fixtures").glob("*.tfrecord")):
        data = path.read_bytes()
        assert outcome(data) == expected(data), path.name
