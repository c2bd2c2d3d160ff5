"""How a batch of tensors travels from a worker process: as one piece, in memory used again.

PyTorch sends each tensor of a batch by itself, in fresh shared memory: a file descriptor and
fresh pages each time, which costs more than decoding. Here a batch is one piece. A small one goes
through the pipe itself. A large one lies in a block of shared memory that the worker uses again
once the receiver has let go of every tensor on it.

Imports torch; only ``tfrio.torch`` and what it loads may import this module.
"""

from __future__ import annotations

import os
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from tfrio.examples.columns import BytesColumn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["forget_blocks", "pack", "send_blocks_as", "unpack"]

# Up to this size a batch is sent through the pipe.
PIPE_BYTES = 256 << 10

_ALIGN = 64
_HEAD = 64  # bytes at the start of a block; the first tells whether the receiver uses it
_SPARE = 1.25  # blocks are somewhat larger than asked, as padded batches differ in size


class Slot(NamedTuple):
    """Where one entry lies in the packed bytes."""

    name: str
    dtype: torch.dtype | None
    """None for a list of bytes."""
    shape: tuple[int, ...]
    """Shape of a tensor, or the length of each of the bytes."""
    start: int
    stop: int


class Packed(NamedTuple):
    """A batch ready to be sent."""

    data: bytes | BlockUse
    slots: list[Slot]
    others: dict[str, Any]
    """Entries that are sent as they are."""
    names: list[str]


class BlockUse(NamedTuple):
    """One use of a block of shared memory."""

    token: str
    number: tuple[int, int]
    """Process id of the sender, and its block."""
    block: torch.Tensor | None
    """The block itself, at its first use."""


def _is_plain(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.device.type == "cpu"
        and value.layout == torch.strided
        and not value.requires_grad
        and not value.is_nested
    )


def _is_bytes(value: Any) -> bool:
    if isinstance(value, BytesColumn):
        return True
    return isinstance(value, list) and bool(value) and all(type(item) is bytes for item in value)


def _lengths(value: BytesColumn | list[bytes]) -> tuple[int, ...]:
    if isinstance(value, BytesColumn):
        return tuple(np.diff(value.offsets).tolist())
    return tuple(map(len, value))


def _joined(value: BytesColumn | list[bytes]) -> NDArray[np.uint8]:
    if isinstance(value, BytesColumn):
        joined: NDArray[np.uint8] = value.data[int(value.offsets[0]) : int(value.offsets[-1])]
        return joined
    return np.frombuffer(b"".join(value), np.uint8)


def _layout(entries: Mapping[str, Any]) -> tuple[list[Slot], int]:
    slots: list[Slot] = []
    end = 0
    for name, value in entries.items():
        start = -(-end // _ALIGN) * _ALIGN
        if _is_plain(value):
            end = start + value.numel() * value.element_size()
            slots.append(Slot(name, value.dtype, tuple(value.shape), start, end))
        elif _is_bytes(value):
            lengths = _lengths(value)
            end = start + sum(lengths)
            slots.append(Slot(name, None, lengths, start, end))
    return slots, end


def pack(entries: Mapping[str, Any]) -> Packed:
    """Put the tensors and bytes of a batch into one piece.

    Args:
        entries: Tensors, bytes (a list or a column; they arrive as a list) and others by name.

    Returns:
        What to send.
    """
    slots, size = _layout(entries)
    placed = {slot.name for slot in slots}
    others = {name: value for name, value in entries.items() if name not in placed}
    use: BlockUse | None = None
    if size > PIPE_BYTES and _sender is not None:
        use, memory = _sender.lend(size)
    else:
        memory = np.empty(size, np.uint8)
    for slot in slots:
        part = memory[slot.start : slot.stop]
        if slot.dtype is None:
            part[:] = _joined(entries[slot.name])
        else:
            _view(torch.from_numpy(part), slot).copy_(entries[slot.name])
    return Packed(memory.tobytes() if use is None else use, slots, others, list(entries))


def unpack(packed: Packed) -> dict[str, Any]:
    """Return the entries of a packed batch, in their order; tensors may be written to."""
    data = packed.data
    if isinstance(data, BlockUse):
        memory = np.asarray(_Lease(_known_block(data)))
    else:
        memory = np.frombuffer(bytearray(data), np.uint8)
    entries = dict(packed.others)
    whole = torch.from_numpy(memory)
    for slot in packed.slots:
        if slot.dtype is None:
            view = memoryview(memory[slot.start : slot.stop])  # type: ignore[arg-type]
            edges = pairwise(accumulate(slot.shape, initial=0))
            entries[slot.name] = [bytes(view[a:b]) for a, b in edges]
        else:
            entries[slot.name] = _view(whole[slot.start : slot.stop], slot)
    return {name: entries[name] for name in packed.names}


def _view(part: torch.Tensor, slot: Slot) -> torch.Tensor:
    assert slot.dtype is not None
    if slot.start == slot.stop:  # no bytes have no type
        return torch.empty(slot.shape, dtype=slot.dtype)
    return part.view(slot.dtype).view(slot.shape)


# --- the sending process ---


class _Sender:
    """The blocks of this process."""

    def __init__(self, token: str) -> None:
        self.token = token
        self._blocks: list[torch.Tensor] = []

    def lend(self, size: int) -> tuple[BlockUse, NDArray[np.uint8]]:
        """Return a block that nobody uses, and its memory."""
        for number, block in enumerate(self._blocks):
            memory = block.numpy()
            if not memory[0] and memory.size - _HEAD >= size:
                memory[0] = 1
                return BlockUse(self.token, (os.getpid(), number), None), memory[_HEAD:]
        storage = torch.UntypedStorage._new_shared(_HEAD + int(size * _SPARE))
        block = torch.empty(0, dtype=torch.uint8).set_(storage)
        block[0] = 1
        self._blocks.append(block)
        use = BlockUse(self.token, (os.getpid(), len(self._blocks) - 1), block)
        return use, block.numpy()[_HEAD:]


_sender: _Sender | None = None


def send_blocks_as(token: str) -> None:
    """Let this worker process send large batches in blocks that are used again.

    Args:
        token: Names the loader that receives them; it must call ``forget_blocks`` in the end.
    """
    global _sender  # noqa: PLW0603 - batches are pickled by a thread that knows only the batch
    if _sender is None or _sender.token != token:
        _sender = _Sender(token)


# --- the receiving process ---

_blocks: dict[str, dict[tuple[int, int], torch.Tensor]] = {}


def _known_block(use: BlockUse) -> NDArray[np.uint8]:
    if use.token not in _blocks:
        # glibc gives memory back after every batch of bytes and faults it in again for the next,
        # until it has seen a large piece freed: then it keeps up to twice as much.
        large = np.empty(16 << 20, np.uint8)
        del large
    known = _blocks.setdefault(use.token, {})
    if use.block is not None:
        known[use.number] = use.block
    memory: NDArray[np.uint8] = known[use.number].numpy()
    return memory


def forget_blocks(token: str) -> None:
    """Let go of the blocks of a loader whose workers have ended; batches in use stay valid."""
    _blocks.pop(token, None)


class _Lease:
    """Keeps a block in use while any array or tensor on it lives."""

    def __init__(self, memory: NDArray[np.uint8]) -> None:
        self._memory = memory
        self._process = os.getpid()
        self.__array_interface__ = memory[_HEAD:].__array_interface__

    def __del__(self) -> None:
        # A forked child drops its copies of our objects, which must not count.
        if self._process == os.getpid():
            self._memory[0] = 0
