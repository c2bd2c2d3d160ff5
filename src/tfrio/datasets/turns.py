"""Which epoch the next pass reads, and where in it, agreed with worker processes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.datasets.state import Progress
from tfrio.errors import UsageError
from tfrio.types import whole_number

if TYPE_CHECKING:
    from tfrio.datasets.order import Int64

__all__ = ["BOX_SIZE", "Turns"]

_SLOTS = 256  # workers whose passes are counted
BOX_SIZE = 3 + 2 * _SLOTS


class Turns:
    """Count passes and epochs.

    Args:
        box: int64 numbers, shape (BOX_SIZE,), zero at first; an array, or a tensor in shared
            memory, through which ``set_epoch`` reaches workers that live on. It holds the epoch,
            a number that changes with each ``set_epoch``, and for each worker how many passes it
            began since, and which epoch comes after one it was told to end; last, whether
            workers began the latest pass.
    """

    def __init__(self, box: Any) -> None:
        self._box = box
        self._resume: tuple[int, Progress] | None = None

    def _view(self) -> Int64:
        return np.asarray(self._box)

    @property
    def epoch(self) -> int:
        """Return the epoch of the next pass."""
        return int(self._view()[0])

    @property
    def starting(self) -> Progress:
        """Return where the next pass begins."""
        return self._resume[1] if self._resume is not None else Progress(self.epoch)

    @property
    def away(self) -> bool:
        """Return whether the latest pass since ``set_epoch`` is one of worker processes."""
        return bool(self._view()[BOX_SIZE - 1])

    @away.setter
    def away(self, away: bool) -> None:
        """Note that a pass begins, and whether in a worker process."""
        self._view()[BOX_SIZE - 1] = away

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of the next pass; one that waits to be resumed there still is."""
        epoch = whole_number(epoch, "epoch", least=0)
        view = self._view()
        view[0] = epoch
        view[1] += 1
        view[2:BOX_SIZE] = 0
        if self._resume is not None:
            progress = self._resume[1]
            self._resume = (int(view[1]), progress) if progress.epoch == epoch else None

    def begin_at(self, progress: Progress) -> None:
        """Let the next pass begin at a progress."""
        self._resume = None
        self.set_epoch(progress.epoch)
        self._resume = (int(self._view()[1]), progress)

    def begin_worker_at(self, progress: Progress, worker: int, *, over: bool) -> None:
        """Let the next pass of this worker process begin at a progress.

        The other workers write their own entries of the box at the same time, and no other.

        Args:
            progress: From the worker's own state.
            worker: Number of this worker.
            over: Whether the worker has nothing left to do there. When all have, the pass after
                that is the next epoch.
        """
        view, slot = self._view(), worker % _SLOTS
        self._resume = (int(view[1]), progress)
        view[2 + slot] = 0
        view[2 + _SLOTS + slot] = progress.epoch + 1 if over else 0

    def begin(self, worker: int, workers: int) -> tuple[Progress, bool]:
        """Count a pass.

        Args:
            worker: Number of this worker.
            workers: Number of workers.

        Returns:
            Where the pass begins, and whether this is the first worker and has read that epoch from
            its start already, so that the user may have forgotten ``set_epoch``.

        Raises:
            UsageError: A worker's own state is from another number of workers.
        """
        view, slot = self._view(), worker % _SLOTS
        passes = int(view[2 + slot])
        view[2 + slot] += 1
        if self._resume is not None and self._resume[0] == view[1] and not passes:
            progress = self._resume[1]
            if workers > 1 and progress.workers == 1:
                progress = replace(progress, worker=worker, workers=workers)
            if progress.workers != workers:
                raise UsageError(
                    f"the state was saved in one of {progress.workers} workers, there are "
                    f"{workers} now: resume with as many"
                )
            return progress, False
        ended = int(view[2 + _SLOTS :][: min(workers, _SLOTS)].min())
        again = not worker and passes > 0 and ended <= view[0]
        return Progress(max(self.epoch, ended), worker=worker, workers=workers), again
