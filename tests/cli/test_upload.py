"""upload-manifest on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tfrio
from tfrio.geo.mixer import Mixer, write_mixer
from tfrio.types import XY, Affine6


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with predictions of two shards and their mixer."""
    folder = tmp_path / "with space ç"
    folder.mkdir()
    for shard in range(2):
        with tfrio.Writer(folder / f"map-{shard:05d}.tfrecord") as writer:
            writer.write({"water": [0.0] * 35, "land": [1.0] * 35})
    affine = Affine6(10, 0, 500_000, 0, -10, 4_500_000)
    write_mixer(folder / "map-mixer.json", Mixer("EPSG:32618", affine, XY(7, 5), 2, 2))
    return folder


WHERE = ("--assets", "projects/me/assets", "--uri", "gs://bucket/maps/")


def test_a_manifest_names_files_bands_and_properties(cli, folder: Path) -> None:
    options = (
        "--pyramiding",
        "MODE",
        "--nodata",
        "255",
        "--property",
        "season=dry",
        "--property",
        "run=7",
    )
    done = cli("upload-manifest", folder, *WHERE, *options)
    assert done.code == 0
    assert done.out.startswith("earthengine upload image --manifest ")
    manifest = json.loads((folder / "map-upload.json").read_text())
    assert manifest["name"] == "projects/me/assets/map"
    assert manifest["tilesets"][0]["sources"][0]["uris"] == [
        "gs://bucket/maps/map-00000.tfrecord",
        "gs://bucket/maps/map-00001.tfrecord",
        "gs://bucket/maps/map-mixer.json",
    ]
    assert manifest["pyramidingPolicy"] == "MODE"
    assert manifest["missingData"] == {"values": [255.0]}
    assert manifest["properties"] == {"season": "dry", "run": 7}


def test_what_cannot_be_uploaded_leaves_with_1(cli, folder: Path) -> None:
    (folder / "map-00000.tfrecord").unlink()
    done = cli("upload-manifest", "--json", folder, *WHERE)
    assert done.code == 1
    assert "00000 is missing" in done.json["problems"][0]


def test_assets_and_uri_are_asked_for(cli, folder: Path) -> None:
    done = cli("upload-manifest", folder)
    assert done.code == 2
    assert "--assets" in done.err


def test_a_set_without_mixer_is_told_the_option(cli, folder: Path) -> None:
    (folder / "map-mixer.json").unlink()
    result = cli("upload-manifest", str(folder), *WHERE)
    assert result.code == 1
    assert "copy that of its export here and give it with --mixer" in result.out
