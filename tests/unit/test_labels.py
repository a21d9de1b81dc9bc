"""Names that one paper uses are shown by the labels of its folder, those of two papers by the
shared ones."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from dpsub.errors import PlanError
from dpsub.reproduce import labels
from dpsub.reproduce.figures.style import sampler_style
from dpsub.reproduce.papers import papers
from tests.gone import needs_all_papers

PACKAGE = Path(labels.__file__).parents[1]
SHARED = {**labels.QUANTITIES, **labels.WORDS}


def own(paper: str) -> set[str]:
    """Return the names that a paper alone uses."""
    if (theirs := labels.REGISTRY.members().get(paper)) is None:
        return set()
    return {*theirs.quantities, *theirs.words, *theirs.samplers}


@cache
def named_in(folder: Path) -> set[str]:
    """Return the quoted texts in the code of a folder, and the cells of its tables."""
    code = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    cells = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.csv"))
    # names of cells stand with others in one column: "dataset=cover; epsilon=1"
    return {*re.findall(r'"([^"\n]*)"', code), *re.split(r"[,;=\n]\s*", cells)}


def test_labels_are_those_of_their_paper() -> None:
    assert {*labels.REGISTRY.names()} <= {*papers()}
    for key, theirs in labels.REGISTRY.members().items():
        assert theirs.__module__ == f"dpsub.papers.{key}.labels"


@pytest.mark.parametrize("paper", papers())
def test_no_other_paper_uses_a_papers_own_names(paper: str) -> None:
    for other in {*papers()} - {paper}:
        found = own(paper) & named_in(PACKAGE / "papers" / other)
        assert not found - {other}, other
    assert not own(paper) & {*SHARED}


@needs_all_papers
def test_what_is_shared_is_used_by_two_papers() -> None:
    for name in SHARED:
        users = [key for key in papers() if name in named_in(PACKAGE / "papers" / key)]
        assert len(users) > 1 or name in named_in(PACKAGE / "data"), name


def test_a_name_that_two_papers_show_in_two_ways_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Wrong(labels.Labels):
        words = {"wor": "with or without"}  # noqa: RUF012

    monkeypatch.setattr(labels.REGISTRY, "members", lambda: {"demo": Wrong})
    with pytest.raises(
        PlanError,
        match=r"must be shown in one way in all papers, got 'with or without' and 'WOR' for 'wor' "
        r"in papers/demo/labels\.py; rename one",
    ):
        labels.words.__wrapped__()


def test_what_stands_next_to_samplers_has_a_look() -> None:
    for name, look in labels.looks().items():
        assert sampler_style(name) == look
        assert labels.sampler_label(name) == look["label"]
        assert {*look} == {"label", "color", "marker", "linestyle"}
