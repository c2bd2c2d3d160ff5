"""
Native core of tfrio: checksums, framing, Examples to columns and back.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy
import numpy.typing
from typing_extensions import Buffer


class Fault:
    """Why native code stopped: what is wrong with the data, where."""

    @property
    def code(self) -> str:
        """Name of the fault."""

    @property
    def field(self) -> str:
        """Part of the record: "header", "payload", "footer" or ""."""

    @property
    def record(self) -> int:
        """Index of the record within the call, from 0."""

    @property
    def offset(self) -> int:
        """Byte offset of the record's header in the buffer."""

    @property
    def expected(self) -> int:
        """Byte count, checksum, value count or kind number."""

    @property
    def got(self) -> int:
        """The same, as found."""

    @property
    def feature(self) -> bytes:
        """Name of the feature, b"" where none is concerned."""

    @property
    def step(self) -> int:
        """Step of a feature list, or -1."""

    @property
    def at(self) -> int:
        """Byte offset within the payload for wire faults, or -1."""

    @property
    def reason(self) -> str:
        """Short plain English for wire faults, or ""."""

    def __repr__(self) -> str: ...

class Feed:
    """How far a feeding call came."""

    @property
    def consumed(self) -> int:
        """Bytes of whole, good records, from the start given."""

    @property
    def records(self) -> int:
        """Number of records taken."""

    @property
    def fault(self) -> Fault | None:
        """Why it stopped, None where it ran out of data or of room."""

def crc32c(data: Buffer, crc: int = 0) -> int:
    """Return the CRC32C of `data`, continuing from `crc`."""

def masked_crc32c(data: Buffer) -> int:
    """Return the CRC32C of `data` as TFRecord files store it."""

def crc32c_backend() -> str:
    """Return the name of the CRC32C code in use."""

def crc32c_backends() -> list[str]:
    """Return the names of all CRC32C codes this machine runs, fastest first."""

def crc32c_force(name: str) -> bool:
    """
    Use the CRC32C code called `name` from now on (for tests and benchmarks).
    """

class Scan:
    """Records found by scan()."""

    @property
    def spans(self) -> numpy.typing.NDArray[numpy.int64]:
        """int64 (n, 2): offset and length of each payload."""

    @property
    def consumed(self) -> int:
        """Bytes of whole, good records."""

    @property
    def fault(self) -> Fault | None:
        """Why the scan stopped, or None."""

class Count:
    """Records counted by count()."""

    @property
    def records(self) -> int:
        """Number of whole, good records."""

    @property
    def consumed(self) -> int:
        """Bytes of whole, good records."""

    @property
    def fault(self) -> Fault | None:
        """Why the count stopped, or None."""

def scan(data: Buffer, start: int = 0, max_records: int = -1, verify_payload: bool = True, final: bool = False) -> Scan:
    """Find the payloads of the framed records in `data`, from `start`."""

def count(data: Buffer, start: int = 0, verify_payload: bool = True, final: bool = False) -> Count:
    """Count the framed records in `data`, from `start`."""

def find_record(data: Buffer, start: int, final: bool = False) -> tuple[int, bool]:
    """
    Return (offset, certain) of the first record at or after `start`; -1 for none.
    """

def frame(payloads: Sequence[Buffer]) -> bytes:
    """Return the payloads as framed records, one after the other."""

def trim_memory() -> int:
    """
    Free the memory of dropped arrays that waits for reuse; return how many bytes.
    """

def arrow_own_schema(address: int, owner: object) -> None:
    """Let `owner` live until the ArrowSchema at `address` is released."""

def arrow_own_array(address: int, owner: object) -> None:
    """Let `owner` live until the ArrowArray at `address` is released."""

def arrow_own_stream(address: int, owner: object) -> None:
    """Let `owner` live until the ArrowArrayStream at `address` is released."""

def arrow_stream_capsule(address: int) -> object:
    """
    Move the ArrowArrayStream at `address` into a capsule "arrow_array_stream".
    """

KIND_BYTES: int = 1

KIND_FLOAT: int = 2

KIND_INT64: int = 3

PLACE_CONTEXT: int = 0

PLACE_LIST: int = 1

class Column:
    """The values of one feature over many records."""

    @property
    def values(self) -> numpy.typing.NDArray[Any]:
        """float32, int64 or uint8 (the bytes of all byte strings), flat."""

    @property
    def byte_offsets(self) -> numpy.typing.NDArray[numpy.int64] | None:
        """
        Byte strings: where each value begins in `values`, and where the last ends.
        """

    @property
    def value_offsets(self) -> numpy.typing.NDArray[numpy.int64] | None:
        """
        Any number of values: where each row's or step's list begins, and the end.
        """

    @property
    def step_offsets(self) -> numpy.typing.NDArray[numpy.int64] | None:
        """Feature lists: where each row's steps begin, and the end."""

    @property
    def present(self) -> numpy.typing.NDArray[numpy.uint8]:
        """0 where the feature is absent or carries no kind, else 1."""

    @property
    def step_present(self) -> numpy.typing.NDArray[numpy.uint8] | None:
        """
        Feature lists: 0 where a step carries no kind, else 1; None where all do.
        """

    @property
    def whole(self) -> bool:
        """Whether no row lacks the feature."""

class ExampleDecoder:
    """Decodes framed Examples into columns."""

    def __init__(self, features: Sequence[tuple[bytes, int, int, int]], *, sequence: bool = False, discover: bool = False, utf8: str = 'error') -> None:
        """Ask for features: (name, kind, count or -1, place) each."""

    def feed(self, data: Buffer, start: int = 0, max_records: int = -1, *, verify: bool = True, final: bool = False, threads: int = 1) -> Feed:
        """Decode framed records, on several threads where there is enough to do."""

    def feed_spans(self, data: Buffer, spans: numpy.typing.NDArray[numpy.int64], max_records: int = -1) -> Feed:
        """Decode the payloads at int64 (n, 2) spans; `consumed` counts spans."""

    def feed_at(self, buffers: Sequence[Buffer], which: numpy.typing.NDArray[numpy.int32], starts: numpy.typing.NDArray[numpy.int64], *, verify: bool = True, threads: int = 1) -> Feed:
        """
        Decode framed records in any order: k has its header at starts[k] of buffers[which[k]].
        """

    def set_output(self, i: int, array: numpy.typing.NDArray[Any]) -> None:
        """
        Write feature i, bytes (uint8) or a fixed number of numbers, into `array` until the next take().
        """

    def take(self) -> list[Column]:
        """Return the columns gathered, in the order of the features; start anew."""

    @property
    def rows(self) -> int:
        """Number of rows gathered since the last take()."""

class DeflateWalk:
    """How far walk_deflate() came."""

    @property
    def points(self) -> numpy.typing.NDArray[numpy.int64]:
        """int64 (n, 2): offset in bits and uncompressed offset of blocks."""

    @property
    def bit(self) -> int:
        """Offset behind the last whole block, in bits."""

    @property
    def out(self) -> int:
        """Uncompressed bytes of the blocks."""

    @property
    def ended(self) -> bool:
        """Whether the last block was seen; else the data is cut or damaged."""

def walk_deflate(data: Buffer, bit: int, spacing: int) -> DeflateWalk:
    """
    Find deflate blocks at least `spacing` uncompressed bytes apart, from bit `bit`.
    """

class Encoded:
    """Framed records."""

    @property
    def data(self) -> numpy.typing.NDArray[numpy.uint8]:
        """The framed records, one after the other."""

    @property
    def ends(self) -> numpy.typing.NDArray[numpy.int64]:
        """Offset of the end of each record in `data`."""

class ExampleEncoder:
    """Encodes columns into framed Examples."""

    def __init__(self, features: Sequence[tuple[bytes, int, int]], *, sequence: bool = False, sort: bool = True) -> None:
        """
        Write features: (name, kind, place) each, names sorted unless told otherwise.
        """

    def encode(self, rows: int, columns: Sequence[tuple[numpy.typing.NDArray[Any], numpy.typing.NDArray[numpy.int64] | None, numpy.typing.NDArray[numpy.int64] | None, numpy.typing.NDArray[numpy.int64] | None, numpy.typing.NDArray[Any] | None, int]], *, step_present: Sequence[tuple[int, numpy.typing.NDArray[Any]]] = ()) -> Encoded:
        """
        Encode rows of columns, each (values, byte_offsets, value_offsets, step_offsets, present, count).

        `step_present`: (index, flags) of feature lists with steps that carry no kind: 0 for each of these.
        """

class FileMap(Buffer):
    """
    Bytes of a file, mapped: a buffer that can be read.

    Where somebody cuts the file short meanwhile, or its disk fails, zeros are read and `whole`
    says so; other mappings end the process. OSError where the
    system cannot map the file.
    """

    def __init__(self, name: str, descriptor: int, offset: int, size: int) -> None: ...

    @property
    def name(self) -> str:
        """What the file is called."""

    def __len__(self) -> int: ...

    def whole(self, end: int) -> bool:
        """
        Return whether the file still has the first `end` bytes mapped, and had them whenever they were used.
        """

class RecordMap:
    """
    Records of a mapped file by number.

    `data` is the mapping, `offsets` says where the header of each record lies, `end` where the
    last one ends.
    """

    def __init__(self, data: FileMap, offsets: numpy.typing.NDArray[numpy.int64], end: int) -> None: ...

    def payload(self, number: int, verify: bool = True) -> bytes | Fault | None:
        """
        Return the payload of a record, why there is none, or None where the file was cut.
        """

def payload_at(data: Buffer, start: int, verify: bool = True) -> bytes | Fault:
    """
    Return the payload of the framed record at `start`, or why there is none.
    """

def payloads_at(buffers: Sequence[Buffer], which: numpy.typing.NDArray[numpy.int32], starts: numpy.typing.NDArray[numpy.int64], verify: bool = True) -> tuple[list[bytes], Fault | None]:
    """
    Return the payloads of framed records in any order, up to the first fault: k has its header at starts[k] of buffers[which[k]].
    """

class RowDecoder:
    """
    Decode single records into dicts of arrays, scalars and bytes.

    `features` and the options are those of ExampleDecoder. `given` says what a row holds, each
    (key, index of the feature, axes, bare, text, absent): the axes of a fixed number of values or
    those behind a free one; whether a single value stands alone; whether bytes are UTF-8 text;
    and for an absent feature 0 None, 1 nothing, 2 `row` returns None. `unwrap`: one byte string
    stands alone, several are a list. `no_bytes` and `no_steps` make what stands for a list of
    byte strings, and for a feature list, without any.
    """

    def __init__(self, features: Sequence[tuple[bytes, int, int, int]], given: Sequence[tuple[str, int, Sequence[int], bool, bool, int]], no_bytes: Callable, no_steps: Callable, *, unwrap: bool = False, sequence: bool = False, discover: bool = False, utf8: str = 'error') -> None: ...

    def row(self, data: Buffer, start: int, verify: bool = True) -> dict[str, Any] | None:
        """
        Return the framed record at `start` as a dict; None where it is damaged or does not fit.
        """

    def row_of(self, records: RecordMap, number: int, verify: bool = True) -> dict[str, Any] | None:
        """
        Return a record of a mapped file as a dict; None where it cannot be had.
        """

class RowEncoder:
    """
    Encode rows, dicts of name -> (value, type name), one at a time.

    `kinds` maps type names to kind numbers; `kind_of(type name)` answers for others, or raises.
    `plain(name, value, kind)` turns a value that is not plain into one that is: an array of
    float32, float64 or int64, or a list of bytes.
    """

    def __init__(self, kinds: dict, kind_of: Callable, plain: Callable) -> None: ...

    def payload(self, row: dict, lists: dict | None = None) -> bytes:
        """
        Return a row as a serialized Example; with feature `lists`, as a SequenceExample.
        """

    def add(self, row: dict, lists: dict | None = None) -> int:
        """
        Encode and frame a row; return how many bytes wait. A failing row adds nothing.
        """

    def take(self) -> tuple[numpy.typing.NDArray[numpy.uint8], numpy.typing.NDArray[numpy.int64]]:
        """
        Return the framed records that wait and the end of each, and forget them.
        """

class SchemaScanner:
    """Gathers which features payloads hold."""

    def __init__(self, sequence: bool = False, *, utf8: str = 'error') -> None:
        """Survey Examples, or SequenceExamples."""

    def feed(self, data: Buffer, start: int = 0, max_records: int = -1, *, verify: bool = True, final: bool = False) -> Feed:
        """Survey framed records, checking every value."""

    def result(self) -> list[tuple[bytes, int, int, int, int, dict[int, tuple[int, int]], int, int, int, int]]:
        """
        Return (name, place, present, kindless, empty, {kind: (records, first record)}, min length, max length, min steps, max steps) of each feature, in the order of first sight; -1 where nothing is known.
        """

def classify(payload: Buffer) -> str:
    """Return which message a payload is: "example", "sequence" or "other"."""
