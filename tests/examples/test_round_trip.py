"""Odd Examples made with protobuf are the same after reading and writing, whatever the way."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.payloads import protobuf_classes
from tests.examples.helpers import KINDLESS, Empty, example, payloads, put, sequence
from tfrio.examples.arrow import from_arrow, to_arrow
from tfrio.examples.decode import read, read_batches
from tfrio.examples.infer import infer_schema
from tfrio.examples.opened import open as tfrio_open
from tfrio.examples.schema import Schema
from tfrio.examples.writer import Writer

VALUES: dict[str, list[Any]] = {
    "bytes_list": [b"", b"a", b"\0", b"x\0\0", b"\xff\xfe", "é".encode(), b"A" * 300],
    "float_list": [0.0, -0.0, 1.5, float("inf"), -1e-40, 2.0**127],
    "int64_list": [0, -1, 2**63 - 1, -(2**63), 5, 300],
}


def feature(rng: random.Random, kind: str) -> Any:
    """Make a list of 0 to 6 values of a kind."""
    count = rng.choice([0, 1, 1, 2, 3, 6])
    return [rng.choice(VALUES[kind]) for _ in range(count)] or Empty(kind)


def records(rng: random.Random, *, lists: bool) -> list[bytes]:
    """Make 1 to 6 records of the same features, each of which may be absent or without a kind."""
    kinds = {name: rng.choice([*VALUES]) for name in rng.sample(["a", "é", "x/y", ""], 3)}
    steps = {name: rng.choice([*VALUES]) for name in rng.sample(["L", "M"], rng.randint(0, 2))}
    made = []
    for _ in range(rng.randint(1, 6)):
        values = {
            name: feature(rng, kind) if rng.random() < 0.9 else KINDLESS
            for name, kind in kinds.items()
            if rng.random() < 0.8
        }
        found = {
            name: [
                feature(rng, kind) if rng.random() < 0.8 else KINDLESS
                for _ in range(rng.randint(0, 3))
            ]
            for name, kind in steps.items()
            if rng.random() < 0.8
        }
        made.append(sequence(values, found) if lists else example(values))
    return made


def content(payload: bytes, *, lists: bool) -> Any:
    """Read a payload with protobuf; a feature without a kind is absent, but a step counts."""

    def plain(one: Any) -> Any:
        kind = one.WhichOneof("kind")
        return kind and (kind, repr(list(getattr(one, kind).value)))

    message = protobuf_classes()[lists].FromString(payload)
    features = (message.context if lists else message.features).feature
    found = {name: plain(one) for name, one in features.items() if plain(one)}
    steps = message.feature_lists.feature_list if lists else {}
    return found, {name: [*map(plain, one.feature)] for name, one in steps.items()}


def by_batches(size: int) -> Callable[[str, Writer], None]:
    """Return a way to copy over batches of some size."""

    def copy(path: str, writer: Writer) -> None:
        for batch in read_batches(path, size):
            writer.write_batch(batch)

    return copy


def by_rows(path: str, writer: Writer) -> None:
    """Copy over rows."""
    for row in read(path):
        writer.write(row)


def by_single_rows(path: str, writer: Writer) -> None:
    """Copy over rows read by number, pickled on the way."""
    with tfrio_open(path, index="memory") as data:
        for number in range(len(data)):
            writer.write(pickle.loads(pickle.dumps(data[number])))


def by_arrow(path: str, writer: Writer) -> None:
    """Copy over Arrow."""
    for batch in from_arrow(to_arrow(path)):
        writer.write_batch(batch)


def by_number(path: str, writer: Writer) -> None:
    """Copy over one batch of numbered records."""
    with tfrio_open(path, index="memory") as data:
        writer.write_batch(data.batch(range(len(data))))


WAYS = [by_rows, by_single_rows, by_batches(1), by_batches(2), by_batches(9), by_arrow, by_number]


@pytest.mark.filterwarnings("ignore::tfrio.errors.TfrioWarning")
@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(20))
def test_nothing_changes_on_the_way(
    tmp_path: Path, seed: int, way: Callable[[str, Writer], None], lists: bool
) -> None:
    given = records(random.Random(seed), lists=lists)
    path = put(tmp_path / "in", *given)
    with Writer(tmp_path / "out", sequence=lists) as writer:
        way(path, writer)
    made = [content(payload, lists=lists) for payload in payloads(tmp_path / "out")]
    assert made == [content(payload, lists=lists) for payload in given]


def as_protobuf(value: Any) -> Any:
    """Return the value of a row with a schema as ``content`` shows it."""
    if isinstance(value, np.ndarray | np.generic):
        return repr(np.atleast_1d(value).tolist())
    return None if value is None else repr([value] if isinstance(value, bytes) else value)


@pytest.mark.filterwarnings("ignore::tfrio.errors.TfrioWarning")
@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("scalars", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_a_schema_learned_reads_and_writes_them(
    tmp_path: Path, seed: int, scalars: bool, lists: bool
) -> None:
    given = records(random.Random(seed), lists=lists)
    path = put(tmp_path / "in", *given)
    wanted = [content(payload, lists=lists) for payload in given]
    schema = infer_schema(path, scalars=scalars)
    for row, (context, steps) in zip(read(path, schema=schema), wanted, strict=True):
        for key, feature in schema.items():
            name, value = feature.stored_as(key), row[key]
            if feature.place == "context":
                assert as_protobuf(value) == (context[name][1] if name in context else None)
            elif value is not None:
                told = [None if step is None else step[1] for step in steps[name]]
                assert [as_protobuf(step) for step in value] == told
            else:
                assert name not in steps
    for way in (by_rows_of(schema), by_batches_of(schema)):
        with Writer(tmp_path / "out", schema=schema, sequence=lists) as writer:
            way(path, writer)
        made = [content(payload, lists=lists) for payload in payloads(tmp_path / "out")]
        assert made == wanted


def by_rows_of(schema: Schema) -> Callable[[str, Writer], None]:
    """Return a way to copy over rows that a schema describes."""

    def copy(path: str, writer: Writer) -> None:
        for row in read(path, schema=schema):
            writer.write(row)

    return copy


def by_batches_of(schema: Schema) -> Callable[[str, Writer], None]:
    """Return a way to copy over batches that a schema describes."""

    def copy(path: str, writer: Writer) -> None:
        for batch in read_batches(path, 2, schema=schema):
            writer.write_batch(batch)

    return copy
