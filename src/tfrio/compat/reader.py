"""Read record files: raw payloads, Examples and SequenceExamples, one file or a mix of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tfrio import _core
from tfrio.compat._messages import extract_feature_dict, process_feature
from tfrio.compat._rows import RowDecoder
from tfrio.compat._shards import planned_parts
from tfrio.compat._stream import checked_compression, open_part, opened
from tfrio.compat._wanted import parse
from tfrio.compat.iterator_utils import sample_iterators

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tfrio.compat._stream import PartStream
    from tfrio.compat._wanted import Description
    from tfrio.compat.iterator_utils import Generator

__all__ = [
    "example_loader",
    "extract_feature_dict",
    "multi_tfrecord_loader",
    "process_feature",
    "sequence_loader",
    "tfrecord_iterator",
    "tfrecord_loader",
]

# Records are handed out over copies of this many bytes: one that is kept keeps no more alive.
_PIECE = 64 << 10
# A mix of more files than this holds none open between batches.
_MOST_OPEN = 32


class _Source(NamedTuple):
    """What one pass reads, and how."""

    data_path: Any
    index_path: Any
    shard: Sequence[int] | None
    compression_type: str | None
    verify: bool
    generator: Generator | None
    brief: bool = False
    """Whether to hold no file open between batches."""


def _streams(source: _Source) -> Iterator[PartStream]:
    """Open the parts of a file that one pass reads, one after the other."""
    compression = checked_compression(source.compression_type)
    with opened(source.data_path) as path:
        parts = planned_parts(
            path,
            source.index_path,
            source.shard,
            compression=compression,
            generator=source.generator,
        )
        for part in parts:
            with open_part(path, part, compression, brief=source.brief) as stream:
                yield stream


def _rows(source: _Source, description: Description, lists: Description) -> Iterator[Any]:
    """Decode a pass; ``lists`` None: Examples, else SequenceExamples."""
    sequence = lists is not None
    decoder = RowDecoder(parse(description), parse(lists), sequence=sequence, verify=source.verify)
    for stream in _streams(source):
        yield from decoder.rows(stream)


def _payloads(stream: PartStream, verify: bool) -> Iterator[memoryview]:
    """Yield the payloads of a stream, each valid for as long as it is kept."""
    while True:
        final = stream.final
        scan = _core.scan(stream.buffer[:_PIECE], 0, -1, verify)
        if not len(scan.spans) and scan.fault is None:  # a record longer than a piece, or the end
            scan = _core.scan(stream.buffer, 0, 1, verify, final)
        copy = memoryview(bytearray(stream.buffer[: scan.consumed]))
        stream.advance(scan.consumed, len(scan.spans))
        for offset, length in scan.spans.tolist():
            yield copy[offset : offset + length]
        if scan.fault is not None:
            raise stream.error(scan.fault)
        if not scan.consumed:
            if final:
                return
            stream.fill()


def tfrecord_iterator(
    data_path: Any,
    index_path: Any = None,
    shard: Sequence[int] | None = None,
    compression_type: str | None = None,
    *,
    verify: bool = True,
    generator: Generator | None = None,
) -> Iterator[memoryview]:
    """Iterate over the raw payloads of a record file.

    Args:
        data_path: The file: a path, a URL or an open file.
        index_path: Its text index, or None. With an index and no shard the pass begins at a
            random record and goes once around.
        shard: Which part of how many, ``(0, 4)``: contiguous runs of records.
        compression_type: ``"gzip"``, ``"zlib"``, ``""`` for none, or None: by content.
        verify: Check payload checksums; those of lengths are always checked.
        generator: Where the random start is drawn; None: NumPy's global generator.

    Yields:
        Payloads as writable views; each stays valid for as long as it is kept.

    Raises:
        RuntimeError: A record is damaged or cut, or the file is no record file.
        FileNotFoundError: No such file or index.
        ValueError: An impossible shard or an unknown compression.
    """
    source = _Source(data_path, index_path, shard, compression_type, verify, generator)
    for stream in _streams(source):
        yield from _payloads(stream, verify)


def example_loader(
    data_path: Any,
    index_path: Any = None,
    description: Description = None,
    shard: Sequence[int] | None = None,
    compression_type: str | None = None,
    *,
    verify: bool = True,
    generator: Generator | None = None,
) -> Iterator[dict[str, Any]]:
    """Iterate over the Examples of a record file.

    Args:
        data_path: As for ``tfrecord_iterator``.
        index_path: As for ``tfrecord_iterator``.
        description: Features wanted: None for all, a list of names, or a dict of names to
            ``"byte"``, ``"int"``, ``"float"`` or None.
        shard: As for ``tfrecord_iterator``.
        compression_type: As for ``tfrecord_iterator``.
        verify: As for ``tfrecord_iterator``.
        generator: As for ``tfrecord_iterator``.

    Returns:
        An iterator of dicts of int64 or float32 arrays (values,), ``bytes`` for one byte string,
        arrays of objects (values,) for several. Errors come as it is read.

    Raises:
        RuntimeError: A record is damaged or cut.
        KeyError: A record lacks a feature asked for.
        TypeError: A feature is stored as another type.
        DecodeError: A payload is no Example.
    """
    source = _Source(data_path, index_path, shard, compression_type, verify, generator)
    return _rows(source, description, None)


def sequence_loader(
    data_path: Any,
    index_path: Any = None,
    context_description: Description = None,
    features_description: Description = None,
    shard: Sequence[int] | None = None,
    compression_type: str | None = None,
    *,
    verify: bool = True,
    generator: Generator | None = None,
) -> Iterator[tuple[dict[str, Any], dict[str, list[Any]]]]:
    """Iterate over the SequenceExamples of a record file.

    Args:
        data_path: As for ``tfrecord_iterator``.
        index_path: As for ``tfrecord_iterator``.
        context_description: Features wanted of the context, as for ``example_loader``.
        features_description: Feature lists wanted, likewise.
        shard: As for ``tfrecord_iterator``.
        compression_type: As for ``tfrecord_iterator``.
        verify: As for ``tfrecord_iterator``.
        generator: As for ``tfrecord_iterator``.

    Returns:
        An iterator of pairs of the context as ``example_loader`` gives it, and a dict of lists
        with one such value per step.

    Raises:
        RuntimeError: A record is damaged or cut.
        KeyError: A record lacks a feature or feature list asked for.
        TypeError: A feature is stored as another type.
        DecodeError: A payload is no SequenceExample.
    """
    source = _Source(data_path, index_path, shard, compression_type, verify, generator)
    return _rows(source, context_description, features_description or [])


def tfrecord_loader(
    data_path: Any,
    index_path: Any = None,
    description: Description = None,
    shard: Sequence[int] | None = None,
    sequence_description: Description = None,
    compression_type: str | None = None,
    *,
    verify: bool = True,
    generator: Generator | None = None,
) -> Iterator[Any]:
    """Iterate over the Examples or SequenceExamples of a record file.

    Args:
        data_path: As for ``tfrecord_iterator``.
        index_path: As for ``tfrecord_iterator``.
        description: As for ``example_loader``.
        shard: As for ``tfrecord_iterator``.
        sequence_description: Feature lists wanted, ``[]`` for all: the file then holds
            SequenceExamples. None: Examples.
        compression_type: As for ``tfrecord_iterator``.
        verify: As for ``tfrecord_iterator``.
        generator: As for ``tfrecord_iterator``.

    Returns:
        An iterator of dicts, or of pairs (context, feature lists). Nothing is opened or checked
        before its first ``next``.
    """
    source = _Source(data_path, index_path, shard, compression_type, verify, generator)
    return _rows(source, description, sequence_description)


def multi_tfrecord_loader(
    data_pattern: str,
    index_pattern: str | None,
    splits: Mapping[str, float],
    description: Description = None,
    sequence_description: Description = None,
    compression_type: str | None = None,
    infinite: bool = True,
    shard: Sequence[int] | None = None,
    *,
    verify: bool = True,
    generator: Generator | None = None,
) -> Iterator[Any]:
    """Iterate over a random mix of several record files.

    Args:
        data_pattern: Path with ``{}`` where the name of the split goes.
        index_pattern: The same for text indexes, or None.
        splits: Names of the splits and the ratios in which they are drawn.
        description: As for ``example_loader``.
        sequence_description: As for ``tfrecord_loader``.
        compression_type: As for ``tfrecord_iterator``.
        infinite: Begin each file again when it is dry.
        shard: Which part of how many, of each file.
        verify: As for ``tfrecord_iterator``.
        generator: Where all draws come from; None: NumPy's global generator.

    Returns:
        An iterator as ``tfrecord_loader`` gives it. It ends when no split has a record to give.
    """
    brief = len(splits) > _MOST_OPEN

    def loader(split: str) -> Callable[[], Iterator[Any]]:
        """Return what starts reading the rows of one split."""
        path = data_pattern.format(split)
        index = None if index_pattern is None else index_pattern.format(split)
        source = _Source(path, index, shard, compression_type, verify, generator, brief)
        return lambda: _rows(source, description, sequence_description)

    loaders = [loader(split) for split in splits.keys()]  # noqa: SIM118 (a list is refused here)
    return sample_iterators(loaders, list(splits.values()), infinite, generator=generator)
