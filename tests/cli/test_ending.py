"""A command that is told to end leaves nothing half-written behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.records.golden import frame


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals there")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_no_temporary_file(tmp_path: Path, number: int) -> None:
    """The input is a pipe that stays open, so that the command waits amid its work."""
    out = tmp_path / "out"
    out.mkdir()
    command = [sys.executable, "-m", "tfrio", "merge", "/dev/stdin", str(out / "a.tfrecord")]
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdin is not None
    running.stdin.write(frame(bytes(1 << 20)) * 3)
    running.stdin.flush()
    until = time.monotonic() + 60
    while not any(p.stat().st_size for p in out.iterdir()) and time.monotonic() < until:
        time.sleep(0.02)
    assert [p.name[:2] for p in out.iterdir()] == [".a"], "a temporary file is under way"
    running.send_signal(number)
    running.communicate(timeout=60)
    assert running.returncode == 128 + number
    assert list(out.iterdir()) == []
