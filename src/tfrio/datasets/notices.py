"""What a dataset warns of: it goes on, but probably not as the user expects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfrio.errors import many, warn_user

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from tfrio.datasets.items import Items
    from tfrio.datasets.plan import Plan
    from tfrio.datasets.reader import Chunk
    from tfrio.datasets.source import RecordSource
    from tfrio.examples.columns import Batch
    from tfrio.records.damage import Damage

__all__ = [
    "PassingLook",
    "broken_file",
    "idle_ranks",
    "left_out",
    "local_shuffle",
    "looks_sorted",
    "no_batches",
    "no_seed",
    "other_counts",
    "same_epoch_again",
]


_SOME = 8  # records of each chunk that are looked at in passing


def same_epoch_again(epoch: int) -> None:
    """Say that ``set_epoch`` was probably forgotten."""
    warn_user(
        f"epoch {epoch} is read once more in the same order: call set_epoch before each pass, or "
        "use the dataset's own loader()"
    )


def no_seed() -> None:
    """Say that ranks shuffle without a seed of the user's."""
    warn_user("shuffle without a seed: every rank uses seed 0, so that they agree")


def no_batches(whole: Plan, rank: int) -> None:
    """Say that ``drop_last`` leaves a rank nothing."""
    if whole.drop_last and not whole.length and len(whole.share) > whole.skip:
        warn_user(
            f"rank {rank}: 0 batches, as its {len(whole.share)} records do not fill one of "
            f"{whole.batch} and drop_last is set"
        )


def looks_sorted(values: NDArray[np.int64]) -> bool:
    """Return whether numbers look like labels that lie class after class.

    Args:
        values: One feature of records spread evenly over the data set, in order, shape (n,).

    Returns:
        Whether there are several values, few of them, and hardly more changes than values.
    """
    kinds = np.unique(values).size
    changes = int((np.diff(values) != 0).sum())
    return 1 < kinds <= values.size // 3 and changes <= kinds + 1


def local_shuffle(sample: Batch, window: int, total: int) -> None:
    """Say that a shuffle within windows leaves classes that lie one after the other apart.

    Args:
        sample: Records spread evenly over the data set, in order.
        window: Records mixed together.
        total: Records of the data set.
    """
    _tell_sorted(_labels(sample), window, total)


def _labels(sample: Batch) -> dict[str, NDArray[np.int64]]:
    """Return the features with one whole number a record, which may be labels."""
    return {
        name: column.ravel()
        for name, column in sample.items()
        if isinstance(column, np.ndarray) and column.size == sample.rows
        if column.dtype.kind == "i"
    }


def _tell_sorted(labels: Mapping[str, NDArray[np.int64]], window: int, total: int) -> None:
    for name, values in labels.items():
        if values.size > 2 and looks_sorted(values):
            warn_user(
                f"the records look sorted by '{name}', and the shuffle mixes only {window} "
                f'neighbours of {total}: batches are nearly pure. Use shuffle="full", a larger '
                "window, or write the records in random order"
            )
            return


class PassingLook:
    """Look whether records lie class after class while they are read, and say so at the end.

    For files that can only be read from their start: to look before would be to read them twice.

    Args:
        window: Records mixed together.
        total: Records of the data set.
    """

    def __init__(self, window: int, total: int) -> None:
        self._window = window
        self._total = total
        self._seen: list[tuple[NDArray[np.int64], dict[str, NDArray[np.int64]]]] = []

    def before(self, finish: Callable[[Chunk], Items]) -> Callable[[Chunk], Items]:
        """Return a function that looks at a chunk, then finishes it."""

        def look_and_finish(chunk: Chunk) -> Items:
            """Look at some records of a chunk, and finish it."""
            some = np.unique(np.linspace(0, chunk.file.size - 1, _SOME).astype(np.int64))
            if chunk.file.size:
                labels = {name: values[some] for name, values in _labels(chunk.batch).items()}
                places = np.stack([chunk.record[some], chunk.file[some]])
                self._seen.append((places, labels))
            return finish(chunk)

        return look_and_finish

    def tell(self) -> None:
        """Warn where what was seen, put in the order of the files, lies class after class."""
        if not self._seen:
            return
        order = np.lexsort(np.concatenate([places for places, _ in self._seen], axis=1))
        names = set.intersection(*(set(labels) for _, labels in self._seen))
        joined = {n: np.concatenate([labels[n] for _, labels in self._seen]) for n in sorted(names)}
        _tell_sorted({n: values[order] for n, values in joined.items()}, self._window, self._total)


def broken_file(damages: Sequence[Damage]) -> None:
    """Say that a file has places where no record can be found."""
    if damages:
        lost = sum(damage.lost for damage in damages)
        warn_user(
            f"{damages[0].path}: left out {len(damages)} damaged places ({lost} bytes), the first "
            f"at offset {damages[0].offset}. Run `tfrio verify` for a full account"
        )


def left_out(epoch: int, damages: Sequence[Damage]) -> None:
    """Say that damaged records were left out of an epoch, or stretches of compressed data."""
    if damages:
        count, lost = len(damages), sum(damage.lost for damage in damages)
        noun, size = "damaged record", ""
        if any(damage.compressed_offset is not None for damage in damages):
            noun, size = "damaged stretch", f" with {lost:,} bytes of records"
        warn_user(
            f"epoch {epoch}: left out {count} {many(count, noun)}{size}, the first is record "
            f"{damages[0].record} of {damages[0].path}. Run `tfrio verify` for a full account"
        )


def other_counts(promised: Sequence[int], files: Sequence[RecordSource]) -> None:
    """Say that files hold another number of records than the data set's description says.

    Args:
        promised: Records of each file by the description.
        files: The files.
    """
    wrong = [
        (file, count) for file, count in zip(files, promised, strict=True) if file.count != count
    ]
    if wrong:
        first, count = wrong[0]
        warn_user(
            f"{first.path}: holds {first.count} records, dataset_info.json says {count} "
            f"({len(wrong)} of {len(files)} files differ). Fetch it anew, or mend the description"
        )


def idle_ranks(files: int, world_size: int) -> None:
    """Say which ranks get no file, where whole files are dealt."""
    if files < world_size:
        idle = ",".join(map(str, range(files, world_size)))
        warn_user(
            f"{world_size} ranks, {files} files: ranks {idle} idle. "
            'shard_by="records" gives every rank its share'
        )
