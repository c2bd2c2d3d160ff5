"""Real processes: two ranks over gloo, and a process killed in mid-epoch."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.datasets import ranks
from tests.datasets.conftest import TOTAL

SCRIPT = Path(__file__).with_name("ranks.py")


def start_rank(**options):
    """Start one rank as a new interpreter.

    Ranks whose hash seeds differ must still agree on the order of files and records.
    """
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    environment["PYTHONHASHSEED"] = str(options["rank"] + 1)
    command = [sys.executable, str(SCRIPT), json.dumps(options)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)


def run_forked(**options):
    """Run a training process to its end, or to its death; return the exit code."""
    process = multiprocessing.get_context("fork").Process(target=ranks.main, args=(options,))
    process.start()
    process.join()  # with a timeout it would wait for orphaned workers too
    return process.exitcode


def seen(path):
    """Return the ids written in each epoch."""
    epochs = {}
    for line in Path(path).read_text().splitlines():
        epoch, number = map(int, line.split())
        epochs.setdefault(epoch, []).append(number)
    return epochs


@pytest.mark.slow
def test_two_ranks_three_epochs(numbered, tmp_path):
    outs = [str(tmp_path / f"rank{rank}") for rank in range(2)]
    common = {"glob": numbered["plain"], "epochs": 3, "workers": 1, "persistent": [True, False]}
    store = {"store": str(tmp_path / "store"), "world": 2}
    processes = [start_rank(**common, **store, rank=rank, out=outs[rank]) for rank in range(2)]
    for process in processes:
        _, errors = process.communicate(timeout=200)
        assert process.returncode == 0, errors.decode()[-2000:]
    for workers in ("True", "False"):  # persistent or fresh
        first, second = (seen(f"{out}-{workers}") for out in outs)
        for epoch in range(3):
            assert len(first[epoch]) == len(second[epoch]) == TOTAL // 2
            assert not set(first[epoch]) & set(second[epoch])
        assert set(first[0]) != set(first[1])


@pytest.mark.parametrize(("form", "workers"), [("plain", 2), ("gzip", 0), ("blocked", 1)])
def test_killed_in_mid_epoch_and_resumed(numbered, tmp_path, form, workers):
    out = str(tmp_path / "ids")
    common = {"glob": numbered[form], "out": out, "epochs": 2, "workers": workers}
    assert run_forked(**common, die_at=7) == -signal.SIGKILL
    assert len(seen(f"{out}-True")[0]) == 28
    assert run_forked(**common, die_at=23) == -signal.SIGKILL  # in the second epoch
    assert run_forked(**common) == 0
    epochs = seen(f"{out}-True")
    assert sorted(epochs) == [0, 1]
    for numbers in epochs.values():
        assert Counter(numbers) == Counter(range(TOTAL))
    assert epochs[0] != epochs[1]
