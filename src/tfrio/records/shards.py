"""The one lister: files, folders, globs and shard prefixes to files in natural order."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfrio.storage import Source
    from tfrio.types import PathsLike


def expand(paths: PathsLike) -> list[str]:
    """List files (thin)."""
    import glob

    if isinstance(paths, (str, os.PathLike)):
        p = os.fspath(paths)
        if os.path.isdir(p):
            return sorted(os.path.join(p, n) for n in os.listdir(p))
        if any(c in p for c in "*?["):
            return sorted(glob.glob(p))
        return [p]
    return [f for p in paths for f in expand(p)]


def each_source(paths: PathsLike | Source) -> Iterator[Source]:
    """Yield files of paths, or the file object itself."""
    if hasattr(paths, "read"):
        yield paths  # type: ignore[misc]
        return
    yield from expand(paths)  # type: ignore[arg-type]
