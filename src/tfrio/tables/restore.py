"""Write records anew with bytes restored that a text type had changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfrio import _core
from tfrio.errors import DecodeError, MissingFeatureError, UsageError
from tfrio.examples.decode import read
from tfrio.examples.images import image_format, mangled_text, unmangle
from tfrio.examples.writer import Writer
from tfrio.records.reader import read_records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["restore"]

_TOLD_EVERY = 4096  # records


def restore(
    files: Sequence[str],
    target: str,
    features: Sequence[str],
    *,
    level: int,
    told: Callable[[int, int], None],
) -> int:
    """Write all records of files to one, the bytes of some features restored.

    Args:
        files: TFRecord files of Examples.
        target: File to write.
        features: Features whose values were stored as text; images that were not are left alone.
        level: Compression level of gzip.
        told: Called with records done and 0.

    Returns:
        The number of records.

    Raises:
        MissingFeatureError: No record has such a feature.
        DecodeError: A value did not go through a text type, or lost bytes there.
        UsageError: A feature holds numbers.
    """
    unseen = set(features)
    with Writer(target, level=level, sequence=_sequences(files), sort=False) as writer:
        for path in files:
            for number, row in enumerate(read(path)):
                for name in features:
                    if name in row:
                        unseen.discard(name)
                        row[name] = _restored(row[name], name, f"record {number} of {path}")
                writer.write(row)
                if writer.records % _TOLD_EVERY == 0:
                    told(writer.records, 0)
        if unseen:
            raise MissingFeatureError(f"{files[0]}: no record has a feature {sorted(unseen)}")
        return writer.records


def _sequences(files: Sequence[str]) -> bool:
    first = next((payload for path in files for payload in read_records(path)), b"")
    return _core.classify(first) == "sequence"


def _restored(value: Any, name: str, place: str) -> Any:
    """Restore a value, or those in a list of them."""
    if isinstance(value, list):
        return [_restored(item, name, place) for item in value]
    if value is None:  # a step without a kind
        return None
    if not isinstance(value, bytes):
        raise UsageError(f"feature '{name}' holds numbers, not bytes; {place}")
    if image_format(value) is not None and mangled_text(value) is None:
        return value
    try:
        return unmangle(value)
    except DecodeError as error:
        raise DecodeError(f"feature '{name}': {error}; {place}", feature=name) from error
