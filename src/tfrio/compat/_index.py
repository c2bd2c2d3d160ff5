"""Text indexes: one line ``offset length`` per record, as tfrecord2idx writes and DALI reads."""

from __future__ import annotations

import functools
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tfrio import storage

if TYPE_CHECKING:
    from tfrio.types import PathLike

__all__ = ["create_index", "read_offsets"]

Offsets: TypeAlias = npt.NDArray[np.int64]


def read_offsets(index_path: Any) -> tuple[Offsets, bool]:
    """Read where records begin.

    Args:
        index_path: The index: a path, a URL, or anything ``numpy.loadtxt`` reads. Comments,
            blank lines, tabs and further columns are passed over.

    Returns:
        int64 array (n,) of byte offsets, and whether bytes lie between the records listed.

    Raises:
        FileNotFoundError: No such index.
        ValueError: Not an index.
    """
    if storage.is_remote(index_path):
        reader = storage.open_read(index_path)
        try:
            text = reader.read_at(0, reader.size or 0)
        finally:
            reader.close()
        return _parse(text.decode().splitlines())
    try:
        status = os.stat(index_path)
    except (OSError, TypeError, ValueError):
        return _parse(index_path)  # loadtxt says what is wrong, or reads lines and file objects
    return _read_local(os.fsdecode(index_path), status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=32)
def _read_local(path: str, mtime_ns: int, size: int) -> tuple[Offsets, bool]:  # noqa: ARG001
    """Read a local index once; its time and size tell a changed one."""
    offsets, gaps = _parse(path)
    offsets.flags.writeable = False  # shared by all callers
    return offsets, gaps


def _parse(source: Any) -> tuple[Offsets, bool]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "loadtxt: input contained no data", UserWarning)
        table = np.loadtxt(source, dtype=np.int64, ndmin=2)
    if not table.size:
        return np.empty(0, np.int64), False
    offsets = np.ascontiguousarray(table[:, 0])
    listed = table.shape[1] > 1 and bool((table[:, 1] >= 16).all())
    gaps = listed and bool((np.diff(offsets) > table[:-1, 1]).any())
    return offsets, gaps
