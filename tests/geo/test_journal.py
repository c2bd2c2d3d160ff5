"""What counts as finished, what is swept, what is in the way."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.geo.rasters import AFFINE, geo_a
from tfrio.errors import GeoError, UsageError
from tfrio.geo import array_source
from tfrio.geo.grid import PatchGrid
from tfrio.geo.journal import (
    check_free,
    fingerprint_of,
    finish,
    finished_shards,
    old_names,
    sweep,
)
from tfrio.geo.naming import Names
from tfrio.geo.options import ExportOptions
from tfrio.geo.patches import grid_patches
from tfrio.geo.plan import Span
from tfrio.geo.recipe import make_recipe
from tfrio.geo.work import Job, write_whole_shard
from tfrio.types import XY


def job(prefix: Path, fingerprint: str = "one") -> Job:
    """Return an export of two shards with two patches each."""
    source = array_source(geo_a(), AFFINE, crs="EPSG:32618")
    patch = XY(4, 3)
    return Job(
        source,
        make_recipe(source.bands, ExportOptions(patch=patch)),
        grid_patches(PatchGrid(XY(10, 7), patch)),
        XY(0, 0),
        Names(str(prefix), 2),
        (Span(0, 2), Span(2, 4)),
        fingerprint,
        1000,
    )


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_shard_is_finished_when_note_and_bytes_agree(tmp_path: Path) -> None:
    one = job(tmp_path / "s")
    assert finished_shards(one) == {}
    row = write_whole_shard((one, 1))
    assert finished_shards(one) == {1: row}
    assert finished_shards(job(tmp_path / "s", "other")) == {}
    shard, note = Path(one.temporary(1)), Path(one.result_name(1))
    data, text = shard.read_bytes(), note.read_bytes()
    for wrong in (data[:-1], data[:9] + bytes([data[9] ^ 1]) + data[10:], b""):
        shard.write_bytes(wrong)
        assert finished_shards(one) == {}
    shard.write_bytes(data)
    for wrong in (text[:-1], b"", b"[]", text.replace(b'"shard":1', b'"shard":0')):
        note.write_bytes(wrong)
        assert finished_shards(one) == {}
    note.write_bytes(text)
    shard.rename(one.names.shard(1))
    assert finished_shards(one) == {1: row}
    Path(one.names.shard(1)).unlink()
    assert finished_shards(one) == {}


def test_a_note_is_plain_json(tmp_path: Path) -> None:
    one = job(tmp_path / "s")
    write_whole_shard((one, 0))
    note = msgspec.json.decode(Path(one.result_name(0)).read_bytes())
    assert (note["fingerprint"], note["shard"], note["row"]["records"]) == ("one", 0, 2)


def test_fingerprints_differ_where_a_part_does() -> None:
    parts = [("a", "b"), ("ab",), ("a", "b", ""), ("b", "a"), (1,), ("1",), (1.0,), (None,), ()]
    assert len({fingerprint_of(*part) for part in parts}) == len(parts)
    assert fingerprint_of("a", XY(4, 3)) == fingerprint_of("a", XY(4, 3))
    assert fingerprint_of("\udcff")  # names of files may hold any byte


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("s-00000.tfrecord.gz", True),
        ("s-00000.tfrecord", True),
        ("s00000.tfrecord", True),
        ("s.tfrecord.gz", True),
        ("s-mixer.json", False),
        ("s-OUT-00000.tfrecord.gz", False),
        ("s2-00000.tfrecord.gz", False),
        ("s-00000.tfrecord.gz.partial", False),
        ("other.tif", False),
    ],
)
def test_only_an_export_of_this_prefix_is_in_the_way(
    tmp_path: Path, name: str, taken: bool
) -> None:
    (tmp_path / name).write_bytes(b"")
    names = Names(str(tmp_path / "s"), 1)
    assert bool(old_names(names)) is taken
    check_free(names, overwrite=True)
    if taken:
        with pytest.raises(UsageError, match=f"{name} exists.*another prefix, or overwrite=True"):
            check_free(names, overwrite=False)
    else:
        check_free(names, overwrite=False)


def test_only_what_interrupted_runs_of_this_prefix_left_is_swept(tmp_path: Path) -> None:
    left = [
        "s-00000.tfrecord.gz.partial",
        "s-00000.tfrecord.gz.partial.json",
        ".s-00001.tfrecord.gz.partial.0123abcd.tmp",
        ".s-00001.tfrecord.gz.partial.json.0123abcd.tmp",
        "s.tfrecord.partial",
        "s00003.tfrecord.partial",
    ]
    others = [
        "s-00000.tfrecord.gz",
        "s-OUT-00000.tfrecord.gz.partial",
        "s2-00000.tfrecord.gz.partial",
        "s-000001.tfrecord.gz.partial",
        "s-00000.tfrecord.gz.partial.txt",
        "notes.partial",
    ]
    for name in [*left, *others]:
        (tmp_path / name).write_bytes(b"")
    names = Names(str(tmp_path / "s"), 2)
    kept = (tmp_path / left[0]).as_posix()
    sweep(names, {kept})
    assert files(tmp_path) == sorted([left[0], *others])
    sweep(names, set())
    assert files(tmp_path) == sorted(others)


def test_finishing_gives_names_and_removes_what_is_replaced(tmp_path: Path) -> None:
    one = job(tmp_path / "s")
    rows = [write_whole_shard((one, shard)).row for shard in (0, 1)]
    for name in ("s-00000.tfrecord.gz", "s-00007.tfrecord.gz", "s-mixer.json"):
        (tmp_path / name).write_bytes(b"old")
    old = old_names(one.names)
    finish(one, rows, old, keep={one.names.manifest})
    found = [name for name in files(tmp_path) if not name.endswith(".partial.json")]
    assert found == ["s-00000.tfrecord.gz", "s-00001.tfrecord.gz"]
    assert (tmp_path / "s-00000.tfrecord.gz").read_bytes() != b"old"


def test_finishing_again_changes_nothing(tmp_path: Path) -> None:
    one = job(tmp_path / "s")
    rows = [write_whole_shard((one, shard)).row for shard in (0, 1)]
    finish(one, rows, [], keep=set())
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}
    finish(one, rows, [], keep=set())
    assert {name: (tmp_path / name).read_bytes() for name in files(tmp_path)} == before
    assert np.frombuffer(before["s-00000.tfrecord.gz"][:2], "uint8").tolist() == [0x1F, 0x8B]


def test_a_shard_written_elsewhere_is_missed_before_anything_is_named(tmp_path: Path) -> None:
    one = job(tmp_path / "s")
    rows = [write_whole_shard((one, shard)).row for shard in (0, 1)]
    (tmp_path / "old.tfrecord").write_bytes(b"")
    Path(one.temporary(1)).unlink()
    before = files(tmp_path)
    with pytest.raises(GeoError, match=r"s-00001.tfrecord.gz.partial: the shard is not here.*URL"):
        finish(one, rows, [str(tmp_path / "old.tfrecord")], keep=set())
    assert files(tmp_path) == before
