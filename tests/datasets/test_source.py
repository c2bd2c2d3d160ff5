"""Records come from every form of file, held and dropped as the order asks."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tests.datasets.conftest import FORMS, TOTAL, write_numbered
from tfrio.datasets import source as sources
from tfrio.datasets.plan import Picks
from tfrio.datasets.source import ForwardFrames, Sources
from tfrio.errors import CorruptRecordError
from tfrio.records.access import RecordFile
from tfrio.records.reader import read_records
from tfrio.records.shards import expand


def opened(glob, **options):
    return Sources([RecordFile(path, index="memory") for path in expand(glob)], **options)


def picked(data, records):
    """Return picks of record numbers over all files."""
    return Picks.of(np.asarray(records), np.cumsum([0, *data.counts]))


def payloads(frames):
    found = []
    for which, start in zip(frames.which.tolist(), frames.starts.tolist(), strict=True):
        view = memoryview(frames.buffers[which])
        size = int.from_bytes(view[start : start + 8], "little")
        found.append(bytes(view[start + 12 : start + 12 + size]))
    return found


def wanted(glob):
    return [payload for path in expand(glob) for payload in read_records(path)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("hold", [0, 1 << 30], ids=["copied", "held"])
def test_any_records_in_any_order(numbered, form, hold, monkeypatch):
    monkeypatch.setattr(sources, "HOLD_BYTES", hold)
    data, all_payloads = opened(numbered[form]), wanted(numbered[form])
    for seed in range(3):
        records = np.random.default_rng(seed).integers(0, TOTAL, 40)
        got = payloads(data.fetch(picked(data, records)))
        assert got == [all_payloads[r] for r in records]


@pytest.mark.parametrize("form", FORMS)
def test_selected_records_are_renumbered(numbered, form):
    counts = opened(numbered[form]).counts
    selection = [np.arange(1, count, 3) for count in counts]
    data, all_payloads = opened(numbered[form], selection=selection), wanted(numbered[form])
    got = payloads(data.fetch(picked(data, np.arange(sum(data.counts)))))
    starts = np.cumsum(counts) - counts
    pairs = zip(starts, selection, strict=True)
    assert got == [all_payloads[start + record] for start, inner in pairs for record in inner]


def test_what_an_order_asks_for_is_held_and_no_more(numbered, monkeypatch):
    data = opened(numbered["blocked"])
    reads = []
    real = RecordFile.sound_frames

    def sound_frames(self, start, stop):
        reads.append((self.path[-20:], start, stop))
        return real(self, start, stop)

    monkeypatch.setattr(RecordFile, "sound_frames", sound_frames)
    window = picked(data, np.arange(TOTAL))
    for start in range(0, TOTAL, 10):
        data.fetch(picked(data, np.arange(start, min(start + 10, TOTAL))[::-1]), window)
    assert len(reads) == len(set(reads)) == 3
    assert len(data._held) == 3
    data.fetch(picked(data, np.arange(3)))
    assert len(data._held) == 1


def test_a_file_that_cannot_be_entered_is_read_forward(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "WHOLE_BYTES", 0)
    monkeypatch.setattr(sources, "RUN_BYTES", 1000)
    glob = write_numbered(tmp_path, (200,), form="gzip")
    data, all_payloads = opened(glob), wanted(glob)
    assert not data.seekable
    assert len(data._edges_of(0)) > 10
    for first in (0, 50, 120, 30):
        records = np.arange(first, first + 60)
        assert payloads(data.fetch(picked(data, records))) == all_payloads[first : first + 60]


def test_a_file_cut_short_after_it_was_indexed(tmp_path):
    glob = write_numbered(tmp_path, (50,), form="gzip")
    file = RecordFile(expand(glob)[0], index="memory")
    write_numbered(tmp_path, (20,), form="gzip")
    with pytest.raises(CorruptRecordError, match="cut short"):
        ForwardFrames(file).frames(0, 50)


@pytest.mark.parametrize("form", FORMS)
def test_blocks_begin_at_records_in_use(numbered, form):
    data = opened(numbered[form])
    blocks = data.blocks()
    assert blocks[0] == 0
    assert (np.diff(blocks) > 0).all()
    assert {0, 10, 43} <= set(blocks.tolist())
    few = opened(numbered[form], selection=[np.arange(0, c, 5) for c in data.counts])
    assert few.blocks()[-1] < sum(few.counts)


def test_pickles_without_what_is_held(numbered):
    data = opened(numbered["blocked"])
    picks = picked(data, [100, 3])
    first = payloads(data.fetch(picks))
    again = pickle.loads(pickle.dumps(data))
    assert not again._held
    assert payloads(again.fetch(picks)) == first
