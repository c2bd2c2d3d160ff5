"""`tfrio demo`: walk the whole road and tell what happens."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfrio.cli.output import console, emit_json, json_option, new_table, say, show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console
    from rich.text import Text

    from tfrio.cli.demo.result import Account
    from tfrio.cli.demo.road import Road

__all__ = ["demo_command"]

_FILES = {
    "scene.tif": "the scene",
    "samples.csv": "labelled spectra, and samples.tfrecord.gz, samples.parquet made from them",
    "export/": "patches as TFRecord shards, mixer and manifest",
    "damaged/": "the same with one bit flipped: try `tfrio verify` on it",
    "incomplete/": "the same without one shard",
    "predictions/": "class and probabilities as TFRecord",
    "landcover.tif": "the map, and probabilities.tif",
    "demo.png": "scene and map side by side",
}


@click.command("demo", short_help="Walk the whole road on a real scene.")
@click.argument("folder", default="demo-out", type=click.Path(file_okay=False, path_type=Path))
@json_option
def demo_command(folder: Path, *, as_json: bool) -> None:
    """Walk the whole road on a real Sentinel-2 scene; results go to FOLDER (default demo-out).

    Cuts the scene into TFRecord patches, checks them, trains a small classifier from TFRecord,
    predicts patch by patch, puts the predictions back on the map and proves that the map equals
    the model run straight on the raster. Takes a few seconds, needs no network.

    \b
    Example:
      tfrio demo my-demo
    """
    from tfrio.cli.demo.result import account_of
    from tfrio.cli.demo.road import Road

    road = Road(folder)
    out = console()
    steps = {}
    for number, (name, step) in enumerate(_steps(road), 1):
        began = time.perf_counter()
        steps[name] = step()
        if not as_json:
            spent = time.perf_counter() - began
            say(_step_line(out, f"{number}/8 {name:<8}", f"{steps[name]}. [{spent:.1f} s]"))
    account = account_of(road)
    if as_json:
        emit_json({"folder": folder, "steps": steps, "account": account})
    else:
        _tell(folder, account)


def _steps(road: Road) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the name and the work of each step."""
    from tfrio.cli.demo.result import account_of, back_to_the_map, draw_picture

    yield "inputs", road.make_inputs
    yield "table", road.table_there_and_back
    yield "patches", road.cut_patches
    yield "verify", road.find_damage
    yield "train", road.train
    yield "predict", road.predict
    yield "map", lambda: back_to_the_map(road)
    yield "picture", lambda: draw_picture(road, account_of(road))


def _step_line(out: Console, label: str, text: str) -> Text | str:
    """Lay out one step: on a terminal wrapped beside its label, elsewhere one plain line."""
    if not out.is_terminal:
        return f"{label} {text}"
    from rich.text import Text

    beside = textwrap.wrap(text, max(out.width - len(label) - 1, 30))
    line = Text(f"{label} ", style="bold")
    return line.append(f"\n{' ' * (len(label) + 1)}".join(beside), style="not bold")


def _tell(folder: Path, account: Account) -> None:
    """Print the account, and where the files lie."""
    say("")
    numbers = new_table("account", "", right=("",))
    numbers.add_row("patches", f"{account.patches:,}")
    numbers.add_row("pixels of the scene", f"{account.pixels:,}")
    numbers.add_row("covered by a patch", f"{account.covered:,}")
    numbers.add_row("dropped at the edge", f"{account.dropped:,}")
    numbers.add_row("masked among the covered", f"{account.masked:,}")
    for name, hectares in account.hectares.items():
        numbers.add_row(name, f"{hectares:,.1f} ha")
    show(numbers)
    say("")
    files = new_table("file", "what it is")
    for name, meaning in _FILES.items():
        files.add_row(str(folder / name), meaning)
    show(files)
    say("")
    say(f"next: tfrio info {folder / 'export'}   tfrio verify {folder / 'damaged'}   tfrio --help")
