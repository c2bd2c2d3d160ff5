"""Rows of plain scalars, gathered until they are worth one call of the native encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tfrio.examples.columns import BytesColumn
from tfrio.examples.exact import INT64_MAX, INT64_MIN
from tfrio.examples.wire import Target, WireColumn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrio.examples.encode import RowEncoder
    from tfrio.examples.schema import Feature, Kind

__all__ = ["PendingRows"]

# Enough rows to spread the cost of a call; bytes are bounded so that large values do not pile up.
_ROWS: Final = 1024
_BYTES: Final = 1 << 20


class _Plan(NamedTuple):
    """How rows with these names and types are taken.

    Attributes:
        targets: Feature of each column kept; None for values that are None.
        ints: Columns of Python integers, to be checked for their range.
        texts: Columns of strings, to be encoded.
        sizes: Columns of bytes, text included.
    """

    targets: tuple[Target | None, ...]
    ints: tuple[int, ...]
    texts: tuple[int, ...]
    sizes: tuple[int, ...]


class PendingRows:
    """Rows waiting to be encoded, all with the same features and types.

    Only values that cannot change any more are kept (numbers, bytes, text); rows with lists or
    arrays are for ``RowEncoder``.

    Args:
        encoder: Knows the schema and the kinds so far.
    """

    def __init__(self, encoder: RowEncoder) -> None:
        self._encoder = encoder
        self._plans: dict[Any, _Plan | None] = {}
        self._signature: Any = None
        self._plan: _Plan | None = None
        self._rows: list[Any] = []
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._rows)

    def offer(self, row: Mapping[str, Any]) -> bool | None:
        """Take a row, if it can be taken.

        Returns:
            True: taken. False: not before those waiting are gone (``take``), for it has other
            features or types, or enough wait. None: never, it needs ``RowEncoder``.
        """
        values = list(row.values())
        signature = (tuple(row), *map(type, values))
        if signature != self._signature:
            if self._rows:
                return False
            if not self._begin(signature):
                return None
        elif self._plan is None:
            return None
        elif len(self._rows) >= _ROWS or self._bytes >= _BYTES:
            return False
        return True if self._append(values) else None

    def _begin(self, signature: Any) -> bool:
        """Get ready for rows of this signature; return whether they can be taken."""
        if signature not in self._plans:
            if len(self._plans) > 256:  # rows of ever changing features
                self._plans.clear()
            self._plans[signature] = self._planned(signature[0], signature[1:])
        self._signature, self._plan = signature, self._plans[signature]
        return self._plan is not None

    def _append(self, values: list[Any]) -> bool:
        """Add the values of a row; False where one needs the careful way after all."""
        plan = self._plan
        assert plan is not None
        for i in plan.ints:
            if not INT64_MIN <= values[i] <= INT64_MAX:
                return False
        for i in plan.texts:
            try:
                values[i] = values[i].encode()
            except UnicodeEncodeError:
                return False
        if plan.sizes:
            size = sum(len(values[i]) for i in plan.sizes)
            if size > _BYTES:
                return False  # one row is a call's worth, and is told of at once if it is too large
            self._bytes += size
        self._rows.append(values)
        return True

    def take(self) -> tuple[int, dict[Target, WireColumn]]:
        """Return the number of rows and their columns, and start anew."""
        plan, rows = self._plan, self._rows
        assert plan is not None
        columns = {
            target: self._column(target, values)
            for target, values in zip(plan.targets, zip(*rows, strict=True), strict=True)
            if target is not None
        }
        self._rows, self._bytes, self._signature, self._plan = [], 0, None, None
        return len(rows), columns

    def _column(self, target: Target, values: tuple[Any, ...]) -> WireColumn:
        if target.kind == "bytes":
            column = BytesColumn.of(values)
            return WireColumn(column.data, column.offsets, each=1)
        if target.kind == "int64":
            return WireColumn(np.array(values, np.int64), each=1)
        exact = self._encoder.exactness
        return WireColumn(exact.narrowed(np.array(values), target.name), each=1)

    def _planned(self, names: tuple[str, ...], types: tuple[type, ...]) -> _Plan | None:
        """Return how such rows are taken, None where they need the careful way."""
        schema = self._encoder.schema
        if self._encoder.sequence_only or not names:
            return None
        for name, feature in (schema or {}).items():
            if name not in names and feature.required and feature.default is None:
                return None
        targets: list[Target | None] = []
        for name, made in zip(names, types, strict=True):
            if not isinstance(name, str) or not name.isprintable():
                return None  # let the careful way judge strange names
            if made is type(None) and schema is None:
                targets.append(None)
                continue
            target = self._target(name, _kind_of(made))
            if target is None:
                return None
            targets.append(target)
        for target in targets:
            if target is not None:
                self._encoder.known_kind(target.name, target.kind, "context")
                self._encoder.flat.add((target.name, "context"))
        return _Plan(
            tuple(targets),
            tuple(i for i, t in enumerate(types) if t is int),
            tuple(i for i, t in enumerate(types) if t is str),
            tuple(i for i, t in enumerate(types) if t in (bytes, str)),
        )

    def _target(self, name: str, kind: Kind | None) -> Target | None:
        if kind is None or (kind == "float" and self._encoder.strict):
            return None
        schema = self._encoder.schema
        if schema is not None:
            feature = schema.get(name)
            return (
                None
                if feature is None or not _plain(feature, kind)
                else Target(feature.stored_as(name), kind)
            )
        known = self._encoder.kinds.get((name, "context"), kind)
        return Target(name, kind) if known == kind else None


def _kind_of(made: type) -> Kind | None:
    """Return the kind of a scalar's type, None for what is no plain scalar."""
    if made is float or (issubclass(made, np.floating) and np.dtype(made).itemsize <= 8):
        return "float"
    if issubclass(made, np.timedelta64):  # a signed integer by class; refused with advice
        return None
    if made in (int, bool, np.bool_) or issubclass(made, np.signedinteger):
        return "int64"
    if issubclass(made, np.unsignedinteger) and np.dtype(made).itemsize < 8:
        return "int64"
    return "bytes" if made in (bytes, str) else None


def _plain(feature: Feature, kind: Kind) -> bool:
    special = feature.codec or feature.row_lengths or feature.dims or feature.place == "list"
    return not special and feature.kind == kind and feature.shape in (None, (), (1,))
