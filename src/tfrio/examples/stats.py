"""Statistics of every feature of record files, in one streaming pass."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

from tfrio.errors import UsageError, many
from tfrio.examples.decode import check_names
from tfrio.examples.engine import Chunk, Engine, Options
from tfrio.examples.form import Learned
from tfrio.examples.layout import shown_name
from tfrio.examples.tally import HEADINGS, FeatureStats
from tfrio.records.meter import Meter
from tfrio.records.shards import each_source
from tfrio.types import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfrio.compression import Compression
    from tfrio.examples.infer import Utf8
    from tfrio.examples.schema import Place
    from tfrio.records.damage import DamageReport
    from tfrio.storage import Source
    from tfrio.types import PathsLike

__all__ = ["Statistics", "stats"]

# Records decoded at once: enough for NumPy to be worth it, few enough for large patches.
_ROWS_AT_ONCE = 4096


@dataclass(slots=True)
class Statistics:
    """What the features of record files hold.

    Attributes:
        files: Number of files.
        records: Number of records.
        features: By stored name and place, in the order met.
    """

    files: int = 0
    records: int = 0
    features: dict[tuple[str, Place], FeatureStats] = field(default_factory=dict)

    def __getitem__(self, name: str) -> FeatureStats:
        """Return the statistics of one feature, by name."""
        for place in ("context", "list"):
            if (name, place) in self.features:
                return self.features[name, place]
        known = sorted(shown_name(n) for n, _ in self.features)
        raise KeyError(f"no feature '{name}'; there are {known}")

    def absent(self, name: str) -> int:
        """Return how many records lack a feature, or have it without a kind."""
        return self.records - self[name].present

    @property
    def headline(self) -> str:
        """Files and records, in a line."""
        files, records = self.files, self.records
        return f"{files:,} {many(files, 'file')}, {records:,} {many(records, 'record')}"

    def table(self) -> list[list[str]]:
        """Return a line of cells for the header and for each feature, as people read them."""
        total = sum(feature.stored_bytes for feature in self.features.values()) or 1
        lines = [f.cells(self.records, total) for f in self.features.values()]
        filled = any(feature.filled for feature in self.features.values())
        shown = [n for n, heading in enumerate(HEADINGS) if filled or heading != "fill"]
        return [[line[n] for n in shown] for line in ([*HEADINGS], *lines)]

    def __str__(self) -> str:
        """Return the table as text."""
        lines = self.table()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = ("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in lines)
        return "\n".join((self.headline, *(row.rstrip() for row in rows)))

    def merge(self, other: Statistics) -> None:
        """Add what was counted elsewhere."""
        self.files += other.files
        self.records += other.records
        for key, feature in other.features.items():
            if key in self.features:
                self.features[key].merge(feature)
            else:
                self.features[key] = feature

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        total = sum(f.stored_bytes for f in self.features.values())
        return {
            "files": self.files,
            "records": self.records,
            "stored_bytes": total,
            "features": [
                {**f.to_dict(self.records), "share": f.stored_bytes / total if total else 0.0}
                for f in self.features.values()
            ],
        }


def stats(
    paths: PathsLike | Source,
    *,
    features: Sequence[str] | None = None,
    fill: Mapping[str, float] | None = None,
    compression: Compression | None = None,
    verify: bool = True,
    errors: Literal["raise", "skip"] = "raise",
    max_bad: int | None = None,
    report: DamageReport | None = None,
    utf8: Utf8 = "strict",
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Statistics:
    """Count what every feature holds: how often it is there, how long, which numbers.

    Args:
        paths: File, folder, glob, URL, file object, or several paths.
        features: Names of the features to count, None for all.
        fill: The number by feature that only fills a place, such as masked pixels of a band: it is
            counted as ``filled``, and left out of smallest, largest, mean and deviation.
        compression: ``"none"``, ``"gzip"`` or ``"zlib"``; None goes by the content of each file.
        verify: Check each payload's CRC32C.
        errors: ``"raise"``, or ``"skip"`` to leave damaged records out.
        max_bad: Most damaged records of a file to skip before the next one raises.
        report: Filled with what was skipped.
        utf8: ``"surrogateescape"`` accepts feature names that are not UTF-8.
        threads: Files looked at at once, by default one a core.
        progress: Called with stored bytes done and in all, from any thread.

    Returns:
        The statistics.

    Raises:
        CorruptRecordError: A record is damaged.
        DecodeError: A payload is neither an Example nor a SequenceExample.
        UsageError: ``fill`` holds no numbers by name.
    """
    check_names(features)
    left = _checked_fill(fill)
    sources = list(each_source(paths))
    options = Options(
        compression=compression,
        verify=verify,
        errors=errors,
        max_bad=max_bad,
        report=report,
        utf8=utf8,
        threads=1 if len(sources) > 1 else threads,
    )
    total = Statistics()
    meter = Meter.of(sources, progress)
    cores = os.cpu_count() or 1 if threads is None else whole_number(threads, "threads")
    workers = min(cores, len(sources))
    with ThreadPoolExecutor(workers, "stats") as pool:
        for found in pool.map(
            lambda source: _count(source, features, left, options, meter), sources
        ):
            total.merge(found)
    return total


def _count(
    source: Source,
    features: Sequence[str] | None,
    fill: Mapping[str, float],
    options: Options,
    meter: Meter,
) -> Statistics:
    """Count one file."""
    found, told = Statistics(files=1), 0
    form = Learned(names=features, switch=True, ragged=True)
    with Engine(source, form, options) as engine:
        while (chunk := engine.chunk(_ROWS_AT_ONCE, whole=False)) is not None:
            _add(found, chunk, fill)
            meter.add(engine.consumed - told)
            told = engine.consumed
        meter.add(engine.consumed - told)
    return found


def _checked_fill(fill: object) -> Mapping[str, float]:
    """Return the fill by feature that a user gave."""
    if fill is None:
        return {}
    if not isinstance(fill, Mapping) or not all(isinstance(v, Real) for v in fill.values()):
        raise UsageError(f"fill is a dict of numbers by feature, such as {{'B4': 0}}; got {fill!r}")
    return fill


def _add(found: Statistics, chunk: Chunk, fill: Mapping[str, float]) -> None:
    found.records += chunk.rows
    for key, feature in chunk.layout.schema.items():
        name = feature.stored_as(key)
        known = found.features.setdefault((name, feature.place), FeatureStats(name, feature.place))
        known.add(chunk.natives[chunk.layout.slot(key)], feature.kind, fill=fill.get(name))
