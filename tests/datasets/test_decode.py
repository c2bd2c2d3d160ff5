"""Damage met while decoding: named, or left out and counted."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import numpy as np
import pytest

from tests.datasets.conftest import flipped, ids, write_numbered
from tests.datasets.test_arrays import dataset
from tfrio.errors import CorruptRecordError, TfrioWarning
from tfrio.examples.writer import Writer
from tfrio.records.access import RecordFile
from tfrio.records.shards import expand


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("most", [0, 1 << 20])
def test_memory_given_changes_nothing(tmp_path, shuffle, most):
    """Also where strings overflow it, and damaged records are left out before and after."""
    names = [bytes([n]) * (n * n % 977 if n > 20 else 1) for n in range(100)]
    with Writer(tmp_path / "a") as writer:
        for n, name in enumerate(names):
            writer.write({"id": n, "name": name, "x": np.float32([n, n])})
    data = bytearray((tmp_path / "a").read_bytes())
    for n in (3, 70):
        data[RecordFile(tmp_path / "a", index="memory").offset(n) + 20] ^= 1
    (tmp_path / "a").write_bytes(data)
    lent = []

    def room(size):
        lent.append(np.full(max(size, most), 7, np.uint8))
        return lent[-1]

    made = []
    for give in (None, room):
        made.append([])
        ds = dataset([tmp_path / "a"], errors="skip", batch_size=9, shuffle=shuffle, threads=0)
        ds._reader().room = give
        with pytest.warns(TfrioWarning, match="left out 2 damaged records"):
            batches = list(ds)
        for batch in batches:
            columns = batch["id"].ravel().tolist(), batch["name"], batch["x"].tolist()
            made[-1] += zip(*columns, strict=True)
    assert made[0] == made[1]
    assert {n: name for n, name, _ in made[1]} == {
        n: name for n, name in enumerate(names) if n not in (3, 70)
    }
    assert lent


@pytest.mark.parametrize("shuffle", [False, True])
def test_damage_names_file_and_record(tmp_path, shuffle):
    path = flipped(tmp_path)
    with pytest.raises(CorruptRecordError) as caught:
        list(dataset([path], shuffle=shuffle))
    assert (caught.value.path, caught.value.record) == (path, 1)
    assert caught.value.offset == int.from_bytes(Path(path).read_bytes()[:8], "little") + 16
    assert path in str(caught.value)


def test_a_second_pass_after_an_error_has_nothing_left_over(tmp_path):
    data = dataset([flipped(tmp_path, (6,))])
    for _ in range(2):
        stream = iter(data)
        with pytest.raises(CorruptRecordError):
            list(stream)


@pytest.mark.parametrize("batch_size", [4, None])
def test_damaged_records_can_be_left_out(tmp_path, batch_size):
    bad = (0, 5, 6, 7, 99)
    data = dataset([flipped(tmp_path, bad)], errors="skip", batch_size=batch_size)
    with pytest.warns(TfrioWarning, match="left out 5 damaged records, the first is record 0"):
        assert ids(data) == [n for n in range(100) if n not in bad]
    assert [record for _, record, _ in data.report.where] == list(bad)
    assert data.epoch == 1
    few = dataset([flipped(tmp_path / "few", bad)], errors="skip", max_bad=3)
    with pytest.raises(CorruptRecordError, match="4 bad records > max_bad 3"):
        list(few)


@pytest.mark.filterwarnings("ignore:epoch")
def test_resume_counts_damaged_records(tmp_path):
    bad = (0, 5, 6, 7, 41)
    for batch_size in (4, None):
        options = {"errors": "skip", "batch_size": batch_size, "shuffle": True}
        path = flipped(tmp_path / str(batch_size), bad)
        whole = ids(dataset([path], **options))
        for taken in (1, 9, 17):
            data = dataset([path], **options)
            before = ids(itertools.islice(iter(data), taken))
            resumed = dataset([path], **options)
            resumed.load_state_dict(data.state_dict())
            assert before + ids(resumed) == whole


def test_a_damaged_first_record_is_told_when_the_schema_is_learned(tmp_path):
    with pytest.raises(CorruptRecordError, match="record 0"):
        dataset([flipped(tmp_path, (0,))])


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("form", ["plain", "gzip"])
def test_broken_framing_is_left_out_too(tmp_path, shuffle, form):
    path = Path(expand(write_numbered(tmp_path, (100,)))[0])
    data = bytearray(path.read_bytes())
    starts = [0]
    while starts[-1] < len(data):
        starts.append(starts[-1] + int.from_bytes(data[starts[-1] :][:8], "little") + 16)
    data[starts[41] + 9] ^= 1  # the length's checksum of record 41
    data[starts[30] : starts[30]] = b"junk" * 9  # between two records
    whole = bytes(data[:-5])  # and the last one is cut
    path.write_bytes(gzip.compress(whole) if form == "gzip" else whole)
    with pytest.raises(CorruptRecordError, match="checksum"):
        list(dataset([path], shuffle=shuffle))
    made = dataset([path], shuffle=shuffle, errors="skip")
    with pytest.warns(TfrioWarning, match="left out 3 damaged places"):
        assert sorted(ids(made)) == [number for number in range(99) if number != 41]
    assert len(made.report.where) == 3
    assert sorted(ids(made)) == [number for number in range(99) if number != 41]
    with pytest.raises(CorruptRecordError, match="3 bad records > max_bad 2"):
        list(dataset([path], shuffle=shuffle, errors="skip", max_bad=2))
