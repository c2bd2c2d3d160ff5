"""Time feeding a model: tfrio's datasets against tf.data and the package `tfrecord`, in one run.

Run: python benchmarks/datasets.py [--small] [--only bytes ...] [--rounds 5] [--soak]

The peers live in environments of their own (python benchmarks/peers/setup.py); one that is missing
is left out. One process a contender lives through the whole run. Each task is done by one
contender after the other, for several rounds; the medians are compared. tfrio checks every
checksum, as TensorFlow does; `tfrecord` checks none.

Tasks: 8 float scalars a record in batches of 256; patches of 8 bands of 256 x 256 floats in
batches of 8; 30 KB of bytes with a label in batches of 64. "0 workers" is one process (tfrio reads
ahead on a thread, tf.data on as many as it likes), "2 workers" two worker processes (tf.data: two
threads). The soak reads 20 epochs of 1,000 records of 200 kB with 4 workers and shuffling, and
prints the memory of all processes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BATCH = {"table": 256, "patches": 8, "bytes": 64}
FULL = {"table": 1_000_000, "patches": 200, "bytes": 10_000}
SMALL = {"table": 200_000, "patches": 60, "bytes": 3_000}
# Ratio promised against (tf.data, tfrecord), by workload and workers.
TARGETS = {
    ("table", 0): (10.0, 50.0),
    ("patches", 0): (1.7, 1.5),
    ("bytes", 0): (2.5, 3.0),
    ("table", 2): (2.0, 2.0),
    ("patches", 2): (2.0, 2.0),
    ("bytes", 2): (2.0, 2.0),
}
PATIENCE = 5.0  # seconds
BANDS = [f"b{k}" for k in range(8)]
SCALARS = [f"f{k}" for k in range(8)]


# --- contenders: each is given workload, path and workers, and reads everything once ---


class Tfrio:
    def prepare(self, workload: str, path: str, workers: int, **options: Any) -> Any:
        from tfrio.torch import TFRecordDataset

        data = TFRecordDataset(path, batch_size=BATCH[workload], seed=1, **options)
        return data.loader(num_workers=workers)


class Plain:
    """tfrio without a thread that reads ahead."""

    def prepare(self, workload: str, path: str, workers: int, **options: Any) -> Any:
        return Tfrio().prepare(workload, path, workers, threads=0, **options)


class TfData:
    def prepare(self, workload: str, path: str, workers: int) -> Any:
        import tensorflow as tf

        spec = {
            "table": {name: tf.io.FixedLenFeature([1], tf.float32) for name in SCALARS},
            "patches": {name: tf.io.FixedLenFeature([65536], tf.float32) for name in BANDS},
            "bytes": {
                "image": tf.io.FixedLenFeature([], tf.string),
                "label": tf.io.FixedLenFeature([1], tf.int64),
            },
        }[workload]
        data = tf.data.TFRecordDataset(path).batch(BATCH[workload])
        calls = workers or tf.data.AUTOTUNE
        data = data.map(lambda batch: tf.io.parse_example(batch, spec), num_parallel_calls=calls)
        return data.prefetch(tf.data.AUTOTUNE)


class Tfrecord:
    def prepare(self, workload: str, path: str, workers: int) -> Any:
        from tfrecord.tools.tfrecord2idx import create_index
        from tfrecord.torch.dataset import TFRecordDataset
        from torch.utils.data import DataLoader

        description = {
            "table": dict.fromkeys(SCALARS, "float"),
            "patches": dict.fromkeys(BANDS, "float"),
            "bytes": {"image": "byte", "label": "int"},
        }[workload]
        if not Path(path + ".idx").exists():
            create_index(path, path + ".idx")
        data = TFRecordDataset(path, path + ".idx", description)
        return DataLoader(data, batch_size=BATCH[workload], num_workers=workers)


CONTENDERS = {"tfrio": Tfrio, "tfrio, no thread": Plain, "tf.data": TfData, "tfrecord": Tfrecord}


def serve(name: str) -> None:
    """Do the tasks that come as lines of JSON; answer with seconds each."""
    contender = CONTENDERS[name]()
    ready: dict[str, Any] = {}
    for line in sys.stdin:
        task = json.loads(line)
        if line not in ready:
            ready[line] = contender.prepare(**task)
        begin = time.perf_counter()
        for _ in ready[line]:
            pass
        print(json.dumps(time.perf_counter() - begin), flush=True)


class Process:
    """A contender in its own process and environment."""

    def __init__(self, name: str) -> None:
        peer = {"tf.data": "tensorflow", "tfrecord": "tfrecord"}.get(name)
        python = sys.executable if peer is None else str(ROOT / ".bench" / peer / "bin" / "python")
        self.there = Path(python).exists()
        if self.there:
            self._process = subprocess.Popen(
                [python, __file__, "--serve", name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )

    def time(self, task: dict[str, Any]) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(task), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        return float(json.loads(answer)) if answer else float("nan")

    def close(self) -> None:
        if self.there:
            self._process.communicate()


# --- the run ---


def write(path: Path, count: int) -> None:
    """Write the records of the workload that the path is named after."""
    import numpy as np

    from tfrio import Writer

    random = np.random.default_rng(0)
    with Writer(path) as writer:
        if path.name == "table":
            writer.write_batch({name: random.random(count).astype(np.float32) for name in SCALARS})
        elif path.name == "patches":
            for _ in range(count):
                writer.write({name: random.random(65536).astype(np.float32) for name in BANDS})
        else:
            for number in range(count):
                writer.write({"image": random.bytes(30_000), "label": number})


def measure(
    folder: Path, workloads: list[str], rounds: int
) -> dict[tuple[str, int], dict[str, float]]:
    """Return the median seconds of each contender by workload and workers."""
    processes = {name: Process(name) for name in CONTENDERS}
    processes = {name: process for name, process in processes.items() if process.there}
    medians = {}
    for workload, workers in TARGETS:
        if workload not in workloads:
            continue
        task = {"workload": workload, "path": str(folder / workload), "workers": workers}
        names = [name for name in processes if not (workers and name == "tfrio, no thread")]
        times: dict[str, list[float]] = {name: [] for name in names}
        for turn in range(rounds + 1):
            for name in names:
                if max(times[name], default=0) > PATIENCE:
                    continue  # so slow that one round tells enough
                seconds = processes[name].time(task)
                if turn or seconds > PATIENCE:  # the first one is to warm up
                    times[name].append(seconds)
        medians[workload, workers] = {name: statistics.median(t) for name, t in times.items()}
    for workload in workloads:
        task = {"workload": workload, "path": str(folder / workload), "workers": 0}
        shuffled = [processes["tfrio"].time({**task, "shuffle": True}) for _ in range(rounds + 1)]
        medians[workload, 0]["tfrio, shuffled"] = statistics.median(shuffled[1:])
    for process in processes.values():
        process.close()
    return medians


def report(medians: dict[tuple[str, int], dict[str, float]], counts: dict[str, int]) -> None:
    print(f"{'task':<20}{'contender':<20}{'seconds':>9}{'records/s':>13}  tfrio is (promised)")
    for (workload, workers), times in medians.items():
        promised = dict(zip(("tf.data", "tfrecord"), TARGETS[workload, workers], strict=True))
        for name, seconds in times.items():
            ratio = seconds / times["tfrio"]
            note = f"{ratio:6.2f} x as fast" if name != "tfrio" else ""
            if name in promised:
                note += f" ({promised[name]:g})"
            task = f"{workload}, {workers} workers"
            print(
                f"{task:<20}{name:<20}{seconds:>9.3f}{counts[workload] / seconds:>13,.0f}  {note}"
            )
    for workload in {workload for workload, _ in medians}:
        alone, two = medians[workload, 0]["tfrio"], medians[workload, 2]["tfrio"]
        print(f"{workload}: one process is {two / alone:.2f} x as fast as two workers")


def memory_of_all() -> int:
    """Return the bytes of this process and its children; what they share is counted once."""
    total = 0
    for entry in Path("/proc").iterdir():
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if os.getpid() in (parent, int(entry.name)):
                rollup = (entry / "smaps_rollup").read_text().split("Pss:")[1]
                total += int(rollup.split()[0]) * 1024
        except (OSError, ValueError, IndexError):
            continue  # no process, or one that has ended
    return total


def soak(folder: Path) -> None:
    import numpy as np

    from tfrio import Writer
    from tfrio.torch import TFRecordDataset

    random = np.random.default_rng(0)
    with Writer(folder / "soak") as writer:
        for _ in range(1000):
            writer.write({"blob": random.bytes(200_000)})
    data = TFRecordDataset(folder / "soak", batch_size=8, shuffle=True, seed=1)
    loader = data.loader(num_workers=4, persistent_workers=True)
    sizes = []
    for _ in range(20):
        most = 0
        for number, _batch in enumerate(loader):
            if number % 25 == 0:
                most = max(most, memory_of_all())
        sizes.append(most)
    megabytes = [round(size / 1e6) for size in sizes]
    growth = max(sizes[2:]) / sizes[2] - 1
    print(f"memory by epoch, MB: {megabytes}")
    print(f"from epoch 3 on it grows by {100 * growth:.1f} % at most (promised 5 %)")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a fifth of the records")
    parser.add_argument("--only", nargs="+", choices=BATCH, default=list(BATCH), help="tasks to do")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--soak", action="store_true", help="the memory of 20 epochs instead")
    parser.add_argument("--serve", choices=CONTENDERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
        return
    with tempfile.TemporaryDirectory(prefix="tfrio-bench-") as name:
        folder = Path(name)
        if arguments.soak:
            soak(folder)
            return
        counts = SMALL if arguments.small else FULL
        for workload in arguments.only:
            write(folder / workload, counts[workload])
        report(measure(folder, arguments.only, arguments.rounds), counts)


if __name__ == "__main__":
    main()
