"""From what the user asked for to opened files, a schema and an order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from tfrio import _core
from tfrio.datasets import notices
from tfrio.datasets.mixture import Draws, MixedOrder, Stop, epoch_length
from tfrio.datasets.order import FileOrder, subkey
from tfrio.datasets.plan import Picks, Shuffle, Uneven, make_order
from tfrio.datasets.source import Sources
from tfrio.datasets.split import stable_names
from tfrio.datasets.state import data_digest
from tfrio.errors import CorruptRecordError, MissingFeatureError, SchemaError, UsageError
from tfrio.examples.infer import SAMPLE_BYTES, SAMPLE_RECORDS, sample_stream
from tfrio.examples.observe import Observation
from tfrio.examples.schema import Feature, Schema
from tfrio.examples.sidecar import load_sidecar
from tfrio.examples.told import noted_schema, shape_only
from tfrio.records.access import RecordFile
from tfrio.records.damage import Damage, DamagePolicy
from tfrio.records.index import build_index
from tfrio.records.reader import RecordStream, read_records
from tfrio.records.shards import expand
from tfrio.records.walk import walk
from tfrio.storage import is_remote
from tfrio.types import names_list, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrio.datasets.items import RaggedForm
    from tfrio.datasets.order import Int64, Order
    from tfrio.datasets.plan import Plan
    from tfrio.datasets.reader import Reader
    from tfrio.datasets.state import Progress
    from tfrio.examples.schema import SchemaLike
    from tfrio.examples.sidecar import Noted
    from tfrio.records.damage import ErrorMode

__all__ = ["Choices", "Mixture", "Opened", "ShuffleLike", "open_files", "order_of_epoch"]

ShuffleLike: TypeAlias = bool | Literal["full", "blocks", "buffer"]

Index: TypeAlias = Literal["auto", "memory"]


def check_index(index: object) -> None:
    """Refuse what is no choice of where indexes are kept."""
    if index not in ("auto", "memory"):
        raise UsageError(f'index must be "auto" or "memory", got {index!r}')


@dataclass(frozen=True, slots=True)
class Reading:
    """How the files are read; arguments of ``ArrayDataset``."""

    verify: bool = True
    index: Index = "auto"
    threads: int | None = None
    ragged: RaggedForm = "padded"

    def __post_init__(self) -> None:
        check_index(self.index)
        if self.threads is not None:
            whole_number(self.threads, "threads", least=0)
        if self.ragged not in ("padded", "nested", "lists"):
            raise UsageError(f'ragged must be "padded", "nested" or "lists", got {self.ragged!r}')


# Records mixed together where the order is not a full permutation: at most this many, and no
# more bytes of records than this. Memory is bounded by them.
WINDOW_RECORDS = 16384
WINDOW_BYTES = 64 << 20

# Records spread over a data set that show whether it is sorted.
_SPREAD = 60

# Records looked at where the first one of a file is damaged.
_FEW = 100

# Most files looked at for what features are; of remote ones only the first.
_FILES = 64


@dataclass(frozen=True, slots=True)
class Mixture:
    """Sources to be drawn from by weight."""

    files: tuple[int, ...]
    """Number of files of each source, in turn."""
    weights: tuple[float, ...]
    stop: Stop = "first"
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Choices:
    """How a dataset visits its records; the arguments of ``ArrayDataset`` that decide it."""

    batch_size: int | None = None
    drop_last: bool = False
    shuffle: ShuffleLike = False
    seed: int = 0
    window: int | None = None
    uneven: Uneven = "drop"
    rank: int | None = None
    world_size: int | None = None
    shard_by: Literal["records", "files"] = "records"
    chunk: int = 1
    infinite: bool = False
    mixture: Mixture | None = None

    def __post_init__(self) -> None:
        for name in ("batch_size", "window", "chunk"):
            value = getattr(self, name)
            if value is not None:
                whole_number(value, name)
        if type(self.seed) is not int:
            raise UsageError(f"seed must be a whole number, got {self.seed!r}")
        if self.shuffle not in (False, True, "full", "blocks", "buffer"):
            raise UsageError(
                f'shuffle must be True, False, "full", "blocks" or "buffer", got {self.shuffle!r}'
            )
        if self.uneven not in ("drop", "pad", "keep"):
            raise UsageError(f'uneven must be "drop", "pad" or "keep", got {self.uneven!r}')
        if self.shard_by not in ("records", "files"):
            raise UsageError(f'shard_by must be "records" or "files", got {self.shard_by!r}')

    @property
    def batch(self) -> int:
        """Return the records that workers take in turn."""
        return self.batch_size or self.chunk


@dataclass(slots=True)
class Opened:
    """The files of a dataset, opened."""

    paths: list[str]
    sources: Sources
    digest: str = field(init=False)
    starts: Int64 = field(init=False)
    """Record number at which each file begins, and the total, shape (files + 1,)."""
    whole_starts: Int64 = field(init=False)
    """The same with the records that are not used."""

    def __post_init__(self) -> None:
        self.starts = np.cumsum([0, *self.sources.counts], dtype=np.int64)
        self.whole_starts = np.cumsum([0, *(f.count for f in self.sources.files)], dtype=np.int64)
        sizes = [file.size for file in self.sources.files]
        counts = [file.count for file in self.sources.files]
        names = stable_names(self.paths)
        self.digest = data_digest(names, counts, sizes, selection=self.sources.selection)


def open_files(
    paths: Sequence[str],
    *,
    index: Index,
    selection: Sequence[Int64] | None = None,
    policy: DamagePolicy | None = None,
) -> Opened:
    """Open files by record number; what is not indexed yet is counted now.

    Args:
        paths: The files.
        index: ``"auto"`` keeps an index beside each file, ``"memory"`` in this process only.
        selection: Records to use of each file.
        policy: Whether stretches that hold no whole record are an error or left out.

    Returns:
        The opened files.

    Raises:
        CorruptRecordError: A file is damaged and its damage is not skipped.
    """
    files = [_open_file(path, index, policy or DamagePolicy()) for path in paths]
    broken = any(file.index.partial for file in files)
    return Opened(list(paths), Sources(files, selection=selection, gaps=broken))


def _open_file(path: str, index: Index, policy: DamagePolicy) -> RecordFile:
    try:
        return RecordFile(path, index=index)
    except CorruptRecordError:
        if policy.mode != "skip":
            raise
    known = len(policy.report.damages)
    with RecordStream(path) as stream:
        for event in walk(stream, verify=False):
            if isinstance(event, Damage):
                policy.take(event)
    notices.broken_file(policy.report.damages[known:])
    return RecordFile(path, index=build_index(path, verify=False, allow_partial=True))


def list_files(paths: object) -> list[str]:
    """List the record files, or say that there are none."""
    found = expand(paths)  # type: ignore[arg-type]
    if not found:
        raise UsageError(f"no record files in {paths}")
    return list(found)


def resolve_schema(
    paths: Sequence[str],
    *,
    schema: SchemaLike | None,
    features: str | Sequence[str] | None,
    scalars: bool = False,
    images: str | Sequence[str] = (),
    errors: ErrorMode = "raise",
) -> Schema:
    """Return the schema given, or the one the first records fit.

    Args:
        paths: The files; without a schema the first 1,000 records are looked at, over as many
            small files as hold them (4 MiB in all; of remote files the first that has any).
        schema: What the features are; binding.
        features: Names wanted, None for all.
        scalars: Whether features with one value in each record looked at become scalars.
        images: Bytes features to decode as images.
        errors: Whether a damaged first record is an error or left out.

    Returns:
        The schema of the features wanted.

    Raises:
        MissingFeatureError: A feature is not there; the message says which are.
        SchemaError: An image feature is no bytes.
        CorruptRecordError: There is no schema, and the first record is damaged.
    """
    made = _seen_schema(paths, scalars, errors) if schema is None else Schema.of(schema)
    chosen = made if features is None else made.select(names_list(features, "features"))
    return _with_images(chosen, names_list(images, "images"))


def _seen_schema(paths: Sequence[str], scalars: bool, errors: ErrorMode) -> Schema:
    seen, stored = Observation(), 0
    for path in paths:
        enough = seen.records >= SAMPLE_RECORDS or stored >= SAMPLE_BYTES
        if enough or (seen.records and is_remote(path)):
            break
        found, size = _look(path)
        if not found.records and not seen.records:
            found = _look_past_damage(path, errors)
        seen.join(found)
        stored += max(size, SAMPLE_BYTES // _FILES) if found.records else 0
    made = seen.schema(fixed=True, scalars=scalars)
    usual = {name: _usual(f) for name, f in made.items() if f.kind != "unknown"}
    return _with_axes(Schema(usual), seen, paths)


def _with_axes(schema: Schema, seen: Observation, paths: Sequence[str]) -> Schema:
    """Return the schema with the axes that all files note of arrays of numbers."""
    noted: list[Noted] = []
    for path in paths:
        found = load_sidecar(path)
        if found is None:
            return schema
        noted.append(found)
    told = noted_schema(schema, seen, [(found, None) for found in noted])
    return Schema(
        {name: told[name] if _is_array(told.get(name)) else schema[name] for name in schema}
    )


def _is_array(feature: Feature | None) -> bool:
    """Return whether a feature is numbers in axes that never differ."""
    return (
        feature is not None
        and feature.kind in ("float", "int64")
        and shape_only(feature)
        and len(feature.shape or ()) > 1
        and feature.count >= 0
    )


def _look(path: str) -> tuple[Observation, int]:
    """Look at the first records of a file; return what they hold and how large the file is."""
    with RecordStream(path) as stream:
        return sample_stream(stream), stream.size or 0


def _look_past_damage(path: str, errors: ErrorMode) -> Observation:
    """Look at records of a file that is empty, or whose first record is damaged."""
    mode: ErrorMode = "return" if errors == "skip" else "raise"
    found = islice(read_records(path, errors=mode), _FEW)
    payloads = [payload for payload in found if isinstance(payload, bytes)]
    scanner = _core.SchemaScanner(sequence=True)
    feed = scanner.feed(_core.frame(payloads), final=True)
    seen = Observation()
    seen.add(scanner.result(), feed.records, path=path)
    return seen


def _usual(feature: Feature) -> Feature:
    """Return a feature as a dataset gives it, by what the first records say.

    A bytes feature that always has one value is a bare one, as in rows. Numbers of steps that
    always have as many values are one array.
    """
    low, high = feature.lengths or (0, 1)
    if feature.place == "list":
        fixed = feature.kind != "bytes" and feature.shape is None and low == high > 0
        return replace(feature, shape=(high,)) if fixed else feature
    if feature.kind == "bytes" and feature.shape == (1,):
        return replace(feature, shape=())
    return feature


def _with_images(schema: Schema, names: Sequence[str]) -> Schema:
    """Return the schema with these bytes features decoded as images."""
    changed: dict[str, Feature] = {}
    for name in names:
        if name not in schema:
            raise MissingFeatureError(f"no feature '{name}' to decode; there are: {sorted(schema)}")
        if schema[name].kind != "bytes":
            raise SchemaError(f"feature '{name}' is {schema[name].kind}, an image is bytes")
        changed[name] = replace(schema[name], codec="image", shape=None, dtype=None)
    return schema.updated(dict(changed))


def pick_shuffle(shuffle: ShuffleLike, sources: Sources) -> Shuffle:
    """Return the kind of shuffle that these files allow at full speed."""
    if shuffle is False:
        return "none"
    if shuffle is not True:
        return shuffle
    if sources.mapped:
        return "full"
    return "blocks" if sources.seekable else "buffer"


def window_of(choices: Choices, sources: Sources) -> int:
    """Return how many records are mixed together."""
    if choices.window is not None:
        return choices.window
    return max(16, min(WINDOW_RECORDS, WINDOW_BYTES // sources.mean_size))


def order_of_epoch(choices: Choices, sources: Sources, epoch: int) -> Order:
    """Return the order in which an epoch visits the records.

    Args:
        choices: What the user chose.
        sources: The files.
        epoch: The epoch.

    Returns:
        The order, the same in every process.
    """
    kind = pick_shuffle(choices.shuffle, sources)
    blocks = sources.blocks() if kind == "blocks" else None
    window = window_of(choices, sources)
    if choices.mixture is None:
        return make_order(
            sources.counts,
            seed=choices.seed,
            epoch=epoch,
            shuffle=kind,
            window=window,
            blocks=blocks,
        )
    return _mixed_order(choices, choices.mixture, sources.counts, epoch, window, kind, blocks)


def check_endless(whole: Plan) -> None:
    """Refuse to wait for ever for a batch that never comes.

    Args:
        whole: The plan of one epoch of an infinite dataset.

    Raises:
        UsageError: The rank has not one batch in a whole epoch.
    """
    if not (whole.skip or whole.length):
        raise UsageError(
            f"an infinite dataset without a batch: this rank has {len(whole.share)} records of "
            f"{whole.order.total} for batches of {whole.batch}. Give it more records, a smaller "
            "batch_size, or drop_last=False"
        )


def tell_local_shuffle(choices: Choices, opened: Opened, reader: Reader) -> None:
    """Warn where a shuffle mixes only neighbours and the records look sorted by a label.

    Blocks that lie anywhere mix well where a window takes in ten of them. Files that can only be
    read from their start are left to ``look_in_passing``.

    Args:
        choices: What the user chose.
        opened: The files.
        reader: Reads a few records spread over the files.
    """
    sources = opened.sources
    kind = pick_shuffle(choices.shuffle, sources)
    if kind not in ("blocks", "buffer") or not sources.seekable:
        return
    total, window = int(opened.starts[-1]), window_of(choices, sources)
    blocks = sources.blocks().size if kind == "blocks" else 0
    if window * 10 < total and window * blocks < 10 * total:
        spread = np.linspace(0, total - 1, _SPREAD).astype(np.int64)
        sample = reader.read(Picks.of(spread, opened.starts)).batch
        notices.local_shuffle(sample, window, total)


def look_in_passing(
    progress: Progress, choices: Choices, opened: Opened
) -> notices.PassingLook | None:
    """Return what looks whether the records are sorted while the first epoch is read.

    Args:
        progress: Where a pass begins; of several workers the first one looks.
        choices: What the user chose.
        opened: The files.

    Returns:
        None where ``tell_local_shuffle`` looks into the files, or there is nothing to look for.
    """
    sources = opened.sources
    if sources.seekable or progress.epoch or progress.worker:
        return None
    total, window = int(opened.starts[-1]), window_of(choices, sources)
    local = pick_shuffle(choices.shuffle, sources) in ("blocks", "buffer")
    return notices.PassingLook(window, total) if local and window * 10 < total else None


def _mixed_order(
    choices: Choices,
    mixture: Mixture,
    counts: Sequence[int],
    epoch: int,
    window: int,
    kind: Shuffle,
    blocks: Int64 | None,
) -> MixedOrder:
    edges = np.cumsum([0, *mixture.files])
    of_source = [list(counts[a:b]) for a, b in pairwise(edges)]
    totals = [sum(inner) for inner in of_source]
    draws = Draws(mixture.weights, subkey(choices.seed, epoch, 0x3117))
    length = mixture.length
    if length is None:
        length = epoch_length(draws, totals, mixture.stop)
    first = np.cumsum([0, *totals])

    def order_of(source: int, turn: int) -> Order:
        """Return the order in which a source is read for the turn-th time."""
        if kind == "none":
            return FileOrder(totals[source])
        inside = None
        if blocks is not None:
            inside = blocks[(blocks >= first[source]) & (blocks < first[source + 1])]
            inside = inside - first[source]
        return make_order(
            of_source[source],
            seed=subkey(choices.seed, source),
            epoch=subkey(epoch, turn),
            shuffle=kind,
            window=window,
            blocks=inside,
        )

    return MixedOrder(draws, tuple(totals), length, order_of)
