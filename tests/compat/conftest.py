"""The drop-in's `tfrecord`, as if it were installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

DROPIN = Path(__file__).resolve().parents[2] / "dropin" / "src"


@pytest.fixture
def dropin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make `import tfrecord` find the drop-in, in child processes too."""
    path = os.pathsep.join(filter(None, [str(DROPIN), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.syspath_prepend(str(DROPIN))
    yield DROPIN
    for name in [name for name in sys.modules if name.split(".")[0] == "tfrecord"]:
        del sys.modules[name]
