"""Exports that are interrupted, run elsewhere, or written to an object store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.geo.rasters import AFFINE, examples, write_raster
from tests.support.gcs import gcs_environment
from tests.support.s3 import s3_server
from tfrio.errors import GeoError, TfrioWarning, UsageError
from tfrio.geo import Labels, array_source, export_image, import_image, read_manifest
from tfrio.geo.report import ExportReport

OPTIONS: dict[str, Any] = {"patch": (7, 5), "kernel": (4, 2), "max_file_size": 25_000}


@pytest.fixture
def raster(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    values = rng.integers(0, 99, (2, 61, 83), "uint8")
    return write_raster(tmp_path / "a.tif", values, nodata=7)


class Stop(Exception):
    """Raised to interrupt an export."""


def interrupt(raster: Any, prefix: Path, after: int, **options: Any) -> None:
    """Export, and stop once some shards are finished."""

    def stop(*_: int) -> None:
        if len(list(prefix.parent.glob(f"{prefix.name}-*.partial.json"))) >= after:
            raise Stop

    with pytest.raises(Stop) as caught:
        export_image(raster, prefix, progress=stop, workers=1, **{**OPTIONS, **options})
    assert "shards are finished; the same call goes on there" in caught.value.__notes__[0]


def contents(report: ExportReport) -> dict[str, bytes]:
    """Return the bytes of every file of an export, by name without the prefix."""
    files = [*report.shards, report.manifest, *([report.mixer] if report.mixer else [])]
    return {Path(f).name.partition("-")[2]: Path(f).read_bytes() for f in files}


def same_but_for_names(one: ExportReport, other: ExportReport) -> None:
    """Check that two exports hold the same bytes."""
    first, second = contents(one), contents(other)
    assert first.keys() == second.keys()
    for name, data in first.items():
        if name != "manifest.json":
            assert data == second[name], name
    rows = [(row.digest, row.records, row.first) for row in one.content.shards]
    assert rows == [(row.digest, row.records, row.first) for row in other.content.shards]
    assert one.content.masks == other.content.masks
    assert one.content.account == other.content.account
    assert one.content.statistics == other.content.statistics


def names(folder: Path, prefix: str) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.name.lstrip(".").startswith(f"{prefix}-"))


def test_an_interrupted_export_goes_on_and_ends_the_same(raster: Path, tmp_path: Path) -> None:
    whole = export_image(raster, tmp_path / "w", statistics=True, **OPTIONS)
    interrupt(raster, tmp_path / "s", 2, statistics=True)
    found = names(tmp_path, "s")
    assert all(".partial" in name for name in found)
    kept = (tmp_path / "s-00000.tfrecord.gz.partial").stat().st_mtime_ns
    report = export_image(raster, tmp_path / "s", statistics=True, **OPTIONS)
    assert report.resumed == 2
    assert "2 shards were finished by an earlier run" in str(report)
    assert Path(report.shards[0]).stat().st_mtime_ns == kept
    same_but_for_names(report, whole)
    assert not [name for name in names(tmp_path, "s") if "partial" in name]


def test_other_options_or_pixels_start_again(raster: Path, tmp_path: Path) -> None:
    interrupt(raster, tmp_path / "s", 1)
    other = export_image(raster, tmp_path / "s", patch=(7, 5), kernel=(4, 2), max_file_size=30_000)
    assert other.resumed == 0
    assert not [name for name in names(tmp_path, "s") if "partial" in name]
    interrupt(raster, tmp_path / "t", 1)
    write_raster(raster, np.zeros((2, 61, 83), "uint8"))
    os.utime(raster, ns=(1, 1))
    assert export_image(raster, tmp_path / "t", **OPTIONS).resumed == 0


def labelled(**given: Any) -> dict[str, Any]:
    box = {"type": "Polygon", "coordinates": [[[500090, 4499900], [500900, 4499900],
           [500900, 4498700], [500090, 4498700], [500090, 4499900]]]}  # fmt: skip
    return {"labels": Labels(where=box, crs="EPSG:32618", **given)}


COARSE = {"crs_transform": [45, 0, 500000, 0, -45, 4500000], "dimensions": (55, 40)}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"bands": {"x": 1}}, {"bands": {"x": 2}}),
        ({"bands": {"x": "1:2"}}, {"bands": {"x": "2:2"}}),
        ({**COARSE}, {**COARSE, "resampling": "average"}),
        (labelled(), labelled(background=7)),
        (labelled(), labelled(all_touched=True)),
        (labelled(), labelled(nodata=1)),
        ({"mask_band": "b1"}, {"bands": ["b2"]}),
    ],
)
def test_nothing_else_is_taken_for_the_rest_of_an_export(
    raster: Path, tmp_path: Path, before: dict[str, Any], after: dict[str, Any]
) -> None:
    small = {"max_file_size": 8_000}
    interrupt(raster, tmp_path / "s", 2, **before, **small)
    kwargs = {**OPTIONS, **after, **small}
    report = export_image(raster, tmp_path / "s", **kwargs)
    assert report.resumed == 0
    same_but_for_names(report, export_image(raster, tmp_path / "w", **kwargs))


def test_a_changed_xarray_object_starts_again_and_samples_are_owned_up_to(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    dask_array = pytest.importorskip("dask.array")
    values = np.random.default_rng(4).integers(0, 99, (3, 121, 143), "int16")

    def data(array: Any) -> Any:
        coords = {"x": 15 + 30 * np.arange(143), "y": -15 - 30 * np.arange(121)}
        return xr.DataArray(
            array, dims=("time", "y", "x"), coords=coords, name="a", attrs={"crs": "EPSG:32618"}
        )

    def lazy(array: np.ndarray) -> Any:
        return data(dask_array.from_array(array, chunks=(1, 60, 143)))

    changed = values.copy()
    changed[1, 50, 20] += 1
    interrupt(data(values), tmp_path / "s", 1)
    assert export_image(data(changed), tmp_path / "s", **OPTIONS).resumed == 0
    interrupt(data(values), tmp_path / "t", 1)
    same = export_image(data(values), tmp_path / "t", **OPTIONS)
    assert same.resumed == 1
    assert not [note for note in same.notes if "samples" in note]
    changed = values.copy()
    changed[1, 60, 71] += 1
    interrupt(lazy(values), tmp_path / "u", 1)
    assert export_image(lazy(changed), tmp_path / "u", **OPTIONS).resumed == 0
    interrupt(lazy(values), tmp_path / "v", 1)
    with pytest.warns(TfrioWarning, match=r"only samples .* delete .*v-\* and export again"):
        report = export_image(lazy(values), tmp_path / "v", **OPTIONS)
    assert report.resumed == 1


def test_a_moved_array_starts_again(tmp_path: Path) -> None:
    values = np.random.default_rng(4).integers(0, 99, (61, 83), "int16")
    where = {"region": (500300, 4498800, 502000, 4499700), "region_crs": "EPSG:32618"}
    moved = (*AFFINE[:2], AFFINE[2] + 30, *AFFINE[3:])
    small = {"max_file_size": 2_000}
    first = array_source(values, AFFINE, crs="EPSG:32618")
    interrupt(first, tmp_path / "s", 2, **where, **small)
    other = array_source(values, moved, crs="EPSG:32618")
    assert export_image(other, tmp_path / "s", **{**OPTIONS, **where, **small}).resumed == 0


def test_a_damaged_shard_is_written_again(raster: Path, tmp_path: Path) -> None:
    whole = export_image(raster, tmp_path / "w", **OPTIONS)
    interrupt(raster, tmp_path / "s", 2)
    shard = tmp_path / "s-00001.tfrecord.gz.partial"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    report = export_image(raster, tmp_path / "s", **OPTIONS)
    assert report.resumed == 1
    same_but_for_names(report, whole)


def test_interrupted_while_names_are_given(raster: Path, tmp_path: Path) -> None:
    whole = export_image(raster, tmp_path / "w", **OPTIONS)
    interrupt(raster, tmp_path / "s", 2)
    (tmp_path / "s-00000.tfrecord.gz.partial").rename(tmp_path / "s-00000.tfrecord.gz")
    report = export_image(raster, tmp_path / "s", **OPTIONS)
    assert report.resumed == 2
    same_but_for_names(report, whole)


def test_a_failure_before_the_first_shard_leaves_nothing(tmp_path: Path) -> None:
    values = np.zeros((7, 10), "int32")

    class Broken:
        shape, dtype, ndim = (7, 10), values.dtype, 2

        def __getitem__(self, key: Any) -> Any:
            raise OSError("no light on the line")

    source = array_source({"b": values}, AFFINE, crs="EPSG:32618")
    object.__setattr__(source, "arrays", (Broken(),))
    with pytest.raises(OSError, match="no light"):
        export_image(source, tmp_path / "s", patch=(4, 3))
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys
from tfrio.geo import export_image
def slow(*_):
    import time
    time.sleep(0.15)
export_image(sys.argv[1], sys.argv[2], patch=(7, 5), kernel=(4, 2), max_file_size=25_000,
             workers=1, progress=slow)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_killed_export_goes_on_and_ends_the_same(raster: Path, tmp_path: Path) -> None:
    whole = export_image(raster, tmp_path / "w", **OPTIONS)
    process = subprocess.Popen([sys.executable, "-c", KILLED, raster, tmp_path / "s"])
    deadline = time.monotonic() + 60
    while not (tmp_path / "s-00001.tfrecord.gz.partial.json").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not [name for name in names(tmp_path, "s") if name.endswith(".gz")]
    report = export_image(raster, tmp_path / "s", **OPTIONS)
    assert report.resumed >= 2
    same_but_for_names(report, whole)
    assert not [p for p in tmp_path.iterdir() if "partial" in p.name or p.name.endswith(".tmp")]


def test_processes_write_the_same(raster: Path, tmp_path: Path) -> None:
    whole = export_image(raster, tmp_path / "w", statistics=True, **OPTIONS)
    report = export_image(
        raster, tmp_path / "s", statistics=True, executor="processes", workers=2, **OPTIONS
    )
    same_but_for_names(report, whole)


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_writes_the_same_and_goes_on(raster: Path, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    whole = export_image(raster, tmp_path / "w", **OPTIONS)
    interrupt(raster, tmp_path / "s", 1)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster:
        report = export_image(raster, tmp_path / "s", executor=cluster.scheduler_address, **OPTIONS)
        with distributed.Client(cluster) as client:
            again = export_image(raster, tmp_path / "c", executor=client, **OPTIONS)
    assert report.resumed == 1
    same_but_for_names(report, whole)
    same_but_for_names(again, whole)


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_that_runs_elsewhere(
    raster: Path, tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    corrupt = shared / "data" / "inputs" / "rasterio" / "corrupt.tif"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        monkeypatch.chdir(raster.parent)
        report = export_image(raster.name, "rel/s", executor=cluster.scheduler_address, **OPTIONS)
        assert report.shards[0] == "rel/s-00000.tfrecord.gz"
        assert len(examples(report.shards)) == report.patches
        with pytest.raises(GeoError, match="damaged or cut"):
            export_image(corrupt, "bad", patch=(64, 48), executor=cluster.scheduler_address)
    assert list((tmp_path / "elsewhere").iterdir()) == []


KILLED_CLUSTER = """
import sys
from distributed import LocalCluster
from tfrio.geo import export_image
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        export_image(sys.argv[1], sys.argv[2], patch=(7, 5), kernel=(4, 2), max_file_size=3_000,
                     executor=cluster.scheduler_address)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
@pytest.mark.filterwarnings("ignore")
def test_a_killed_cluster_goes_on_and_ends_the_same(raster: Path, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    options = {**OPTIONS, "max_file_size": 3_000}
    whole = export_image(raster, tmp_path / "w", **options)
    (tmp_path / "killed.py").write_text(KILLED_CLUSTER)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "killed.py", raster, tmp_path / "s"], start_new_session=True
    )
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("s-*.partial.json"))) < 3:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = len(list(tmp_path.glob("s-*.partial.json")))
    assert 3 <= finished < len(whole.shards)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        report = export_image(raster, tmp_path / "s", executor=cluster.scheduler_address, **options)
    assert report.resumed == finished
    same_but_for_names(report, whole)
    assert not [p for p in tmp_path.iterdir() if "partial" in p.name or p.name.endswith(".tmp")]


def test_threads_split_shards_but_not_bytes(raster: Path, tmp_path: Path) -> None:
    one = export_image(raster, tmp_path / "a", workers=1, **OPTIONS)
    three = export_image(raster, tmp_path / "b", workers=3, **OPTIONS)
    same_but_for_names(one, three)
    with pytest.raises(UsageError, match="workers must be"):
        export_image(raster, tmp_path / "c", workers=0, **OPTIONS)


def test_an_error_in_a_worker_reaches_the_caller(tmp_path: Path, shared: Path) -> None:
    corrupt = shared / "data" / "inputs" / "rasterio" / "corrupt.tif"
    with pytest.raises(GeoError, match="damaged or cut"):
        export_image(corrupt, tmp_path / "s", patch=(64, 48), executor="processes", workers=2)
    assert list(tmp_path.iterdir()) == []


def test_memory_urls(raster: Path, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    whole = export_image(raster, tmp_path / "w", **OPTIONS)
    report = export_image(raster, "memory://bucket/run/s", **OPTIONS)
    store = fsspec.filesystem("memory")
    found = {Path(p).name for p in store.ls("/bucket/run", detail=False)}
    assert found == {Path(p).name.replace("w-", "s-") for p in map(str, tmp_path.glob("w-*"))}
    for ours, theirs in zip(report.shards, whole.shards, strict=True):
        assert store.cat(ours) == Path(theirs).read_bytes()
    assert read_manifest(report.manifest) == report.content
    with pytest.raises(UsageError, match="overwrite=True"):
        export_image(raster, "memory://bucket/run/s", **OPTIONS)
    store.rm("/bucket", recursive=True)


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_stores_of_objects_through_obstore(
    raster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    pytest.importorskip("obstore")
    whole = export_image(raster, tmp_path / "w", **OPTIONS)
    with s3_server() as (address, store):
        for name, value in {
            "AWS_ENDPOINT": address, "AWS_ALLOW_HTTP": "true", "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1", **gcs_environment(address),
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        calls = iter(range(1000))

        def stop(*_: int) -> None:
            if next(calls) > 1 and sum(".partial.json" in name for name in store.objects) > 1:
                raise Stop

        with pytest.raises(Stop):
            export_image(raster, f"{scheme}://bucket/run/s", progress=stop, workers=1, **OPTIONS)
        report = export_image(raster, f"{scheme}://bucket/run/s", **OPTIONS)
        assert report.resumed >= 2
        assert sorted(store.objects) == sorted(
            f"bucket/run/{Path(p).name.replace('w-', 's-')}" for p in tmp_path.glob("w-*")
        )
        for ours, theirs in zip(report.shards, whole.shards, strict=True):
            assert store.objects[ours.removeprefix(f"{scheme}://")] == Path(theirs).read_bytes()
        assert read_manifest(report.manifest) == report.content


def test_the_map_comes_back_from_any_export(raster: Path, tmp_path: Path) -> None:
    rasterio = pytest.importorskip("rasterio")
    report = export_image(raster, tmp_path / "s", dtype="native", workers=2, **OPTIONS)
    import_image(list(report.shards), tmp_path / "back.tif", mixer=report.manifest)
    with rasterio.open(raster) as source, rasterio.open(tmp_path / "back.tif") as back:
        assert np.array_equal(back.read(), source.read()[:, : back.height, : back.width])
    assert len(examples(report.shards)) == report.patches
