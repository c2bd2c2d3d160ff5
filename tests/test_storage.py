"""Storage: local files, file objects, URLs; atomic writes that leave nothing half done."""

from __future__ import annotations

import io
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pytest

from tests.support.s3 import s3_server
from tfrio import storage
from tfrio.errors import UsageError
from tfrio.storage import reading, remote

DATA = bytes(range(256)) * 300


class Counting(io.BytesIO):
    """Counts reads, as a remote file would count requests."""

    requests = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.requests += 1
        return super().read(size)


@pytest.fixture
def memory_url() -> str:
    url = "memory://storage-tests/a.bin"
    with storage.atomic_write(url) as file:
        file.write(DATA)
    return url


class Interrupted(Exception):
    """Raised amid writing."""


def write_half(place: str | Path) -> None:
    with storage.atomic_write(place) as file:
        file.write(b"half")
        raise Interrupted


def read_all(reader: storage.BinaryReader) -> bytes:
    parts = []
    while piece := reader.read(1000):
        parts.append(piece)
    return b"".join(parts)


@pytest.mark.parametrize("kind", ["local", "object", "memory"])
def test_a_reader_gives_the_same_bytes_from_anywhere(
    tmp_path: Path, memory_url: str, kind: str
) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(DATA)
    source = {"local": path, "object": io.BytesIO(DATA), "memory": memory_url}[kind]
    reader = storage.open_read(source)
    buffer = bytearray(len(DATA) + 5)
    assert storage.read_full(reader, memoryview(buffer)) == len(DATA)
    assert bytes(buffer[:-5]) == DATA
    assert reader.readinto(memoryview(buffer)) == 0
    assert reader.size == len(DATA)
    assert reader.read_at(1000, 50) == DATA[1000:1050]
    assert reader.read_at(len(DATA) - 3, 50) == DATA[-3:]
    reader.seek(77)
    assert reader.tell() == 77
    assert read_all(reader) == DATA[77:]
    assert reader.exact == (kind == "local")
    reader.close()


def test_a_file_object_starts_where_it_stands_and_stays_open() -> None:
    file = io.BytesIO(DATA)
    file.seek(100)
    reader = storage.open_read(file)
    assert reader.read(3) == DATA[100:103]
    reader.close()
    assert not file.closed


def test_what_cannot_seek_says_so() -> None:
    class Pipe(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            return b"x"

    reader = storage.open_read(Pipe())
    assert reader.size is None
    for call in (lambda: reader.seek(1), lambda: reader.read_at(0, 1)):
        with pytest.raises(UsageError, match="cannot seek; copy it to a file first"):
            call()


def test_reading_in_order_makes_few_requests() -> None:
    file = Counting(bytes(64 << 20))
    reader = storage.open_read(file)
    buffer = memoryview(bytearray(1 << 20))
    while reader.readinto(buffer):
        pass
    assert file.requests <= 20


def test_ranges_may_be_read_from_several_threads(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(DATA)
    for source in (tmp_path / "a", io.BytesIO(DATA)):
        reader = storage.open_read(source)
        with ThreadPoolExecutor(4) as pool:
            pieces = list(pool.map(reader.read_at, range(0, 70_000, 100), [100] * 700))
        assert b"".join(pieces) == DATA[:70000]
        reader.close()


def test_ranges_are_read_where_the_system_has_no_pread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(DATA)
    monkeypatch.delattr(os, "pread")
    reader = storage.open_read(tmp_path / "a")
    assert reader.read_at(5, 7) == DATA[5:12]
    reader.close()


def test_missing_files_and_strange_sources_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no"):
        storage.open_read(tmp_path / "no")
    with pytest.raises(FileNotFoundError, match="memory://nothing/here: no such object"):
        storage.open_read("memory://nothing/here")
    with pytest.raises(UsageError, match="expected a path, a URL or a binary file object"):
        storage.open_read(7)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no driver for this kind of URL"):
        storage.open_read("nosuchscheme://x/y")


def test_names_and_urls_are_told_apart() -> None:
    assert storage.is_remote("s3://b/k")
    assert not storage.is_remote("file:///tmp/x")
    assert not storage.is_remote("C:/x")
    assert not storage.is_remote(Path("s3:/b"))
    assert storage.local_path("file:///tmp/x") == Path("/tmp/x")
    assert storage.name_of(Path("a/b")) == "a/b"
    assert storage.name_of(io.BytesIO()) == "<BytesIO>"


@pytest.mark.parametrize("fsync", [False, True])
def test_an_atomic_write_appears_when_complete(tmp_path: Path, fsync: bool) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with storage.atomic_write(path, fsync=fsync) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_atomic_write_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(Interrupted):
        write_half(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
        storage.atomic_write(tmp_path / "no" / "a").__enter__()


def test_a_remote_write_that_fails_leaves_nothing() -> None:
    fs = fsspec.filesystem("memory")
    with pytest.raises(Interrupted):
        write_half("memory://half/a")
    assert not fs.exists("/half/a")
    assert fs.find("/half") == []


def test_publishing_exclusively_works_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "t").write_bytes(b"x")
    storage.publish(tmp_path / "t", tmp_path / "a", exclusive=True)
    assert (tmp_path / "a").read_bytes() == b"x"
    (tmp_path / "t").write_bytes(b"y")
    with pytest.raises(FileExistsError, match="never replaces"):
        storage.publish(tmp_path / "t", tmp_path / "a", exclusive=True)


def test_an_object_store_is_read_written_and_listed_through_obstore(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with s3_server() as (endpoint, _):
        for name, value in (
            ("AWS_ENDPOINT", endpoint),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", "x"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("AWS_REGION", "us-east-1"),
        ):
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(remote, "_has_fsspec_driver", lambda scheme: False)
        with storage.atomic_write("s3://bucket/d/a.bin") as file:
            file.write(DATA)
        reader = storage.open_read("s3://bucket/d/a.bin")
        assert isinstance(reader, reading.ObjectReader)
        assert reader.size == len(DATA)
        assert reader.read_at(1000, 50) == DATA[1000:1050]
        assert read_all(reader) == DATA
        assert storage.size_of("s3://bucket/d/a.bin") == len(DATA)
        assert storage.size_of("s3://bucket/d/none") is None
        assert storage.is_folder("s3://bucket/d")
        assert [e.path for e in storage.list_folder("s3://bucket/d")] == ["s3://bucket/d/a.bin"]
        assert [e.size for e in storage.list_glob("s3://bucket/d/*.bin")] == [len(DATA)]
        with pytest.raises(FileNotFoundError, match="no such object"):
            storage.open_read("s3://bucket/d/none")
        with pytest.raises(Interrupted):
            write_half("s3://bucket/b")
        assert storage.size_of("s3://bucket/b") is None


@pytest.mark.parametrize("kind", ["local", "memory", "store"])
def test_removing_what_is_there_and_what_is_not(
    tmp_path: Path, memory_url: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = pytest.importorskip("obstore.store").MemoryStore()
    url = {"local": str(tmp_path / "a"), "memory": memory_url, "store": "s3://bucket/a"}[kind]
    if kind == "store":
        for module in ("writing", "listing"):
            monkeypatch.setattr(f"tfrio.storage.{module}.uses_obstore", lambda _: True)
            monkeypatch.setattr(f"tfrio.storage.{module}.obstore_of", lambda _: (store, "a"))
    with storage.atomic_write(url) as file:
        file.write(DATA)
    assert storage.size_of(url) == len(DATA)
    storage.remove(url)
    assert storage.size_of(url) is None
    storage.remove(url)
