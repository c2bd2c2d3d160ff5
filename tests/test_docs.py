"""The docs' code runs: each page's python and console blocks, in order, in an empty folder.

So a page writes the data that it reads; who reads the README has made the demo before. Blocks
marked `sh` (installing, make) and `text`, `json` (output) are shown, not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
RUN = {"python", "console"}
SHOWN = {"sh", "text", "json"}


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, indentation removed."""
    source = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(source):
        indent = match[1]
        lines = [line.removeprefix(indent) for line in match[3].splitlines()]
        found.append(Block(match[2], "\n".join(lines), source[: match.start()].count("\n") + 2))
    return found


def commands(text: str) -> list[str]:
    """Return the commands of a console block: lines after `$ `, joined over backslashes."""
    joined = text.replace("\\\n", "")
    return [line[2:] for line in joined.splitlines() if line.startswith("$ ")]


def run_command(command: str, folder: Path) -> None:
    """Run one command of a page with this environment's `tfrio` first on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert run.returncode == 0, f"$ {command}\n{run.stdout}{run.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if page.name == "README.md":
        run_command("tfrio demo demo-out", tmp_path)
    names: dict[str, object] = {"__name__": "__docs__"}
    for block in blocks(page):
        if block.language == "python":
            code = "\n" * (block.line - 1) + block.text
            exec(compile(code, str(page), "exec"), names)
        for command in commands(block.text) if block.language == "console" else []:
            run_command(command, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_says_what_it_is(page: Path) -> None:
    odd = [(b.line, b.language) for b in blocks(page) if b.language not in RUN | SHOWN]
    assert odd == []
    empty = [b.line for b in blocks(page) if b.language == "console" and not commands(b.text)]
    assert empty == []


def test_a_page_that_cannot_run_twice_in_a_folder_says_so() -> None:
    once = re.compile(r"\.mkdir\(\)|export_image\(|tfrio export ")
    writing = [p for p in PAGES if any(once.search(b.text) for b in blocks(p) if b.language in RUN)]
    told = re.compile(r"new, empty folder|in another folder|`rm -r ")
    assert len(writing) > 5
    assert [p.name for p in writing if not told.search(p.read_text(encoding="utf-8"))] == []


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            local = not target.startswith(("http:", "https:"))
            if local and not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")
    assert broken == []
