"""What several files note of their features, and what of it holds for all of them. Pure.

The rule for readers without a schema: a record is what its own file notes, whatever other files
say; where a file notes nothing of a feature, its records hold flat lists. Rows are read by that
alone. A column over several files has one form where the files of its records agree, and is a list
with one value a row, each in its own form, where they do not.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

from tfrio.examples.axes import RowAxes
from tfrio.examples.schema import Feature, Schema, common_shape

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

    from tfrio.examples.observe import Observation
    from tfrio.examples.schema import Kind, Place
    from tfrio.examples.sidecar import Noted

__all__ = ["Note", "Told", "common_form", "noted_schema", "outline", "shape_only", "with_note"]

Note: TypeAlias = Feature | RowAxes


def outline(noted: Noted | None) -> Hashable:
    """Return what two files have in common whose rows can be read in one way.

    Args:
        noted: What a file notes; the axes of single records may differ.
    """
    return (noted.schema, frozenset(noted.rows)) if noted else None


def shape_only(note: Note | None) -> bool:
    """Return whether nothing but axes is noted: of all records alike, or of each."""
    if note is None or isinstance(note, RowAxes):
        return True
    return _alone(note) and note.codec is None and note.dtype is None


def common_form(notes: Iterable[Note | None]) -> Feature | None:
    """Return the form that the records of several files fit.

    Args:
        notes: What each file says of the feature; None says nothing.

    Returns:
        What all say, or the narrowest shape that all axes fit; None where there is none.
    """
    different = list(dict.fromkeys(notes))
    known = [note for note in different if isinstance(note, Feature)]
    if not known or len(known) < len(different):
        return None
    if len(known) > 1 and not all(map(shape_only, known)):
        return None
    shape = reduce(common_shape, [note.shape for note in known])
    return known[0] if len(known) < 2 else None if shape is None else replace(known[0], shape=shape)


def with_note(
    features: Mapping[str, Feature | Kind],
    name: str,
    note: Feature,
    keys: Mapping[tuple[str, Place], str],
) -> dict[str, Feature | Kind]:
    """Return features with one as files note it, in its place, and without those it is made of.

    Args:
        features: The features as they are stored.
        name: The feature noted.
        note: What is noted of it.
        keys: Key in ``features`` by stored name and place.
    """
    stored = note.stored_as(name), note.place
    key = keys.get(stored)
    if note.name is None and key is not None and key != name:
        name, note = key, replace(note, name=stored[0])
    if key not in features or (name != key and name in features):
        return dict(features)
    parts = {keys.get((lengths, "context")) for lengths in note.row_lengths}
    return {
        name if other == key else other: note if other == key else feature
        for other, feature in features.items()
        if other not in parts
    }


def noted_schema(
    schema: Schema,
    seen: Observation,
    files: Sequence[tuple[Noted | None, Collection[tuple[str, Place]] | None]],
) -> Schema:
    """Return a schema with what the files note of its features, where that holds for all records.

    Args:
        schema: The schema learned from the records.
        seen: What it was learned from.
        files: What each file notes, and the stored features that it has; None may have any.

    Returns:
        The schema; features that only some files note, or that files note differently, as before.
    """
    keys = seen.keys()
    features: dict[str, Feature | Kind] = dict(schema)
    notes = [_notes(noted) for noted, _ in files]
    for name in dict.fromkeys(name for told in notes for name in told):
        first = next(told[name] for told in notes if name in told)
        stored = (first.stored_as(name) if isinstance(first, Feature) else name), _place(first)
        known = schema.get(keys.get(stored, ""))
        form = common_form(
            told.get(name)
            for told, (_, has) in zip(notes, files, strict=True)
            if has is None or stored in has
        )
        if form is None or known is None or known.kind != form.kind or not _possible(form, known):
            continue
        form = replace(form, required=known.required, lengths=known.lengths)
        features = with_note(features, name, form, keys)
    return Schema(features)


def _possible(form: Feature, known: Feature) -> bool:
    """Return whether lists of the lengths seen can have a form."""
    return form.count < 0 or known.lengths in (None, (form.count, form.count))


class Told:
    """What files note of their features, file by file."""

    def __init__(self) -> None:
        self._files: dict[str, dict[str, Note]] = {}
        self._first: dict[str, Note] = {}
        self._alike: dict[str, int] = {}  # files that note the same as the first that did
        self._odd: set[str] = set()  # features that are not one stored feature in each file

    def add(self, path: str, noted: Noted | None) -> None:
        """Take note of what a file says.

        Args:
            path: The file.
            noted: What its sidecar says; None says nothing.
        """
        if path not in self._files:
            notes = _notes(noted)
            self._files[path] = notes
            self._count(notes)

    def deny(self, path: str | None, name: str) -> None:
        """Forget what a file says of a feature: it proved wrong.

        Args:
            path: The file.
            name: The feature.
        """
        self._files.get(path or "", {}).pop(name, None)
        self._first, self._alike, self._odd = {}, {}, set()
        for notes in self._files.values():
            self._count(notes)

    def note(self, path: str, name: str) -> Note | None:
        """Return what a file says of a feature."""
        return self._files.get(path, {}).get(name)

    def agreed(self) -> dict[str, Feature]:
        """Return the features of which every file says the same."""
        return {
            name: note
            for name, note in self._first.items()
            if isinstance(note, Feature) and self._alike[name] == len(self._files)
        }

    def apart(self) -> dict[str, Place]:
        """Return the features of which files say different things, or some nothing, and where."""
        agreed = self.agreed()
        return {
            name: _place(note)
            for name, note in self._first.items()
            if name not in agreed and name not in self._odd
        }

    def row_by_row(self) -> set[str]:
        """Return the features of ``apart`` that can be noted of single records: only by axes."""
        return {
            name
            for name, place in self.apart().items()
            if place == "context"
            and all(shape_only(notes.get(name)) for notes in self._files.values())
        }

    def names(self) -> set[str]:
        """Return all features of which a file says something."""
        return set(self._first)

    def _count(self, notes: dict[str, Note]) -> None:
        for name, note in notes.items():
            first = self._first.setdefault(name, note)
            self._alike[name] = self._alike.get(name, 0) + (first == note)
            if not _alone(note) or _place(note) != _place(first):
                self._odd.add(name)


def _alone(note: Any) -> bool:
    """Return whether a feature is one stored feature of the same name."""
    return isinstance(note, RowAxes) or not (note.name or note.row_lengths or note.dims)


def _place(note: Note) -> Place:
    return "context" if isinstance(note, RowAxes) else note.place


def _notes(noted: Noted | None) -> dict[str, Note]:
    return {**noted.schema, **noted.rows} if noted else {}
