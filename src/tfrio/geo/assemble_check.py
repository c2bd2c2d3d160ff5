"""Does another orientation or order of the predictions fit the inputs better?

Predictions follow the inputs they were made from: their edges lie where the inputs' edges lie.
So the prediction of a pixel tells most about its input, in bits, where both have the same
orientation and are of the same patch, for classes as for continuous values.

A refusal must not rest on chance. How input and prediction go together is learnt from some
patches and tried on others, so that predictions that know nothing gain nothing; and the gain must
stand out from its own scatter from patch to patch, because neighbouring pixels are alike and count
for less than their number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = [
    "Fit",
    "OrderFit",
    "levels_of",
    "orientations",
    "score_order",
    "score_orientations",
    "tells_nothing",
]

_LEVELS = 8
# Single patches are compared on few pixels; few levels keep the noise of their histograms low.
_ORDER_LEVELS = 6
_ORDER_PIXELS = 1024
_PIXELS = 250_000
# Another orientation or order must tell a fifth and this many bits more than the one given, ...
_BETTER = 1.2
_LEAST_BITS = 0.01
# ... by so many standard errors. Of 960 sets of random fields of every smoothness none of eight
# patches or more reached 2.7; fewer are tried in tiles, which are less apart, and reached 5.2.
_SURE = 5.0
_SURE_OF_FEW = 10.0
_FEW = 8
# So many suffice to clear predictions of the suspicion that they belong to other patches.
_LEAST = 3.0
_OTHERS = 9
_FOLDS = 4
_UNITS = 16


@dataclass(frozen=True, slots=True)
class Fit:
    """How well each orientation fits.

    Args:
        scores: What predictions tell about inputs, in bits a pixel, for each orientation,
            ``"as given"`` among them; at or below 0 where they tell nothing.
        lead: How far the best one is ahead of the one given, in standard errors.
        patches: Patches compared.
    """

    scores: Mapping[str, float]
    lead: float
    patches: int

    @property
    def best(self) -> str:
        """Return the orientation that fits best."""
        return max(self.scores, key=lambda name: self.scores[name])

    @property
    def doubtful(self) -> bool:
        """Tell whether another orientation fits clearly better than the one given."""
        return _clearly(self.scores[self.best], self.scores["as given"], self.lead, self.patches)


@dataclass(frozen=True, slots=True)
class OrderFit:
    """How well each prediction fits the input of its own patch, and of the others.

    Args:
        partner: Shape (n,), the patch whose input fits the prediction best.
        moved: The predictions that fit another patch better than their own, and it them best.
        own: What those tell about the inputs of their own patches, in bits a pixel.
        best: What they tell about the inputs of their partners.
        lead: How far the latter is ahead, in standard errors.
    """

    partner: NDArray[np.int64]
    moved: NDArray[np.int64]
    own: float
    best: float
    lead: float

    @property
    def doubtful(self) -> bool:
        """Tell whether some of the predictions, at least three, fit other patches."""
        enough = len(self.moved) >= max(3, len(self.partner) // 6)
        return enough and _clearly(self.best, self.own, self.lead, len(self.moved))


def _clearly(best: float, given: float, lead: float, patches: int) -> bool:
    sure = _SURE if patches >= _FEW else _SURE_OF_FEW
    return bool(best > _BETTER * max(given, 0.0) + _LEAST_BITS and lead > sure)


def orientations(shape: tuple[int, int]) -> dict[str, Callable[[NDArray[Any]], NDArray[Any]]]:
    """List the mistakes worth trying, as what would set them right.

    Args:
        shape: Height and width of the patches.

    Returns:
        For each name a function of planes (n, height, width) to planes of the same shape.
    """
    height, width = shape

    def transposed(planes: NDArray[Any]) -> NDArray[Any]:
        """Return what was written column by column, read as if row by row."""
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
        The fit of each orientation, with the band that the predictions tell most about.
    """
    # Pixels of every patch, spread evenly: enough for the histogram, few enough to be quick.
    step = _apart(predictions.size, _PIXELS)
    bands = [levels_of(inputs[:, band, ::step, ::step]) for band in range(inputs.shape[1])]
    quantised = levels_of(predictions)
    gains = {}
    for name, turn in orientations(predictions.shape[1:]).items():
        turned = turn(quantised)[:, ::step, ::step]
        gains[name] = _best_band(bands, turned)
    scores = {name: float(gain.mean()) for name, gain in gains.items()}
    best = max(scores, key=lambda name: scores[name])
    return Fit(scores, _lead(gains[best], gains["as given"]), len(predictions))


def _apart(pixels: int, most: int) -> int:
    """Return how far apart pixels are taken along both axes, so that some ``most`` are."""
    return max(1, round(math.sqrt(pixels / most)))


def score_order(inputs: NDArray[Any], predictions: NDArray[Any]) -> OrderFit:
    """Compare each prediction with the input of every patch.

    Args:
        inputs: Shape (n, bands, height, width).
        predictions: Shape (n, height, width).

    Returns:
        Which predictions fit another patch better, and how much better they do.
    """
    n, bands = inputs.shape[:2]
    step = _apart(predictions[0].size, _ORDER_PIXELS)
    seen = [levels_of(inputs[:, b, ::step, ::step], _ORDER_LEVELS) for b in range(bands)]
    predicted = levels_of(predictions[:, ::step, ::step], _ORDER_LEVELS)
    # Partners are found by texture, in levels of each patch's own: smooth scenes have few others.
    texture = [_textures(inputs[:, b, ::step, ::step]) for b in range(bands)]
    own_texture = _textures(predictions[:, ::step, ::step])
    bits = np.zeros((n, n))
    for row in range(n):
        for band in texture:
            bits[row] += _information_with_each(band, own_texture[row])
    partner = bits.argmax(axis=1)
    margin = _BETTER * bits.diagonal() + 2 * _noise(_ORDER_LEVELS, predicted[0].size)
    # Partners that choose each other: others are mostly chance.
    mutual = bits.argmax(axis=0)[partner] == np.arange(n)
    moved = np.flatnonzero(mutual & (bits.max(axis=1) > margin))
    if not len(moved):
        return OrderFit(partner, moved, 0.0, 0.0, 0.0)
    # Each may like its partner in a way of its own. Only where all go with their partners in one
    # and the same way are they the predictions of these.
    own = _best_band([band[moved] for band in seen], predicted[moved])
    best = _best_band([band[partner[moved]] for band in seen], predicted[moved])
    return OrderFit(partner, moved, float(own.mean()), float(best.mean()), _lead(best, own))


def tells_nothing(inputs: NDArray[Any], predictions: NDArray[Any]) -> bool:
    """Tell whether nothing suggests that predictions follow the inputs of their own patches.

    Args:
        inputs: Shape (n, bands, height, width).
        predictions: Shape (n, height, width), the same patches.

    Returns:
        False where values go with the values of some band, or each patch's texture with that of
        its own input rather than with others', by three standard errors.
    """
    step = _apart(predictions.size, _PIXELS)
    bands = [levels_of(inputs[:, band, ::step, ::step]) for band in range(inputs.shape[1])]
    gains = _best_band(bands, levels_of(predictions[:, ::step, ::step]))
    if _lead(gains, np.zeros_like(gains)) > _LEAST:
        return False
    step = _apart(predictions[0].size, _ORDER_PIXELS)
    own = _textures(predictions[:, ::step, ::step])
    texture = (_textures(inputs[:, band, ::step, ::step]) for band in range(inputs.shape[1]))
    return all(_lead(*_own_and_others(band, own)) <= _LEAST for band in texture)


def _own_and_others(
    fields: NDArray[np.int64], own: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the information of each one with the field of its number, and mean with others."""
    n = len(own)
    places = np.linspace(0, n, _OTHERS + 1, dtype=int)[:-1]
    bits = np.stack(
        [_information_with_each(fields[(row + places) % n], own[row]) for row in range(n)]
    )
    return bits[:, 0], bits[:, 1:].mean(axis=1)


def _textures(planes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the levels of each plane by itself, shape (n, pixels)."""
    return np.stack([levels_of(plane, _ORDER_LEVELS).reshape(-1) for plane in planes])


def _best_band(bands: Sequence[NDArray[np.int64]], one: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the gains with the band that a field tells most about."""
    units = _units(*one.shape)
    return max((_gains(band, one, units) for band in bands), key=lambda gain: float(gain.mean()))


def _units(n: int, height: int, width: int) -> NDArray[np.int64]:
    """Number the parts that are tried: whole patches, or tiles of few large ones.

    Args:
        n: Patches.
        height: Their height.
        width: Their width.

    Returns:
        Shape (n, height, width).
    """
    side = 1
    while n < _FEW and n * side * side < _UNITS:
        side += 1
    rows, columns = np.arange(height) * side // height, np.arange(width) * side // width
    tiles = rows[:, None] * side + columns
    _, found = np.unique(np.arange(n)[:, None, None] * side**2 + tiles, return_inverse=True)
    return np.asarray(found.reshape(n, height, width))


def _gains(
    first: NDArray[np.int64], second: NDArray[np.int64], units: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return what one field tells about another in each unit, as learnt from the others.

    Args:
        first: Levels, shape (n, height, width).
        second: Levels, the same shape.
        units: Number of the unit of each pixel, the same shape.

    Returns:
        Bits a pixel by unit; below 0 where what was learnt does not hold.
    """
    count = int(units.max()) + 1
    pairs = units * _LEVELS**2 + first * _LEVELS + second
    joint = np.bincount(pairs.ravel(), minlength=count * _LEVELS**2).astype(float)
    joint = joint.reshape(count, _LEVELS, _LEVELS)
    fold = np.arange(count) * _FOLDS // count
    gains = np.zeros(count)
    for part in range(_FOLDS):
        # Half a pixel in each cell keeps pairs that were not seen from counting without end.
        share = joint[fold != part].sum(axis=0) + 0.5
        share /= share.sum()
        told = np.log2(share / (share.sum(1, keepdims=True) * share.sum(0, keepdims=True)))
        tried = joint[fold == part]
        gains[fold == part] = (tried * told).sum(axis=(1, 2)) / tried.sum(axis=(1, 2))
    return gains


def _lead(best: NDArray[np.float64], given: NDArray[np.float64]) -> float:
    """Return the mean difference in standard errors."""
    ahead = best - given
    if len(ahead) < _FOLDS or not ahead.any():
        return 0.0
    return float(ahead.mean() / max(ahead.std(ddof=1) / len(ahead) ** 0.5, 1e-9))


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


def levels_of(values: NDArray[Any], levels: int = _LEVELS) -> NDArray[np.int64]:
    """Sort values into levels of equal share; few distinct values keep a level each.

    Args:
        values: Numbers of any shape; NaN counts as 0.
        levels: How many.

    Returns:
        Levels from 0, the same shape.
    """
    flat = values.ravel()
    finite = flat[np.isfinite(flat)] if flat.dtype.kind == "f" else flat
    if not finite.size:
        return np.zeros(values.shape, np.int64)
    distinct = np.unique(finite)
    if len(distinct) > levels:
        distinct = np.unique(np.quantile(finite, np.linspace(0, 1, levels + 1)[:-1]))
    level: NDArray[np.int64] = np.searchsorted(distinct, np.nan_to_num(flat), side="right") - 1
    return np.asarray(np.clip(level, 0, levels - 1).reshape(values.shape))
