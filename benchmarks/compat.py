"""Time `tfrio.compat` against the published package `tfrecord`, side by side in one run.

Run: python benchmarks/compat.py --peer /tmp/peer/bin/python [--small] [--rounds 5]

The published package needs an environment of its own, for both own the import name:

    python -m venv /tmp/peer && /tmp/peer/bin/pip install tfrecord==1.14.6 torch==2.13.0

One process per package lives through the whole run; each task is done by the one, then by the
other, for several rounds, and the medians are compared. The peer checks no checksum, tfrio checks
all. Besides ratios the table gives the limit measured in the same run: one checksum pass.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

SCALARS = {f"f{k}": "float" for k in range(8)}
PATCH = (8, 256, 256)
# Task -> ratio promised.
TARGETS = {
    "read 8 scalars, described": 10.0,
    "read 8 scalars, all": 10.0,
    "DataLoader of 8 scalars": 3.0,
    "read patches": 1.5,
    "iterate small records": 2.0,
    "write 8 scalars": 10.0,
    "write patches": 10.0,
    "seeded shuffle of 8 scalars": 1.0,
    "read SequenceExamples": 1.0,
    "read 30 KB of bytes": 1.0,
}


def consume(items: Iterable[Any]) -> None:
    for _ in items:
        pass


class Tasks:
    """The same calls on either package, on files in one folder.

    Args:
        package: ``"tfrecord"`` or ``"tfrio.compat"``.
        folder: Where the files lie.
        scale: Share of the full sizes.
    """

    def __init__(self, package: str, folder: Path, scale: float) -> None:
        import importlib

        self.api: Any = importlib.import_module(package)
        self.dataset: Any = importlib.import_module(f"{package}.torch.dataset")
        self.folder = folder
        self.own = package.replace(".", "-")
        self.rows = int(100_000 * scale)
        self.small = int(1_000_000 * scale)
        self.patches = max(int(150 * scale), 20)
        self.images = int(5_000 * scale)
        self.sequences = int(10_000 * scale)

    def path(self, name: str) -> str:
        return str(self.folder / f"{name}.tfrecord")

    def write(self, name: str, rows: Iterable[tuple[Any, ...]]) -> None:
        writer = self.api.TFRecordWriter(self.path(name))
        for row in rows:
            writer.write(*row)
        writer.close()

    def prepare(self) -> None:
        """Write the input files."""
        rng = np.random.default_rng(0)
        scalars = rng.random((self.rows, 8)).tolist()
        self.write(
            "scalars",
            (({k: (v, "float") for k, v in zip(SCALARS, row, strict=True)},) for row in scalars),
        )
        self.write("small", (({"i": (k, "int")},) for k in range(self.small)))
        patch = rng.random(PATCH, np.float32).reshape(-1)
        self.write("patches", (({"p": (patch, "float")},) for _ in range(self.patches)))
        image = rng.bytes(30_000)
        self.write(
            "images",
            (({"image": (image, "byte"), "label": (k, "int")},) for k in range(self.images)),
        )
        steps = [[[k, k + 1] for k in range(n)] for n in (1, 10, 25, 50)]
        self.write(
            "sequences",
            (({"n": (k, "int")}, {"tokens": (steps[k % 4], "int")}) for k in range(self.sequences)),
        )

    def table(self) -> dict[str, tuple[Callable[[], None], int]]:
        """Return the tasks and how many records each handles."""
        load, dataset = self.api.tfrecord_loader, self.dataset.TFRecordDataset
        written = self.rows // 5
        rows = [{k: (float(i), "float") for k in SCALARS} for i in range(written)]
        patch = np.random.default_rng(0).random(PATCH[1:], np.float32).reshape(-1)

        def batches() -> None:
            from torch.utils.data import DataLoader

            consume(DataLoader(dataset(self.path("scalars"), None, SCALARS), batch_size=64))

        def shuffled() -> None:
            np.random.seed(0)  # noqa: NPY002
            consume(dataset(self.path("scalars"), None, SCALARS, shuffle_queue_size=1000))

        def sequences() -> None:
            path = self.path("sequences")
            consume(load(path, None, {"n": "int"}, sequence_description={"tokens": "int"}))

        def images() -> None:
            consume(load(self.path("images"), None, {"image": "byte", "label": "int"}))

        return {
            "read 8 scalars, described": (
                lambda: consume(load(self.path("scalars"), None, SCALARS)),
                self.rows,
            ),
            "read 8 scalars, all": (lambda: consume(load(self.path("scalars"), None)), self.rows),
            "DataLoader of 8 scalars": (batches, self.rows),
            "read patches": (
                lambda: consume(load(self.path("patches"), None, {"p": "float"})),
                self.patches,
            ),
            "iterate small records": (
                lambda: consume(self.api.tfrecord_iterator(self.path("small"))),
                self.small,
            ),
            "write 8 scalars": (
                lambda: self.write(f"out-{self.own}", ((row,) for row in rows)),
                written,
            ),
            "write patches": (
                lambda: self.write(
                    f"out-{self.own}", (({"p": (patch, "float")},) for _ in range(5))
                ),
                5,
            ),
            "seeded shuffle of 8 scalars": (shuffled, self.rows),
            "read SequenceExamples": (sequences, self.sequences),
            "read 30 KB of bytes": (images, self.images),
        }


def serve(package: str, folder: Path, scale: float) -> None:
    """Do the tasks named on standard input, a line each; answer with seconds and records."""
    tasks = Tasks(package, folder, scale)
    table = tasks.table()
    for line in sys.stdin:
        name = line.strip()
        if name == "prepare":
            tasks.prepare()
            print("0 0", flush=True)
            continue
        task, records = table[name]
        begin = time.perf_counter()
        task()
        print(time.perf_counter() - begin, records, flush=True)


class Side:
    """One package in a process of its own."""

    def __init__(self, python: str, package: str, folder: Path, scale: float) -> None:
        command = [python, __file__, "--serve", package, str(folder), str(scale)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, name: str) -> tuple[float, int]:
        """Have a task done; return seconds and records."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        seconds, records = self._process.stdout.readline().split()
        return float(seconds), int(records)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def crc_limit(path: Path) -> float:
    """Return GB/s of one pass over a file in memory with both checksums."""
    from tfrio import _core

    data = path.read_bytes()
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        _core.count(data, 0, verify_payload=True, final=True)
        best = min(best, time.perf_counter() - begin)
    return len(data) / best / 1e9


def main() -> None:
    """Measure, print a table, and write it as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="Python of an environment with tfrecord 1.14.6 and torch")
    parser.add_argument("--small", action="store_true", help="a tenth of the sizes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        package, folder, scale = options.serve
        serve(package, Path(folder), float(scale))
        return
    if not options.peer:
        parser.error("--peer is missing; --help tells how to make that environment")
    measure(options.peer, 0.1 if options.small else 1.0, options.rounds, options.json)


def measure(peer: str, scale: float, rounds: int, report: Path | None) -> None:
    """Run all tasks on both sides in turn."""
    figures = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = Side(sys.executable, "tfrio.compat", folder, scale)
        theirs = Side(peer, "tfrecord", folder, scale)
        ours.ask("prepare")
        print(f"{'task':30} {'tfrecord/s':>12} {'tfrio/s':>12} {'ratio':>7} {'promised':>8}")
        for task, target in TARGETS.items():
            runs = [(theirs.ask(task), ours.ask(task)) for _ in range(rounds + 1)][1:]
            records = runs[0][0][1]
            old = statistics.median(run[0][0] for run in runs)
            new = statistics.median(run[1][0] for run in runs)
            figures[task] = {"peer": records / old, "tfrio": records / new, "ratio": old / new}
            speeds = f"{records / old:12,.0f} {records / new:12,.0f}"
            print(f"{task:30} {speeds} {old / new:7.2f} {target:8}")
        rate = figures["read patches"]["tfrio"] * np.prod(PATCH) * 4 / 1e9
        limit = crc_limit(folder / "patches.tfrecord")
        print(f"patches: {rate:.1f} GB/s; one checksum pass over them: {limit:.1f} GB/s")
        ours.close()
        theirs.close()
    if report:
        report.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
