"""Weighted sampling of several sources: who is drawn when, as a pure function.

The draws of an epoch come in rounds of 4,096. In each round a source gets its weight's whole
share, and the few draws left over go to sources with the probability of their fraction. So the
shares are exact to one draw a round, and how often a source was drawn before any round is a sum
that needs no replay: workers, ranks and resumed runs start anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from tfrio.datasets.order import subkey, unit_numbers
from tfrio.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from tfrio.datasets.order import Int64, Order

__all__ = ["Draws", "MixedOrder", "Stop", "epoch_length"]

Stop = Literal["first", "all"]

ROUND = 4096


@dataclass(slots=True)
class Draws:
    """Which source each draw takes, and how often that source was drawn before.

    Args:
        weights: Weight of each source, all above 0; only their ratios count.
        key: Key of the sequence, from ``subkey(seed, epoch)``.

    Raises:
        UsageError: No weight, or one that is not above 0.
    """

    weights: tuple[float, ...]
    key: int
    _before: Int64 = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.weights or not all(0 < w < float("inf") for w in self.weights):
            raise UsageError(f"weights must be numbers above 0, got {self.weights}")
        self._before = np.zeros((1, len(self.weights)), np.int64)

    def _round_counts(self, first: int, last: int) -> Int64:
        """Return the draws of each source in rounds ``first`` to ``last`` - 1, (rounds, sources).

        Systematic sampling: one random number a round decides where the left-over draws go.
        """
        shares = np.array(self.weights, np.float64) / sum(self.weights) * ROUND
        whole = np.floor(shares)
        edges = np.concatenate([[0.0], np.cumsum(shares - whole)])
        edges[-1] = ROUND - whole.sum()
        random = unit_numbers(np.arange(first, last, dtype=np.uint64), self.key)
        extra = np.diff(np.ceil(edges[None, :] - random[:, None]), axis=1)
        return (whole + extra).astype(np.int64)

    def before(self, number: int) -> Int64:
        """Return how often each source was drawn before round ``number``, shape (sources,)."""
        known = self._before.shape[0] - 1
        if number > known:
            more = self._round_counts(known, max(number, 2 * known))
            sums = self._before[-1] + np.cumsum(more, axis=0)
            self._before = np.concatenate([self._before, sums])
        found: Int64 = self._before[number]
        return found

    def round_of(self, source: int, wanted: int) -> int:
        """Return the round in which ``source`` is drawn for the ``wanted``-th time."""
        share = self.weights[source] / sum(self.weights)
        high = int(wanted / share / ROUND) + 1
        while self.before(high)[source] < wanted:
            high *= 2
        return int(np.searchsorted(self._before[:, source], wanted, side="left")) - 1

    def of_round(self, number: int) -> tuple[Int64, Int64]:
        """Return source and ordinal of each draw of one round, shapes (4096,)."""
        counts = self.before(number + 1) - self.before(number)
        source = np.repeat(np.arange(counts.size), counts)
        ordinal = np.arange(source.size) - (np.cumsum(counts) - counts)[source]
        ordinal += self.before(number)[source]
        # The sources are mixed, yet each is drawn in the order of its own epoch.
        mixed = np.random.Generator(np.random.PCG64(subkey(self.key, number))).permutation(source)
        in_turn = np.empty_like(ordinal)
        in_turn[np.argsort(mixed, kind="stable")] = ordinal
        return mixed, in_turn


def epoch_length(draws: Draws, counts: Sequence[int], stop: Stop) -> int:
    """Return the number of draws in one epoch.

    Args:
        draws: The sequence of draws.
        counts: Records in each source.
        stop: ``"first"``: the epoch ends before a source would have to repeat a record;
            ``"all"``: it ends when every record of every source has come at least once.

    Returns:
        The number of draws.

    Raises:
        UsageError: A source is empty, or ``stop`` is unknown.
    """
    if stop not in ("first", "all"):
        raise UsageError(f'stop must be "first" or "all", got {stop!r}')
    if min(counts) < 1:
        raise UsageError(f"source {counts.index(min(counts))} of the mixture has no records")
    ends = [_last_draw(draws, source, count) + 1 for source, count in enumerate(counts)]
    if stop == "all":
        return max(ends)
    return min(_last_draw(draws, source, count + 1) for source, count in enumerate(counts))


def _last_draw(draws: Draws, source: int, wanted: int) -> int:
    """Return the number of the draw that takes ``source`` for the ``wanted``-th time."""
    number = draws.round_of(source, wanted)
    sources, ordinals = draws.of_round(number)
    at = np.flatnonzero((sources == source) & (ordinals == wanted - 1))[0]
    return number * ROUND + int(at)


@dataclass(slots=True)
class MixedOrder:
    """Visit several sources as drawn; a source that is used up starts its next pass."""

    draws: Draws
    counts: tuple[int, ...]
    """Records in each source; record numbers run through the sources in turn."""
    total: int
    order_of: Callable[[int, int], Order]
    """Order of a source (first argument) in its pass (second argument)."""
    _orders: dict[tuple[int, int], Order] = field(default_factory=dict, init=False, repr=False)

    def take(self, positions: Int64) -> Int64:
        """Return the record numbers at these positions."""
        out = np.empty(positions.shape, np.int64)
        for chosen, base, order, places in self._parts(positions):
            out[chosen] = base + order.take(places)
        return out

    def together(self, positions: Int64) -> Int64 | None:
        """Return what the orders of the sources ask for."""
        asked = [(base, order.together(at)) for _, base, order, at in self._parts(positions)]
        if any(records is None for _, records in asked):
            return None
        return np.concatenate([base + records for base, records in asked if records is not None])

    def _parts(self, positions: Int64) -> Iterator[tuple[NDArray[np.bool_], int, Order, Int64]]:
        """Yield, for each source and pass drawn: where, first record, order, places in it."""
        source, ordinal = self.sources(positions)
        counts = np.array(self.counts, np.int64)
        passes = ordinal // counts[source]
        base = np.cumsum(counts) - counts
        for drawn, turn in np.unique(np.stack([source, passes]), axis=1).T.tolist():
            chosen = (source == drawn) & (passes == turn)
            places = ordinal[chosen] - turn * counts[drawn]
            yield chosen, int(base[drawn]), self._order(drawn, turn), places

    def sources(self, positions: Int64) -> tuple[Int64, Int64]:
        """Return the source of each position and how often it was drawn before."""
        source = np.empty(positions.shape, np.int64)
        ordinal = np.empty(positions.shape, np.int64)
        rounds = positions // ROUND
        for number in np.unique(rounds).tolist():
            chosen = rounds == number
            sources, ordinals = self.draws.of_round(number)
            source[chosen] = sources[positions[chosen] - number * ROUND]
            ordinal[chosen] = ordinals[positions[chosen] - number * ROUND]
        return source, ordinal

    def _order(self, source: int, turn: int) -> Order:
        if (source, turn) not in self._orders:
            # A pass is over when the next begins: keep one order a source.
            for old in [pair for pair in self._orders if pair[0] == source and pair[1] < turn - 1]:
                del self._orders[old]
            self._orders[source, turn] = self.order_of(source, turn)
        return self._orders[source, turn]
