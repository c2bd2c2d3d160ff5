"""NumPy columns to tensors, and a batch that travels between processes as one piece of memory.

Imports torch; only ``tfrio.torch`` and what it loads may import this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from tfrio.datasets.items import Maker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrio.examples.columns import Array, Ragged

__all__ = ["TensorBatch", "TensorMaker"]

# Up to this size a batch is sent through the pipe itself; beyond, as one block of shared memory.
# Each shared tensor costs a file descriptor and some 0.3 ms.
PIPE_BYTES = 1 << 20

_ALIGN = 64


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
        return _unpack, _pack(self)

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


class _Slot(NamedTuple):
    """Where one tensor lies in a packed batch."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    stop: int


def _packable(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.device.type == "cpu"
        and value.layout == torch.strided
        and not value.requires_grad
        and not value.is_nested
    )


def _pack(batch: TensorBatch) -> tuple[Any, ...]:
    slots, others, end = [], {}, 0
    for name, value in batch.items():
        if _packable(value):
            start = -(-end // _ALIGN) * _ALIGN
            end = start + value.numel() * value.element_size()
            slots.append(_Slot(name, value.dtype, tuple(value.shape), start, end))
        else:
            others[name] = value
    block = _empty_block(end)
    for slot in slots:
        _view(block, slot).copy_(batch[slot.name])
    packed: Any = block if end > PIPE_BYTES else block.numpy().tobytes()
    return packed, slots, others, list(batch), batch.rows


def _empty_block(size: int) -> torch.Tensor:
    """Return a block of bytes, shared where it will be sent to another process."""
    if size > PIPE_BYTES and torch.utils.data.get_worker_info() is not None:
        storage = torch.UntypedStorage._new_shared(size)
        return torch.empty(0, dtype=torch.uint8).set_(storage)
    return torch.empty(size, dtype=torch.uint8)


def _view(block: torch.Tensor, slot: _Slot) -> torch.Tensor:
    return block[slot.start : slot.stop].view(slot.dtype).view(slot.shape)


def _unpack(
    packed: Any, slots: Sequence[_Slot], others: Mapping[str, Any], names: Sequence[str], rows: int
) -> TensorBatch:
    if isinstance(packed, bytes):
        # A bytearray, since tensors may be written to.
        packed = torch.frombuffer(bytearray(packed or b"\0"), dtype=torch.uint8)
    entries = {slot.name: _view(packed, slot) for slot in slots} | dict(others)
    return TensorBatch({name: entries[name] for name in names}, rows=rows)


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
