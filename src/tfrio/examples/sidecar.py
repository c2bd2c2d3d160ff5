"""``FILE.schema.json``: what a record file cannot say of its own features, beside it.

An Example holds flat lists. Where a row (or a step of a feature list) had arrays of two axes or
more, of any kind, the writer notes their shape here, and readers without a schema give it back: one
axis may differ from row to row. Arrays that differ in more, or in their number of axes, come back
flat; so do, in batches alone, byte strings: lists in C order. A sidecar is only believed while its
data file has the size it was written for.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfrio.errors import SchemaError
from tfrio.examples.schema import Feature, Schema
from tfrio.examples.schema_json import schema_from_json, schema_to_json
from tfrio.storage import atomic_write

if TYPE_CHECKING:
    from tfrio.examples.encode import RowEncoder

__all__ = ["SUFFIX", "load_sidecar", "noted_schema", "save_sidecar"]

SUFFIX = ".schema.json"


def noted_schema(rows: RowEncoder) -> Schema:
    """Return what the rows written say of themselves that the records do not.

    Args:
        rows: The encoder of the rows.

    Returns:
        Features with more than one axis, a codec, another type or nested lists; often none.
    """
    if rows.schema is not None:
        return Schema({name: f for name, f in rows.schema.items() if _telling(f)})
    features: dict[str, Feature] = {}
    for (name, place), shape in rows.shapes.items():
        if shape and (name, place) in rows.kinds and name not in features:
            features[name] = Feature(rows.kinds[name, place], shape, place=place)
    for name in sorted(rows.splits):
        wire = f"{name}/values"
        if (wire, "context") in rows.kinds:
            kind = rows.kinds[wire, "context"]
            features[name] = Feature(kind, name=wire, row_lengths=(f"{name}/lengths",))
    return Schema(dict(features))


def save_sidecar(path: str, schema: Schema, *, joined: bool = False) -> None:
    """Write the sidecar of a complete data file, or remove one that says nothing.

    Args:
        path: The data file.
        schema: What to note.
        joined: Join with what an existing sidecar says (the data file was appended to).
    """
    target = Path(path + SUFFIX)
    if joined and target.exists():
        before = _parsed(target)[1]
        schema = Schema({**before, **{k: f for k, f in schema.items() if k not in before}})
    if not schema:
        target.unlink(missing_ok=True)
        return
    value = json.loads(schema_to_json(schema))
    value["bytes"] = Path(path).stat().st_size
    with atomic_write(target) as file:
        file.write(json.dumps(value, indent=2).encode())


def load_sidecar(path: object) -> Schema | None:
    """Return what the sidecar of a data file says.

    Args:
        path: The data file; anything but a local path has no sidecar.

    Returns:
        Its features, all optional; None where there is no sidecar or it was written for another
        size of the file.

    Raises:
        SchemaError: The sidecar is damaged.
    """
    if not isinstance(path, str | Path) or not Path(f"{path}{SUFFIX}").is_file():
        return None
    size, schema = _parsed(Path(f"{path}{SUFFIX}"))
    if size != Path(path).stat().st_size:
        return None
    return Schema({name: replace(f, required=False) for name, f in schema.items()})


def _parsed(path: Path) -> tuple[int, Schema]:
    try:
        value = json.loads(path.read_bytes())
        return int(value.get("bytes", -1)), schema_from_json(value)
    except (ValueError, AttributeError, TypeError) as error:
        raise SchemaError(
            f"{path}: {error}; remove the file to go on without", path=str(path)
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
