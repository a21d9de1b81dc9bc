"""One question has one number, wherever it is answered: by commands of two pages, and by a page and
the tables and pictures of the run that pages cite."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import pandas as pd
import pytest

from dpsub import sampling
from dpsub.papers.must.settings import SizesOfFigureS2
from tests.documentation.console import ROOT, typed
from tests.gone import needs_all_papers

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NUMBER = r"(\d[\d.]*(?:e-?\d+)?)"
SAME = {"--batch-size": "--m", "--sigma": "--noise-multiplier", "--k": "--steps"}
HOW_SHOWN = ("--explain", "--json", "--plot", "--csv", "--certificate", "--statement")
SIZES = SizesOfFigureS2()

Question = tuple[str, ...]
Found = tuple[str, str, str]
"""Where a number stands, its text, and the side to which it is rounded: "up" or "down"."""


def question(command: str) -> Question:
    """Return what a command asks, without the form in which it shows the answer."""
    words = shlex.split(command)[1:]
    options: dict[str, str] = {}
    for place, word in enumerate(words):
        if word.startswith("--") and word not in HOW_SHOWN:
            value = words[place + 1] if place + 1 < len(words) else ""
            options[SAME.get(word, word)] = "" if value.startswith("--") else value
    if words[1] in sampling.REGISTRY.names():
        options.setdefault("--adjacency", str(sampling.REGISTRY.get(words[1]).relation))
    if words[1] == "poisson" and {"--n", "--m"} <= {*options}:
        options["--rate"] = f"{int(options.pop('--m')) / int(options.pop('--n')):g}"
    plain = (f"{name} {_plain(value)}" for name, value in options.items())
    return (*words[:2], *sorted(plain))


def _plain(value: str) -> str:
    """Return a number in one form: 1e-05 and 1e-5 are the same."""
    try:
        return f"{float(value):g}"
    except ValueError:
        return value


def of_commands() -> Iterator[tuple[Question, Found]]:
    """Yield the answers of the commands of pages."""
    for page in PAGES:
        where = str(page.relative_to(ROOT))
        for entry in typed(page.read_text(encoding="utf-8")):
            words = entry.command.split()
            if words[:1] != [".venv/bin/dpsub"] or words[1] not in ("account", "calibrate"):
                continue
            if "--epsilon" in words and words[1] == "account":
                continue  # asks for delta
            asked = question(entry.command)
            ends = re.search(rf"^  epsilon   {NUMBER} to {NUMBER}", entry.shown, re.MULTILINE)
            if ends:
                yield (*asked, "lower"), (where, ends[1], "down")
                yield (*asked, "upper"), (where, ends[2], "up")
            noise = re.search(rf"noise multiplier  {NUMBER}(?:  \(| )proved", entry.shown)
            if noise:
                yield (*asked, "upper"), (where, noise[1], "up")


def of_the_run() -> Iterator[tuple[Question, Found]]:
    """Yield the answers of the cited tables of MUST, and of the picture of the first pages."""
    common = {"--n": SIZES.n, "--m": SIZES.m, "--steps": 1000, "--delta": 1e-5}
    cells = pd.read_csv(ROOT / "src/dpsub/papers/must/cited.csv", comment="#", dtype=str)
    noises = cells[cells.iloc[:, 0] == "noise_at_equal_privacy"]
    for cell in noises[noises["column"] == "noise_proved"].to_dict("records"):
        given = {**common, "--epsilon": cell["target_epsilon"], "--adjacency": cell["adjacency"]}
        asked = question(_typed("calibrate", cell["sampler"], SIZES.b, given))
        yield (*asked, "upper"), ("noise_at_equal_privacy", cell["rigorous"], "up")
    given = {**common, "--noise-multiplier": 4, "--adjacency": "substitute"}
    stages = cells[cells.iloc[:, 0] == "first_stages"]
    for cell in stages[stages["column"].isin(("epsilon_lower", "epsilon_upper"))].to_dict(
        "records"
    ):
        b = 0 if cell["sampler"] == "wor" else int(float(cell["b"]))
        asked = question(_typed("account", cell["sampler"], b, given))
        end = cell["column"].removeprefix("epsilon_")
        yield (*asked, end), ("first_stages", cell["rigorous"], "up" if end == "upper" else "down")
    curves = pd.read_csv(ROOT / "docs/pictures/privacy_by_steps.csv", dtype=str)
    for point in curves.to_dict("records"):
        place = {"--adjacency": point["adjacency"], "--steps": point["n_compositions"]}
        asked = question(_typed("account", point["sampler"], int(point["b"]), {**given, **place}))
        yield (*asked, "lower"), ("privacy_by_steps", point["attack"], "down")
        yield (*asked, "upper"), ("privacy_by_steps", point["proved"], "up")


def _typed(command: str, sampler: str, b: int, given: dict[str, object]) -> str:
    """Return the command that asks what a cell answers; two stages take four times the work."""
    staged = {"--b": b, "--effort": 4} if "must" in sampler else {}
    options = " ".join(f"{name} {value}" for name, value in {**given, **staged}.items())
    return f"dpsub {command} {sampler} {options}"


def agree(one: str, other: str, side: str) -> bool:
    """Whether two texts show one number: the one of fewer digits is the other one, rounded to its
    side."""
    digits = min(len(Decimal(text).as_tuple().digits) for text in (one, other))
    rounding = ROUND_CEILING if side == "up" else ROUND_FLOOR
    down_to = Context(prec=digits, rounding=rounding)
    return down_to.create_decimal(one) == down_to.create_decimal(other)


@needs_all_papers
def test_pages_that_answer_one_question_show_one_number() -> None:
    answers: dict[Question, list[Found]] = defaultdict(list)
    for asked, found in (*of_commands(), *of_the_run()):
        answers[asked].append(found)
    several = {asked: found for asked, found in answers.items() if len(found) > 1}
    differing = [
        f"{' '.join(asked)}: {first} and {other}"
        for asked, (first, *others) in several.items()
        for other in others
        if not agree(first[1], other[1], first[2])
    ]
    assert not differing, "\n".join(differing)
    shared = {place for found in several.values() for place, _, _ in found}
    assert {"docs/how-to/choose.md", "noise_at_equal_privacy", "first_stages"} <= shared
    assert {"docs/tutorial.md", "privacy_by_steps"} <= shared


@pytest.mark.parametrize(
    ("one", "other", "side", "same"),
    [
        ("5.08", "5.07128", "up", True),
        ("5.07", "5.07128", "up", False),
        ("5.07", "5.07128", "down", True),
        ("5.54", "5.07128", "up", False),
    ],
)
def test_digits_are_rounded_to_the_safe_side(one: str, other: str, side: str, same: bool) -> None:
    assert agree(one, other, side) == same


@needs_all_papers
def test_the_example_of_a_citation_has_the_numbers_of_the_page_of_its_paper() -> None:
    example = (ROOT / "docs/how-to/cite.md").read_text(encoding="utf-8")
    found = (ROOT / "docs/found/must.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| MUST\.OW \| (8\.49 .*) \|$", found, re.MULTILINE)
    printed, _, attained, proved = row.split(" | ")
    assert f"prints {printed}" in example and f"{attained} (attack) and {proved} (proof)" in example
    assert f"between {attained}, which" in example and f"and {proved}, which is proved" in example
