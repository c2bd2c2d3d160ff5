"""Plain web servers: with or without ranges, and errors that name the URL."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    """Serve the test's folder; yield the URL."""
    if not uses_obstore("http://127.0.0.1/"):
        pytest.skip("fsspec serves http here")
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


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


def test_what_is_not_there_is_told_with_its_url(web: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"{web}/nope: no such"):
        tfrio.count(f"{web}/nope")
