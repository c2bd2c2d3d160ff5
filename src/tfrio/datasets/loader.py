"""A DataLoader that counts what it hands out, and so can be resumed at any batch."""

from __future__ import annotations

import copy
import uuid
from typing import TYPE_CHECKING, Any

import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import DataLoader
from torch.utils.data._utils.pin_memory import pin_memory

from tfrio.datasets import notices
from tfrio.datasets.arrays import ArrayDataset
from tfrio.datasets.state import Progress
from tfrio.datasets.tensors import BatchGroup, Told
from tfrio.datasets.transit import forget_blocks
from tfrio.errors import UsageError
from tfrio.types import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tfrio.datasets.state import StateDict
    from tfrio.datasets.torch_data import TFRecordDataset

__all__ = ["Loader"]


def _as_is(item: Any) -> Any:
    return item


class Loader:
    """Iterate over a dataset's batches (or rows), with or without worker processes.

    Made by ``TFRecordDataset.loader``. Each pass reads the next epoch. ``state_dict`` counts what
    was handed out, not what was prefetched, and can be loaded by a loader with another number of
    workers, also none, or on another number of ranks.
    """

    def __init__(
        self,
        dataset: TFRecordDataset,
        *,
        num_workers: int,
        pin_memory: bool,
        persistent_workers: bool,
        prefetch_factor: int,
        multiprocessing_context: Any,
        worker_init_fn: Callable[[int], None] | None,
    ) -> None:
        self._token = uuid.uuid4().hex
        if dataset.batch_size is None and dataset.chunk != 1:
            raise UsageError(
                f"loader() hands out rows one by one; chunk={dataset.chunk} is for a DataLoader "
                "that makes batches of them. Leave chunk away, or give the dataset a batch_size"
            )
        whole_number(num_workers, "num_workers", least=0)
        whole_number(prefetch_factor, "prefetch_factor")
        self.dataset = dataset
        self._pin_memory = pin_memory and torch.cuda.is_available()
        self._workers: dict[str, Any] = {}
        if num_workers:
            self._workers = {
                "num_workers": num_workers,
                "persistent_workers": persistent_workers,
                "prefetch_factor": prefetch_factor,
                "multiprocessing_context": multiprocessing_context,
                "worker_init_fn": worker_init_fn,
            }
        self._loader: DataLoader[Any] | None = None
        self._start = dataset.starting()
        self._live: Progress | None = None
        self._template: tuple[Progress, StateDict] | None = None

    def __len__(self) -> int:
        """Return the number of batches (or rows) in an epoch."""
        return len(self.dataset)

    def __iter__(self) -> Iterator[Any]:
        """Start the pass that the state says: the rest of an epoch, or the next one."""
        start = self._start
        # A pass that is broken off starts again from its beginning.
        self._start = Progress(start.epoch)
        self._live = self.dataset.counted(start)
        self.dataset.begin_at(start)
        if self._workers:  # not once in each of them
            self.dataset.warn_at_start()
            self.dataset.check_batches(self.dataset._plan(start))
        return self._handed_out(self._live)

    def _handed_out(self, progress: Progress) -> Iterator[Any]:
        if self._workers:
            for batch, live in self._from_workers(progress):
                self._live = live
                if batch is not None:
                    yield batch
        else:
            for batch in self.dataset:
                yield pin_memory(batch) if self._pin_memory else batch
        self._live = None
        self._start = Progress(self._start.epoch + 1)

    def _from_workers(self, progress: Progress) -> Iterator[tuple[Any, Progress]]:
        """Yield each batch (None where damage left nothing of one) and the progress after it."""
        size, report = self.dataset.batch_size or 1, self.dataset.report
        known = len(report.damages)
        for batch in self._received():
            progress = progress.after(min(size, progress.left))
            yield batch, progress
            if progress.left == 0:  # an infinite dataset goes on with the next epoch
                notices.left_out(progress.epoch, report.damages[known:])
                known = len(report.damages)
                progress = self.dataset.counted(Progress(progress.epoch + 1))

    def _received(self) -> Iterator[Any]:
        if self._loader is None:
            self._loader = DataLoader(
                self._sending(),
                batch_size=None,
                collate_fn=_as_is,
                pin_memory=self._pin_memory,
                **self._workers,
            )
        try:
            for item in map(self._heard, self._loader):
                if isinstance(item, BatchGroup):
                    yield from item.split()
                else:
                    yield item
        except Exception:
            self._end_workers()
            raise
        finally:
            if not self._workers["persistent_workers"]:
                self._end_workers()

    def _heard(self, item: Any) -> Any:
        """Return what a worker sent; count here what it left out, raise here what stopped it."""
        if not isinstance(item, Told):
            return item
        for damage in item.damages:
            self.dataset._policy.take(damage)
        error, item = item.error, item.item
        if error is None:
            return item
        try:
            if isinstance(error, ExceptionWrapper):
                error.reraise()
            # Its note tells what was called in the worker. A traceback, which tblib (brought by
            # distributed) sends along, would hold on to PyTorch's frames.
            raise error.with_traceback(None)
        finally:
            del error  # an error that refers to itself keeps the loader until garbage is collected

    def _sending(self) -> TFRecordDataset:
        """Return the dataset as the workers get it: its batches name this loader."""
        data = copy.copy(self.dataset)
        data.loader_token = self._token
        data.group = data.good_group(self._workers["num_workers"])
        return data

    def _end_workers(self) -> None:
        self._loader = None
        forget_blocks(self._token)

    def __del__(self) -> None:
        """Let go of what the workers sent."""
        forget_blocks(self._token)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of the next pass; one loaded for this very epoch is continued."""
        if self._start.epoch != epoch:
            self._start = Progress(epoch)
        self._live = None

    def state_dict(self) -> StateDict:
        """Return where this rank stands after the last batch handed out (see ``ArrayDataset``)."""
        if self._live is not None and not self._workers:
            return ArrayDataset.state_dict(self.dataset)  # counted here, whoever else reads it
        live, known = self._live, self._template
        if live is None:
            return self.dataset.state_at(self._start)
        if known and live.left > 0 and (known[0].epoch, known[0].done) == (live.epoch, live.done):
            return {**known[1], "consumed": live.consumed}  # all that changes within an epoch
        state = self.dataset.state_at(live)
        if live.left > 0:
            self._template = live, state
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where a state was saved, with the next pass (see ``ArrayDataset``)."""
        self.dataset.load_state_dict(state)
        self._start, self._live = self.dataset.starting(), None
        self._end_workers()  # those under way know nothing of the state
