"""The committed stub is what the built module says, and every name in it is documented."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tfrio import _core

STUB = Path(__file__).resolve().parents[2] / "src" / "tfrio" / "_core.pyi"


def test_the_stub_is_up_to_date() -> None:
    stubgen = pytest.importorskip("nanobind.stubgen")
    generator = stubgen.StubGen(_core)
    generator.put(_core)
    made = generator.get()
    assert STUB.read_text().split() == made.split(), "run: cmake --build BUILD --target stub"


def test_every_public_name_has_a_docstring() -> None:
    tree = ast.parse(STUB.read_text())
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("__"):
            assert ast.get_docstring(node), node.name
