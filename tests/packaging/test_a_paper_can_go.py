"""Each paper can be removed: its folder is deleted in a copy of the project, and the rest works."""

from __future__ import annotations

import json
import re
import shutil
from functools import cache
from pathlib import Path

import pytest

from dpsub.reproduce import artefacts, experiments, labels
from dpsub.reproduce.papers import papers
from tests.few import few
from tests.packaging.scratch import ROOT, copied, ran

KEYS = list(papers())
PLAN = """
import json
from pathlib import Path
from dpsub.reproduce import configuration
from dpsub.reproduce.plan import Plan
for name in ("config.yaml", "workflow/smoke.yaml"):
    plan = Plan(configuration.load([Path("config.yaml"), Path(name)]))
    print(json.dumps([list(plan.targets), list(plan.experiments)]))
"""
SMOKE = ("--configfile", "workflow/smoke.yaml")
MACHINERY = {"papers", "reproduce"}
LEFT = ("tests/documentation", "tests/faults", "tests/unit")
"""Tests that look at all papers at once; some mention single ones."""


def without(top: Path, key: str) -> Path:
    """Return a copy of the project in which the folder of one paper is missing."""
    shutil.rmtree(copied(top) / "src/dpsub/papers" / key)
    return top


def terms(key: str) -> set[str]:
    """Return the names that a paper brings: its experiments, tables and figures, and its labels.

    A plain word ("mixture") may be used by others with its own meaning, and so may the library's
    names.
    """
    made = (*experiments.REGISTRY.members().items(), *artefacts.REGISTRY.members().items())
    found = {name for name, kind in made if kind.paper == key}
    if (own := labels.REGISTRY.members().get(key)) is not None:
        found |= {*own.quantities, *own.words, *own.samplers}
    return {name for name in found if re.search(r"[_/.]", name)} - in_the_library()


@cache
def in_the_library() -> frozenset[str]:
    package = ROOT / "src/dpsub"
    files = [path for path in package.rglob("*.py") if not MACHINERY & {*path.parts}]
    code = "".join(path.read_text(encoding="utf-8") for path in files)
    return frozenset(re.findall(r'"([^"\n]*)"', code))


def named(key: str, path: Path) -> list[str]:
    """Return which of the names of a paper, its folder, or its key, a file mentions."""
    names = "|".join(map(re.escape, sorted(terms(key))))
    found = rf"(?<![\w./])(?:(?:dpsub|tests)\.papers\.{key}\b|{key}/\w+|(?:{names})(?![\w./]))"
    found += rf"|papers/{key}\b"
    # the library has a command and a folder of these names
    if key not in in_the_library() and not (ROOT / "src/dpsub" / key).is_dir():
        found += rf"|['\"\[]{key}['\"\],]"
    return re.findall(found, path.read_text(encoding="utf-8"))


def texts_in(folder: str) -> list[Path]:
    """Return the files of a folder of the project that are written by hand."""
    kinds = {"", ".py", ".smk", ".yaml", ".rst", ".j2", ".js"}
    files = (ROOT / folder).rglob("*")
    return [path for path in files if path.is_file() and path.suffix in kinds]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("folder", ["src/dpsub/reproduce", "workflow", "tests"])
def test_no_paper_is_named_outside_of_its_folders(folder: str, key: str) -> None:
    own = ROOT / "tests/papers" / key
    found = {
        str(path.relative_to(ROOT)): names
        for path in texts_in(folder)
        if not path.is_relative_to(own) and (names := named(key, path))
    }
    assert found == {}


def test_a_name_of_a_paper_is_found(tmp_path: Path) -> None:
    key = KEYS[0]
    for text in (f"dpsub.papers.{key}.tables", f'"{key}/table1"', min(terms(key))):
        (tmp_path / "text.py").write_text(text, encoding="utf-8")
        assert named(key, tmp_path / "text.py"), text


def test_a_small_paper_takes_few_lines() -> None:
    page = (ROOT / "docs/adding.md").read_text(encoding="utf-8")
    (limit,) = map(int, re.findall(r"at most (\d+) lines of Python", page))
    small = re.findall(r"^`(\w+)` and `(\w+)` take .*lines of Python", page, flags=re.MULTILINE)
    assert len(small) == 1 and limit == 900
    for key in set(small[0]) & set(KEYS):
        files = (ROOT / "src/dpsub/papers" / key).rglob("*.py")
        assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) <= limit


@pytest.mark.parametrize("key", few(KEYS, most=0, more=0))
def test_without_a_paper_the_rest_is_planned(tmp_path: Path, key: str) -> None:
    top = without(tmp_path, key)
    members = experiments.REGISTRY.members().items()
    wanted = {name for name, kind in members if kind.paper != key}
    plans = [json.loads(line) for line in ran(top, "-c", PLAN).splitlines()]
    for targets, planned in plans:
        assert wanted.issuperset(planned)
        assert not [target for target in targets if target.startswith(f"{key}/")]
    # the smallest run leaves no paper out, but an experiment that no artefact reads
    assert len(plans[1][1]) > len(wanted) - 5
    # the jobs that Snakemake would run
    assert "write_report" in ran(top, "-m", "snakemake", "-n", *SMOKE)

    ran(top, "workflow/scripts/renew_pages.py")
    document = (top / "docs/deviations.md").read_text(encoding="utf-8")
    chapters = re.findall(r"^## .*\((\w+)\)$", document, flags=re.MULTILINE)
    left = [paper for paper in papers().values() if paper.key != key]
    assert chapters == [paper.key for paper in left if paper.errata.exists()]


@pytest.mark.parametrize("key", few(KEYS, most=0, more=0))
def test_without_a_paper_the_other_tests_are_collected(tmp_path: Path, key: str) -> None:
    top = without(tmp_path, key)
    # asserts that nobody evaluates need not be rewritten, which takes half of the time
    options = ("--collect-only", "-q", "-p", "no:cacheprovider", "--assert=plain")
    collected = ran(top, "-m", "pytest", *options)
    assert not re.search(rf"^tests/papers/{key}/", collected, flags=re.MULTILINE)
    assert all(f"tests/papers/{other}/" in collected for other in KEYS if other != key)


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_without_a_paper_the_tests_that_are_left_pass(tmp_path: Path, key: str) -> None:
    top = without(tmp_path, key)
    said = ran(top, "-m", "pytest", "-q", "-p", "no:cacheprovider", *LEFT, patience=1800)
    assert re.search(r"\d+ passed", said)


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_without_a_paper_the_smoke_run_ends_in_a_report(tmp_path: Path, key: str) -> None:
    top = without(tmp_path, key)
    ran(top, "-m", "snakemake", "--cores", "2", *SMOKE, patience=1800)
    page = (top / "results-smoke/report/index.html").read_text(encoding="utf-8")
    assert papers()[key].title not in page
    assert all(other.title in page for other in papers().values() if other.key != key)
    site = ("-q", "-W", "--keep-going", "-b", "html", "-d", "site/.doctrees", "docs", "site/html")
    ran(top, "-m", "sphinx", *site)
