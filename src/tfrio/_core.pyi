"""
Native core of tfrio: checksums, framing, Examples to columns and back.
"""

from collections.abc import Sequence

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
