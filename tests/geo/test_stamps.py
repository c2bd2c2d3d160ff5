"""Stamps: what differs must be told apart, and what is the same must not."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.geo.rasters import geo_a, write_raster
from tfrio.geo.stamps import array_stamp, file_stamp, sample_stamp


def test_a_file_is_told_by_path_size_and_time(tmp_path: Path) -> None:
    one, other = tmp_path / "a.bin", tmp_path / "b.bin"
    for path in (one, other):
        path.write_bytes(b"12345")
        os.utime(path, ns=(1_000, 1_000))
    first = file_stamp(str(one), ())
    assert file_stamp(str(one), ()) == first != file_stamp(str(other), ())
    one.write_bytes(b"54321")
    os.utime(one, ns=(2_000, 2_000))
    later = file_stamp(str(one), ())
    one.write_bytes(b"1234567")
    os.utime(one, ns=(2_000, 2_000))
    assert len({first, later, file_stamp(str(one), ())}) == 3


@pytest.mark.parametrize("name", ["netcdf:{}:b", "/vsizip/{}/inner.tif", "/vsitar/{}"])
def test_names_of_gdal_lead_to_the_file_they_are_about(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(b"1")
    members = [str(path)] if name.startswith("netcdf") else [name.format(path)]
    first = file_stamp(name.format(path), members)
    path.write_bytes(b"22")
    assert file_stamp(name.format(path), members) != first


def test_a_change_in_any_member_counts(tmp_path: Path) -> None:
    mask = tmp_path / "a.tif.msk"
    mask.write_bytes(b"1")
    members = ["a.vrt", str(mask)]
    first = file_stamp("a.vrt", members)
    assert first == file_stamp("a.vrt", reversed(members))
    mask.write_bytes(b"22")
    assert file_stamp("a.vrt", members) != first


def test_an_object_is_told_by_its_size() -> None:
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    store.pipe("/stamps/a.tif", b"123")
    first = file_stamp("memory://stamps/a.tif", ())
    store.pipe("/stamps/a.tif", b"1234")
    assert file_stamp("memory://stamps/a.tif", ()) != first
    store.rm("/stamps", recursive=True)
    assert file_stamp("memory://stamps/a.tif", ()) == "memory://stamps/a.tif"
    assert file_stamp("nothing://there", ()) == "nothing://there"


def test_archives_are_opened_through_the_stamp(tmp_path: Path) -> None:
    from tfrio.geo.raster import open_raster

    inner = write_raster(tmp_path / "a.tif", geo_a())
    archive = tmp_path / "a.zip"
    found = set()
    for text in (b"x", b"longer text"):
        with zipfile.ZipFile(archive, "w") as out:
            out.write(inner, "a.tif")
            out.writestr("note.txt", text)
        found.add(open_raster(f"zip://{archive}!a.tif").stamp)
    assert len(found) == 2


def test_every_value_of_an_array_counts() -> None:
    values = geo_a()
    first = array_stamp(values)
    assert array_stamp(values.copy()) == array_stamp(np.asfortranarray(values)) == first
    values[3, 4] += 1
    assert array_stamp(values) != first


class Watched:
    """A lazy array that remembers what was read of it."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.shape = values.shape
        self.read = 0

    def __getitem__(self, key: Any) -> np.ndarray:
        piece: np.ndarray = self.values[key]
        self.read += piece.size
        return piece


@pytest.mark.parametrize("shape", [(500, 700), (9, 500, 700), (1, 3, 2), (2, 40, 33)])
def test_samples_see_both_ends_and_the_middle_and_read_little(shape: tuple[int, ...]) -> None:
    values = np.zeros(shape, "int16")
    lazy = Watched(values)
    first = sample_stamp(lazy, shape)
    assert 0 < lazy.read <= 3 * 32 * 32
    assert sample_stamp(Watched(values.copy()), shape) == first
    ends = [(0,) * len(shape), tuple((n - 1) // 2 for n in shape), tuple(n - 1 for n in shape)]
    for place in ends:
        changed = values.copy()
        changed[place] = 7
        assert sample_stamp(Watched(changed), shape) != first
