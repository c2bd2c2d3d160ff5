"""Patches as tensors: bands in the order asked, labels, masks, and where each patch lies."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from tfrio import Writer
from tfrio.datasets.patch_layout import BandLayout, PatchLayout
from tfrio.datasets.patches import PatchDataset as BarePatchDataset
from tfrio.errors import MissingFeatureError, SchemaError, TfrioWarning, UsageError
from tfrio.torch import PatchDataset, predictions
from tfrio.types import XY, Affine6, Shape

GRID = XY(3, 4)  # patches (x, y)
PATCH = XY(5, 2)
MARGIN = XY(2, 1)
HEIGHT, WIDTH = PATCH.y + 2 * MARGIN.y, PATCH.x + 2 * MARGIN.x
AFFINE = Affine6(30.0, 0.5, 500_000.0, -0.25, -20.0, 4_500_000.0)


def value(band: int, patch: int):
    """Return a patch of one band: each pixel tells band, patch, row and column."""
    rows, columns = np.indices((HEIGHT, WIDTH))
    return (10_000 * band + 100 * patch + 10 * rows + columns).astype(np.float32)


def write(folder: Path, *, indexed=False, order=None):
    order = range(GRID.x * GRID.y) if order is None else order
    paths = []
    for number, part in enumerate((order[:5], order[5:])):
        paths.append(str(folder / f"p-{number:05d}.tfrecord"))
        with Writer(paths[-1]) as writer:
            for patch in part:
                row = {
                    "red": value(1, patch).ravel(),
                    "nir": value(2, patch).ravel(),
                    "byte": (value(0, patch) % 251).astype(np.uint8).tobytes(),
                    "class": (value(3, patch) % 5).astype(np.int64).ravel(),
                    "stack": np.stack([value(4, patch), value(5, patch)]).ravel(),
                }
                if indexed:
                    row["number"] = patch
                writer.write(row)
    return tuple(paths)


def layout(folder: Path, *, indexed=False, order=None, **other):
    patches = np.arange(GRID.x * GRID.y)
    row, column = np.divmod(patches, GRID.x)
    cells = np.stack([row, column, row * PATCH.y, column * PATCH.x], axis=1)
    bands = (
        BandLayout("red", "red", "float", "float32", mean=100.0, std=4.0),
        BandLayout("nir", "nir", "float", "float32", mean=200.0, std=0.0),
        BandLayout("byte", "byte", "bytes", "uint8", whole=True),
        BandLayout("class", "class", "int64", "int64", whole=True),
        BandLayout("low", "stack", "float", "float32"),
        BandLayout("high", "stack", "float", "float32", plane=1),
    )
    return PatchLayout(
        paths=write(folder, indexed=indexed, order=order),
        first=None,
        bands=bands,
        stored=Shape(HEIGHT, WIDTH),
        margin=Shape(MARGIN.y, MARGIN.x),
        affine=AFFINE,
        cells=cells,
        index_feature="number" if indexed else "",
        **other,
    )


def by_index(dataset):
    """Return each patch's entries by its index."""
    found = {}
    for batch in dataset:
        for row, index in enumerate(batch["index"].tolist()):
            found[index] = {name: column[row] for name, column in batch.items()}
    return found


def test_bands_come_by_name_in_the_order_asked(tmp_path):
    data = PatchDataset(layout(tmp_path), bands=["nir", "high", "byte", "red"], batch_size=5)
    assert data.band_names == ["nir", "high", "byte", "red"]
    assert len(data) == 3
    found = by_index(data)
    assert sorted(found) == list(range(12))
    for patch, entries in found.items():
        wanted = [value(2, patch), value(5, patch), value(0, patch) % 251, value(1, patch)]
        assert entries["image"].dtype == torch.float32
        assert np.array_equal(entries["image"].numpy(), np.stack(wanted))
        assert entries["mask"].all()


def test_label_is_split_off(tmp_path):
    data = PatchDataset(layout(tmp_path), label="class")
    assert data.band_names == ["red", "nir", "byte", "low", "high"]
    for patch, entries in by_index(data).items():
        assert entries["label"].dtype == torch.int64
        assert np.array_equal(entries["label"].numpy(), value(3, patch).astype(int) % 5)
    floats = next(iter(PatchDataset(layout(tmp_path), label="red")))["label"]
    assert floats.dtype == torch.float32
    cast = next(iter(PatchDataset(layout(tmp_path), label="red", label_dtype="int64")))["label"]
    assert cast.dtype == torch.int64


def test_crop_cuts_the_margins_off(tmp_path):
    data = PatchDataset(layout(tmp_path), bands=["red"], label="class", crop=True)
    for patch, entries in by_index(data).items():
        inner = value(1, patch)[MARGIN.y : -MARGIN.y, MARGIN.x : -MARGIN.x]
        assert np.array_equal(entries["image"][0].numpy(), inner)
        assert entries["label"].shape == entries["mask"].shape == (PATCH.y, PATCH.x)


@pytest.mark.parametrize("crop", [True, False])
def test_each_patch_tells_its_place(tmp_path, crop):
    data = PatchDataset(layout(tmp_path), bands=["red"], shuffle=True, crop=crop)
    for patch, entries in by_index(data).items():
        row, column = divmod(patch, GRID.x)
        assert (int(entries["row"]), int(entries["col"])) == (row, column)
        a, b, c, d, e, f = AFFINE
        x = column * PATCH.x - (0 if crop else MARGIN.x)
        y = row * PATCH.y - (0 if crop else MARGIN.y)
        wanted = [a, b, c + a * x + b * y, d, e, f + d * x + e * y]
        assert entries["transform"].tolist() == wanted


@pytest.mark.parametrize("indexed", [True, False])
def test_index_of_patches_in_any_order(tmp_path, indexed):
    order = [7, 3, 11, 0, 1, 2, 9]
    written = None if indexed else np.array(order)
    made = layout(tmp_path, indexed=indexed, order=order, written=written)
    found = by_index(PatchDataset(made, bands=["red"], shuffle=True, batch_size=2))
    assert sorted(found) == sorted(order)
    for patch, entries in found.items():
        assert np.array_equal(entries["image"][0].numpy(), value(1, patch))


def test_first_tells_where_the_files_of_a_split_begin(tmp_path):
    made = layout(tmp_path)
    part = PatchLayout(
        **{
            **{name: getattr(made, name) for name in PatchLayout.__dataclass_fields__},
            "paths": made.paths[1:],
            "first": np.array([5]),
        }
    )
    found = by_index(PatchDataset(part, bands=["red"]))
    assert sorted(found) == list(range(5, 12))
    assert all(np.array_equal(e["image"][0].numpy(), value(1, p)) for p, e in found.items())


def test_parts_keep_the_index(tmp_path):
    first, second = PatchDataset(layout(tmp_path), bands=["red"]).split([0.5, 0.5])
    found = by_index(first) | by_index(second)
    assert sorted(found) == list(range(12))
    assert all(np.array_equal(e["image"][0].numpy(), value(1, p)) for p, e in found.items())


def masked(index):
    """Mask patch 4: of the bands of the layout, the second has one masked pixel."""
    if index != 4:
        return None
    mask = np.zeros((6, PATCH.y, PATCH.x), np.bool_)
    mask[1, 1, 3] = True
    return mask


def test_masks_of_the_export(tmp_path):
    made = layout(tmp_path, masked=masked)
    found = by_index(PatchDataset(made, bands=["nir"]))
    for patch, entries in found.items():
        bad = torch.argwhere(~entries["mask"]).tolist()
        assert bad == ([[1 + MARGIN.y, 3 + MARGIN.x]] if patch == 4 else [])
    assert by_index(PatchDataset(made, bands=["red"]))[4]["mask"].all()
    label = by_index(PatchDataset(made, bands=["red"], label="nir"))[4]
    assert int((~label["mask"]).sum()) == 1


def test_normalise_and_neutral_masked_pixels(tmp_path):
    made = layout(tmp_path, masked=masked)
    found = by_index(PatchDataset(made, bands=["nir", "red"], normalize=True))
    image = np.stack([value(2, 4) - 200.0, (value(1, 4) - 100.0) / 4.0])
    image[:, 1 + MARGIN.y, 3 + MARGIN.x] = 0
    assert np.allclose(found[4]["image"].numpy(), image)
    given = PatchDataset(made, bands=["low"], normalize={"low": (40_000.0, 10.0)})
    assert np.allclose(by_index(given)[3]["image"][0], (value(4, 3) - 40_000.0) / 10.0)
    with pytest.raises(UsageError, match="statistics of band 'low'; export with statistics=True"):
        PatchDataset(made, bands=["low"], normalize=True)


def test_nan_is_told_masked_and_replaced(tmp_path, monkeypatch):
    real = value

    def with_nan(band, patch):
        made = real(band, patch)
        if (band, patch) == (1, 2):
            made[0, 1] = np.nan
        return made

    monkeypatch.setattr(f"{__name__}.value", with_nan)
    made = layout(tmp_path)
    with pytest.warns(TfrioWarning, match=r"NaN in the image: 1 values"):
        found = by_index(PatchDataset(made, bands=["red"]))
    assert torch.isnan(found[2]["image"]).sum() == 1
    assert torch.argwhere(~found[2]["mask"]).tolist() == [[0, 1]]
    found = by_index(PatchDataset(made, bands=["red"], nan_to=0, normalize=True))
    assert found[2]["image"][0, 0, 1] == 0
    assert not found[2]["mask"][0, 1]


def test_nodata_masks_where_nothing_else_tells(tmp_path):
    made = layout(tmp_path)
    found = by_index(PatchDataset(made, bands=["red"], nodata=10_112.0))
    assert torch.argwhere(~found[1]["mask"]).tolist() == [[1, 2]]
    assert found[3]["mask"].all()


def flip(batch):
    batch["image"] = batch["image"].flip(-1)
    return batch


def test_augment_and_workers(tmp_path):
    made = layout(tmp_path)
    data = PatchDataset(made, bands=["red"], augment=flip, batch_size=5)
    plain = by_index(PatchDataset(made, bands=["red"]))
    loader = DataLoader(data, batch_size=None, num_workers=2)
    for patch, entries in by_index(loader).items():
        assert torch.equal(entries["image"].flip(-1), plain[patch]["image"])


def test_predictions_tell_their_patch_once(tmp_path):
    made = layout(tmp_path)
    wanted = by_index(PatchDataset(made, bands=["red"]))
    seen = []
    for rank in range(5):
        data = PatchDataset(
            made, bands=["red"], shuffle=True, uneven="pad", seed=1, rank=rank, world_size=5
        )
        for indices, out in predictions(lambda image: {"out": image[:, 0] + 1}, data):
            assert len(indices) == len(out["out"])
            for index, one in zip(indices.tolist(), out["out"], strict=True):
                seen.append(index)
                assert torch.equal(one, wanted[index]["image"][0] + 1)
    assert sorted(seen) == list(range(12))


def test_predictions_of_a_module_are_in_evaluation_mode(tmp_path):
    model = torch.nn.Dropout(0.9)
    model.train()
    results = predictions(model, PatchDataset(layout(tmp_path), bands=["red"]).loader())
    _, out = next(iter(results))
    assert not model.training
    assert (out != 0).all()
    assert not out.requires_grad


def test_resume(tmp_path):
    made = layout(tmp_path)
    whole = [b["index"].tolist() for b in PatchDataset(made, shuffle=True, seed=2, batch_size=2)]
    data = PatchDataset(made, shuffle=True, seed=2, batch_size=2)
    before = [b["index"].tolist() for b in itertools.islice(iter(data), 2)]
    again = PatchDataset(made, shuffle=True, seed=2, batch_size=2)
    again.load_state_dict(data.state_dict())
    assert before + [b["index"].tolist() for b in again] == whole


def test_misuse_is_refused(tmp_path):
    made = layout(tmp_path)
    with pytest.raises(MissingFeatureError, match="no band 'blue'"):
        PatchDataset(made, bands=["blue"])
    with pytest.raises(UsageError, match=r"tfrio\.torch"):
        BarePatchDataset("some/prefix")
    deep = PatchLayout(
        **{
            **{name: getattr(made, name) for name in PatchLayout.__dataclass_fields__},
            "bands": (BandLayout("deep", "stack", "float", "float32", depth=2), *made.bands[:4]),
        }
    )
    with pytest.raises(SchemaError, match="2 planes"):
        PatchDataset(deep, label="deep")
    assert next(iter(PatchDataset(deep, bands=["deep"])))["image"].shape[1] == 2
