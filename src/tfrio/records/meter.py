"""How much of some files is done, added up over threads."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tfrio.storage import size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Self

__all__ = ["Meter"]


class Meter:
    """Adds up the bytes done by all threads and tells the caller.

    Args:
        total: Bytes in all.
        progress: Called with bytes done and in all; None for nobody.
    """

    def __init__(self, total: int, progress: Callable[[int, int], None] | None) -> None:
        self._total = total
        self._done = 0
        self._progress = progress
        self._lock = threading.Lock()

    @classmethod
    def of(cls, sources: Iterable[object], progress: Callable[[int, int], None] | None) -> Self:
        """Make the meter of files; of file objects and pipes the size is unknown, and counts 0."""
        if progress is None:
            return cls(0, None)
        paths = (source for source in sources if isinstance(source, str))
        return cls(sum(size_of(path) or 0 for path in paths), progress)

    def add(self, nbytes: int) -> None:
        """Count bytes done since the last call."""
        with self._lock:
            self._done += nbytes
            if self._progress:
                self._progress(self._done, self._total)
