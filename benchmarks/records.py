"""Records: verify, count, random access and memory, against limits and peers in one run.

Run: python -m benchmarks.records [--small] [--peers] [--rounds N] [--folder F]

Tasks that are compared run in turn, on one core, all files in the page cache; medians count. The
peer for random access is a script of `os.pread` and protobuf; with --peers the package `tfrecord`
iterates too, in an environment of its own.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import tfrio
from benchmarks.peers import setup
from tfrio import _core
from tfrio.examples.reshard import merge
from tfrio.examples.writer import Writer
from tfrio.records.check import check_file
from tfrio.records.counting import count
from tfrio.records.index import build_index
from tfrio.records.sidecar import save_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Rates = dict[str, float]

ITERATE = """
import sys, time
from tfrecord.reader import tfrecord_iterator
begin = time.perf_counter()
records = sum(1 for _ in tfrecord_iterator(sys.argv[1]))
print(records / (time.perf_counter() - begin))
"""

# Peak memory of one call in a process of its own, less what was there before it, in MB.
PEAK = """
import numpy
from pathlib import Path
from tfrio.records.verify import verify
from tfrio.records.writer import RecordWriter
def peak():  # ru_maxrss would include what the parent had before exec
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
before = peak()
{call}
print(peak() - before)
"""


def timed(action: Callable[[], Any]) -> float:
    gc.collect()
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def in_turn(tasks: dict[str, Callable[[], Any]], rounds: int) -> Rates:
    """Run tasks in turn; return median seconds of each."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            seconds[name].append(timed(task))
    return {name: statistics.median(values) for name, values in seconds.items()}


def report(what: str, ratio: float, wanted: float, detail: str = "") -> bool:
    good = ratio >= wanted
    mark = "ok  " if good else "LESS"
    print(f"{mark} {what}: {ratio:.2f} (wanted {wanted:g}) {detail}", flush=True)
    return good


def write_patches(path: Path, nbytes: int) -> None:
    """Write records of 256 x 256 float32 values, about ``nbytes`` in all."""
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        for _ in range(nbytes // (64 * 256 * 256 * 4)):
            patches = rng.random((64, 256, 256), np.float32)
            file.write(_core.frame([patch.tobytes() for patch in patches]))


def write_scalars(path: Path, rows: int) -> None:
    """Write Examples of 8 scalars."""
    rng = np.random.default_rng(1)
    with Writer(path) as writer:
        for begin in range(0, rows, 100_000):
            n = min(100_000, rows - begin)
            columns = {f"f{k}": rng.random(n, np.float32) for k in range(7)}
            writer.write_batch({"id": np.arange(begin, begin + n), **columns})


def verify_and_count(folder: Path, *, small: bool, rounds: int) -> None:
    path = folder / "patches.tfrecord"
    write_patches(path, (1 << 30) // (5 if small else 1))
    source = np.fromfile(path, np.uint8)
    target = np.ones_like(source)
    window = np.ones(1 << 20, np.uint8)

    def copy_by_window() -> None:
        for begin in range(0, len(source) - len(window) + 1, len(window)):
            window[:] = source[begin : begin + len(window)]

    seconds = in_turn(
        {
            "memcpy": lambda: np.copyto(target, source),
            "memcpy to 1 MiB": copy_by_window,
            "verify": lambda: check_file(path, threads=1),
            "count": lambda: count(path, verify=True, threads=1),
        },
        rounds,
    )
    speed = {name: len(source) / s / 1e9 for name, s in seconds.items()}
    detail = ", ".join(f"{name} {value:.1f} GB/s" for name, value in speed.items())
    print(f"     {detail}")
    for limit in ("memcpy", "memcpy to 1 MiB"):
        report(f"verify patches / {limit}", speed["verify"] / speed[limit], 0.5)
        report(f"count patches, both CRCs / {limit}", speed["count"] / speed[limit], 0.5)
    path.unlink()


def small_records(folder: Path, rows: int, *, peers: bool, rounds: int) -> None:
    path = folder / "scalars.tfrecord"
    seconds = in_turn({"verify": lambda: check_file(path, threads=1)}, rounds)["verify"]
    print(f"     verify {rows:,} small records: {rows / seconds / 1e6:.1f} million/s")
    if not peers or not setup.install("tfrecord"):
        print("     the package tfrecord is left out (--peers)")
        return
    command = [str(setup.python_of("tfrecord")), "-c", ITERATE, str(path)]
    rates = [
        float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(rounds)
    ]
    theirs = statistics.median(rates)
    report("verify small records / tfrecord iterating", rows / seconds / theirs, 15)


def example_class() -> Any:
    """Return protobuf's class for tf.train.Example, from a descriptor made here."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="bench.proto", package="bench", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, kind in (("Bytes", kinds.TYPE_BYTES), ("Float", kinds.TYPE_FLOAT),
                       ("Int64", kinds.TYPE_INT64)):  # fmt: skip
        message = file.message_type.add(name=f"{name}List")
        message.field.add(name="value", number=1, type=kind, label=kinds.LABEL_REPEATED)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, name in enumerate(("Bytes", "Float", "Int64"), 1):
        feature.field.add(
            name=f"{name.lower()}_list", number=number, type=kinds.TYPE_MESSAGE, oneof_index=0,
            type_name=f".bench.{name}List", label=kinds.LABEL_OPTIONAL,
        )  # fmt: skip
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=kinds.TYPE_MESSAGE, type_name=".bench.Feature",
                    label=kinds.LABEL_OPTIONAL)  # fmt: skip
    features.field.add(name="feature", number=1, type=kinds.TYPE_MESSAGE,
                       type_name=".bench.Features.FeatureEntry",
                       label=kinds.LABEL_REPEATED)  # fmt: skip
    example = file.message_type.add(name="Example")
    example.field.add(name="features", number=1, type=kinds.TYPE_MESSAGE,
                      type_name=".bench.Features", label=kinds.LABEL_OPTIONAL)  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("bench.Example"))


def consume(action: Callable[[Any], Any], items: Iterable[Any]) -> None:
    for item in items:
        action(item)


def random_access(folder: Path, rows: int, rounds: int) -> None:
    path = folder / "scalars.tfrecord"
    index = build_index(path, verify=False)
    save_index(index, path)
    assert index.offsets is not None
    offsets = [*index.offsets.tolist(), index.data_size]
    message = example_class()
    wanted = random.Random(0).sample(range(rows), min(20_000, rows // 10))
    handle = os.open(path, os.O_RDONLY)

    def by_protobuf(i: int) -> dict[str, Any]:
        frame = os.pread(handle, offsets[i + 1] - offsets[i], offsets[i])
        found = message.FromString(frame[12:-4]).features.feature
        return {name: (f.float_list.value or f.int64_list.value)[0] for name, f in found.items()}

    rows_of, records = tfrio.open(path), tfrio.RecordSequence(path)
    batches = [wanted[i : i + 1000] for i in range(0, len(wanted), 1000)]
    tasks: dict[str, Callable[[], Any]] = {
        "peer": lambda: consume(by_protobuf, wanted),
        "rows": lambda: consume(rows_of.__getitem__, wanted),
        "payloads": lambda: consume(records.__getitem__, wanted),
        "columns by batch": lambda: consume(rows_of.batch, batches),
        "payloads by batch": lambda: consume(records.__getitem__, batches),
    }
    seconds = in_turn(tasks, rounds)
    rate = {name: len(wanted) / s for name, s in seconds.items()}
    print("     " + ", ".join(f"{name} {value:,.0f}/s" for name, value in rate.items()))
    for name in ("rows", "payloads"):
        report(f"random {name} one by one / pread + protobuf", rate[name] / rate["peer"], 3)
    for name in ("columns by batch", "payloads by batch"):
        report(f"random {name} / pread + protobuf", rate[name] / rate["peer"], 30)
    opening = timed(lambda: tfrio.open(path)) * 1000
    print(f"     opening {rows:,} records with an index: {opening:.1f} ms")
    os.close(handle)


def memory(folder: Path, *, small: bool) -> None:
    """Print the peak memory of large jobs; each makes its own file, removed at once."""
    gigabytes = 1 if small else 4
    big = folder / "big.tfrecord"
    zipped = folder / "big.tfrecord.gz"
    write_patches(big, gigabytes << 30)
    merge(big, zipped)
    rows = 200_000 if small else 2_000_000
    jobs = {
        f"verify {gigabytes} GB plain": (f"assert verify({str(big)!r}).ok", 100),
        f"verify {gigabytes} GB gzip": (f"assert verify({str(zipped)!r}).ok", 100),
        f"write {rows:,} records of 1 kB": (
            f"with RecordWriter({str(folder / 'out')!r}) as w:\n"
            f"    for i in range({rows}): w.write(b'%01000d' % i)",
            50,
        ),
    }
    for name, (call, limit) in jobs.items():
        command = [sys.executable, "-c", PEAK.format(call=call)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        grown = float(done.stdout)
        mark = "ok  " if grown < limit else "MORE"
        print(f"{mark} {name}: {grown:.0f} MB more (wanted below {limit})", flush=True)
    for path in (big, zipped, folder / "out"):
        path.unlink()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a fifth of the sizes")
    parser.add_argument("--peers", action="store_true", help="also the package tfrecord")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where files go; a temporary folder by default")
    asked = parser.parse_args(arguments)
    print(f"CRC32C: {_core.crc32c_backend()}")
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        folder = Path(name)
        rows = 200_000 if asked.small else 1_000_000
        verify_and_count(folder, small=asked.small, rounds=asked.rounds)
        write_scalars(folder / "scalars.tfrecord", rows)
        small_records(folder, rows, peers=asked.peers, rounds=asked.rounds)
        random_access(folder, rows, asked.rounds)
        memory(folder, small=asked.small)


if __name__ == "__main__":
    main()
