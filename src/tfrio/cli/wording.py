"""Library messages in the words of the command line: `overwrite=True` becomes `--overwrite`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["spoken"]

_KEYWORD = re.compile(
    r"""\b([a-z_]+)=(True|"[^"]*"|'[^']*'|-?[\w.]+|\(\d+, \d+\)|\("\w+", "\w+"\))?"""
)
# Names without a value: `set overwrite`, `one of shards, max_records and max_bytes`, and such as no
# word of English and no part of a path can be: `region_crs`.
_NAMED = re.compile(r"(?<=\bset )[a-z_]+\b|(?<=\bone of )[a-z_]+(?:, [a-z_]+)*(?: and [a-z_]+)?")
_BARE = re.compile(r"""(?<![\w./\\'"{-])[a-z]+(?:_[a-z]+)+(?![\w/\\'"=(-]|\.\w)""")
_WORD = re.compile(r"[a-z_]+")


def spoken(text: str, root: click.Command, arguments: Sequence[str]) -> str:
    """Write the arguments in a message as options, where the command that ran has such options.

    Args:
        text: The message of an error or a warning.
        root: The command line as a whole.
        arguments: What was typed after its name.

    Returns:
        The message; names of Python that are no options stay as they are.
    """
    options = _options(root, arguments)

    def option(found: re.Match[str]) -> str:
        name, value = found[1], found[2]
        if name not in options:
            return found[0]
        typed = value.strip("\"'()") if value and value != "True" else ""
        if value and value.startswith("("):
            typed = typed.replace('"', "").replace(", ", ",")
        words = [options[name], typed]
        return " ".join(word for word in words if word)

    def bare(found: re.Match[str]) -> str:
        return options.get(found[0], found[0])

    named = _NAMED.sub(lambda found: _WORD.sub(bare, found[0]), _KEYWORD.sub(option, text))
    return _BARE.sub(bare, named)


def _options(command: click.Command, arguments: Sequence[str]) -> dict[str, str]:
    """Return the options of the command that the arguments name, by their Python names."""
    for word in arguments:
        if not isinstance(command, click.Group):
            break
        command = command.get_command(click.Context(command), word) or command
    return {
        name: param.opts[-1]
        for param in command.params
        if isinstance(param, click.Option)
        for name in (param.opts[-1].lstrip("-").replace("-", "_"), param.name or "")
    }
