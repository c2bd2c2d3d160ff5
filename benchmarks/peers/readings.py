"""What participants that parse batches by a specification read, and how many records at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.worker import Job

    Read = Callable[[Job], int]


def readings(
    batches: Callable[..., Read], scalars: Any, patches: Any, images: Any
) -> dict[str, Read]:
    """Return the tasks of reading Examples.

    Args:
        batches: Makes a task of a specification, records a batch, and the compression.
        scalars: The specification of eight floats a record.
        patches: That of patches.
        images: That of encoded images with labels.
    """
    return {
        "read scalars": batches(scalars, 8192),
        "read shuffled": batches(scalars, 8192),
        "read scalars gzip": batches(scalars, 8192, "GZIP"),
        "read patches": batches(patches, 8),
        "read patches gzip": batches(patches, 8, "GZIP"),
        "read whole numbers gzip": batches(patches, 8, "GZIP"),
        "read bytes": batches(images, 64),
    }
