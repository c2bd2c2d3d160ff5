"""Fixtures for every test."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.samples import write_all

# Properties say what holds, not how soon: a busy machine is no failure.
settings.register_profile("any time", deadline=None)
settings.load_profile("any time")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of real files and case tables beside the checkout, or skip."""
    folder = REPOSITORY.parent / "shared"
    if not (folder / "fixtures").is_dir():
        pytest.skip("needs files that are not part of the project; nothing to do")
    return folder


@pytest.fixture
def sample_data(tmp_path: Path) -> Path:
    """Return a new folder with a small scene, a table and shards (see tests/support/samples.py)."""
    return write_all(tmp_path)
