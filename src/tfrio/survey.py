"""Say what files are: records, features, compression, damage, and the map they belong to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from tfrio import _core
from tfrio.errors import SchemaError
from tfrio.examples.check import SchemaCheck, misfits
from tfrio.examples.engine import Options
from tfrio.examples.layout import shown_name
from tfrio.examples.observe import Observation, Seen
from tfrio.examples.schema import Schema
from tfrio.examples.sidecar import load_sidecar
from tfrio.examples.told import noted_schema, shape_only
from tfrio.geo.fills import exports_beside
from tfrio.geo.grid import kernel_candidates
from tfrio.geo.manifest import read_manifest
from tfrio.geo.mixer import read_mixer
from tfrio.records.verify import VerifyReport, verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tfrio.examples.schema import Place, SchemaLike
    from tfrio.examples.sidecar import Noted
    from tfrio.geo.naming import ExportNames
    from tfrio.types import XY, PathsLike

__all__ = ["Content", "ExportInfo", "FeatureInfo", "InfoReport", "info"]

Content: TypeAlias = Literal["empty", "example", "sequence", "other"]


@dataclass(frozen=True, slots=True)
class FeatureInfo:
    """What was seen of one feature.

    Attributes:
        name: As stored.
        kinds: ``"bytes"``, ``"float"``, ``"int64"``; none where it never had a value, several
            where records disagree.
        list: Whether it is a feature list of SequenceExamples.
        present: Records that have it.
        absent: Records that lack it.
        empty: Records (or steps) that have it without any value.
        lengths: Fewest and most values in a record (or step).
        steps: Fewest and most steps of a feature list.
        shape: Axes of each value (or step) that the writer noted beside the files, -1 for one that
            differs; None where it noted none, or files do not agree.
    """

    name: str
    kinds: tuple[str, ...]
    list: bool
    present: int
    absent: int
    empty: int
    lengths: tuple[int, int] | None
    steps: tuple[int, int] | None
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class ExportInfo:
    """The export of an image that shards belong to, as its mixer and manifest tell.

    Attributes:
        prefix: What the names of its files begin with.
        mixer: The mixer's file.
        crs: CRS of the grid.
        affine: Six terms (a, b, c, d, e, f) from pixel to map.
        patch: Patch (x, y) in pixels, without margin.
        kernel: Kernel (x, y) in pixels: the manifest's, else the only one with which the stored
            lengths fit, else None.
        columns: Patches in a row.
        rows: Rows of patches.
        patches: Patches in all.
        bands: Band names, None where no manifest tells them.
    """

    prefix: str
    mixer: str
    crs: str
    affine: tuple[float, ...]
    patch: tuple[int, int]
    kernel: tuple[int, int] | None
    columns: int
    rows: int
    patches: int
    bands: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class InfoReport:
    """What files hold.

    Attributes:
        content: ``"example"``, ``"sequence"`` (SequenceExample), ``"other"`` messages, or
            ``"empty"`` where there is no sound record; of the first file where files differ.
        checks: Records, bytes, compression and damage of each file.
        sampled: Records looked at for the features: the first 1,000 of each file.
        features: What was seen of each feature.
        exports: Exports of images that the files belong to.
        notes: What to know before reading, a sentence each: feature names that are not UTF-8,
            payloads that are no Example among those that are.
        schema: How the records sampled fit the schema given, None where none was.
        contents: The files that hold each kind of message, by content; one entry where all is well.
    """

    content: Content
    checks: VerifyReport
    sampled: int
    features: tuple[FeatureInfo, ...]
    exports: tuple[ExportInfo, ...]
    notes: tuple[str, ...] = ()
    schema: SchemaCheck | None = None
    contents: Mapping[Content, tuple[str, ...]] = field(default_factory=dict)

    @property
    def records(self) -> int:
        """Return the number of sound records."""
        return self.checks.records

    @property
    def compressions(self) -> tuple[str, ...]:
        """Return how the files are compressed, each way once."""
        found = {file.compression for file in self.checks.files if file.compression}
        return tuple(sorted(found))

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        schema = self.schema
        return {
            "content": self.content,
            "contents": self.contents,
            "records": self.records,
            "compressions": self.compressions,
            "sampled": self.sampled,
            "features": [replace(f, name=shown_name(f.name)) for f in self.features],
            "exports": self.exports,
            "notes": self.notes,
            "schema": None if schema is None else schema.to_dict(),
            **self.checks.to_dict(),
        }


def info(
    paths: PathsLike,
    *,
    schema: SchemaLike | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> InfoReport:
    """Look at files: every record is checked, the first 1,000 of each are looked into.

    Args:
        paths: Files, folders, globs or shard prefixes.
        schema: Say also how the records looked into fit this one; ``tfrio.check_schema`` looks
            at all.
        threads: Threads for checking, by default up to 4.
        progress: Called with bytes done and bytes in all, from any thread.

    Returns:
        What they hold. Damage is reported, never raised.

    Raises:
        FileNotFoundError: A path stands for no file.
        GeoError: A mixer or manifest beside the files is damaged.
    """
    wanted = None if schema is None else Schema.of(schema)
    looks: dict[str, _Look] = {}

    def look(path: str, payloads: list[bytes]) -> None:
        """Look into the first payloads of a file."""
        if payloads:
            looks[path] = _looked_into(path, payloads)

    checks = verify(paths, threads=threads, look=look, progress=progress)
    readable = [file.path for file in checks.files if not file.problem]
    contents = _contents({path: looks[path] for path in readable if path in looks})
    content: Content = next(iter(contents), "empty")
    seen = Observation()
    notes: list[str] = []
    noted: list[tuple[Noted | None, set[tuple[str, Place]]]] = []
    for path in readable:
        if path in looks and {content, looks[path].content} != {"other"}:
            noted.append((_sidecar(path, notes), set(looks[path].seen.features)))
            seen.join(looks[path].seen)
            notes += looks[path].notes
    shapes = _shapes(seen, noted)
    return InfoReport(
        content=content,
        checks=checks,
        sampled=seen.records,
        features=tuple(
            _feature(one, seen.records, shapes.get(key)) for key, one in seen.features.items()
        ),
        exports=tuple(_exports(readable, seen)),
        notes=(*map(_odd_name, filter(_is_odd, seen.features.values())), *notes),
        schema=None if wanted is None else _fit(seen, wanted, looks, readable),
        contents=contents,
    )


def _contents(looks: Mapping[str, _Look]) -> dict[Content, tuple[str, ...]]:
    """Return the files by what they hold, in the order met."""
    found: dict[Content, tuple[str, ...]] = {}
    for path, look in looks.items():
        found[look.content] = (*found.get(look.content, ()), path)
    return found


def _fit(
    seen: Observation, schema: Schema, looks: Mapping[str, _Look], readable: Iterable[str]
) -> SchemaCheck:
    """Compare the records that were looked into with a schema."""
    parts = [(path, looks[path].seen.records) for path in readable if path in looks]
    options = Options(errors="skip", utf8="surrogateescape")
    return misfits(seen, schema, parts if seen.records else (), options)


class _Look(NamedTuple):
    """What the first payloads of a file are."""

    content: Content
    seen: Observation
    notes: tuple[str, ...]


def _looked_into(path: str, payloads: list[bytes]) -> _Look:
    """Say what payloads are; learn their features, up to the first that is no Example."""
    scanner = _core.SchemaScanner(sequence=True, utf8="accept")
    feed = scanner.feed(_core.frame(payloads), final=True)
    seen = Observation()
    seen.add(scanner.result(), feed.records, path=path)
    notes: tuple[str, ...] = ()
    if feed.fault is not None:
        notes = (
            f"{path}: the payload of sound record {feed.records} is no tf.train.Example "
            f"({feed.fault.reason or feed.fault.code} at payload byte {feed.fault.at}); the "
            "features are those of the records before it",
        )
    content: Content = cast("Content", _core.classify(payloads[0]))
    if any(one.place == "list" for one in seen.features.values()):
        content = "sequence"  # without a feature list a SequenceExample is an Example, too
    return _Look(content, seen, notes)


def _is_odd(seen: Seen) -> bool:
    return shown_name(seen.name) != seen.name


def _odd_name(seen: Seen) -> str:
    return (
        f"the name of feature '{shown_name(seen.name)}' is not UTF-8, so protobuf and TensorFlow "
        "refuse the record; utf8='surrogateescape' reads it here (`tfrio head`, `tfrio stats`: "
        "--utf8 surrogateescape), and `tfrio.Writer` writes it under another name"
    )


def _feature(seen: Seen, records: int, shape: tuple[int, ...] | None) -> FeatureInfo:
    return FeatureInfo(
        name=seen.name,
        kinds=tuple(seen.kinds),
        list=seen.place == "list",
        present=seen.present,
        absent=records - seen.present,
        empty=seen.empty,
        lengths=seen.lengths,
        steps=seen.steps,
        shape=shape,
    )


def _sidecar(path: str, notes: list[str]) -> Noted | None:
    """Return what is noted beside a file; damage becomes a note."""
    try:
        return load_sidecar(path)
    except SchemaError as error:
        notes.append(f"{error.message}: records without a schema cannot be read beside it")
        return None


def _shapes(
    seen: Observation, noted: Sequence[tuple[Noted | None, set[tuple[str, Place]]]]
) -> dict[tuple[str, Place], tuple[int, ...]]:
    """Return the axes that hold for all files which have a feature, by its name and place."""
    if not any(found for found, _ in noted) or any(seen.conflicts()):
        return {}
    told = noted_schema(seen.schema(fixed=False), seen, noted)
    shapes: dict[tuple[str, Place], tuple[int, ...]] = {}
    for key, name in seen.keys().items():
        axes = (
            tuple(d for d in told[name].shape or () if isinstance(d, int)) if name in told else ()
        )
        if len(axes) > 1 and shape_only(told[name]):
            shapes[key] = axes
    return shapes


def _exports(paths: list[str], seen: Observation) -> Iterator[ExportInfo]:
    """Find the mixers beside the files."""
    for export in exports_beside(paths):
        if export.mixer is not None:
            yield _export(export, export.mixer, seen)


def _export(names: ExportNames, mixer_path: str, seen: Observation) -> ExportInfo:
    mixer = read_mixer(mixer_path)
    manifest = read_manifest(names.manifest) if names.manifest else None
    return ExportInfo(
        prefix=names.prefix,
        mixer=mixer_path,
        crs=mixer.crs,
        affine=tuple(mixer.affine),
        patch=(mixer.patch.x, mixer.patch.y),
        kernel=manifest.grid.kernel if manifest else _only_kernel(mixer.patch, seen),
        columns=mixer.patches_per_row,
        rows=mixer.rows,
        patches=mixer.total_patches,
        bands=tuple(band.name for band in manifest.bands) if manifest else None,
    )


def _only_kernel(patch: XY, seen: Observation) -> tuple[int, int] | None:
    """Return the only kernel with which every feature's length fits the patch, if there is one."""
    lengths = {one.lengths for one in seen.features.values() if "bytes" not in one.kinds}
    if len(lengths) != 1:
        return None
    shortest, longest = lengths.pop() or (0, 1)
    fitting = kernel_candidates(patch, longest) if shortest == longest else []
    return (fitting[0].x, fitting[0].y) if len(fitting) == 1 else None
