"""The native core against protobuf on random, odd and damaged payloads.

Both must accept the same payloads and see the same values. We differ on purpose in two points:

* Groups. The tf.train messages never had any; protobuf steps over well-formed ones, we refuse them.
* An entry of a map with a field that is neither key nor value. The Python protobuf package drops
  the whole entry; the C++ and Java ones drop the field, and so do we.

The plain-Python reader, which follows the same rules, tells whether a payload is such a case.
"""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from google.protobuf.message import DecodeError

from tests.core.columns import rows
from tests.core.payloads import example, float_bits, mutate, protobuf_classes, sequence
from tfrio import _core
from tfrio.testing import reference

PAYLOADS = 55_000
LISTS = {1: "bytes_list", 2: "float_list", 3: "int64_list"}


def has_group(message: bytes) -> bool:
    """Tell whether the plain reader stumbles over a group somewhere in what it walks."""
    try:
        reference.decode_sequence_example(message)
        reference.decode_example(message)
    except reference.MalformedError as error:
        return "group" in str(error)
    return False


def has_strange_entry(message: bytes) -> bool:
    """Tell whether an entry of a map holds anything but key and value."""
    known = {(1, 2), (2, 2)}
    for number, wire_type, features in reference.fields(message):
        if (number, wire_type) not in known:
            continue
        for entry in entries(features):
            if any(
                (part, part_type) not in known for part, part_type, _ in reference.fields(entry)
            ):
                return True
    return False


def entries(features: bytes) -> list[bytes]:
    """Return the map entries of a Features or FeatureLists message, [] where it is neither."""
    try:
        found = [
            e
            for number, wire_type, e in reference.fields(features)
            if (number, wire_type) == (1, 2)
        ]
        for entry in found:
            list(reference.fields(entry))
    except reference.MalformedError:
        return []
    return found


def plain(feature: Any) -> tuple[int, Any]:
    """Return kind number and comparable values of a protobuf Feature."""
    name = feature.WhichOneof("kind")
    if name is None:
        return 0, None
    kind = next(k for k, n in LISTS.items() if n == name)
    values = list(getattr(feature, name).value)
    return kind, float_bits(values) if kind == 2 else values


def quiet(value: Any, kind: int) -> Any:
    """Make NaNs quiet, as protobuf's way over Python floats does; we keep their bits."""
    if kind != 2 or value is None:
        return value
    if isinstance(value, list):
        return [quiet(step, kind) for step in value]
    return float_bits(list(struct.unpack(f"<{len(value) // 4}f", value)))


class Subject:
    """Our side: decoders are kept, so that their predictions meet the odd payloads too."""

    def __init__(self, sequence: bool) -> None:
        self.sequence = sequence
        self.decoders: dict[Any, Any] = {}

    def accepts(self, framed: bytes) -> bool:
        feed = _core.SchemaScanner(self.sequence).feed(framed, verify=False, final=True)
        return feed.fault is None

    def decode(self, framed: bytes, features: list[tuple[bytes, int, int, int]]) -> list[Any]:
        key = tuple(features)
        if len(self.decoders) > 500:
            self.decoders.clear()
        decoder = self.decoders.get(key)
        if decoder is None:
            decoder = _core.ExampleDecoder(features, sequence=self.sequence)
            self.decoders[key] = decoder
        feed = decoder.feed(framed, verify=False, final=True)
        assert feed.fault is None, feed.fault.reason
        columns = zip(decoder.take(), features, strict=True)
        return [quiet(rows(column, f[1])[0], f[1]) for column, f in columns]


def check_features(subject: Subject, framed: bytes, message: Any) -> None:
    """Compare a map of features: those with a kind by value, those without as absent."""
    seen = {name.encode(): plain(feature) for name, feature in message.feature.items()}
    asked = [(name, kind or 1, -1, 0) for name, (kind, _) in seen.items()]
    got = subject.decode(framed, asked)
    assert got == [value for _, value in seen.values()], framed.hex()


def check_lists(subject: Subject, framed: bytes, message: Any) -> None:
    """Compare feature lists whose steps agree in kind; others must be refused as such."""
    for name, feature_list in message.feature_list.items():
        steps = [plain(feature) for feature in feature_list.feature]
        kinds = {kind for kind, _ in steps if kind}
        if len(kinds) > 1:
            decoder = _core.ExampleDecoder([(name.encode(), min(kinds), -1, 1)], sequence=True)
            assert decoder.feed(framed, verify=False).fault.code == "kind"
            continue
        kind = kinds.pop() if kinds else 1
        got = subject.decode(framed, [(name.encode(), kind, -1, 1)])
        assert got == [[value for _, value in steps]], framed.hex()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["example", "sequence"])
def test_same_payloads_and_same_values_as_protobuf(form: str) -> None:
    rng = random.Random(f"tfrio {form}")
    make, message_class = (
        (example, protobuf_classes()[0]) if form == "example" else (sequence, protobuf_classes()[1])
    )
    subject = Subject(form == "sequence")
    accepted = refused = differing = 0
    for _ in range(PAYLOADS):
        payload = make(rng)
        if rng.random() < 0.5:
            payload = mutate(payload, rng)
        framed = _core.frame([payload])
        message = message_class()
        try:
            message.ParseFromString(payload)
            theirs = True
        except DecodeError:
            theirs = False
        ours = subject.accepts(framed)
        if ours != theirs:
            assert theirs, payload.hex()
            assert has_group(payload), payload.hex()
            differing += 1
            continue
        if not ours:
            refused += 1
            continue
        if has_strange_entry(payload):
            differing += 1
            continue
        accepted += 1
        if form == "example":
            check_features(subject, framed, message.features)
        else:
            check_features(subject, framed, message.context)
            check_lists(subject, framed, message.feature_lists)
    # Neither side may be the trivial one, and the differences are rare.
    assert accepted > PAYLOADS // 2
    assert refused > PAYLOADS // 10
    assert differing < PAYLOADS // 20
