"""Damaged compressed data is left out by every reader as it is by ``read_records``."""

from __future__ import annotations

import gzip
import itertools
import zlib
from pathlib import Path

import numpy as np
import pytest

import tfrio
from tests.datasets.conftest import ids, row_of
from tfrio import Writer, read, read_batches, read_records, stats
from tfrio.compression.blocks import HEADER_SIZE, block_header
from tfrio.datasets.arrays import ArrayDataset
from tfrio.errors import CompressedDataError, CorruptRecordError, TfrioWarning
from tfrio.records.access import RecordFile
from tfrio.records.damage import DamageReport
from tfrio.records.index import build_index, read_blocks
from tfrio.records.sidecar import load_index, save_index, sidecar_places
from tfrio.torch import TFRecordDataset

pytestmark = pytest.mark.filterwarnings("ignore::tfrio.errors.TfrioWarning")

_PLACES = {"first": 0, "middle": 4, "last": -1}
_COUNT = 60


def _damaged(folder: Path, form: str, where: str) -> str:
    """Write 60 records of 2 kB in about ten blocks, and damage one block, or tenth.

    Args:
        folder: Where to write.
        form: ``"blocked"`` and ``"gzip"``: one bit is flipped; ``"burst"``: 5,000 bytes of a block
            are codes that cannot be inflated.
        where: Which block: ``"first"``, ``"middle"`` or ``"last"``.
    """
    path = folder / "a.tfrecord.gz"
    with Writer(path, block_size=12_000) as writer:
        for number in range(_COUNT):
            writer.write(row_of(number, 2000))
    if form == "gzip":
        path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()), mtime=0))
        size = path.stat().st_size
        at = {"first": size // 100, "middle": size // 2, "last": size * 98 // 100}[where]
    else:
        blocks = read_blocks(path)
        assert blocks is not None
        assert len(blocks.first) > 8
        starts = blocks.stored[:-1]
        at = int(starts[_PLACES[where]]) + (4000 if form == "burst" else 400)
    data = bytearray(path.read_bytes())
    if form == "burst":
        data[at : at + 5000] = b"\xff" * 5000
    data[at] ^= 4
    path.write_bytes(data)
    return str(path)


@pytest.fixture(
    params=[(form, where) for form in ("blocked", "burst", "gzip") for where in _PLACES]
)
def damaged(request, tmp_path):
    """Return a damaged file."""
    return _damaged(tmp_path, *request.param)


def _sound(path):
    """Return the ids that ``read_records`` finds, and its account."""
    report = DamageReport()
    payloads = set(read_records(path, errors="skip", report=report))
    with Writer(Path(path).parent / "sound.tfrecord") as writer:
        whole = [row_of(number, 2000) for number in range(_COUNT)]
        for row in whole:
            writer.write(row)
    kept = [n for n, p in enumerate(read_records(writer.path)) if p in payloads]
    assert len(kept) == len(payloads) < _COUNT
    return kept, report


def test_rows_batches_and_statistics_leave_it_out(damaged):
    kept, wanted = _sound(damaged)
    for columns in (None, ["id"]):
        report = DamageReport()
        rows = list(read(damaged, features=columns, errors="skip", report=report))
        assert ids(rows) == kept
        assert report.to_dict() == wanted.to_dict()
        report = DamageReport()
        batches = read_batches(damaged, 8, features=columns, errors="skip", report=report)
        assert ids(batches) == kept
        assert report.to_dict() == wanted.to_dict()
    if kept:
        assert stats(damaged, errors="skip").records == len(kept)
    with pytest.raises(CorruptRecordError):
        list(read(damaged))
    with pytest.raises(CorruptRecordError):
        list(read_batches(damaged, 8, errors="skip", max_bad=0))


@pytest.mark.parametrize("form", ["blocked", "burst"])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("where", list(_PLACES))
def test_datasets_leave_out_what_is_lost_of_damaged_blocks(tmp_path, where, workers, form):
    path = _damaged(tmp_path, form, where)
    kept, wanted = _sound(path)
    data = TFRecordDataset(path, batch_size=4, errors="skip")
    with pytest.warns(TfrioWarning, match=r"left out 1 damaged stretch with \d+,\d+ bytes"):
        assert ids(data.loader(num_workers=workers)) == kept
    (damage,), (known,) = data.report.damages, wanted.damages
    for name in ("path", "record", "offset", "code", "field", "lost", "compressed_offset"):
        assert getattr(damage, name) == getattr(known, name), name
    shuffled = TFRecordDataset(path, batch_size=4, errors="skip", shuffle=True, window=16)
    assert sorted(ids(shuffled.loader(num_workers=workers))) == kept
    assert shuffled.report.skipped_records == wanted.skipped_records == _COUNT - len(kept)
    sure = TFRecordDataset(path, batch_size=4, schema={"id": "int64"})
    with pytest.raises(CompressedDataError, match=r"are lost, record \d+ was wanted") as caught:
        list(sure.loader(num_workers=workers))
    assert caught.value.record == known.record


@pytest.mark.parametrize("where", list(_PLACES))
@pytest.mark.parametrize("workers", [0, 2])
def test_datasets_leave_out_damage_in_one_gzip_member(tmp_path, where, workers):
    path = _damaged(tmp_path, "gzip", where)
    kept, _ = _sound(path)
    data = TFRecordDataset(
        path, batch_size=4, errors="skip", features=["id"], schema={"id": "int64"}
    )
    assert ids(data.loader(num_workers=workers)) == kept
    assert data.report.skipped_records


@pytest.mark.parametrize("form", ["gzip", "zlib"])
@pytest.mark.parametrize("share", [0.1, 0.7])
def test_datasets_keep_the_records_before_codes_that_cannot_be_inflated(tmp_path, form, share):
    path = tmp_path / "a.tfrecord"
    letters = np.random.default_rng(0).integers(97, 113, 2_400_000, np.uint8).tobytes()
    with Writer(path) as writer:  # 2.4 MB: the first place to enter lies after 1 MiB of them
        for number in range(2000):
            writer.write({"id": number, "text": letters[1200 * number : 1200 * (number + 1)]})
    pack = gzip.compress if form == "gzip" else zlib.compress
    data = bytearray(pack(path.read_bytes(), 1))
    at = int(len(data) * share)
    data[at : at + 200] = b"\xff" * 200  # blocks of no known type
    path.write_bytes(data)
    kept = ids(read(path, features=["id"], errors="skip"))
    assert len(kept) > 2000 * share - 100
    data = ArrayDataset(
        path,
        batch_size=64,
        errors="skip",
        features=["id"],
        schema={"id": "int64"},
        shuffle="blocks",
    )
    assert sorted(ids(data)) == kept


@pytest.mark.parametrize("form", ["blocked", "burst"])
@pytest.mark.parametrize("where", list(_PLACES))
def test_an_index_reaches_the_sound_records_of_and_behind_a_damaged_block(tmp_path, where, form):
    path = _damaged(tmp_path, form, where)
    kept, _ = _sound(path)
    index = build_index(path, allow_partial=True)
    assert index.partial
    save_index(index, path)
    file = RecordFile(path, index=load_index(path, sidecar_places(path)[0]))
    assert file.count == len(kept)
    for start, stop in ((0, len(kept)), (len(kept) - 1, len(kept)), (0, 1), (10, 40)):
        buffer, starts = file.frames(start, stop)
        payloads = [
            bytes(buffer[at + 12 : at + 12 + int.from_bytes(buffer[at : at + 8], "little")])
            for at in starts.tolist()
        ]
        assert payloads == list(read_records(path, errors="skip"))[start:stop]
    data = ArrayDataset(path, batch_size=7, errors="skip")
    assert ids(data) == kept


def test_a_split_tells_a_damaged_block_once(tmp_path):
    path = _damaged(tmp_path, "burst", "middle")
    kept, _ = _sound(path)
    lost = set(range(_COUNT)) - set(kept)
    found: list[int] = []
    whole = ArrayDataset(path, batch_size=5, errors="skip")
    for part in whole.split([0.5, 0.5], seed=1):
        before = len(part.report.damages)
        inside = part._selection[0].tolist()
        found += ids(part)
        assert len(part.report.damages) == before + bool(lost & set(inside))
    assert sorted(found) == np.sort(kept).tolist()


def _wrong_inside(folder: Path, wrong: dict[int, int]) -> tuple[str, list[int]]:
    """Write blocks that inflate, with wrong lengths inside.

    Args:
        folder: Where to write.
        wrong: How many records lose their header, by the number of the first.

    Returns:
        The file, and the number of the first record of each block, and of all.
    """
    path = folder / "a.tfrecord.gz"
    with Writer(path, block_size=12_000) as writer:
        for number in range(_COUNT):
            writer.write(row_of(number, 2000))
    lost = {record for first, count in wrong.items() for record in range(first, first + count)}
    blocks = read_blocks(path)
    assert blocks is not None
    file, data = RecordFile(path, index="memory"), bytearray()
    for first, stop in itertools.pairwise(blocks.first.tolist()):
        buffer, starts = file.frames(first, stop)
        inner = bytearray(buffer)
        for record in lost & set(range(first, stop)):
            inner[starts[record - first] + 9] ^= 1  # the length's own checksum
        packed = gzip.compress(bytes(inner), mtime=0)[10:]
        data += block_header(HEADER_SIZE + len(packed), len(inner), stop - first) + packed
    path.write_bytes(data)
    return str(path), blocks.first.tolist()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("wrong", [{0: 1}, {8: 1}, {13: 1, 15: 1}, {20: 1, 42: 2}, {59: 1}])
def test_a_wrong_length_inside_a_block_costs_no_neighbour(tmp_path, wrong, workers):
    path, _ = _wrong_inside(tmp_path, wrong)
    lost = {record for first, count in wrong.items() for record in range(first, first + count)}
    kept = [number for number in range(_COUNT) if number not in lost]
    options = {"batch_size": 4, "errors": "skip", "schema": {"id": "int64"}, "index": "memory"}
    for shuffle in (False, True):
        data = TFRecordDataset(path, shuffle=shuffle, window=16, **options)
        assert sorted(ids(data.loader(num_workers=workers))) == kept
        assert {damage.record for damage in data.report.damages} == lost
        assert {damage.code for damage in data.report.damages} == {"length-crc"}
    with pytest.raises(CorruptRecordError, match="length checksum") as caught:
        list(TFRecordDataset(path, **{**options, "errors": "raise"}))
    assert caught.value.record == min(lost)


def test_rows_by_number_around_a_wrong_length(tmp_path):
    path, _ = _wrong_inside(tmp_path, {8: 1})
    rows = tfrio.open(path, index="memory")
    assert [int(row["id"][0]) for row in (rows[7], rows[9])] == [7, 9]
    with pytest.raises(CorruptRecordError, match="record 8"):
        rows[8]
    with pytest.raises(CorruptRecordError, match="record 8"):
        rows[5:12]


def test_faults_that_stand_for_any_number_cost_the_block(tmp_path):
    path, edges = _wrong_inside(tmp_path, {7: 1, 9: 2})
    block = next(range(a, b) for a, b in itertools.pairwise(edges) if a <= 7 < b)
    assert 10 in block
    data = ArrayDataset(path, batch_size=4, errors="skip", schema={"id": "int64"}, index="memory")
    assert ids(data) == [number for number in range(_COUNT) if number not in block]
