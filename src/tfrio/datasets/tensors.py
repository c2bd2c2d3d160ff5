"""NumPy columns to tensors, and a batch that travels between processes as one piece of memory.

Imports torch; only ``tfrio.torch`` and what it loads may import this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tfrio.datasets.items import Maker
from tfrio.datasets.transit import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrio.datasets.transit import Packed
    from tfrio.examples.columns import Array, Ragged

__all__ = ["TensorBatch", "TensorMaker"]


class TensorBatch(dict[str, Any]):
    """A dict of tensors (and lists) by feature name, that knows its number of rows.

    Args:
        entries: Tensor, list of bytes or list of tensors by name.
        rows: Number of records.
    """

    def __init__(self, entries: Mapping[str, Any] | None = None, *, rows: int = 0) -> None:
        super().__init__(entries or {})
        self.rows = rows

    def __copy__(self) -> TensorBatch:
        return TensorBatch(self, rows=self.rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrive, (pack(self), self.rows)

    def to(self, device: Any, *, non_blocking: bool = False) -> TensorBatch:
        """Return the batch with every tensor on a device.

        Args:
            device: As torch names it.
            non_blocking: Do not wait for copies from pinned memory.

        Returns:
            A new batch; what is no tensor is passed on.
        """
        return self._mapped(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> TensorBatch:
        """Return the batch with every tensor in page-locked memory."""
        return self._mapped(lambda tensor: tensor.pin_memory())

    def _mapped(self, change: Any) -> TensorBatch:
        entries = {
            name: change(value) if isinstance(value, torch.Tensor) else value
            for name, value in self.items()
        }
        return TensorBatch(entries, rows=self.rows)


def _arrive(packed: Packed, rows: int) -> TensorBatch:
    return TensorBatch(unpack(packed), rows=rows)


class TensorMaker(Maker):
    """Make batches and rows of tensors (see ``Maker``)."""

    def array(self, values: Array) -> Any:
        """Return an array as a tensor, without a copy where torch can take it as it is."""
        wider = _WIDER.get(values.dtype.name)
        if wider is not None:
            values = values.astype(wider)
        usable = values.flags.writeable and values.flags.c_contiguous
        return torch.from_numpy(values if usable else values.copy())

    def cuts(self, values: Any, sizes: Sequence[int]) -> Sequence[Any]:
        """Cut a tensor into runs of rows."""
        cut: Sequence[Any] = values.split(list(sizes))
        return cut

    def singles(self, values: Any) -> Sequence[Any]:
        """Return the rows of a tensor."""
        rows: Sequence[Any] = values.unbind(0)
        return rows

    def nested(self, column: Ragged) -> Any:
        """Return lists of numbers of differing length as a jagged nested tensor."""
        first, last = int(column.offsets[0]), int(column.offsets[-1])
        values = self.array(np.asarray(column.values[first:last]))
        offsets = torch.from_numpy(column.offsets - first)
        return torch.nested.nested_tensor_from_jagged(values, offsets)

    def container(self, entries: dict[str, Any], rows: int) -> Any:
        """Return a batch of tensors."""
        return TensorBatch(entries, rows=rows)


# Torch has few operations for unsigned numbers wider than a byte.
_WIDER = {"uint16": "int32", "uint32": "int64", "uint64": "int64"}
