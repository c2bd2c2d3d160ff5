"""Surveying payloads: the lattice of kinds, lengths, steps; and which message a payload is."""

from __future__ import annotations

import pytest

from tests.core.payloads import field
from tests.core.test_decoder import THREE, example, floats, ints, strings
from tfrio import _core

SEQUENCE = bytes.fromhex(
    "0a0c0a0a0a016e12051a030a0103123d0a1c0a03746f6b12150a061a040a0200010a021a000a071a050a03020304"
    "0a1d0a03696d6712160a060a040a02ffd80a040a020a000a060a040a026162"
)


def survey(payloads: list[bytes], *, sequence: bool = False) -> dict[bytes, tuple[object, ...]]:
    scanner = _core.SchemaScanner(sequence)
    feed = scanner.feed(_core.frame(payloads), final=True)
    assert (feed.records, feed.fault) == (len(payloads), None)
    return {entry[0]: entry[1:] for entry in scanner.result()}


def test_the_three_record_file() -> None:
    scanner = _core.SchemaScanner()
    assert scanner.feed(THREE).consumed == 138
    assert scanner.result() == [
        (b"id", 0, 3, 0, 0, {3: (3, 0)}, 1, 1, -1, -1),
        (b"v", 0, 3, 0, 0, {2: (3, 0)}, 1, 1, -1, -1),
    ]


def test_kinds_lengths_and_absence() -> None:
    found = survey(
        [
            example(x=ints([1])),
            example(x=b""),
            example(),
            example(x=strings([])),
            example(x=ints([1, 2, 3])),
        ]
    )
    assert found[b"x"] == (0, 4, 1, 1, {1: (1, 3), 3: (2, 0)}, 0, 3, -1, -1)


def test_feature_lists() -> None:
    found = survey([SEQUENCE, b"", SEQUENCE], sequence=True)
    assert found[b"n"] == (0, 2, 0, 0, {3: (2, 0)}, 1, 1, -1, -1)
    assert found[b"tok"] == (1, 2, 0, 2, {3: (2, 0)}, 0, 3, 3, 3)
    assert found[b"img"] == (1, 2, 0, 0, {1: (2, 0)}, 1, 1, 3, 3)


def test_steps_of_several_kinds() -> None:
    steps = field(1, ints([1])) + field(1, b"") + field(1, floats(__import__("numpy").ones(2)))
    payload = field(2, field(1, field(1, b"s") + field(2, steps)))
    assert survey([payload], sequence=True)[b"s"] == (
        1,
        1,
        1,
        0,
        {2: (1, 0), 3: (1, 0)},
        1,
        2,
        3,
        3,
    )


def test_damage_and_odd_names() -> None:
    bad = example(x=ints([1]))[:-1]
    fault = _core.SchemaScanner().feed(_core.frame([example(x=ints([1])), bad])).fault
    assert (fault.code, fault.record) == ("wire", 1)
    odd = field(1, field(1, field(1, b"\xff") + field(2, ints([5]))))
    assert _core.SchemaScanner().feed(_core.frame([odd])).fault.code == "utf8"
    lenient = _core.SchemaScanner(utf8="accept")
    assert lenient.feed(_core.frame([odd])).fault is None
    assert lenient.result()[0][0] == b"\xff"


def test_many_names() -> None:
    names = [b"feature number %d" % i for i in range(3000)]
    payload = field(
        1, b"".join(field(1, field(1, n) + field(2, ints([i]))) for i, n in enumerate(names))
    )
    assert list(survey([payload, payload])) == names


@pytest.mark.parametrize(
    ("payload", "what"),
    [
        (b"", "example"),
        (b"\x0a\x00", "example"),
        (example(x=ints([1]), y=b""), "example"),
        (example(x=ints([1])) + field(15, b"future"), "example"),
        (SEQUENCE, "sequence"),
        (b"\x12\x00", "sequence"),
        (example(x=ints([1])) + field(2, b"no list"), "example"),
        (example(x=ints([1]) + field(9, b"later")), "example"),
        (field(1, field(1, b"\x20\x07" + field(1, b"q") + field(2, ints([1])))), "example"),
        (field(1, b"\x10\x07" + field(1, field(1, b"q") + field(2, ints([1])))), "example"),
        (SEQUENCE[:-2] + b"ab" + field(2, b"\x10\x07"), "sequence"),
        (field(1, b"hihi"), "other"),  # reads as fields that nobody knows, and nothing else
        (field(2, b"hihi"), "other"),
        (b"\x08\x96\x01", "other"),
        (field(1, b"a string"), "other"),
        (b"plain text", "other"),
        (example(x=ints([1]))[:-1], "other"),
    ],
)
def test_classify(payload: bytes, what: str) -> None:
    assert _core.classify(payload) == what
