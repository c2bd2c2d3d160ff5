"""Pure arithmetic: which patch each record is, or why that cannot be known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfrio.errors import GeoError, listed, many
from tfrio.geo.assemble_shards import of_export
from tfrio.records.names import base_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tfrio.geo.assemble_files import Survey
    from tfrio.geo.assemble_target import Target
    from tfrio.geo.manifest import ShardRow

__all__ = ["first_records", "patch_order"]


def patch_order(
    survey: Survey, target: Target, *, partial: bool, first_patch: int | None = None
) -> NDArray[np.int64]:
    """Return the patch index of each record.

    Args:
        survey: What the files hold.
        target: What was exported.
        partial: Whether patches may be missing.
        first_patch: Position of the first record among those exported, where names do not tell.

    Returns:
        One index a record, shape (records,).

    Raises:
        GeoError: Too few or too many records, an index twice or unknown, or shards whose place
            cannot be told.
    """
    written = np.asarray(target.written, np.int64)
    if survey.index is not None:
        return _checked_index(survey, written, target, partial=partial)
    if survey.records == len(written) and first_patch is None:
        return written
    if not partial:
        raise _miscounted(survey, target)
    positions = _partial_positions(survey, target, first_patch)
    return written[positions]


def _checked_index(
    survey: Survey, written: NDArray[np.int64], target: Target, *, partial: bool
) -> NDArray[np.int64]:
    index = survey.index
    assert index is not None
    unknown = np.flatnonzero(~np.isin(index, written))
    if len(unknown):
        record = int(unknown[0])
        raise GeoError(
            f"{survey.where(record)}: patch index {index[record]} is no patch of {target.name}, "
            f"which has {len(written)} ({written.min()} to {written.max()}). Are these predictions "
            "of this export?"
        )
    values, counts = np.unique(index, return_counts=True)
    if (counts > 1).any():
        twice = values[counts > 1][0]
        records = np.flatnonzero(index == twice)
        raise GeoError(
            f"patch {twice} is predicted twice: {survey.where(int(records[0]))} and "
            f"{survey.where(int(records[1]))}. Write each patch once"
        )
    missing = np.setdiff1d(written, values)
    if len(missing) and not partial:
        own = of_export(survey, target)
        lacks = f"{many(len(missing), 'patch')} {listed(missing)}"
        raise GeoError(
            f"{target.name}: mixer says {len(written)} patches, {_holders(own)} hold "
            f"{len(values)}; {lacks} {'is' if len(missing) == 1 else 'are'} missing. "
            f"{'Fetch' if own else 'Predict'} the rest, or pass partial=True to leave it nodata"
        )
    return index


def _miscounted(survey: Survey, target: Target) -> GeoError:
    expected, held = len(target.written), survey.records
    what = "mixer says" if expected == target.places.total else "the export wrote"
    files = [f"{f.path} {n}" for f, n in zip(survey.files, survey.counts, strict=True)]
    own = of_export(survey, target)
    remedy = _fetch(survey, own=own) if held < expected else f"Are these {_kind(own)}, each once?"
    return GeoError(
        f"{target.name}: {what} {expected} patches, {_holders(own)} hold {held} ({listed(files)}). "
        f"{_odd_shard(survey, target)}{remedy}",
        path=target.name,
        expected=expected,
        got=held,
    )


def _holders(own: bool) -> str:
    return "the shards of the export" if own else "the predictions"


def _kind(own: bool) -> str:
    return "shards of this export" if own else "predictions of this export"


def _fetch(survey: Survey, *, own: bool) -> str:
    """Say which shards to fetch: where the numbers have no gap, those behind the last."""
    last = survey.files[-1]
    which = f"shards after {base_name(last.path)}" if own and last.number is not None else "shards"
    rest = "or pass partial=True to place these and leave the rest nodata"
    return f"Fetch the missing {which}, {rest}"


def _odd_shard(survey: Survey, target: Target) -> str:
    """Name the shard that differs from the export's, where both are divided alike."""
    shards = target.manifest.shards if target.manifest else []
    if len(shards) != len(survey.files):
        return ""
    for file, count, shard in zip(survey.files, survey.counts, shards, strict=True):
        if count != shard.records:
            return f"{file.path} differs: shard {shard.name} has {shard.records} records. "
    return ""


def _partial_positions(
    survey: Survey, target: Target, first_patch: int | None
) -> NDArray[np.int64]:
    total = len(target.written)
    if first_patch is not None:
        firsts: Sequence[int] = np.cumsum([first_patch, *survey.counts[:-1]]).tolist()
    else:
        numbers = [file.number for file in survey.files]
        shards = target.manifest.shards if target.manifest else []
        firsts = first_records(
            numbers, survey.counts, total, shards=shards, name=survey.files[0].path
        )
    last = firsts[-1] + survey.counts[-1]
    if min(firsts) < 0 or last > total:
        raise GeoError(
            f"{target.name}: mixer says {total} patches, these predictions would be patches "
            f"{firsts[0]} to {last - 1}. Are they predictions of this export?",
            expected=total,
            got=last,
        )
    spans = [np.arange(first, first + n) for first, n in zip(firsts, survey.counts, strict=True)]
    return np.concatenate(spans)


def first_records(
    numbers: Sequence[int | None],
    counts: Sequence[int],
    total: int,
    *,
    shards: Sequence[ShardRow] = (),
    name: str = "predictions",
) -> list[int]:
    """Work out which record of the export each shard begins with.

    Every shard but the last holds equally many records, because all records have one size.

    Args:
        numbers: Shard number of each file.
        counts: Records of each file.
        total: Records of the whole export.
        shards: Shards noted at export, in order; they settle it.
        name: A file, for the error.

    Returns:
        First record of each file.

    Raises:
        GeoError: The names have no numbers, or more than one place fits.
    """
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        raise _untold(name, "its name has no shard number")
    noted = [(shard.first, shard.records) for shard in shards]
    fits = all(n < len(noted) and noted[n][1] == c for n, c in zip(known, counts, strict=True))
    if noted and fits:
        return [noted[number][0] for number in known]
    if len(known) > 1 and known[0] != max(known):
        return _evenly(known, counts, total, name)
    number, count = known[0], counts[0]
    places = set()
    if (number + 1) * count <= total:
        places.add(number * count)
    if number and total > count and (total - count) % number == 0:
        # It may be the last shard, with fewer records than the others.
        full = (total - count) // number
        places |= {total - count} if full >= count else set()
    if len(places) != 1:
        options = " or ".join(str(place) for place in sorted(places))
        whole = f"shard {number} with {count} of {total} records"
        why = f"{whole} may begin at patch {options}" if options else f"{whole} fits nowhere"
        raise _untold(name, why)
    return list(places)


def _evenly(numbers: Sequence[int], counts: Sequence[int], total: int, name: str) -> list[int]:
    highest = max(numbers)
    full = {count for n, count in zip(numbers, counts, strict=True) if n != highest}
    last = next(count for n, count in zip(numbers, counts, strict=True) if n == highest)
    each = full.pop()
    end = highest * each + last
    if full or last > each or end > total or (last < each and end != total):
        raise _untold(name, f"shards hold {', '.join(map(str, counts))} records, not equally many")
    return [number * each for number in numbers]


def _untold(name: str, why: str) -> GeoError:
    return GeoError(
        f"{name}: which patches it holds cannot be told: {why}. Give the manifest of the export as "
        "mixer=, or pass first_patch="
    )
