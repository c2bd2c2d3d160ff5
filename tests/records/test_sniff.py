"""Strangers are named with the remedy, and no TFRecord is mistaken for one."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.records import golden
from tests.records.golden import PAYLOADS, THREE, put
from tfrio.errors import NotTFRecordError
from tfrio.records.reader import read_records
from tfrio.records.sniff import sniff

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 123456\n"

STRANGERS = [
    (
        b"<!DOCTYPE html><html><body>Sign in</body></html>",
        "HTML/XML (an error page saved as data?)",
    ),
    (b'<?xml version="1.0"?><Error><Code>InvalidRange', "HTML/XML (an error page saved as data?)"),
    (LFS, "a Git LFS pointer"),
    (
        b"\x28\xb5\x2f\xfd\x04\x00\x01\x00\x00",
        "zstd-compressed; not supported. Decompress with zstd -d",
    ),
    (b"\xfd7zXZ\x00\x00\x04", "xz-compressed"),
    (b"BZh91AY&SY", "bzip2-compressed"),
    (b"II*\x00\x08\x00\x00\x00", "a GeoTIFF or TIFF image"),
    (b"PAR1\x15\x04\x15", "a Parquet file"),
    (b"PK\x03\x04\x14\x00", "a ZIP archive"),
    (b'{"projection": {"crs": "EPSG:4326"}}', "JSON text"),
    (b"id,label\n1,2\n", "text, beginning"),
    (PAYLOADS[0], "one bare tf.train.Example without record framing"),
]


@pytest.mark.parametrize(("content", "text"), STRANGERS)
def test_a_stranger_is_named_with_the_remedy(tmp_path: Path, content: bytes, text: str) -> None:
    path = put(tmp_path, "x.tfrecord", content)
    with pytest.raises(NotTFRecordError) as caught:
        list(read_records(path))
    message = str(caught.value)
    assert message.startswith(f"{path}: not a TFRecord: looks like ")
    assert text in message
    look = sniff(content, len(content))
    assert look.stranger
    assert not look.readable
    assert look.remedy in message


def test_data_compressed_twice_is_named(tmp_path: Path) -> None:
    path = put(tmp_path, "x.tfrecord.gz", gzip.compress(golden.THREE_GZ))
    with pytest.raises(NotTFRecordError, match="compressed twice: inside its gzip lies gzip-com"):
        list(read_records(path))


def test_a_stranger_inside_gzip_is_named_too(tmp_path: Path) -> None:
    path = put(tmp_path, "x.tfrecord.gz", gzip.compress(b"id,label\n1,2\n"))
    with pytest.raises(NotTFRecordError, match="inside its gzip looks like text"):
        list(read_records(path))


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "empty"),
        (THREE, "tfrecord"),
        (golden.THREE_GZ, "gzip"),
        (golden.THREE_ZLIB, "zlib"),
        (golden.HUGE_LENGTH, "tfrecord"),
    ],
)
def test_what_can_be_read_is_no_stranger(content: bytes, kind: str) -> None:
    look = sniff(content[:1024], len(content))
    assert look.kind == kind
    assert look.readable
    assert not look.stranger


def test_a_length_whose_first_bytes_look_like_zlib_or_gzip_is_still_plain() -> None:
    for length in (0x9C78, 0x8B1F):
        head = golden.header(length)
        assert head[:2] in (b"\x78\x9c", b"\x1f\x8b")
        assert sniff(head).kind == "tfrecord"


def test_a_damaged_first_record_is_damage_and_no_stranger() -> None:
    for bit in range(12 * 8):
        assert not sniff(golden.flipped(THREE, bit // 8, 1 << bit % 8), len(THREE)).stranger


def test_a_bare_example_longer_than_the_head_is_recognised_by_the_file_size() -> None:
    payload = b"\x0a\xd0\x0f\x0a\xcd\x0f\x0a\x01x\x12\xc7\x0f" + bytes(1991)
    assert sniff(payload[:1024], len(payload)).kind == "example"
    assert sniff(payload[:1024], 100).kind == "unknown"
