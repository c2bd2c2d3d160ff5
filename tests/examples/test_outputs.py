"""Arrays of the caller to decode into."""

from __future__ import annotations

import numpy as np
import pytest

from tfrio.errors import UsageError
from tfrio.examples.layout import Layout
from tfrio.examples.outputs import output_slots
from tfrio.examples.schema import Feature, Schema

LAYOUT = Layout(
    Schema(
        {
            "x": Feature("float", (2, 3)),
            "y": Feature("int64", ()),
            "r": Feature("float"),
            "b": Feature("bytes", ()),
            "c": Feature("int64", (), dtype="int32"),
        }
    )
)


def read_only() -> np.ndarray:
    array = np.zeros((4, 2, 3), np.float32)
    array.flags.writeable = False
    return array


def test_views_share_the_memory() -> None:
    out = {"y": np.zeros(4, np.int64), "x": np.zeros((4, 2, 3), np.float32)}
    slots = output_slots(out, LAYOUT, 4)
    assert {i: a.shape for i, a in slots.items()} == {1: (4,), 0: (24,)}
    assert np.shares_memory(slots[0], out["x"])


@pytest.mark.parametrize(
    ("name", "array", "text"),
    [
        ("q", np.zeros(4), "out has 'q', which no schema describes"),
        ("r", np.zeros(4, np.float32), "'r' .*cannot be decoded into an array"),
        ("b", np.zeros(4, np.float32), "'b' .*cannot be decoded into an array"),
        ("c", np.zeros(4, np.int32), "'c' .*cannot be decoded into an array"),
        ("x", np.zeros((4, 3, 2), np.float32), r"shape \(4, 2, 3\), not float32 \(4, 3, 2\)"),
        ("x", np.zeros((5, 2, 3), np.float32), r"shape \(4, 2, 3\)"),
        ("x", np.zeros((4, 2, 3)), "not float64"),
        ("x", np.zeros((4, 3, 2), np.float32).transpose(0, 2, 1), "C-contiguous"),
        ("x", read_only(), "read-only"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, array: np.ndarray, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        output_slots({name: array}, LAYOUT, 4)
