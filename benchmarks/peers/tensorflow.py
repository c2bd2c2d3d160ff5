"""TensorFlow's side: its best for each task, batch then parse_example, on one thread."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf  # type: ignore[import-not-found]

from benchmarks.peers.readings import readings

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.worker import Job

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)

ONE = tf.io.FixedLenFeature
SCALARS = {f"f{k}": ONE((), tf.float32) for k in range(8)}
PATCHES = {"patch": ONE((256, 256, 8), tf.float32)}
BYTES = {"image": ONE((), tf.string), "label": ONE((), tf.int64), "id": ONE((), tf.string)}


def batches(spec: Any, size: int, compression: str = "") -> Callable[[Job], int]:
    def run(job: Job) -> int:
        data = tf.data.TFRecordDataset(job.path, compression, buffer_size=1 << 20)
        data = data.batch(size).map(lambda payloads: tf.io.parse_example(payloads, spec))
        key = next(iter(spec))
        count = 0
        for batch in data:
            count += batch[key].shape[0]
        return count

    return run


def sequences(job: Job) -> int:
    def parse(payloads: Any) -> Any:
        return tf.io.parse_sequence_example(
            payloads,
            context_features={"label": ONE((), tf.int64)},
            sequence_features={
                "token": tf.io.RaggedFeature(tf.int64),
                "state": tf.io.FixedLenSequenceFeature((4,), tf.float32),
            },
        )

    data = tf.data.TFRecordDataset(job.path, buffer_size=1 << 20).batch(1024).map(parse)
    count = 0
    for context, _, _ in data:
        count += context["label"].shape[0]
    return count


def _feature(value: Any) -> Any:
    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    if isinstance(value, int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
    return tf.train.Feature(float_list=tf.train.FloatList(value=value))


def writer(rows: Callable[[int], Any], most: int, compression: str = "") -> Callable[[Job], int]:
    made: dict[int, Any] = {}

    def run(job: Job) -> int:
        count = min(job.limit, most)
        found = made.setdefault(count, rows(count))
        with tf.io.TFRecordWriter(job.out, tf.io.TFRecordOptions(compression)) as out:
            for row in found:
                features = tf.train.Features(feature={k: _feature(v) for k, v in row.items()})
                out.write(tf.train.Example(features=features).SerializeToString())
        return count

    return run


def scalar_rows(count: int) -> Any:
    values = np.random.default_rng(1).random((count, 8), dtype=np.float32)
    return [{f"f{k}": row[k : k + 1] for k in range(8)} for row in values]


def patch_rows(count: int) -> Any:
    patch = np.random.default_rng(2).integers(1000, 2000, 256 * 256 * 8) / np.float32(10_000)
    return [{"patch": patch.astype(np.float32)}] * count


def byte_rows(count: int) -> Any:
    image = np.random.default_rng(3).bytes(30_000)
    return [{"image": image, "label": 7, "id": b"sample-0000001"}] * count


TASKS = {
    **readings(batches, SCALARS, PATCHES, BYTES),
    "read sequences": sequences,
    "write scalars": writer(scalar_rows, 20_000),
    "write scalars gzip": writer(scalar_rows, 20_000, "GZIP"),
    "write patches": writer(patch_rows, 20),
    "write patches gzip": writer(patch_rows, 4, "GZIP"),
    "write bytes": writer(byte_rows, 4000),
}
