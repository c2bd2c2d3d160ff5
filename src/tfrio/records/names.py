"""Names of shards as pure text: natural order, prefixes, ``-00001-of-00004``, gaps."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfrio.errors import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "SIDECAR",
    "ShardGap",
    "ShardName",
    "find_gaps",
    "in_split",
    "is_record_name",
    "natural_key",
    "parse_name",
    "shard_path",
    "stem_of",
]

SIDECAR = ".tfrindex"  # appended to the name of a data file: its index

_DIGITS = re.compile(r"(\d+)")
_EXTENSION = r"(?:\.(?:tfrecords?|tfrec|tfr|records?|rec|gz|gzip|zlib|zz|deflate))"
_RECORD_NAME = re.compile(r"\.(?:tfrecords?|tfrec|tfr)(?:\.(?:gz|gzip|zlib|zz))?$", re.IGNORECASE)
# A number alone has five digits or more, one beside its total as few as it likes. A name is no
# reason to go through more numbers than six digits hold.
_SHARD = re.compile(
    r"^(?P<head>.+?)(?:-(?P<index>\d{5,})"
    r"|[-_.](?P<of>\d{1,6})[-_]of[-_](?P<total>\d{1,6}))"
    rf"(?P<tail>{_EXTENSION}*)$",
    re.IGNORECASE,
)
_EXTENSIONS = re.compile(rf"{_EXTENSION}+$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ShardName:
    """The parts of a shard's file name, such as ``b-train.tfrecord-00001-of-00004``.

    Attributes:
        head: What precedes the number: ``b-train.tfrecord``.
        index: Number of the shard, from 0 (some writers count from 1).
        total: Number of shards where the name tells it, else None.
        tail: Extensions after the number.
        width: Digits of the number.
    """

    head: str
    index: int
    total: int | None
    tail: str
    width: int


@dataclass(frozen=True, slots=True)
class ShardGap:
    """What is wrong with a set of shards.

    Attributes:
        prefix: Folder and name before the number.
        missing: Shard numbers that are not there.
        extra: Shard numbers at or past the total.
        total: Number of shards that should be there, None in a ``-00000`` sequence.
        message: The whole sentence for a person.
    """

    prefix: str
    missing: tuple[int, ...]
    extra: tuple[int, ...]
    total: int | None
    message: str


def base_name(path: str) -> str:
    """Return the last part of a path or URL."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def folder_of(path: str) -> str:
    """Return the folder of a file with its separator, empty for the current one."""
    return path[: len(path) - len(base_name(path))]


def natural_key(path: str) -> list[tuple[str, int]]:
    """Return a sort key under which ``p-2`` comes before ``p-10``."""
    parts = _DIGITS.split(path)
    numbers = [int(n) for n in parts[1::2]] + [-1]
    return list(zip(parts[0::2], numbers, strict=True))


def parse_name(path: str) -> ShardName | None:
    """Return the parts of a shard's name, None when the name has no shard number."""
    match = _SHARD.match(base_name(path))
    if not match:
        return None
    number, total = match["index"] or match["of"], match["total"]
    return ShardName(
        match["head"],
        int(number),
        int(total) if total else None,
        match["tail"],
        len(number),
    )


def stem_of(path: str) -> str:
    """Return the name without shard number and record extensions: ``b-train``."""
    name = base_name(path)
    parsed = _SHARD.match(name)
    return _EXTENSIONS.sub("", parsed["head"] if parsed else name)


def has_prefix(path: str, prefix: str) -> bool:
    """Check that a file belongs to the export or data set called ``prefix``, exactly.

    ``b-foo`` owns ``b-foo-00000.tfrecord`` and ``b-foo.tfrecord-00000-of-00001``, but nothing of
    ``b-foo_bar`` or ``b-foo-OUT``.
    """
    parsed = parse_name(path)
    return stem_of(path) == prefix or (parsed is not None and parsed.head == prefix)


def in_split(path: str, split: str) -> bool:
    """Check that a file belongs to a split: its stem is ``split`` or ends with ``-split``."""
    stem = stem_of(path)
    return stem == split or stem.endswith(f"-{split}")


def is_record_name(path: str) -> bool:
    """Check whether a name says TFRecord: ``.tfrecord``, ``.tfrecords``, ``.tfrec``, with .gz."""
    name = base_name(path)
    parsed = parse_name(name)
    bare = name if parsed is None else f"{parsed.head}{parsed.tail}"
    return bool(_RECORD_NAME.search(bare) or (parsed and _RECORD_NAME.search(parsed.head)))


def shard_path(prefix: str, index: int, total: int | None, suffix: str) -> str:
    """Return the name of a shard: ``out-00000-of-00002.tfrecord.gz`` or ``out-00000.tfrecord``."""
    of = f"-of-{total:05d}" if total is not None else ""
    return f"{prefix}-{index:05d}{of}{suffix}"


def find_gaps(paths: Iterable[str]) -> list[ShardGap]:
    """Find missing and extra shards by the names alone.

    Args:
        paths: Files of one or several data sets.

    Returns:
        One entry for each set with something wrong. A ``-00000`` sequence without a total counts
        only with five digits padded with zeros (eight are a date), and its end cannot be checked.
    """
    groups: dict[tuple[str, int | None, str], list[int]] = defaultdict(list)
    for path in paths:
        shard = parse_name(path)
        if shard and (shard.total is not None or shard.width == 5):
            folder = folder_of(path)
            groups[folder + shard.head, shard.total, shard.tail].append(shard.index)
    gaps = (_gap(prefix, total, sorted(set(found))) for (prefix, total, _), found in groups.items())
    return [gap for gap in gaps if gap] + _doubles(groups)


def _doubles(groups: Mapping[tuple[str, int | None, str], list[int]]) -> list[ShardGap]:
    """Find prefixes with several sets of shards: what is read then comes twice."""
    sets: dict[tuple[str, str], list[int | None]] = defaultdict(list)
    for prefix, total, tail in groups:
        sets[prefix, tail].append(total)
    found = []
    for (prefix, _), totals in sets.items():
        if len(totals) > 1:
            told = sorted("of unknown number" if t is None else f"of {t:05d}" for t in totals)
            text = f"{prefix}: several sets of shards under one name, {' and '.join(told)}"
            found.append(ShardGap(prefix, (), (), None, text))
    return found


def _gap(prefix: str, total: int | None, found: list[int]) -> ShardGap | None:
    if total is None and found[0] >= 10_000:  # not padded with zeros: no sequence from 00000 on
        return None
    begin = int(found[-1] == total and found[0] > 0)  # some writers count from 1
    end = begin + total if total is not None else found[-1] + 1
    missing = tuple(sorted(set(range(begin, end)) - set(found)))
    extra = tuple(i for i in found if i >= end)
    if not missing and not extra:
        return None
    texts = []
    if missing:
        of = f" of {total}" if total is not None else f" before {found[-1]:05d}"
        texts.append(
            f"missing shard{'s' if len(missing) > 1 else ''} {listed(missing, form='05d')}{of}"
        )
    if extra:
        texts.append(f"shard {listed(extra, form='05d')} is past the end of {total}")
    return ShardGap(prefix, missing, extra, total, f"{prefix}: {'; '.join(texts)}")
