"""`tfrio repair` names the patches that are lost with a shard of an export."""

from __future__ import annotations

from pathlib import Path

import tfrio
from tests.support.samples import write_scene


def test_lost_patches_are_named(cli, tmp_path: Path) -> None:
    write_scene(tmp_path / "scene.tif")
    prefix = tmp_path / "out" / "a"
    tfrio.geo.export_image(
        tmp_path / "scene.tif", prefix, patch=(72, 48), max_file_size=250_000, compressed=False
    )
    shard = Path(f"{prefix}-00001.tfrecord")
    data = bytearray(shard.read_bytes())
    data[500] ^= 1
    shard.write_bytes(data)
    done = cli("repair", shard, tmp_path / "saved.tfrecord")
    assert done.code == 0
    first = tfrio.count(f"{prefix}-00000.tfrecord").records
    assert f"lost with it: patch {first} of the export ({prefix}-manifest.json)." in done.out
    Path(f"{prefix}-manifest.json").write_text("{")
    broken = cli("repair", shard, tmp_path / "again.tfrecord")
    assert broken.code == 0
    assert "tfrio: warning: " in broken.err
    Path(f"{prefix}-manifest.json").unlink()
    alone = cli("repair", shard, tmp_path / "third.tfrecord")
    assert "lost with it" not in alone.out
