"""The public face: every name loads, is documented and annotated, and importing it stays cheap."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import tfrio

REPOSITORY = Path(__file__).resolve().parent.parent
PUBLIC_MODULES = ["tfrio", *(f"tfrio.{name}" for name in sorted(tfrio._MODULES))]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]


def public_names() -> list[tuple[str, str]]:
    """Return (module, name) for everything in the `__all__` of the public modules."""
    return [
        (module, name)
        for module in PUBLIC_MODULES
        for name in importlib.import_module(module).__all__
        if not name.startswith("__")
    ]


def callables(value: object) -> list[object]:
    """Return a function itself, or a class's own public methods and its constructor."""
    if not inspect.isclass(value):
        return [value] if inspect.isfunction(value) else []
    own = [m for n, m in vars(value).items() if inspect.isfunction(m) and not n.startswith("_")]
    init = vars(value).get("__init__")
    written = inspect.isfunction(init) and init.__module__ == value.__module__
    return [*own, init] if written and hasattr(init, "__code__") else own


def bare_names(node: ast.AST, where: str) -> Iterator[str]:
    """Yield the classes and functions without underscore that say nothing of themselves.

    All of them: methods of private classes, functions within functions, and each overload.
    """
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not isinstance(child, ast.expr):
                yield from bare_names(child, where)
            continue
        here = f"{where}.{child.name}"
        if not child.name.startswith("_"):
            if not ast.get_docstring(child):
                yield f"{here} has no docstring"
            if not isinstance(child, ast.ClassDef):
                yield from unsaid_types(child, here)
        yield from bare_names(child, here)


def unsaid_types(function: ast.FunctionDef | ast.AsyncFunctionDef, where: str) -> Iterator[str]:
    """Yield what the signature of a function leaves open."""
    given = function.args
    for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        if argument.annotation is None and argument.arg not in ("self", "cls"):
            yield f"{where}({argument.arg}) has no annotation"
    if function.returns is None:
        yield f"{where} returns what?"


SOURCES = sorted((REPOSITORY / "src" / "tfrio").rglob("*.py"))


def test_all_that_bears_no_underscore_is_documented_and_annotated() -> None:
    found = [
        name
        for path in SOURCES
        for name in bare_names(ast.parse(path.read_text()), str(path.relative_to(REPOSITORY)))
    ]
    assert not found, "\n".join(found)
    assert len(SOURCES) > 100
    odd = """class _A:
  def f(self, x): ...
  def _g(self, x):
    class B: pass
@overload
def h() -> int: ...
def h() -> int:
  'Say.'
"""
    assert [*bare_names(ast.parse(odd), "m")] == [
        "m._A.f has no docstring",
        "m._A.f(x) has no annotation",
        "m._A.f returns what?",
        "m._A._g.B has no docstring",
        "m.h has no docstring",
    ]


@pytest.mark.parametrize(("module", "name"), public_names())
def test_public_name_is_documented_and_annotated(module: str, name: str) -> None:
    value = getattr(importlib.import_module(module), name)
    if isinstance(value, ModuleType):
        assert value.__doc__
        return
    if inspect.isclass(value) or inspect.isfunction(value):
        assert inspect.getdoc(value), f"{module}.{name} has no docstring"
    for function in callables(value):
        where = f"{module}.{name}: {function.__qualname__}"
        signature = inspect.signature(function)
        for parameter in signature.parameters.values():
            assert parameter.kind is not parameter.VAR_KEYWORD, f"{where} takes **kwargs"
            if parameter.name not in ("self", "cls"):
                assert parameter.annotation is not parameter.empty, f"{where}({parameter.name})"
        if function.__name__ != "__init__":
            assert signature.return_annotation is not signature.empty, f"{where} returns what?"
            assert inspect.getdoc(function), f"{where} has no docstring"


@pytest.mark.parametrize(("module", "name"), public_names())
def test_functions_take_at_most_two_positional_arguments(module: str, name: str) -> None:
    value = getattr(importlib.import_module(module), name)
    if module == "tfrio.compat" or not inspect.isfunction(value):
        return
    positional = [
        p.name
        for p in inspect.signature(value).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    assert len(positional) <= 2, f"{module}.{name} takes {positional} by position"


def test_every_public_function_stands_in_the_guide() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    public = {name: getattr(tfrio, name) for name in tfrio.__all__}
    functions = {name for name, value in public.items() if inspect.isfunction(value)}
    shown = {name for name in functions if f"tfrio.{name}" in text or f"`{name}`" in text}
    assert functions - shown == set()


def test_the_reference_takes_in_every_public_module() -> None:
    lines = (REPOSITORY / "docs" / "api.md").read_text(encoding="utf-8").splitlines()
    modules = [module for module in PUBLIC_MODULES if module != "tfrio.compat"]
    assert [module for module in modules if f"::: {module}" not in lines] == []


def test_names_and_their_homes_agree() -> None:
    public = {name for name in tfrio.__all__ if not name.startswith("__")}
    assert set(tfrio._HOMES) | tfrio._MODULES == public
    assert dir(tfrio) == sorted(tfrio.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        tfrio.nonsense  # noqa: B018


@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("import tfrio", set()),
        (
            "import tfrio; tfrio.read, tfrio.Writer, tfrio.Schema",
            {"numpy", "deflate", "isal", "msgspec"},
        ),
        ("import tfrio.geo, tfrio.tables", {"numpy", "deflate", "isal", "msgspec"}),
    ],
)
def test_importing_stays_cheap(code: str, allowed: set[str]) -> None:
    probe = f"{code}\nimport sys; print(*{{m.partition('.')[0] for m in sys.modules}})"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", probe], capture_output=True, text=True, check=True
    )
    bare = subprocess.run(
        [sys.executable, "-c", probe.replace(code, "pass")],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(run.stdout.split()) - set(bare.stdout.split())
    foreign = {name for name in loaded if name not in sys.stdlib_module_names} - {"tfrio"}
    assert {name for name in foreign if not name.startswith("_")} <= allowed
