"""Which bands an import writes: how records are read, and what the bands are called."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tfrio.errors import GeoError, UsageError
from tfrio.examples.schema import Feature
from tfrio.geo.assemble_layout import Layout, Reading, read_layout, readings
from tfrio.types import XY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrio.geo.assemble_files import FeatureLook, Survey
    from tfrio.geo.assemble_target import Target
    from tfrio.geo.manifest import BandRow

__all__ = [
    "BandsPlan",
    "FeaturePlan",
    "class_bands",
    "plan_bands",
]

_BATCH_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class FeaturePlan:
    """One feature and how to read it.

    Args:
        look: The feature.
        reading: Its values as planes.
        bands: Name of each plane.
        noted: What export noted of each plane, None where the name is new.
    """

    look: FeatureLook
    reading: Reading
    bands: tuple[str, ...]
    noted: tuple[BandRow | None, ...]

    @property
    def schema(self) -> Feature:
        """Return the feature as the decoder is asked for it."""
        if self.look.kind == "bytes":
            return Feature("bytes", shape=())
        return Feature(self.look.kind, shape=(self.look.values,))

    @property
    def whole(self) -> bool:
        """Tell whether the values are whole numbers by their kind, or were before export."""
        noted = [row for row in self.noted if row is not None]
        was = len(noted) == len(self.bands) and all(np.dtype(r.dtype).kind in "biu" for r in noted)
        return self.look.kind != "float" or was


@dataclass(frozen=True, slots=True)
class BandsPlan:
    """All bands.

    Args:
        features: The features, in the order of the bands.
        layout: Order of the planes within a feature.
        scale: Map pixels (x, y) per stored pixel.
    """

    features: tuple[FeaturePlan, ...]
    layout: Layout
    scale: XY

    @property
    def names(self) -> tuple[str, ...]:
        """Return the name of each band."""
        return tuple(name for feature in self.features for name in feature.bands)

    @property
    def noted(self) -> tuple[BandRow | None, ...]:
        """Return what export noted of each band."""
        return tuple(row for feature in self.features for row in feature.noted)

    def uncropped(self) -> BandsPlan:
        """Return the plan that keeps the margins."""
        kept = [replace(f, reading=replace(f.reading, margin=XY(0, 0))) for f in self.features]
        return replace(self, features=tuple(kept))

    @property
    def record_bytes(self) -> int:
        """Return the bytes of one record's values once decoded."""
        sizes = {"bytes": 1, "float": 4, "int64": 8}
        return sum(f.look.values * sizes[f.look.kind] for f in self.features)

    @property
    def batch(self) -> int:
        """Return how many records to hold at once."""
        return max(1, min(256, _BATCH_BYTES // max(self.record_bytes, 1)))

    @property
    def schema(self) -> dict[str, Feature]:
        """Return the schema to read the features with."""
        return {feature.look.name: feature.schema for feature in self.features}


def plan_bands(
    survey: Survey,
    target: Target,
    *,
    kernel: XY | None,
    depth: int | None,
    cells: XY | None,
    layout: Layout,
) -> BandsPlan:
    """Decide how each feature becomes bands.

    Args:
        survey: What the files hold.
        target: What was exported.
        kernel: Kernel (x, y) from the caller.
        depth: Planes per patch from the caller.
        cells: Cells (x, y) per patch from the caller.
        layout: Order of the planes within a feature.

    Returns:
        The plan.

    Raises:
        GeoError: A feature fits no reading or several, or features differ in resolution.
    """
    known = kernel or target.kernel
    plans = []
    for look in survey.features.values():
        rows = _noted_rows(target, look.name)
        asked = depth if depth is not None else _noted_depth(look, rows, target, known, cells)
        reading = read_layout(
            look.name,
            look.values,
            target.patch,
            kernel=known,
            depth=asked,
            cells=cells,
            where=survey.files[0].path,
        )
        plans.append(_feature_plan(look, reading, rows))
    _check_alike(plans, survey.files[0].path)
    return BandsPlan(tuple(plans), layout, plans[0].reading.scale)


def _noted_rows(target: Target, feature: str) -> list[BandRow]:
    bands = target.manifest.bands if target.manifest else []
    return [row for row in bands if row.feature == feature]


def _noted_depth(
    look: FeatureLook, rows: Sequence[BandRow], target: Target, kernel: XY | None, cells: XY | None
) -> int | None:
    """Return the depth the feature had at export, if its values fit it."""
    depth = sum(row.depth or 1 for row in rows)
    if not depth:
        return None
    fits = readings(look.values, target.patch, kernel=kernel, depth=depth, cells=cells)
    return depth if fits else None


def _feature_plan(look: FeatureLook, reading: Reading, rows: Sequence[BandRow]) -> FeaturePlan:
    noted: list[tuple[str, BandRow | None]] = []
    for row in rows:
        steps = [row.name] if row.depth is None else [f"{row.name}_{i}" for i in range(row.depth)]
        noted += [(name, row) for name in steps]
    if len(noted) != reading.depth:
        names = [look.name] if reading.depth == 1 else _numbered(look.name, reading.depth)
        noted = [(name, None) for name in names]
    return FeaturePlan(
        look, reading, tuple(name for name, _ in noted), tuple(row for _, row in noted)
    )


def _numbered(name: str, depth: int) -> list[str]:
    return [f"{name}_{plane}" for plane in range(depth)]


def _check_alike(plans: Sequence[FeaturePlan], path: str) -> None:
    if not plans:
        raise UsageError(f"{path}: the predictions have no feature to place")
    scales = {plan.reading.scale for plan in plans}
    margins = {plan.reading.margin for plan in plans} - {XY(0, 0)}
    if len(scales) > 1 or len(margins) > 1:
        listed = "; ".join(f"'{plan.look.name}': {plan.reading}" for plan in plans)
        raise GeoError(
            f"{path}: features differ in resolution or kernel: {listed}. Import them one by one "
            "with bands="
        )


def class_bands(plan: BandsPlan) -> BandsPlan:
    """Return the plan of the class band that argmax makes of all bands."""
    if len(plan.names) < 2:
        raise UsageError(
            f"argmax needs at least two bands of scores, there is {', '.join(plan.names)}"
        )
    first = plan.features[0]
    look = replace(first.look, name="class", kind="int64")
    merged = FeaturePlan(look, first.reading, ("class",), (None,))
    return replace(plan, features=(merged,))
