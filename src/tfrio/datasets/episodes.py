"""Datasets of episodes: SequenceExamples, and RLDS folders of TensorFlow Datasets.

Imports torch; only ``tfrio.torch`` and what it loads may import this module.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tfrio.datasets import notices, setup
from tfrio.datasets.torch_data import TFRecordDataset
from tfrio.errors import SchemaError, UsageError
from tfrio.examples.schema import Schema
from tfrio.records.names import in_split
from tfrio.records.shards import list_files
from tfrio.types import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfrio.datasets.plan import Uneven
    from tfrio.datasets.setup import Index, ShuffleLike
    from tfrio.examples.schema import SchemaLike
    from tfrio.types import PathsLike

__all__ = ["EpisodeDataset", "find_tfds", "step_windows"]


class EpisodeDataset(TFRecordDataset):
    """Iterate over episodes: one record is one episode of many steps.

    Without ``batch_size`` each item is a dict: step features as tensors (steps, ...), images as
    one tensor where they have one size, the others as they are. With ``batch_size`` step
    features are padded, with their true lengths in ``NAME/lengths``.

    Args:
        paths: Files or globs of SequenceExamples, or the folder of a TensorFlow Datasets version
            (with ``features.json``), RLDS data sets among them.
        split: Split of such a folder.
        features: Names of the features to read; None: all.
        schema: What the features are; None: ``features.json``, else the first 1,000 records.
        steps: Prefix of the step features' names; feature lists are always step features.
        window: Give each episode as all its windows of so many steps, tensors (windows, window,
            ...), in place of the whole; episodes that are shorter give none.
        stride: Steps from one window to the next.
        batch_size: Episodes a batch.
        shuffle: See ``ArrayDataset``; likewise ``seed``, ``uneven``, ``rank``, ``world_size``
            and ``threads``.
        seed: Any whole number.
        uneven: What to do where the ranks do not divide the episodes.
        rank: This rank.
        world_size: Number of ranks.
        transform: Applied to each item before it is yielded, after windows are cut.
        index: ``"auto"`` keeps an index of each file beside it, ``"memory"`` in memory only.
        threads: Threads that read ahead.

    Raises:
        UsageError: No such split, or windows are asked for in batches.
    """

    def __init__(
        self,
        paths: PathsLike,
        *,
        split: str = "train",
        features: str | Sequence[str] | None = None,
        schema: SchemaLike | None = None,
        steps: str = "steps/",
        window: int | None = None,
        stride: int = 1,
        batch_size: int | None = None,
        shuffle: ShuffleLike = False,
        seed: int | None = None,
        uneven: Uneven = "drop",
        rank: int | None = None,
        world_size: int | None = None,
        transform: Callable[[Any], Any] | None = None,
        index: Index = "auto",
        threads: int | None = None,
    ) -> None:
        if window is not None and batch_size is not None:
            raise UsageError("windows come one episode at a time: leave batch_size away")
        whole_number(stride, "stride")
        if window is not None:
            whole_number(window, "window")
        listed, found, self._promised = find_tfds(paths, split)
        super().__init__(
            listed,
            features=features,
            schema=found if schema is None else schema,
            batch_size=batch_size,
            shuffle=shuffle,
            seed=seed,
            uneven=uneven,
            rank=rank,
            world_size=world_size,
            transform=transform,
            index=index,
            threads=threads,
        )
        if window is not None:
            names = [n for n, f in self.schema.items() if f.place == "list" or n.startswith(steps)]
            self._transform = _Windows(names, window, stride, transform)

    def warn_at_start(self) -> None:
        """Say once what probably is not as the user expects."""
        super().warn_at_start()
        if self._promised and not self._in_worker():
            notices.other_counts(self._promised, self._open().sources.files)
        self._promised = []


class _Windows:
    """Cut windows, then apply a transform; picklable."""

    def __init__(
        self, names: list[str], window: int, stride: int, then: Callable[[Any], Any] | None
    ) -> None:
        self._options = (names, window, stride)
        self._then = then

    def __call__(self, row: dict[str, Any]) -> Any:
        names, window, stride = self._options
        cut = step_windows(row, names, window=window, stride=stride)
        return cut if self._then is None else self._then(cut)


def find_tfds(paths: PathsLike, split: str) -> tuple[list[str], Schema | None, list[int]]:
    """Find the files of a split in a folder of TensorFlow Datasets.

    Args:
        paths: The folder of one version; anything else is listed as it is.
        split: Name of the split.

    Returns:
        The files in order, the schema of ``features.json`` where there is one, and the records of
        each file by ``dataset_info.json``, none where it does not say.

    Raises:
        UsageError: There is no such split, or shards are missing; the message says which there are.
    """
    folder = Path(paths) if isinstance(paths, str | Path) and "://" not in str(paths) else None
    if folder is None or not (folder / "features.json").is_file():
        return setup.list_files(paths), None, []
    files = list_files(folder).files
    chosen = [path for path in files if in_split(Path(path).name, split)]
    lengths = _shard_lengths(folder / "dataset_info.json")
    if not chosen:
        raise UsageError(f"{folder}: no split '{split}'; dataset_info.json says {sorted(lengths)}")
    expected = lengths.get(split, [])
    if len(expected) != len(chosen):  # files without a byte are not among those listed
        expected = [length for length in expected if length]
    if split in lengths and len(expected) != len(chosen):
        raise UsageError(
            f"{folder}: split '{split}' has {len(expected)} shards, {len(chosen)} are here. "
            "Fetch the missing files"
        )
    return chosen, Schema.load(folder / "features.json"), expected


def _shard_lengths(path: Path) -> dict[str, list[int]]:
    """Return the records of each shard by split; nothing where there is no such file."""
    if not path.is_file():
        return {}
    try:
        splits = json.loads(path.read_text(encoding="utf-8")).get("splits", [])
    except (ValueError, AttributeError) as error:
        raise SchemaError(f"{path}: not a dataset_info.json ({error})") from error
    return {str(s["name"]): [int(n) for n in s.get("shardLengths", [])] for s in splits}


def step_windows(
    row: dict[str, Any], names: Sequence[str], *, window: int, stride: int = 1
) -> dict[str, Any]:
    """Cut every step feature of an episode into windows of steps.

    Args:
        row: An episode.
        names: Its step features, each a tensor (steps, ...) or a list of steps.
        window: Steps a window.
        stride: Steps from one window to the next.

    Returns:
        The episode with tensors (windows, window, ...), or lists of lists, in their place.

    Raises:
        SchemaError: Step features differ in their number of steps.
    """
    lengths = {name: len(row[name]) for name in names if row.get(name) is not None}
    if len(set(lengths.values())) > 1:
        raise SchemaError(f"step features differ in length: {lengths}")
    steps = next(iter(lengths.values()), 0)
    starts = range(0, steps - window + 1, stride)
    cut = dict(row)
    for name in lengths:
        value = row[name]
        parts = [value[start : start + window] for start in starts]
        if isinstance(value, torch.Tensor):
            empty = value.new_empty((0, window, *value.shape[1:]))
            cut[name] = torch.stack(parts) if parts else empty
        else:
            cut[name] = parts
    return cut
