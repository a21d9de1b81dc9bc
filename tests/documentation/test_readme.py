"""Facts that stand in two places agree: pages with the verdicts, the papers and the picture;
versions; targets."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

import dpsub
from dpsub.accounting.engine import work
from dpsub.errors import DataError
from dpsub.reproduce import verdicts
from dpsub.reproduce.papers import papers
from dpsub.reproduce.report.judgement import NOT_JUDGED, WORDS
from dpsub.sampling import REGISTRY
from tests.documentation.console import ROOT, script
from tests.gone import GONE, needs_all_papers

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs/verdicts.md").read_text(encoding="utf-8")
VERDICTS = verdicts.read_expected(ROOT / "src/dpsub/papers")

renew = script("workflow/scripts/renew_verdicts")  # fills in the tables
schemes = script("workflow/scripts/draw_schemes")  # who is in which batch
home = script("workflow/scripts/write_home")  # fills in the answers
HOME = home.PAGE.read_text(encoding="utf-8")


@needs_all_papers
def test_the_tables_of_verdicts_are_current() -> None:
    assert renew.renewed(PAGE, VERDICTS) == PAGE, "run workflow/scripts/renew_pages.py"


@needs_all_papers
def test_a_changed_verdict_changes_the_tables() -> None:
    changed = VERDICTS.copy()
    at = changed.index[(changed["variant"] == "stated") & (changed["verdict"] == "reproduced")][0]
    changed.loc[at, "verdict"] = "differs"
    page = renew.renewed(PAGE, changed)
    assert page != PAGE
    assert renew.renewed(page, VERDICTS) == PAGE


def test_the_counts_are_those_of_the_cells() -> None:
    """Count the verdicts in another way: one for each printed number, as done only where `stated`
    fails."""
    cells = VERDICTS.pivot_table(
        index=verdicts.CELL, columns="variant", values="verdict", aggfunc="first"
    )
    done = cells["as_done"].fillna("").str.endswith("_as_done")
    overall = cells["stated"].where(~done, cells["as_done"]).fillna(cells["as_done"])
    counts = overall.groupby(level=["paper", "artefact"]).value_counts()
    for (paper, artefact, verdict), count in counts.items():
        (line,) = re.findall(rf"^\| .* \(`{paper}/{artefact}`\) \| .*$", PAGE, flags=re.MULTILINE)
        assert re.search(rf"[ |]{count} {verdicts.spoken(verdict)}(,|;| \|)", line), line


@pytest.mark.parametrize("key", papers())
def test_a_table_has_one_of_four_answers_and_the_same_one_on_every_page(key: str) -> None:
    found = (ROOT / f"docs/found/{key}.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| \*\*([^*]+): ([\w ]+)(?:, \d+ of \d+ judged)?\*\*", found, re.M))
    assert {*told.values()} <= {*WORDS}
    counted = dict(re.findall(rf"^\| (.*?) \(`{key}/\w+`\) \| ([\w ]+) \|", PAGE, re.M))
    short = {name.partition(". ")[0]: word for name, word in counted.items()}
    assert {*counted.values()} <= {*WORDS}
    assert {name: told[name] for name in told if name in short} == {
        name: word for name, word in short.items() if word != NOT_JUDGED
    }


@needs_all_papers
def test_the_home_page_answers_seven_questions_in_their_first_words() -> None:
    assert home.renewed(HOME, VERDICTS) == HOME, "run workflow/scripts/renew_pages.py"
    answers = re.findall(r"^\*\*(.+\?)\*\* (.+)$", HOME, flags=re.MULTILINE)
    first = [re.split(r"[:,]| than | regenerates", answer)[0] for _, answer in answers]
    assert len(answers) == 7 and first[0] == "No" and first[2:4] == ["Worse", "Poisson sampling"]
    assert re.match(r"\d+ of the \d+ judged", answers[1][1]) and answers[6][1].startswith("`make ")
    assert first[4:6] == ["Only with clipping and noise", "With both bounds"]


def test_the_picture_of_the_schemes_is_that_of_its_script() -> None:
    shown = (ROOT / "docs/pictures/schemes.svg").read_text(encoding="utf-8")
    assert shown == schemes.picture(), "run workflow/scripts/draw_schemes.py"


def test_each_door_of_the_home_page_ends_in_two_commands() -> None:
    doors = re.findall(r"^\*\*I .+?\*\* .*?```sh\n(.*?)```", HOME, flags=re.M | re.S)
    assert [len(commands.splitlines()) for commands in doors] == [2, 2, 2]


@needs_all_papers
def test_a_changed_verdict_changes_the_home_page() -> None:
    changed = VERDICTS.assign(verdict=VERDICTS["verdict"].replace("differs", "reproduced"))
    assert home.renewed(HOME, changed) != HOME


def test_a_home_page_without_markers_is_refused() -> None:
    with pytest.raises(DataError, match="must have the lines"):
        home.renewed("# dpsub\n", VERDICTS)


def test_a_text_without_markers_is_refused() -> None:
    with pytest.raises(DataError, match="one pair of the markers"):
        renew.renewed("# dpsub\n", VERDICTS)


def test_every_paper_is_named_and_cited() -> None:
    others = {key for key, paper in papers().items() if paper.citation}
    assert set(re.findall(r"^\| `(\w+)` \|", README, flags=re.MULTILINE)) >= others
    assert all(f"`{key}`" in README for key in papers())
    references = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["references"]
    cited = {entry.get("notes", "") for entry in references}
    named = re.findall(r"arXiv:\d{4}\.\d+(?:v\d+)?", README)
    assert set(named) <= cited
    assert len(references) >= len(others)


def test_the_picture_shows_what_the_accountant_says() -> None:
    shown = pd.read_csv(home.CURVES).query("n_compositions == 1 and sampler != 'must_ww'")
    assert home.CURVES.with_suffix(".png").is_file()
    assert len(shown) == 5
    for row in shown.to_dict("records"):
        sampler = REGISTRY.get(row["sampler"]).of_sizes(10_000, m=200, b=118)
        answer = dpsub.account(
            sampler,
            10_000,
            noise_multiplier=row["noise_multiplier"],
            steps=row["n_compositions"],
            delta=1e-5,
            adjacency=row["adjacency"],
            effort=4 if row["sampler"] == "must_ow" else work.EFFORT,
        )
        assert (answer.lower, answer.upper) == pytest.approx(
            (row["attack"], row["proved"]), rel=1e-6
        ), row


def test_commands_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    assert targets <= set(re.findall(r"^\.PHONY: (.*)$", makefile, flags=re.MULTILINE)[0].split())
    assert "\nreproduce-%:" in makefile
    pages = [README, *(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))]
    asked = {
        name
        for text in pages
        for name in re.findall(
            r"(?:`|^|\n)make (?:[A-Z]+=\S+ "
            r")*([a-z_-]+)",
            text,
        )
    }
    asked -= {
        f"reproduce-{key}"
        for key, paper in papers().items()
        if (paper.folder / "full.yaml").exists()
    }
    assert {"reproduce", "test", "docs"} <= asked <= targets | {f"reproduce-{key}" for key in GONE}


def test_the_change_log_tells_changes_of_results() -> None:
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for release in re.split(r"^## ", log, flags=re.MULTILINE)[1:]:
        assert "\n### Changes to results\n" in release


def test_the_files_of_the_workflow_catalogue() -> None:
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text(encoding="utf-8"))[
        "usage"
    ]
    assert set(usage) == {"mandatory-flags", "software-stack-deployment", "report"}
    assert all(
        Path(ROOT, name).is_file()
        for name in ("config/README.md", "workflow/Snakefile", "README.md")
    )
