"""The folders of the papers: their descriptions of themselves, and one sentence about a fault in
one."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsub.errors import PlanError
from dpsub.reproduce import artefacts
from dpsub.reproduce.papers import of_module, papers

GOOD = "from dpsub.reproduce.papers import Paper\nPAPER = Paper({key!r}, 'A paper', rank={rank})\n"


def test_papers_come_by_rank_and_say_who_wrote_them() -> None:
    found = list(papers().values())
    assert [paper.order for paper in found] == sorted(paper.order for paper in found)
    for paper in found:
        assert paper.citation is None or (
            paper.citation.authors and 2000 < paper.citation.year < 2100
        )
    assert {artefact.paper for artefact in artefacts.REGISTRY.members().values()} <= set(papers())


def test_the_paper_of_an_artefact_is_its_folder() -> None:
    assert of_module("dpsub.papers.some.artefacts.table8") == "some"
    assert of_module("dpsub.reproduce.artefact") == ""


def made(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, **texts: str) -> str:
    for paper, text in texts.items():
        (folder / name / paper).mkdir(parents=True)
        (folder / name / paper / "__init__.py").write_text(text, encoding="utf-8")
    (folder / name / "__init__.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    return name


def text(key: str, rank: int = 1) -> str:
    return GOOD.format(key=key, rank=rank)


def test_a_folder_is_a_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = made(
        tmp_path,
        monkeypatch,
        "some_papers",
        zeta=text("zeta", rank=0),
        beta=text("beta"),
        alpha=text("alpha"),
    )
    assert list(papers(name)) == ["zeta", "alpha", "beta"]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (
            {"one": text("one"), "two": text("one")},
            "two papers must not have one key, got 'one' in papers/one and ",
        ),
        (
            {"one": text("other")},
            "the key of a paper must be the name of its folder, got 'other' in papers/one; ",
        ),
        (
            {"one": ""},
            r"the folder of a paper must define PAPER in its __init__.py, got none in "
            r"papers/one",
        ),
    ],
)
def test_a_faulty_folder_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: dict[str, str], words: str
) -> None:
    name = made(tmp_path, monkeypatch, tmp_path.name, **texts)
    with pytest.raises(PlanError, match=words):
        papers(name)
