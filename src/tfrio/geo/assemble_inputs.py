"""Compare predictions with the inputs they were made from, where those are at hand."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from tfrio import storage
from tfrio.errors import CorruptRecordError, GeoError, warn_user
from tfrio.examples.decode import read
from tfrio.geo.assemble_check import score_order, score_orientations, tells_nothing
from tfrio.geo.assemble_files import list_shards
from tfrio.geo.assemble_layout import planes, read_layout
from tfrio.geo.assemble_place import read_patches
from tfrio.geo.assemble_seams import neighbours, score_seams
from tfrio.records.names import folder_of
from tfrio.types import XY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tfrio.geo.assemble_check import Fit, OrderFit
    from tfrio.geo.assemble_plan import Part
    from tfrio.geo.assemble_target import Target
    from tfrio.types import PathsLike

__all__ = ["CheckRule", "check_orientation"]

CheckRule: TypeAlias = Literal["error", "warn", "off"]
# So many patches of a usual export, or values of large ones (64 MiB), tell enough; the comparison
# takes about a second.
_PATCHES = 96
_VALUES = 16 << 20
_BANDS = 4
_SHARDS = 8


def check_orientation(
    part: Part, inputs: PathsLike | None, *, argmax: bool, rule: CheckRule
) -> None:
    """Say whether predictions would fit their inputs better in another orientation or order.

    Args:
        part: The predictions.
        inputs: Shards of the export; None takes those beside the manifest, if there.
        argmax: Whether the bands are scores of classes.
        rule: What to do where another orientation or order fits better.

    Raises:
        GeoError: ``rule`` is ``"error"`` and another orientation or order fits clearly better.
    """
    files = _input_files(part.target, inputs)
    if rule == "off" or not files or set(files) & set(part.survey.paths):
        return
    if part.plan.scale != XY(1, 1) or min(part.target.patch.x, part.target.patch.y) < 2:
        return
    known = _input_patches(files, part.target)
    pairs = _predicted(part, known, argmax=argmax) if known else []
    if not pairs:
        return
    indices = [index for index, _ in pairs]
    given = np.stack([known[index] for index in indices])
    bands = list(np.stack([band for _, band in pairs], axis=1))
    what = _doubt(given, bands, indices) or _seam_doubt(given, bands, indices, part.target)
    if what:
        _tell(part, what, rule)


def _doubt(inputs: NDArray[Any], bands: Sequence[NDArray[Any]], indices: list[int]) -> str:
    """Say what is wrong with some predicted band, nothing where all may be right."""
    for planes_seen in bands:
        order = score_order(inputs, planes_seen)
        if order.doubtful:
            return _order_text(order, indices)
    for planes_seen in bands:
        fit = score_orientations(inputs, planes_seen)
        if fit.doubtful:
            return _turn_text(fit)
    return ""


def _seam_doubt(
    inputs: NDArray[Any], bands: Sequence[NDArray[Any]], indices: list[int], target: Target
) -> str:
    """Say where bands break off between patches, tell nothing of inputs, and inputs go on."""
    windows = [target.places.window(index) for index in indices]
    corners = [(window.column, window.row) for window in windows]
    right = neighbours(corners, (target.patch.x, 0))
    below = neighbours(corners, (0, target.patch.y))
    broken = [fit for fit in (score_seams(band, right, below) for band in bands) if fit.broken]
    if len(broken) < len(bands) or not all(tells_nothing(inputs, band) for band in bands):
        return ""
    if not any(score_seams(band, right, below).whole for band in np.moveaxis(inputs, 1, 0)):
        return ""
    return (
        f"at {broken[0].seams} borders between patches the inputs go on and the predictions break "
        "off, nor do they tell anything about the inputs of their patches. The records are in "
        "another order than the export's, or their axes are swapped: write them with patch "
        "indices (tfrio.geo.write_predictions)"
    )


def _turn_text(fit: Fit) -> str:
    return (
        f"the predictions fit their inputs better when {fit.best}: they tell "
        f"{fit.scores[fit.best]:.2f} bits a pixel about them, as given "
        f"{max(fit.scores['as given'], 0):.2f}. Arrays are (height, width), rows from the north; "
        "write them with tfrio.geo.write_predictions"
    )


def _order_text(order: OrderFit, indices: list[int]) -> str:
    first = int(order.moved[0])
    return (
        f"{len(order.moved)} of {len(indices)} predictions fit the input of another patch better, "
        f"the one for patch {indices[first]} that of patch {indices[int(order.partner[first])]}. "
        "The records are in another order than the export's: give their files in shard order, or "
        "write them with patch indices (tfrio.geo.write_predictions)"
    )


def _tell(part: Part, what: str, rule: CheckRule) -> None:
    path = part.survey.files[0].path
    if rule == "error":
        raise GeoError(
            f"{path}: {what}. Nothing was written; if they are right as they are, pass "
            'check="warn", which writes all the same',
            path=path,
        )
    warn_user(f'{path}: {what}, or pass check="off" if they are right')


def _input_files(target: Target, inputs: PathsLike | None) -> list[str]:
    """Return the shards of the export that are at hand, in order from the first."""
    if inputs is not None:
        return list_shards(inputs)
    if target.manifest is None or target.prefix is None:
        return []
    folder = folder_of(target.prefix)
    names = [folder + shard.name for shard in target.manifest.shards]
    return list(itertools.takewhile(lambda name: storage.size_of(name) is not None, names))


def _input_patches(files: Sequence[str], target: Target) -> dict[int, NDArray[Any]]:
    """Return bands (bands, height, width) of some patches of the export, by index."""
    found = {}
    runs = _runs(files, target)
    for paths, first, count in runs:
        left = _VALUES // len(runs)
        rows = itertools.islice(_whole_rows(paths), count)
        for index, row in zip(target.written[first:], rows, strict=False):
            bands = [band for name, value in row.items() for band in _bands(name, value, target)]
            if bands:
                found[index] = np.stack(bands)
                left -= found[index].size
            if left < 0:
                break
    return found


def _whole_rows(paths: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield rows up to the first damage: behind it, which patch a row is cannot be told.

    The inputs are only compared with, so their damage is no error here.
    """
    with contextlib.suppress(CorruptRecordError):
        yield from read(paths)


def _runs(files: Sequence[str], target: Target) -> list[tuple[list[str], int, int]]:
    """Return which records to look at: files, the first record's number, and how many.

    Shards in the wrong order show only where several are looked into.
    """
    shards = target.manifest.shards if target.manifest else []
    if len(shards) != len(files):
        return [(list(files), 0, _PATCHES)]
    chosen = np.unique(np.linspace(0, len(files) - 1, _SHARDS).astype(int)).tolist()
    return [([files[n]], shards[n].first, -(-_PATCHES // len(chosen))) for n in chosen]


def _bands(name: str, value: Any, target: Target) -> list[NDArray[Any]]:
    """Return the planes of a feature, none where it is no patch."""
    flat = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value
    if not isinstance(flat, np.ndarray) or flat.dtype.kind not in "iuf" or flat.size < 2:
        return []
    try:
        reading = read_layout(name, flat.size, target.patch, kernel=target.kernel)
    except GeoError:
        return []
    if reading.scale != XY(1, 1):
        return []
    return list(planes(flat[None], reading)[0].astype(np.float32))


def _predicted(
    part: Part, known: dict[int, NDArray[Any]], *, argmax: bool
) -> list[tuple[int, NDArray[Any]]]:
    """Return the first bands (bands, height, width) of the known patches, by index."""
    pairs = []
    first = 0
    for path, count in zip(part.survey.paths, part.survey.counts, strict=True):
        order = part.order[first : first + count].tolist()
        first += count
        last = max((place for place, index in enumerate(order) if index in known), default=-1)
        patches = read_patches([path], part.plan) if last >= 0 else ()
        for index, bands in zip(order[: last + 1], patches, strict=False):
            if index in known:
                chosen = bands.argmax(axis=0)[None] if argmax else bands[:_BANDS].copy()
                pairs.append((index, chosen))
    return pairs
