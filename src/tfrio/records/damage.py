"""The one damage model: what is wrong, what it cost, where reading goes on, and what to do.

After damage, reading goes on only at a valid length CRC followed by a valid payload, or right
behind a record whose own header was sound. Reader, verify, repair, index and datasets all come
here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from tfrio import _core
from tfrio.compression.detect import header_length
from tfrio.errors import (
    CompressedDataError,
    CorruptRecordError,
    FileCutError,
    NotTFRecordError,
    StoredDataError,
    UsageError,
    from_fault,
    many,
    warn_user,
)
from tfrio.records.sniff import sniff
from tfrio.types import whole_number

if TYPE_CHECKING:
    from tfrio.records.reader import RecordStream

__all__ = [
    "Damage",
    "DamagePolicy",
    "DamageReport",
    "ErrorMode",
    "recover",
    "recover_stored",
    "seek_record",
    "without_payload",
]

ErrorMode: TypeAlias = Literal["raise", "skip", "return"]

_HEADER, _FOOTER, _FRAME = 12, 4, 16
# A damaged stretch up to this long is held in memory, so that a record whose header alone is
# broken can be recognised by its payload's CRC.
_KEEP = 16 << 20
_REACH = 32 << 10  # how far back deflate copies from


@dataclass(frozen=True, slots=True)
class Damage:
    """One damaged place.

    Attributes:
        path: The file.
        record: Number of the damaged record in the file, from 0.
        offset: Uncompressed offset of its header, in bytes.
        code: ``"length-crc"``, ``"payload-crc"``, ``"header-cut"``, ``"payload-cut"``,
            ``"footer-cut"``, ``"too-long"``, or ``"gzip-..."`` / ``"zlib-..."`` with ``"cut"``,
            ``"checksum"``, ``"data"`` or ``"tail"``, or ``"file-cut"`` (while it was read).
        field: ``"header"``, ``"payload"``, ``"footer"``, ``"gzip"``, ``"zlib"`` or ``"file"``.
        expected: Bytes or CRC that should have stood there.
        got: Bytes or CRC that did.
        lost: Uncompressed bytes given up.
        resumed: Uncompressed offset where reading goes on, None when nothing sound follows.
        message: The whole sentence for a person.
        payload: The payload as it stands in the file, where its extent is known; unchecked unless
            ``repairable``.
        compressed_offset: Byte of the compressed file where compressed data is damaged.
        lost_records: Records given up: of a damaged gzip block those that are lost, as its header
            tells, of others 0 where no byte of a record is missing, else 1.
        repairable: Only the header is broken: the payload's own CRC holds.
    """

    path: str
    record: int
    offset: int
    code: str
    field: str
    expected: int | None
    got: int | None
    lost: int
    resumed: int | None
    message: str
    payload: bytes | None = None
    repairable: bool = False
    compressed_offset: int | None = None
    lost_records: int = 1

    def error(self) -> CorruptRecordError:
        """Return the exception to raise for this damage."""
        if self.compressed_offset is not None:
            packed = CompressedDataError(
                self.message,
                path=self.path,
                offset=self.compressed_offset,
                field=self.field,
                code=self.code.partition("-")[2],
            )
            packed.record = self.record
            return packed
        return CorruptRecordError(
            self.message,
            path=self.path,
            record=self.record,
            offset=self.offset,
            field=self.field,
            expected=self.expected,
            got=self.got,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the payload, ready for JSON."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "payload"}


@dataclass(slots=True)
class DamageReport:
    """What was skipped, over all files read with the same report.

    Attributes:
        damages: Every damaged place (payloads left out), in the order met.
    """

    damages: list[Damage] = field(default_factory=list)

    @property
    def skipped_records(self) -> int:
        """Records given up; a stretch of unknown many counts once, one in a gzip block as it is.

        ``damages`` has one entry a damaged place, so that this may be more than its length, or less
        where no record is lost with a checksum.
        """
        return sum(d.lost_records for d in self.damages)

    @property
    def bytes_lost(self) -> int:
        """Uncompressed bytes given up."""
        return sum(d.lost for d in self.damages)

    @property
    def where(self) -> list[tuple[str, int, int]]:
        """Path, record number and offset of each."""
        return [(d.path, d.record, d.offset) for d in self.damages]

    def to_dict(self) -> dict[str, Any]:
        """Return counts and places, ready for JSON."""
        return {
            "skipped_records": self.skipped_records,
            "bytes_lost": self.bytes_lost,
            "where": [list(place) for place in self.where],
        }


class DamagePolicy:
    """What to do with damage: raise, skip or return, up to a number.

    Args:
        mode: ``"raise"``, ``"skip"`` or ``"return"``.
        max_bad: Most damaged records to accept, over all files; None for no limit.
        report: Where to count; a new one by default.

    Raises:
        UsageError: Unknown mode.
    """

    def __init__(
        self,
        mode: ErrorMode = "raise",
        *,
        max_bad: int | None = None,
        report: DamageReport | None = None,
    ) -> None:
        if mode not in get_args(ErrorMode):
            raise UsageError(f"errors must be 'raise', 'skip' or 'return', got {mode!r}")
        self.mode = mode
        self.max_bad = None if max_bad is None else whole_number(max_bad, "max_bad", least=0)
        if report is not None and not isinstance(report, DamageReport):
            raise UsageError(f"report must be a tfrio.DamageReport(), got {report!r}")
        self.report = report if report is not None else DamageReport()
        self._file_start = len(self.report.damages)

    def take(self, damage: Damage) -> bool:
        """Count a damage.

        Returns:
            Whether to hand it to the caller (mode ``"return"``).

        Raises:
            CorruptRecordError: The mode is ``"raise"``, or there are more than ``max_bad``.
        """
        if self.mode == "raise":
            raise damage.error()
        self.report.damages.append(without_payload(damage))
        bad = self.report.skipped_records
        if self.max_bad is not None and bad > self.max_bad:
            error = damage.error()
            error.message = f"{bad} bad records > max_bad {self.max_bad}; the last: {error.message}"
            error.args = (error.message,)
            raise error
        return self.mode == "return"

    def file_done(self, path: str) -> None:
        """Warn once if records of this file were skipped."""
        here = self.report.damages[self._file_start :]
        self._file_start = len(self.report.damages)
        if here and self.mode == "skip":
            lost, bad = sum(d.lost for d in here), sum(d.lost_records for d in here)
            what = (
                f"skipped {bad} {many(bad, 'damaged record')} ({lost:,} {many(lost, 'byte')} lost)"
            )
            if not bad and not lost:
                what = "damaged, but no record is lost"
            warn_user(
                f"{path}: {what}, the first at offset {here[0].offset}. "
                "Run `tfrio verify` for a full account"
            )


def without_payload(damage: Damage) -> Damage:
    """Return the same damage without the payload, which may be large."""
    if damage.payload is None:
        return damage
    values = {f.name: getattr(damage, f.name) for f in fields(damage)}
    return Damage(**{**values, "payload": None})


def recover(stream: RecordStream, fault: _core.Fault) -> Damage:
    """Describe the damage at the start of ``stream`` and move on to where reading can continue.

    Args:
        stream: Advanced so that the damaged record's header is at the start of its buffer.
        fault: What the native core reported there.

    Returns:
        The damage; the stream stands at the next sound record, or is at its end.

    Raises:
        NotTFRecordError: This is the start of a file that is something else.
    """
    try:
        stream.confirm()
    except StoredDataError as error:
        left = _fault_left(stream, fault)
        if left is None:
            return recover_stored(stream, stream.take_late() or error)
        fault = left
    path, record, offset = stream.path, stream.records, stream.position
    if offset == 0 and fault.field == "header":
        _refuse_stranger(stream)
    got = fault.got + (stream.unread if fault.code == "payload-cut" else 0)
    whole, packed = record - stream.damaged, stream.compression != "none"
    place: dict[str, Any] = {"path": path, "record": record, "offset": offset}
    message = from_fault(fault, **place, whole=whole, got=got, packed=packed).message
    outcome = _known_extent(stream, fault.code) or _resync(stream, fault.code)
    if outcome.repeats:
        message += (
            f"; behind it {outcome.repeats} {many(outcome.repeats, 'record')} repeated earlier "
            "ones, as damaged compressed data does, and were left out"
        )
    stream.records += 1
    stream.damaged += 1
    return Damage(
        **place,
        code=fault.code,
        field=fault.field,
        expected=fault.expected,
        got=got,
        lost=stream.position - offset,
        resumed=stream.position if outcome.resumed else None,
        message=message,
        payload=outcome.payload,
        repairable=outcome.repairable,
    )


def _fault_left(stream: RecordStream, fault: _core.Fault) -> _core.Fault | None:
    """Return the fault again as it stands in what a file cut short has left, if it does."""
    stream.shorten()
    return _core.scan(stream.buffer, 0, 1, fault.code == "payload-crc", False).fault


class _Outcome(NamedTuple):
    """What became of a damaged record: see the attributes of ``Damage``."""

    payload: bytes | None
    repairable: bool
    resumed: bool
    repeats: int = 0
    """Sound records stepped over, as they repeat earlier ones."""


def _refuse_stranger(stream: RecordStream) -> None:
    """Raise when the first bytes are those of another kind of file."""
    size = len(stream.buffer) + stream.unread if stream.final or stream.unread else None
    look = sniff(bytes(stream.buffer[:1024]), size)
    if stream.compression != "none" and look.kind in ("gzip", "zlib"):
        raise NotTFRecordError(
            f"{stream.path}: compressed twice: inside its {stream.compression} lies "
            f"{look.text}; decompress it once",
            path=stream.path,
        )
    if look.stranger:
        inside = f"inside its {stream.compression} " if stream.compression != "none" else ""
        raise NotTFRecordError(
            f"{stream.path}: not a TFRecord: {inside}looks like {look.text}. {look.remedy}",
            path=stream.path,
        )


def _payload_fits(frame: memoryview) -> bool:
    """Check the payload CRC of a whole frame, whatever its header says."""
    stored = int.from_bytes(frame[-_FOOTER:], "little")
    return _core.masked_crc32c(frame[_HEADER:-_FOOTER]) == stored


def _hold(stream: RecordStream, nbytes: int) -> bool:
    """Get ``nbytes`` into the buffer, if there are so many."""
    while len(stream.buffer) < nbytes:
        if not stream.more():
            return False
    return True


def _known_extent(stream: RecordStream, code: str) -> _Outcome | None:
    """Step over a record whose end is known: its header is sound, or its payload proves it."""
    if code not in ("payload-crc", "length-crc"):
        return None
    claim = int.from_bytes(stream.buffer[:8], "little") + _FRAME
    sound_header = code == "payload-crc"
    if not sound_header and (claim > _KEEP or not _hold(stream, claim)):
        return None
    frame = stream.buffer[:claim]
    fits = not sound_header and _payload_fits(frame)
    if not fits and not (sound_header and _sound_behind(stream, claim)):
        return None
    payload = bytes(stream.buffer[_HEADER : claim - _FOOTER])
    stream.advance(claim, 0)
    return _Outcome(payload, fits, bool(len(stream.buffer)) or stream.more())


def _sound_behind(stream: RecordStream, end: int) -> bool:
    """Check that a record header stands at ``end``, or the data ends there.

    A part of a header there is a cut file, unless sound records lead from elsewhere to the very
    end: then bytes are missing before them.
    """
    if _hold(stream, end + _HEADER):
        return header_length(bytes(stream.buffer[end : end + _HEADER])) is not None
    return len(stream.buffer) == end or stream.broken or _after_cut(stream) < 0


def _resync(stream: RecordStream, code: str) -> _Outcome:
    """Search the next sound record and move there, or to the end."""
    begin, repeats = stream.position, 0
    if code == "header-cut":
        found = -1
    elif code in ("payload-cut", "footer-cut") and not stream.unread:
        found = _after_cut(stream)
    else:
        found, repeats = _search_new(stream)
    payload = None
    if code == "length-crc" and stream.position == begin:
        payload = _proven(stream, found)
    stream.advance(found if found >= 0 else len(stream.buffer), 0)
    return _Outcome(payload, payload is not None, found >= 0, repeats)


def _search_new(stream: RecordStream) -> tuple[int, int]:
    """Search the next sound record that is no copy made by damaged compressed data.

    Deflate copies from what it put out before. Led astray it puts out whole records again, and
    their CRCs hold.

    Returns:
        Where in the buffer it starts, -1 for nowhere, and how many copies were stepped over.
    """
    found, repeats = _search(stream), 0
    if stream.compression == "none" or stream.blocks is not None:  # blocks were checked as a whole
        return found, repeats
    while found >= 0:
        end = found + _FRAME + int.from_bytes(stream.buffer[found : found + 8], "little")
        if end - found > _REACH:
            break
        frame = bytes(stream.buffer[found:end])
        if frame not in bytes(stream.past) + bytes(stream.buffer[:found]) or stream.intact():
            break
        repeats += 1
        found = _search(stream, end)
    return found, repeats


def _proven(stream: RecordStream, end: int) -> bytes | None:
    """Return the payload between a broken header and ``end`` (-1: all) if its CRC holds."""
    frame = stream.buffer[:end] if end >= 0 else stream.buffer
    if len(frame) < _FRAME or not _payload_fits(frame):
        return None
    return bytes(frame[_HEADER:-_FOOTER])


def _after_cut(stream: RecordStream) -> int:
    """Search behind a record that reaches past the end of the data.

    Nearly always that is a file cut short, whose last payload may itself hold framed records. So
    what is found counts only if sound records follow from there to the very end.
    """
    found, _ = _core.find_record(stream.buffer, 1, True)
    if found >= 0 and _core.count(stream.buffer, found, True, True).fault is not None:
        return -1
    return found


def _search(stream: RecordStream, start: int = 1) -> int:
    """Return where in the buffer the next sound record starts, -1 when there is none."""
    if stream.final and stream.unread:  # a judged claim: step behind it, or it is judged again
        stream.advance(1, 0)
        start = 0
    while True:
        done = stream.final or stream.broken
        found, certain = _core.find_record(stream.buffer, start, done)
        if found >= 0 and certain:
            return found
        if done:
            return -1
        start = found if found >= 0 else max(len(stream.buffer) - _HEADER + 1, start)
        if start > _KEEP:
            stream.advance(start, 0)
            start = 0
        stream.more()


def seek_record(stream: RecordStream) -> bool:
    """Move a stream forward to the first sound record at or behind its position.

    Returns:
        False, with the stream at its end, when there is none.
    """
    found = _search(stream, 0)
    stream.advance(found if found >= 0 else len(stream.buffer), 0)
    return found >= 0


def recover_stored(stream: RecordStream, error: StoredDataError) -> Damage:
    """Describe damaged or lost stored data; drop the part of a record before what is missing.

    Args:
        stream: The stream whose ``fill`` raised ``error``.
        error: What it raised.

    Returns:
        The damage; where the error is ``resumable`` the stream goes on behind it.
    """
    record, offset = stream.records, stream.position
    gone = isinstance(error, FileCutError)
    known = _step_over(stream, error)
    stream.damaged += stream.records - record
    return Damage(
        path=stream.path,
        record=record,
        offset=offset,
        code=f"{error.field}-{error.code}",
        field=str(error.field),
        expected=error.expected if gone else None,
        got=error.got if gone else None,
        lost=stream.position - offset,
        resumed=stream.position if error.resumable else None,
        message=error.message,
        compressed_offset=None if gone else error.offset,
        lost_records=max(stream.records - record, 1) if known is None else known,
    )


def _step_over(stream: RecordStream, error: StoredDataError) -> int | None:
    """Drop the part of a record before what is missing, and account for what is.

    Returns:
        How many records that are, None where it is not known.
    """
    if error.resumable and not error.expected and error.got == 0:
        return 0  # nothing is missing, so the record goes on
    part = len(stream.buffer)
    stream.advance(part, 0)
    least = 1 if part else 0
    if isinstance(error, FileCutError):
        stream.jump(max((error.expected or 0) - stream.position, 0), 1)
        return None
    nbytes, records = error.expected or 0, error.got
    if error.ends is not None and stream.from_start:
        records = error.ends[0] - stream.records
        nbytes = max(error.ends[1] - stream.position, 0)
    if records is None:
        stream.jump(0, 0 if error.code == "tail" else 1)
        return None
    known = max(records, least)
    stream.jump(nbytes, known)
    return known
