"""Messages speak of options, not of Python keywords."""

from __future__ import annotations

import pytest

from tfrio.cli.main import main
from tfrio.cli.wording import spoken


@pytest.mark.parametrize(
    ("arguments", "text", "wanted"),
    [
        (["export", "image", "a"], "Give overwrite=True", "Give --overwrite"),
        (["import", "image"], 'pass check="warn" now', "pass --check warn now"),
        (["import", "image"], "or pass partial=True.", "or pass --partial."),
        (["import", "image"], "give crs= to override", "give --crs to override"),
        (["import", "image"], "first_patch=10 places it", "--first-patch 10 places it"),
        (["import", "image"], "pass kernel=(1, 2)", "pass --kernel 1,2"),
        (["merge", "a", "b"], "name another, or set overwrite", "name another, or set --overwrite"),
        (
            ["split", "a", "b"],
            "give one of shards, max_records and max_bytes, at least 1",
            "give one of --shards, --max-records and --max-bytes, at least 1",
        ),
        (["export", "image", "a"], "the region and region_crs", "the region and --region-crs"),
        (["export", "image", "a"], "CRS: region_crs. Next", "CRS: --region-crs. Next"),
        (
            ["export", "image", "a"],
            "d/region_crs.tif, region_crs.tif and 'region_crs'",
            "d/region_crs.tif, region_crs.tif and 'region_crs'",
        ),
        (
            ["export", "table", "a"],
            'Pass xy=("longitude", "latitude") to',
            "Pass --xy longitude,latitude to",
        ),
        (
            ["merge", "a", "b"],
            "one of overwriting, progress and b",
            "one of overwriting, progress and b",
        ),
        (["head", "a"], "index='auto' is no option here", "index='auto' is no option here"),
        (
            ["stats", "a"],
            'keep every whole record, or read with errors="skip"',
            "keep every whole record, or give --skip-bad",
        ),
        (
            ["count", "a"],
            'keep every whole record, or read with errors="skip"',
            "keep every whole record",
        ),
        (
            ["head", "a"],
            "Read it with utf8='surrogateescape', or raw payloads with tfrio.read_records",
            "Read it with --utf8 surrogateescape, or raw payloads with `tfrio head --raw`",
        ),
        (
            ["convert", "a", "b"],
            "Read it with utf8='surrogateescape', or raw",
            "Read it with `tfrio head --utf8 surrogateescape`, or raw",
        ),
        (
            ["stats", "a"],
            "leave the feature out (features=[...])",
            "leave the feature out (--keys names the others)",
        ),
        (["count", "a"], "leave the feature out (features=[...]).", "leave the feature out."),
        (
            ["schema", "infer", "a"],
            "sample must be a whole number of at least 1, got 0",
            "--sample must be a whole number of at least 1, got 0",
        ),
        (["nope"], "overwrite=True", "overwrite=True"),
        ([], "a=b", "a=b"),
    ],
)
def test_keywords_become_options_of_the_command(
    arguments: list[str], text: str, wanted: str
) -> None:
    assert spoken(text, main, arguments) == wanted
