"""Datasets of NumPy batches: the whole of a dataset but tensors and worker processes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from tfrio.datasets import notices, setup
from tfrio.datasets.course import Course
from tfrio.datasets.items import Items, Maker, RaggedForm
from tfrio.datasets.keys import key_values
from tfrio.datasets.place import find_place
from tfrio.datasets.setup import Choices, Index, Reading, ShuffleLike
from tfrio.datasets.split import By, by_file, split_groups, split_records
from tfrio.datasets.state import Progress, StateDict, check_extent, check_fit
from tfrio.errors import UsageError
from tfrio.records.damage import DamagePolicy, DamageReport
from tfrio.types import several, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tfrio.datasets.order import Int64
    from tfrio.datasets.plan import Plan, Uneven
    from tfrio.datasets.reader import Chunk
    from tfrio.examples.schema import Schema, SchemaLike
    from tfrio.types import PathsLike

__all__ = ["ArrayDataset"]


class ArrayDataset(Course):
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

    _passing: notices.PassingLook | None = None

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
        choices = Choices(
            batch_size=batch_size,
            drop_last=drop_last,
            shuffle=shuffle,
            seed=0 if seed is None else seed,
            window=window,
            uneven=uneven,
            rank=rank,
            world_size=world_size,
            shard_by=shard_by,
            chunk=chunk,
            infinite=infinite,
        )
        reading = Reading(verify, index, threads, ragged)
        policy = DamagePolicy(errors, max_bad=max_bad)
        files = setup.list_files(paths)
        found = setup.resolve_schema(
            files,
            schema=schema,
            features=features,
            scalars=scalars,
            images=images,
            errors=errors,
        )
        super().__init__(files, found, choices=choices, reading=reading, policy=policy)
        self._transform = transform
        self._seedless = seed is None

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
    def chunk(self) -> int:
        """Return the rows that a worker takes in turn, where there is no batch size."""
        return self._choices.chunk

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
            known = len(self._policy.report.damages)
            self._passing = setup.look_in_passing(progress, self._choices, self._open())
            yield from self._pass(progress, whole)
            if self._passing is not None:
                self._passing.tell()
            if self.loader_token is None:  # a loader tells of its workers
                notices.left_out(progress.epoch, self._policy.report.damages[known:])
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
                    yield from self._nothing(records)
                    continue
                yield item if self._transform is None else self._transform(item)

    def _nothing(self, _records: int) -> Sequence[Any]:
        """Return what to yield for a batch, or so many rows, of which damage left nothing."""
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
            whole_number(items, "items", least=0)
            start = self.counted(self.starting())
            progress = start.after(min(items * (self._choices.batch_size or 1), start.left))
        state = self.state_at(progress)
        if items is None and progress.workers == 1 and self._live is not None:
            self._template = state, self._live
        return state

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
        if groups is not None:
            groups = groups if isinstance(groups, np.ndarray) else several(groups, "groups", "keys")
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
