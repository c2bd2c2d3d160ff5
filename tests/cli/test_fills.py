"""`head` and `stats` say which values only fill masked pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rasterio

import tfrio
from tests.support.samples import BANDS, write_scene


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An export without margins: every pixel of the scene that is masked is 0."""
    write_scene(tmp_path / "scene.tif")
    tfrio.geo.export_image(tmp_path / "scene.tif", tmp_path / "out" / "a", patch=(60, 40))
    return tmp_path / "out"


def numbers(cli, *arguments: object) -> dict[str, dict[str, float]]:
    """Return the statistics of each feature."""
    return {row["name"]: row for row in cli("stats", "--json", *arguments).json["features"]}


def test_stats_leave_the_fill_out_when_asked(cli, folder: Path) -> None:
    with rasterio.open(folder.parent / "scene.tif") as file:
        scene = file.read()
    kept, all_of_it = numbers(cli, "--no-fill", folder), numbers(cli, folder)
    for name, band in zip(BANDS, scene, strict=True):
        assert kept[name]["filled"] == int((band == 0).sum()) == 600
        assert kept[name]["minimum"] == band[band > 0].min()
        assert kept[name]["mean"] == pytest.approx(band[band > 0].mean())
        assert kept[name]["std"] == pytest.approx(band[band > 0].std())
        assert kept[name]["values"] == band.size
        assert (all_of_it[name]["filled"], all_of_it[name]["minimum"]) == (0, 0)
        assert all_of_it[name]["mean"] == pytest.approx(band.mean())


def test_stats_say_what_they_did(cli, folder: Path) -> None:
    manifest = folder / "a-manifest.json"
    told = cli("stats", folder).out
    assert f"masked pixels hold 0 ({manifest}), and are counted like the others" in told
    assert "--no-fill leaves them out" in told
    assert " fill " not in told
    left = cli("stats", "--no-fill", folder).out
    assert f"left out as the fill of masked pixels: 0 ({manifest})\n" in left
    assert " fill " in left
    assert "masked pixels hold" not in left


def test_real_pixels_of_that_value_are_owned_up_to(cli, tmp_path: Path) -> None:
    values = np.arange(24, dtype=np.float32).reshape(1, 4, 6)
    source = tfrio.geo.array_source(values, (10, 0, 0, 0, -10, 0), crs="EPSG:32618", names=["b"])
    tfrio.geo.export_image(source, tmp_path / "x", patch=(3, 2))
    told = cli("stats", "--no-fill", tmp_path).out
    assert "; real pixels of that value in b, too" in told
    assert numbers(cli, "--no-fill", tmp_path)["b"]["minimum"] == 1


def test_stats_without_a_manifest_or_with_two_fills(cli, folder: Path) -> None:
    scene = folder.parent / "scene.tif"
    tfrio.geo.export_image(scene, folder / "b", patch=(60, 40), default_value=7)
    both = cli("stats", "--no-fill", folder)
    assert both.code == 2
    assert "fill masked pixels of B2, B3, B4, B8 with different values" in both.err
    assert "masked pixels hold" not in cli("stats", folder).out
    assert cli("stats", "--no-fill", folder / "b-00000.tfrecord.gz").code == 0
    (folder / "b-manifest.json").unlink()
    alone = cli("stats", "--no-fill", folder / "b-00000.tfrecord.gz")
    assert alone.code == 2
    assert "no manifest of an export lies beside these files" in alone.err


def test_head_counts_the_fill(cli, folder: Path) -> None:
    done = cli("head", "-n", "2", folder)
    lines = done.out.splitlines()
    assert lines[1].endswith("... (600 are fill)")
    assert "30 times 0, " in lines[1]
    assert "fill)" not in lines[6]  # the second patch has none
    assert lines[-1].startswith(f"fill: 0 ({folder / 'a-manifest.json'}) stands for masked pixels")
    assert "fill" not in cli("head", "--json", "-n", "1", folder).out
    row = next(iter(tfrio.read(folder)))
    with tfrio.Writer(folder / "other.tfrecord") as writer:
        writer.write(row)
    assert "fill" not in cli("head", folder / "other.tfrecord").out


def test_a_damaged_manifest_is_a_warning_to_who_only_looks(cli, folder: Path) -> None:
    (folder / "a-manifest.json").write_text("{")
    for command in ("head", "stats"):
        done = cli(command, folder)
        assert done.code == 0
        assert "tfrio: warning: " in done.err
        assert "a-manifest.json" in done.err
    assert cli("stats", "--no-fill", folder).code == 1
