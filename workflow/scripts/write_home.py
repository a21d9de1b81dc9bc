"""Write the answers on docs/index.md: from the home.md of a paper and the cells that it cites;
renew_pages.py calls it."""

from __future__ import annotations

from pathlib import Path
from textwrap import TextWrapper

import pandas as pd
import write_found
from renew_verdicts import PICTURES, judged

from dpsub.errors import DataError
from dpsub.files import replace_file
from dpsub.reproduce.papers import Paper, papers
from dpsub.reproduce.report.cells import CellTables
from dpsub.reproduce.report.cited import kept_of
from dpsub.reproduce.report.prose import Prose
from dpsub.reproduce.verdicts import Tally, tally

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/index.md"
TEMPLATE = "home.md"
"""Name of the file in a paper's folder with its answers to the questions of the home page."""
BEGIN = "<!-- answers: made by workflow/scripts/renew_pages.py -->\n"
END = "<!-- end of answers -->"
WRAPPED = TextWrapper(130, break_long_words=False, break_on_hyphens=False)
(CURVES,) = PICTURES.glob("*.csv")
"""Numbers of the picture that the page shows."""


def renew(verdicts: pd.DataFrame) -> None:
    """Write the answers into the home page."""
    replace_file(PAGE, renewed(PAGE.read_text(encoding="utf-8"), verdicts).encode())


def renewed(page: str, verdicts: pd.DataFrame) -> str:
    """Return the home page with the answers between its markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise DataError(f"the home page must have the lines {BEGIN!r} and {END!r}; add them")
    return f"{before}{begin}\n{answers(verdicts)}\n{end}{after}"


def answers(verdicts: pd.DataFrame) -> str:
    """Return the answers of all papers that give some, filled in with the cells that are kept."""
    found = []
    for paper in papers().values():
        kept = kept_of(paper)
        if (paper.folder / TEMPLATE).is_file() and kept is not None:
            found.append(filled(prose(paper, verdicts, kept)))
    return "\n".join(found)


def filled(cells: Prose) -> str:
    """Return the answers of one paper."""
    text = cells.filled((cells.paper.folder / TEMPLATE).read_text(encoding="utf-8"))
    paragraphs = [" ".join(one.split()) for one in text.split("\n\n") if one.strip()]
    return "\n\n".join(map(WRAPPED.fill, paragraphs)) + "\n"


def prose(paper: Paper, verdicts: pd.DataFrame, tables: CellTables) -> Prose:
    """Return what fills the placeholders of the answers."""
    found = write_found.prose(paper, verdicts, tables)

    def answer(artefact: str) -> str:
        """Return the word for a printed table: is it right?"""
        return write_found.judged(paper, verdicts)[artefact].verdict

    found.more = {
        **found.more,
        "answer": answer,
        "total": of_papers(verdicts),
        "epsilon": epsilon_at_equal_noise(),
    }
    return found


def of_papers(verdicts: pd.DataFrame) -> Tally:
    """Count the verdicts on the numbers that papers print."""
    cells = judged(verdicts)
    cited = [key for key, paper in papers().items() if paper.citation]
    return tally(cells.loc[cells["paper"].isin(cited), "verdict"])


def epsilon_at_equal_noise() -> dict[str, dict[str, float]]:
    """Return the ends of epsilon of each sampler after all steps of the picture, one record
    replaced, and the size of its first stage."""
    curves = pd.read_csv(CURVES).query("adjacency == 'substitute'")
    last = curves[curves["n_compositions"] == curves["n_compositions"].max()]
    return last.set_index("sampler")[["b", "attack", "proved"]].to_dict("index")
