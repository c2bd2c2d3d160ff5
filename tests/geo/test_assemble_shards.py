"""Shards of an export against its manifest: lost, swapped, written again; predictions let be."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.geo.predictions import AFFINE, write
from tfrio.errors import GeoError
from tfrio.geo import array_source, export_image, import_image, open_export
from tfrio.records.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

OTHER = r"m-00001\.tfrecord.* holds other bytes than .* says \(.*renamed, or written again"


def exported(folder: Path, *, compressed: bool) -> list[Path]:
    """Export 12 patches of 3 x 4 as shards of 3, and return the shards."""
    values = np.random.default_rng(5).integers(0, 90, (9, 16)).astype(np.int16)
    values[:, :8] = 7
    source = array_source(values, AFFINE, crs="EPSG:32618", names=["b"])
    export_image(source, folder / "m", patch=(4, 3), max_file_size=300, compressed=compressed)
    return sorted(folder.glob("m-0*"))


def swap(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


@pytest.mark.parametrize("compressed", [True, False])
def test_swapped_shards_are_told(tmp_path: Path, compressed: bool) -> None:
    shards = exported(tmp_path, compressed=compressed)
    assert len(shards) > 2
    assert verify(tmp_path).ok
    swap(shards[1], shards[-2])
    findings = verify(tmp_path).findings
    assert [(f.kind, f.path) for f in findings] == [
        ("shards", str(shards[1])),
        ("shards", str(shards[-2])),
    ]
    (tmp_path / "m-manifest.json").unlink()
    assert verify(tmp_path).ok


def test_a_shard_of_another_size_is_refused_when_opened(tmp_path: Path) -> None:
    shards = exported(tmp_path, compressed=True)
    content = shards[1].read_bytes()
    shards[1].write_bytes(content + b"\x1f\x8b\x08" + bytes(6) + b"\xff\x03" + bytes(9))
    with pytest.raises(GeoError, match=OTHER):
        open_export(tmp_path / "m", index="memory")
    with pytest.raises(GeoError, match=OTHER):
        import_image(tmp_path / "m", tmp_path / "o.tif")
    (finding,) = verify(tmp_path).findings
    assert "m-00001.tfrecord.gz: holds other bytes than " in str(finding)
    assert "remove the manifest if the change is meant" in str(finding)


def test_predictions_under_the_names_of_the_shards_are_let_be(tmp_path: Path) -> None:
    (tmp_path / "predicted").mkdir()
    shards = exported(tmp_path, compressed=False)
    shutil.copy(tmp_path / "m-manifest.json", tmp_path / "predicted")
    rows = iter([{"p": np.full(12, i, np.float32)} for i in range(12)])
    for shard in shards:
        count = verify(shard).records
        write(tmp_path / "predicted" / shard.name, [next(rows) for _ in range(count)])
    found = import_image(tmp_path / "predicted" / "m", tmp_path / "o.tif")
    assert "12 of 12 placed" in str(found)
    assert open_export(tmp_path / "m", tmp_path / "predicted" / "m", index="memory")[4, 5] == 5


def test_a_lost_last_shard_is_named(tmp_path: Path) -> None:
    *kept, last = exported(tmp_path, compressed=True)
    last.unlink()
    with pytest.raises(GeoError, match=f"1 of {len(kept) + 1} shards are missing: {last.name}. F"):
        open_export(tmp_path / "m", index="memory")
    assert open_export(tmp_path / "m", index="memory", partial=True).shape == (9, 16)
    (tmp_path / "m-manifest.json").unlink()
    told = rf"the shards of the export hold .* Fetch the missing shards after {kept[-1].name}"
    with pytest.raises(GeoError, match=told):
        open_export(tmp_path / "m", index="memory")
