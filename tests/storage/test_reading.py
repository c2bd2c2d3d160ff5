"""Files that are read: closed in silence when their reader was left in the middle."""

from __future__ import annotations

import errno
import gc
import io
import os
import warnings
from pathlib import Path

import pytest

import tfrio
from tfrio.errors import UsageError
from tfrio.storage.reading import LocalReader, local_path, open_read


def test_a_reader_left_in_the_middle_closes_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with tfrio.RecordWriter(path) as writer:
        writer.write(b"payload")
    gc.collect()  # what other tests left must not give descriptors back below
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reader = LocalReader(path, "a")
        descriptor = reader.fileno()
        loop = [reader]
        loop.append(loop)  # a cycle, as a traceback makes one
        del reader, loop
        gc.collect()
    with path.open("rb") as again:
        assert again.fileno() == descriptor  # it was given back


def test_an_empty_path_is_refused_as_it_would_be_the_current_folder() -> None:
    for path in ("", "file://"):
        with pytest.raises(UsageError, match="a path is empty; name a file, or '.'"):
            local_path(path)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file whose reading fails")
def test_errors_of_the_system_tell_the_path() -> None:
    """Nothing is mapped at the start of a process's memory: reading it is an input/output error."""
    reader = LocalReader(Path("/proc/self/mem"), "/proc/self/mem")
    reads = (
        lambda: reader.read(10),
        lambda: reader.readinto(memoryview(bytearray(10))),
        lambda: reader.read_at(0, 10),
    )
    for read in reads:
        with pytest.raises(OSError, match=r"\[Errno 5\] .*: '/proc/self/mem'"):
            read()
    reader.close()


class Failing(io.BytesIO):
    """A file object whose medium fails."""

    def read(self, size: int | None = -1, /) -> bytes:
        raise OSError(errno.EIO, "Input/output error")


def test_errors_of_file_objects_tell_their_name() -> None:
    reader = open_read(Failing(b"x"))
    for read in (lambda: reader.read(1), lambda: reader.read_at(0, 1)):
        with pytest.raises(OSError, match="Input/output error: '<Failing>'"):
            read()


def test_a_pipe_gives_bytes_in_order_but_not_by_offset() -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"abc")
    os.close(theirs)
    path = f"/dev/fd/{ours}"
    reader = LocalReader(Path(path), path)
    with pytest.raises(UsageError, match=f"{path}: this stream cannot seek"):
        reader.read_at(0, 1)
    with pytest.raises(UsageError, match="cannot seek"):
        reader.seek(1)
    assert (reader.size, reader.exact) == (None, False)
    assert reader.read(5) == b"abc"
    reader.close()
    os.close(ours)
