"""The examples of docs/adding.md, copied out of the page into a copy of the project, pass all
conformance tests there: samplers, a schedule with its scheme and without, a noise, a paper."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.packaging.scratch import ROOT, copied, ran

PAGE = (ROOT / "docs/adding.md").read_text(encoding="utf-8")
FILES = dict(
    re.findall(
        r"^```\w+\n# src/dpsub/((?:sampling|accounting/schemes|noise|papers/demo)/\S+)\n(.*?)^```$",
        PAGE,
        flags=re.M | re.S,
    )
)
SHOWN = {
    "tests/conformance/test_samplers.py": ("BagOfLittleBootstraps", "ThreeStage", "[blb", "[wow"),
    "tests/conformance/test_schedules.py": ("Halves()-4", "Halves()-5", "[halves"),
    "tests/conformance/test_mechanisms.py": ("[logistic",),
    "tests/conformance/test_experiments.py": ("[demo_hiding",),
    "tests/statistical/test_draws.py": ("-blb-", "-wow-"),
}
"""Parts of names of the tests that look at the examples of the page."""
CHOSEN = "Bag or ThreeStage or blb or wow or Halves or demo_hiding"
SCHEME = "accounting/schemes/halves.py"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy in which all files of the page stand, and nothing else is changed."""
    place = copied(tmp_path_factory.mktemp("clone"))
    for name, text in FILES.items():
        path = place / "src/dpsub" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return place


def passed(top: Path, *chosen: str) -> list[str]:
    """Return the names of the tests that pass; any other outcome fails the test."""
    options = ("-v", "-m", "", "-p", "no:cacheprovider", "-k")
    said = ran(top, "-m", "pytest", *options, *chosen)
    assert not re.search(r"\b(SKIPPED|XFAIL)\b", said)
    return re.findall(r"^(tests/\S+::.*?) PASSED", said, flags=re.MULTILINE)


def test_the_page_shows_one_of_each_kind() -> None:
    assert {Path(name).parts[0] for name in FILES} == {"sampling", "accounting", "noise", "papers"}


def test_all_that_the_page_shows_keeps_the_contract(top: Path) -> None:
    found = passed(top, f"({CHOSEN} or logistic) and not adult", *SHOWN)
    for file, parts in SHOWN.items():
        for part in parts:
            assert any(name.startswith(file) and part in name for name in found), (file, part)
    assert len(found) > 80


def test_a_schedule_keeps_it_without_its_scheme(top: Path) -> None:
    scheme = top / "src/dpsub" / SCHEME
    scheme.unlink()
    try:
        found = passed(top, "Halves", "tests/conformance/test_schedules.py")
    finally:
        scheme.write_text(FILES[SCHEME], encoding="utf-8")
    # three that look at an epoch of each example, and one at the class
    assert len(found) == 3 * 2 + 1
