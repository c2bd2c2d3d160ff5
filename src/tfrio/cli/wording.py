"""Library messages in the words of the command line: `overwrite=True` becomes `--overwrite`.

Advice that only Python can follow becomes that of a command, or goes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["command_of", "spoken"]

_KEYWORD = re.compile(
    r"""\b([a-z_]+\d?)=(True|"[^"]*"|'[^']*'|-?[\w.]+|\(\d+, \d+\)|\("\w+", "\w+"\))?"""
)
# Names without a value: `set overwrite`, `one of shards, max_records and max_bytes`, and such as no
# word of English and no part of a path can be: `region_crs`.
_NAMED = re.compile(
    r"^[a-z_]+(?= must be )|(?<=\bset )[a-z_]+\b"
    r"|(?<=\bone of )[a-z_]+(?:, [a-z_]+)*(?: and [a-z_]+)?"
)
_BARE = re.compile(r"""(?<![\w./\\'"{-])[a-z]+(?:_[a-z]+)+(?![\w/\\'"=(-]|\.\w)""")
_WORD = re.compile(r"[a-z_]+")
# Names that a command may have under another one.
_ALIASES = {"features": "keys", "columns": "keys"}
_SKIP = re.compile(r"""(,? or )?(read with )errors=["']skip["']""")
_NAMES = re.compile(r" ?\(features=\[\.\.\.\]\)")
# What stands for a Python call on the command line.
_CALLS = (
    ("with utf8='surrogateescape'", "with `tfrio head --utf8 surrogateescape`"),
    ("tfrio.read_records(errors='return')", "`tfrio head --raw`"),
    ("tfrio.read_records", "`tfrio head --raw`"),
    ("Read rows with tfrio.read,", "See rows with `tfrio head`,"),
    ("tfrio.infer_schema", "`tfrio schema infer`"),
    ("tfrio.load_schema", "`tfrio info --schema`"),
    ("(required=False)", '("required": false)'),
    (
        "store the array as bytes (codec='raw', dtype='float64') to keep it",
        "a column of text or bytes keeps it",
    ),
)


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
    text = _without_python(text, options)

    def option(found: re.Match[str]) -> str:
        """Write a keyword with its value as an option."""
        name, value = found[1], found[2]
        if name not in options:
            return found[0]
        typed = value.strip("\"'()") if value and value != "True" else ""
        if value and value.startswith("("):
            typed = typed.replace('"', "").replace(", ", ",")
        words = [options[name], typed]
        return " ".join(word for word in words if word)

    def bare(found: re.Match[str]) -> str:
        """Write a name alone as an option."""
        return options.get(found[0], found[0])

    named = _NAMED.sub(lambda found: _WORD.sub(bare, found[0]), _KEYWORD.sub(option, text))
    return _BARE.sub(bare, named)


def _without_python(text: str, options: Mapping[str, str]) -> str:
    """Return a message whose advice can be followed without Python."""
    skip = options.get("skip_bad")
    text = _SKIP.sub(rf"\1give {skip}" if skip else "", text)
    keys = options.get("features")
    text = _NAMES.sub(f" ({keys} names the others)" if keys else "", text)
    for call, command in _CALLS:
        if not (call.startswith("with utf8") and "utf8" in options):
            text = text.replace(call, command)
    return text


def command_of(command: click.Command, arguments: Sequence[str]) -> tuple[click.Command, list[str]]:
    """Find the command that the arguments name.

    Args:
        command: The command line as a whole.
        arguments: What was typed after its name.

    Returns:
        The command, and the words that lead to it; the whole itself where none is named.
    """
    path: list[str] = []
    for word in arguments:
        if not isinstance(command, click.Group):
            break
        found = command.get_command(click.Context(command), word)
        if found is not None:
            command = found
            path.append(word)
    return command, path


def _options(command: click.Command, arguments: Sequence[str]) -> dict[str, str]:
    """Return the options of the command that the arguments name, by their Python names."""
    found = {
        name: param.opts[-1]
        for param in command_of(command, arguments)[0].params
        if isinstance(param, click.Option)
        for name in (param.opts[-1].lstrip("-").replace("-", "_"), param.name or "")
    }
    return found | {a: found[b] for a, b in _ALIASES.items() if b in found and a not in found}
