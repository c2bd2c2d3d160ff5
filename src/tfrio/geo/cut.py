"""Pure array work of an export: fill masked pixels, order array bands, cut strips into patches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.geo.plan import runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrio.geo.source import Block, Mask, Pixels
    from tfrio.types import Shape

__all__ = ["Strip", "cut", "prepare", "scalar_mask"]


@dataclass(slots=True)
class Strip:
    """Pixels of one row of patches, ready to be cut.

    Args:
        values: One array (planes, height, width) per band, masked pixels filled.
        masked: One array (planes, height, width) per band, or None where nothing is masked.
    """

    values: list[Pixels]
    masked: list[Mask | None]


def prepare(
    block: Block,
    fills: Sequence[np.generic],
    depths: Sequence[int | None],
    *,
    drop_masked: bool,
) -> Strip:
    """Fill what is masked and bring array bands to their depth.

    Args:
        block: Pixels as read; changed in place where that saves a copy.
        fills: Value for masked pixels, per band.
        depths: Tensor depth, per band; None for scalar bands.
        drop_masked: Move the valid steps of array bands to the front.

    Returns:
        The strip.
    """
    strip = Strip([], [])
    for values, masked, fill, depth in zip(block.values, block.masked, fills, depths, strict=True):
        planes, hidden = _planes(values, masked)
        if depth is not None:
            planes, hidden = _to_depth(planes, hidden, fill, depth, drop_masked=drop_masked)
        if hidden is not None:
            np.copyto(planes, fill, where=hidden)
        strip.values.append(planes)
        strip.masked.append(hidden)
    return strip


def _planes(values: Pixels, masked: Mask | None) -> tuple[Pixels, Mask | None]:
    """View a scalar band as an array band of one step."""
    if values.ndim == 3:
        return values, masked
    return values[None], None if masked is None else masked[None]


def _to_depth(
    planes: Pixels, masked: Mask | None, fill: np.generic, depth: int, *, drop_masked: bool
) -> tuple[Pixels, Mask | None]:
    """Order, cut or pad the steps of an array band; what is padded counts as masked."""
    if drop_masked and masked is not None:
        order = np.argsort(masked, axis=0, kind="stable")
        planes = np.take_along_axis(planes, order, 0)
        masked = np.take_along_axis(masked, order, 0)
    have = planes.shape[0]
    if have >= depth:
        return planes[:depth], None if masked is None else masked[:depth]
    missing = (depth - have, *planes.shape[1:])
    hidden = np.zeros(planes.shape, np.bool_) if masked is None else masked
    return (
        np.concatenate([planes, np.full(missing, fill, planes.dtype)]),
        np.concatenate([hidden, np.ones(missing, np.bool_)]),
    )


def scalar_mask(masked: Mask | None) -> Mask | None:
    """Return where a band is masked as a whole: an array band where all its steps are.

    Args:
        masked: Booleans (planes, height, width), or None.

    Returns:
        Booleans (height, width), or None where no pixel is.
    """
    if masked is None:
        return None
    whole = np.all(masked, axis=0)
    return whole if whole.any() else None


def cut(
    planes: np.ndarray[Any, np.dtype[Any]],
    starts: Sequence[int],
    shape: Shape,
    out: np.ndarray[Any, np.dtype[Any]],
) -> None:
    """Cut a strip into patches, converting to the dtype of ``out``.

    Args:
        planes: Strip (planes, height, width); its height is that of a patch.
        starts: First column of each patch, ascending.
        shape: Shape of a patch, margins included.
        out: Where to write, (patches, planes, height, width), any strides.
    """
    row, column = planes.strides[1:]
    for first, number, step in runs(starts):
        view = np.lib.stride_tricks.as_strided(
            planes[:, :, starts[first] :],
            (number, planes.shape[0], shape.height, shape.width),
            (step * column, planes.strides[0], row, column),
            writeable=False,
        )
        np.copyto(out[first : first + number], view, casting="unsafe")
