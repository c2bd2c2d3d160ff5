"""Decoding through the bindings: columns, outputs, spans, shuffled batches, large values."""

from __future__ import annotations

import gc
import random
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.columns import decode, rows
from tests.core.payloads import field, varint
from tfrio import _core
from tfrio.examples.encode import encode_example

SEED = 20_261_129


def feature(kind: int, body: bytes) -> bytes:
    return field(kind, body)


def example(**features: bytes) -> bytes:
    entries = (
        field(1, field(1, name.encode()) + field(2, value)) for name, value in features.items()
    )
    return field(1, b"".join(entries))


def floats(values: np.ndarray) -> bytes:
    return feature(2, field(1, values.astype("<f4").tobytes()))


def ints(values: list[int]) -> bytes:
    return feature(3, field(1, b"".join(map(varint, values))))


def strings(values: list[bytes]) -> bytes:
    return feature(1, b"".join(field(1, value) for value in values))


THREE = _core.frame([example(id=ints([k]), v=floats(np.array([k + 0.5]))) for k in (10, 20, 30)])


def test_the_three_record_file(shared: Path) -> None:
    assert (shared / "fixtures" / "three.tfrecord").read_bytes() == THREE


def test_columns_are_arrays_of_the_right_type() -> None:
    decoder = _core.ExampleDecoder([(b"v", 2, 1, 0), (b"id", 3, -1, 0), (b"s", 1, -1, 0)])
    assert decoder.feed(THREE, final=True).records == decoder.rows == 3
    v, ids, s = decoder.take()
    assert v.values.dtype == np.float32
    assert v.values.tolist() == [10.5, 20.5, 30.5]
    assert v.byte_offsets is v.value_offsets is v.step_offsets is None
    assert ids.values.dtype == np.int64
    assert ids.value_offsets.tolist() == [0, 1, 2, 3]
    assert s.values.dtype == np.uint8
    assert (s.byte_offsets.tolist(), s.value_offsets.tolist()) == ([0], [0, 0, 0, 0])
    assert s.present.tolist() == [0, 0, 0]
    assert decoder.rows == 0


def test_nothing_fed_gives_empty_columns() -> None:
    decoder = _core.ExampleDecoder([(b"v", 2, 1, 0), (b"s", 1, -1, 0)])
    v, s = decoder.take()
    assert v.values.shape == v.present.shape == (0,)
    assert s.value_offsets.tolist() == s.byte_offsets.tolist() == [0]
    assert _core.ExampleDecoder([]).feed(THREE).records == 3


def test_arrays_live_on_after_the_decoder() -> None:
    decoder = _core.ExampleDecoder([(b"v", 2, 1, 0)])
    arrays = []
    for _ in range(50):
        decoder.feed(_core.frame([example(v=floats(np.arange(40_000)[:1] + len(arrays)))] * 40_000))
        arrays.append(decoder.take()[0].values)
    del decoder
    gc.collect()
    assert [a[0] for a in arrays] == [float(i) for i in range(50)]
    assert all((a == a[0]).all() for a in arrays)


def test_output_arrays_are_filled_in_place() -> None:
    out = np.full((2, 1), -1, np.float32)
    decoder = _core.ExampleDecoder([(b"v", 2, 1, 0), (b"id", 3, 1, 0)])
    decoder.set_output(0, out)
    feed = decoder.feed(THREE)
    assert (feed.records, feed.consumed, feed.fault) == (2, 92, None)
    v, _ = decoder.take()
    assert np.shares_memory(v.values, out)
    assert out.tolist() == [[10.5], [20.5]]
    # take() lets go of the array.
    decoder.feed(THREE, 92)
    assert out.tolist() == [[10.5], [20.5]]
    assert decoder.take()[0].values.tolist() == [30.5]


def test_a_short_batch_fills_a_part_of_its_output() -> None:
    out = np.zeros(5, np.int64)
    decoder = _core.ExampleDecoder([(b"id", 3, 1, 0)])
    decoder.set_output(0, out)
    assert decoder.feed(THREE).records == 3
    assert decoder.take()[0].values.tolist() == [10, 20, 30]
    assert out.tolist() == [10, 20, 30, 0, 0]


@pytest.mark.parametrize("sizes", [[3] * 150, [5, 0, 700, 2, 9000, 1, 0, 40] * 20, [10_000] * 5])
@pytest.mark.parametrize("room", [0, 1, 100, 443, 20_001])
@pytest.mark.parametrize("way", ["feed", "at", "spans"])
def test_bytes_go_into_an_output_until_one_does_not_fit(way, room, sizes) -> None:
    names = [bytes([k % 251]) * size for k, size in enumerate(sizes)]
    data = _core.frame([encode_example({"n": name, "id": k}) for k, name in enumerate(names)])
    spans = _core.scan(data).spans
    decoder = _core.ExampleDecoder([(b"n", 1, 1, 0), (b"id", 3, 1, 0)])
    done = 0
    while done < len(names):
        out = np.full(room, 255, np.uint8)
        decoder.set_output(0, out)
        starts = spans[done:, 0] - 12
        if way == "feed":
            feed = decoder.feed(data, int(starts[0]), threads=2)
        elif way == "at":
            feed = decoder.feed_at([data], np.zeros(starts.size, np.int32), starts, threads=2)
        else:
            feed = decoder.feed_spans(data, spans[done:])
        fits = int((np.cumsum(sizes[done:]) <= room).sum())
        assert (feed.records, feed.fault, decoder.rows) == (fits, None, fits)
        column, ids = decoder.take()
        assert ids.values.tolist() == list(range(done, done + fits))
        assert column.values.tobytes() == b"".join(names[done : done + fits])
        assert np.diff(column.byte_offsets).tolist() == sizes[done : done + fits]
        assert not fits or not column.values.size or np.shares_memory(column.values, out)
        done += fits
        if not fits:
            assert sizes[done] > room
            done += 1


@pytest.mark.parametrize(
    ("feature_spec", "array", "error"),
    [
        ((b"v", 2, 1, 0), np.zeros(3, np.float64), TypeError),
        ((b"v", 2, 1, 0), np.zeros((3, 2), np.float32)[:, :1], TypeError),
        ((b"v", 2, -1, 0), np.zeros(3, np.float32), ValueError),
        ((b"v", 1, 1, 0), np.zeros(3, np.float32), TypeError),
        ((b"v", 3, -1, 0), np.zeros(3, np.int64), ValueError),
    ],
)
def test_outputs_that_cannot_be(feature_spec: object, array: object, error: type) -> None:
    decoder = _core.ExampleDecoder([feature_spec])
    with pytest.raises(error):
        decoder.set_output(0, array)


def test_a_read_only_output_is_refused() -> None:
    array = np.zeros(3, np.float32)
    array.flags.writeable = False
    with pytest.raises(TypeError, match="writable"):
        _core.ExampleDecoder([(b"v", 2, 1, 0)]).set_output(0, array)


def test_outputs_wait_for_take() -> None:
    decoder = _core.ExampleDecoder([(b"v", 2, 1, 0)])
    decoder.feed(THREE)
    with pytest.raises(ValueError, match="take"):
        decoder.set_output(0, np.zeros(3, np.float32))
    with pytest.raises(IndexError):
        decoder.set_output(1, np.zeros(3, np.float32))


@pytest.mark.parametrize(
    ("features", "options"),
    [
        ([(b"x", 4, 1, 0)], {}),
        ([(b"x", 0, 1, 0)], {}),
        ([(b"x", 1, -2, 0)], {}),
        ([(b"x", 1, 1, 2)], {}),
        ([(b"x", 1, 1, 1)], {}),
        ([(b"x", 1, 1, 0), (b"x", 2, 1, 0)], {}),
        ([], {"utf8": "perhaps"}),
    ],
)
def test_senseless_requests_are_value_errors(features: object, options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"feature|kind|place|utf8"):
        _core.ExampleDecoder(features, **options)


def test_one_name_in_both_places() -> None:
    payload = example(x=ints([1])) + field(
        2, field(1, field(1, b"x") + field(2, field(1, ints([2, 3]))))
    )
    got = decode(_core.frame([payload]), [(b"x", 3, -1, 1), (b"x", 3, 1, 0)], sequence=True)
    assert got == [[[[2, 3]]], [[1]]]


def test_any_buffer_will_do() -> None:
    for data in (THREE, bytearray(THREE), memoryview(THREE), np.frombuffer(THREE, np.uint8)):
        assert _core.ExampleDecoder([]).feed(data).records == 3
    with pytest.raises(TypeError):
        _core.ExampleDecoder([]).feed("text")
    with pytest.raises(TypeError):
        _core.ExampleDecoder([]).feed(np.frombuffer(THREE, np.uint8)[::2])
    with pytest.raises(IndexError):
        _core.ExampleDecoder([]).feed(THREE, 139)


def test_spans() -> None:
    decoder = _core.ExampleDecoder([(b"id", 3, 1, 0)])
    spans = _core.scan(THREE).spans[::-1].copy()
    feed = decoder.feed_spans(THREE, spans)
    assert (feed.records, feed.consumed) == (3, 3)
    assert decoder.take()[0].values.tolist() == [30, 20, 10]
    assert decoder.feed_spans(THREE, spans, 2).records == 2
    for wrong in ([[130, 9]], [[-1, 2]], [[0, -1]], [[1 << 62, 1 << 62]]):
        with pytest.raises(IndexError):
            decoder.feed_spans(THREE, np.array(wrong))


def test_a_fault_in_spans_names_the_header() -> None:
    data = _core.frame([example(id=ints([1])), b"\x0a\x05"])
    decoder = _core.ExampleDecoder([(b"id", 3, 1, 0)])
    fault = decoder.feed_spans(data, _core.scan(data).spans).fault
    (second,) = _core.scan(data).spans[1:, 0] - 12
    assert (fault.code, fault.record, fault.offset) == ("wire", 1, second)


def test_shuffled_batches_over_several_buffers() -> None:
    rng = random.Random(SEED)
    buffers, places = [], []
    for b in range(4):
        payloads = [
            example(id=ints([1000 * b + i]), pad=strings([b"x" * rng.randrange(9)]))
            for i in range(50)
        ]
        buffers.append(_core.frame(payloads))
        starts = _core.scan(buffers[-1]).spans[:, 0] - 12
        places += [(b, int(s), 1000 * b + i) for i, s in enumerate(starts)]
    rng.shuffle(places)
    which = np.array([p[0] for p in places], np.int32)
    starts = np.array([p[1] for p in places])
    decoder = _core.ExampleDecoder([(b"id", 3, 1, 0)])
    feed = decoder.feed_at(buffers, which, starts)
    assert (feed.records, feed.fault) == (200, None)
    assert decoder.take()[0].values.tolist() == [p[2] for p in places]


def test_damage_in_a_shuffled_batch() -> None:
    data = bytearray(THREE)
    data[70] ^= 1
    decoder = _core.ExampleDecoder([(b"id", 3, 1, 0)])
    feed = decoder.feed_at([THREE, data], np.array([0, 1, 1], np.int32), np.array([0, 92, 46]))
    assert (feed.records, feed.fault.code) == (2, "payload-crc")
    assert (feed.fault.record, feed.fault.offset) == (2, 46)
    unchecked = decoder.feed_at([data], np.zeros(1, np.int32), np.array([46]), verify=False)
    assert unchecked.fault is None or unchecked.fault.code != "payload-crc"
    with pytest.raises(IndexError):
        decoder.feed_at([THREE], np.array([1], np.int32), np.array([0]))
    with pytest.raises(ValueError, match="equally long"):
        decoder.feed_at([THREE], np.array([0], np.int32), np.array([0, 46]))


@pytest.mark.parametrize("size", [1000, 2047, 3000, 20_000])
def test_large_values_are_copied_and_checked(size: int) -> None:
    rng = np.random.default_rng(SEED)
    images = [rng.bytes(size - 7 * i) for i in range(6)]
    bands = rng.random((6, size), np.float32)
    payloads = [
        example(
            z=floats(bands[i]),
            id=ints([i]),
            image=strings([images[i]]),
            two=strings([b"a", images[i]]),
        )
        for i in range(6)
    ]
    data = _core.frame(payloads)
    features = [(b"image", 1, 1, 0), (b"id", 3, 1, 0), (b"z", 2, size, 0), (b"two", 1, -1, 0)]
    got = decode(data, features)
    assert got[0] == [[image] for image in images]
    assert got[1] == [[i] for i in range(6)]
    assert got[2] == [band.tobytes() for band in bands]
    assert got[3] == [[b"a", image] for image in images]
    assert decode(data, [(b"z", 2, -1, 0)]) == [got[2]]
    ends = np.cumsum([len(p) + 16 for p in payloads])
    for at in rng.integers(0, len(data), 60).tolist():
        damaged = bytearray(data)
        damaged[at] ^= 1 << (at % 8)
        decoder = _core.ExampleDecoder(features)
        feed = decoder.feed(damaged, final=True)
        record = int(np.searchsorted(ends, at, side="right"))
        assert feed.fault.code in ("payload-crc", "length-crc")
        assert feed.records == feed.fault.record == decoder.rows == record
        assert rows(decoder.take()[2], 2, size) == got[2][:record]


def test_a_large_payload_of_the_wrong_form() -> None:
    big = floats(np.zeros(5000))
    data = _core.frame([example(a=big, b=big), example(a=big, b=ints([1]))])
    for asked, code in (((b"b", 2, 5000, 0), "kind"), ((b"a", 2, 4999, 0), "count")):
        decoder = _core.ExampleDecoder([(b"a", 2, -1, 0), asked] if asked[0] == b"b" else [asked])
        feed = decoder.feed(data)
        assert feed.fault.code == code
        assert feed.records == (1 if code == "kind" else 0)
    cut = example(a=big, b=big)[:-1]
    assert _core.ExampleDecoder([(b"a", 2, -1, 0)]).feed(_core.frame([cut])).fault.code == "wire"


def test_lengths_are_not_believed() -> None:
    """A payload that claims much more than it holds costs no memory."""
    claim = b"\x0a" + varint(1 << 31) + b"\x0a\x10"
    fault = _core.ExampleDecoder([(b"x", 2, -1, 0)]).feed(_core.frame([claim])).fault
    assert (fault.code, fault.at) == ("wire", 1)


def test_a_decoder_serves_one_thread_at_a_time() -> None:
    data = THREE * 200_000
    decoder = _core.ExampleDecoder([(b"id", 3, 1, 0)])
    refused = []
    done = threading.Event()

    def disturb() -> None:
        while not done.is_set():
            try:
                decoder.feed(b"")
            except RuntimeError as error:
                refused.append(str(error))

    thread = threading.Thread(target=disturb)
    thread.start()
    fed = 0
    while not refused:
        try:
            fed = max(fed, decoder.feed(data).records)
            decoder.take()
        except RuntimeError as error:
            refused.append(str(error))
    done.set()
    thread.join()
    assert "another thread" in refused[0]


FORMS = [
    {"id": ints([7]), "v": floats(np.arange(3))},  # several of one layout are taken at once
    {"v": floats(np.arange(3)), "id": ints([7])},  # the same length, another order
    {"id": ints([300]), "v": floats(np.arange(3))},
    {"id": ints([7]), "v": floats(np.arange(3)), "pad": strings([b"x" * 9000])},
    {"id": ints([7])},
]


@given(
    st.lists(st.integers(0, len(FORMS) - 1) | st.just(0), min_size=1, max_size=300),
    st.integers(0, 1 << 31),
    st.none() | st.integers(0, 1 << 20),
)
@settings(max_examples=60, deadline=None)
def test_records_in_any_order_are_those_in_file_order(
    forms: list[int], seed: int, damage: int | None
) -> None:
    payloads = [example(**FORMS[form]) for form in forms]
    frames = [bytearray(_core.frame([payload])) for payload in payloads]
    if damage is not None:
        frame = frames[damage % len(frames)]
        frame[damage % len(frame)] ^= 1
    starts = np.cumsum([0, *map(len, frames)])[:-1]
    order = np.random.default_rng(seed).permutation(len(frames))
    features = [(b"id", 3, 1, 0), (b"v", 2, -1, 0)]
    scattered, straight = _core.ExampleDecoder(features), _core.ExampleDecoder(features)
    got = scattered.feed_at(
        [b"".join(frames)], np.zeros(len(order), np.int32), np.ascontiguousarray(starts[order])
    )
    expected = straight.feed(b"".join(frames[k] for k in order), final=True)
    assert got.records == expected.records
    if got.fault is None:
        assert expected.fault is None
    else:
        assert got.fault.record == expected.fault.record
        assert got.fault.field in ("header", "payload", "footer")
    for one, other in zip(scattered.take(), straight.take(), strict=True):
        assert one.values.tolist() == other.values.tolist()
        assert one.present.tolist() == other.present.tolist()
        assert one.whole == bool(one.present.all())
