"""What the native core alone reaches, in memory, beside memcpy and CRC of the same bytes.

Run `python -m benchmarks.core [--small]`. Each figure is the median of interleaved rounds, with
both checksums checked. Times are the processor time of this process, so that a busy machine
disturbs less. `x memcpy` is the speed over a plain copy of the same bytes.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfrio import _core

Columns = list[tuple[Any, ...]]
Features = list[tuple[bytes, int, int, int]]


def fixed(values: np.ndarray, count: int = 1) -> tuple[Any, ...]:
    return (values, None, None, None, None, count)


@dataclass
class Case:
    """Framed records in memory, how to read them and what they were made from."""

    name: str
    data: np.ndarray
    records: int
    features: Features
    sequence: bool = False
    columns: Columns | None = None
    batch: int = 4096
    outputs: list[tuple[int, np.ndarray]] = field(default_factory=list)

    def decode(self) -> None:
        """Decode everything in batches, into the outputs where there are any."""
        decoder = _core.ExampleDecoder(self.features, sequence=self.sequence)
        at = 0
        while at < len(self.data):
            for i, array in self.outputs:
                decoder.set_output(i, array)
            feed = decoder.feed(self.data, at, self.batch)
            at += feed.consumed
            decoder.take()

    def encode(self) -> None:
        """Encode the columns, a batch at a time."""
        assert self.columns is not None
        encoder = _core.ExampleEncoder(
            [(n, k, p) for n, k, _, p in self.features], sequence=self.sequence
        )
        for first in range(0, self.records, self.batch):
            rows = min(self.batch, self.records - first)
            encoder.encode(rows, [part(column, first, rows) for column in self.columns])


def part(column: tuple[Any, ...], first: int, rows: int) -> tuple[Any, ...]:
    """Return rows of a column: its values are cut, its offsets too."""
    values, byte_offsets, value_offsets, steps, present, count = column
    if steps is not None:
        return (
            values,
            byte_offsets,
            value_offsets,
            steps[first : first + rows + 1],
            present,
            count,
        )
    if byte_offsets is not None:
        return (values, byte_offsets[first : first + rows + 1], None, None, present, count)
    return (values[first * count : (first + rows) * count], None, None, None, present, count)


def encoded(
    features: Features, rows: int, columns: Columns, *, sequence: bool = False
) -> np.ndarray:
    encoder = _core.ExampleEncoder([(n, k, p) for n, k, _, p in features], sequence=sequence)
    return encoder.encode(rows, columns).data


def scalars(records: int) -> Case:
    rng = np.random.default_rng(1)
    features = [(b"f%d" % i, 2, 1, 0) for i in range(8)]
    columns = [fixed(rng.random(records, np.float32)) for _ in features]
    data = encoded(features, records, columns)
    return Case("8 float scalars", data, records, features, columns=columns)


def shuffled(records: int) -> Case:
    rng = random.Random(2)
    entries = [
        b"\x0a\x0e\x0a\x02f%d\x12\x08\x12\x06\x0a\x04" % i + np.float32(i).tobytes()
        for i in range(8)
    ]
    forms = [b"\x0a\x80\x01" + b"".join(rng.sample(entries, 8)) for _ in range(5000)]
    data = np.frombuffer(_core.frame(rng.choices(forms, k=records)), np.uint8)
    features = [(b"f%d" % i, 2, 1, 0) for i in range(8)]
    return Case("8 float scalars, shuffled keys", data, records, features)


def integers(records: int) -> Case:
    rng = np.random.default_rng(3)
    features = [(b"i%d" % i, 3, 1, 0) for i in range(4)]
    columns = [fixed(rng.integers(0, 1_000_000, records)) for _ in features]
    data = encoded(features, records, columns)
    return Case("4 integers of 1 to 3 bytes", data, records, features, columns=columns)


def patches(records: int, *, reuse: bool) -> Case:
    rng = np.random.default_rng(4)
    features = [(b"B%d" % i, 2, 65536, 0) for i in range(8)]
    columns = [fixed(rng.random(records * 65536, np.float32), 65536) for _ in features]
    data = encoded(features, records, columns)
    outputs = [(i, np.zeros((16, 65536), np.float32)) for i in range(8)] if reuse else []
    name = "256 x 256 x 8 patches, " + ("into given arrays" if reuse else "arrays by the core")
    return Case(name, data, records, features, columns=columns, batch=16, outputs=outputs)


def images(records: int) -> Case:
    rng = np.random.default_rng(5)
    offsets = np.cumsum([0, *rng.integers(20_000, 40_000, records)])
    features = [(b"image", 1, 1, 0), (b"label", 3, 1, 0), (b"id", 3, 1, 0)]
    columns = [
        (rng.integers(0, 256, offsets[-1], np.uint8), offsets, None, None, None, 1),
        fixed(rng.integers(0, 1000, records)),
        fixed(np.arange(records)),
    ]
    data = encoded(features, records, columns)
    return Case("30 KB bytes, label, id", data, records, features, columns=columns, batch=256)


def sequences(records: int) -> Case:
    rng = np.random.default_rng(6)
    steps = np.cumsum([0, *rng.integers(1, 51, records)])
    total = int(steps[-1])
    features = [(b"id", 3, 1, 0), (b"token", 3, 1, 1), (b"state", 2, 4, 1)]
    columns = [
        fixed(np.arange(records)),
        (rng.integers(0, 1000, total), None, None, steps, None, 1),
        (rng.random(total * 4, np.float32), None, None, steps, None, 4),
    ]
    data = encoded(features, records, columns, sequence=True)
    return Case(
        "1 to 50 steps of 2 features", data, records, features, sequence=True, columns=columns
    )


def seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def measure(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median seconds of each work, all taken in turn."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(seconds(work))
    return {name: statistics.median(values) for name, values in times.items()}


def run(case: Case, rounds: int) -> None:
    """Measure one case and print its lines."""
    copy = np.zeros_like(case.data)
    works: dict[str, Callable[[], object]] = {
        "memcpy": lambda: np.copyto(copy, case.data),
        "crc32c": lambda: _core.crc32c(case.data),
        "count": lambda: _core.count(case.data),
        "decode": case.decode,
    }
    if case.columns is not None:
        works["encode"] = case.encode
    medians = measure(works, rounds)
    print(f"{case.name}: {case.records:,} records of {len(case.data) // case.records:,} bytes")
    for name, taken in medians.items():
        rate, speed = case.records / taken / 1e6, len(case.data) / taken / 1e9
        ratio = medians["memcpy"] / taken
        print(f"  {name:8} {rate:9.3f} M records/s {speed:7.2f} GB/s {ratio:7.2f} x memcpy")


def main(arguments: list[str] | None = None) -> None:
    """Measure all cases, one after the other, and print a block for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a fifth of the records, fewer rounds")
    small = parser.parse_args(arguments).small
    share, rounds = (5, 3) if small else (1, 9)
    print(f"CRC32C: {_core.crc32c_backend()}")
    run(scalars(500_000 // share), rounds)
    run(shuffled(200_000 // share), rounds)
    run(integers(500_000 // share), rounds)
    for reuse in (True, False):
        run(patches(160 // share, reuse=reuse), rounds)
    run(images(4000 // share), rounds)
    run(sequences(50_000 // share), rounds)


if __name__ == "__main__":
    main()
