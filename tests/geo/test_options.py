"""Options of an export, and Earth Engine's dictionary of them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tfrio.errors import UsageError
from tfrio.geo.options import FORMAT_OPTIONS, ExportOptions, from_format_options
from tfrio.types import XY


def test_every_documented_name_is_translated() -> None:
    given = {name: [number + 1, number + 2] for number, name in enumerate(FORMAT_OPTIONS)}
    before = {name: list(value) for name, value in given.items()}
    found = from_format_options(given)
    assert list(found) == list(FORMAT_OPTIONS.values())
    assert list(found.values()) == list(given.values())
    assert given == before


def test_the_names_of_the_client_are_the_same_options() -> None:
    given = {"tfrecordPatchDimensions": [7, 5], "tfrecordMaskedThreshold": 0.5}
    assert from_format_options(given) == {"patch": [7, 5], "masked_threshold": 0.5}
    assert from_format_options({"patchDimensions": [7], "kernelSize": [3]}) == {
        "patch": 7,
        "kernel": 3,
    }
    with pytest.raises(UsageError, match="'patchDimensions' is given twice"):
        from_format_options({"patchDimensions": [7, 5], "tfrecordPatchDimensions": [7, 5]})


@pytest.mark.parametrize("name", ["patchdimensions", "fileDimensions", "tfrecord", "patch", ""])
def test_an_unknown_name_lists_the_valid_ones(name: str) -> None:
    listed = re.escape(", ".join(FORMAT_OPTIONS))
    with pytest.raises(
        UsageError, match=f"unknown format option {name!r}; valid ones are {listed}"
    ):
        from_format_options({name: 1})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int"}, 'dtype must be "float" or "native"; got \'int\''),
        ({"edge": "fold"}, 'edge must be "drop" or "pad" or "shift"'),
        ({"naming": "s3"}, 'naming must be "drive" or "gcs"'),
        ({"max_file_size": 0}, "max_file_size must be a whole number of at least 1; got 0"),
        ({"max_file_size": 1.5}, "max_file_size"),
        ({"max_file_size": True}, "max_file_size"),
        ({"masked_threshold": 1.01}, "share of pixels from 0 to 1; got 1.01"),
        ({"masked_threshold": -0.1}, "share of pixels"),
        ({"masked_threshold": "1"}, "masked_threshold must be a number"),
        ({"default_value": "0"}, "default_value must be a number"),
        ({"default_value": False}, "default_value must be a number"),
        ({"compressed": 1}, "compressed must be True or False; got 1"),
        ({"sequence_data": None}, "sequence_data must be True or False"),
        ({"collapse_bands": "no"}, "collapse_bands must be True or False"),
        ({"sequence_data": True, "kernel": XY(3, 1)}, "no room for a kernel of 3x1"),
        ({"sequence_data": True, "kernel": XY(1, 2)}, "no room for a kernel of 1x2"),
    ],
)
def test_wrong_values_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ExportOptions(patch=XY(4, 3), **options)


def test_numbers_of_numpy_and_both_ends_of_a_share_are_fine() -> None:
    for share in (0, 1, 0.5, np.float32(0.5)):
        options = ExportOptions(patch=XY(4, 3), masked_threshold=share, max_file_size=np.int64(9))
        assert options.masked_threshold == share
    assert ExportOptions(patch=XY(4, 3), sequence_data=True).kernel == XY(1, 1)


def test_the_manifest_gets_plain_values_and_no_unset_ones() -> None:
    options = ExportOptions(patch=XY(4, 3), kernel=XY(2, 1), tensor_depths={"a": 2})
    found = options.as_json()
    assert (found["patch"], found["kernel"]) == ([4, 3], [2, 1])
    assert found["tensor_depths"] == {"a": 2}
    assert "default_value" not in found
    assert "stride" not in found
    assert ExportOptions(patch=XY(4, 3), stride=XY(2, 5)).as_json()["stride"] == [2, 5]
