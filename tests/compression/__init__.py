"""Tests of tfrio.compression."""
