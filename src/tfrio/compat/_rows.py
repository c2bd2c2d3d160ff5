"""Decode a window of records to rows: columns at once, one record by itself where it differs.

The layout of what is asked for is learned from the data where the caller names no types. A
record that does not fit (a new feature, another kind) is looked at by itself: either the layout
learns from it, or the caller gets the error for it after all rows before it.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tfrio import _core
from tfrio.compat._columns import column_rows
from tfrio.compat._messages import message_row
from tfrio.compat._wanted import NAME_OF, Wanted, missing, wrong_type
from tfrio.errors import from_fault
from tfrio.examples.layout import KIND_NUMBERS, PLACE_NUMBERS, wire_name
from tfrio.examples.observe import Observation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfrio.compat._stream import PartStream
    from tfrio.examples.schema import Place

__all__ = ["RowDecoder"]

_BATCH: Final = 256  # native calls cost little, and a row that is kept keeps its batch alive
_HEADER, _FOOTER = 12, 4
_Row: TypeAlias = dict[str, Any]
_Rows: TypeAlias = npt.NDArray[np.intp]


class _Slot(NamedTuple):
    """One feature of the native layout."""

    name: str
    place: Place
    kind: int
    given: bool
    """Whether the caller gets it; else it is there only to be known."""


class RowDecoder:
    """Decode the records of a stream to rows.

    Args:
        wanted: Features wanted of Examples or of the context; None for all.
        wanted_lists: Feature lists wanted; None for all.
        sequence: Rows are pairs (context, feature lists).
        verify: Check payload checksums.
    """

    def __init__(
        self,
        wanted: Wanted | None,
        wanted_lists: Wanted | None = None,
        *,
        sequence: bool = False,
        verify: bool = True,
    ) -> None:
        self._wanted: dict[Place, Wanted | None] = {"context": wanted}
        if sequence:
            self._wanted["list"] = wanted_lists
        self._sequence = sequence
        self._verify = verify
        self._discover = None in self._wanted.values()
        self._kinds: dict[tuple[str, Place], int] = {}
        self._slots: list[_Slot] = []
        self._decoder: _core.ExampleDecoder | None = None

    def rows(self, stream: PartStream) -> Iterator[Any]:
        """Decode a stream to its end.

        Args:
            stream: The records.

        Yields:
            Rows.

        Raises:
            RuntimeError: A record is damaged.
            KeyError: A record lacks a feature asked for.
            TypeError: A feature is stored as another kind than asked for.
            DecodeError: A payload is no Example.
        """
        if not stream.buffer:
            stream.fill()
        while True:
            decoder = self._decoder or self._learn(_look(stream.buffer, _BATCH, self._sequence))
            final = stream.final
            feed = decoder.feed(stream.buffer, 0, _BATCH, verify=self._verify, final=final)
            rows, error = self._finish(stream, decoder.take(), feed.records)
            stream.advance(feed.consumed, feed.records)
            stream.rest()
            yield from rows
            del rows  # memory that nobody keeps serves the next batch, still warm
            if error is not None:
                raise error
            if feed.fault is not None:
                yield from self._misfit(stream, feed.fault)
            elif final and feed.records < _BATCH:
                return
            elif not feed.records:
                stream.fill()

    def _learn(self, seen: Observation) -> _core.ExampleDecoder:
        """Fit the layout to what was seen, and return the decoder for it."""
        for key, feature in seen.features.items():
            if feature.kinds or key not in self._kinds:
                self._kinds[key] = KIND_NUMBERS[feature.kind] or _core.KIND_FLOAT
        self._slots = [slot for place in self._wanted for slot in self._slots_in(place)]
        self._decoder = _core.ExampleDecoder(
            [(wire_name(s.name), s.kind, -1, PLACE_NUMBERS[s.place]) for s in self._slots],
            sequence=self._sequence,
            discover=self._discover,
        )
        return self._decoder

    def _slots_in(self, place: Place) -> list[_Slot]:
        """Return the slots of one place: those asked for in the caller's order, the rest sorted."""
        wanted = self._wanted[place] or {}
        slots = [
            _Slot(name, place, kind or self._kinds.get((name, place), _core.KIND_FLOAT), True)
            for name, kind in wanted.items()
        ]
        if self._discover:
            known = sorted(name for name, where in self._kinds if where == place)
            given = self._wanted[place] is None
            slots += [
                _Slot(name, place, self._kinds[name, place], given)
                for name in known
                if name not in wanted
            ]
        return slots

    def _finish(
        self, stream: PartStream, columns: list[_core.Column], rows: int
    ) -> tuple[list[Any], KeyError | None]:
        """Return the rows of some columns; fewer, and an error, where a feature is absent."""
        error = None
        values = [column_rows(column, rows) for column in columns]
        holes = {
            i: np.flatnonzero(column.present == 0)
            for i, column in enumerate(columns)
            if not column.present.all()
        }
        if asked := {i: rows for i, rows in holes.items() if self._is_asked(i)}:
            rows, error = self._judge(stream, asked, rows)
            self._mark_kindless(values, asked)
        made = [self._dicts(place, values, holes, rows) for place in self._wanted]
        return (list(zip(*made, strict=True)) if self._sequence else made[0]), error

    def _is_asked(self, slot: int) -> bool:
        """Tell whether the caller named the feature of a slot."""
        name, place, *_ = self._slots[slot]
        return name in (self._wanted[place] or ())

    def _judge(
        self, stream: PartStream, holes: dict[int, _Rows], rows: int
    ) -> tuple[int, KeyError | None]:
        """Tell features without a kind from absent ones.

        Returns:
            How many rows are good, and the error for the next one.
        """
        if self._absent(_look(stream.buffer, rows, self._sequence)) is None:
            return rows, None
        spans = _core.scan(stream.buffer, 0, rows, False).spans.tolist()
        for row in np.unique(np.concatenate(list(holes.values()))).tolist():
            offset, length = spans[row]
            record = stream.buffer[offset - _HEADER : offset + length + _FOOTER]
            seen = _look(record, 1, self._sequence)
            if absent := self._absent(seen):
                return row, _missing(absent, seen, stream.where(row))
        return rows, None

    def _absent(self, seen: Observation) -> tuple[str, Place] | None:
        """Return the first feature asked for that some record lacks, None where none is."""
        for place, wanted in self._wanted.items():
            for name in wanted or ():
                feature = seen.features.get((name, place))
                if feature is None or feature.present + feature.kindless < seen.records:
                    return name, place
        return None

    def _mark_kindless(self, values: list[list[Any]], holes: dict[int, _Rows]) -> None:
        """Give None for a feature without a kind where the caller named no type either."""
        for i, rows in holes.items():
            name, place, *_ = self._slots[i]
            if place == "context" and (self._wanted[place] or {})[name] is None:
                for row in rows.tolist():
                    values[i][row] = None

    def _dicts(
        self, place: Place, values: list[list[Any]], holes: dict[int, _Rows], rows: int
    ) -> list[_Row]:
        """Return one dict per row; in the place where all is wanted, without what is absent."""
        given = {i: s.name for i, s in enumerate(self._slots) if s.place == place and s.given}
        if not given:
            return [{} for _ in range(rows)]
        columns = (values[i] for i in given)
        # All in C: one dict from one zip of names and values a row.
        made = list(map(dict, map(zip, repeat(tuple(given.values())), zip(*columns, strict=True))))
        if self._wanted[place] is None:
            for i in given.keys() & holes.keys():
                for row in holes[i].tolist():
                    del made[row][given[i]]
        return made[:rows]

    def _misfit(self, stream: PartStream, fault: _core.Fault) -> Iterator[Any]:
        """Deal with the record at the start of the buffer, which stopped the decoder.

        Yields:
            The row, where it must be had without columns; nothing where the layout has learned.
        """
        stream.confirm()
        if fault.field:
            raise stream.error(fault)
        if fault.code not in ("kind", "unknown"):
            raise from_fault(fault, path=stream.path, record=stream.record, offset=stream.position)
        seen = _look(stream.buffer, 1, self._sequence)
        self._refuse(seen, stream.where(0))
        before = self._slots
        self._learn(seen)
        if self._slots == before:  # one list with several kinds: columns cannot hold it
            length = int.from_bytes(stream.buffer[:8], "little")
            payload = bytes(stream.buffer[_HEADER : _HEADER + length])
            row = message_row(payload, self._wanted)
            stream.advance(length + _HEADER + _FOOTER, 1)
            yield row

    def _refuse(self, seen: Observation, where: str) -> None:
        """Raise for the first feature, in the caller's order, that a record lacks or has amiss."""
        for place, wanted in self._wanted.items():
            for name, kind in (wanted or {}).items():
                feature = seen.features.get((name, place))
                if feature is None:
                    raise _missing((name, place), seen, where)
                stored = [KIND_NUMBERS[found] for found in feature.kinds]
                wrong = [found for found in stored if kind is not None and found != kind]
                if kind is not None and wrong:
                    raise wrong_type(name, NAME_OF[kind], NAME_OF[wrong[0]], where)


def _look(buffer: memoryview, records: int, sequence: bool) -> Observation:
    """Return what is in the first records of a buffer, whole ones only."""
    scanner = _core.SchemaScanner(sequence=sequence)
    feed = scanner.feed(buffer, 0, records, verify=False)
    seen = Observation()
    seen.add(scanner.result(), feed.records)
    return seen


def _missing(absent: tuple[str, Place], seen: Observation, where: str) -> KeyError:
    """Return the error for a feature that a record lacks."""
    name, place = absent
    return missing(name, [other for other, there in seen.features if there == place], where)
