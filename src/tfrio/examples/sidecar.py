"""``FILE.schema.json``: what a record file cannot say of its own features, beside it.

An Example holds flat lists. Where a row (or a step of a feature list) had arrays of two axes or
more, of any kind, the writer notes their shape here, and readers without a schema give it back.
One shape stands for all rows where it can, with one axis that may differ; else the rows are noted
one by one, in runs. Only the steps of feature lists must agree but for one axis. A sidecar is only
believed while its data file has the size it was written for.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tfrio.errors import SchemaError, warn_user
from tfrio.examples.axes import RowAxes
from tfrio.examples.schema import Feature, Schema
from tfrio.examples.schema_json import schema_from_json, schema_to_json
from tfrio.records.counting import count
from tfrio.storage import atomic_write, is_regular, is_remote, open_read, remove, size_of
from tfrio.types import path_text

if TYPE_CHECKING:
    from tfrio.examples.encode import RowEncoder

__all__ = [
    "SUFFIX",
    "Noted",
    "load_sidecar",
    "noted",
    "noted_from_json",
    "noted_to_json",
    "save_sidecar",
]

SUFFIX = ".schema.json"


class Noted(NamedTuple):
    """What is known of a file's features.

    Attributes:
        schema: Features with more than one axis, a codec, another type or nested lists.
        rows: Axes record by record, of features that no one shape fits.
        lost: Feature lists whose axes are noted nowhere.
        flat: Features that had values of fewer than two axes, too.
    """

    schema: Schema
    rows: dict[str, RowAxes]
    lost: tuple[str, ...] = ()
    flat: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Return whether there is anything to note."""
        return bool(self.schema or self.rows)

    def axes(self, name: str) -> RowAxes:
        """Return the axes of a feature record by record; none where it has fewer than two."""
        shape = self.schema[name].shape or () if name in self.schema else ()
        if len(shape) > 1:
            return RowAxes.same([d for d in shape if isinstance(d, int)])
        return self.rows.get(name) or RowAxes()


def noted(rows: RowEncoder) -> Noted:
    """Return what the rows written say of themselves that the records do not.

    Args:
        rows: The encoder of the rows.

    Returns:
        What to note; often nothing.
    """
    if rows.schema is not None:
        return Noted(Schema({name: f for name, f in rows.schema.items() if _telling(f)}), {})
    features: dict[str, Feature] = {}
    apart: dict[str, RowAxes] = {}
    lost: list[str] = []
    for (name, place), axes in rows.shapes.items():
        if (name, place) not in rows.kinds or name in features or name in apart:
            continue
        common = None if (name, place) in rows.flat else axes.common()
        if common is not None and place == "list" and name in rows.bare and min(common) > 0:
            common = (-1, *common[1:])  # a step without a kind has no values, whatever the others
        if common is not None:
            features[name] = Feature(rows.kinds[name, place], common, place=place)
        elif place == "context":
            apart[name] = axes
        else:
            lost.append(name)
    for name in sorted(rows.splits):
        wire = f"{name}/values"
        if (wire, "context") in rows.kinds:
            kind = rows.kinds[wire, "context"]
            features[name] = Feature(kind, name=wire, row_lengths=(f"{name}/lengths",))
    flat = frozenset(name for name, place in rows.flat if place == "context")
    return Noted(Schema(dict(features)), apart, tuple(lost), flat)


def save_sidecar(
    path: str,
    found: Noted,
    *,
    added: int | None = None,
    before: Noted | None = None,
    remedy: str = "read it with a schema",
) -> None:
    """Write the sidecar of a complete data file, or remove that of a file before it.

    A store that refuses is told of in a warning, as the data file is whole.

    Args:
        path: The data file.
        found: What to note.
        added: How many records were appended to the file; None where all are new.
        before: What was noted of the records before these.
        remedy: What to do where nothing can be noted, for the warning.
    """
    try:
        if added is not None and (before or found):
            found = _joined(before or Noted(Schema(), {}), found, path, added)
        if found:
            _write(path, found)
        else:
            _remove(path)
    except OSError as error:
        if not is_remote(path):
            raise
        names = sorted({**found.schema, **found.rows})
        warn_user(
            f"{path}: the axes or types of {names} could not be noted beside it ({error}); {remedy}"
            if names
            else f"{path + SUFFIX}: it was written for an earlier file and could not be removed "
            f"({error}); remove it"
        )


def _write(path: str, found: Noted) -> None:
    value = {**noted_to_json(found), "bytes": size_of(path)}
    with atomic_write(path + SUFFIX) as file:
        file.write(json.dumps(value, indent=None if found.rows else 2).encode())


def noted_to_json(found: Noted) -> dict[str, Any]:
    """Return what is noted, ready for JSON."""
    value: dict[str, Any] = json.loads(schema_to_json(found.schema))
    if found.rows:
        value["rows"] = {name: axes.to_json() for name, axes in found.rows.items()}
    return value


def noted_from_json(value: Any) -> Noted:
    """Take what ``noted_to_json`` gave.

    Raises:
        ValueError: It is something else; other errors of arithmetic, attributes, keys and types
            mean the same.
    """
    rows = {name: RowAxes.from_json(axes) for name, axes in value.get("rows", {}).items()}
    return Noted(schema_from_json(value), rows)


def _remove(path: str) -> None:
    """Remove the sidecar of an earlier file: one of the same size would be believed."""
    place = path + SUFFIX
    there = None
    # Stores without the right to list their files refuse what is not there.
    with contextlib.suppress(OSError):
        there = size_of(place)
    if there is not None:
        remove(place)


def load_sidecar(path: object) -> Noted | None:
    """Return what the sidecar of a data file says.

    Args:
        path: The data file; what is neither a regular local file nor a URL has no sidecar.

    Returns:
        What is noted, all features optional; None where there is no sidecar or it was written for
        another size of the file.

    Raises:
        SchemaError: The sidecar is damaged.
    """
    if not isinstance(path, str | os.PathLike) or not _may_have_one(path):
        return None
    name = path_text(path)
    found = _parsed(name)
    if found is None or found[0] != size_of(name):
        return None
    schema = Schema({name: replace(f, required=False) for name, f in found[1].schema.items()})
    return found[1]._replace(schema=schema)


def _may_have_one(path: object) -> bool:
    """Return whether to look for a sidecar: not beside pipes, nor on web servers."""
    if is_remote(path):
        return not path_text(path).lower().startswith(("http:", "https:"))
    return is_regular(path)


def _joined(before: Noted, after: Noted, path: str, added: int) -> Noted:
    """Join what is known of the earlier records of a file with that of those appended."""
    features = {
        **before.schema,
        **{k: f for k, f in after.schema.items() if k not in before.schema},
    }
    apart: dict[str, RowAxes] = {}
    differing = [
        name
        for name in {**before.schema, **before.rows, **after.schema, **after.rows}
        if name in before.rows or name in after.rows or _differ(before, after, name)
    ]
    if differing:
        total = count(path).records
        for name in differing:
            features.pop(name, None)
            apart[name] = RowAxes()
            _copy(before, name, apart[name], 0, total - added)
            _copy(after, name, apart[name], total - added, added)
    return Noted(Schema(dict(features)), apart, after.lost)


def _differ(before: Noted, after: Noted, name: str) -> bool:
    """Return whether no one shape tells the axes of a feature in both parts of a file."""
    first, second = before.schema.get(name), after.schema.get(name)
    if first is not None and name in after.flat:
        return first.place == "context" and len(first.shape or ()) > 1
    if second is None or second.place == "list" or len(second.shape or ()) < 2:
        return False
    return first is None or first.shape != second.shape


def _copy(noted: Noted, name: str, axes: RowAxes, first: int, count: int) -> None:
    for start, shape, many in noted.axes(name).between(0, count):
        axes.note(first + start, shape, many)


def _parsed(path: str) -> tuple[int, Noted] | None:
    """Return what the sidecar of a data file says, and the size it was written for."""
    place = path + SUFFIX
    try:
        with contextlib.closing(open_read(place)) as reader:
            data = b"".join(iter(lambda: reader.read(1 << 20), b""))
    except OSError:
        # Stores without the right to list their files refuse what is not there.
        if is_remote(place) or not is_regular(place):
            return None
        raise
    try:
        value: Any = json.loads(data)
        return int(value.get("bytes", -1)), noted_from_json(value)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise SchemaError(
            f"{place}: {error}; remove the file to go on without", path=place
        ) from error


def _telling(feature: Feature) -> bool:
    axes = len(feature.shape or ())
    return bool(
        axes > 1
        or feature.codec
        or feature.row_lengths
        or feature.name is not None
        or feature.dtype
    )
