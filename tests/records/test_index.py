"""Indexes: built, kept, refused when stale; ours and the text form."""

from __future__ import annotations

import gzip
import os
import random
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.records import golden
from tests.records.golden import PAYLOADS, THREE, put
from tfrio.errors import CorruptRecordError, IndexFileError, TfrioWarning, UsageError
from tfrio.records import access, sidecar
from tfrio.records.access import RecordFile, find_index
from tfrio.records.index import RecordIndex, build_index
from tfrio.records.names import SIDECAR
from tfrio.records.sequence import RecordSequence
from tfrio.records.sidecar import load_index, save_index, sidecar_places
from tfrio.records.textindex import read_text_index, write_text_index
from tfrio.records.writer import RecordWriter
from tfrio.storage import reading


def settle(path: Path) -> None:
    """Let a file look old enough for its time to prove something."""
    old = time.time() - 60
    os.utime(path, (old, old))


def test_three_records_end_at_138(tmp_path: Path) -> None:
    for verify in (True, False):
        index = build_index(put(tmp_path, "a", THREE), verify=verify)
        assert index.offsets is not None
        assert index.offsets.tolist() == [0, 46, 92]
        assert index.offsets.dtype == np.int64
        assert (index.count, index.data_size) == (3, 138)


@pytest.mark.parametrize("content", [golden.THREE_GZ, golden.THREE_ZLIB, golden.THREE_MEMBERS])
def test_compressed_files_are_indexed_in_uncompressed_offsets(
    tmp_path: Path, content: bytes
) -> None:
    index = build_index(put(tmp_path, "three.tfrecord.gz", content))
    assert index.offsets is not None
    assert index.offsets.tolist() == [0, 46, 92]


def test_blocked_gzip_is_indexed_by_its_headers_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord.gz"
    with RecordWriter(path, block_size=50) as writer:
        for payload in PAYLOADS:
            writer.write(payload)
    for verify in (True, False):
        index = build_index(path, verify=verify)
        assert index.blocks is not None
        assert index.blocks.first.tolist() == [0, 2, 3]
        assert index.blocks.data.tolist() == [0, 92, 138]
        assert index.blocks.stored[-1] == path.stat().st_size


def test_a_remote_blocked_file_is_indexed_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    with RecordWriter("memory://indexed/a.tfrecord.gz", block_size=50) as writer:
        for payload in PAYLOADS:
            writer.write(payload)
    monkeypatch.setattr(reading.ObjectReader, "read_at", None)  # no hopping from header to header
    for verify in (True, False):
        index = build_index("memory://indexed/a.tfrecord.gz", verify=verify)
        assert index.blocks is not None
        assert index.blocks.first.tolist() == [0, 2, 3]


@pytest.mark.parametrize("content", [b"", golden.EMPTY_GZ, golden.frame(b"one")])
def test_files_of_0_and_1_records_have_an_index(tmp_path: Path, content: bytes) -> None:
    path = put(tmp_path, "a", content)
    count = len(content) == 19
    for _ in range(2):
        with RecordFile(path) as file:
            assert file.count == count
            assert len(file.frames(0, file.count)[1]) == count


@pytest.mark.parametrize("verify", [True, False])
def test_a_cut_file_gives_no_index_unless_a_partial_one_is_allowed(
    tmp_path: Path, verify: bool
) -> None:
    path = put(tmp_path, "a", golden.CUT_PAYLOAD)
    with pytest.raises(CorruptRecordError, match="payload cut: 8 of 30 bytes at offset 138"):
        build_index(path, verify=verify)
    index = build_index(path, verify=verify, allow_partial=True)
    assert index.partial
    assert index.count == 3
    broken = put(tmp_path, "b", golden.JUNK_BETWEEN)
    index = build_index(broken, allow_partial=True)
    with RecordFile(broken, index=index) as file:
        buffer, starts = file.frames(0, 3)
        assert starts.tolist() == [0, 83, 129]
        assert memoryview(buffer)[83 : 83 + 46] == golden.FRAMES[1]


def test_the_second_opening_reads_nothing_of_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for content in (THREE, golden.THREE_GZ):
        path = put(tmp_path, f"a{len(content)}", content)
        settle(path)
        first = find_index(path)
        opened: list[object] = []
        monkeypatch.setattr(sidecar, "open_read", opened.append)
        monkeypatch.setattr(access, "build_index", opened.append)
        monkeypatch.setattr(reading.LocalReader, "read_at", opened.append)
        again = find_index(path)
        monkeypatch.undo()
        assert opened == []
        assert again.count == first.count == 3


def test_an_index_of_another_file_is_refused_with_both_named(tmp_path: Path) -> None:
    a, b = put(tmp_path, "a", THREE), put(tmp_path, "b", THREE + golden.FRAMES[0])
    place = save_index(build_index(a), a)
    with pytest.raises(IndexFileError, match=r"made for a \(size 138, digest .*b has size 184"):
        RecordFile(b, index=place)


@pytest.mark.parametrize("fresh", [True, False])
def test_a_rewritten_file_of_the_same_size_is_noticed_and_indexed_again(
    tmp_path: Path, fresh: bool
) -> None:
    path = put(tmp_path, "a", THREE)
    if not fresh:
        settle(path)
    save_index(build_index(path), path)
    path.write_bytes(golden.frame(b"x" * 60) + golden.frame(b"y" * 46))
    with pytest.warns(TfrioWarning, match="index was made for a .* made again"):
        index = find_index(path)
    assert index.count == 2
    assert find_index(path).count == 2, "and the new index is kept"


def test_deleting_the_index_and_making_it_again_gives_the_same(tmp_path: Path) -> None:
    path = put(tmp_path, "a", THREE)
    settle(path)
    find_index(path)
    place = sidecar_places(path)[0]
    first = place.read_bytes()
    place.unlink()
    find_index(path)
    assert place.read_bytes() == first


def test_a_damaged_or_foreign_index_file_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path, "a", THREE)
    place = save_index(build_index(path), path)
    whole = place.read_bytes()
    for content in (golden.flipped(whole, len(whole) // 2), whole[:-1], whole[:9]):
        place.write_bytes(content)
        with pytest.raises(IndexFileError):
            load_index(path, place)
    head = whole.replace(b'"version":1', b'"version":9')
    head = head[:-4] + golden.google_crc32c.value(head[:-4]).to_bytes(4, "little")
    place.write_bytes(head)
    with pytest.raises(IndexFileError, match="index format 9, this tfrio reads 1"):
        load_index(path, place)


def test_the_cache_folder_serves_where_the_data_folder_is_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path, "a", THREE)
    monkeypatch.setenv("TFRIO_CACHE", str(tmp_path / "cache"))
    real = sidecar.atomic_write

    def read_only(place: Path) -> object:
        if place.parent == tmp_path:
            raise PermissionError("read-only")
        return real(place)

    monkeypatch.setattr(sidecar, "atomic_write", read_only)
    assert find_index(path).count == 3
    (kept,) = (tmp_path / "cache" / "index").iterdir()
    assert kept.name.endswith(SIDECAR)
    monkeypatch.setattr(access, "build_index", None)
    assert find_index(path).count == 3


def test_nowhere_to_keep_an_index_warns_and_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> object:
        raise PermissionError("read-only")

    monkeypatch.setattr(sidecar, "atomic_write", refuse)
    monkeypatch.setenv("TFRIO_CACHE", str(tmp_path / "cache"))
    with pytest.warns(TfrioWarning, match="cannot be kept"):
        assert find_index(put(tmp_path, "a", THREE)).count == 3


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TFRIO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert sidecar.cache_folder() == Path("/xdg/tfrio")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert sidecar.cache_folder() == Path.home() / ".cache" / "tfrio"


def test_an_offset_of_5_billion_is_kept_in_64_bits(tmp_path: Path) -> None:
    path = tmp_path / "sparse.tfrecord"
    with path.open("wb") as file:
        file.seek(5_000_000_000)
        file.write(golden.FRAMES[0])
    index = RecordIndex("none", 1, 5_000_000_046, np.array([5_000_000_000]))
    place = save_index(index, path, out=tmp_path / "i")
    with RecordFile(path, index=place) as file:
        assert file.offset(0) == 5_000_000_000
        buffer, starts = file.frames(0, 1)
        assert bytes(memoryview(buffer)[int(starts[0]) :]) == golden.FRAMES[0]


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.one_of(st.integers(16, 255), st.integers(16, 70_000), st.integers(16, 1 << 40)),
        max_size=20,
    ),
    same=st.booleans(),
)
def test_offsets_of_any_width_come_back(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], same: bool
) -> None:
    if same:
        steps = steps[:1] * len(steps)
    ends = np.cumsum(np.array([0, *steps], np.int64))
    folder = tmp_path_factory.mktemp("i")
    path = put(folder, "a", THREE)
    settle(path)  # the time suffices: no record is looked for at the places made up here
    index = RecordIndex("none", len(steps), int(ends[-1]), ends[:-1])
    found = load_index(path, save_index(index, path))
    assert found.offsets is not None
    assert found.offsets.tolist() == ends[:-1].tolist()
    assert (found.count, found.data_size) == (index.count, index.data_size)


def test_an_index_of_a_million_small_records_is_small(tmp_path: Path) -> None:
    sizes = np.random.default_rng(0).integers(30, 200, 1_000_000)
    ends = np.append(0, np.cumsum(sizes))
    path = put(tmp_path, "a", THREE)
    index = RecordIndex("none", 1_000_000, int(ends[-1]), ends[:-1])
    assert save_index(index, path).stat().st_size < 1_001_000


def test_the_text_index_is_that_of_tfrecord2idx(tmp_path: Path) -> None:
    path = put(tmp_path, "a", THREE)
    place = write_text_index(build_index(path), tmp_path / "a.idx")
    assert place.read_text() == "0 46\n46 46\n92 46\n"
    with RecordFile(path, index=place) as file:
        assert file.count == 3
        assert file.offset(2) == 92


def test_a_text_index_of_a_compressed_file_is_refused_with_the_remedy(tmp_path: Path) -> None:
    index = build_index(put(tmp_path, "a", golden.THREE_GZ))
    with pytest.raises(UsageError, match="this one is gzip: decompress it first, or use tfrio's"):
        write_text_index(index, tmp_path / "a.idx")
    assert not (tmp_path / "a.idx").exists()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0 46\n46 92\n138 20\n", "its last record ends at 158, but .* has 138 bytes"),
        ("0 46\n46 46\n", "its last record ends at 92, but .* has 138 bytes: the records behind"),
        ("", "its last record ends at 0, but .* has 138 bytes"),
        ("0 46\n40 46\n", "entries overlap"),
        ("0 5\n", "shorter than a record"),
        ("0 46\nhello\n", "line 2: expected 'offset size', found 'hello'"),
    ],
)
def test_a_text_index_that_does_not_fit_is_an_error_not_a_crash(
    tmp_path: Path, text: str, problem: str
) -> None:
    path, place = put(tmp_path, "a", THREE), put(tmp_path, "a.idx", text.encode())
    with pytest.raises(IndexFileError, match=problem):
        read_text_index(path, place)


def test_seek_points_survive_the_index_file(tmp_path: Path) -> None:
    rng = random.Random(0)
    words = [rng.randbytes(9) for _ in range(50)]
    payload = b"".join(rng.choice(words) for _ in range(400_000))
    data = b"".join(golden.frame(payload[i : i + 50_000]) for i in range(0, len(payload), 50_000))
    path = put(tmp_path, "a.gz", gzip.compress(data, 6))
    index = build_index(path)
    assert len(index.points.windows) >= 2
    found = load_index(path, save_index(index, path))
    assert found.points.windows == index.points.windows
    assert found.points.stored.tolist() == index.points.stored.tolist()
    assert found.points.data.tolist() == index.points.data.tolist()


def many_records(tmp_path: Path, lengths: list[int], **packing: int) -> Path:
    path = tmp_path / ("a.tfrecord.gz" if packing else "a.tfrecord")
    with RecordWriter(path, mode="w", **packing) as writer:  # type: ignore[arg-type]
        for number, length in enumerate(lengths):
            writer.write(random.Random(number).randbytes(length))
    return path


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("packing", [{}, {"block_size": 4000}])
def test_a_change_of_the_middle_alone_is_noticed(
    tmp_path: Path, fresh: bool, packing: dict[str, int]
) -> None:
    lengths = [100 + (n % 7) * 30 for n in range(400)]
    swapped = [*lengths[:100], *lengths[100:300][::-1], *lengths[300:]]
    path = many_records(tmp_path, lengths, **packing)
    if not fresh:
        settle(path)
    save_index(build_index(path), path)
    old = path.read_bytes()
    new = many_records(tmp_path, swapped, **packing).read_bytes()
    ends = slice(-len(old) + 4096, -4096)
    path.write_bytes(old[:4096] + new[ends].rjust(len(old) - 8192, b"x") + old[-4096:])
    with pytest.raises(IndexFileError, match="was changed in its middle since: what lies at byte"):
        load_index(path, sidecar_places(path)[0])


def test_two_records_in_place_of_one_are_noticed(tmp_path: Path) -> None:
    path = many_records(tmp_path, [3000] * 9)
    save_index(build_index(path), path)
    data = path.read_bytes()
    halves = golden.frame(b"x" * 1492) + golden.frame(b"y" * 1492)
    assert len(halves) == 3016
    path.write_bytes(data[: 4 * 3016] + halves + data[5 * 3016 :])
    with pytest.warns(TfrioWarning, match="at byte 12064 is not as the index says.*made again"):
        assert find_index(path).count == 10


@pytest.mark.parametrize("content", [THREE, golden.THREE_GZ, golden.THREE_MEMBERS])
def test_a_copy_with_its_index_needs_no_new_one(tmp_path: Path, content: bytes) -> None:
    path = put(tmp_path, "a", content)
    settle(path)
    place = save_index(build_index(path), path)
    copy = put(tmp_path, "copy", content)
    copy.with_name(copy.name + SIDECAR).write_bytes(place.read_bytes())
    assert load_index(copy, sidecar_places(copy)[0]).count == 3


def test_an_unseen_change_is_told_as_a_stale_index_on_reading(tmp_path: Path) -> None:
    path = many_records(tmp_path, [100 + n % 5 for n in range(200)])
    settle(path)
    times = path.stat().st_mtime_ns
    RecordSequence(path).close()
    data = path.read_bytes()
    path.write_bytes(data[:5000] + data[5003:15000] + bytes(3) + data[15000:])
    os.utime(path, ns=(times, times))  # as tools do that copy whole trees
    records = RecordSequence(path)
    with pytest.raises(CorruptRecordError, match="if the file was changed in place since .* index"):
        records[60]
    records.close()


@pytest.mark.parametrize("text", ["0 46\n46 46\n92 46\n", "0 46\n92 46\n"])
def test_a_text_index_may_leave_records_out_but_must_point_at_records(
    tmp_path: Path, text: str
) -> None:
    path, place = put(tmp_path, "a", THREE), put(tmp_path, "a.idx", text.encode())
    assert read_text_index(path, place).count == text.count("\n")
    wrong = put(tmp_path, "b.idx", text.replace("92 46", "93 45").encode())
    with pytest.raises(IndexFileError, match="no record of .*a lies at byte (46|93) as it says"):
        read_text_index(path, wrong)
