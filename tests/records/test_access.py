"""Random access: every form gives the records that reading in order gives."""

from __future__ import annotations

import errno
import gzip
import io
import multiprocessing
import os
import pickle
import random
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrio
from tests.records import golden
from tests.records.golden import PAYLOADS, THREE, put
from tfrio import _core
from tfrio.datasets.arrays import ArrayDataset
from tfrio.errors import CorruptRecordError, IndexFileError, TfrioError, TfrioWarning, UsageError
from tfrio.records import access, seek
from tfrio.records.access import RecordFile
from tfrio.records.index import RecordIndex, build_index
from tfrio.records.reader import read_records
from tfrio.records.sequence import RecordSequence
from tfrio.records.sidecar import save_index
from tfrio.records.writer import RecordWriter
from tfrio.storage import atomic_write

FORMS = ("plain", "blocked", "gzip", "members", "zlib", "remote", "remote blocked", "remote gzip")


def some_payloads(count: int, seed: int = 0) -> list[bytes]:
    """Return payloads that compress well but not wholly."""
    rng = random.Random(seed)
    words = [rng.randbytes(5) for _ in range(60)]
    return [b"".join(rng.choices(words, k=rng.randrange(800))) for _ in range(count)]


def make(folder: Path, form: str, payloads: list[bytes]) -> str:
    """Write a file of some form; return its path or URL."""
    data = b"".join(golden.frame(p) for p in payloads)
    blocked = io.BytesIO()
    with RecordWriter(blocked, compression="gzip", block_size=9000) as writer:
        for payload in payloads:
            writer.write(payload)
    middle = len(data) // 3
    contents = {
        "plain": data,
        "blocked": blocked.getvalue(),
        "gzip": gzip.compress(data, 6),
        "members": gzip.compress(data[:middle], 1) + gzip.compress(data[middle:], 9),
        "zlib": zlib.compress(data, 6),
    }
    content = contents[form.removeprefix("remote ").replace("remote", "plain")]
    if form.startswith("remote"):
        url = f"memory://access/{folder.name}/{form.replace(' ', '-')}"
        with atomic_write(url) as file:
            file.write(content)
        return url
    return str(put(folder, form, content))


@pytest.fixture(scope="module")
def payloads() -> list[bytes]:
    return some_payloads(700)


@pytest.fixture(autouse=True)
def small_spacing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Set seek points close, and keep caches out of the home folder."""
    monkeypatch.setattr(seek, "SPACING", 60_000)
    monkeypatch.setenv("TFRIO_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_records_of_reading_in_order(
    tmp_path: Path, form: str, payloads: list[bytes]
) -> None:
    path = make(tmp_path, form, payloads)
    records = RecordSequence(path)
    assert len(records) == 700
    assert records[2] == payloads[2]
    assert records[-1] == payloads[-1]
    rng = random.Random(1)
    wanted = [rng.randrange(-700, 700) for _ in range(60)]
    assert records[wanted] == [payloads[i] for i in wanted]
    assert [records[i] for i in wanted[:12]] == [payloads[i] for i in wanted[:12]]
    assert records[650:100:-7] == payloads[650:100:-7]
    assert list(records) == payloads
    records.close()
    assert records[np.array([3, 3, 1])] == [payloads[3], payloads[3], payloads[1]]
    records.close()


@pytest.mark.parametrize("form", FORMS)
def test_frames_offsets_and_blocks_fit_together(
    tmp_path: Path, form: str, payloads: list[bytes]
) -> None:
    path = make(tmp_path, form, payloads)
    ends = np.append(0, np.cumsum([len(p) + 16 for p in payloads]))
    with RecordFile(path) as file:
        assert file.data_size == ends[-1]
        blocks = file.blocks
        assert blocks[0] == 0
        assert (np.diff(blocks) > 0).all()
        assert len(blocks) > 2
        for start, stop in ((0, 3), (33, 34), (100, 400), (699, 700), (5, 5)):
            buffer, starts = file.frames(start, stop)
            assert len(starts) == stop - start
            for at, payload in zip(starts.tolist(), payloads[start:stop], strict=True):
                assert bytes(memoryview(buffer)[at : at + len(payload) + 16]) == golden.frame(
                    payload
                )
        assert [file.offset(i) for i in (0, 5, 699)] == [0, ends[5], ends[699]]
        assert file.mapped == (form == "plain")
        for start, stop in ((-1, 1), (2, 1), (0, 701)):
            with pytest.raises(UsageError, match="asked of 700"):
                file.frames(start, stop)


def test_many_files_are_one_sequence_in_order(tmp_path: Path, payloads: list[bytes]) -> None:
    parts = [payloads[:100], [], payloads[100:350], payloads[350:]]
    paths = [
        put(tmp_path, f"p-{i}.tfrecord", b"".join(golden.frame(p) for p in part))
        for i, part in enumerate(parts)
    ]
    records = RecordSequence(paths)
    assert list(records) == payloads
    wanted = [699, 0, 99, 100, 349, 350, 0]
    assert records[wanted] == [payloads[i] for i in wanted]
    assert records.file_of(349)[1] == 249
    assert records[[]] == []


def test_what_is_not_there_is_an_index_error(tmp_path: Path) -> None:
    records = RecordSequence(put(tmp_path, "a", THREE))
    assert records[2] == PAYLOADS[2]
    for wrong in (3, -4):
        with pytest.raises(IndexError, match=f"record {wrong} asked of 3"):
            records[wrong]
        with pytest.raises(IndexError, match=f"record {wrong} asked of 3"):
            records[[0, wrong]]
    with pytest.raises(UsageError, match="whole numbers"):
        records[[0.5]]  # type: ignore[list-item]
    with pytest.raises(UsageError, match="one index was named for 2 files"):
        RecordSequence([put(tmp_path, "b", THREE)] * 2, index="x.idx")


def two_of(records: RecordSequence) -> tuple[bytes, int, int]:
    return records[2], len(records), os.getpid()


@pytest.mark.parametrize("form", ["plain", "blocked", "gzip"])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_it_pickles_and_works_in_other_processes(
    tmp_path: Path, form: str, method: str, payloads: list[bytes]
) -> None:
    records = RecordSequence(make(tmp_path, form, payloads))
    assert records[2] == payloads[2], "handles are open when it is handed over"
    assert pickle.loads(pickle.dumps(records))[699] == payloads[699]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads about
        with multiprocessing.get_context(method).Pool(1) as pool:
            third, count, process = pool.apply(two_of, (records,))
    assert (third, count) == (payloads[2], 700)
    assert process != os.getpid()
    records.close()


def inherited(queue: object) -> None:
    queue.put(INHERITED[0][[5, 600]])  # type: ignore[attr-defined]


INHERITED: list[RecordSequence] = []


def test_open_handles_inherited_by_a_fork_do_not_disturb_each_other(
    tmp_path: Path, payloads: list[bytes]
) -> None:
    records = RecordSequence(make(tmp_path, "gzip", payloads))
    assert records[5] == payloads[5]
    INHERITED[:] = [records]
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = context.Process(target=inherited, args=(queue,))
        child.start()
    mine = records[[600, 5]]
    assert queue.get(timeout=60) == [payloads[5], payloads[600]]
    assert mine == [payloads[600], payloads[5]]
    child.join()
    INHERITED.clear()
    records.close()


class Requests(io.BytesIO):
    """A remote file of claimed size that counts its requests."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.asked: list[tuple[int, int]] = []

    def read(self, size: int | None = -1, /) -> bytes:
        self.asked.append((self.tell(), size or 0))
        return super().read(size)


def test_a_remote_batch_asks_once_for_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [golden.frame(bytes([i]) * 50_000) for i in range(40)]
    remote = Requests(b"".join(parts))
    url = "memory://counted"
    index = RecordIndex("none", 40, 40 * 50_016, np.arange(40) * 50_016)
    with atomic_write(url) as file:
        file.write(remote.getvalue())
    monkeypatch.setattr(access, "find_index", lambda *_: index)
    monkeypatch.setattr(access, "open_read", lambda _: access_reader(remote))
    records = RecordSequence(url)
    got = records[[30, 3, 4, 5, 31]]
    assert [p[0] for p in got] == [30, 3, 4, 5, 31]
    assert remote.asked == [(3 * 50_016, 3 * 50_016), (30 * 50_016, 2 * 50_016)]


def access_reader(file: io.BytesIO) -> object:
    from tfrio.storage.reading import ObjectReader

    return ObjectReader(file, "counted", owned=False)


class Sparse(io.RawIOBase):
    """A remote file of 5 GB, of which only one record exists."""

    size = 5_000_000_000

    def __init__(self) -> None:
        self.at = 0

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def seek(self, offset: int, whence: int = 0) -> int:
        self.at = offset
        return offset

    def read(self, length: int = -1) -> bytes:
        assert self.at == 4_900_000_000
        return golden.FRAMES[1][:length]


def test_a_record_at_4_9_billion_of_a_remote_file_is_read_by_its_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = RecordIndex("none", 1, 4_900_000_046, np.array([4_900_000_000]))
    monkeypatch.setattr(access, "open_read", lambda _: access_reader(Sparse()))  # type: ignore[arg-type]
    with atomic_write("memory://sparse") as file:
        file.write(b"x")
    monkeypatch.setattr(access, "find_index", lambda *_: index)
    assert RecordSequence("memory://sparse")[0] == PAYLOADS[1]


@pytest.mark.parametrize("verify", [True, False])
def test_a_flipped_payload_is_told_with_file_record_and_offset(
    tmp_path: Path, verify: bool
) -> None:
    path = put(tmp_path, "payload_flip_rec1", golden.PAYLOAD_FLIP)
    records = RecordSequence([put(tmp_path, "a", THREE), path], verify=verify)
    if not verify:
        assert len(records[[4]][0]) == 30
        return
    for ask in (lambda: records[4], lambda: records[[0, 4, 5]]):
        with pytest.raises(CorruptRecordError, match="payload checksum mismatch") as caught:
            ask()
        assert (caught.value.path, caught.value.record, caught.value.offset) == (str(path), 1, 46)


@pytest.mark.parametrize("form", FORMS[1:5])
def test_damage_behind_an_index_is_an_error_and_never_wrong_bytes(
    tmp_path: Path, form: str, payloads: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(make(tmp_path, form, payloads))
    index = build_index(path)
    whole = path.read_bytes()
    rng = random.Random(2)
    for _ in range(25):
        path.write_bytes(golden.flipped(whole, rng.randrange(len(whole)), 1 << rng.randrange(8)))
        monkeypatch.setattr(access, "find_index", lambda *_: index)
        records = RecordSequence(path)
        try:
            got = records[[1, 350, 690]]
        except TfrioError:
            continue
        finally:
            records.close()
        assert got == [payloads[1], payloads[350], payloads[690]]


def test_a_file_cut_short_behind_an_open_mapping_is_an_error_and_no_crash(
    tmp_path: Path,
) -> None:
    path = put(tmp_path, "a", b"".join(golden.frame(bytes(5000)) for _ in range(50)))
    records = RecordSequence(path)
    assert len(records[49]) == 5000
    os.truncate(path, 6000)
    with pytest.raises(IndexFileError, match="cut short since it was opened"):
        records[49]


class Unmapped:
    """What a file system without mmap answers."""

    def __init__(self, *arguments: object) -> None:
        raise OSError(errno.ENODEV, "No such device")


def test_a_file_system_that_maps_nothing_is_read_by_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"id": number, "text": b"x" * (number % 7)} for number in range(300)]
    path = tmp_path / "a.tfrecord"
    with tfrio.Writer(path) as writer:
        for row in rows:
            writer.write(row)
    monkeypatch.setattr(_core, "FileMap", Unmapped)
    payloads = list(read_records(path))
    with RecordFile(path, index="memory") as file:
        assert not file.mapped
        assert file.record_map is None
        buffer, starts = file.frames(290, 300)
        assert bytes(buffer[starts[9] + 12 : -4]) == payloads[299]
        assert file.offset(290) == sum(len(payload) + 16 for payload in payloads[:290])
    records = RecordSequence(path, index="memory")
    assert records[[299, 3, 3]] == [payloads[299], payloads[3], payloads[3]]
    assert [records[0], records[-1]] == [payloads[0], payloads[299]]
    opened = tfrio.open(path, index="memory")
    assert [int(opened[n]["id"][0]) for n in (7, 150)] == [7, 150]
    assert [int(row["id"][0]) for row in opened[[5, 2]]] == [5, 2]
    data = ArrayDataset(path, batch_size=9, shuffle=True, seed=1, index="memory")
    assert sorted(n for batch in data for n in np.ravel(batch["id"]).tolist()) == list(range(300))


def test_a_file_that_is_gone_is_not_taken_for_one_that_cannot_be_mapped(tmp_path: Path) -> None:
    path = put(tmp_path, "a", THREE)
    file = RecordFile(path, index="memory")
    path.unlink()
    with pytest.raises(FileNotFoundError):
        file.frames(0, 1)


def test_blocks_whose_header_lies_about_its_records_are_refused(tmp_path: Path) -> None:
    from tfrio.compression.blocks import block_header
    from tfrio.compression.deflate import deflate_member

    member = deflate_member(THREE, 3)
    lying = block_header(len(member), len(THREE), 4) + member[38:]
    path = put(tmp_path, "a.gz", lying)
    records = RecordSequence(path, index="memory")
    assert len(records) == 4
    with pytest.raises(CorruptRecordError, match="holds 3 records where its header says 4"):
        records[0]


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 400), min_size=1, max_size=60),
    form=st.sampled_from(["plain", "blocked", "gzip", "members", "zlib"]),
    data=st.data(),
)
def test_any_batch_equals_picking_from_a_list(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], form: str, data: st.DataObject
) -> None:
    payloads = [random.Random(i).randbytes(size) for i, size in enumerate(sizes)]
    path = make(tmp_path_factory.mktemp("r"), form, payloads)
    records = RecordSequence(path, index="memory")
    wanted = data.draw(st.lists(st.integers(-len(sizes), len(sizes) - 1), max_size=30))
    assert records[wanted] == [payloads[i] for i in wanted]
    located = records.locate(records.numbers(wanted))
    for which, start, i in zip(located.which, located.starts, wanted, strict=True):
        buffer = located.buffers[which]
        assert bytes(memoryview(buffer)[start : start + len(payloads[i]) + 16]) == golden.frame(
            payloads[i]
        )
    records.close()


@pytest.mark.parametrize("kind", ["gzip", "zlib"])
def test_ordinary_compression_behind_a_url_is_entered_near_the_record(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The file is fetched once, for the index; a record then costs one request for a part of it."""
    payloads = [np.random.default_rng(i).bytes(50_000) for i in range(200)]
    data = b"".join(map(golden.frame, payloads))
    remote = Requests(gzip.compress(data, 1) if kind == "gzip" else zlib.compress(data, 1))
    size = len(remote.getvalue())
    url = f"memory://points-{kind}"
    with atomic_write(url) as file:
        file.write(remote.getvalue())
    index = build_index(url)
    assert len(index.points.windows) >= 5
    monkeypatch.setattr(access, "find_index", lambda *_: index)
    monkeypatch.setattr(access, "open_read", lambda _: access_reader(remote))
    records = RecordSequence(url)
    for number in (100, 3, 199):
        remote.asked.clear()
        assert records[number] == payloads[number]
        assert len(remote.asked) <= 2
        assert sum(length for _, length in remote.asked) < size / 3


def test_an_index_that_leaves_damage_out_says_so_at_every_open(tmp_path: Path) -> None:
    path = put(tmp_path, "a", golden.PAYLOAD_FLIP)
    save_index(build_index(path, allow_partial=True), path)
    for _ in range(2):
        with pytest.warns(TfrioWarning, match="leaves damaged records out; 2 records can be read"):
            assert len(RecordSequence(path)) == 2


def test_a_record_not_found_where_the_index_says_hints_at_the_index(tmp_path: Path) -> None:
    path = put(tmp_path, "a", THREE)
    records = RecordSequence(path)
    path.write_bytes(golden.frame(bytes(20)) + golden.frame(bytes(86)))
    with pytest.raises(CorruptRecordError, match="changed in place since .* make it again"):
        records[1]


def test_numbers_in_a_table_are_refused(tmp_path: Path) -> None:
    records = RecordSequence(put(tmp_path, "a", THREE))
    with pytest.raises(UsageError, match="an array of 2 axes"):
        records[np.array([[0, 1], [2, 0]])]
