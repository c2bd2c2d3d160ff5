"""Manifests for Earth Engine's upload, checked against a copy of their form."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.geo.predictions import AFFINE, GEO_A, MIX_A, tile, write
from tfrio.errors import GeoError, TfrioWarning, UsageError
from tfrio.geo import array_source, export_image
from tfrio.geo.assemble_upload import upload_manifest, upload_manifests
from tfrio.geo.mixer import write_mixer

if TYPE_CHECKING:
    from pathlib import Path

ASSETS, URI = "projects/p/assets/maps", "gs://bucket/run"
# The fields of an image manifest that files of one export may have, with their types.
FORM = {
    "name": str,
    "tilesets": list,
    "bands": list,
    "missingData": dict,
    "maskBands": list,
    "pyramidingPolicy": str,
    "properties": dict,
    "startTime": str,
    "endTime": str,
}


def check(manifest: dict[str, Any]) -> None:
    """Hold a manifest against the form."""
    for key, value in manifest.items():
        assert isinstance(value, FORM[key]), key
    (tileset,) = manifest["tilesets"]
    assert set(tileset) == {"id", "sources"}
    (source,) = tileset["sources"]
    assert set(source) == {"uris"}
    assert all(isinstance(uri, str) for uri in source["uris"])
    for band in manifest.get("bands", []):
        assert set(band) == {"id", "tilesetId", "tilesetBandIndex"}
    assert set(manifest.get("missingData", {})) <= {"values"}


def export(folder: Path, prefix: str, shards: int = 2, *, mixer: bool = True) -> None:
    for shard in range(shards):
        rows = [{"class": tile(shard).ravel(), "p": np.zeros(12, np.float32)}] * 2
        write(folder / f"{prefix}-{shard:05d}.tfrecord.gz", rows)
    if mixer:
        write_mixer(folder / f"{prefix}-mixer.json", MIX_A)


def test_three_exports_make_three_manifests(tmp_path: Path) -> None:
    for prefix in ("a", "b", "c"):
        export(tmp_path, prefix)
    plan = upload_manifests(tmp_path, assets=ASSETS, uri=URI + "/", pyramiding="MODE", nodata=-9999)
    assert not plan.problems
    assert len(plan.manifests) == 3
    manifest = json.loads((tmp_path / "b-upload.json").read_text())
    check(manifest)
    assert manifest == plan.manifests[str(tmp_path / "b-upload.json")]
    assert manifest["name"] == f"{ASSETS}/b"
    assert manifest["tilesets"][0]["sources"][0]["uris"] == [
        f"{URI}/b-00000.tfrecord.gz",
        f"{URI}/b-00001.tfrecord.gz",
        f"{URI}/b-mixer.json",
    ]
    assert manifest["missingData"] == {"values": [-9999]}
    assert [band["id"] for band in manifest["bands"]] == ["class", "p"]
    assert "earthengine upload image --manifest" in str(plan)
    assert plan.as_dict()["problems"] == ()


def test_what_cannot_be_uploaded_is_listed(tmp_path: Path) -> None:
    export(tmp_path, "good")
    export(tmp_path, "no-mixer", mixer=False)
    export(tmp_path, "gap", shards=3)
    (tmp_path / "gap-00001.tfrecord.gz").unlink()
    plan = upload_manifests(tmp_path, assets=ASSETS, uri=URI)
    assert list(plan.manifests) == [str(tmp_path / "good-upload.json")]
    gap, mixer = sorted(plan.problems)
    assert "gap: shard 00001 is missing" in gap
    assert "no-mixer has no mixer" in mixer
    again = upload_manifests(
        tmp_path,
        assets=ASSETS,
        uri=URI,
        mixer="good-mixer.json",
        out=tmp_path,
        bands=["x", "y"],
        overwrite=True,
    )
    assert len(again.manifests) == 2
    manifest = again.manifests[str(tmp_path / "no-mixer-upload.json")]
    assert manifest["tilesets"][0]["sources"][0]["uris"][-1] == f"{URI}/good-mixer.json"
    assert manifest["bands"][1] == {"id": "y", "tilesetId": "ts", "tilesetBandIndex": 1}
    lost = upload_manifests(
        tmp_path, assets=ASSETS, uri=URI, mixer="lost-mixer.json", overwrite=True
    )
    assert any("the mixer lost-mixer.json is not in the folder" in p for p in lost.problems)


def test_shards_that_tell_their_number_make_one_set(tmp_path: Path) -> None:
    for shard in range(2):
        write(tmp_path / f"tr-{shard:05d}-of-00002.tfrecord.gz", [{"p": tile(0).ravel()}] * 2)
    write_mixer(tmp_path / "x-mixer.json", MIX_A)
    plan = upload_manifests(tmp_path, assets=ASSETS, uri=URI, mixer="x-mixer.json")
    assert not plan.problems
    (manifest,) = plan.manifests.values()
    assert manifest["name"] == f"{ASSETS}/tr"
    assert manifest["tilesets"][0]["sources"][0]["uris"] == [
        f"{URI}/tr-00000-of-00002.tfrecord.gz",
        f"{URI}/tr-00001-of-00002.tfrecord.gz",
        f"{URI}/x-mixer.json",
    ]
    (tmp_path / "tr-00001-of-00002.tfrecord.gz").unlink()
    lost = upload_manifests(tmp_path, assets=ASSETS, uri=URI, mixer="x-mixer.json", overwrite=True)
    assert "tr: shard 00001 is missing" in lost.problems[0]


def test_inputs_beside_predictions_are_left_out(tmp_path: Path) -> None:
    source = array_source(GEO_A, AFFINE, crs="EPSG:32618")
    export_image(source, tmp_path / "scene", patch=(4, 3))
    alone = upload_manifests(tmp_path, assets=ASSETS, uri=URI, overwrite=True)
    assert [manifest["name"] for manifest in alone.manifests.values()] == [f"{ASSETS}/scene"]
    assert alone.left_out == ()
    export(tmp_path, "pred", mixer=False)
    plan = upload_manifests(tmp_path, assets=ASSETS, uri=URI, mixer="scene-mixer.json")
    assert [manifest["name"] for manifest in plan.manifests.values()] == [f"{ASSETS}/pred"]
    assert plan.left_out == ("scene",)
    assert "scene is left out" in str(plan)


def test_a_folder_without_shards(tmp_path: Path) -> None:
    with pytest.raises(GeoError, match="no TFRecord file here"):
        upload_manifests(tmp_path, assets=ASSETS, uri=URI)


def test_one_manifest() -> None:
    manifest = upload_manifest(
        "projects/p/assets/x",
        ["gs://b/p.TFRecord"],
        mixer="gs://b/mixer.json",
        last_band_alpha=True,
        properties={"model": 3},
        start_time="2020-01-01T00:00:00Z",
        end_time="2021-01-01T00:00:00Z",
    )
    check(manifest)
    assert manifest["maskBands"] == [{"tilesetId": "ts"}]
    assert "bands" not in manifest
    each = upload_manifest(ASSETS, ["gs://b/p.tfrecord"], mixer="gs://b/m.json", nodata=[0, 255])
    assert each["missingData"] == {"values": [0, 255]}


def test_names_the_service_does_not_know_are_warned_of() -> None:
    with pytest.warns(TfrioWarning, match=r"gs://b/pred\.tfr: Earth Engine takes files as shards"):
        upload_manifest(ASSETS, ["gs://b/pred.tfr"], mixer="gs://b/m.json")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"nodata": 0, "last_band_alpha": True}, "exclude each other"),
        ({"pyramiding": "MEANS"}, "one of MEAN, MODE, SAMPLE, MIN, MAX, MEDIAN; got 'MEANS'"),
        ({"uris": []}, "no file to upload"),
        ({"uris": ["s3://b/p.tfrecord"]}, "s3://b/p.tfrecord: Earth Engine takes files from Cloud"),
    ],
)
def test_wrong_options(options: dict[str, Any], text: str) -> None:
    uris = options.pop("uris", ["gs://b/p.tfrecord"])
    with pytest.raises(UsageError, match=text):
        upload_manifest(ASSETS, uris, mixer="gs://b/m.json", **options)


@pytest.mark.parametrize(
    ("asset", "name"),
    [
        ("projects/p/assets/a/b", "projects/p/assets/a/b"),
        ("users/me/map", "projects/earthengine-legacy/assets/users/me/map"),
        ("projects/old/map", "projects/earthengine-legacy/assets/projects/old/map"),
        ("maps/a", None),
        ("projects/p", None),
        ("users//a", None),
    ],
)
def test_names_of_assets(asset: str, name: str | None) -> None:
    if name is None:
        with pytest.raises(UsageError, match="no asset of Earth Engine. Write projects/PROJECT"):
            upload_manifest(asset, ["gs://b/p.tfrecord"], mixer="gs://b/m.json")
        return
    manifest = upload_manifest(asset, ["gs://b/p.tfrecord"], mixer="gs://b/m.json")
    assert manifest["name"] == name


def test_records_that_do_not_go_with_mixer_or_bands(tmp_path: Path) -> None:
    export(tmp_path, "few", shards=1)
    export(tmp_path, "good")
    write(tmp_path / "part.tfrecord", [{"b": tile(i).ravel(), "patch_index": i} for i in range(4)])
    options = {"assets": ASSETS, "uri": URI, "mixer": str(tmp_path / "good-mixer.json")}
    few, part = upload_manifests(tmp_path, **options).problems  # type: ignore[arg-type]
    assert "few-mixer.json says 4 patches, the files hold 2" in few
    assert "records carry patch_index, which Earth Engine takes for a band" in part
    named = upload_manifests(tmp_path, bands=["x"], **options, overwrite=True).problems  # type: ignore[arg-type]
    assert "1 band names for the 2 features class, p" in named[1]


def test_a_mask_is_no_band(tmp_path: Path) -> None:
    export(tmp_path, "a")
    plan = upload_manifests(tmp_path, assets=ASSETS, uri=URI, last_band_alpha=True, overwrite=True)
    (manifest,) = plan.manifests.values()
    assert [band["id"] for band in manifest["bands"]] == ["class"]
    assert manifest["maskBands"] == [{"tilesetId": "ts"}]


def test_files_passed_over_are_warned_of(tmp_path: Path) -> None:
    export(tmp_path, "a")
    write(tmp_path / "d.tfr", [{"b": tile(0).ravel()}])
    with pytest.warns(TfrioWarning, match=r"d\.tfr: Earth Engine takes files as shards"):
        upload_manifests(tmp_path, assets=ASSETS, uri=URI)


def test_exports_with_names_of_cloud_storage(tmp_path: Path) -> None:
    source = array_source(GEO_A, AFFINE, crs="EPSG:32618")
    for prefix, size in (("one", 1 << 20), ("many", 150)):
        export_image(source, tmp_path / prefix, patch=(4, 3), naming="gcs", max_file_size=size)
    plan = upload_manifests(tmp_path, assets=ASSETS, uri=URI)
    assert not plan.problems
    many, one = plan.manifests.values()
    assert one["tilesets"][0]["sources"][0]["uris"] == [f"{URI}/one.tfrecord.gz", f"{URI}/one.json"]
    uris = many["tilesets"][0]["sources"][0]["uris"]
    assert uris[0] == f"{URI}/many00000.tfrecord.gz"
    assert uris[-1] == f"{URI}/manymixer.json"
    assert len(uris) > 2
