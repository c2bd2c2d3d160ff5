"""Images out of records: encoded ones as they are, raw ones as PNG, into a folder or a zip."""

from __future__ import annotations

import itertools
import math
import zipfile
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tfrio import storage
from tfrio.errors import MissingFeatureError, SchemaError, UsageError
from tfrio.examples.decode import read
from tfrio.tables.png import png_bytes, stretched
from tfrio.types import path_text, several, shown, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tfrio.types import PathLike, PathsLike

__all__ = ["ExtractReport", "extract_images"]

# First bytes of the formats that are written out as they are.
_MAGIC = (
    (b"\xff\xd8\xff", "jpg"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"GIF8", "gif"),
    (b"BM", "bmp"),
    (b"II*\x00", "tif"),
    (b"MM\x00*", "tif"),
)
_TINT = np.array([255, 0, 0], np.float64)


@dataclass(frozen=True, slots=True)
class ExtractReport:
    """What was extracted.

    Args:
        path: Folder or zip.
        images: Names of the images, in the order of the records.
    """

    path: str
    images: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the report as one line."""
        return f"{len(self.images):,} images -> {self.path}"


def extract_images(
    paths: PathsLike,
    out: PathLike,
    *,
    image: str,
    shape: Sequence[int] | None = None,
    layout: Literal["hwc", "chw"] = "hwc",
    mask: str | None = None,
    records: tuple[int, int] | None = None,
    overwrite: bool = False,
) -> ExtractReport:
    """Write the image of each record.

    Args:
        paths: TFRecord files.
        out: A folder, made if need be, or a name ending in ``.zip``.
        image: Feature with the image: encoded (JPEG, PNG, GIF, BMP, TIFF, WebP), or raw bytes or
            numbers.
        shape: Shape of raw images: (height, width) or with channels; None takes a square.
        layout: Where the channels of ``shape`` stand: last (``"hwc"``) or first (``"chw"``).
        mask: Feature with a raw mask of the same height and width; where it is not 0 the image is
            tinted red. For raw images.
        records: First and past-the-last record, counted over all files; None takes all.
        overwrite: Replace images, or the zip, where they exist.

    Returns:
        What was written.

    Raises:
        MissingFeatureError: A record lacks the feature.
        SchemaError: The values do not have the shape.
        UsageError: There is no such record.
        FileExistsError: An image or the zip exists and ``overwrite`` is not set.
    """
    first, stop = (0, None) if records is None else _span(records)
    names = [image] if mask is None else [image, mask]
    rows = itertools.islice(read(paths, features=None), first, stop)
    written: list[str] = []
    with _sink(path_text(out), overwrite=overwrite) as put:
        for number, row in enumerate(rows, first):
            _check(row, names, number)
            data, suffix = _file(row, image, mask, shape, layout, number)
            written.append(f"{number:06d}.{suffix}")
            put(written[-1], data)
        if not written:
            span = "" if records is None else f" {first}:{stop}, counted from 0"
            raise UsageError(f"{paths}: there are no records{span}. Nothing was written")
    return ExtractReport(path_text(out), tuple(written))


def _span(records: object) -> tuple[int, int]:
    """Return the first and the past-the-last record that a user gave."""
    ends = several(records, "records", "two numbers, first and past-the-last")
    if len(ends) != 2:
        raise UsageError(f"records must be (first, past-the-last), got {shown(records)}")
    first, stop = (whole_number(end, "records", least=0) for end in ends)
    return first, stop


@contextmanager
def _sink(out: str, *, overwrite: bool) -> Iterator[Callable[[str, bytes], object]]:
    """Give what takes a name and the bytes of a file."""
    if out.lower().endswith(".zip"):
        storage.refuse_existing(out, overwrite=overwrite)
        # Images are compressed already; zip only holds them together.
        with storage.atomic_write(out) as file, zipfile.ZipFile(file, "w") as archive:
            yield archive.writestr
        return
    folder = Path(out)

    def put(name: str, data: bytes) -> None:
        """Write a file of the folder."""
        folder.mkdir(parents=True, exist_ok=True)  # after an error in the first record: no folder
        storage.refuse_existing(folder / name, overwrite=overwrite)
        with storage.atomic_write(folder / name) as file:
            file.write(data)

    yield put


def _check(row: Mapping[str, Any], names: Sequence[str], number: int) -> None:
    for name in names:
        if name not in row:
            raise MissingFeatureError(
                f"record {number} has no feature '{name}'; it has {', '.join(sorted(row))}",
                record=number,
                feature=name,
            )


def _file(
    row: Mapping[str, Any],
    image: str,
    mask: str | None,
    shape: Sequence[int] | None,
    layout: str,
    number: int,
) -> tuple[bytes, str]:
    """Return the bytes and the suffix of one image."""
    value = row[image]
    if isinstance(value, bytes):
        suffix = encoded_suffix(value)
        if suffix is not None:
            return value, suffix
        value = np.frombuffer(value, np.uint8)
    pixels = _shaped(np.asarray(value), shape, layout, f"record {number}: feature '{image}'")
    levels = stretched(pixels)
    if mask is not None:
        levels = _tinted(levels, row[mask], f"record {number}: feature '{mask}'")
    return png_bytes(levels), "png"


def encoded_suffix(data: bytes) -> str | None:
    """Return the suffix of an encoded image by its first bytes, None where it is none."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return next((suffix for magic, suffix in _MAGIC if data.startswith(magic)), None)


def _shaped(
    values: NDArray[Any], shape: Sequence[int] | None, layout: str, what: str
) -> NDArray[Any]:
    """Return (height, width) or (height, width, channels)."""
    if shape is None:
        side = math.isqrt(values.size)
        if values.ndim == 1 and side * side != values.size:
            raise SchemaError(
                f"{what}: {values.size} values form no square. Pass shape= as height and width; "
                "patches of an export have the size that `tfrio info` tells, and their margins"
            )
        shape = values.shape if values.ndim > 1 else (side, side)
    shape = [whole_number(side, "shape") for side in several(shape, "shape", "whole numbers")]
    if len(shape) not in (2, 3):
        raise UsageError(f"shape is (height, width), or with channels; got {tuple(shape)}")
    if int(np.prod(shape)) != values.size:
        raise SchemaError(
            f"{what}: {values.size} values cannot form {tuple(shape)}. Pass the right shape="
        )
    pixels = values.reshape(tuple(shape))
    return np.moveaxis(pixels, 0, -1) if len(shape) == 3 and layout == "chw" else pixels


def _tinted(levels: NDArray[np.uint8], value: Any, what: str) -> NDArray[np.uint8]:
    """Return an RGB image, half red where the mask is not 0."""
    flat = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.asarray(value)
    mask = _shaped(flat, levels.shape[:2], "hwc", what) != 0
    grey = levels[:, :, None] if levels.ndim == 2 else levels
    color = np.repeat(grey[:, :, :1], 3, axis=2) if grey.shape[2] < 3 else grey[:, :, :3]
    tinted = np.where(mask[:, :, None], (color + _TINT) / 2, color)
    return tinted.astype(np.uint8)
