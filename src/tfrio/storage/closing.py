"""What can be used in a ``with`` block: closed at its end, given up when it raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Closing"]


class Closing:
    """Base of readers and writers; they define ``close``, writers ``abort`` too."""

    def close(self) -> object:
        """Complete the work and release what is held."""

    def abort(self) -> None:
        """Give the work up; for readers the same as closing."""
        self.close()

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close, or give up when the block raised."""
        if kind is None:
            self.close()
        else:
            self.abort()
