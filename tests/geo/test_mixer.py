"""The mixer: byte for byte what Earth Engine writes."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrio.errors import GeoError
from tfrio.geo.grid import PatchGrid
from tfrio.geo.mixer import Mixer, java_double, read_mixer, write_mixer
from tfrio.types import XY, Affine6

AFFINE = Affine6(30, 0, 500000, 0, -30, 4500000)
MIX_A = Mixer("EPSG:32618", AFFINE, XY(4, 3), 2, 4)
TEXT_A = """{
  "projection": {
    "crs": "EPSG:32618",
    "affine": {
      "doubleMatrix": [30.0, 0.0, 500000.0, 0.0, -30.0, 4500000.0]
    }
  },
  "patchDimensions": [4, 3],
  "patchesPerRow": 2,
  "totalPatches": 4
}"""


def test_text_is_byte_exact() -> None:
    assert MIX_A.dumps() == TEXT_A


def test_published_doubles_keep_their_form() -> None:
    terms = [
        "0.050000000000004256", "-105.00000000000894", "20.0000000000017",
        "8.983152841195215E-5", "-111.10489198130018", "33.66643139753254",
        "2.6949458523585647E-4", "-122.70007617412975", "38.00008399118194",
        "8.983152841195215E-4", "-2.6374536741749153", "36.147308717685426",
        "13.599595086285436", "45.40175277468474", "0.0",
    ]  # fmt: skip
    assert [java_double(float(term)) for term in terms] == terms


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.0, "1.2345678E7"),
        (100.0, "100.0"),
        (1234567.5, "1234567.5"),
        (0.1, "0.1"),
        (-0.0, "-0.0"),
        (5e-324, "4.9E-324"),
        (1e23, "1.0E23"),
        (2.0**-44, "5.684341886080802E-14"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_java_double(value: float, text: str) -> None:
    assert java_double(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_java_double_reads_back_to_the_same_bits(value: float) -> None:
    back = float(java_double(value))
    assert struct.pack("<d", back) == struct.pack("<d", value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_java_double_has_a_point_and_no_plus(value: float) -> None:
    text = java_double(value)
    mantissa = text.partition("E")[0].lstrip("-")
    whole, _, fraction = mantissa.partition(".")
    assert min(len(whole), len(fraction)) > 0
    assert "+" not in text
    if "E" in text:
        assert whole in "123456789"
        assert not 1e-3 <= abs(value) < 1e7


numbers = st.integers(1, 5000)
terms = st.floats(-1e7, 1e7, allow_subnormal=False)


@given(terms, terms, numbers, numbers, numbers, numbers)
def test_round_trip_is_exact(
    c: float, f: float, width: int, height: int, columns: int, rows: int
) -> None:
    affine = Affine6(0.1 + 0.2, 0, c, 0, -1 / 3, f)
    mixer = Mixer("EPSG:4326", affine, XY(width, height), columns, columns * rows)
    assert Mixer.loads(mixer.dumps()) == mixer
    assert json.loads(mixer.dumps())["totalPatches"] == columns * rows


def test_a_wkt_survives() -> None:
    wkt = 'PROJCS["Länge \\ ü",GEOGCS["x"]]'
    mixer = Mixer(wkt, AFFINE, XY(4, 3), 2, 4)
    assert Mixer.loads(mixer.dumps()).crs == wkt


def test_grid_of_a_mixer() -> None:
    assert MIX_A.size == XY(8, 6)
    assert MIX_A.rows == 2
    assert MIX_A.grid(XY(4, 2)) == PatchGrid(XY(8, 6), XY(4, 3), XY(4, 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"projection": {"crs": "EPSG:4326", "affine": {"doubleMatrix": [1, 0, 0, 0, 1]}}},
         "six finite numbers .* found 5 terms"),
        ({"projection": {"crs": "EPSG:4326", "affine": {}}}, "six finite numbers"),
        ({"projection": {"crs": "EPSG:4326", "affine": {"doubleMatrix": [0] * 6}}}, "no area"),
        ({"projection": {"affine": {"doubleMatrix": [1, 0, 0, 0, 1, 0]}}}, "crs is missing"),
        ({"projection": None}, "crs is missing"),
        ({"patchDimensions": [4]}, "patchDimensions must be 2 whole numbers"),
        ({"patchDimensions": [4.5, 3]}, "patchDimensions must be 2 whole numbers"),
        ({"patchesPerRow": 0}, "patchesPerRow must be a whole number of at least 1; found 0"),
        ({"totalPatches": "4"}, "totalPatches must be a whole number"),
        ({"totalPatches": 5}, "not a multiple of patchesPerRow 2"),
    ],
)  # fmt: skip
def test_a_wrong_mixer_is_refused(change: dict[str, object], message: str) -> None:
    text = json.dumps({**json.loads(TEXT_A), **change})
    with pytest.raises(GeoError, match=message) as caught:
        Mixer.loads(text, path="some-mixer.json")
    assert str(caught.value).startswith("some-mixer.json: ")


@pytest.mark.parametrize("text", ["", "{", "[]", "3", b"\xff\xfe\x00"])
def test_what_is_no_json_object_is_refused(text: str | bytes) -> None:
    with pytest.raises(GeoError, match=r"not JSON|JSON object"):
        Mixer.loads(text)


def test_files_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "a-mixer.json"
    write_mixer(path, MIX_A)
    assert path.read_bytes() == TEXT_A.encode()
    assert read_mixer(path) == MIX_A


def test_a_mixer_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "mixr.json"
    with pytest.raises(FileNotFoundError) as caught:
        read_mixer(path)
    assert str(caught.value) == f"{path}: no such file. Check the path"


def test_real_mixers_come_back_byte_for_byte(shared: Path) -> None:
    files = sorted((shared / "data" / "ee").glob("*/*mixer.json"))
    files += sorted((shared / "data" / "ee" / "transcribed").glob("*pixel.json"))
    assert len(files) == 3
    for file in files:
        assert read_mixer(file).dumps().encode() == file.read_bytes(), file.name
