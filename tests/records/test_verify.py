"""Verify: files, folders, shards, totals, digests, in pieces and in order alike."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import google_crc32c
import msgspec
import pytest

from tests.records import golden
from tests.records.golden import FRAMES, THREE, put
from tfrio.records import check
from tfrio.records.check import check_file, digest_of
from tfrio.records.counting import count
from tfrio.records.index import build_index
from tfrio.records.verify import verify
from tfrio.records.writer import RecordWriter
from tfrio.storage import atomic_write, open_read
from tfrio.storage.reading import ObjectReader


def test_counts_of_good_and_bad_and_the_message(tmp_path: Path) -> None:
    report = verify(put(tmp_path, "lencrc_flip_rec1.tfrecord", golden.LENGTH_CRC_FLIP))
    (file,) = report.files
    assert (file.good, file.bad) == (2, 1)
    assert not report.ok
    (finding,) = report.findings
    assert "length checksum mismatch at offset 46" in str(finding)


def test_a_sound_folder_has_no_findings(tmp_path: Path) -> None:
    put(tmp_path, "a.tfrecord", THREE)
    put(tmp_path, "b.tfrecord.gz", golden.THREE_MEMBERS)
    put(tmp_path, "c.tfrecord", golden.THREE_ZLIB)
    put(tmp_path, "_SUCCESS", b"")
    report = verify(tmp_path)
    assert report.ok
    assert report.records == 9
    assert [(f.compression, f.members) for f in report.files] == [
        ("none", 0),
        ("gzip", 3),
        ("zlib", 1),
    ]
    assert [f.data_bytes for f in report.files] == [138, 138, 138]
    assert report.bytes == sum(f.bytes or 0 for f in report.files)
    assert [i.reason for i in report.ignored] == ["a hidden or marker file"]


def test_strangers_and_unreadable_files_are_findings_not_errors(tmp_path: Path) -> None:
    put(tmp_path, "a.tfrecord", b"<html>Sign in</html>")
    put(tmp_path, "b.tfrecord", THREE)
    (tmp_path / "c.tfrecord").symlink_to(tmp_path / "gone")
    report = verify([tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"])
    assert [f.kind for f in report.findings] == ["problem"]
    assert "HTML/XML" in str(report.findings[0])
    assert report.records == 3


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        verify(tmp_path / "no.tfrecord")


def test_missing_shards_are_found_also_from_a_list_of_files(tmp_path: Path) -> None:
    files = [put(tmp_path, f"a-{i:05d}-of-00003", FRAMES[0]) for i in (0, 2)]
    for given in (tmp_path, files, tmp_path / "a"):
        (finding,) = verify(given).findings
        assert finding.kind == "shards"
        assert "missing shard 00001 of 3" in str(finding)
    put(tmp_path, "a-00001-of-00003", FRAMES[0])
    assert verify(files[0]).ok, "its siblings lie beside it"


@pytest.mark.parametrize(
    ("shards", "mixer"),
    [(["x00000", "x00001"], "xmixer.json"), (["x"], "x.json")],
    ids=["several shards", "one shard"],
)
def test_mixers_with_the_names_of_cloud_storage_are_counted_against(
    tmp_path: Path, shards: list[str], mixer: str
) -> None:
    """Without dashes, as Earth Engine names an export to Cloud Storage."""
    files = [put(tmp_path, f"{shard}.tfrecord.gz", gzip.compress(THREE)) for shard in shards]
    put(tmp_path, "xy00000.tfrecord", THREE)
    note = put(tmp_path, mixer, json.dumps({"totalPatches": 3 * len(shards)}).encode())
    assert verify(tmp_path).ok
    if len(files) > 1:
        files[0].unlink()
    else:
        note.write_text(json.dumps({"totalPatches": 6}))
    (finding,) = verify(tmp_path).findings
    assert "records 3, mixer says 6" in str(finding)


def test_a_mixer_that_tells_another_number_of_patches_is_a_finding(tmp_path: Path) -> None:
    for i in range(2):
        put(tmp_path, f"A-{i:05d}.tfrecord", THREE)
    put(tmp_path, "A-OUT-00000.tfrecord", FRAMES[0])
    mixer = put(tmp_path, "A-mixer.json", json.dumps({"totalPatches": 6}).encode())
    assert verify(tmp_path).ok
    mixer.write_text(json.dumps({"totalPatches": 7}))
    (finding,) = verify(tmp_path).findings
    assert finding.kind == "total"
    assert "records 6, mixer says 7" in str(finding)
    assert verify(tmp_path / "A-00000.tfrecord").ok, "a part of an export proves nothing"


def test_a_dataset_info_that_tells_other_shard_lengths_is_a_finding(tmp_path: Path) -> None:
    put(tmp_path, "d-train.tfrecord-00000-of-00001", THREE)
    put(tmp_path, "d-train_extra.tfrecord-00000-of-00001", THREE)
    info = {"splits": [{"name": "train", "shardLengths": ["2", "3"]}, {"name": "test"}]}
    put(tmp_path, "dataset_info.json", json.dumps(info).encode())
    put(tmp_path, "other-mixer.json", b"[1, 2")
    (finding,) = verify(tmp_path).findings
    assert "records 3, info says 5" in str(finding)


def test_digests_compare_copies(tmp_path: Path) -> None:
    path = put(tmp_path, "a.tfrecord.gz", golden.THREE_GZ)
    (file,) = verify(path, digest=True).files
    assert file.digest == hashlib.sha256(golden.THREE_GZ).hexdigest()
    assert verify(path).files[0].digest is None


def test_a_report_is_json(tmp_path: Path) -> None:
    put(tmp_path, "a.tfrecord", golden.PAYLOAD_FLIP)
    report = verify(tmp_path)
    document = json.loads(json.dumps(report.to_dict()))
    assert document["ok"] is False
    assert document["files"][0]["damages"][0]["resumed"] == 92
    assert document["findings"][0]["kind"] == "damage"
    assert msgspec.json.decode(msgspec.json.encode(report))["files"][0]["records"] == 2


def test_a_record_beyond_4_gb_is_verified_from_its_offset(tmp_path: Path) -> None:
    path = tmp_path / "sparse.tfrecord"
    with path.open("wb") as file:
        file.seek(5_000_000_000)
        file.write(golden.flipped(FRAMES[0], 20) + FRAMES[1])
    for _ in range(2):
        (file_report,) = verify(path, start=5_000_000_000).files
        assert file_report.records == 1
        assert file_report.damages[0].offset == 5_000_000_000


def test_file_objects_are_verified_too() -> None:
    report = verify(io.BytesIO(golden.THREE_GZ))
    assert report.records == 3
    assert report.ok


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_progress_ends_at_the_total(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with RecordWriter(path, block_size=5000) as writer:
        for i in range(2000):
            writer.write(random.Random(i).randbytes(90))
    calls: list[tuple[int, int]] = []
    verify(path, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (path.stat().st_size, path.stat().st_size)
    assert calls == sorted(calls)


@pytest.fixture
def cut_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut even small files into pieces."""
    monkeypatch.setattr(check, "_WORTH_CUTTING", 1)


def pieces_of(path: Path, threads: int) -> object:
    return check._check_in_pieces(path, 0, path.stat().st_size, True, threads, lambda _: None)


@pytest.mark.usefixtures("cut_small")
def test_pieces_give_the_same_report_as_one_walk(tmp_path: Path) -> None:
    rng = random.Random(1)
    for seed in range(30):
        frames = [golden.frame(rng.randbytes(rng.randrange(300))) for _ in range(seed + 1)]
        path = put(tmp_path, "a", b"".join(frames))
        whole = check_file(path, threads=1)
        for threads in (2, 3, 7):
            assert pieces_of(path, threads) == whole
            assert check_file(path, threads=threads) == whole


@pytest.mark.usefixtures("cut_small")
def test_records_inside_payloads_do_not_deceive_the_pieces(tmp_path: Path) -> None:
    nested = golden.frame(THREE * 20)
    path = put(tmp_path, "a", nested * 3 + golden.frame(b"x"))
    assert check_file(path, threads=4) == check_file(path, threads=1)
    assert check_file(path, threads=4).records == 4


@pytest.mark.usefixtures("cut_small")
def test_damage_in_any_piece_is_told_as_by_one_walk(tmp_path: Path) -> None:
    frames = [golden.frame(b"%d" % i * 20) for i in range(60)]
    data = b"".join(frames)
    for byte in range(0, len(data), 97):
        path = put(tmp_path, "a", golden.flipped(data, byte))
        assert check_file(path, threads=3) == check_file(path, threads=1)
    path = put(tmp_path, "a", data[:-5])
    assert check_file(path, threads=3) == check_file(path, threads=1)


@pytest.mark.usefixtures("cut_small")
def test_progress_begins_again_when_pieces_find_damage(tmp_path: Path) -> None:
    path = put(tmp_path, "a", golden.PAYLOAD_FLIP)
    done: list[int] = []
    check_file(path, threads=2, advanced=done.append)
    assert sum(done) == 138


@pytest.mark.parametrize("content", [THREE, golden.THREE_GZ])
@pytest.mark.parametrize(
    "job",
    [
        lambda pipe: verify(pipe).records,
        lambda pipe: count(pipe).records,
        lambda pipe: build_index(pipe, verify=False).count,
    ],
)
def test_what_can_be_opened_only_once_is_not_looked_at_beforehand(
    tmp_path: Path, content: bytes, job: Callable[[Path], int]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    assert job(pipe) == 3
    writer.join()


def test_a_report_reads_like_a_sentence(tmp_path: Path) -> None:
    sound, bad = put(tmp_path, "a", THREE), put(tmp_path, "b", golden.PAYLOAD_FLIP)
    assert str(verify(sound)) == "3 sound records in 1 file: all is well"
    lines = str(verify([sound, bad])).splitlines()
    assert lines[0] == "5 sound records in 2 files: 1 finding"
    assert "payload checksum mismatch in record 1 at offset 46" in lines[1]
    assert "1 whole record precedes" in lines[1]
    assert str(count([sound])) == "3 records in 1 file, 138 bytes"


def test_what_a_killed_writer_left_is_named_and_left_alone(tmp_path: Path) -> None:
    put(tmp_path, "a.tfrecord", THREE)
    program = (
        "import os, signal, tfrio\n"
        f"writer = tfrio.RecordWriter({str(tmp_path / 'b.tfrecord')!r})\n"
        "writer.write(b'x')\n"
        "os.kill(os.getpid(), signal.SIGTERM)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -15
    report = verify(tmp_path)
    (left,) = report.leftovers
    assert re.fullmatch(r"\.b\.tfrecord\.[0-9a-f]{8}\.tmp", Path(left).name)
    assert (report.ok, Path(left).exists()) == (True, True)
    assert f"{left}: what a writer has not finished" in str(report)


def test_an_empty_file_is_sound_but_named(tmp_path: Path) -> None:
    put(tmp_path, "a.tfrecord", THREE)
    empty = put(tmp_path, "b.tfrecord", b"")
    put(tmp_path, "_SUCCESS", b"")
    assert verify(empty).empty == (str(empty),), "named in full it is read"
    report = verify(tmp_path)
    assert (report.ok, report.empty) == (True, (str(empty),))
    assert "b.tfrecord: 0 bytes: valid without a record, but often what a broken off" in str(report)


def _exported(folder: str, payloads: list[bytes]) -> list[str]:
    """Write a plain and a gzip shard, and a manifest with their CRCs; return the URLs."""
    rows, urls = [], []
    for name in ("s-00000-of-00001.tfrecord", "t-00000-of-00001.tfrecord.gz"):
        with RecordWriter(f"{folder}/{name}") as writer:
            for payload in payloads:
                writer.write(payload)
        with contextlib.closing(open_read(f"{folder}/{name}")) as reader:
            stored = reader.read_at(0, 1 << 24)
        crc = google_crc32c.value(stored)
        rows.append({"name": name, "size": len(stored), "digest": f"crc32c:{crc:08x}"})
        urls.append(f"{folder}/{name}")
    with atomic_write(f"{folder}/s-manifest.json") as file:
        file.write(json.dumps({"format": "tfrio-manifest/1", "shards": rows}).encode())
    return urls


@pytest.mark.parametrize("digest", [False, True])
def test_remote_files_are_read_once_for_all_their_checksums(
    monkeypatch: pytest.MonkeyPatch, digest: bool
) -> None:
    folder = f"memory://once-{digest}"
    urls = _exported(folder, [random.Random(n).randbytes(2000) for n in range(900)])
    read: dict[str, int] = {}
    real = ObjectReader._fetch

    def fetch(self: ObjectReader, length: int) -> bytes:
        got = real(self, length)
        read[self.name] = read.get(self.name, 0) + len(got)
        return got

    monkeypatch.setattr(ObjectReader, "_fetch", fetch)
    report = verify(folder, digest=digest)
    assert report.ok
    assert read == {file.path: file.bytes for file in report.files}
    if digest:
        assert [file.digest for file in report.files] == [digest_of(url) for url in urls]


@pytest.mark.parametrize("which", [0, 1])
def test_a_remote_shard_with_other_bytes_is_told(which: int) -> None:
    folder = f"memory://other-{which}"
    urls = _exported(folder, [b"%d" % n for n in range(50)])
    with contextlib.closing(open_read(urls[which])) as reader:
        size = reader.size
    with RecordWriter(urls[which]) as writer:  # as many bytes, sound, but others
        for n in range(50):
            writer.write(b"%d" % n if n != 30 else b"03")
    with contextlib.closing(open_read(urls[which])) as reader:
        same = reader.size == size
    (finding,) = verify(folder).findings
    assert "holds other bytes" in finding.message
    assert ("crc32c:" in finding.message) == same


def test_the_digest_of_a_damaged_remote_file_is_of_all_its_bytes() -> None:
    url = "memory://bad/a.tfrecord.gz"
    content = golden.THREE_GZ[:-12] + b"rest of the file" * 9
    with atomic_write(url) as file:
        file.write(content)
    (report,) = verify(url, digest=True).files
    assert not report.ok
    assert report.digest == hashlib.sha256(content).hexdigest()
