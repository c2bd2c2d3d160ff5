"""The table of edge cases, as a program, run on the drop-in as users import it."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_every_case_of_the_table(dropin, shared, tmp_path):
    done = subprocess.run(
        [sys.executable, str(shared / "spec" / "compat_cases.py"), "tfrecord"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "bad: 0 of 168", done.stdout + done.stderr
