"""Check arrays that a caller wants decoded into. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from tfrio.errors import UsageError

if TYPE_CHECKING:
    from tfrio.examples.columns import Array
    from tfrio.examples.layout import Layout

__all__ = ["output_slots"]

_STORED = {"float": np.dtype(np.float32), "int64": np.dtype(np.int64)}


def output_slots(out: Mapping[str, Array], layout: Layout, batch_size: int) -> dict[int, Array]:
    """Return the flat array to decode each slot into.

    Args:
        out: Array by feature, (batch_size, *shape), C-contiguous, float32 or int64.
        layout: The features read, all by a schema.
        batch_size: Records a batch.

    Returns:
        Flat views of the arrays, by slot.

    Raises:
        UsageError: An array does not fit its feature.
    """
    if not isinstance(out, Mapping):
        raise UsageError(f"out is a mapping of names to arrays, got {out!r}")
    found: dict[int, Array] = {}
    for name, array in out.items():
        if name not in layout.schema:
            raise UsageError(
                f"out has '{name}', which no schema describes; out needs a schema that fixes the "
                "shape of the features"
            )
        feature = layout.schema[name]
        stored = _STORED.get(feature.kind)
        if stored is None or feature.count < 0 or feature.out_dtype != stored:
            raise UsageError(
                f"feature '{name}' ({feature.describe()}) cannot be decoded into an array given "
                "by out: only float32 and int64 features of fixed shape can"
            )
        wanted = (batch_size, *(feature.shape or ()))
        if array.shape != wanted or array.dtype != stored or not array.flags.c_contiguous:
            raise UsageError(
                f"out['{name}'] must be a C-contiguous {stored} array of shape {wanted}, not "
                f"{array.dtype} {array.shape}"
            )
        if not array.flags.writeable:
            raise UsageError(f"out['{name}'] is read-only")
        found[layout.slot(name)] = array.reshape(-1)
    return found
