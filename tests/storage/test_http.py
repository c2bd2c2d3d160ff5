"""Plain web servers: with or without ranges, and errors that name the URL."""

from __future__ import annotations

import contextlib
import functools
import http.server
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

pytest.importorskip("obstore")

import tfrio
from tests.records.golden import PAYLOADS, THREE, THREE_GZ
from tfrio.errors import UsageError
from tfrio.storage import open_read
from tfrio.storage.remote import uses_obstore


class Quiet(http.server.SimpleHTTPRequestHandler):
    """The standard library's server, which knows no ranges."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing."""


class Ranged(Quiet):
    """A server that gives parts of files, and notes what it was asked for."""

    asked: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self) -> None:
        """Answer with the part asked for."""
        wanted = self.headers.get("Range")
        self.asked.append((self.command, wanted))
        path = Path(self.directory) / self.path.lstrip("/")
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        first, last = map(int, (wanted or f"bytes=0-{len(data)}")[6:].split("-"))
        part = data[first : last + 1]
        if wanted and not part:
            self.send_error(416)
            return
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(data)}")
        self.send_header("Last-Modified", self.date_time_string(path.stat().st_mtime))
        self.end_headers()
        self.wfile.write(part)

    def do_HEAD(self) -> None:
        """Tell the size."""
        self.asked.append((self.command, None))
        super().do_HEAD()


def served(folder: Path, handler: type[Quiet]) -> Iterator[str]:
    """Serve a folder; yield the URL."""
    if not uses_obstore("http://127.0.0.1/"):
        pytest.skip("fsspec serves http here")
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(handler, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    """Serve the test's folder without ranges; yield the URL."""
    yield from served(tmp_path, Quiet)


@pytest.fixture
def ranged(tmp_path: Path) -> Iterator[str]:
    """Serve the test's folder with ranges; yield the URL."""
    Ranged.asked.clear()
    yield from served(tmp_path, Ranged)


@pytest.mark.parametrize("data", [THREE, THREE_GZ], ids=["plain", "gzip"])
def test_a_server_without_ranges_is_read_in_order(web: str, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.tfrecord").write_bytes(data)
    url = f"{web}/a.tfrecord"
    assert list(tfrio.read_records(url)) == list(PAYLOADS)
    assert tfrio.count(url).records == 3
    assert tfrio.verify(url).ok
    assert tfrio.info(url).records == 3


def test_parts_of_a_file_are_refused_where_the_server_has_none(web: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(range(200)))
    reader = open_read(f"{web}/a")
    with pytest.raises(UsageError, match=r"/a: this server gives whole files only, .* copy"):
        reader.read_at(100, 5)


@pytest.mark.parametrize("data", [THREE, THREE_GZ], ids=["plain", "gzip"])
def test_a_small_file_is_one_request(
    ranged: str, tmp_path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "a.tfrecord").write_bytes(data)
    url = f"{ranged}/a.tfrecord"
    for work in (tfrio.count, tfrio.verify, tfrio.info, lambda u: list(tfrio.read(u))):
        Ranged.asked.clear()
        work(url)
        assert Ranged.asked == [("GET", "bytes=0-65535")]
    Ranged.asked.clear()
    assert tfrio.open(url, index="auto")[2]["id"] == 30
    assert len(Ranged.asked) == 4, "to walk, to know again, to learn the features, to read"


def test_a_larger_file_costs_a_request_for_its_head_and_one_for_the_rest(
    ranged: str, tmp_path: Path
) -> None:
    with tfrio.RecordWriter(tmp_path / "a.tfrecord") as writer:
        for k in range(100):
            writer.write(bytes([k]) * 2000)
    size = (tmp_path / "a.tfrecord").stat().st_size
    assert tfrio.verify(f"{ranged}/a.tfrecord").records == 100
    assert Ranged.asked == [("GET", "bytes=0-65535"), ("GET", f"bytes=65536-{size - 1}")]
    Ranged.asked.clear()
    with contextlib.closing(open_read(f"{ranged}/a.tfrecord")) as reader:
        assert (reader.size, reader.read_at(size - 4, 4)) == (
            size,
            (tmp_path / "a.tfrecord").read_bytes()[-4:],
        )
    assert len(Ranged.asked) == 2


def test_an_empty_file_has_no_part_to_ask_for(ranged: str, tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"")
    report = tfrio.verify(f"{ranged}/a.tfrecord")
    assert (report.ok, report.empty) == (True, (f"{ranged}/a.tfrecord",))


def test_what_is_not_there_is_told_with_its_url(web: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"{web}/nope: no such"):
        tfrio.count(f"{web}/nope")


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_records_in_any_order_cost_a_request_for_many(
    ranged: str, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with tfrio.Writer(tmp_path / name) as writer:
        for k in range(5_000):
            writer.write({"id": k, "v": random.Random(k).randbytes(200)})
    numbers = random.Random(0).sample(range(5_000), 500)
    rows = tfrio.open(f"{ranged}/{name}")
    Ranged.asked.clear()
    assert [int(row["id"][0]) for row in rows[numbers]] == numbers
    assert len(Ranged.asked) <= 6
    Ranged.asked.clear()
    data = tfrio.ArrayDataset(f"{ranged}/{name}", batch_size=10, shuffle=True, seed=1)
    assert sum(batch.rows for batch in data) == 5_000
    assert len(Ranged.asked) <= 20
