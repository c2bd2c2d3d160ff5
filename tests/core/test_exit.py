"""The end of the process, with threads still at work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tfrio import _core

WORK = {
    "scan": "_core.scan(data)",
    "count": "_core.count(data)",
    "decode": "_core.ExampleDecoder([(b'x', _core.KIND_INT64, -1, 0)]).feed(data)",
    "survey": "_core.SchemaScanner().feed(data)",
}


@pytest.mark.parametrize("work", WORK)
def test_a_daemon_thread_in_native_code_does_not_abort_the_end(tmp_path: Path, work: str) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(_core.frame([bytes.fromhex("0a0c0a0a0a017812051a030a0101")] * 200_000))
    program = f"""
import threading, time
import numpy
from tfrio import _core
data = open({str(path)!r}, "rb").read()
def work():
    while True:
        {WORK[work]}
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
