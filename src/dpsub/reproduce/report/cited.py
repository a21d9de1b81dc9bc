"""The cells of a full run that the pages of a paper cite.

They are kept in its folder, so that pages can be written, and tested, without a run.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd
import yaml

from dpsub.files import replace_file
from dpsub.reproduce import artefacts, published
from dpsub.reproduce.artefact import Artefact, OutputDirs, csv_bytes
from dpsub.reproduce.papers import Paper
from dpsub.reproduce.provenance import settings_digest
from dpsub.reproduce.report.cells import NUMBERS, tables_of, with_floats

KEPT = "cited.csv"
"""In the folder of a paper: the cells, under a line that says which run they are of."""
_HEAD = "# The cells that pages cite, from a full run of "
_ALWAYS = ("column", "printed", "verdict", "erratum", "note")
_AFTER_KEYS = ("column", "printed", *NUMBERS, "verdict", "erratum", "note")


def made_of(paper: Paper) -> list[Artefact]:
    """Return the artefacts of a paper."""
    return [kind() for kind in artefacts.REGISTRY.members().values() if kind.paper == paper.key]


def tables_of_run(paper: Paper, results: Path) -> dict[str, pd.DataFrame]:
    """Return the tables of a paper that a run has made."""
    dirs = OutputDirs.under(results)
    return tables_of(
        [artefact for artefact in made_of(paper) if dirs.files(artefact)["csv"].is_file()], dirs
    )


def kept_of(paper: Paper) -> dict[str, pd.DataFrame] | None:
    """Return the cells of a paper that are kept, None if there are none."""
    path = paper.folder / KEPT
    if not path.is_file():
        return None
    _, _, rows = path.read_text(encoding="utf-8").partition("\n")
    # As text, like the tables themselves: empty means not given.
    frame = pd.read_csv(io.StringIO(rows), dtype=str, keep_default_na=False)
    return {
        str(name): _own_columns(cells.drop(columns="artefact"))
        for name, cells in frame.groupby("artefact")
    }


def _own_columns(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of one table without the columns of others."""
    own = [name for name in cells if name in _ALWAYS or (cells[name] != "").any()]
    return with_floats(cells[own])


def origin_of(paper: Paper) -> str:
    """Return the run from which the cells that are kept of a paper come, "" if there are none."""
    path = paper.folder / KEPT
    head = path.read_text(encoding="utf-8").partition("\n")[0] if path.is_file() else ""
    return head.partition(_HEAD)[2].partition(";")[0]


def run_of(results: Path) -> str:
    """Return one line that names the run behind a results folder."""
    environment = json.loads((results / "run/environment.json").read_text(encoding="utf-8"))
    settings = yaml.safe_load((results / "run/config.yaml").read_text(encoding="utf-8"))
    version = environment["versions"]["dpsub"]
    return (
        f"dpsub {version}, commit {environment['commit']}, configuration "
        f"{settings_digest(settings)[:12]}"
    )


def keep(paper: Paper, results: Path, seen: Mapping[str, Iterable[int]]) -> None:
    """Keep the rows that were `seen` in the tables of a run, by table, in the paper's folder."""
    dirs = OutputDirs.under(results)
    parts = []
    for artefact in made_of(paper):
        rows = sorted(seen.get(artefact.name, ()))
        if rows:
            # Read as text again, so that what is kept has the very digits of the run.
            table = published.read_csv(
                dirs.files(artefact)["csv"], "cells are kept from a run, got no {path}; make it"
            )
            parts.append(table.iloc[rows].assign(artefact=artefact.name))
    if not parts:
        return
    cells = pd.concat(parts, ignore_index=True).fillna("")
    keys = [name for name in cells if name not in (*_AFTER_KEYS, "artefact")]
    after = [name for name in _AFTER_KEYS if name in cells]
    head = f"{_HEAD}{run_of(results)}; made by workflow/scripts/renew_pages.py\n"
    replace_file(paper.folder / KEPT, head.encode() + csv_bytes(cells[["artefact", *keys, *after]]))
