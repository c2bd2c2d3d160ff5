"""The demo's model: softmax regression on the mean spectrum of a pixel's neighbourhood.

Each pixel is judged by the mean of its 5 x 3 neighbourhood, which is what the margins of the
patches are for: without them a seam would show at every patch border. Everything is arithmetic
pixel by pixel in a fixed order, so that a patch gives bit for bit what the whole scene gives.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfrio.errors import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfrio.types import XY

__all__ = ["Model", "descend_numpy", "descend_torch", "fit", "neighbourhood_mean"]

STEPS = 1500
RATE = 0.5
RIDGE = 1e-3  # keeps the weights finite: the three classes can be separated perfectly


def _features(reflectance: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return bands, NDVI and NDWI; bands on the first axis: (4, ...) to (6, ...)."""
    _, green, red, infrared = reflectance
    tiny = np.float32(1e-6)  # no division by zero on masked pixels
    vegetation = (infrared - red) / (infrared + red + tiny)
    water = (green - infrared) / (green + infrared + tiny)
    return np.concatenate([reflectance, vegetation[None], water[None]])


@dataclass(frozen=True, slots=True)
class Model:
    """A fitted softmax regression.

    Attributes:
        labels: Name of each class.
        mean: Mean of each feature, shape (6,).
        scale: Standard deviation of each feature, shape (6,).
        weights: Shape (6, classes).
        bias: Shape (classes,).
    """

    labels: tuple[str, ...]
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]

    def probabilities(self, reflectance: NDArray[np.float32]) -> NDArray[np.float32]:
        """Judge pixels.

        Args:
            reflectance: Shape (4, ...), in 0..1.

        Returns:
            Probability of each class, shape (classes, ...).
        """
        features = _features(reflectance)
        extra = (1,) * (features.ndim - 1)
        logits = np.zeros((len(self.labels), *features.shape[1:]), np.float32)
        logits += self.bias.reshape(-1, *extra)
        for feature, mean, scale, weight in zip(
            features, self.mean, self.scale, self.weights, strict=True
        ):
            logits += weight.reshape(-1, *extra) * ((feature - mean) / scale)
        return _softmax(logits)


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    exponents = np.exp(logits - logits.max(axis=0))
    result: NDArray[np.float32] = exponents / exponents.sum(axis=0)
    return result


def fit(reflectance: NDArray[np.float32], labels: list[str]) -> Model:
    """Fit the model, in PyTorch where it is installed, else in NumPy.

    Args:
        reflectance: Shape (4, n), in 0..1.
        labels: Name of the class of each of the n samples.

    Returns:
        The fitted model; the same samples always give the same model.
    """
    names, codes = np.unique(labels, return_inverse=True)
    features = _features(reflectance)
    mean, scale = features.mean(axis=1), features.std(axis=1)
    inputs = (features - mean[:, None]) / scale[:, None]
    descend = descend_torch if importlib.util.find_spec("torch") else descend_numpy
    weights, bias = descend(inputs, codes, len(names))
    return Model(tuple(map(str, names)), mean, scale, weights, bias)


def descend_numpy(
    inputs: NDArray[np.float32], codes: NDArray[np.int64], classes: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Find weights and bias by gradient descent.

    Args:
        inputs: Standardised features, shape (6, n).
        codes: Class of each sample, shape (n,).
        classes: Number of classes.

    Returns:
        Weights (6, classes) and bias (classes,).
    """
    target = np.eye(classes, dtype=np.float32)[codes].T
    weights = np.zeros((len(inputs), classes), np.float32)
    bias = np.zeros(classes, np.float32)
    for _ in range(STEPS):
        error = (_softmax(weights.T @ inputs + bias[:, None]) - target) / len(codes)
        weights -= np.float32(RATE) * (inputs @ error.T + np.float32(RIDGE) * weights)
        bias -= np.float32(RATE) * error.sum(axis=1)
    return weights, bias


def descend_torch(
    inputs: NDArray[np.float32], codes: NDArray[np.int64], classes: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Find weights and bias with PyTorch; arguments and result as in ``descend_numpy``."""
    torch = require("torch", extra="torch")
    samples, target = torch.from_numpy(inputs.T.copy()), torch.from_numpy(codes)
    weights = torch.zeros(len(inputs), classes, requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # matrices this small only make threads wait for each other
    for _ in range(STEPS):
        loss = torch.nn.functional.cross_entropy(samples @ weights + bias, target)
        slopes = torch.autograd.grad(loss, (weights, bias))
        with torch.no_grad():
            weights -= RATE * (slopes[0] + RIDGE * weights)
            bias -= RATE * slopes[1]
    torch.set_num_threads(threads)
    return weights.detach().numpy(), bias.detach().numpy()


def neighbourhood_mean(
    values: NDArray[np.float32], valid: NDArray[np.bool_], kernel: XY
) -> NDArray[np.float32]:
    """Average each pixel's valid neighbours.

    Args:
        values: Shape (bands, height + kernel.y - 1, width + kernel.x - 1): margins included.
        valid: Which pixels count, shape (height + kernel.y - 1, width + kernel.x - 1).
        kernel: Size of the neighbourhood, both sides odd.

    Returns:
        Shape (bands, height, width); 0 where no neighbour is valid.
    """
    height = values.shape[1] - kernel.y + 1
    width = values.shape[2] - kernel.x + 1
    total = np.zeros((values.shape[0], height, width), np.float32)
    count = np.zeros((height, width), np.float32)
    for row in range(kernel.y):
        for column in range(kernel.x):
            here = (slice(row, row + height), slice(column, column + width))
            total += np.where(valid[here], values[(slice(None), *here)], np.float32(0))
            count += valid[here]
    total /= np.maximum(count, np.float32(1))
    return total
