"""Run the command line inside the test's own process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tfrio.cli import main as entry


@dataclass(frozen=True)
class Outcome:
    """Exit status and what was printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return the printed JSON document."""
        return json.loads(self.out)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Return a function that runs ``tfrio`` with these arguments."""

    def run(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as caught:
            entry.run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        code = caught.value.code
        return Outcome(0 if code is None else int(code), captured.out, captured.err)

    return run
