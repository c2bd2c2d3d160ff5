"""PyTorch datasets (needs torch)."""

from tfrio.compat.torch import dataset
from tfrio.compat.torch.dataset import MultiTFRecordDataset, TFRecordDataset

__all__ = ["MultiTFRecordDataset", "TFRecordDataset", "dataset"]
