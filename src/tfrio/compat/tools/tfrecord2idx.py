"""The command ``tfrecord2idx``: write text indexes of record files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tfrio.compat._index import create_index, create_indices

__all__ = ["create_index", "create_indices", "main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tfrecord2idx",
        description="Write a text index of record files: one line `offset length` per record.",
    )
    parser.add_argument(
        "source", type=Path, help="a record file, or a folder of files named *.tfrecord"
    )
    parser.add_argument(
        "index",
        type=Path,
        nargs="?",
        help="where the index goes; for a folder, the folder of the indexes. By default beside "
        "the data, ending .tfindex",
    )
    return parser


def main() -> None:
    """Run the command on ``sys.argv``; exit 1 on a data problem, 2 on wrong use."""
    options = _parser().parse_args()
    source, index = options.source, options.index
    try:
        if source.is_dir():
            create_indices(source, index)
        else:
            create_index(source, index or source.with_suffix(".tfindex"))
    except (RuntimeError, OSError, ValueError) as error:
        sys.exit(f"tfrecord2idx: {error}")


if __name__ == "__main__":
    main()
