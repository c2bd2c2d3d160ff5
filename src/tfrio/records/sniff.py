"""Say what a file is by its first bytes, and what to do when it is no TFRecord.

The one place where strangers are named; reader, verify, index and inspection all ask here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tfrio.compression.detect import detect, header_length

__all__ = ["Look", "sniff"]


@dataclass(frozen=True, slots=True)
class Look:
    """What a file looks like.

    Attributes:
        kind: A short name: ``"tfrecord"``, ``"gzip"``, ``"zlib"``, ``"empty"``, ``"git-lfs"``,
            ``"markup"``, ``"example"``, ``"tiff"`` ... or ``"unknown"``.
        text: What it looks like, in words.
        remedy: What to do; empty for files that can be read.
    """

    kind: str
    text: str
    remedy: str = ""

    @property
    def readable(self) -> bool:
        """Whether this can be read as (perhaps compressed) TFRecord."""
        return self.kind in ("tfrecord", "gzip", "zlib", "empty")

    @property
    def stranger(self) -> bool:
        """Whether this is known to be something else."""
        return not self.readable and self.kind != "unknown"


_LFS = Look(
    "git-lfs",
    "a Git LFS pointer, not the data itself",
    "Fetch the data with `git lfs pull`",
)
_MARKUP = Look(
    "markup",
    "HTML/XML (an error page saved as data?)",
    "Open it in an editor to read the message, then download the data again",
)
_EXAMPLE = Look(
    "example",
    "one bare tf.train.Example without record framing",
    "Frame it: RecordWriter(path).write(payload)",
)
_INDEX_MAGIC = b"TFRINDEX"
_SKIP = "Leave it out, or see `tfrio export` for turning rasters and tables into TFRecord"
_TEXT = (
    "Leave it out, or check how it was made; "
    "`tfrio export table` turns CSV and GeoJSON into TFRecord"
)


def _packed(kind: str, tool: str) -> Look:
    return Look(kind, f"{kind}-compressed; not supported", f"Decompress with {tool}")


# Magic numbers as their formats' specifications give them.
_MAGIC: tuple[tuple[bytes, Look], ...] = (
    (b"version https://git-lfs", _LFS),
    (b"\x28\xb5\x2f\xfd", _packed("zstd", "zstd -d")),
    (b"\xfd7zXZ\x00", _packed("xz", "xz -d")),
    (b"BZh", _packed("bzip2", "bzip2 -d")),
    (b"\x04\x22\x4d\x18", _packed("lz4", "lz4 -d")),
    (b"\xff\x06\x00\x00sNaPpY", _packed("snappy", "a snappy tool")),
    (b"PK\x03\x04", Look("zip", "a ZIP archive", "Unpack it with `unzip`")),
    (b"II*\x00", Look("tiff", "a GeoTIFF or TIFF image", _SKIP)),
    (b"MM\x00*", Look("tiff", "a GeoTIFF or TIFF image", _SKIP)),
    (b"II+\x00", Look("tiff", "a GeoTIFF or TIFF image (BigTIFF)", _SKIP)),
    (b"MM\x00+", Look("tiff", "a GeoTIFF or TIFF image (BigTIFF)", _SKIP)),
    (b"PAR1", Look("parquet", "a Parquet file", _SKIP)),
    (b"ARROW1", Look("arrow", "an Arrow or Feather file", _SKIP)),
    (b"\x89HDF\r\n\x1a\n", Look("hdf5", "an HDF5 or NetCDF-4 file", _SKIP)),
    (b"CDF\x01", Look("netcdf", "a NetCDF file", _SKIP)),
    (b"CDF\x02", Look("netcdf", "a NetCDF file", _SKIP)),
    (b"\x89PNG\r\n\x1a\n", Look("png", "a PNG image", _SKIP)),
    (b"\xff\xd8\xff", Look("jpeg", "a JPEG image", _SKIP)),
    (b"\x93NUMPY", Look("npy", "a NumPy array file", _SKIP)),
    (b"SQLite format 3\x00", Look("sqlite", "an SQLite or GeoPackage file", _SKIP)),
    (b"RIFF", Look("riff", "a RIFF file (WebP, WAV ...)", _SKIP)),
    (b"%PDF-", Look("pdf", "a PDF document", "Leave it out")),
    (b"\x7fELF", Look("elf", "a program", "Leave it out")),
)


def _index_look(head: bytes) -> Look:
    """Recognise our own index; its head tells which file it was made for."""
    name = re.search(rb'"made_for":\{"name":"([^"]*)"', head)
    data = name[1].decode("utf-8", "replace") if name else "another file"
    return Look("index", f"a tfrio index of {data}, not data", "Name the data file instead")


def _text_look(head: bytes) -> Look | None:
    """Recognise markup, JSON and other text by its first characters."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:64].lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml", b"<error", b"<head", b"<body")):
        return _MARKUP
    try:
        text = head[:256].decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head[:256]) - 4:
            return None
        text = head[: error.start].decode("utf-8")
    if len(text) < 4 or not all(c.isprintable() or c in "\r\n\t" for c in text):
        return None
    if text.lstrip()[:1] in "{[":
        return Look("json", "JSON text (a mixer, a manifest, an error message?)", "Leave it out")
    return Look("text", f"text, beginning {text[:24]!r}", _TEXT)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a protobuf varint and the offset behind it; (-1, at) when there is none."""
    value = shift = 0
    for i in range(at, min(at + 10, len(data))):
        value |= (data[i] & 0x7F) << shift
        if not data[i] & 0x80:
            return value, i + 1
        shift += 7
    return -1, at


def _is_bare_example(head: bytes, size: int | None) -> bool:
    """Follow Example -> Features -> map entry -> key, each a length that fits in the one before."""
    room = size if size is not None else 1 << 62
    at = 0
    for depth, tag in enumerate((0x0A, 0x0A, 0x0A)):
        if at >= len(head) or head[at] != tag:
            return False
        length, inside = _varint(head, at + 1)
        if length < (6, 4, 0)[depth] or length > room - (inside - at):
            return False
        room, at = length, inside
    key = head[at : at + room]
    return b"\0" not in key and len(key) > 0


def sniff(head: bytes, size: int | None = None) -> Look:
    """Tell what a file is.

    Args:
        head: Its first bytes, 1 KiB or the whole file when shorter.
        size: Size of the whole file in bytes, where known.

    Returns:
        What it looks like, with the remedy where it cannot be read.
    """
    if not head:
        return Look("empty", "an empty file")
    if header_length(head) is not None:
        return Look("tfrecord", "TFRecord")
    if head.startswith(_INDEX_MAGIC):
        return _index_look(head)
    for magic, look in _MAGIC:
        if head.startswith(magic):
            return look
    packed = detect(head)
    if packed != "none":
        return Look(packed, f"{packed}-compressed data")
    if _is_bare_example(head, size):
        return _EXAMPLE
    if text := _text_look(head):
        return text
    if not head.strip(b"\0"):
        return Look("unknown", "zero bytes (a sparse file, or a copy that failed?)")
    return Look("unknown", "unknown data, beginning " + head[:8].hex(" "))
