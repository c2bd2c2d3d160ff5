"""Warn at the line of the user's code, however deep inside the package the reason lies."""

from __future__ import annotations

import sys
import warnings

from tfrio.errors import TfrioWarning

__all__ = ["warn_user"]

_PACKAGE = __name__.partition(".")[0]


def warn_user(text: str) -> None:
    """Warn, naming the first line outside this package that led here.

    Args:
        text: What the user should know, and what to do.
    """
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and _inside(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, TfrioWarning, stacklevel=level)


def _inside(module: str) -> bool:
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")
