"""Digests, moves and removals, in folders and object stores alike."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import google_crc32c
import pytest

from tests.support.gcs import gcs_environment
from tests.support.s3 import s3_server
from tfrio import storage
from tfrio.geo.outputs import DigestFile, digest_of, make_folder, move, names_like


@pytest.fixture(params=["folder", "memory", "s3", "gs"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Yield a folder to write to, of each kind."""
    if request.param == "folder":
        yield tmp_path.as_posix()
    elif request.param == "memory":
        store = pytest.importorskip("fsspec").filesystem("memory")
        yield "memory://outputs"
        if store.exists("/outputs"):
            store.rm("/outputs", recursive=True)
    else:
        pytest.importorskip("obstore")
        with s3_server() as (address, _):
            for name, value in gcs_environment(address).items():
                monkeypatch.setenv(name, value)
            for name, value in {
                "AWS_ENDPOINT": address, "AWS_ALLOW_HTTP": "true", "AWS_ACCESS_KEY_ID": "a",
                "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1",
            }.items():  # fmt: skip
                monkeypatch.setenv(name, value)
            yield f"{request.param}://bucket/outputs"


def put(path: str, data: bytes) -> None:
    with storage.atomic_write(path) as file:
        file.write(data)


def test_a_digest_is_that_of_google(place: str) -> None:
    data = bytes(range(256)) * 9000  # more than one block
    put(f"{place}/a.bin", data)
    expected = f"crc32c:{google_crc32c.value(data):08x}"
    assert digest_of(f"{place}/a.bin") == expected
    assert digest_of(f"{place}/none.bin") is None
    sink = io.BytesIO()
    file = DigestFile(sink, "a.bin")
    assert file.digest == "crc32c:00000000"
    for start in (0, 1, 70_000):
        end = {0: 1, 1: 70_000, 70_000: len(data)}[start]
        assert file.write(memoryview(data)[start:end]) == end - start
    assert (file.digest, file.size, sink.getvalue()) == (expected, len(data), data)


def test_a_move_replaces_and_leaves_nothing_behind(place: str) -> None:
    put(f"{place}/a.partial", b"new")
    put(f"{place}/a", b"old")
    move(f"{place}/a.partial", f"{place}/a")
    assert digest_of(f"{place}/a") == f"crc32c:{google_crc32c.value(b'new'):08x}"
    assert digest_of(f"{place}/a.partial") is None
    with pytest.raises(FileNotFoundError):
        move(f"{place}/a.partial", f"{place}/b")


def test_a_removal_of_what_is_not_there_is_none(place: str) -> None:
    put(f"{place}/a", b"1")
    storage.remove(f"{place}/a")
    assert digest_of(f"{place}/a") is None
    storage.remove(f"{place}/a")


def test_names_begin_with_the_prefix_hidden_or_not(place: str) -> None:
    for name in ("run-0.x", ".run-1.x.tmp", "other", "runs", "rum"):
        put(f"{place}/{name}", b"1")
    make_folder(f"{place}/deeper/run-9")
    put(f"{place}/deeper/run-9", b"1")
    found = sorted(names_like(f"{place}/run"))
    assert found == sorted(f"{place}/{name}" for name in ("run-0.x", ".run-1.x.tmp", "runs"))
    assert list(names_like(f"{place}/nowhere/run")) == []


def test_folders_are_made_where_there_are_folders(tmp_path: Path) -> None:
    make_folder(str(tmp_path / "a" / "b" / "prefix"))
    assert (tmp_path / "a" / "b").is_dir()
    assert not (tmp_path / "a" / "b" / "prefix").exists()
    make_folder("s3://bucket/a/b")
