"""Mixtures of datasets: exact weights over workers, resumed over epochs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from torch.utils.data import DataLoader

from tests.datasets.conftest import ids, write_numbered
from tfrio.datasets.arrays import ArrayDataset
from tfrio.datasets.mixing import mix
from tfrio.errors import SchemaError, UsageError
from tfrio.torch import TFRecordDataset

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


@pytest.fixture(scope="module")
def globs(tmp_path_factory):
    """Return a large source of ids 0.., and a small one of ids 1000..."""
    folder = tmp_path_factory.mktemp("mixing")
    large = write_numbered(folder / "large", (200, 150))
    return large, write_numbered(folder / "small", (20, 11), first=1000)


def source(glob, kind=TFRecordDataset, **options):
    given = {"batch_size": 16, "shuffle": True, "seed": 3, "features": ["id"], "index": "memory"}
    return kind(glob, **{**given, **options})


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_weights_hold_with_any_number_of_workers(globs, workers):
    data = mix([source(globs[0]), source(globs[1])], [0.99, 0.01], length=20_000)
    seen = np.array(ids(DataLoader(data, batch_size=None, num_workers=workers)))
    assert seen.size == 20_000
    assert abs((seen >= 1000).mean() - 0.01) < 0.0005
    # Every stretch is mixed, not only the whole.
    assert all((part >= 1000).any() for part in np.split(seen, 8))


@pytest.mark.parametrize("shuffle", [True, False, "blocks", "buffer"])
def test_stop_first_and_all(globs, shuffle):
    sources = [source(glob, ArrayDataset, shuffle=shuffle) for glob in globs]
    first = ids(mix(sources, [0.5, 0.5]))
    assert len(first) == len(set(first)) == len(mix(sources, [0.5, 0.5])) * 16 - (-len(first) % 16)
    everything = ids(mix(sources, [0.5, 0.5], stop="all"))
    assert len(set(everything)) == 350 + 31


def test_sizes_are_the_default_weights(globs):
    seen = np.array(ids(mix([source(glob, ArrayDataset) for glob in globs], length=4096)))
    assert abs((seen >= 1000).sum() - 4096 * 31 / 381) < 1.01


def test_ranks_share_a_mixture(globs):
    parts = []
    for rank in range(2):
        sources = [source(g, ArrayDataset, rank=rank, world_size=2) for g in globs]
        parts.append(ids(mix(sources, [0.9, 0.1])))
    assert len(parts[0]) == len(parts[1])
    assert not set(parts[0]) & set(parts[1])


@pytest.mark.parametrize("infinite", [False, True])
def test_resume_in_the_second_epoch_of_repeated_sources(globs, infinite):
    def mixture():
        sources = [source(globs[0]), source(globs[0]), source(globs[1])]
        return mix(sources, [1.0, 1.0, 0.3], length=300, infinite=infinite)

    reference = mixture()
    passes = 1 if infinite else 2
    whole = list(itertools.islice(itertools.chain(*[reference] * passes), 2 * 19))
    first = mixture().loader(num_workers=2)
    streams = iter(first) if infinite else itertools.chain(first, first)
    before = ids(itertools.islice(streams, 21))
    state = first.state_dict()
    assert (state["epoch"], state["consumed"]) == (1, 32)
    resumed = mixture()
    resumed.load_state_dict(state)
    rest = ids(itertools.islice(iter(resumed), 17))
    assert before + rest == ids(whole)


def test_parts_can_be_mixed(globs):
    large, small = (source(glob, ArrayDataset) for glob in globs)
    train, held = large.split([0.5, 0.5])
    mixed = mix([train, small], [0.5, 0.5], stop="all")
    assert set(ids(mixed)) == set(ids(train)) | set(ids(small))
    assert not set(ids(mixed)) & set(ids(held))


def test_misuse_is_refused(globs):
    large, small = (source(glob, ArrayDataset) for glob in globs)
    with pytest.raises(UsageError, match="at least one"):
        mix([])
    with pytest.raises(UsageError, match="1 weights for 2"):
        mix([large, small], [1.0])
    with pytest.raises(UsageError, match="above 0"):
        mix([large, small], [1.0, 0.0])
    with pytest.raises(SchemaError, match="source 1 reads other features"):
        mix([large, source(globs[1], ArrayDataset, features=["x"])])
    with pytest.raises(UsageError, match="mixture itself"):
        mix([large, mix([large, small])])
    with pytest.raises(UsageError, match="shard_by"):
        mix([large, source(globs[1], ArrayDataset, shard_by="files", rank=0, world_size=1)])
