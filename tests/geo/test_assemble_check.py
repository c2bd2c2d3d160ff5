"""The orientation check: a swap of axes is seen, a poor model is not accused."""

from __future__ import annotations

import numpy as np
import pytest

from tfrio.geo.assemble_check import orientations, score_order, score_orientations


def scenes(n: int = 12, height: int = 24, width: int = 40) -> np.ndarray:
    """Return smooth random fields of shape (n, 2, height, width)."""
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(n, 2, height + 8, width + 8))
    total = np.zeros((n, 2, height, width))
    for down in range(8):
        for right in range(8):
            total += noise[:, :, down : down + height, right : right + width]
    return total


def written_by_columns(planes: np.ndarray) -> np.ndarray:
    """Return what a reader sees of planes whose axes were swapped before flattening."""
    n, height, width = planes.shape
    return np.swapaxes(planes, 1, 2).reshape(n, height, width)


@pytest.mark.parametrize("kind", ["classes", "probability"])
@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("flipped up and down", lambda p: p[:, ::-1]),
        ("flipped left and right", lambda p: p[:, :, ::-1]),
        ("turned by 180 degrees", lambda p: p[:, ::-1, ::-1]),
        ("transposed", written_by_columns),
    ],
)
def test_the_right_orientation_is_named(kind: str, name: str, spoil: object) -> None:
    inputs = scenes()
    score = inputs[:, 0] + 0.3 * inputs[:, 1]
    predictions = (score > 0).astype(np.int64) + (score > 6) if kind == "classes" else score
    spoiled = spoil(predictions)  # type: ignore[operator]
    fit = score_orientations(inputs, spoiled)
    assert fit.doubtful
    assert fit.best == name
    np.testing.assert_array_equal(orientations((24, 40))[name](spoiled), predictions)


def test_right_or_meaningless_predictions_are_not_accused() -> None:
    inputs = scenes()
    assert not score_orientations(inputs, (inputs[:, 1] > 2).astype(np.uint8)).doubtful
    noise = np.random.default_rng(5).normal(size=(12, 24, 40))
    assert not score_orientations(inputs, noise).doubtful
    constant = np.zeros((12, 24, 40), np.uint8)
    assert not score_orientations(inputs, constant).doubtful


def test_nan_pixels_are_tolerated() -> None:
    inputs = scenes()
    inputs[:, :, :3] = np.nan
    fit = score_orientations(inputs, inputs[:, 0, ::-1])
    assert fit.best == "flipped up and down"


@pytest.mark.parametrize("kind", ["classes", "probability"])
def test_another_order_is_seen(kind: str) -> None:
    inputs = scenes(20)
    predictions = (inputs[:, 0] > 0).astype(np.int64) if kind == "classes" else inputs[:, 0] / 9
    assert not score_order(inputs, predictions).doubtful
    order = np.roll(np.arange(20), 7)
    fit = score_order(inputs, predictions[order])
    assert fit.doubtful
    assert fit.partner.tolist() == order.tolist()
    swapped = np.arange(20)
    swapped[:8] = [4, 5, 6, 7, 0, 1, 2, 3]  # two shards of four in the wrong order
    fit = score_order(inputs, predictions[swapped])
    assert fit.doubtful
    assert fit.moved.tolist() == list(range(8))


def test_a_shuffle_of_a_smooth_scene_is_seen() -> None:
    rng = np.random.default_rng(0)
    scene = rng.normal(size=(2, 90, 130)).cumsum(1).cumsum(2)
    inputs = np.stack(
        [scene[:, r : r + 9, c : c + 13] for r in range(0, 90, 9) for c in range(0, 130, 13)]
    )
    order = rng.permutation(100)
    for predictions in (inputs[:, 0], (inputs[:, 0] > np.median(inputs[:, 0])).astype(np.uint8)):
        assert not score_order(inputs, predictions).doubtful
        fit = score_order(inputs, predictions[order])
        assert fit.doubtful
        right = fit.partner[fit.moved] == order[fit.moved]
        assert right.mean() > 0.8


def test_predictions_without_information_accuse_nobody() -> None:
    inputs = scenes(20)
    noise = np.random.default_rng(5).normal(size=(20, 24, 40))
    assert not score_order(inputs, noise).doubtful
    assert not score_order(inputs, np.zeros((20, 24, 40), np.uint8)).doubtful
    same = np.broadcast_to(inputs[:1], inputs.shape)  # all patches alike: any order is right
    assert not score_order(same, same[:, 0]).doubtful


def fields(rng: np.random.Generator, shape: tuple[int, ...], width: float) -> np.ndarray:
    """Return random fields whose neighbours are alike over so many pixels."""
    down, right = np.fft.fftfreq(shape[-2])[:, None], np.fft.fftfreq(shape[-1])
    soft = np.exp(-0.5 * (2 * np.pi * width) ** 2 * (down**2 + right**2))
    return np.fft.ifft2(np.fft.fft2(rng.normal(size=shape)) * soft).real


@pytest.mark.parametrize("patches", [1, 2, 3, 5, 8, 20, 48])
@pytest.mark.parametrize("width", [0.1, 2, 6])
def test_smooth_predictions_are_not_accused_by_chance(patches: int, width: float) -> None:
    rng = np.random.default_rng(patches)
    for _ in range(4):
        inputs = fields(rng, (patches, 3, 24, 40), width)
        predictions = fields(rng, (patches, 24, 40), width)
        for each in (predictions, (predictions > 0).astype(np.uint8)):
            assert not score_orientations(inputs, each).doubtful
            assert not score_order(inputs, each).doubtful
        weak = inputs[:, 0] + 4 * inputs.std() * rng.normal(size=predictions.shape)
        assert not score_orientations(inputs, weak).doubtful
        assert not score_order(inputs, weak).doubtful


def test_one_patch_that_many_like_is_no_order() -> None:
    inputs = scenes(20)
    predictions = np.where(np.arange(20)[:, None, None] < 12, inputs[0, 0], inputs[:, 0])
    assert not score_order(inputs, predictions).doubtful
