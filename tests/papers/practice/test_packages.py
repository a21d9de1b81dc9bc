"""Recorded answers of packages: asked as their files say, judged as expected, and refuted for the
reasons that are given."""

from __future__ import annotations

import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pandas as pd
import pytest

from dpsub.cli import parser_of
from dpsub.papers.practice.ask_packages import answered
from dpsub.papers.practice.experiments import PracticePackages
from dpsub.papers.practice.numbers import command_of, parts, question_of
from dpsub.papers.practice.packages import Package, asked, kind_of, packages, says
from dpsub.papers.practice.settings import (
    ESTIMATE,
    LOWER,
    ONE_READING,
    PACKAGE_KEYS,
    QUESTIONS,
    UPPER,
)
from dpsub.reproduce import published, recording, verdicts
from dpsub.reproduce.papers import papers
from dpsub.reproduce.report import cited
from dpsub.reproduce.report.cells import LookUp

PAPERS = Path(__file__).resolve().parents[3] / "src/dpsub/papers"
PAGES = PAPERS.parents[2] / "docs/found/practice"
RECORDED = published.load("practice", "packages")
LAST_PLACE = 2e-6
"""Relative tolerance for seven digits: numerical libraries of other versions round otherwise."""
FLAGS = re.MULTILINE | re.DOTALL
CHEAP = QUESTIONS[0], QUESTIONS[3], QUESTIONS[17]
EVERY = pytest.mark.parametrize("package", packages().values(), ids=packages())


def recorded(question: object, accountant: str, which: str) -> pd.DataFrame:
    fields = question.model_dump()  # type: ignore[attr-defined]
    keys = {name: published.key_text(value) if value else "" for name, value in fields.items()}
    wanted = {**keys, "accountant": accountant, "version": f"v{which}"}
    return RECORDED[(RECORDED[list(wanted)] == list(wanted.values())).all(axis=1)]


def test_each_question_is_one_and_is_answered() -> None:
    assert len(set(QUESTIONS)) == len(QUESTIONS)
    keys = [name for name in PACKAGE_KEYS if name not in ("accountant", "version")]
    assert len(RECORDED[keys].drop_duplicates()) == len(QUESTIONS)


def test_every_accountant_answers_at_every_version() -> None:
    named = {
        (accountant.name, f"v{version}")
        for package in packages().values()
        for accountant in package.accountants
        for version in package.versions_of(accountant)
    }
    found = set(RECORDED[["accountant", "version"]].itertuples(index=False, name=None))
    assert found == named
    assert len(named) >= 7


@EVERY
def test_ways_are_short_and_explained(package: Package) -> None:
    errata = papers()["practice"].errata.read_text(encoding="utf-8")
    for accountant in package.accountants:
        kinds = [kind for way in accountant.ways for kind in way.kinds]
        assert len(set(kinds)) == len(kinds)
        for way in accountant.ways:
            assert len(way.code.splitlines()) <= 6
            question = next(one for one in QUESTIONS if kind_of(one) in way.kinds)
            assert "epsilon" in compile(asked(way.code, question), "", "exec").co_names
            if way.erratum:
                assert way.erratum in package.reasons and f"### {way.erratum}. " in errata


@pytest.mark.thorough
@EVERY
def test_installed_packages_answer_what_is_recorded(package: Package) -> None:
    try:
        installed = version(package.distribution)
    except PackageNotFoundError:
        pytest.skip(f"{package.distribution} is not installed")
    if installed not in package.versions:
        pytest.skip(f"{package.distribution} {installed} is not one that is recorded")
    asked_for = [
        (accountant, recorded(question, accountant.name, installed), asked(way.code, question))
        for accountant in package.accountants
        for question in QUESTIONS
        if (way := accountant.way(question))
    ]
    # one of each accountant: all take minutes
    chosen = {accountant.name: (rows, code) for accountant, rows, code in asked_for if len(rows)}
    found = answered(sys.executable, [code for _, code in chosen.values()])
    for (name, (rows, _)), (epsilon, why) in zip(chosen.items(), found, strict=True):
        if why.startswith(("ImportError", "ModuleNotFoundError")):
            pytest.skip(f"{package.distribution} cannot be imported: {why}")
        assert epsilon is not None, why
        known = float(rows["printed"].item())
        assert float(recording.rounded(epsilon, is_lower=says()[name] == LOWER)) == pytest.approx(
            known, rel=LAST_PLACE
        )


def test_the_package_that_is_shown_is_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (PAPERS.parents[2] / "docs/adding.md").read_text(encoding="utf-8")
    shown = re.search(r"^```python\n# src/\S+/packages/closed_form\.py\n(.+?)^```$", page, FLAGS)
    assert shown
    names: dict = {}
    exec(shown[1], names)
    package = names["PACKAGE"]
    question = next(one for one in QUESTIONS if kind_of(one) == "all gaussian add_remove")
    code = asked(package.accountants[0].way(question).code, question)
    with_it = "import sys, types\nsys.modules['closed_form'] = m = types.ModuleType('m')\n"
    with_it += "m.gaussian = lambda noise, steps, delta: noise + steps + delta\n"
    expected = question.noise_multiplier + question.steps + question.delta
    assert answered(sys.executable, [with_it + code]) == [(pytest.approx(expected), "")]


def test_answers_are_rounded_in_the_accountants_favour() -> None:
    above, below = (float(recording.rounded(1.23456789, is_lower=way)) for way in (False, True))
    assert above > 1.23456789 > below


def test_a_package_that_fails_says_why() -> None:
    found = answered(sys.executable, ["epsilon = 1 / 2", "import nosuch", "print(1); epsilon = 2"])
    assert found == [(0.5, ""), (None, "ModuleNotFoundError: No module named 'nosuch'"), (2.0, "")]


def test_the_sample_has_its_expected_verdicts() -> None:
    grid = [setting.model_dump() for setting in CHEAP]
    records = PracticePackages().compute({"grid": grid}, variant="rigorous")
    expected = verdicts.read_expected(PAPERS).query("paper == 'practice' and variant == 'rigorous'")
    known = expected.set_index(["row", "column"])["verdict"]
    words = {1.0: "proved", 0.0: "refuted"}
    for record in records.to_dict("records"):
        key = {name: record[name] or "" for name in PACKAGE_KEYS}
        texts = {name: published.key_text(value) if value else "" for name, value in key.items()}
        row = published.row_text({**texts, "version": str(record["version"])})
        assert known[row, "holds"] == words.get(record["holds"], "open"), row
    assert set(records["holds"].dropna()) == {0.0, 1.0}


def test_pages_tell_every_refuted_answer_of_the_first_version() -> None:
    kept = cited.kept_of(papers()["practice"])
    assert kept is not None
    pages = parts(LookUp(kept))
    assert [page.name for page in pages] == list(packages())
    for page in pages:
        firsts = {(one.name, page.package.versions_of(one)[0]) for one in page.package.accountants}
        counted = sum(
            row["refuted"] for row in page.rows if (row["name"], row["version"]) in firsts
        )
        assert counted == sum(len(found.answers) for found in page.refuted)
    assert sum(row["answers"] for page in pages for row in page.rows) == len(RECORDED)


def test_pages_tell_every_refuted_answer_of_an_older_version() -> None:
    kept = cited.kept_of(papers()["practice"])
    assert kept is not None
    told = set()
    for page in parts(LookUp(kept)):
        text = (PAGES / f"{page.name}.md").read_text(encoding="utf-8")
        _, _, section = text.partition("\n## Older versions\n")
        assert bool(section) is bool(page.older)
        for row in page.older:
            question = question_of(row)
            later = recorded(question, row["accountant"], row["since"])["printed"].item()
            assert row["claimed"] < row["attained"] <= row["mended"] == float(later)
            cells = [row["of"], row["accountant"], row["release"], f"{row['claimed']:.5g}"]
            (line,) = [line for line in section.splitlines() if f"| {row['release']} |" in line]
            assert {*cells, row["since"], f"{row['mended']:.5g}"} < set(
                line.strip("| ").split(" | ")
            )
            assert page.package.reasons[row["erratum"]] in section
            told.add((row["accountant"], row["of"], question))
        for name in {row["name"] for row in page.rows}:
            first, *older = [row for row in page.rows if row["name"] == name]
            for row in older:
                # what is refuted in the first version is told there
                mended = sum(one[:2] == (name, row["version"]) for one in told)
                assert row["refuted"] == first["refuted"] + mended
    # 0.5.1 takes the sensitivity under replacement as 2 C
    replaced = [one for one in QUESTIONS if kind_of(one) == "all gaussian substitute"]
    assert told == {("dp-accounting PLD", "0.4.4", one) for one in replaced}


def test_pages_show_how_an_answer_is_reproduced() -> None:
    kept = cited.kept_of(papers()["practice"])
    assert kept is not None
    for page in parts(LookUp(kept)):
        text = (PAGES / f"{page.name}.md").read_text(encoding="utf-8")
        assert (page.example is None) is bool(page.refuted)
        for found in filter(None, [page.example, *page.refuted]):
            code, command = re.findall(r"^```\w+\n(.+?)^```$", text, FLAGS)[:2]
            assert len(code.splitlines()) <= 8 and command.startswith("dpsub account ")
            assert f"{found.code}\nprint(epsilon)\n" in text and found.command in text
        if page.example:
            row = page.example.answer
            newest = recorded(
                question_of(row), page.package.accountants[0].name, page.package.versions[0]
            )
            assert float(newest["printed"].item()) == row["claimed"]
            assert f" answers ε = {row['claimed']:.5g} at " in text


@EVERY
def test_releases_that_are_not_asked_are_named(package: Package) -> None:
    assert not set(package.not_asked) & set(package.versions)
    text = next(
        (PAGES / f"{name}.md").read_text(encoding="utf-8")
        for name, one in packages().items()
        if one is package
    )
    told = dict(re.findall(r"^([\w.]+) is not asked: (.+)\.$", text, re.MULTILINE))
    assert told == package.not_asked


def test_the_accountants_that_are_compared_are_judged_at_the_same_version() -> None:
    page = (PAPERS.parents[2] / "docs/comparison.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^\| feature \| dpsub \S+ \| (.+) \|$", page, re.MULTILINE)
    # the last one is code for papers, which is read and not asked
    heads = line.split(" | ")[:-1]
    judged = [f"{one.title} {one.versions[0]}" for one in packages().values()]
    assert {head.lower() for head in heads} < {
        one.replace("JAX P", "jax_p").lower() for one in judged
    }
    (more,) = re.findall(r" answers of all of them and of (\w+) more, the last column", page)
    assert ["four", "five", "six"].index(more) + 4 == len(judged) - len(heads)


def test_the_first_paragraph_names_what_is_refuted() -> None:
    kept = cited.kept_of(papers()["practice"])
    assert kept is not None
    pages = parts(LookUp(kept))
    assert len(packages()) == len(pages) == 14
    refuted = {
        (found.accountant, found.version == page.package.versions[0])
        for page in pages
        for found in page.refuted
    }
    newest = {name for name, is_newest in refuted if is_newest}
    assert {name for name in newest if says()[name] == UPPER} == {"dp-accounting RDP", "gdpnum"}
    assert {name for name in newest if says()[name] == ESTIMATE} == {
        "Opacus GDP",
        "Fourier Accountant",
        "prv-accountant estimate",
    }
    # refuted in one of two readings is not refuted
    assert {name for name in newest if says()[name] == ONE_READING} == {
        "JAX Privacy events RDP, noise over C"
    }
    assert {name for name, is_newest in refuted if not is_newest} == {"JAX Privacy PLD"}


@pytest.mark.parametrize("question", QUESTIONS, ids=kind_of)
def test_the_command_of_a_question_is_one(question: object) -> None:
    words = shlex.split(command_of(question))  # type: ignore[arg-type]
    assert words[:2] == ["dpsub", "account"]
    options = parser_of("account").parse_args(words[2:])
    assert options.noise_multiplier == question.noise_multiplier  # type: ignore[attr-defined]
