"""Repair: write a new file with every whole record, and say what was dropped and where.

What the file notes of its features goes with the records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfrio.compression import DEFAULT_LEVEL
from tfrio.errors import UsageError, many
from tfrio.examples.carry import Carried
from tfrio.records.damage import Damage, without_payload
from tfrio.records.reader import RecordStream
from tfrio.records.walk import Chunk, walk
from tfrio.records.writer import RecordWriter
from tfrio.storage import is_remote, local_path, refuse_existing
from tfrio.types import path_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfrio.types import PathLike

__all__ = ["RepairReport", "repair"]


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What repairing a file did.

    Attributes:
        path: The damaged file, left as it was.
        out: The new file; it is not written where there was damage and nothing could be kept.
        kept: Records in the new file, those with a repaired header included.
        repaired_headers: Records whose header was written anew; their payload's CRC held.
        dropped_bytes: Uncompressed bytes that are not in the new file.
        damages: Every damaged place.
        compressed: Whether the file is compressed, so that offsets are none of its own bytes.
    """

    path: str
    out: str
    kept: int
    repaired_headers: int
    dropped_bytes: int
    damages: tuple[Damage, ...]
    compressed: bool = False

    @property
    def clean(self) -> bool:
        """Whether there was nothing to repair."""
        return not self.damages

    @property
    def text(self) -> str:
        """Everything in a few lines for a person."""
        if self.clean:
            return (
                f"{self.path}: nothing to do, {self.kept} {many(self.kept, 'record')} "
                f"{'is' if self.kept == 1 else 'are'} whole; copied to {self.out}"
            )
        place = self.out if self.kept else f"{self.out} is not written, as nothing could be kept"
        lines = [f"{self.path}: kept {self.kept}, dropped {self.dropped_bytes} bytes; {place}"]
        if self.repaired_headers:
            found = many(self.repaired_headers, "repaired header")
            lines[0] += f" ({self.repaired_headers} {found})"
        lines += [f"  {_what(damage, compressed=self.compressed)}" for damage in self.damages]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {
            "path": self.path,
            "out": self.out,
            "kept": self.kept,
            "repaired_headers": self.repaired_headers,
            "dropped_bytes": self.dropped_bytes,
            "damages": [damage.to_dict() for damage in self.damages],
        }


def _what(damage: Damage, *, compressed: bool) -> str:
    """Say in one line what became of a damaged place."""
    offset = "uncompressed offset" if compressed else "offset"
    place = f"record {damage.record} at {offset} {damage.offset} ({damage.code})"
    if damage.repairable:
        return f"{place}: header repaired, payload intact"
    lost = f"{damage.lost} bytes dropped"
    if not damage.lost_records and not damage.lost:
        lost = "no record is lost"
    elif damage.lost_records > 1:
        lost = f"{damage.lost_records} records of this gzip block lost, {lost}"
    if damage.resumed is None:
        return f"{place}: nothing whole follows, {lost}"
    return f"{place}: {lost}, goes on at {offset} {damage.resumed}"


def _same_file(path: PathLike, out: PathLike) -> bool:
    if is_remote(path) or is_remote(out):
        return path_text(path) == path_text(out)
    return local_path(path).resolve() == local_path(out).resolve()


def repair(
    path: PathLike,
    out: PathLike,
    *,
    compression: str | None = None,
    level: int = DEFAULT_LEVEL,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> RepairReport:
    """Write a new file with every whole record of a damaged one.

    A record whose header alone is damaged is kept: its payload's own CRC proves it.

    Args:
        path: The damaged file; never touched.
        out: The new file; it appears only when complete, and not at all where there was damage
            and no record could be kept.
        compression: Of the new file; None goes by its name, as for ``RecordWriter``.
        level: Compression level, see ``RecordWriter``.
        overwrite: Allow ``out`` to exist, even to be ``path`` itself.
        progress: Called with stored bytes done and in all.

    Returns:
        What was kept and dropped.

    Raises:
        FileExistsError: ``out`` exists and ``overwrite`` is not set.
        NotTFRecordError: The file is something else.
        UsageError: ``out`` is ``path`` and ``overwrite`` is not set.
    """
    path, out = path_text(path), path_text(out)
    if not overwrite and _same_file(path, out):
        raise UsageError(f"{out}: repair writes a new file; name another, or set overwrite")
    if not is_remote(path) and local_path(path).is_dir():
        raise UsageError(f"{path}: a folder; repair takes one file at a time")
    refuse_existing(out, overwrite=overwrite)
    carried = Carried([path])
    damages: list[Damage] = []
    repaired = 0
    with (
        RecordStream(path) as stream,
        RecordWriter(out, compression=compression, level=level) as writer,
    ):
        for event in walk(stream):
            if isinstance(event, Chunk):
                writer.write_framed(*event.frames())
                carried.take(path, range(event.first, event.first + len(event.spans)))
            else:
                damages.append(without_payload(event))
                if event.repairable and event.payload is not None:
                    writer.write(event.payload)
                    carried.take(path, [event.record])
                    repaired += 1
            if progress:
                progress(stream.consumed, stream.size or 0)
        if damages and not writer.records:
            writer.abort()
    if writer.records or not damages:
        carried.save(out)
    dropped = sum(damage.lost for damage in damages if not damage.repairable)
    packed = stream.compression != "none"
    return RepairReport(path, out, writer.records, repaired, dropped, tuple(damages), packed)
