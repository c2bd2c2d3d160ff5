"""What a forked child lacks and must leave alone: its parent's threads and unfinished files."""

from __future__ import annotations

import os
import weakref
from typing import Protocol

__all__ = ["FORKED", "Forking", "at_fork"]

FORKED = "was opened before this process was forked; open it again in this process"


class Forking(Protocol):
    """An object that must know when it is in a forked child."""

    def forked(self) -> None:
        """Make new locks, forget threads, and let go of files without finishing them."""
        ...


_told: weakref.WeakSet[Forking] = weakref.WeakSet()


def at_fork(thing: Forking) -> None:
    """Have ``thing.forked()`` called in every child that this process forks.

    A child has none of its parent's other threads. It would wait for them for ever, and for a lock
    that one of them held; and a file that it finished, or removed as it ends, would be lost to the
    parent.

    Args:
        thing: The object; it is not kept alive.
    """
    _told.add(thing)


def _tell() -> None:
    for thing in list(_told):
        thing.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_tell)
