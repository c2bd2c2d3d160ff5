"""The Makefile notices what happens to its environment; `make -n` tells what it would do."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
EDITABLE = "--editable ."


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment as `make build` leaves it, but empty."""
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    (tmp_path / "stamps").mkdir()
    packages.mkdir(parents=True)
    for stamp in ("venv", "build", "native", "test"):
        (tmp_path / "stamps" / stamp).touch()
    (packages / "_editable_skbc_tfrio.py").touch()
    return tmp_path


def planned(environment: Path) -> str:
    """Return what `make build` would do."""
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    run = subprocess.run(
        ["make", "-n", "build", f"VENV={environment}"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout


def test_a_whole_environment_is_left_alone(environment: Path) -> None:
    assert EDITABLE not in planned(environment)


def test_a_copy_in_place_of_the_checkout_is_replaced(environment: Path) -> None:
    (marker,) = environment.rglob("_editable_*_tfrio.py")
    marker.unlink()
    plan = planned(environment)
    assert EDITABLE in plan
    assert f"{environment} holds a copy of tfrio in place of this checkout" in plan
