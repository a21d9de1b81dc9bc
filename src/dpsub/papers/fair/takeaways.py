"""The fair comparison in the report: what a practitioner should use, with every number that it rests on."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from dpsub.papers.fair.advice import Evidence, Statement, statements
from dpsub.reproduce.names import escape_markdown
from dpsub.reproduce.report.takeaways import Tables, Takeaways

PAPER = "fair"


def sentences(tables: Tables) -> list[str]:
    return [_sentence(one) for one in statements(tables)]


def evidence(tables: Tables) -> Mapping[str, pd.DataFrame]:
    return {_sentence(one): pd.DataFrame(map(_line, one.evidence)) for one in statements(tables)}


def _sentence(statement: Statement) -> str:
    return f"**{statement.heading}.** {escape_markdown(statement.text)}"


def _line(cell: Evidence) -> dict[str, str]:
    return {
        "table": f"{PAPER}/{cell.table}", "data set": cell.dataset, "ε": cell.epsilon, "sampler": cell.sampler,
        "quantity": cell.column.replace("_", " "), "variant": cell.source.replace("_", " "),
        "number": f"{cell.value:.6g}",
    }  # fmt: skip


TAKEAWAYS = Takeaways(
    parts=(sentences,),
    introduction=(
        "Every sampler at the same target for all steps together, with noise that is proved to meet it when a record "
        "is replaced. The words of each statement follow from the numbers below it. They hold for the tasks, sizes, "
        "step sizes and seeds of this run, and say nothing beyond them; step sizes are the same for all samplers."
    ),
    evidence=evidence,
)
