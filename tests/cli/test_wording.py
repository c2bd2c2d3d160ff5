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
        (["head", "a"], "index='auto' is no option here", "index='auto' is no option here"),
        (["nope"], "overwrite=True", "overwrite=True"),
        ([], "a=b", "a=b"),
    ],
)
def test_keywords_become_options_of_the_command(
    arguments: list[str], text: str, wanted: str
) -> None:
    assert spoken(text, main, arguments) == wanted
