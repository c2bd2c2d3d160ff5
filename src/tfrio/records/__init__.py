"""Bytes to records and back: read, write, verify, repair, index, random access, shards."""
