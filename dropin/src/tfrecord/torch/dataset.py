"""PyTorch datasets, served by ``tfrio.compat.torch.dataset``."""

from tfrio.compat.torch.dataset import MultiTFRecordDataset, TFRecordDataset

__all__ = ["MultiTFRecordDataset", "TFRecordDataset"]
