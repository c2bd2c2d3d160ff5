"""What no reader can beat: one copy, one checksum pass, one bare inflation of the same bytes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from isal import igzip_lib

from tfrio import _core
from tfrio.compression.source import keep_freed_memory

if TYPE_CHECKING:
    from benchmarks.worker import Job

# A window that stays in the nearest cache that readers use, as they do.
WINDOW = 1 << 20
# Compressed bytes given to ISA-L at once, and most it gives back: the quickest of many tried.
FEED, PIECE = 256 << 10, 1 << 20


@cache
def _data(path: str) -> np.ndarray:
    return np.frombuffer(Path(path).read_bytes(), np.uint8)


@cache
def _target(size: int) -> np.ndarray:
    return np.ones(size, np.uint8)


def memcpy(job: Job) -> int:
    source = _data(job.path)
    np.copyto(_target(len(source)), source)
    return 1


def checksum(job: Job) -> int:
    _core.crc32c(_data(job.path))
    return 1


def inflate(job: Job) -> int:
    """Inflate in the portions ISA-L does best with; nothing is kept, and memory is used again."""
    keep_freed_memory(2 * PIECE)
    stream = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    buffer = memoryview(bytearray(FEED))
    with Path(job.path).open("rb", buffering=0) as file:
        while not stream.eof:
            fed = buffer[: file.readinto(buffer)] if stream.needs_input else b""
            stream.decompress(fed, PIECE)
    return 1


def write_file(job: Job) -> int:
    """Write the same bytes into the page cache."""
    with Path(job.out).open("wb", buffering=0) as file:
        data = memoryview(_data(job.path))
        file.writelines(data[begin : begin + WINDOW] for begin in range(0, len(data), WINDOW))
    return 1


TASKS = {"memcpy": memcpy, "checksum": checksum, "inflate": inflate, "write file": write_file}
