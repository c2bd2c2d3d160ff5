"""What an option's text becomes."""

from __future__ import annotations

import click
import pytest

from tfrio.cli.params import NUMBERS, PAIR, as_mapping, names


@pytest.mark.parametrize(
    ("text", "pair"), [("256", (256, 256)), ("256,128", (256, 128)), ("72x48", (72, 48))]
)
def test_pairs(text: str, pair: tuple[int, int]) -> None:
    assert PAIR.convert(text, None, None) == pair


@pytest.mark.parametrize("text", ["", "a", "1,2,3", "1.5,2"])
def test_what_is_no_pair_is_wrong_use(text: str) -> None:
    with pytest.raises(click.UsageError, match="pair of whole numbers"):
        PAIR.convert(text, None, None)


def test_numbers() -> None:
    assert NUMBERS.convert("-75.5,40,1e3", None, None) == (-75.5, 40.0, 1000.0)
    with pytest.raises(click.UsageError, match="list of numbers"):
        NUMBERS.convert("1;2", None, None)


def test_settings() -> None:
    assert as_mapping(("a=1", "b=x=y")) == {"a": "1", "b": "x=y"}
    assert as_mapping(("a=3",), int) == {"a": 3}
    assert as_mapping(()) is None
    for wrong in (("a",), ("=1",)):
        with pytest.raises(click.UsageError, match="NAME=VALUE"):
            as_mapping(wrong)
    with pytest.raises(click.UsageError, match="a=x"):
        as_mapping(("a=x",), int)


def test_names() -> None:
    assert names("a,b") == ["a", "b"]
    assert names(None) is None
