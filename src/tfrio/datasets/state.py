"""Where an epoch stands, as a small JSON-able dict, and what it may be resumed on.

A state names the data (digest of file names, sizes and counts), the order (digest of its options
and of its first records), the epoch, and how many records were *handed to the user*: what was
prefetched does not count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tfrio.datasets.plan import Done, remaining
from tfrio.errors import UsageError
from tfrio.types import several

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrio.datasets.order import Int64, Order

__all__ = [
    "Progress",
    "StateDict",
    "check_extent",
    "check_fit",
    "data_digest",
    "merge_states",
    "order_digest",
]

StateDict: TypeAlias = dict[str, Any]

VERSION = 1


def data_digest(
    names: Sequence[str],
    counts: Sequence[int],
    sizes: Sequence[int],
    *,
    selection: Sequence[Int64] | None = None,
) -> str:
    """Return a digest that changes when the data set does.

    Args:
        names: Stable name of each file.
        counts: Records in each file.
        sizes: Bytes of each file.
        selection: Record numbers used of each file, where not all.

    Returns:
        16 hexadecimal digits.
    """
    digest = hashlib.blake2b(digest_size=8)
    digest.update(json.dumps([list(names), list(counts), list(sizes)]).encode())
    for numbers in selection or ():
        digest.update(np.ascontiguousarray(numbers, dtype="<i8").tobytes())
    return digest.hexdigest()


def order_digest(order: Order, options: Mapping[str, object]) -> str:
    """Return a digest of an order: its options and where its first and last records lie.

    It differs where another version of tfrio or NumPy would shuffle in another way.
    """
    count = min(order.total, 64)
    ends = np.concatenate([np.arange(count), order.total - 1 - np.arange(count)])
    digest = hashlib.blake2b(json.dumps(dict(options), sort_keys=True).encode(), digest_size=8)
    digest.update(order.take(ends).astype("<i8").tobytes())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one rank has come in one epoch."""

    epoch: int = 0
    consumed: int = 0
    """Records of the rank's stream handed to the user before this run or by it."""
    done: tuple[Done, ...] = ()
    """What earlier runs on another number of ranks consumed of this epoch."""
    worker: int = 0
    workers: int = 1
    delivered: int = 0
    """Records this worker has delivered since ``consumed``, where there are several workers."""
    left: int = -1
    """Records of the rank's stream still to come, -1 where not counted; not part of the state."""

    def after(self, records: int) -> Progress:
        """Return the progress after so many records more.

        Args:
            records: Records handed to the user.

        Returns:
            The new progress.
        """
        if self.workers > 1:
            return replace(self, delivered=self.delivered + records)
        left = self.left - records if self.left >= 0 else -1
        return replace(self, consumed=self.consumed + records, left=left)

    @property
    def settled(self) -> Progress:
        """Return the start of the next epoch where this one is over, else the same."""
        over = self.left == 0 and self.consumed > 0
        return Progress(self.epoch + 1) if over else self

    def to_dict(self, *, data: str, order: str, seed: int, rank: int, world: int) -> StateDict:
        """Return the state to save.

        Args:
            data: From ``data_digest``.
            order: From ``order_digest``.
            seed: Seed of the shuffle.
            rank: This rank.
            world: Number of ranks.

        Returns:
            A dict of numbers, strings and lists.
        """
        state: StateDict = {
            "version": VERSION,
            "data": data,
            "order": order,
            "seed": seed,
            "rank": rank,
            "world": world,
            "epoch": self.epoch,
            "consumed": self.consumed,
            "done": [[run.world, list(run.counts)] for run in self.done],
        }
        if self.workers > 1:
            state["worker"] = [self.worker, self.workers, self.delivered]
        return state

    @classmethod
    def from_dict(cls, state: Mapping[str, Any], *, rank: int, world: int) -> Progress:
        """Read a saved state for a rank of the present run.

        Args:
            state: What ``to_dict`` or ``merge_states`` gave.
            rank: This rank.
            world: Number of ranks now.

        Returns:
            The progress. On another number of ranks than before, what the old ranks consumed is
            left out of the deal; a state of a single rank stands for all, as they run in step.

        Raises:
            UsageError: The state is of another version or is damaged.
        """
        _check_shape(state)
        done = tuple(Done(int(old), tuple(map(int, counts))) for old, counts in state["done"])
        old_world, consumed = int(state["world"]), state["consumed"]
        epoch = int(state["epoch"])
        of_ranks = consumed if isinstance(consumed, list) else [consumed] * old_world
        if old_world != world:
            return cls(
                epoch, 0, (*done, Done(old_world, tuple(of_ranks))) if any(of_ranks) else done
            )
        progress = cls(epoch, int(of_ranks[rank]), done)
        if "worker" in state:
            worker, workers, delivered = map(int, state["worker"])
            return replace(progress, worker=worker, workers=workers, delivered=delivered)
        return progress


def _check_shape(state: Mapping[str, Any]) -> None:
    needed = {"version", "data", "order", "seed", "rank", "world", "epoch", "consumed", "done"}
    known = state if isinstance(state, Mapping) else ()  # None, where nothing was saved
    missing = sorted(needed - set(known))
    if missing:
        raise UsageError(f"this is not a state of a tfrio dataset: {', '.join(missing)} missing")
    if state["version"] != VERSION:
        raise UsageError(
            f"state version {state['version']} is not {VERSION}: "
            "resume with the version of tfrio that saved it"
        )
    consumed, world = state["consumed"], state["world"]
    runs = [*state["done"], *([[world, consumed]] if isinstance(consumed, list) else [])]
    alone = [] if isinstance(consumed, list) else [consumed]
    counts = [count for _, counts in runs for count in counts]
    numbers = [state["epoch"], *alone, *counts, *state.get("worker", ())]
    whole = all(type(number) is int and number >= 0 for number in numbers)  # no bool or None
    ranked = type(world) is int and world > 0 and all(len(of) == ranks for ranks, of in runs)
    if not (whole and ranked):
        raise UsageError(
            f"the state is damaged: epoch {state['epoch']!r}, {consumed!r} records consumed on "
            f"{world!r} ranks. Load it as it was saved, or start a new epoch"
        )


def check_fit(state: Mapping[str, Any], *, data: str, order: str | None, seed: int) -> None:
    """Refuse a state that was saved on other data or another order.

    Args:
        state: The saved state.
        data: Digest of the data set now.
        order: Digest of the state's epoch as it would be ordered now; None skips the check.
        seed: Seed now.

    Raises:
        UsageError: Something differs; the message says what.
    """
    _check_shape(state)
    if state["data"] != data:
        raise UsageError(
            "the state was saved on another data set (file names, sizes or record counts differ: "
            f"digest {state['data']}, now {data}). Open the same files, or start a new epoch"
        )
    if state["seed"] != seed:
        raise UsageError(
            f"the state was saved with seed {state['seed']}, this dataset has seed {seed}"
        )
    if order is not None and state["order"] != order:
        raise UsageError(
            "the state was saved with another shuffle (options or versions differ). "
            "Use the same shuffle and window, or start a new epoch"
        )


def check_extent(state: Mapping[str, Any], total: int) -> None:
    """Refuse a state that counts more records as consumed than the epoch has.

    Args:
        state: The saved state.
        total: Records in the state's epoch, over all ranks.

    Raises:
        UsageError: The longest share of the epoch is shorter than what one rank consumed.
    """
    consumed = state["consumed"]
    of_ranks = consumed if isinstance(consumed, list) else [consumed]
    done: list[Done] = []
    for world, counts in [*state["done"], (state["world"], of_ranks)]:
        left = sum(high - low for low, high in remaining(total, done))
        most = max(counts)
        if most > -(-left // world):
            raise UsageError(
                f"the state is damaged: {most} records consumed by one rank of {world}, where "
                f"{left} are left to share in epoch {state['epoch']}. Load it as it was saved, or "
                "start a new epoch"
            )
        done.append(Done(world, tuple(counts)))


def merge_states(states: Sequence[Mapping[str, Any]]) -> StateDict:
    """Join the states of all ranks, for ranks that did not run in step.

    Args:
        states: One state a rank, in any order.

    Returns:
        A state that every rank can load, also on another number of ranks.

    Raises:
        UsageError: The states are not those of all ranks of one run at one epoch.
    """
    states = several(states, "states", "states, one a rank")
    if not states:
        raise UsageError("no states to merge")
    for state in states:
        _check_shape(state)
    _check_epochs(states)
    common = {key: states[0][key] for key in ("data", "order", "seed", "world", "done")}
    for state in states:
        for key, value in common.items():
            if state[key] != value:
                raise UsageError(f"the states differ in {key!r}: {value} and {state[key]}")
    ranks = sorted(int(state["rank"]) for state in states)
    if ranks != list(range(int(common["world"]))):
        raise UsageError(f"a state of each rank is needed, 0 to {common['world'] - 1}; got {ranks}")
    by_rank = sorted(states, key=lambda state: int(state["rank"]))
    return {**states[0], "rank": 0, "consumed": [int(state["consumed"]) for state in by_rank]}


def _check_epochs(states: Sequence[Mapping[str, Any]]) -> None:
    epochs = sorted({int(state["epoch"]) for state in states})
    if len(epochs) > 1:
        ahead = sorted(int(state["rank"]) for state in states if state["epoch"] > epochs[0])
        raise UsageError(
            f"ranks {ahead} have ended epoch {epochs[0]}, the others have not. Save one batch "
            "earlier, or when every rank has ended the epoch"
        )
