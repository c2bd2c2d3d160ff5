"""The files of an import: which ones, in which order, and what each record holds.

Everything is looked at before a pixel is placed: names, counts, checksums and lengths. A lost
shard, a second export in the folder or one record too many must be an error that says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio import storage
from tfrio.errors import GeoError, UsageError, listed, many
from tfrio.examples.decode import read_batches
from tfrio.examples.infer import observe
from tfrio.examples.schema import Feature
from tfrio.geo.naming import group_exports, parse_shard_name
from tfrio.records.names import base_name, folder_of, natural_key, parse_name
from tfrio.records.shards import list_files
from tfrio.types import names_list, path_text, paths_list

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfrio.examples.observe import Observation, Seen
    from tfrio.examples.schema import Kind
    from tfrio.types import PathLike, PathsLike

__all__ = [
    "FeatureLook",
    "PredictionFile",
    "Survey",
    "find_files",
    "list_shards",
    "survey",
]


@dataclass(frozen=True, slots=True)
class PredictionFile:
    """One file of predictions.

    Args:
        path: The file.
        prefix: Its name before the shard number, folder and all.
        number: Shard number, None where the name has none.
        total: Number of shards where the name tells it.
        dashed: Whether a dash stands before the number.
    """

    path: str
    prefix: str
    number: int | None
    total: int | None = None
    dashed: bool = True

    @classmethod
    def of(cls, path: str) -> PredictionFile:
        """Take a file's name apart."""
        folder = folder_of(path)
        parsed = parse_name(path)
        # Eight digits are a date, not a shard.
        if parsed is not None and (parsed.total is not None or parsed.width == 5):
            return cls(path, folder + parsed.head, parsed.index, parsed.total)
        service = parse_shard_name(path)
        if parsed is None and service is not None and service.number is not None:
            return cls(path, service.prefix, service.number, dashed=False)
        return cls(path, path, None)


def list_shards(paths: PathsLike) -> list[str]:
    """List record files; a prefix also stands for shards with the names of Cloud Storage.

    Args:
        paths: Files, a folder, a glob or a prefix.

    Returns:
        The files, those of each path in order.

    Raises:
        FileNotFoundError: A path stands for no file.
    """
    given = paths_list(paths)
    return [file for path in given for file in _shards_of(path_text(path))]


def _shards_of(path: str) -> Sequence[str]:
    try:
        return list_files(path).files
    except FileNotFoundError:
        folder = folder_of(path)
        if not storage.is_folder(folder or "."):
            raise
        names = (entry.path for entry in storage.list_folder(folder or "."))
        found = [e for e in group_exports(names) if base_name(e.prefix) == base_name(path)]
        if not found:
            raise
        return found[0].shards


def find_files(
    predictions: PathsLike, *, prefix: str | None = None, partial: bool = False
) -> list[PredictionFile]:
    """List the files of one set of predictions, in shard order.

    Args:
        predictions: Files, a folder, a glob or a prefix.
        prefix: Prefix of the export, which settles a folder that holds several sets.
        partial: Whether shards may be missing.

    Returns:
        The files.

    Raises:
        GeoError: Several sets, a shard number twice, or a missing shard.
    """
    given: list[Any] = paths_list(predictions)
    files = [PredictionFile.of(path) for path in list_shards(given)]
    groups: dict[str, list[PredictionFile]] = {}
    for file in files:
        groups.setdefault(file.prefix, []).append(file)
    if len(groups) > 1:
        files = _one_group(groups, files, given, prefix)
    alone = len(files) == 1 and not files[0].dashed and not partial
    if alone or any(file.number is None for file in files):
        return files  # a lone map00123.tfrecord is a name, not shard 123 of Cloud Storage
    files.sort(key=lambda file: (file.number, natural_key(file.path)))
    _check_numbers(files, partial=partial)
    return files


def _one_group(
    groups: dict[str, list[PredictionFile]],
    files: list[PredictionFile],
    given: Sequence[PathLike],
    prefix: str | None,
) -> list[PredictionFile]:
    """Choose among several sets of files: that of the export, or files named one by one."""
    searched = any(storage.size_of(path_text(path)) is None for path in given)
    own = {os.path.normpath(name): group for name, group in groups.items()}
    if searched and prefix is not None and os.path.normpath(prefix) in own:
        return own[os.path.normpath(prefix)]
    if not searched and all(file.number is None for file in files):
        return files
    listed = "; ".join(
        f"{name} ({len(group)} file{'s' * (len(group) != 1)})" for name, group in groups.items()
    )
    raise GeoError(
        f"{given[0]}: holds several sets of files: {listed}. Predictions of one export are needed: "
        "name their files or their common prefix"
    )


def _check_numbers(files: Sequence[PredictionFile], *, partial: bool) -> None:
    numbers = [file.number for file in files if file.number is not None]
    twice = sorted({number for number in numbers if numbers.count(number) > 1})
    if twice:
        same = ", ".join(file.path for file in files if file.number == twice[0])
        raise GeoError(f"shard {twice[0]:05d} is there more than once: {same}. Move one away")
    total = files[0].total or max(numbers) + 1
    missing = sorted(set(range(total)) - set(numbers))
    if missing and not partial:
        raise GeoError(
            f"{files[0].prefix}: {many(len(missing), 'shard')} {listed(missing, form='05d')} "
            f"missing; there are {listed(sorted(numbers), form='05d')}. Fetch what is missing; "
            "partial=True goes on with these alone",
            path=files[0].prefix,
        )


@dataclass(frozen=True, slots=True)
class FeatureLook:
    """What one feature is like in every record.

    Args:
        name: Its name.
        kind: Its kind.
        values: Values per record; for bytes the length of the one byte string.
    """

    name: str
    kind: Kind
    values: int


@dataclass(frozen=True, slots=True)
class Survey:
    """What all files hold, every checksum verified.

    Args:
        files: The files, in order.
        counts: Records of each.
        features: Features that are alike in every record, in the order met.
        index: Patch index of each record, None where records carry none.
    """

    files: tuple[PredictionFile, ...]
    counts: tuple[int, ...]
    features: dict[str, FeatureLook]
    index: NDArray[np.int64] | None

    @property
    def paths(self) -> list[str]:
        """Return the paths in order."""
        return [file.path for file in self.files]

    @property
    def records(self) -> int:
        """Return the number of records."""
        return sum(self.counts)

    def where(self, record: int) -> str:
        """Return file and record of a record of the whole."""
        for file, count in zip(self.files, self.counts, strict=True):
            if record < count:
                return f"{file.path}, record {record}"
            record -= count
        return "past the last record"


def survey(
    files: Sequence[PredictionFile], *, features: Iterable[str] | None, index: str | None
) -> Survey:
    """Look at every record of every file.

    Args:
        files: The files, in order.
        features: Features wanted; None takes every feature.
        index: Feature that holds the patch index, None where there is none, ``"auto"`` to take
            ``patch_index`` if there.

    Returns:
        The survey.

    Raises:
        CorruptRecordError: A record is damaged.
        GeoError: A feature is absent from a record, or differs in length.
        UsageError: A feature asked for does not exist.
    """
    looks = [observe(file.path)[0] for file in files]
    counts = tuple(look.records for look in looks)
    if not sum(counts):
        raise GeoError(f"{files[0].path}: no record in these files. Write the predictions first")
    seen = _joined(looks)
    index_name = _index_name(index, seen)
    every = [name for name in seen if name != index_name]
    names = every if features is None else names_list(features, "bands")
    paths = [file.path for file in files]
    found: dict[str, FeatureLook] = {}
    for name in names:
        if name not in seen:
            raise UsageError(f"no feature '{name}' in the predictions; there are {', '.join(seen)}")
        found[name] = _feature_look(seen[name], paths, sum(counts))
    order = None if index_name is None else _read_index(paths, index_name, seen[index_name].kind)
    return Survey(tuple(files), counts, found, order)


def _joined(looks: Sequence[Observation]) -> dict[str, Seen]:
    """Join what was seen in each file."""
    total = looks[0]
    for look in looks[1:]:
        total.join(look)
    if total.sequence:
        raise GeoError(
            "the predictions are SequenceExamples (one per pixel); write one Example per patch "
            "with tfrio.geo.write_predictions"
        )
    total.schema(fixed=True)  # raises where a feature has two kinds
    return {seen.name: seen for seen in total.features.values()}


def _index_name(index: str | None, seen: dict[str, Seen]) -> str | None:
    if index == "auto":
        found = seen.get("patch_index")
        number = found is not None and found.kind != "bytes" and found.lengths == (1, 1)
        return "patch_index" if number else None
    if index is not None and index not in seen:
        raise UsageError(f"no feature '{index}' in the predictions; there are {', '.join(seen)}")
    return index


def _feature_look(seen: Seen, paths: Sequence[str], records: int) -> FeatureLook:
    low, high = seen.lengths or (0, 0)
    if seen.present < records or low != high or not high:
        raise _uneven(seen, paths)
    if seen.kind != "bytes":
        return FeatureLook(seen.name, seen.kind, high)
    if high != 1:
        raise GeoError(
            f"feature '{seen.name}' holds {high} byte strings per record; a patch of "
            "uint8 is one. Name the features to place with bands=",
            feature=seen.name,
        )
    return FeatureLook(seen.name, "bytes", _byte_length(seen.name, paths))


def _uneven(seen: Seen, paths: Sequence[str]) -> GeoError:
    """Find the first record that differs from record 0, and say how."""
    first: int | None = None
    schema = {seen.name: Feature(seen.kind, shape=None, required=False)}
    for path in paths:
        record = 0
        for batch in read_batches(path, 256, schema=schema):
            lengths = np.where(batch.present[seen.name], np.diff(batch[seen.name].offsets), -1)
            first = int(lengths[0]) if first is None else first
            odd = np.flatnonzero((lengths != first) | (lengths < 0))
            if len(odd):
                row = int(odd[0])
                found = "is absent" if lengths[row] < 0 else f"has {lengths[row]:,} values"
                return GeoError(
                    f"{path}, record {record + row}: feature '{seen.name}' {found}, record 0 has "
                    f"{max(first, 0):,} values. Every record must hold one patch: write these "
                    "predictions again, or name the features to place with bands=",
                    path=path,
                    record=record + row,
                    feature=seen.name,
                    expected=max(first, 0),
                    got=max(int(lengths[row]), 0),
                )
            record += batch.rows
    return GeoError(f"feature '{seen.name}' holds no values; name others with bands=")


def _byte_length(name: str, paths: Sequence[str]) -> int:
    first: int | None = None
    for path in paths:
        record = 0
        for batch in read_batches(path, 64, schema={name: Feature("bytes", shape=())}):
            lengths = np.diff(batch[name].offsets)
            first = int(lengths[0]) if first is None else first
            odd = np.flatnonzero(lengths != first)
            if len(odd):
                row = int(odd[0])
                raise GeoError(
                    f"{path}, record {record + row}: feature '{name}' has {lengths[row]:,} bytes, "
                    f"record 0 has {first:,}. A patch of uint8 has one byte a pixel; leave out "
                    "text with bands=",
                    path=path,
                    record=record + row,
                    feature=name,
                )
            record += batch.rows
    return first or 0


def _read_index(paths: Sequence[str], name: str, kind: Kind) -> NDArray[np.int64]:
    """Read the index of each record; Earth Engine's tables hold whole numbers as floats."""
    if kind not in ("int64", "float"):
        raise GeoError(f"feature '{name}' is {kind}, no index. Pass index= with another feature")
    schema = {name: Feature(kind, shape=(), required=False)}
    batches = [(b[name], b.present[name]) for b in read_batches(paths, 65_536, schema=schema)]
    values, present = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    if not present.all():
        record = int(present.argmin())
        raise GeoError(
            f"record {record} of all has no '{name}', which other records have. Write the index of "
            "its patch into each record, or pass index=None to go by their order",
            record=record,
            feature=name,
        )
    odd = np.flatnonzero(values != np.rint(values))
    if len(odd):
        raise GeoError(
            f"record {odd[0]}: {values[odd[0]]} of feature '{name}' is no patch index. Pass index= "
            "with another feature, or None",
            record=int(odd[0]),
            feature=name,
        )
    return values.astype(np.int64)
