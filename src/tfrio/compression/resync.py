"""Finding the next block of blocked gzip where none begins at the place that was told."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tfrio.compression.blocks import (
    HEADER_SIZE,
    MEMBER_HEAD,
    TRAILER_SIZE,
    Member,
    block_header,
    claimed_sizes,
    member_at,
)
from tfrio.errors import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfrio.storage import BinaryReader

__all__ = ["LostBlock", "lost_block", "next_block"]

_PIECE = 1 << 20
_FIXED = block_header(0, 0, 0)[:10]  # the same in all blocks


class LostBlock(NamedTuple):
    """What was missing between two blocks: its sizes, and a sentence."""

    member: Member
    text: str


def next_block(reader: BinaryReader, begin: int) -> int | None:
    """Find the first block from which blocks lead to the very end of a file.

    A payload may itself be a blocked file. Its blocks do not lead to the end, so they are never
    taken for those of the file. The last block may be cut.

    Args:
        reader: The file; its size is known.
        begin: Offset from which to search, in bytes.

    Returns:
        Where it begins; None where there is none.
    """
    dead: set[int] = set()  # blocks that lead nowhere
    return next((at for at in _places(reader, begin) if _leads_to_end(reader, at, dead)), None)


def _places(reader: BinaryReader, at: int) -> Iterator[int]:
    """Yield the offsets at which a block may begin."""
    while len(piece := reader.read_at(at, _PIECE)) >= len(_FIXED):
        found = piece.find(_FIXED)
        while found >= 0:
            yield at + found
            found = piece.find(_FIXED, found + 1)
        at += len(piece) - len(_FIXED) + 1


def _leads_to_end(reader: BinaryReader, at: int, dead: set[int]) -> bool:
    passed: set[int] = set()
    while at < (reader.size or 0):
        member = None if at in dead else member_at(reader.read_at(at, MEMBER_HEAD))
        if member is None or member.csize <= 0:
            dead |= passed
            return False
        passed.add(at)
        at += member.csize
    return True


def lost_block(reader: BinaryReader, begin: int, end: int) -> LostBlock:
    """Tell what is lost between two blocks.

    Args:
        reader: The file.
        begin: Where a block should begin, and its header is damaged.
        end: Where the next one begins.

    Returns:
        The sizes that the damaged header claims, if its checksum proves them; else one record, for
        any number of them. None where there is no room for a block.
    """
    header = reader.read_at(begin, HEADER_SIZE)
    usize, records = claimed_sizes(header)
    place = f"no gzip block at compressed bytes {begin} to {end}, where one should be: "
    if end - begin < HEADER_SIZE + TRAILER_SIZE:
        return LostBlock(Member(end - begin, 0, 0), f"{place}no record is lost")
    if block_header(end - begin, usize, records)[-2:] == header[-2:]:
        lost = f"its {records} {many(records, 'record')} {'is' if records == 1 else 'are'} lost"
        return LostBlock(Member(end - begin, usize, records), place + lost)
    return LostBlock(Member(end - begin, 0, 1), f"{place}its header does not tell what is lost")
