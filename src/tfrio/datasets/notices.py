"""What a dataset warns of: it goes on, but probably not as the user expects."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from tfrio.errors import TfrioWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrio.datasets.plan import Plan
    from tfrio.records.damage import Damage

__all__ = ["idle_ranks", "left_out", "no_batches", "no_seed", "same_epoch_again"]


def _warn(text: str) -> None:
    # The user's line is far away, behind iterators and loaders: any level is as good.
    warnings.warn(text, TfrioWarning, stacklevel=3)


def same_epoch_again(epoch: int) -> None:
    """Say that ``set_epoch`` was probably forgotten."""
    _warn(
        f"epoch {epoch} is read once more in the same order: call set_epoch before each pass, or "
        "use the dataset's own loader()"
    )


def no_seed() -> None:
    """Say that ranks shuffle without a seed of the user's."""
    _warn("shuffle without a seed: every rank uses seed 0, so that they agree")


def no_batches(whole: Plan, rank: int) -> None:
    """Say that ``drop_last`` leaves a rank nothing."""
    if whole.drop_last and not whole.length and len(whole.share) > whole.skip:
        _warn(
            f"rank {rank}: 0 batches, as its {len(whole.share)} records do not fill one of "
            f"{whole.batch} and drop_last is set"
        )


def left_out(epoch: int, damages: Sequence[Damage]) -> None:
    """Say that damaged records were left out of an epoch."""
    if damages:
        _warn(
            f"epoch {epoch}: left out {len(damages)} damaged records, the first is record "
            f"{damages[0].record} of {damages[0].path}. Run `tfrio verify` for a full account"
        )


def idle_ranks(files: int, world_size: int) -> None:
    """Say which ranks get no file, where whole files are dealt."""
    if files < world_size:
        idle = ",".join(map(str, range(files, world_size)))
        _warn(
            f"{world_size} ranks, {files} files: ranks {idle} idle. "
            'shard_by="records" gives every rank its share'
        )
