"""Datasets of NumPy batches: the whole of a dataset but tensors and worker processes."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from tfrio.datasets import notices, setup
from tfrio.datasets.items import Items, Maker, RaggedForm
from tfrio.datasets.keys import key_values
from tfrio.datasets.place import find_place
from tfrio.datasets.plan import Plan, plan
from tfrio.datasets.reader import Chunk, Reader
from tfrio.datasets.setup import Choices, Index, Opened, Reading, ShuffleLike
from tfrio.datasets.split import By, by_file, split_groups, split_records
from tfrio.datasets.state import Progress, StateDict, check_extent, check_fit, order_digest
from tfrio.datasets.turns import BOX_SIZE, Turns
from tfrio.errors import UsageError
from tfrio.records.damage import DamagePolicy, DamageReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tfrio.datasets.order import Int64, Order
    from tfrio.datasets.plan import Uneven
    from tfrio.examples.schema import Schema, SchemaLike
    from tfrio.types import PathsLike

__all__ = ["ArrayDataset"]


class ArrayDataset:
    """Iterate over record files in batches of NumPy columns, each record exactly once.

    The order is a pure function of the files, ``seed`` and the epoch. It is dealt to the ranks
    at record level; the batches of a rank come out in the same order with any number of workers.
    After a whole pass the next one is the next epoch.

    Args:
        paths: File, folder, glob or URL, or several.
        features: Names of the features to read; the others are skipped unread. None: all.
        schema: What the features are; binding. None: what the first 1,000 records say.
        scalars: Without a schema: whether features with one value become scalars, shape ``()``.
        images: Bytes features to decode as images, to uint8 arrays (height, width, channels).
        batch_size: Records a batch; None yields single rows as dicts.
        drop_last: Leave out a last batch with fewer records.
        shuffle: ``True``: the best shuffle that reads at full speed; ``"full"``: an exact
            permutation; ``"blocks"``: blocks of neighbours permuted and mixed within windows;
            ``"buffer"``: files read front to back side by side and mixed within windows.
        seed: Any whole number; None is 0, the same on every rank.
        window: Records mixed together by ``"blocks"`` and ``"buffer"``; by default up to 16,384
            records and 64 MiB.
        uneven: What to do where the ranks do not divide the records: ``"drop"`` a few,
            ``"pad"`` with a few repeated ones (marked in the entry ``"padding"`` of each batch),
            or ``"keep"`` them all, ranks then differing by one record.
        rank: This rank. By default torch.distributed or RANK and WORLD_SIZE say.
        world_size: Number of ranks.
        shard_by: ``"records"`` deals records to the ranks, ``"files"`` whole files.
        chunk: Without batch_size: records that a worker takes in turn; give the batch size of
            an outer DataLoader, so that its batches are those of no workers.
        ragged: How lists of free length come: ``"padded"`` arrays with a second entry
            ``NAME/lengths``, or ``"lists"`` as they are.
        transform: Applied to each batch or row before it is yielded.
        errors: ``"raise"``, or ``"skip"`` to leave damaged records out, counted in ``report``.
        max_bad: Most damaged records to skip before the next one raises.
        verify: Check each payload's CRC32C.
        index: ``"auto"`` keeps an index of each file beside it, ``"memory"`` in memory only.
        threads: Threads that read ahead; None: 1 (2 for large batches), or 0 in worker processes.
        infinite: Go on with the next epoch instead of stopping.

    Raises:
        UsageError: An option does not make sense, or there are no files.
    """

    loader_token: str | None = None
    """Names the loader that its worker processes send batches to (see ``transit``)."""
    group: int | None = None
    """Batches that a worker takes in turn and sends at once; None: one by one."""
    _passing: notices.PassingLook | None = None
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
        paths: PathsLike,
        *,
        features: str | Sequence[str] | None = None,
        schema: SchemaLike | None = None,
        scalars: bool = False,
        images: str | Sequence[str] = (),
        batch_size: int | None = None,
        drop_last: bool = False,
        shuffle: ShuffleLike = False,
        seed: int | None = None,
        window: int | None = None,
        uneven: Uneven = "drop",
        rank: int | None = None,
        world_size: int | None = None,
        shard_by: Literal["records", "files"] = "records",
        chunk: int = 1,
        ragged: RaggedForm = "padded",
        transform: Callable[[Any], Any] | None = None,
        errors: Literal["raise", "skip"] = "raise",
        max_bad: int | None = None,
        verify: bool = True,
        index: Index = "auto",
        threads: int | None = None,
        infinite: bool = False,
    ) -> None:
        find_place(rank, world_size)
        self._choices = Choices(
            batch_size=batch_size,
            drop_last=drop_last,
            shuffle=shuffle,
            seed=seed or 0,
            window=window,
            uneven=uneven,
            rank=rank,
            world_size=world_size,
            shard_by=shard_by,
            chunk=chunk,
            infinite=infinite,
        )
        self._paths = setup.list_files(paths)
        self._schema = setup.resolve_schema(
            self._paths,
            schema=schema,
            features=features,
            scalars=scalars,
            images=images,
            errors=errors,
        )
        self._policy = DamagePolicy(errors, max_bad=max_bad)
        self._reading = Reading(verify, index, threads, ragged)
        self._transform = transform
        self._selection: list[Int64] | None = None
        self._seedless, self._looked = seed is None, False
        self._forget()

    @property
    def schema(self) -> Schema:
        """Return the features that are read."""
        return self._schema

    @property
    def paths(self) -> list[str]:
        """Return the files, in order."""
        return list(self._paths)

    @property
    def batch_size(self) -> int | None:
        """Return the records a batch, None for single rows."""
        return self._choices.batch_size

    @property
    def report(self) -> DamageReport:
        """Return what was skipped so far in this process."""
        return self._policy.report

    @property
    def num_records(self) -> int:
        """Return the number of records of the data set, over all ranks."""
        return sum(self._open().sources.counts)

    @property
    def epoch(self) -> int:
        """Return the epoch that the next pass reads."""
        return self._turns.epoch

    def __len__(self) -> int:
        """Return the number of batches (or rows) this rank yields in an epoch."""
        if self._choices.infinite:
            raise TypeError("an infinite dataset has no length")
        whole = self._plan(Progress(self.epoch))
        return whole.rank_batches if self._choices.batch_size else whole.length

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that the next pass reads.

        Args:
            epoch: From 0. A state loaded for this epoch is continued; for another it is dropped.
        """
        self._turns.set_epoch(epoch)
        self._stand(None)

    def __iter__(self) -> Iterator[Any]:
        """Start a pass."""
        progress = self.counted(self._begin())
        self._stand(progress)
        return self._passes(progress)

    def _stand(self, progress: Progress | None) -> None:
        self._live, self._handed, self._template = progress, 0, None

    def _begin(self) -> Progress:
        progress, again = self._turns.begin(*self._worker())
        if again and progress.workers > 1 and self._choices.shuffle and self.loader_token is None:
            notices.same_epoch_again(progress.epoch)
        self.warn_at_start()
        return progress

    def _passes(self, progress: Progress) -> Iterator[Any]:
        while True:
            whole = self._plan(progress)
            if self.loader_token is None:
                self.check_batches(whole)
            known = len(self.report.damages)
            self._passing = setup.look_in_passing(progress, self._choices, self._open())
            yield from self._pass(progress, whole)
            if self._passing is not None:
                self._passing.tell()
            if self.loader_token is None:  # a loader tells of its workers
                notices.left_out(progress.epoch, self.report.damages[known:])
            # The next epoch's first batch falls to the worker whose turn it is.
            turn = (progress.worker - whole.rank_groups) % progress.workers
            progress = Progress(progress.epoch + 1, worker=turn, workers=progress.workers)
            if not self._choices.infinite:
                break
            progress = self.counted(progress)
            self._stand(progress)
        if not self._in_worker():
            self.set_epoch(progress.epoch)

    def _pass(self, progress: Progress, whole: Plan) -> Iterator[Any]:
        first, skip = divmod(progress.delivered, whole.batch)
        if self._choices.batch_size and skip:
            first, skip = first + 1, 0
        for items in self._items(whole, first):
            for item, records in items:
                if skip:
                    skip -= 1
                    continue
                self._handed += records
                if item is None:
                    yield from self._nothing()
                    continue
                yield item if self._transform is None else self._transform(item)

    def _nothing(self) -> Sequence[Any]:
        """Return what to yield for a batch of which damage left nothing."""
        return ()

    def _items(self, whole: Plan, first: int) -> Iterator[Items]:
        reader, threads = self._reader(), self._reading.threads
        if threads is None:
            threads = 0 if self._in_worker() else reader.threads_for(whole)
        finish = self._finish if self._passing is None else self._passing.before(self._finish)
        return reader.chunks(whole, finish, first=first, step=self.group, threads=threads)

    def _finish(self, chunk: Chunk) -> Items:
        """Turn a decoded chunk into items to yield, each with the records it stands for."""
        maker = self._maker()
        return maker.batches(chunk) if self._choices.batch_size else maker.rows(chunk)

    def _maker(self) -> Maker:
        return Maker(self._schema, ragged=self._reading.ragged, marks=self._choices.uneven == "pad")

    def state_dict(self, *, items: int | None = None) -> StateDict:
        """Return where this rank stands, to save.

        Args:
            items: Batches (or rows) of the present pass that a loader with workers has handed
                out; None counts what this dataset itself has yielded.

        Returns:
            A small JSON-able dict. Taken at the end of an epoch it stands at the start of the next.
        """
        known = self._template
        if known is not None and items is None and self._handed < known[1].left:
            return {**known[0], "consumed": known[1].consumed + self._handed}
        progress = self.standing()
        if items is not None:
            start = self.counted(self.starting())
            progress = start.after(min(items * (self._choices.batch_size or 1), start.left))
        state = self.state_at(progress)
        if items is None and progress.workers == 1 and self._live is not None:
            self._template = state, self._live
        return state

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

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where a state was saved, with the next pass.

        Args:
            state: From ``state_dict`` or ``merge_states``. It may come from another number of
                workers or ranks: each record still comes once.

        Raises:
            UsageError: The state was saved on other data, another shuffle or seed.
        """
        rank, world = self._shards()
        data, seed = self._open().digest, self._choices.seed
        check_fit(state, data=data, order=None, seed=seed)
        progress = Progress.from_dict(state, rank=rank, world=world)
        order, digest = self._order(progress.epoch)
        check_fit(state, data=data, order=digest, seed=seed)
        check_extent(state, order.total)
        self.begin_at(progress)

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

    def split(
        self,
        fractions: Sequence[float],
        *,
        seed: int = 0,
        by: By = "record",
        key: str | None = None,
        groups: Sequence[object] | None = None,
    ) -> list[Self]:
        """Split into datasets that share no record.

        Args:
            fractions: Share of each part; must sum to 1.
            seed: Another seed gives another split. The epoch and the listing order do not matter.
            by: ``"record"``: exact sizes; ``"hash"``: each record by itself, unmoved when more
                are appended; ``"file"``: whole files.
            key: A feature: records with the same value stay together, and those without one.
            groups: Group of each record, in the order of the files: those stay together. For
                spatial blocks see ``spatial_blocks``.

        Returns:
            One dataset a part, with the options of this one.

        Raises:
            UsageError: Fractions do not sum to 1, or both ``key`` and ``groups`` are given.
        """
        if key is not None and groups is not None:
            raise UsageError("give key or groups, not both")
        if self._selection is not None:
            raise UsageError("this dataset is a part already; split the whole into more parts")
        whole = self._open_all()
        counts = whole.sources.counts
        if key is not None:
            groups = key_values(whole, key, errors=self._policy.mode, verify=self._reading.verify)
        if groups is None:
            parts = split_records(self._paths, counts, fractions=fractions, seed=seed, by=by)
            return [self._part(part) for part in parts]
        if len(groups) != sum(counts):
            raise UsageError(f"{len(groups)} groups for {sum(counts)} records")
        parts_of_all = split_groups(groups, fractions, seed=seed)
        return [self._part(by_file(part, counts)) for part in parts_of_all]

    def _part(self, selection: list[Int64]) -> Self:
        part = copy.copy(self)
        part._selection = selection
        part._forget()
        return part

    def _adopt(self, sources: Sequence[ArrayDataset]) -> None:
        """Take over what a mixture needs to know of each of its sources."""

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
        told_here = self._worker()[0] == self.epoch == 0 and self.loader_token is None
        if not self._looked and (told_here or not self._in_worker()):
            setup.tell_local_shuffle(self._choices, self._open(), self._reader())
        self._looked = True
        if self._seedless and self._choices.shuffle and self._shards()[1] > 1:
            self._seedless = False
            notices.no_seed()
