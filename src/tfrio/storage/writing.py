"""Atomic writing: a temporary name beside the final one, then a rename."""

from __future__ import annotations

import contextlib
import io
import os
import re
import secrets
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from tfrio.errors import TfrioError, require
from tfrio.storage.listing import is_stream
from tfrio.storage.reading import local_path
from tfrio.storage.remote import filesystem, is_remote, obstore_of, remote_errors, uses_obstore
from tfrio.types import path_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfrio.types import PathLike

__all__ = [
    "atomic_write",
    "is_temporary",
    "open_beside",
    "open_write",
    "publish",
    "remove",
    "temporary_beside",
]

# Uploads to these become visible only when complete; the others get a temporary name.
_ATOMIC_STORES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl")


_TEMPORARY = re.compile(r"^\..+\.[0-9a-f]{8}\.tmp$")


def is_temporary(name: str) -> bool:
    """Tell whether a file name is one of ``temporary_beside``."""
    return _TEMPORARY.match(name) is not None


def temporary_beside(path: Path) -> Path:
    """Return an unused hidden name in the folder of ``path``, where a rename is atomic."""
    # Names may take up to 255 bytes, and a temporary one is longer.
    name = path.name.encode()[:200].decode(errors="ignore")
    return path.with_name(f".{name}.{secrets.token_hex(4)}.tmp")


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


def open_beside(path: Path, temporary: Path) -> io.FileIO:
    """Open the temporary file that becomes ``path``; errors tell the final name."""
    try:
        return open_write(temporary)
    except OSError as error:
        if error.errno is not None:
            error.filename = path_text(path)
        raise


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
    if is_stream(path):  # a device or a pipe: a rename would put a file in its place
        with final.open("wb") as direct:
            yield direct
        return
    temporary = temporary_beside(final)
    process = os.getpid()
    file = open_beside(final, temporary)
    try:
        with io.BufferedWriter(file, 1 << 20) as buffered:
            yield buffered
            buffered.flush()
            if fsync:
                os.fsync(file.fileno())
        publish(temporary, final, fsync=fsync)
    except BaseException:
        if os.getpid() == process:  # not in a forked child, which leaves the block as it ends
            temporary.unlink(missing_ok=True)
        raise


def remove(path: PathLike) -> None:
    """Remove a file, if there is one.

    Args:
        path: Local path or URL.

    Raises:
        OSError: The store refuses.
    """
    if not is_remote(path):
        local_path(path).unlink(missing_ok=True)
        return
    url = path_text(path)
    with contextlib.suppress(FileNotFoundError):
        if uses_obstore(url):
            store, key = obstore_of(url)
            remote_errors(url, lambda: require("obstore", extra="cloud").delete(store, key))
        else:
            fs, inside = filesystem(url)
            fs.rm(inside)


@contextlib.contextmanager
def _remote_write(url: str) -> Iterator[IO[bytes]]:
    if uses_obstore(url):
        store, key = obstore_of(url)
        file = require("obstore", extra="cloud").open_writer(store, key)
        yield file
        file.close()  # an upload that is never closed never becomes visible
        return
    fs, path = filesystem(url)
    target = path if url.partition("://")[0].lower() in _ATOMIC_STORES else _remote_temporary(path)
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
