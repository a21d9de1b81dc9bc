"""The outcome of a run in a few lines for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from dpsub.reproduce import verdicts
from dpsub.reproduce.job import label_of
from dpsub.reproduce.plan import Plan
from dpsub.reproduce.report import oversized
from dpsub.reproduce.report.numbers import cell_verdicts


def summary(plan: Plan, targets: Collection[str] = ()) -> str:
    """Return the summary of a finished run of `plan`, of its `targets` if some were named."""
    made = [product for name, product in plan.targets.items() if name in targets]
    # A user who asks for single tables wants to know where they are.
    if not {*targets} <= {"all", "default"}:
        pages = [product.files.get("md") or product.files["png"] for product in made]
        return "\n".join(f"made {page}" for page in pages)
    counts = Counter(product.artefact.kind for product in plan.products)
    words = (("table", "table", ""), ("figure", "figure", ""), ("claims", "list", " of claims"))
    kinds = ", ".join(
        f"{counts[kind]} {one}{'s'[: counts[kind] > 1]}{of}"
        for kind, one, of in words
        if counts[kind]
    )
    # Written by the check of verdicts; its first line says how many have changed.
    changed = (plan.results / "run/verdicts.txt").read_text(encoding="utf-8").partition("\n")[0]
    labels = {name: label_of(plan.data_file(name)) for name in plan.data_sets(*plan.experiments)}
    lines = [
        plan.remark,
        f"made {kinds} in {plan.results}, from {len(plan.experiments)} experiments",
        *(
            f"{name}: {label} data, which are not compared"
            for name, label in labels.items()
            if label != "real"
        ),
        *_verdicts(plan),
        f"verdicts: {changed}" if plan.published else "",
        *(f"warning: {sentence}" for sentence in oversized(plan.results / "report")),
        f"read {plan.results / 'report/index.html'}; every printed number is in "
        f"{plan.results / 'comparison.csv'}",
    ]
    return "\n".join(line for line in lines if line)


def _verdicts(plan: Plan) -> list[str]:
    cells = cell_verdicts(verdicts.read(plan.results / "comparison.csv"))
    lines = []
    for paper, rows in cells.groupby("paper", sort=False):
        counts = rows["verdict"].value_counts().items()
        listed = ", ".join(f"{count} {verdict}" for verdict, count in counts)
        lines.append(f"{paper}, {len(rows)} printed numbers: {listed}")
    return lines
