"""Bytes to arrays and back: raw, deflated, images."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests.examples.helpers import example, put
from tfrio.errors import DecodeError, EncodeError, SchemaError
from tfrio.examples.codecs import decode_value, encode_value, fit_shape
from tfrio.examples.decode import read, read_batches
from tfrio.examples.schema import Feature

PIXELS = np.array([[(255, 0, 0), (0, 255, 0)], [(0, 0, 255), (255, 255, 255)]], np.uint8)


def png(array: np.ndarray) -> bytes:
    image = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    image.fromarray(array).save(out, format="PNG")
    return out.getvalue()


def test_a_png_of_two_by_two_known_pixels(tmp_path: Path) -> None:
    path = put(tmp_path / "a", example({"image": [png(PIXELS)]}))
    (row,) = read(path, schema={"image": Feature("bytes", codec="image")})
    assert row["image"].dtype == np.uint8
    assert (row["image"] == PIXELS).all()
    (batch,) = read_batches(path, 5, schema={"image": Feature("bytes", (2, 2, 3), codec="image")})
    assert batch["image"].shape == (1, 2, 2, 3)
    assert next(read(path))["image"] == png(PIXELS)
    with pytest.raises(SchemaError, match=r"12 values cannot form \(2,3,3\).*record 0"):
        list(read(path, schema={"image": Feature("bytes", (2, 3, 3), codec="image")}))


def test_jpeg_and_grey_and_wide_images() -> None:
    image = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    image.fromarray(np.full((5, 7, 3), 90, np.uint8)).save(out, format="JPEG")
    decoded = decode_value(out.getvalue(), Feature("bytes", codec="image"), None)
    assert decoded.shape == (5, 7, 3)
    assert abs(decoded.astype(int) - 90).max() < 3
    grey = png(np.arange(6, dtype=np.uint8).reshape(2, 3))
    assert decode_value(grey, Feature("bytes", codec="image"), None).shape == (2, 3)
    assert decode_value(grey, Feature("bytes", codec="image"), (2, 3, 1)).shape == (2, 3, 1)
    wide = np.array([[70, 60_000]], np.uint16)
    assert decode_value(png(wide), Feature("bytes", codec="image"), None).tolist() == wide.tolist()


def test_an_episode_of_two_steps(tmp_path: Path) -> None:
    images = [png(PIXELS), png(PIXELS[::-1])]
    path = put(
        tmp_path / "a",
        example(
            {
                "steps/action": [float(i) for i in range(14)],
                "steps/is_last": [0, 1],
                "steps/observation/image": images,
            }
        ),
    )
    schema = {
        "steps/action": Feature("float", (-1, 7)),
        "steps/is_last": Feature("int64", (-1,), dtype="bool"),
        "steps/observation/image": Feature("bytes", (2, 2, 3), codec="image", many=True),
    }
    (row,) = read(path, schema=schema)
    assert row["steps/action"][1].tolist() == [7, 8, 9, 10, 11, 12, 13]
    assert row["steps/is_last"].tolist() == [False, True]
    assert (row["steps/observation/image"][1] == PIXELS[::-1]).all()


def test_what_is_no_image_is_named(tmp_path: Path) -> None:
    path = put(tmp_path / "a", example({"i": [png(PIXELS)]}), example({"i": [b"no image at all"]}))
    with pytest.raises(DecodeError, match=r"feature 'i': not an image .*record 1 of"):
        list(read(path, schema={"i": Feature("bytes", codec="image")}))


@pytest.mark.parametrize(
    ("mode", "own", "named"),
    [
        ("1", (5, 7), (5, 7, 1)),
        ("L", (5, 7), (5, 7, 3)),
        ("LA", (5, 7, 2), (5, 7, 3)),
        ("P", (5, 7, 3), (5, 7, 1)),
        ("RGB", (5, 7, 3), (5, 7, 4)),
        ("RGBA", (5, 7, 4), (5, 7, 3)),
        ("CMYK", (5, 7, 3), (5, 7, 1)),
        ("I;16", (5, 7), (5, 7, 1)),
    ],
)
def test_an_image_has_its_own_channels_or_those_that_the_shape_names(
    mode: str, own: tuple[int, ...], named: tuple[int, ...]
) -> None:
    pillow = pytest.importorskip("PIL.Image")
    grey = np.arange(35, dtype=np.uint8).reshape(5, 7) * 7
    made = pillow.fromarray(grey.astype(np.uint16) * 250 if mode == "I;16" else grey)
    out = io.BytesIO()
    (made if mode in ("I;16", "L") else made.convert("RGB").convert(mode)).save(
        out, format="TIFF" if mode == "CMYK" else "PNG"
    )
    feature = Feature("bytes", codec="image")
    decoded = decode_value(out.getvalue(), feature, None)
    assert decoded.shape == own
    assert decoded.dtype == (np.uint16 if mode == "I;16" else np.uint8)
    as_named = decode_value(out.getvalue(), feature, named)
    assert as_named.shape == named
    if mode in ("L", "LA"):
        assert (as_named == grey[:, :, None]).all()


def test_a_palette_with_clear_colours_is_rgba_and_warns_of_nothing() -> None:
    pillow = pytest.importorskip("PIL.Image")
    rgba = np.zeros((5, 7, 4), np.uint8)
    rgba[:, 3:] = (10, 200, 30, 255)
    out = io.BytesIO()
    pillow.fromarray(rgba).quantize(4).save(out, format="PNG")
    assert pillow.open(io.BytesIO(out.getvalue())).mode == "P"
    feature = Feature("bytes", codec="image")
    assert (decode_value(out.getvalue(), feature, None) == rgba).all()
    assert decode_value(out.getvalue(), feature, (5, 7, 3)).shape == (5, 7, 3)


def test_raw_bytes_of_the_wrong_length(tmp_path: Path) -> None:
    feature = Feature("bytes", (3,), codec="raw", dtype="int16")
    with pytest.raises(DecodeError, match="5 bytes are no whole int16 values"):
        decode_value(b"12345", feature, (3,))
    with pytest.raises(DecodeError, match='look like PNG: declare codec="image"'):
        decode_value(b"\x89PNG\r\n\x1a\nx", feature, (3,))
    path = put(tmp_path / "a", example({"a": [b"123456"]}), example({"a": [b"1234"]}))
    with pytest.raises(SchemaError, match=r"2 values cannot form \(3,\).*record 1 of"):
        list(read_batches(path, 5, schema={"a": feature}))


def test_absent_arrays_are_zero_in_a_batch_and_none_in_a_row(tmp_path: Path) -> None:
    value = np.arange(3, dtype=np.int16)
    path = put(tmp_path / "a", example({"a": [value.tobytes()]}), example({"x": [1]}))
    feature = Feature("bytes", (3,), codec="raw", dtype="int16", required=False)
    (batch,) = read_batches(path, 5, schema={"a": feature})
    assert batch["a"].tolist() == [[0, 1, 2], [0, 0, 0]]
    assert batch.present["a"].tolist() == [True, False]
    assert [row["a"] is None for row in read(path, schema={"a": feature})] == [False, True]


def test_a_deflated_value_inflates_to_no_more_than_its_shape() -> None:
    feature = Feature("bytes", (4,), codec="zlib", dtype="uint8")
    assert decode_value(zlib.compress(b"abcd"), feature, (4,)).tolist() == list(b"abcd")
    with pytest.raises(DecodeError, match="more than the 4 bytes"):
        decode_value(zlib.compress(bytes(1 << 20)), feature, (4,))
    with pytest.raises(DecodeError, match="not a zlib stream"):
        decode_value(b"abcd", feature, (4,))
    with pytest.raises(SchemaError, match="2 values cannot form"):
        decode_value(zlib.compress(b"ab"), feature, (4,))


def test_fit_shape() -> None:
    array = np.arange(12)
    assert fit_shape(array, None) is array
    assert fit_shape(array, (3, -1)).shape == (3, 4)
    assert fit_shape(array[:0], (0, -1)).shape == (0, 0)
    assert fit_shape(array, (12,)) is array
    assert fit_shape(np.zeros(0), (0, 5)).shape == (0, 5)
    with pytest.raises(SchemaError, match=r"12 values cannot form \(5,\); 12 = 3"):
        fit_shape(array, (5,))
    with pytest.raises(SchemaError, match=r"66049 values cannot form \(256,256\); 66049 = 257"):
        fit_shape(np.zeros(257 * 257), (256, 256))


def test_encoding_refuses_what_would_change() -> None:
    raw = Feature("bytes", (2,), codec="raw", dtype="uint8")
    assert encode_value(b"as it is", raw) == b"as it is"
    assert encode_value([1, 255], raw) == b"\x01\xff"
    with pytest.raises(EncodeError, match="do not fit dtype uint8 unchanged"):
        encode_value([1, 256], raw)
    with pytest.raises(EncodeError, match="do not fit dtype uint8 unchanged"):
        encode_value([1, float("nan")], raw)
    with pytest.raises(EncodeError, match="do not fit dtype uint8 unchanged"):
        encode_value(["a", "b"], raw)
    pytest.importorskip("PIL")
    with pytest.raises(EncodeError, match="uint8 or uint16 pixels"):
        encode_value(np.zeros((2, 2)), Feature("bytes", codec="image", dtype="float64"))
    image = Feature("bytes", (2, 3, 1), codec="image")
    array = np.arange(6, dtype=np.uint8).reshape(2, 3, 1)
    assert (decode_value(encode_value(array, image), image, (2, 3, 1)) == array).all()


def test_a_huge_image_is_refused_with_the_way_out():
    pillow = pytest.importorskip("PIL.Image")
    header = struct.pack(">IIBBBBB", 100_000, 90_000, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    png = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", len(header)) + chunk
    png += struct.pack(">II", zlib.crc32(chunk), 0) + b"IDAT" + bytes(8)
    feature = Feature("bytes", codec="image")
    with pytest.raises(DecodeError, match="MAX_IMAGE_PIXELS"):
        decode_value(png, feature, None)
    assert pillow.MAX_IMAGE_PIXELS < 100_000 * 90_000
    with pytest.raises(DecodeError, match=r"not an image that Pillow can read \(starts 6e 6f\)$"):
        decode_value(b"no", feature, None)
