"""The programs of the published package's README, with `import tfrecord` from the drop-in.

Each runs with 0 and with 2 DataLoader workers.
"""

from __future__ import annotations

import importlib
import io
import itertools
import zlib

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

pytestmark = pytest.mark.parametrize("workers", [0, 2])

IMAGE = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)


@pytest.fixture
def tfrecord(dropin):
    return importlib.import_module("tfrecord")


@pytest.fixture
def dataset_module(dropin):
    return importlib.import_module("tfrecord.torch.dataset")


@pytest.fixture
def images(tfrecord, tmp_path):
    """Write 12 records {image, label, index} and their index."""
    path = str(tmp_path / "data.tfrecord")
    writer = tfrecord.TFRecordWriter(path)
    for k in range(12):
        png = io.BytesIO()
        importlib.import_module("PIL.Image").fromarray(IMAGE + k).save(png, "png")
        writer.write(
            {
                "image": (png.getvalue(), "byte"),
                "label": (k / 4, "float"),
                "index": (k, "int"),
            }
        )
    writer.close()
    importlib.import_module("tfrecord.tools.tfrecord2idx").create_index(
        path, str(tmp_path / "data.tfindex")
    )
    return tmp_path


def test_reading_examples_in_pytorch(dataset_module, images, workers):
    tfrecord_path = str(images / "data.tfrecord")
    index_path = None
    description = {"image": "byte", "label": "float"}
    dataset = dataset_module.TFRecordDataset(tfrecord_path, index_path, description)
    loader = torch.utils.data.DataLoader(dataset, batch_size=4, num_workers=workers)

    data = next(iter(loader))
    assert data["label"].shape == (4, 1)
    assert all(image.startswith(b"\x89PNG") for image in data["image"])
    labels = [v for batch in loader for v in batch["label"].flatten().tolist()]
    assert sorted(labels) == [k / 4 for k in range(12)]


@pytest.mark.parametrize("infinite", [False, True])
def test_several_files_with_splits(dataset_module, images, workers, infinite):
    for split, first in (("dataset1", 0), ("dataset2", 100)):
        writer = importlib.import_module("tfrecord").TFRecordWriter(
            str(images / f"{split}.tfrecord")
        )
        for k in range(8):
            writer.write({"index": (first + k, "int")})
        writer.close()
        importlib.import_module("tfrecord.tools").create_index(
            str(images / f"{split}.tfrecord"), str(images / f"{split}.index")
        )
    tfrecord_pattern = str(images / "{}.tfrecord")
    index_pattern = str(images / "{}.index")
    splits = {"dataset1": 0.8, "dataset2": 0.2}
    description = {"index": "int"}
    dataset = dataset_module.MultiTFRecordDataset(
        tfrecord_pattern, index_pattern, splits, description, infinite=infinite
    )
    loader = DataLoader(dataset, batch_size=4, num_workers=workers)
    batches = itertools.islice(loader, 20) if infinite else loader
    read = [v for batch in batches for v in batch["index"].flatten().tolist()]
    if infinite:
        assert len(read) == 80
        assert set(read) <= {*range(8), *range(100, 108)}
    else:
        assert sorted(read) == [*range(8), *range(100, 108)]


def test_shuffling_the_data(dataset_module, images, workers):
    dataset = dataset_module.TFRecordDataset(
        str(images / "data.tfrecord"),
        str(images / "data.tfindex"),
        {"index": "int"},
        shuffle_queue_size=4,
    )
    loader = DataLoader(dataset, batch_size=4, num_workers=workers)
    read = [v for batch in loader for v in batch["index"].flatten().tolist()]
    assert sorted(read) == list(range(12))


def decode_image(features):
    """Decode the bytes in place, as the README's transform does with OpenCV."""
    image = importlib.import_module("PIL.Image").open(io.BytesIO(features["image"]))
    features["image"] = np.array(image)
    return features


def test_transforming_input_data(dataset_module, images, workers):
    description = {"image": "bytes", "index": "int "}
    dataset = dataset_module.TFRecordDataset(
        str(images / "data.tfrecord"), None, description, transform=decode_image
    )
    batches = list(DataLoader(dataset, batch_size=3, num_workers=workers))
    assert all(batch["image"].shape == (3, 5, 7, 3) for batch in batches)
    for batch in batches:
        for image, index in zip(batch["image"], batch["index"], strict=True):
            assert np.array_equal(image.numpy(), IMAGE + int(index))


def test_writing_and_reading_examples(tfrecord, tmp_path, workers):
    writer = tfrecord.TFRecordWriter(str(tmp_path / "data.tfrecord"))
    writer.write(
        {
            "image": (zlib.compress(IMAGE.tobytes()), "byte"),
            "label": (2.5, "float"),
            "index": (1, "int"),
        }
    )
    writer.close()
    loader = tfrecord.tfrecord_loader(
        str(tmp_path / "data.tfrecord"),
        None,
        {"image": "byte", "label": "float", "index": "int"},
    )
    (record,) = loader
    assert zlib.decompress(record["image"]) == IMAGE.tobytes()
    assert record["label"].tolist() == [2.5]
    assert record["index"].tolist() == [1]


@pytest.fixture
def sequences(tfrecord, tmp_path):
    """Write the SequenceExamples of the README, three of 3, 2 and 4 steps."""
    path = str(tmp_path / "seq.tfrecord")
    writer = tfrecord.TFRecordWriter(path)
    for k, steps in enumerate((3, 2, 4)):
        writer.write(
            {"length": (steps, "int"), "label": (k, "int")},
            {
                "tokens": ([[t, t + 1] for t in range(steps)], "int"),
                "seq_labels": ([t % 2 for t in range(steps)], "int"),
            },
        )
    writer.close()
    return path


def test_reading_sequence_examples(tfrecord, sequences, workers):
    context, features = next(
        iter(
            tfrecord.tfrecord_loader(
                sequences,
                None,
                {"length": "int", "label": "int"},
                sequence_description={"tokens": "int", "seq_labels": "int"},
            )
        )
    )
    assert (context["length"].tolist(), context["label"].tolist()) == ([3], [0])
    assert [step.tolist() for step in features["tokens"]] == [[0, 1], [1, 2], [2, 3]]
    assert [step.tolist() for step in features["seq_labels"]] == [[0], [1], [0]]


def pad_sequence_feats(data):
    context, features = data
    for key, steps in features.items():
        features[key] = np.pad(np.stack(steps), ((0, 5 - len(steps)), (0, 0)), constant_values=0)
    return context, features


def test_padding_in_a_transform(dataset_module, sequences, workers):
    dataset = dataset_module.TFRecordDataset(
        sequences,
        None,
        {"length": "int", "label": "int"},
        transform=pad_sequence_feats,
        sequence_description={"tokens": "int ", "seq_labels": "int "},
    )
    rows = [
        (int(context["length"][k, 0]), features["tokens"][k])
        for context, features in DataLoader(dataset, batch_size=2, num_workers=workers)
        for k in range(len(context["length"]))
    ]
    assert sorted(length for length, _ in rows) == [2, 3, 4]
    for length, tokens in rows:
        assert tokens.shape == (5, 2)
        assert tokens[:length].tolist() == [[t, t + 1] for t in range(length)]
        assert not tokens[length:].any()


def collate_fn(batch):
    from torch.nn.utils import rnn

    context, features = zip(*batch, strict=True)
    labels = torch.tensor([int(item["label"][0]) for item in context])
    tokens = [torch.tensor(np.stack(item["tokens"])) for item in features]
    return labels, rnn.pad_sequence(tokens, batch_first=True)


def test_a_collate_function_of_ones_own(dataset_module, sequences, workers):
    dataset = dataset_module.TFRecordDataset(
        sequences,
        None,
        {"label": "int"},
        sequence_description={"tokens": "int"},
    )
    loader = DataLoader(dataset, batch_size=3, num_workers=workers, collate_fn=collate_fn)
    batches = list(loader)
    assert sorted(int(label) for labels, _ in batches for label in labels) == [0, 1, 2]
    if not workers:
        ((_, tokens),) = batches
        assert tokens.shape == (3, 4, 2)
        assert tokens[1].tolist() == [[0, 1], [1, 2], [0, 0], [0, 0]]
