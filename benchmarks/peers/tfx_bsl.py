"""tfx-bsl: its native coders between serialized messages and Arrow; TensorFlow reads and frames."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import pyarrow as pa
import tensorflow as tf  # type: ignore[import-not-found]
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2  # type: ignore[import-not-found]
from tfx_bsl.coders.example_coder import (  # type: ignore[import-not-found]
    ExamplesToRecordBatchDecoder,
    RecordBatchToExamplesEncoder,
)
from tfx_bsl.coders.sequence_example_coder import (  # type: ignore[import-not-found]
    SequenceExamplesToRecordBatchDecoder,
)

from benchmarks.peers.readings import readings

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.worker import Job

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)

FEATURE = 'feature {{ name: "{}" type: {} }}'
SCALARS = " ".join(FEATURE.format(f"f{k}", "FLOAT") for k in range(8))
PATCHES = FEATURE.format("patch", "FLOAT")
BYTES = " ".join(
    FEATURE.format(name, kind)
    for name, kind in (("image", "BYTES"), ("label", "INT"), ("id", "BYTES"))
)
STEPS = " ".join(FEATURE.format(n, kind) for n, kind in (("token", "INT"), ("state", "FLOAT")))
SEQUENCES = (
    f"{FEATURE.format('label', 'INT')} "
    f'feature {{ name: "steps" type: STRUCT struct_domain {{ {STEPS} }} }}'
)


def decoder(schema: str) -> Any:
    made = text_format.Parse(schema, schema_pb2.Schema()).SerializeToString()
    if "STRUCT" in schema:
        return SequenceExamplesToRecordBatchDecoder("steps", made)
    return ExamplesToRecordBatchDecoder(made)


def batches(schema: str, size: int, compression: str = "") -> Callable[[Job], int]:
    def run(job: Job) -> int:
        decode = decoder(schema).DecodeBatch
        data = tf.data.TFRecordDataset(job.path, compression, buffer_size=1 << 20).batch(size)
        return sum(decode(batch.tolist()).num_rows for batch in data.as_numpy_iterator())

    return run


@cache
def table(count: int) -> Any:
    values = np.random.default_rng(1).random((count, 8), dtype=np.float32)
    offsets = np.arange(count + 1, dtype=np.int64)
    columns = [pa.LargeListArray.from_arrays(offsets, values[:, k].copy()) for k in range(8)]
    return pa.RecordBatch.from_arrays(columns, [f"f{k}" for k in range(8)])


def write_scalars(job: Job) -> int:
    rows = table(min(job.limit, 100_000))
    with tf.io.TFRecordWriter(job.out) as out:
        for payload in RecordBatchToExamplesEncoder().encode(rows):
            out.write(payload)
    return int(rows.num_rows)


TASKS = {
    **readings(batches, SCALARS, PATCHES, BYTES),
    "read sequences": batches(SEQUENCES, 1024),
    "write scalars": write_scalars,
}
