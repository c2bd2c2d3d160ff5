"""What the manifest of an export notes of its shards, against the bytes that are there."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from tfrio.records.check import crc_of
from tfrio.records.names import folder_of
from tfrio.storage import open_read, size_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tfrio.records.check import FileReport

__all__ = ["Noted", "noted_shards", "other_bytes"]

_MOST = 1 << 30  # masks of a 100,000 x 100,000 raster pack into less
_ENDING, _FORMAT = "-manifest.json", "tfrio-manifest/"
_REMEDY = (
    "was it renamed, or written again? Export it again, or remove the manifest if the change is "
    "meant"
)


class _Row(msgspec.Struct):
    name: str
    size: int
    digest: str = ""


class _Manifest(msgspec.Struct):
    format: str
    shards: list[_Row] = []


@dataclass(frozen=True, slots=True)
class Noted:
    """A shard as its manifest notes it.

    Attributes:
        path: The shard.
        found: Its bytes as stored.
        manifest: The manifest.
        size: Bytes that it notes.
        digest: Digest that it notes: ``crc32c:`` and eight hexadecimal digits.
        crc: Digest of the shard in the same form; None where it is not known yet.
    """

    path: str
    found: int
    manifest: str
    size: int
    digest: str
    crc: str | None = None

    def fault(self) -> str | None:
        """Say that the shard holds other bytes; it is read only where that is not known by size."""
        if self.found != self.size:
            return self._other(f"{self.found:,} bytes, not {self.size:,}")
        if not self.digest.startswith("crc32c:"):
            return None
        digest = self.crc or self._read()
        return None if digest == self.digest else self._other(f"{digest}, not {self.digest}")

    def _read(self) -> str:
        with contextlib.closing(open_read(self.path)) as reader:
            return crc_of(reader)

    def _other(self, what: str) -> str:
        return other_bytes(self.path, self.manifest, what)


def other_bytes(path: str, manifest: str, what: str) -> str:
    """Say that a shard is not what a manifest notes, and what to do.

    Args:
        path: The shard.
        manifest: What to call the manifest.
        what: What it has, and what it should have.
    """
    return f"{path}: holds other bytes than {manifest} says ({what}): {_REMEDY}"


def noted_shards(sidecars: Iterable[str], reports: Mapping[str, FileReport]) -> Iterator[Noted]:
    """Yield the shards that manifests of exports note, of those with a known size.

    Args:
        sidecars: JSON files of a folder.
        reports: What was found in sound files of that folder, by path.
    """
    for path in sidecars:
        if not path.endswith(_ENDING):
            continue
        folder = folder_of(path)
        for row in _rows(path):
            shard = folder + row.name
            found = reports.get(shard)
            if found is not None and found.bytes:
                yield Noted(shard, found.bytes, path, row.size, row.digest, found.crc)


def _rows(path: str) -> list[_Row]:
    """Return the shards of a manifest, none where the file is something else."""
    with contextlib.closing(open_read(path)) as reader:
        text = reader.read_at(0, min(size_of(path) or 0, _MOST))
    try:
        manifest = msgspec.json.decode(text, type=_Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return []
    return manifest.shards if manifest.format.startswith(_FORMAT) else []
