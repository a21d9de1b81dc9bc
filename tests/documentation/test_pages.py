"""Pages and docstrings are true: commands print the output shown, examples run, links lead
somewhere."""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import dpsub
from dpsub.cli import COMMANDS, main
from dpsub.reproduce import configuration
from tests.documentation.console import MADE, ROOT, Typed, clone, outputs, typed
from tests.gone import needs_all_papers

DOCS = ROOT / "docs"
TOPS = sorted(top for top in ROOT.iterdir() if not top.name.startswith((*MADE, ".", "src")))
PAGES = [
    page
    for top in TOPS
    for page in ([top] if top.suffix == ".md" else sorted(top.rglob("*.md")))
    if DOCS / "api" not in page.parents
]
TEMPLATES = sorted((ROOT / "src/dpsub/papers").glob("*/*.md"))
CONSOLE = [page for page in PAGES if typed(page.read_text(encoding="utf-8"))]
PACKAGE = Path(dpsub.__file__).parent
EXAMPLES = [
    path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")
]
LONG_PAGES = ("account.md", "choose.md", "reproduce.md", "tutorial.md", "training-plan.md")
"""Pages whose commands take longer than those of all others."""
LONG_EXAMPLES = ("recommend.py",)
"""Modules whose examples take longer than those of all others."""
LINK = re.compile(
    r"(?<!!)\[[^\]\n]+\]\(([^)\s]+)\)|!\[[^\]\n]*\]\(([^)\s]+)\)|<img "
    r"src=\"([^\"]+)\""
)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT if ROOT in page.parents else PACKAGE))


def eaten(text: str) -> list[str]:
    """Return the texts that a page emphasises by underscores."""
    from markdown_it import MarkdownIt

    found = []
    for block in MarkdownIt("commonmark").enable("table").parse(text):
        words = block.children or []
        for at, word in enumerate(words):
            if word.type == "em_open" and word.markup == "_":
                found.append("".join(one.content for one in words[max(at - 1, 0) : at + 4]))
    return found


@pytest.mark.parametrize("page", [*PAGES, *TEMPLATES], ids=name_of)
def test_no_formula_loses_its_underscores(page: Path) -> None:
    """Pages emphasise by stars alone, so that an underscore is always one of a formula; after a
    bracket or a prime it is written with a backslash."""
    assert not eaten(page.read_text(encoding="utf-8"))


def test_an_eaten_underscore_is_found() -> None:
    assert eaten("from (x + y)_+ <= x_+ + (y)_+.") and eaten("so _this_ is")
    assert not eaten(r"from (x + y)\_+ <= x_+ + (y)\_+, p_l and `(y)_+ (z)_+`, *so*")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.thorough if page.name in LONG_PAGES else ())
        for page in CONSOLE
    ],
    ids=name_of,
)
@needs_all_papers
def test_commands_print_what_a_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clone(tmp_path / "dpsub"))
    for entry, output in outputs(page):
        assert entry.matches(output), f"$ {entry.command}\n{output}"


def test_what_is_shown_must_be_what_is_printed() -> None:
    (entry,) = typed("```console\n$ .venv/bin/dpsub law wor --n 4 --m 2\neta 0.5\n...\n```\n")
    assert entry == Typed(".venv/bin/dpsub law wor --n 4 --m 2", "eta 0.5\n...\n")
    assert entry.matches("eta 0.5\nmore\n")
    assert not entry.matches("eta 0.51\nmore\n")


def test_the_tutorial_is_run_whole() -> None:
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    assert re.findall(r"^```(\w+)", text, flags=re.MULTILINE) == ["console"] * text.count(
        "```console"
    )
    assert len(typed(text)) >= 8


def test_the_questions_of_the_readme_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["stratum,cluster,size", *(f"{i % 2},{i // 10},{i % 7 + 1}" for i in range(40))]
    (tmp_path / "FRAME.csv").write_text("\n".join(rows), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    asked = re.findall(
        r"^\.venv/bin/dpsub "
        r"(.*)$",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    assert (
        {words.split()[0] for words in asked}
        >= {"account", "calibrate", "law", "advise"}
        <= set(COMMANDS)
    )
    for words in asked:
        status = main(shlex.split(words, comments=True))
        out, err = capsys.readouterr()
        assert (status, err) == (0, ""), words
        assert out, words


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.thorough if path.name in LONG_EXAMPLES else ())
        for path in EXAMPLES
    ],
    ids=name_of,
)
def test_examples_in_docstrings(path: Path) -> None:
    name = ".".join(("dpsub", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
        ".__init__"
    )
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert outcome.attempted > 0
    assert outcome.failed == 0


@pytest.mark.parametrize(
    ("page", "many"),
    [
        ("README.md", 3),
        ("docs/how-to/python.md", 10),
        pytest.param("docs/training-plan.md", 20, marks=pytest.mark.thorough),
    ],
)
def test_examples_in_pages(page: str, many: int) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    example = doctest.DocTestParser().get_doctest(
        re.sub(r"^```.*$", "", text, flags=re.M), {}, page, None, 0
    )
    found = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example)
    assert found.attempted >= many
    assert found.failed == 0


def broken_links(page: Path, text: str) -> list[str]:
    """Return the relative links of a page that lead nowhere; `#` names a heading as GitHub and the
    site do."""
    found = []
    for link in (
        "".join(groups)
        for groups in LINK.findall(re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))
    ):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, heading = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if not in_clone(target) or (heading and heading not in headings(target)):
            found.append(link)
    return found


def in_clone(target: Path) -> bool:
    """Whether a file or folder is in a clone, and not made by a build or a run."""
    parents = {target, *target.parents}
    made = {DOCS / "api", *(ROOT / name for name in MADE)}
    return target.exists() and not parents & made


def headings(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [*PAGES, *TEMPLATES], ids=name_of)
def test_relative_links_lead_somewhere(page: Path) -> None:
    """The found.md of a paper is a page of docs/found, its part.md one in a folder below that, its
    home.md a part of the home page."""
    written = {
        "found.md": DOCS / "found/page.md",
        "part.md": DOCS / "found/paper/page.md",
        "home.md": DOCS / "index.md",
    }
    place = written.get(page.name, page)
    text = re.sub(r"\{\{.*?\}\}", "", page.read_text(encoding="utf-8"))
    own = (
        {f"#{name}" for name in headings(DOCS / f"found/{page.parent.name}.md")}
        if page.name == "found.md"
        else set()
    )
    assert [link for link in broken_links(place, text) if link not in own] == []


@pytest.mark.parametrize("page", [*PAGES, *TEMPLATES], ids=name_of)
def test_links_say_where_they_lead(page: Path) -> None:
    texts = re.findall(r"\[([^\]]+)\]\(", page.read_text(encoding="utf-8"))
    assert not {"see", "here", "this"} & {text.lower() for text in texts}


@pytest.mark.parametrize("page", [*PAGES, *TEMPLATES], ids=name_of)
def test_a_page_reads_as_well_in_a_clone(page: Path) -> None:
    """Markup for the site alone is kept in docs/conf.py; the reference is made for the site."""
    text = page.read_text(encoding="utf-8")
    allowed = {"eval-rst", "py:func", "py:class"} if page == DOCS / "reference.md" else set()
    assert set(re.findall(r"^```\{([\w-]+)\}|(?<!\w)\{([a-z:]+)\}`", text, re.M)) <= {
        *((name, "") for name in allowed),
        *(("", name) for name in allowed),
    }


def test_a_broken_link_is_found() -> None:
    text = (
        "[a](notation.md) [b](nowhere.md) ![c](pictures/none.png) [d](#notation) [e](#none) "
        "[f](https://x.org/y) [g](api/dpsub.rst) [h](../results/comparison.csv)"
    )
    assert broken_links(DOCS / "notation.md", text) == [
        "nowhere.md",
        "pictures/none.png",
        "#none",
        "api/dpsub.rst",
        "../results/comparison.csv",
    ]


def test_the_reference_opens_the_whole_front_door() -> None:
    page = (DOCS / "reference.md").read_text(encoding="utf-8")
    assert sorted(
        re.findall(
            r"^\.\. auto\w+:: "
            r"dpsub\.(\w+)$",
            page,
            flags=re.M,
        )
    ) == sorted(dpsub.__all__)


@needs_all_papers
def test_the_configuration_that_is_shown_is_one(tmp_path: Path) -> None:
    (shown,) = re.findall(
        r"^```yaml\n(.*?)^```", (ROOT / "config/README.md").read_text(encoding="utf-8"), re.M | re.S
    )
    mine = tmp_path / "mine.yaml"
    mine.write_text(shown, encoding="utf-8")
    config = configuration.load([ROOT / "config.yaml", mine])
    assert config["results_dir"] == yaml.safe_load(shown)["results_dir"] != "results"


def test_spelling() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "codespell_lib"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
