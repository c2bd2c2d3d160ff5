"""Arrow's C data interface in ctypes: plain descriptions of types and arrays out, and back in.

Nothing of Arrow is needed to speak it: see the Arrow specification, "The Arrow C data interface",
"The Arrow C stream interface" and "The Arrow PyCapsule Interface".
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tfrio import _core
from tfrio.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfrio.examples.columns import Array

__all__ = ["LIST", "PLACE", "ArrayNode", "TypeNode", "read_array", "read_stream", "stream_capsule"]

_NULLABLE: Final = 2  # ARROW_FLAG_NULLABLE
_EIO: Final = 5
_INT32: Final = struct.Struct("=i")
_STREAM: Final = b"arrow_array_stream"

# Metadata of a field that holds a feature list: one value a step, it looks like a context list.
PLACE: Final = b"tfrio:place"
LIST: Final = b"list"


@dataclass(slots=True)
class TypeNode:
    """An Arrow type or field: its format string, name and children.

    Attributes:
        format: As the C data interface spells it: ``"l"`` int64, ``"f"`` float32, ``"Z"`` large
            binary, ``"+L"`` large list, ``"+w:3"`` list of three, ``"+s"`` struct ...
        name: Name of the field.
        nullable: Whether it may be null.
        children: Types of the children.
        dictionary: Type of the values of a dictionary-encoded field, or None.
        metadata: What is noted beside the field, by key.
    """

    format: str
    name: str = ""
    nullable: bool = True
    children: list[TypeNode] = field(default_factory=list)
    dictionary: TypeNode | None = None
    metadata: dict[bytes, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class ArrayNode:
    """An Arrow array: its length, buffers and children.

    Attributes:
        length: Number of values.
        buffers: As the format wants them; None for an absent one. Out: NumPy arrays. In:
            addresses.
        null_count: Nulls among the values, -1 unknown.
        offset: Values to step over in the buffers.
        children: Arrays of the children.
        dictionary: Values of a dictionary-encoded array, or None.
    """

    length: int
    buffers: list[Any] = field(default_factory=list)
    null_count: int = 0
    offset: int = 0
    children: list[ArrayNode] = field(default_factory=list)
    dictionary: ArrayNode | None = None


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_ReleaseSchema = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))
_ReleaseArray = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))
_ReleaseStream = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))
_GetSchema = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))
_GetNext = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))
_GetError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Stream))

_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", _ReleaseSchema),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", _ReleaseArray),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", _GetSchema),
    ("get_next", _GetNext),
    ("get_last_error", _GetError),
    ("release", _ReleaseStream),
    ("private_data", ctypes.c_void_p),
]


def _fill_schema(target: Any, node: TypeNode) -> None:
    structs = [_Schema() for _ in node.children]
    for made, child in zip(structs, node.children, strict=True):
        _fill_schema(made, child)
    pointers = (ctypes.POINTER(_Schema) * len(structs))(*map(ctypes.pointer, structs))
    texts = node.format.encode(), node.name.encode()
    target.format, target.name = texts
    notes = ctypes.create_string_buffer(_packed(node.metadata)) if node.metadata else None
    target.metadata = None if notes is None else ctypes.addressof(notes)
    target.flags = _NULLABLE if node.nullable else 0
    target.n_children, target.children = len(structs), pointers
    target.dictionary = None
    _core.arrow_own_schema(ctypes.addressof(target), (structs, pointers, texts, notes))


def _packed(metadata: dict[bytes, bytes]) -> bytes:
    """Return metadata as the C data interface has it: int32 counts and lengths, no NUL at ends."""
    texts = [text for pair in metadata.items() for text in pair]
    parts = [_INT32.pack(len(text)) + text for text in texts]
    return b"".join([_INT32.pack(len(metadata)), *parts])


def _unpacked(address: int | None) -> dict[bytes, bytes]:
    """Return the metadata at an address, the inverse of ``_packed``."""
    if not address:
        return {}
    at = address

    def taken(size: int) -> bytes:
        """Return the next bytes."""
        nonlocal at
        at += size
        return ctypes.string_at(at - size, size)

    def number() -> int:
        """Return the next number."""
        return int(_INT32.unpack(taken(_INT32.size))[0])

    return {taken(number()): taken(number()) for _ in range(number())}


def _fill_array(target: Any, node: ArrayNode) -> None:
    structs = [_Array() for _ in node.children]
    for made, child in zip(structs, node.children, strict=True):
        _fill_array(made, child)
    pointers = (ctypes.POINTER(_Array) * len(structs))(*map(ctypes.pointer, structs))
    held = [None if b is None else np.ascontiguousarray(b) for b in node.buffers]
    addresses = (ctypes.c_void_p * len(held))(*(None if b is None else b.ctypes.data for b in held))
    target.length, target.null_count, target.offset = node.length, node.null_count, node.offset
    target.n_buffers, target.buffers = len(held), addresses
    target.n_children, target.children = len(structs), pointers
    target.dictionary = None
    _core.arrow_own_array(ctypes.addressof(target), (structs, pointers, held, addresses))


def stream_capsule(kind: TypeNode, arrays: Iterator[ArrayNode]) -> Any:
    """Return a PyCapsule ``"arrow_array_stream"``.

    Args:
        kind: Type of every array, a struct.
        arrays: The arrays; an error met while iterating reaches the consumer as text.
    """
    stream = _Stream()
    state: dict[str, Any] = {"error": None}

    def get_schema(_: Any, out: Any) -> int:
        """Hand out the type of the batches."""
        return _told(state, lambda: _fill_schema(out.contents, kind))

    def get_next(_: Any, out: Any) -> int:
        """Hand out the next batch, a released one at the end."""

        def step() -> None:
            """Fill the struct that the consumer gave."""
            node = next(arrays, None)
            if node is None:
                out.contents.release = _ReleaseArray()
            else:
                _fill_array(out.contents, node)

        return _told(state, step)

    def get_error(_: Any) -> int | None:
        """Return the address of the text of the last error."""
        text = state["error"]
        return None if text is None else ctypes.cast(text, ctypes.c_void_p).value

    callbacks = (_GetSchema(get_schema), _GetNext(get_next), _GetError(get_error))
    stream.get_schema, stream.get_next, stream.get_last_error = callbacks
    _core.arrow_own_stream(ctypes.addressof(stream), (callbacks, state))
    return _core.arrow_stream_capsule(ctypes.addressof(stream))


def _told(state: dict[str, Any], call: Callable[[], None]) -> int:
    """Call; an error becomes text and a number, as C wants it."""
    try:
        call()
    except BaseException as error:  # noqa: BLE001 - what escapes into C would end the stream
        text = f"{type(error).__name__}: {error}".encode(errors="backslashreplace")
        state["error"] = ctypes.create_string_buffer(text)
        return _EIO
    return 0


_api = ctypes.pythonapi
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]


def _address(capsule: Any, name: bytes) -> int:
    address: int | None = _api.PyCapsule_GetPointer(id(capsule), name)
    if not address:
        raise UsageError("not an Arrow capsule")
    return address


def read_stream(capsule: Any) -> Iterator[tuple[TypeNode, ArrayNode]]:
    """Yield the arrays of an ``"arrow_array_stream"`` capsule, each with its type.

    An array's buffers are addresses, good until the next one is asked for.
    """
    address = _address(capsule, _STREAM)
    pointer = ctypes.cast(address, ctypes.POINTER(_Stream))
    stream = pointer.contents
    schema = _Schema()
    _check(stream, pointer, stream.get_schema(pointer, ctypes.byref(schema)))
    kind = _type_of(schema)
    schema.release(ctypes.byref(schema))
    while True:
        array = _Array()
        _check(stream, pointer, stream.get_next(pointer, ctypes.byref(array)))
        if not array.release:
            return
        try:
            yield kind, _array_of(array)
        finally:
            array.release(ctypes.byref(array))


def read_array(schema_capsule: Any, array_capsule: Any) -> Iterator[tuple[TypeNode, ArrayNode]]:
    """Yield the one array of a pair of capsules ``"arrow_schema"``, ``"arrow_array"``."""
    schema = ctypes.cast(_address(schema_capsule, b"arrow_schema"), ctypes.POINTER(_Schema))
    array = ctypes.cast(_address(array_capsule, b"arrow_array"), ctypes.POINTER(_Array))
    yield _type_of(schema.contents), _array_of(array.contents)


def _check(stream: Any, pointer: Any, code: int) -> None:
    if code:
        told = stream.get_last_error(pointer)
        text = ctypes.string_at(told).decode("utf-8", "replace") if told else f"error {code}"
        raise UsageError(f"the Arrow stream failed: {text}")


def _type_of(schema: Any) -> TypeNode:
    return TypeNode(
        schema.format.decode(),
        (schema.name or b"").decode(),
        bool(schema.flags & _NULLABLE),
        [_type_of(schema.children[i].contents) for i in range(schema.n_children)],
        _type_of(schema.dictionary.contents) if schema.dictionary else None,
        _unpacked(schema.metadata),
    )


def _array_of(array: Any) -> ArrayNode:
    return ArrayNode(
        array.length,
        [array.buffers[i] for i in range(array.n_buffers)],
        array.null_count,
        array.offset,
        [_array_of(array.children[i].contents) for i in range(array.n_children)],
        _array_of(array.dictionary.contents) if array.dictionary else None,
    )


def copied(address: int | None, dtype: Any, count: int) -> Array:
    """Return a copy of ``count`` values at an address."""
    size = np.dtype(dtype).itemsize * count
    if not address or not count:
        return np.zeros(0, dtype)
    return np.frombuffer(ctypes.string_at(address, size), dtype).copy()
