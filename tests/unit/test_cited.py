"""Numbers in prose: each placeholder finds one cell, is rounded to the safe side, and no number of
ours is typed."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpsub.reproduce import published
from dpsub.reproduce.papers import Paper, papers
from dpsub.reproduce.report import cited
from dpsub.reproduce.report.prose import Prose
from dpsub.reproduce.verdicts import read_expected
from tests.documentation.console import script
from tests.few import few

ROOT = Path(__file__).resolve().parents[2]
KEPT = [paper for paper in papers().values() if (paper.folder / cited.KEPT).exists()]
EVERY = pytest.mark.parametrize("paper", KEPT, ids=lambda paper: paper.key)


@EVERY
def test_a_full_run_has_the_numbers_of_every_part(paper: Paper) -> None:
    """A run may leave a paragraph out, but not the full run, so that a wrong placeholder is
    found."""
    kept = cited.kept_of(paper)
    assert kept is not None
    template = (paper.folder / "found.md").read_text(encoding="utf-8")
    headings = re.findall(r'{% call takeaway\("([^"]+)"', template)
    assert [takeaway.heading for takeaway in Prose(paper, kept).takeaways()] == headings


@pytest.mark.parametrize("paper", few(KEPT[::-1]), ids=lambda paper: paper.key)
def test_what_is_kept_is_what_the_pages_cite(paper: Paper) -> None:
    """No row is kept that no page asks for, and the file names its run."""
    renew, kept = script("workflow/scripts/renew_pages"), cited.kept_of(paper)
    assert kept is not None
    prose = renew.write_home.prose(paper, read_expected(ROOT / "src/dpsub/papers"), kept)
    renew.whole(prose)
    rows = (paper.folder / cited.KEPT).read_text(encoding="utf-8").splitlines()
    assert sum(map(len, prose.seen.values())) == len(rows) - 2
    assert re.fullmatch(
        r"dpsub \d+\.\d+\S*, commit [0-9a-f]{40}( with changes)?, configuration "
        r"[0-9a-f]{12}",
        cited.origin_of(paper),
    )


@pytest.mark.parametrize("paper", few(KEPT[::-1], more=1), ids=lambda paper: paper.key)
def test_a_cell_that_changes_changes_the_pages(paper: Paper, tmp_path: Path) -> None:
    """The tests of the pages can fail: when a kept number is nudged, the pages change."""
    renew, verdicts = (
        script("workflow/scripts/renew_pages"),
        read_expected(ROOT / "src/dpsub/papers"),
    )
    head, _, rows = (paper.folder / cited.KEPT).read_text(encoding="utf-8").partition("\n")
    nudged = re.sub(
        r"(?<=,)(\d\.\d{6,}|\d{4,}\.\d+)(?=,)", lambda found: repr(1.02 * float(found[1])), rows
    )
    (tmp_path / cited.KEPT).write_text(f"{head}\n{nudged}", encoding="utf-8")
    changed = cited.kept_of(SimpleNamespace(folder=tmp_path))  # type: ignore[arg-type]
    kept = cited.kept_of(paper)
    assert changed is not None and kept is not None
    nudged_pages, pages = (
        renew.whole(renew.write_home.prose(paper, verdicts, cells)) for cells in (changed, kept)
    )
    assert nudged_pages != pages


DECIMAL = re.compile(r"(?<![\w.^/(])\d*\.\d+(?:e-?\d+)?(?!\w)|(?<![\w.])\d(?:\.\d+)?e-\d+")
CHECKED = [key for key in papers() if (ROOT / "tests/papers" / key / "typed.py").is_file()]


@pytest.mark.parametrize("key", CHECKED)
def test_no_number_of_ours_is_typed(key: str) -> None:
    """Numbers outside of placeholders are the paper's, or inputs of an example."""
    given = importlib.import_module(f"tests.papers.{key}.typed").GIVEN
    folder = papers()[key].folder
    printed = {
        one.strip("(),%;")
        for name in published.artefacts(key)
        for text in published.load(key, name)["printed"]
        for one in text.split()
    }
    text = "".join(
        (folder / name).read_text(encoding="utf-8") for name in ("errata.md", "found.md")
    )
    placeholder, claim = r"\{\{.*?\}\}|\{%.*?%\}", r"\*\*Claim\.\*\*.*?(?=^- )"
    text = re.sub(
        rf"{placeholder}|{claim}|`[^`]*`|arXiv:[0-9.]+", "", text, flags=re.DOTALL | re.MULTILINE
    )
    bodies = re.split(r"^#+ .*$", text, flags=re.MULTILINE)
    typed = {
        one
        for body in bodies
        for one in DECIMAL.findall(body)
        if len(one.replace(".", "").lstrip("0")) > 1
    }
    assert {
        one for one in typed - printed - given if not any(one in other for other in printed)
    } == set()


def test_a_typed_number_would_be_found() -> None:
    assert DECIMAL.findall("attains 0.401 and 3.5e-6 of 1000") == ["0.401", "3.5e-6"]
