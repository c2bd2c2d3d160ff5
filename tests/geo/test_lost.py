"""Which patches are lost with the records of a damaged shard."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrio
from tests.support.samples import write_scene
from tfrio.errors import GeoError
from tfrio.geo.lost import lost_patches, lost_with


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    """The second of four plain shards of four patches each: patches 4 to 7."""
    write_scene(tmp_path / "scene.tif")
    tfrio.geo.export_image(
        tmp_path / "scene.tif",
        tmp_path / "out" / "a",
        patch=(72, 48),
        kernel=(5, 3),
        max_file_size=250_000,
        compressed=False,
    )
    return tmp_path / "out" / "a-00001.tfrecord"


def damage(shard: Path, *records: int, at: int = 500) -> None:
    """Flip a bit within these records: of the payload, or of the header with ``at=0``."""
    data = bytearray(shard.read_bytes())
    size = len(data) // 4
    for record in records:
        data[size * record + at] ^= 0x10
    shard.write_bytes(data)


def repaired(shard: Path) -> tfrio.examples.repair.RepairReport:
    return tfrio.repair(shard, shard.parent.parent / "saved.tfrecord")


@pytest.mark.parametrize("records", [(0,), (3,), (1, 2), (0, 2), (0, 1, 3)])
def test_the_lost_patches_are_named(shard: Path, records: tuple[int, ...]) -> None:
    damage(shard, *records)
    report = repaired(shard)
    assert lost_patches(report) == [4 + record for record in records]
    assert lost_with(report) == (
        str(shard.parent / "a-manifest.json"),
        [4 + record for record in records],
    )


def test_patches_left_out_of_the_export_are_counted(tmp_path: Path) -> None:
    write_scene(tmp_path / "scene.tif")
    tfrio.geo.export_image(
        tmp_path / "scene.tif", tmp_path / "out" / "a", patch=(30, 20), masked_threshold=0.5
    )  # the first patch is masked
    path = tmp_path / "out" / "a-00000.tfrecord.gz"
    plain = [*tfrio.read_records(path)]
    path.unlink()
    with tfrio.RecordWriter(path, compression="none") as writer:
        for payload in plain:
            writer.write(payload)
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(data)
    assert lost_patches(repaired(path)) == [1]


def test_a_cut_and_a_long_gap_are_counted_by_the_manifest(shard: Path) -> None:
    whole = shard.read_bytes()
    size = len(whole) // 4
    shard.write_bytes(whole[: 2 * size + 40])  # the file ends within its third record
    assert lost_patches(repaired(shard)) == [6, 7]
    (shard.parent.parent / "saved.tfrecord").unlink()
    shard.write_bytes(whole[:size] + bytes(2 * size) + whole[3 * size :])  # two records of zeros
    assert lost_patches(repaired(shard)) == [5, 6]


def test_a_repaired_header_loses_nothing(shard: Path) -> None:
    damage(shard, 1, at=9)  # the checksum of the length
    report = repaired(shard)
    assert (report.kept, lost_patches(report)) == (4, [])


def test_what_hides_the_numbers_is_told(shard: Path) -> None:
    whole = shard.read_bytes()
    size = len(whole) // 4
    cut = whole[:30] + bytes(2 * size - 30) + whole[2 * size : 3 * size]
    shard.write_bytes(cut + whole[3 * size :][:100])  # two records of zeros, and a cut one
    with pytest.raises(GeoError, match="3 of 4 records are lost in 2 places"):
        lost_patches(repaired(shard))


def test_without_a_manifest_nothing_tells(shard: Path) -> None:
    (shard.parent / "a-manifest.json").unlink()
    damage(shard, 1)
    report = repaired(shard)
    assert lost_with(report) is None
    with pytest.raises(GeoError, match="no manifest of an export lies beside it"):
        lost_patches(report)
