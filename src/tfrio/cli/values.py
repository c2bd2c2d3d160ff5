"""Values of a record as text: a line for people, plain values for JSON. Pure."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from tfrio.examples.codecs import image_format

__all__ = ["describe", "plain", "preview"]

_ROOM = 60  # characters of a value shown to people
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
        inner = {describe(item).partition(" x ")[0].partition(",")[0] for item in value}
        return f"{len(value):,} of {' or '.join(sorted(inner)) or 'nothing'}"
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
        return _joined(value.reshape(-1)[:_ROOM].tolist(), value.size)
    if isinstance(value, list):
        parts = ", ".join(preview(item) for item in value[:_ROOM])
        return _cut(f"[{parts}]")
    return _cut(str(value))


def _joined(values: list[Any], count: int) -> str:
    """Join numbers while there is room, and say when there are more."""
    text = ""
    for number, value in enumerate(values):
        word = f"{value:.6g}" if isinstance(value, float) else str(value)
        if len(text) + len(word) + 1 > _ROOM:
            return f"{text} ..."
        text = f"{text} {word}" if number else word
    return text if count <= len(values) else f"{text} ..."


def _bytes_preview(value: bytes) -> str:
    found = image_format(value)
    if found is not None:
        return f"{found} image"
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
