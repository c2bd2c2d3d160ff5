"""Every record exactly once, over everything that may change: a sample of the combinations."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from tests.datasets.conftest import TOTAL, ids
from tfrio.datasets.plan import Done, plan
from tfrio.torch import TFRecordDataset, merge_states

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

SHUFFLES = [False, True, "full", "blocks", "buffer"]
PLANNED = ["none", "full", "blocks", "buffer"]


# --- the plan: any runs of any worlds after one another ---


@settings(max_examples=150, deadline=None)
@given(
    counts=st.lists(st.integers(0, 12), max_size=5),
    shuffle=st.sampled_from(PLANNED),
    uneven=st.sampled_from(["keep", "drop", "pad"]),
    batch=st.integers(1, 5),
    group=st.integers(1, 3),
    runs=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), max_size=3),
    last=st.tuples(st.integers(1, 4), st.integers(1, 4)),
)
def test_interrupted_runs_on_any_worlds(counts, shuffle, uneven, batch, group, runs, last):
    common = {"counts": counts, "seed": 5, "epoch": 2, "shuffle": shuffle, "window": 4}
    common.update(uneven=uneven, batch=batch)
    seen, repeated = Counter(), Counter()
    done = []

    def count(part, batches):
        picks = part.picks(0, batches)
        pairs = list(zip(picks.file.tolist(), picks.record.tolist(), strict=True))
        seen.update(itertools.compress(pairs, picks.real))
        repeated.update(itertools.compress(pairs, ~picks.real))
        return len(pairs)

    for world, batches in runs:
        parts = [plan(**common, rank=r, world=world, done=done) for r in range(world)]
        taken = [count(part, min(batches, len(part))) for part in parts]
        done = [*done, Done(world, tuple(taken))]
    world, workers = last
    left = sum(counts) - seen.total()
    for rank, worker in itertools.product(range(world), range(workers)):
        common.update(rank=rank, world=world, worker=worker, workers=workers, group=group)
        part = plan(**common, done=done)
        assert count(part, len(part)) == part.records
    assert max(seen.values(), default=0) <= 1
    everything = sum(counts)
    dropped = left % world if uneven == "drop" else 0
    assert seen.total() == everything - dropped
    assert bool(repeated) <= (uneven == "pad")


# --- real processes ---


def sample(number):
    """Return one combination; any two numbers give unlike ones."""
    chance = random.Random(number)
    workers = [0, 1, 2, 5][number % 4]
    uneven = ["keep", "drop", "pad"][number % 3]
    return {
        "form": ["plain", "gzip", "blocked"][number // 3 % 3],
        "workers": workers,
        # A new interpreter for each worker takes seconds: few of them.
        "context": chance.choice(["spawn", "forkserver"]) if number in (1, 6, 9) else "fork",
        "persistent": chance.random() < 0.5,
        "batches": ["loader", "inside", "outside"][number % 5 % 3],
        "world": chance.choice([1, 2, 3]),
        "batch": chance.choice([1, 4, 7, 40]),
        "options": {
            "shuffle": SHUFFLES[number % 5],
            "uneven": uneven,
            "window": chance.choice([5, 16, 200]),
            "drop_last": False,
        },
    }


def passes(case, files, rank):
    """Yield the batches of each of two epochs, of one rank, and what len() said of them."""
    place = {"rank": rank, "world_size": case["world"], "seed": 3, "index": "memory"}
    options = {**case["options"], **place, "features": ["id"]}
    workers = {"num_workers": case["workers"]}
    if case["workers"]:
        workers["multiprocessing_context"] = case["context"]
        workers["persistent_workers"] = case["persistent"]
    if case["batches"] == "outside":
        data = TFRecordDataset(files, batch_size=None, **options)
        made = DataLoader(data, batch_size=case["batch"], **workers)
    else:
        data = TFRecordDataset(files, batch_size=case["batch"], **options)
        inside = case["batches"] == "inside"
        made = DataLoader(data, batch_size=None, **workers) if inside else data.loader(**workers)
    for epoch in range(2):
        data.set_epoch(epoch)
        yield list(made), len(made)


def real_ids(batches):
    """Return the ids that are no padding."""
    found = []
    for batch in batches:
        chosen = ~np.asarray(batch["padding"]) if "padding" in batch else slice(None)
        found += np.asarray(batch["id"]).ravel()[chosen].tolist()
    return found


@pytest.mark.parametrize("number", range(16))
def test_every_record_once(numbered, number):
    case = sample(number)
    of_ranks = [list(passes(case, numbered[case["form"]], rank)) for rank in range(case["world"])]
    for of_epoch in zip(*of_ranks, strict=True):
        seen = Counter(itertools.chain(*(real_ids(batches) for batches, _ in of_epoch)))
        assert all(len(batches) == length for batches, length in of_epoch), case
        assert max(seen.values()) == 1, case
        lost = TOTAL % case["world"] if case["options"]["uneven"] == "drop" else 0
        assert seen.total() == TOTAL - lost, case
        if case["options"]["uneven"] != "keep":
            assert len({len(ids(batches)) for batches, _ in of_epoch}) == 1, case


@pytest.mark.parametrize("number", range(12))
def test_resumed_with_other_workers_and_ranks(numbered, number):
    chance = random.Random(number)
    form = ["plain", "gzip", "blocked"][number % 3]
    worlds = chance.choice([1, 2, 3]), chance.choice([1, 2, 3])
    workers = chance.sample([0, 1, 2, 3], 2)
    common = {"shuffle": SHUFFLES[number % 5], "window": 16, "seed": 3, "uneven": "keep"}
    common.update(batch_size=4, features=["id"], index="memory")

    def loaders(world, count):
        for rank in range(world):
            data = TFRecordDataset(numbered[form], rank=rank, world_size=world, **common)
            yield data.loader(num_workers=count)

    whole = -(-TOTAL // worlds[0]) // 4  # batches that every rank has, the last ones not full
    taken = [0, 1, whole // 2, whole - 1][number % 4]
    seen, states = [], []
    for made in loaders(worlds[0], workers[0]):
        stream = iter(made)
        seen += ids(itertools.islice(stream, taken))
        states.append(made.state_dict())
        del stream
    state = json.loads(json.dumps(merge_states(states)))
    assert len(seen) == 4 * taken * worlds[0]
    for made in loaders(worlds[1], workers[1]):
        made.load_state_dict(state)
        seen += ids(made)
    assert Counter(seen) == Counter(range(TOTAL))
