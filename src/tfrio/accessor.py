"""The accessor ``tfrio`` of xarray arrays: from the array of an export to its patches.

Loaded with ``tfrio.geo.open_export``, as xarray finds accessors by being told of them.
"""

from __future__ import annotations

from functools import partial, update_wrapper
from typing import TYPE_CHECKING

from tfrio.errors import require

if TYPE_CHECKING:
    from collections.abc import Callable

    from xarray import DataArray

    from tfrio.torch import PatchDataset

__all__ = ["ExportAccessor"]


class ExportAccessor:
    """What tfrio adds to an array that ``tfrio.geo.open_export`` made.

    Args:
        array: The array.
    """

    def __init__(self, array: DataArray) -> None:
        self._array = array

    @property
    def patches(self) -> Callable[..., PatchDataset]:
        """Open the patches of the export as a dataset of tensors; call it with its options.

        They are those of ``tfrio.torch.PatchDataset``: ``bands`` by name and in order (those that
        the array shows by default), ``label``, ``normalize``, ``augment``, ``batch_size`` ...
        """
        from tfrio.torch import PatchDataset

        made = partial(PatchDataset, self._array)
        return update_wrapper(made, PatchDataset, assigned=("__doc__", "__name__"), updated=())


require("xarray", extra="xarray").register_dataarray_accessor("tfrio")(ExportAccessor)
