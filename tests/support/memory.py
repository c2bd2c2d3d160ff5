"""How much memory code takes, measured in a process of its own."""

from __future__ import annotations

import subprocess
import sys

MEASURE = """
import resource, sys
import numpy as np
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
base = peak()
"""


def grown(code: str, *arguments: object) -> int:
    """Run code that prints a number of bytes; return the number.

    Args:
        code: May use ``np``, ``sys``, ``peak()`` and ``base``, the peak before it began.
        arguments: Become ``sys.argv[1:]``.
    """
    command = [sys.executable, "-c", MEASURE + code, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return int(run.stdout)
