"""Encoding: golden bytes, protobuf as reader, columns back again, arrays that do not fit."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.columns import decode, rows
from tests.core.payloads import protobuf_classes
from tfrio import _core

NAMES = [
    b"a",
    b"bb",
    b"image/encoded",
    "größe".encode(),
    b"a name of more than sixteen bytes",
    b"z",
]


def golden(hexadecimal: str) -> bytes:
    return _core.frame([bytes.fromhex(hexadecimal)])


def encode_one(values: Any, count: int = 1, kind: int = 3, name: bytes = b"x") -> bytes:
    encoder = _core.ExampleEncoder([(name, kind, 0)])
    return bytes(encoder.encode(1, [(values, None, None, None, None, count)]).data)


def test_golden_bytes() -> None:
    assert encode_one(np.array([1]), name=b"a") == golden("0a0c0a0a0a016112051a030a0101")
    extremes = np.array([-1, -(1 << 63), (1 << 63) - 1])
    assert encode_one(extremes, 3) == golden(
        "0a280a260a017812211a1f0a1dffffffffffffffffff0180808080808080808001ffffffffffffffff7f"
    )
    assert encode_one(np.zeros(0, np.int64), 0) == golden("0a090a070a017812021a00")
    assert encode_one(np.zeros(0, np.float32), 0, 2) == golden("0a090a070a017812021200")
    three = np.array([3, 270, 86942])
    assert encode_one(three, 3) == golden("0a110a0f0a0178120a1a080a06038e029ea705")


def test_a_row_without_features_is_an_empty_payload() -> None:
    encoder = _core.ExampleEncoder([(b"x", 3, 0), (b"y", 2, 1)], sequence=True)
    none = np.zeros(2, np.uint8)
    x = (np.zeros(2, np.int64), None, None, None, none, 1)
    y = (np.zeros(0, np.float32), None, None, np.zeros(3, np.int64), none.astype(bool), 1)
    encoded = encoder.encode(2, [x, y])
    assert bytes(encoded.data) == _core.frame([b"", b""])
    assert encoded.ends.tolist() == [16, 32]
    assert _core.ExampleEncoder([]).encode(3, []).ends.tolist() == [16, 32, 48]


class Made:
    """A column made at random, as arrays and as plain rows."""

    def __init__(self, rng: random.Random, n: int, name: bytes, place: int, steady: bool) -> None:
        self.name, self.kind, self.place = name, rng.randrange(1, 4), place
        self.count = rng.choice([-1, 0, 1, 1, 3])
        self.steady = steady
        self.rows: list[Any] = []
        for _ in range(n):
            if rng.random() < (0.0 if steady else 0.15):
                self.rows.append(None)
            elif place:
                self.rows.append(
                    [self._step(rng) for _ in range(2 if steady else rng.randrange(4))]
                )
            else:
                self.rows.append(self._list(rng))

    def _step(self, rng: random.Random) -> list[Any] | None:
        kindless = self.count <= 0 and rng.random() < 0.2
        return None if kindless else self._list(rng)

    def _list(self, rng: random.Random) -> list[Any]:
        n = self.count if self.count >= 0 else 2 if self.steady else rng.randrange(4)
        return [self._value(rng) for _ in range(n)]

    def _value(self, rng: random.Random) -> Any:
        if self.kind == 1:
            return rng.randbytes(3 if self.steady else rng.choice([0, 1, 9, 200]))
        if self.kind == 2:
            return float(np.float32(rng.random()))
        bits = 6 if self.steady else rng.choice([1, 7, 8, 30, 63])
        return rng.getrandbits(bits) * rng.choice([1, 1 if self.steady else -1])

    def lists(self) -> list[list[Any]]:
        """All lists of values, rows or steps; absent rows fill a fixed count with zeros."""
        nothing = [b"" if self.kind == 1 else 0] * max(self.count, 0)
        if self.place:
            return [step or [] for row in self.rows for step in row or []]
        return [nothing if row is None else row for row in self.rows]

    def arrays(self) -> tuple[Any, ...]:
        values = [value for item in self.lists() for value in item]
        byte_offsets = None
        if self.kind == 1:
            byte_offsets = np.cumsum([0, *map(len, values)], dtype=np.int64)
            array: Any = np.frombuffer(b"".join(values), np.uint8)
        else:
            array = np.array(values, np.float32 if self.kind == 2 else np.int64)
        ends = np.cumsum([0, *map(len, self.lists())], dtype=np.int64)
        steps = np.cumsum([0, *(len(row or []) for row in self.rows)], dtype=np.int64)
        present = np.array([row is not None for row in self.rows])
        return (
            array,
            byte_offsets,
            ends if self.count < 0 else None,
            steps if self.place else None,
            None if present.all() else present,
            self.count,
        )

    def step_present(self) -> Any:
        """Which steps carry a kind; None for a column without steps."""
        steps = [step is not None for row in self.rows for step in row or []]
        return np.array(steps, np.uint8) if self.place else None

    def plain_rows(self) -> list[Any]:
        """The rows as the helpers of the tests show a decoded column: floats as their bytes."""

        def show(item: list[Any] | None) -> Any:
            if item is None:
                return None
            return np.array(item, np.float32).tobytes() if self.kind == 2 else item

        return [
            None if row is None else [show(step) for step in row] if self.place else show(row)
            for row in self.rows
        ]


def made_columns(seed: int) -> tuple[list[Made], int, bool]:
    rng = random.Random(seed)
    n, sequence, steady = rng.choice([0, 1, 7, 40]), rng.random() < 0.5, rng.random() < 0.4
    names = rng.sample(NAMES, rng.randrange(1, 5))
    places = [rng.randrange(2) if sequence else 0 for _ in names]
    return [Made(rng, n, m, p, steady) for m, p in zip(names, places, strict=True)], n, sequence


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 32))
def test_columns_come_back_and_protobuf_reads_them(seed: int) -> None:
    columns, n, sequence = made_columns(seed)
    encoder = _core.ExampleEncoder([(c.name, c.kind, c.place) for c in columns], sequence=sequence)
    steps = [(i, c.step_present()) for i, c in enumerate(columns) if c.place]
    encoded = encoder.encode(n, [c.arrays() for c in columns], step_present=steps)
    data = bytes(encoded.data)
    features = [(c.name, c.kind, c.count, c.place) for c in columns]
    assert decode(data, features, sequence=sequence) == [c.plain_rows() for c in columns]
    spans = _core.scan(data, final=True).spans
    assert encoded.ends.tolist() == [at + size + 4 for at, size in spans.tolist()]
    message_class = protobuf_classes()[sequence]
    for row, (at, size) in enumerate(spans.tolist()):
        message = message_class()
        fill(message, columns, row, sequence)
        assert message_class.FromString(data[at : at + size]) == message
        # As short as can be; the order of names is protobuf's own affair.
        assert message.ByteSize() == size


def fill(message: Any, columns: list[Made], row: int, sequence: bool) -> None:
    """Set the values of one row in a protobuf message."""
    field = {1: "bytes_list", 2: "float_list", 3: "int64_list"}
    for column in columns:
        value = column.rows[row]
        if value is None:
            continue
        name = column.name.decode()
        if column.place:
            feature_list = message.feature_lists.feature_list[name]
            targets = [feature_list.feature.add() for _ in value]
        else:
            features = message.context if sequence else message.features
            targets, value = [features.feature[name]], [value]
        for target, values in zip(targets, value, strict=True):
            if values is None:
                continue
            list_message = getattr(target, field[column.kind])
            list_message.SetInParent()
            list_message.value.extend(values)


def test_names_are_sorted_bytewise_or_kept_in_order() -> None:
    names = [b"b", b"a", b"B", "ä".encode(), b"ab"]
    columns = [(np.array([1]), None, None, None, None, 1)] * len(names)
    for sort, want in ((True, sorted(names)), (False, names)):
        encoder = _core.ExampleEncoder([(name, 3, 0) for name in names], sort=sort)
        data = bytes(encoder.encode(1, columns).data)
        found = _core.SchemaScanner()
        found.feed(data)
        assert [f[0] for f in found.result()] == want


ONES, BAD_OFFSETS = np.ones(3, np.int64), np.array([0, 2, 1])


@pytest.mark.parametrize(
    ("kind", "rows_", "column", "error"),
    [
        (3, 4, (ONES, None, None, None, None, 1), ValueError),
        (3, 2, (ONES, None, BAD_OFFSETS, None, None, -1), ValueError),
        (3, 2, (ONES, None, np.array([0, 1]), None, None, -1), ValueError),
        (3, 1, (ONES, None, np.array([0, 4]), None, None, -1), ValueError),
        (3, 1, (ONES, None, np.array([-1, 1]), None, None, -1), ValueError),
        (3, 1, (ONES, None, None, None, None, -1), ValueError),
        (3, 3, (ONES, None, None, None, np.ones(2, np.uint8), 1), ValueError),
        (3, 1 << 62, (ONES, None, None, None, None, 9), ValueError),
        (1, 1, (np.ones(3, np.uint8), None, None, None, None, 1), ValueError),
        (1, 1, (np.ones(3, np.uint8), np.array([0, 4]), None, None, None, 1), ValueError),
        (2, 3, (ONES, None, None, None, None, 1), TypeError),
        (3, 3, (np.ones(3, np.float32), None, None, None, None, 1), TypeError),
        (3, 3, (ONES, None, None, None, np.ones(3, np.int64), 1), TypeError),
    ],
)
def test_arrays_that_do_not_fit(kind: int, rows_: int, column: Any, error: type) -> None:
    with pytest.raises(error, match="x|present"):
        _core.ExampleEncoder([(b"x", kind, 0)]).encode(rows_, [column])


def test_features_that_make_no_sense() -> None:
    for features in ([(b"x", 4, 0)], [(b"x", 1, 2)], [(b"x", 1, 1)], [(b"x", 1, 0), (b"x", 2, 0)]):
        with pytest.raises(ValueError, match=r"kind|place|list"):
            _core.ExampleEncoder(features)
    with pytest.raises(ValueError, match="column"):
        _core.ExampleEncoder([(b"x", 3, 0)]).encode(1, [])


def test_long_runs_are_checked_on_the_way() -> None:
    """Records with values of several KiB, whose checksum is made while they are copied."""
    rng = np.random.default_rng(20_261_129)
    band, text = rng.random((3, 5000), np.float32), rng.bytes(9000)
    columns = [
        (band, None, None, None, None, 5000),
        (np.arange(3), None, None, None, None, 1),
        (np.frombuffer(text, np.uint8), np.array([0, 4200, 4300, 9000]), None, None, None, 1),
    ]
    data = bytes(
        _core.ExampleEncoder([(b"b", 2, 0), (b"id", 3, 0), (b"t", 1, 0)]).encode(3, columns).data
    )
    decoder = _core.ExampleDecoder([(b"b", 2, 5000, 0), (b"id", 3, 1, 0), (b"t", 1, 1, 0)])
    assert decoder.feed(data, final=True).records == 3
    b, ids, t = decoder.take()
    assert (b.values.reshape(3, 5000) == band).all()
    assert ids.values.tolist() == [0, 1, 2]
    assert rows(t, 1, 1) == [[text[:4200]], [text[4200:4300]], [text[4300:]]]
