"""The extra that an error names exists, and installs what was missing."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
# Where the package is not named as the module; rasterio brings affine.
PACKAGE_OF = {"PIL": "pillow", "google": "protobuf", "affine": "rasterio"}
CALL = re.compile(r"""require\(\s*["']([\w.]+)["'],\s*extra=["'](\w+)["']""")
ASKED = sorted(
    {call for file in (ROOT / "src").rglob("*.py") for call in CALL.findall(file.read_text())}
)


def packages(extra: str) -> set[str]:
    """Return what an extra installs, those of other extras included."""
    found: set[str] = set()
    for item in EXTRAS[extra]:
        inner = re.fullmatch(r"tfrio\[([\w,]+)\]", item)
        if inner:
            found |= {name for other in inner[1].split(",") for name in packages(other)}
        else:
            found.add(re.split(r"[<>=]", item)[0])
    return found


def test_calls_are_found():
    assert len(ASKED) > 10


@pytest.mark.parametrize(("module", "extra"), ASKED)
def test_the_extra_installs_the_module(module, extra):
    top = module.partition(".")[0]
    assert PACKAGE_OF.get(top, top) in packages(extra)


def test_all_is_every_extra():
    assert packages("all") == {name for extra in EXTRAS for name in packages(extra)}
