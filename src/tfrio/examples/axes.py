"""The axes that values of one feature had, record by record. Pure."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tfrio.examples.schema import common_shape

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Axes", "RowAxes"]

Axes: TypeAlias = "tuple[int, ...]"


class RowAxes:
    """The axes of a feature's value in each record, kept as runs of records that have the same.

    Records of which nothing was noted hold a list, or nothing at all. 24 bytes a run.
    """

    def __init__(self) -> None:
        self._shapes: list[Axes] = []
        self._places: dict[Axes, int] = {}
        self._starts, self._stops, self._which = array("q"), array("q"), array("q")

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self._starts)

    @classmethod
    def same(cls, shape: Sequence[int]) -> RowAxes:
        """Return the axes of a feature that has the same in every record."""
        made = cls()
        made.note(0, shape, sys.maxsize)
        return made

    @property
    def end(self) -> int:
        """Return the number of the record behind the last run."""
        return self._stops[-1] if self._stops else 0

    def note(self, first: int, shape: Sequence[int], count: int = 1) -> None:
        """Remember the axes of some records; what was noted of these and later ones is forgotten.

        Args:
            first: Number of the first record; notes come in the order of records.
            shape: Their axes, at most one of them -1.
            count: How many records have them.
        """
        while self._starts and self._stops[-1] > first:
            self._stops[-1] = first
            if self._starts[-1] >= first:
                self._starts.pop(), self._stops.pop(), self._which.pop()
        axes = tuple(int(axis) for axis in shape)
        which = self._places.setdefault(axes, len(self._shapes))
        if which == len(self._shapes):
            self._shapes.append(axes)
        if self._starts and self._stops[-1] == first and self._which[-1] == which:
            self._stops[-1] += count
            return
        self._starts.append(first)
        self._stops.append(first + count)
        self._which.append(which)

    def at(self, record: int) -> Axes | None:
        """Return the axes in a record, None where nothing was noted."""
        run = bisect_right(self._starts, record) - 1
        if run < 0 or record >= self._stops[run]:
            return None
        return self._shapes[self._which[run]]

    def runs(self) -> Iterator[tuple[int, Axes, int]]:
        """Yield first record, axes and number of records of each run."""
        for first, stop, which in zip(self._starts, self._stops, self._which, strict=True):
            yield first, self._shapes[which], stop - first

    def between(self, first: int, stop: int) -> Iterator[tuple[int, Axes, int]]:
        """Yield the runs like ``runs``, but only what lies between two records.

        Args:
            first: Number of the first record.
            stop: Number of the record behind the last.
        """
        for run in range(max(bisect_right(self._starts, first) - 1, 0), len(self._starts)):
            if self._starts[run] >= stop:
                return
            begin, end = max(self._starts[run], first), min(self._stops[run], stop)
            if begin < end:
                yield begin, self._shapes[self._which[run]], end - begin

    def common(self) -> Axes | None:
        """Return the axes that all noted records fit, one of them -1; None where none do."""
        used = {shape for _, shape, _ in self.runs()}
        joined: Any = next(iter(used), None)
        for shape in used:
            joined = common_shape(joined, shape)
            if joined is None:
                return None
        return joined  # type: ignore[no-any-return]

    def to_json(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {
            "shapes": self._shapes,
            "runs": [list(run) for run in zip(self._starts, self._stops, self._which, strict=True)],
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> RowAxes:
        """Take what ``to_json`` gave.

        Raises:
            ValueError: It is something else.
        """
        made = cls()
        try:
            shapes = [tuple(map(int, shape)) for shape in value["shapes"]]
            for first, stop, which in value["runs"]:
                made.note(first, shapes[which], stop - first)
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError(f"no runs of axes ({error!r})") from error
        return made
