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
from tfrio.errors import UsageError
from tfrio.records.index import build_index
from tfrio.records.reader import RecordStream
from tfrio.records.textindex import write_text_index
from tfrio.types import path_text

if TYPE_CHECKING:
    from tfrio.types import PathLike

__all__ = ["create_index", "create_indices", "read_offsets"]

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
        status = Path(os.fsdecode(index_path)).stat()
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


def create_index(tfrecord_file: PathLike, index_file: PathLike) -> None:
    """Write the text index of a plain record file.

    Every record header is checked; payloads are not read for it. The index appears only when it
    is complete.

    Args:
        tfrecord_file: The record file.
        index_file: Where the index goes; an existing one is replaced.

    Raises:
        CorruptRecordError: The file is cut, or a header is damaged.
        NotTFRecordError: It is no record file.
        UsageError: It is compressed.
        FileNotFoundError: No such file.
    """
    with RecordStream(tfrecord_file, threads=1) as stream:
        kind = stream.compression
    if kind != "none":  # before a walk over all of it
        raise UsageError(
            f"{path_text(tfrecord_file)} is {kind}-compressed: a text index gives offsets in a "
            "plain file. Decompress it first, or read it without an index"
        )
    write_text_index(build_index(tfrecord_file, compression="none", verify=False), index_file)


def create_indices(tfrecord_dir: PathLike, index_dir: PathLike | None = None) -> None:
    """Write the text index of each ``*.tfrecord`` file of a folder.

    Args:
        tfrecord_dir: The folder; sub-folders and hidden files are left out.
        index_dir: Where the indexes go, ``NAME.tfindex`` for ``NAME.tfrecord``; made if it does
            not exist. None: beside the files.

    Raises:
        TfrioError: As for ``create_index``; indexes of files before it are there.
        NotADirectoryError: ``tfrecord_dir`` is no folder.
    """
    folder = Path(tfrecord_dir)
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder")
    target = folder if index_dir is None else Path(index_dir)
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.iterdir()):
        if path.suffix == ".tfrecord" and not path.name.startswith(".") and path.is_file():
            create_index(path, target / f"{path.stem}.tfindex")
