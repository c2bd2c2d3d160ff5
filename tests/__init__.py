"""Tests of tfrio; the folders mirror the source."""
