"""Large records and long files in little memory, measured in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.memory import grown

pytest.importorskip("resource")


@pytest.mark.parametrize("name", ["big", "big.gz"])
def test_one_example_of_300_mb_is_written_and_read_in_three_times_its_size(
    name: str, tmp_path: Path
) -> None:
    size = 300_000_000
    code = f"""
from tfrio.examples.writer import Writer
from tfrio.examples.decode import read
values = np.arange({size // 4}, dtype=np.float32)
with Writer(sys.argv[1]) as writer:
    writer.write({{"x": values}})
check = float(values[-1])
del values
(row,) = read(sys.argv[1])
assert row["x"].shape == ({size // 4},) and row["x"][-1] == check
print(peak() - base)
"""
    assert grown(code, tmp_path / name) < 3 * size


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_a_pass_over_a_long_file_stays_small(name: str, tmp_path: Path) -> None:
    code = """
from tfrio.examples.writer import Writer
from tfrio.examples.decode import read, read_batches
block = {"x": np.zeros((64, 50_000), np.float32)}
with Writer(sys.argv[1]) as writer:
    for _ in range(30):
        writer.write_batch(block)
assert sum(1 for _ in read(sys.argv[1])) == 1920
assert sum(batch.rows for batch in read_batches(sys.argv[1], 32)) == 1920
print(peak() - base)
"""
    assert grown(code, tmp_path / name) < 100_000_000


def test_memory_does_not_grow_with_the_passes(tmp_path: Path) -> None:
    code = """
from tfrio.examples.writer import Writer
from tfrio.examples.decode import read
with Writer(sys.argv[1]) as writer:
    for i in range(400):
        writer.write({"x": np.zeros(10_000, np.float32), "b": b"x" * (i % 50_000)})
for epoch in range(12):
    assert sum(1 for _ in read(sys.argv[1])) == 400
    if epoch == 2:
        base = peak()
print(peak() - base)
"""
    assert grown(code, tmp_path / "a") < 10_000_000


def test_a_pass_over_2_gb_of_gzip_takes_as_little_as_one_window(tmp_path: Path) -> None:
    code = """
import gzip
from tfrio.examples.encode import encode_example
from tfrio.records.reader import read_records
from tfrio import _core
frame = bytes(_core.frame([encode_example({"x": np.random.default_rng(0).bytes(1000) * 1000})]))
member = gzip.compress(frame, 1)
with open(sys.argv[1], "wb") as file:
    for _ in range(2000):
        file.write(member)
base = peak()
assert sum(len(payload) > 1_000_000 for payload in read_records(sys.argv[1])) == 2000
print(peak() - base)
"""
    assert grown(code, tmp_path / "a.gz") < 60_000_000


def test_many_short_values_beside_a_long_one_cost_their_own_bytes(tmp_path: Path) -> None:
    code = """
import tracemalloc
from tfrio.examples.writer import Writer
from tfrio.examples.decode import read, read_batches
values = [b"0123456789"] * 1000 + [b"x" * 200_000]
with Writer(sys.argv[1]) as writer:
    writer.write({"x": values})
(row,) = read(sys.argv[1])
tracemalloc.start()
(row,) = read(sys.argv[1])
(batch,) = read_batches(sys.argv[1], 1)
assert row["x"] == values and batch["x"][0] == values
print(tracemalloc.get_traced_memory()[1])
"""
    assert grown(code, tmp_path / "a") < 2_000_000
