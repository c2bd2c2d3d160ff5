"""Values of a record as text: a line for people, plain values for JSON. Pure."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import many
from tfrio.examples.images import image_format, image_size, mangled_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["describe", "plain", "preview"]

_ROOM = 60  # characters of a value shown to people
_RUN = 10  # equal numbers at the start that are told once
_GZIP = b"\x1f\x8b"


def describe(value: Any) -> str:
    """Say what a value is: its type and how many there are.

    Args:
        value: A value of a row: array, bytes, str, number, list of these, or None.

    Returns:
        A short text such as ``float32 x 3``, ``bytes, 1,204 long``, ``3 steps of int64``.
    """
    if value is None:
        return "absent"
    if isinstance(value, bytes):
        return f"bytes, {len(value):,} long"
    if isinstance(value, str):
        return f"text, {len(value):,} long"
    if isinstance(value, np.ndarray):
        size = " x ".join(f"{n:,}" for n in value.shape)
        return f"{value.dtype} x {size}" if size else str(value.dtype)
    if isinstance(value, list):
        steps = any(isinstance(item, np.ndarray | list) for item in value)
        items = [one for item in value for one in (item if isinstance(item, list) else [item])]
        inner = {describe(item).partition(" x ")[0].partition(",")[0] for item in items}
        what = f" of {' or '.join(sorted(inner))}" if inner else ""
        many_steps = f" {many(len(value), 'step')}" if steps or not value else ""
        return f"{len(value):,}{many_steps}{what}"
    return type(value).__name__


def preview(value: Any) -> str:
    """Write a value for people, cut to a line.

    Args:
        value: A value of a row.

    Returns:
        Text of at most some 60 characters.
    """
    if isinstance(value, bytes):
        return _bytes_preview(value)
    if isinstance(value, np.ndarray):
        return _numbers_preview(value.reshape(-1))
    if isinstance(value, list):
        parts = ", ".join(_step(item) for item in value[:_ROOM])
        return _cut(f"[{parts}]")
    return _cut(str(value))


def _step(item: Any) -> str:
    """Write a value of a list; the numbers of a step, none perhaps, stand in brackets."""
    text = preview(item)
    return f"[{text}]" if isinstance(item, np.ndarray) and item.ndim else text


def _numbers_preview(values: NDArray[Any]) -> str:
    """Write numbers while there is room; a long run of one number at the start is told once."""
    other = np.flatnonzero(values != values[0]) if values.size else values
    run = int(other[0]) if other.size else values.size
    if run < _RUN:
        return _joined("", values)
    start = f"{run:,} times {_word(values[0].item())}"
    return start if run == values.size else _joined(f"{start},", values[run:])


def _joined(text: str, values: NDArray[Any]) -> str:
    """Add numbers while there is room, and say when there are more."""
    for value in values[:_ROOM].tolist():
        word = _word(value)
        if len(text) + len(word) + 1 > _ROOM:
            return f"{text} ..."
        text = f"{text} {word}" if text else word
    return text if values.size <= _ROOM else f"{text} ..."


def _word(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _bytes_preview(value: bytes) -> str:
    found = image_format(value)
    if found is not None:
        size = image_size(value)
        told = f"{found} {size[0]}\u00d7{size[1]}" if size else f"{found} image"
        mangled = mangled_text(value)
        return told if mangled is None else f"looks like {mangled}"
    if value.startswith(_GZIP):
        return "gzip data"
    text = _as_text(value[: 4 * _ROOM])
    if text is None and len(value) > 4 * _ROOM:  # a character may be cut at the end
        text = next((t for k in (1, 2, 3) if (t := _as_text(value[: 4 * _ROOM - k]))), None)
    return _cut(text) if text is not None else _cut(value[:_ROOM].hex(" "))


def _as_text(value: bytes) -> str | None:
    """Decode bytes that are readable UTF-8 text; None for anything else."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return None
    readable = all(c.isprintable() or c in "\n\t\r" for c in text)
    return text.replace("\n", " ").replace("\t", " ").replace("\r", "") if readable else None


def _cut(text: str) -> str:
    return text if len(text) <= _ROOM else f"{text[: _ROOM - 4]} ..."


def plain(value: Any) -> Any:
    """Turn a value into what JSON can hold.

    Args:
        value: A value of a row.

    Returns:
        Numbers, text and lists. Bytes that are UTF-8 become text, others ``{"base64": ...}``;
        NaN and infinities, for which JSON has no number, become text.
    """
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value
