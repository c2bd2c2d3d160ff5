"""Compression by content: plain, gzip (several members, blocked or not) and zlib.

Reading goes a block at a time through ISA-L; blocks of our own gzip layout inflate in parallel.
"""

from tfrio.compression.blocks import BLOCK_SIZE, MEMBER_HEAD, Member, member_at
from tfrio.compression.deflate import (
    DEFAULT_LEVEL,
    check_level,
    deflate_member,
    zlib_compressor,
)
from tfrio.compression.detect import Compression, check_choice, detect
from tfrio.compression.source import ChunkSource, InflateSource, PlainSource, open_chunks

__all__ = [
    "BLOCK_SIZE",
    "DEFAULT_LEVEL",
    "MEMBER_HEAD",
    "ChunkSource",
    "Compression",
    "InflateSource",
    "Member",
    "PlainSource",
    "check_choice",
    "check_level",
    "deflate_member",
    "detect",
    "member_at",
    "open_chunks",
    "zlib_compressor",
]
