"""Where a writer's bytes go: a local file that appears when complete, a URL, or a file object."""

from __future__ import annotations

import contextlib
import os
from typing import IO, TYPE_CHECKING, Protocol

from tfrio.errors import UsageError
from tfrio.storage import (
    atomic_write,
    is_remote,
    is_stream,
    local_path,
    name_of,
    named,
    open_beside,
    publish,
    temporary_beside,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tfrio.storage import Source

__all__ = ["Sink", "open_sink"]


class Sink(Protocol):
    """A place for bytes."""

    name: str

    def write(self, data: bytes | memoryview, /) -> None:
        """Write all of ``data``."""
        ...

    def flush(self) -> None:
        """Bring what was written so far to the disk, readable by others."""
        ...

    def finish(self) -> None:
        """Complete the file and give it its name."""
        ...

    def abort(self) -> None:
        """Give up: leave nothing, or what was there at the last flush (appending: before)."""
        ...

    def forked(self) -> None:
        """Let go of the file without a change, in a forked child of the process that writes it."""
        ...


class LocalSink:
    """A local file under a temporary name until it is complete, or an existing one grown.

    Args:
        path: The final name.
        append_at: Size of the existing sound file to append to, None for a new file.
        exclusive: Never replace an existing file.
        fsync: Wait for the disk when finishing.
    """

    def __init__(self, path: Path, *, append_at: int | None, exclusive: bool, fsync: bool) -> None:
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder; name a file in it")
        path = path.resolve() if path.is_symlink() else path  # the rename would replace the link
        if exclusive and path.exists():
            raise FileExistsError(f"{path} exists already; mode 'x' never replaces")
        self.name = str(path)
        self._path = path
        self._exclusive = exclusive
        self._fsync = fsync
        self._temporary = temporary_beside(path)
        self._published = append_at is not None
        if append_at is None:
            self._file = open_beside(path, self._temporary)
        else:
            self._file = path.open("r+b", buffering=0)
            self._claim(append_at)
            self._file.seek(append_at)
        self._kept = append_at or 0

    def write(self, data: bytes | memoryview, /) -> None:
        """Write all of ``data``, looping over short writes."""
        view = memoryview(data).cast("B")
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            raise named(error, self.name) from None

    def _claim(self, size: int) -> None:
        """Refuse to append beside another writer: each would write over the other's records."""
        taken = not _lock(self._file.fileno())
        if taken or os.fstat(self._file.fileno()).st_size != size:
            self._file.close()
            raise UsageError(
                f"{self.name}: another writer is appending to it; wait until that is closed, or "
                "write a file of its own and merge both"
            )

    def flush(self) -> None:
        """Sync to the disk; a new file gets its final name here, as whole records it is sound."""
        self._sync()
        self._publish(fsync=True)
        self._kept = self._file.tell()

    def _sync(self) -> None:
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise named(error, self.name) from None

    def _publish(self, *, fsync: bool) -> None:
        if not self._published:
            publish(self._temporary, self._path, fsync=fsync, exclusive=self._exclusive)
            self._published = True

    def finish(self) -> None:
        """Sync if asked, close, and rename to the final name."""
        try:
            if self._fsync:
                self._sync()
            self._file.close()
            self._publish(fsync=self._fsync)
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """Remove the temporary file, or cut a published one back to its last flush."""
        if self._published and not self._file.closed:
            self._file.truncate(self._kept)
        self._file.close()
        self._temporary.unlink(missing_ok=True)

    def forked(self) -> None:
        """Close the handle, which writes nothing: it has no buffer."""
        self._file.close()


def _lock(handle: int) -> bool:
    """Take the advisory lock of an open file; False where another handle has it."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


class RemoteSink:
    """An object behind a URL; it becomes visible when complete."""

    def __init__(self, url: str) -> None:
        self.name = url
        self._context = atomic_write(url)
        self._file = self._context.__enter__()

    def write(self, data: bytes | memoryview, /) -> None:
        """Write all of ``data`` to the upload."""
        self._file.write(bytes(data))

    def flush(self) -> None:
        """Refuse: an upload cannot be seen before it is complete."""
        raise UsageError(
            f"{self.name}: flush() cannot bring records to a remote object, which is readable only "
            "once its writer is closed; close it, or write a local file and copy that"
        )

    def finish(self) -> None:
        """Complete the upload."""
        self._context.__exit__(None, None, None)

    def abort(self) -> None:
        """Drop the upload."""
        error = UsageError("given up")
        with contextlib.suppress(UsageError):
            self._context.__exit__(UsageError, error, None)

    def forked(self) -> None:
        """Leave the upload to the process that began it."""


class ObjectSink:
    """A file object given by the user, who closes it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.name = name_of(file)
        self._file = file

    def write(self, data: bytes | memoryview, /) -> None:
        """Write all of ``data``, looping over short writes."""
        view = memoryview(data).cast("B")
        while view:
            done = self._file.write(view)
            view = view[len(view) if done is None else done :]

    def flush(self) -> None:
        """Flush the object, and its file to the disk where it has one."""
        self._file.flush()
        with contextlib.suppress(OSError, AttributeError, ValueError):
            os.fsync(self._file.fileno())

    def finish(self) -> None:
        """Flush the object; it stays open."""
        if hasattr(self._file, "flush"):
            self._file.flush()

    def abort(self) -> None:
        """Leave the object as it is; it is the user's."""

    forked = abort


class StreamSink(ObjectSink):
    """A device, pipe or socket named by its path: written straight to, as nothing can replace it.

    Args:
        path: Its path.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path.open("wb", buffering=0))
        self.name = str(path)

    def write(self, data: bytes | memoryview, /) -> None:
        """Write all of ``data``."""
        try:
            super().write(data)
        except OSError as error:
            raise named(error, self.name) from None

    def finish(self) -> None:
        """Close it."""
        self._file.close()

    abort = forked = finish


def open_sink(
    path: Source | IO[bytes],
    *,
    append_at: int | None = None,
    exclusive: bool = False,
    fsync: bool = False,
) -> Sink:
    """Open a place to write to.

    Args:
        path: Local path, URL or file object.
        append_at: Size of the existing file to append to, None for a new file.
        exclusive: Refuse to replace an existing local file.
        fsync: Wait for the disk when finishing.

    Raises:
        FileExistsError: ``exclusive`` and the file exists.
        UsageError: Not a place to write to, or appending to something else than a local file.
    """
    if is_remote(path):
        if exclusive or append_at is not None:
            raise UsageError(f"{path}: remote objects can only be written with mode 'w'")
        return RemoteSink(str(path))
    if is_stream(path) and not exclusive:
        return StreamSink(local_path(path))
    if isinstance(path, str | bytes | os.PathLike):
        return LocalSink(local_path(path), append_at=append_at, exclusive=exclusive, fsync=fsync)
    if not hasattr(path, "write"):
        raise UsageError(f"expected a path, a URL or a writable file object, got {path!r}")
    return ObjectSink(path)  # type: ignore[arg-type]
