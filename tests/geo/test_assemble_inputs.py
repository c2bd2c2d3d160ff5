"""The orientation of predictions is held against the inputs they were made from."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

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

    from tfrio.geo.options import Pair

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


def test_a_transpose_is_refused(exported: Path, tmp_path: Path) -> None:
    path = predictions(tmp_path / "p.tfrecord", transposed=True)
    text = (
        r"p\.tfrecord: the predictions fit their inputs better when transposed: .*Nothing was wri"
    )
    with pytest.raises(GeoError, match=text) as caught:
        import_image(path, tmp_path / "m.tif", mixer=exported)
    assert 'check="warn"' in str(caught.value)
    assert not list(tmp_path.glob("*m.tif*"))


def test_a_transpose_can_be_written_all_the_same(exported: Path, tmp_path: Path) -> None:
    path = predictions(tmp_path / "p.tfrecord", transposed=True)
    with pytest.warns(TfrioWarning, match="fit their inputs better when transposed"):
        import_image(path, tmp_path / "m.tif", mixer=exported, check="warn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        import_image(path, tmp_path / "m.tif", mixer=exported, check="off", overwrite=True)
    with pytest.raises(UsageError, match="check must be one of error, warn, off"):
        import_image(path, tmp_path / "m.tif", mixer=exported, check="maybe")  # type: ignore[arg-type]


def test_inputs_can_be_named_for_a_plain_mixer(exported: Path, tmp_path: Path) -> None:
    mixer = read_mixer(f"{exported}-mixer.json")
    path = predictions(tmp_path / "p.tfrecord", transposed=True)
    with pytest.raises(GeoError, match="transposed"):
        import_image(path, tmp_path / "m.tif", mixer=mixer, inputs=exported)
    import_image(path, tmp_path / "m.tif", mixer=mixer)  # nothing to compare with


def test_right_predictions_pass(exported: Path, tmp_path: Path) -> None:
    path = predictions(tmp_path / "p.tfrecord", transposed=False)
    report = import_image(path, tmp_path / "m.tif", mixer=exported)
    assert report.patches == 12


@pytest.mark.parametrize("record", [0, 11])
def test_damaged_inputs_are_compared_up_to_the_damage(
    exported: Path, tmp_path: Path, record: int
) -> None:
    shard = exported.with_name("a-00000.tfrecord.gz")
    payloads = list(tfrio.read_records(shard))
    shard.unlink()
    with tfrio.RecordWriter(shard, compression="none") as writer:
        for payload in payloads:
            writer.write(payload)
    data = bytearray(shard.read_bytes())
    data[len(data) // 12 * record + 40] ^= 1
    shard.write_bytes(data)
    right = predictions(tmp_path / "p.tfrecord", transposed=False)
    assert import_image(right, tmp_path / "m.tif", mixer=exported).patches == 12
    turned = predictions(tmp_path / "t.tfrecord", transposed=True)
    if record:  # enough is known to tell
        with pytest.raises(GeoError, match="transposed"):
            import_image(turned, tmp_path / "n.tif", mixer=exported)
    else:
        import_image(turned, tmp_path / "n.tif", mixer=exported)


def test_scores_and_records_in_any_order(exported: Path, tmp_path: Path) -> None:
    scene = scenes(1, 48, 60)[0].astype(np.float32)
    scores = np.stack([scene[0], -scene[0]])
    tiles = [scores[:, r : r + 12, c : c + 20] for r in range(0, 48, 12) for c in range(0, 60, 20)]
    order = np.random.default_rng(1).permutation(12)
    swapped = ({"s": written_by_columns(tiles[i]).ravel(), "patch_index": i} for i in order)
    path = write(tmp_path / "p.tfrecord", swapped)
    with pytest.raises(GeoError, match="transposed"):
        import_image(path, tmp_path / "m.tif", mixer=exported, argmax=True)


def test_records_in_another_order_are_refused(exported: Path, tmp_path: Path) -> None:
    path = predictions(tmp_path / "p.tfrecord", transposed=False)
    payloads = list(tfrio.read_records(path))
    with tfrio.RecordWriter(path) as writer:
        for payload in payloads[6:] + payloads[:6]:
            writer.write(payload)
    text = r"12 of 12 predictions fit the input of another patch better, the one for patch 0 that"
    with pytest.raises(GeoError, match=text):
        import_image(path, tmp_path / "m.tif", mixer=exported)
    with pytest.warns(TfrioWarning, match=text):
        import_image(path, tmp_path / "m.tif", mixer=exported, check="warn")


def blunt(kind: str, scene: np.ndarray) -> np.ndarray:
    """Return predictions, shape (height, width), that tell little or nothing about a scene."""
    rng = np.random.default_rng(11)
    made = {
        "noise": lambda: rng.normal(size=scene.shape),
        "constant": lambda: np.ones(scene.shape),
        "rare": lambda: rng.random(scene.shape) < 0.002,
        "smooth": lambda: scenes(2, *scene.shape)[1, 0],
        "blocks": lambda: np.kron(rng.integers(0, 3, (12, 10)), np.ones((4, 6))),
        "distance": lambda: np.hypot(*np.mgrid[:48, :60] - np.array([24, 30])[:, None, None]),
        "nan": lambda: np.full(scene.shape, np.nan),
    }
    return np.asarray(made[kind](), np.float32)


@pytest.mark.parametrize("patch", [(20, 12), (3, 2), (30, 24), (60, 48), (5, 48)])
@pytest.mark.parametrize("what", ["plain", "zonal", "symmetric", "flat", "masked"])
def test_what_tells_nothing_is_let_through(tmp_path: Path, what: str, patch: Pair) -> None:
    scene = scenes(1, 48, 60)[0]
    if what == "zonal":
        scene = np.broadcast_to(scene[:, :, :1], scene.shape).copy()
    elif what == "symmetric":
        scene = scene + scene[:, ::-1] + scene[:, :, ::-1] + scene[:, ::-1, ::-1]
    elif what == "flat":
        scene = np.zeros_like(scene)
    elif what == "masked":
        scene[:, :30, :40] = np.nan
    export_image(array_source(scene, AFFINE, crs="EPSG:32618"), tmp_path / "a", patch=patch)
    width, height = patch
    for kind in ("noise", "constant", "rare", "smooth", "blocks", "distance", "nan", "right"):
        plane = scene[0] + 0.5 * scene[1] if kind == "right" else blunt(kind, scene[0])
        tiles = [
            plane[r : r + height, c : c + width].astype(np.float32)
            for r in range(0, 48 // height * height, height)
            for c in range(0, 60 // width * width, width)
        ]
        path = write(tmp_path / f"{kind}.tfrecord", ({"p": tile.ravel()} for tile in tiles))
        report = import_image(path, tmp_path / "m.tif", mixer=tmp_path / "a", overwrite=True)
        assert report.patches == len(tiles), kind


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[np.ndarray]]:
    """Export 300 patches in six shards; return the prefix and right predictions."""
    scene = scenes(1, 15 * 10, 20 * 16)[0]
    prefix = tmp_path_factory.mktemp("large") / "a"
    source = array_source(scene, AFFINE, crs="EPSG:32618")
    report = export_image(source, prefix, patch=(16, 10), max_file_size=70_000, compressed=False)
    assert len(report.shards) == 6
    score = (scene[0] + 0.3 * scene[1]).astype(np.float32)
    windows = [(r, c) for r in range(0, 150, 10) for c in range(0, 320, 16)]
    return prefix, [score[r : r + 10, c : c + 16] for r, c in windows]


@pytest.mark.parametrize("order", ["right", "shuffled", "shards reversed", "one patch late"])
def test_another_order_of_many_patches_is_refused(
    large: tuple[Path, list[np.ndarray]], tmp_path: Path, order: str
) -> None:
    prefix, tiles = large
    n = len(tiles)
    orders = {
        "right": np.arange(n),
        "shuffled": np.random.default_rng(8).permutation(n),
        "shards reversed": np.concatenate(np.array_split(np.arange(n), 6)[::-1]),
        "one patch late": np.roll(np.arange(n), 1),
    }
    path = write(tmp_path / "p.tfrecord", ({"p": tiles[i].ravel()} for i in orders[order]))
    if order == "right":
        assert import_image(path, tmp_path / "m.tif", mixer=prefix).patches == n
        return
    with pytest.raises(GeoError, match="in another order than the export's.*Nothing was written"):
        import_image(path, tmp_path / "m.tif", mixer=prefix)
    assert not list(tmp_path.glob("*m.tif*"))
    # With their indices the same records are placed as they belong.
    rows = ({"p": tiles[i].ravel(), "patch_index": int(i)} for i in orders[order])
    indexed = write(tmp_path / "q.tfrecord", rows)
    assert import_image(indexed, tmp_path / "m.tif", mixer=prefix).patches == n
