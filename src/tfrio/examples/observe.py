"""What was seen of each feature, joined over samples and files, and the schema that follows. Pure.

Knowledge only grows: unknown joins any kind, lengths widen, what is absent once is optional. Two
kinds of one feature do not join; both are kept, each with the record where it was first seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tfrio.errors import FeatureKindError
from tfrio.examples.layout import KIND_NAMES, stored_name
from tfrio.examples.schema import Feature, Kind, Place, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Observation", "Seen", "Sighting"]


class Sighting(NamedTuple):
    """How often a kind was seen, and where first."""

    times: int
    path: str
    record: int


@dataclass(slots=True)
class Seen:
    """What was seen of one feature.

    Args:
        name: As stored.
        place: Context (or Example), or feature list.
        kinds: Sightings by kind in the order met, one where all is well.
        present: Records that have the feature with a kind, or the feature list.
        kindless: Records (or steps) that name it without a kind.
        empty: Records (or steps) that have it with no value.
        lengths: Fewest and most values in a record (or step); None where never present.
        steps: Fewest and most steps of a feature list; None for others.
    """

    name: str
    place: Place
    kinds: dict[Kind, Sighting] = field(default_factory=dict)
    present: int = 0
    kindless: int = 0
    empty: int = 0
    lengths: tuple[int, int] | None = None
    steps: tuple[int, int] | None = None

    @property
    def kind(self) -> Kind:
        """Return the kind seen first, ``"unknown"`` where none was."""
        return next(iter(self.kinds), "unknown")

    def add(self, other: Seen) -> None:
        """Join what was seen elsewhere, later."""
        for kind, sighting in other.kinds.items():
            known = self.kinds.get(kind)
            count = sighting.times + (known.times if known else 0)
            self.kinds[kind] = (known or sighting)._replace(times=count)
        self.present += other.present
        self.kindless += other.kindless
        self.empty += other.empty
        self.lengths = _joined(self.lengths, other.lengths)
        if self.lengths is not None and self.place == "list" and self.kindless:
            self.lengths = (0, self.lengths[1])  # steps without a kind alone tell no length
        self.steps = _joined(self.steps, other.steps)


@dataclass(slots=True)
class Observation:
    """What was seen of all features in some records.

    Args:
        records: Number of records looked at.
        features: By stored name and place, in the order met.
        record_bytes: Mean size of a record, uncompressed; the largest such mean of any file.
    """

    records: int = 0
    features: dict[tuple[str, Place], Seen] = field(default_factory=dict)
    record_bytes: int = 0

    def add(self, rows: Iterable[Any], records: int, *, path: str = "", first: int = 0) -> None:
        """Join the result of a ``tfrio._core.SchemaScanner``.

        Args:
            rows: The scanner's result.
            records: Number of records it was fed.
            path: The file, for errors.
            first: Record number in the file of the scanner's record 0.
        """
        self.join(_observed(rows, records, path, first))

    def join(self, other: Observation) -> None:
        """Join what was seen elsewhere, later."""
        for key, seen in other.features.items():
            if key in self.features:
                self.features[key].add(seen)
            else:
                self.features[key] = seen
        self.records += other.records
        self.record_bytes = max(self.record_bytes, other.record_bytes)

    @property
    def sequence(self) -> bool:
        """Return whether a feature list was seen, as only SequenceExamples have."""
        return any(place == "list" for _, place in self.features)

    def conflicts(self) -> Iterator[Seen]:
        """Yield the features seen with more than one kind."""
        return (seen for seen in self.features.values() if len(seen.kinds) > 1)

    def keys(self) -> dict[tuple[str, Place], str]:
        """Return the name each feature is given out under.

        A name that is both in the context and a feature list keeps its name for the list; the
        one in the context is called ``context/NAME`` (again ``context/`` before it where another
        has that name).
        """
        taken = {name for name, _ in self.features}
        found: dict[tuple[str, Place], str] = {}
        for name, place in self.features:
            key = name
            if place == "context" and (name, "list") in self.features:
                while key in taken:
                    key = f"context/{key}"
                taken.add(key)
            found[name, place] = key
        return found

    def schema(self, *, fixed: bool, scalars: bool = False) -> Schema:
        """Return the narrowest schema that all records fit.

        Args:
            fixed: Whether a length that never varied becomes a fixed shape. Right where every
                record was looked at; a sample cannot know.
            scalars: Whether features with one value in every record become scalars.

        Returns:
            The schema, features in the order met.

        Raises:
            FeatureKindError: A feature has two kinds; the text names the first record of each.
        """
        for seen in self.conflicts():
            raise FeatureKindError(_conflict_text(seen), feature=seen.name)
        keys = self.keys()
        return Schema(
            {
                keys[key]: _feature(seen, keys[key], self.records, fixed=fixed, scalars=scalars)
                for key, seen in self.features.items()
            }
        )


def _observed(rows: Iterable[Any], records: int, path: str, first: int) -> Observation:
    made = Observation(records)
    for name, place, present, kindless, empty, kinds, *spans in rows:
        low, high, few, many = spans
        where: Place = "list" if place else "context"
        sightings = {
            KIND_NAMES[kind]: Sighting(count, path, first + record)
            for kind, (count, record) in sorted(kinds.items(), key=lambda item: item[1][1])
        }
        there = present if place else present - kindless  # a list has kindless steps, not records
        seen = Seen(stored_name(name), where, sightings, there, kindless, empty)
        if kinds:
            # A step without a kind is a step without values.
            seen.lengths = (0 if empty or (place and kindless) else low, high)
        if where == "list" and present:
            seen.steps = (few, many)
        made.features[seen.name, where] = seen
    return made


def _feature(seen: Seen, key: str, records: int, *, fixed: bool, scalars: bool) -> Feature:
    shape: tuple[int, ...] | None = None
    if seen.lengths is not None and seen.lengths[0] == seen.lengths[1] > 0:
        length = seen.lengths[0]
        if scalars and length == 1:
            shape = ()
        elif fixed and seen.place == "context":
            shape = (length,)
    return Feature(
        seen.kind,
        shape,
        required=seen.present == records,
        place=seen.place,
        name=seen.name if seen.name != key else None,
        lengths=seen.lengths,
    )


def _conflict_text(seen: Seen) -> str:
    places = [
        f"{kind} first in record {sighting.record}"
        + (f" of {sighting.path}" if sighting.path else "")
        for kind, sighting in seen.kinds.items()
    ]
    return (
        f"feature '{seen.name}' has more than one kind: {', '.join(places)}. "
        "Read rows without a schema to get each as it is, or leave the feature out"
    )


def _joined(first: tuple[int, int] | None, second: tuple[int, int] | None) -> Any:
    if first is None or second is None:
        return first or second
    return min(first[0], second[0]), max(first[1], second[1])
