"""NumPy columns to tensors, and a batch that travels between processes as one piece of memory.

Imports torch; only ``tfrio.torch`` and what it loads may import this module.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from tfrio.datasets.items import Maker
from tfrio.datasets.transit import pack, unpack
from tfrio.examples.columns import BytesColumn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from torch._utils import ExceptionWrapper

    from tfrio.datasets.reader import Chunk
    from tfrio.datasets.transit import Packed
    from tfrio.errors import TfrioError
    from tfrio.examples.columns import Array, Ragged
    from tfrio.records.damage import Damage

__all__ = ["BatchGroup", "TensorBatch", "TensorMaker", "Told"]


class TensorBatch(dict[str, Any]):
    """A dict of tensors (and lists) by feature name, that knows its number of rows.

    Args:
        entries: Tensor, list of bytes or list of tensors by name.
        rows: Number of records.
    """

    def __init__(
        self, entries: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), *, rows: int = 0
    ) -> None:
        super().__init__(entries)
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
    entries = unpack(packed)
    return TensorBatch({name: _listed(value) for name, value in entries.items()}, rows=rows)


def _arrive_together(packed: Packed, rows: Sequence[int]) -> BatchGroup:
    return BatchGroup(whole=TensorBatch(unpack(packed), rows=sum(rows)), rows=rows)


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, BytesColumn) else value


class BatchGroup:
    """Several batches on their way from a worker process, as one piece where that can be.

    Args:
        batches: The batches; where damaged records left nothing of one, it is None.
        whole: All rows of them in one, in their place.
        rows: Rows of each batch in ``whole``.
    """

    def __init__(
        self,
        batches: Sequence[TensorBatch | None] = (),
        *,
        whole: TensorBatch | None = None,
        rows: Sequence[int] = (),
    ) -> None:
        self._batches = batches
        self._whole = whole
        self._rows = rows

    def __reduce__(self) -> tuple[Any, ...]:
        if self._whole is None:
            return BatchGroup, (self._batches,)
        return _arrive_together, (pack(self._whole), self._rows)

    def pin_memory(self) -> BatchGroup:
        """Return the group with every tensor in page-locked memory."""
        if self._whole is not None:
            return BatchGroup(whole=self._whole.pin_memory(), rows=self._rows)
        return BatchGroup([None if b is None else b.pin_memory() for b in self._batches])

    def split(self) -> Iterator[TensorBatch | None]:
        """Yield the batches."""
        if self._whole is None:
            yield from self._batches
            return
        cuts = [_cut(value, self._rows) for value in self._whole.values()]
        for rows, *parts in zip(self._rows, *cuts, strict=True):
            yield TensorBatch(zip(self._whole, parts, strict=True), rows=rows)


def _cut(value: Any, rows: Sequence[int]) -> Iterable[Any]:
    """Cut into batches; lists of bytes are made when their turn comes, in memory still at hand."""
    if isinstance(value, torch.Tensor):
        cut: Sequence[torch.Tensor] = value.split(list(rows))
        return cut
    return (_listed(value[a:b]) for a, b in pairwise(accumulate(rows, initial=0)))


class Told(NamedTuple):
    """What a worker process has to tell, beside what it sends."""

    item: Any
    damages: list[Damage]
    """Records left out since the last time."""
    error: TfrioError | ExceptionWrapper | None = None
    """What stopped the worker; an error of tfrio's whole, PyTorch alone would send its text."""


class TensorMaker(Maker):
    """Make batches and rows of tensors (see ``Maker``)."""

    def array(self, values: Array) -> Any:
        """Return an array as a tensor, without a copy where torch can take it as it is."""
        wider = _WIDER.get(values.dtype)
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

    def group(self, chunk: Chunk) -> BatchGroup:
        """Return the batches of a chunk, ready to be sent."""
        columns = self._columns(chunk)
        kinds = torch.Tensor | BytesColumn
        plain = columns and all(isinstance(value, kinds) for value in columns.values())
        if plain and chunk.rows is chunk.consumed:
            return BatchGroup(whole=TensorBatch(columns, rows=chunk.batch.rows), rows=chunk.rows)
        return BatchGroup([batch for batch, _ in self.batches(chunk)])


# Torch has few operations for unsigned numbers wider than a byte.
_WIDER: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.uint16): np.dtype(np.int32),
    np.dtype(np.uint32): np.dtype(np.int64),
    np.dtype(np.uint64): np.dtype(np.int64),
}
