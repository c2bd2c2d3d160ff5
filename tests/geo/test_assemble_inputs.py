"""The orientation of predictions is held against the inputs they were made from."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tfrio
from tests.geo.predictions import AFFINE, write
from tests.geo.test_assemble_check import scenes, written_by_columns
from tfrio.errors import GeoError, TfrioWarning, UsageError
from tfrio.geo import array_source, export_image, import_image
from tfrio.geo.mixer import read_mixer

if TYPE_CHECKING:
    from pathlib import Path

PATCH = (20, 12)


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """Export a smooth scene of 60 x 48 pixels and return its prefix."""
    scene = scenes(1, 48, 60)[0]
    export_image(
        array_source(scene, AFFINE, crs="EPSG:32618"), tmp_path / "a", patch=PATCH, kernel=(4, 2)
    )
    return tmp_path / "a"


def predictions(path: Path, *, transposed: bool) -> Path:
    """Classify the scene patch by patch, axes right or swapped."""
    scene = scenes(1, 48, 60)[0]
    classes = (scene[0] > 0).astype(np.int64) + (scene[1] > 4)
    tiles = np.stack(
        [classes[r : r + 12, c : c + 20] for r in range(0, 48, 12) for c in range(0, 60, 20)]
    )
    tiles = written_by_columns(tiles) if transposed else tiles
    return write(path, ({"class": t.ravel()} for t in tiles))


def test_a_transpose_is_warned_of(exported: Path, tmp_path: Path) -> None:
    path = predictions(tmp_path / "p.tfrecord", transposed=True)
    with pytest.warns(TfrioWarning, match="fit their inputs better when transposed"):
        import_image(path, tmp_path / "m.tif", mixer=exported)


def test_a_transpose_can_be_an_error(exported: Path, tmp_path: Path) -> None:
    path = predictions(tmp_path / "p.tfrecord", transposed=True)
    with pytest.raises(GeoError, match=r"p\.tfrecord: the predictions fit their inputs better"):
        import_image(path, tmp_path / "m.tif", mixer=exported, check="error")
    assert not (tmp_path / "m.tif").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        import_image(path, tmp_path / "m.tif", mixer=exported, check="off")
    with pytest.raises(UsageError, match="check must be one of warn, error, off"):
        import_image(path, tmp_path / "m.tif", mixer=exported, check="maybe")  # type: ignore[arg-type]


def test_inputs_can_be_named_for_a_plain_mixer(exported: Path, tmp_path: Path) -> None:
    mixer = read_mixer(f"{exported}-mixer.json")
    path = predictions(tmp_path / "p.tfrecord", transposed=True)
    with pytest.raises(GeoError, match="transposed"):
        import_image(path, tmp_path / "m.tif", mixer=mixer, inputs=exported, check="error")
    import_image(path, tmp_path / "m.tif", mixer=mixer, check="error")  # nothing to compare with


@pytest.mark.parametrize("options", [{}, {"check": "error"}])
def test_right_predictions_pass(exported: Path, tmp_path: Path, options: Any) -> None:
    path = predictions(tmp_path / "p.tfrecord", transposed=False)
    report = import_image(path, tmp_path / "m.tif", mixer=exported, **options)
    assert report.patches == 12


def test_scores_and_records_in_any_order(exported: Path, tmp_path: Path) -> None:
    scene = scenes(1, 48, 60)[0].astype(np.float32)
    scores = np.stack([scene[0], -scene[0]])
    tiles = [scores[:, r : r + 12, c : c + 20] for r in range(0, 48, 12) for c in range(0, 60, 20)]
    order = np.random.default_rng(1).permutation(12)
    swapped = ({"s": written_by_columns(tiles[i]).ravel(), "patch_index": i} for i in order)
    path = write(tmp_path / "p.tfrecord", swapped)
    with pytest.warns(TfrioWarning, match="transposed"):
        import_image(path, tmp_path / "m.tif", mixer=exported, argmax=True)


def test_records_in_another_order_are_warned_of(exported: Path, tmp_path: Path) -> None:
    path = predictions(tmp_path / "p.tfrecord", transposed=False)
    payloads = list(tfrio.read_records(path))
    with tfrio.RecordWriter(path) as writer:
        for payload in payloads[6:] + payloads[:6]:
            writer.write(payload)
    text = r"12 of 12 predictions fit the input of another patch better, the one for patch 0 that"
    with pytest.raises(GeoError, match=text):
        import_image(path, tmp_path / "m.tif", mixer=exported, check="error")
    with pytest.warns(TfrioWarning, match=text):
        import_image(path, tmp_path / "m.tif", mixer=exported)
