"""Thin adapters: random access for samplers and Grain, plain dicts for JAX."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.datasets import setup
from tfrio.datasets.items import Maker
from tfrio.datasets.plan import Picks
from tfrio.datasets.reader import Reader
from tfrio.errors import UsageError
from tfrio.records.damage import DamagePolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tfrio.examples.schema import Schema, SchemaLike
    from tfrio.types import PathsLike

__all__ = ["ArraySource", "numeric"]


class ArraySource:
    """Read records by number, as dicts of NumPy values.

    Has the ``__len__`` and ``__getitem__`` of a Grain random access source and of a map-style
    dataset, and pickles.

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
        features: str | Sequence[str] | None = None,
        schema: SchemaLike | None = None,
        scalars: bool = False,
        images: str | Sequence[str] = (),
        transform: Callable[[Any], Any] | None = None,
        verify: bool = True,
        index: setup.Index = "auto",
    ) -> None:
        setup.check_index(index)
        self._paths = setup.list_files(paths)
        self._schema = setup.resolve_schema(
            self._paths, schema=schema, features=features, scalars=scalars, images=images
        )
        self._opened = setup.open_files(self._paths, index=index)
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
        rows = np.array([self._checked(number) for number in numbers], np.int64)
        chunk = self._reader().read(Picks.of(rows, self._opened.starts))
        made = [row for row, _ in self._maker().rows(chunk)]
        return made if self._transform is None else [self._transform(row) for row in made]

    def __repr__(self) -> str:
        """Return files and records; Grain compares it when it restores an iterator."""
        name = type(self).__name__
        return f"{name}({len(self)} records, {len(self._paths)} files, {self._opened.digest})"

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the decoder."""
        return {**self.__dict__, "_made_reader": None}

    def _maker(self) -> Maker:
        return Maker(self._schema, ragged="lists", marks=False)

    def _checked(self, number: int) -> int:
        size = len(self)
        try:
            number = operator.index(number)
        except TypeError as error:
            raise UsageError(
                f"a record number is a whole number, got {number!r}. Take several records at once "
                "with __getitems__([0, 3]), as a DataLoader does"
            ) from error
        if not -size <= number < size:
            raise IndexError(f"record {number} of {size}")
        return number % size

    def _reader(self) -> Reader:
        if self._made_reader is None:
            sources = self._opened.sources
            self._made_reader = Reader(sources, self._schema, DamagePolicy(), verify=self._verify)
        return self._made_reader


def numeric(batches: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield each batch as a plain dict of its numeric arrays, as JAX takes it as a pytree.

    Args:
        batches: An ``ArrayDataset``, or batches of it.

    Yields:
        One dict a batch; bytes, text and lists of differing length are left out.
    """
    for batch in batches:
        yield {name: value for name, value in batch.items() if isinstance(value, np.ndarray)}
