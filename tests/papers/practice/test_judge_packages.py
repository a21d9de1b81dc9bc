"""A version of a package that is not recorded is asked, judged, and compared with the last one."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dpsub.papers.practice import ask_packages, judge_packages
from dpsub.papers.practice.judge_packages import Change, at, changes, judged_anew, newest
from dpsub.papers.practice.packages import Accountant, Package, Way, packages
from dpsub.papers.practice.settings import QUESTIONS, UPPER

KINDS = ("poisson gaussian add_remove", "all gaussian add_remove")
# Opacus' questions, so that the answers of its accountant are the recorded ones
OPACUS = packages()["opacus"]
NAME = "Opacus RDP"


def fake(code: str, kinds: tuple[str, ...] = KINDS) -> Package:
    """Return a package with one accountant, that of Opacus, which runs this code."""
    return replace(OPACUS, accountants=(Accountant(NAME, UPPER, (Way(kinds, code),)),))


def answers(code: str, kinds: tuple[str, ...] = KINDS) -> list[dict[str, str]]:
    package = at(fake(code, kinds), "9.0", "")
    return list(ask_packages.rows(package, "9.0", sys.executable))


def verdicts(found: list[Change]) -> set[tuple[str, str]]:
    return {
        (
            change.before.verdict if change.before else "",
            change.after.verdict if change.after else "",
        )
        for change in found
    }


def test_a_smaller_answer_is_refuted_and_a_larger_one_only_told() -> None:
    before = answers("epsilon = 30")
    smaller, larger = (list(changes(before, answers(f"epsilon = {e}"))) for e in (0.125, 31))
    assert len(smaller) == len(larger) == len(before) > 10
    assert verdicts(smaller) == {("proved", "refuted")} and verdicts(larger) == {("proved",) * 2}
    assert all(change.matters for change in smaller)
    assert not any(change.matters for change in larger)
    assert list(changes(before, before)) == []
    (first,) = [one for one in smaller if one.question == QUESTIONS[0]]
    assert str(first) == (
        "Opacus RDP, 50 Poisson samples at rate 0.2, noise multiplier 3, add/remove: "
        "30 (proved) -> 0.125 (refuted)"
    )


def test_an_answer_that_is_gone_matters_and_a_new_one_does_not() -> None:
    some, all_kinds = answers("epsilon = 30", KINDS[:1]), answers("epsilon = 30")
    gone, new = list(changes(all_kinds, some)), list(changes(some, all_kinds))
    assert verdicts(gone) == {("proved", "")} and all(change.matters for change in gone)
    assert verdicts(new) == {("", "proved")} and not any(change.matters for change in new)
    assert str(gone[0]).endswith("30 (proved) -> no answer")


@pytest.mark.parametrize("known", [True, False])
def test_only_a_version_that_is_not_recorded_is_asked(
    known: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    package = fake("epsilon = 0.125")
    version = package.versions[0] if known else "9.0"
    monkeypatch.setattr(judge_packages, "newest", lambda package: (version, ""))
    monkeypatch.setattr(judge_packages, "packages", lambda: {"fake": package})
    monkeypatch.setattr(ask_packages, "environment", lambda *given: sys.executable)
    words = ["judge_packages", "--environments", str(tmp_path), "fake"]
    monkeypatch.setattr(sys, "argv", words)
    assert judge_packages.main() == (0 if known else 1)
    told = capsys.readouterr().out
    if known:
        assert told == f"Opacus: {version} is the newest version, and recorded\n"
    else:
        first, *lines = told.splitlines()
        assert first == f"Opacus: {len(lines)} answers differ from those of {OPACUS.versions[0]}"
        assert lines and all(line.endswith("-> 0.125 (refuted)") for line in lines)


def committed(folder: Path, text: str) -> str:
    """Commit a module to the repository of a folder, and return the commit."""
    (folder / "fake_accountant.py").write_text(text, encoding="utf-8")
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "change"]):
        subprocess.run(["git", "-C", folder, *command], check=True)
    done = subprocess.run(
        ["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.slow
def test_a_package_without_releases_is_asked_at_a_commit(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    first = committed(repository, "answer = 30\n")
    package = replace(
        fake("from fake_accountant import answer\nepsilon = answer"),
        python=sys.executable,
        versions=(first[:7],),
        requires=(),
        repository=str(repository),
        commits={first[:7]: first},
    )
    assert newest(package) == (first[:7], first)
    assert judged_anew(package, tmp_path) is None
    second = committed(repository, "answer = 0.125\n")
    assert newest(package) == (second[:7], second)
    new = at(package, *newest(package))
    folder = tmp_path / "environments"
    pythons = [ask_packages.environment(one, one.versions[0], folder) for one in (package, new)]
    old_answers, new_answers = (
        list(ask_packages.rows(one, one.versions[0], python))
        for one, python in zip((package, new), pythons, strict=True)
    )
    assert {row["printed"] for row in old_answers} == {"30.0"}
    assert {row["printed"] for row in new_answers} == {"0.125"}


def test_accountants_of_older_versions_are_not_asked_at_a_new_one() -> None:
    package = packages()["jax_privacy"]
    named = {one.name for one in at(package, "9.0", "").accountants}
    assert "JAX Privacy events RDP" in named and "JAX Privacy RDP" not in named
