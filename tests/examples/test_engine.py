"""Pulling records through the decoder: payloads that are no Example, first or later."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from tests.core.payloads import field
from tests.examples.helpers import KINDLESS, example, parse, payloads, put, sequence
from tfrio.errors import DecodeError, FeatureKindError, TfrioWarning
from tfrio.examples.decode import read, read_batches
from tfrio.examples.infer import infer_schema
from tfrio.examples.opened import open as tfrio_open
from tfrio.examples.schema import Feature
from tfrio.examples.writer import Writer
from tfrio.records.damage import DamageReport


def test_first_payloads_that_are_no_examples_can_be_skipped(tmp_path: Path) -> None:
    good = example({"x": [1]})
    path = put(tmp_path / "a", b"\xff\xff", field(1, b"hihi"), good, b"\xff\xff", good)
    with pytest.raises(DecodeError, match="record 0"):
        list(read(path))
    report = DamageReport()
    with pytest.warns(TfrioWarning, match="skipped 3 damaged"):
        rows = list(read(path, errors="skip", report=report))
    assert [row["x"].tolist() for row in rows] == [[1], [1]]
    assert [damage.record for damage in report.damages] == [0, 1, 3]
    with pytest.warns(TfrioWarning, match="skipped 3 damaged"):
        (batch,) = read_batches(path, 8, errors="skip", schema={"x": Feature("int64", ())})
    assert batch["x"].tolist() == [1, 1]


def test_fields_that_tf_train_never_had_are_stepped_over_from_the_first_record_on(
    tmp_path: Path,
) -> None:
    entry = field(1, b"q") + field(2, field(3, field(1, b"\x01")) + b"\x20\x00")
    payload = field(1, field(1, entry) + b"\x10\x05") + field(9, b"later")
    assert parse(payload) == {"q": ("int64_list", [1])}
    # Inside an entry Python's protobuf drops the entry, that of C++ and TensorFlow only the field.
    inside = field(1, field(1, entry + field(7, b"new")))
    for first in (payload, inside):
        path = put(tmp_path / "a", first, payload)
        assert [row["q"].tolist() for row in read(path)] == [[1], [1]]


def test_a_malformed_payload_with_a_new_feature_is_told_as_malformed(tmp_path: Path) -> None:
    good = example({"a": [1]})
    bad = bytes.fromhex("0a0f0a0d0a016212081a060a0480808080")  # a cut varint in feature 'b'
    path = put(tmp_path / "a", good, bad, good)
    with pytest.raises(DecodeError, match="varint.*feature 'b'.*record 1"):
        list(read(path))
    with pytest.raises(DecodeError, match="varint.*feature 'b'.*record 1"):
        tfrio_open(path, index="memory")[1]
    with pytest.warns(TfrioWarning, match="skipped 1 damaged"):
        assert len(list(read(path, errors="skip"))) == 2
    with pytest.warns(TfrioWarning, match="skipped 1 damaged"):
        (batch,) = read_batches(path, 5, errors="skip")
    assert batch.rows == 2


def test_feature_lists_of_no_steps_are_kept_while_their_kind_is_unknown(tmp_path: Path) -> None:
    empty = sequence({"n": [1]}, {"L": []})
    kindless = sequence({"n": [1]}, {"L": [KINDLESS, KINDLESS]})
    path = put(tmp_path / "a", *[empty] * 1500, kindless, sequence({"n": [1]}, {"L": [[5]]}))
    with pytest.warns(TfrioWarning, match="values for the first time"):
        (batch,) = read_batches(path, 3000)
    assert batch.present["L"].all()
    assert batch["L"].lengths[-3:].tolist() == [0, 2, 1]
    assert batch["L"][1501][0].tolist() == [5]


def test_batches_of_lists_whose_kind_is_not_known_yet_can_be_written(tmp_path: Path) -> None:
    path = put(tmp_path / "a", sequence({}, {"L": []}), sequence({}, {"L": [[1.0]]}))
    with warnings.catch_warnings(), Writer(tmp_path / "b", sequence=True) as writer:
        warnings.simplefilter("ignore", TfrioWarning)
        for batch in read_batches(path, 1):
            writer.write_batch(batch)
    assert payloads(tmp_path / "b") == payloads(tmp_path / "a")


def test_a_kind_may_become_known_along_with_another_change(tmp_path: Path) -> None:
    late = example({"b": [b"x"], "c": [1], "z": [1]})
    path = put(tmp_path / "a", *[example({"b": KINDLESS, "z": [1]})] * 1500, late)
    with pytest.warns(TfrioWarning):
        (batch,) = read_batches(path, 3000)
    assert batch.present["b"].tolist() == [False] * 1500 + [True]
    assert batch["b"][1500] == b"x"
    assert batch.present["c"].sum() == 1


def test_a_list_with_steps_of_two_kinds_is_an_error_and_no_endless_loop(tmp_path: Path) -> None:
    good = sequence({}, {"L": [[b"a"]]})
    path = put(tmp_path / "a", good, sequence({}, {"L": [[b"x"], [1.0]]}))
    with pytest.raises(FeatureKindError, match="mixes .*(bytes|float).* steps of record 1 of"):
        list(read(path))
    with tfrio_open(path, index="memory") as ds:
        with pytest.raises(FeatureKindError, match="steps of record 1 of"):
            ds[1]
        assert ds[0]["L"] == [[b"a"]]
    kinds = put(tmp_path / "b", *[sequence({}, {"L": [[v]]}) for v in (b"a", 1.0, b"b", 2.0)])
    assert [row["L"][0] for row in read(kinds)] == [[b"a"], [1.0], [b"b"], [2.0]]


@pytest.mark.parametrize("name", ["x", "", "context/x"])
def test_names_of_context_and_lists_never_clash(tmp_path: Path, name: str) -> None:
    context = {"x": [1], "context/x": [5], "": [7]}
    payload = sequence(context, {name: [[2]]})
    (row,) = read(put(tmp_path / "a", payload))
    values = [v.tolist() for key, v in row.items() if key != name]
    assert sorted(values) == [[1], [5], [7]]
    assert [step.tolist() for step in row[name]] == [[2]]
    assert len(infer_schema(tmp_path / "a")) == 4
