"""The extra that an error names exists, and installs what was missing."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tfrio import _core

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
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


def test_the_base_install_is_small_and_free_of_frameworks():
    needed = {re.split(r"[<>=]", item)[0] for item in PROJECT["dependencies"]}
    assert needed == {"click", "deflate", "isal", "msgspec", "numpy", "rich"}
    files = [f for f in (ROOT / "src" / "tfrio").rglob("*") if f.suffix != ".pyc" and f.is_file()]
    assert sum(file.stat().st_size for file in files) < 4_000_000
    assert Path(_core.__file__).stat().st_size < 5_000_000


# Modules that Python has on some systems only.
ELSEWHERE_ABSENT = {"fcntl", "grp", "posix", "pwd", "resource", "syslog", "termios", "winreg"}


def test_no_module_needs_one_system_to_be_imported():
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None) or "", *(a.name for a in node.names)]
        if name in ELSEWHERE_ABSENT
    ]
    assert not found, found


def test_all_is_every_extra():
    assert packages("all") == {name for extra in EXTRAS for name in packages(extra)}
