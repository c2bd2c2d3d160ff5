"""`tfrio.info`: what files hold, sound or damaged, Example or not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tfrio
from tfrio.geo.mixer import Mixer, write_mixer
from tfrio.survey import info
from tfrio.types import XY, Affine6


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    """Write rows as Examples."""
    with tfrio.Writer(path) as writer:
        for row in rows:
            writer.write(row)
    return path


def test_features_are_told_with_kinds_lengths_and_presence(tmp_path: Path) -> None:
    rows = [
        {"id": [1], "x": np.float32([1, 2]), "name": b"a"},
        {"id": [2], "x": np.float32([])},
        {"id": [3], "x": np.float32([1, 2, 3]), "name": b"b"},
    ]
    report = info(write(tmp_path / "with space ç.tfrecord.gz", rows))
    assert (report.content, report.records, report.sampled) == ("example", 3, 3)
    assert report.compressions == ("gzip",)
    found = {f.name: f for f in report.features}
    assert found["id"].kinds == ("int64",)
    assert found["id"].lengths == (1, 1)
    assert (found["x"].lengths, found["x"].empty, found["x"].absent) == ((0, 3), 1, 0)
    assert (found["name"].present, found["name"].absent) == (2, 1)
    assert report.checks.ok
    json.dumps(report.to_dict(), default=lambda value: value.__slots__)


def test_axes_that_were_noted_are_told(tmp_path: Path) -> None:
    rows = [{"x": np.ones((2, 3)), "free": np.ones((n, 2)), "n": n} for n in (1, 2)]
    paths = [write(tmp_path / name, rows) for name in ("a.tfrecord", "b.tfrecord")]
    found = {f.name: f.shape for f in info(paths).features}
    assert found == {"x": (2, 3), "free": (-1, 2), "n": None}
    (tmp_path / "b.tfrecord.schema.json").unlink()
    assert {f.shape for f in info(paths).features} == {None}
    (tmp_path / "b.tfrecord.schema.json").write_text("{")
    (note,) = info(paths).notes
    assert "b.tfrecord.schema.json" in note
    assert "remove the file to go on without" in note


def test_kinds_that_disagree_are_both_told(tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", [{"x": [1]}])
    write(tmp_path / "b.tfrecord", [{"x": [1.5]}])
    (feature,) = info(tmp_path).features
    assert set(feature.kinds) == {"int64", "float"}


def test_other_messages_are_named_not_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.tfrecord"
    with tfrio.RecordWriter(path) as writer:
        writer.write(b"\x08\x96\x01")
        writer.write(np.random.default_rng(1).bytes(500))
    report = info(path)
    assert (report.content, report.records, report.features) == ("other", 2, ())
    assert report.checks.ok


def test_an_empty_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "none.tfrecord").touch()
    assert info(tmp_path / "none.tfrecord").content == "empty"


def test_damage_is_reported_and_the_rest_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "three.tfrecord", [{"id": [k]} for k in range(3)])
    data = bytearray(path.read_bytes())
    data[len(data) // 3 + 14] ^= 4  # in the payload of record 1
    path.write_bytes(data)
    report = info(path)
    assert (report.records, report.sampled) == (2, 2)
    assert [f.name for f in report.features] == ["id"]
    assert [f.kind for f in report.checks.findings] == ["damage"]


@pytest.mark.parametrize(("length", "kernel"), [(7 * 5, (0, 0)), (9 * 9, (2, 4)), (50, None)])
def test_mixer_is_told_with_the_only_kernel_that_fits(
    tmp_path: Path, length: int, kernel: tuple[int, int] | None
) -> None:
    write(tmp_path / "e-00000.tfrecord", [{"B2": np.zeros(length, np.float32)}] * 6)
    affine = Affine6(10, 0, 500_000, 0, -10, 4_500_000)
    write_mixer(tmp_path / "e-mixer.json", Mixer("EPSG:32618", affine, XY(7, 5), 2, 6))
    report = info(tmp_path)
    (export,) = report.exports
    assert (export.patch, export.patches, export.columns, export.rows) == ((7, 5), 6, 2, 3)
    assert (export.crs, export.affine) == ("EPSG:32618", affine)
    assert export.kernel == kernel
    assert report.checks.ok


def test_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing-here"):
        info(tmp_path / "nothing-here")


def test_real_earth_engine_shard(shared: Path) -> None:
    report = info(shared / "data" / "ee" / "phen_asynch")
    (export,) = report.exports
    assert (export.patch, export.kernel, export.patches) == ((256, 256), (60, 60), 15)
    assert len(report.features) == 5


def test_odd_names_and_odd_payloads_are_noted(tmp_path: Path) -> None:
    with tfrio.Writer(tmp_path / "a.tfrecord", utf8="surrogateescape") as writer:
        writer.write({"a\udcff": 1, "ok": 2})
        writer.write_payload(b"\xff\xff")
        writer.write({"ok": 2})
    report = info(tmp_path / "a.tfrecord")
    assert (report.records, report.sampled) == (3, 1)
    assert [f.name for f in report.features] == ["a\udcff", "ok"]
    name, payload = report.notes
    assert name.startswith("the name of feature 'a\\xff' is not UTF-8")
    assert "sound record 1 is no tf.train.Example" in payload
    json.dumps(report.to_dict(), default=lambda value: value.__slots__).encode()
    assert not info(write(tmp_path / "b.tfrecord", [{"x": [1]}])).notes


def test_a_schema_is_compared_with_what_was_seen(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", [{"x": [1], "y": 2.5}])
    fits = info(path, schema={"x": tfrio.Feature("int64", (1,))}).schema
    assert fits is not None
    assert fits.ok
    assert fits.unlisted == ("y",)
    misfit = info(path, schema={"x": "float"}).schema
    assert misfit is not None
    assert "the schema says float" in str(misfit)
    assert misfit.to_dict()["ok"] is False
    assert info(path).schema is None


def test_files_of_different_messages_are_told_apart(tmp_path: Path) -> None:
    plain = write(tmp_path / "a.tfrecord", [{"id": [1]}, {"id": [2]}])
    with tfrio.Writer(tmp_path / "b.tfrecord") as writer:
        writer.write_sequence({"id": [3]}, {})  # the bytes of an Example
        writer.write_sequence({"id": [4]}, {"words": [np.int64([1])]})
    report = info(tmp_path)
    assert report.contents == {
        "example": (str(plain),),
        "sequence": (str(tmp_path / "b.tfrecord"),),
    }
    assert info(plain).contents == {"example": (str(plain),)}
