"""Datasets for PyTorch: exact over workers and ranks, shuffled, resumable.

Needs the extra ``torch``: ``pip install 'tfrio[torch]'``.
"""

from __future__ import annotations

from tfrio.errors import require

require("torch", extra="torch")

from tfrio.datasets.loader import Loader  # noqa: E402
from tfrio.datasets.state import merge_states  # noqa: E402
from tfrio.datasets.tensors import TensorBatch  # noqa: E402
from tfrio.datasets.torch_data import TFRecordDataset, TFRecordMapDataset  # noqa: E402

__all__ = ["Loader", "TFRecordDataset", "TFRecordMapDataset", "TensorBatch", "merge_states"]
