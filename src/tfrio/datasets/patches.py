"""Datasets of image patches: bands as one tensor, label, mask, and where each patch lies.

Imports torch; only ``tfrio.torch`` and what it loads may import this module.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from tfrio.datasets.patch_layout import BandLayout, PatchLayout
from tfrio.datasets.patch_maker import NanNote, PatchMaker, Places, View
from tfrio.datasets.torch_data import TFRecordDataset
from tfrio.errors import SchemaError, UsageError, warn_user
from tfrio.types import names_list, real_number
from tfrio.types import shown as shown_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from xarray import DataArray

    from tfrio.datasets.arrays import ArrayDataset
    from tfrio.datasets.plan import Plan, Uneven
    from tfrio.datasets.setup import Index, Opened, ShuffleLike
    from tfrio.datasets.state import Progress
    from tfrio.datasets.tensors import TensorBatch

__all__ = ["PatchDataset", "predictions"]


class PatchDataset(TFRecordDataset):
    """Iterate over the patches of an image export as tensors.

    Each batch is a dict: ``image`` float32 (rows, bands, height, width); ``label`` (rows, height,
    width) where asked for; ``mask`` bool (rows, height, width), True where no band, the label's
    included, is masked or NaN; ``index``, ``row`` and ``col`` of each patch in the grid;
    ``transform`` float64 (rows, 6) from its pixels to the map, in the order a, b, c, d, e, f.
    ``tfrio.mix`` joins exports that store the same bands; ``export`` then numbers them, by source.

    Args:
        export: Prefix, mixer or manifest of the export, what ``tfrio.geo.open_export`` made of it
            (whose bands, where some were chosen, are then the default), or a layout.
        kernel: Kernel (x, y) of an export without manifest; None: what its patches' size says.
        split: Split to read, where the export divided its patches.
        partial: Read the shards that are here, where others are missing. Where nothing tells which
            patches they hold, ``index``, ``row`` and ``col`` are -1, ``transform`` is NaN.
        bands: Names of the bands, in the order wanted; None: all but the label.
        label: Band to split off as the label.
        label_dtype: NumPy type of the label; None: int64 for whole numbers, else float32.
        normalize: ``True``: (value - mean) / std from the statistics of the manifest; or mean
            and standard deviation by band. Masked pixels become 0.
        nan_to: Value in place of NaN; None leaves NaN and warns once.
        nodata: Value that marks masked pixels where no manifest tells them.
        crop: Cut the kernel's margins off.
        augment: Applied to each batch, before it is yielded.
        batch_size: Patches a batch; None gives single ones, for a DataLoader to put together.
        drop_last: Leave out a last batch with fewer patches.
        shuffle: See ``ArrayDataset``; likewise ``seed``, ``uneven``, ``rank``, ``world_size``,
            ``errors``, ``verify`` and ``threads``.
        seed: Any whole number.
        uneven: What to do where the ranks do not divide the patches.
        rank: This rank.
        world_size: Number of ranks.
        errors: ``"raise"`` or ``"skip"``.
        verify: Check each payload's CRC32C.
        index: ``"auto"`` keeps an index of each file beside it, ``"memory"`` in memory only.
        threads: Threads that read ahead.

    Raises:
        GeoError: No export is found, or shards are missing.
        MissingFeatureError: There is no such band.
        UsageError: Statistics are wanted that the export does not have.
    """

    def __init__(
        self,
        export: str | Path | DataArray | PatchLayout,
        *,
        kernel: tuple[int, int] | None = None,
        split: str | None = None,
        partial: bool = False,
        bands: str | Sequence[str] | None = None,
        label: str | None = None,
        label_dtype: str | None = None,
        normalize: bool | Mapping[str, tuple[float, float]] = False,
        nan_to: float | None = None,
        nodata: float | None = None,
        crop: bool = False,
        augment: Callable[[TensorBatch], Any] | None = None,
        batch_size: int | None = 8,
        drop_last: bool = False,
        shuffle: ShuffleLike = False,
        seed: int | None = None,
        uneven: Uneven = "drop",
        rank: int | None = None,
        world_size: int | None = None,
        errors: Literal["raise", "skip"] = "raise",
        verify: bool = True,
        index: Index = "auto",
        threads: int | None = None,
    ) -> None:
        if isinstance(export, PatchLayout):
            layout = export
        else:
            layout = self.read_layout(
                export, kernel=kernel, split=split, partial=partial, index=index
            )
        names = _image_bands(layout, bands, label)
        super().__init__(
            list(layout.paths),
            schema=layout.schema([*names, *([] if label is None else [label])]),
            batch_size=batch_size,
            drop_last=drop_last,
            shuffle=shuffle,
            seed=seed,
            uneven=uneven,
            rank=rank,
            world_size=world_size,
            transform=augment,
            errors=errors,
            verify=verify,
            index=index,
            threads=threads,
        )
        self.layout = layout
        self._layouts = [layout]
        by_name = {band.name: band for band in layout.bands}
        chosen = tuple(by_name[name] for name in names)
        target = None if label is None else by_name[label]
        self._view = View(
            bands=chosen,
            label=target,
            label_dtype=_label_dtype(target, label_dtype),
            scale=_scale(chosen, normalize),
            nan_to=None if nan_to is None else real_number(nan_to, "nan_to"),
            nodata=None if nodata is None else real_number(nodata, "nodata"),
            crop=crop,
            marks=uneven == "pad",
        )
        self._nans = NanNote()

    @staticmethod
    def read_layout(
        export: str | Path | DataArray,
        *,
        kernel: tuple[int, int] | None,
        split: str | None,
        partial: bool,
        index: Index,
    ) -> PatchLayout:
        """Read the layout of an export from its side files.

        Args:
            export: Prefix, mixer, manifest or array.
            kernel: Kernel (x, y) where no manifest tells it.
            split: Split to read.
            partial: Whether shards may be missing.
            index: Where an index of each file is kept.

        Returns:
            The layout.

        Raises:
            UsageError: Always; the class in ``tfrio.torch`` can.
        """
        raise UsageError(
            f"take PatchDataset from tfrio.torch to open {export} by its name "
            f"({kernel=}, {split=}, {partial=}, {index=})"
        )

    @property
    def band_names(self) -> list[str]:
        """Return the names of the image's bands, in order."""
        return [band.name for band in self._view.bands]

    def _open(self) -> Opened:
        known = self._opened
        opened = super()._open()
        if known is None:
            files = zip(opened.paths, opened.sources.files, strict=True)
            counts = {path: file.count for path, file in files}
            held = [sum(counts[path] for path in layout.paths) for layout in self._layouts]
            if self._policy.mode == "raise":
                for layout, records in zip(self._layouts, held, strict=True):
                    layout.check_total(records)
            else:
                self._layouts = list(map(_certain, self._layouts, held))
            self._places = Places.of(self._layouts, opened.paths, counts)
        return opened

    def _adopt(self, sources: Sequence[ArrayDataset]) -> None:
        layouts = [data.layout for data in sources if isinstance(data, PatchDataset)]
        for number, layout in enumerate(layouts):
            layout.check_alike(layouts[0], [*self._shown_names()], number)
        # Parts of one export are one of them.
        self._layouts = list({layout.paths: layout for layout in layouts}.values())

    def _shown_names(self) -> Iterator[str]:
        yield from self.band_names
        if self._view.label is not None:
            yield self._view.label.name

    def _maker(self) -> PatchMaker:
        self._open()
        return PatchMaker(self._places, self._schema, view=self._view, nans=self._nans)

    def _pass(self, progress: Progress, whole: Plan) -> Iterator[Any]:
        for item in super()._pass(progress, whole):
            if self._nans.text is not None and not self._nans.said:
                self._nans.said = True
                warn_user(self._nans.text)
            yield item


def _certain(layout: PatchLayout, held: int) -> PatchLayout:
    """Return a layout that places no patch where damage hides how many records a shard had."""
    known = layout.first is not None or layout.index_feature or not layout.placed
    if known or layout.total is None or held == layout.total:
        return layout
    warn_user(
        f"{layout.paths[0]}: the shards of this export hold {held} records, its mixer says "
        f"{layout.total}: damage hides which patches are lost, so index, row and col are -1, "
        "transform is NaN. Move the damaged shard away and pass partial=True to have those of the "
        "others in their places"
    )
    return replace(layout, placed=False)


def _label_dtype(label: BandLayout | None, asked: str | None) -> str | None:
    if label is None or asked is not None:
        return asked
    if label.depth != 1:
        raise SchemaError(f"band '{label.name}' has {label.depth} planes; a label has one")
    return "int64" if label.whole else "float32"


def _image_bands(
    layout: PatchLayout, bands: str | Sequence[str] | None, label: str | None
) -> list[str]:
    """Return the names of the bands that make the image: without ``bands``, all but the label."""
    if label is not None and not isinstance(label, str):
        raise UsageError(f"label is the name of a band, got {shown_value(label)}")
    if bands is not None:
        return names_list(bands, "bands")
    shown = layout.shown or tuple(band.name for band in layout.bands)
    return [name for name in shown if name != label]


def _scale(
    bands: Sequence[BandLayout], normalize: bool | Mapping[str, tuple[float, float]]
) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
    """Return mean and standard deviation of each plane, shapes (planes, 1, 1)."""
    if normalize is False:
        return None
    means: list[float] = []
    stds: list[float] = []
    for band in bands:
        mean, std = (band.mean, band.std) if normalize is True else _given(band, normalize)
        if mean is None or std is None:
            raise UsageError(
                f"the export has no statistics of band '{band.name}'; export with "
                "statistics=True (tfrio export image --statistics), or give normalize as a dict "
                "of band: (mean, standard deviation)"
            )
        means += [mean] * band.depth
        stds += [std or 1.0] * band.depth
    shape = (-1, 1, 1)
    return np.array(means, np.float32).reshape(shape), np.array(stds, np.float32).reshape(shape)


def _given(band: BandLayout, normalize: object) -> tuple[float, float]:
    """Return the mean and standard deviation of a band that the user gave."""
    try:
        mean, std = normalize[band.name]  # type: ignore[index]
        return float(mean), float(std)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"normalize is True, or (mean, standard deviation) of each band by name; for band "
            f"'{band.name}' got {normalize!r}"
        ) from error


def predictions(
    model: Callable[[Any], Any],
    batches: Any,
    *,
    device: Any = "cpu",
    inputs: str = "image",
) -> Iterator[tuple[torch.Tensor, Any]]:
    """Apply a model to every patch, to hand to ``tfrio.geo.write_predictions``.

    Args:
        model: A module or function of a tensor (rows, bands, height, width); it gives a tensor
            (rows, ...) or a dict of them by name.
        batches: A ``PatchDataset`` or its loader; in any order, since each patch tells its index.
        device: Where the model is.
        inputs: Entry of the batch that the model takes.

    Yields:
        For each batch the index of its patches, shape (rows,), and what the model gave for them,
        on the CPU. Patches repeated to make the ranks equal are left out.
    """
    if isinstance(model, torch.nn.Module):
        model.eval()
    with torch.inference_mode():
        for batch in batches:
            out = model(batch[inputs].to(device))
            real = slice(None) if "padding" not in batch else ~batch["padding"]
            if isinstance(out, dict):
                yield batch["index"][real], {name: part.cpu()[real] for name, part in out.items()}
            else:
                yield batch["index"][real], out.cpu()[real]
