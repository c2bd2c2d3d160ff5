"""What can be used in a ``with`` block: closed at its end, given up when it raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from tfrio.errors import UnclosedWriterWarning, many, warn_user

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

    def forgotten(self, path: str, records: int) -> None:
        """Give up a writer that is collected unclosed, with a warning; for its ``__del__``.

        Whoever forgot to close it may have been stopped by an error: the file may lack records,
        and nothing half-written bears a final name.

        Args:
            path: What it writes.
            records: How many records it was given.
        """
        self.abort()
        warn_user(
            f"{path}: a writer was never closed: what was not flushed of its {records} "
            f"{many(records, 'record')} is given up. Use `with`, or call close()",
            UnclosedWriterWarning,
        )

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close, or give up when the block raised, or closing did."""
        if kind is not None:
            self.abort()
            return
        try:
            self.close()
        except BaseException:
            self.abort()
            raise
