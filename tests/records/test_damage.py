"""The damage model: every flip is reported, every cut, insertion and deletion recovers soundly."""

from __future__ import annotations

import gzip
import io
import random
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.records import golden
from tests.records.golden import PAYLOADS, THREE, put
from tfrio.compression.deflate import deflate_member
from tfrio.errors import CompressedDataError, CorruptRecordError, NotTFRecordError, TfrioError
from tfrio.records.damage import Damage
from tfrio.records.reader import read_records
from tfrio.records.verify import verify
from tfrio.records.writer import RecordWriter


def survivors(path: Path) -> tuple[list[bytes], list[Damage]]:
    """Return sound payloads and damages, in order."""
    events = list(read_records(path, errors="return"))
    sound = [e for e in events if isinstance(e, bytes)]
    return sound, [e for e in events if isinstance(e, Damage)]


def test_every_one_of_the_1104_bit_flips_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "flip"
    reported = 0
    for bit in range(len(THREE) * 8):
        path.write_bytes(golden.flipped(THREE, bit // 8, 1 << bit % 8))
        try:
            list(read_records(path))
        except TfrioError:
            reported += 1
    assert reported == 1104


def test_every_bit_flip_of_a_blocked_gzip_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "blocked.tfrecord.gz"
    with RecordWriter(path) as writer:
        for payload in PAYLOADS:
            writer.write(payload)
    whole = path.read_bytes()
    silent = 0
    for bit in range(len(whole) * 8):
        path.write_bytes(golden.flipped(whole, bit // 8, 1 << bit % 8))
        try:
            got = list(read_records(path, threads=1))
        except TfrioError:
            continue
        assert got == list(PAYLOADS)
        silent += 1
    assert silent <= 8  # deflate leaves a few bits without a meaning, such as the last ones


def test_a_broken_length_checksum_is_told_as_such_and_costs_only_the_header(
    tmp_path: Path,
) -> None:
    sound, (damage,) = survivors(put(tmp_path, "a", golden.LENGTH_CRC_FLIP))
    assert sound == [PAYLOADS[0], PAYLOADS[2]]
    assert (damage.code, damage.offset, damage.record) == ("length-crc", 46, 1)
    assert damage.repairable
    assert damage.payload == PAYLOADS[1]


def test_a_broken_length_is_repairable_as_the_next_record_bounds_the_payload(
    tmp_path: Path,
) -> None:
    sound, (damage,) = survivors(put(tmp_path, "a", golden.LENGTH_FLIP))
    assert sound == [PAYLOADS[0], PAYLOADS[2]]
    assert damage.payload == PAYLOADS[1]


def test_a_broken_length_in_the_last_record_is_bounded_by_the_end(tmp_path: Path) -> None:
    sound, (damage,) = survivors(put(tmp_path, "a", golden.flipped(THREE, 92)))
    assert sound == list(PAYLOADS[:2])
    assert damage.payload == PAYLOADS[2]
    assert damage.resumed is None


def test_zero_padding_is_one_damage_and_no_phantom_records(tmp_path: Path) -> None:
    sound, (damage,) = survivors(put(tmp_path, "a", golden.ZERO_TAIL))
    assert sound == list(PAYLOADS)
    assert (damage.offset, damage.lost, damage.resumed) == (138, 4096, None)


def test_junk_between_records_is_stepped_over(tmp_path: Path) -> None:
    sound, (damage,) = survivors(put(tmp_path, "a", golden.JUNK_BETWEEN))
    assert sound == list(PAYLOADS)
    assert (damage.offset, damage.lost, damage.resumed) == (46, 37, 83)


def test_an_impossible_length_in_the_middle_hides_nothing_behind_it(tmp_path: Path) -> None:
    for length in (1 << 50, 1 << 35):
        data = golden.FRAMES[0] + golden.header(length) + golden.FRAMES[1] + golden.FRAMES[2]
        sound, (damage,) = survivors(put(tmp_path, "a", data))
        assert sound == list(PAYLOADS)
        assert (damage.offset, damage.resumed) == (46, 58)


def test_a_cut_payload_that_holds_records_does_not_bring_them_up(tmp_path: Path) -> None:
    nested = golden.frame(THREE + b"tail")
    sound, (damage,) = survivors(put(tmp_path, "a", THREE + nested[:-7]))
    assert sound == list(PAYLOADS)
    assert damage.code == "payload-cut"
    assert damage.resumed is None


def test_a_flipped_bit_in_a_payload_that_holds_records_does_not_bring_them_up(
    tmp_path: Path,
) -> None:
    nested = golden.frame(THREE + b"tail")
    data = golden.FRAMES[0] + golden.flipped(nested, len(nested) - 6) + golden.FRAMES[1]
    sound, (damage,) = survivors(put(tmp_path, "a", data))
    assert sound == [PAYLOADS[0], PAYLOADS[1]]
    assert damage.lost == len(nested)


def test_bytes_deleted_in_a_payload_do_not_cost_the_record_behind(tmp_path: Path) -> None:
    data = THREE[:60] + THREE[65:]
    sound, damages = survivors(put(tmp_path, "a", data))
    assert sound == [PAYLOADS[0], PAYLOADS[2]]
    assert [d.code for d in damages] == ["payload-crc"]


def test_bytes_deleted_near_the_end_do_not_cost_the_last_record(tmp_path: Path) -> None:
    """The step over the damaged record would end within the last one's final 11 bytes."""
    data = golden.frame(b"x")[:12] + golden.frame(b"")
    sound, (damage,) = survivors(put(tmp_path, "a", data))
    assert sound == [b""]
    assert (damage.lost, damage.resumed) == (12, 12)
    cut = golden.flipped(THREE, 46 + 20)[:-46] + golden.FRAMES[2][:5]
    _, damages = survivors(put(tmp_path, "b", cut))
    assert [d.code for d in damages] == ["payload-crc", "header-cut"]


def test_records_that_fill_a_gap_exactly_are_reported_as_lost_with_it(tmp_path: Path) -> None:
    frames = [golden.frame(bytes(15)), golden.frame(bytes(3))]
    data = frames[0][:12] + frames[1]
    sound, (damage,) = survivors(put(tmp_path, "a", data))
    assert sound == []
    assert (damage.code, damage.offset, damage.lost) == ("payload-crc", 0, len(data))


def test_two_damaged_records_in_a_row_are_two_damages(tmp_path: Path) -> None:
    data = golden.flipped(golden.flipped(THREE, 60), 20)
    sound, damages = survivors(put(tmp_path, "a", data))
    assert sound == [PAYLOADS[2]]
    assert [(d.record, d.offset) for d in damages] == [(0, 0), (1, 46)]


# A header that claims 8 bytes, followed by another header, is a valid record (8 bytes of length,
# then their CRC): cutting out exactly a payload of 8 bytes and its CRC cannot be noticed there.
frames_of = st.lists(
    st.binary(max_size=80).filter(lambda payload: len(payload) != 8), min_size=1, max_size=8
).map(lambda payloads: [golden.frame(p) for p in payloads])


@st.composite
def damaged(draw: st.DrawFn) -> tuple[list[bytes], bytes, range]:
    """Return frames, the damaged file, and which original bytes the damage touched."""
    frames = draw(frames_of)
    data = b"".join(frames)
    how = draw(st.sampled_from(["cut", "flip", "insert", "delete"]))
    at = draw(st.integers(0, len(data) - 1))
    size = draw(st.integers(1, 64))
    if how == "cut":
        return frames, data[:at], range(at, len(data))
    if how == "flip":
        return frames, golden.flipped(data, at, 1 << draw(st.integers(0, 7))), range(at, at + 1)
    if how == "insert":
        junk = random.Random(at).randbytes(size)
        return frames, data[:at] + junk + data[at:], range(at, at)
    return frames, data[:at] + data[at + size :], range(at, min(at + size, len(data)))


def _claims(data: bytes, damage: Damage, offset: int) -> bool:
    """Check whether a damaged record's own sound length says that a record is its payload.

    Where bytes cut out of a payload happen to make whole records fill the gap exactly, nothing
    tells them from a payload that holds records: they are reported as lost with it.
    """
    claim = 16 + int.from_bytes(data[damage.offset : damage.offset + 8], "little")
    return (
        damage.code == "payload-crc"
        and damage.lost == claim
        and damage.offset < offset < damage.offset + claim
    )


@settings(max_examples=400, deadline=None)
@given(case=damaged(), packed=st.booleans())
def test_no_untouched_record_is_lost_and_none_is_invented(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[list[bytes], bytes, range], packed: bool
) -> None:
    frames, data, touched = case
    path = tmp_path_factory.mktemp("d") / "a"
    path.write_bytes(gzip.compress(data, 1) if packed else data)
    try:
        sound, damages = survivors(path)
    except NotTFRecordError:
        return  # junk at the very start can look like another format
    written = [f[12:-4] for f in frames]
    assert len(sound) <= len(written)
    remaining = iter(written)
    assert all(payload in remaining for payload in sound), "in order, each at most once"
    ends = [sum(map(len, frames[: i + 1])) for i in range(len(frames))]
    begins = [0, *ends[:-1]]
    shift = len(data) - ends[-1]
    untouched = [
        (f[12:-4], b if e <= touched.start else b + shift)
        for f, b, e in zip(frames, begins, ends, strict=True)
        if touched.stop <= b or touched.start >= e
    ]
    left = iter(sound)
    for payload, offset in untouched:
        within = any(_claims(data, d, offset) for d in damages)
        assert within or payload in left, "no silent loss"
    if data != b"".join(golden.frame(p) for p in sound):
        assert damages


GZIP = gzip.compress(b"".join(golden.frame(b"payload %d" % i * 9) for i in range(50)), mtime=0)


@pytest.mark.parametrize(
    ("content", "code", "text"),
    [
        (GZIP[:-12], "cut", r"gzip data cut at compressed byte \d+ in gzip member 1"),
        (GZIP[:-3], "cut", "gzip data cut"),
        (golden.flipped(GZIP, len(GZIP) - 6), "checksum", "gzip checksum mismatch at compressed"),
        (golden.flipped(GZIP, len(GZIP) - 2), "checksum", "gzip checksum mismatch"),
        (GZIP + bytes(512), "tail", f"zero bytes after 1 whole gzip member .* {len(GZIP)}"),
        (GZIP + b"garbage", "tail", f"bytes that are not gzip after 1 whole .* {len(GZIP)}"),
    ],
)
def test_damaged_gzip_is_one_clear_error_after_every_whole_record(
    tmp_path: Path, content: bytes, code: str, text: str
) -> None:
    path = put(tmp_path, "a.gz", content)
    sound, (damage,) = survivors(path)
    assert damage.code == f"gzip-{code}"
    assert damage.compressed_offset is not None
    assert len(sound) == 50 or code == "cut"
    with pytest.raises(CompressedDataError, match=text) as caught:
        list(read_records(path))
    assert isinstance(caught.value, CorruptRecordError)
    assert f"{len(sound)} whole records precede" in str(caught.value)


def test_cut_zlib_is_named(tmp_path: Path) -> None:
    path = put(tmp_path, "a", golden.THREE_ZLIB[:-5])
    with pytest.raises(CompressedDataError, match="zlib data cut at compressed byte"):
        list(read_records(path))


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_damage_within_compressed_data_costs_only_what_lies_behind_it(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    """The sound bytes that the failing call of the inflater keeps to itself are saved."""
    rng = random.Random(4)
    payloads = [bytes(rng.choices(b"abcd", k=3000)) for _ in range(600)]
    whole = pack(b"".join(golden.frame(p) for p in payloads))
    assert len(whole) > 200_000
    for at in (400, 70_000, 200_000):
        path = put(tmp_path, "a", whole[:at] + rng.randbytes(9000) + whole[at + 9000 :])
        sound, damages = survivors(path)
        assert sound == payloads[: len(sound)]
        assert len(sound) > at / len(whole) * 600 - 6
        assert damages[-1].code.partition("-")[2] in ("data", "checksum")


REPEATING = b"".join((*golden.FRAMES[:2], b"led astray", *golden.FRAMES))


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_records_that_damaged_compressed_data_brings_up_again_are_left_out(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    path = put(tmp_path, "a", golden.flipped(pack(REPEATING), -2))
    sound, damages = survivors(path)
    assert sound == list(PAYLOADS)
    assert damages[0].lost == 10 + 2 * 46
    assert damages[0].resumed == 4 * 46 + 10
    assert "behind it 2 records repeated earlier ones" in damages[0].message
    assert verify(path).records == 3


def test_records_that_repeat_where_no_compressed_data_is_damaged_are_kept(tmp_path: Path) -> None:
    for content in (REPEATING, gzip.compress(REPEATING), zlib.compress(REPEATING)):
        assert len(survivors(put(tmp_path, "a", content))[0]) == 5
    # Of what can be read only once this cannot be known: it is left out, and told.
    once = list(read_records(io.BytesIO(gzip.compress(REPEATING)), errors="return"))
    assert len(once) == 4
    block = tmp_path / "b.tfrecord.gz"
    block.write_bytes(deflate_member(REPEATING, 5))
    assert len(survivors(block)[0]) == 5


def test_no_record_comes_twice_out_of_damaged_gzip(tmp_path: Path) -> None:
    rng = random.Random(7)
    words = [b"alpha", b"beta", b"gamma", b"delta", b"eps"]
    payloads = [
        b"%05d" % n + b" ".join(rng.choices(words, k=rng.randrange(5, 40))) for n in range(1000)
    ]
    whole = gzip.compress(b"".join(golden.frame(p) for p in payloads))
    for _ in range(60):
        at = rng.randrange(20, len(whole) - 8)
        junk = rng.randbytes(rng.randrange(1, 64))
        sound, _ = survivors(put(tmp_path, "a", whole[:at] + junk + whole[at:]))
        assert sound == sorted(set(sound))
        assert set(sound) <= set(payloads)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_flip_in_a_block_of_blocked_gzip_costs_one_record_of_noise(
    tmp_path: Path, threads: int
) -> None:
    path = tmp_path / "a.tfrecord.gz"
    payloads = [random.Random(i).randbytes(100) for i in range(400)]
    with RecordWriter(path, block_size=2000) as writer:
        for payload in payloads:
            writer.write(payload)
    whole = path.read_bytes()
    path.write_bytes(golden.flipped(whole, len(whole) // 2))
    events = list(read_records(path, errors="return", threads=threads))
    sound = [e for e in events if isinstance(e, bytes)]
    (damage,) = [e for e in events if isinstance(e, Damage)]
    assert (damage.lost, damage.lost_records, damage.code) == (116, 1, "gzip-data")
    first = damage.offset // 116
    assert (damage.record, damage.resumed) == (first, (first + 1) * 116)
    assert sound == payloads[:first] + payloads[first + 1 :]
    with pytest.raises(CompressedDataError, match="1 of its 18 records is lost here") as caught:
        list(read_records(path, threads=threads))
    assert caught.value.record == first


def test_a_damaged_block_of_one_record_is_told_in_words(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord.gz"
    with RecordWriter(path) as writer:
        writer.write(random.Random(4).randbytes(3000))
    whole = path.read_bytes()
    path.write_bytes(golden.flipped(whole, len(whole) // 2))
    (damage,) = [e for e in read_records(path, errors="return") if isinstance(e, Damage)]
    assert "(its checksum does not match)" in damage.message
    assert "its only record is lost here" in damage.message


def test_offsets_in_compressed_files_are_told_as_such(tmp_path: Path) -> None:
    for content, place in (
        (golden.PAYLOAD_FLIP, "in record 1 at offset "),
        (gzip.compress(golden.PAYLOAD_FLIP), "in record 1 at uncompressed offset "),
    ):
        with pytest.raises(CorruptRecordError, match=place):
            list(read_records(put(tmp_path, "a", content)))


def test_a_wrong_checksum_of_a_gzip_member_costs_no_record(tmp_path: Path) -> None:
    members = [gzip.compress(frame, mtime=0) for frame in golden.FRAMES]
    members[1] = golden.flipped(members[1], -8)
    cut = golden.FRAMES[0] + golden.FRAMES[1][:20]
    across = [gzip.compress(cut, mtime=0), gzip.compress(golden.FRAMES[1][20:], mtime=0)]
    across[0] = golden.flipped(across[0], -8)
    for content, record in ((b"".join(members), 2), (b"".join(across), 1)):
        path = put(tmp_path, "a.gz", content)
        sound, (damage,) = survivors(path)
        assert sound == list(PAYLOADS[: len(sound)])
        assert len(sound) == (3 if record == 2 else 2)
        assert (damage.code, damage.record) == ("gzip-checksum", record)
        assert (damage.lost, damage.lost_records) == (0, 0)
    last = golden.flipped(gzip.compress(THREE), -8)
    sound, (damage,) = survivors(put(tmp_path, "b.gz", last))
    assert (len(sound), damage.lost_records, damage.resumed) == (3, 0, None)
    wrong_length = golden.flipped(gzip.compress(THREE), -1)
    assert survivors(put(tmp_path, "c.gz", wrong_length))[1][0].lost_records == 1


def test_a_claim_past_the_end_of_a_large_file_is_judged_without_reading_on(
    tmp_path: Path,
) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write(golden.FRAMES[0] + golden.header(1 << 39) + golden.FRAMES[1])
        file.truncate(80 << 20)
        file.seek(0, 2)
        file.write(golden.FRAMES[2])
    sound, damages = survivors(path)
    assert sound == list(PAYLOADS)
    assert [d.code for d in damages] == ["payload-cut", "length-crc"]
    assert damages[0].got == (80 << 20) + 46 - 46 - 12


def test_no_warning_when_nothing_was_skipped(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(read_records(put(tmp_path, "a", THREE), errors="skip"))) == 3
