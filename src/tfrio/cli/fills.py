"""What commands on records say of the values that stand in for masked pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrio.errors import GeoError, many, warn_user

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tfrio.geo.fills import ExportFill

__all__ = ["agreed", "named", "shown_fills", "told"]


def shown_fills(paths: Iterable[str]) -> list[ExportFill]:
    """Read what marks masked pixels in files; a damaged manifest is a warning.

    Args:
        paths: Files.

    Returns:
        One entry for each export that they belong to and whose manifest lies beside them.
    """
    from tfrio.geo.fills import fills_beside

    try:
        return fills_beside(paths)
    except GeoError as error:
        warn_user(str(error))
        return []


def agreed(fills: Sequence[ExportFill]) -> dict[str, float]:
    """Return the fill by feature, without features in which exports differ."""
    from tfrio.geo.fills import alike

    return alike(pair for fill in fills for pair in fill.values.items())


def told(paths: Iterable[str]) -> tuple[dict[str, float], list[ExportFill]]:
    """Return the fill of each feature for an option that relies on it.

    Args:
        paths: Files.

    Returns:
        The fill by feature, and what tells it.

    Raises:
        click.UsageError: No manifest tells it, or several differ.
        GeoError: A manifest is damaged.
    """
    from tfrio.geo.fills import fills_beside

    fills = fills_beside(paths)
    values = agreed(fills)
    every = {name for fill in fills for name in fill.values}
    if not every:
        raise click.UsageError(
            "no manifest of an export lies beside these files, so nothing tells which value fills "
            "masked pixels; in Python say it yourself: tfrio.stats(paths, fill={'B4': 0})"
        )
    if every - set(values):
        raise click.UsageError(
            f"these exports fill masked pixels of {', '.join(sorted(every - set(values)))} with "
            "different values; give the shards of one export at a time"
        )
    return values, fills


def named(fills: Sequence[ExportFill], values: Mapping[str, float]) -> str:
    """Write which values fill masked pixels, and what tells so."""
    numbers = " and ".join(f"{value:g}" for value in sorted(set(values.values())))
    first, *rest = [fill.manifest for fill in fills]
    others = f" and {len(rest):,} other {many(len(rest), 'manifest')}" if rest else ""
    return f"{numbers} ({first}{others})"
