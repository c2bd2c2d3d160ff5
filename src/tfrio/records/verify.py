"""Verify files: every record's CRCs, every compressed byte, shards and totals."""

from __future__ import annotations

import functools
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from tfrio.compression.source import usable_threads
from tfrio.errors import NotTFRecordError, many
from tfrio.records.check import FileReport, check_file
from tfrio.records.meter import Meter
from tfrio.records.names import SIDECAR, ShardGap, base_name, folder_of
from tfrio.records.noted import Noted, noted_shards
from tfrio.records.shards import EMPTY_FILE, LEFTOVER, Ignored, gaps_beside, list_files
from tfrio.records.totals import Total, check_totals
from tfrio.storage import Entry, is_stream, list_folder, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfrio.storage import Source
    from tfrio.types import PathsLike

__all__ = ["FileReport", "Finding", "VerifyReport", "verify"]


_EMPTY = "0 bytes: valid without a record, but often what a broken off download or copy leaves"
_LEFT = "what a writer has not finished. If none is at work here, it was ended before; remove it"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong; its text is what a person reads.

    Attributes:
        kind: ``"damage"``, ``"problem"`` (no TFRecord, unreadable), ``"shards"`` or ``"total"``.
        path: The file, or the prefix of the shards.
        message: The whole sentence.
    """

    kind: str
    path: str
    message: str

    def __str__(self) -> str:
        """Return the sentence."""
        return self.message


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What verifying found.

    Attributes:
        files: One entry a file.
        gaps: Missing and extra shards.
        totals: Numbers of records told beside the shards that do not fit.
        ignored: Files of folders that were left out.
        changed: Sound shards that hold other bytes than the manifest of their export says.
    """

    files: tuple[FileReport, ...]
    gaps: tuple[ShardGap, ...] = ()
    totals: tuple[Total, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    changed: tuple[Finding, ...] = ()

    @property
    def records(self) -> int:
        """Sound records in all files."""
        return sum(f.records for f in self.files)

    @property
    def bytes(self) -> int:
        """Stored bytes of all files."""
        return sum(f.bytes or 0 for f in self.files)

    @property
    def ok(self) -> bool:
        """Whether nothing at all was found."""
        return not self.findings

    @property
    def empty(self) -> tuple[str, ...]:
        """Files of 0 bytes: valid, but often what is left of a download that was broken off."""
        read = [f.path for f in self.files if f.bytes == 0 and f.ok]
        return (*read, *(i.path for i in self.ignored if i.reason == EMPTY_FILE))

    @property
    def leftovers(self) -> tuple[str, ...]:
        """Temporary files of writers: at work, or ended before they could remove them."""
        return tuple(i.path for i in self.ignored if i.reason == LEFTOVER)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is no fault, but may surprise: empty files, and what writers left."""
        return (*(f"{p}: {_EMPTY}" for p in self.empty), *(f"{p}: {_LEFT}" for p in self.leftovers))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that is wrong, file by file, then shards and totals."""
        found = []
        for file in self.files:
            if file.problem:
                found.append(Finding("problem", file.path, file.problem))
            found += [Finding("damage", file.path, d.message) for d in file.damages]
        found += [Finding("shards", gap.prefix, gap.message) for gap in self.gaps]
        found += [Finding("total", total.path, total.message) for total in self.totals]
        found += self.changed
        return tuple(found)

    def __str__(self) -> str:
        """Return the outcome, and each finding, as lines for a person."""
        files = f"{len(self.files)} {many(len(self.files), 'file')}"
        found = len(self.findings)
        outcome = f"{found} {many(found, 'finding')}" if found else "all is well"
        first = f"{self.records} sound {many(self.records, 'record')} in {files}: {outcome}"
        return "\n".join([first, *map(str, self.findings), *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {
            "ok": self.ok,
            "records": self.records,
            "bytes": self.bytes,
            "files": [file.to_dict() for file in self.files],
            "findings": [
                {"kind": f.kind, "path": f.path, "message": f.message} for f in self.findings
            ],
            "ignored": [{"path": i.path, "reason": i.reason} for i in self.ignored],
        }


def verify(
    paths: PathsLike | Source,
    *,
    split: str | None = None,
    compression: str | None = None,
    start: int = 0,
    digest: bool = False,
    threads: int | None = None,
    look: Callable[[str, list[bytes]], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> VerifyReport:
    """Check files to their last byte.

    Args:
        paths: Files, folders, globs, shard prefixes, URLs, or one file object.
        split: Only shards of this split.
        compression: None goes by the content of each file.
        start: Uncompressed offset of the record to begin at, in each file.
        digest: Also compute the SHA-256 of each file, to compare copies on two machines.
        threads: Threads in all, by default up to 4; they work on several files or, for plain and
            blocked gzip files, within one.
        look: Called with each file and its first sound payloads (1,000, or fewer that exceed
            16 MiB), from any thread; the file is not opened a second time for it.
        progress: Called with stored bytes done and in all, from any thread.

    Returns:
        What was found. Damage is reported, never raised.

    Raises:
        FileNotFoundError: A path stands for no file.
    """
    if hasattr(paths, "read"):
        source = cast("Source", paths)
        check = functools.partial(_check, compression=compression, start=start, digest=digest)
        report = check(source, threads=usable_threads(threads), look=look)
        return VerifyReport((report,))
    listing = list_files(cast("PathsLike", paths), split=split)
    workers = usable_threads(threads)
    meter = Meter.of(listing.files, progress)
    check = functools.partial(
        _check,
        compression=compression,
        start=start,
        digest=digest,
        threads=max(1, workers // len(listing.files)),
        look=look,
        advanced=meter.add,
    )
    with ThreadPoolExecutor(workers, "verify") as pool:
        reports = tuple(pool.map(check, listing.files))
        gaps, totals, noted = _around(reports)
        changed = tuple(finding for finding in pool.map(_changed, noted) if finding is not None)
    return VerifyReport(reports, gaps, totals, listing.ignored, changed)


def _check(
    file: Source,
    *,
    compression: str | None,
    start: int,
    digest: bool,
    threads: int,
    look: Callable[[str, list[bytes]], None] | None = None,
    advanced: Callable[[int], None] | None = None,
) -> FileReport:
    """Check one file; what keeps it from being read is a finding, too."""
    try:
        return check_file(
            file,
            compression=compression,
            start=start,
            digest=digest,
            threads=threads,
            look=functools.partial(look, name_of(file)) if look else None,
            advanced=advanced,
        )
    except (NotTFRecordError, OSError) as error:
        name = name_of(file)
        text = str(error) if name in str(error) else f"{name}: {error}"
        return FileReport(name, 0, None, 0, None, 0, problem=text)


def _changed(noted: Noted) -> Finding | None:
    """Compare a sound shard with its manifest; what keeps it from being read is a finding, too."""
    try:
        fault = noted.fault()
    except OSError as error:
        fault = str(error)
    return None if fault is None else Finding("shards", noted.path, fault)


def _around(
    reports: Sequence[FileReport],
) -> tuple[tuple[ShardGap, ...], tuple[Total, ...], list[Noted]]:
    """Look at the folders of the files: are all shards there, do totals fit, what is noted?"""
    sound = {report.path: report for report in reports if report.ok}
    counts: dict[str, dict[str, int]] = {}
    for report in reports:
        if is_stream(report.path):
            continue  # nothing lies beside it
        counts.setdefault(folder_of(report.path), {})[report.path] = report.records
    gaps = gaps_beside(path for files in counts.values() for path in files)
    totals: list[Total] = []
    noted: list[Noted] = []
    for folder, files in counts.items():
        entries = [_beside(folder, entry) for entry in list_folder(folder or os.curdir)]
        sidecars = [path for path in entries if path.endswith(".json")]
        others = {p for p in entries if not p.endswith((".json", SIDECAR)) and not _hidden(p)}
        totals += check_totals(sidecars, files, others)
        noted += noted_shards(sidecars, sound)
    return tuple(gaps), tuple(totals), noted


def _beside(folder: str, entry: Entry) -> str:
    """Return an entry's path written like those of the checked files."""
    return folder + base_name(entry.path)


def _hidden(path: str) -> bool:
    return base_name(path).startswith((".", "_"))
