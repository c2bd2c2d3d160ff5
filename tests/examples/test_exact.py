"""What values are accepted, and how they are stored: exactly, or not at all."""

from __future__ import annotations

import datetime as dt
import decimal
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrio.errors import EncodeError, TfrioWarning
from tfrio.examples.exact import Exactness, RaggedValueError, Stored, store

STRICT = Exactness(strict=True)


def stored(value: object, kind: str = "unknown", exactness: Exactness = STRICT) -> Stored:
    return store(value, "x", exactness, kind=kind)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "kind", "flat", "shape"),
    [
        (1, "int64", [1], ()),
        (True, "int64", [1], ()),
        (1.5, "float", [1.5], ()),
        (b"a\x00", "bytes", [b"a\x00"], ()),
        (bytearray(b"a"), "bytes", [b"a"], ()),
        (memoryview(b"ab"), "bytes", [b"ab"], ()),
        ("héllo", "bytes", [bytes.fromhex("68c3a96c6c6f")], ()),
        (np.str_("a"), "bytes", [b"a"], ()),
        (np.bytes_(b"a"), "bytes", [b"a"], ()),
        ([1, 2], "int64", [1, 2], (2,)),
        ((1, 2.5), "float", [1, 2.5], (2,)),
        ([True, False], "int64", [1, 0], (2,)),
        ([-(1 << 63), (1 << 63) - 1], "int64", [-(1 << 63), (1 << 63) - 1], (2,)),
        ([[1, 2, 3], [4, 5, 6]], "int64", [1, 2, 3, 4, 5, 6], (2, 3)),
        ([b"a", "b"], "bytes", [b"a", b"b"], (2,)),
        ([[b"a"], [b""]], "bytes", [b"a", b""], (2, 1)),
        ([np.float32(1), 2.0], "float", [1, 2], (2,)),
        ([np.arange(2), np.arange(2)], "int64", [0, 1, 0, 1], (2, 2)),
        (np.float16(1.5), "float", [1.5], ()),
        (np.float64(0.5), "float", [0.5], ()),
        (np.bool_(True), "int64", [1], ()),
        (np.array(7), "int64", [7], ()),
        (np.array([1, 255], np.uint8), "int64", [1, 255], (2,)),
        (np.array([1, 65535], np.uint16), "int64", [1, 65535], (2,)),
        (np.array([1, (1 << 32) - 1], np.uint32), "int64", [1, (1 << 32) - 1], (2,)),
        (np.array([(1 << 63) - 1], np.uint64), "int64", [(1 << 63) - 1], (1,)),
        (np.array([True, False]), "int64", [1, 0], (2,)),
        (np.array([1.5], ">f8"), "float", [1.5], (1,)),
        (np.array([1, 2], ">i8"), "int64", [1, 2], (2,)),
        (np.array([b"ab", b"c"]), "bytes", [b"ab", b"c"], (2,)),
        (np.array(["ä", "b"]), "bytes", ["ä".encode(), b"b"], (2,)),
        (np.array([b"a", b""], object), "bytes", [b"a", b""], (2,)),
        (np.arange(6).reshape(2, 3).T, "int64", [0, 3, 1, 4, 2, 5], (3, 2)),
        (np.asfortranarray(np.arange(6).reshape(2, 3)), "int64", [0, 1, 2, 3, 4, 5], (2, 3)),
        (np.arange(10)[::3], "int64", [0, 3, 6, 9], (4,)),
        (np.zeros((0, 3), np.float32), "float", [], (0, 3)),
        (range(3), "int64", [0, 1, 2], (3,)),
    ],
)
def test_accepted_values(value: object, kind: str, flat: list, shape: tuple[int, ...]) -> None:
    found = stored(value)
    assert found.kind == kind
    assert list(found.flat) == flat
    assert found.shape == shape
    if kind != "bytes":
        assert found.flat.dtype == {"float": np.float32, "int64": np.int64}[kind]


def test_bfloat16_becomes_float32() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert stored(np.array([1.5], ml_dtypes.bfloat16)).flat.tolist() == [1.5]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1 << 63, "9223372036854775808 does not fit int64; store as bytes"),
        (np.uint64(1 << 63), "9223372036854775808 does not fit int64; store as bytes"),
        ([1, 1 << 63], "9223372036854775808 does not fit int64"),
        (np.array([1, 1 << 63], np.uint64), "9223372036854775808 does not fit int64"),
        (-(1 << 63) - 1, "does not fit int64"),
        (dt.datetime(2026, 1, 2), "a time has no kind"),
        (dt.date(2026, 1, 2), "isoformat"),
        (dt.timedelta(1), "a duration has no kind.*total_seconds"),
        (np.timedelta64(1, "s"), "a duration has no kind"),
        (np.timedelta64(1, "ns"), "a duration has no kind"),
        (np.array([1], "m8[ns]"), "a duration has no kind"),
        (np.datetime64("2026-01-02"), "a time has no kind"),
        (np.array(["2026-01-02"], "datetime64[D]"), "a time has no kind"),
        ([dt.datetime(2026, 1, 2)], "a time has no kind"),
        (1j, "real and imaginary"),
        (np.zeros(2, np.complex64), "real and imaginary"),
        (decimal.Decimal(1), "Decimal"),
        ({}, "flatten it into features named"),
        ({1}, "sorted"),
        (None, "None means absent"),
        ([None], "None inside a list"),
        ([b"a", 1], "mixes bytes and int64"),
        (object(), "a value of type object cannot be stored; give numbers"),
        ("\ud800", "not valid Unicode"),
        (np.zeros(2, [("a", "f4")]), "cannot be stored; give each field as a feature"),
        (np.void(b"ab"), "cannot be stored; give bytes"),
        (10**400, r"feature 'x': 1000\d*\.\.\. does not fit int64"),
    ],
)
def test_refused_values_get_advice(value: object, text: str) -> None:
    with pytest.raises(EncodeError, match=text) as caught:
        stored(value)
    assert caught.value.feature == "x"


@pytest.mark.parametrize("value", [[[0], [1, 56]], [np.arange(2), np.arange(3)], [[], [1]]])
def test_lists_of_lists_of_differing_length_name_the_remedy(value: object) -> None:
    with pytest.raises(RaggedValueError, match="needs a SequenceExample .*ragged='split'"):
        stored(value)


def test_a_float_that_rounds_is_stored_without_a_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stored(0.620390625).flat[0] == np.float32(0.620390625)
        assert stored(np.linspace(0, 1, 1000)).flat.dtype == np.float32
        assert np.isnan(stored(float("nan")).flat[0])
        assert stored(float("-inf")).flat[0] == -np.inf
        assert stored(0.0).flat[0] == 0


@pytest.mark.parametrize("value", [1e39, -1e39, 1e-42, 1e-60])
def test_a_float_that_changes_much_warns_once_or_is_refused(value: float) -> None:
    with pytest.raises(EncodeError, match="as float32"):
        stored(value)
    loose = Exactness(strict=False)
    with pytest.warns(TfrioWarning, match="as float32"):
        stored([0.5, value], exactness=loose)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stored(value, exactness=loose)


@given(st.lists(st.floats(width=32), min_size=1))
def test_what_float32_holds_comes_back_bit_for_bit(values: list[float]) -> None:
    found = stored(values).flat
    assert found.tobytes() == np.array(values, np.float32).tobytes()


@pytest.mark.parametrize(
    ("value", "flat"),
    [
        ([(1 << 62) + 1, 1.0], [(1 << 62) + 1, 1]),
        ([np.int64((1 << 62) + 1), np.float32(1)], [(1 << 62) + 1, 1]),
        ([[(1 << 53) + 1, 2.0], [3.0, -4.0]], [(1 << 53) + 1, 2, 3, -4]),
        ([(1 << 24) + 1, 1.0], [(1 << 24) + 1, 1]),
        (np.float64((1 << 24) + 1), [(1 << 24) + 1]),
        (-(2.0**63), [-(1 << 63)]),
    ],
)
def test_whole_numbers_stay_exact_among_floats(value: object, flat: list[int]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = store(value, "x", Exactness(strict=True), kind="int64")
    assert (made.kind, made.flat.tolist()) == ("int64", flat)


class NoArray:
    def __array__(self, dtype: object = None, copy: object = None) -> object:
        raise RuntimeError("requires grad")


def test_an_object_that_gives_no_array_is_refused_by_name() -> None:
    with pytest.raises(EncodeError, match="'x': a NoArray that gives no array .requires grad"):
        store(NoArray(), "x", Exactness(strict=False))


def test_kinds_wanted() -> None:
    assert stored(3, "float").flat.tolist() == [3.0]
    assert stored(3.0, "int64").flat.tolist() == [3]
    assert stored([], "float").flat.dtype == np.float32
    assert stored([], "bytes").flat == []
    assert stored([], "int64").kind == "int64"
    for value in (3.5, float("nan"), float("inf"), 1e19):
        with pytest.raises(EncodeError, match="no whole number"):
            stored(value, "int64")
    with pytest.raises(EncodeError, match="is bytes but a value of kind int64"):
        stored(3, "bytes")
    with pytest.raises(EncodeError, match="is float but a value of kind bytes"):
        stored(b"3", "float")


@pytest.mark.parametrize("value", [(1 << 24) + 1, (1 << 62) + 1, (1 << 63) - 1, -(1 << 53) - 1])
def test_an_integer_that_float32_cannot_hold_is_no_float(value: int) -> None:
    with pytest.raises(EncodeError, match="as float32"):
        stored(value, "float")


@pytest.mark.parametrize("value", [1 << 24, 1 << 62, -(1 << 63), 0])
def test_an_integer_that_float32_holds_is_one(value: int) -> None:
    assert int(stored(value, "float").flat[0]) == value
