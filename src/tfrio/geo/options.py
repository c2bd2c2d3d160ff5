"""The options of an image export, checked, and Earth Engine's ``formatOptions`` translated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias, get_args

from tfrio.errors import UsageError
from tfrio.geo.grid import Edge
from tfrio.geo.naming import Naming
from tfrio.types import XY, mapping_like

__all__ = ["FORMAT_OPTIONS", "Dtype", "ExportOptions", "Pair", "from_format_options"]

Dtype: TypeAlias = Literal["float", "native"]
Pair: TypeAlias = XY | int | Sequence[int]

FORMAT_OPTIONS = {
    "patchDimensions": "patch",
    "kernelSize": "kernel",
    "compressed": "compressed",
    "maxFileSize": "max_file_size",
    "defaultValue": "default_value",
    "tensorDepths": "tensor_depths",
    "sequenceData": "sequence_data",
    "collapseBands": "collapse_bands",
    "maskedThreshold": "masked_threshold",
}
"""Earth Engine's name of each option and ours."""

_GIGABYTE = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """How patches are cut and written; see ``export_image`` for what each option means."""

    patch: XY
    kernel: XY = XY(1, 1)
    compressed: bool = True
    max_file_size: int = _GIGABYTE
    default_value: float | None = None
    tensor_depths: Mapping[str, int] | Sequence[int] | None = None
    sequence_data: bool = False
    collapse_bands: bool = False
    masked_threshold: float = 1.0
    dtype: Dtype = "float"
    edge: Edge = "drop"
    stride: XY | None = None
    naming: Naming = "drive"
    drop_masked: bool = False
    patch_index: str | None = None
    statistics: bool = False
    keep_masks: bool = True

    def __post_init__(self) -> None:
        """Check each option by itself."""
        _choice("dtype", self.dtype, get_args(Dtype))
        _choice("edge", self.edge, get_args(Edge))
        _choice("naming", self.naming, get_args(Naming))
        _whole("max_file_size", self.max_file_size)
        _number("masked_threshold", self.masked_threshold)
        if not 0 <= self.masked_threshold <= 1:
            raise UsageError(
                f"masked_threshold is a share of pixels from 0 to 1; got {self.masked_threshold!r}"
            )
        if self.patch_index is not None and not isinstance(self.patch_index, str):
            raise UsageError(f"patch_index is the name of a feature; got {self.patch_index!r}")
        if self.default_value is not None:
            _number("default_value", self.default_value)
        for name in ("compressed", "sequence_data", "collapse_bands", "statistics"):
            if not isinstance(getattr(self, name), bool):
                raise UsageError(f"{name} must be True or False; got {getattr(self, name)!r}")
        if self.sequence_data and max(self.kernel.x, self.kernel.y) > 1:
            raise UsageError(
                "sequence_data writes one record per pixel, which has no room for a kernel of "
                f"{self.kernel}. Leave out kernel or sequence_data"
            )

    def as_json(self) -> dict[str, Any]:
        """Return the options for the manifest."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: _plain(value) for name, value in found.items() if value is not None}


def _plain(value: object) -> object:
    if isinstance(value, XY):
        return [value.x, value.y]
    if isinstance(value, Mapping):
        return dict(value)
    return value


def _choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        listed = " or ".join(f'"{choice}"' for choice in choices)
        raise UsageError(f"{name} must be {listed}; got {value!r}")


def _whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise UsageError(f"{name} must be a whole number of at least 1; got {value!r}")


def _number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise UsageError(f"{name} must be a number; got {value!r}")


def from_format_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Translate Earth Engine's documented ``formatOptions``.

    Args:
        given: Options by their camelCase names, or by the client's top-level names
            (``tfrecordPatchDimensions``). The mapping is not changed.

    Returns:
        The same options by our names.

    Raises:
        UsageError: An option is unknown or given twice.
    """
    mapping_like(given, "format_options", "{'patchDimensions': [256, 256]}")
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = FORMAT_OPTIONS.get(_without_prefix(key))
        if name is None:
            raise UsageError(
                f"unknown format option {key!r}; valid ones are {', '.join(FORMAT_OPTIONS)}"
            )
        if name in found:
            raise UsageError(f"format option {_without_prefix(key)!r} is given twice")
        # The service's client takes [n] for a square, too.
        single = name in ("patch", "kernel") and isinstance(value, Sequence) and len(value) == 1
        found[name] = value[0] if single else value
    return found


def _without_prefix(key: str) -> str:
    """Return ``patchDimensions`` for ``tfrecordPatchDimensions``."""
    rest = key.removeprefix("tfrecord")
    return rest[:1].lower() + rest[1:] if rest != key else key
