"""The half that runs beside TensorFlow: read tfrio's files, compare, write the same rows.

Run by `python -m oracle` with the interpreter that has TensorFlow; tfrio is not imported here.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf  # type: ignore[import-not-found]

COMPRESSION = {"plain": "", "blocked": "GZIP", "small-blocks": "GZIP", "zlib": "ZLIB"}


def plain(payload: bytes) -> dict[str, object]:
    """Parse an Example and return it in the form of expected.json."""
    out: dict[str, object] = {}
    for name, feature in tf.train.Example.FromString(payload).features.feature.items():
        kind = feature.WhichOneof("kind")
        if kind == "bytes_list":
            out[name] = ["bytes", [value.hex() for value in feature.bytes_list.value]]
        elif kind == "float_list":
            values = feature.float_list.value
            packed = struct.pack(f"<{len(values)}f", *values)
            out[name] = ["float", list(struct.unpack(f"<{len(values)}I", packed))]
        else:
            out[name] = ["int64", list(feature.int64_list.value)]
    return out


def read_ours(folder: Path, expected: list[dict[str, object]]) -> list[bytes]:
    """Compare each of tfrio's files with the expected values; return the payloads."""
    payloads: list[bytes] = []
    for path in sorted(folder.glob("*.tfrecord*")):
        kind = COMPRESSION[path.name.partition(".")[0]]
        dataset = tf.data.TFRecordDataset(str(path), compression_type=kind)
        payloads = [record.numpy() for record in dataset]
        if [plain(payload) for payload in payloads] != expected:
            sys.exit(f"{path.name}: TensorFlow reads other values than tfrio wrote")
        print(f"TensorFlow reads tfrio's {path.name}: {len(payloads)} records, every value equal")
    return payloads


def main() -> None:
    """Read the folder's files, then write the same payloads with every compression."""
    folder = Path(sys.argv[1])
    payloads = read_ours(folder, json.loads((folder / "expected.json").read_text()))
    (folder / "theirs").mkdir()
    for kind in ("", "GZIP", "ZLIB"):
        path = folder / "theirs" / f"tensorflow-{kind or 'plain'}.tfrecord"
        with tf.io.TFRecordWriter(str(path), options=kind or None) as writer:
            for payload in payloads:
                message = tf.train.Example.FromString(payload)
                writer.write(message.SerializeToString())


if __name__ == "__main__":
    main()
