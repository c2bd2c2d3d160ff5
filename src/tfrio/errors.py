"""Every error tfrio raises, and the one place where native faults become exceptions.

An error says what is wrong, where (path, record, byte offset, feature) and what to do next. Each
leaf is also the built-in a caller would catch without knowing tfrio. All of them can be rebuilt
from their message alone and keep their attributes through pickling, so that they survive a
worker process.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import warnings
from numbers import Integral
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType, ModuleType

__all__ = [
    "CompressedDataError",
    "CorruptRecordError",
    "DecodeError",
    "EncodeError",
    "FeatureKindError",
    "FileCutError",
    "GeoError",
    "IndexFileError",
    "MissingExtraError",
    "MissingFeatureError",
    "NotTFRecordError",
    "SchemaError",
    "StoredDataError",
    "TfrioError",
    "TfrioWarning",
    "UnclosedWriterWarning",
    "UsageError",
    "carry",
    "from_fault",
    "listed",
    "many",
    "precede",
    "require",
    "warn_user",
]


class TfrioWarning(UserWarning):
    """Warn about data that is usable but probably not what the user expects."""


class UnclosedWriterWarning(TfrioWarning, ResourceWarning):
    """Warn that a writer was forgotten, and its records with it."""


if not sys.warnoptions:
    # Python hides a ResourceWarning by default, but here records are lost.
    warnings.simplefilter("default", UnclosedWriterWarning)


# Whose frames are nobody's own code: this package, its stand-in for another, what calls them.
_MACHINERY = frozenset(
    {"tfrio", "tfrecord", "torch", "torchdata", "concurrent", "multiprocessing", "threading"}
)


def warn_user(text: str, category: type[Warning] = TfrioWarning) -> None:
    """Warn, naming the user's own line, however deep inside the package the reason lies.

    Args:
        text: What the user should know, and what to do.
        category: The class of the warning.
    """
    level = 1
    frame: FrameType | None = sys._getframe(0)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in _MACHINERY:
        level, frame = level + 1, frame.f_back
    # Where no frame is the user's, as on a thread, Python names none.
    warnings.warn(text, category, stacklevel=level)


class TfrioError(Exception):
    """Base of all errors of tfrio.

    Args:
        message: The whole sentence a person reads, place and remedy included.
        path: File or URL, where known.
        record: Index of the record in its file, from 0.
        offset: Byte offset of the record in the uncompressed data.
        feature: Name of the feature.
        field: Part of the record: ``"header"``, ``"payload"`` or ``"footer"``.
        expected: What should have stood there (bytes, a CRC, a number of values).
        got: What did stand there.
    """

    message = "an error of tfrio"
    """The whole sentence. As the class has this name, PyTorch raises what a worker sent without a
    reference of its own, which would keep each worker for another 5 s."""

    def __init__(
        self,
        message: str = "",
        *,
        path: str | None = None,
        record: int | None = None,
        offset: int | None = None,
        feature: str | None = None,
        field: str | None = None,
        expected: int | None = None,
        got: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.record = record
        self.offset = offset
        self.feature = feature
        self.field = field
        self.expected = expected
        self.got = got
        self.__dict__.update(_carried(message))

    def __str__(self) -> str:
        """Return the message (a KeyError would show its repr)."""
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as class, message and attributes."""
        return (type(self), (self.message,), self.__dict__)


# A process that sends errors as text, as a worker of PyTorch's DataLoader does, also sends notes.
_CARRIED = re.compile(r"^attributes: (\{.*\})$", re.MULTILINE)


def carry(error: TfrioError) -> None:
    """Note an error's attributes in its text, from which another process makes it anew.

    Args:
        error: The error, about to leave this process.
    """
    known = {n: v for n, v in vars(error).items() if n != "message" and isinstance(v, str | int)}
    error.add_note(f"attributes: {json.dumps(known)}")


def _carried(message: str) -> dict[str, Any]:
    """Return the attributes that a text was sent with (see ``carry``)."""
    found = _CARRIED.search(message) if message.startswith("Caught ") else None
    if found is None:
        return {}
    attributes: dict[str, Any] = json.loads(found[1])
    return attributes


class CorruptRecordError(TfrioError, ValueError, RuntimeError):
    """A record is damaged: a checksum differs or bytes are missing."""


class StoredDataError(CorruptRecordError):
    """The stored bytes are damaged or gone, below the level of records.

    ``code`` is ``"cut"``, ``"checksum"``, ``"data"`` or ``"tail"``.
    """

    resumable = False
    code = "data"
    ends: tuple[int, int] | None = None


class FileCutError(StoredDataError):
    """A file lost its end while it was read; ``expected`` and ``got`` are its sizes in bytes."""

    code = "cut"


class CompressedDataError(StoredDataError):
    """Compressed data is damaged; ``offset`` counts bytes of the compressed file.

    After a ``resumable`` one, which lies in a block that ends at a known place, reading goes on;
    ``expected`` then holds the uncompressed bytes lost there and ``got`` the number of records, as
    far as the header of the block tells. ``ends`` holds the records and uncompressed bytes of the
    file up to the end of a block that is not whole.
    """

    def __init__(
        self,
        message: str = "",
        *,
        path: str | None = None,
        offset: int | None = None,
        field: str | None = None,
        expected: int | None = None,
        got: int | None = None,
        code: str = "data",
        resumable: bool = False,
    ) -> None:
        self.code = code
        self.resumable = resumable
        super().__init__(message, path=path, offset=offset, field=field, expected=expected, got=got)


class NotTFRecordError(TfrioError, ValueError):
    """The file is something else than a TFRecord file."""


class DecodeError(TfrioError, ValueError):
    """A payload is not a well-formed tf.train.Example or SequenceExample."""


class SchemaError(TfrioError, ValueError):
    """The data does not fit the schema."""


class FeatureKindError(SchemaError, TypeError):
    """A feature is stored as another kind than was asked for."""


class MissingFeatureError(SchemaError, KeyError):
    """A required feature is absent from a record."""


class EncodeError(TfrioError, ValueError):
    """A value cannot be stored without changing it."""


class IndexFileError(TfrioError, ValueError):
    """An index file is damaged or was made for other data."""


class GeoError(TfrioError, ValueError):
    """Patches, mixer, grid or georeference do not fit together."""


class MissingExtraError(TfrioError, ImportError):
    """An optional package is not installed."""


class UsageError(TfrioError, ValueError):
    """The call itself is wrong: an unknown option or an impossible combination."""


class Fault(Protocol):
    """What native code says when it stops (see ``tfrio._core.Fault``)."""

    @property
    def code(self) -> str:
        """What is wrong, a short word such as ``payload-crc``."""
        ...

    @property
    def field(self) -> str:
        """The part of the record: header, payload or footer."""
        ...

    @property
    def expected(self) -> int:
        """The value, kind or number of bytes that should be there."""
        ...

    @property
    def got(self) -> int:
        """The value, kind or number of bytes that is there."""
        ...

    @property
    def feature(self) -> bytes:
        """The name of the feature, empty when none is concerned."""
        ...

    @property
    def step(self) -> int:
        """The step of a feature list, -1 outside of one."""
        ...

    @property
    def at(self) -> int:
        """The offset in the payload, in bytes."""
        ...

    @property
    def reason(self) -> str:
        """More words on a malformed payload."""
        ...


def many(count: int, noun: str) -> str:
    """Return a noun as ``count`` asks for: ``record``, ``records``, ``patches``."""
    return noun if count == 1 else f"{noun}es" if noun.endswith("ch") else f"{noun}s"


def listed(items: Iterable[object], *, most: int = 6, form: str = "") -> str:
    """Write a list for a message; a long one tells how many it leaves out.

    Args:
        items: What to list; whole numbers in order, three or more without a gap, are told as one
            range.
        most: Most items and ranges to write.
        form: How to write each, as in ``format(item, form)``.

    Returns:
        Text such as ``"a, b"``, ``"60 to 65"``, ``"1, 3, 5 and 12 more"``.
    """
    runs: list[list[Any]] = []
    for item in items:
        if runs and isinstance(item, Integral) and item == runs[-1][-1] + 1:
            runs[-1].append(item)
        else:
            runs.append([item])
    parts: list[tuple[str, int]] = []
    for run in runs:
        if len(run) > 2:
            parts.append((f"{run[0]:{form}} to {run[-1]:{form}}", len(run)))
        else:
            parts += [(f"{item:{form}}", 1) for item in run]
    left = sum(count for _, count in parts[most:])
    text = ", ".join(part for part, _ in parts[:most])
    return f"{text} and {left:,} more" if left else text


def precede(whole: int) -> str:
    """Say how many whole records precede a damaged place."""
    return f"{whole} {many(whole, 'whole record')} precede{'s' if whole == 1 else ''}"


_KINDS = {0: "no kind", 1: "bytes_list", 2: "float_list", 3: "int64_list"}
_ASKED = {1: "bytes", 2: "float", 3: "int64"}


def _framing_text(fault: Fault, record: int, place: str, got: int) -> str:
    where = f"record {record} at {place}"
    match fault.code:
        case "length-crc":
            return (
                f"length checksum mismatch at {place} (record {record}): "
                f"stored {got:08x}, computed {fault.expected:08x}"
            )
        case "payload-crc":
            return (
                f"payload checksum mismatch in {where}: "
                f"stored {got:08x}, computed {fault.expected:08x}"
            )
        case "too-long":
            return f"{where} claims {fault.expected} bytes but {got} remain"
        case "footer-cut":
            return f"footer cut: {got} of {fault.expected} bytes; {where}"
        case _:
            part = fault.field
            return f"{part} cut: {got} of {fault.expected} bytes at {place}"


def _framing_error(
    fault: Fault, path: str, record: int, offset: int, whole: int, got: int, packed: bool
) -> TfrioError:
    place = f"uncompressed offset {offset}" if packed else f"offset {offset}"
    text = (
        f"{path}: {_framing_text(fault, record, place, got)}; {precede(whole)}. "
        "Run `tfrio verify` for a full account, `tfrio repair` to keep every whole record, "
        'or read with errors="skip"'
    )
    return CorruptRecordError(
        text,
        path=path,
        record=record,
        offset=offset,
        field=fault.field,
        expected=fault.expected,
        got=got,
    )


def _schema_error(fault: Fault, name: str, where: str, place: dict[str, Any]) -> TfrioError:
    step = f", step {fault.step}" if fault.step >= 0 else ""
    if fault.code == "kind":
        asked = _ASKED.get(fault.expected, "?")
        return FeatureKindError(
            f"feature '{name}' is {_KINDS.get(fault.got, '?')} but {asked} was asked"
            f"{step}; declare {_ASKED.get(fault.got, 'another kind')}. {where}",
            **place,
        )
    if fault.code == "count":
        return SchemaError(
            f"feature '{name}': {fault.got} values, expected {fault.expected}, "
            f"record {place['record']}{step}. Declare another shape, or ragged. {where}",
            **place,
        )
    return SchemaError(f"feature '{name}' is not in the schema. {where}", **place)


def from_fault(
    fault: Fault,
    *,
    path: str,
    record: int,
    offset: int,
    whole: int | None = None,
    got: int | None = None,
    packed: bool = False,
) -> TfrioError:
    """Turn a native fault into the exception to raise.

    Args:
        fault: What the native core reported.
        path: The file, for the message.
        record: Index of the record in the file, from 0.
        offset: Byte offset of the record's header in the uncompressed file.
        whole: How many whole records precede, where damaged ones do too; by default ``record``.
        got: Replaces ``fault.got`` where more bytes are known to follow the buffer.
        packed: Whether the file is compressed, so that ``offset`` is none of its own bytes.

    Returns:
        The exception, not yet raised.
    """
    if fault.field:
        whole = record if whole is None else whole
        held = fault.got if got is None else got
        return _framing_error(fault, path, record, offset, whole, held, packed)
    name = fault.feature.decode("utf-8", "backslashreplace")
    where = f"{path}, record {record} at offset {offset}"
    place: dict[str, Any] = {
        "path": path,
        "record": record,
        "offset": offset,
        "feature": name or None,
        "expected": fault.expected,
        "got": fault.got,
    }
    if fault.code in ("kind", "count", "unknown"):
        return _schema_error(fault, name, where, place)
    if fault.code == "utf8":
        return DecodeError(
            f"a feature name is not UTF-8 (b'{name}', payload byte {fault.at}). {where}. Read it "
            "with utf8='surrogateescape', or raw payloads with tfrio.read_records",
            **place,
        )
    inside = f" of feature '{name}'" if name else ""
    return DecodeError(
        f"the payload is not a well-formed tf.train.Example: {fault.reason}{inside} "
        f"at payload byte {fault.at}. {where}. Read raw payloads with tfrio.read_records if it "
        "holds another message",
        **place,
    )


def require(module: str, *, extra: str) -> ModuleType:
    """Import an optional package.

    Args:
        module: Name of the module to import.
        extra: The extra of tfrio that installs it.

    Returns:
        The imported module.

    Raises:
        MissingExtraError: The package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"this needs the package '{module.partition('.')[0]}' ({error}): "
            f"pip install 'tfrio[{extra}]'"
        ) from error
