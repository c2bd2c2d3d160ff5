"""Exports as lazy xarray arrays, compared with the raster they were made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tfrio
from tests.geo.predictions import AFFINE, GEO_A, MIX_A, tile, write
from tfrio.errors import GeoError, UsageError
from tfrio.geo import array_source, export_image
from tfrio.geo.assemble_open import open_export
from tfrio.types import XY

if TYPE_CHECKING:
    from pathlib import Path


def source(values: Any = GEO_A, **options: Any) -> Any:
    return array_source(values, AFFINE, crs="EPSG:32618", names=["b"], **options)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("dtype", ["float", "native"])
def test_coordinates_and_values(tmp_path: Path, compressed: bool, dtype: Any) -> None:
    export_image(source(), tmp_path / "a", patch=(4, 3), compressed=compressed, dtype=dtype)
    array = open_export(tmp_path / "a", index="memory")
    assert (array.name, array.dims, array.shape) == ("b", ("y", "x"), (6, 8))
    assert array.x[0] == 500015
    assert array.y[0] == 4499985
    assert array.attrs["crs"] == "EPSG:32618"
    assert array.attrs["transform"] == tuple(AFFINE)
    assert array.dtype == np.int16
    np.testing.assert_array_equal(array.values, GEO_A[:6, :8])
    assert array.sel(x=500195, y=4499835).item() == 506


def test_only_what_is_looked_at_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export_image(source(), tmp_path / "a", patch=(4, 3), kernel=(2, 4))
    array = open_export(tmp_path / "a", index="memory")
    asked: list[int] = []
    whole = tfrio.examples.opened.ExampleSequence.batch

    def counted(self: Any, which: Any) -> Any:
        asked.extend(which)
        return whole(self, which)

    monkeypatch.setattr(tfrio.examples.opened.ExampleSequence, "batch", counted)
    part = array[4:, 5:7]
    assert asked == []
    np.testing.assert_array_equal(part.values, GEO_A[4:6, 5:7])
    assert asked == [3]


@pytest.mark.parametrize(
    "key",
    [
        np.s_[:, ::2],
        np.s_[::-1, 3],
        np.s_[5:1:-2, -3:],
        np.s_[2, 7],
        np.s_[3:3, :],
        np.s_[[4, 0, 2], 1:5],
        np.s_[..., 0],
    ],
)
def test_every_kind_of_index(tmp_path: Path, key: Any) -> None:
    export_image(source(), tmp_path / "a", patch=(4, 3))
    array = open_export(tmp_path / "a", index="memory")
    np.testing.assert_array_equal(array[key].values, GEO_A[:6, :8][key])


@pytest.mark.parametrize(
    "options",
    [{"edge": "pad"}, {"edge": "shift"}, {"stride": (2, 2), "edge": "shift"}],
)
def test_edges(tmp_path: Path, options: Any) -> None:
    export_image(source(), tmp_path / "a", patch=(4, 3), **options)
    array = open_export(tmp_path / "a", index="memory")
    np.testing.assert_array_equal(array.values, GEO_A)


def test_several_bands_and_masks(tmp_path: Path) -> None:
    values = GEO_A.copy()
    values[1, 2] = -999
    both = array_source({"b": values, "c": GEO_A + 1}, AFFINE, crs="EPSG:32618", nodata=-999)
    export_image(both, tmp_path / "a", patch=(4, 3), default_value=-5)
    plain = open_export(tmp_path / "a", index="memory")
    assert plain.dims == ("band", "y", "x")
    assert plain.band.values.tolist() == ["b", "c"]
    assert plain.sel(band="b").values[1, 2] == -5
    masked = open_export(tmp_path / "a", masked=True, index="memory")
    assert masked.dtype == np.float32
    assert np.isnan(masked.sel(band="b").values[1, 2])
    assert np.isnan(masked.values).sum() == 1


def test_predictions_with_a_mixer_and_an_index(tmp_path: Path) -> None:
    order = [3, 1, 0, 2]
    path = write(
        tmp_path / "p.tfrecord",
        ({"v": tile(i, XY(2, 2)).ravel(), "patch_index": i} for i in order),
    )
    array = open_export(MIX_A, path, index="memory")
    assert array.dtype == np.int64
    np.testing.assert_array_equal(array.values, GEO_A[:6, :8])
    with pytest.raises(UsageError, match="pass records="):
        open_export(MIX_A)
    with pytest.raises(UsageError, match="no feature 'w' in the records; there are"):
        open_export(MIX_A, path, bands=["w"], index="memory")
    short = write(tmp_path / "s.tfrecord", ({"v": tile(i).ravel()} for i in range(3)))
    with pytest.raises(GeoError, match="mixer says 4 patches, the predictions hold 3"):
        open_export(MIX_A, short, index="memory")


def test_south_up_exports_can_be_turned(tmp_path: Path) -> None:
    south = AFFINE._replace(a=-30, e=30, f=4_499_790)
    export_image(
        array_source(GEO_A, south, crs="EPSG:32618", names=["b"]), tmp_path / "a", patch=(4, 3)
    )
    kept = open_export(tmp_path / "a", index="memory")
    turned = open_export(tmp_path / "a", north_up=True, index="memory")
    np.testing.assert_array_equal(kept.values, GEO_A[:6, :8])
    np.testing.assert_array_equal(turned.values, GEO_A[:6, :8][::-1, ::-1])
    assert turned.y[0] > turned.y[-1]
    assert turned.x[0] < turned.x[-1]
    assert turned.attrs["transform"] == (30, 0, 499_760, 0, -30, 4_499_970)
    point = {"x": 499_985, "y": 4_499_805}
    assert kept.sel(point).item() == turned.sel(point).item() == 0


def test_bytes_and_a_rotated_grid(tmp_path: Path) -> None:
    turned = AFFINE._replace(b=0.5, d=-0.5)
    values = (GEO_A % 251).astype(np.uint8)
    export_image(
        array_source(values, turned, crs="EPSG:32618"), tmp_path / "a", patch=(4, 3), dtype="native"
    )
    array = open_export(tmp_path / "a", index="memory")
    assert "x" not in array.coords
    np.testing.assert_array_equal(array.values, values[:6, :8])
