"""Shards and rotations: every record once, the same ones with and without an index."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compat.bytes_of import numbers, write_gzip, write_index, write_numbers
from tfrio.compat import tfrecord_loader
from tfrio.compat._index import read_offsets
from tfrio.compat._shards import checked_shard, share


@given(st.integers(0, 200), st.integers(1, 30))
def test_shares_are_disjoint_contiguous_and_complete(total, count):
    bounds = [share(total, (which, count)) for which in range(count)]
    assert [first for first, _ in bounds] + [total] == [0] + [last for _, last in bounds]
    assert max(last - first for first, last in bounds) <= -(-total // count)


@pytest.mark.parametrize(
    ("records", "count", "expected"),
    [
        (5, 3, [[0], [1, 2], [3, 4]]),
        (5, 8, [[], [0], [], [1], [2], [], [3], [4]]),
        (2, 3, [[], [0], [1]]),
    ],
)
def test_shards_with_and_without_an_index_and_in_gzip(tmp_path, records, count, expected):
    path, index = write_numbers(tmp_path / "a", records), write_index(tmp_path / "i", records)
    packed = write_gzip(tmp_path / "b", path)
    for source, listed in ((path, index), (path, None), (packed, index), (packed, None)):
        shards = [
            numbers(tfrecord_loader(source, listed, shard=(which, count))) for which in range(count)
        ]
        assert shards == expected


def test_a_changed_file_is_walked_over_again(tmp_path):
    path = write_numbers(tmp_path / "a", 4)
    assert numbers(tfrecord_loader(path, shard=(0, 2))) == [0, 1]
    write_numbers(tmp_path / "a", 6)
    assert numbers(tfrecord_loader(path, shard=(0, 2))) == [0, 1, 2]


def test_the_last_shard_reads_what_a_stale_index_misses(tmp_path):
    path, index = write_numbers(tmp_path / "a", 7), write_index(tmp_path / "i", 5)
    shards = [numbers(tfrecord_loader(path, index, shard=(which, 2))) for which in range(2)]
    assert shards == [[0, 1], [2, 3, 4, 5, 6]]


@pytest.mark.parametrize(("seed", "first"), [(7, 4), (0, 4), (3, 2)])
def test_a_pass_with_an_index_begins_where_numpys_seed_says(tmp_path, seed, first):
    path, index = write_numbers(tmp_path / "a", 5), write_index(tmp_path / "i", 5)
    order = [(first + k) % 5 for k in range(5)]
    np.random.seed(seed)  # noqa: NPY002
    assert numbers(tfrecord_loader(path, index)) == order
    state = np.random.RandomState(seed)
    assert numbers(tfrecord_loader(path, index, generator=state)) == order


def test_reading_shards_leaves_numpys_generator_alone(tmp_path):
    path, index = write_numbers(tmp_path / "a", 5), write_index(tmp_path / "i", 5)
    np.random.seed(5)  # noqa: NPY002
    assert numbers(tfrecord_loader(path)) == [0, 1, 2, 3, 4]
    assert numbers(tfrecord_loader(path, index, shard=[0, 1])) == [0, 1, 2, 3, 4]
    assert np.random.rand() == np.random.RandomState(5).rand()  # noqa: NPY002


@pytest.mark.parametrize("shard", [(0.0, 2), ("0", 2), (None, 2)])
def test_shards_are_whole_numbers(shard):
    with pytest.raises(TypeError):
        checked_shard(shard)


def test_what_passes_for_an_index(tmp_path):
    path = tmp_path / "i"
    path.write_bytes(b"# offsets\r\n\r\n0\t30\t9\r\n30\t30\t9")
    for source in (path, str(path), ["0 30", "30 30"]):
        offsets, gaps = read_offsets(source)
        assert (offsets.tolist(), gaps) == ([0, 30], False)
    path.write_text("0\n30\n")
    assert read_offsets(path)[0].tolist() == [0, 30]


def test_what_does_not_pass_for_an_index(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"/nonexistent.idx not found"):
        read_offsets("/nonexistent.idx")
    (tmp_path / "i").write_text("0 30\nx 30\n")
    with pytest.raises(ValueError, match="'x'"):
        read_offsets(tmp_path / "i")


def test_an_index_behind_an_url():
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://compat/i", "wb") as file:
        file.write(b"0 30\n30 30\n")
    assert read_offsets("memory://compat/i")[0].tolist() == [0, 30]
