"""Carry out a plan: bring records in, decode them, several batches at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from tfrio.compression.source import usable_threads
from tfrio.datasets.decode import Decoder
from tfrio.datasets.prefetch import ordered_map
from tfrio.errors import TfrioError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from tfrio.datasets.decode import Room
    from tfrio.datasets.order import Int64
    from tfrio.datasets.plan import Picks, Plan
    from tfrio.datasets.source import Frames, Sources
    from tfrio.examples.columns import Batch
    from tfrio.examples.schema import Schema
    from tfrio.records.damage import DamagePolicy

__all__ = ["Chunk", "Reader"]

Out = TypeVar("Out")

# Small batches are decoded several at once: a native call and its arrays cost some microseconds,
# and a thread that reads ahead takes its turn with the consumer once for all of them.
CHUNK_RECORDS = 32768
CHUNK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Chunk:
    """Several batches decoded at once."""

    batch: Batch
    rows: list[int]
    """Rows of each batch."""
    consumed: list[int]
    """Records of the plan behind each batch; more than rows where damaged ones were skipped."""
    padding: NDArray[np.bool_] | None
    """True where a record is repeated to make the ranks equal, shape (rows,); None: nowhere."""
    file: NDArray[np.int32]
    """File of each row, shape (rows,)."""
    record: Int64
    """Record number within its file of each row, shape (rows,)."""


class _Task(NamedTuple):
    picks: Picks
    together: Picks | None
    sizes: Int64
    frames: Frames | None = None
    """Where the records lie, if that is known already."""


class Reader:
    """Read records as planned.

    Args:
        sources: The files.
        schema: The features wanted.
        policy: What to do with damaged records.
        verify: Whether payload checksums are checked.
    """

    def __init__(
        self, sources: Sources, schema: Schema, policy: DamagePolicy, *, verify: bool
    ) -> None:
        self.sources = sources
        self._schema = schema
        self._policy = policy
        self._verify = verify
        self.room: Room | None = None
        """Gives memory to decode into."""
        self._spare: list[Decoder] = []

    def chunks(
        self,
        plan: Plan,
        finish: Callable[[Chunk], Out],
        *,
        first: int = 0,
        step: int | None = None,
        threads: int = 0,
    ) -> Iterator[Out]:
        """Read the batches of a plan.

        Args:
            plan: What to read.
            finish: Applied to each chunk, on the thread that decoded it.
            first: Number of the batch to begin with.
            step: Batches a chunk; None: as many small ones as are worth a call.
            threads: Threads that work ahead; 0 works when asked.

        Yields:
            What ``finish`` made of each chunk, in order.
        """
        tasks = self._tasks(plan, first, step)
        # Large batches pass through so much memory that one more costs more than it steadies.
        ahead = threads if self._large(plan) else threads + 1
        return ordered_map(
            lambda task: finish(self._work(task)), tasks, threads=threads, ahead=max(1, ahead)
        )

    def threads_for(self, plan: Plan) -> int:
        """Return how many threads to work ahead on where nobody said so.

        Large batches are bound by the copy out of the file, which two cores do quicker; small ones
        by what cannot be shared.
        """
        return min(2, usable_threads(None)) if self.sources.mapped and self._large(plan) else 1

    def _large(self, plan: Plan) -> bool:
        return plan.batch * self.sources.mean_size > CHUNK_BYTES

    def read(self, picks: Picks) -> Chunk:
        """Read single records at once, in the order given."""
        return self._work(_Task(picks, None, np.array([picks.record.size])))

    def _tasks(self, plan: Plan, first: int, step: int | None) -> Iterator[_Task]:
        records = min(CHUNK_RECORDS, CHUNK_BYTES // self.sources.mean_size)
        step = step or max(1, records // plan.batch)
        mapped = self.sources.mapped
        for low in range(first, len(plan), step):
            high = min(low + step, len(plan))
            together = None if mapped else plan.together(low, high)
            picks = plan.picks(low, high)
            frames = self._at_hand(picks) if mapped else None
            yield _Task(picks, together, plan.batch_sizes(low, high), frames)

    def _at_hand(self, picks: Picks) -> Frames | None:
        """Look up where records of mapped files lie, before a thread takes the task.

        A thread that did so would let go of the GIL at each step, and at the first one wait until
        the consumer has cut the chunk before: they would work in turns.
        """
        try:
            return self.sources.fetch(picks)
        except TfrioError:
            return None  # whoever does the task raises it in its turn

    def _work(self, task: _Task) -> Chunk:
        frames = task.frames or self.sources.fetch(task.picks, task.together)
        record = self.sources.numbers(task.picks)
        decoder = self._decoder()
        batch, kept = decoder.decode(
            frames, self.sources.files, task.picks.file, record, room=self.room
        )
        self._spare.append(decoder)
        sizes = task.sizes.tolist()
        file, real = task.picks.file, task.picks.real
        rows = sizes
        if kept is not None:
            so_far = np.concatenate([[0], np.cumsum(kept)])
            rows = np.diff(so_far[np.cumsum([0, *sizes])]).tolist()
            file, record, real = file[kept], record[kept], real[kept]
        return Chunk(batch, rows, sizes, None if real.all() else ~real, file, record)

    def _decoder(self) -> Decoder:
        """Return a decoder not in use; threads end with a pass, what it has learnt does not."""
        try:
            return self._spare.pop()
        except IndexError:
            return Decoder(
                self._schema,
                self._policy,
                verify=self._verify,
                mean_size=self.sources.mean_size,
            )
