"""The native row encoder: what Python code may do to it from within."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from tfrio import _core

KINDS = {"byte": 1, "float": 2, "int": 3}


def encoder(plain=None, kind_of=None):
    return _core.RowEncoder(KINDS, kind_of or KINDS.__getitem__, plain or (lambda *args: args[1]))


def test_rows_wait_until_they_are_taken():
    rows = encoder()
    sizes = [rows.add({"k": (k, "int")}) for k in range(3)]
    data, ends = rows.take()
    assert sizes == ends.tolist() == [30, 60, 90]
    assert _core.count(data, final=True).records == 3
    assert [len(part) for part in rows.take()] == [0, 0]


def test_a_failing_row_adds_nothing():
    rows = encoder(plain=lambda name, value, kind: int(value))
    rows.add({"k": (1, "int")})
    with pytest.raises(ValueError, match="invalid literal"):
        rows.add({"a": (2, "int"), "k": ("x", "int")})
    with pytest.raises(KeyError):
        rows.add({"a": (2, "int"), "k": (1, "nosuch")})
    assert rows.take()[1].tolist() == [30]


def test_values_are_asked_for_once_and_must_then_be_plain():
    asked = []

    def plain(name, value, kind):
        asked.append((name, value, kind))
        return value.tolist() if value.dtype == np.int16 else value

    rows = encoder(plain=plain)
    small = np.array([1, 2], np.int16)
    assert rows.payload({"k": (small, "int")}) == rows.payload({"k": ([1, 2], "int")})
    assert [(name, kind) for name, _, kind in asked] == [("k", 3)]
    with pytest.raises(TypeError, match="'k'.*could not be made plain"):
        rows.payload({"k": (np.array([1], np.uint8), "int")})


def test_use_from_within_itself_is_refused():
    def plain(name, value, kind):
        return rows.payload({})

    rows = encoder(plain=plain)
    with pytest.raises(RuntimeError, match="in use"):
        rows.payload({"k": ("x", "int")})
    assert rows.payload({"k": (1, "int")}).hex() == "0a0c0a0a0a016b12051a030a0101"


def test_a_row_changed_from_within_is_safe():
    row = {"a": ("x", "int"), "b": (1, "int"), "c": ([5], "int")}

    def plain(name, value, kind):
        row.clear()
        gc.collect()
        return 7

    done = encoder(plain=plain).payload(row)
    assert done == encoder().payload({"a": (7, "int"), "b": (1, "int"), "c": (5, "int")})


def test_cycles_through_an_encoder_are_collected():
    class Owner:
        def __init__(self):
            self.rows = encoder(plain=self.plain)

        def plain(self, name, value, kind):
            return value

    gone = weakref.ref(Owner())
    gc.collect()
    assert gone() is None


def test_arrays_are_let_go_after_a_row():
    rows, patch = encoder(), np.zeros((5, 3), np.float32)
    rows.add({"p": (patch, "float")})
    gone = weakref.ref(patch)
    del patch
    gc.collect()
    assert gone() is None
