"""Schema files: our JSON, TFX text, TensorFlow Datasets' features.json, told apart by content."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

from tfrio.errors import SchemaError
from tfrio.examples.schema import Schema
from tfrio.examples.schema_json import FORMAT, schema_from_json, schema_to_json
from tfrio.examples.schema_tfds import schema_from_tfds
from tfrio.examples.schema_tfx import schema_from_tfx
from tfrio.storage import atomic_write, open_read
from tfrio.types import path_text

if TYPE_CHECKING:
    from tfrio.examples.schema import SchemaLike
    from tfrio.types import PathLike

__all__ = ["load_schema", "parse_schema", "save_schema"]


def save_schema(schema: SchemaLike, path: PathLike) -> None:
    """Write a schema as JSON, whole or not at all.

    Args:
        schema: The schema, or a mapping of names to features.
        path: The file.

    Raises:
        UsageError: It is no schema.
    """
    made = Schema.of(schema)
    with atomic_write(path) as file:
        file.write(schema_to_json(made).encode())


def load_schema(path: PathLike) -> Schema:
    """Read a schema from a file.

    Args:
        path: Our JSON, a TFX schema in text form, or a features.json.

    Returns:
        The schema.

    Raises:
        SchemaError: None of these, or damaged.
    """
    try:
        return parse_schema(_content(path).decode())
    except UnicodeDecodeError as error:
        raise SchemaError(
            f"{path}: not a schema: neither JSON nor text ({error}); a binary TFX schema must be "
            "converted to text form",
            path=path_text(path),
        ) from error
    except SchemaError as error:
        raise SchemaError(f"{path}: {error.message}", path=path_text(path)) from error


def _content(path: PathLike) -> bytes:
    with contextlib.closing(open_read(path)) as reader:
        return b"".join(iter(lambda: reader.read(1 << 20), b""))


def parse_schema(text: str) -> Schema:
    """Read a schema from text.

    Args:
        text: Our JSON, a TFX schema in text form, or the content of a features.json.

    Returns:
        The schema.

    Raises:
        SchemaError: None of these.
    """
    try:
        return _schema_of(text)
    except SchemaError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise SchemaError(
            f"not a schema: a value is not of the type it should be ({error}); repair it, or make "
            "a new one with `tfrio schema infer`"
        ) from error


def _schema_of(text: str) -> Schema:
    if not text.lstrip().startswith("{"):
        return schema_from_tfx(text)
    try:
        value = json.loads(text)
    except ValueError as error:
        raise SchemaError(f"not a schema: broken JSON, {error}") from error
    if value.get("format") == FORMAT:
        return schema_from_json(value)
    if "featuresDict" in value or "content" in value or "pythonClassName" in value:
        return schema_from_tfds(value)
    raise SchemaError(
        f'neither a schema of tfrio ("format": "{FORMAT}") nor a features.json ("featuresDict")'
    )
