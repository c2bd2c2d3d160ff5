"""One participant of a benchmark: does tasks as it is told, one JSON line each.

Run by benchmarks/examples.py: PYTHON benchmarks/worker.py MODULE [CORE]
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Job:
    """One task to do.

    Attributes:
        path: File to read.
        out: File to write.
        limit: Records to do, where a whole file would take a slow peer minutes.
        size: Bytes of the file's records, uncompressed.
    """

    path: str
    out: str
    limit: int
    size: int


def main(module: str, core: str | None = None) -> None:
    if core is not None:
        with contextlib.suppress(AttributeError):  # not on every system
            os.sched_setaffinity(0, {int(core)})
    tasks = importlib.import_module(f"benchmarks.peers.{module}").TASKS
    print(json.dumps(sorted(tasks)), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        job = Job(**asked["job"])
        gc.collect()
        clock = time.perf_counter if asked["wall"] else time.process_time
        begin = clock()
        records = tasks[asked["task"]](job)
        print(json.dumps({"records": records, "seconds": clock() - begin}), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    main(*sys.argv[1:])
