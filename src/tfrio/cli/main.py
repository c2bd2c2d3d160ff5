"""The entry of the command line: the list of commands, and errors turned into exit codes."""

from __future__ import annotations

import difflib
import errno
import importlib
import signal
import sys
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from tfrio.cli.output import fail
from tfrio.cli.wording import command_of, spoken
from tfrio.errors import TfrioError, TfrioWarning, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["main", "run"]

_ROAD = {
    "Start here": {"demo": "tfrio.cli.demo.command"},
    "Write": {"export": "tfrio.cli.export", "convert": "tfrio.cli.convert"},
    "Look": {
        "info": "tfrio.cli.look",
        "head": "tfrio.cli.head",
        "stats": "tfrio.cli.features",
        "count": "tfrio.cli.files",
        "schema": "tfrio.cli.features",
    },
    "Check and mend": {
        "verify": "tfrio.cli.look",
        "repair": "tfrio.cli.files",
        "index": "tfrio.cli.files",
    },
    "Rearrange": {
        "split": "tfrio.cli.files",
        "merge": "tfrio.cli.files",
        "filter": "tfrio.cli.files",
    },
    "Bring back": {
        "import": "tfrio.cli.bring",
        "extract": "tfrio.cli.convert",
        "upload-manifest": "tfrio.cli.upload",
    },
}
"""The parts of the road; each command and its module, loaded when called: `--help` is quick."""

_COMMANDS = {name: module for part in _ROAD.values() for name, module in part.items()}


class _Commands(click.Group):
    """Commands loaded when asked for, listed in the order of the road a user walks."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands, in the order of the help."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; None where there is none of this name."""
        if cmd_name not in _COMMANDS:
            return None
        module: Any = importlib.import_module(_COMMANDS[cmd_name])
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was typed; of a mistyped one name those alike."""
        typed = args[0]
        near = [] if typed in _COMMANDS else difflib.get_close_matches(typed, _COMMANDS)
        if near:  # click itself knows only commands that are loaded
            alike = " or ".join(f"'{name}'" for name in near)
            ctx.fail(f"No such command '{typed}'. Did you mean {alike}?")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands first: they are what a person looks for."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a paragraph of commands for each part of the road, in one column."""
        width = max(map(len, _COMMANDS))
        for heading, part in _ROAD.items():
            found = [(name, self.get_command(ctx, name)) for name in part]
            with formatter.section(heading):
                formatter.write_dl(
                    [(name.ljust(width), c.get_short_help_str(99)) for name, c in found if c]
                )


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
What next?        tfrio COMMAND --help explains a command and gives examples.
From Python:      tfrio.read(FILE) gives rows, tfrio.torch datasets.
Exit status:      0 fine, 1 a problem in the data, 2 wrong use.""",
)
@click.version_option(package_name="tfrio", message="tfrio %(version)s")
def main() -> None:
    """Rasters and tables to TFRecord and back to the map, without TensorFlow.

    \b
    New here?         tfrio demo
    What is in it?    tfrio info FILE
    Is it whole?      tfrio verify FOLDER
    """


_ROOT: click.Command = main
# click before 8.2 prints the help itself.
_NOTHING_TYPED: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())
_ENDING = [
    number
    for name in ("SIGTERM", "SIGHUP")  # there is no SIGHUP on Windows
    if (number := getattr(signal, name, None)) is not None
]


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit status.

    Args:
        arguments: What was typed after `tfrio`; by default this process's own arguments.
    """
    typed = sys.argv[1:] if arguments is None else arguments

    def show_warning(message: Warning | str, *_rest: object) -> None:
        """Print a warning as one line."""
        text = spoken(str(message), _ROOT, typed)
        click.echo(f"tfrio: warning: {' '.join(text.split())}", err=True)

    with warnings.catch_warnings(), _leaving_on_signals():
        # Warnings about data are lines for the user, however Python was started.
        warnings.simplefilter("always", TfrioWarning)
        warnings.showwarning = show_warning  # type: ignore[assignment]
        try:
            raise SystemExit(main(typed, prog_name="tfrio", standalone_mode=False))
        except _NOTHING_TYPED as error:  # a group of commands alone: its message is its help
            click.echo(error.format_message(), err=True)
            raise SystemExit(2) from None
        except click.UsageError as error:
            fail(_wrong_use(error, typed), 2)
        except click.Abort:
            fail("interrupted", 130)
        except (UsageError, FileExistsError) as error:  # a name that is taken is wrong use
            fail(spoken(_text(error), _ROOT, typed), 2)
        except (TfrioError, OSError) as error:
            fail(spoken(_text(error), _ROOT, typed), 1)


@contextmanager
def _leaving_on_signals() -> Iterator[None]:
    """Let signals end the program like an exception, so that files under way are removed."""

    def leave(number: int, _frame: object) -> None:
        """Leave with the status that shells give to a program ended by a signal."""
        raise SystemExit(128 + number)

    taken = []
    if threading.current_thread() is threading.main_thread():
        taken = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _wrong_use(error: click.UsageError, typed: Sequence[str]) -> str:
    """Say what was typed wrongly, and name the help page to read."""
    command, path = command_of(_ROOT, typed)
    taken = ""
    if isinstance(error, click.MissingParameter) and len(typed) > 1:
        takers = {opt for p in command.params if _takes_a_value(p) for opt in p.opts}
        if typed[-2] in takers:
            taken = f" {typed[-2]} took '{typed[-1]}' as its value."
    return f"{error.format_message()}{taken} See: {' '.join(('tfrio', *path))} --help"


def _takes_a_value(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and not parameter.is_flag


def _text(error: Exception) -> str:
    """Write an error, an operating system's as place and reason."""
    if not isinstance(error, OSError) or error.filename is None:
        return str(error)
    reason = (error.strerror or type(error).__name__).lower()
    return f"{error.filename}: {reason}{_REMEDIES.get(error.errno or 0, '')}"


_REMEDIES = {
    errno.ENOENT: ". Check the path (folders and globs such as 'a/*' work too)",
    errno.ENOSPC: ". Nothing was left under the final name; make room and run it again",
    errno.EACCES: ". Check who may read the file and write to its folder",
    errno.EIO: ". The disk or the network failed; copy the file elsewhere and try again",
}
