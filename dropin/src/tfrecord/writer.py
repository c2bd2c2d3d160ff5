"""The writer, served by ``tfrio.compat.writer``."""

from tfrio.compat.writer import TFRecordWriter

__all__ = ["TFRecordWriter"]
