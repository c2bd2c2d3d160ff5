"""Files of an export in a folder or an object store: digests, names, moves."""

from __future__ import annotations

import contextlib
from typing import IO, TYPE_CHECKING

from tfrio import _core, storage
from tfrio.errors import require
from tfrio.records.check import crc_of
from tfrio.storage.remote import filesystem, obstore_of, uses_obstore

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DigestFile", "digest_of", "make_folder", "move", "names_like"]


class DigestFile:
    """A file being written that keeps count of its bytes and their CRC32C.

    Args:
        file: Where the bytes go.
        name: What to call it in messages.
    """

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.name = name
        self.size = 0
        self._crc = 0
        self._file = file

    def write(self, data: bytes | memoryview, /) -> int:
        """Write all of ``data``."""
        view = memoryview(data)
        self._file.write(view)
        self._crc = _core.crc32c(view, self._crc)
        self.size += len(view)
        return len(view)

    def flush(self) -> None:
        """Leave flushing to whoever opened the file."""

    @property
    def digest(self) -> str:
        """Return the digest of what was written so far."""
        return f"crc32c:{self._crc:08x}"


def digest_of(path: str) -> str | None:
    """Return the digest of a file, None where there is none."""
    try:
        reader = storage.open_read(path)
    except FileNotFoundError:
        return None
    with contextlib.closing(reader):
        return crc_of(reader)


def make_folder(prefix: str) -> None:
    """Make the local folder a prefix lies in; object stores have none to make."""
    if not storage.is_remote(prefix):
        storage.local_path(prefix).parent.mkdir(parents=True, exist_ok=True)


def names_like(prefix: str) -> Iterator[str]:
    """Yield the files whose names begin with a prefix, temporary ones of ours among them."""
    folder, slash, stem = prefix.replace("\\", "/").rpartition("/")
    try:
        entries = storage.list_folder(folder + slash if slash else ".")
    except FileNotFoundError:
        return
    for entry in entries:
        name = entry.path.replace("\\", "/").rpartition("/")[2]
        if name.removeprefix(".").startswith(stem):
            yield f"{folder}{slash}{name}"


def move(source: str, target: str) -> None:
    """Rename a file, replacing what bears the new name."""
    if not storage.is_remote(source):
        storage.publish(storage.local_path(source), storage.local_path(target))
    elif uses_obstore(source):
        store, key = obstore_of(source)
        require("obstore", extra="cloud").rename(store, key, obstore_of(target)[1])
    else:
        fs, path = filesystem(source)
        fs.mv(path, filesystem(target)[1])
