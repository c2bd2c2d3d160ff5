"""The laws of all commands: nothing is replaced unasked; '-' is standard input, or an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfrio.cli.main import _COMMANDS
from tfrio.examples.writer import Writer

if TYPE_CHECKING:
    from pathlib import Path

URI = ("--uri", "gs://bucket/folder")
WRITING = {
    "convert": ("convert", "shards", "out.parquet"),
    "export image": ("export", "image", "scene.tif", "out", "--patch", "72,48"),
    "export table": ("export", "table", "samples.geojson", "out", "--xy", "lon,lat"),
    "extract": ("extract", "scene/a", "out.zip", "--image", "B4", "--shape", "48,72"),
    "extract to a folder": ("extract", "scene/a", "out/", "--image", "B4", "--shape", "48,72"),
    "extract --geotiff": ("extract", "scene/a", "out/", "--image", "B4", "--geotiff", "scene/a"),
    "filter": ("filter", "id > 3", "shards", "out.tfrecord"),
    "import image": ("import", "image", "pred.tfrecord.gz", "out.tif", "--mixer", "scene/a"),
    "import table": ("import", "table", "shards", "out.csv"),
    "index --out": ("index", "plain.tfrecord", "--out", "out.idx"),
    "index --text": ("index", "plain.tfrecord", "--text"),
    "merge": ("merge", "shards", "out.tfrecord.gz"),
    "repair": ("repair", "plain.tfrecord", "out.tfrecord.gz"),
    "schema infer": ("schema", "infer", "shards", "-o", "out.json"),
    "upload-manifest": (*("upload-manifest", "scene"), "--assets", "projects/p/assets/m", *URI),
    "split": ("split", "shards", "out", "--shards", "2"),
}
ONLY_ANEW = {"split"}  # has no --overwrite: shards of an old set could remain among the new ones


@pytest.fixture
def work(sample_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a scene, its export, predictions, shards and a table; and go there."""
    from tfrio import geo
    from tfrio.examples.decode import read

    monkeypatch.chdir(sample_data)
    geo.export_image("scene.tif", "scene/a", patch=(72, 48))
    with Writer("pred.tfrecord.gz") as writer:
        for row in read("scene/a"):
            writer.write({"p": row["B4"]})
    with Writer("plain.tfrecord") as writer:
        writer.write({"id": 1})
    return sample_data


@pytest.mark.parametrize("name", WRITING)
def test_what_exists_is_replaced_only_when_told(cli, work, name) -> None:
    call = WRITING[name]
    first = cli(*call)
    assert first.code == 0, first.err
    before = {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()}
    again = cli(*call)
    assert again.code == 2, "wrong use, with every command"
    assert "exists" in again.err
    after = {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()}
    assert after == before
    if name not in ONLY_ANEW:
        assert "--overwrite" in again.err
        assert cli(*call, "--overwrite").code == 0


def test_standard_input_is_read_or_refused_in_words(cli, work, monkeypatch) -> None:
    monkeypatch.setattr("tfrio.cli.params._STDIN", str(work / "plain.tfrecord"))
    for call in (("stats", "-"), ("convert", "-", "in.parquet"), ("repair", "-", "in.tfrecord")):
        assert cli(*call).code == 0
    monkeypatch.setattr("tfrio.cli.params._STDIN", "/dev/zero")  # bytes that come only once
    for call in (("index", "-"), ("split", "-", "s", "--shards", "2"), ("convert", "-", "x.npz")):
        done = cli(*call)
        assert (done.code, "save it to a file first" in done.err) == (2, True)


@pytest.mark.parametrize("name", WRITING)
def test_standard_output_is_no_place_for_a_file(cli, work, name) -> None:
    call = ["-" if word.startswith("out") else word for word in WRITING[name]]
    if "-" not in call:
        return
    done = cli(*call)
    assert done.code == 2
    assert "not standard output" in done.err
    assert not (work / "-").exists()


def test_every_command_is_listed_with_what_it_writes() -> None:
    """A new command that writes has to stand above; these write nothing of a name given."""
    told = {name.split()[0] for name in WRITING}
    assert set(_COMMANDS) - told == {*("demo", "info", "head", "stats", "count", "verify")}
