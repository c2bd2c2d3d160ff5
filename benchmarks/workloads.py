"""The files that benchmarks read, made from fixed seeds."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfrio import _core
from tfrio.examples.columns import BytesColumn, Ragged
from tfrio.examples.writer import Writer

if TYPE_CHECKING:
    from pathlib import Path

PATCH = (256, 256, 8)


@dataclass(frozen=True)
class Workload:
    """One file of records.

    Attributes:
        path: Where it lies.
        records: Number of records.
        size: Bytes uncompressed.
    """

    path: str
    records: int
    size: int


def make(folder: Path, *, small: bool) -> dict[str, Workload]:
    """Make all files in a folder.

    Args:
        folder: Where to.
        small: A fifth of the size.
    """
    share = 5 if small else 1
    makers = {
        "scalars": (_scalars, 1_000_000 // share),
        "shuffled": (_shuffled, 1_000_000 // share),
        "patches": (_patches, 200 // share),
        "whole numbers": (_whole_numbers, 100 // share),
        "bytes": (_bytes, 20_000 // share),
        "sequences": (_sequences, 50_000 // share),
    }
    made = {}
    for name, (maker, records) in makers.items():
        path = folder / f"{name}.tfrecord"
        maker(path, records)
        size = path.stat().st_size
        made[name] = Workload(str(path), records, size)
        if name in ("scalars", "patches", "whole numbers"):
            packed = folder / f"{name}.tfrecord.gz"
            packed.write_bytes(gzip.compress(path.read_bytes(), 6, mtime=0))
            made[f"{name} gzip"] = Workload(str(packed), records, size)
        if name in ("scalars", "patches"):
            blocked = folder / f"{name}-blocked.tfrecord.gz"
            with Writer(blocked) as writer:
                for payload in _payloads(path):
                    writer.write_payload(payload)
            made[f"{name} blocked"] = Workload(str(blocked), records, size)
    return made


def scalar_columns(records: int) -> dict[str, np.ndarray]:
    """Return eight float columns."""
    random = np.random.default_rng(1)
    return {f"f{k}": random.random(records, dtype=np.float32) for k in range(8)}


def patch_column(records: int) -> np.ndarray:
    """Return patches as an optical sensor gives them: smooth ground, noise, 1/10000 steps."""
    random = np.random.default_rng(2)
    ramp = np.sin(np.arange(PATCH[0]) / 40)[:, None, None] * 900 + 1500
    noise = random.normal(0, 60, (min(records, 16), *PATCH))
    distinct = ((ramp + noise).astype(np.uint16) / np.float32(10_000)).astype(np.float32)
    return distinct[np.arange(records) % len(distinct)]


def byte_columns(records: int) -> dict[str, object]:
    """Return 30 KB of bytes, a label and an identifier."""
    random = np.random.default_rng(3)
    block = random.integers(0, 256, 30_000 * 64, dtype=np.uint8)
    data = np.tile(block, -(-records // 64))[: records * 30_000]
    offsets = np.arange(records + 1, dtype=np.int64) * 30_000
    return {
        "image": BytesColumn(data, offsets),
        "label": random.integers(0, 1000, records),
        "id": BytesColumn.of([b"sample-%07d" % i for i in range(records)]),
    }


def sequence_columns(records: int) -> dict[str, object]:
    """Return 1 to 50 steps of a token and four floats, and a label in the context."""
    random = np.random.default_rng(4)
    steps = random.integers(1, 51, records)
    rows = np.concatenate([[0], np.cumsum(steps)])
    total = int(rows[-1])
    each = np.arange(total + 1, dtype=np.int64)
    return {
        "label": random.integers(0, 10, records),
        "token": Ragged(Ragged(random.integers(0, 30_000, total), each), rows),
        "state": Ragged(Ragged(random.random(4 * total, dtype=np.float32), 4 * each), rows),
    }


def _scalars(path: Path, records: int) -> None:
    with Writer(path) as writer:
        writer.write_batch(scalar_columns(records))


def _shuffled(path: Path, records: int) -> None:
    """Write the same scalars with the features of each record in another order."""
    values = np.stack(list(scalar_columns(records).values()), axis=1)
    head = b"\x0a\x0e\x0a\x02f0\x12\x08\x12\x06\x0a\x04"
    entries = np.zeros((records, 8, len(head) + 4), np.uint8)
    entries[:, :, : len(head)] = np.frombuffer(head, np.uint8)
    entries[:, :, 5] += np.arange(8, dtype=np.uint8)
    entries[:, :, len(head) :] = values.view(np.uint8).reshape(records, 8, 4)
    order = np.random.default_rng(5).random((records, 8)).argsort(axis=1)
    mixed = np.take_along_axis(entries, order[:, :, None], axis=1).reshape(records, -1)
    body = mixed.shape[1]
    payloads = np.empty((records, body + 3), np.uint8)
    payloads[:, :3] = (0x0A, body & 127 | 128, body >> 7)
    payloads[:, 3:] = mixed
    with path.open("wb") as file:
        for begin in range(0, records, 50_000):
            file.write(_core.frame([row.tobytes() for row in payloads[begin : begin + 50_000]]))


def _patches(path: Path, records: int, scale: int = 1) -> None:
    with Writer(path, sidecar=False) as writer:
        for patch in patch_column(records):
            writer.write({"patch": np.round(patch * scale) if scale > 1 else patch})


def _whole_numbers(path: Path, records: int) -> None:
    """Write the same patches as the sensor's digital numbers, which compress otherwise."""
    _patches(path, records, 10_000)


def _bytes(path: Path, records: int) -> None:
    with Writer(path) as writer:
        writer.write_batch(byte_columns(records))


def _sequences(path: Path, records: int) -> None:
    with Writer(path, sequence=True) as writer:
        writer.write_batch(sequence_columns(records))


def _payloads(path: Path) -> list[bytes]:
    data = path.read_bytes()
    return [data[a : a + n] for a, n in _core.scan(data, final=True).spans.tolist()]
