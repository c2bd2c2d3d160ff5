"""Pieces shown as they were inflated: every byte once, in order, with what came before."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.records import golden
from tfrio import _core
from tfrio.compression import Compression, open_chunks
from tfrio.records import lent
from tfrio.records.lent import LentWindow
from tfrio.records.mapped import open_window
from tfrio.records.reader import RecordStream
from tfrio.records.walk import walk
from tfrio.records.window import Window


class Pieces:
    """A source that gives out the pieces it was given."""

    compression: Compression = "gzip"
    remaining = None
    consumed = 0

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = [memoryview(piece) for piece in pieces if piece]

    @property
    def ended(self) -> bool:
        return not self._pieces

    def at_hand(self) -> int:
        return len(self._pieces[0]) if self._pieces else 0

    def lend(self, most: int) -> memoryview:
        piece, rest = self._pieces[0][:most], self._pieces[0][most:]
        self._pieces[:1] = [rest] if rest else []
        return piece

    def readinto(self, buffer: memoryview) -> int:
        done = 0
        while done < len(buffer) and self._pieces:
            piece = self.lend(len(buffer) - done)
            buffer[done : done + len(piece)] = piece
            done += len(piece)
        return done

    def close(self) -> None:
        pass


def consume(window: Window, impatient: list[bool], most: int) -> tuple[bytes, int]:
    """Take up to ``most`` records at a time, sometimes asking for more first.

    Returns:
        All bytes, and how often more was asked for while a piece was lent.
    """
    taken, lending, step = b"", 0, 0
    while True:
        size = 0 if impatient[step % len(impatient)] else whole(window.buffer, most)
        step += 1
        if size:
            taken += bytes(window.buffer[:size])
            window.drop(size)
            assert bytes(window.past) == taken[-(64 << 10) :]
            continue
        lending += window._lent if isinstance(window, LentWindow) else 0
        if not window.pull() and not whole(window.buffer, most):
            break
    assert window.exhausted
    return taken + bytes(window.buffer), lending


def whole(data: memoryview, most: int) -> int:
    return _core.scan(data, 0, most, True, False).consumed


@settings(max_examples=150, deadline=None)
@given(
    lengths=st.lists(st.one_of(st.integers(0, 90), st.integers(0, 3000)), max_size=60),
    cuts=st.lists(st.one_of(st.integers(1, 60), st.integers(1, 2000)), min_size=1, max_size=9),
    impatient=st.lists(st.sampled_from([False, False, True]), min_size=1, max_size=9),
    worth=st.integers(1, 600),
    small=st.integers(20, 2500),
    cut=st.integers(0, 30),
)
def test_every_byte_is_shown_once_and_in_order(
    lengths: list[int], cuts: list[int], impatient: list[bool], worth: int, small: int, cut: int
) -> None:
    whole = b"".join(golden.frame(bytes([n % 251]) * n) for n in lengths)
    data = whole[: max(len(whole) - cut, 0)]
    pieces: list[bytes] = []
    at = 0
    while at < len(data):
        pieces.append(data[at : at + cuts[len(pieces) % len(cuts)]])
        at += len(pieces[-1])
    source: Any = Pieces(pieces)
    with patch.multiple(lent, _WORTH_LENDING=worth, _SMALL=small):
        window = LentWindow(source, 256)
        impatient[0] = False
        assert consume(window, impatient, 1)[0] == data


def test_small_records_are_lent_and_large_ones_copied() -> None:
    for length, lends in ((131, True), (100_000, False)):
        data = golden.frame(bytes(length)) * (6_000_000 // length)
        pieces = [data[at : at + 700_000] for at in range(0, len(data), 700_000)]
        source: Any = Pieces(pieces)
        taken, lending = consume(LentWindow(source, 1 << 20), [False], -1)
        assert taken == data
        assert lending > 5 if lends else lending < 3


def test_short_pieces_are_gathered() -> None:
    frame = golden.frame(b"abc")
    source: Any = Pieces([frame] * 5000)
    window = LentWindow(source, 1 << 20)
    assert window.pull() == len(frame) * 5000
    assert window.exhausted


@pytest.mark.parametrize("threads", [1, 2])
def test_a_file_is_walked_in_lent_pieces(tmp_path: Path, threads: int) -> None:
    data = b"".join(golden.frame(b"%0131d" % k) for k in range(30_000))
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(data, 1))
    seen = 0
    with RecordStream(path, threads=threads) as stream:
        window = stream._window
        assert isinstance(window, LentWindow)
        lending = 0
        for chunk in walk(stream):
            seen += len(chunk.spans)  # type: ignore[union-attr]
            lending += window._lent
            assert len(stream.past) <= 64 << 10
    assert seen == 30_000
    assert lending > 2


def test_plain_files_are_not_lent(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(golden.frame(b"abc"))
    source = open_chunks(path)
    assert type(open_window(source, 1 << 20, mapped=False)) is Window
    source.close()
