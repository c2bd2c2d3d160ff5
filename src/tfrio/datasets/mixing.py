"""Mix several datasets into one, by weight."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tfrio.datasets.course import Course
from tfrio.datasets.setup import Mixture
from tfrio.errors import SchemaError, UsageError
from tfrio.types import real_number, several, shown, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrio.datasets.arrays import ArrayDataset
    from tfrio.datasets.mixture import Stop
    from tfrio.datasets.order import Int64

__all__ = ["mix"]

Data = TypeVar("Data", bound="ArrayDataset")


def mix(
    datasets: Sequence[Data],
    weights: Sequence[float] | None = None,
    *,
    stop: Stop = "first",
    length: int | None = None,
    infinite: bool | None = None,
) -> Data:
    """Draw from several datasets by weight.

    The shares are exact to one draw in each 4,096, with any number of workers and ranks, and in
    every batch the sources are mixed. A source that is used up starts again in a new order. The
    mixture is a dataset like any other: it is sharded, shuffled, seeded and resumed as a whole.

    Args:
        datasets: The sources. They must read features of the same kinds and shapes. Batch size,
            seed, ranks and all else are those of the first.
        weights: Weight of each source; only their ratios count. None: their numbers of records.
        stop: ``"first"``: an epoch ends before a source would repeat a record; ``"all"``: when
            every record of every source has come.
        length: Records an epoch, in place of ``stop``.
        infinite: Go on with the next epoch instead of stopping; None: as the first dataset does.

    Returns:
        The mixture.

    Raises:
        UsageError: No datasets, a source without records, or weights that are not above 0.
        SchemaError: The datasets do not read the same features.
    """
    datasets = _checked(datasets)
    first: Data = datasets[0]
    if weights is None:
        weights = [data.num_records for data in datasets]
    weights = [
        float(real_number(each, "a weight")) for each in several(weights, "weights", "numbers")
    ]
    if length is not None:
        whole_number(length, "length")
    if len(weights) != len(datasets):
        raise UsageError(f"{len(weights)} weights for {len(datasets)} datasets")
    for number, data in enumerate(datasets):
        _check_source(number, data, first)
    mixed = copy.copy(first)
    mixed._paths = [path for data in datasets for path in data._paths]
    mixed._selection = _selection(datasets)
    mixed._choices = replace(
        first._choices,
        infinite=first._choices.infinite if infinite is None else infinite,
        mixture=Mixture(tuple(len(data._paths) for data in datasets), tuple(weights), stop, length),
    )
    mixed._adopt(datasets)
    mixed._forget()
    mixed._order(0)  # what cannot be mixed fails here, not in the first epoch
    return mixed


def _checked(datasets: object) -> list[Any]:
    """Return the datasets that a user gave."""
    found = several(datasets, "datasets", "datasets")
    if not found:
        raise UsageError("mix needs at least one dataset")
    for data in found:
        if not isinstance(data, Course):
            raise UsageError(f"mix takes a list of datasets of tfrio, and there is {shown(data)}")
    return found


def _check_source(number: int, data: ArrayDataset, first: ArrayDataset) -> None:
    if data._choices.mixture is not None:
        raise UsageError(f"source {number} is a mixture itself; mix its sources instead")
    if data._choices.shard_by == "files":
        raise UsageError(f'source {number} has shard_by="files"; mixtures deal records')
    if data.schema != first.schema:
        raise SchemaError(
            f"source {number} reads other features than source 0:\n{data.schema}\n{first.schema}\n"
            "Give both the same schema"
        )


def _selection(datasets: Sequence[ArrayDataset]) -> list[Int64] | None:
    """Return the records used of every file, None where all are."""
    if all(data._selection is None for data in datasets):
        return None
    parts: list[Int64] = []
    for data in datasets:
        counts = data._open().sources.counts
        parts += data._selection or [np.arange(count, dtype=np.int64) for count in counts]
    return parts
