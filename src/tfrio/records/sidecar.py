"""Index files: ours beside the data (or in a cache folder), and the text index of tfrecord2idx.

Layout of ours: 8 bytes magic, 4 bytes length of the head, the head as JSON, the arrays, 4 bytes
CRC32C of all before. Offsets are stored as differences in 0, 1, 2, 4 or 8 bytes each, whichever
holds the largest; 0 means that all differences are the same. All numbers are little-endian.
"""

from __future__ import annotations

import hashlib
import os
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np

from tfrio import _core
from tfrio.compression import Compression  # noqa: TC001 - msgspec reads the annotation
from tfrio.errors import IndexFileError
from tfrio.records.fit import misplaced
from tfrio.records.index import Blocks, RecordIndex
from tfrio.records.names import SIDECAR, base_name
from tfrio.records.seek import SeekPoints
from tfrio.storage import (
    atomic_write,
    is_remote,
    local_path,
    name_of,
    open_read,
    refuse_stream,
    size_of,
)
from tfrio.types import path_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfrio.storage import Source
    from tfrio.types import PathLike

__all__ = [
    "FORMAT_VERSION",
    "Fingerprint",
    "cache_folder",
    "fingerprint",
    "load_index",
    "save_index",
    "sidecar_places",
]

FORMAT_VERSION = 1
_MAGIC = b"TFRINDEX"
_ENDS = 4096  # bytes at the head and at the tail of the data that the digest covers
# A file changed less than this before it was indexed may change again within the same tick of
# the clock, so its time proves nothing.
_SETTLED_NS = 2_000_000_000

_Int64: TypeAlias = "NDArray[np.int64]"


class Fingerprint(msgspec.Struct, frozen=True):
    """What tells one data file from another.

    Attributes:
        name: File name of the data.
        size: Stored size in bytes.
        digest: SHA-256 over the first and the last 4 KiB, in hex.
        mtime_ns: Time of the last change where it can be relied on, else 0.
    """

    name: str
    size: int
    digest: str
    mtime_ns: int = 0


class _Head(msgspec.Struct, frozen=True):
    """The head of an index file. ``arrays`` holds name, first value, bytes a value and count."""

    version: int
    made_for: Fingerprint
    compression: Compression
    count: int
    data_size: int
    partial: bool
    arrays: tuple[tuple[str, int, int, int], ...]
    windows: tuple[int, ...]


def fingerprint(path: Source) -> Fingerprint:
    """Compute the fingerprint of a data file; reads at most 8 KiB of it.

    Raises:
        UsageError: The path is a pipe.
    """
    refuse_stream(path, "recognising a file by its head and tail")
    reader = open_read(path)
    try:
        size = reader.size or 0
        digest = hashlib.sha256(reader.read_at(0, min(size, _ENDS)))
        digest.update(reader.read_at(max(size - _ENDS, 0), min(size, _ENDS)))
    finally:
        reader.close()
    return Fingerprint(base_name(name_of(path)), size, digest.hexdigest(), _mtime(path))


def _mtime(path: Source) -> int:
    """Return the time of the last change of a local file, 0 where it is too fresh or unknown."""
    if not isinstance(path, str | os.PathLike) or is_remote(path):
        return 0
    changed = local_path(path).stat().st_mtime_ns
    return changed if time.time_ns() - changed > _SETTLED_NS else 0


def _misfit(made_for: Fingerprint, index: RecordIndex, path: PathLike) -> str | None:
    """Return why an index does not fit its data, None when it does."""
    size = size_of(path_text(path))
    if made_for.mtime_ns and size == made_for.size and _mtime(path) == made_for.mtime_ns:
        return None  # nothing of the data needs to be read
    found = fingerprint(path)
    made = f"index was made for {made_for.name} (size {made_for.size}, digest "
    if found.size != made_for.size or found.digest != made_for.digest:
        return (
            f"{made}{made_for.digest[:12]}) but {name_of(path)} has size {found.size}, digest "
            f"{found.digest[:12]}"
        )
    wrong = misplaced(index, path)
    if wrong is None:
        return None
    return (
        f"{made}{made_for.digest[:12]}) and {name_of(path)} was changed in its middle since: "
        f"what lies at byte {wrong} is not as the index says"
    )


def cache_folder() -> Path:
    """Return where indexes go when the data folder cannot be written to.

    ``TFRIO_CACHE``, else ``XDG_CACHE_HOME/tfrio``, else ``~/.cache/tfrio``.
    """
    if chosen := os.environ.get("TFRIO_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tfrio"


def sidecar_places(path: PathLike) -> tuple[Path, ...]:
    """Return where the index of a data file may lie: beside it, then in the cache folder."""
    text = path_text(path)
    key = text if is_remote(text) else str(local_path(text).resolve())
    name = f"{base_name(text)}-{hashlib.sha256(key.encode()).hexdigest()[:16]}{SIDECAR}"
    cached = cache_folder() / "index" / name
    if is_remote(text):
        return (cached,)
    beside = local_path(text)
    return (beside.with_name(beside.name + SIDECAR), cached)


def _pack(name: str, values: _Int64) -> tuple[tuple[str, int, int, int], bytes]:
    """Return the entry of an ascending array in the head, and its bytes."""
    if not len(values):
        return (name, 0, 0, 0), b""
    steps = np.diff(values)
    if len(steps) == 0 or int(steps.min()) == int(steps.max()):
        step = int(steps[0]) if len(steps) else 0
        return (name, int(values[0]), 0, len(values)), np.int64(step).tobytes()
    width = next(w for w in (1, 2, 4, 8) if int(steps.max()) < 1 << (8 * w))
    return (name, int(values[0]), width, len(values)), steps.astype(f"<u{width}").tobytes()


def _unpack(entry: tuple[str, int, int, int], data: memoryview) -> tuple[_Int64, int]:
    """Return an array and the bytes it took."""
    _, first, width, count = entry
    if not count:
        return np.empty(0, np.int64), 0
    values = np.empty(count, np.int64)
    values[0] = first
    if width == 0:
        step = int.from_bytes(data[:8], "little")
        return first + step * np.arange(count, dtype=np.int64), 8
    steps = np.frombuffer(data, f"<u{width}", count - 1)
    values[1:] = first + np.cumsum(steps, dtype=np.int64)
    return values, width * (count - 1)


def _arrays(index: RecordIndex) -> list[tuple[str, _Int64]]:
    arrays = [("offsets", index.offsets)] if index.offsets is not None else []
    if index.blocks is not None:
        arrays += [
            ("block_stored", index.blocks.stored),
            ("block_data", index.blocks.data),
            ("block_first", index.blocks.first),
        ]
    arrays += [("point_stored", index.points.stored), ("point_data", index.points.data)]
    return arrays


def _encode(index: RecordIndex, made_for: Fingerprint) -> bytes:
    packed = [_pack(name, values) for name, values in _arrays(index)]
    windows = [zlib.compress(window, 1) for window in index.points.windows]
    head = msgspec.json.encode(
        _Head(
            FORMAT_VERSION,
            made_for,
            index.compression,
            index.count,
            index.data_size,
            index.partial,
            tuple(entry for entry, _ in packed),
            tuple(len(window) for window in windows),
        )
    )
    body = b"".join(
        [_MAGIC, len(head).to_bytes(4, "little"), head, *(data for _, data in packed), *windows]
    )
    return body + _core.crc32c(body).to_bytes(4, "little")


def save_index(index: RecordIndex, path: PathLike, *, out: PathLike | None = None) -> Path:
    """Write an index file, atomically.

    Args:
        index: The index of ``path``.
        path: The data file.
        out: Where to; by default beside the data, or in the cache folder where that is read-only
            or remote.

    Returns:
        Where it was written.

    Raises:
        OSError: Nowhere to write to.
    """
    data = _encode(index, fingerprint(path))
    places = (local_path(out),) if out is not None else sidecar_places(path)
    for place in places:
        last = place == places[-1]
        try:
            if last and out is None:
                place.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(place) as file:
                file.write(data)
        except OSError:
            if last:
                raise
        else:
            return place
    raise AssertionError("there is always a place")


def _decode(data: bytes, name: str) -> tuple[RecordIndex, Fingerprint]:
    """Read an index file.

    Raises:
        IndexFileError: Damaged, or of another version.
    """
    again = "delete it, or make it again with `tfrio index`"
    if len(data) < 16 or not data.startswith(_MAGIC):
        raise IndexFileError(f"{name}: not a tfrio index; {again}", path=name)
    if _core.crc32c(data[:-4]) != int.from_bytes(data[-4:], "little"):
        raise IndexFileError(f"{name}: this index is damaged (its checksum differs); {again}")
    at = 12 + int.from_bytes(data[8:12], "little")
    version = msgspec.json.decode(data[12:at]).get("version")
    if version != FORMAT_VERSION:
        raise IndexFileError(f"{name}: index format {version}, this tfrio reads 1; {again}")
    head = msgspec.json.decode(data[12:at], type=_Head)
    view = memoryview(data)
    arrays: dict[str, _Int64] = {}
    for entry in head.arrays:
        arrays[entry[0]], used = _unpack(entry, view[at:-4])
        at += used
    windows = []
    for length in head.windows:
        windows.append(zlib.decompress(view[at : at + length]))
        at += length
    return _index_of(head, arrays, tuple(windows)), head.made_for


def _index_of(head: _Head, arrays: dict[str, _Int64], windows: tuple[bytes, ...]) -> RecordIndex:
    blocks = None
    if "block_first" in arrays:
        blocks = Blocks(arrays["block_stored"], arrays["block_data"], arrays["block_first"])
    points = SeekPoints(arrays["point_stored"], arrays["point_data"], windows)
    return RecordIndex(
        head.compression,
        head.count,
        head.data_size,
        arrays.get("offsets"),
        blocks,
        points,
        head.partial,
    )


def load_index(path: PathLike, place: PathLike) -> RecordIndex:
    """Read an index file and check that it fits its data.

    Args:
        path: The data file.
        place: The index file.

    Returns:
        The index.

    Raises:
        FileNotFoundError: No such index.
        IndexFileError: The index is damaged, of another version, or made for other data.
    """
    name = path_text(place)
    index, made_for = _decode(local_path(place).read_bytes(), name)
    misfit = _misfit(made_for, index, path)
    if misfit:
        raise IndexFileError(
            f"{misfit} ({name}). Make it again with `tfrio index`, or delete it", path=name
        )
    return index
