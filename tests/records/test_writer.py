"""Writing records: modes, atomicity, flush, full disk, determinism, other readers."""

from __future__ import annotations

import errno
import gzip
import io
import itertools
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isal import igzip

from tests.records import golden
from tests.records.golden import FRAMES, PAYLOADS, THREE, put
from tfrio.errors import CorruptRecordError, UsageError
from tfrio.records.reader import read_records
from tfrio.records.sharded import ShardedWriter
from tfrio.records.writer import RecordWriter
from tfrio.storage import writing


def write(path: Path, payloads: tuple[bytes, ...] | list[bytes], **options: object) -> bytes:
    with RecordWriter(path, **options) as writer:  # type: ignore[arg-type]
        for payload in payloads:
            writer.write(payload)
    return path.read_bytes()


class Interrupted(Exception):
    """Raised amid writing."""


def write_then_stop(path: Path, *steps: bytes | None, **options: object) -> None:
    """Write payloads, flush at each None, then raise."""
    with RecordWriter(path, **options) as writer:  # type: ignore[arg-type]
        for step in steps:
            if step is None:
                writer.flush()
            else:
                writer.write(step)
        raise Interrupted


def test_frames_are_golden(tmp_path: Path) -> None:
    assert write(tmp_path / "a", PAYLOADS) == THREE
    assert write(tmp_path / "b", [b""]).hex() == "000000000000000029039807d8ea82a2"
    payload = bytes.fromhex("0a0c0a0a0a016112051a030a0101")
    assert write(tmp_path / "c", [payload]).hex() == (
        "0e00000000000000c5e5693f0a0c0a0a0a016112051a030a010139e87850"
    )


@pytest.mark.parametrize("level", [1, 2, 3, 4, 6, 9])
def test_gzip_is_read_by_others_and_the_same_twice(tmp_path: Path, level: int) -> None:
    data = write(tmp_path / "a.tfrecord.gz", PAYLOADS, level=level)
    assert data[:3] == b"\x1f\x8b\x08"
    assert data[4:8] == bytes(4), "mtime"
    assert gzip.decompress(data) == THREE
    assert igzip.decompress(data) == THREE
    assert zlib.decompressobj(31).decompress(data) == THREE
    assert write(tmp_path / "b.tfrecord.gz", PAYLOADS, level=level) == data


def test_the_name_decides_unless_overridden(tmp_path: Path) -> None:
    assert write(tmp_path / "a.gz", PAYLOADS, compression="none") == THREE
    assert gzip.decompress(write(tmp_path / "a", PAYLOADS, compression="GZIP")) == THREE
    assert zlib.decompress(write(tmp_path / "z", PAYLOADS, compression="zlib")) == THREE


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"compression": "gzipp"}, "'gzipp'; use one of 'none', 'gzip', 'zlib'"),
        ({"mode": "r"}, "mode must be 'x', 'w' or 'a', got 'r'"),
        ({"level": 10}, "level must be 1 to 9"),
        ({"block_size": 0}, "block_size must be at least 1"),
    ],
)
def test_unknown_options_are_refused_and_write_nothing(
    tmp_path: Path, options: dict[str, object], text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        RecordWriter(tmp_path / "a", **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_flush_reaches_the_disk_where_a_second_process_reads_it(
    tmp_path: Path, compression: str
) -> None:
    path = tmp_path / "a"
    program = (
        "import sys; from tfrio.records.reader import read_records;"
        "print(len(list(read_records(sys.argv[1]))))"
    )
    with RecordWriter(path, compression=compression) as writer:
        writer.write(PAYLOADS[0])
        assert not path.exists()
        writer.flush()
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
        )
        assert done.stdout == "1\n"
        writer.write(PAYLOADS[1])
    assert list(read_records(path)) == list(PAYLOADS[:2])


def test_an_exception_leaves_nothing_or_what_a_flush_brought(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with pytest.raises(Interrupted):
        write_then_stop(path, PAYLOADS[0])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(Interrupted):
        write_then_stop(path, PAYLOADS[0], None, PAYLOADS[1])
    assert path.read_bytes() == FRAMES[0]
    assert list(tmp_path.iterdir()) == [path]


class FullDisk(io.FileIO):
    """A file on a disk that is full after 1 MB."""

    def write(self, data: object) -> int:
        if self.tell() + len(memoryview(data)) > 1_000_000:  # type: ignore[arg-type]
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)  # type: ignore[arg-type]


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_a_full_disk_raises_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    monkeypatch.setattr(writing.io, "FileIO", FullDisk)
    noise = np.random.default_rng(0).bytes(100_000)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path / "a", [noise] * 100, compression=compression)
    assert list(tmp_path.iterdir()) == []


def test_a_file_object_that_fails_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    with FullDisk(path, "w") as file:
        writer = RecordWriter(file, block_size=500_000)
        writer.write(bytes(900_000))
        with pytest.raises(OSError, match="No space left"):
            writer.write(bytes(900_000))
        assert writer.closed


def test_closing_twice_is_harmless_and_writing_after_it_is_refused(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path / "a")
    writer.write(PAYLOADS[0])
    writer.close()
    writer.close()
    writer.abort()
    for call in (lambda: writer.write(b""), writer.flush):
        with pytest.raises(ValueError, match="writer is closed"):
            call()
    assert (tmp_path / "a").read_bytes() == FRAMES[0]


def test_a_second_writer_of_the_same_name_never_mixes_with_the_first(tmp_path: Path) -> None:
    path = tmp_path / "a"
    first = RecordWriter(path)
    first.write(PAYLOADS[0])
    second = RecordWriter(path)
    second.write(PAYLOADS[1])
    first.flush()
    second.close()
    first.write(PAYLOADS[2])
    first.close()
    assert list(read_records(path)) in ([PAYLOADS[1]], [PAYLOADS[0], PAYLOADS[2]])


def test_mode_x_never_replaces(tmp_path: Path) -> None:
    path = put(tmp_path, "a", THREE)
    with pytest.raises(FileExistsError, match="never replaces"):
        RecordWriter(path, mode="x")
    other = tmp_path / "b"
    late = RecordWriter(other, mode="x")
    late.write(PAYLOADS[0])
    other.write_bytes(b"somebody else's")
    with pytest.raises(FileExistsError, match="never replaces"):
        late.close()
    assert other.read_bytes() == b"somebody else's"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_mode_a_appends_to_a_sound_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write(path, PAYLOADS[:1], mode="a")
    write(path, PAYLOADS[1:], mode="a")
    assert list(read_records(path)) == list(PAYLOADS)


def test_mode_a_keeps_the_compression_of_the_content(tmp_path: Path) -> None:
    path = put(tmp_path, "misleading.tfrecord", golden.THREE_GZ)
    write(path, [b"more"], mode="a")
    assert gzip.decompress(path.read_bytes()) == THREE + golden.frame(b"more")


@pytest.mark.parametrize(
    "content", [golden.CUT_PAYLOAD, golden.CUT_FOOTER, golden.ZERO_TAIL, golden.THREE_GZ[:-5]]
)
def test_mode_a_refuses_a_cut_file_and_leaves_it(tmp_path: Path, content: bytes) -> None:
    path = put(tmp_path, "cut", content)
    with pytest.raises(CorruptRecordError, match="cannot append"):
        RecordWriter(path, mode="a")
    assert path.read_bytes() == content


def test_two_writers_never_append_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(FRAMES[0])
    with RecordWriter(path, mode="a") as first:
        first.write(PAYLOADS[1])
        with pytest.raises(UsageError, match="another writer is appending"):
            RecordWriter(path, mode="a")
    with RecordWriter(path, mode="a") as writer:
        writer.write(PAYLOADS[2])
    assert path.read_bytes() == b"".join(FRAMES[:3])


def test_mode_a_after_a_failure_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = put(tmp_path, "a", THREE)
    with pytest.raises(Interrupted):
        write_then_stop(path, b"x" * 1000, mode="a", block_size=1)
    assert path.read_bytes() == THREE


def test_what_cannot_be_appended_to_or_flushed_is_told(tmp_path: Path) -> None:
    path = put(tmp_path, "z", golden.THREE_ZLIB)
    with pytest.raises(UsageError, match="nothing can be appended to a zlib file"):
        RecordWriter(path, mode="a")
    with pytest.raises(UsageError, match="only local files can be appended to"):
        RecordWriter("memory://x/a", mode="a")
    with pytest.raises(UsageError, match="a zlib file cannot be flushed"):
        write_then_stop(tmp_path / "y", b"a", None, compression="zlib")
    with pytest.raises(UsageError, match=r"flush\(\) cannot"):
        write_then_stop("memory://x/a", None)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
        RecordWriter(tmp_path / "no" / "a")


@pytest.mark.parametrize("flushed", [0, 1])
def test_a_forgotten_writer_warns_and_keeps_what_was_flushed(tmp_path: Path, flushed: int) -> None:
    """Whoever forgot it may have been stopped by an error, so the rest bears no final name."""
    path = tmp_path / "a"
    writer = RecordWriter(path)
    for payload in PAYLOADS[:flushed]:
        writer.write(payload)
        writer.flush()
    writer.write(PAYLOADS[1])
    forgotten = [writer]
    del writer
    with pytest.warns(ResourceWarning, match=rf"{path}: a writer was never closed"):
        forgotten.clear()
    assert [p.read_bytes() for p in tmp_path.iterdir()] == list(FRAMES[:flushed])


@pytest.mark.parametrize("ending", ["", "; 1 / 0"], ids=["end", "error"])
def test_a_writer_forgotten_at_the_end_of_the_program_says_so_and_leaves_nothing(
    tmp_path: Path, ending: str
) -> None:
    program = (
        "import sys; from tfrio.records.writer import RecordWriter;"
        "w = RecordWriter(sys.argv[1], threads=3, block_size=1000);"
        f"[w.write(b'%d' % i * 9) for i in range(2000)]{ending}"
    )
    path = tmp_path / "a.tfrecord.gz"
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == bool(ending)
    assert f"{path}: a writer was never closed" in done.stderr
    assert "2000 records" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_shards_make_the_folder_of_their_prefix(tmp_path: Path) -> None:
    with ShardedWriter(tmp_path / "new" / "deep" / "a", shards=2) as writer:
        writer.write(b"x")
    assert [Path(path).parent for path in writer.paths] == [tmp_path / "new" / "deep"] * 2


def test_a_row_is_pointed_to_the_writer_of_rows(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match=r"got dict; rows go to tfrio\.Writer"),
        ShardedWriter(tmp_path / "a", shards=2) as writer,
    ):
        writer.write({"x": 1})  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("payload", ["text", 5, [1, 2], None])
def test_what_is_no_payload_is_refused(tmp_path: Path, payload: object) -> None:
    writer = RecordWriter(tmp_path / "a")
    with pytest.raises(UsageError, match="a payload must be bytes, got"):
        writer.write(payload)  # type: ignore[arg-type]
    writer.write(np.array([[1, 2], [3, 4]], "<u2"))  # type: ignore[arg-type]
    writer.close()
    assert list(read_records(tmp_path / "a")) == [bytes([1, 0, 2, 0, 3, 0, 4, 0])]


def test_a_folder_is_refused_at_once_and_a_link_is_written_through(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="is a folder"):
        RecordWriter(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write(tmp_path / "link", PAYLOADS)
    assert (tmp_path / "target").read_bytes() == THREE
    assert (tmp_path / "link").is_symlink()


def test_empty_files_are_sound(tmp_path: Path) -> None:
    assert write(tmp_path / "a", []) == b""
    assert gzip.decompress(write(tmp_path / "a.gz", [])) == b""
    assert zlib.decompress(write(tmp_path / "z", [], compression="zlib")) == b""
    for name in ("a", "a.gz", "z"):
        assert list(read_records(tmp_path / name)) == []


def test_urls_and_file_objects_are_written_too(tmp_path: Path) -> None:
    with RecordWriter("memory://writer/a.tfrecord.gz") as writer:
        writer.write(PAYLOADS[0])
    assert list(read_records("memory://writer/a.tfrecord.gz")) == [PAYLOADS[0]]
    buffer = io.BytesIO()
    with RecordWriter(buffer, compression="gzip") as writer:
        writer.write(PAYLOADS[0])
    assert gzip.decompress(buffer.getvalue()) == FRAMES[0]
    with pytest.raises(UsageError, match="expected a path, a URL or a writable file object"):
        RecordWriter(object())  # type: ignore[arg-type]


def test_framed_records_must_end_where_the_data_does(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match=r"ends at \[100\], the data at 138"),
        RecordWriter(tmp_path / "a") as writer,
    ):
        writer.write_framed(THREE, np.array([46, 100]))


@settings(max_examples=60, deadline=None)
@given(
    payloads=st.lists(st.binary(max_size=200), max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=4),
    block_size=st.integers(1, 600),
    threads=st.integers(1, 3),
)
def test_blocks_depend_on_the_records_alone(
    payloads: list[bytes], cuts: list[int], block_size: int, threads: int
) -> None:
    """One by one or framed in any batches, on any number of threads: the same bytes."""
    one, batches = io.BytesIO(), io.BytesIO()
    with RecordWriter(one, compression="gzip", block_size=block_size, threads=1) as writer:
        for payload in payloads:
            writer.write(payload)
    with RecordWriter(
        batches, compression="gzip", block_size=block_size, threads=threads
    ) as writer:
        bounds = [0, *sorted(min(c, len(payloads)) for c in cuts), len(payloads)]
        for begin, end in itertools.pairwise(bounds):
            framed = [golden.frame(p) for p in payloads[begin:end]]
            ends = np.cumsum([len(f) for f in framed], dtype=np.int64)
            writer.write_framed(bytearray(b"".join(framed)), ends)
    assert one.getvalue() == batches.getvalue()
    assert gzip.decompress(one.getvalue()) == b"".join(golden.frame(p) for p in payloads)


def test_refused_arguments_leave_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(TypeError):
        RecordWriter(tmp_path / "a", overwrite=True)  # type: ignore[call-arg]
    RecordWriter.__new__(RecordWriter).__del__()  # as Python does with what was never set up
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr().err == ""
