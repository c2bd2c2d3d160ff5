"""Episodes: SequenceExamples and RLDS folders, whole, padded, or as windows of steps."""

from __future__ import annotations

import io
import itertools
import json

import numpy as np
import pytest
import torch
from PIL import Image

from tests.datasets.conftest import ids
from tfrio import Writer
from tfrio.datasets.episodes import step_windows
from tfrio.errors import SchemaError, TfrioWarning, UsageError
from tfrio.examples.schema import Feature, Schema
from tfrio.torch import EpisodeDataset

LENGTHS = (3, 5, 0, 4, 1, 2)


def png(step):
    """Return a PNG of 2 x 3 pixels (height x width) whose first pixel tells the step."""
    image = np.full((2, 3, 3), 10 + step, np.uint8)
    out = io.BytesIO()
    Image.fromarray(image).save(out, format="PNG")
    return out.getvalue()


def tensor(dtype, *dims):
    return {"tensor": {"dtype": dtype, "shape": {"dimensions": [str(d) for d in dims]}}}


def features_json():
    observation = {"image": {"image": {"dtype": "uint8", "shape": {"dimensions": ["2", "3", "3"]}}}}
    steps = {
        "action": tensor("float32", 7),
        "is_last": tensor("bool"),
        "observation": {"featuresDict": {"features": observation}},
    }
    sequence = {"feature": {"featuresDict": {"features": steps}}, "length": "-1"}
    return {"featuresDict": {"features": {"steps": {"sequence": sequence}, "id": tensor("int64")}}}


@pytest.fixture(scope="module")
def rlds(tmp_path_factory):
    """Return a folder as TensorFlow Datasets writes it: six episodes in two shards."""
    folder = tmp_path_factory.mktemp("rlds")
    (folder / "features.json").write_text(json.dumps(features_json()))
    splits = [{"name": "train", "shardLengths": ["3", "3"]}, {"name": "val", "shardLengths": ["1"]}]
    (folder / "dataset_info.json").write_text(json.dumps({"splits": splits}))
    schema = Schema(
        {
            "id": Feature("int64", ()),
            "steps/action": Feature("float"),
            "steps/is_last": Feature("int64"),
            "steps/observation/image": Feature("bytes"),
        }
    )
    for shard in range(2):
        with Writer(folder / f"toy-train.tfrecord-{shard:05d}-of-00002", schema=schema) as writer:
            for episode in range(3 * shard, 3 * shard + 3):
                steps = LENGTHS[episode]
                writer.write(
                    {
                        "id": episode,
                        "steps/action": np.arange(7 * steps, dtype=np.float32),
                        "steps/is_last": np.arange(steps) == steps - 1,
                        "steps/observation/image": [png(step) for step in range(steps)],
                    }
                )
    with Writer(folder / "toy-val.tfrecord-00000-of-00001", schema=schema) as writer:
        writer.write(
            {
                "id": 9,
                "steps/action": np.zeros(7, np.float32),
                "steps/is_last": [1],
                "steps/observation/image": [png(0)],
            }
        )
    return folder


def test_rlds_episodes_without_tensorflow(rlds):
    episodes = list(EpisodeDataset(rlds))
    assert [int(episode["id"]) for episode in episodes] == list(range(6))
    for episode, steps in zip(episodes, LENGTHS, strict=True):
        assert episode["steps/action"].shape == (steps, 7)
        assert episode["steps/is_last"].dtype == torch.bool
        assert len(episode["steps/observation/image"]) == steps
    second = episodes[0]
    assert second["steps/action"][1].tolist() == list(range(7, 14))
    assert second["steps/is_last"].tolist() == [False, False, True]
    image = second["steps/observation/image"][1]
    assert image.shape == (2, 3, 3)
    assert image.dtype == torch.uint8
    assert (image == 11).all()
    assert ids(EpisodeDataset(rlds, split="val")) == [9]


def test_rlds_padded_batches(rlds):
    names = ["id", "steps/action"]
    batches = list(EpisodeDataset(rlds, batch_size=2, features=names))
    assert batches[0]["steps/action"].shape == (2, 5, 7)
    assert batches[0]["steps/action/lengths"].tolist() == [3, 5]
    assert batches[1]["steps/action/lengths"].tolist() == [0, 4]
    assert (batches[0]["steps/action"][0, 3:] == 0).all()


def test_windows_of_steps(rlds):
    data = EpisodeDataset(rlds, window=2, stride=2)
    cut = {int(episode["id"]): episode for episode in data}
    assert cut[1]["steps/action"].shape == (2, 2, 7)
    assert cut[1]["steps/action"][1, 0].tolist() == list(range(14, 21))
    assert cut[4]["steps/action"].shape == (0, 2, 7)
    windows = cut[3]["steps/observation/image"]
    assert [[int(image[0, 0, 0]) for image in window] for window in windows] == [[10, 11], [12, 13]]
    counted = EpisodeDataset(rlds, window=3, transform=lambda row: len(row["steps/action"]))
    assert list(counted) == [max(0, steps - 2) for steps in LENGTHS]


@pytest.mark.parametrize("workers", [0, 2])
def test_windows_come_from_a_loader_and_are_resumed(rlds, workers):
    def loader():
        data = EpisodeDataset(rlds, window=2, shuffle=True, seed=1, features=["id", "steps/action"])
        return data.loader(num_workers=workers)

    made = loader()
    whole = list(made)
    assert [int(episode["id"]) for episode in whole] == ids(loader())
    assert sorted(len(e["steps/action"]) for e in whole) == sorted(max(0, n - 1) for n in LENGTHS)
    assert made.state_dict()["epoch"] == 1
    begun, again = loader(), loader()
    first = ids(itertools.islice(iter(begun), 2))
    again.load_state_dict(begun.state_dict())
    assert first + ids(again) == ids(whole)


def test_ranks_share_the_episodes(rlds):
    seen = [
        ids(EpisodeDataset(rlds, shuffle=True, seed=1, rank=rank, world_size=2))
        for rank in range(2)
    ]
    assert sorted(seen[0] + seen[1]) == list(range(6))


def test_missing_split_or_shard_is_told(rlds, tmp_path):
    with pytest.raises(UsageError, match=r"no split 'test'.*train.*val"):
        EpisodeDataset(rlds, split="test")
    for path in rlds.iterdir():
        if "00001-of" not in path.name:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(UsageError, match="2 shards, 1 are here"):
        EpisodeDataset(tmp_path)
    (tmp_path / "dataset_info.json").write_text("[]")
    with pytest.raises(SchemaError, match="dataset_info"):
        EpisodeDataset(tmp_path)
    with pytest.raises(UsageError, match="batch_size"):
        EpisodeDataset(rlds, window=2, batch_size=4)


def test_shards_without_a_record_are_not_missing(rlds, tmp_path):
    for path in rlds.iterdir():
        (tmp_path / path.name.replace("of-00002", "of-00003")).write_bytes(path.read_bytes())
    tmp_path.joinpath("dataset_info.json").write_text(
        json.dumps({"splits": [{"name": "train", "shardLengths": ["3", "3", "0"]}]})
    )
    first = next(path for path in tmp_path.iterdir() if "00000-of-00003" in path.name)
    (tmp_path / first.name.replace("00000", "00002")).touch()
    assert len(list(EpisodeDataset(tmp_path, index="memory"))) == 6


def test_other_numbers_of_records_than_described_are_told(rlds, tmp_path):
    for path in rlds.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    splits = [{"name": "train", "shardLengths": ["3", "150"]}]
    (tmp_path / "dataset_info.json").write_text(json.dumps({"splits": splits}))
    data = EpisodeDataset(tmp_path, index="memory")
    with pytest.warns(TfrioWarning, match=r"00001-of-00002: holds 3 records, .* says 150 \(1 of 2"):
        assert len(list(data)) == 6
    assert len(list(data)) == 6  # told once; a warning would be an error here
    assert len(list(EpisodeDataset(rlds, index="memory").split([0.5, 0.5])[0])) == 3


@pytest.mark.parametrize("options", [{"window": 0}, {"window": -1}, {"window": 2, "stride": 0}])
def test_windows_of_no_steps_are_refused(rlds, options):
    with pytest.raises(UsageError, match=r"(window|stride) must be a whole number of at least 1"):
        EpisodeDataset(rlds, **options)


def write_sequences(path):
    """Write SequenceExamples: id in the context; obs of 4 floats a step, and free tokens."""
    schema = Schema(
        {
            "id": Feature("int64", ()),
            "obs": Feature("float", (4,), place="list"),
            "tok": Feature("int64", place="list"),
        }
    )
    with Writer(path, schema=schema) as writer:
        for number, steps in enumerate(LENGTHS[:2]):
            writer.write(
                {
                    "id": number,
                    "obs": np.arange(4.0 * steps, dtype=np.float32).reshape(steps, 4),
                    "tok": [list(range(step)) for step in range(steps)],
                }
            )
    return schema


@pytest.mark.parametrize("given", [True, False])
def test_sequence_examples_as_episodes_and_padded(tmp_path, given):
    schema = write_sequences(tmp_path / "seq.tfrecord")
    options = {"schema": schema} if given else {}
    episodes = list(EpisodeDataset(tmp_path / "seq.tfrecord", **options))
    assert [tuple(e["obs"].shape) for e in episodes] == [(3, 4), (5, 4)]
    assert [step.tolist() for step in episodes[0]["tok"]] == [[], [0], [0, 1]]
    (batch,) = EpisodeDataset(tmp_path / "seq.tfrecord", batch_size=2, **options)
    assert batch["obs"].shape == (2, 5, 4)
    assert batch["obs/lengths"].tolist() == [3, 5]
    assert batch["tok"].shape == (2, 5, 4)
    assert batch["tok/lengths"].tolist() == [3, 5]
    assert batch["tok/step_lengths"].tolist() == [[0, 1, 2, 0, 0], [0, 1, 2, 3, 4]]
    assert batch["tok"][1, 4].tolist() == [0, 1, 2, 3]
    (windows, _) = EpisodeDataset(tmp_path / "seq.tfrecord", window=2, **options)
    assert windows["obs"].shape == (2, 2, 4)


def test_a_step_of_another_length_names_record_and_step(tmp_path):
    schema = Schema({"obs": Feature("float", place="list")})
    with Writer(tmp_path / "bad.tfrecord", schema=schema) as writer:
        writer.write({"obs": [[1.0] * 4, [2.0] * 4]})
        writer.write({"obs": [[1.0] * 4, [2.0] * 5]})
    fixed = {"obs": Feature("float", (4,), place="list")}
    with pytest.raises(SchemaError, match="step 1") as caught:
        list(EpisodeDataset(tmp_path / "bad.tfrecord", schema=fixed))
    assert caught.value.record == 1


def test_golden_sequence(shared):
    (episode,) = EpisodeDataset(shared / "fixtures" / "seq.tfrecord", index="memory")
    assert episode["n"].tolist() == [3]
    assert [step.tolist() for step in episode["tok"]] == [[0, 1], [], [2, 3, 4]]
    assert episode["img"] == [[b"\xff\xd8"], [b""], [b"ab"]]


def test_nested_rows_of_tensorflow_datasets(tmp_path):
    inner = {"sequence": {"feature": tensor("int64"), "length": "-1"}}
    nested = {"sequence": {"feature": inner, "length": "-1"}}
    (tmp_path / "features.json").write_text(
        json.dumps({"featuresDict": {"features": {"k": nested}}})
    )
    with Writer(tmp_path / "toy-train.tfrecord-00000-of-00001") as writer:
        writer.write(
            {
                "k/ragged_flat_values": np.arange(1, 7),
                "k/ragged_row_lengths_0": np.array([2, 1, 3]),
            }
        )
    (row,) = EpisodeDataset(tmp_path)
    assert [step.tolist() for step in row["k"]] == [[1, 2], [3], [4, 5, 6]]


def test_windows_need_equal_lengths():
    row = {"a": torch.zeros(3), "b": torch.zeros(4), "c": 1}
    with pytest.raises(SchemaError, match="differ in length"):
        step_windows(row, ["a", "b"], window=2)
    assert step_windows(row, ["a"], window=2)["a"].shape == (2, 2)
