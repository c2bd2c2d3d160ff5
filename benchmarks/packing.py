"""Gzip: reading against bare inflation, blocks on two threads, writing against zlib, in one run.

Run: python -m benchmarks.packing [--small] [--rounds N] [--folder F]

Tasks of one thread run in turn on one core, and are compared by processor time, which other work
on the machine disturbs least; tasks of two threads are compared by the clock. Medians count.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import statistics
import tempfile
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from deflate import gzip_compress, gzip_decompress
from isal import igzip_lib

from benchmarks.records import report
from tfrio import _core
from tfrio.compression import DEFAULT_LEVEL, member_at, open_chunks
from tfrio.records.check import check_file
from tfrio.records.writer import RecordWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FED, PIECE = 256 << 10, 1 << 20
LEVELS = (DEFAULT_LEVEL, 2, 6)


def in_turn(
    tasks: dict[str, Callable[[], Any]], rounds: int, clock: Callable[[], float]
) -> dict[str, float]:
    """Run tasks in turn; return median seconds of each."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            gc.collect()
            begin = clock()
            task()
            seconds[name].append(clock() - begin)
    return {name: statistics.median(values) for name, values in seconds.items()}


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Stay on one core, where the system lets us."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def patches(count: int) -> list[bytes]:
    """Return patches of 256 x 256 float32 values that vary like reflectances with noise."""
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[0:256, 0:256]
    found = []
    for i in range(count):
        smooth = 2000 + 500 * np.sin(columns / 37 + i) + 400 * np.cos(rows / 23 + i * 0.7)
        noisy = np.round(smooth + rng.normal(0, 60, smooth.shape))
        found.append(noisy.astype(np.float32).tobytes())
    return found


def tables(count: int) -> list[bytes]:
    """Return payloads of eight named floats of three decimals."""
    rng = np.random.default_rng(1)
    values = np.round(rng.normal(size=(count, 8)), 3).astype(np.float32)
    names = [b"\x0a\x0c\x0a\x02b%d\x12\x06" % k for k in range(8)]
    return [
        b"".join(name + value.tobytes() for name, value in zip(names, row, strict=True))
        for row in values
    ]


def inflate(data: bytes) -> None:
    """Inflate a gzip file with ISA-L and nothing else, in the portions it does best with."""
    stream = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    view = memoryview(data)
    while not stream.eof:
        fed = view[:FED] if stream.needs_input else b""
        view = view[len(fed) :]
        stream.decompress(fed, PIECE)


def inflate_blocks(data: bytes) -> None:
    """Inflate a blocked gzip file with libdeflate and nothing else."""
    view = memoryview(data)
    while view:
        member = member_at(bytes(view[:64]))
        assert member
        gzip_decompress(view[: member.csize], member.usize)
        view = view[member.csize :]


def drain(path: Path) -> None:
    """Read all uncompressed bytes, through a window as records are read."""
    with contextlib.closing(open_chunks(path, threads=1)) as source:
        window = memoryview(bytearray(1 << 20))
        while source.readinto(window):
            pass


def reading(name: str, raw: bytes, blocked: Path, rounds: int) -> None:
    ordinary = blocked.with_name("ordinary.tfrecord.gz")
    data = bytes(gzip_compress(raw, DEFAULT_LEVEL))
    ordinary.write_bytes(data)
    blocks = blocked.read_bytes()
    with one_core():
        seconds = in_turn(
            {
                "inflate": lambda: inflate(data),
                "inflate blocks": lambda: inflate_blocks(blocks),
                "bytes": lambda: drain(ordinary),
                "bytes of blocks": lambda: drain(blocked),
                "ordinary": lambda: check_file(ordinary, threads=1),
                "blocked": lambda: check_file(blocked, threads=1),
            },
            rounds,
            time.process_time,
        )
    for limit in ("inflate", "inflate blocks"):
        print(f"     bare {limit} of {name}: {len(raw) / seconds[limit] / 1e6:.0f} MB/s")
    report(f"read {name} / bare inflation", seconds["inflate"] / seconds["bytes"], 0.9)
    ratio = seconds["inflate blocks"] / seconds["bytes of blocks"]
    report(f"read blocks of {name} / bare inflation of blocks", ratio, 0.85)
    for kind in ("ordinary", "blocked"):
        ratio = seconds["inflate"] / seconds[kind]
        report(f"read {name} and check every record, {kind} / bare inflation", ratio, 0.8)
    clock = in_turn(
        {
            "ordinary": lambda: check_file(ordinary, threads=1),
            "two": lambda: check_file(blocked, threads=2),
            "ahead": lambda: check_file(ordinary, threads=2),
        },
        rounds,
        time.perf_counter,
    )
    report(f"{name}, blocked on 2 threads / ordinary", clock["ordinary"] / clock["two"], 1.6)
    report(f"{name}, ordinary read ahead / not", clock["ordinary"] / clock["ahead"], 0.9)


def writing(name: str, raw: bytes, ends: np.ndarray, path: Path, rounds: int) -> None:
    def ours(level: int) -> None:
        with RecordWriter(path, level=level, threads=1) as writer:
            writer.write_framed(raw, ends)

    def zlib_6() -> None:
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        path.with_suffix(".z6").write_bytes(packer.compress(raw) + packer.flush())

    tasks = {"zlib": zlib_6, **{str(level): lambda level=level: ours(level) for level in LEVELS}}
    sizes = {}
    with one_core():
        seconds = in_turn(tasks, rounds, time.process_time)
    zlib_size = path.with_suffix(".z6").stat().st_size
    for level in LEVELS:
        ours(level)
        sizes[level] = path.stat().st_size / zlib_size
        faster = seconds["zlib"] / seconds[str(level)]
        detail = f"{sizes[level]:.3f} of its size"
        wanted = 5 if level == DEFAULT_LEVEL else 0
        report(f"write {name} at level {level} / zlib 6", faster, wanted, detail)
    report(f"zlib 6 size / {name} at the default level", 1 / sizes[DEFAULT_LEVEL], 1 / 1.15)
    report(f"zlib 6 size / {name} at level 6", 1 / sizes[6], 0.99)
    ours(DEFAULT_LEVEL)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a fifth of the sizes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where files go; a temporary folder by default")
    asked = parser.parse_args(arguments)
    share = 5 if asked.small else 1
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        path = Path(name) / "blocked.tfrecord.gz"
        for kind, payloads in (
            ("patches", patches(400 // share)),
            ("tables", tables(2_000_000 // share)),
        ):
            raw = _core.frame(payloads)
            ends = np.cumsum([len(payload) + 16 for payload in payloads])
            writing(kind, raw, ends, path, max(asked.rounds // 2, 1))
            reading(kind, raw, path, asked.rounds)


if __name__ == "__main__":
    main()
