"""Drawing into windows: the pieces are those of the whole, on any number of threads."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tfrio.geo.burn import burn
from tfrio.geo.grid import Window
from tfrio.types import Affine6

AFFINE = Affine6(30, 0, 500000, 0, -20, 4500000)


def triangle(value: float) -> tuple[dict[str, object], float]:
    ring = [[500030, 4499960], [500270, 4499900], [500090, 4499680], [500030, 4499960]]
    return {"type": "Polygon", "coordinates": [ring]}, value


@pytest.mark.parametrize("all_touched", [False, True])
def test_windows_are_pieces_of_the_whole(all_touched: bool) -> None:
    whole = burn(
        [triangle(5)], AFFINE, Window(-4, -3, 20, 25), dtype="int16", background=-1,
        all_touched=all_touched,
    )  # fmt: skip
    assert whole.shape == (25, 20)
    assert set(np.unique(whole)) == {-1, 5}
    for window in (Window(-4, -3, 7, 9), Window(3, 2, 5, 11), Window(9, 9, 1, 4)):
        rows, columns = window.moved(4, 3).slices
        piece = burn(
            [triangle(5)], AFFINE, window, dtype="int16", background=-1, all_touched=all_touched
        )
        assert np.array_equal(piece, whole[rows, columns])


def test_later_shapes_cover_earlier_ones_and_centres_decide() -> None:
    ring = [[500000, 4500000], [500044, 4500000], [500044, 4499971], [500000, 4499971]]
    box = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
    found = burn([(box, 1), (box, 2)], AFFINE, Window(0, 0, 3, 2), dtype="uint8")
    assert found.tolist() == [[2, 0, 0], [0, 0, 0]]
    touched = burn([(box, 2)], AFFINE, Window(0, 0, 3, 2), dtype="uint8", all_touched=True)
    assert touched.tolist() == [[2, 2, 0], [2, 2, 0]]


def test_threads_draw_without_a_warning_and_leave_the_filters_alone() -> None:
    before = list(warnings.filters)
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(
                lambda _: burn([triangle(1)], AFFINE, Window(0, 0, 9, 17), dtype="uint8").sum(),
                range(400),
            )
        )
    assert len(set(found)) == 1
    assert list(warnings.filters) == before
