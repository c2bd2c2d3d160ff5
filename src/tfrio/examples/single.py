"""One record to one row, without columns in between, where its features are plain."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from tfrio import _core
from tfrio.examples.columns import NoBytes, NoSteps
from tfrio.examples.engine import native_features
from tfrio.examples.infer import NATIVE_UTF8

if TYPE_CHECKING:
    from tfrio.examples.form import Form
    from tfrio.examples.infer import Utf8
    from tfrio.examples.schema import Feature

__all__ = ["RowByRow", "row_decoder"]

_STORED = {"float": "float32", "int64": "int64"}
_NONE, _LEFT_OUT, _ELSEWHERE = 0, 1, 2  # what a row holds for an absent feature


class RowByRow(Protocol):
    """What decodes single records; None where a record can only be read over columns."""

    def row(self, data: Any, start: int, verify: bool, /) -> dict[str, Any] | None:
        """Decode the framed record at ``start``."""
        ...

    def row_of(
        self,
        records: _core.RecordMap,
        number: int,
        verify: bool,
        /,
    ) -> dict[str, Any] | None:
        """Decode a record of a mapped file."""
        ...


class _OverColumns:
    """Stands for features that can only be read over columns."""

    def row(self, *_: object) -> None:
        """Decode nothing."""

    def row_of(self, *_: object) -> None:
        """Decode nothing."""


def row_decoder(form: Form, *, bound: bool, utf8: Utf8) -> RowByRow:
    """Return what decodes single records into the rows that ``batch_rows`` makes of columns.

    Args:
        form: What decides the layout.
        bound: Whether the schema was given by the user, as in ``batch_rows``.
        utf8: How feature names are read.

    Returns:
        The decoder, which leaves to the way over columns what does not fit, or, where some
        feature can only be read that way, every record.
    """
    layout = form.layout
    if layout.apart:
        return _OverColumns()
    given = []
    for key, feature in layout.schema.items():
        axes = _plain_axes(feature)
        if axes is None:
            return _OverColumns()
        absent = _absent(feature, bound=bound)
        given.append(
            (key, layout.slot(key), axes, feature.shape == (), feature.dtype == "str", absent)
        )
    return _core.RowDecoder(
        native_features(form),
        given,
        NoBytes,
        NoSteps,
        unwrap=not bound,
        sequence=form.sequence,
        discover=form.discover,
        utf8=NATIVE_UTF8[utf8],
    )


def _plain_axes(feature: Feature) -> list[int] | None:
    """Return the axes the native decoder is to give, None for what it does not know."""
    if feature.codec is not None or feature.dims or feature.row_lengths:
        return None
    shape = [axis for axis in feature.shape or () if isinstance(axis, int)]
    if feature.kind in ("bytes", "unknown"):
        return [] if len(shape) < 2 else None
    if feature.dtype not in (None, _STORED[feature.kind]):
        return None
    axes = shape[1:] if shape[:1] == [-1] else shape
    free = len(axes) < len(shape)
    return None if -1 in axes or (free and not math.prod(axes)) else axes


def _absent(feature: Feature, *, bound: bool) -> int:
    if feature.default is not None or (bound and feature.required):
        return _ELSEWHERE
    return _NONE if bound else _LEFT_OUT
