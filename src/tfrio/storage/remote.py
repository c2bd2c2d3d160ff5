"""Which URLs there are and who serves them: obstore, or any filesystem of fsspec."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from tfrio.errors import TfrioError, UsageError, require

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["StoreFile", "filesystem", "is_remote", "obstore_of", "remote_errors", "uses_obstore"]

_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://")
_OBSTORE_SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss", "adl", "http", "https")


def is_remote(path: object) -> bool:
    """Tell whether ``path`` is a URL other than ``file://``."""
    return isinstance(path, str) and bool(_URL.match(path)) and not path.startswith("file://")


def uses_obstore(url: str) -> bool:
    """Tell whether a URL is served by obstore: fsspec has no driver for it."""
    scheme = url.partition("://")[0].lower()
    return scheme in _OBSTORE_SCHEMES and not _has_fsspec_driver(scheme)


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


def obstore_of(url: str) -> tuple[Any, str]:
    """Split ``s3://bucket/key`` into a store for the bucket and the key."""
    stores = require("obstore.store", extra="cloud")
    scheme, _, rest = url.partition("://")
    host, _, key = rest.partition("/")
    options = {"allow_http": True} if scheme == "http" else None
    return stores.from_url(f"{scheme}://{host}", client_options=options), key


class StoreFile:
    """One object of an obstore store as a file object: a request per read."""

    def __init__(self, url: str) -> None:
        self._obstore = require("obstore", extra="cloud")
        self._url = url
        self._store, self._key = obstore_of(url)
        # Of a server that gives no ranges: its one answer, and what of it came but was not asked.
        self._chunks: Iterator[Any] | None = None
        self._ahead, self._came = b"", 0
        self.size = int(self._obstore.head(self._store, self._key)["size"])
        self._position = 0

    def seekable(self) -> bool:
        """Ranges can be asked for anywhere."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to an offset."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        """Return the offset of the next byte."""
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        """Fetch the next ``size`` bytes in one request."""
        left = max(self.size - self._position, 0)
        length = left if size < 0 else min(size, left)
        if not length:
            return b""
        piece = self._forward(length) if self._chunks is not None else self._range(length)
        self._position += len(piece)
        return piece

    def _range(self, length: int) -> bytes:
        def fetch() -> bytes:
            start = self._position
            return bytes(
                self._obstore.get_range(self._store, self._key, start=start, length=length)
            )

        try:
            piece: bytes = remote_errors(self._url, fetch)
        except OSError as error:
            if "NotSupported" not in type(error.__cause__).__name__:
                raise
            whole = remote_errors(self._url, lambda: self._obstore.get(self._store, self._key))
            self._chunks = iter(whole.stream())
            return self._forward(length)
        return piece

    def _forward(self, length: int) -> bytes:
        """Read on in the one answer of a server that gives no ranges."""
        if self._position != self._came - len(self._ahead):
            raise UsageError(
                f"{self._url}: this server gives whole files only, not parts of them; copy the "
                "file to a disk or a store first"
            )
        chunks = self._chunks
        assert chunks is not None
        while not self._ahead:
            self._ahead = remote_errors(self._url, lambda: bytes(next(chunks, b"")))
            self._came += len(self._ahead)
            if not self._ahead:
                return b""
        piece, self._ahead = self._ahead[:length], self._ahead[length:]
        return piece

    def close(self) -> None:
        """Drop what is under way."""
        self._chunks = None


def remote_errors(url: str, action: Any) -> Any:
    """Run ``action``; errors of the store become ones of the system that name the URL.

    Raises:
        FileNotFoundError: No such object.
        OSError: The store cannot be reached, or refuses.
    """
    try:
        return action()
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{url}: no such object") from error
    except TfrioError:
        raise
    except Exception as error:
        if not type(error).__module__.startswith("obstore"):
            raise
        first = str(error).partition("\n")[0].strip()
        raise OSError(
            f"{url}: the store cannot be read ({first}). Check the address, the network and the "
            "credentials"
        ) from error
