"""Imports only go down: walk every import of the package, lazy ones too, for arrows that do not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "tfrio"

# Lower number: lower floor. A room may import what lies below it, and itself.
FLOORS = {
    "errors": 0,
    "types": 1,
    "_core": 1,
    "storage": 2,
    "compression": 3,
    "parallel": 4,
    "records": 5,
    "examples": 6,
    "datasets": 7,
    "tables": 7,
    "geo": 7,
    "torch": 8,  # the public face of datasets
    "survey": 8,  # `tfrio.info`: looks at files with every floor's eyes
    "accessor": 9,  # xarray's way from an export to its patches
    "compat": 9,
    "testing": 9,
    "cli": 10,
}
FACADE = "__init__"  # loads names lazily from every floor; nobody below imports it
# Faces of rooms only list names, too; what they may load from above.
FACES = {"tfrio.geo.__init__": {"tfrio.accessor"}}


def room_of(module: str) -> str | None:
    """Return the room of a dotted module name, None outside the package."""
    parts = module.split(".")
    if parts[0] != "tfrio":
        return None
    return parts[1] if len(parts) > 1 else FACADE


def imported_modules(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of each import, wherever it stands in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            if base == "tfrio":
                yield from ((node.lineno, f"tfrio.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, base
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield node.lineno, first.value


def _called(node: ast.Call) -> str:
    target = node.func
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")


def bad_arrows(source: str, module: str) -> list[str]:
    """Return what is wrong with the imports of one module, one line a finding."""
    room = room_of(module)
    package = module.rpartition(".")[0]
    found = []
    for line, name in imported_modules(ast.parse(source), package):
        target = room_of(name)
        if target is None or target == room or name in FACES.get(module, ()):
            continue
        if target == FACADE:
            found.append(f"{module}:{line} imports the package's face; import the floor itself")
        elif target not in FLOORS:
            found.append(f"{module}:{line} imports {name}, which is on no floor")
        elif FLOORS[target] >= FLOORS[room or FACADE]:
            where = "upward" if FLOORS[target] > FLOORS[room or FACADE] else "sideways"
            found.append(f"{module}:{line} imports {name}: {where}")
    return found


def modules() -> list[tuple[str, Path]]:
    """Return dotted name and path of every module of the package but its face."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        dotted = ".".join(["tfrio", *parts])
        if parts not in ((FACADE,), ("__main__",)):
            found.append((dotted, path))
    return found


@pytest.mark.parametrize(("module", "path"), modules(), ids=lambda value: str(value)[-40:])
def test_imports_only_go_down(module: str, path: Path) -> None:
    assert room_of(module) in FLOORS, f"{path} is on no floor: give it one in FLOORS"
    assert bad_arrows(path.read_text(encoding="utf-8"), module) == []


@pytest.mark.parametrize(
    ("module", "source", "finding"),
    [
        ("tfrio.records.reader", "from tfrio.examples.schema import Schema", "upward"),
        ("tfrio.geo.export", "import tfrio.tables.arrow", "sideways"),
        ("tfrio.geo.export", "def f():\n    from tfrio.cli import main", "upward"),
        ("tfrio.records.reader", "from ..examples import schema", "upward"),
        ("tfrio.storage", "from tfrio import records", "upward"),
        ("tfrio.records.reader", "from tfrio import read", "on no floor"),
        (
            "tfrio.tables.arrow",
            "import importlib\nimportlib.import_module('tfrio.geo')",
            "sideways",
        ),
        ("tfrio.examples.decode", "import tfrio", "face"),
        ("tfrio.geo.export", "import tfrio.accessor", "upward"),
        ("tfrio.geo.__init__", "import tfrio.torch", "upward"),
    ],
)
def test_a_bad_arrow_is_found(module: str, source: str, finding: str) -> None:
    findings = bad_arrows(source, module)
    assert len(findings) == 1
    assert finding in findings[0]


def test_good_arrows_pass() -> None:
    lines = ["import numpy", "from tfrio import errors", "from tfrio.records import reader"]
    assert bad_arrows("\n".join([*lines, "from . import grid"]), "tfrio.geo.export") == []
