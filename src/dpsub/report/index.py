"""The page that a reader opens first."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from dpsub import experiments
from dpsub.artefacts.base import Artefact, OutputDirs
from dpsub.artefacts.cells import AS_DONE, overall
from dpsub.artefacts.names import escape_markdown, variant_name
from dpsub.artefacts.rendering import listing
from dpsub.errors import DataError
from dpsub.records import replace_file
from dpsub.report.takeaways import REGISTRY, Tables, read_cells
from dpsub.verdicts import VARIANTS

BAD = ("differs", "fails")
CELL = ["paper", "artefact", "row", "column"]
MEANINGS = {
    "reproduced": "our number rounds to the printed one",
    "within_error": "as close as Monte Carlo error and rounding allow",
    "holds": "the statement is true of our numbers",
    "reproduced_as_done": "only what was done, not what is stated, gives the printed number",
    "within_error_as_done": "as close as error allows, but only as done",
    "differs": "our number is another one",
    "fails": "the statement is not true of our numbers",
    "reported": "clock times, shown and not judged",
    "used": "a setting of the paper, used here",
    "not_compared": "no comparable number in this run",
    "structure_only": "a figure's property",
}


def write_report(
    output: Path,
    *,
    artefacts: Sequence[Artefact],
    dirs: OutputDirs,
    comparison: pd.DataFrame,
    data_labels: Mapping[str, str],
    provenance: Mapping[str, str],
    timings: Path | None = None,
    remarks: Sequence[str] = (),
) -> None:
    """Write the report of a run as Markdown; the same input gives the same bytes.

    Parameters
    ----------
    output : Path
        Usually ``results/report/index.md``; links are relative to its folder.
    artefacts : sequence of Artefact
        What the run has made, in the order of the report.
    dirs : OutputDirs
        Where their files are.
    comparison : DataFrame
        All printed numbers beside ours, as in ``results/comparison.csv``.
    data_labels : mapping
        Label ("real", "synthetic", ...) of each data set that was used; empty if all data are simulated.
    provenance : mapping
        What the foot of the page shows: versions, seed, digests. Clock times do not belong here.
    timings : Path, optional
        Folder of everything that depends on the clock; linked at the foot.
    remarks : sequence of str
        What a reader must know first, such as that the run is of reduced size; each becomes a line at the top.

    Raises
    ------
    DataError
        If a file of an artefact is missing.
    """
    here = output.parent
    parts = [_head(comparison, data_labels, remarks), _takeaways(artefacts, dirs, data_labels), _verdicts(comparison)]
    parts.append("## Tables and figures\n")
    parts += [_section(artefact, dirs, here, _stand_ins(artefact, data_labels)) for artefact in artefacts]
    parts.append(_foot(provenance, timings, here))
    replace_file(output, "\n".join(parts).encode())


def cell_verdicts(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return one row a printed number: its key, printed text, our values by variant, overall verdict, erratum, note."""
    rows = []
    for fields, cell in comparison.groupby(CELL, sort=False):
        judgements = [{str(name): value for name, value in row.items()} for row in cell.to_dict("records")]
        values = {row["variant"]: row["value"] for row in judgements}
        rows.append({
            **dict(zip(CELL, fields, strict=True)), "printed": judgements[0]["printed"], **values,
            "verdict": overall(judgements), "erratum": judgements[0]["erratum"], "note": judgements[0]["note"],
        })  # fmt: skip
    return pd.DataFrame(rows, columns=[*CELL, "printed", *VARIANTS, "verdict", "erratum", "note"])


def _head(comparison: pd.DataFrame, data_labels: Mapping[str, str], remarks: Sequence[str]) -> str:
    labels = ", ".join(f"{escape_markdown(name)} **{escape_markdown(label)}**" for name, label in data_labels.items())
    cells = cell_verdicts(comparison)
    lines = [
        "# Report", "",
        f"Data: {labels or 'simulated only'}.", "",
        f"{len(cells)} printed numbers: {_counts(cells)}.", "",
    ]  # fmt: skip
    odd = [name for name, label in data_labels.items() if label == "synthetic"]
    part = [name for name, label in data_labels.items() if label not in ("real", "synthetic")]
    if odd:
        lines += [f"Numbers made from {escape_markdown(', '.join(odd))} come from a stand-in, not from the real data, "
                  "and say nothing about it.", ""]
    if part:
        lines += [f"Numbers made from {escape_markdown(', '.join(part))} come from a part of the published data.", ""]
    return "\n".join([*lines, *(f"**{escape_markdown(remark)}**\n" for remark in remarks)])


def _counts(cells: pd.DataFrame) -> str:
    counts = cells["verdict"].value_counts()
    order = [name for name in dict.fromkeys([*MEANINGS, *counts.index]) if name in counts.index]
    return ", ".join(f"{counts[name]} {escape_markdown(name.replace('_', ' '))}" for name in order) or "none"


def _takeaways(artefacts: Sequence[Artefact], dirs: OutputDirs, data_labels: Mapping[str, str]) -> str:
    lines = ["## What to take from it", ""]
    for paper in dict.fromkeys(artefact.paper for artefact in artefacts):
        if paper not in REGISTRY.names():
            continue
        tables = {
            artefact.name: read_cells(dirs.files(artefact)["csv"])
            for artefact in artefacts
            if artefact.paper == paper and artefact.kind != "figure" and not artefact.timed
        }
        for sentence in REGISTRY.get(paper)().sentences(Tables(tables)):
            lines += [f"- {sentence}"]
    if len(lines) == 2:
        lines.append("This run is too small to say anything.")
    if "synthetic" in data_labels.values():
        lines += ["", "What is said of real data sets rests on stand-ins in this run."]
    return "\n".join([*lines, ""])


def _verdicts(comparison: pd.DataFrame) -> str:
    cells = cell_verdicts(comparison)
    lines = ["## Verdicts", "", "| artefact | " + " | ".join(_words(cells)) + " |"]
    lines.append("| --- |" + " ---: |" * len(_words(cells)))
    for (paper, artefact), part in cells.groupby(["paper", "artefact"], sort=False):
        counts = part["verdict"].value_counts()
        numbers = [str(counts.get(word.replace(" ", "_"), "")) for word in _words(cells)]
        lines.append(f"| [{paper}/{artefact}](#{paper}-{artefact}) | " + " | ".join(numbers) + " |")
    lines += ["", *(f"- *{name.replace('_', ' ')}*: {MEANINGS[name]}" for name in MEANINGS
                    if name in set(cells["verdict"])), ""]  # fmt: skip
    bad = cells[cells["verdict"].isin(BAD)]
    done = cells[cells["verdict"].str.endswith(AS_DONE)]
    lines += ["### Printed numbers that differ, and statements that fail", "", _findings(bad)]
    lines += ["### Printed numbers that only the procedure as done gives", "", _findings(done)]
    return "\n".join(lines)


def _words(cells: pd.DataFrame) -> list[str]:
    return [name.replace("_", " ") for name in MEANINGS if name in set(cells["verdict"])]


def _findings(cells: pd.DataFrame) -> str:
    if cells.empty:
        return "None.\n"
    variants = [name for name in ("stated", "as_done") if cells[name].notna().any()]
    heads = ["artefact", "cell", "quantity", "printed", *map(variant_name, variants), "erratum", "note"]
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for cell in cells.to_dict("records"):
        texts = [f"{cell['paper']}/{cell['artefact']}", cell["row"], cell["column"], cell["printed"]]
        texts += ["" if pd.isna(cell[name]) else f"{cell[name]:.4g}" for name in variants]
        texts += [cell["erratum"], cell["note"]]
        lines.append("| " + " | ".join(escape_markdown(str(text)) for text in texts) + " |")
    return "\n".join([*lines, ""])


def _stand_ins(artefact: Artefact, data_labels: Mapping[str, str]) -> str:
    """Return the labels of data sets behind an artefact that are not the real ones."""
    used = {name for experiment in artefact.experiments for name in experiments.REGISTRY.get(experiment).needs_data}
    return ", ".join(sorted({data_labels[name] for name in used & set(data_labels)} - {"real"}))


def _section(artefact: Artefact, dirs: OutputDirs, here: Path, stand_ins: str) -> str:
    files = dirs.files(artefact)
    missing = [path for path in files.values() if not path.exists()]
    if missing:
        raise DataError(f"the report needs every file of {artefact.identifier}, got no {missing[0]}; build it first")
    lines = [f'<a id="{artefact.paper}-{artefact.name}"></a>', "", f"### {artefact.paper}/{artefact.name}", ""]
    lines += [f"**{escape_markdown(stand_ins)} data**", ""] if stand_ins else []
    lines += [escape_markdown(artefact.caption), ""]
    links = ", ".join(f"[{role}]({_link(path, here)})" for role, path in files.items())
    if artefact.kind == "figure":
        lines += [f"![{artefact.name}]({_link(files['png'], here)})", ""]
    elif artefact.timed:
        lines += [f"Clock times differ from run to run and stand apart: [table]({_link(files['md'], here)}).", ""]
    else:
        table = listing(read_cells(files["csv"]), notes=artefact.kind == "claims")
        count = table.count("\n") - 2
        lines += ["<details>", f"<summary>{count} cells, printed and recomputed</summary>", "", table, "</details>", ""]
    return "\n".join([*lines, f"Files: {links}", ""])


def _foot(provenance: Mapping[str, str], timings: Path | None, here: Path) -> str:
    lines = ["## Provenance", "", "| | |", "| --- | --- |"]
    lines += [f"| {escape_markdown(name)} | {escape_markdown(str(value))} |" for name, value in provenance.items()]
    if timings is not None:
        lines += ["", f"Clock times of this run: [{timings.name}]({_link(timings, here)})."]
    return "\n".join([*lines, ""])


def _link(path: Path, here: Path) -> str:
    return Path(os.path.relpath(path, here)).as_posix()
