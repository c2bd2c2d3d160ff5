"""Which URLs there are and who serves them: obstore, or any filesystem of fsspec."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from tfrio.errors import TfrioError, UsageError, require

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "StoreFile",
    "filesystem",
    "is_remote",
    "is_web_page",
    "obstore_of",
    "remote_errors",
    "uses_obstore",
]

_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://")
_OBSTORE_SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss", "adl", "http", "https")


def is_remote(path: object) -> bool:
    """Tell whether ``path`` is a URL other than ``file://``."""
    return isinstance(path, str) and bool(_URL.match(path)) and not path.startswith("file://")


def uses_obstore(url: str) -> bool:
    """Tell whether a URL is served by obstore: fsspec has no driver for it."""
    scheme = url.partition("://")[0].lower()
    return scheme in _OBSTORE_SCHEMES and not _has_fsspec_driver(scheme)


def is_web_page(url: str) -> bool:
    """Tell whether a URL is read by plain HTTP, which has no folders and no listing."""
    return url.lower().startswith(("http://", "https://")) and uses_obstore(url)


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


# What comes with the first request, which asks for the size, too: small files whole, and of others
# the part that tells what they are. 64 KiB take 5 ms on a common link, a request 20 to 200.
HEAD_BYTES = 64 << 10


class StoreFile:
    """One object of an obstore store as a file object: a request per read, one for a small file."""

    def __init__(self, url: str) -> None:
        self._obstore = require("obstore", extra="cloud")
        self._url = url
        self._store, self._key = obstore_of(url)
        # Of a server that gives no ranges: its one answer, and what of it came but was not asked.
        self._chunks: Iterator[Any] | None = None
        self._ahead, self._came = b"", 0
        self._position = 0
        self._head = b""
        self._ranges = True
        self.size = self._look()

    def _look(self) -> int:
        """Fetch the head of the object, where the server gives parts; return the object's size."""
        options = {"range": (0, HEAD_BYTES)}
        try:
            found = self._obstore.get(self._store, self._key, options=options)
            self._head = bytes(found.bytes())
            return int(found.meta["size"])
        except FileNotFoundError:
            raise
        except Exception as error:  # noqa: BLE001 - of an empty object there is no part, either
            self._ranges = not _gives_no_parts(error)
            return int(self._obstore.head(self._store, self._key)["size"])

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
        if self._position < len(self._head):
            piece = self._head[self._position : self._position + length]
        else:
            piece = self._range(length) if self._ranges else self._forward(length)
        self._position += len(piece)
        return piece

    def _range(self, length: int) -> bytes:
        start, fetch = self._position, self._obstore.get_range
        return bytes(
            remote_errors(
                self._url, lambda: fetch(self._store, self._key, start=start, length=length)
            )
        )

    def _forward(self, length: int) -> bytes:
        """Read on in the one answer of a server that gives no ranges."""
        if self._position != self._came - len(self._ahead):
            raise UsageError(
                f"{self._url}: this server gives whole files only, not parts of them; copy the "
                "file to a disk or a store first"
            )
        if self._chunks is None:
            whole = remote_errors(self._url, lambda: self._obstore.get(self._store, self._key))
            self._chunks = iter(whole.stream())
        chunks = self._chunks
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


def _gives_no_parts(error: Exception) -> bool:
    """Tell whether an error of the store means that the server answers with whole files only."""
    return "NotSupported" in type(error).__name__


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
