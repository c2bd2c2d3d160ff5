"""What becomes of each kind of column: absent features, images, text, nested lists."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from PIL import Image

from tfrio import Writer
from tfrio.datasets.arrays import ArrayDataset
from tfrio.errors import MissingFeatureError, SchemaError
from tfrio.examples.schema import Feature
from tfrio.torch import TFRecordDataset

KINDS = [ArrayDataset, TFRecordDataset]


def png(height, width, value):
    out = io.BytesIO()
    Image.fromarray(np.full((height, width, 3), value, np.uint8)).save(out, format="PNG")
    return out.getvalue()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Return a file whose records lack some features and hold images of two sizes."""
    path = tmp_path_factory.mktemp("items") / "mixed.tfrecord"
    with Writer(path) as writer:
        for number in range(6):
            row = {"id": number, "photo": png(2, 3 + number // 4, number), "tags": [b"a"] * number}
            if not row["tags"]:
                del row["tags"]
            if number % 2:
                row["odd"] = [number, number]
                row["word"] = f"w{number}"
            writer.write(row)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_absent_features_are_told(path, kind):
    (batch,) = kind(path, batch_size=6, index="memory")
    assert np.asarray(batch["odd/present"]).tolist() == [False, True] * 3
    assert np.asarray(batch["odd"])[1].tolist() == [1, 1]
    assert batch["word"] == [b"", b"w1", b"", b"w3", b"", b"w5"]
    assert "id/present" not in batch
    rows = list(kind(path, index="memory"))
    assert rows[0]["odd"] is None
    assert np.asarray(rows[3]["odd"]).tolist() == [3, 3]
    assert rows[0]["tags"] is None
    assert rows[2]["tags"] == [b"a", b"a"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_default_stands_in_for_an_absent_feature(path, kind):
    schema = {"odd": Feature("int64", (2,), default=(7, 8))}
    (batch,) = kind(path, batch_size=6, schema=schema, index="memory")
    assert np.asarray(batch["odd"]).tolist() == [[7, 8], [1, 1], [7, 8], [3, 3], [7, 8], [5, 5]]
    assert list(batch) == ["odd"]


@pytest.mark.parametrize("kind", KINDS)
def test_images_are_decoded(path, kind):
    batches = list(kind(path, batch_size=4, images=["photo"], features=["photo"], index="memory"))
    assert batches[0]["photo"].shape == (4, 2, 3, 3)
    assert np.asarray(batches[0]["photo"])[2].max() == 2
    mixed = list(kind(path, batch_size=6, images=["photo"], features=["photo"], index="memory"))
    shapes = [tuple(image.shape) for image in mixed[0]["photo"]]
    assert shapes == [(2, 3, 3)] * 4 + [(2, 4, 3)] * 2
    rows = list(kind(path, images=["photo"], index="memory"))
    assert tuple(rows[5]["photo"].shape) == (2, 4, 3)
    with pytest.raises(MissingFeatureError, match="no feature 'nope'"):
        kind(path, images=["nope"])
    with pytest.raises(SchemaError, match="'id' is int64"):
        kind(path, images=["id"])


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_bytes_and_text(path, kind):
    (batch,) = kind(path, batch_size=6, features=["tags"], index="memory")
    assert batch["tags"] == [[b"a"] * number for number in range(6)]
    schema = {"word": Feature("bytes", (), dtype="str", default="none")}
    (batch,) = kind(path, batch_size=6, schema=schema, index="memory")
    assert batch["word"] == ["none", "w1", "none", "w3", "none", "w5"]


def test_types_of_the_two_kinds(path):
    (arrays,) = ArrayDataset(path, batch_size=6, index="memory")
    (tensors,) = TFRecordDataset(path, batch_size=6, index="memory")
    assert isinstance(arrays["id"], np.ndarray)
    assert isinstance(tensors["id"], torch.Tensor)
    assert arrays.rows == tensors.rows == 6
    assert arrays.present["odd"].tolist() == [False, True] * 3


def test_long_bytes_are_whole(tmp_path):
    values = [bytes([number]) * (10_000 + number) for number in range(5)]
    with Writer(tmp_path / "long.tfrecord") as writer:
        for value in values:
            writer.write({"blob": value})
    (batch,) = ArrayDataset(tmp_path / "long.tfrecord", batch_size=5, index="memory")
    assert batch["blob"] == values
    assert all(type(value) is bytes for value in batch["blob"])
