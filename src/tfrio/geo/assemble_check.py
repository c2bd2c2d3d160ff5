"""Does another orientation of the predictions fit the inputs better? A swap of axes shows here.

Predictions follow the inputs they were made from: their edges lie where the inputs' edges lie.
Mutual information between input and prediction, pooled over many pixels, is largest where both
have the same orientation, for classes as for continuous values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

__all__ = ["Fit", "orientations", "score_orientations"]

_LEVELS = 16
# A wrong orientation must carry a fifth more information than the one given, and a quantity
# above the noise of a joint histogram, (levels - 1)² / (2 ln 2 · pixels) bits on average
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
        noise = (_LEVELS - 1) ** 2 / (2 * np.log(2) * max(self.pixels, 1))
        return bool(best > _BETTER * given + noise)


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
    bands = [_levels(inputs[:, band]) for band in range(inputs.shape[1])]
    quantised = _levels(predictions)
    scores = {}
    for name, turn in orientations(predictions.shape[1:]).items():
        turned = turn(quantised)
        scores[name] = sum(_information(band, turned) for band in bands)
    return Fit(scores, predictions.size)


def _levels(values: NDArray[Any]) -> NDArray[np.int64]:
    """Sort values into levels of equal share; few distinct values keep a level each."""
    flat = values.ravel()
    finite = flat[np.isfinite(flat)] if flat.dtype.kind == "f" else flat
    if not finite.size:
        return np.zeros(values.shape, np.int64)
    distinct = np.unique(finite)
    if len(distinct) > _LEVELS:
        distinct = np.unique(np.quantile(finite, np.linspace(0, 1, _LEVELS + 1)[:-1]))
    level: NDArray[np.int64] = np.searchsorted(distinct, np.nan_to_num(flat), side="right") - 1
    return np.asarray(np.clip(level, 0, _LEVELS - 1).reshape(values.shape))


def _information(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Return the mutual information in bits of two fields of levels."""
    joint = np.bincount((first * _LEVELS + second).ravel(), minlength=_LEVELS**2).astype(float)
    joint = joint.reshape(_LEVELS, _LEVELS) / joint.sum()
    product = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    filled = joint > 0
    return float((joint[filled] * np.log2(joint[filled] / product[filled])).sum())
