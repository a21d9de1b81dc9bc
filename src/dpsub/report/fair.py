"""The fair comparison in the report: its first statements, and the page with all of them and their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dpsub.artefacts.base import Artefact, OutputDirs
from dpsub.artefacts.names import escape_markdown
from dpsub.records import replace_file
from dpsub.report.advice import Evidence, Statement, statements
from dpsub.report.takeaways import Tables, Takeaways, read_cells

PAPER = "fair"
FIRST = 4  # statements that the report repeats
PAGE = "advice.md"


class FairTakeaways(Takeaways):
    """What to use at equal proved privacy, in short."""

    name = PAPER

    def sentences(self, tables: Tables) -> list[str]:
        found = statements(tables)
        lines = [f"**{one.heading}, at equal proved privacy.** {escape_markdown(one.text)}" for one in found[:FIRST]]
        return [*lines, f"All statements with their numbers: [what to use]({PAGE})."] if lines else []


def write_advice(
    output: Path, *, artefacts: Sequence[Artefact], dirs: OutputDirs, data_labels: Mapping[str, str]
) -> None:
    """Write the page for practitioners as Markdown: every statement, and below it the cells that it rests on.

    Parameters
    ----------
    output : Path
        Usually ``results/report/advice.md``.
    artefacts : sequence of Artefact
        Of the run; the tables of the fair comparison among them are read.
    dirs : OutputDirs
    data_labels : mapping
        Label of each prepared data set; stand-ins are named at the top.

    Raises
    ------
    DataError
        If a table is missing.
    """
    tables = Tables({
        artefact.name: read_cells(dirs.files(artefact)["csv"])
        for artefact in artefacts
        if artefact.paper == PAPER and artefact.kind == "table" and not artefact.timed
    })
    lines = [
        "# What to use", "",
        "Every sampler at the same target for all steps together, with noise that is proved to meet it when a record "
        "is replaced. The words of each statement follow from the numbers below it. They hold for the tasks, sizes, "
        "step sizes and seeds of this run, and say nothing beyond them; step sizes are the same for all samplers.", "",
    ]  # fmt: skip
    odd = [f"{name} ({label})" for name, label in data_labels.items() if label != "real"]
    if odd:
        lines += [f"**Stand-ins, not the real data: {escape_markdown(', '.join(odd))}.**", ""]
    found = statements(tables)
    for statement in found:
        lines += _section(statement)
    if not found:
        lines += ["This run holds no comparison.", ""]
    replace_file(output, "\n".join(lines).encode())


def _section(statement: Statement) -> list[str]:
    lines = [f"## {statement.heading}", "", escape_markdown(statement.text), "", "<details>"]
    lines += [f"<summary>{len(statement.evidence)} numbers</summary>", ""]
    lines += ["| table | data set | ε | sampler | quantity | reading | number |", "|" + " --- |" * 6 + " ---: |"]
    lines += [_line(cell) for cell in statement.evidence]
    return [*lines, "", "</details>", ""]


def _line(cell: Evidence) -> str:
    texts = (f"fair/{cell.table}", cell.dataset, cell.epsilon, cell.sampler, cell.column.replace("_", " "),
             cell.source.replace("_", " "))  # fmt: skip
    return "| " + " | ".join(escape_markdown(text) for text in texts) + f" | {cell.value:.6g} |"
