"""Predictions in any order become records in the order of the export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import tfrio
from tests.geo.predictions import AFFINE, GEO_A, MIX_A, read, tile
from tfrio.errors import GeoError, UsageError
from tfrio.geo import array_source, export_image, import_image
from tfrio.geo.assemble_predictions import PredictionWriter, write_predictions
from tfrio.types import XY

if TYPE_CHECKING:
    from pathlib import Path

TILES = np.stack([tile(i) for i in range(4)])


def rows_of(path: Any) -> list[dict[str, Any]]:
    return list(tfrio.read(path))


def test_any_order_comes_out_in_that_of_the_export(tmp_path: Path) -> None:
    order = [2, 0, 3, 1]
    report = write_predictions(
        tmp_path / "p.tfrecord.gz", {"b": TILES[order]}, mixer=MIX_A, index=order
    )
    assert (report.records, report.features, report.indexed) == (4, ("b",), False)
    for row, expected in zip(rows_of(report.path), TILES, strict=True):
        assert row["b"].tolist() == expected.ravel().tolist()
    imported = import_image(report.path, tmp_path / "m.tif", mixer=MIX_A)
    np.testing.assert_array_equal(read(imported.path)[0], GEO_A[:6, :8])


def test_margins_are_cut_off(tmp_path: Path) -> None:
    padded = np.stack([tile(i, XY(4, 2)) for i in range(4)]).astype(np.float32)
    report = write_predictions(tmp_path / "p.tfrecord", padded, mixer=MIX_A, kernel=(4, 2))
    assert [row["prediction"].size for row in rows_of(report.path)] == [12] * 4
    imported = import_image(report.path, tmp_path / "m.tif", mixer=MIX_A)
    np.testing.assert_array_equal(read(imported.path)[0], GEO_A[:6, :8])


def test_torch_tensors_planes_and_single_values(tmp_path: Path) -> None:
    scores = torch.arange(4 * 3 * 3 * 4, dtype=torch.float32).reshape(4, 3, 3, 4)
    scores.requires_grad_()
    report = write_predictions(
        tmp_path / "p.tfrecord",
        {"p": scores, "mean": scores.mean(dim=(1, 2, 3)), "class": scores.argmax(1)},
        mixer=MIX_A,
    )
    row = rows_of(report.path)[1]
    assert row["p"].tolist() == list(range(36, 72))
    assert row["mean"].shape == (1,)
    assert row["class"].dtype == np.int64


def test_features_keep_their_order_which_is_that_of_the_bands(tmp_path: Path) -> None:
    """A class and its probabilities become bands as they were given, not by their names."""
    path = tmp_path / "p.tfrecord.gz"
    arrays = {"label": TILES, "b": TILES.astype(np.float32), "a": TILES.astype(np.float32)}
    assert write_predictions(path, arrays, mixer=MIX_A).features == ("label", "b", "a")
    assert list(rows_of(path)[0]) == ["label", "b", "a"]
    imported = import_image(path, tmp_path / "m.tif", mixer=MIX_A)
    assert imported.bands == ("label", "b", "a")


def test_batches_stream(tmp_path: Path) -> None:
    batches = (([i], {"b": TILES[i : i + 1]}) for i in (3, 1, 0, 2))
    report = write_predictions(tmp_path / "p.tfrecord", batches, mixer=MIX_A)
    assert [row["b"][0] for row in rows_of(report.path)] == [0, 4, 300, 304]
    with PredictionWriter(tmp_path / "q.tfrecord", mixer=MIX_A) as writer:
        writer.write({"b": TILES[:3]})
        writer.write({"b": TILES[3:]})
    assert (tmp_path / "p.tfrecord").read_bytes() == (tmp_path / "q.tfrecord").read_bytes()


def test_a_part_is_asked_for_and_carries_its_indices(tmp_path: Path) -> None:
    with pytest.raises(GeoError, match="4 patches were exported, 2 predicted; missing: 0, 2"):
        write_predictions(tmp_path / "p.tfrecord", TILES[[3, 1]], mixer=MIX_A, index=[3, 1])
    assert not list(tmp_path.iterdir())
    report = write_predictions(
        tmp_path / "p.tfrecord", TILES[[3, 1]], mixer=MIX_A, index=[3, 1], partial=True
    )
    assert [row["patch_index"].tolist() for row in rows_of(report.path)] == [[1], [3]]
    imported = import_image(report.path, tmp_path / "m.tif", mixer=MIX_A, partial=True)
    np.testing.assert_array_equal(read(imported.path)[0, :3, 4:], GEO_A[:3, 4:8])


@pytest.mark.parametrize(
    ("array", "index", "error", "text"),
    [
        (np.zeros((4, 4, 3)), None, GeoError, "Height and width are swapped"),
        (np.zeros((4, 3, 4, 5)), None, GeoError, "Planes come before height and width"),
        (np.zeros((4, 5, 6)), None, GeoError, r"patches are \(n, height, width\) = \(n, 3, 4\)"),
        (np.zeros((5, 3, 4)), None, GeoError, "patch 4 is none of the 4 patches"),
        (np.zeros((2, 3, 4)), [0, 7], GeoError, "patch 7 is none of the 4 patches"),
        (np.zeros((2, 3, 4)), [1, 1], GeoError, "patch 1 is predicted twice"),
        (np.zeros((2, 3, 4)), [1], UsageError, "2 predictions need as many indices; got 1"),
        ({"a": np.zeros((4, 3, 4)), "b": np.zeros((3, 3, 4))}, None, UsageError, "one length"),
        ({}, None, UsageError, "one length"),
        (5, None, UsageError, "predictions are arrays by name or batches"),
    ],
)
def test_what_is_no_prediction(
    tmp_path: Path, array: Any, index: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        write_predictions(tmp_path / "p.tfrecord", array, mixer=MIX_A, index=index)
    assert not list(tmp_path.iterdir())


def test_features_may_not_change(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="every batch needs the features a"):
        write_predictions(
            tmp_path / "p.tfrecord",
            [([0], {"a": TILES[:1]}), ([1], {"b": TILES[1:2]})],
            mixer=MIX_A,
        )
    with pytest.raises(UsageError, match="batches bring their own indices"):
        write_predictions(tmp_path / "p.tfrecord", iter([]), mixer=MIX_A, index=[0])


def test_the_kernel_and_the_kept_patches_of_a_manifest(tmp_path: Path) -> None:
    values = GEO_A.astype(np.float32)
    values[:3, :4] = -9999
    source = array_source(values, AFFINE, crs="EPSG:32618", nodata=-9999)
    export_image(source, tmp_path / "a", patch=(4, 3), kernel=(2, 4), masked_threshold=0.5)
    padded = np.stack([tile(i, XY(2, 4)) for i in (1, 2, 3)]).astype(np.float32)
    report = write_predictions(tmp_path / "p.tfrecord", {"x": padded}, mixer=tmp_path / "a")
    imported = import_image(report.path, tmp_path / "m.tif", mixer=tmp_path / "a")
    found = read(imported.path)[0]
    assert np.isnan(found[:3, :4]).all()
    np.testing.assert_array_equal(found[3:], GEO_A[3:6, :8])


def test_half_precision_of_torch_becomes_float32(tmp_path: Path) -> None:
    values = torch.arange(48, dtype=torch.bfloat16).reshape(4, 3, 4)
    write_predictions(tmp_path / "p.tfrecord", {"y": values.requires_grad_()}, mixer=MIX_A)
    (first, *_) = tfrio.read(tmp_path / "p.tfrecord")
    assert first["y"].tolist() == list(range(12))


@pytest.mark.parametrize("wrong", ["foo", [np.zeros((4, 3, 4))], [("i", "a", "b")], 5])
def test_what_are_no_batches(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(UsageError, match="a pair \\(indices, arrays\\)|arrays by name or batches"):
        write_predictions(tmp_path / "p.tfrecord", wrong, mixer=MIX_A)
    assert not list(tmp_path.iterdir())
