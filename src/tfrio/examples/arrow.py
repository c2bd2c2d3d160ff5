"""Record files as Arrow streams and Arrow tables as record files, with or without pyarrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfrio.errors import UsageError
from tfrio.examples.arrow_c import read_array, read_stream, stream_capsule
from tfrio.examples.arrow_in import batch_of
from tfrio.examples.arrow_out import arrow_schema, batch_array, flat_schema, is_null
from tfrio.examples.decode import read_batches
from tfrio.examples.infer import infer_schema
from tfrio.examples.schema import Schema
from tfrio.records.shards import refuse_streams
from tfrio.types import whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrio.compression import Compression
    from tfrio.examples.columns import Batch
    from tfrio.examples.schema import SchemaLike
    from tfrio.types import PathsLike

__all__ = ["ArrowStream", "from_arrow", "to_arrow"]


class ArrowStream:
    """Record files as a stream of Arrow record batches; anything that takes Arrow takes this.

    ``pyarrow.table(stream)``, ``pyarrow.RecordBatchReader.from_stream(stream)``,
    ``polars.DataFrame(stream)``, ``pandas.DataFrame.from_arrow(stream)``. Each use reads the
    files anew, a batch at a time.

    Args:
        paths: The files.
        schema: What the columns are.
        batch_size: Records in a batch.
        compression: How the files are compressed; None goes by content.
        verify: Check payload checksums.

    Attributes:
        schema: What the columns are.
        error: What went wrong on the way, as the consumer hears of it in words only.
    """

    def __init__(
        self,
        paths: PathsLike,
        *,
        schema: Schema,
        batch_size: int,
        compression: Compression | None = None,
        verify: bool = True,
    ) -> None:
        self.schema = flat_schema(schema)
        self._paths = paths
        self._batch_size = batch_size
        self._compression = compression
        self._verify = verify
        self.error: Exception | None = None

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Return a PyCapsule of the stream; a schema requested is not followed, as it may be."""
        return stream_capsule(arrow_schema(self.schema), self._arrays())

    def _arrays(self) -> Iterator[Any]:
        known = Schema({k: f for k, f in self.schema.items() if not is_null(f)})
        batches = read_batches(
            self._paths,
            self._batch_size,
            schema=known,
            compression=self._compression,
            verify=self._verify,
        )
        for batch in self._noted(batches):
            for name, feature in self.schema.items():
                if is_null(feature):
                    batch[name] = None
                    batch.present[name] = None  # type: ignore[assignment]
            yield batch_array(self.schema, batch)

    def _noted(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield batches; an error on the way is kept, since Arrow hands on no more than text."""
        try:
            yield from batches
        except Exception as error:
            self.error = error
            raise


def to_arrow(
    paths: PathsLike,
    *,
    features: Sequence[str] | None = None,
    schema: SchemaLike | None = None,
    batch_size: int = 8192,
    compression: Compression | None = None,
    verify: bool = True,
) -> ArrowStream:
    """Give record files as Arrow record batches, streaming.

    Without a schema all records are looked at once beforehand. Features with one value in every
    record become plain columns, fixed lengths fixed-size lists, the others large lists; absent
    features are null. Lists and binary are always Arrow's large types.

    The field of a feature list carries the metadata ``tfrio:place`` = ``list``, by which
    ``from_arrow`` knows it again. Features that nowhere have a kind are null; feature lists that
    nowhere have one are lists of empty lists of null.

    Args:
        paths: A file, folder, glob, or several of these.
        features: Names of the features wanted, None for all.
        schema: What the features are.
        batch_size: Records in a batch.
        compression: How the files are compressed; None goes by content.
        verify: Check payload checksums.

    Returns:
        An object with ``__arrow_c_stream__``.

    Raises:
        FeatureKindError: A feature has two kinds.
        UsageError: No schema, and a path is a pipe, whose bytes come only once.
    """
    batch_size = whole_number(batch_size, "batch_size")
    if schema is None:
        refuse_streams(paths, "learning the columns and then reading them")
        made = infer_schema(paths, scalars=True, compression=compression, verify=verify)
    else:
        made = Schema.of(schema)
    if features is not None:
        made = made.select(features)
    return ArrowStream(
        paths, schema=made, batch_size=batch_size, compression=compression, verify=verify
    )


def from_arrow(source: Any) -> Iterator[Batch]:
    """Give Arrow data as batches, ready for ``Writer.write_batch``.

    Args:
        source: A table, record batch, reader or data frame: anything with ``__arrow_c_stream__``
            or ``__arrow_c_array__``.

    Yields:
        A ``Batch`` for each record batch; nulls are absent features, structs become features
        named ``outer/inner``. A field with the metadata ``tfrio:place`` = ``list`` is a feature
        list: rows of steps, each a list, for a writer with ``sequence=True``.

    Raises:
        UsageError: Not Arrow data.
        EncodeError: A type that no Example can hold (the error names the cast), or two columns of
            one name.
    """
    if hasattr(source, "__arrow_c_stream__"):
        arrays = read_stream(source.__arrow_c_stream__())
    elif hasattr(source, "__arrow_c_array__"):
        arrays = read_array(*source.__arrow_c_array__())
    else:
        raise UsageError(
            f"a {type(source).__name__} is no Arrow data: it has neither __arrow_c_stream__ nor "
            "__arrow_c_array__"
        )
    for kind, array in arrays:
        yield batch_of(kind, array)
