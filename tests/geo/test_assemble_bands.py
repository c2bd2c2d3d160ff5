"""Names and forms of the bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.geo.predictions import AFFINE, GEO_A, MIX_A, read, tile, write
from tfrio.errors import GeoError, UsageError
from tfrio.geo import Mixer, array_source, export_image, import_image
from tfrio.types import XY

if TYPE_CHECKING:
    from pathlib import Path


def test_features_of_different_sizes(tmp_path: Path) -> None:
    rows = ({"a": np.zeros(12), "b": 1.0} for _ in range(4))
    path = write(tmp_path / "p.tfrecord", rows)
    with pytest.raises(GeoError, match=r"differ in resolution or kernel: 'a': 4x3; 'b': 1x1"):
        import_image(path, tmp_path / "m.tif", mixer=MIX_A)
    rows = ({"a": tile(i).ravel(), "b": tile(i, XY(2, 2)).ravel()} for i in range(4))
    path = write(tmp_path / "q.tfrecord", rows)
    report = import_image(path, tmp_path / "m.tif", mixer=MIX_A)
    np.testing.assert_array_equal(read(report.path)[0], read(report.path)[1])
    rows = ({"a": tile(i) / 1, "b": tile(i, XY(2, 2)) / 1} for i in range(4))
    path = write(tmp_path / "r.tfrecord", ({n: v.ravel() for n, v in r.items()} for r in rows))
    with pytest.raises(UsageError, match="features of one size"):
        import_image(path, tmp_path / "m.tif", mixer=MIX_A, blend="mean", overwrite=True)


class TestCoarse:
    """Cells larger than pixels, on grids that are not plain."""

    def test_masks_and_edges(self, tmp_path: Path) -> None:
        values = GEO_A.astype(np.float32)
        values[:3, :2] = -1
        source = array_source(values, AFFINE, crs="EPSG:32618", nodata=-1)
        export_image(source, tmp_path / "a", patch=(4, 3), edge="pad")
        cells = ({"c": np.arange(2.0) + 2 * i} for i in range(9))
        path = write(tmp_path / "p.tfrecord", cells)
        report = import_image(path, tmp_path / "m.tif", mixer=tmp_path / "a", cells=(2, 1))
        found = read(report.path)[0]
        assert report.size == XY(5, 3)
        assert np.isnan(found[0, 0])
        assert found[0, 1:].tolist() == [1, 2, 3, 4]
        assert found[2].tolist() == [12, 13, 14, 15, 16]

    def test_a_grid_that_has_no_cells(self, tmp_path: Path) -> None:
        source = array_source(GEO_A, AFFINE, crs="EPSG:32618")
        export_image(source, tmp_path / "a", patch=(4, 3), edge="shift")
        path = write(tmp_path / "p.tfrecord", ({"c": 1.0} for _ in range(9)))
        with pytest.raises(GeoError, match="do not begin at multiples of 4x3 pixels"):
            import_image(path, tmp_path / "m.tif", mixer=tmp_path / "a")

    def test_merged_cells_must_meet(self, tmp_path: Path) -> None:
        east = Mixer("EPSG:32618", AFFINE._replace(c=500_270), XY(4, 3), 1, 2)
        paths = [write(tmp_path / f"{n}.tfrecord", ({"c": 1.0} for _ in range(n))) for n in (4, 2)]
        with pytest.raises(GeoError, match="do not meet at multiples of 4x3 pixels"):
            import_image(paths, tmp_path / "m.tif", mixer=[MIX_A, east])
        with pytest.raises(UsageError, match="resolution of the pixels"):
            import_image(paths[0], tmp_path / "m.tif", mixer=MIX_A, blend="mean")


def test_merged_predictions_have_the_same_bands(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / "a.tfrecord", ({"a": tile(i).ravel()} for i in range(4))),
        write(tmp_path / "b.tfrecord", ({"b": tile(i).ravel()} for i in range(4))),
    ]
    north = Mixer("EPSG:32618", AFFINE._replace(f=4_500_180), XY(4, 3), 2, 4)
    with pytest.raises(GeoError, match=r"bands b differ from a of .*a\.tfrecord"):
        import_image(paths, tmp_path / "m.tif", mixer=[MIX_A, north])


def test_blending_needs_the_order_of_the_export(tmp_path: Path) -> None:
    rows = ({"b": 1.0 * tile(i).ravel(), "patch_index": i} for i in (1, 0, 2, 3))
    path = write(tmp_path / "p.tfrecord", rows)
    with pytest.raises(UsageError, match="needs records in the order of the export"):
        import_image(path, tmp_path / "m.tif", mixer=MIX_A, blend="hann")


@pytest.mark.parametrize("compress", ["deflate", "zstd", "lzw", "none"])
@pytest.mark.parametrize("cog", [True, False])
def test_every_compression(tmp_path: Path, compress: str, cog: bool) -> None:
    rows = ({"b": tile(i).ravel(), "p": 0.5 * tile(i).ravel()} for i in range(4))
    path = write(tmp_path / "p.tfrecord", rows)
    report = import_image(
        path, tmp_path / "m.tif", mixer=MIX_A, compress=compress, cog=cog, workers=2
    )
    np.testing.assert_array_equal(read(report.path)[1], GEO_A[:6, :8] / 2)


def test_a_remote_map(tmp_path: Path) -> None:
    import fsspec

    path = write(tmp_path / "p.tfrecord", ({"b": tile(i).ravel()} for i in range(4)))
    import_image(path, "memory://maps/m.tif", mixer=MIX_A)
    data = fsspec.filesystem("memory").cat("/maps/m.tif")
    (tmp_path / "m.tif").write_bytes(data)
    np.testing.assert_array_equal(read(tmp_path / "m.tif")[0], GEO_A[:6, :8])


def test_patches_at_points(tmp_path: Path) -> None:
    from tfrio.geo import PatchesAt

    points = {
        "type": "MultiPoint",
        "coordinates": [[500_075, 4_499_955], [500_225, 4_499_865]],
    }
    source = array_source(GEO_A, AFFINE, crs="EPSG:32618")
    export_image(source, tmp_path / "a", patch=(3, 3), at=PatchesAt(where=points, crs="EPSG:32618"))
    report = import_image(tmp_path / "a", tmp_path / "m.tif", mixer=tmp_path / "a")
    found = read(report.path)[0]
    assert found.shape == GEO_A.shape
    known = found != report.nodata
    assert known.sum() == 18
    np.testing.assert_array_equal(found[known], GEO_A[known])
    assert report.missing == 70 - 18
