"""The errata of the papers, and the document made of them: current, complete, and every command
shows something."""

from __future__ import annotations

import re
import runpy
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from dpsub.errors import DataError
from dpsub.reproduce import artefacts, published, verdicts
from dpsub.reproduce.papers import errata_files, papers
from dpsub.reproduce.report import errata
from dpsub.reproduce.report.judgement import expected
from tests.gone import needs_all_papers

ROOT = Path(__file__).resolve().parents[2]
FILES = errata_files()
PRINTED = sorted(
    path for paper in papers().values() for path in (paper.folder / "published").glob("*.csv")
)
ENTRIES = errata.read(FILES)
TABLES = [published.load(path.parents[1].name, path.stem) for path in PRINTED]
CELLS = Counter(" ".join(" ".join(table["erratum"]) for table in TABLES).split())
VERDICTS = verdicts.read_expected(ROOT / "src/dpsub/papers")


@needs_all_papers
def test_the_document_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "workflow/scripts"))
    import renew_pages

    fresh = renew_pages.deviations(VERDICTS)
    assert fresh == (ROOT / "docs/deviations.md").read_text(encoding="utf-8"), (
        "run workflow/scripts/renew_pages.py"
    )
    other = VERDICTS.assign(verdict=VERDICTS["verdict"].replace("fails", "holds"))
    assert renew_pages.deviations(other) != fresh
    assert sum(fresh.count(f"\n| [{one.name}](#{one.name.lower()}-") for one in ENTRIES) == len(
        ENTRIES
    )
    for page in re.findall(r"\]\(([^#)]+\.md)\)", fresh):
        assert (ROOT / "docs" / page).exists(), page
    sys.modules.pop("renew_pages")


def test_links_of_the_papers_lead_to_pages() -> None:
    for path in FILES:
        for page in re.findall(r"\]\(([^#)]+\.md)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / page).exists(), f"{path}: {page}"


@pytest.mark.parametrize("paper", sorted(papers()))
def test_what_fails_has_an_erratum(paper: str) -> None:
    cells = expected(paper, VERDICTS)
    failing = cells[cells["verdict"].isin(verdicts.FAILING)]
    without = failing[failing["erratum"] == ""]
    assert without[["artefact", "row", "column"]].to_numpy().tolist() == []


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_an_entry_is_complete_and_its_command_shows_something(entry: errata.Erratum) -> None:
    heads = " ".join(re.findall(r"^- \*\*([^*]+?)\.\*\*", entry.text, re.MULTILINE)).lower()
    assert all(part in heads for part in ("claim", "evidence", "corrected", "effect"))
    shown = 0
    for command in entry.commands:
        if test := re.search(r"-m pytest (\S+) -k (\w+)$", command):
            source = (ROOT / test[1]).read_text(encoding="utf-8")
            assert re.search(rf"^def test_(?:\w*_)?{test[2]}", source, flags=re.MULTILINE), command
            shown += 1
        elif target := re.search(r"snakemake (\w+)$", command):
            assert f"must/{target[1]}" in artefacts.REGISTRY.names()
            shown += 1
        else:
            assert re.search(rf"show_erratum.py {entry.name}$", command)
            shown += CELLS[entry.name]
    assert shown > 0


def test_faults_of_the_errata_are_told(tmp_path: Path) -> None:
    first = FILES[0].read_text(encoding="utf-8")
    name, other = (entry.name for entry in ENTRIES[:2])
    path = tmp_path / "errata.md"
    path.write_text(first.replace(f"### {other}. ", f"### {name}. "), encoding="utf-8")
    with pytest.raises(
        DataError,
        match=rf"each erratum must stand once, got {name} twice, at last "
        r"in .*errata\.md",
    ):
        errata.read([path])
    with pytest.raises(DataError, match=rf"got {name} twice"):
        errata.read([FILES[0], FILES[0]])
    path.write_text(first.replace(f"### {other}. ", "### "), encoding="utf-8")
    with pytest.raises(DataError, match=rf"must have an entry in errata\.md, got none for {other}"):
        errata.document([path, *FILES[1:]], VERDICTS)


@needs_all_papers
def test_an_erratum_is_shown_with_cells_that_have_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = dict.fromkeys(verdicts.COLUMNS, "") | {
        "row": "poisson_time",
        "verdict": "reported",
        "erratum": "E10 E18",
    }
    pd.DataFrame([cell]).to_csv(path := tmp_path / "comparison.csv", index=False)
    monkeypatch.setattr("sys.argv", ["show_erratum.py", "E18", "--comparison", str(path)])
    runpy.run_path(str(ROOT / "workflow/scripts/show_erratum.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert said.startswith("E18. ") and said.splitlines()[-1].split() == [
        "poisson_time",
        "reported",
    ]


@needs_all_papers
def test_an_erratum_is_shown_with_the_numbers_that_are_kept_where_there_is_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "sys.argv", ["show_erratum.py", "E2", "--comparison", str(tmp_path / "comparison.csv")]
    )
    with pytest.raises(SystemExit, match="its cells need a run"):
        runpy.run_path(str(ROOT / "workflow/scripts/show_erratum.py"), run_name="__main__")
    said = capsys.readouterr().out
    page = (ROOT / "docs/found/must.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^ +\| WOR, fixed m \| 0\.88.*$", page, flags=re.MULTILINE)
    assert line in said and "{{ " not in said


@needs_all_papers
def test_no_sentence_stands_both_here_and_on_the_page_of_a_paper() -> None:
    def sentences(path: Path) -> set[str]:
        text = " ".join(path.read_text(encoding="utf-8").split())
        return {one for one in re.split(r"(?<=\.) ", text) if len(one) > 60 and "](" not in one}

    here = sentences(ROOT / "docs/deviations.md")
    for paper in papers():
        assert not here & sentences(ROOT / f"docs/found/{paper}.md"), paper
