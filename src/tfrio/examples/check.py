"""Do records fit a schema? Every misfit at once, where reading would stop at the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfrio.errors import many
from tfrio.examples.infer import observe
from tfrio.examples.layout import shown_name
from tfrio.examples.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfrio.compression import Compression
    from tfrio.examples.infer import Utf8
    from tfrio.examples.observe import Observation, Seen
    from tfrio.examples.schema import Feature, SchemaLike
    from tfrio.types import PathsLike

__all__ = ["SchemaCheck", "check_schema", "misfits"]


@dataclass(frozen=True, slots=True)
class SchemaCheck:
    """How records fit a schema.

    Attributes:
        records: Number of records looked at.
        problems: What does not fit, one sentence each.
        unlisted: Features that the records have and the schema lacks; reading skips them.
    """

    records: int
    problems: tuple[str, ...]
    unlisted: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Return whether every record fits."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {
            "ok": self.ok,
            "records": self.records,
            "problems": self.problems,
            "unlisted": tuple(map(shown_name, self.unlisted)),
        }

    def __str__(self) -> str:
        """Return each misfit, and the outcome, as lines for a person."""
        lines = [*self.problems]
        if self.unlisted:
            names = ", ".join(map(shown_name, self.unlisted))
            lines.append(f"not in the schema, skipped on reading: {names}")
        verdict = "fit" if self.ok else "looked at, not all fit"
        return "\n".join([*lines, f"{self.records:,} {many(self.records, 'record')} {verdict}"])


def check_schema(
    paths: PathsLike,
    schema: SchemaLike,
    *,
    sample: int | None = None,
    compression: Compression | None = None,
    verify: bool = True,
    utf8: Utf8 = "strict",
) -> SchemaCheck:
    """Compare records with a schema.

    Args:
        paths: A file, folder, glob, or several of these.
        schema: The schema.
        sample: Number of records to look at; None looks at all.
        compression: How the files are compressed; None goes by content.
        verify: Whether payload checksums are checked.
        utf8: ``"surrogateescape"`` accepts feature names that are not UTF-8.

    Returns:
        All that does not fit.

    Raises:
        DecodeError: A payload is neither an Example nor a SequenceExample.
    """
    seen, _ = observe(paths, sample=sample, compression=compression, verify=verify, utf8=utf8)
    return misfits(seen, Schema.of(schema))


def misfits(seen: Observation, schema: Schema) -> SchemaCheck:
    """Compare what was seen with a schema.

    Args:
        seen: What records hold.
        schema: The schema.

    Returns:
        All that does not fit.
    """
    problems: list[str] = []
    listed = set()
    for key, feature in schema.items():
        place = (feature.stored_as(key), feature.place)
        listed.add(place)
        listed.update((name, "context") for name in (*feature.row_lengths, *feature.dims))
        problems += _problems(key, feature, seen.features.get(place), seen.records)
    unlisted = tuple(name for name, place in seen.features if (name, place) not in listed)
    return SchemaCheck(seen.records, tuple(problems), unlisted)


def _problems(key: str, feature: Feature, seen: Seen | None, records: int) -> Iterator[str]:
    present = 0 if seen is None else seen.present
    if feature.required and feature.default is None and present < records:
        yield (
            f"feature '{key}' is required and missing in {records - present} of {records} "
            "records; give a default or mark it optional"
        )
    if seen is None:
        return
    for kind, sighting in seen.kinds.items():
        if kind != feature.kind:
            where = f" of {sighting.path}" if sighting.path else ""
            yield (
                f"feature '{key}' is {kind}_list in {sighting.times} records (the first is record "
                f"{sighting.record}{where}); the schema says {feature.kind}"
            )
    if feature.count >= 0 and seen.lengths not in (None, (feature.count, feature.count)):
        low, high = seen.lengths or (0, 0)
        span = f"{low}" if low == high else f"{low} to {high}"
        unit = "step" if feature.place == "list" else "record"
        yield f"feature '{key}' has {span} values in a {unit}; the schema says {feature.count}"
