"""Choose records by an expression over their features: ``label == 3 and len(values) > 10``."""

from __future__ import annotations

import ast
import keyword
import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tfrio.errors import UsageError
from tfrio.examples.decode import read
from tfrio.examples.reshard import CopyReport, merge
from tfrio.records.shards import expand
from tfrio.storage import refuse_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tfrio.types import PathLike, PathsLike

__all__ = ["Condition", "filter_examples"]

_FUNCTIONS: Final = {"len": len, "min": min, "max": max, "sum": sum, "abs": abs}
_WORDS: Final = ("and", "or", "not", "in", "is")  # of Python, as used in expressions
_ROW: Final = "row"  # row['image/class'] for names that are no Python names
_ALLOWED: Final = (
    ast.Expression,
    ast.BoolOp,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.Call,
    ast.Name,
    ast.Load,
    ast.Constant,
    ast.Subscript,
    ast.List,
    ast.Tuple,
    ast.boolop,
    ast.unaryop,
    ast.cmpop,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.FloorDiv,
    ast.Mod,
)


class _Single:
    """What a list of one number still is when it serves as that number: a list of one."""

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Any]:
        return iter((self,))

    def __getitem__(self, index: int) -> Any:
        return (self,)[index]


class _Int(_Single, int):
    __slots__ = ()


class _Float(_Single, float):
    __slots__ = ()


class Condition:
    """A yes or no about one row, written as a Python expression.

    A feature with one value is that value (and still a list of one for ``len(x)`` and ``x[0]``),
    with several a list; bytes that are UTF-8 compare as text.
    An absent feature is None: it equals only None, and no order with it holds. There are
    ``and or not``, comparisons, ``in``, arithmetic, ``x[0]``, and ``len min max sum abs``; nothing
    else, so an expression from a stranger can do no harm.

    Args:
        expression: Such as ``id != 20``, ``len(values) > 3`` or ``row['image/class'] in [1, 2]``.

    Raises:
        UsageError: It is no expression, or uses what is not allowed.
    """

    def __init__(self, expression: str) -> None:
        self.expression = expression
        try:
            tree = ast.parse(expression.strip(), mode="eval")
        except SyntaxError as error:
            text = f"{expression!r} is no expression: {error.msg}{_hint(expression)}"
            raise UsageError(text) from error
        called = set()
        for node in ast.walk(tree):
            _check(node, expression)
            if isinstance(node, ast.Call):
                called.add(node.func)
        self.features = tuple(sorted(_names(tree, called)))
        self._code = compile(tree, "<condition>", "eval")

    def __call__(self, row: Mapping[str, Any]) -> bool:
        """Decide about a row.

        Args:
            row: As ``tfrio.read`` gives it.

        Returns:
            Whether the expression holds.

        Raises:
            UsageError: Values cannot be compared or added as the expression says.
        """
        values = {name: _value(row.get(name)) for name in self.features}
        scope = {**_FUNCTIONS, **values, _ROW: values, "__builtins__": {}}
        try:
            return bool(eval(self._code, scope))  # noqa: S307 - only what _check lets through
        except TypeError as error:
            if None in values.values():
                return False
            raise UsageError(f"{self.expression!r} does not work on {values!r}: {error}") from error
        except (IndexError, ZeroDivisionError):
            return False


def _hint(expression: str) -> str:
    """Say how features are named whose names are words of Python, where there are any."""
    words = dict.fromkeys(re.findall(r"[a-z]+", expression))
    taken = [word for word in words if keyword.iskeyword(word) and word not in _WORDS]
    return f". A feature called '{taken[0]}' is row['{taken[0]}']" if taken else ""


def _check(node: ast.AST, expression: str) -> None:
    """Refuse whatever could do more than compute."""
    if not isinstance(node, _ALLOWED):
        what = type(node).__name__
        raise UsageError(f"{expression!r}: {what} is not allowed in a condition")
    if isinstance(node, ast.Call):
        known = isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS
        if not known or node.keywords:
            raise UsageError(
                f"{expression!r}: only {', '.join(_FUNCTIONS)} can be called in a condition"
            )


def _names(tree: ast.AST, called: set[ast.expr]) -> set[str]:
    """Return the features that an expression asks for."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node not in called and node.id != _ROW:
            found.add(node.id)
        if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == _ROW:
            key = node.slice
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                raise UsageError("row[...] takes the name of a feature, in quotes")
            found.add(key.value)
    return found


def _value(value: Any) -> Any:
    """Return a value as an expression sees it."""
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return value
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        plain = [_value(item) for item in value]
        return plain[0] if len(plain) == 1 else plain
    if isinstance(value, float):
        return _Float(value)
    return _Int(value) if isinstance(value, int) else value


def filter_examples(
    paths: PathsLike,
    out: PathLike,
    *,
    where: str | Callable[[Mapping[str, Any]], bool],
    compression: str | None = None,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> CopyReport:
    """Write the records for which a condition holds to one file, their payload bytes untouched.

    Args:
        paths: Files, folders, globs or shard prefixes, in order.
        out: The new file; it appears when complete.
        where: An expression over the features (see ``Condition``), or a function of a row.
        compression: Of the new file; None goes by its name.
        overwrite: Allow ``out`` to exist.
        progress: Called with stored bytes read and in all.

    Returns:
        What was written and left out.

    Raises:
        UsageError: The expression is wrong, or a path is a pipe.
        CorruptRecordError: A record is damaged.
        FileExistsError: ``out`` exists and ``overwrite`` is not set.
    """
    if not isinstance(where, str) and not callable(where):
        raise UsageError(f"where is an expression or a function of a row, got {where!r}")
    test = Condition(where) if isinstance(where, str) else where
    features = list(test.features) if isinstance(test, Condition) else None
    files = expand(paths)
    for file in files:
        refuse_stream(file, "filtering by a condition")
    rows = read(files, features=features)

    def keep(_payload: bytes) -> bool:
        """Test the next row: rows come in the order of payloads."""
        return test(next(rows))

    return merge(
        files, out, keep=keep, compression=compression, overwrite=overwrite, progress=progress
    )
