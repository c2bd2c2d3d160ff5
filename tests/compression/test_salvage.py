"""Of a damaged block every record is given that is certain, and the others are counted exactly."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.records import golden
from tfrio.compression.blocks import HEADER_SIZE, parse_header
from tfrio.compression.deflate import deflate_member
from tfrio.compression.salvage import Gap, save_block
from tfrio.errors import CorruptRecordError, TfrioWarning
from tfrio.examples.repair import repair
from tfrio.records.damage import Damage
from tfrio.records.index import read_blocks
from tfrio.records.reader import read_records
from tfrio.records.sequence import RecordSequence
from tfrio.records.verify import verify
from tfrio.records.writer import RecordWriter


def words(count: int, seed: int = 1) -> list[bytes]:
    """Return distinct payloads that deflate to matches and literals."""
    rng = random.Random(seed)
    some = [b"alpha", b"beta", b"gamma", b"delta", b"eps"]
    return [
        b"%05d " % n + b" ".join(rng.choices(some, k=rng.randrange(3, 20))) for n in range(count)
    ]


PAYLOADS = {
    "words": words(40),
    "noise": [random.Random(n).randbytes(n % 50) for n in range(40)],
    # Of 128 bytes framed, in any order: one bit of a distance makes a copy of another record.
    "alike": [random.Random(n * n % 11).randbytes(112) for n in range(60)],
    "one value": [b"the same"] * 90,
    "empty": [b""] * 50,
}


class Written(NamedTuple):
    """A blocked file: its bytes, its payloads, and where blocks and their records begin."""

    data: bytes
    payloads: list[bytes]
    stored: list[int]
    first: list[int]

    def block_of(self, byte: int) -> int:
        return int(np.searchsorted(self.stored, byte, "right")) - 1


def written(folder: Path, payloads: list[bytes], block_size: int = 800) -> Written:
    path = folder / "whole.tfrecord.gz"
    with RecordWriter(path, block_size=block_size) as writer:
        for payload in payloads:
            writer.write(payload)
    blocks = read_blocks(path)
    assert blocks is not None
    return Written(path.read_bytes(), payloads, blocks.stored.tolist(), blocks.first.tolist())


def numbered(path: Path) -> tuple[dict[int, bytes], list[Damage], int]:
    """Return the records handed out by number, the damages, and all that is accounted for."""
    found: dict[int, bytes] = {}
    damages: list[Damage] = []
    number = 0
    for event in read_records(path, errors="return", threads=1):
        if isinstance(event, Damage):
            assert event.record == number
            damages.append(event)
            number += event.lost_records
        else:
            found[number] = event
            number += 1
    return found, damages, number


def flips(case: Written, step: int) -> Iterator[tuple[int, bytes]]:
    """Yield places behind the blocks' headers, and the file with one bit turned over there."""
    rng = random.Random(7)
    for byte in range(0, len(case.data), step):
        if byte - case.stored[case.block_of(byte)] >= HEADER_SIZE:
            yield byte, golden.flipped(case.data, byte, 1 << rng.randrange(8))


@pytest.mark.parametrize("kind", list(PAYLOADS))
def test_any_flipped_byte_costs_only_records_of_its_block_and_all_are_accounted_for(
    tmp_path: Path, kind: str
) -> None:
    case = written(tmp_path, PAYLOADS[kind], 4000 if kind == "alike" else 600)
    path, saved = tmp_path / "a.tfrecord.gz", 0
    offsets = [0, *itertools.accumulate(len(p) + 16 for p in case.payloads)]
    for byte, data in flips(case, 1):
        path.write_bytes(data)
        found, damages, total = numbered(path)
        assert all(case.payloads[n] == payload for n, payload in found.items())
        assert total == len(case.payloads)
        block = case.block_of(byte)
        inside = set(range(case.first[block], case.first[block + 1]))
        assert set(range(total)) - set(found) <= inside
        assert sum(d.lost for d in damages) == offsets[-1] - sum(
            len(p) + 16 for p in found.values()
        )
        assert all(d.offset == offsets[d.record] for d in damages)
        saved += len(inside & set(found)) if damages else 0
    assert saved


@pytest.mark.parametrize("kind", list(PAYLOADS))
def test_a_file_cut_anywhere_gives_every_whole_record_and_counts_the_cut_block(
    tmp_path: Path, kind: str
) -> None:
    case = written(tmp_path, PAYLOADS[kind])
    path = tmp_path / "a.tfrecord.gz"
    for size in range(1, len(case.data)):
        path.write_bytes(case.data[:size])
        found, damages, total = numbered(path)
        assert list(found.values()) == case.payloads[: len(found)]
        block = case.block_of(size)
        assert len(found) >= case.first[block]
        if size - case.stored[block] >= HEADER_SIZE:
            assert total == case.first[block + 1]
        assert bool(damages) == (size not in case.stored)


@settings(max_examples=150, deadline=None)
@given(
    at=st.floats(0, 1),
    junk=st.binary(min_size=1, max_size=200),
    kind=st.sampled_from(["words", "noise", "alike"]),
    threads=st.sampled_from([1, 2]),
)
def test_a_burst_anywhere_brings_up_no_wrong_record(
    tmp_path_factory: pytest.TempPathFactory, at: float, junk: bytes, kind: str, threads: int
) -> None:
    folder = tmp_path_factory.mktemp("b")
    case = written(folder, PAYLOADS[kind])
    begin = 10 + int(at * (len(case.data) - 11))  # behind what tells that this is gzip
    data = case.data[:begin] + junk + case.data[begin + len(junk) :]
    path = folder / "a.tfrecord.gz"
    path.write_bytes(data[: len(case.data)])
    events = read_records(path, errors="return", threads=threads)
    found = [event for event in events if isinstance(event, bytes)]
    remaining = iter(case.payloads)
    assert all(payload in remaining for payload in found), "in order, each at most once"
    last = min(begin + len(junk), len(case.data)) - 1
    before, behind = case.first[case.block_of(begin)], case.first[case.block_of(last) + 1]
    assert found[:before] == case.payloads[:before]
    headers = sum(begin < at + HEADER_SIZE and last >= at for at in case.stored[:-1])
    if headers < 2 and last < case.stored[-2]:
        assert found[len(found) - len(case.payloads) + behind :] == case.payloads[behind:]


@pytest.mark.parametrize("kind", ["words", "noise", "alike"])
def test_records_by_number_are_those_of_reading_in_order(tmp_path: Path, kind: str) -> None:
    case = written(tmp_path, PAYLOADS[kind])
    path = tmp_path / "a.tfrecord.gz"
    for _, data in flips(case, 29):
        path.write_bytes(data)
        found, damages, total = numbered(path)
        with contextlib.closing(RecordSequence(path, index="memory")) as records:
            assert len(records) == total
            asked = list(found)[::-1]
            assert records[asked] == [found[n] for n in asked]
            for number in set(range(total)) - set(found):
                with pytest.raises(CorruptRecordError, match=f"record {number} is lost") as caught:
                    records[number]
                assert caught.value.record == number
                with pytest.raises(CorruptRecordError, match=f"record {number} is lost"):
                    records[[min(found), number]]
            offsets = [records.files[0].offset(d.record) for d in damages if d.lost_records]
            assert offsets == [d.offset for d in damages if d.lost_records]


def test_a_wrong_checksum_of_a_block_costs_no_record(tmp_path: Path) -> None:
    case = written(tmp_path, PAYLOADS["words"])
    path = tmp_path / "a.tfrecord.gz"
    for trailer in (-8, -1):  # of the data's CRC, of its length
        at = case.stored[2] + trailer
        path.write_bytes(golden.flipped(case.data, at))
        found, (damage,), _ = numbered(path)
        assert list(found.values()) == case.payloads
        assert (damage.record, damage.lost, damage.lost_records) == (case.first[2], 0, 0)
        assert "none of its" in damage.message
        with pytest.raises(CorruptRecordError) as caught:
            list(read_records(path))
        assert caught.value.record == case.first[2]
        with pytest.warns(TfrioWarning, match="damaged, but no record is lost"):
            assert list(read_records(path, errors="skip", max_bad=0)) == case.payloads
        report = verify(path)
        assert (report.ok, report.files[0].bad, report.records) == (False, 0, 40)
        mended = repair(path, tmp_path / "mended.tfrecord.gz", overwrite=True)
        assert (mended.kept, mended.clean) == (40, False)
        assert "no record is lost" in mended.text
        assert RecordSequence(path, index="memory")[list(range(40))] == case.payloads


def test_records_too_large_to_be_copied_may_repeat(tmp_path: Path) -> None:
    large = random.Random(3).randbytes(40_000)
    case = written(tmp_path, [large] * 4, 1 << 20)
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(golden.flipped(case.data, -5))
    found, (damage,), total = numbered(path)
    assert list(found) == [0, 1, 2, 3]
    assert (total, damage.lost_records) == (4, 0)


def test_records_within_a_damaged_payload_are_not_brought_up(tmp_path: Path) -> None:
    inner = b"".join(golden.frame(random.Random(n).randbytes(60)) for n in range(9))
    case = written(tmp_path, [b"first", inner + b"tail", b"between", inner, b"last"], 1 << 20)
    path = tmp_path / "a.tfrecord.gz"
    for _, data in flips(case, 3):
        path.write_bytes(data)
        found, _, total = numbered(path)
        assert total == 5
        assert all(case.payloads[n] == payload for n, payload in found.items())


def test_the_parts_of_a_block_are_its_runs_and_the_gaps_between_them() -> None:
    frames = [golden.frame(b"%d" % n * 30) for n in range(6)]
    frames[4] = frames[1]
    inside = b"".join((*frames[:2], golden.flipped(frames[2], 20), *frames[3:]))
    member = bytearray(deflate_member(inside, 6))
    header = parse_header(bytes(member))
    assert header is not None
    assert header.member is not None
    member[-6] ^= 1
    saved = save_block(bytes(member), header.length, header.member)
    assert list(saved.parts()) == [
        b"".join(frames[:2]),
        Gap(46, 1),
        frames[3],
        Gap(46, 1),
        frames[5],
    ]
    starts, lost = saved.starts()
    assert lost.tolist() == [False, False, True, False, True, False]
    assert starts.tolist() == [46 * n for n in range(6)]
