"""A TFRecord table to GeoParquet, Parquet, Arrow, GeoJSON or CSV, a batch at a time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tfrio import storage
from tfrio.errors import SchemaError, UsageError
from tfrio.records.shards import expand
from tfrio.tables.arrow import look_at_table, record_batches, rows_per_batch
from tfrio.tables.conversion import Conversion, plan_conversions
from tfrio.tables.fields import xy_names
from tfrio.tables.manifest import find_manifest
from tfrio.tables.points import DEFAULT_CRS, geo_metadata, to_degrees
from tfrio.tables.sinks import format_of, open_sink
from tfrio.types import mapping_like, names_list, path_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tfrio.examples.schema import Schema
    from tfrio.tables.manifest import TableManifest
    from tfrio.types import PathLike, PathsLike

__all__ = ["TableImportReport", "import_table"]

_XY = ("longitude", "latitude")


@dataclass(frozen=True, slots=True)
class TableImportReport:
    """What an import of a table wrote.

    Args:
        path: The file written.
        rows: Rows in it.
        columns: Its columns, geometry not included.
        points: Rows with a point, None where the table has no geometry.
        size: Bytes of the file.
    """

    path: str
    rows: int
    columns: tuple[str, ...]
    points: int | None
    size: int | None

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the report as one line."""
        counts = [_counted(self.rows, "row"), _counted(len(self.columns), "column")]
        counts += [] if self.points is None else [_counted(self.points, "point")]
        size = "" if self.size is None else f" ({self.size:,} bytes)"
        return f"{', '.join(counts)} -> {self.path}{size}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def import_table(
    path: PathsLike,
    out: PathLike,
    *,
    xy: tuple[str, str] | Literal["auto"] | None = "auto",
    crs: str = DEFAULT_CRS,
    columns: str | Iterable[str] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    types: Mapping[str, str] | None = None,
    dates: Mapping[str, str] | None = None,
    batch_size: int | None = None,
    overwrite: bool = False,
) -> TableImportReport:
    """Write TFRecord files as a table.

    Absent features become nulls. A feature with one value in every record that has it becomes a
    column of single values, others become lists. Bytes become text where every value is UTF-8.
    What ``export_table`` noted beside the file (array shapes, whole numbers, dates, where the
    points are) is put back.

    Args:
        path: A file, folder, glob, or several of these.
        out: File to write; its ending chooses the format: ``.parquet``, ``.arrow``, ``.geojson``
            or ``.csv``.
        xy: Columns with the points' x and y. ``"auto"`` takes those noted at export, or
            ``("longitude", "latitude")`` where both exist; None makes no geometry.
        crs: CRS of the points. In GeoJSON they become longitude and latitude, whatever it is.
        columns: Columns to write, in this order; None writes all.
        shapes: Array shape by column; -1 for one free axis.
        types: Arrow type by column: ``"int32"``, ``"float64"``, ``"string"``, ``"binary"``,
            ``"bool"``, ``"date32"``, ``"timestamp[ms]"`` ...
        dates: Columns that hold dates: a ``strptime`` format, ``"iso"``, or ``"s"`` or ``"ms"``
            for a count since 1970.
        batch_size: Rows at a time; by default what fits in 64 MiB.
        overwrite: Allow ``out`` to exist.

    Returns:
        What was written.

    Raises:
        UsageError: An option names a column that does not exist, or the ending is unknown.
        SchemaError: Values do not have the shape or type asked for.
        FeatureKindError: A feature has two kinds; the text names the first record of each.
        FileExistsError: ``out`` exists and ``overwrite`` is not set.
    """
    for name, given, like in (
        ("shapes", shapes, "{'image': (64, 48)}"),
        ("types", types, "{'id': 'int32'}"),
        ("dates", dates, "{'day': 'iso'}"),
    ):
        if given is not None:
            mapping_like(given, name, like)
    target = path_text(out)
    form = format_of(target)
    storage.refuse_existing(target, overwrite=overwrite)
    files = expand(path)
    manifest = find_manifest(files[0]) if len(files) == 1 else None
    looked = look_at_table(files, shapes={**_noted_shapes(manifest), **(shapes or {})})
    schema = looked.schema
    places = _places(xy, schema, manifest)
    chosen = _chosen(columns, schema, places, manifest, form)
    rows = batch_size or rows_per_batch(schema, looked.record_bytes)
    plan = plan_conversions(files, schema.select(chosen), rows, manifest, types, dates)
    job = _Import(files, schema, rows, plan, places)
    geo = geo_metadata(*job.extent(), column="geometry", crs=crs, path=target) if places else None
    with (
        storage.atomic_write(target) as file,
        open_sink(file, form, plan.schema, geo) as sink,
    ):
        for batch, points in job.batches():
            turned = points is not None and form == "geojson"
            sink.write(batch, to_degrees(points, crs, path=target) if turned else points)
    size = None if storage.is_remote(target) else Path(target).stat().st_size
    return TableImportReport(
        path=target,
        rows=job.rows,
        columns=tuple(chosen),
        points=job.points if places else None,
        size=size,
    )


class _Import:
    """The rows on their way from records to the file."""

    def __init__(
        self,
        files: Sequence[str],
        schema: Schema,
        rows: int,
        plan: Conversion,
        places: tuple[str, str] | None,
    ) -> None:
        self._files = files
        self._schema = schema.select({**dict.fromkeys(plan.names), **dict.fromkeys(places or ())})
        self._rows = rows
        self._plan = plan
        self._places = places
        self.rows = 0
        self.points = 0

    def extent(self) -> tuple[Any, Any]:
        """Return the smallest and largest x and y, looked up in a pass of their own."""
        extents = []
        schema = self._schema.select(self._places or ())
        for batch in record_batches(self._files, schema, self._rows):
            x, y = self._xy(batch)
            known = ~np.isnan(x) & ~np.isnan(y)
            if known.any():
                extents.append([(v[known].min(), v[known].max()) for v in (x, y)])
        if not extents:
            return None, None
        bounds = np.array(extents, np.float64)
        x, y = np.stack((bounds[:, :, 0].min(0), bounds[:, :, 1].max(0)), axis=1)
        return x, y

    def batches(self) -> Any:
        """Yield record batches and the points of their rows."""
        for batch in record_batches(self._files, self._schema, self._rows):
            points = self._xy(batch) if self._places else None
            arrow = self._plan.convert(batch.select(self._plan.names), self.rows)
            self.rows += batch.num_rows
            if points is not None:
                self.points += int((~np.isnan(points[0]) & ~np.isnan(points[1])).sum())
            yield arrow, points

    def _xy(self, batch: Any) -> tuple[Any, Any]:
        """Return coordinates in their own precision, NaN where absent."""
        x, y = (batch.column(name).to_numpy(zero_copy_only=False) for name in self._places or ())
        return x, y


def _noted_shapes(manifest: TableManifest | None) -> dict[str, tuple[int, ...]]:
    if manifest is None:
        return {}
    # A list of no values is a list: Arrow has no type for "always empty".
    known = [c for c in manifest.columns if c.shape and all(c.shape) and c.nulls < manifest.rows]
    return {column.name: tuple(column.shape or ()) for column in known}


def _places(
    xy: tuple[str, str] | str | None, schema: Schema, manifest: TableManifest | None
) -> tuple[str, str] | None:
    """Return the names of the columns with x and y, checked."""
    if xy is None:
        return None
    if isinstance(xy, str):
        if xy != "auto":
            raise UsageError(f'xy is a pair of column names, "auto" or None; got {xy!r}')
        noted = manifest.xy if manifest and manifest.xy else _XY
        return noted if all(_is_number(schema, name) for name in noted) else None
    first, second = xy_names(xy)
    for name in (first, second):
        if name not in schema:
            raise UsageError(f"xy: no column '{name}'; there are {', '.join(schema)}")
        if not _is_number(schema, name):
            raise UsageError(f"xy: column '{name}' is not one number a row")
    return first, second


def _is_number(schema: Schema, name: str) -> bool:
    feature = schema.get(name)
    return feature is not None and feature.kind in ("float", "int64") and feature.shape == ()


def _chosen(
    columns: str | Iterable[str] | None,
    schema: Schema,
    places: tuple[str, str] | None,
    manifest: TableManifest | None,
    form: str,
) -> list[str]:
    """Return the columns to write.

    Where export made the two columns out of the geometry they turn back into it; they are
    written only to formats without geometry.
    """
    if columns is not None:
        given = columns.split(",") if isinstance(columns, str) else columns
        names = names_list(given, "columns")
        names = [name.strip() for name in names]
        for name in names:
            if name not in schema:
                raise UsageError(f"columns: no column '{name}'; there are {', '.join(schema)}")
        return names
    ordered = [c.name for c in manifest.columns if c.name in schema] if manifest else []
    ordered += [name for name in schema if name not in ordered]
    made = set(manifest.xy or ()) if manifest and places and form != "csv" else set()
    kept = [name for name in ordered if name not in made]
    if not kept and not places:
        raise SchemaError("the table has no columns: its records hold no features")
    return kept
