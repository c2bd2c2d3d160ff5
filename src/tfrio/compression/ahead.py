"""A queue between the thread that inflates and the one that reads."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

__all__ = ["Ahead"]

T = TypeVar("T")


class Ahead(Generic[T]):
    """A queue bounded by the bytes in it; at least one item always fits."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: deque[tuple[T, int]] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self.stopped = False

    def put(self, item: T, weight: int) -> None:
        """Add an item, waiting for room."""
        with self._changed:
            while self._items and self._bytes + weight > self._limit and not self.stopped:
                self._changed.wait()
            self._items.append((item, weight))
            self._bytes += weight
            self._changed.notify_all()

    def get(self) -> T:
        """Take the oldest item, waiting for one."""
        with self._changed:
            while not self._items:
                self._changed.wait()
            item, weight = self._items.popleft()
            self._bytes -= weight
            self._changed.notify_all()
            return item

    def stop(self) -> None:
        """Let a waiting producer go."""
        with self._changed:
            self.stopped = True
            self._changed.notify_all()
