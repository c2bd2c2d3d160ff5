"""Predictions that break off between patches are told from those that go on."""

from __future__ import annotations

import numpy as np
import pytest

from tests.geo.test_assemble_check import scenes
from tfrio.geo.assemble_check import tells_nothing
from tfrio.geo.assemble_seams import neighbours, score_seams

ACROSS, DOWN, HEIGHT, WIDTH = 12, 8, 10, 16
CORNERS = [(WIDTH * c, HEIGHT * r) for r in range(DOWN) for c in range(ACROSS)]
RIGHT, BELOW = neighbours(CORNERS, (WIDTH, 0)), neighbours(CORNERS, (0, HEIGHT))


def tiles(plane: np.ndarray) -> np.ndarray:
    """Cut a plane into patches."""
    parts = plane.reshape(DOWN, HEIGHT, ACROSS, WIDTH)
    return parts.swapaxes(1, 2).reshape(-1, HEIGHT, WIDTH)


@pytest.fixture(scope="module")
def scene() -> np.ndarray:
    """Return two bands of a smooth scene, as patches (2, n, height, width)."""
    bands = scenes(1, DOWN * HEIGHT, ACROSS * WIDTH)[0]
    return np.stack([tiles(band) for band in bands])


def test_neighbours_are_found_by_their_corners() -> None:
    assert len(RIGHT) == DOWN * (ACROSS - 1)
    assert len(BELOW) == (DOWN - 1) * ACROSS
    assert (RIGHT[:, 1] == RIGHT[:, 0] + 1).all()
    assert (BELOW[:, 1] == BELOW[:, 0] + ACROSS).all()
    assert neighbours([(0, 0), (5, 0)], (4, 0)).shape == (0, 2)


@pytest.mark.parametrize("kind", ["score", "classes", "spoiled edges", "noisy"])
def test_what_goes_on_is_whole_and_a_shuffle_of_it_is_broken(kind: str, scene: np.ndarray) -> None:
    rng = np.random.default_rng(2)
    field = scene[0].copy()
    if kind == "classes":
        field = (field > 0).astype(int) + (field > 6)
    elif kind == "spoiled edges":
        field[:, [0, -1]] *= 0.7
        field[:, :, [0, -1]] *= 0.7
    elif kind == "noisy":
        field += 0.5 * field.std() * rng.normal(size=field.shape)
    right = score_seams(field, RIGHT, BELOW)
    assert (right.whole, right.broken) == (True, False)
    shuffled = score_seams(field[rng.permutation(len(field))], RIGHT, BELOW)
    assert (shuffled.whole, shuffled.broken) == (False, True)


def test_where_seams_tell_nothing_nothing_is_said(scene: np.ndarray) -> None:
    rng = np.random.default_rng(3)
    n = len(CORNERS)
    constant = np.broadcast_to(rng.normal(size=(n, 1, 1)), (n, HEIGHT, WIDTH))
    for field in (rng.normal(size=scene[0].shape), constant, np.zeros(scene[0].shape)):
        assert not score_seams(field, RIGHT, BELOW).broken
    few = score_seams(scene[0][rng.permutation(n)], RIGHT[:10], BELOW[:0])
    assert (few.seams, few.broken, few.whole) == (10, False, False)
    assert score_seams(scene[0], RIGHT[:2], BELOW[:0]).seams == 0


def test_predictions_that_follow_their_inputs_tell_something(scene: np.ndarray) -> None:
    inputs = scene.swapaxes(0, 1)
    rng = np.random.default_rng(4)
    order = rng.permutation(len(inputs))
    normal = scene[1] - scene[1].mean(axis=(1, 2), keepdims=True)
    numbered = (scene[0] > 2) * rng.integers(1, 9, (len(inputs), 1, 1))
    for predictions in (scene[0], scene[1] > 1, normal, numbered):
        assert not tells_nothing(inputs, predictions)
        assert tells_nothing(inputs, predictions[order])
    assert tells_nothing(inputs, np.zeros(scene[0].shape))
