"""Payloads taken natively equal those of scanning, wherever the records lie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrio import _core


@given(
    payloads=st.lists(st.binary(max_size=50), min_size=1, max_size=12),
    large=st.booleans(),
    order=st.randoms(use_true_random=False),
)
def test_payloads_in_any_order_over_two_buffers(
    payloads: list[bytes], large: bool, order: object
) -> None:
    if large:
        payloads = [*payloads, bytes(20_000)]
    frames = _core.frame(payloads)
    buffers = [b"some bytes before" + frames, frames]
    starts = np.cumsum([0, *(len(p) + 16 for p in payloads[:-1])])
    picks = [(order.randrange(2), order.randrange(len(payloads))) for _ in range(20)]  # type: ignore[attr-defined]
    which = np.array([w for w, _ in picks], np.int32)
    where = np.array([starts[k] + (0 if w else 17) for w, k in picks], np.int64)
    found, fault = _core.payloads_at(buffers, which, where)
    assert fault is None
    assert found == [payloads[k] for _, k in picks]
    for k, start in enumerate(starts.tolist()):
        assert _core.payload_at(frames, start) == payloads[k]


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda data: data[:20], "payload-cut"),
        (lambda data: data[:7], "header-cut"),
        (lambda data: b"", "header-cut"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "payload-crc"),
        (lambda data: bytes([data[0] ^ 1]) + data[1:], "length-crc"),
    ],
)
def test_a_fault_comes_back_as_a_value_with_its_place(damage: object, code: str) -> None:
    good = _core.frame([b"payload " * 9])
    bad = damage(good)  # type: ignore[operator]
    fault = _core.payload_at(bad, 0)
    assert isinstance(fault, _core.Fault)
    assert fault.code == code
    buffers = [good, b"xx" + bad]
    found, fault = _core.payloads_at(
        buffers, np.array([0, 0, 1, 0], np.int32), np.array([0, 0, 2, 0])
    )
    assert found == [b"payload " * 9] * 2
    assert fault is not None
    assert (fault.code, fault.record, fault.offset) == (code, 2, 2)


def test_checks_of_payloads_can_be_left_out() -> None:
    good = _core.frame([b"abc"])
    bad = good[:-1] + bytes([good[-1] ^ 1])
    assert _core.payload_at(bad, 0, False) == b"abc"
    assert _core.payloads_at([bad], np.zeros(1, np.int32), np.zeros(1, np.int64), False)[0] == [
        b"abc"
    ]


def test_wrong_use_raises() -> None:
    with pytest.raises(IndexError):
        _core.payload_at(b"abc", 4)
    with pytest.raises(IndexError, match="names a buffer that is not there"):
        _core.payloads_at([b""], np.array([1], np.int32), np.array([0]))
    with pytest.raises(ValueError, match="equally long"):
        _core.payloads_at([b""], np.array([0], np.int32), np.array([0, 0]))
    with pytest.raises(TypeError, match="C-contiguous buffer"):
        _core.payloads_at(["text"], np.array([0], np.int32), np.array([0]))  # type: ignore[list-item]
