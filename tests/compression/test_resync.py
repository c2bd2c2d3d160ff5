"""A damaged header of a block, or bytes too many or too few, cost no block behind it."""

from __future__ import annotations

import contextlib
import gzip
import random
from pathlib import Path

import pytest

from tests.compression.test_salvage import PAYLOADS, Written, numbered, written
from tests.records import golden
from tfrio.compression.blocks import HEADER_SIZE, block_header
from tfrio.compression.resync import next_block
from tfrio.errors import CompressedDataError
from tfrio.records.access import RecordFile
from tfrio.records.index import build_index
from tfrio.records.reader import read_records
from tfrio.records.sidecar import load_index, save_index, sidecar_places
from tfrio.storage import open_read

pytestmark = pytest.mark.filterwarnings("ignore::tfrio.errors.TfrioWarning")


@pytest.fixture
def case(tmp_path: Path) -> Written:
    return written(tmp_path, PAYLOADS["words"], 600)


def held(case: Written, block: int) -> set[int]:
    """Return the numbers of the records of a block."""
    return set(range(case.first[block], case.first[block + 1]))


@pytest.mark.parametrize("byte", range(HEADER_SIZE))
def test_a_damaged_header_costs_its_block_only(tmp_path: Path, case: Written, byte: int) -> None:
    path = tmp_path / "a.tfrecord.gz"
    kept = [p for n, p in enumerate(case.payloads) if n not in held(case, 2)]
    for mask in (2, 4, 8, 16, 32, 64, 128, case.data[case.stored[2] + byte] or 1):
        path.write_bytes(golden.flipped(case.data, case.stored[2] + byte, mask))
        assert list(numbered(path)[0].values()) == kept
    path.write_bytes(golden.flipped(case.data, case.stored[2] + byte))
    found, (damage,), total = numbered(path)
    assert list(found.values()) == kept
    proven = not byte >= 24
    assert (total == len(case.payloads)) == proven
    assert damage.record == case.first[2]
    assert damage.compressed_offset == case.stored[2]
    assert damage.resumed is not None
    assert "where one should be" in damage.message
    assert list(read_records(path, errors="return", threads=2))[-1] == case.payloads[-1]
    with pytest.raises(CompressedDataError, match="no gzip block at compressed bytes") as caught:
        list(read_records(path))
    assert caught.value.record == case.first[2]


def test_the_last_header_and_what_follows_are_told_as_they_were(
    tmp_path: Path, case: Written
) -> None:
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(golden.flipped(case.data, case.stored[-2]))
    found, (damage,), _ = numbered(path)
    assert list(found.values()) == case.payloads[: case.first[-2]]
    assert (damage.code, damage.resumed) == ("gzip-tail", None)


@pytest.mark.parametrize("size", [1, 40, 300])
@pytest.mark.parametrize("threads", [1, 2])
def test_bytes_deleted_or_inserted_cost_their_block_only(
    tmp_path: Path, case: Written, size: int, threads: int
) -> None:
    path = tmp_path / "a.tfrecord.gz"
    lost = held(case, 2)
    for at in range(case.stored[2] + HEADER_SIZE, case.stored[3] - size, 5):
        junk = random.Random(at).randbytes(size)
        for data in (
            case.data[:at] + case.data[at + size :],
            case.data[:at] + junk + case.data[at:],
        ):
            path.write_bytes(data)
            found = list(read_records(path, errors="skip", threads=threads))
            inside = [p for p in found if p in {case.payloads[n] for n in lost}]
            begin, end = case.first[2], case.first[3]
            assert found == case.payloads[:begin] + inside + case.payloads[end:]
            _, _, total = numbered(path)
            assert total == len(case.payloads) or size == 300


def test_blocks_within_a_payload_are_none_of_the_file(tmp_path: Path) -> None:
    inner = written(tmp_path, [random.Random(n).randbytes(300) for n in range(9)], 600)
    payloads = [b"a" * 99, inner.data, b"b" * 99, b"c" * 99]
    data, starts = b"", []
    for payload in payloads:
        frame = golden.frame(payload)
        packed = gzip.compress(frame, 0)[10:]
        starts.append(len(data))
        data += block_header(HEADER_SIZE + len(packed), len(frame), 1) + packed
    assert inner.data in data, "it is stored as it is"
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(golden.flipped(data, starts[1] + 1))
    found, (damage,), total = numbered(path)
    assert list(found.values()) == [payloads[0], *payloads[2:]]
    assert (damage.lost_records, total) == (1, 4)


def test_an_index_leads_past_a_damaged_header(tmp_path: Path, case: Written) -> None:
    path = tmp_path / "a.tfrecord.gz"
    deleted = case.stored[2] + 60
    for data in (
        golden.flipped(case.data, case.stored[2] + 1),
        golden.flipped(case.data, case.stored[2] + 33),
        golden.flipped(case.data, 3),
        case.data[:deleted] + case.data[deleted + 9 :],
    ):
        path.write_bytes(data)
        kept = list(read_records(path, errors="skip"))
        save_index(build_index(path, allow_partial=True), path)
        index = load_index(path, sidecar_places(path)[0])
        assert index.partial
        assert index.count == len(kept)
        with RecordFile(path, index=index) as file:
            for number, payload in enumerate(kept):
                buffer, start = file.frame(number)
                assert bytes(buffer[start + 12 : start + 12 + len(payload)]) == payload


def test_places_are_found_across_pieces(tmp_path: Path, case: Written) -> None:
    padding = 3 * (1 << 20) - 5
    path = tmp_path / "a"
    path.write_bytes(bytes(padding) + case.data)
    with contextlib.closing(open_read(path)) as reader:
        assert next_block(reader, 7) == padding
        assert next_block(reader, padding + 1) == padding + case.stored[1]
        assert next_block(reader, padding + case.stored[-2] + 1) is None
