"""One bytes value to one array and back: raw bytes, deflated bytes, images, TensorProto."""

from __future__ import annotations

import io
import math
import zlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tfrio.errors import DecodeError, EncodeError, SchemaError, listed, require
from tfrio.examples.exact import refuse_masked
from tfrio.examples.images import image_format, mangled_text
from tfrio.examples.tensorproto import decode_tensor, encode_tensor

if TYPE_CHECKING:
    from tfrio.examples.columns import Array
    from tfrio.examples.schema import Feature

__all__ = ["decode_value", "encode_value", "fit_shape", "misfit_text"]

# Pillow modes whose pixels NumPy takes as they are; others are converted.
_PLAIN_MODES: Final = ("L", "RGB", "RGBA", "LA")
_WIDE_MODES: Final = ("I;16", "I;16B", "I", "F")  # more than 8 bits a pixel, one channel
_CHANNELS: Final = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def decode_value(value: bytes, feature: Feature, shape: tuple[int, ...] | None) -> Array:
    """Decode one bytes value by the codec of its feature.

    Args:
        value: The stored bytes.
        feature: Codec, dtype and byte order.
        shape: Shape wanted, at most one axis -1; None as decoded.

    Returns:
        The array, in the feature's dtype.

    Raises:
        DecodeError: The bytes are not what the codec expects.
        SchemaError: The array does not have the shape wanted.
    """
    if feature.codec == "image":
        return fit_shape(_decode_image(value, shape), shape)
    if feature.codec == "tensor":
        array = decode_tensor(value)
        cast = array if feature.dtype is None else array.astype(feature.dtype)
        return fit_shape(cast, shape)
    if feature.codec == "zlib":
        value = _inflate(value, feature, shape)
    return fit_shape(_from_bytes(value, feature), shape)


def encode_value(value: Any, feature: Feature) -> bytes:
    """Encode one array by the codec of its feature, the inverse of ``decode_value``.

    Args:
        value: An array; bytes pass as they are, taken for encoded already.
        feature: Codec, dtype, shape and byte order.

    Returns:
        The bytes to store.

    Raises:
        EncodeError: The array's type or shape is not the feature's.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    refuse_masked(value)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:  # lists of differing length
        raise EncodeError(f"{feature.codec} needs an array: {error}") from error
    _check_encodable(array, feature)
    if feature.codec == "image":
        return _encode_image(array)
    if feature.codec == "tensor":
        return encode_tensor(array if feature.dtype is None else array.astype(feature.dtype))
    stored = array.astype(np.dtype(feature.dtype).newbyteorder(feature.byte_order), copy=False)
    data = np.ascontiguousarray(stored).tobytes()
    return zlib.compress(data) if feature.codec == "zlib" else data


def fit_shape(array: Array, shape: tuple[int, ...] | None) -> Array:
    """Give an array another shape of the same size.

    Args:
        array: Values in C order.
        shape: Shape wanted, at most one axis -1; None leaves the array.

    Returns:
        The array, reshaped.

    Raises:
        SchemaError: The values cannot form the shape; the text lists shapes they can form.
    """
    if shape is None or array.shape == shape:
        return array
    known = math.prod(d for d in shape if d >= 0)
    whole = array.size % known == 0 if -1 in shape and known else array.size == known
    if not whole:
        raise SchemaError(misfit_text(array.size, shape))
    return array.reshape(shape if known else [max(d, 0) for d in shape])


def misfit_text(size: int, shape: tuple[int, ...]) -> str:
    """Say that values cannot form a shape, and which two-dimensional shapes they can form."""
    text = f"{size} values cannot form ({','.join(map(str, shape))}{',' * (len(shape) == 1)})"
    pairs = [(a, size // a) for a in range(math.isqrt(size), 0, -1) if size % a == 0]
    ways = listed((f"{a}×{b}" for a, b in pairs), most=4)  # noqa: RUF001
    return f"{text}; {size} = {ways}" if ways else text


def _from_bytes(value: bytes, feature: Feature) -> Array:
    dtype = np.dtype(feature.dtype).newbyteorder(feature.byte_order)
    if len(value) % dtype.itemsize:
        hint = ""
        if image_format(value):
            hint = f'; the bytes look like {image_format(value)}: declare codec="image"'
        raise DecodeError(f"{len(value)} bytes are no whole {feature.dtype} values{hint}")
    array: Array = np.frombuffer(value, dtype)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _inflate(value: bytes, feature: Feature, shape: tuple[int, ...] | None) -> bytes:
    """Inflate a value, to no more than its shape holds where that is known."""
    limit = 1 << 31
    if shape is not None and all(d >= 0 for d in shape):
        limit = math.prod(shape) * np.dtype(feature.dtype).itemsize
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(value, limit + 1)
    except zlib.error as error:
        raise DecodeError(f"not a zlib stream ({error})") from error
    if len(data) > limit:
        raise DecodeError(f"inflates to more than the {limit} bytes its shape holds")
    return data


def _decode_image(value: bytes, shape: tuple[int, ...] | None) -> Array:
    pillow = require("PIL.Image", extra="images")
    if (found := mangled_text(value)) is not None:
        remedy = (
            "its bytes are lost, write it again"
            if "damaged" in found
            else "`tfrio convert --unmangle` restores it, as tfrio.examples.images.unmangle does"
        )
        raise DecodeError(f"looks like {found}: the file was written through a text type; {remedy}")
    try:
        with pillow.open(io.BytesIO(value)) as image:
            array: Array = np.array(_with_channels(image, shape))
    except pillow.DecompressionBombError as error:
        raise DecodeError(
            f"{error}; where you trust the file, raise PIL.Image.MAX_IMAGE_PIXELS"
        ) from error
    except (OSError, SyntaxError, ValueError) as error:
        start = value[:8].hex(" ")
        said = "" if isinstance(error, pillow.UnidentifiedImageError) else f": {error}"
        raise DecodeError(f"not an image that Pillow can read (starts {start}){said}") from error
    return array[:, :, None] if array.ndim == 2 and shape is not None and len(shape) == 3 else array


def _with_channels(image: Any, shape: tuple[int, ...] | None) -> Any:
    """Return an image of as many channels as the shape names; without one, of those it has."""
    channels = shape[2] if shape is not None and len(shape) == 3 else -1
    if image.mode in _WIDE_MODES:
        return image
    clear = "transparency" in image.info
    if image.mode == "P" and clear:  # Pillow keeps what is clear on this way only
        image = image.convert("RGBA")
    own = {"1": "L", "PA": "RGBA"}.get(image.mode, "RGB")
    wanted = _CHANNELS.get(channels, image.mode if image.mode in _PLAIN_MODES else own)
    return image if wanted == image.mode else image.convert(wanted)


def _encode_image(array: Array) -> bytes:
    pillow = require("PIL.Image", extra="images")
    flat = array[:, :, 0] if array.ndim == 3 and array.shape[2] == 1 else array
    if flat.dtype not in (np.uint8, np.uint16):
        raise EncodeError(f"an image has uint8 or uint16 pixels, not {flat.dtype}")
    out = io.BytesIO()
    pillow.fromarray(flat).save(out, format="PNG")
    return out.getvalue()


def _check_encodable(array: Array, feature: Feature) -> None:
    if feature.dtype is not None and not np.can_cast(array.dtype, feature.dtype, "safe"):
        with np.errstate(invalid="ignore", over="ignore"):
            cast = array.astype(feature.dtype) if array.dtype.kind in "biuf" else None
        if cast is None or not np.array_equal(cast, array, equal_nan=cast.dtype.kind == "f"):
            raise EncodeError(
                f"{array.dtype} values do not fit dtype {feature.dtype} unchanged; convert first"
            )
    wanted = feature.shape
    if wanted is None or feature.dims:
        return
    fits = len(wanted) == array.ndim and all(
        d in (-1, n) for d, n in zip(wanted, array.shape, strict=True)
    )
    if not fits:
        raise EncodeError(f"shape {array.shape} is not the schema's {wanted}")
