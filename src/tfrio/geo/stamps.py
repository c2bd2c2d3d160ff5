"""Text that tells one content from another, so that an export goes on only on the same pixels."""

from __future__ import annotations

import contextlib
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio import _core, storage
from tfrio.errors import TfrioError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["array_stamp", "file_stamp", "sample_stamp"]

# Side, in pixels, of the three pieces of a lazy band that are looked at.
_SAMPLE = 32


def file_stamp(path: str, members: Iterable[str]) -> str:
    """Return path, size and time of change of a raster and of the files it is made of.

    Args:
        path: What was opened: a file, a URL or a name of GDAL's.
        members: Files that GDAL reads for it (``dataset.files``).

    Returns:
        Text that differs when one of the files does. Of a URL only the size is known, of others
        (``/vsimem/``, databases) only the name.
    """
    found = [_local_stamp(member) for member in sorted({*members, path})]
    size = _remote_size(path) if storage.is_remote(path) else None
    return " ".join([path, *(text for text in found if text), *([str(size)] if size else [])])


def _local_stamp(name: str) -> str:
    """Return size and time of change of the file that holds ``name``: an archive, perhaps."""
    place = Path(name[name.find("/", 1) + 1 :] if name.startswith("/vsi") else name)
    for local in (place, *place.parents):
        with contextlib.suppress(OSError):
            if local.is_file():
                status = local.stat()
                return f"{local.resolve()}:{status.st_size}:{status.st_mtime_ns}"
    return ""


def _remote_size(url: str) -> int | None:
    """Return the size of an object, None where nobody tells it."""
    with contextlib.suppress(TfrioError, OSError, ImportError):
        return storage.size_of(url)
    return None


def array_stamp(array: Any) -> str:
    """Return text that tells one content of a NumPy array from another, mask included."""
    crc = 0
    for row in array:
        crc = _core.crc32c(np.ascontiguousarray(np.ma.getdata(row)).view(np.uint8).data, crc)
        if isinstance(array, np.ma.MaskedArray):
            crc = _core.crc32c(np.ma.getmaskarray(row).view(np.uint8).data, crc)
    return f"{array.dtype}{array.shape}:{crc:08x}"


def sample_stamp(array: Any, shape: tuple[int, ...]) -> str:
    """Return text about three small pieces of a lazy array: its first, middle and last pixels.

    A whole array may take hours to compute, so a change elsewhere is not seen.

    Args:
        array: (height, width) or (depth, height, width); sliced three times.
        shape: Its shape.

    Returns:
        Dtype, shape and digest of the pieces, each of one step and at most 32 x 32 pixels.
    """
    crc = 0
    for part in range(3):
        steps = [part * (length - 1) // 2 for length in shape[:-2]]
        starts = [part * max(length - _SAMPLE, 0) // 2 for length in shape[-2:]]
        key = (*steps, *(slice(start, start + _SAMPLE) for start in starts))
        piece = np.ascontiguousarray(array[key])
        crc = zlib.crc32(piece.view(np.uint8).data, crc)
    return f"{shape}:{crc:08x}"
