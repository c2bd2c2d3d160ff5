"""CRC32C against known values, google-crc32c and the plain-Python reader, every implementation."""

from __future__ import annotations

import random
from collections.abc import Iterator

import google_crc32c
import pytest

from tfrio import _core
from tfrio.testing import reference


@pytest.fixture(params=_core.crc32c_backends())
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Force one implementation after the other."""
    before = _core.crc32c_backend()
    assert _core.crc32c_force(request.param)
    assert _core.crc32c_backend() == request.param
    yield request.param
    _core.crc32c_force(before)


def test_known_values(backend: str) -> None:
    assert _core.crc32c(b"123456789") == 0xE3069283
    assert _core.masked_crc32c(b"123456789") == 0xC78AB0E5
    assert _core.masked_crc32c(b"") == 0xA282EAD8


def test_equals_google_crc32c(backend: str) -> None:
    rng = random.Random(backend)
    data = rng.randbytes(300_000)
    for size in [*range(600), 1023, 1024, 3071, 3072, 3073, 100_000, 299_991]:
        piece = data[size % 9 : size % 9 + size]
        assert _core.crc32c(piece) == google_crc32c.value(piece)


def test_continues(backend: str) -> None:
    data = random.Random(1).randbytes(5000)
    for cut in (0, 1, 255, 256, 2500, 5000):
        first = _core.crc32c(data[:cut])
        assert _core.crc32c(data[cut:], first) == google_crc32c.extend(first, data[cut:])
        assert _core.crc32c(data[cut:], first) == _core.crc32c(data)


def test_equals_the_plain_reader() -> None:
    data = random.Random(2).randbytes(300)
    for size in range(0, 300, 7):
        assert _core.crc32c(data[:size]) == reference.crc32c(data[:size])
        assert _core.masked_crc32c(data[:size]) == reference.masked_crc32c(data[:size])


def test_the_table_is_always_there() -> None:
    assert _core.crc32c_backends()[-1] == "table"
    assert not _core.crc32c_force("abacus")
