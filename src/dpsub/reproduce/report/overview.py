"""The errata in short: a table a paper, from the document, the printed numbers and their expected verdicts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from dpsub.errors import DataError
from dpsub.reproduce import published
from dpsub.reproduce.cells import overall
from dpsub.reproduce.names import escape_markdown
from dpsub.reproduce.report import errata
from dpsub.reproduce.report.numbers import MEANINGS

BEGIN, END = "<!-- errata: ", "<!-- end of errata -->"
_KEY = ("paper", "artefact", "row", "column")


def refreshed(document: Path, printed: Path, verdicts: pd.DataFrame) -> str:
    """Return the text of the document of errata with its tables made again.

    Parameters
    ----------
    document : Path
        With a line that begins with `BEGIN` and a line `END`; what stands between them is replaced.
    printed : Path
        Folder of printed numbers.
    verdicts : DataFrame
        Expected verdicts, as `dpsub.reproduce.expected.read_expected` returns them.

    Raises
    ------
    DataError
        If the document has no such lines, or printed numbers name an erratum that it lacks.
    """
    listed = errata.read(document)
    before, begin, rest = document.read_text(encoding="utf-8").partition(BEGIN)
    head, line_end, body = rest.partition("\n")
    _, end, after = body.partition(END)
    if not end:
        raise DataError(f"{document.name} must have a line that begins with {BEGIN!r} and one {END!r}; restore them")
    table = "\n".join(_tables(listed, _by_erratum(printed, verdicts, {one.name for one in listed})))
    return f"{before}{begin}{head}{line_end}\n{table}\n{end}{after}"


def _by_erratum(printed: Path, verdicts: pd.DataFrame, known: set[str]) -> dict[str, Counter[str]]:
    """Return how many printed numbers with which verdict each erratum is about."""
    judged: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in verdicts.to_dict("records"):
        judged.setdefault(tuple(row[name] for name in _KEY), []).append({str(k): str(v) for k, v in row.items()})
    found: dict[str, Counter[str]] = {}
    for path in sorted(printed.glob("*/published/*.csv")):
        for row in published.read(path).to_dict("records"):
            for name in row["erratum"].split():
                if name not in known:
                    raise DataError(f"an erratum of {path.name} must stand in the document of errata, got no {name}")
                verdict = overall(judged.get(tuple(row[field] for field in _KEY), [])) or "not yet judged"
                found.setdefault(name, Counter())[verdict] += 1
    return found


def _tables(listed: list[errata.Erratum], found: Mapping[str, Counter[str]]) -> Iterator[str]:
    for chapter in dict.fromkeys(one.chapter for one in listed):
        yield f"**{chapter}**\n"
        yield "| erratum | about | printed numbers and statements |"
        yield "| --- | --- | --- |"
        for one in listed:
            if one.chapter == chapter:
                title, counted = one.title.replace("|", "\\|"), _counted(found.get(one.name, Counter()))
                yield f"| [{one.name}](#{_anchor(f'{one.name}. {one.title}')}) | {title} | {counted} |"
        yield ""


def _anchor(heading: str) -> str:
    """Return the anchor that GitHub and the documentation site give to a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _counted(verdicts: Counter[str]) -> str:
    order = [name for name in dict.fromkeys([*MEANINGS, *sorted(verdicts)]) if verdicts[name]]
    return ", ".join(f"{verdicts[name]} {escape_markdown(name.replace('_', ' '))}" for name in order) or "none"
