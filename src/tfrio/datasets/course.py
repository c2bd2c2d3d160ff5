"""The course of a dataset through its records: files, order, shares of ranks, where it stands."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tfrio.datasets import notices, setup
from tfrio.datasets.place import find_place
from tfrio.datasets.plan import Plan, plan
from tfrio.datasets.reader import Reader
from tfrio.datasets.state import Progress, StateDict, order_digest
from tfrio.datasets.turns import BOX_SIZE, Turns

if TYPE_CHECKING:
    from tfrio.datasets.order import Int64, Order
    from tfrio.datasets.setup import Choices, Opened, Reading
    from tfrio.examples.schema import Schema
    from tfrio.records.damage import DamagePolicy

__all__ = ["Course"]


class Course:
    """Know which records a dataset visits, in which order, and how far it is.

    Args:
        paths: The files.
        schema: The features that are read.
        choices: How the records are visited.
        reading: How the files are read.
        policy: What to do with damaged records.
    """

    loader_token: str | None = None
    """Names the loader that its worker processes send batches to (see ``transit``)."""
    group: int | None = None
    """Batches that a worker takes in turn and sends at once; None: one by one."""
    _opened: Opened | None
    _made_reader: Reader | None
    _made_order: tuple[int, Order, str] | None
    _live: Progress | None
    """Where the present pass began, or its epoch within an infinite one."""
    _handed: int
    """Records handed to the user since then."""
    _template: tuple[StateDict, Progress] | None
    """A state of the present pass, which differs from the next one in a single number."""

    def __init__(
        self,
        paths: list[str],
        schema: Schema,
        *,
        choices: Choices,
        reading: Reading,
        policy: DamagePolicy,
    ) -> None:
        self._paths, self._schema = paths, schema
        self._choices, self._reading, self._policy = choices, reading, policy
        self._selection: list[Int64] | None = None
        self._looked = self._seedless = False
        self._forget()

    def _stand(self, progress: Progress | None) -> None:
        self._live, self._handed, self._template = progress, 0, None

    def standing(self) -> Progress:
        """Return where the present pass stands, or the next one begins."""
        return self.starting() if self._live is None else self._live.after(self._handed)

    def starting(self) -> Progress:
        """Return where the next pass begins."""
        return self._turns.starting

    def counted(self, progress: Progress) -> Progress:
        """Return a progress that knows how many records of this rank are left."""
        return replace(progress, left=self._plan(replace(progress, worker=0, workers=1)).length)

    def state_at(self, progress: Progress) -> StateDict:
        """Return the state to save at a progress (see ``state_dict``)."""
        settled = progress if self._in_worker() else progress.settled
        rank, world = self._shards()
        return settled.to_dict(
            data=self._open().digest,
            order=self._order(settled.epoch)[1],
            seed=self._choices.seed,
            rank=rank,
            world=world,
        )

    def begin_at(self, progress: Progress) -> None:
        """Let the next pass begin at a progress."""
        if not self._in_worker():
            self._stand(None)
            self._turns.begin_at(progress)
            return
        worker, workers = self._worker()
        here = progress if progress.workers > 1 else replace(progress, worker=worker)
        whole = self._plan(replace(here, workers=workers))
        over = progress.delivered >= whole.records
        self._stand(None)
        self._turns.begin_worker_at(progress, worker, over=over)

    def _forget(self) -> None:
        self._opened = self._made_reader = self._made_order = None
        self._stand(None)
        self._turns = Turns(self._new_box())

    def __copy__(self) -> Self:
        """Copy as it is; unlike a pickle, a copy still looks for its rank when it needs it."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Pickle with the files counted and the rank found, without what can be made again."""
        rank, world_size = find_place(self._choices.rank, self._choices.world_size)
        state = self.__dict__.copy()
        state["_opened"] = self._open()
        state["_choices"] = replace(self._choices, rank=rank, world_size=world_size)
        state["_made_reader"] = state["_made_order"] = state["_live"] = state["_template"] = None
        return state

    def _new_box(self) -> Any:
        """Return the numbers shared with worker processes (see ``Turns``)."""
        return np.zeros(BOX_SIZE, np.int64)

    def _worker(self) -> tuple[int, int]:
        """Return the number of this worker process and of all of them."""
        return 0, 1

    def _in_worker(self) -> bool:
        return False

    def _open(self) -> Opened:
        if self._opened is None:
            rank, world = 0, 1
            if self._choices.shard_by == "files":
                rank, world = find_place(self._choices.rank, self._choices.world_size)
                notices.idle_ranks(len(self._paths), world)
            selection = self._selection
            self._opened = setup.open_files(
                self._paths[rank::world],
                index=self._reading.index,
                selection=None if selection is None else selection[rank::world],
                policy=self._policy,
            )
        return self._opened

    def _open_all(self) -> Opened:
        """Open the files of all ranks, which must agree how to split them."""
        if self._choices.shard_by == "records":
            return self._open()
        return setup.open_files(self._paths, index=self._reading.index, policy=self._policy)

    def _reader(self) -> Reader:
        if self._made_reader is None:
            self._made_reader = Reader(
                self._open().sources, self._schema, self._policy, verify=self._reading.verify
            )
        return self._made_reader

    def _shards(self) -> tuple[int, int]:
        """Return rank and number of ranks that records are dealt to."""
        place = find_place(self._choices.rank, self._choices.world_size)
        return (0, 1) if self._choices.shard_by == "files" else place

    def _order(self, epoch: int) -> tuple[Order, str]:
        """Return the order of an epoch and its digest."""
        if self._made_order is None or self._made_order[0] != epoch:
            order = setup.order_of_epoch(self._choices, self._open().sources, epoch)
            options = {"shuffle": self._choices.shuffle, "window": self._choices.window}
            self._made_order = (epoch, order, order_digest(order, options))
        return self._made_order[1:]

    def _plan(self, progress: Progress) -> Plan:
        rank, world = self._shards()
        return plan(
            self._open().sources.counts,
            rank=rank,
            world=world,
            worker=progress.worker,
            workers=progress.workers,
            uneven=self._choices.uneven,
            batch=self._choices.batch,
            drop_last=self._choices.drop_last,
            done=progress.done,
            skip=progress.consumed,
            order=self._order(progress.epoch)[0],
            group=self.group or 1,
        )

    def check_batches(self, whole: Plan) -> None:
        """Say where a pass has no batch for this rank, or refuse to wait for one for ever."""
        if self._choices.infinite:
            setup.check_endless(whole)
        notices.no_batches(whole, self._shards()[0])

    def warn_at_start(self) -> None:
        """Say once what probably is not as the user expects."""
        told_here = self._worker()[0] == self._turns.epoch == 0 and self.loader_token is None
        if not self._looked and (told_here or not self._in_worker()):
            setup.tell_local_shuffle(self._choices, self._open(), self._reader())
        self._looked = True
        if self._seedless and self._choices.shuffle and self._shards()[1] > 1:
            self._seedless = False
            notices.no_seed()
