"""What files note of their features goes with their records, into whatever files those are copied.

A new file holds records of other files. It notes what all of these note alike, and the
axes record by record where they do not.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from tfrio.errors import warn_user
from tfrio.examples.axes import RowAxes
from tfrio.examples.schema import Schema
from tfrio.examples.sidecar import Noted, load_sidecar, save_sidecar
from tfrio.examples.told import Told
from tfrio.storage import is_stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Carried", "warn_lost"]


class Carried:
    """Notes of files, on their way to the files that their records are copied to.

    Memory: 24 bytes for each change of axes in a new file, however its records were chosen.

    Args:
        sources: All files that records may be copied from. What they note is read at once, as one
            of them may be replaced later.
    """

    def __init__(self, sources: Iterable[str]) -> None:
        found = {path: load_sidecar(path) for path in dict.fromkeys(sources)}
        self._found = found if any(found.values()) else {}
        self._axes = {
            path: {name: noted.axes(name) for name in (*noted.schema, *noted.rows)}
            for path, noted in self._found.items()
            if noted is not None
        }
        self._begin()

    def _begin(self) -> None:
        self._told = Told()
        self._rows: dict[str, RowAxes] = {}
        self._records = 0

    def take(self, path: str, numbers: Sequence[int]) -> None:
        """Take note which records of another file the next ones of the new file are.

        Args:
            path: The other file, one of the sources.
            numbers: Their numbers in it, in order.
        """
        if not self._found or not numbers:
            return
        self._told.add(path, self._found[path])
        for name, axes in self._axes.get(path, {}).items():
            rows = self._rows.setdefault(name, RowAxes())
            for start, shape, many in axes.between(numbers[0], numbers[-1] + 1):
                begin, end = bisect_left(numbers, start), bisect_left(numbers, start + many)
                if begin < end:
                    rows.note(self._records + begin, shape, end - begin)
        self._records += len(numbers)

    def save(self, target: str) -> None:
        """Note beside a new file what is known of it, and begin with the next.

        Args:
            target: The complete file; what an earlier file of the name noted goes. Nothing can be
                noted beside a pipe.
        """
        if not is_stream(target):
            self._note(target)
        self._begin()

    def noted(self) -> Noted:
        """Return what is known of the records taken; ``lost`` cannot be noted of single ones."""
        agreed, apart = self._told.agreed(), self._told.row_by_row()
        rows = {name: axes for name, axes in self._rows.items() if name in apart and len(axes)}
        lost = self._told.names() - set(agreed) - apart
        return Noted(Schema(dict(agreed)), rows, tuple(sorted(lost)))

    def _note(self, target: str) -> None:
        found = self.noted()
        save_sidecar(target, found)
        warn_lost(target, found.lost)


def warn_lost(target: str, names: Sequence[str]) -> None:
    """Warn of features of which nothing can be noted in a new file.

    Args:
        target: The new file.
        names: The features; often none.
    """
    if names:
        warn_user(
            f"{target}: the files that its records come from note different things of "
            f"{list(names)}, which cannot be noted of single records, so they come back as they "
            "are stored; read it with a schema, or keep those files apart"
        )
