"""NumPy archives (``.npz``) to TFRecord and back.

One array a feature, its first axis the records. Shapes and dtypes that records cannot say stand in
``FILE.schema.json`` beside the TFRecord file. What has no rectangular array is written in parts:
``NAME.values`` and ``NAME.offsets`` for lists, ``NAME.data`` and ``NAME.offsets`` for bytes,
``NAME.present`` where some records lack the feature.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio import storage
from tfrio.errors import EncodeError, SchemaError, UsageError, warn_user
from tfrio.examples.columns import Batch, BytesColumn, Ragged
from tfrio.examples.decode import read_batches
from tfrio.examples.schema import Feature, Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from tfrio.examples.sidecar import Noted

__all__ = ["archive_batches", "archive_schema", "write_archive"]

_PARTS = (".values", ".offsets", ".data", ".present")


def write_archive(
    files: Sequence[str],
    out: str,
    schema: Schema,
    found: Noted,
    rows: int,
    progress: Callable[[int, int], None],
) -> int:
    """Write TFRecord files as one ``.npz``; all values are held in memory.

    Args:
        files: The files.
        out: The archive.
        schema: What the features are.
        found: What the files note of them.
        rows: Records to decode at once.
        progress: Called with records done, and 0.

    Returns:
        The number of records.
    """
    full = Schema({name: _form(name, f, found.schema.get(name)) for name, f in schema.items()})
    for name in sorted(_untold(found) & set(schema)):
        warn_user(
            f"{out} cannot tell the axes of '{name}', which differ from record to record, and it "
            "comes back as flat lists; write .parquet or .arrow to keep them"
        )
    parts: dict[str, list[Any]] = {name: [] for name in full}
    present: dict[str, list[Any]] = {name: [] for name in full}
    total = 0
    for batch in read_batches(files, rows, schema=full):
        total += batch.rows
        progress(total, 0)
        for name in full:
            parts[name].append(batch[name])
            present[name].append(batch.present[name])
    arrays: dict[str, NDArray[Any]] = {}
    for name in full:
        if full[name].kind == "unknown":
            continue
        mask = np.concatenate(present[name]) if present[name] else np.zeros(0, np.bool_)
        arrays |= _named(name, parts[name])
        if not mask.all():
            arrays[f"{name}.present"] = mask
    with storage.atomic_write(out) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    return total


def _form(name: str, feature: Feature, noted: Feature | None) -> Feature:
    """Return the form of a feature in an archive: as noted, where arrays can have that form."""
    if feature.place == "list" and feature.kind != "unknown":
        raise _no_form(name)
    return _fixed(feature) if noted is None or noted.dims else noted


def _untold(found: Noted) -> set[str]:
    """Return features with axes that one array of all rows does not have."""
    free = {name for name, f in found.schema.items() if f.dims or -1 in (f.shape or ())}
    return free | set(found.rows) | set(found.lost)


def _no_form(name: str) -> SchemaError:
    return SchemaError(
        f"feature '{name}' holds lists of byte strings or steps, which have no NumPy form. Write "
        ".parquet, or leave it out with features=",
        feature=name,
    )


def _fixed(feature: Feature) -> Feature:
    """Return a feature whose length never varies as an array of that length."""
    low, high = feature.lengths or (0, 0)
    if feature.shape is None and low == high > 0 and feature.kind != "bytes":
        return replace(feature, shape=(high,))
    return feature


def _named(name: str, parts: list[Any]) -> dict[str, NDArray[Any]]:
    """Return the arrays of one feature by their names in the archive."""
    if not parts:
        return {name: np.zeros(0, np.float32)}
    if isinstance(parts[0], np.ndarray) and parts[0].dtype != object:
        return {name: np.concatenate(parts)}
    if isinstance(parts[0], BytesColumn):
        data, offsets = _joined([(p.data, p.offsets) for p in parts])
        return {f"{name}.data": data, f"{name}.offsets": offsets}
    if isinstance(parts[0], Ragged) and isinstance(parts[0].values, np.ndarray):
        values, offsets = _joined([(p.values, p.offsets) for p in parts])
        return {f"{name}.values": values, f"{name}.offsets": offsets}
    raise _no_form(name)


def _joined(parts: list[tuple[Any, Any]]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Join lists of several batches: their values, and offsets that go on."""
    values = [v[int(o[0]) : int(o[-1])] for v, o in parts]
    lengths = np.concatenate([np.diff(offsets) for _, offsets in parts])
    return np.concatenate(values), np.concatenate(([0], np.cumsum(lengths)))


def archive_schema(path: str, features: Sequence[str] | None) -> Schema:
    """Describe the arrays of an archive.

    Args:
        path: The archive.
        features: Features wanted, None for all.

    Returns:
        The schema, with shapes and dtypes.

    Raises:
        UsageError: A feature is not there.
        SchemaError: Arrays differ in length, or hold what no record can.
    """
    with _opened(path) as archive:
        names = list(dict.fromkeys(_base(name, archive.files) for name in archive.files))
        chosen = list(features) if features is not None else names
        for name in chosen:
            if name not in names:
                raise UsageError(f"{path}: no array '{name}'; there are {', '.join(names)}")
        return Schema({name: _feature(path, name, archive) for name in chosen})


def _opened(path: str) -> Any:
    try:
        return closing(np.load(path, allow_pickle=False))
    except (ValueError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise SchemaError(f"{path}: not a NumPy archive ({error})", path=path) from error


def _base(name: str, names: Sequence[str]) -> str:
    """Return the feature an array of the archive belongs to."""
    for part in _PARTS:
        stem = name.removesuffix(part)
        whole = {f"{stem}.offsets", f"{stem}.values"}, {f"{stem}.offsets", f"{stem}.data"}
        if stem != name and (part == ".present" or any(w <= set(names) for w in whole)):
            return stem
    return name


def _feature(path: str, name: str, archive: Any) -> Feature:
    absent = f"{name}.present" in archive.files
    if f"{name}.data" in archive.files:
        return Feature("bytes", shape=(), required=not absent)
    ragged = f"{name}.values" in archive.files
    array = _loaded(path, f"{name}.values" if ragged else name, archive)
    kind = array.dtype.kind
    if kind in "SU":
        return Feature("bytes", shape=(), required=not absent)
    if kind not in "biuf" or (not ragged and array.ndim == 0):
        raise SchemaError(
            f"{path}: array '{name}' is {array.dtype} {array.shape}; records hold numbers, text "
            "and bytes, one a row. Leave it out with features=",
            path=path,
            feature=name,
        )
    stored = {"float32": "float", "int64": "int64"}.get(array.dtype.name)
    dtype = None if stored else array.dtype.name
    shape = None if ragged else array.shape[1:]
    return Feature("float" if kind == "f" else "int64", shape, dtype, required=not absent)


def _loaded(path: str, name: str, archive: Any) -> NDArray[Any]:
    try:
        array: NDArray[Any] = archive[name]
    except ValueError as error:
        raise SchemaError(
            f"{path}: array '{name}' cannot be read ({error}). Save it with a dtype of numbers or "
            "text, or leave it out with features=",
            path=path,
            feature=name,
        ) from error
    return array


def archive_batches(path: str, schema: Schema, rows: int) -> Iterator[Batch]:
    """Yield the rows of an archive, so many at a time.

    Args:
        path: The archive.
        schema: What ``archive_schema`` gave.
        rows: Rows a batch.

    Yields:
        Batches for ``Writer.write_batch``.

    Raises:
        EncodeError: Arrays differ in length.
    """
    with _opened(path) as archive:
        columns = {name: _column(name, archive) for name in schema}
        masks = {
            name: archive[f"{name}.present"]
            for name in schema
            if f"{name}.present" in archive.files
        }
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise EncodeError(
            f"{path}: arrays differ in length along their first axis: {listed}. Choose those of "
            "one length with features=",
            path=path,
        )
    for start in range(0, next(iter(lengths.values()), 0), rows):
        stop = start + rows
        part = {name: column[start:stop] for name, column in columns.items()}
        present = {name: mask[start:stop] for name, mask in masks.items()}
        yield Batch(part, present=present, rows=len(next(iter(part.values()))))


def _column(name: str, archive: Any) -> Any:
    if f"{name}.data" in archive.files:
        return BytesColumn(archive[f"{name}.data"], archive[f"{name}.offsets"])
    if f"{name}.values" in archive.files:
        return Ragged(archive[f"{name}.values"], archive[f"{name}.offsets"])
    array = archive[name]
    if array.dtype.kind == "U":
        return BytesColumn.of(text.encode() for text in array.tolist())
    return BytesColumn.of(array.tolist()) if array.dtype.kind == "S" else array
