"""Mixing and shuffling, served by ``tfrio.compat.iterator_utils``."""

from tfrio.compat.iterator_utils import cycle, sample_iterators, shuffle_iterator

__all__ = ["cycle", "sample_iterators", "shuffle_iterator"]
