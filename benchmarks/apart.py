"""Cases of a benchmark, each in a process of its own: seconds, processor time and peak memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent

Case = Callable[[Path, int, Path], object]


def run_case(case: Case, source: Path, side: int) -> None:
    """Run a case in this process, with a folder to write to, and print what it cost."""
    with tempfile.TemporaryDirectory(dir=source.parent) as folder:
        started = time.perf_counter()
        case(source, side, Path(folder))
        seconds = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak_mb": used.ru_maxrss / 1024}))


def measure(module: str, names: tuple[str, ...], source: Path, side: int) -> list[dict[str, float]]:
    """Run cases of a module at the same time, each in its own process; return what each cost."""
    common = ["--side", str(side), "--source", str(source.resolve())]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", module, "--case", name, *common],
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
        )
        for name in names
    ]
    rows: list[dict[str, float]] = []
    for name, process in zip(names, running, strict=True):
        text, _ = process.communicate()
        if process.returncode:
            raise SystemExit(f"{name} failed")
        rows.append(json.loads(text.splitlines()[-1]))
    return rows
