"""The one lister: files, folders, globs, prefixes and URLs to record files in natural order."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from tfrio.compression import open_chunks
from tfrio.compression.detect import HEAD_BYTES, header_length
from tfrio.errors import CompressedDataError, listed, warn_user
from tfrio.records.names import (
    SIDECAR,
    ShardGap,
    base_name,
    find_gaps,
    has_prefix,
    in_split,
    is_record_name,
    natural_key,
    parse_name,
)
from tfrio.records.sniff import sniff
from tfrio.storage import (
    Entry,
    is_folder,
    is_remote,
    is_temporary,
    is_web_page,
    list_folder,
    list_glob,
    local_path,
    open_read,
    refuse_stream,
    size_of,
)
from tfrio.types import path_text, paths_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tfrio.storage import Source
    from tfrio.types import PathsLike

__all__ = [
    "EMPTY_FILE",
    "LEFTOVER",
    "Ignored",
    "Listing",
    "each_source",
    "expand",
    "gaps_beside",
    "list_files",
    "refuse_streams",
]

_MAGIC_CHARACTERS = "*?["
EMPTY_FILE = "an empty file"
"""Why a file of 0 bytes is left out of a folder."""
LEFTOVER = "a temporary file of a writer"
"""Why what a writer has not finished, or never will, is left out."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """A file of a folder that is not read, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Record files in natural order, and what was left out."""

    files: tuple[str, ...]
    ignored: tuple[Ignored, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return both lists, ready for JSON."""
        return {
            "files": list(self.files),
            "ignored": [{"path": i.path, "reason": i.reason} for i in self.ignored],
        }


def _by_name(name: str) -> str | None:
    """Return why a file is ignored by its name alone."""
    if is_temporary(name):
        return LEFTOVER
    if name.startswith((".", "_")):
        return "a hidden or marker file"
    if name.endswith(".crc"):
        return "a checksum file of Hadoop"
    return "an index" if name.endswith(SIDECAR) else None


def _by_content(path: str) -> str | None:
    """Return why a file is ignored by its content; what might be damaged TFRecord is kept."""
    reader = open_read(path)
    try:
        head = reader.read_at(0, HEAD_BYTES)
        look = sniff(head, reader.size)
    finally:
        reader.close()
    if look.kind in ("gzip", "zlib"):
        return None if _holds_records(path) else f"{look.kind} of something else than TFRecord"
    extension = "." in base_name(path)
    if look.readable or (look.kind == "unknown" and (not extension or parse_name(path))):
        return None
    return f"looks like {look.text}"


def _holds_records(path: str) -> bool:
    """Inflate the head of a compressed file and look for a record header."""
    source = open_chunks(path, threads=1)
    try:
        buffer = bytearray(HEAD_BYTES)
        got = source.readinto(memoryview(buffer))
    except CompressedDataError:
        return True
    finally:
        source.close()
    return got == 0 or header_length(bytes(buffer[:got])) is not None


def _reason(entry: Entry) -> str | None:
    name = base_name(entry.path)
    reason = _by_name(name)
    if reason or is_record_name(name):
        return reason or (EMPTY_FILE if entry.size == 0 else None)
    return EMPTY_FILE if entry.size == 0 else _by_content(entry.path)


def _sift(entries: Iterable[Entry]) -> Listing:
    """Sort the entries of a folder or glob into record files and others."""
    files, ignored = [], []
    for entry in sorted(entries, key=lambda e: natural_key(e.path)):
        reason = _reason(entry)
        if reason is None:
            files.append(entry.path)
        else:
            ignored.append(Ignored(entry.path, reason))
    return Listing(tuple(files), tuple(ignored))


def _folder_of(path: str) -> str:
    cut = max(path.rfind("/"), path.rfind(os.sep))
    return path[: cut + 1]


def _with_prefix(path: str) -> Listing:
    """List the shards whose exact prefix ``path`` is.

    Raises:
        FileNotFoundError: There are none.
    """
    folder, prefix = _folder_of(path) or ".", base_name(path)
    entries = list_folder(folder) if is_folder(folder) else []
    if folder == ".":
        entries = [Entry(base_name(e.path), e.size) for e in entries]
    listing = _sift(e for e in entries if has_prefix(e.path, prefix))
    if not listing.files:
        near = difflib.get_close_matches(prefix, [base_name(e.path) for e in entries], n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise FileNotFoundError(f"{path}: no such file, folder or shard prefix{hint}")
    return listing


def _below(path: str) -> str:
    """Say how to name the subfolders of a local folder, where it has some."""
    if is_remote(path) or not any(entry.is_dir() for entry in local_path(path).iterdir()):
        return ""
    return f"; it has subfolders, whose files a glob names: {path.rstrip(os.sep)}/**/*"


def _one(path: str) -> Listing:
    """List one path given by the user; a file named in full is taken as it is."""
    plain = is_web_page(path) and not any(c in path for c in _MAGIC_CHARACTERS)
    if plain or size_of(path) is not None:  # of a web page opening it tells whether it is there
        return Listing((path,))
    if is_folder(path):
        listing = _sift(list_folder(path))
        what = "no TFRecord files in this folder" + _below(path)
    elif any(c in path for c in _MAGIC_CHARACTERS):
        listing = _sift(list_glob(path))
        what = "no TFRecord file matches"
    else:
        return _with_prefix(path)
    if not listing.files:
        told = listed((f"{base_name(i.path)}: {i.reason}" for i in listing.ignored), most=5)
        raise FileNotFoundError(f"{path}: {what}" + (f" (ignored {told})" if told else ""))
    return listing


def list_files(paths: PathsLike, *, split: str | None = None) -> Listing:
    """List the record files that paths stand for.

    Args:
        paths: One path or several: files (taken as they are), folders, globs, shard prefixes such
            as ``dir/b-train``, or URLs. Folders and globs come in natural order, without Spark's
            markers, checksum files, empty files, indexes and files of other kinds.
        split: Keep only shards of this split, by the exact name: ``foo`` is not ``foo_bar``.

    Returns:
        The files, and what was left out with the reason.

    Raises:
        FileNotFoundError: A path stands for no file.
        UsageError: Not a path.
    """
    found = [_one(path_text(path)) for path in paths_list(paths)]
    files = [file for listing in found for file in listing.files]
    ignored = [entry for listing in found for entry in listing.ignored]
    if split is not None:
        others = [file for file in files if not in_split(file, split)]
        files = [file for file in files if in_split(file, split)]
        if not files:
            raise FileNotFoundError(f"no shard of split {split!r} among {len(others)} files")
        ignored += [Ignored(file, f"not of split {split!r}") for file in others]
    return Listing(tuple(files), tuple(ignored))


def expand(paths: PathsLike, *, split: str | None = None) -> list[str]:
    """Return the files of ``list_files``; warn where shards are missing beside them.

    Files named in full are taken as they are, without a warning.
    """
    given = [path_text(path) for path in paths_list(paths)]
    files = list_files(given, split=split).files
    named = set(given)
    found = [file for file in files if file not in named and parse_name(file)]
    for gap in gaps_beside(found):
        warn_user(f"{gap.message}. Reading goes on without")
    return list(files)


def refuse_streams(paths: PathsLike, work: str) -> None:
    """Refuse work that would read one of some files twice where it is a pipe.

    Args:
        paths: As for ``list_files``.
        work: What reads its input more than once, as the subject of a sentence.

    Raises:
        UsageError: A path names a stream.
    """
    for path in list_files(paths).files:
        refuse_stream(path, work)


def gaps_beside(files: Iterable[str]) -> list[ShardGap]:
    """Find missing and extra shards of the sets that files belong to, by what lies beside them.

    Args:
        files: Some shards, perhaps not all that are there.

    Returns:
        One entry for each set with something wrong.
    """
    sets: dict[str, set[str]] = {}
    for file in files:
        shard = parse_name(file)
        if shard:
            sets.setdefault(_folder_of(file), set()).add(shard.head)
    gaps: list[ShardGap] = []
    for folder, heads in sets.items():
        names = [base_name(entry.path) for entry in list_folder(folder or os.curdir)]
        shards = [(name, parse_name(name)) for name in names if _by_name(name) is None]
        gaps += find_gaps(folder + name for name, shard in shards if shard and shard.head in heads)
    return gaps


def each_source(paths: PathsLike | Source | Iterable[Source]) -> Iterator[Source]:
    """Yield what to open: file objects as they are, paths expanded, in the order given."""
    if hasattr(paths, "read"):
        yield cast("Source", paths)
        return
    for path in paths_list(paths):
        if hasattr(path, "read"):
            yield cast("Source", path)
        else:
            yield from expand(path_text(path))
