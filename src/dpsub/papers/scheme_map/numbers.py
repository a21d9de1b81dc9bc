"""Numbers for the page of the map, for the placeholders `numbers`."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import pandas as pd

from dpsub.papers.scheme_map.figures import SHOWN, ranked
from dpsub.papers.scheme_map.schemes import RELATIONS, SCHEMES, TRAININGS
from dpsub.papers.scheme_map.tables import ATTACK, BETWEEN, OPEN, PROVED
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.digits import as_printed, written
from dpsub.reproduce.labels import WORDS, escape_markdown, sampler_label
from dpsub.reproduce.paired import REFERENCE
from dpsub.reproduce.report.cells import LookUp

KEYS = ("training", "adjacency", "epsilon", "sampler")


def whole(cells: LookUp) -> pd.DataFrame:
    """Return all cells but Poisson's: `KEYS`, the `ratio` of the proved noise, its bounds `lower`
    and `upper`, `width` and `is_open`, and the `note`."""
    any_cell = dict.fromkeys(KEYS, "*")
    rows = cells.rows("noise", "over_poisson", **any_cell)
    ends = {"rigorous": "ratio", "rigorous_lower": "lower", "rigorous_upper": "upper"}
    if rows.empty or "rigorous" not in rows:
        raise MissingRecordsError("this run has no map")
    found = rows[[*KEYS, *ends, "note"]].rename(columns=ends)
    width = found["ratio"] / found["lower"] - 1
    return found.assign(width=width, is_open=width > OPEN)


def trainings(cells: LookUp) -> list[dict[str, Any]]:
    """Return the trainings, each with its sizes, targets, Poisson's noise, a row of cells for each
    scheme, and the words of the command line for each."""
    found, poisson = whole(cells), cells.rows("noise", "noise", **dict.fromkeys(KEYS, "*"))
    shown = []
    for name, part in found.groupby("training", sort=False):
        training = TRAININGS[str(name)]
        targets = list(part["epsilon"].unique())
        by_place = {tuple(row[key] for key in KEYS[1:]): row for row in part.to_dict("records")}
        own = poisson[poisson["training"] == name].set_index(["adjacency", "epsilon"])
        places = [(str(relation), target) for relation in RELATIONS for target in targets]
        names = [one for one in ranked_schemes(found) if one in set(part["sampler"])]
        shown.append(
            {
                "training": training,
                "delta": as_printed(f"{training.delta:g}"),
                "targets": targets,
                "relations": [WORDS[str(relation)] for relation in RELATIONS],
                "poisson": [_interval(own.loc[place], "rigorous", "") for place in places],
                "rows": [
                    (
                        sampler_label(one),
                        [_linked(by_place[relation, target, one]) for relation, target in places],
                    )
                    for one in names
                ],
                "commands": [
                    SCHEMES[one].arguments(training)
                    for one in (REFERENCE, *names)
                    if _fits(part[part["sampler"] == one])
                ],
            }
        )
    return shown


def _fits(part: pd.DataFrame) -> bool:
    return part.empty or bool(part["ratio"].notna().any())


def ranked_schemes(found: pd.DataFrame) -> list[str]:
    """Return the schemes in the order of the picture, or of the first training of this run."""
    wanted = found[(found["training"] == SHOWN[0]) & (found["epsilon"] == f"{SHOWN[1]:g}")]
    if wanted.empty:
        first = found.iloc[0]
        same = (found["training"] == first["training"]) & (found["epsilon"] == first["epsilon"])
        wanted = found[same]
    return ranked(wanted)


def _interval(cell: Any, value: str, mark: str) -> str:
    low = written(cell["rigorous_lower"], "1.000", side="lower")
    return f"{low} to {written(cell[value], '1.000', side='upper')}{mark}"


def _linked(cell: dict[Hashable, Any]) -> str:
    """Return both bounds of a cell, each a link to the page of what stands behind it."""
    if not cell["ratio"] > 0:
        return "–"
    theorem, attack = (
        part.removeprefix(head)
        for part, head in zip(cell["note"].split(BETWEEN), (PROVED, ATTACK), strict=True)
    )
    low = written(cell["lower"], "1.00", side="lower")
    high = written(cell["upper"], "1.00", side="upper")
    text = f"{_link(low, attack)} to {_link(high, theorem)}"
    return f"**{text}**" if cell["is_open"] else text


def _link(text: str, source: str) -> str:
    """Return a link to the page that a theorem or an attack names."""
    page = re.search(r"docs/(\S+\.md)", source)
    title = source.partition(", docs/")[0]
    return f'[{text}](../{page[1]} "{title}")' if page else text


def draws(cells: LookUp) -> list[tuple[str, str]]:
    """Return the schemes with what a loader does, in the order of the picture."""
    names = [REFERENCE, *ranked_schemes(whole(cells))]
    return [(sampler_label(name), SCHEMES[name].draws) for name in names]


def shown(cells: LookUp, relation: str) -> dict[str, tuple[float, float]]:
    """Return both bounds of each scheme at the training and the target of the picture, under a
    relation, by name."""
    found = whole(cells)
    picked = (found["training"] == SHOWN[0]) & (found["epsilon"] == f"{SHOWN[1]:g}")
    own = found[picked & (found["adjacency"] == relation) & found["ratio"].notna()]
    if own.empty:
        raise MissingRecordsError("this run lacks the training of the picture")
    return {row["sampler"]: (row["lower"], row["upper"]) for row in own.to_dict("records")}


def counts(cells: LookUp) -> dict[str, Any]:
    """Return the number of schemes, trainings and cells, of cells that are open or without a
    theorem, with the trainings that this run lacks."""
    found = whole(cells)
    without, there = found["ratio"].isna(), set(found["training"])
    return {
        "schemes": found["sampler"].nunique() + 1,
        "trainings": found["training"].nunique(),
        "lacking": [one.title for name, one in TRAININGS.items() if name not in there],
        "cells": len(found),
        "open": int(found["is_open"].sum()),
        "without": int(without.sum()),
        "needs_more": int((found["lower"] > 1).sum()),
        "needs_less": int((found["upper"] < 1).sum()),
    }


def open_cells(cells: LookUp) -> list[dict[str, Any]]:
    """Return the schemes and relations with open cells: how many of how many, the largest width in
    percent and where it is; the widest first."""
    found, rows = whole(cells), []
    for (relation, sampler), part in found.groupby(["adjacency", "sampler"], sort=False):
        if not part["is_open"].any():
            continue
        widest = part.iloc[int(part["width"].argmax())]
        rows.append(
            {
                "relation": WORDS[str(relation)],
                "scheme": sampler_label(str(sampler)),
                "open": int(part["is_open"].sum()),
                "cells": len(part),
                "percent": 100 * widest["width"],
                "place": f"{TRAININGS[widest['training']].title}, ε = {widest['epsilon']}",
            }
        )
    return sorted(rows, key=lambda row: -row["percent"])


def without_theorem(cells: LookUp) -> list[dict[str, Any]]:
    """Return the cells without numbers: relation, schemes, trainings and the program's reason."""
    found = whole(cells)
    found = found[found["ratio"].isna()]
    return [
        {
            "relation": ", ".join(WORDS[name] for name in part["adjacency"].unique()),
            "scheme": sampler_label(str(sampler)),
            "trainings": ", ".join(TRAININGS[name].title for name in part["training"].unique()),
            "reason": escape_markdown(str(reason)),
        }
        for (sampler, reason), part in found.groupby(["sampler", "note"], sort=False)
    ]
