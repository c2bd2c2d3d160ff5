"""What bytes say of the image they are, and the ways back from text."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrio.errors import DecodeError
from tfrio.examples.codecs import decode_value
from tfrio.examples.images import image_format, image_size, mangled_text, unmangle
from tfrio.examples.schema import Feature

JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(range(0x80, 0xA0))
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"\xff\xd8\xff\xe1", "JPEG"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (b"GIF89a", "GIF"),
        (b"BM" + bytes(24), "BMP"),
        (b"BMW 320", None),
        (b"II*\x00", "TIFF"),
        (b"MM\x00*", "TIFF"),
        (b"RIFF\x00\x00\x00\x00WEBP", "WEBP"),
        (b"text", None),
        (b"b'text'", None),
        ("\ufffd\ufffd".encode(), None),
        (b"", None),
    ],
)
def test_image_formats(start: bytes, name: str | None) -> None:
    assert image_format(start) == name
    assert mangled_text(start) is None


def _as_cp1252(data: bytes) -> bytes:
    """Return bytes as a Windows program stores the text it takes them for."""
    undefined = {0x81, 0x8D, 0x8F, 0x90, 0x9D}
    return "".join(chr(b) if b in undefined else bytes([b]).decode("cp1252") for b in data).encode()


WAYS: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda data: data.decode("latin-1").encode(), "UTF-8-encoded"),
    (_as_cp1252, "UTF-8-encoded"),
    (base64.b64encode, "base64-encoded"),
    (base64.encodebytes, "base64-encoded"),
    (lambda data: str(data).encode(), "printed"),
    (lambda data: str(data + b"'").encode(), "printed"),
]


@pytest.mark.parametrize(("data", "name"), [(JPEG, "JPEG"), (PNG, "PNG")])
@pytest.mark.parametrize(("way", "told"), WAYS)
def test_an_image_that_went_through_text_is_told_and_restored(
    data: bytes, name: str, way: Callable[[bytes], bytes], told: str
) -> None:
    value = way(data)
    assert image_format(value) == f"{told} {name}"
    assert mangled_text(value) == f"{told} {name} (was {data[:2].hex(' ')})"
    assert unmangle(value).rstrip(b"'") == data.rstrip(b"'")
    pytest.importorskip("PIL")
    with pytest.raises(DecodeError, match=rf"looks like {told} {name} \(was .*unmangle"):
        decode_value(value, Feature("bytes", codec="image"), None)


def test_a_data_url_is_restored() -> None:
    value = b"data:image/png;base64," + base64.b64encode(PNG)
    assert image_format(value) == "base64-encoded PNG"
    assert unmangle(value) == PNG


@pytest.mark.parametrize(("data", "name"), [(JPEG, "JPEG"), (PNG, "PNG")])
def test_replaced_bytes_are_told_to_be_lost(data: bytes, name: str) -> None:
    value = data.decode("utf-8", "replace").encode()
    assert image_format(value) == f"text-damaged {name}"
    with pytest.raises(DecodeError, match="lost: write the file again"):
        unmangle(value)
    pytest.importorskip("PIL")
    with pytest.raises(DecodeError, match=f"text-damaged {name}.*lost, write it again"):
        decode_value(value, Feature("bytes", codec="image"), None)


@given(st.binary())
def test_any_bytes_taken_for_latin_1_come_back(data: bytes) -> None:
    value = data.decode("latin-1").encode()
    if not value.startswith((b"b'", b'b"')) and image_format(value) is None:
        assert unmangle(value) == data


def test_what_never_was_text_is_left_alone() -> None:
    for value in (JPEG, b"b'open", b"b'1' + 2", "b'\u0416".encode()):
        with pytest.raises(DecodeError, match="did not go through a text type"):
            unmangle(value)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "BMP", "WEBP"])
@pytest.mark.parametrize(("width", "height"), [(7, 5), (300, 1), (1, 513)])
def test_the_size_is_that_of_pillow(form: str, width: int, height: int) -> None:
    pillow = pytest.importorskip("PIL.Image")
    image = pillow.fromarray(np.zeros((height, width, 3), np.uint8))
    ways = [{}, {"lossless": True}, {"exif": b"Exif\0\0"}] if form == "WEBP" else [{}]
    if form == "JPEG":
        ways += [{"progressive": True}, {"comment": b"x" * 300}]
    for options in ways:
        out = io.BytesIO()
        image.save(out, format=form, **options)
        assert image_size(out.getvalue()) == (width, height)
        for cut in range(0, 60, 7):
            assert image_size(out.getvalue()[:cut]) in (None, (width, height))


def test_what_tells_no_size() -> None:
    assert image_size(b"II*\x00") is None
    assert image_size(b"no image") is None
    assert image_size(b"BM" + bytes(30)) is None
    assert image_size(b"\xff\xd8\xff\xe0\x00\x00" + bytes(20)) is None
