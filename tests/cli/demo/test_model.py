"""The demo's model learns its samples, and a patch gives what the whole scene gives."""

from __future__ import annotations

import numpy as np
import pytest

from tfrio.cli.demo.model import descend_numpy, descend_torch, fit, neighbourhood_mean
from tfrio.cli.demo.scene import load_samples
from tfrio.types import XY


def test_the_model_knows_its_own_samples() -> None:
    samples = load_samples()
    reflectance = samples.reflectance.T.astype(np.float32)
    model = fit(reflectance, list(samples.labels))
    assert model.labels == ("Urban", "Vegetation", "Water")
    probabilities = model.probabilities(reflectance)
    assert probabilities.dtype == np.float32
    np.testing.assert_allclose(probabilities.sum(axis=0), 1, rtol=1e-5)
    found = [model.labels[k] for k in probabilities.argmax(axis=0)]
    assert found == list(samples.labels)


@pytest.mark.parametrize("kernel", [XY(5, 3), XY(1, 7)])
def test_mean_of_the_neighbourhood_equals_a_slow_one(kernel: XY) -> None:
    random = np.random.default_rng(7)
    values = random.random((2, 14, 17), dtype=np.float32)
    valid = random.random((14, 17)) < 0.7
    got = neighbourhood_mean(values, valid, kernel)
    height, width = 14 - kernel.y + 1, 17 - kernel.x + 1
    assert got.shape == (2, height, width)
    for row in range(height):
        for column in range(width):
            window = (slice(row, row + kernel.y), slice(column, column + kernel.x))
            chosen = values[(slice(None), *window)][:, valid[window]]
            expected = chosen.mean(axis=1) if chosen.size else np.zeros(2)
            np.testing.assert_allclose(got[:, row, column], expected, rtol=1e-5)


def test_a_part_gives_bit_for_bit_what_the_whole_gives() -> None:
    random = np.random.default_rng(3)
    values = random.random((4, 30, 40), dtype=np.float32)
    valid = random.random((30, 40)) < 0.9
    samples = load_samples()
    model = fit(samples.reflectance.T.astype(np.float32), list(samples.labels))
    whole = model.probabilities(neighbourhood_mean(values, valid, XY(5, 3)))
    part = (slice(6, 19), slice(9, 30))
    small = neighbourhood_mean(values[(slice(None), *part)], valid[part], XY(5, 3))
    np.testing.assert_array_equal(model.probabilities(small), whole[:, 6:17, 9:26])


def test_pytorch_descends_as_numpy_does() -> None:
    pytest.importorskip("torch")
    random = np.random.default_rng(11)
    inputs = random.standard_normal((6, 50), dtype=np.float32)
    codes = random.integers(0, 3, 50)
    for ours, theirs in zip(
        descend_numpy(inputs, codes, 3), descend_torch(inputs, codes, 3), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-3)
