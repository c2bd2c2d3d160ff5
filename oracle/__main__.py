"""Exchange files with TensorFlow and compare every value, both ways.

Run: make oracle. TensorFlow lives in an environment of its own under .bench/.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import tfrio
from benchmarks.peers import setup

ROWS = 4000
# File name -> options of our writer. The sizes make several gzip blocks.
OURS = {
    "plain.tfrecord": {},
    "blocked.tfrecord.gz": {},
    "small-blocks.tfrecord.gz": {"block_size": 1 << 14},
    "zlib.tfrecord": {"compression": "zlib"},
}


def make_rows(count: int) -> list[dict[str, object]]:
    """Return rows of every kind: fixed, ragged, empty and absent, extremes included."""
    rng = np.random.default_rng(20240229)
    rows: list[dict[str, object]] = []
    for number in range(count):
        row: dict[str, object] = {
            "id": np.array([number, -number, 2**63 - 1, -(2**63)], np.int64),
            "x": rng.normal(size=40).astype(np.float32),
            "ragged": np.arange(number % 5, dtype=np.int64),
            "blob": [rng.bytes(number % 300), b"\x00\xff\x00"],
        }
        if number % 3 == 0:
            del row["x"]
        rows.append(row)
    return rows


def plain(row: dict[str, object]) -> dict[str, object]:
    """Return a row as JSON can hold it: floats as their bits, bytes as hex."""
    out: dict[str, object] = {}
    for name, value in row.items():
        if isinstance(value, bytes):
            out[name] = ["bytes", [value.hex()]]
        elif isinstance(value, np.ndarray) and value.dtype == np.float32:
            out[name] = ["float", value.view(np.uint32).tolist()]
        elif isinstance(value, np.ndarray):
            out[name] = ["int64", value.tolist()]
        else:
            out[name] = ["bytes", [item.hex() for item in value]]  # type: ignore[attr-defined]
    return out


def write_ours(folder: Path, rows: list[dict[str, object]]) -> None:
    """Write the rows with every compression, and their values as JSON."""
    for name, options in OURS.items():
        with tfrio.Writer(folder / name, **options) as writer:  # type: ignore[arg-type]
            for row in rows:
                writer.write(row)
    (folder / "expected.json").write_text(json.dumps([plain(row) for row in rows]))


def compare_theirs(folder: Path, rows: list[dict[str, object]]) -> None:
    """Read what TensorFlow wrote, with tfrio, and compare each value."""
    expected = [plain(row) for row in rows]
    for path in sorted((folder / "theirs").iterdir()):
        got = [plain(row) for row in tfrio.read(path)]
        if got != expected:
            sys.exit(f"{path.name}: tfrio reads other values than TensorFlow wrote")
        print(f"tfrio reads TensorFlow's {path.name}: {len(got)} records, every value equal")


def main() -> None:
    """Run both directions; exit 1 at the first difference."""
    if not setup.install("tensorflow"):
        sys.exit("TensorFlow cannot be installed here")
    rows = make_rows(ROWS)
    script = Path(__file__).with_name("with_tensorflow.py")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_ours(folder, rows)
        command = [str(setup.python_of("tensorflow")), str(script), str(folder)]
        subprocess.run(command, check=True)
        compare_theirs(folder, rows)


if __name__ == "__main__":
    main()
