"""Split, merge, filter: the same payloads, with what is noted of them, in other files."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from tfrio.compression import DEFAULT_LEVEL
from tfrio.errors import TfrioWarning, UsageError
from tfrio.examples.carry import Carried
from tfrio.records.check import digest_of
from tfrio.records.counting import count
from tfrio.records.damage import DamagePolicy, DamageReport, ErrorMode
from tfrio.records.names import base_name, parse_name, shard_path
from tfrio.records.reader import RecordStream
from tfrio.records.sharded import one_limit
from tfrio.records.shards import expand
from tfrio.records.sidecar import Fingerprint, fingerprint
from tfrio.records.walk import Chunk, walk
from tfrio.records.writer import RecordWriter
from tfrio.storage import (
    atomic_write,
    is_remote,
    is_stream,
    list_folder,
    local_path,
    refuse_existing,
    refuse_stream,
    size_of,
)
from tfrio.types import path_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from tfrio.types import PathLike, PathsLike

__all__ = ["CopyReport", "ShardRow", "merge", "reshard"]


class ShardRow(msgspec.Struct, frozen=True):
    """One finished shard.

    Attributes:
        path: The file.
        records: Records in it.
        bytes: Stored size.
        digest: SHA-256 of the stored bytes, in hex.
    """

    path: str
    records: int
    bytes: int
    digest: str


class _Manifest(msgspec.Struct):
    """What an interrupted run has finished, and what it was made from and with."""

    inputs: tuple[Fingerprint, ...]
    options: dict[str, Any]
    shards: list[ShardRow] = msgspec.field(default_factory=list)
    complete: bool = False


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What splitting, merging or filtering did.

    Attributes:
        files: The files written, in order.
        records: Records written.
        resumed: Shards that an earlier, interrupted run had finished.
        left_out: Records that the filter did not keep.
        damages: Damaged records skipped.
    """

    files: tuple[ShardRow, ...]
    records: int
    resumed: int = 0
    left_out: int = 0
    damages: DamageReport = field(default_factory=DamageReport)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {
            "files": [msgspec.structs.asdict(row) for row in self.files],
            "records": self.records,
            "resumed": self.resumed,
            "left_out": self.left_out,
            "damages": self.damages.to_dict(),
        }


class _Piece(NamedTuple):
    """Framed records in a row. ``frames`` dies at the next step of the copy.

    Attributes:
        frames: The records.
        ends: int64 (n,), the end of each in ``frames``, in bytes.
        path: The file they come from.
        numbers: Their numbers in that file.
    """

    frames: memoryview
    ends: NDArray[np.int64]
    path: str
    numbers: Sequence[int]


class _Copy:
    """Streams the framed records of files, past damage as told, through a filter.

    Args:
        files: The files, in order.
        keep: Which payloads to keep; None keeps all, untouched and unread.
        policy: What to do with damage.
        progress: Called with stored bytes done and in all.
    """

    def __init__(
        self,
        files: Sequence[str],
        keep: Callable[[bytes], bool] | None,
        policy: DamagePolicy,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._files = files
        self._keep = keep
        self.policy = policy
        self._progress = progress
        self.left_out = 0

    def __iter__(self) -> Iterator[_Piece]:
        """Yield the records to write, in order."""
        sizes = [size_of(file) or 0 for file in self._files]
        for number, file in enumerate(self._files):
            before = sum(sizes[:number])
            with RecordStream(file) as stream:
                for event in walk(stream):
                    if not isinstance(event, Chunk):
                        self.policy.take(event)
                    elif self._keep is None:
                        numbers = range(event.first, event.first + len(event.spans))
                        yield _Piece(*event.frames(), file, numbers)
                    elif (kept := self._kept(event, file)).numbers:
                        yield kept
                    if self._progress:
                        self._progress(before + stream.consumed, sum(sizes))
            self.policy.file_done(file)

    def _kept(self, chunk: Chunk, file: str) -> _Piece:
        assert self._keep is not None
        frames, ends = chunk.frames()
        kept = np.fromiter((bool(self._keep(p)) for p in chunk.payloads()), bool, len(ends))
        self.left_out += len(kept) - int(np.count_nonzero(kept))
        starts = np.append(0, ends[:-1])
        spans = zip(starts[kept].tolist(), ends[kept].tolist(), strict=True)
        together = b"".join([frames[begin:end] for begin, end in spans])
        numbers = (np.flatnonzero(kept) + chunk.first).tolist()
        return _Piece(memoryview(together), np.cumsum((ends - starts)[kept]), file, numbers)


@dataclass(slots=True)
class _Limit:
    """Where a shard ends."""

    records: int
    bytes: int

    def take(self, ends: NDArray[np.int64], begin: int, filled: int, records: int) -> int:
        """Return how many of the records that end at ``ends`` still fit.

        Args:
            ends: int64 (n,), ends in a buffer, in bytes.
            begin: Where the first of them begins.
            filled: Bytes already in the shard.
            records: Records already in the shard.
        """
        fits = int(np.searchsorted(ends, begin + self.bytes - filled, "right"))
        if not records:
            fits = max(fits, 1)  # one record larger than a shard gets its own
        return min(fits, self.records - records, len(ends))


class _Filler:
    """Fills one shard after the other and keeps the manifest.

    Args:
        prefix: Folder and name before the number.
        suffix: What follows the number.
        limits: Where each shard ends; the last one holds for all after it.
        total: Number of shards for the names, None for a ``-00000`` sequence.
        manifest: What an earlier run has finished.
        carried: What the files note of the records.
        options: Of ``RecordWriter``.
    """

    def __init__(
        self,
        prefix: str,
        suffix: str,
        limits: list[_Limit],
        total: int | None,
        manifest: _Manifest,
        carried: Carried,
        options: dict[str, Any],
    ) -> None:
        self._prefix = prefix
        self._suffix = suffix
        self._limits = limits
        self._total = total
        self._manifest = manifest
        self._carried = carried
        self._options = options
        self._writer: RecordWriter | None = None
        self._bytes = 0
        self._skip = sum(row.records for row in manifest.shards)

    def add(self, piece: _Piece) -> None:
        """Write records to the shards they belong to, those of finished shards left out."""
        frames, ends, path, numbers = piece
        done = min(self._skip, len(ends))
        self._skip -= done
        begin = int(ends[done - 1]) if done else 0
        while done < len(ends):
            writer = self._writer or self._open()
            limit = self._limits[min(len(self._manifest.shards), len(self._limits) - 1)]
            n = limit.take(ends[done:], begin, self._bytes, writer.records)
            if n <= 0:
                self._finish()
                continue
            stop = int(ends[done + n - 1])
            writer.write_framed(frames[begin:stop], ends[done : done + n] - begin)
            self._carried.take(path, numbers[done : done + n])
            self._bytes += stop - begin
            done, begin = done + n, stop

    def _open(self) -> RecordWriter:
        number = len(self._manifest.shards)
        path = shard_path(self._prefix, number, self._total, self._suffix)
        self._writer = RecordWriter(path, **self._options)
        self._bytes = 0
        return self._writer

    def _finish(self) -> None:
        writer = self._writer
        assert writer is not None
        writer.close()
        self._writer = None
        self._carried.save(writer.path)
        size = local_path(writer.path).stat().st_size
        row = ShardRow(writer.path, writer.records, size, digest_of(writer.path))
        self._manifest.shards.append(row)
        _save(self._manifest, self._prefix)

    def end(self) -> None:
        """Finish the last shard, and empty ones where a number of shards was asked."""
        if self._writer is not None:
            self._finish()
        while len(self._manifest.shards) < max(self._total or 0, 1):
            self._open()
            self._finish()
        self._manifest.complete = True
        _save(self._manifest, self._prefix)

    def abort(self) -> None:
        """Drop the shard under way; finished ones stay."""
        if self._writer is not None:
            self._writer.abort()


def manifest_path(prefix: str) -> str:
    """Return where the manifest of a resharding run lies."""
    return f"{prefix}-shards.json"


def _save(manifest: _Manifest, prefix: str) -> None:
    with atomic_write(manifest_path(prefix)) as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest)))


def _earlier(prefix: str, inputs: tuple[Fingerprint, ...], options: dict[str, Any]) -> _Manifest:
    """Return the manifest of an interrupted run of the same work, else a new one."""
    fresh = _Manifest(inputs, options)
    try:
        found = msgspec.json.decode(local_path(manifest_path(prefix)).read_bytes(), type=_Manifest)
    except (FileNotFoundError, msgspec.MsgspecError):
        return fresh
    same = found.inputs == inputs and found.options == options and not found.complete
    paths = [local_path(row.path) for row in found.shards]
    sound = all(
        path.exists() and path.stat().st_size == row.bytes
        for path, row in zip(paths, found.shards, strict=True)
    )
    return found if same and sound else fresh


def _limits(
    total: int | None, shards: int | None, max_records: int | None, max_bytes: int | None
) -> tuple[list[_Limit], int | None]:
    """Return where shards end, and how many there will be where that is known."""
    endless = 1 << 62
    if max_bytes is not None:
        return [_Limit(endless, max_bytes)], None
    assert total is not None
    if max_records is not None:
        return [_Limit(max_records, endless)], max(1, -(-total // max_records))
    assert shards is not None
    base, more = divmod(total, shards)
    return [_Limit(base + (i < more), endless) for i in range(shards)], shards


def reshard(
    paths: PathsLike,
    prefix: PathLike,
    *,
    shards: int | None = None,
    max_records: int | None = None,
    max_bytes: int | None = None,
    keep: Callable[[bytes], bool] | None = None,
    compression: str | None = None,
    level: int = DEFAULT_LEVEL,
    suffix: str | None = None,
    errors: ErrorMode = "raise",
    max_bad: int | None = None,
    resume: bool = True,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> CopyReport:
    """Write the records of some files to shards, in order, their payload bytes untouched.

    Each shard appears when complete. ``PREFIX-shards.json`` lists finished shards with their
    SHA-256; when a run was interrupted, the same call goes on behind them.

    Args:
        paths: Files, folders, globs, shard prefixes or URLs, in order.
        prefix: Folder and name before the number: ``out/train``.
        shards: Number of files; names tell it: ``train-00000-of-00002.tfrecord``.
        max_records: Most records in a file; names tell the number of files.
        max_bytes: Most uncompressed bytes in a file; names are ``train-00000.tfrecord``.
        keep: Keep only payloads for which this is true.
        compression: ``"none"``, ``"gzip"`` or ``"zlib"``; None goes by ``suffix``.
        level: Compression level, see ``RecordWriter``.
        suffix: What follows the number; by default ``.tfrecord``, with ``.gz`` for gzip.
        errors: ``"raise"`` or ``"skip"`` damaged records.
        max_bad: Most damaged records to skip.
        resume: Go on where an interrupted run of the same work ended.
        overwrite: Replace shards of the same names, other than those of an interrupted run.
        progress: Called with stored bytes read and in all.

    Returns:
        What was written.

    Raises:
        CorruptRecordError: A record is damaged.
        UsageError: Not exactly one of ``shards``, ``max_records``, ``max_bytes``, or below 1.
        FileExistsError: Such shards exist and ``overwrite`` is not set.
    """
    shards, max_records, max_bytes = one_limit(shards, max_records, max_bytes)
    if errors == "return":
        raise UsageError("damaged records cannot be written; errors must be 'raise' or 'skip'")
    by_kind = ".tfrecord.gz" if compression == "gzip" else ".tfrecord"
    suffix = by_kind if suffix is None else path_text(suffix)
    files, text = _checked(expand(paths), path_text(prefix))
    options = {
        "shards": shards,
        "max_records": max_records,
        "max_bytes": max_bytes,
        "keep": getattr(keep, "__qualname__", repr(keep)) if keep else None,
        "compression": compression,
        "level": level,
        "suffix": suffix,
        "errors": errors,
    }
    inputs = tuple(fingerprint(file) for file in files)
    manifest = _earlier(text, inputs, options) if resume else _Manifest(inputs, options)
    resumed = len(manifest.shards)
    total = _total(files, keep, errors) if max_bytes is None else None
    limits, number = _limits(total, shards, max_records, max_bytes)
    if not resumed:
        _refuse_mixture(text, suffix, number, overwrite=overwrite)
    writing = {"compression": compression, "level": level}
    filler = _Filler(text, suffix, limits, number, manifest, Carried(files), writing)
    copy = _Copy(files, keep, DamagePolicy(errors, max_bad=max_bad), progress)
    try:
        for piece in copy:
            filler.add(piece)
        filler.end()
    except BaseException:
        filler.abort()
        raise
    rows = tuple(manifest.shards)
    return CopyReport(
        rows, sum(row.records for row in rows), resumed, copy.left_out, copy.policy.report
    )


def _checked(files: list[str], prefix: str) -> tuple[list[str], str]:
    """Refuse pipes, which cannot be read twice, and remote prefixes; make the folder."""
    for file in files:
        refuse_stream(file, "splitting")
    if is_remote(prefix):
        raise UsageError(
            f"{prefix}: splitting needs a local folder; split there, and copy the files"
        )
    local_path(prefix).parent.mkdir(parents=True, exist_ok=True)
    return files, prefix


def _refuse_mixture(prefix: str, suffix: str, total: int | None, *, overwrite: bool) -> None:
    """Refuse to write shards over or beside others of the same prefix.

    Args:
        prefix: Folder and name before the number.
        suffix: What follows the number.
        total: Number of shards to be written, None where names do not tell it.
        overwrite: Allow shards of the same names; where those do not tell their number, some of
            the old ones might remain, so these are refused all the same.

    Raises:
        UsageError: There are shards that would remain.
        FileExistsError: There are shards of the same names.
    """
    base = local_path(prefix)
    for entry in sorted(list_folder(str(base.parent)), key=lambda entry: entry.path):
        shard = parse_name(base_name(entry.path))
        if shard is None or shard.head != base.name:
            continue
        if shard.total is None or (shard.total, shard.tail) != (total, suffix):
            raise UsageError(
                f"{entry.path}: a shard of another set with the same prefix, which would be read "
                "along with the new ones; remove that set, or name another prefix"
            )
        refuse_existing(entry.path, overwrite=overwrite)


def _total(files: Sequence[str], keep: Callable[[bytes], bool] | None, errors: ErrorMode) -> int:
    """Count the records that will be written."""
    if keep is None and errors == "raise":
        return count(files).records
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TfrioWarning)  # the copy itself warns
        return sum(len(piece.ends) for piece in _Copy(files, keep, DamagePolicy(errors)))


def merge(
    paths: PathsLike,
    out: PathLike,
    *,
    keep: Callable[[bytes], bool] | None = None,
    compression: str | None = None,
    level: int = DEFAULT_LEVEL,
    errors: ErrorMode = "raise",
    max_bad: int | None = None,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> CopyReport:
    """Write the records of some files to one file, in order, their payload bytes untouched.

    Args:
        paths: Files, folders, globs, shard prefixes or URLs, in order.
        out: The new file; it appears when complete.
        keep: Keep only payloads for which this is true.
        compression: Of the new file; None goes by its name.
        level: Compression level, see ``RecordWriter``.
        errors: ``"raise"`` or ``"skip"`` damaged records.
        max_bad: Most damaged records to skip.
        overwrite: Allow ``out`` to exist, even to be one of the files.
        progress: Called with stored bytes read and in all.

    Returns:
        What was written.

    Raises:
        CorruptRecordError: A record is damaged.
        FileExistsError: ``out`` exists and ``overwrite`` is not set.
    """
    files, out = expand(paths), path_text(out)
    stream = is_stream(out)
    refuse_existing(out, overwrite=overwrite)
    copy = _Copy(files, keep, DamagePolicy(errors, max_bad=max_bad), progress)
    carried = Carried(files)
    with RecordWriter(out, compression=compression, level=level) as writer:
        for frames, ends, path, numbers in copy:
            writer.write_framed(frames, ends)
            carried.take(path, numbers)
    carried.save(out)
    size, digest = (0, "") if stream else (size_of(out) or 0, digest_of(out))
    row = ShardRow(out, writer.records, size, digest)
    return CopyReport((row,), writer.records, 0, copy.left_out, copy.policy.report)
