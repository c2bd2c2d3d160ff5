"""Read and write the mixer: Earth Engine's JSON file that places patches on the map.

The text written is the service's own, byte for byte: two spaces of indent, pairs and the matrix
on one line, doubles as Java prints them, no newline at the end.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tfrio import storage
from tfrio.errors import GeoError
from tfrio.geo.files import read_small
from tfrio.geo.grid import PatchGrid
from tfrio.types import XY, Affine6

if TYPE_CHECKING:
    from tfrio.types import PathLike

__all__ = ["Mixer", "java_double", "read_mixer", "write_mixer"]

_REMEDY = "Take the mixer that was written with the export, or export again"
# A mixer of the service has under 300 bytes; a WKT may add a few thousand.
_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class Mixer:
    """Where the patches of an export lie.

    Args:
        crs: CRS as the export names it: an authority code or a WKT.
        affine: Terms from pixel to map of the grid without margins; (c, f) is the outer corner
            of the first pixel.
        patch: Patch (x, y) in pixels, without the kernel's margins.
        patches_per_row: Patches side by side.
        total_patches: All patches.
    """

    crs: str
    affine: Affine6
    patch: XY
    patches_per_row: int
    total_patches: int

    @property
    def rows(self) -> int:
        """Return the number of rows of patches."""
        return self.total_patches // self.patches_per_row

    @property
    def size(self) -> XY:
        """Return the extent (x, y) of all patches in pixels."""
        return XY(self.patches_per_row * self.patch.x, self.rows * self.patch.y)

    def grid(self, kernel: XY = XY(1, 1)) -> PatchGrid:
        """Return the grid of patches, given the kernel (which no mixer tells)."""
        return PatchGrid(self.size, self.patch, kernel)

    def dumps(self) -> str:
        """Return the JSON text, byte-compatible with Earth Engine's."""
        matrix = ", ".join(java_double(term) for term in self.affine)
        return (
            "{\n"
            '  "projection": {\n'
            f'    "crs": {json.dumps(self.crs, ensure_ascii=False)},\n'
            '    "affine": {\n'
            f'      "doubleMatrix": [{matrix}]\n'
            "    }\n"
            "  },\n"
            f'  "patchDimensions": [{self.patch.x}, {self.patch.y}],\n'
            f'  "patchesPerRow": {self.patches_per_row},\n'
            f'  "totalPatches": {self.total_patches}\n'
            "}"
        )

    @classmethod
    def loads(cls, text: str | bytes, *, path: str = "mixer") -> Mixer:
        """Parse the JSON text of a mixer.

        Args:
            text: The JSON text.
            path: File name for the error.

        Returns:
            The mixer.

        Raises:
            GeoError: Not JSON, a part is missing, or numbers that cannot be.
        """
        try:
            data = json.loads(text)
        except ValueError as error:
            raise GeoError(f"{path}: not JSON ({error}). {_REMEDY}", path=path) from error
        if not isinstance(data, dict):
            raise GeoError(f"{path}: a mixer is a JSON object. {_REMEDY}", path=path)
        mixer = cls(
            crs=_crs(data, path),
            affine=_affine(data, path),
            patch=XY(*_numbers(data, "patchDimensions", 2, path)),
            patches_per_row=_number(data, "patchesPerRow", path),
            total_patches=_number(data, "totalPatches", path),
        )
        if mixer.total_patches % mixer.patches_per_row:
            raise GeoError(
                f"{path}: totalPatches {mixer.total_patches} is not a multiple of patchesPerRow "
                f"{mixer.patches_per_row}. {_REMEDY}",
                path=path,
            )
        return mixer


def _crs(data: dict[str, Any], path: str) -> str:
    projection = data.get("projection")
    crs = projection.get("crs", projection.get("wkt")) if isinstance(projection, dict) else None
    if not isinstance(crs, str) or not crs:
        raise GeoError(f"{path}: projection.crs is missing. {_REMEDY}", path=path)
    return crs


def _affine(data: dict[str, Any], path: str) -> Affine6:
    affine = data["projection"].get("affine")
    matrix = affine.get("doubleMatrix") if isinstance(affine, dict) else None
    if not isinstance(matrix, list) or len(matrix) != 6 or not all(map(_is_number, matrix)):
        found = f"{len(matrix)} terms" if isinstance(matrix, list) else "nothing"
        raise GeoError(
            f"{path}: projection.affine.doubleMatrix must hold six finite numbers "
            f"[a, b, c, d, e, f]; found {found}: {matrix!r}. {_REMEDY}",
            path=path,
        )
    terms = Affine6(*map(float, matrix))
    if terms.a * terms.e == terms.b * terms.d:
        raise GeoError(f"{path}: doubleMatrix {matrix} has pixels of no area. {_REMEDY}", path=path)
    return terms


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: object) -> bool:
    return _is_number(value) and value == int(value) and value >= 1  # type: ignore[call-overload,operator]


def _number(data: dict[str, Any], key: str, path: str) -> int:
    """Return the whole positive number that stands under a key."""
    value = data.get(key)
    if not _is_whole(value):
        raise GeoError(
            f"{path}: {key} must be a whole number of at least 1; found {value!r}. {_REMEDY}",
            path=path,
        )
    return int(value)  # type: ignore[arg-type]


def _numbers(data: dict[str, Any], key: str, count: int, path: str) -> list[int]:
    """Return whole positive numbers that stand under a key."""
    values = data.get(key)
    if not isinstance(values, list) or len(values) != count or not all(map(_is_whole, values)):
        raise GeoError(
            f"{path}: {key} must be {count} whole numbers of at least 1; found {values!r}. "
            f"{_REMEDY}",
            path=path,
        )
    return [int(v) for v in values]


def java_double(value: float) -> str:
    """Format a double as Java's ``Double.toString`` does.

    The rule (``java.lang.Double.toString``, JDK 19 and later): of the decimals that round to the
    double take those with the fewest digits, but at least two, and of them the nearest; plain
    notation from 10^-3 up to 10^7, otherwise one digit before the point and an ``E`` without plus
    sign.

    Args:
        value: Any double.

    Returns:
        The text, for example ``8.983152841195215E-5`` or ``30.0``.
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0:
        return sign + "0.0"
    digits, exponent = _shortest(abs(value))
    if not -3 <= exponent < 7:
        return f"{sign}{digits[0]}.{digits[1:]}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits.rstrip('0')}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"


def _shortest(value: float) -> tuple[str, int]:
    """Return at least two significant digits and the decimal exponent of the first."""
    two = f"{value:.1e}"
    number = Decimal(two if float(two) == value else repr(value)).normalize().as_tuple()
    digits = "".join(map(str, number.digits))
    return digits.ljust(2, "0"), len(digits) - 1 + int(number.exponent)


def read_mixer(path: PathLike) -> Mixer:
    """Read a mixer file.

    Args:
        path: The JSON file Earth Engine or tfrio wrote beside the shards.

    Returns:
        The mixer.

    Raises:
        GeoError: The file is no mixer.
    """
    return Mixer.loads(read_small(path, limit=_LARGEST), path=str(path))


def write_mixer(path: PathLike, mixer: Mixer) -> None:
    """Write a mixer file, under its final name only when whole.

    Args:
        path: Where to write.
        mixer: What to write.
    """
    with storage.atomic_write(path) as file:
        file.write(mixer.dumps().encode())
