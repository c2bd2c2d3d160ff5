"""PyTorch datasets, served by ``tfrio.compat.torch``."""

from tfrecord.torch import dataset
from tfrecord.torch.dataset import MultiTFRecordDataset, TFRecordDataset

__all__ = ["MultiTFRecordDataset", "TFRecordDataset", "dataset"]
