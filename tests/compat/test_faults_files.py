"""Known faults of the published package in files, indexes and its command, by symptom."""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
import threading
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests.compat.bytes_of import (
    example,
    frame,
    ints,
    masked_crc,
    numbers,
    write_gzip,
    write_index,
    write_numbers,
)
from tfrio.compat import TFRecordWriter, tfrecord_iterator, tfrecord_loader
from tfrio.compat.tools.tfrecord2idx import create_index, create_indices


def run_index_tool(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "tfrio.compat.tools.tfrecord2idx"]
        + [str(a) for a in arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# F1
@pytest.mark.parametrize("place", range(30))
def test_f01_a_flipped_byte_is_read_as_another_value(tmp_path, place):
    data = bytearray(frame(example(i=ints(7))))
    data[place] ^= 0x7F
    path = tmp_path / "a"
    path.write_bytes(data)
    with pytest.raises(RuntimeError, match=r"record 0|not a TFRecord"):
        list(tfrecord_loader(path))


def test_f01_payload_checks_can_be_turned_off(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(frame(example(i=ints(7)), crc=b"\0\0\0\1"))
    with pytest.raises(RuntimeError, match="payload checksum mismatch in record 0"):
        list(tfrecord_loader(path))
    assert numbers(tfrecord_loader(path, verify=False)) == [7]


# F6
@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("shard", [None, (0, 1)])
def test_f06_an_index_of_one_or_no_record_is_an_index_error(tmp_path, count, shard):
    path, index = write_numbers(tmp_path / "a", count), write_index(tmp_path / "i", count)
    assert numbers(tfrecord_loader(path, index, shard=shard)) == list(range(count))


# F11
@pytest.mark.parametrize("cut", [3, 9, 15, 29])
def test_f11_a_cut_record_is_indexed(tmp_path, cut):
    good = frame(example(i=ints(7)))
    path = tmp_path / "a"
    path.write_bytes(good + good[:cut])
    with pytest.raises(RuntimeError, match="cut.* at offset 30|record 1 at offset 30"):
        create_index(path, tmp_path / "a.idx")
    assert not (tmp_path / "a.idx").exists()


def test_f11_gzip_gives_an_empty_index(tmp_path):
    path = write_gzip(tmp_path / "b", write_numbers(tmp_path / "a", 3))
    with pytest.raises(ValueError, match=r"gzip-compressed.*Decompress it first"):
        create_index(path, tmp_path / "i")
    assert not (tmp_path / "i").exists()


def test_f11_text_gives_an_empty_index(tmp_path):
    (tmp_path / "a").write_text("plain text, no record file\n" * 3)
    with pytest.raises(ValueError, match=r"not a TFRecord.*text"):
        create_index(tmp_path / "a", tmp_path / "i")


def test_f11_a_length_of_minus_one_swallows_the_rest(tmp_path):
    header = struct.pack("<q", -1)
    (tmp_path / "a").write_bytes(frame(b"x") + header + masked_crc(header) + b"\0" * 40)
    with pytest.raises(RuntimeError, match="record 1 at offset 17"):
        create_index(tmp_path / "a", tmp_path / "i")


# F12
def test_f12_wrong_use_of_the_command_exits_0():
    done = run_index_tool()
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: tfrecord2idx" in done.stderr


def test_f12_unreadable_content_exits_0(tmp_path):
    (tmp_path / "a").write_bytes(b"no records here\n" * 9)
    done = run_index_tool(tmp_path / "a", tmp_path / "i")
    assert done.returncode == 1
    assert "not a TFRecord" in done.stderr
    assert "Traceback" not in done.stderr


def test_f12_one_file_is_a_traceback(tmp_path):
    write_numbers(tmp_path / "a.tfrecord", 2)
    assert run_index_tool(tmp_path / "a.tfrecord").returncode == 0
    assert (tmp_path / "a.tfindex").read_text() == "0 30\n30 30\n"


def test_f12_a_second_folder_is_ignored(tmp_path):
    (tmp_path / "in").mkdir()
    write_numbers(tmp_path / "in" / "a.tfrecord", 1)
    assert run_index_tool(tmp_path / "in", tmp_path / "out").returncode == 0
    assert os.listdir(tmp_path / "out") == ["a.tfindex"]
    assert os.listdir(tmp_path / "in") == ["a.tfrecord"]


def test_f12_glob_characters_in_a_folder_find_nothing(tmp_path):
    folder = tmp_path / "gl[1]"
    folder.mkdir()
    write_numbers(folder / "a.tfrecord", 1)
    create_indices(folder)
    assert sorted(os.listdir(folder)) == ["a.tfindex", "a.tfrecord"]


def test_f12_running_the_module_warns(tmp_path):
    write_numbers(tmp_path / "a", 1)
    assert run_index_tool(tmp_path / "a", tmp_path / "i").stderr == ""


# F14
@pytest.mark.parametrize("length", [2**30, 2**40, 2**62, 2**64 - 1])
def test_f14_a_bad_length_field_costs_gigabytes(tmp_path, length):
    header = struct.pack("<Q", length)
    path = tmp_path / "a"
    path.write_bytes(header + masked_crc(header) + b"\0" * 16)
    tracemalloc.start()
    with pytest.raises(RuntimeError, match="Failed to read the record"):
        list(tfrecord_iterator(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def test_f14_a_text_file_is_an_overflow_error(tmp_path):
    (tmp_path / "a").write_text("hello world, this is not a record file at all\n")
    with pytest.raises(RuntimeError, match=r"not a TFRecord.*text"):
        list(tfrecord_iterator(tmp_path / "a"))


# F15
def test_f15_compression_must_be_named_gzip_in_small_letters(tmp_path):
    plain = write_numbers(tmp_path / "a", 3)
    packed = write_gzip(tmp_path / "b", plain)
    (tmp_path / "c").write_bytes(zlib.compress(Path(plain).read_bytes()))
    for path, names in ((packed, ["gzip", "GZIP", None]), (tmp_path / "c", ["ZLIB", "zlib", None])):
        for name in names:
            assert numbers(tfrecord_loader(path, compression_type=name)) == [0, 1, 2]
    assert numbers(tfrecord_loader(plain, compression_type="")) == [0, 1, 2]
    with pytest.raises(ValueError, match="compression_type should be either 'gzip' or None"):
        next(tfrecord_loader(plain, compression_type="zip"))


def test_f15_the_first_record_of_a_cut_gzip_file_is_not_delivered(tmp_path):
    rng = np.random.default_rng(0)
    whole = b"".join(frame(rng.bytes(5000)) for _ in range(200))
    (tmp_path / "a").write_bytes(gzip.compress(whole)[:-400])
    read = []
    with pytest.raises(RuntimeError, match="cut"):
        read.extend(len(view) for view in tfrecord_iterator(tmp_path / "a"))
    assert read == [5000] * 199


@pytest.mark.parametrize(("name", "magic"), [("gzip", b"\x1f\x8b"), ("zlib", b"\x78")])
def test_f15_the_writer_cannot_compress(tmp_path, name, magic):
    with TFRecordWriter(tmp_path / "a", compression_type=name) as writer:
        writer.write({"i": (5, "int")})
    assert (tmp_path / "a").read_bytes().startswith(magic)
    assert numbers(tfrecord_loader(tmp_path / "a")) == [5]


# F25
def test_f25_a_pipe_is_an_illegal_seek(tmp_path):
    data = Path(write_numbers(tmp_path / "a", 2)).read_bytes()
    os.mkfifo(tmp_path / "pipe")
    feeder = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(data,), daemon=True)
    feeder.start()
    assert numbers(tfrecord_loader(tmp_path / "pipe")) == [0, 1]
    feeder.join()
