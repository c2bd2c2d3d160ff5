"""What a caller asks for: descriptions, type names, and the texts of the errors about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from tfrio import _core

__all__ = ["KIND_OF", "NAME_OF", "Description", "Wanted", "missing", "parse", "wrong_type"]

Description: TypeAlias = Sequence[str] | Mapping[str, str | None] | None
Wanted: TypeAlias = dict[str, int | None]
"""Feature name -> kind number asked for; None: as stored."""

KIND_OF: Final = {
    "byte": _core.KIND_BYTES,
    "bytes": _core.KIND_BYTES,
    "float": _core.KIND_FLOAT,
    "int": _core.KIND_INT64,
}
NAME_OF: Final = {_core.KIND_BYTES: "byte", _core.KIND_FLOAT: "float", _core.KIND_INT64: "int"}


def kind_of(typename: Any) -> int:
    """Return the kind number of a type name.

    Args:
        typename: ``"byte"`` (or ``"bytes"``), ``"float"`` or ``"int"``; spaces around it are
            passed over.

    Returns:
        The field number of the kind in ``tf.train.Feature``.

    Raises:
        KeyError: Another name.
    """
    kind = KIND_OF.get(typename.strip() if isinstance(typename, str) else typename)
    if kind is None:
        raise KeyError(f"{typename!r} is no type name; use 'byte', 'float' or 'int'")
    return kind


def parse(description: Description) -> Wanted | None:
    """Bring a description to one form.

    Args:
        description: None or empty for everything, names, or names with type names.

    Returns:
        Names and kinds in the order asked for, or None for everything.

    Raises:
        KeyError: An unknown type name.
        TypeError: Neither names nor a mapping.
    """
    if description is None or len(description) == 0:
        return None
    if isinstance(description, list | tuple):
        return dict.fromkeys(description)
    items: Any = getattr(description, "items", None)
    if items is None:
        raise TypeError(
            "description must be a list of names or a dict of names to types, "
            f"not {type(description).__name__}"
        )
    return {name: None if typename is None else kind_of(typename) for name, typename in items()}


def missing(name: str, names: Iterable[str], where: str = "") -> KeyError:
    """Return the error for a feature that a record lacks.

    Args:
        name: The feature asked for.
        names: The features there are.
        where: The record, for the message.

    Returns:
        The exception, not yet raised.
    """
    return KeyError(f"Key {name} doesn't exist (select from {sorted(names)})!{where}")


def wrong_type(name: str, asked: str, stored: str, where: str = "") -> TypeError:
    """Return the error for a feature stored as another kind.

    Args:
        name: The feature.
        asked: Type name asked for.
        stored: Type name of what is stored.
        where: The record, for the message.

    Returns:
        The exception, not yet raised.
    """
    return TypeError(f"Incompatible type '{asked}' for `{name}` (should be '{stored}').{where}")
