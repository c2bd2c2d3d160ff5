"""Which layout the next records are decoded with: bound by a schema, or learned as they come."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from tfrio.errors import FeatureKindError, MissingFeatureError, TfrioError, warn_user
from tfrio.examples.layout import KIND_NAMES, Layout, stored_name
from tfrio.examples.observe import Observation, Seen
from tfrio.examples.schema import Feature, Kind, Place, Schema
from tfrio.examples.told import Told, outline, with_note

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from tfrio.examples.sidecar import Noted

__all__ = ["Bound", "Form", "Learned"]


class Form(Protocol):
    """What decides the layout of the native decoder."""

    layout: Layout
    discover: bool
    sequence: bool
    ready: bool

    def hint(self, known: Noted | None, path: str) -> None:
        """Take note of what a file's sidecar says."""
        ...

    def learn(self, seen: Observation) -> None:
        """Take note of the records to come."""
        ...

    def widen(self, fault: Any, seen: Observation, error: TfrioError) -> None:
        """Change the layout so that the next record fits, or raise ``error``."""
        ...


class Bound:
    """A schema given by the user: a record that does not fit is an error.

    Args:
        schema: The features to read.
    """

    discover = False
    ready = True

    def __init__(self, schema: Schema) -> None:
        self.layout = Layout(schema)
        self.sequence = schema.sequence

    def hint(self, known: Noted | None, path: str) -> None:
        """Need nothing: the schema says it all."""

    def learn(self, seen: Observation) -> None:
        """Need nothing: the schema says it all."""

    def widen(self, fault: Any, seen: Observation, error: TfrioError) -> None:
        """Refuse the record.

        Raises:
            TfrioError: Always.
        """
        raise error


class Learned:
    """The form the records seen so far have; it widens where a later record does not fit.

    Args:
        names: Features wanted, None for all.
        switch: Whether a feature may change its kind from record to record; columns cannot,
            rows can.
        ragged: Whether every feature is a list of free length, whatever was seen.
    """

    # SequenceExample's reading loses nothing of an Example, the other way round it does.
    sequence = True

    def __init__(
        self, *, names: Sequence[str] | None = None, switch: bool, ragged: bool = False
    ) -> None:
        self.layout = Layout(Schema())
        self.discover = names is None
        self.ready = False
        self._names = names
        self._told = Told()
        self._outline: Hashable = None  # of the files told of, where rows are read
        self._switch = switch
        self._ragged = ragged
        self._seen = Observation()
        self._kinds: dict[tuple[str, Place], Kind] = {}
        self._loose: set[tuple[str, Place]] = set()
        self._changing: Any = None  # feature and record whose kind changed last
        self._tried: set[int] = set()

    def hint(self, known: Noted | None, path: str) -> None:
        """Take note of what is known beforehand of some features, their shape say.

        Args:
            known: What the sidecar of a file says; None says nothing.
            path: The file.
        """
        if self._ragged:
            return
        before = self._told.agreed(), self._told.apart().keys()
        if self._switch and outline(known) != self._outline:
            self._told = Told()  # a row is what it would be if its file were read alone
            self._outline = outline(known)
        self._told.add(path, known)
        after = self._told.agreed(), self._told.apart().keys()
        if self.ready and after != before:
            if not self._switch:
                self._loosen(before[0])
            self._set_layout()

    def _loosen(self, before: Mapping[str, Feature]) -> None:
        """Make lists of what files say different things of, so that columns of all of them fit."""
        self._loose.update(self._told.apart().items())
        agreed = self._told.agreed()
        for name, hint in before.items():
            if name not in agreed:
                self._loose.add((hint.stored_as(name), hint.place))
                self._loose.update((lengths, "context") for lengths in hint.row_lengths)

    def learn(self, seen: Observation) -> None:
        """Take the form of the first records.

        Args:
            seen: What they hold; nothing is learned from no records.

        Raises:
            MissingFeatureError: A feature asked for by name is in none of them.
        """
        if not seen.records:
            return
        self._seen.join(seen)
        self.ready = True
        self._set_layout()

    def widen(self, fault: Any, seen: Observation, error: TfrioError) -> None:
        """Change the layout so that the next record fits.

        Args:
            fault: Why the native decoder stopped.
            seen: What the next records hold.
            error: What to raise where no layout fits.

        Raises:
            FeatureKindError: The feature has another kind than before and columns are wanted.
        """
        place: Place = "list" if fault.step >= 0 else "context"
        key = (stored_name(fault.feature), place)
        if fault.code == "unknown" and key not in seen.features:
            key = (key[0], "list")
        first_time = not self._seen.records
        before = self.layout.slots
        self._seen.join(seen)
        self.ready = True
        if fault.code == "kind":
            self._change_kind(key, fault, error)
        elif fault.code == "count":
            self._loose.add(key)
            self._drop_hint(key, error.path)
        self._set_layout()
        if self.layout.slots == before:
            raise error
        if not self._switch and not first_time:
            self._warn(fault, key, error)

    def _change_kind(self, key: tuple[str, Place], fault: Any, error: TfrioError) -> None:
        seen = self._seen.features[key]
        if len(seen.kinds) > 1 and not self._switch:
            raise _mixed(key[0], seen, KIND_NAMES[fault.got], error)
        self._check_steps(key, fault, error)
        self._kinds[key] = KIND_NAMES[fault.got]
        self._drop_hint(key, error.path)

    def _check_steps(self, key: tuple[str, Place], fault: Any, error: TfrioError) -> None:
        """Refuse a feature list with steps of two kinds: neither decodes its record."""
        here = (key, error.path, error.record)
        if self._changing != here:
            self._changing, self._tried = here, set()
        if fault.got in self._tried:
            raise _kind_error(
                f"feature list '{key[0]}' mixes {KIND_NAMES[fault.expected]} and "
                f"{KIND_NAMES[fault.got]} among the steps of record {error.record} of "
                f"{error.path}; leave it out (features=[...]), or take the payload from "
                "tfrio.read_records",
                key[0],
                error,
            )
        self._tried.add(fault.got)

    def _drop_hint(self, key: tuple[str, Place], path: str | None) -> None:
        """Forget what a file says of a stored feature: it proved wrong."""
        before = self._told.agreed()
        for name, hint in before.items():
            if (hint.stored_as(name), hint.place) == key:
                self._told.deny(path, name)
        self._loosen(before)

    def _set_layout(self) -> None:
        keys = self._seen.keys()
        told_apart = self._told.apart().items()
        loose = self._loose.union(told_apart)
        features: dict[str, Feature | Kind] = {
            keys[key]: self._form(key, keys[key], seen, loose=self._ragged or key in loose)
            for key, seen in self._seen.features.items()
        }
        for name, hint in self._told.agreed().items():
            features = with_note(features, name, hint, keys)
        schema = Schema(features)
        if self._names is not None:
            schema = self._selected(schema, first=not self.layout.slots)
        apart = {
            keys[key]: partial(self._told.note, name=key[0])
            for key in told_apart
            if keys.get(key) in schema
        }
        self.layout = Layout(schema, apart=apart)

    def _form(self, key: tuple[str, Place], name: str, seen: Seen, *, loose: bool) -> Feature:
        kind = self._kinds.get(key, seen.kind)
        shape: tuple[int, ...] | None = None
        if seen.lengths is not None and key[1] == "context" and not loose:
            low, high = seen.lengths
            if low == high > 0 and kind != "bytes":
                shape = (high,)
            elif low == high == 1:
                shape = ()
        stored = None if seen.name == name else seen.name
        return Feature(
            kind, shape, required=False, place=seen.place, name=stored, lengths=seen.lengths
        )

    def _selected(self, schema: Schema, *, first: bool) -> Schema:
        names = self._names or ()
        if not first:  # what only other files have is absent here
            return schema.select([name for name in names if name in schema])
        for name in names:
            if name not in schema:
                raise MissingFeatureError(
                    f"no feature '{name}' in the first {self._seen.records} records; present: "
                    f"{sorted(schema)}; pass a schema to read what only later records have",
                    feature=name,
                )
        return schema.select(names)

    def _warn(self, fault: Any, key: tuple[str, Place], error: TfrioError) -> None:
        name = key[0]
        happened = {
            "count": f"feature '{name}' has {fault.got} values, not {fault.expected} as before; "
            "it is a ragged column from here on",
            "unknown": f"feature '{name}' appears for the first time; it is a column from here on",
            "kind": f"feature '{name}' has values for the first time",
        }[fault.code]
        warn_user(
            f"{happened} (record {error.record} of {error.path}). Pass a schema "
            "(tfrio.infer_schema) to fix the form of every column"
        )


def _mixed(name: str, seen: Seen, kind: Kind, error: TfrioError) -> FeatureKindError:
    """Return the error of a column whose records have two kinds, nobody having asked for one."""
    before, first = next(iter(seen.kinds.items()))
    return _kind_error(
        f"feature '{name}' is {before} from record {first.record} of {first.path} on and {kind} in "
        f"record {error.record} of {error.path}; a column has one kind. Read rows with tfrio.read, "
        "or leave the feature out (features=[...])",
        name,
        error,
    )


def _kind_error(text: str, name: str, error: TfrioError) -> FeatureKindError:
    """Return the error of a feature's kind at the place of another error."""
    return FeatureKindError(
        text, path=error.path, record=error.record, offset=error.offset, feature=name
    )
