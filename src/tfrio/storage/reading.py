"""Reading bytes in order or at an offset from local files, file objects and URLs."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias, cast, runtime_checkable

from tfrio.errors import UsageError
from tfrio.storage.remote import StoreFile, filesystem, is_remote, remote_errors, uses_obstore
from tfrio.types import path_text

if TYPE_CHECKING:
    from tfrio.types import PathLike

__all__ = [
    "BinaryReader",
    "LocalReader",
    "ObjectReader",
    "Source",
    "local_path",
    "name_of",
    "named",
    "open_read",
    "read_full",
]

# Remote ranges are fetched in pieces of this many bytes: a request costs 20 to 200 ms, as long as
# 8 MiB take on a common link, and 64 MB then need 8 requests.
REMOTE_BLOCK = 8 << 20


@runtime_checkable
class FileObject(Protocol):
    """What a file object given by a user must offer: ``read``."""

    def read(self, size: int = -1, /) -> bytes:
        """Return up to ``size`` bytes, ``b""`` at the end."""
        ...


Source: TypeAlias = "PathLike | FileObject | IO[bytes]"


class BinaryReader(Protocol):
    """Bytes that can be read in order and, where ``seekable``, at any offset."""

    name: str
    seekable: bool

    @property
    def size(self) -> int | None:
        """Bytes in the file; for remote files only a hint; None when unknown."""
        ...

    @property
    def exact(self) -> bool:
        """Whether ``size`` can be trusted (local regular files)."""
        ...

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the start of ``buffer``; 0 at the end. May be short."""
        ...

    def read(self, length: int, /) -> bytes:
        """Return the next bytes in order, at most ``length``; ``b""`` at the end. May be short."""
        ...

    def read_at(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset``, fewer at the end. Safe from several threads."""
        ...

    def seek(self, offset: int) -> None:
        """Continue ``readinto`` at ``offset``."""
        ...

    def tell(self) -> int:
        """Return where ``readinto`` continues."""
        ...

    def close(self) -> None:
        """Release the handle; a file object given by the user stays open."""
        ...


def local_path(path: object) -> Path:
    """Return a local path, without a leading ``file://``.

    Raises:
        UsageError: It is no path, or empty, which would stand for the current folder.
    """
    text = path_text(path).removeprefix("file://")
    if not text:
        raise UsageError("a path is empty; name a file, or '.' for the current folder")
    return Path(text)


def named(error: OSError, name: str) -> OSError:
    """Return an error of the operating system that tells which file it is about."""
    if error.filename is None and error.errno is not None:
        error.filename = name
    return error


def _seekless(name: str) -> UsageError:
    return UsageError(f"{name}: this stream cannot seek; copy it to a file first")


def name_of(source: Source) -> str:
    """Return what to call ``source`` in messages."""
    if isinstance(source, str | bytes | os.PathLike):
        return path_text(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else f"<{type(source).__name__}>"


def read_full(reader: BinaryReader, view: memoryview) -> int:
    """Fill ``view``, looping over short reads.

    Returns:
        Bytes read; less than ``len(view)`` only at the end of the file.
    """
    done = 0
    while done < len(view):
        got = reader.readinto(view[done:])
        if not got:
            break
        done += got
    return done


class _QuietFile(io.FileIO):
    """A file that is closed without a warning when its reader was left in the middle.

    That is no leak: breaking off a loop over records, or an error in its body, leaves the
    iterator to the garbage collector, which may finalize the file before the iterator closes it.
    """

    def __del__(self) -> None:
        self.close()


class LocalReader:
    """A local file, unbuffered."""

    seekable: bool

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        try:
            self._file = _QuietFile(path, "rb")
        except FileNotFoundError:
            raise FileNotFoundError(f"{name}: no such file. Check the path") from None
        except IsADirectoryError:
            raise IsADirectoryError(f"{name}: a folder, not a file. Name a file in it") from None
        self.seekable = self._file.seekable()
        self._lock = threading.Lock()
        # Kept here, not in the file, whose position would be shared with forked processes.
        self._position = 0 if self.seekable and hasattr(os, "preadv") else None

    @property
    def size(self) -> int | None:
        """Bytes in the file; None for pipes and the like."""
        return os.fstat(self._file.fileno()).st_size if self.seekable else None

    @property
    def exact(self) -> bool:
        """A regular file's size can be trusted."""
        return self.seekable

    def fileno(self) -> int:
        """Return the descriptor, for mapping."""
        return self._file.fileno()

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the start of ``buffer``; may be short."""
        try:
            if self._position is None:
                return self._file.readinto(buffer) or 0
            got = os.preadv(self._file.fileno(), [buffer], self._position)
        except OSError as error:
            raise named(error, self.name) from None
        self._position += got
        return got

    def read(self, length: int, /) -> bytes:
        """Return the next bytes, at most ``length``; may be short."""
        try:
            if self._position is None:
                return self._file.read(length) or b""
            piece = os.pread(self._file.fileno(), length, self._position)
        except OSError as error:
            raise named(error, self.name) from None
        self._position += len(piece)
        return piece

    def read_at(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset``, fewer at the end."""
        if not self.seekable:
            raise _seekless(self.name)
        try:
            return self._read_at(offset, length)
        except OSError as error:
            raise named(error, self.name) from None

    def _read_at(self, offset: int, length: int) -> bytes:
        if not hasattr(os, "pread"):
            with self._lock:
                self._file.seek(offset)
                return _read_exactly(self._file, length)
        piece = os.pread(self._file.fileno(), length, offset)
        if len(piece) == length or not piece:
            return piece
        parts = [piece]
        done = len(piece)
        while done < length and (piece := os.pread(self.fileno(), length - done, offset + done)):
            parts.append(piece)
            done += len(piece)
        return b"".join(parts)

    def seek(self, offset: int) -> None:
        """Continue ``readinto`` at ``offset``."""
        if not self.seekable:
            raise _seekless(self.name)
        if self._position is None:
            self._file.seek(offset)
        else:
            self._position = offset

    def tell(self) -> int:
        """Return where ``readinto`` continues."""
        return self._file.tell() if self._position is None else self._position

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _read_exactly(file: FileObject | IO[bytes], length: int) -> bytes:
    """Read ``length`` bytes or up to the end, looping over short reads."""
    parts: list[bytes] = []
    left = length
    while left > 0 and (piece := file.read(left)):
        parts.append(piece)
        left -= len(piece)
    return parts[0] if len(parts) == 1 else b"".join(parts)


class ObjectReader:
    """A file object, or an open remote file; fetched in blocks of 8 MiB when read in order.

    Args:
        file: The object; it needs ``read``, and ``seek`` for random access.
        name: What to call it in messages.
        owned: Whether ``close`` closes it.
    """

    def __init__(self, file: FileObject | IO[bytes], name: str, *, owned: bool) -> None:
        self.name = name
        self._file: Any = file
        self._owned = owned
        self._block = memoryview(b"")
        self._lock = threading.Lock()
        self.seekable = _can_seek(file)
        self._position: int = cast("IO[bytes]", file).tell() if self.seekable else 0

    @property
    def exact(self) -> bool:
        """A stranger's size is only a hint (transparent decompression, growing objects)."""
        return False

    @property
    def size(self) -> int | None:
        """Bytes according to the object, or None."""
        hint = getattr(self._file, "size", None)
        if isinstance(hint, int):
            return hint
        if not self.seekable:
            return None
        with self._lock:
            here = self._file.tell()
            end = self._file.seek(0, os.SEEK_END)
            self._file.seek(here)
        return int(end) if end is not None else None

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the start of ``buffer`` from the current block, fetching the next when empty."""
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def read(self, length: int, /) -> bytes:
        """Return the next bytes of the current block, fetching the next one when it is used up."""
        if not self._block:
            with self._lock:
                if self.seekable:
                    self._file.seek(self._position)
                self._block = memoryview(self._fetch(max(REMOTE_BLOCK, length)))
        piece = bytes(self._block[:length])
        self._block = self._block[length:]
        self._position += len(piece)
        return piece

    def _fetch(self, length: int) -> bytes:
        try:
            return self._file.read(length) or b""
        except OSError as error:
            raise named(error, self.name) from None

    def read_at(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset``, fewer at the end."""
        if not self.seekable:
            raise _seekless(self.name)
        try:
            with self._lock:
                self._file.seek(offset)
                return _read_exactly(self._file, length)
        except OSError as error:
            raise named(error, self.name) from None

    def seek(self, offset: int) -> None:
        """Continue ``readinto`` at ``offset``."""
        if not self.seekable:
            raise _seekless(self.name)
        self._block = memoryview(b"")
        self._position = offset

    def tell(self) -> int:
        """Return where ``readinto`` continues."""
        return self._position

    def close(self) -> None:
        """Close the file if it was opened here; else leave its position after what was used."""
        if self._owned:
            self._file.close()


def _can_seek(file: Any) -> bool:
    test = getattr(file, "seekable", None)
    return bool(test()) if callable(test) else hasattr(file, "seek") and hasattr(file, "tell")


def _open_remote(url: str) -> BinaryReader:
    if uses_obstore(url):
        return ObjectReader(remote_errors(url, lambda: StoreFile(url)), url, owned=True)
    fs, path = filesystem(url)
    # No cache of its own: blocks are ours, one request each.
    file = remote_errors(url, lambda: fs.open(path, "rb", cache_type="none"))
    return ObjectReader(file, url, owned=True)


def open_read(source: Source) -> BinaryReader:
    """Open a file for reading.

    Args:
        source: A local path, a URL (``s3://``, ``gs://``, ``memory://`` ... through obstore or
            fsspec), or a file object with ``read``.

    Returns:
        The reader; close it.

    Raises:
        FileNotFoundError: Nothing there.
        UsageError: Not a path, URL or file object.
    """
    if is_remote(source):
        return _open_remote(cast("str", source))
    if isinstance(source, str | bytes | os.PathLike):
        return LocalReader(local_path(source), path_text(source))
    if not hasattr(source, "read"):
        raise UsageError(f"expected a path, a URL or a binary file object, got {source!r}")
    return ObjectReader(source, name_of(source), owned=False)
