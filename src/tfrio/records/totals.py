"""What lies beside the shards and tells how many records there should be."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfrio.records.names import base_name, has_prefix, in_split, stem_of
from tfrio.storage import open_read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Total", "check_totals"]

_MOST = 16 << 20  # a JSON file larger than this is not read


@dataclass(frozen=True, slots=True)
class Total:
    """A number of records told by a file beside the shards that does not fit them."""

    path: str
    expected: int
    found: int
    message: str


def _load(path: str) -> dict[str, Any]:
    reader = open_read(path)
    try:
        value = json.loads(reader.read_at(0, _MOST))
    except ValueError:
        return {}
    finally:
        reader.close()
    return value if isinstance(value, dict) else {}


def _by_mixer(path: str, counts: Mapping[str, int]) -> Iterator[tuple[int, list[str]]]:
    """Earth Engine's mixer tells the number of patches of the export with the same prefix."""
    start = base_name(path).removesuffix(".json").removesuffix("mixer")
    prefix = start.rstrip("-_")
    total = _load(path).get("totalPatches")
    if isinstance(total, int):
        # Cloud Storage: PREFIXmixer.json beside PREFIX00000.tfrecord.gz, without dashes.
        joined = re.compile(rf"{re.escape(prefix)}\d{{5}}" if start == prefix else r"(?!)")
        own = (f for f in counts if has_prefix(f, prefix) or joined.fullmatch(stem_of(f)))
        yield total, list(own)


def _by_dataset_info(path: str, counts: Mapping[str, int]) -> Iterator[tuple[int, list[str]]]:
    """TFDS's dataset_info.json tells the length of each shard of each split."""
    for split in _load(path).get("splits", []):
        lengths = split.get("shardLengths") if isinstance(split, dict) else None
        if lengths:
            files = [file for file in counts if in_split(file, str(split.get("name", "")))]
            yield sum(int(n) for n in lengths), files


def check_totals(sidecars: list[str], counts: Mapping[str, int], complete: set[str]) -> list[Total]:
    """Compare counts with what mixers and dataset_info.json files say.

    Args:
        sidecars: JSON files beside the shards.
        counts: Sound records of each checked file of the folder.
        complete: All record files of the folder; a set of which some were not checked is left out.

    Returns:
        The totals that do not fit.
    """
    found = []
    for path in sidecars:
        name = base_name(path)
        # With one shard Cloud Storage has PREFIX.json beside PREFIX.tfrecord.gz.
        alone = any(stem_of(file) == name.removesuffix(".json") for file in counts)
        if name.endswith("mixer.json") or alone:
            claims = _by_mixer(path, dict.fromkeys(complete, 0) | dict(counts))
            what, noun = "mixer", "totalPatches"
        elif name == "dataset_info.json":
            claims = _by_dataset_info(path, dict.fromkeys(complete, 0) | dict(counts))
            what, noun = "info", "records"
        else:
            continue
        for expected, files in claims:
            if not files or not all(file in counts for file in files):
                continue
            records = sum(counts[file] for file in files)
            if records != expected:
                text = f"{path}: records {records}, {what} says {expected} ({noun})"
                found.append(Total(path, expected, records, text))
    return found
