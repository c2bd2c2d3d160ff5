"""What messages are put together from."""

from __future__ import annotations

import numpy as np
import pytest

from tfrio.errors import listed


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([], ""),
        ([7], "7"),
        (range(60, 66), "60 to 65"),
        ([1, 2, 4, 5, 6], "1, 2, 4 to 6"),
        (np.array([3, 4, 5]), "3 to 5"),
        (range(0, 14, 2), "0, 2, 4, 6, 8, 10 and 1 more"),
        ([*range(0, 12, 2), *range(100, 1_200)], "0, 2, 4, 6, 8, 10 and 1,100 more"),
        (["a", "b"], "a, b"),
        ([f"s-{k}" for k in range(8)], "s-0, s-1, s-2, s-3, s-4, s-5 and 2 more"),
    ],
)
def test_a_list_never_looks_complete_when_it_is_not(items, text: str) -> None:
    assert listed(items) == text


def test_a_list_as_long_and_in_the_form_that_is_asked_for() -> None:
    assert listed([1, 3, 5], most=2, form="05d") == "00001, 00003 and 1 more"
    assert listed(range(1, 5), most=1, form="05d") == "00001 to 00004"
