"""Write predictions as TFRecord in the order of the export, whatever order they come in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.errors import GeoError, UsageError, listed
from tfrio.examples.writer import Writer
from tfrio.geo.assemble_target import resolve_target
from tfrio.geo.grid import margin_of
from tfrio.storage import Closing
from tfrio.types import XY, path_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tfrio.geo.assemble_target import ExportLike
    from tfrio.geo.options import Pair
    from tfrio.types import PathLike

__all__ = ["PredictionWriter", "PredictionsReport", "write_predictions"]


@dataclass(frozen=True, slots=True)
class PredictionsReport:
    """What was written.

    Args:
        path: The TFRecord file.
        records: Records in it, one a patch, in the order of the export.
        features: Their features.
        indexed: Whether records carry the index of their patch, because some are missing.
    """

    path: str
    records: int
    features: tuple[str, ...]
    indexed: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the report as one line."""
        return f"{self.records:,} patches of {', '.join(self.features)} -> {self.path}"


class PredictionWriter(Closing):
    """Take predictions batch by batch, in any order, and write them in that of the export.

    Patches that come early wait in memory until those before them have come. Margins are cut
    off. The file appears when the block ends well and every patch has come.

    Args:
        path: TFRecord file; gzip where the name ends in ``.gz``.
        mixer: The export: a mixer or manifest (file or object), its prefix or folder.
        kernel: Kernel (x, y) of padded predictions; that of the manifest by default.
        partial: Whether patches may be missing; records then carry ``patch_index``.

    Raises:
        GeoError: The export is not found.
    """

    def __init__(
        self,
        path: PathLike,
        *,
        mixer: ExportLike,
        kernel: Pair | None = None,
        partial: bool = False,
    ) -> None:
        self._target = resolve_target(mixer, path_text(path))
        given = None if kernel is None else XY.of(kernel, name="kernel")
        self._kernel = given or self._target.kernel
        self._partial = partial
        self._positions = {index: place for place, index in enumerate(self._target.written)}
        self._waiting: dict[int, dict[str, NDArray[Any]]] = {}
        self._seen: set[int] = set()
        self._next = 0
        self._features: tuple[str, ...] = ()
        # The order of the features is that of the bands, on the map and in Earth Engine.
        self._writer = Writer(path, sort=False)
        self.path = path_text(path)

    def write(self, predictions: Any, *, index: Sequence[int] | Any | None = None) -> None:
        """Take a batch.

        Args:
            predictions: Arrays or torch tensors by feature name: (n, height, width), several
                planes (n, depth, height, width), or one value a patch (n,). A single array is
                called ``prediction``.
            index: Patch index of each, shape (n,); None continues where the last batch ended.

        Raises:
            GeoError: Arrays are no patches of this export, or a patch comes twice.
            UsageError: Arrays differ in length or names.
        """
        arrays = _arrays(predictions)
        rows = len(next(iter(arrays.values())))
        indices = self._indices(index, rows)
        flat = {name: self._flat(name, array) for name, array in arrays.items()}
        for row, position in enumerate(indices):
            self._waiting[position] = {name: values[row] for name, values in flat.items()}
        self._drain()

    def _indices(self, index: Any, rows: int) -> list[int]:
        if index is None:
            start = len(self._seen)
            positions = list(range(start, start + rows))
            numbers = positions
        else:
            numbers = [int(value) for value in _numpy(index).ravel().tolist()]
            if len(numbers) != rows:
                raise UsageError(f"{rows} predictions need as many indices; got {len(numbers)}")
            positions = [self._positions.get(number, -1) for number in numbers]
        for number, position in zip(numbers, positions, strict=True):
            if not 0 <= position < len(self._positions):
                raise GeoError(
                    f"patch {number} is none of the {len(self._positions)} patches of "
                    f"{self._target.name}. Pass the patch indices of this export as index="
                )
            if position in self._seen:
                raise GeoError(f"patch {number} is predicted twice; write each patch once")
            self._seen.add(position)
        return positions

    def _flat(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """Return one row of values a patch, without margins."""
        if array.ndim == 1 or array.shape[1:] == (1,):
            return array.reshape(len(array), 1)
        patch = self._target.patch.shape
        wanted = (patch.height, patch.width)
        if array.ndim in (3, 4) and array.shape[-2:] == wanted:
            return array.reshape(len(array), -1)
        margin = margin_of(self._kernel or XY(1, 1))
        padded = (wanted[0] + 2 * margin.y, wanted[1] + 2 * margin.x)
        if array.ndim in (3, 4) and array.shape[-2:] == padded:
            rows = slice(margin.y, padded[0] - margin.y)
            columns = slice(margin.x, padded[1] - margin.x)
            return array[..., rows, columns].reshape(len(array), -1)
        raise GeoError(
            f"'{name}' has shape {array.shape}: patches are (n, height, width) = (n, "
            f"{wanted[0]}, {wanted[1]}){self._other_shapes(array, wanted, padded)}",
            feature=name,
        )

    def _other_shapes(
        self, array: NDArray[Any], wanted: tuple[int, int], padded: tuple[int, int]
    ) -> str:
        swapped = {wanted[::-1], padded[::-1]}
        if array.ndim in (3, 4) and array.shape[-2:] in swapped:
            return ". Height and width are swapped: transpose the last two axes"
        if array.ndim == 4 and array.shape[1:3] in (wanted, padded):
            return ". Planes come before height and width: np.moveaxis(array, -1, 1)"
        with_margin = f", or with margins (n, {padded[0]}, {padded[1]})" if padded != wanted else ""
        return f"{with_margin}. Pass kernel= for other margins"

    def _drain(self) -> None:
        """Write the patches that are next in order."""
        ready = []
        while self._next in self._waiting:
            ready.append(self._waiting.pop(self._next))
            self._next += 1
        if ready and not self._partial:
            self._put(ready, None)
        elif ready:
            self._put(ready, list(range(self._next - len(ready), self._next)))

    def _put(self, rows: list[dict[str, NDArray[Any]]], positions: list[int] | None) -> None:
        names = tuple(rows[0])
        self._features = self._features or names
        if any(tuple(row) != self._features for row in rows):
            raise UsageError(f"every batch needs the features {', '.join(self._features)}")
        columns: dict[str, Any] = {name: np.stack([row[name] for row in rows]) for name in names}
        if positions is not None:
            columns["patch_index"] = np.array([self._target.written[p] for p in positions])
        self._writer.write_batch(columns)

    def close(self) -> PredictionsReport:
        """Complete the file.

        Returns:
            What was written.

        Raises:
            GeoError: Patches are missing and ``partial`` is False.
        """
        if not self._writer.closed:
            self._check_whole()
            for position in sorted(self._waiting):
                self._put([self._waiting.pop(position)], [position])
            self._writer.close()
        return PredictionsReport(
            self.path, self._writer.records, self._features, indexed=self._partial
        )

    def _check_whole(self) -> None:
        missing = [i for i, place in self._positions.items() if place not in self._seen]
        if missing and not self._partial:
            raise GeoError(
                f"{self._target.name}: {len(self._positions)} patches were exported, "
                f"{len(self._seen)} predicted; missing: {listed(missing)}. "
                "Predict them all, or pass partial=True"
            )

    def abort(self) -> None:
        """Give up; nothing is left."""
        self._writer.abort()


def write_predictions(
    path: PathLike,
    predictions: Any,
    *,
    mixer: ExportLike,
    index: Sequence[int] | Any | None = None,
    kernel: Pair | None = None,
    partial: bool = False,
) -> PredictionsReport:
    """Write predictions as TFRecord, one record a patch, in the order of the export.

    That order, and patches without margins, are what ``import_image`` and Earth Engine's upload
    expect; feature names become band names.

    Args:
        path: TFRecord file; gzip where the name ends in ``.gz``.
        predictions: Arrays or torch tensors by feature name: (n, height, width), several planes
            (n, depth, height, width), or one value a patch (n,). Or an iterable of (indices,
            arrays) batches, in any order.
        mixer: The export: a mixer or manifest (file or object), its prefix or folder.
        index: Patch index of each prediction, shape (n,); None where they are in order.
        kernel: Kernel (x, y) of padded predictions; that of the manifest by default.
        partial: Whether patches may be missing; records then carry ``patch_index``.

    Returns:
        What was written.

    Raises:
        GeoError: Predictions are no patches of this export, or patches are missing.
    """
    with PredictionWriter(path, mixer=mixer, kernel=kernel, partial=partial) as writer:
        for indices, arrays in _batches(predictions, index):
            writer.write(arrays, index=indices)
        return writer.close()


def _batches(predictions: Any, index: Any) -> Iterator[tuple[Any, Any]]:
    array = hasattr(predictions, "shape") or isinstance(predictions, Mapping)
    if array:
        yield index, predictions
        return
    if not isinstance(predictions, Iterable) or isinstance(predictions, str | bytes):
        raise UsageError(f"predictions are arrays by name or batches; got {predictions!r}")
    if index is not None:
        raise UsageError("batches bring their own indices; leave index= out")
    for batch in predictions:
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise UsageError(
                f"a batch of predictions is a pair (indices, arrays); got a {type(batch).__name__}"
            )
        yield batch[0], batch[1]


def _arrays(predictions: Any) -> dict[str, NDArray[Any]]:
    named = predictions if isinstance(predictions, Mapping) else {"prediction": predictions}
    arrays = {str(name): _numpy(value) for name, value in named.items()}
    lengths = {name: len(array) if array.ndim else -1 for name, array in arrays.items()}
    if not arrays or len(set(lengths.values())) > 1 or -1 in lengths.values():
        raise UsageError(f"predictions need arrays of one length, the patches first; got {lengths}")
    return arrays


def _numpy(value: Any) -> NDArray[Any]:
    """Return an array; a torch tensor is taken off its graph and device."""
    for step in ("detach", "cpu"):
        value = getattr(value, step)() if hasattr(value, step) else value
    # NumPy has no bfloat16, which automatic mixed precision gives; float32 holds it exactly.
    return np.asarray(
        value.float() if str(getattr(value, "dtype", "")) == "torch.bfloat16" else value
    )
