"""Statistics of bands in one pass, merged exactly enough over any number of pieces."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tfrio.geo.manifest import BandStatistics

if TYPE_CHECKING:
    from tfrio.geo.source import Mask, Pixels

__all__ = ["Moments", "moments_of"]


class Moments(msgspec.Struct, frozen=True):
    """Count, extremes, mean and sum of squared differences from the mean.

    Two of them merge into that of both (Chan, Golub and LeVeque 1979), which loses no digits
    where a plain sum of squares would.
    """

    count: int = 0
    low: float = 0.0
    high: float = 0.0
    mean: float = 0.0
    squares: float = 0.0

    def merged(self, other: Moments) -> Moments:
        """Return the moments of both together."""
        if not self.count or not other.count:
            return other if other.count else self
        count = self.count + other.count
        gap = other.mean - self.mean
        return Moments(
            count,
            min(self.low, other.low),
            max(self.high, other.high),
            self.mean + gap * other.count / count,
            self.squares + other.squares + gap * gap * self.count * other.count / count,
        )

    def row(self) -> BandStatistics:
        """Return them for the manifest."""
        if not self.count:
            return BandStatistics(count=0, min=None, max=None, mean=None, std=None)
        return BandStatistics(
            count=self.count,
            min=self.low,
            max=self.high,
            mean=self.mean,
            std=math.sqrt(self.squares / self.count),
        )


def moments_of(values: Pixels, masked: Mask | None) -> Moments:
    """Return the moments of the valid and finite values of an array.

    Args:
        values: Any shape.
        masked: True where to leave a value out; None where all count.

    Returns:
        Their moments, in double precision.
    """
    valid = values.reshape(-1) if masked is None else values[~masked]
    if valid.dtype.kind == "f":
        valid = valid[np.isfinite(valid)]
    if not valid.size:
        return Moments()
    wide = valid.astype(np.float64)
    mean = float(wide.mean())
    wide -= mean
    return Moments(
        int(valid.size), float(valid.min()), float(valid.max()), mean, float(np.dot(wide, wide))
    )
