"""Refuse defaults that no record could be given. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import DecodeError, MissingExtraError, SchemaError, TfrioError
from tfrio.examples.layout import NativeColumn
from tfrio.examples.missing import fill_missing
from tfrio.examples.shaping import Job, column_of
from tfrio.types import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrio.examples.columns import Array
    from tfrio.examples.schema import Feature

__all__ = ["check_default"]


class _Nowhere:
    """Where a record without the feature came from: none is meant."""

    def where(self, row: int) -> str:
        """Name no record."""
        return f"row {row}"

    def place(self, _row: int) -> Mapping[str, Any]:
        """Name no record."""
        return {}


class _OfDefault(Job):
    """A feature whose default is converted: errors tell of the default."""

    __slots__ = ()

    def error(self, kind: type[TfrioError], text: str, row: int, remedy: str = "") -> TfrioError:
        """Return an error that names the default."""
        del row, remedy  # of records
        return kind(f"default {shown(self.feature.default)}{text}")


def check_default(feature: Feature) -> None:
    """Read a record that lacks the feature, as a reader would.

    Args:
        feature: One with a default.

    Raises:
        SchemaError: The default does not become what the feature says.
    """
    try:
        with np.errstate(over="ignore"):
            filled = fill_missing(feature, _absent(feature), np.zeros(1, np.bool_))
        if feature.kind == "float":
            _check_finite(feature, filled.values)
        column_of(_OfDefault("", feature, _Nowhere()), filled, 1)
    except MissingExtraError:
        return  # images are not looked into without Pillow
    except (OverflowError, UnicodeEncodeError) as error:
        raise SchemaError(f"default {shown(feature.default)} does not fit: {error}") from error
    except DecodeError as error:
        raise SchemaError(error.message) from error


def _check_finite(feature: Feature, filled: Array) -> None:
    """Refuse numbers that float32 has not."""
    given = np.asarray(feature.default, np.float64)
    if np.isinf(filled).any() and not np.isinf(given).any():
        raise SchemaError(f"default {shown(feature.default)} does not fit float32")


def _absent(feature: Feature) -> NativeColumn:
    """Return the native column of one record that lacks the feature."""
    count = feature.count
    blank = np.zeros(max(count, 0), np.float32 if feature.kind == "float" else np.int64)
    bounds = np.zeros(2, np.int64) if count < 0 else None
    present = np.zeros(1, np.uint8)
    if feature.kind != "bytes":
        return NativeColumn(blank, None, bounds, None, present)
    ends = np.zeros(len(blank) + 1, np.int64)
    return NativeColumn(np.zeros(0, np.uint8), ends, bounds, None, present)
