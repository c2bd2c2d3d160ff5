"""Bytes from and to wherever they live: local files, file objects, fsspec and object-store URLs.

Reading asks for little: fill this buffer, give these bytes. Writing is atomic: bytes go to a
temporary name in the same folder and are renamed once complete, so that nothing half-written
bears a final name.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import secrets
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias, cast, runtime_checkable

from tfrio.errors import TfrioError, UsageError, require

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfrio.types import PathLike

__all__ = [
    "BinaryReader",
    "Source",
    "atomic_write",
    "is_remote",
    "name_of",
    "open_read",
    "open_write",
    "publish",
    "read_full",
    "temporary_beside",
]

# Remote ranges are fetched in pieces of this many bytes: a request costs 20 to 200 ms, as long as
# 8 MiB take on a common link, and 64 MB then need 8 requests.
REMOTE_BLOCK = 8 << 20

_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://")
# Uploads to these become visible only when complete; the others get a temporary name.
_ATOMIC_STORES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl")
_OBSTORE_SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss", "adl", "http", "https")


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


def is_remote(path: object) -> bool:
    """Tell whether ``path`` is a URL other than ``file://``."""
    return isinstance(path, str) and bool(_URL.match(path)) and not path.startswith("file://")


def local_path(path: PathLike) -> Path:
    """Return a local path, without a leading ``file://``."""
    text = os.fspath(path)
    return Path(text.removeprefix("file://"))


def name_of(source: Source) -> str:
    """Return what to call ``source`` in messages."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
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


class LocalReader:
    """A local file, unbuffered."""

    seekable: bool

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self._file = cast("io.FileIO", path.open("rb", buffering=0))
        self.seekable = self._file.seekable()
        self._lock = threading.Lock()

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
        return self._file.readinto(buffer) or 0

    def read_at(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset``, fewer at the end."""
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
        self._file.seek(offset)

    def tell(self) -> int:
        """Return where ``readinto`` continues."""
        return self._file.tell()

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
        self.seekable = _can_seek(self._file)
        self._position: int = self._file.tell() if self.seekable else 0

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
        if not self._block:
            with self._lock:
                if self.seekable:
                    self._file.seek(self._position)
                self._block = memoryview(self._file.read(max(REMOTE_BLOCK, len(buffer))) or b"")
        got = min(len(buffer), len(self._block))
        buffer[:got] = self._block[:got]
        self._block = self._block[got:]
        self._position += got
        return got

    def read_at(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset``, fewer at the end."""
        if not self.seekable:
            raise UsageError(f"{self.name}: this stream cannot seek; copy it to a file first")
        with self._lock:
            self._file.seek(offset)
            return _read_exactly(self._file, length)

    def seek(self, offset: int) -> None:
        """Continue ``readinto`` at ``offset``."""
        if not self.seekable:
            raise UsageError(f"{self.name}: this stream cannot seek; copy it to a file first")
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


class _StoreFile:
    """One object of an obstore store as a file object: a request per read."""

    def __init__(self, url: str) -> None:
        self._obstore = require("obstore", extra="cloud")
        self._store, self._key = _obstore_of(url)
        self.size = int(self._obstore.head(self._store, self._key)["size"])
        self._position = 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        left = max(self.size - self._position, 0)
        length = left if size < 0 else min(size, left)
        if not length:
            return b""
        piece = self._obstore.get_range(self._store, self._key, start=self._position, length=length)
        self._position += len(piece)
        return bytes(piece)

    def close(self) -> None:
        pass


def _obstore_of(url: str) -> tuple[Any, str]:
    """Split ``s3://bucket/key`` into a store for the bucket and the key."""
    stores = require("obstore.store", extra="cloud")
    scheme, _, rest = url.partition("://")
    host, _, key = rest.partition("/")
    return stores.from_url(f"{scheme}://{host}"), key


def _has_fsspec_driver(scheme: str) -> bool:
    """Tell whether fsspec and the package behind ``scheme`` are installed."""
    try:
        require("fsspec", extra="cloud").get_filesystem_class(scheme)
    except (ImportError, ValueError):
        return False
    return True


def filesystem(url: str) -> tuple[Any, str]:
    """Return the fsspec filesystem of a URL and the path within it.

    Raises:
        MissingExtraError: fsspec is not installed.
        UsageError: No driver for this kind of URL is installed.
    """
    fsspec = require("fsspec", extra="cloud")
    try:
        fs, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise UsageError(f"{url}: no driver for this kind of URL ({error})") from error
    return fs, path


def _open_remote(url: str) -> BinaryReader:
    scheme = url.partition("://")[0].lower()
    if scheme in _OBSTORE_SCHEMES and not _has_fsspec_driver(scheme):
        return ObjectReader(_remote_errors(url, lambda: _StoreFile(url)), url, owned=True)
    fs, path = filesystem(url)
    # No cache of its own: blocks are ours, one request each.
    file = _remote_errors(url, lambda: fs.open(path, "rb", cache_type="none"))
    return ObjectReader(file, url, owned=True)


def _remote_errors(url: str, action: Any) -> Any:
    """Run ``action``; a missing object is a FileNotFoundError that names the URL."""
    try:
        return action()
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{url}: no such object") from error


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
    if isinstance(source, str | os.PathLike):
        return LocalReader(local_path(source), os.fspath(source))
    if not hasattr(source, "read"):
        raise UsageError(f"expected a path, a URL or a binary file object, got {source!r}")
    return ObjectReader(source, name_of(source), owned=False)


def temporary_beside(path: Path) -> Path:
    """Return an unused hidden name in the folder of ``path``, where a rename is atomic."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


def _sync_folder(folder: Path) -> None:
    """Make a rename durable: the folder entry itself must reach the disk (POSIX only)."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def publish(temporary: Path, path: Path, *, fsync: bool = False, exclusive: bool = False) -> None:
    """Give a complete temporary file its final name.

    Args:
        temporary: The complete file.
        path: The final name, replaced if it exists.
        fsync: Make the rename durable too.
        exclusive: Refuse to replace an existing file.

    Raises:
        FileExistsError: ``exclusive`` and the name is taken.
    """
    if exclusive:
        try:
            os.link(temporary, path)  # unlike rename, link never replaces
        except FileExistsError:
            raise FileExistsError(f"{path} exists already; mode 'x' never replaces") from None
        except OSError:  # file systems without hard links
            if path.exists():
                raise FileExistsError(f"{path} exists already; mode 'x' never replaces") from None
            temporary.replace(path)
        else:
            temporary.unlink()
    else:
        temporary.replace(path)
    if fsync:
        _sync_folder(path.parent)


def open_write(path: Path) -> io.FileIO:
    """Open a new local file for unbuffered writing; its folder must exist.

    Raises:
        FileNotFoundError: The folder does not exist.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist; create it first")
    return io.FileIO(path, "x")


@contextlib.contextmanager
def atomic_write(path: PathLike, *, fsync: bool = False) -> Iterator[IO[bytes]]:
    """Write a file that appears under its name only when complete.

    Args:
        path: Local path or URL. Existing files are replaced.
        fsync: Wait until the bytes are on the disk before the rename.

    Yields:
        A binary file to write to. When the block raises, nothing is left behind.
    """
    if is_remote(path):
        with _remote_write(cast("str", path)) as remote:
            yield remote
        return
    final = local_path(path)
    temporary = temporary_beside(final)
    file = open_write(temporary)
    try:
        with io.BufferedWriter(file, 1 << 20) as buffered:
            yield buffered
            buffered.flush()
            if fsync:
                os.fsync(file.fileno())
        publish(temporary, final, fsync=fsync)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _remote_write(url: str) -> Iterator[IO[bytes]]:
    scheme = url.partition("://")[0].lower()
    if scheme in _OBSTORE_SCHEMES and not _has_fsspec_driver(scheme):
        store, key = _obstore_of(url)
        file = require("obstore", extra="cloud").open_writer(store, key)
        yield file
        file.close()  # an upload that is never closed never becomes visible
        return
    fs, path = filesystem(url)
    target = path if scheme in _ATOMIC_STORES else _remote_temporary(path)
    file = fs.open(target, "wb")
    try:
        yield file
        file.close()
        if target != path:
            fs.mv(target, path)
    except BaseException:
        _discard_remote(fs, file, target)
        raise


def _remote_temporary(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.{secrets.token_hex(4)}.tmp"


def _discard_remote(fs: Any, file: Any, target: str) -> None:
    """Drop an unfinished upload; what cannot be dropped does not hide the first error."""
    with contextlib.suppress(OSError, TfrioError, NotImplementedError, AttributeError):
        file.discard()
    with contextlib.suppress(OSError):
        fs.rm(target)
