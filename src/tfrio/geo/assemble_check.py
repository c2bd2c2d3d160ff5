"""Does another orientation or order of the predictions fit the inputs better?

Predictions follow the inputs they were made from: their edges lie where the inputs' edges lie.
Mutual information between input and prediction is largest where both have the same orientation
and are of the same patch, for classes as for continuous values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

__all__ = ["Fit", "OrderFit", "orientations", "score_order", "score_orientations"]

_LEVELS = 16
# Single patches are compared on few pixels; few levels keep the noise of their histograms low.
_ORDER_LEVELS = 6
_ORDER_PIXELS = 1024
_PIXELS = 250_000
# Another orientation or patch must carry a fifth more information than the one given, and a
# quantity above the noise of a joint histogram, (levels - 1)² / (2 ln 2 · pixels) bits on average
# (Miller, 1955), before it is worth a warning.
_BETTER = 1.2


@dataclass(frozen=True, slots=True)
class Fit:
    """How well each orientation fits.

    Args:
        scores: Mutual information in bits for each orientation, ``"as given"`` among them.
        pixels: Pixels compared.
    """

    scores: Mapping[str, float]
    pixels: int

    @property
    def best(self) -> str:
        """Return the orientation that fits best."""
        return max(self.scores, key=lambda name: self.scores[name])

    @property
    def doubtful(self) -> bool:
        """Tell whether another orientation fits clearly better than the one given."""
        given, best = self.scores["as given"], self.scores[self.best]
        return bool(best > _BETTER * given + _noise(_LEVELS, self.pixels))


@dataclass(frozen=True, slots=True)
class OrderFit:
    """How well each prediction fits the input of its own patch, and of the others.

    Args:
        own: Shape (n,), bits in common with the own patch.
        best: Shape (n,), bits in common with the patch that fits best.
        partner: Shape (n,), that patch.
        pixels: Pixels compared of each patch.
    """

    own: NDArray[np.float64]
    best: NDArray[np.float64]
    partner: NDArray[np.int64]
    pixels: int

    @property
    def moved(self) -> NDArray[np.int64]:
        """Return the predictions that fit another patch clearly better."""
        margin = _BETTER * self.own + 2 * _noise(_ORDER_LEVELS, self.pixels)
        return np.flatnonzero(self.best > margin)

    @property
    def doubtful(self) -> bool:
        """Tell whether a quarter of the predictions, and at least three, fit other patches."""
        return len(self.moved) >= max(3, len(self.own) // 4)


def orientations(shape: tuple[int, int]) -> dict[str, Callable[[NDArray[Any]], NDArray[Any]]]:
    """List the mistakes worth trying, as what would set them right.

    Args:
        shape: Height and width of the patches.

    Returns:
        For each name a function of planes (n, height, width) to planes of the same shape.
    """
    height, width = shape

    def transposed(planes: NDArray[Any]) -> NDArray[Any]:
        # What was written column by column, read as if row by row.
        return np.swapaxes(planes.reshape(len(planes), width, height), 1, 2)

    return {
        "as given": lambda planes: planes,
        "flipped up and down": lambda planes: planes[:, ::-1],
        "flipped left and right": lambda planes: planes[:, :, ::-1],
        "turned by 180 degrees": lambda planes: planes[:, ::-1, ::-1],
        "transposed": transposed,
        "transposed and flipped up and down": lambda planes: transposed(planes)[:, ::-1],
        "transposed and flipped left and right": lambda planes: transposed(planes)[:, :, ::-1],
        "transposed and turned by 180 degrees": lambda planes: transposed(planes)[:, ::-1, ::-1],
    }


def score_orientations(inputs: NDArray[Any], predictions: NDArray[Any]) -> Fit:
    """Compare predictions with their inputs in each orientation.

    Args:
        inputs: Shape (n, bands, height, width).
        predictions: Shape (n, height, width), the same patches.

    Returns:
        The fit of each orientation, summed over the bands.
    """
    # Pixels of every patch, spread evenly: enough for the histogram, few enough to be quick.
    step = max(1, round((predictions.size / _PIXELS) ** 0.5))
    bands = [_levels(inputs[:, band, ::step, ::step]) for band in range(inputs.shape[1])]
    quantised = _levels(predictions)
    scores = {}
    for name, turn in orientations(predictions.shape[1:]).items():
        turned = turn(quantised)[:, ::step, ::step]
        scores[name] = sum(_information(band, turned) for band in bands)
    return Fit(scores, predictions[:, ::step, ::step].size)


def score_order(inputs: NDArray[Any], predictions: NDArray[Any]) -> OrderFit:
    """Compare each prediction with the input of every patch.

    Args:
        inputs: Shape (n, bands, height, width).
        predictions: Shape (n, height, width).

    Returns:
        The fit of each prediction with its own input and with the best one.
    """
    n, bands = inputs.shape[:2]
    step = max(1, round((predictions[0].size / _ORDER_PIXELS) ** 0.5))
    levels = _ORDER_LEVELS
    seen = [_levels(inputs[:, b, ::step, ::step], levels).reshape(n, -1) for b in range(bands)]
    predicted = _levels(predictions[:, ::step, ::step], levels).reshape(n, -1)
    bits = np.zeros((n, n))
    for row in range(n):
        for band in seen:
            bits[row] += _information_with_each(band, predicted[row])
    partner = bits.argmax(axis=1)
    return OrderFit(bits.diagonal().copy(), bits.max(axis=1), partner, predicted.shape[1])


def _information_with_each(
    fields: NDArray[np.int64], one: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the mutual information of one field with each of many, all of few levels."""
    size = _ORDER_LEVELS**2
    offset = np.arange(len(fields))[:, None] * size
    pairs = (offset + fields * _ORDER_LEVELS + one).ravel()
    joint = np.bincount(pairs, minlength=len(fields) * size)
    share = joint.reshape(-1, _ORDER_LEVELS, _ORDER_LEVELS) / one.size
    product = share.sum(2, keepdims=True) * share.sum(1, keepdims=True)
    ratio = np.divide(share, product, out=np.ones_like(share), where=share > 0)
    return np.asarray((share * np.log2(ratio)).sum(axis=(1, 2)))


def _noise(levels: int, pixels: int) -> float:
    """Return the mean mutual information of two fields that have nothing in common."""
    return float((levels - 1) ** 2 / (2 * np.log(2) * max(pixels, 1)))


def _levels(values: NDArray[Any], levels: int = _LEVELS) -> NDArray[np.int64]:
    """Sort values into levels of equal share; few distinct values keep a level each."""
    flat = values.ravel()
    finite = flat[np.isfinite(flat)] if flat.dtype.kind == "f" else flat
    if not finite.size:
        return np.zeros(values.shape, np.int64)
    distinct = np.unique(finite)
    if len(distinct) > levels:
        distinct = np.unique(np.quantile(finite, np.linspace(0, 1, levels + 1)[:-1]))
    level: NDArray[np.int64] = np.searchsorted(distinct, np.nan_to_num(flat), side="right") - 1
    return np.asarray(np.clip(level, 0, levels - 1).reshape(values.shape))


def _information(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Return the mutual information in bits of two fields of levels."""
    joint = np.bincount((first * _LEVELS + second).ravel(), minlength=_LEVELS**2).astype(float)
    joint = joint.reshape(_LEVELS, _LEVELS) / joint.sum()
    product = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    filled = joint > 0
    return float((joint[filled] * np.log2(joint[filled] / product[filled])).sum())
