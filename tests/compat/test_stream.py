"""Parts of files: the mapped way and the streamed way give the same."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from tests.compat.bytes_of import example, frame, ints, write, write_gzip, write_numbers
from tfrio.compat._stream import Part, checked_compression, open_part
from tfrio.compat.reader import tfrecord_iterator

SIZES = [0, 1, 40, 3_000_000, 5, 1_500_000, 0, 70_000, 2]


def payloads(source: object, **options: object) -> list[bytes]:
    return [bytes(view) for view in tfrecord_iterator(source, **options)]


def test_records_of_all_sizes_mapped_and_streamed(tmp_path):
    expected = [os.urandom(size) for size in SIZES]
    path = write(tmp_path / "a", *expected)
    packed = write_gzip(tmp_path / "b", path)
    assert payloads(path) == expected
    assert payloads(packed) == expected
    assert payloads(io.BytesIO(Path(path).read_bytes())) == expected


@pytest.mark.parametrize("kind", ["plain", "gzip"])
@pytest.mark.parametrize("brief", [False, True])
def test_a_part_is_its_bytes_and_no_more(tmp_path, kind, brief):
    path = write_numbers(tmp_path / "a", 6)
    source = write_gzip(tmp_path / "b", path) if kind == "gzip" else path
    with open_part(source, Part(60, 120, 2), None, brief=brief) as stream:
        while not stream.final:
            stream.fill()
        assert bytes(stream.buffer) == Path(path).read_bytes()[60:120]
        assert (stream.position, stream.record, stream.compression == "gzip") == (
            60,
            2,
            kind == "gzip",
        )
        stream.rest()
        stream.advance(30, 1)
        assert bytes(stream.buffer) == Path(path).read_bytes()[90:120]
        assert (stream.position, stream.record) == (90, 3)


@pytest.mark.parametrize("cut", range(1, 30))
@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_a_cut_file_gives_its_whole_records_then_the_known_error(tmp_path, cut, kind):
    good = frame(example(i=ints(7)))
    data = good + good[:cut]
    texts = {8: "record size", 12: "start token", 26: "record", 30: "end token"}
    text = next(text for end, text in texts.items() if cut < end)
    (tmp_path / "a").write_bytes(data)
    source = tmp_path / "a" if kind == "file" else io.BytesIO(data)
    read = []
    with pytest.raises(RuntimeError, match=rf"^Failed to read the {text}\. ") as caught:
        read.extend(map(bytes, tfrecord_iterator(source)))
    assert type(caught.value) is RuntimeError
    assert read == [good[12:-4]]


def test_a_damaged_record_is_named_by_number_and_offset_in_a_shard(tmp_path):
    data = bytearray(Path(write_numbers(tmp_path / "a", 6)).read_bytes())
    data[4 * 30 + 15] ^= 1
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(RuntimeError, match=r"record 4 at offset 120"):
        payloads(tmp_path / "a", shard=(1, 2))


@pytest.mark.parametrize("what", ["bytes path", "descriptor", "path", "file URL", "open file"])
def test_where_records_can_come_from(tmp_path, what):
    path = write(tmp_path / "a", b"one", b"two")
    source = {
        "bytes path": os.fsencode(path),
        "path": Path(path),
        "file URL": f"file://{path}",
    }.get(what)
    if what == "descriptor":
        source = os.open(path, os.O_RDONLY)
    if what == "open file":
        with Path(path).open("rb") as file:
            assert payloads(file) == [b"one", b"two"]
            assert payloads(file, shard=(0, 2)) == [b"one"]
            assert payloads(file, shard=(1, 2)) == [b"two"]
        return
    assert payloads(source) == [b"one", b"two"]


def test_an_url_through_fsspec():
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://compat/a", "wb") as file:
        file.write(frame(b"one") + frame(b"two"))
    assert payloads("memory://compat/a") == [b"one", b"two"]
    assert payloads("memory://compat/a", shard=(1, 2)) == [b"two"]


def test_nothing_is_opened_before_the_first_next():
    rows = tfrecord_iterator("/nonexistent/x", compression_type="zip", shard=(5, 2))
    with pytest.raises(ValueError, match="compression_type"):
        next(rows)
    with pytest.raises(FileNotFoundError, match="/nonexistent/x"):
        next(tfrecord_iterator("/nonexistent/x"))


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(IsADirectoryError):
        next(tfrecord_iterator(tmp_path))


@pytest.mark.parametrize(
    ("given", "expected"), [(None, None), ("", "none"), ("GZIP", "gzip"), ("zlib", "zlib")]
)
def test_names_of_compressions(given, expected):
    assert checked_compression(given) == expected


@pytest.mark.parametrize("given", ["zip", False, 3])
def test_unknown_compressions(given):
    with pytest.raises(ValueError, match="either 'gzip' or None"):
        checked_compression(given)


def test_a_file_cut_short_while_it_is_read(tmp_path):
    path = write(tmp_path / "a", *[bytes(3 << 20)] * 3)
    views = tfrecord_iterator(path)
    next(views)
    os.truncate(path, 4 << 20)
    with pytest.raises(RuntimeError, match="cut short while it was read"):
        next(views)


def test_a_file_system_that_maps_nothing(tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise OSError(19, "No such device")

    path = write(tmp_path / "a", b"one", b"two")
    monkeypatch.setattr("tfrio._core.FileMap", refuse)
    assert payloads(path) == [b"one", b"two"]
