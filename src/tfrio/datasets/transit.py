"""How a batch of tensors travels from a worker process: as one piece, in memory used again.

PyTorch sends each tensor of a batch by itself, in fresh shared memory: a file descriptor and
fresh pages each time, which costs more than decoding. Here a batch is one piece. A small one goes
through the pipe itself. A large one lies in a block of shared memory that the worker uses again
once the receiver has let go of every tensor on it.

Imports torch; only ``tfrio.torch`` and what it loads may import this module.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from tfrio.examples.columns import BytesColumn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["forget_blocks", "pack", "room", "send_blocks_as", "unpack"]

# Up to this size a batch is sent through the pipe.
PIPE_BYTES = 256 << 10

_ALIGN = 64
_HEAD = 64  # bytes at the start of a block: whether it was sent and is in use there, and here
_SENT, _HERE = 0, 1
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
    rest: Packed | None = None
    """What lies elsewhere."""


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


def _address(value: Any) -> int:
    """Return where the bytes of a tensor or a column lie in memory; 0 where they are scattered."""
    if isinstance(value, torch.Tensor):
        return value.data_ptr() if _is_plain(value) and value.is_contiguous() else 0
    if isinstance(value, BytesColumn):
        return int(value.data.ctypes.data + value.offsets[0])
    return 0


def _slot(name: str, value: Any, start: int) -> Slot:
    stop = start + _size(value)
    if _is_plain(value):
        return Slot(name, value.dtype, tuple(value.shape), start, stop)
    return Slot(name, None, _lengths(value), start, stop)


def _layout(entries: Mapping[str, Any]) -> tuple[list[Slot], int]:
    slots: list[Slot] = []
    end = 0
    for name, value in entries.items():
        if _is_plain(value) or _is_bytes(value):
            slots.append(_slot(name, value, -(-end // _ALIGN) * _ALIGN))
            end = slots[-1].stop
    return slots, end


def _size(value: Any) -> int:
    if isinstance(value, torch.Tensor | BytesColumn):
        return int(value.nbytes)
    return sum(map(len, value))


def pack(entries: Mapping[str, Any]) -> Packed:
    """Put the tensors and bytes of a batch into one piece.

    Args:
        entries: Tensors, bytes (a list or a column; they arrive as a column) and others by name.
            What was decoded into a ``room`` stays there.

    Returns:
        What to send.
    """
    lease, lying = (None, {}) if _sender is None else _sender.room_of(entries)
    rest = {name: value for name, value in entries.items() if name not in lying}
    if _sender is None or lease is None:
        return _copied(rest)
    slots = [_slot(name, entries[name], start) for name, start in lying.items()]
    # Not behind them in the same block: more may lie there.
    return Packed(_sender.use(lease.number), slots, {}, list(entries), _copied(rest))


def _copied(entries: Mapping[str, Any]) -> Packed:
    slots, size = _layout(entries)
    placed = {slot.name for slot in slots}
    others = {name: value for name, value in entries.items() if name not in placed}
    use: BlockUse | None = None
    if size > PIPE_BYTES and _sender is not None:
        number = _sender.lend(size, _SENT)
        use, memory = _sender.use(number), _sender.memory(number)
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
    """Return the entries of a packed batch, in their order.

    Returns:
        Tensors, which may be written to; bytes as a ``BytesColumn`` over what was sent; others.
    """
    data = packed.data
    if isinstance(data, BlockUse):
        memory = np.asarray(_Lease(_known_block(data), _SENT))
    else:
        memory = np.frombuffer(bytearray(data), np.uint8)
    entries = dict(packed.others)
    if packed.rest is not None:
        entries.update(unpack(packed.rest))
    whole = torch.from_numpy(memory)
    for slot in packed.slots:
        if slot.dtype is None:
            offsets = np.cumsum((slot.start, *slot.shape))
            entries[slot.name] = BytesColumn(memory, offsets)
        else:
            entries[slot.name] = _view(whole[slot.start : slot.stop], slot)
    return {name: entries[name] for name in packed.names}


def _view(part: torch.Tensor, slot: Slot) -> torch.Tensor:
    assert slot.dtype is not None
    if slot.start == slot.stop:  # no bytes have no type
        return torch.empty(slot.shape, dtype=slot.dtype)
    return part.view(slot.dtype).view(slot.shape)


# --- the sending process ---


class _Lease:
    """Keeps a block in use, here or where it was sent, while any array or tensor on it lives."""

    def __init__(self, block: NDArray[np.uint8], flag: int, number: int = -1) -> None:
        self.number = number
        self.memory = block[_HEAD:]
        self._flags = block[:_HEAD]
        self._flag = flag
        self._process = os.getpid()
        self.__array_interface__ = self.memory.__array_interface__

    def __del__(self) -> None:
        # A forked child drops its copies of our objects, which must not count.
        if self._process == os.getpid():
            self._flags[self._flag] = 0

    def lying(self, entries: Mapping[str, Any]) -> dict[str, int]:
        """Return which entries lie in the memory, and where."""
        first = self.memory.ctypes.data
        places = {name: _address(value) - first for name, value in entries.items()}
        size = self.memory.size
        return {
            name: place
            for name, place in places.items()
            if 0 <= place <= size - _size(entries[name]) and _size(entries[name])
        }


class _Sender:
    """The blocks of this process."""

    def __init__(self, token: str) -> None:
        self.token = token
        self._rooms: weakref.WeakSet[_Lease] = weakref.WeakSet()
        self._blocks: list[torch.Tensor] = []
        self._known: set[int] = set()  # blocks that the receiver has
        self._lock = threading.Lock()  # one thread decodes, another one sends

    def memory(self, number: int) -> NDArray[np.uint8]:
        """Return what may be filled of a block."""
        memory: NDArray[np.uint8] = self._blocks[number].numpy()[_HEAD:]
        return memory

    def lend(self, size: int, flag: int) -> int:
        """Mark a block that nobody uses as in use, and return its number."""
        with self._lock:
            for number, block in enumerate(self._blocks):
                flags = block.numpy()
                if flags.size - _HEAD >= size and not (flags[_SENT] or flags[_HERE]):
                    flags[flag] = 1
                    return number
            storage = torch.UntypedStorage._new_shared(_HEAD + int(size * _SPARE))
            block = torch.empty(0, dtype=torch.uint8).set_(storage)
            block[flag] = 1
            self._blocks.append(block)
            return len(self._blocks) - 1

    def room(self, size: int) -> NDArray[np.uint8]:
        """Return memory of a block that is free again with the last array on it."""
        number = self.lend(size, _HERE)
        lease = _Lease(self._blocks[number].numpy(), _HERE, number)
        with self._lock:
            self._rooms.add(lease)
        return np.asarray(lease)

    def room_of(self, entries: Mapping[str, Any]) -> tuple[_Lease | None, dict[str, int]]:
        """Return the room into which entries were decoded, and where which of them lie in it."""
        with self._lock:
            rooms = [room for room in self._rooms if not self._blocks[room.number][_SENT]]
        for room in rooms:
            lying = room.lying(entries)
            if lying:
                return room, lying
        return None, {}

    def use(self, number: int) -> BlockUse:
        """Say that a block is sent."""
        block = self._blocks[number]
        block[_SENT] = 1
        known = number in self._known
        self._known.add(number)
        return BlockUse(self.token, (os.getpid(), number), None if known else block)


_sender: _Sender | None = None


def send_blocks_as(token: str) -> None:
    """Let this worker process send large batches in blocks that are used again.

    Args:
        token: Names the loader that receives them; it must call ``forget_blocks`` in the end.
    """
    global _sender  # noqa: PLW0603 - batches are pickled by a thread that knows only the batch
    if _sender is None or _sender.token != token:
        _sender = _Sender(token)


def room(size: int) -> NDArray[np.uint8] | None:
    """Return memory to decode into, which ``pack`` then sends as it is.

    Args:
        size: Bytes needed.

    Returns:
        At least so many bytes; None where a batch of that size goes through the pipe.
    """
    return None if _sender is None or size <= PIPE_BYTES else _sender.room(size)


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
