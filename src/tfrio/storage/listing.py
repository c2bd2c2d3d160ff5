"""Listing files of folders and globs, local and remote."""

from __future__ import annotations

import contextlib
import fnmatch
import itertools
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfrio.errors import UsageError, require
from tfrio.storage.reading import local_path
from tfrio.storage.remote import (
    filesystem,
    is_remote,
    is_web_page,
    obstore_of,
    remote_errors,
    uses_obstore,
)
from tfrio.types import path_text

if TYPE_CHECKING:
    from tfrio.types import PathLike

__all__ = [
    "Entry",
    "is_folder",
    "is_regular",
    "is_stream",
    "list_folder",
    "list_glob",
    "refuse_existing",
    "refuse_stream",
    "size_of",
]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file found in a folder; ``size`` in bytes is None where the store does not tell."""

    path: str
    size: int | None


def _store_entries(url: str) -> list[Entry]:
    """List all objects below a URL through obstore."""
    if is_web_page(url):
        return []  # asking for a listing by WebDAV ends in errors nearly everywhere
    obstore = require("obstore", extra="cloud")
    store, key = obstore_of(url)
    root = url[: len(url) - len(key)]

    def entries() -> list[Entry]:
        """Ask the store."""
        batches = obstore.list(store, prefix=key.rpartition("/")[0] or None)
        return [Entry(root + str(m["path"]), int(m["size"])) for batch in batches for m in batch]

    found: list[Entry] = remote_errors(url, entries)
    return found


def size_of(path: str) -> int | None:
    """Return the size in bytes of a file, None when there is no such file.

    A remote file whose size the store does not tell counts as 0.
    """
    if not is_remote(path):
        local = local_path(path)
        return local.stat().st_size if local.exists() and not local.is_dir() else None
    if uses_obstore(path):
        with contextlib.suppress(FileNotFoundError):
            store, key = obstore_of(path)
            head = require("obstore", extra="cloud").head
            return int(remote_errors(path, lambda: head(store, key))["size"])
        return None
    fs, inside = filesystem(path)
    return int(fs.size(inside) or 0) if fs.isfile(inside) else None


def is_regular(source: object) -> bool:
    """Tell whether this names a local file that can be opened several times (not a pipe)."""
    if not isinstance(source, str | bytes | os.PathLike) or is_remote(source):
        return False
    return local_path(source).is_file()


def is_stream(source: object) -> bool:
    """Tell whether this names a local pipe, socket or device, whose bytes come only once."""
    if not isinstance(source, str | bytes | os.PathLike) or is_remote(source):
        return False
    local = local_path(source)
    return local.exists() and not local.is_file() and not local.is_dir()


def refuse_existing(*paths: PathLike | None, overwrite: bool) -> None:
    """Refuse to write to a name that is taken; pipes and devices are written to, not replaced.

    Args:
        paths: Where outputs shall go; None stands for one that is not wanted.
        overwrite: Whether they may be replaced: then nothing is looked at.

    Raises:
        FileExistsError: A file of one of these names exists.
    """
    for path in () if overwrite else paths:
        if path is not None and not is_stream(path) and size_of(path_text(path)) is not None:
            raise FileExistsError(
                f"{path_text(path)} exists already; name another, or set overwrite"
            )


def refuse_stream(source: object, work: str) -> None:
    """Refuse work that would read a pipe twice.

    Args:
        source: Path, URL or file object.
        work: What reads its input more than once, as the subject of a sentence.

    Raises:
        UsageError: It names a stream.
    """
    if is_stream(source):
        raise UsageError(
            f"{source}: {work} reads its input more than once, and this is a stream, whose bytes "
            "come only once; save it to a file first"
        )


def is_folder(path: str) -> bool:
    """Tell whether a path or URL is a folder."""
    if not is_remote(path):
        return local_path(path).is_dir()
    if uses_obstore(path):
        return bool(_store_entries(path.rstrip("/") + "/"))
    fs, inside = filesystem(path)
    return bool(fs.isdir(inside))


def list_folder(path: str) -> list[Entry]:
    """List the files of a folder, without those of its subfolders."""
    if not is_remote(path):
        files = (f for f in local_path(path).iterdir() if f.is_file())
        return [Entry(str(f), f.stat().st_size) for f in files]
    base = path.rstrip("/") + "/"
    if uses_obstore(path):
        return [e for e in _store_entries(base) if "/" not in e.path[len(base) :]]
    fs, inside = filesystem(path)
    found = fs.ls(inside, detail=True)
    return [
        Entry(str(fs.unstrip_protocol(f["name"])), f.get("size"))
        for f in found
        if f["type"] == "file"
    ]


def list_glob(pattern: str) -> list[Entry]:
    """List the files that match a pattern with ``*``, ``?``, ``[...]`` and ``**``."""
    if is_remote(pattern):
        if uses_obstore(pattern):
            fixed = re.split(r"[*?\[]", pattern)[0]
            entries = _store_entries(fixed.rpartition("/")[0] + "/")
            return [e for e in entries if fnmatch.fnmatchcase(e.path, pattern)]
        fs, inside = filesystem(pattern)
        found = fs.glob(inside, detail=True).values()
        return [
            Entry(str(fs.unstrip_protocol(f["name"])), f.get("size"))
            for f in found
            if f["type"] == "file"
        ]
    path = local_path(pattern)
    fixed_parts = list(itertools.takewhile(lambda p: not re.search(r"[*?\[]", p), path.parts))
    base = Path(*fixed_parts)
    rest = str(Path(*path.parts[len(fixed_parts) :]))
    return [Entry(str(f), f.stat().st_size) for f in base.glob(rest) if f.is_file()]
