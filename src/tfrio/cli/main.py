"""The entry of the command line: the list of commands, and errors turned into exit codes."""

from __future__ import annotations

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
from tfrio.cli.wording import spoken
from tfrio.errors import TfrioError, TfrioWarning, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["main", "run"]

_COMMANDS = {
    "demo": "tfrio.cli.demo.command",
    "info": "tfrio.cli.look",
    "head": "tfrio.cli.head",
    "stats": "tfrio.cli.features",
    "schema": "tfrio.cli.features",
    "count": "tfrio.cli.files",
    "verify": "tfrio.cli.look",
    "repair": "tfrio.cli.files",
    "index": "tfrio.cli.files",
    "export": "tfrio.cli.export",
    "import": "tfrio.cli.bring",
    "upload-manifest": "tfrio.cli.upload",
    "convert": "tfrio.cli.convert",
    "extract": "tfrio.cli.convert",
    "split": "tfrio.cli.files",
    "merge": "tfrio.cli.files",
    "filter": "tfrio.cli.files",
}
"""Each command and the module that holds it; loaded when called, so that `--help` is quick."""


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


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 fine, 1 a problem in the data, 2 wrong use.",
)
@click.version_option(package_name="tfrio", message="tfrio %(version)s")
def main() -> None:
    """Read, check, write and convert TFRecord files, without TensorFlow.

    \b
    New here?         tfrio demo
    What is in it?    tfrio info FILE
    Is it whole?      tfrio verify FOLDER
    """


_ROOT: click.Command = main
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
        except click.UsageError as error:
            fail(f"{error.format_message()} {_help_for(error.ctx)}", 2)
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


def _help_for(context: click.Context | None) -> str:
    """Name the help page to read after a wrong call."""
    return f"See: {context.command_path if context else 'tfrio'} --help"


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
