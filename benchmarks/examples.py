"""Examples to columns and back: tfrio against limits and peers, interleaved in one run.

Run: python -m benchmarks.examples [--small] [--peers] [--rounds N] [--folder F] [--json FILE]

Every participant is one process that lives through the run, on one core. In each round a task is
done by each participant in turn; medians are compared, as records a second. Slow peers do part of a
file. All files lie in the page cache, and nobody waits for the disk: no peer does, nor does tfrio
unless asked to (fsync). In a folder on a disk the kernel's own work on it counts as that of whoever
writes, so compare writing in a memory-backed one. Seconds are those that the processor worked, so
that other work on the machine counts little; tasks of two threads go by the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import workloads
from benchmarks.peers import setup
from benchmarks.worker import Job

ROOT = Path(__file__).resolve().parent.parent

# Task -> its file, and the figure wanted: participant (or limit) -> least ratio.
TASKS: dict[str, tuple[str, dict[str, float]]] = {
    "read scalars": ("scalars", {"tensorflow": 30}),
    "read shuffled": ("shuffled", {"tensorflow": 8}),
    "read scalars gzip": ("scalars gzip", {"tensorflow": 8, "inflate": 0.85}),
    "read scalars gzip, by the clock": ("scalars gzip", {}),
    "read scalars blocked, 2 threads": (
        "scalars blocked",
        {"read scalars gzip, by the clock": 1.6},
    ),
    "read rows": ("scalars", {"400,000 rows/s": 1}),
    "read rows, no schema": ("scalars", {"400,000 rows/s": 1}),
    "read patches": ("patches", {"tensorflow": 3, "tfrecord": 1.6}),
    "read patches, fresh arrays": ("patches", {}),
    "read patches gzip": ("patches gzip", {"inflate": 0.85, "fastest peer": 1.5}),
    "read whole numbers gzip": ("whole numbers gzip", {"inflate": 0.85, "fastest peer": 1.5}),
    "read patches gzip, by the clock": ("patches gzip", {}),
    "read patches blocked, 2 threads": (
        "patches blocked",
        {"read patches gzip, by the clock": 1.6},
    ),
    "read patches, by the clock": ("patches", {}),
    "read patches, 2 threads": ("patches", {}),
    "read bytes": ("bytes", {"tensorflow": 4, "fastest peer": 1.5}),
    "read sequences": ("sequences", {"tensorflow": 7}),
    "write scalars": ("scalars", {"fastest peer": 10}),
    "write rows": ("scalars", {}),
    "write patches": ("patches", {"fastest peer": 2.5}),
    "write bytes": ("bytes", {"fastest peer": 1.5}),
    "write sequences": ("sequences", {}),
    "write scalars gzip": ("scalars", {"tensorflow": 5}),
    "write patches gzip": ("patches", {"tensorflow": 5}),
}
BY_CLOCK = {task for task in TASKS if "2 threads" in task or "by the clock" in task}
LIMITS = {"read": ("memcpy", "checksum"), "write": ("write file",)}


class Worker:
    """A participant in a process of its own."""

    def __init__(self, name: str, python: str, core: int | None) -> None:
        self.name = name
        command = [python, str(ROOT / "benchmarks" / "worker.py"), name]
        if core is not None:
            command.append(str(core))
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.tasks = set(json.loads(self._read()))

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with {self._process.wait()}")
        return line

    def run(self, task: str, job: Job) -> float:
        """Do a task; return records a second."""
        assert self._process.stdin is not None
        asked = {"task": task, "job": asdict(job), "wall": task in BY_CLOCK}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        found = json.loads(self._read())
        return found["records"] / found["seconds"]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def participants(*, peers: bool) -> list[Worker]:
    """Start the processes; all on one core but the one for tasks of two threads."""
    core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    found = [Worker("ours", sys.executable, core), Worker("limits", sys.executable, core)]
    if peers:
        ready = [peer for peer in setup.PEERS if setup.install(peer)]
        found += [Worker(peer, str(setup.python_of(peer)), core) for peer in ready]
    return found


def measure(
    files: dict[str, workloads.Workload], workers: list[Worker], rounds: int, out: str
) -> dict[str, dict[str, float]]:
    """Return median rates by task and participant; limits count whole files a second."""
    rates: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    two = Worker("ours", sys.executable, None)
    ours, limits = workers[:2]
    for number in range(rounds + 1):
        print(f"round {number} of {rounds}", file=sys.stderr, flush=True)
        for task, (name, _) in TASKS.items():
            file = files[name]
            job = Job(file.path, out, file.records, file.size)
            chosen = [two if "2 threads" in task else ours, *workers[2:]]
            for worker in chosen:
                if task in worker.tasks:
                    rates[task][worker.name].append(worker.run(task, job))
            plain = LIMITS[task.partition(" ")[0]]
            for limit in ("inflate",) if "gzip" in task and task.startswith("read") else plain:
                if task not in BY_CLOCK:
                    rates[task][limit].append(limits.run(limit, job) * file.records)
    two.close()
    # The first round warms caches and just-in-time compilers.
    return {
        task: {name: statistics.median(values[1:]) for name, values in found.items()}
        for task, found in rates.items()
    }


def ratios(task: str, rates: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return how many times as fast as each other participant ours is."""
    found = {
        name: rates[task]["ours"] / rate for name, rate in rates[task].items() if name != "ours"
    }
    peers = [ratio for name, ratio in found.items() if name in setup.PEERS]
    if peers:
        found["fastest peer"] = min(peers)
    found["400,000 rows/s"] = rates[task]["ours"] / 400_000
    one = {
        "scalars": "read scalars gzip, by the clock",
        "patches": "read patches gzip, by the clock",
    }
    for word, other in one.items():
        if word in task:
            found[other] = rates[task]["ours"] / rates[other]["ours"]
    return found


def report(files: dict[str, workloads.Workload], rates: dict[str, dict[str, float]]) -> None:
    shown = [*setup.PEERS, "memcpy", "checksum", "inflate", "write file"]
    print(f"{'task':<32}{'records/s':>12}{'GB/s':>7}  times as fast as")
    for task, (name, wanted) in TASKS.items():
        found = ratios(task, rates)
        file = files[name]
        rate = rates[task]["ours"]
        gigabytes = rate * file.size / file.records / 1e9
        told = [f"{other} {found[other]:.3g}" for other in shown if other in found]
        marks = [
            f"{'reached' if found[other] >= least else 'MISSED'}: {least:g} x {other}"
            f"{'' if found[other] >= least else f' (is {found[other]:.3g})'}"
            for other, least in wanted.items()
            if other in found
        ]
        print(f"{task:<32}{rate:>12,.0f}{gigabytes:>7.2f}  {', '.join(told)}")
        for mark in marks:
            print(f"{'':<53}{mark}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a fifth of the sizes, 3 rounds")
    parser.add_argument("--peers", action="store_true", help="peers too, in environments of theirs")
    parser.add_argument("--rounds", type=int, help="rounds behind the first, which warms up")
    parser.add_argument("--folder", help="where files go; memory-backed is best")
    parser.add_argument("--json", help="write the rates to this file too")
    given = parser.parse_args(arguments)
    rounds = given.rounds or (3 if given.small else 5)
    with tempfile.TemporaryDirectory(dir=given.folder, prefix="tfrio-bench-") as folder:
        files = workloads.make(Path(folder), small=given.small)
        workers = participants(peers=given.peers)
        try:
            rates = measure(files, workers, rounds, str(Path(folder) / "out.tfrecord"))
        finally:
            for worker in workers:
                worker.close()
    report(files, rates)
    if given.json:
        result: dict[str, Any] = {"rates": rates, "files": {k: asdict(v) for k, v in files.items()}}
        Path(given.json).write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
