"""Mix, repeat and shuffle iterators, in the random order seeded experiments rely on.

Every draw comes from NumPy's global generator, one call per draw, so that ``np.random.seed``
gives the order it always gave. A ``generator`` argument takes the place of the global one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from tfrio.errors import warn_user

__all__ = ["cycle", "sample_iterators", "shuffle_iterator"]

T = TypeVar("T")
Generator: TypeAlias = np.random.Generator | np.random.RandomState


class Draws(Protocol):
    """The two draws that mixing and shuffling make."""

    def randint(self, high: int, /) -> int:
        """Draw an integer from [0, high)."""
        ...

    def choice(self, a: Any, /, *, p: Any = None) -> Any:
        """Draw one of ``a`` (or of range(a)), with probabilities ``p``."""
        ...


class _GeneratorDraws:
    """``np.random.Generator`` spells ``randint`` differently."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.randint = generator.integers
        self.choice = generator.choice


def draws(generator: Generator | None) -> Draws:
    """Return where random numbers come from.

    Args:
        generator: A generator of the caller's, or None for NumPy's global one.

    Returns:
        An object with ``randint(high)`` and ``choice(a, p=...)``.

    Raises:
        TypeError: Something else than a NumPy generator.
    """
    if generator is None:
        return np.random
    if isinstance(generator, np.random.Generator):
        return _GeneratorDraws(generator)
    if isinstance(generator, np.random.RandomState):
        return generator
    raise TypeError(
        f"generator must be a numpy.random.Generator or RandomState, not "
        f"{type(generator).__name__}; np.random.default_rng(seed) makes one"
    )


def cycle(iterator_fn: Callable[[], Iterable[T]]) -> Iterator[T]:
    """Repeat an iterator for ever.

    Args:
        iterator_fn: Makes a fresh iterator for each round.

    Yields:
        The items, round after round. It stops when a round yields nothing: waiting for an
        item that never comes would be a hang.
    """
    empty = False
    while not empty:
        empty = True
        for item in iterator_fn():
            empty = False
            yield item


def _checked(ratios: Sequence[float], count: int) -> npt.NDArray[np.float64]:
    """Return the ratios scaled to the sum 1, or say what is wrong with them."""
    weights = np.asarray(ratios, dtype=np.float64)
    if weights.shape != (count,):
        raise ValueError(f"{count} iterators need {count} ratios, got {ratios!r}")
    if not np.isfinite(weights).all() or (weights < 0).any() or weights.sum() <= 0:
        raise ValueError(
            f"ratios must be finite, none negative and their sum above 0; got {ratios!r}"
        )
    scaled: npt.NDArray[np.float64] = weights / weights.sum()
    return scaled


def sample_iterators(
    iterators: Sequence[Callable[[], Iterable[T]]],
    ratios: Sequence[float],
    infinite: bool = True,
    *,
    generator: Generator | None = None,
) -> Iterator[T]:
    """Mix several iterators at random, each drawn in proportion to its ratio.

    Args:
        iterators: Callables without arguments that make an iterator each.
        ratios: One weight per iterator; only their proportions count. Ratio 0: never drawn.
        infinite: True: begin each iterator again when it is dry. False: leave it out from then
            on and end when all that can be drawn are dry.
        generator: Where draws come from; None: NumPy's global generator.

    Yields:
        Items, in random order across iterators and in their own order within each. It ends
        when no iterator has an item.

    Raises:
        ValueError: Ratios that are negative, not finite, all 0, or not as many as iterators.
    """
    if not iterators:
        return
    weights = _checked(ratios, len(iterators))
    rng = draws(generator)
    running = [iter(cycle(make) if infinite else make()) for make in iterators]
    while running:
        drawn = rng.choice(len(weights), p=weights)
        try:
            item = next(running[drawn])
        except StopIteration:
            del running[drawn]
            weights = np.delete(weights, drawn)
            if weights.sum() <= 0:
                return
            weights = weights / weights.sum()
        else:
            yield item


def shuffle_iterator(
    iterator: Iterable[T], queue_size: int, *, generator: Generator | None = None
) -> Iterator[T]:
    """Shuffle an iterator through a queue of bounded length.

    Args:
        iterator: The items.
        queue_size: How many items wait in the queue; at least 1. The longer, the better mixed.
        generator: Where draws come from; None: NumPy's global generator.

    Yields:
        Every item once. A warning says when there are fewer items than the queue holds.

    Raises:
        ValueError: ``queue_size`` below 1.
    """
    if queue_size < 1:
        raise ValueError(f"queue_size must be at least 1, got {queue_size}; do not shuffle instead")
    rng = draws(generator)
    source = iter(iterator)
    queue = list(itertools.islice(source, queue_size))
    if len(queue) < queue_size:
        warn_user(
            f"Number of elements in the iterator is less than the queue size (N={queue_size}).",
            UserWarning,
        )
    while queue:
        # The draw comes before the pull: a source that draws too sees the same numbers as ever.
        drawn = rng.randint(len(queue))
        try:
            item = next(source)
        except StopIteration:
            yield queue.pop(drawn)
        else:
            old, queue[drawn] = queue[drawn], item
            yield old
