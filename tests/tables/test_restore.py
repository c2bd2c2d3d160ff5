"""Records written anew with the bytes they once had."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.examples.helpers import KINDLESS, example, payloads, put, sequence
from tfrio.errors import DecodeError, MissingFeatureError, UsageError
from tfrio.tables.transcode import convert

JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(range(256))
MANGLED = JPEG.decode("latin-1").encode()


def test_mangled_images_get_their_bytes_back(tmp_path: Path) -> None:
    source = put(
        tmp_path / "a.tfrecord",
        example({"image": [MANGLED], "label": [1], "thumbs": [MANGLED, base64.b64encode(JPEG)]}),
        example({"image": [JPEG], "label": [2]}),
        example({"label": [3]}),
    )
    report = convert(source, tmp_path / "b.tfrecord", unmangle=["image", "thumbs"])
    assert report.rows == 3
    assert payloads(tmp_path / "b.tfrecord") == [
        example({"image": [JPEG], "label": [1], "thumbs": [JPEG, JPEG]}),
        example({"image": [JPEG], "label": [2]}),
        example({"label": [3]}),
    ]


def test_steps_of_sequences_get_their_bytes_back(tmp_path: Path) -> None:
    source = put(
        tmp_path / "a.tfrecord", sequence({"n": [2]}, {"frames": [[MANGLED], KINDLESS, [MANGLED]]})
    )
    convert(source, tmp_path / "b.tfrecord", unmangle=["frames"])
    assert payloads(tmp_path / "b.tfrecord") == [
        sequence({"n": [2]}, {"frames": [[JPEG], KINDLESS, [JPEG]]})
    ]


def test_what_cannot_be_restored_is_told_and_leaves_no_file(tmp_path: Path) -> None:
    lost = JPEG.decode("utf-8", "replace").encode()
    source = put(tmp_path / "a.tfrecord", example({"image": [MANGLED]}), example({"image": [lost]}))
    out = tmp_path / "b.tfrecord"
    with pytest.raises(DecodeError, match="'image': .* lost: write .*; record 1 of"):
        convert(source, out, unmangle=["image"])
    with pytest.raises(MissingFeatureError, match=r"no record has a feature \['picture'\]"):
        convert(put(tmp_path / "c.tfrecord", example({"x": [b"a"]})), out, unmangle=["picture"])
    with pytest.raises(UsageError, match="'x' holds numbers, not bytes; record 0"):
        convert(put(tmp_path / "d.tfrecord", example({"x": [1]})), out, unmangle=["x"])
    with pytest.raises(UsageError, match="TFRecord on both sides"):
        convert(source, tmp_path / "b.npz", unmangle=["image"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.tfrecord",
        "c.tfrecord",
        "d.tfrecord",
    ]
