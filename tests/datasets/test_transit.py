"""Large batches travel in blocks that are used again, but never while somebody holds them."""

from __future__ import annotations

import os
import pickle
import threading

import numpy as np
import pytest
import torch

from tests.datasets.conftest import ids, write_numbered
from tfrio.datasets import transit
from tfrio.examples.columns import BytesColumn
from tfrio.examples.writer import Writer
from tfrio.torch import TensorBatch, TFRecordDataset

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def _small_pipe(monkeypatch):
    monkeypatch.setattr(transit, "PIPE_BYTES", 100)


@pytest.fixture
def sender(monkeypatch):
    """Make this process its own worker."""
    monkeypatch.setattr(transit, "_sender", None)
    transit.send_blocks_as("here")
    yield transit._sender
    transit.forget_blocks("here")


def entries(number):
    return {
        "a": torch.full((3, 50), float(number)),
        "b": [b"x" * number, b"", b"end"],
        "c": torch.arange(number),
        "d": "text",
    }


def send(number):
    """Pack and unpack within this process, as a block would arrive in another."""
    return transit.unpack(transit.pack(entries(number)))


def check(got, number):
    assert list(got) == ["a", "b", "c", "d"]
    assert torch.equal(got["a"], entries(number)["a"])
    assert got["b"] == entries(number)["b"]
    assert got["c"].tolist() == list(range(number))
    assert got["d"] == "text"


def test_blocks_are_used_again(sender):
    for number in range(1, 20):
        check(send(number), number)
    assert len(sender._blocks) == 1


def test_blocks_in_use_are_left_alone(sender):
    held = [send(number) for number in range(1, 6)]
    assert len(sender._blocks) == 5
    for number, got in enumerate(held, 1):
        check(got, number)
    view = held[2]["a"][1:, :7]
    del held, got
    check(send(9), 9)
    assert len(sender._blocks) == 5
    assert (view == 3.0).all()


def test_what_autograd_saved_keeps_a_block(sender):
    weight = torch.ones(50, requires_grad=True)
    loss = (send(4)["a"] * weight).sum()  # only the graph holds the tensor now
    check(send(7), 7)
    assert len(sender._blocks) == 2
    loss.backward()
    assert (weight.grad == 12.0).all()


def test_a_forked_child_releases_nothing(sender):
    got = send(5)
    child = os.fork()
    if child == 0:
        del got
        os._exit(int(sender._blocks[0][0]) ^ 1)
    assert os.waitpid(child, 0)[1] == 0
    check(send(6), 6)
    check(got, 5)


def decoded(size=1000):
    """Return entries of which two were decoded into a room, and that room."""
    memory = transit.room(size)
    memory[:12] = np.frombuffer(b"left out.abc", np.uint8)
    numbers = memory[64 : 64 + 80].view(np.float32)
    numbers[:] = np.arange(20)
    column = BytesColumn(memory, np.array([0, 9, 9, 12]))[1:]
    return {"s": column, "t": torch.from_numpy(numbers).view(4, 5), "z": torch.arange(9)}, memory


def check_decoded(got):
    assert list(got) == ["s", "t", "z"]
    assert got["s"] == [b"", b"abc"]
    assert torch.equal(got["t"], torch.arange(20.0).view(4, 5))
    assert got["z"].tolist() == list(range(9))


def test_what_was_decoded_into_a_block_stays_there(sender):
    for _ in range(5):
        made, memory = decoded()
        got = transit.unpack(transit.pack(made))
        check_decoded(got)
        assert got["t"].data_ptr() == memory.ctypes.data + 64
        memory[64:68] = 0  # nothing was copied
        assert got["t"][0, 0] == 0
        del made, memory, got
    assert len(sender._blocks) == 1


def test_a_room_is_not_used_again_before_both_sides_let_go(sender):
    made, memory = decoded()
    got = transit.unpack(transit.pack(made))
    del got
    other, _ = decoded()
    assert len(sender._blocks) == 2
    del made, memory, other, _
    assert transit.room(1000) is not None
    assert len(sender._blocks) == 2


def test_a_room_that_is_never_sent_is_free_again(sender):
    for _ in range(3):
        assert transit.room(1000).size >= 1000
    assert len(sender._blocks) == 1
    assert transit.room(100) is None


def test_two_batches_in_one_room_share_no_block(sender):
    made, memory = decoded()
    second = {"t": torch.from_numpy(memory[200:520].view(np.float32))}
    second["t"][:] = 5
    got = transit.unpack(transit.pack(made))
    other = transit.unpack(transit.pack(second))
    assert len(sender._blocks) == 2
    del got, made, memory, second
    for _ in range(3):
        check(send(4), 4)
    assert (other["t"] == 5).all()


def test_large_entries_from_elsewhere_get_a_block_of_their_own(sender):
    made, memory = decoded()
    made["z"] = torch.arange(9 + memory.size)
    got = transit.unpack(transit.pack(made))
    assert torch.equal(got["z"], made["z"])
    got["z"] = got["z"][:9]
    check_decoded(got)
    assert got["t"].data_ptr() == memory.ctypes.data + 64
    assert len(sender._blocks) == 2


def test_scattered_numbers_of_a_room_are_copied(sender):
    made, _ = decoded()
    made["t"] = made["t"].T
    got = transit.unpack(transit.pack(made))
    assert torch.equal(got["t"], torch.arange(20.0).view(4, 5).T)
    assert got["s"] == [b"", b"abc"]


def test_columns_of_bytes_arrive_as_lists(sender):
    whole = BytesColumn.of([b"left out", b"a", b"", b"ccc", b"left out"])
    assert transit.unpack(transit.pack({"n": whole[1:4]})) == {"n": [b"a", b"", b"ccc"]}
    assert transit.unpack(transit.pack({"n": whole[2:2]})) == {"n": []}


def test_small_batches_go_through_the_pipe(monkeypatch):
    monkeypatch.setattr(transit, "PIPE_BYTES", 1 << 20)
    packed = transit.pack(entries(3))
    assert isinstance(packed.data, bytes)
    check(transit.unpack(packed), 3)


def test_a_batch_pickled_for_keeps_needs_no_block():
    again = pickle.loads(pickle.dumps(TensorBatch(entries(3), rows=3)))
    check(again, 3)
    again["a"] += 1


@pytest.mark.parametrize(("context", "persistent"), [("fork", True), ("fork", False)])
def test_blocks_from_real_workers(tmp_path, context, persistent):
    glob = write_numbered(tmp_path, (40,), size=100_000)
    # Workers started by spawn have the usual limit: make batches larger than that.
    data = TFRecordDataset(glob, batch_size=4, index="memory")
    loader = data.loader(
        num_workers=2, persistent_workers=persistent, multiprocessing_context=context
    )
    wanted = {number: np.random.default_rng(number).bytes(100_000) for number in range(40)}
    for _ in range(2):
        held = list(loader)
        assert ids(held) == list(range(40))
        for batch in held:
            numbers = batch["id"].ravel().tolist()
            assert batch["blob"] == [wanted[number] for number in numbers]
            assert batch["x"][:, 0].tolist() == numbers
    token = loader._token
    assert (token in transit._blocks) == persistent
    del loader, batch
    assert token not in transit._blocks
    assert held[3]["x"][0].tolist() == [12.0, 12.5]
    assert threading.active_count() < 10


@pytest.mark.parametrize("shuffle", [False, True])
def test_strings_of_any_length_come_whole_from_workers(tmp_path, shuffle):
    sizes = [n * n * 37 % 5000 for n in range(300)]
    with Writer(tmp_path / "a") as writer:
        for n, size in enumerate(sizes):
            writer.write({"id": n, "name": bytes([n % 251]) * size, "x": np.float32([n] * 3)})
    data = TFRecordDataset(tmp_path / "a", batch_size=7, shuffle=shuffle, seed=3)
    loader = data.loader(num_workers=2, multiprocessing_context="fork")
    for _ in range(2):
        seen = []
        for batch in loader:
            assert batch["x"].tolist() == [[n] * 3 for n in batch["id"].ravel().tolist()]
            for n, name in zip(batch["id"].ravel().tolist(), batch["name"], strict=True):
                assert name == bytes([n % 251]) * sizes[n]
                seen.append(n)
        assert sorted(seen) == list(range(300))
        assert (seen == list(range(300))) is not shuffle
