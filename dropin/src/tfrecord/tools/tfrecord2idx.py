"""The command ``tfrecord2idx``, served by ``tfrio.compat.tools.tfrecord2idx``."""

from tfrio.compat.tools.tfrecord2idx import create_index, create_indices, main

__all__ = ["create_index", "create_indices", "main"]

if __name__ == "__main__":
    main()
