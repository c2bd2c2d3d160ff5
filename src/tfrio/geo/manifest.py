"""The manifest: what a mixer cannot say, as one JSON file beside it.

A mixer lacks kernel, bands, dtypes, dropped patches and masks. ``PREFIX-manifest.json`` carries
these together with a digest of each shard and the options of the export.
"""

from __future__ import annotations

import base64
import math
import zlib
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from tfrio import storage
from tfrio.errors import GeoError
from tfrio.geo.files import read_small
from tfrio.geo.grid import Edge, PatchGrid, Window
from tfrio.geo.mixer import Mixer
from tfrio.types import XY, Affine6

if TYPE_CHECKING:
    import numpy.typing as npt

    from tfrio.types import PathLike, Shape

__all__ = [
    "FORMAT",
    "Account",
    "BandRow",
    "BandStatistics",
    "GridRow",
    "Manifest",
    "ShardRow",
    "decode_mask",
    "encode_mask",
    "is_of_table",
    "json_number",
    "read_manifest",
    "write_manifest",
]

FORMAT = "tfrio-manifest/1"
_NONE, _ALL = "", "*"
# A mask of a 100,000 x 100,000 raster packs into less.
_LARGEST = 1 << 32


class BandRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One exported band.

    Args:
        name: Band name.
        dtype: NumPy dtype of the source.
        feature: Feature that holds it (the first band's name when bands are collapsed).
        kind: ``"bytes"``, ``"float"`` or ``"int64"``.
        stored: NumPy dtype of the stored values.
        fill: Value written where the band is masked; as text where JSON has no number for it.
        nodata: Nodata value of the source, None where it has none; text likewise.
        depth: Length of an array band's tensor; None for a scalar band, 0 where it varies.
    """

    name: str
    dtype: str
    feature: str
    kind: Literal["bytes", "float", "int64"]
    stored: str
    fill: float | str = 0.0
    nodata: float | str | None = None
    depth: int | None = None

    @property
    def fill_value(self) -> float:
        """Return the fill as a number."""
        return float(self.fill)

    @property
    def nodata_value(self) -> float | None:
        """Return the nodata value as a number."""
        return None if self.nodata is None else float(self.nodata)


def json_number(value: float) -> float | str:
    """Return a number as JSON can hold it: NaN and infinities become text."""
    return value if math.isfinite(value) else str(value)


class GridRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the patches lie.

    Args:
        crs: CRS as the mixer names it.
        affine: Six terms [a, b, c, d, e, f] from pixel to map, origin at the outer corner.
        size: Raster (x, y) in pixels.
        patch: Patch (x, y) without margins.
        kernel: Kernel (x, y).
        stride: Step (x, y) where it is not the patch.
        edge: Edge rule.
        origins: Upper left pixel (column, row) of each patch where they follow no grid.
    """

    crs: str
    affine: tuple[float, float, float, float, float, float]
    size: tuple[int, int]
    patch: tuple[int, int]
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] | None = None
    edge: Edge = "drop"
    origins: list[tuple[int, int]] | None = None


class BandStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of a band over the pixels exported, masked ones and margins left out.

    Args:
        count: Valid pixels.
        min: Smallest value, None when no pixel is valid.
        max: Largest value.
        mean: Mean.
        std: Standard deviation of the population.
    """

    count: int
    min: float | None
    max: float | None
    mean: float | None
    std: float | None


class ShardRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One shard.

    Args:
        name: File name, without folder.
        records: Records in it.
        first: Number of its first record within the export.
        bytes: Bytes before compression, framing included.
        size: Bytes of the file.
        digest: Digest of the file, ``crc32c:`` and eight hexadecimal digits.
        split: ``"train"`` or ``"validation"`` where patches were divided.
    """

    name: str
    records: int
    first: int
    bytes: int
    size: int
    digest: str
    split: str = ""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """An account of pixels.

    Args:
        patches: Patches written.
        pixels: Pixels of the grid.
        covered: Pixels within the patches of the grid, each counted once.
        dropped: Pixels in no patch.
        masked: Pixels of the written patches masked in at least one band.
    """

    patches: int
    pixels: int
    covered: int
    dropped: int
    masked: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What an export holds.

    Args:
        format: Version of this format.
        software: Who wrote it.
        source: Names of the sources.
        grid: Where the patches lie.
        bands: Exported bands, in order.
        layout: ``"patch"``: one Example per patch; ``"pixel"``: one SequenceExample per pixel.
        collapsed: Whether all bands are one tensor named after the first.
        index_feature: Feature that holds each patch's index, if written.
        kept: Indices of the patches written, in order, where some were left out.
        masks: Masked pixels by patch index (see ``encode_mask``); a patch not listed has none.
        statistics: Statistics by band name.
        account: Account of pixels.
        shards: Shards, in order.
        options: The options of the export as given.
    """

    format: str = FORMAT
    software: str = ""
    source: list[str] = []
    grid: GridRow
    bands: list[BandRow]
    layout: Literal["patch", "pixel"] = "patch"
    collapsed: bool = False
    index_feature: str = ""
    kept: list[int] | None = None
    masks: dict[int, list[str]] = {}
    statistics: dict[str, BandStatistics] = {}
    account: Account
    shards: list[ShardRow] = []
    options: dict[str, Any] = {}

    @property
    def affine(self) -> Affine6:
        """Return the affine of the grid."""
        return Affine6(*self.grid.affine)

    @property
    def crs(self) -> str:
        """Return the CRS as written."""
        return self.grid.crs

    def patch_grid(self) -> PatchGrid:
        """Return the grid of patches.

        Raises:
            GeoError: The patches follow no grid.
        """
        row = self.grid
        if row.origins is not None:
            raise GeoError("these patches were taken at points and follow no grid")
        stride = XY(*row.stride) if row.stride else None
        return PatchGrid(XY(*row.size), XY(*row.patch), XY(*row.kernel), stride, row.edge)

    @property
    def total_patches(self) -> int:
        """Return the number of patches of the grid, those left out included."""
        if self.grid.origins is not None:
            return len(self.grid.origins)
        return self.patch_grid().total

    @property
    def written(self) -> list[int]:
        """Return the index of each patch written, in the order of the records."""
        return list(range(self.total_patches)) if self.kept is None else self.kept

    def window(self, index: int) -> Window:
        """Return the pixels of a patch, without margin."""
        origins = self.grid.origins
        if origins is not None:
            return Window(*origins[index], *self.grid.patch)
        return self.patch_grid().window(index)

    def mixer(self) -> Mixer | None:
        """Return the mixer of the whole grid, None where none can describe it."""
        if self.grid.origins is not None or self.kept is not None:
            return None
        grid = self.patch_grid()
        if not grid.regular or not grid.total:
            return None
        return Mixer(self.crs, self.affine, grid.patch, grid.columns, grid.total)

    def masked(self, index: int) -> npt.NDArray[np.bool_]:
        """Return where a patch is masked.

        Args:
            index: Index of the patch in the grid.

        Returns:
            Booleans (bands, height, width) without margin, True where masked.
        """
        return decode_mask(
            self.masks.get(index, [_NONE]), len(self.bands), XY(*self.grid.patch).shape
        )


def encode_mask(masked: npt.NDArray[np.bool_]) -> list[str]:
    """Pack where a patch is masked into text.

    Args:
        masked: Booleans (bands, height, width), True where masked.

    Returns:
        One entry when all bands agree, otherwise one for each band: ``""`` nothing masked,
        ``"*"`` all masked, else base64 of zlib of the bits, row-major, highest bit first.
    """
    alike = bool((masked == masked[:1]).all())
    return [_encode_band(band) for band in (masked[:1] if alike else masked)]


def _encode_band(masked: npt.NDArray[np.bool_]) -> str:
    if not masked.any():
        return _NONE
    if masked.all():
        return _ALL
    packed = zlib.compress(np.packbits(masked).tobytes(), 6)
    return base64.b64encode(packed).decode("ascii")


def decode_mask(entries: list[str], bands: int, shape: Shape) -> npt.NDArray[np.bool_]:
    """Unpack what ``encode_mask`` packed.

    Args:
        entries: One entry for all bands, or one for each.
        bands: Number of bands.
        shape: Shape of the patch.

    Returns:
        Booleans (bands, height, width), True where masked.

    Raises:
        GeoError: The entries fit neither the bands nor the shape.
    """
    if len(entries) not in (1, bands):
        raise GeoError(f"a mask of {len(entries)} bands does not fit {bands} bands")
    each = [_decode_band(entry, shape) for entry in entries]
    full = (bands, shape.height, shape.width)
    return np.broadcast_to(np.stack(each), full).copy()


def _decode_band(entry: str, shape: Shape) -> npt.NDArray[np.bool_]:
    if entry in (_NONE, _ALL):
        return np.full((shape.height, shape.width), entry == _ALL)
    whole = (shape.size + 7) // 8
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(base64.b64decode(entry, validate=True), whole + 1)
    except (ValueError, zlib.error) as error:
        raise GeoError(f"a mask of the manifest is damaged ({error})") from error
    if len(raw) != whole:
        raise GeoError(f"a mask of the manifest has not the {whole} bytes its patch needs")
    bits = np.unpackbits(np.frombuffer(raw, np.uint8), count=shape.size)
    return bits.reshape(shape.height, shape.width).astype(np.bool_)


def read_manifest(path: PathLike) -> Manifest:
    """Read a manifest.

    Args:
        path: The file ``PREFIX-manifest.json``.

    Returns:
        The manifest.

    Raises:
        GeoError: The file is no manifest, or one of a later version.
    """
    data = read_small(path, limit=_LARGEST)
    try:
        version = msgspec.json.decode(data, type=_Version).format
        if version.partition("/")[0] != FORMAT.partition("/")[0]:
            raise GeoError(
                f"{path}: a manifest of format {version!r}, which is not that of an image export. "
                "Name the mixer or manifest of the export",
                path=str(path),
            )
        if version != FORMAT:
            raise GeoError(
                f"{path}: manifest of format {version!r}, this version reads {FORMAT!r}. "
                "Install a newer tfrio",
                path=str(path),
            )
        return msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise GeoError(
            f"{path}: not a manifest of tfrio ({error}). Give the file PREFIX-manifest.json",
            path=str(path),
        ) from error


class _Version(msgspec.Struct):
    format: str


def write_manifest(path: PathLike, manifest: Manifest) -> None:
    """Write a manifest, under its final name only when whole.

    Args:
        path: Where to write.
        manifest: What to write.
    """
    text = msgspec.json.format(msgspec.json.encode(manifest, enc_hook=_plain), indent=1)
    with storage.atomic_write(path) as file:
        file.write(text + b"\n")


def _plain(value: object) -> object:
    """Return a NumPy scalar, which users may give wherever a number goes, as a plain number."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} has no place in a manifest")


def is_of_table(path: PathLike) -> bool:
    """Tell whether a side file is the manifest of a table: one with columns and no grid.

    Args:
        path: The file.

    Returns:
        False too for what is no JSON: reading it as what it claims to be tells what is wrong.
    """
    try:
        data = msgspec.json.decode(read_small(path, limit=_LARGEST))
    except (GeoError, msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return isinstance(data, dict) and "columns" in data and "grid" not in data
