"""What a run has made, in a few lines for the terminal."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from progress import duration

from dpsub.reproduce import verdicts
from dpsub.reproduce.plan import Plan
from dpsub.reproduce.report.numbers import cell_verdicts


def lines(plan: Plan, *, made: int, seconds: float) -> list[str]:
    """Return the summary of a run of `plan` in which `made` jobs ran for `seconds` in all."""
    results = plan.results
    if made:
        first = f"finished {made} jobs in {duration(seconds)}"
    else:
        first = f"nothing to do: {results} is up to date (checked in {duration(seconds)})"
    records = plan.records(*plan.experiments)
    counts = Counter(product.artefact.kind for product in plan.products)
    found = [
        first,
        f"made from this configuration: {len(records)} record files of {len(plan.experiments)} experiments, "
        f"{counts['table']} tables, {counts['figure']} figures",
        *_verdicts(results / "comparison.csv"),
        *(_label(name, plan.data_file(name)) for name in plan.data_sets(*plan.experiments)),
    ]
    report = results / "report/index.html"
    if report.exists():
        found.append(f"read {report}; every printed number is in {results / 'comparison.csv'}")
    return found


def _verdicts(path: Path) -> list[str]:
    if not path.exists():
        return []
    cells = cell_verdicts(verdicts.read(path))
    found = []
    for paper, rows in cells.groupby("paper", sort=False):
        listed = ", ".join(f"{count} {verdict}" for verdict, count in rows["verdict"].value_counts().items())
        found.append(f"verdicts of {paper} ({len(rows)} printed numbers): {listed}")
    return found


def _label(name: str, path: Path) -> str:
    try:
        label = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["label"]
    except (OSError, ValueError, KeyError):
        return f"data: {name} was not used"
    if label == "real":
        return f"data: {name} is the real data set"
    return f"data: {name} is {label}; its numbers are labelled so and not compared with printed ones"
