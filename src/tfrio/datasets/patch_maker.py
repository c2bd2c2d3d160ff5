"""Batches of patches out of decoded features: bands stacked, masked, normalised, with their places.

Imports torch; only ``tfrio.torch`` and what it loads may import this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrio.datasets.tensors import TensorMaker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from tfrio.datasets.order import Int64
    from tfrio.datasets.patch_layout import BandLayout, PatchLayout
    from tfrio.datasets.reader import Chunk
    from tfrio.examples.schema import Schema

__all__ = ["NanNote", "PatchMaker", "Places", "View"]


class PatchMaker(TensorMaker):
    """Make batches of patches from decoded features (see ``PatchDataset``)."""

    def __init__(self, places: Places, schema: Schema, *, view: View, nans: NanNote) -> None:
        super().__init__(schema, ragged="lists", marks=view.marks)
        self._places = places
        self._layout = places.layouts[0]  # all are alike but in where patches lie
        self._view = view
        self._nans = nans

    def _columns(self, chunk: Chunk) -> dict[str, Any]:
        view, rows = self._view, chunk.batch.rows
        image = self._stack(chunk, view.bands)
        mask = self._unmasked(image)
        index, row, col = (np.empty(rows, np.int64) for _ in range(3))
        transform = np.empty((rows, 6))
        export = self._places.export[chunk.file]
        for number, layout in enumerate(self._places.layouts):
            own = np.flatnonzero(export == number)
            part = self._index(layout, chunk, own)
            index[own] = part
            row[own], col[own] = layout.places(part)
            transform[own] = layout.transforms(part, margin=not view.crop)
            self._hide(mask, layout, zip(own.tolist(), part.tolist(), strict=True))
        self._normalise(image, mask)
        columns: dict[str, Any] = {"image": self._cropped(image)}
        if view.label is not None:
            label = self._stack(chunk, (view.label,), dtype=view.label_dtype)[:, 0]
            columns["label"] = self._cropped(label)
        columns["mask"] = self._cropped(mask)
        columns |= {"index": index, "row": row, "col": col, "transform": transform}
        if len(self._places.layouts) > 1:
            columns["export"] = export
        if self._marks:
            none = np.zeros(index.size, np.bool_)
            columns["padding"] = none if chunk.padding is None else chunk.padding
        return {name: self.array(values) for name, values in columns.items()}

    def _index(self, layout: PatchLayout, chunk: Chunk, rows: NDArray[np.intp]) -> Int64:
        """Return the patch index of these rows of a chunk, all of one export."""
        if layout.index_feature:
            found: Int64 = chunk.batch[layout.index_feature][rows]
            return found
        if not layout.placed:
            return np.full(rows.size, -1, np.int64)
        order: Int64 = self._places.start[chunk.file[rows]] + chunk.record[rows]
        index: Int64 = order if layout.written is None else layout.written[order]
        return index

    def _stack(
        self, chunk: Chunk, bands: Sequence[BandLayout], *, dtype: str | None = "float32"
    ) -> NDArray[Any]:
        """Return bands as one array (rows, planes, height, width)."""
        parts = [chunk.batch[b.feature][:, b.plane : b.plane + b.depth] for b in bands]
        if len(parts) == 1:
            only: NDArray[Any] = parts[0].astype(dtype or parts[0].dtype, copy=False)
            return only
        planes = sum(band.depth for band in bands)
        stored = self._layout.stored
        out = np.empty((chunk.batch.rows, planes, stored.height, stored.width), dtype)
        at = 0
        for band, part in zip(bands, parts, strict=True):
            out[:, at : at + band.depth] = part
            at += band.depth
        return out

    def _unmasked(self, image: NDArray[Any]) -> NDArray[np.bool_]:
        """Return True where no band of the image is NaN or nodata, (rows, height, width)."""
        bad = np.isnan(image)
        self._count_nans(bad)
        if self._view.nodata is not None:
            bad |= image == np.float32(self._view.nodata)
        valid: NDArray[np.bool_] = ~bad.any(axis=1)
        return valid

    def _hide(
        self, mask: NDArray[np.bool_], layout: PatchLayout, patches: Iterable[tuple[int, int]]
    ) -> None:
        """Put False where the export masked a band that is shown, label included.

        Args:
            mask: Shape (rows, height, width); changed in place.
            layout: The export.
            patches: Row and patch index of each of its patches.
        """
        if layout.masked is None:
            return
        top, left = layout.margin.height, layout.margin.width
        names = [band.name for band in layout.bands]
        shown = [*self._view.bands, *([self._view.label] if self._view.label else [])]
        wanted = [names.index(band.name) for band in shown]
        for row, patch in patches:
            masked = layout.masked(patch)
            if masked is not None:
                _, height, width = masked.shape
                inner = mask[row, top : top + height, left : left + width]
                inner &= ~masked[wanted].any(axis=0)

    def _count_nans(self, bad: NDArray[np.bool_]) -> None:
        if self._view.nan_to is None and self._nans.text is None and bad.any():
            share = 100 * bad.mean()
            self._nans.text = (
                f"NaN in the image: {int(bad.sum())} values ({share:.1f} %) of a batch; the mask "
                "marks them. Give nan_to=0 to replace them"
            )

    def _normalise(self, image: NDArray[np.float32], mask: NDArray[np.bool_]) -> None:
        scale = self._view.scale
        if scale is not None:
            image -= scale[0]
            image /= scale[1]
        if self._view.nan_to is not None:
            np.nan_to_num(image, copy=False, nan=self._view.nan_to)
        if scale is not None and not mask.all():
            # The fill of masked pixels lies far off: the mean is the neutral value.
            image *= mask[:, None]

    def _cropped(self, values: NDArray[Any]) -> NDArray[Any]:
        if not self._view.crop:
            return values
        stored, margin = self._layout.stored, self._layout.margin
        rows = slice(margin.height, stored.height - margin.height)
        columns = slice(margin.width, stored.width - margin.width)
        return np.ascontiguousarray(values[..., rows, columns])


@dataclass(frozen=True, slots=True)
class Places:
    """Which export each file is of, and with which of its records it begins."""

    layouts: Sequence[PatchLayout]
    export: Int64
    """Number of the export of each file, shape (files,)."""
    start: Int64
    """Number within its export of the first record of each file, shape (files,)."""

    @classmethod
    def of(
        cls, layouts: Sequence[PatchLayout], paths: Sequence[str], counts: Mapping[str, int]
    ) -> Places:
        """Place files.

        Args:
            layouts: The exports.
            paths: The files, in the order of the dataset.
            counts: Records of each file.
        """
        known: dict[str, tuple[int, int]] = {}
        for number, layout in enumerate(layouts):
            before = np.cumsum([0, *(counts[path] for path in layout.paths)])
            first = (before[:-1] if layout.first is None else layout.first).tolist()
            known |= {p: (number, at) for p, at in zip(layout.paths, first, strict=True)}
        of_file = np.array([known[path] for path in paths], np.int64).reshape(-1, 2)
        return cls(layouts, of_file[:, 0], of_file[:, 1])


@dataclass(slots=True)
class NanNote:
    """What to say of NaN, once: found where batches are decoded, said where they are taken."""

    text: str | None = None
    said: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """How patches are shown."""

    bands: tuple[BandLayout, ...]
    label: BandLayout | None
    label_dtype: str | None
    scale: tuple[NDArray[np.float32], NDArray[np.float32]] | None
    nan_to: float | None
    nodata: float | None
    crop: bool
    marks: bool
