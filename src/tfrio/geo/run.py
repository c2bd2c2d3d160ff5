"""Plan an export, run it on threads, processes or a cluster, and complete it."""

from __future__ import annotations

import contextlib
import itertools
import logging
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Protocol

from tfrio import storage
from tfrio.errors import GeoError, UsageError, warn_user
from tfrio.geo.grid import PatchGrid, margin_of
from tfrio.geo.journal import (
    check_free,
    fingerprint_of,
    finish,
    finished_shards,
    old_names,
    sweep,
)
from tfrio.geo.manifest import write_manifest
from tfrio.geo.mixer import write_mixer
from tfrio.geo.naming import Names
from tfrio.geo.outputs import make_folder
from tfrio.geo.plan import Span, records_per_shard, shard_spans, window_pixels
from tfrio.geo.points import PatchesAt, Split, choose_patches
from tfrio.geo.recipe import make_recipe
from tfrio.geo.render import record_size
from tfrio.geo.report import ExportReport
from tfrio.geo.stack import leaves
from tfrio.geo.summary import describe, notes_of
from tfrio.geo.work import (
    Job,
    Notes,
    Rendered,
    ShardResult,
    masked_counts,
    units,
    worker,
    write_shard,
    write_whole_shard,
)
from tfrio.parallel import ordered_map, run_tasks, worker_count
from tfrio.types import XY, Shape, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrio.geo.options import ExportOptions
    from tfrio.geo.patches import Patches
    from tfrio.geo.recipe import Recipe
    from tfrio.geo.source import Source
    from tfrio.parallel import Executor

__all__ = ["Progress", "RunOptions", "export_source"]

_LOG = logging.getLogger("tfrio")


class Progress(Protocol):
    """Told how far an export is."""

    def __call__(self, done: int, total: int, written: int, /) -> None:
        """Take records done, records in all, and bytes before compression written so far."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Which patches to write and how to run; see ``export_image``."""

    at: PatchesAt | None = None
    split: Split | None = None
    overwrite: bool = False
    workers: int | None = None
    executor: Executor = "threads"
    progress: Progress | None = None

    def __post_init__(self) -> None:
        """Check what is given by kind."""
        _check_kind("at", self.at, PatchesAt, "tfrio.geo.PatchesAt(where=...)")
        _check_kind("split", self.split, Split, "tfrio.geo.Split(validation=0.2)")
        if not _is_executor(self.executor):
            raise UsageError(
                'executor must be "threads", "processes", the address of a Dask scheduler or a '
                f"Dask client; got {shown(self.executor)}"
            )


def _is_executor(value: object) -> bool:
    if isinstance(value, str):
        return value in ("threads", "processes") or ":" in value
    return hasattr(value, "map")


def _check_kind(name: str, value: object, kind: type, example: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise UsageError(f"{name} must be {example}, got {shown(value)}")


def export_source(
    source: Source, prefix: str, options: ExportOptions, run: RunOptions
) -> ExportReport:
    """Export a source that lies on its grid.

    Args:
        source: Where pixels come from.
        prefix: What the names begin with.
        options: How patches are cut and written.
        run: Which patches, and how to run.

    Returns:
        The account.
    """
    if not prefix or prefix.endswith(("/", "\\")):
        raise UsageError(
            f"prefix {prefix!r} needs a name after the folder, for example 'out/scene'"
        )
    _LOG.info("grid: %s", source.frame.describe())
    grid = PatchGrid(source.frame.size, options.patch, options.kernel, options.stride, options.edge)
    recipe = make_recipe(source.bands, options)
    patches, missed = choose_patches(grid, source.frame, run.at, options.edge)
    if not len(patches):
        raise GeoError(
            f"no whole patch of {options.patch} fits into {source.frame.describe()}. Take a "
            'smaller patch, or edge="pad"'
        )
    patches = _without_masked(source, recipe, patches, options, run)
    notes = [note for leaf in leaves(source) for note in getattr(leaf, "notes", ())]
    if missed:
        notes.append(f"{missed} points gave no whole patch and were left out")
    plan = _Plan(source, recipe, options, run, tuple(notes))
    if run.split is None:
        return plan.write(patches, prefix)
    train, validation = run.split.divide(patches)
    if not train or not validation:
        raise GeoError(
            f"the split puts all {len(patches)} patches on one side. Give smaller blocks or "
            "another seed"
        )
    report = plan.write(patches.keeping(train), f"{prefix}-train")
    other = plan.write(patches.keeping(validation), f"{prefix}-validation")
    return replace(report, validation=other)


def _without_masked(
    source: Source, recipe: Recipe, patches: Patches, options: ExportOptions, run: RunOptions
) -> Patches:
    """Leave out patches that are masked too much; this reads everything once more."""
    if options.masked_threshold >= 1:
        return patches
    most = options.masked_threshold * options.patch.x * options.patch.y
    spans = (Span(0, len(patches)),)
    names = Names("", 1)
    plain = replace(recipe, sequence=False)
    _, pixels = _sizes(source, plain, options, patches.total)
    job = Job(source, plain, patches, XY(0, 0), names, spans, "", pixels)
    counts = ordered_map(lambda: masked_counts(job), units(job, [0]), worker_count(run.workers))
    kept = [index for found in counts for index, masked in found if masked <= most]
    if not kept:
        raise GeoError(
            f"all {len(patches)} patches are masked above masked_threshold "
            f"{options.masked_threshold}. Give a larger one"
        )
    return patches.keeping(kept)


def _sizes(source: Source, recipe: Recipe, options: ExportOptions, patches: int) -> tuple[int, int]:
    """Return the bytes of the largest record, and how many pixels to read at once."""
    padded = PatchGrid(options.patch, options.patch, options.kernel).padded.shape
    stored = Shape(1, 1) if recipe.sequence else padded
    size = record_size(recipe, [band.dtype for band in source.bands], stored, patches)
    strip = XY(source.frame.size.x, padded.height)
    return size, window_pixels(size, stored.size, strip, tiled=source.tiled)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What all parts of an export share."""

    source: Source
    recipe: Recipe
    options: ExportOptions
    run: RunOptions
    notes: tuple[str, ...]

    def write(self, patches: Patches, prefix: str) -> ExportReport:
        """Write patches under a prefix, or go on where an earlier run stopped."""
        job, notes = self._job(patches, prefix)
        done = finished_shards(job)
        if not done:
            check_free(job.names, overwrite=self.run.overwrite)
        make_folder(prefix)
        old = old_names(job.names)
        sweep(job.names, {name for shard in done for name in _temporaries(job, shard)})
        if done and any(getattr(leaf, "sampled", False) for leaf in leaves(self.source)):
            notes.append(
                f"of {self.source.name} only samples of the values were compared before going on. "
                f"If others changed meanwhile, delete {prefix}-* and export again"
            )
        results = {**done, **_run(job, self.run, done)}
        ordered = [results[shard] for shard in range(len(job.spans))]
        return self._complete(job, ordered, old, notes, len(done))

    def _job(self, patches: Patches, prefix: str) -> tuple[Job, list[str]]:
        """Lay down which records go where."""
        options = self.options
        size, pixels = _sizes(self.source, self.recipe, options, patches.total)
        notes = [*self.notes, *self.recipe.notes]
        if size > options.max_file_size:
            notes.append(
                f"one record takes up to {size:,} bytes, more than max_file_size "
                f"{options.max_file_size:,}: each shard holds one record"
            )
        each = options.patch.x * options.patch.y if options.sequence_data else 1
        records = len(patches) * each
        spans = shard_spans(records, records_per_shard(options.max_file_size, size))
        kept = None if patches.kept is None else patches.kept.tobytes()
        frame = self.source.frame
        job = Job(
            source=self.source,
            recipe=self.recipe,
            patches=patches,
            margin=margin_of(options.kernel),
            names=Names(prefix, len(spans), options.naming, options.compressed),
            spans=tuple(spans),
            fingerprint=fingerprint_of(
                version("tfrio"), self.source.stamp, frame, self.source.bands, options.as_json(),
                patches.columns, patches.rows, kept,
            ),
            max_pixels=pixels,
            statistics=options.statistics,
            keep_masks=options.keep_masks,
        )  # fmt: skip
        return job, notes

    def _complete(
        self,
        job: Job,
        results: Sequence[ShardResult],
        old: list[str],
        notes: list[str],
        resumed: int,
    ) -> ExportReport:
        """Give everything its name; the manifest comes last."""
        seen = Notes(masks={})
        for result in results:
            seen.add(result.notes)
        manifest = describe(job, self.options, [result.row for result in results], seen)
        mixer = manifest.mixer() if self.options.masked_threshold == 1 else None
        names = job.names
        finish(job, manifest.shards, old, keep={names.manifest, *([names.mixer] if mixer else [])})
        if mixer is not None:
            write_mixer(names.mixer, mixer)
        write_manifest(names.manifest, manifest)
        for shard in range(len(job.spans)):
            storage.remove(job.result_name(shard))
        notes += notes_of(job, seen)
        for note in notes:
            warn_user(note)
        grid = job.patches.grid
        return ExportReport(
            shards=tuple(names.all_shards),
            mixer=names.mixer if mixer else None,
            manifest=names.manifest,
            grid=self.source.frame.describe(),
            content=manifest,
            coverage=grid.coverage if grid else None,
            left_out=job.patches.total - len(job.patches),
            notes=tuple(notes),
            resumed=resumed,
        )


def _temporaries(job: Job, shard: int) -> tuple[str, str]:
    return job.temporary(shard).replace("\\", "/"), job.result_name(shard).replace("\\", "/")


def _run(job: Job, run: RunOptions, done: dict[int, ShardResult]) -> dict[int, ShardResult]:
    """Write the shards that are not finished."""
    todo = [shard for shard in range(len(job.spans)) if shard not in done]
    results: dict[int, ShardResult] = {}
    workers = worker_count(run.workers)
    meter = _Meter(job, run.progress, [*done.values()])
    try:
        if run.executor == "threads":
            found = _on_threads(job, todo, workers, meter)
        else:
            tasks = [(job.anywhere(), shard) for shard in todo]
            found = run_tasks(write_whole_shard, tasks, run.executor, workers)
        for result in found:
            results[result.shard] = result
            meter.finished(result)
    except BaseException as error:
        finished = len(done) + len(results)
        if finished:
            error.add_note(
                f"{finished} of {len(job.spans)} shards are finished; the same call goes on there"
            )
        raise
    return results


def _on_threads(job: Job, todo: list[int], workers: int, meter: _Meter) -> Iterator[ShardResult]:
    """Render units of all shards on threads; write the shards one after the other."""
    lanes = job.lanes(workers)
    stream = ordered_map(
        lambda: worker(job),
        units(job, todo),
        workers,
        lane=None if lanes is None else lambda unit: lanes.lane(unit.column),
        ahead=0 if lanes is None else lanes.ahead,
    )
    with contextlib.closing(stream):
        for shard, members in itertools.groupby(stream, key=lambda done: done.shard):
            yield write_shard(job, shard, map(meter.passing, members))


class _Meter:
    """Tells the progress of an export."""

    def __init__(self, job: Job, progress: Progress | None, done: list[ShardResult]) -> None:
        self._progress = progress
        self._total = sum(len(span) for span in job.spans)
        self._records = sum(result.row.records for result in done)
        self._bytes = sum(result.row.bytes for result in done)
        self._pending = [0, 0]

    def passing(self, rendered: Rendered) -> Rendered:
        """Count records on their way into a shard."""
        self._pending[0] += rendered.records
        self._pending[1] += rendered.raw
        self._tell(self._records + self._pending[0], self._bytes + self._pending[1])
        return rendered

    def finished(self, result: ShardResult) -> None:
        """Count a finished shard."""
        self._pending = [0, 0]
        self._records += result.row.records
        self._bytes += result.row.bytes
        self._tell(self._records, self._bytes)

    def _tell(self, records: int, written: int) -> None:
        if self._progress is not None:
            self._progress(min(records, self._total), self._total, written)
