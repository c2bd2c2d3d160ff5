"""What the workers of somebody's own DataLoader leave out, told to the process of the dataset.

A worker of such a loader sends batches and errors, nothing else. So it writes the damage that it
leaves out to a small file, which both sides know by its name. There is no file without damage.
"""

from __future__ import annotations

import json
import os
import tempfile
import uuid
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from tfrio.records.damage import Damage

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["WorkerLog"]


class WorkerLog:
    """A log that worker processes append to and the process that made it reads.

    It goes with the dataset into forked and new processes, and is removed with the log in the
    process that made it.
    """

    def __init__(self) -> None:
        self._path = Path(tempfile.gettempdir()) / f"tfrio-left-out-{uuid.uuid4().hex}"
        self._read = 0
        weakref.finalize(self, _remove, self._path, os.getpid())

    def append(self, damages: Sequence[Damage]) -> None:
        """Write damage, in a worker; where nothing can be written the worker's warning must do.

        Args:
            damages: What was left out since the last time.
        """
        if not damages:
            return
        lines = "".join(f"{json.dumps(damage.to_dict())}\n" for damage in damages)
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError:
            return
        with os.fdopen(handle, "wb", buffering=0) as file:
            file.write(lines.encode())  # one write: lines of several workers stay whole

    def news(self) -> list[Damage]:
        """Return what workers wrote since the last time."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                new = file.read()
        except FileNotFoundError:
            return []
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        return [Damage(**json.loads(line)) for line in whole.splitlines()]


def _remove(path: Path, owner: int) -> None:
    """Remove a log, unless this is another process than its owner."""
    if os.getpid() == owner:
        path.unlink(missing_ok=True)
