"""Arguments of a wrong simple type: one clear error each, whatever function or class takes them.

Each row of the table is a call that works, and for some of its arguments values that do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrio
from tests.support.samples import write_points, write_scene
from tfrio.torch import EpisodeDataset, PatchDataset, TFRecordDataset, TFRecordMapDataset

ODD: tuple[Any, ...] = (5, 1.5, object(), "GENERATOR", True)
"""What is neither text, nor a list, nor a dict of them."""
NO_COUNT: tuple[Any, ...] = (0, -1, 1.5, "4", b"4", [4], object(), np.arange(3), float("nan"))
NO_PATH: tuple[Any, ...] = (None, 5, 1.5, object(), {}, [], [None], "")
NO_NAMES: tuple[Any, ...] = (5, 1.5, object(), [5], b"id", "GENERATOR")
NO_NUMBER: tuple[Any, ...] = ("word", [1], object(), np.arange(3), True)


@dataclass(frozen=True)
class Row:
    """A call, made within a folder of data, and what it must not take."""

    call: Callable[..., Any]
    good: dict[str, Any]
    wrong: dict[str, tuple[Any, ...]] = field(default_factory=dict)


def several(count: int = 2) -> list[TFRecordDataset]:
    return [dataset() for _ in range(count)]


def dataset() -> TFRecordDataset:
    return TFRecordDataset("shards", batch_size=4, index="memory")


DATASET = {
    "paths": NO_PATH,
    "features": NO_NAMES,
    "schema": (*ODD, "float", [1]),
    "images": (None, *NO_NAMES),
    "batch_size": NO_COUNT,
    "seed": (1.5, "1", [1]),
    "window": NO_COUNT,
    "rank": (0, 1.5, "0", -1),  # without world_size, too
    "world_size": (2, 0, -1, "2"),
    "chunk": NO_COUNT,
    "threads": (-1, 1.5, "2", [1], object()),
    "index": (None, "nowhere", Path("nowhere"), 5),
    "max_bad": (-1, 1.5, "2"),
}
READ = {
    "features": NO_NAMES,
    "schema": (*ODD, "float"),
    "report": ODD,
    "max_bad": (-1, 1.5, "2"),
    "threads": NO_COUNT[1:],
    "utf8": (None, "ascii", [], {}),
    "errors": (None, "ignore", 5),
}
TABLE = {
    "tfrio.XY.of": Row(
        tfrio.XY.of, {"value": (2, 3)}, {"value": (1.5, object(), True, None, (1, 2, 3), -1)}
    ),
    "tfrio.Schema": Row(tfrio.Schema, {"features": {"a": "float"}}, {"features": (*ODD, "float")}),
    "tfrio.Feature": Row(
        tfrio.Feature, {"kind": "float"}, {"kind": (None, 5, "double"), "shape": (-5, (-2,), 1.5)}
    ),
    "tfrio.read": Row(tfrio.read, {"paths": "shards"}, {"paths": NO_PATH, **READ}),
    "tfrio.read_batches": Row(
        tfrio.read_batches,
        {"paths": "shards", "batch_size": 4},
        {"paths": NO_PATH, "batch_size": (None, *NO_COUNT), **READ},
    ),
    "tfrio.read_records": Row(
        tfrio.read_records,
        {"path": "shards"},
        {"path": NO_PATH, "start": (None, -1, 1.5, "4"), "report": ODD, "threads": NO_COUNT[1:]},
    ),
    "tfrio.open": Row(tfrio.open, {"paths": "shards"}, {"paths": NO_PATH, "features": NO_NAMES}),
    "tfrio.stats": Row(
        tfrio.stats, {"paths": "shards"}, {"fill": (5, "x", {"x": "0"}), "features": NO_NAMES}
    ),
    "tfrio.infer_schema": Row(
        tfrio.infer_schema, {"paths": "shards"}, {"sample": NO_COUNT, "utf8": (None, 5, [])}
    ),
    "tfrio.verify": Row(tfrio.verify, {"paths": "shards"}, {"start": (None, -1, 1.5, "4")}),
    "tfrio.Writer": Row(tfrio.Writer, {"path": "w"}, {"path": NO_PATH, "schema": (*ODD, "float")}),
    "tfrio.ShardedWriter": Row(
        tfrio.ShardedWriter,
        {"prefix": "sharded", "shards": 2},
        {"prefix": NO_PATH, "shards": NO_COUNT, "suffix": (None, 5, [])},
    ),
    "tfrio.ArrayDataset": Row(tfrio.ArrayDataset, {"paths": "shards", "batch_size": 4}, DATASET),
    "tfrio.mix": Row(
        lambda **given: tfrio.mix(given.pop("datasets", None) or several(), **given),
        {},
        {
            "datasets": (5, object(), "shards", [5], {"a": 1}, "GENERATOR", Path("shards")),
            "weights": (5, 1.5, object(), True, [1], [1, "2"], [1, None], [0, 1], [-1, 2]),
            "length": NO_COUNT,
            "stop": (None, "never", 5),
        },
    ),
    "tfrio.torch.TFRecordDataset": Row(TFRecordDataset, {"paths": "shards"}, DATASET),
    "tfrio.torch.TFRecordMapDataset": Row(
        TFRecordMapDataset,
        {"paths": "shards"},
        {name: DATASET[name] for name in ("paths", "features", "schema", "images", "index")},
    ),
    "tfrio.torch.EpisodeDataset": Row(
        EpisodeDataset,
        {"paths": "shards"},
        {"window": NO_COUNT, "stride": (None, *NO_COUNT), "paths": NO_PATH, "batch_size": NO_COUNT},
    ),
    "tfrio.torch.PatchDataset": Row(
        PatchDataset,
        {"export": "out/a"},
        {
            "export": (None, 5, 1.5, ""),
            "bands": (*NO_NAMES, ["B99"]),
            "label": (5, [], ["B2", "B3"], "B99"),
            "kernel": (5, (1, 2, 3), "a", 1.5),
            "nan_to": NO_NUMBER,
            "nodata": NO_NUMBER,
            "normalize": (5, "B2", {"B2": 5}, [1]),
            "batch_size": NO_COUNT,
        },
    ),
    "loader": Row(
        lambda **given: dataset().loader(**given),
        {},
        {"num_workers": (None, *NO_COUNT[1:]), "prefetch_factor": NO_COUNT},
    ),
    "split": Row(
        lambda **given: dataset().split(**{"fractions": [0.5, 0.5], **given}),
        {},
        {
            "fractions": (None, *ODD, "half", [0.5], ["a", "b"], [-1, 2], [float("nan")] * 2),
            "seed": (None, 1.5, "1", [1]),
            "groups": (*ODD, "ab", [1, 2]),
            "by": (None, "day", 5),
        },
    ),
    "state_dict": Row(lambda **given: dataset().state_dict(**given), {}, {"items": NO_COUNT[1:]}),
    "load_state_dict": Row(
        lambda state: dataset().load_state_dict(state),
        {"state": {}},
        {"state": (None, 5, "epoch", [1], {}, "GENERATOR")},
    ),
    "tfrio.torch.merge_states": Row(
        tfrio.torch.merge_states, {"states": []}, {"states": (None, 5, [], [5], "GENERATOR")}
    ),
    "tfrio.torch.spatial_blocks": Row(
        tfrio.torch.spatial_blocks,
        {"patches": np.arange(6), "patches_per_row": 3, "block": (2, 1)},
        {
            "patches": (None, 5, "all", [0.5], [None], object()),
            "patches_per_row": (None, *NO_COUNT),
            "block": (None, 0, (1, 2, 3), "a"),
        },
    ),
    "tfrio.geo.array_source": Row(
        tfrio.geo.array_source,
        {"values": np.zeros((4, 6)), "transform": (10, 0, 0, 0, -10, 0), "crs": "EPSG:32618"},
        {"nodata": NO_NUMBER, "names": (*NO_NAMES, ["a", "b"]), "transform": (None, 5, (1, 2))},
    ),
    "tfrio.geo.Split": Row(
        tfrio.geo.Split, {}, {"validation": (*NO_NUMBER, None, 0, 1, -1), "block": (0, "a")}
    ),
    "tfrio.geo.export_image": Row(
        tfrio.geo.export_image,
        {"source": "scene.tif", "prefix": "out/new", "patch": (72, 48)},
        {
            "source": (None, 5, [], {}, [None], object()),
            "patch": (None, 0, -1, 1.5, "72", (1, 2, 3), [None, 1]),
            "kernel": (None, 0, -1, 1.5, "5", (1, 2, 3)),
            "bands": (*ODD, "B2"),
            "labels": (*ODD, "p.geojson", ["p.geojson"]),
            "at": (*ODD, "p.geojson", [(1, 2)]),
            "split": (*ODD, 0.2, "half"),
            "format_options": (*ODD, "patch", [1]),
            "tensor_depths": (*ODD, "B2", {"B2": 2}),
            "patch_index": (5, ["i"], object()),
            "executor": (None, 5, "thread", object()),
            "default_value": NO_NUMBER,
            "max_file_size": (None, *NO_COUNT),
        },
    ),
    "tfrio.geo.export_images": Row(
        tfrio.geo.export_images,
        {"sources": ["scene.tif"], "prefix": "out/many", "options": {"patch": (72, 48)}},
        {"sources": (None, *ODD[:3], "scene.tif"), "options": (None, 5, [1], {"ptach": 5})},
    ),
    "tfrio.geo.import_image": Row(
        tfrio.geo.import_image,
        {"predictions": "out/a", "out": "new.tif", "mixer": "out/a", "check": "off"},
        {
            "predictions": (None, 5, [], {}, [None], object()),
            "mixer": (5, object(), 1.5),
            "bands": (*NO_NAMES, ["B99"]),
            "depth": NO_COUNT,
            "nodata": NO_NUMBER,
            "class_names": (*ODD[:3], {"a": "b"}, "water"),
            "colors": (*ODD[:3], {"a": "b"}, [5], [None], ["red"], [(1.5, 2, 3)]),
            "quicklook": (None, 5, [], object()),
            "inputs": (5, object()),
        },
    ),
    "tfrio.geo.open_export": Row(
        tfrio.geo.open_export,
        {"export": "out/a"},
        {
            "export": (None, 5, object(), []),
            "records": (5, [], object()),
            "bands": (*NO_NAMES, ["B99"]),
            "depth": NO_COUNT,
        },
    ),
    "tfrio.geo.extract_patches": Row(
        tfrio.geo.extract_patches,
        {"export": "out/a", "out": "extracted", "patches": [0]},
        {"patches": (5, 1.5, "0", [99], [None], object()), "export": (None, 5), "out": NO_PATH},
    ),
    "tfrio.geo.quicklook": Row(
        tfrio.geo.quicklook,
        {"raster": "scene.tif", "out": "quick.png"},
        {"raster": NO_PATH[:5], "size": (None, *NO_COUNT), "colors": (*ODD, [1])},
    ),
    "tfrio.tables.export_table": Row(
        tfrio.tables.export_table,
        {"source": "p.geojson", "prefix": "out/table", "xy": ("x", "y")},
        {
            "source": (5, [5], object(), "GENERATOR"),
            "selectors": NO_NAMES,
            "xy": (*ODD, "xy", ("x",), ("x", "y", "z"), (1, 2)),
            "types": (*ODD, "float", [1]),
            "fill": ([1], object(), "GENERATOR"),
        },
    ),
    "tfrio.tables.import_table": Row(
        tfrio.tables.import_table,
        {"path": "out/t.tfrecord.gz", "out": "table.csv"},
        {
            "xy": (*ODD, "xy", ("x",), ("x", "y", "z")),
            "columns": NO_NAMES,
            "shapes": (*ODD, [1]),
            "types": (*ODD, [1], {"ndvi": 5}),
            "dates": (*ODD, [1], {"ndvi": 5}),
        },
    ),
    "tfrio.tables.extract_images": Row(
        tfrio.tables.extract_images,
        {"paths": "image", "out": "images", "image": "im", "shape": (2, 3)},
        {"shape": (5, "23", (2,), (2, -3), ("2", 3)), "records": (5, (1,), (0, 1, 2), ("0", 1))},
    ),
    "tfrio.tables.read_patches": Row(
        tfrio.tables.read_patches,
        {"paths": "out/a-00000.tfrecord.gz", "batch_size": 2, "size": (76, 50)},
        {"batch_size": (None, *NO_COUNT), "features": NO_NAMES, "size": (0, 1.5, "76", (1, 2, 3))},
    ),
}
CASES = [
    pytest.param(call, name, value, id=f"{call}-{name}-{number}")
    for call, row in TABLE.items()
    for name, values in row.wrong.items()
    for number, value in enumerate(values)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some of everything: shards, a scene and its export, a table, an image."""
    folder = tmp_path_factory.mktemp("arguments")
    (folder / "shards").mkdir()
    for shard in range(2):
        with tfrio.Writer(folder / "shards" / f"s-{shard:05d}-of-00002.tfrecord") as writer:
            for number in range(10 * shard, 10 * shard + 10):
                writer.write({"id": number, "x": np.float32([number, 0.5]), "name": "a"})
    write_scene(folder / "scene.tif")
    write_points(folder / "p.geojson")
    tfrio.geo.export_image(
        folder / "scene.tif", folder / "out" / "a", patch=(72, 48), kernel=(5, 3), statistics=True
    )
    tfrio.tables.export_table(folder / "p.geojson", folder / "out" / "t", xy=("x", "y"))
    with tfrio.Writer(folder / "image") as writer:
        writer.write({"im": bytes(6)})
    return folder


def drained(result: Any) -> None:
    """Take what a generator or dataset gives, where errors of reading come."""
    if isinstance(result, Iterator):
        next(result, None)
    elif isinstance(result, tfrio.ArrayDataset):
        next(iter(result), None)
    elif isinstance(result, tfrio.Writer | tfrio.ShardedWriter):
        result.close()


def with_overwrite(call: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with which a call may come after another one."""
    replaces = ("export_table", "import_table", "extract", "export_image", "import_image")
    if call.endswith("export_images") and isinstance(given["options"], dict):
        return {**given, "options": {**given["options"], "overwrite": True}}
    kept = call.endswith("export_images") or not any(part in call for part in replaces)
    return given if kept else {**given, "overwrite": True}


@pytest.mark.parametrize("call", [name for name in TABLE if "state" not in name])
@pytest.mark.filterwarnings("ignore::tfrio.TfrioWarning")
def test_each_row_is_a_call_that_works(folder, monkeypatch, call) -> None:
    monkeypatch.chdir(folder)
    drained(TABLE[call].call(**with_overwrite(call, TABLE[call].good)))


@pytest.mark.parametrize(("call", "name", "value"), CASES)
@pytest.mark.filterwarnings("ignore::tfrio.TfrioWarning")
def test_a_wrong_argument_is_one_clear_error(folder, monkeypatch, call, name, value) -> None:
    monkeypatch.chdir(folder)
    given = (
        (number for number in (1, 2)) if isinstance(value, str) and value == "GENERATOR" else value
    )
    with pytest.raises((tfrio.TfrioError, FileNotFoundError)) as caught:
        drained(TABLE[call].call(**with_overwrite(call, {**TABLE[call].good, name: given})))
    assert 15 < len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)
