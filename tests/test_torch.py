"""Image exports as datasets: what side files say, with a manifest and with Earth Engine's mixer."""

from __future__ import annotations

import importlib.util
import inspect
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import rasterio
import torch
from rasterio.transform import Affine
from torch.utils.data import DataLoader

import tfrio
from tfrio.errors import GeoError, SchemaError, TfrioWarning, UsageError
from tfrio.torch import PatchDataset, predictions, read_patch_layout

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

HEIGHT, WIDTH = 23, 31
PATCH, KERNEL = (7, 5), (2, 4)  # (x, y): 4 x 4 patches, stored 9 x 9
TRANSFORM = Affine(30, 0, 500_000, 0, -20, 4_500_000)


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Path:
    """Return a GeoTIFF of two bands, value 100 * row + column (+ 5000), with a masked pixel."""
    path = tmp_path_factory.mktemp("scene") / "scene.tif"
    rows, columns = np.indices((HEIGHT, WIDTH))
    values = (100 * rows + columns).astype(np.int16)
    bands = np.stack([values, values + 5000])
    bands[:, 6, 8] = -1
    profile = {
        "driver": "GTiff",
        "count": 2,
        "height": HEIGHT,
        "width": WIDTH,
        "dtype": "int16",
        "crs": "EPSG:32618",
        "transform": TRANSFORM,
        "nodata": -1,
    }
    with rasterio.open(path, "w", **profile) as file:
        file.write(bands)
        file.descriptions = ("red", "class")
    return path


def export(scene: Path, folder: Path, **options) -> str:
    prefix = str(folder / "export" / "scene")
    given = {"patch": PATCH, "kernel": KERNEL, "max_file_size": 4000, "statistics": True}
    tfrio.geo.export_image(scene, prefix, **{**given, **options})
    return prefix


def test_patches_after_shuffle_over_workers_return_to_the_map(scene, tmp_path):
    prefix = export(scene, tmp_path)
    assert len(list((tmp_path / "export").glob("*.tfrecord.gz"))) > 1
    data = PatchDataset(prefix, bands=["red"], label="class", shuffle=True, seed=3, batch_size=3)
    loader = DataLoader(data, batch_size=None, num_workers=4)
    results = predictions(lambda image: {"red": image[:, 0]}, loader)
    tfrio.geo.write_predictions(tmp_path / "pred.tfrecord.gz", results, mixer=prefix)
    tfrio.geo.import_image(tmp_path / "pred.tfrecord.gz", tmp_path / "map.tif", mixer=prefix)
    with rasterio.open(scene) as source, rasterio.open(tmp_path / "map.tif") as made:
        window = source.read(1)[: made.height, : made.width]
        valid = window != -1
        assert np.array_equal(made.read(1)[valid], window[valid])
        assert made.transform == source.transform


def test_the_array_of_an_export_is_a_dataset_of_its_patches(scene, tmp_path):
    prefix = export(scene, tmp_path)
    array = tfrio.geo.open_export(prefix)
    wanted = list(PatchDataset(prefix, bands=["class", "red"], batch_size=5))
    found = list(PatchDataset(array, bands=["class", "red"], batch_size=5))
    for batch, other in zip(found, wanted, strict=True):
        assert list(batch) == list(other)
        assert all(torch.equal(batch[name], other[name]) for name in batch)
    first = found[0]
    assert first["image"].shape == (5, 2, 9, 9)
    row, column = int(first["row"][1]), int(first["col"][1])
    inner = first["image"][1, 1, 2:7, 1:8]  # "red" without the margin
    cut = array.sel(band="red")[5 * row : 5 * row + 5, 7 * column : 7 * column + 7]
    assert np.array_equal(inner[first["mask"][1, 2:7, 1:8]].numpy(), cut.values.ravel())


def flipped(batch):
    return {**batch, "image": batch["image"].flip(-1)}


def test_one_call_leads_from_the_export_to_its_patches(scene, tmp_path):
    prefix = export(scene, tmp_path)
    options = {
        "bands": ["class", "red"],
        "label": "class",
        "label_dtype": "int16",
        "normalize": {"class": (1.0, 2.0), "red": (0.0, 4.0)},
        "augment": flipped,
        "crop": True,
        "batch_size": 3,
        "shuffle": True,
        "seed": 5,
    }
    wanted = list(PatchDataset(prefix, **options))
    data = tfrio.geo.open_export(prefix).tfrio.patches(**options)
    assert type(data) is PatchDataset
    for batch, other in zip(data, wanted, strict=True):
        assert list(batch) == list(other)
        assert all(torch.equal(batch[name], other[name]) for name in batch)
    loader = data.loader(num_workers=2)
    assert sorted(int(i) for batch in loader for i in batch["index"]) == list(range(16))
    assert "label" in inspect.signature(tfrio.geo.open_export(prefix).tfrio.patches).parameters


@pytest.mark.parametrize(
    ("chosen", "bands"),
    [
        (lambda prefix: tfrio.geo.open_export(prefix, bands=["class", "red"]), ["class", "red"]),
        (lambda prefix: tfrio.geo.open_export(prefix, bands=["class"]), ["class"]),
        (lambda prefix: tfrio.geo.open_export(prefix).sel(band=["class"]), ["class"]),
        (lambda prefix: tfrio.geo.open_export(prefix).sel(band="red"), ["red"]),
        (lambda prefix: tfrio.geo.open_export(prefix, north_up=True), ["red", "class"]),
    ],
)
def test_bands_chosen_in_the_array_are_those_of_its_patches(scene, tmp_path, chosen, bands):
    prefix = export(scene, tmp_path)
    data = chosen(prefix).tfrio.patches()
    wanted = PatchDataset(prefix, bands=bands)
    assert torch.equal(next(iter(data))["image"], next(iter(wanted))["image"])


def test_an_array_that_is_a_cut_of_an_export_is_refused(scene, tmp_path):
    prefix = export(scene, tmp_path)
    array = tfrio.geo.open_export(prefix)
    for part in (array[:, 5:], array[..., ::2], array.sel(band="red")[3]):
        with pytest.raises(UsageError, match=r"part of the export .* rows and columns"):
            part.tfrio.patches()
    records = list((tmp_path / "export").glob("*.gz"))
    for other in (array + 1, tfrio.geo.open_export(prefix, records)):
        with pytest.raises(UsageError, match="give the prefix of the export"):
            PatchDataset(other)


@pytest.mark.parametrize("crop", [True, False])
def test_transform_of_a_patch_points_at_its_pixels(scene, tmp_path, crop):
    data = PatchDataset(export(scene, tmp_path), bands=["red"], crop=crop, batch_size=4)
    for batch in data:
        for image, transform in zip(batch["image"], batch["transform"], strict=True):
            affine = Affine(*transform.tolist())
            assert image.shape[1:] == ((5, 7) if crop else (9, 9))
            for row, column in ((2, 3), (4, 6)):
                x, y = ~TRANSFORM @ (affine @ (column + 0.5, row + 0.5))
                inside = 0 <= x < WIDTH and 0 <= y < HEIGHT and (int(y), int(x)) != (6, 8)
                if inside:
                    assert image[0, row, column] == 100 * int(y) + int(x)


def test_mask_label_and_statistics_of_the_manifest(scene, tmp_path):
    data = PatchDataset(
        export(scene, tmp_path), bands=["red"], label="class", normalize=True, crop=True
    )
    bad, seen = 0, []
    for batch in data:
        assert batch["label"].dtype == torch.int64
        bad += int((~batch["mask"]).sum())
        seen.append(batch["image"][:, 0][batch["mask"]])
    assert bad == 1
    values = torch.cat(seen)
    assert abs(float(values.mean())) < 1e-5
    assert abs(float(values.std(unbiased=False)) - 1) < 1e-4


@pytest.mark.parametrize("kernel", [None, KERNEL])
def test_earth_engines_own_export_has_no_manifest(scene, tmp_path, kernel):
    prefix = export(scene, tmp_path, dtype="native")
    Path(f"{prefix}-manifest.json").unlink()
    # Only a kernel of 2 x 4 stores a 7 x 5 patch as 81 values, so it need not be given.
    where = prefix if kernel is None else f"{prefix}-mixer.json"
    layout = read_patch_layout(where, kernel=kernel)
    assert (layout.stored.height, layout.stored.width) == (9, 9)
    data = PatchDataset(prefix, kernel=kernel, label="class", crop=True, nodata=0)
    assert data.band_names == ["red"]
    first = next(iter(data))
    assert first["label"].dtype == torch.int64
    assert first["image"][1, 0, 2].tolist() == [200.0 + column for column in range(7, 14)]


@pytest.mark.filterwarnings("ignore:.*missing shard")
def test_a_lost_shard_and_a_wrong_prefix_are_told(scene, tmp_path):
    prefix = export(scene, tmp_path)
    with pytest.raises(GeoError, match="mixer"):
        PatchDataset(prefix + "-other")
    with pytest.raises(UsageError, match="no shards of split 'train'"):
        PatchDataset(prefix, split="train")
    sorted((tmp_path / "export").glob("*.tfrecord.gz"))[1].unlink()
    with pytest.raises(GeoError, match=r"1 of \d shards are missing: scene-00001.*partial=True"):
        PatchDataset(prefix)
    Path(f"{prefix}-manifest.json").unlink()
    with pytest.raises(GeoError, match=r"shard 00001 missing.*partial=True"):
        PatchDataset(prefix, kernel=KERNEL)
    with pytest.raises(UsageError, match="only a manifest tells splits"):
        PatchDataset(prefix, split="train")


def by_index(data):
    """Return the rows of the batches of a dataset by patch index."""
    rows = {}
    for batch in data:
        for row, patch in enumerate(batch["index"].tolist()):
            rows[patch] = {name: value[row] for name, value in batch.items()}
    return rows


@pytest.mark.filterwarnings("ignore:.*missing shard")
@pytest.mark.parametrize("manifest", [True, False])
@pytest.mark.parametrize("keep", [[0], [5], [1, 3], [0, 7]])
def test_the_shards_that_are_here_are_a_dataset(scene, tmp_path, manifest, keep):
    prefix = export(scene, tmp_path, max_file_size=2100)
    whole = by_index(PatchDataset(prefix, kernel=KERNEL))
    shards = sorted((tmp_path / "export").glob("*.tfrecord.gz"))
    counts = [tfrio.count(shard).records for shard in shards]
    held = [p for n in keep for p in range(sum(counts[:n]), sum(counts[: n + 1]))]
    for number, shard in enumerate(shards):
        if number not in keep:
            shard.unlink()
    if not manifest:
        Path(f"{prefix}-manifest.json").unlink()
    data = PatchDataset(prefix, kernel=KERNEL, partial=True)
    for found in (data, tfrio.geo.open_export(prefix, partial=True).tfrio.patches(kernel=KERNEL)):
        rows = by_index(found)
        assert sorted(rows) == held
        for patch, row in rows.items():
            assert torch.equal(row["image"], whole[patch]["image"])
            assert torch.equal(row["transform"], whole[patch]["transform"])
            assert (row["row"], row["col"]) == divmod(patch, 4)
    assert [len(part) for part in data.split([0.5, 0.5], seed=0)]


@pytest.mark.filterwarnings("ignore:.*missing shard")
def test_a_shard_that_may_lie_anywhere_still_gives_its_patches(scene, tmp_path):
    prefix = export(scene, tmp_path, max_file_size=2100)
    Path(f"{prefix}-manifest.json").unlink()
    shards = sorted((tmp_path / "export").glob("*.tfrecord.gz"))
    alone = shards.pop(1)  # the second of eight, or of two
    for shard in shards:
        shard.unlink()
    with pytest.warns(TfrioWarning, match="index, row and col of its patches are -1"):
        data = PatchDataset(prefix, kernel=KERNEL, partial=True)
    (batch,) = data
    assert len(batch["image"]) == tfrio.count(alone).records
    assert batch["index"].unique().tolist() == batch["row"].unique().tolist() == [-1]
    assert batch["transform"].isnan().all()


@pytest.mark.parametrize("manifest", [True, False])
def test_two_exports_mix_and_each_patch_knows_its_place(scene, tmp_path, manifest):
    prefixes = [export(scene, tmp_path / "a"), export(scene, tmp_path / "b", max_file_size=2100)]
    if not manifest:
        for prefix in prefixes:
            Path(f"{prefix}-manifest.json").unlink()
    options = {"kernel": KERNEL, "bands": ["red"], "label": "class", "batch_size": 4}
    parts = [PatchDataset(prefix, shuffle=True, seed=2, **options) for prefix in prefixes]
    alone = [by_index(part) for part in parts]
    mixed = tfrio.mix(parts, [1, 1], stop="all")
    seen = set()
    for batch in mixed.loader(num_workers=2):
        for row, (number, patch) in enumerate(zip(batch["export"], batch["index"], strict=True)):
            seen.add((int(number), int(patch)))
            for name, value in alone[number][int(patch)].items():
                assert torch.equal(batch[name][row], value), name
    assert seen == {(number, patch) for number in range(2) for patch in range(16)}
    halves = parts[0].split([0.5, 0.5], seed=0)
    again = by_index(tfrio.mix(halves, [1, 1], stop="all"))
    assert sorted(again) == list(range(16))
    assert "export" not in again[0]


def test_exports_that_store_patches_otherwise_do_not_mix(scene, tmp_path):
    other = export(scene, tmp_path / "b", kernel=(4, 2))
    parts = [PatchDataset(export(scene, tmp_path / "a")), PatchDataset(other)]
    with pytest.raises(SchemaError, match=r"source 1 "):
        tfrio.mix(parts, [1, 1])
    with pytest.raises(UsageError, match=r"has kernel \(4, 2\), not \(2, 4\)"):
        PatchDataset(other, kernel=KERNEL)


def test_options_that_make_no_sense_are_told(scene, tmp_path):
    prefix = export(scene, tmp_path)
    for wrong in ({"red": (1.0, 2.0)}, {"red": 3, "class": 4}, "red"):
        with pytest.raises(UsageError, match=r"\(mean, standard deviation\) of each band"):
            PatchDataset(prefix, normalize=wrong)
    assert PatchDataset(prefix, bands="class").band_names == ["class"]
    with pytest.raises(UsageError, match=r"TFRecordMapDataset; to divide this one, its split"):
        PatchDataset(prefix)[3]


def test_single_patches_for_a_data_loader_to_put_together(scene, tmp_path):
    data = PatchDataset(export(scene, tmp_path), bands=["red"], label="class", batch_size=None)
    wanted = by_index(PatchDataset(export(scene, tmp_path / "b"), bands=["red"], label="class"))
    found = by_index(DataLoader(data, batch_size=3, num_workers=2))
    assert sorted(found) == sorted(wanted)
    assert torch.equal(found[7]["image"], wanted[7]["image"])


def cut(shard: Path) -> None:
    """Cut a shard within its last record, as a copy that was broken off."""
    payloads = list(tfrio.read_records(shard))
    with tfrio.RecordWriter(shard, compression="none") as writer:
        for payload in payloads:
            writer.write(payload)
    data = shard.read_bytes()
    shard.write_bytes(data[: len(data) - len(payloads[-1]) // 2])


@pytest.mark.filterwarnings("ignore:.*left out 1 damaged")
@pytest.mark.parametrize("manifest", [True, False])
def test_patches_behind_damage_keep_their_places_or_have_none(scene, tmp_path, manifest):
    prefix = export(scene, tmp_path, max_file_size=2100)
    first, second, *_ = sorted((tmp_path / "export").glob("*.tfrecord.gz"))
    counts = [tfrio.count(shard).records for shard in (first, second)]
    cut(second)
    lost = sum(counts) - 1
    options = {"kernel": KERNEL, "errors": "skip", "index": "memory"}
    if manifest:
        told = json.loads(Path(f"{prefix}-manifest.json").read_text())
        told["shards"][1]["size"] = second.stat().st_size  # else it is refused as another shard
        Path(f"{prefix}-manifest.json").write_text(json.dumps(told))
        assert sorted(by_index(PatchDataset(prefix, **options))) == sorted({*range(16)} - {lost})
        return
    Path(f"{prefix}-manifest.json").unlink()
    with pytest.warns(TfrioWarning, match="hold 15 records, its mixer says 16: damage hides which"):
        batches = list(PatchDataset(prefix, **options))
    assert {int(index) for batch in batches for index in batch["index"]} == {-1}
    with pytest.warns(TfrioWarning, match="payload cut.*index, row and col of its patches are -1"):
        PatchDataset(prefix, partial=True, **options)
    second.unlink()
    kept = {*range(16)} - {*range(counts[0], sum(counts))}
    assert sorted(by_index(PatchDataset(prefix, partial=True, **options))) == sorted(kept)


def test_a_lost_last_shard_is_found_by_the_mixers_count(scene, tmp_path):
    prefix = export(scene, tmp_path)
    Path(f"{prefix}-manifest.json").unlink()
    max((tmp_path / "export").glob("*.tfrecord.gz")).unlink()
    with pytest.raises(GeoError, match=r"hold \d+ patches, its side files say 16.*partial=True"):
        len(PatchDataset(prefix, kernel=KERNEL))
    assert len(by_index(PatchDataset(prefix, kernel=KERNEL, partial=True))) > 1


def test_the_only_shard_of_earth_engine_needs_no_option(scene, tmp_path):
    prefix = export(scene, tmp_path, max_file_size=1 << 20)
    (shard,) = (tmp_path / "export").glob("*.tfrecord.gz")
    shard.rename(f"{prefix}.tfrecord.gz")
    Path(f"{prefix}-manifest.json").unlink()
    for where in (prefix, f"{prefix}-mixer.json"):
        assert sorted(by_index(PatchDataset(where, kernel=KERNEL))) == list(range(16))


@pytest.mark.filterwarnings("ignore:.*missing shard")
def test_real_shard_of_earth_engine(shared, tmp_path):
    folder = shared / "data" / "ee" / "phen_asynch"
    shutil.copytree(folder, tmp_path / "ee")
    mixer = next((tmp_path / "ee").glob("*mixer.json"))
    with pytest.raises(GeoError, match=r"shards 00000 to 00004 missing.*partial=True"):
        PatchDataset(mixer)
    (batch,) = PatchDataset(mixer, partial=True, bands=["sin_1", "constant"], label="cos_1")
    assert batch["image"].shape == (2, 2, 316, 316)
    assert batch["index"].tolist() == [10, 11]
    assert (batch["row"].tolist(), batch["col"].tolist()) == ([3, 3], [1, 2])


@pytest.mark.slow
def test_the_example_trains_and_brings_the_map_back(tmp_path):
    path = Path(__file__).resolve().parent.parent / "examples" / "train_unet.py"
    spec = importlib.util.spec_from_file_location("train_unet", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        module.main(tmp_path, epochs=2)
    finally:
        torch.set_num_threads(threads)
    with (
        rasterio.open(tmp_path / "map.tif") as made,
        rasterio.open(tmp_path / "scene.tif") as source,
    ):
        classes = made.read(1)
        assert (made.width, made.height) == (288, 280)
        assert made.transform == source.transform
        masked = source.read(1)[: made.height, : made.width] == 0
    with rasterio.open(tmp_path / "label.tif") as file:
        label = file.read(1)[: classes.shape[0], : classes.shape[1]]
    assert (classes[masked] == 0).all()
    largest = np.bincount(label[~masked]).max()
    assert (classes == label)[~masked].sum() > 1.3 * largest
