"""Each known fault of the published package, by its symptom: none of them is left."""

from __future__ import annotations

import gzip
import inspect
import io
import os
import pickle
import resource
import struct
import subprocess
import sys
import threading
import tracemalloc
import zlib
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from tests.compat.bytes_of import (
    UNSET,
    example,
    floats,
    frame,
    ints,
    masked_crc,
    numbers,
    sequence,
    strings,
    write,
    write_gzip,
    write_index,
    write_numbers,
)
from tfrio import compat
from tfrio.compat import TFRecordWriter, tfrecord_iterator, tfrecord_loader
from tfrio.compat.tools.tfrecord2idx import create_index, create_indices
from tfrio.compat.torch.dataset import MultiTFRecordDataset, TFRecordDataset


def run_index_tool(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "tfrio.compat.tools.tfrecord2idx"]
        + [str(a) for a in arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def one(path: Path, body: bytes, description: object = None) -> object:
    (row,) = tfrecord_loader(write(path, example(k=body)), None, description)
    return row.get("k", "no key")


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


# F2
def test_f02_duplicate_symbol_beside_another_tensorflow_example():
    code = """
import tfrio.compat, tfrio.compat.example_pb2
from google.protobuf import descriptor_pb2, descriptor_pool
file = descriptor_pb2.FileDescriptorProto(name="x.proto", package="tensorflow", syntax="proto3")
file.message_type.add(name="BytesList")
descriptor_pool.Default().AddSerializedFile(file.SerializeToString())
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# F3
def test_f03_a_dataset_without_transform_cannot_be_pickled(tmp_path):
    dataset = TFRecordDataset(write_numbers(tmp_path / "a", 3), None)
    assert numbers(pickle.loads(pickle.dumps(dataset))) == [0, 1, 2]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_f03_workers_cannot_be_spawned(tmp_path, method):
    dataset = TFRecordDataset(write_numbers(tmp_path / "a", 4), None)
    loader = DataLoader(dataset, 2, num_workers=1, multiprocessing_context=method)
    assert [batch["i"].tolist() for batch in loader] == [[[0], [1]], [[2], [3]]]


# F4
def test_f04_cycle_over_an_empty_source_hangs():
    assert list(compat.cycle(lambda: iter([]))) == []


def test_f04_an_infinite_mix_with_more_shards_than_records_hangs(tmp_path):
    for name, count in (("a", 4), ("b", 3)):
        write_numbers(tmp_path / name, count)
        write_index(tmp_path / f"{name}.idx", count)
    rows = compat.multi_tfrecord_loader(
        f"{tmp_path}/{{}}", f"{tmp_path}/{{}}.idx", {"a": 1, "b": 1}, shard=(0, 8)
    )
    assert list(rows) == []


def test_f04_an_empty_split_among_good_ones_hangs(tmp_path):
    write_numbers(tmp_path / "a", 2)
    write(tmp_path / "b")
    rows = compat.multi_tfrecord_loader(f"{tmp_path}/{{}}", None, {"a": 0.1, "b": 0.9})
    assert numbers(islice(rows, 50)) == [0, 1] * 25


# F5
def test_f05_workers_without_an_index_read_every_record_each(tmp_path):
    dataset = TFRecordDataset(write_numbers(tmp_path / "a", 10), None)
    read = [int(v) for batch in DataLoader(dataset, 2, num_workers=2) for v in batch["i"]]
    assert read == [0, 1, 5, 6, 2, 3, 7, 8, 4, 9]


@pytest.mark.parametrize("kind", ["plain", "gzip", "blocked gzip", "zlib"])
def test_f05_a_shard_without_an_index_is_the_whole_file(tmp_path, kind):
    path = write_numbers(tmp_path / "a", 7)
    if kind == "gzip":
        path = write_gzip(tmp_path / "b", path)
    elif kind != "plain":
        with TFRecordWriter(path, compression_type=kind.split()[-1]) as writer:
            for k in range(7):
                writer.write({"i": (k, "int")})
    shards = [numbers(tfrecord_loader(path, None, shard=(k, 3))) for k in range(3)]
    assert shards == [[0, 1], [2, 3], [4, 5, 6]]


# F6
@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("shard", [None, (0, 1)])
def test_f06_an_index_of_one_or_no_record_is_an_index_error(tmp_path, count, shard):
    path, index = write_numbers(tmp_path / "a", count), write_index(tmp_path / "i", count)
    assert numbers(tfrecord_loader(path, index, shard=shard)) == list(range(count))


# F7
def test_f07_a_feature_without_a_kind_is_an_index_error(tmp_path):
    path = tmp_path / "a"
    assert one(path, UNSET) == "no key"
    assert one(path, UNSET, ["k"]) is None
    for typename, dtype in (("int", np.int64), ("float", np.float32), ("byte", object)):
        value = one(path, UNSET, {"k": typename})
        assert (value.dtype, value.shape) == (dtype, (0,))


def test_f07_only_the_records_without_a_kind_differ(tmp_path):
    path = write(tmp_path / "a", *(example(k=ints(1, 2) if k % 3 else UNSET) for k in range(600)))
    typed = [row["k"].tolist() for row in tfrecord_loader(path, None, {"k": "int"})]
    assert typed == [[1, 2] if k % 3 else [] for k in range(600)]
    named = [row["k"] is None for row in tfrecord_loader(path, None, ["k"])]
    assert named == [not k % 3 for k in range(600)]
    assert [sorted(row) for row in tfrecord_loader(path)] == [
        ["k"] if k % 3 else [] for k in range(600)
    ]


# F8
def test_f08_several_byte_strings_lose_their_trailing_nuls(tmp_path):
    value = one(tmp_path / "a", strings(b"a\0", b"\0b\0", b""))
    assert value.tolist() == [b"a\0", b"\0b\0", b""]


def test_f08_several_byte_strings_are_padded_to_the_longest(tmp_path):
    value = one(tmp_path / "a", strings(b"x" * 10**6, *[b"y"] * 50))
    assert value.nbytes < 10_000
    assert [len(item) for item in value] == [10**6] + [1] * 50


# F9
def test_f09_a_list_of_raw_records_holds_the_last_one_only(tmp_path):
    views = list(tfrecord_iterator(write(tmp_path / "a", b"one", b"two", b"three")))
    assert [bytes(view) for view in views] == [b"one", b"two", b"three"]
    views[0][0] = 0x4F
    assert [bytes(view) for view in views] == [b"One", b"two", b"three"]


# F10
@pytest.mark.parametrize(
    ("value", "typename", "stored"),
    [
        (np.array([[1.5, 2], [3, 4]]), "float", [1.5, 2, 3, 4]),
        (np.array([True, False]), "int", [1, 0]),
        (np.arange(6).reshape(2, 3)[:, ::2], "int", [0, 2, 3, 5]),
    ],
)
def test_f10_arrays_are_written_as_empty_lists(tmp_path, value, typename, stored):
    with TFRecordWriter(tmp_path / "a") as writer:
        writer.write({"k": (value, typename)})
    (row,) = tfrecord_loader(tmp_path / "a")
    assert row["k"].tolist() == stored


def test_f10_floats_written_as_int_are_an_empty_list():
    with pytest.raises(TypeError, match=r"feature 'k'.*float64"):
        TFRecordWriter.serialize_tf_example({"k": (np.array([1.0, 2.0]), "int")})


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


# F13
def test_f13_the_type_names_of_the_readme_are_key_errors(tmp_path):
    path = write(tmp_path / "a", example(b=strings(b"x"), i=ints(3)))
    (row,) = tfrecord_loader(path, None, {"b": "bytes", "i": "int "})
    assert row == {"b": b"x", "i": np.array([3])}
    payload = TFRecordWriter.serialize_tf_example({"b": (b"x", "bytes"), "i": (3, " int")})
    assert payload == example(b=strings(b"x"), i=ints(3))


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


# F16
def test_f16_an_absent_key_ends_the_pass_without_saying_where(tmp_path):
    payloads = [example(i=ints(k), j=ints(k)) for k in range(400)]
    payloads[300] = example(i=ints(300), other=ints(0))
    path, read = write(tmp_path / "a", *payloads), []
    with pytest.raises(KeyError, match=rf"Key j doesn't exist .*i.*other.*Record 300 of {path}"):
        read.extend(numbers(tfrecord_loader(path, None, ["i", "j"])))
    assert [sorted(row) for row in tfrecord_loader(path)][299:302] == [
        ["i", "j"],
        ["i", "other"],
        ["i", "j"],
    ]


# F17
def test_f17_a_ratio_of_0_crashes_once_the_others_are_dry():
    makers = [lambda: iter([1, 2]), lambda: iter([3])]
    assert list(compat.sample_iterators(makers, [1, 0], infinite=False)) == [1, 2]


# F18
def test_f18_no_length_and_no_random_access_even_with_an_index(tmp_path):
    path, index = write_numbers(tmp_path / "a", 5), write_index(tmp_path / "i", 5)
    dataset = TFRecordDataset(path, index, transform=lambda row: int(row["i"][0]) * 2)
    assert len(dataset) == 5
    assert [dataset[k] for k in (0, 3, 4, -1)] == [0, 6, 8, 8]
    with pytest.raises(IndexError):
        dataset[5]
    without = TFRecordDataset(path)
    with pytest.raises(TypeError, match="without an index_path"):
        len(without)
    with pytest.raises(TypeError, match="without an index_path"):
        without[0]


def test_f18_the_length_of_a_finite_mix(tmp_path):
    for name, count in (("a", 4), ("b", 3)):
        write_numbers(tmp_path / name, count)
        write_index(tmp_path / f"{name}.idx", count)
    patterns = (f"{tmp_path}/{{}}", f"{tmp_path}/{{}}.idx", {"a": 1, "b": 1})
    assert len(MultiTFRecordDataset(*patterns, infinite=False)) == 7
    with pytest.raises(TypeError, match="finite"):
        len(MultiTFRecordDataset(*patterns))


# F19
def test_f19_workers_are_reseeded_over_the_users_seeds(tmp_path):
    path, index = write_numbers(tmp_path / "a", 20), write_index(tmp_path / "i", 20)
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    dataset = TFRecordDataset(path, index, shuffle_queue_size=8, seed=4)
    first, second = numbers(dataset), numbers(dataset)
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second  # each epoch has its own order
    dataset.set_epoch(0)
    assert numbers(dataset) == first
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


# F20
def test_f20_output_bytes_change_from_run_to_run(tmp_path):
    code = """
import sys
from tfrio.compat import TFRecordWriter
row = {f"key{k}": (k, "int") for k in range(20)}
print(TFRecordWriter.serialize_tf_example(row).hex())
"""
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(runs) == 1
    forward, backward = {"a": (1, "int"), "b": (2, "int")}, {"b": (2, "int"), "a": (1, "int")}
    assert TFRecordWriter.serialize_tf_example(forward) == TFRecordWriter.serialize_tf_example(
        backward
    )
    assert list(next(tfrecord_loader(write(tmp_path / "a", example(z=ints(1), b=ints(2)))))) == [
        "b",
        "z",
    ]


# F21
def test_f21_no_with_no_append_no_flush_no_file_object(tmp_path):
    path = tmp_path / "a"
    with TFRecordWriter(path) as writer:
        writer.write({"i": (1, "int")})
        writer.flush()
        assert numbers(tfrecord_loader(path)) == [1]
    with TFRecordWriter(path, mode="a") as writer:
        writer.write({"i": (2, "int")})
    assert numbers(tfrecord_loader(path)) == [1, 2]
    file = io.BytesIO()
    with TFRecordWriter(file) as writer:
        writer.write({"i": (1, "int")})
    assert file.getvalue() == frame(example(i=ints(1)))


@pytest.mark.parametrize(
    ("value", "typename", "feature"),
    [
        (bytearray(b"ab"), "byte", strings(b"ab")),
        (True, "int", ints(1)),
        (np.bool_(True), "int", ints(1)),
        (torch.arange(3), "int", ints(0, 1, 2)),
        (torch.tensor([0.5], requires_grad=True), "float", floats(0.5)),
        (np.array(5), "int", ints(5)),
        (np.float64(2.5), "float", floats(2.5)),
        (np.ones((2, 2), np.int8), "int", ints(1, 1, 1, 1)),
    ],
)
def test_f21_unambiguous_values_are_refused(value, typename, feature):
    assert TFRecordWriter.serialize_tf_example({"k": (value, typename)}) == example(k=feature)


# F22
def test_f22_a_mix_of_many_splits_opens_too_many_files(tmp_path):
    for k in range(120):
        write_numbers(tmp_path / str(k), 2, first=2 * k)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    busy = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 64
    rows = compat.multi_tfrecord_loader(
        f"{tmp_path}/{{}}", None, {str(k): 1 for k in range(120)}, infinite=False
    )
    resource.setrlimit(resource.RLIMIT_NOFILE, (busy + 48, hard))
    try:
        assert sorted(numbers(rows)) == list(range(240))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# F23
@pytest.mark.parametrize("workers", [0, 2])
def test_f23_every_rank_reads_everything(tmp_path, monkeypatch, workers):
    dataset = TFRecordDataset(write_numbers(tmp_path / "a", 11), write_index(tmp_path / "i", 11))
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 3)
    ranks = []
    for rank in range(3):
        monkeypatch.setattr(torch.distributed, "get_rank", lambda rank=rank: rank)
        assert len(dataset) == [3, 4, 4][rank]
        loader = DataLoader(dataset, batch_size=None, num_workers=workers)
        ranks.append(sorted(int(row["i"][0]) for row in loader))
    assert ranks == [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9, 10]]


def test_f23_a_spawned_worker_knows_the_rank_of_its_parent(tmp_path, monkeypatch):
    dataset = TFRecordDataset(write_numbers(tmp_path / "a", 10))
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    sent = pickle.dumps(dataset)
    monkeypatch.undo()
    assert numbers(pickle.loads(sent)) == [5, 6, 7, 8, 9]


# F24
@pytest.mark.parametrize("shard", [(-1, 2), (2, 2), (0, 0), (1,)])
def test_f24_impossible_shards_are_silently_empty(tmp_path, shard):
    path = write_numbers(tmp_path / "a", 5)
    with pytest.raises(ValueError, match="shard"):
        next(tfrecord_loader(path, shard=shard))


def test_f24_an_impossible_queue_is_silently_empty():
    with pytest.raises(ValueError, match="queue_size must be at least 1"):
        next(compat.shuffle_iterator(iter(range(3)), 0))


def test_f24_an_unknown_type_of_an_empty_list_goes_unseen(tmp_path):
    path = write(tmp_path / "a", sequence({}, {"e": []}))
    with pytest.raises(KeyError, match="is no type name"):
        next(tfrecord_loader(path, sequence_description={"e": "flaot"}))


def test_f24_an_index_with_gaps_is_followed_without_a_word(tmp_path):
    path = write_numbers(tmp_path / "a", 4)
    (tmp_path / "i").write_text("0 30\n60 30\n")
    with pytest.warns(UserWarning, match="leaves out bytes"):
        assert sorted(numbers(tfrecord_loader(path, tmp_path / "i"))) == [0, 1, 2, 3]


# F25
def test_f25_a_pipe_is_an_illegal_seek(tmp_path):
    data = Path(write_numbers(tmp_path / "a", 2)).read_bytes()
    os.mkfifo(tmp_path / "pipe")
    feeder = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(data,), daemon=True)
    feeder.start()
    assert numbers(tfrecord_loader(tmp_path / "pipe")) == [0, 1]
    feeder.join()


# F26
def test_f26_arrays_are_encoded_one_number_at_a_time(monkeypatch):
    from tfrio.compat import _values

    monkeypatch.setattr(_values, "_items", None)  # the way that looks at every item
    patch = np.random.default_rng(0).random((5, 3), np.float32)
    for value in (patch, patch.astype(np.float64), patch[:, ::2], patch.T, list(range(3))):
        payload = TFRecordWriter.serialize_tf_example({"k": (value, "float")})
        flat = np.ravel(value).astype(np.float32)
        assert payload == example(k=floats(*flat.tolist()))


# F27
def test_f27_no_wheel_no_bounds_on_dependencies():
    import tomllib

    project = tomllib.loads(
        (Path(__file__).parents[2] / "dropin" / "pyproject.toml").read_text(encoding="utf-8")
    )
    assert all(">=" in need for need in project["project"]["dependencies"])
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/tfrecord"]


def test_every_function_keeps_its_arguments():
    names = {
        "tfrecord_iterator": "data_path index_path shard compression_type",
        "example_loader": "data_path index_path description shard compression_type",
        "sequence_loader": "data_path index_path context_description features_description shard "
        "compression_type",
        "tfrecord_loader": "data_path index_path description shard sequence_description "
        "compression_type",
        "multi_tfrecord_loader": "data_pattern index_pattern splits description "
        "sequence_description compression_type infinite shard",
        "process_feature": "feature typename typename_mapping key",
        "extract_feature_dict": "features description typename_mapping",
        "cycle": "iterator_fn",
        "sample_iterators": "iterators ratios infinite",
        "shuffle_iterator": "iterator queue_size",
        "TFRecordWriter": "data_path",
    }
    for function, arguments in names.items():
        parameters = inspect.signature(getattr(compat, function)).parameters.values()
        positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert positional == arguments.split(), function
