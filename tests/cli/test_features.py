"""stats and schema on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tfrio
from tests.support.samples import write_shards


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    return write_shards(tmp_path / "with space ç")[0].parent


def columns(line: str) -> list[str]:
    return line.split()


def test_stats_for_people(cli, shards) -> None:
    done = cli("stats", shards)
    lines = done.out.splitlines()
    assert lines[0] == "3 files, 60 records"
    row = next(columns(line) for line in lines if line.startswith("id "))
    assert row[:6] == ["id", "int64", "1", "always", "0", "59"]
    assert float(row[6]) == 29.5
    assert float(row[7]) == pytest.approx(np.arange(60).std(), rel=1e-4)


def test_stats_as_json_of_some_features(cli, shards) -> None:
    report = cli("stats", "--json", "-k", "ragged", shards).json
    (feature,) = report["features"]
    assert (feature["name"], feature["lengths"], feature["empty"]) == ("ragged", [0, 3], 15)


def test_stats_tell_image_formats_nan_and_absence(cli, tmp_path) -> None:
    path = tmp_path / "images.tfrecord"
    with tfrio.Writer(path) as writer:
        writer.write({"image": b"\x89PNG\r\n\x1a\n" + bytes(20), "x": [1.0, float("nan")]})
        writer.write({"image": b"\xff\xd8\xff" + bytes(20)})
    lines = cli("stats", path).out.splitlines()
    image = next(line for line in lines if line.startswith("image"))
    assert "PNG 1" in image
    assert "JPEG 1" in image
    x = next(columns(line) for line in lines if line.startswith("x "))
    assert x[3] == "1"  # present in one of two
    assert x[-2] == "1"  # one NaN


def test_a_schema_is_learned_saved_and_checked(cli, shards, tmp_path) -> None:
    saved = tmp_path / "schema.json"
    done = cli("schema", "infer", shards, "-o", saved)
    assert done.code == 0
    assert "Schema of 3 features" in done.out
    assert json.loads(saved.read_text())["features"]["x"]["shape"] == [2]
    assert tfrio.load_schema(saved)["id"].shape == (1,)
    fits = cli("schema", "check", saved, shards)
    assert (fits.code, fits.out) == (0, "60 records fit\n")


def test_scalars_are_asked_for(cli, shards) -> None:
    features = cli("schema", "infer", "--json", "--scalars", shards).json["features"]
    assert features["id"]["shape"] == []


def test_what_does_not_fit_is_told(cli, shards, tmp_path) -> None:
    other = tmp_path / "other.tfrecord"
    with tfrio.Writer(other) as writer:
        writer.write({"id": [1.5], "new": [1]})
    saved = tmp_path / "schema.json"
    cli("schema", "infer", shards, "-o", saved)
    done = cli("schema", "check", saved, other)
    assert done.code == 1
    assert "'id'" in done.out
    assert "'x'" in done.out
    assert "skipped on reading: new" in done.out
    report = cli("schema", "check", "--json", saved, other)
    assert (report.code, report.json["ok"], report.json["unlisted"]) == (1, False, ["new"])
