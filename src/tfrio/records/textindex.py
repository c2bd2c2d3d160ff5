"""The text index of tfrecord2idx and NVIDIA DALI: one line ``offset size`` a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfrio.errors import IndexFileError, UsageError
from tfrio.records.fit import wrong_record
from tfrio.records.index import RecordIndex
from tfrio.storage import atomic_write, local_path, size_of
from tfrio.types import path_text

if TYPE_CHECKING:
    from pathlib import Path

    from tfrio.types import PathLike

__all__ = ["read_text_index", "write_text_index"]

_FRAME = 16


def write_text_index(index: RecordIndex, out: PathLike) -> Path:
    """Write an index as text, atomically.

    Args:
        index: The index of a plain file.
        out: Where to.

    Returns:
        Where it was written.

    Raises:
        UsageError: The file is compressed: readers of text indexes seek in the stored bytes.
    """
    if index.compression != "none" or index.offsets is None:
        raise UsageError(
            f"a text index holds offsets into a plain file, and this one is {index.compression}: "
            "decompress it first, or use tfrio's own index, which seeks in compressed files"
        )
    ends = np.append(index.offsets[1:], index.data_size)
    pairs = zip(index.offsets.tolist(), (ends - index.offsets).tolist(), strict=True)
    with atomic_write(out) as file:
        file.writelines(f"{offset} {size}\n".encode() for offset, size in pairs)
    return local_path(out)


def _parse(place: PathLike) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    rows = []
    for number, line in enumerate(local_path(place).read_text("ascii").splitlines(), 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        try:
            rows.append((int(fields[0]), int(fields[1])))
        except (ValueError, IndexError):
            raise IndexFileError(
                f"{path_text(place)}, line {number}: expected 'offset size', found {line!r}",
                path=path_text(place),
            ) from None
    return np.array(rows, np.int64).reshape(-1, 2)


def read_text_index(path: PathLike, place: PathLike) -> RecordIndex:
    """Read a text index and check that it can belong to its data.

    Args:
        path: The plain data file.
        place: The text index.

    Returns:
        The index.

    Raises:
        IndexFileError: Not a text index, or its entries do not fit the file.
    """
    name = path_text(place)
    table = _parse(place)
    offsets, sizes = table[:, 0], table[:, 1]
    ends = offsets + sizes
    size = size_of(path_text(path))
    if (sizes < _FRAME).any() or (offsets < 0).any() or (offsets[1:] < ends[:-1]).any():
        raise IndexFileError(f"{name}: entries overlap or are shorter than a record", path=name)
    end = int(ends[-1]) if len(ends) else 0
    if size is not None and end > size:
        raise IndexFileError(
            f"{name}: its last record ends at {end}, but {path_text(path)} has {size} bytes: it "
            "was made for other data. Make it again with `tfrio index`",
            path=name,
        )
    if size is not None and end < size:
        raise IndexFileError(
            f"{name}: its last record ends at {end}, but {path_text(path)} has {size} bytes: the "
            "records behind would be missing. Make it again with `tfrio index`",
            path=name,
        )
    wrong = wrong_record(path, offsets, ends)
    if wrong is not None:
        raise IndexFileError(
            f"{name}: no record of {path_text(path)} lies at byte {wrong} as it says: it was made "
            "for other data, or that is compressed or damaged. Make it again with `tfrio index`",
            path=name,
        )
    return RecordIndex("none", len(offsets), end, np.ascontiguousarray(offsets))
