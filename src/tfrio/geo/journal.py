"""Which shards of an interrupted export are finished, and what to do with what lies around."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import msgspec

from tfrio import storage
from tfrio.errors import GeoError, UsageError
from tfrio.geo.files import read_small
from tfrio.geo.naming import group_exports
from tfrio.geo.outputs import digest_of, move, names_like
from tfrio.geo.work import ShardResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrio.geo.manifest import ShardRow
    from tfrio.geo.naming import Names
    from tfrio.geo.work import Job

__all__ = ["check_free", "fingerprint_of", "finish", "finished_shards", "old_names", "sweep"]

_LARGEST_RESULT = 1 << 30
_OURS = re.compile(r"^\.?(?P<name>.*\.tfrecord(\.gz)?)\.partial(\.json)?(\.[0-9a-f]{8}\.tmp)?$")


def fingerprint_of(*parts: object) -> str:
    """Return text that differs when any part does."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(repr(part).encode("utf-8", "backslashreplace") + b"\0")
    return digest.hexdigest()


def finished_shards(job: Job) -> dict[int, ShardResult]:
    """Return the shards that an earlier run of this very export finished.

    A shard counts when the note beside it was written for the same sources and options, and the
    shard's bytes still have the digest noted.
    """
    found: dict[int, ShardResult] = {}
    for shard in range(len(job.spans)):
        result = _result(job, shard)
        if result is None:
            continue
        if digest_of(job.temporary(shard)) == result.row.digest:
            found[shard] = result
        elif digest_of(job.names.shard(shard)) == result.row.digest:
            found[shard] = result  # it was interrupted while names were given
    return found


def _result(job: Job, shard: int) -> ShardResult | None:
    try:
        data = read_small(job.result_name(shard), limit=_LARGEST_RESULT)
        result = msgspec.json.decode(data, type=ShardResult)
    except (FileNotFoundError, GeoError, msgspec.MsgspecError):
        return None
    return result if result.fingerprint == job.fingerprint and result.shard == shard else None


def check_free(names: Names, *, overwrite: bool) -> None:
    """Refuse to write where another export bears the prefix.

    Raises:
        UsageError: There is one, and ``overwrite`` is off.
    """
    taken = old_names(names)
    if taken and not overwrite:
        raise UsageError(
            f"{taken[0]} exists: an export with the prefix {names.prefix} is there already. "
            "Give another prefix, or overwrite=True"
        )


def old_names(names: Names) -> list[str]:
    """Return the files of exports with this very prefix that are there already."""
    stem = names.prefix.replace("\\", "/")
    there = [name for name in names_like(names.prefix) if not name.endswith(".partial")]
    found = []
    for export in group_exports(there):
        if export.prefix == stem:
            sides = [side for side in (export.mixer, export.manifest) if side]
            found += [*export.shards, *sides]
    return sorted(found)


def sweep(names: Names, keep: set[str]) -> None:
    """Remove what interrupted runs with this prefix left, but for the names to keep."""
    prefix = names.prefix.replace("\\", "/")
    stem = prefix.rpartition("/")[2]
    for path in list(names_like(names.prefix)):
        match = _OURS.match(path.rpartition("/")[2])
        if match is None or path in keep:
            continue
        rest = match["name"].removeprefix(stem)
        if re.fullmatch(r"(-?[0-9]{5})?\.tfrecord(\.gz)?", rest):
            storage.remove(path)


def finish(job: Job, rows: Sequence[ShardRow], old: list[str], *, keep: set[str]) -> None:
    """Give all shards their names and remove what an earlier export left under others.

    Args:
        job: The export, all of whose shards are finished.
        rows: The shards, in order.
        old: Files of the export to be replaced.
        keep: Names of the mixer and manifest that are written next.

    Raises:
        GeoError: A shard is not there: workers on other machines wrote it to their own disks.
    """
    for shard, row in enumerate(rows):
        temporary, final = job.temporary(shard), job.names.shard(shard)
        if row.size not in (storage.size_of(temporary), storage.size_of(final)):
            raise GeoError(
                f"{temporary}: the shard is not here, though a worker wrote it. Give a prefix that "
                "means the same place on every machine: a shared folder or a URL",
                path=temporary,
            )
    for shard in range(len(rows)):
        if storage.size_of(job.temporary(shard)) is not None:
            move(job.temporary(shard), job.names.shard(shard))
    new = {name.replace("\\", "/") for name in [*job.names.all_shards, *keep]}
    for name in old:
        if name not in new:
            storage.remove(name)
