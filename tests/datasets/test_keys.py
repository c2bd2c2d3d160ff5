"""Keys by which records are split, where some records lack them or are damaged."""

from __future__ import annotations

import pytest

from tests.datasets.conftest import flipped, ids
from tfrio import Writer
from tfrio.datasets.arrays import ArrayDataset


def test_records_without_the_key_are_a_group_of_their_own(tmp_path):
    path = tmp_path / "some.tfrecord"
    with Writer(path) as writer:
        for number in range(40):
            writer.write({"id": number, **({"site": number % 4} if number % 2 else {})})
    data = ArrayDataset(path, batch_size=4, index="memory")
    apart = False
    for seed in range(8):
        seen = [set(ids(part)) for part in data.split([0.5, 0.5], key="site", seed=seed)]
        assert seen[0] | seen[1] == set(range(40))
        for group in (range(0, 40, 2), range(1, 40, 4), range(3, 40, 4)):
            assert sum(bool(part & set(group)) for part in seen) == 1
        apart |= (0 in seen[0]) != (1 in seen[0])
    assert apart


@pytest.mark.parametrize("bad", [(0, 5, 50), (99,)])
def test_damaged_records_move_no_other(tmp_path, bad):
    data = ArrayDataset(flipped(tmp_path, bad), batch_size=4, errors="skip", index="memory")
    parts = data.split([0.5, 0.5], key="list")
    assert data.report.skipped_records == 0
    with pytest.warns(UserWarning, match="left out"):
        seen = [ids(part) for part in parts]
    assert sorted(seen[0] + seen[1]) == [n for n in range(100) if n not in bad]
    assert not {n % 4 for n in seen[0]} & {n % 4 for n in seen[1]}
