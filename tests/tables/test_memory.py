"""Tables of large records are converted in parts, however well their file is compressed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.memory import grown
from tfrio.examples.schema import Feature, Schema
from tfrio.tables.arrow import rows_per_batch
from tfrio.tables.sources import open_parquet

pytest.importorskip("resource")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

WRITE = """
import pyarrow.parquet
import tfrio
from tfrio.tables.transcode import convert
random = np.random.default_rng(0)
with tfrio.Writer(sys.argv[1]) as writer:
    for k in range(9000):
        writer.write({"image": random.bytes(500) * 200, "label": k})
base = peak()
"""


def test_records_of_100_kb_take_no_more_memory_than_a_batch(tmp_path: Path) -> None:
    code = (
        WRITE
        + """
report = convert(sys.argv[1], sys.argv[2])
assert report.rows == 9000
print(peak() - base)
"""
    )
    assert grown(code, tmp_path / "a.tfrecord.gz", tmp_path / "a.parquet") < 800_000_000


def test_large_row_groups_of_others_are_read_in_parts(tmp_path: Path) -> None:
    images = [bytes([k % 251]) * 100_000 for k in range(1500)]
    table = pa.table({"image": images, "label": range(1500)})
    path = str(tmp_path / "a.parquet")
    parquet.write_table(table, path, use_dictionary=False)
    assert parquet.read_metadata(path).num_row_groups == 1
    with open_parquet(path) as (_, batches, _):
        found = [(batch.num_rows, batch.nbytes) for batch in batches]
    assert sum(rows for rows, _ in found) == 1500
    assert max(size for _, size in found) < 70 << 20


def test_numbers_tell_their_size_by_their_lengths() -> None:
    words = Schema(
        {"name": Feature("bytes", lengths=(1, 1)), "n": Feature("int64", lengths=(1, 1))}
    )
    assert rows_per_batch(words, 40) == 65_536
    assert rows_per_batch(words, 100_000) == 670
    assert rows_per_batch(words, 1 << 40) == 1
    patches = Schema({"b": Feature("float", lengths=(65_536, 65_536))})
    assert rows_per_batch(patches, 1 << 40) == 256
