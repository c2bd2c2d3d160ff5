"""Iterable datasets for ``torch.utils.data.DataLoader``: shared out exactly, picklable."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
import torch.utils.data

from tfrio.compat import _index, iterator_utils, reader
from tfrio.compat._shards import share
from tfrio.compat.torch._collate import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tfrio.compat._wanted import Description
    from tfrio.compat.iterator_utils import Generator

__all__ = ["MultiTFRecordDataset", "TFRecordDataset"]

Transform: TypeAlias = "Callable[[Any], Any]"


def _current_rank() -> tuple[int, int] | None:
    """Return rank and world size where ``torch.distributed`` is initialised."""
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return None
    return distributed.get_rank(), distributed.get_world_size()


class _Dataset(torch.utils.data.IterableDataset[Any]):  # type: ignore[misc]
    """What both datasets share: who reads what, shuffling, transforming."""

    shuffle_queue_size: int | None
    transform: Transform | None
    sequence_description: Description
    seed: int | None
    generator: Generator | None

    def __init__(self, seed: int | None, generator: Generator | None) -> None:
        super().__init__()
        if seed is not None and generator is not None:
            raise ValueError("give seed or generator, not both")
        self.seed = seed
        self.generator = generator
        self._epoch = 0
        self._rank: tuple[int, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Remember the rank: a spawned worker process has no process group to ask."""
        return self.__dict__ | {"_rank": _current_rank() or self._rank}

    def __bool__(self) -> bool:
        """Answer True always: a dataset may have no length, and that is no reason to fail."""
        return True

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose order ``seed`` gives; each pass in one process counts on by one.

        Args:
            epoch: Number of the epoch, from 0.
        """
        self._epoch = epoch

    def _shard(self) -> tuple[int, int] | None:
        """Return this process's part: ranks first, their workers within; None for all of it."""
        rank, world = _current_rank() or self._rank or (0, 1)
        info = torch.utils.data.get_worker_info()
        if info is None:
            return (rank, world) if world > 1 else None
        return rank * info.num_workers + info.id, world * info.num_workers

    def _draws(self, shard: tuple[int, int] | None) -> Generator | None:
        """Return where draws come from; None: NumPy's global generator, seeded per worker."""
        epoch, self._epoch = self._epoch, self._epoch + 1
        if self.seed is not None:
            return np.random.default_rng([self.seed, epoch, *(shard or (0, 1))])
        if self.generator is not None:
            return self.generator
        info = torch.utils.data.get_worker_info()
        if info is not None:
            # The order that torch.manual_seed gives rests on this seed.
            np.random.seed(info.seed % (2**32 - 1))  # noqa: NPY002
        return None

    @abstractmethod
    def _rows(self, shard: tuple[int, int] | None, generator: Generator | None) -> Iterator[Any]:
        """Return this process's rows, in the order they are read."""

    def __iter__(self) -> Iterator[Any]:
        shard = self._shard()
        generator = self._draws(shard)
        rows = self._rows(shard, generator)
        if self.sequence_description is None:
            rows = map(Row, rows)
        if self.shuffle_queue_size:
            rows = iterator_utils.shuffle_iterator(
                rows, self.shuffle_queue_size, generator=generator
            )
        return rows if self.transform is None else map(self.transform, rows)

    def _count(self, index_path: Any) -> int:
        """Return how many records of an index fall to this rank."""
        rank, world = _current_rank() or self._rank or (0, 1)
        first, last = share(len(_index.read_offsets(index_path)[0]), (rank, world))
        return last - first


class TFRecordDataset(_Dataset):
    """Read one file as rows; workers and ranks share the records out exactly.

    Args:
        data_path: The record file: a path or a URL.
        index_path: Its text index (see ``tfrecord2idx``), or None. With an index and no
            workers a pass begins at a random record and goes once around.
        description: Features wanted: None for all, a list of names, or a dict of names to
            ``"byte"``, ``"int"``, ``"float"`` or None.
        shuffle_queue_size: Length of the shuffle queue; None or 0: file order.
        transform: Called with each row; what it returns takes the row's place.
        sequence_description: Feature lists wanted of SequenceExamples, as ``description``; rows
            are then pairs (context, feature lists).
        compression_type: ``"gzip"``, ``"zlib"`` or None: by content.
        verify: Check the checksums of lengths and payloads.
        seed: An order of its own that leaves NumPy's global generator alone; see ``set_epoch``.
        generator: A NumPy generator to draw from in place of the global one.
    """

    def __init__(
        self,
        data_path: Any,
        index_path: Any = None,
        description: Description = None,
        shuffle_queue_size: int | None = None,
        transform: Transform | None = None,
        sequence_description: Description = None,
        compression_type: str | None = None,
        *,
        verify: bool = True,
        seed: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(seed, generator)
        self.data_path = data_path
        self.index_path = index_path
        self.description = description
        self.shuffle_queue_size = shuffle_queue_size
        self.transform = transform
        self.sequence_description = sequence_description
        self.compression_type = compression_type
        self.verify = verify

    def _rows(self, shard: tuple[int, int] | None, generator: Generator | None) -> Iterator[Any]:
        return reader.tfrecord_loader(
            self.data_path,
            self.index_path,
            self.description,
            shard,
            self.sequence_description,
            self.compression_type,
            verify=self.verify,
            generator=generator,
        )

    def __len__(self) -> int:
        """Return the number of records listed in the index, this rank's share of them."""
        if self.index_path is None:
            raise TypeError("TFRecordDataset has no len() without an index_path")
        return self._count(self.index_path)

    def __getitem__(self, index: int) -> Any:
        """Return one row by its number in the index, transformed."""
        if self.index_path is None:
            raise TypeError("TFRecordDataset has no [i] without an index_path; see also tfrio.open")
        total = len(_index.read_offsets(self.index_path)[0])
        number = range(total)[index]  # negative numbers, and IndexError beyond the ends
        rows = reader.tfrecord_loader(
            self.data_path,
            self.index_path,
            self.description,
            (number, total),
            self.sequence_description,
            self.compression_type,
            verify=self.verify,
        )
        row = next(rows)
        return row if self.transform is None else self.transform(row)


class MultiTFRecordDataset(_Dataset):
    """Mix the rows of several files at random; workers and ranks share each file out exactly.

    Args:
        data_pattern: Path of the record files with ``{}`` where the name of the split goes.
        index_pattern: The same for the text indexes, or None.
        splits: Names of the splits and the ratios in which they are drawn.
        description: As for ``TFRecordDataset``.
        shuffle_queue_size: Length of the one shuffle queue behind the mixing; None or 0: none.
        transform: As for ``TFRecordDataset``.
        sequence_description: As for ``TFRecordDataset``.
        compression_type: As for ``TFRecordDataset``.
        infinite: Begin each file again when it is dry. It ends only where no split has a record.
        verify: Check the checksums of lengths and payloads.
        seed: As for ``TFRecordDataset``.
        generator: As for ``TFRecordDataset``.
    """

    def __init__(
        self,
        data_pattern: str,
        index_pattern: str | None,
        splits: Mapping[str, float],
        description: Description = None,
        shuffle_queue_size: int | None = None,
        transform: Transform | None = None,
        sequence_description: Description = None,
        compression_type: str | None = None,
        infinite: bool = True,
        *,
        verify: bool = True,
        seed: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(seed, generator)
        self.data_pattern = data_pattern
        self.index_pattern = index_pattern
        self.splits = splits
        self.description = description
        self.shuffle_queue_size = shuffle_queue_size
        self.transform = transform
        self.sequence_description = sequence_description
        self.compression_type = compression_type
        self.infinite = infinite
        self.verify = verify

    def _rows(self, shard: tuple[int, int] | None, generator: Generator | None) -> Iterator[Any]:
        return reader.multi_tfrecord_loader(
            self.data_pattern,
            self.index_pattern,
            self.splits,
            self.description,
            self.sequence_description,
            self.compression_type,
            self.infinite,
            shard,
            verify=self.verify,
            generator=generator,
        )

    def __len__(self) -> int:
        """Return the number of records listed in all indexes, this rank's share of them."""
        if self.infinite or self.index_pattern is None:
            raise TypeError("MultiTFRecordDataset has a len() only when finite and with indexes")
        return sum(self._count(self.index_pattern.format(split)) for split in self.splits)
