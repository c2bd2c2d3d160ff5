"""Whatever is written comes back: through indexes, appends, shards, and runs that were stopped."""

from __future__ import annotations

import gzip
import itertools
import zlib
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.records import golden
from tests.records.golden import put
from tfrio.errors import UsageError
from tfrio.examples.reshard import reshard
from tfrio.records import seek
from tfrio.records.damage import Damage
from tfrio.records.index import build_index
from tfrio.records.reader import read_records
from tfrio.records.sequence import RecordSequence
from tfrio.records.sharded import ShardedWriter
from tfrio.records.sidecar import load_index, save_index
from tfrio.records.textindex import read_text_index, write_text_index
from tfrio.records.verify import verify
from tfrio.records.writer import RecordWriter

PAYLOAD_LISTS = st.lists(st.binary(max_size=300), max_size=40)
FORMS = st.sampled_from(["plain", "blocked", "gzip", "members", "zlib"])


def stored(form: str, payloads: list[bytes], folder: Path) -> Path:
    """Write records in some form."""
    data = b"".join(map(golden.frame, payloads))
    if form == "blocked":
        with RecordWriter(folder / "a.gz", block_size=500) as writer:
            for payload in payloads:
                writer.write(payload)
        return folder / "a.gz"
    cut = len(data) // 3
    content = {
        "plain": data,
        "gzip": gzip.compress(data, 6),
        "members": gzip.compress(data[:cut]) + gzip.compress(data[cut:]),
        "zlib": zlib.compress(data),
    }[form]
    return put(folder, "a", content)


@settings(max_examples=80, deadline=None)
@given(payloads=PAYLOAD_LISTS, form=FORMS, data=st.data())
def test_an_index_that_was_kept_leads_to_every_record(
    tmp_path_factory: pytest.TempPathFactory,
    payloads: list[bytes],
    form: str,
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("i")
    path = stored(form, payloads, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seek, "SPACING", 300)
        made = build_index(path)
    place = save_index(made, path)
    kept = load_index(path, place)
    assert (kept.count, kept.data_size, kept.compression) == (
        made.count,
        made.data_size,
        made.compression,
    )
    sequence = RecordSequence(path)
    assert len(sequence) == len(payloads)
    numbers = st.lists(st.integers(0, max(len(payloads) - 1, 0)), max_size=20)
    asked = data.draw(numbers) if payloads else []
    assert sequence[asked] == [payloads[i] for i in asked]
    assert [sequence[i] for i in asked] == [payloads[i] for i in asked]
    assert list(sequence) == payloads
    if form == "plain":
        text = write_text_index(made, folder / "a.idx")
        again = read_text_index(path, text)
        assert again.offsets is not None
        assert made.offsets is not None
        assert again.offsets.tolist() == made.offsets.tolist()


@settings(max_examples=50, deadline=None)
@given(
    parts=st.lists(PAYLOAD_LISTS, min_size=1, max_size=5),
    compression=st.sampled_from(["none", "gzip"]),
    flushes=st.lists(st.integers(0, 39), max_size=5),
)
def test_appending_adds_to_the_end_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[list[bytes]],
    compression: Literal["none", "gzip"],
    flushes: list[int],
) -> None:
    path = tmp_path_factory.mktemp("a") / "a"
    for part in parts:
        before = path.read_bytes() if path.exists() else b""
        choice = None if before else compression
        with RecordWriter(path, mode="a", compression=choice, block_size=400) as writer:
            for number, payload in enumerate(part):
                writer.write(payload)
                if number in flushes:
                    writer.flush()
        if before:
            assert path.read_bytes().startswith(before)
    assert list(read_records(path)) == list(itertools.chain(*parts))


@settings(max_examples=50, deadline=None)
@given(
    payloads=PAYLOAD_LISTS,
    limit=st.sampled_from(["shards", "max_records", "max_bytes"]),
    size=st.integers(1, 9),
    framed=st.booleans(),
)
def test_shards_hold_every_record_once_and_keep_their_limit(
    tmp_path_factory: pytest.TempPathFactory,
    payloads: list[bytes],
    limit: str,
    size: int,
    framed: bool,
) -> None:
    folder = tmp_path_factory.mktemp("s")
    most = size * 100 if limit == "max_bytes" else size
    with ShardedWriter(folder / "t", **{limit: most}) as writer:  # type: ignore[arg-type]
        if framed:
            frames = [golden.frame(p) for p in payloads]
            writer.write_framed(b"".join(frames), np.cumsum([len(f) for f in frames], dtype="i8"))
        else:
            for payload in payloads:
                writer.write(payload)
    shards = [list(read_records(path)) for path in writer.paths]
    assert verify(writer.paths).ok
    if limit == "shards":
        assert shards == [payloads[i::size] for i in range(size)]
        return
    assert list(itertools.chain(*shards)) == payloads
    if limit == "max_records":
        assert all(len(shard) == size for shard in shards[:-1])
    for shard in shards if limit == "max_bytes" else []:
        assert len(shard) <= 1 or sum(len(p) + 16 for p in shard) <= most


class Stopped(Exception):
    """Raised amid a run."""


@settings(max_examples=40, deadline=None)
@given(
    payloads=st.lists(st.binary(max_size=100), min_size=1, max_size=40),
    limit=st.sampled_from(["shards", "max_records", "max_bytes"]),
    size=st.integers(1, 6),
    stops=st.lists(st.integers(0, 40), max_size=3),
)
def test_a_run_that_was_stopped_ends_like_one_that_was_not(
    tmp_path_factory: pytest.TempPathFactory,
    payloads: list[bytes],
    limit: str,
    size: int,
    stops: list[int],
) -> None:
    folder = tmp_path_factory.mktemp("r")
    path = put(folder, "in", b"".join(map(golden.frame, payloads)))
    options = {limit: size * 80 if limit == "max_bytes" else size}

    def run(where: str, stop: int | None) -> dict[str, bytes]:
        calls = itertools.count()

        def keep(_payload: bytes) -> bool:
            if stop is not None and next(calls) >= stop:
                raise Stopped
            return True

        (folder / where).mkdir(exist_ok=True)
        try:
            reshard(path, folder / where / "t", keep=keep, **options)  # type: ignore[arg-type]
        except Stopped:
            assert not list((folder / where).glob(".*")), "nothing half-written stays"
        except (
            FileExistsError,
            UsageError,
        ):  # an earlier run came to its end
            assert b'"complete": true' in (folder / where / "t-shards.json").read_bytes()
        return {p.name: p.read_bytes() for p in (folder / where).glob("t-0*")}

    for stop in stops:
        run("stopped", stop)
    assert run("stopped", None) == run("whole", None)


@settings(max_examples=80, deadline=None)
@given(
    payloads=st.lists(st.binary(min_size=1, max_size=200), min_size=2, max_size=12),
    data=st.data(),
)
def test_after_junk_reading_goes_on_with_records_that_were_written(
    payloads: list[bytes], data: st.DataObject
) -> None:
    """Junk before any record: no record is lost, none invented, and one damage tells of it."""
    import io

    frames = [golden.frame(p) for p in payloads]
    at = data.draw(st.integers(0, len(frames)))
    junk = data.draw(st.binary(min_size=13, max_size=300).filter(lambda j: b"\0\0\0\0" not in j))
    content = b"".join(frames[:at]) + junk + b"".join(frames[at:])
    if at == 0:
        content = frames[0] + content  # a file must begin as TFRecord to be taken for one
    found = list(read_records(io.BytesIO(content), errors="return"))
    sound = [p for p in found if isinstance(p, bytes)]
    damages = [d for d in found if isinstance(d, Damage)]
    assert sound == ([payloads[0]] if at == 0 else []) + payloads
    assert len(damages) == 1
    assert damages[0].lost == len(junk)
