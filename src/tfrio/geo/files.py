"""Read small side files whole."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tfrio import storage
from tfrio.errors import GeoError

if TYPE_CHECKING:
    from tfrio.types import PathLike

__all__ = ["read_small"]


def read_small(path: PathLike, *, limit: int) -> bytes:
    """Read a small file whole.

    Args:
        path: Local path or URL.
        limit: Bytes above which the file cannot be what is looked for.

    Returns:
        Its bytes.

    Raises:
        FileNotFoundError: There is no such file.
        GeoError: The file is larger than the limit.
    """
    data = bytearray()
    try:
        file = storage.open_read(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path}: no such file. Check the path") from error
    with contextlib.closing(file) as reader:
        block = memoryview(bytearray(1 << 16))
        while len(data) <= limit and (got := reader.readinto(block)):
            data += block[:got]
    if len(data) > limit:
        raise GeoError(
            f"{path}: too large for this kind of file (more than {limit:,} bytes). "
            "Give the JSON file that was written with the export",
            path=str(path),
        )
    return bytes(data)
