"""Console blocks of a page: commands after `$` are run in a folder like a clone, and compared with
the output shown below them.

`PYTHONPATH=src python -m tests.documentation.console docs/tutorial.md` shows what the commands
print now.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import dpsub
from dpsub.cli import main

ROOT = Path(__file__).resolve().parents[2]
MADE = ("results", ".snakemake", ".git", ".venv", "site", "build")
SHELL = re.compile(r"[|<>;&$]")


@dataclass(frozen=True)
class Typed:
    """One command of a page."""

    command: str
    shown: str

    def matches(self, output: str) -> bool:
        """Whether the output matches what the page shows; `...` stands for any text, at the end for
        none as well."""
        check = doctest.OutputChecker().check_output
        return any(check(self.shown, output + end, doctest.ELLIPSIS) for end in ("", "\n"))


def typed(text: str) -> list[Typed]:
    """Return the commands of the console blocks of a page, in order."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            found.append(Typed(command, shown))
    return found


def clone(folder: Path) -> Path:
    """Make `folder` look like a fresh clone with its environment."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    for path in ROOT.iterdir():
        if path.name != "data" and not path.name.startswith(MADE):
            (folder / path.name).symlink_to(path)
    # what a run has prepared lies in folders of data
    for path in (ROOT / "data").iterdir():
        if path.is_file():
            (folder / "data" / path.name).symlink_to(path)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


def script(name: str) -> ModuleType:
    """Return a script, such as "benchmarks/run", as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / Path(name).parent)
        return importlib.import_module(Path(name).name)


def run(command: str) -> str:
    """Return what a command prints, run in the working folder.

    `dpsub` runs in this process, which has imported it already, so that a page is tested in
    seconds.
    """
    # pipes and redirections are the shell's
    if command.startswith(".venv/bin/dpsub ") and not SHELL.search(command):
        words = shlex.split(command)[1:]
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            main(words)
        return out.getvalue()
    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "PYTHONPATH": str(Path(dpsub.__file__).parents[1])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout


def outputs(page: Path) -> Iterator[tuple[Typed, str]]:
    """Yield each command of a page with what it prints; they run one after the other in the working
    folder."""
    for entry in typed(page.read_text(encoding="utf-8")):
        yield entry, run(entry.command)


if __name__ == "__main__":
    asked = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(clone(Path(place) / "dpsub")):
        for entry, output in outputs(asked):
            print(
                f"{'' if entry.matches(output) else 'DIFFERS '}$ {entry.command}\n{output}",
                end="",
                flush=True,
            )
