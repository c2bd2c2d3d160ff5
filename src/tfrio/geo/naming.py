"""Names of shards, mixers and manifests, as Earth Engine gives them and as they are found again.

Drive: ``PREFIX-00000.tfrecord.gz`` and ``PREFIX-mixer.json``. Cloud Storage, several shards:
``PREFIX00000.tfrecord.gz`` and ``PREFIXmixer.json``; one shard: ``PREFIX.tfrecord.gz`` and
``PREFIX.json``. Everything here works on names alone; nothing reads a folder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from tfrio.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ExportNames",
    "Names",
    "Naming",
    "ShardName",
    "group_exports",
    "parse_shard_name",
]

Naming: TypeAlias = Literal["drive", "gcs"]

_SHARD = re.compile(r"^(?P<stem>.*?)(?P<suffix>\.tfrecords?(?:\.gz)?)$", re.IGNORECASE | re.DOTALL)
_NUMBERED = re.compile(r"^(?P<prefix>.*?)(?P<dash>-?)(?P<number>[0-9]{5})$", re.DOTALL)
_COUNTED = re.compile(r"^(?P<prefix>.*?)-(?P<number>[0-9]{5})-of-(?P<total>[0-9]{5})$", re.DOTALL)
_MANIFEST = "-manifest.json"


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one export.

    Args:
        prefix: What every name begins with; may hold a folder or a URL.
        shards: Number of shards.
        naming: ``"drive"`` or ``"gcs"`` (Cloud Storage).
        compressed: Whether names end in ``.gz``.
    """

    prefix: str
    shards: int
    naming: Naming = "drive"
    compressed: bool = True

    def __post_init__(self) -> None:
        """Check the style and the count."""
        if self.naming not in get_args(Naming):
            raise UsageError(f'naming must be "drive" or "gcs"; got {self.naming!r}')
        if self.shards > 100_000:
            raise UsageError(
                f"{self.shards:,} shards: names have five digits. Give a larger max_file_size"
            )

    def shard(self, index: int) -> str:
        """Return the name of a shard, counted from 0."""
        suffix = ".tfrecord.gz" if self.compressed else ".tfrecord"
        if self.naming == "drive":
            return f"{self.prefix}-{index:05d}{suffix}"
        return f"{self.prefix}{index:05d}{suffix}" if self.shards > 1 else self.prefix + suffix

    @property
    def all_shards(self) -> list[str]:
        """Return the names of all shards in order."""
        return [self.shard(index) for index in range(self.shards)]

    @property
    def mixer(self) -> str:
        """Return the name of the mixer."""
        if self.naming == "drive":
            return f"{self.prefix}-mixer.json"
        return f"{self.prefix}mixer.json" if self.shards > 1 else f"{self.prefix}.json"

    @property
    def manifest(self) -> str:
        """Return the name of our manifest."""
        return self.prefix + _MANIFEST


@dataclass(frozen=True, slots=True)
class ShardName:
    """A shard's name taken apart; ``number`` is None where the name has none."""

    prefix: str
    number: int | None
    dash: bool
    suffix: str


def parse_shard_name(name: str) -> ShardName | None:
    """Take a shard's name apart.

    Args:
        name: File name, folder and all.

    Returns:
        Its parts, or None when the name is not that of a TFRecord file.
    """
    match = _SHARD.match(name)
    if match is None:
        return None
    numbered = _NUMBERED.match(match["stem"])
    if numbered is None:
        return ShardName(match["stem"], None, False, match["suffix"])
    return ShardName(
        numbered["prefix"], int(numbered["number"]), bool(numbered["dash"]), match["suffix"]
    )


@dataclass(frozen=True, slots=True)
class ExportNames:
    """The names that belong to one export.

    Args:
        prefix: What they share.
        shards: Shard names in order of their numbers.
        numbers: The number of each shard; (0,) where one shard carries none.
        mixer: Name of the mixer, if there.
        manifest: Name of our manifest, if there.
        total: Number of shards that the names tell; 0 where they tell none.
    """

    prefix: str
    shards: tuple[str, ...]
    numbers: tuple[int, ...]
    mixer: str | None
    manifest: str | None
    total: int = 0

    @property
    def missing(self) -> list[int]:
        """Return the shard numbers absent below the total, or below the highest one present."""
        end = max(self.total, max(self.numbers, default=-1) + 1)
        return sorted(set(range(end)) - set(self.numbers))

    @property
    def repeated(self) -> list[int]:
        """Return the shard numbers that several files bear."""
        return sorted({n for n in self.numbers if self.numbers.count(n) > 1})


def group_exports(names: Iterable[str], *, counted: bool = False) -> list[ExportNames]:
    """Sort names into exports: the shards, mixer and manifest of each prefix.

    A file belongs to the export whose prefix is its whole name before the number, so
    ``A-OUT-00000.tfrecord`` is no part of export ``A``.

    Args:
        names: File names, all from one folder or with their folders.
        counted: Take ``PREFIX-00000-of-00003`` for a shard of ``PREFIX`` too. Predictions may bear
            such names; exports do not, so that none is taken for an old shard of one.

    Returns:
        One entry for each export, sorted by prefix. Other names are left out.
    """
    known = set(names)
    groups: dict[tuple[str, bool], list[tuple[int, str]]] = {}
    totals: dict[tuple[str, bool], int] = {}
    for name in known:
        shard = parse_shard_name(name)
        if shard is None:
            continue
        stem = name[: len(name) - len(shard.suffix)]
        part = _COUNTED.match(stem) if counted else None
        if part is not None:
            groups.setdefault((part["prefix"], True), []).append((int(part["number"]), name))
            totals[part["prefix"], True] = int(part["total"])
        elif shard.number is None or f"{stem}.json" in known:
            groups.setdefault((stem, False), []).append((0, name))
        else:
            groups.setdefault((shard.prefix, shard.dash), []).append((shard.number, name))
    return [_export(key[0], groups[key], known, totals.get(key, 0)) for key in sorted(groups)]


def _export(prefix: str, shards: list[tuple[int, str]], known: set[str], total: int) -> ExportNames:
    """Put the names of one prefix together."""
    shards.sort()
    mixers = (f"{prefix}-mixer.json", f"{prefix}mixer.json", f"{prefix}.json")
    manifest = prefix + _MANIFEST
    return ExportNames(
        prefix=prefix,
        shards=tuple(name for _, name in shards),
        numbers=tuple(number for number, _ in shards),
        mixer=next((name for name in mixers if name in known), None),
        manifest=manifest if manifest in known else None,
        total=total,
    )
