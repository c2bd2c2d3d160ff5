"""Read one feature of every record, to tell which records belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrio.datasets.plan import plan
from tfrio.datasets.reader import Reader
from tfrio.datasets.setup import resolve_schema
from tfrio.records.damage import DamagePolicy

if TYPE_CHECKING:
    from tfrio.datasets.reader import Chunk
    from tfrio.datasets.setup import Opened
    from tfrio.records.damage import ErrorMode

__all__ = ["key_values"]

_BATCH = 4096  # records decoded at once


def key_values(opened: Opened, name: str, *, errors: ErrorMode, verify: bool) -> list[object]:
    """Return one feature of every record.

    Args:
        opened: The files, with all their records.
        name: The feature.
        errors: ``"raise"``, or ``"skip"`` to leave damaged records without a value.
        verify: Check each payload's CRC32C.

    Returns:
        Hashable values, one a record in the order of the files; None where a record lacks the
        feature or is damaged.

    Raises:
        MissingFeatureError: The first records have no such feature.
        CorruptRecordError: A record is damaged, and damage is not skipped.
    """
    schema = resolve_schema(opened.paths, schema=None, features=[name], errors=errors)
    reader = Reader(opened.sources, schema, DamagePolicy(errors), verify=verify)
    counts = opened.sources.counts
    values: list[object] = [None] * sum(counts)
    for chunk in reader.chunks(plan(counts, batch=_BATCH), _whole):
        places = opened.starts[chunk.file] + chunk.record
        present = chunk.batch.present.get(name)
        for row, value in enumerate(chunk.batch[name].tolist()):
            if present is None or present[row]:
                values[places[row]] = tuple(value) if isinstance(value, list) else value
    return values


def _whole(chunk: Chunk) -> Chunk:
    return chunk
