"""The account of an export."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfrio.geo.grid import Coverage
    from tfrio.geo.manifest import BandStatistics, Manifest

__all__ = ["ExportReport"]


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote.

    Args:
        shards: Paths of the shards, in order.
        mixer: Path of the mixer; None where none can describe the patches.
        manifest: Path of the manifest.
        grid: The grid, as one line.
        content: The manifest itself.
        coverage: Account of pixels of the grid; None for patches at points.
        left_out: Patches of the grid that were not written.
        notes: What the user should know, one sentence each.
        resumed: Shards that an earlier, interrupted run had finished.
        validation: Account of the validation part, where patches were divided.
    """

    shards: tuple[str, ...]
    mixer: str | None
    manifest: str
    grid: str
    content: Manifest
    coverage: Coverage | None
    left_out: int
    notes: tuple[str, ...]
    resumed: int = 0
    validation: ExportReport | None = None

    @property
    def patches(self) -> int:
        """Return the number of patches written."""
        return self.content.account.patches

    @property
    def records(self) -> int:
        """Return the number of records written."""
        return sum(row.records for row in self.content.shards)

    @property
    def size(self) -> int:
        """Return the size of all shards in bytes."""
        return sum(row.size for row in self.content.shards)

    @property
    def dropped(self) -> int:
        """Return the number of pixels in no patch."""
        return self.content.account.dropped

    @property
    def masked(self) -> int:
        """Return the number of written pixels masked in at least one band."""
        return self.content.account.masked

    @property
    def statistics(self) -> dict[str, BandStatistics]:
        """Return statistics by band name; empty where none were asked for."""
        return self.content.statistics

    def as_dict(self) -> dict[str, Any]:
        """Return the account as plain values for JSON."""
        account = self.content.account
        return {
            "shards": list(self.shards),
            "mixer": self.mixer,
            "manifest": self.manifest,
            "grid": self.grid,
            "patches": account.patches,
            "records": self.records,
            "bytes": self.size,
            "pixels": account.pixels,
            "covered": account.covered,
            "dropped": account.dropped,
            "masked": account.masked,
            "left_out": self.left_out,
            "resumed": self.resumed,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        """Return the account as a few lines."""
        lines = [
            f"grid: {self.grid}",
            f"{self.patches:,} patches in {len(self.shards)} shard"
            f"{'s' * (len(self.shards) != 1)}, {self.size:,} bytes",
        ]
        if self.coverage is not None:
            lines.append(str(self.coverage))
        if self.left_out:
            lines.append(f"{self.left_out:,} patches left out; the manifest lists those written")
        lines.append(f"{self.masked:,} pixels masked")
        if self.mixer is None:
            lines.append("no mixer: it could not describe these patches; use the manifest")
        if self.resumed:
            lines.append(f"{self.resumed} shards were finished by an earlier run")
        if self.validation is not None:
            other = self.validation
            lines.append(f"validation: {other.patches:,} patches in {other.manifest}")
        return "\n".join([*lines, *self.notes])
