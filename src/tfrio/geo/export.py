"""Export rasters and arrays to TFRecord patches, a mixer and a manifest."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from tfrio.errors import UsageError
from tfrio.geo.grid import margin_of
from tfrio.geo.inputs import SourceRequest, resolve_source
from tfrio.geo.journal import check_free
from tfrio.geo.naming import Names
from tfrio.geo.options import ExportOptions, from_format_options
from tfrio.geo.run import RunOptions, export_source
from tfrio.geo.scratch import Scratch
from tfrio.geo.target import GridRequest
from tfrio.types import XY, mapping_like, several

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrio.geo.grid import Edge
    from tfrio.geo.labels import Labels
    from tfrio.geo.naming import Naming
    from tfrio.geo.options import Dtype, Pair
    from tfrio.geo.points import PatchesAt, Split
    from tfrio.geo.raster_bands import BandSelection
    from tfrio.geo.report import ExportReport
    from tfrio.geo.run import Progress
    from tfrio.parallel import Executor
    from tfrio.types import PathLike

__all__ = ["export_image", "export_images"]

_PAIRS = ("patch", "kernel", "stride")
Options = TypeVar("Options")


def export_image(
    source: Any,
    prefix: PathLike,
    *,
    patch: Pair | None = None,
    kernel: Pair = (1, 1),
    compressed: bool = True,
    max_file_size: int = 1 << 30,
    default_value: float | None = None,
    tensor_depths: Mapping[str, int] | Sequence[int] | None = None,
    sequence_data: bool = False,
    collapse_bands: bool = False,
    masked_threshold: float = 1.0,
    format_options: Mapping[str, Any] | None = None,
    dtype: Dtype = "float",
    bands: BandSelection | None = None,
    source_crs: str | None = None,
    region: Any = None,
    region_crs: str = "EPSG:4326",
    crs: str | None = None,
    scale: float | None = None,
    crs_transform: Sequence[float] | None = None,
    dimensions: Pair | None = None,
    resampling: str = "nearest",
    mask_outside: bool = False,
    mask_band: str | int | None = None,
    labels: Labels | Sequence[Labels] | None = None,
    edge: Edge = "drop",
    stride: Pair | None = None,
    at: PatchesAt | None = None,
    split: Split | None = None,
    drop_masked: bool = False,
    patch_index: str | None = None,
    statistics: bool = False,
    keep_masks: bool = True,
    naming: Naming = "drive",
    overwrite: bool = False,
    workers: int | None = None,
    executor: Executor = "threads",
    progress: Progress | None = None,
) -> ExportReport:
    """Export an image to TFRecord patches, as Earth Engine's ``Export.image`` does.

    Writes ``PREFIX-00000.tfrecord.gz`` and so on, ``PREFIX-mixer.json`` and
    ``PREFIX-manifest.json``. Shards get their names when all are complete; an interrupted export
    goes on where it stopped when called again with the same arguments.

    Args:
        source: A path or URL of a raster, an xarray object, ``geo.array_source(...)``, a list of
            these to stack, or a mapping from band name to one of these, or to a list of them (a
            time series, one step each).
        prefix: What the names begin with: a local path or a URL.
        patch: Patch (x, y) in pixels, without margin. Required here or in ``format_options``.
        kernel: Kernel (x, y): each side of a patch gets half of it, rounded down, of real
            neighbouring pixels.
        compressed: Whether to write gzip.
        max_file_size: Bytes of a shard before compression; one record may be larger.
        default_value: Value of masked pixels; the fraction is dropped and the rest clamped for
            integer bands. By default each band's own nodata value, or 0 where it has none.
        tensor_depths: Depth of the tensor of each array band: shorter pixels are padded, longer
            ones cut. A list is in the order of the array bands. By default all steps.
        sequence_data: Write one SequenceExample per pixel: scalar bands in its context, array
            bands as feature lists with one Feature per step.
        collapse_bands: Write all bands as one tensor named after the first, bands first.
        masked_threshold: Leave out patches of which a larger share of pixels is masked in any
            band (margins not counted). Anything but 1 writes no mixer; the manifest lists the
            patches kept.
        format_options: Earth Engine's own dictionary (``patchDimensions``, ...), never changed.
        dtype: ``"float"`` makes every number float32, as the guide says; ``"native"`` writes
            what the service does: uint8 as bytes, other integers as int64, floats as float32.
        bands: Bands to take: names or numbers from 1, or a mapping from new name to name, number
            or ``"3:15"`` (an array band of bands 3 to 15).
        source_crs: CRS of a source that does not tell its own.
        region: Part to export: (left, bottom, right, top), GeoJSON or a shapely geometry.
        region_crs: CRS of the region.
        crs: CRS of the grid; that of the source by default.
        scale: Metres per pixel; the grid is snapped to multiples of it.
        crs_transform: Six terms [a, b, c, d, e, f] that fix the pixels.
        dimensions: Pixels (x, y) of the whole grid, or of its longer side.
        resampling: How to resample where the grid is not the source's: ``"nearest"``,
            ``"bilinear"``, ``"cubic"``, ``"average"``, ...
        mask_outside: Mask pixels outside the region.
        mask_band: Band that masks all others where it is 0; it is not exported.
        labels: Label bands to burn from vector features.
        edge: ``"drop"`` leaves out what patches do not fill, ``"pad"`` fills beyond the raster,
            ``"shift"`` moves the last patches inward.
        stride: Step (x, y) from patch to patch; the patch by default.
        at: Take patches at points or under polygons only.
        split: Divide into ``PREFIX-train`` and ``PREFIX-validation`` by blocks.
        drop_masked: Leave out the masked steps of array bands, so that lengths vary.
        patch_index: Name of an extra int64 feature that holds each patch's index.
        statistics: Gather count, min, max, mean and std of each band in the same pass.
        keep_masks: Write which pixels are masked into the manifest.
        naming: ``"drive"`` or ``"gcs"`` (Cloud Storage's names).
        overwrite: Replace an export with the same prefix.
        workers: Threads or processes; one per core by default, 8 at most.
        executor: ``"threads"``, ``"processes"``, the address of a Dask scheduler, or a client.
        progress: Called with (records done, records in all, bytes written) from time to time.

    Returns:
        The account: grid, patches, dropped and masked pixels, files, statistics.

    Raises:
        GeoError: A source cannot be read or placed, grids differ, or no patch fits.
        UsageError: An option is unknown or does not fit; or the prefix is taken.
    """
    given = _merged(dict(locals()))  # every option by its name, before there is another local
    options = _pick(ExportOptions, given)
    grid = _pick(GridRequest, given)
    taken, margin = _pick(SourceRequest, given), margin_of(options.kernel)
    with Scratch() as scratch:
        found = resolve_source(source, taken, grid, margin, scratch)
        return export_source(found, str(prefix), options, _pick(RunOptions, given))


def export_images(
    sources: Sequence[Any], prefix: PathLike, *, options: Mapping[str, Any]
) -> list[ExportReport]:
    """Export several images, each by itself: ``PREFIX_0``, ``PREFIX_1`` and so on.

    Args:
        sources: One source per export.
        prefix: What all names begin with.
        options: The options of ``export_image``, the same for all.

    Returns:
        One account per source.

    Raises:
        UsageError: A prefix is taken; nothing is written then.
    """
    sources = several(sources, "sources", "sources, one for each export")
    mapping_like(options, "options", "{'patch': (256, 256)}")
    unknown = sorted(map(str, set(options) - {*inspect.signature(export_image).parameters}))
    if unknown:
        raise UsageError(f"export_image has no option {', '.join(unknown)}")
    prefixes = [f"{prefix}_{number}" for number in range(len(sources))]
    for each in prefixes:
        check_free(Names(each, 1), overwrite=bool(options.get("overwrite", False)))
    return [
        export_image(source, each, **options)
        for source, each in zip(sources, prefixes, strict=True)
    ]


def _merged(given: dict[str, Any]) -> dict[str, Any]:
    """Merge Earth Engine's dictionary into the options and turn pairs into ``XY``."""
    parameters = inspect.signature(export_image).parameters
    defaults = _paired({name: parameter.default for name, parameter in parameters.items()})
    if given["kernel"] is None:
        raise UsageError("kernel is None: give (x, y) in pixels, (1, 1) for none")
    found = _paired(given)
    for name, value in _paired(from_format_options(given["format_options"] or {})).items():
        if found[name] not in (defaults[name], value):
            raise UsageError(
                f"{name} is given twice: {given[name]!r}, and another value in format_options"
            )
        found[name] = value
    if found["patch"] is None:
        raise UsageError(
            "patch is missing: give the patch (x, y) in pixels, for example (256, 256)"
        )
    return found


def _paired(values: dict[str, Any]) -> dict[str, Any]:
    """Turn the pairs among options into ``XY``."""
    return {
        name: XY.of(value, name=name) if name in _PAIRS and value is not None else value
        for name, value in values.items()
    }


def _pick(kind: type[Options], given: Mapping[str, Any]) -> Options:
    """Build a group of options from those of its fields that are given."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: given[name] for name in names})
