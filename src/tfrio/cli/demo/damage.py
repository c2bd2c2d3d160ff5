"""Step 4 of the demo: damage copies of the export and see that each damage is found and named."""

from __future__ import annotations

import shutil
from pathlib import Path

from tfrio.records.verify import verify

__all__ = ["delete_shard", "findings", "flip_bit"]


def _copy(export: list[Path], folder: Path) -> list[Path]:
    """Copy an export into a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return [Path(shutil.copy2(path, folder / path.name)) for path in export]


def flip_bit(export: list[Path], folder: Path, *, shard: int, byte: int, bit: int) -> Path:
    """Copy an export and flip one bit of one shard.

    Args:
        export: Every file of the export, shards first.
        folder: Where the copy goes; emptied first.
        shard: Which file to damage.
        byte: Which byte of the file.
        bit: Which bit of the byte, 0 the lowest.

    Returns:
        The damaged file.
    """
    damaged = _copy(export, folder)[shard]
    content = bytearray(damaged.read_bytes())
    content[byte] ^= 1 << bit
    damaged.write_bytes(content)
    return damaged


def delete_shard(export: list[Path], folder: Path, *, shard: int) -> Path:
    """Copy an export and delete one shard.

    Args:
        export: Every file of the export, shards first.
        folder: Where the copy goes; emptied first.
        shard: Which file to delete.

    Returns:
        The deleted file.
    """
    deleted = _copy(export, folder)[shard]
    deleted.unlink()
    return deleted


def findings(folder: Path) -> list[str]:
    """Verify a folder.

    Args:
        folder: What to verify.

    Returns:
        One line a finding; none where all is well.
    """
    return [str(finding) for finding in verify(folder).findings]
