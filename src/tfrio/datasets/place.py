"""Which rank of which world this process is."""

from __future__ import annotations

import os
import sys

from tfrio.errors import UsageError
from tfrio.types import whole_number

__all__ = ["find_place"]


def find_place(rank: int | None = None, world_size: int | None = None) -> tuple[int, int]:
    """Return rank and world size: given, from torch.distributed, from the environment, or (0, 1).

    Args:
        rank: Given by the user; needs ``world_size`` too.
        world_size: Given by the user; needs ``rank`` too.

    Returns:
        Rank, from 0, and number of ranks.

    Raises:
        UsageError: Only one of the two is given, or the rank is not below the world size.
    """
    if (rank is None) != (world_size is None):
        raise UsageError("give both rank and world_size, or neither")
    if rank is None or world_size is None:
        rank, world_size = _from_torch() or _from_environment() or (0, 1)
    whole_number(rank, "rank", least=0)
    whole_number(world_size, "world_size")
    if rank >= world_size:
        raise UsageError(f"rank {rank} is not in 0..{world_size - 1} (world size {world_size})")
    return rank, world_size


def _from_torch() -> tuple[int, int] | None:
    # torch.distributed can only be initialised where torch was imported by somebody else.
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return None
    if not distributed.is_initialized():
        return None
    return int(distributed.get_rank()), int(distributed.get_world_size())


def _from_environment() -> tuple[int, int] | None:
    """Read RANK and WORLD_SIZE, as torchrun and most launchers set them."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return None
    try:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except ValueError as error:
        raise UsageError(
            f"RANK={os.environ['RANK']!r} and WORLD_SIZE={os.environ['WORLD_SIZE']!r} in the "
            "environment are no whole numbers; give rank and world_size"
        ) from error
