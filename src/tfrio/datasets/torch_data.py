"""Datasets for PyTorch.

Imports torch; only ``tfrio.torch`` and what it loads may import this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from tfrio.datasets import setup
from tfrio.datasets.arrays import ArrayDataset
from tfrio.datasets.plan import Picks
from tfrio.datasets.reader import Reader
from tfrio.datasets.tensors import TensorMaker
from tfrio.datasets.turns import BOX_SIZE
from tfrio.records.damage import DamagePolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfrio.datasets.loader import Loader
    from tfrio.examples.schema import Schema, SchemaLike
    from tfrio.types import PathsLike

__all__ = ["TFRecordDataset", "TFRecordMapDataset"]


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

        Args:
            num_workers: Worker processes; 0 reads ahead on a thread of this process, which is
                faster unless ``transform`` is slow Python.
            pin_memory: Put the tensors into page-locked memory.
            persistent_workers: Keep the workers from epoch to epoch.
            prefetch_factor: Batches each worker prepares ahead.
            multiprocessing_context: ``"fork"``, ``"spawn"``, ``"forkserver"``; None: the default.
            worker_init_fn: Called in each worker with its number.

        Returns:
            The loader.

        Raises:
            UsageError: The dataset has no ``batch_size``.
        """
        from tfrio.datasets.loader import Loader

        return Loader(
            self,
            num_workers=num_workers,
            pin_memory=pin_memory,
            persistent_workers=persistent_workers,
            prefetch_factor=prefetch_factor,
            multiprocessing_context=multiprocessing_context,
            worker_init_fn=worker_init_fn,
        )

    def _maker(self) -> TensorMaker:
        return TensorMaker(self._schema, ragged=self._ragged, marks=self._choices.uneven == "pad")

    def _new_box(self) -> torch.Tensor:
        # Shared, so that set_epoch reaches persistent workers.
        return torch.zeros(BOX_SIZE, dtype=torch.int64).share_memory_()

    def _worker(self) -> tuple[int, int]:
        info = get_worker_info()
        return (0, 1) if info is None else (info.id, info.num_workers)

    def _in_worker(self) -> bool:
        return get_worker_info() is not None


class TFRecordMapDataset(Dataset[Any]):  # type: ignore[misc]
    """Read records by number, as dicts of tensors; for samplers and ``random_split``.

    Args:
        paths: File, folder, glob or URL, or several; one sequence over all of them.
        features: Names of the features to read; None: all.
        schema: What the features are; binding. None: what the first 1,000 records say.
        scalars: Without a schema: whether features with one value become scalars.
        images: Bytes features to decode as images.
        transform: Applied to each row.
        verify: Check each payload's CRC32C.
        index: ``"auto"`` keeps an index of each file beside it, ``"memory"`` in memory only.
    """

    def __init__(
        self,
        paths: PathsLike,
        *,
        features: Sequence[str] | None = None,
        schema: SchemaLike | None = None,
        scalars: bool = False,
        images: Sequence[str] = (),
        transform: Callable[[Any], Any] | None = None,
        verify: bool = True,
        index: setup.Index = "auto",
    ) -> None:
        listed = setup.list_files(paths)
        self._schema = setup.resolve_schema(
            listed, schema=schema, features=features, scalars=scalars, images=images
        )
        self._opened = setup.open_files(listed, index=index)
        self._transform = transform
        self._verify = verify
        self._made_reader: Reader | None = None

    @property
    def schema(self) -> Schema:
        """Return the features that are read."""
        return self._schema

    def __len__(self) -> int:
        """Return the number of records."""
        return int(self._opened.starts[-1])

    def __getitem__(self, number: int) -> Any:
        """Return one record; negative numbers count from the end."""
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        """Return several records in the order asked for, read at once."""
        rows = [self._checked(number) for number in numbers]
        picks = Picks.of(torch.tensor(rows, dtype=torch.int64).numpy(), self._opened.starts)
        items = TensorMaker(self._schema, ragged="lists", marks=False).rows(
            self._reader().read(picks)
        )
        made = [item for item, _ in items]
        return made if self._transform is None else [self._transform(row) for row in made]

    def _checked(self, number: int) -> int:
        size = len(self)
        if not -size <= number < size:
            raise IndexError(f"record {number} of {size}")
        return int(number) % size

    def _reader(self) -> Reader:
        if self._made_reader is None:
            self._made_reader = Reader(
                self._opened.sources, self._schema, DamagePolicy(), verify=self._verify
            )
        return self._made_reader

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the decoder."""
        return {**self.__dict__, "_made_reader": None}
