"""Datasets for PyTorch.

Imports torch; only ``tfrio.torch`` and what it loads may import this module.
"""

from __future__ import annotations

import sys
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from tfrio.datasets.adapters import ArraySource
from tfrio.datasets.arrays import ArrayDataset
from tfrio.datasets.state import Progress
from tfrio.datasets.tensors import BatchGroup, TensorMaker, Told
from tfrio.datasets.transit import room, send_blocks_as
from tfrio.datasets.turns import BOX_SIZE
from tfrio.datasets.worker_log import WorkerLog
from tfrio.errors import TfrioError, UsageError, carry, warn_user

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from tfrio.datasets.items import Items
    from tfrio.datasets.loader import Loader
    from tfrio.datasets.reader import Chunk
    from tfrio.datasets.state import StateDict
    from tfrio.records.damage import DamageReport

__all__ = ["TFRecordDataset", "TFRecordMapDataset"]


# As many batches are sent together as make up this size: a message costs as much as 1 MB of data.
GROUP_BYTES = 8 << 20


class TFRecordDataset(ArrayDataset, IterableDataset[Any]):  # type: ignore[misc]
    """Iterate over record files in batches of tensors, each record exactly once.

    Everything is as in ``ArrayDataset``, with tensors in place of arrays: numbers of fixed shape
    are tensors (rows, ...), bytes are lists, lists of free length are padded tensors with
    ``NAME/lengths``, jagged nested tensors (``ragged="nested"``) or lists of tensors.

    With ``batch_size`` pass it to ``DataLoader(dataset, batch_size=None)``, or take
    ``dataset.loader()``, which also counts what it has handed out, for ``state_dict``, and
    moves on to the next epoch by itself. The worker processes of a DataLoader divide the
    batches; they come out in the same order as without workers.
    """

    def loader(
        self,
        *,
        num_workers: int = 0,
        pin_memory: bool = False,
        persistent_workers: bool = True,
        prefetch_factor: int = 2,
        multiprocessing_context: Any = None,
        worker_init_fn: Callable[[int], None] | None = None,
    ) -> Loader:
        """Return a loader that knows epochs and can be resumed.

        It hands out what the dataset does: batches, or rows (episodes, windows) without
        ``batch_size``.

        Args:
            num_workers: Worker processes; 0 reads ahead on a thread of this process, which is
                faster unless ``transform`` is slow Python.
            pin_memory: Put the tensors into page-locked memory, where there is a CUDA device.
            persistent_workers: Keep the workers from epoch to epoch.
            prefetch_factor: Batches (or rows) each worker prepares ahead.
            multiprocessing_context: ``"fork"``, ``"spawn"``, ``"forkserver"``; None: the default,
                or ``"spawn"`` for files of an object store, which do not survive a fork.
            worker_init_fn: Called in each worker with its number.

        Returns:
            The loader.

        Raises:
            UsageError: A number makes no sense, or ``chunk`` of the dataset is not 1.
        """
        from tfrio.datasets.loader import Loader

        if multiprocessing_context is None and self._open().sources.needs_new_process:
            multiprocessing_context = "spawn"
        return Loader(
            self,
            num_workers=num_workers,
            pin_memory=pin_memory,
            persistent_workers=persistent_workers,
            prefetch_factor=prefetch_factor,
            multiprocessing_context=multiprocessing_context,
            worker_init_fn=worker_init_fn,
        )

    def __len__(self) -> int:
        """Return the number of batches (or rows) this rank yields in an epoch.

        To a DataLoader with workers that makes batches itself, as many as make its own length
        come out: each worker may end with a batch that is not full.
        """
        whole = super().__len__()
        loader = _asking_loader(self)
        if loader is None or not (loader.batch_size and loader.num_workers):
            return whole
        size: int = loader.batch_size
        parts = [self._share(worker, loader.num_workers) for worker in range(loader.num_workers)]
        return sum(part // size if loader.drop_last else -(-part // size) for part in parts) * size

    def _share(self, worker: int, workers: int) -> int:
        """Return the number of batches (or rows) of one worker."""
        part = self._plan(Progress(self.epoch, worker=worker, workers=workers))
        return len(part) if self.batch_size else part.records

    def __iter__(self) -> Iterator[Any]:
        """Start a pass."""
        if self.batch_size is not None and self._worker()[0] == 0 and not self._box[BOX_SIZE]:
            self._box[BOX_SIZE] = _tell_second_batching(self)
        if not self._in_worker():
            return super().__iter__()
        return self._to_dataloader() if self.loader_token is None else self._to_loader()

    def __getitem__(self, number: Any) -> Any:
        """Refuse: batches come in the order of the epoch, one after the other."""
        raise UsageError(
            f"no [{number!r}] here: this dataset is iterated. For rows by number, random_split and "
            "samplers take TFRecordMapDataset; to divide this one, its split([0.8, 0.2])"
        )

    @property
    def report(self) -> DamageReport:
        """Return what was skipped so far, in this process and in workers."""
        report = self._policy.report
        if not self._in_worker():
            report.damages += self._log.news()
        return report

    def _to_dataloader(self) -> Iterator[Any]:
        """Yield what the dataset does, and write down what was left out on the way."""
        damages = self._policy.report.damages
        told = len(damages)
        self._open()
        if self._worker()[0]:  # what files lack as a whole, the first worker tells
            told = len(damages)
        with _carrying():
            try:
                for item in super().__iter__():
                    self._log.append(damages[told:])
                    told = len(damages)
                    yield item
            finally:
                self._log.append(damages[told:])

    def _to_loader(self) -> Iterator[Any]:
        """Yield batches, and what was left out on the way to them or stopped this worker."""
        damages = self._policy.report.damages
        told = len(damages)
        try:
            for item in super().__iter__():
                news = damages[told:]
                told += len(news)
                yield Told(item, news) if news else item
        except TfrioError as error:
            error.add_note(f"In a worker process:\n{''.join(traceback.format_exception(error))}")
            yield Told(None, damages[told:], error)
        except Exception:  # noqa: BLE001  # whatever a transform raises; it is raised again there
            wrapped = ExceptionWrapper(where=f"in worker process {self._worker()[0]} of a loader")
            yield Told(None, damages[told:], wrapped)

    def _maker(self) -> TensorMaker:
        sent_on = self.group is not None and self._in_worker()
        return TensorMaker(
            self._schema,
            ragged=self._reading.ragged,
            marks=self._choices.uneven == "pad",
            columns=sent_on,
        )

    def _finish(self, chunk: Chunk) -> Items:
        if self.group is None or not self._in_worker():
            return super()._finish(chunk)
        return [(self._maker().group(chunk), sum(chunk.consumed))]

    def _nothing(self, records: int) -> Sequence[Any]:
        # A loader counts the batches (or rows) that arrive.
        lost = 1 if self.batch_size else records
        return () if self.loader_token is None else (BatchGroup([None] * lost),)

    def _forget(self) -> None:
        super()._forget()
        self._log = WorkerLog()

    def _new_box(self) -> torch.Tensor:
        # Shared, so that set_epoch reaches persistent workers. Its last number is whether a second
        # batching was told of.
        self._box = torch.zeros(BOX_SIZE + 1, dtype=torch.int64).share_memory_()
        return self._box

    def _worker(self) -> tuple[int, int]:
        info = get_worker_info()
        return (0, 1) if info is None else (info.id, info.num_workers)

    def good_group(self, workers: int) -> int | None:
        """Return how many batches to send at once, so that messages are few and not large.

        Args:
            workers: Number of worker processes, each of which should get several turns.

        Returns:
            None where a transform makes the batches, which are sent one by one.
        """
        if self._transform is not None or self.batch_size is None:
            return None
        size = self._open().sources.mean_size * self.batch_size
        turns = self._plan(Progress(self.epoch)).rank_batches // (4 * workers)
        return max(1, min(GROUP_BYTES // size, turns))

    def _begin(self) -> Progress:
        if self.loader_token is not None and self._in_worker():
            send_blocks_as(self.loader_token)
            self._reader().room = room if self.group is not None else None
        progress = super()._begin()
        self._turns.away = self._in_worker()
        return progress

    def state_dict(self, *, items: int | None = None) -> StateDict:
        """Return where this rank stands, to save.

        Args:
            items: Batches (or rows) of the present pass that a DataLoader with workers has handed
                out; None counts what this dataset itself has yielded, in this process.

        Returns:
            A small JSON-able dict. Taken at the end of an epoch it stands at the start of the next.

        Raises:
            UsageError: Worker processes read the present pass, and ``items`` is not given.
        """
        if items is None and self._turns.away and not self._in_worker():
            raise UsageError(
                f"worker processes read epoch {self.epoch} of this dataset, and they alone know "
                "how far they are: a state from here would repeat what they have read. Take the "
                "state_dict() of the loader: dataset.loader() and torchdata's StatefulDataLoader "
                "have one. Or give state_dict(items=...) the batches (or rows) you were handed in "
                "this pass; at the end of an epoch, call set_epoch with the next one first"
            )
        return super().state_dict(items=items)

    def _in_worker(self) -> bool:
        return get_worker_info() is not None


def _asking_loader(data: TFRecordDataset) -> DataLoader[Any] | None:
    """Return the DataLoader whose length is asked for when it asks for that of its dataset.

    Nothing else tells a dataset how many records its DataLoader puts into a batch.
    """
    asking = sys._getframe(2).f_locals.get("self")
    return asking if isinstance(asking, DataLoader) and asking.dataset is data else None


def _tell_second_batching(data: TFRecordDataset) -> bool:
    """Warn where a DataLoader is about to make batches of batches; return whether it is."""
    fetcher = sys._getframe(2).f_locals.get("self")
    if not getattr(fetcher, "auto_collation", False):
        return False
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not isinstance(frame.f_locals.get("self"), DataLoader):
        frame = frame.f_back
    several = "n" if frame is None else frame.f_locals["self"].batch_size
    warn_user(
        f"the dataset makes batches of {data.batch_size}, and the DataLoader puts {several} of "
        f"them into one: shape ({several}, {data.batch_size}, ...). Pass batch_size=None to the "
        "DataLoader, take dataset.loader(), or leave batch_size of the dataset away"
    )
    return True


@contextmanager
def _carrying() -> Iterator[None]:
    """Let errors that leave a worker of a DataLoader, which sends their text, keep attributes."""
    try:
        yield
    except TfrioError as error:
        if get_worker_info() is not None:
            carry(error)
        raise


class TFRecordMapDataset(ArraySource, Dataset[Any]):  # type: ignore[misc]
    """Read records by number, as dicts of tensors; for samplers and ``random_split``.

    Everything is as in ``ArraySource``. A DataLoader reads the records of a batch at once.
    """

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        """Return several records in the order asked for, read at once."""
        with _carrying():
            return super().__getitems__(numbers)

    def _maker(self) -> TensorMaker:
        return TensorMaker(self._schema, ragged="lists", marks=False)
