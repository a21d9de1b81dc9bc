"""Judge packages at versions that are not recorded yet, and say what changed.

    python workflow/scripts/judge_packages.py --environments FOLDER [PACKAGE ...]

PACKAGE is the name of a file in `packages`; by default all are looked at. The newest release, or
the newest commit of a package that is asked by commit, is put the questions of the study in an
environment of its own below FOLDER, if it is not recorded. Its answers and those of the newest
recorded version are judged by the same two bounds. Nothing is recorded: that is `ask_packages`.

The exit status is 1 if a verdict changed, an answer is missing or a package cannot be asked.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from dpsub.papers.practice import ask_packages
from dpsub.papers.practice.experiments import ends_of, judged_answers, recorded_for
from dpsub.papers.practice.numbers import release_in_words
from dpsub.papers.practice.packages import Package, packages
from dpsub.papers.practice.settings import QUESTIONS, AccountingQuestion
from dpsub.reproduce.labels import WORDS
from dpsub.reproduce.published import key_text

VERDICTS = {1.0: "proved", 0.0: "refuted"}
MOVED = 1e-5
"""Relative distance of two answers from which on they are called different."""


@dataclass(frozen=True)
class JudgedAnswer:
    """One answer and its verdict."""

    epsilon: float
    verdict: str

    def __str__(self) -> str:
        return f"{self.epsilon:.6g} ({self.verdict})"


@dataclass(frozen=True)
class Change:
    """One question to one accountant whose answers, if any, differ between two versions."""

    question: AccountingQuestion
    accountant: str
    before: JudgedAnswer | None
    after: JudgedAnswer | None

    @property
    def matters(self) -> bool:
        """Whether the verdict is another one, or the answer is gone."""
        if self.after is None:
            return True
        return self.before is not None and self.before.verdict != self.after.verdict

    def __str__(self) -> str:
        fields = self.question.model_dump()
        setting: dict[Hashable, str] = {name: key_text(value) for name, value in fields.items()}
        # in words as on the pages
        released = f"{release_in_words(setting)}, noise multiplier {setting['noise_multiplier']}"
        before, after = (str(one or "no answer") for one in (self.before, self.after))
        relation = WORDS[self.question.adjacency]
        return f"{self.accountant}, {released}, {relation}: {before} -> {after}"


def newest(package: Package) -> tuple[str, str]:
    """Return the newest version of a package and, where it is no release, its commit."""
    if package.commits:
        command = ["git", "ls-remote", package.repository, "HEAD"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        commit = done.stdout.split()[0]
        known = {commit: version for version, commit in package.commits.items()}
        return known.get(commit, commit[:7]), commit
    command = [package.python, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps"]
    command += ["--ignore-installed", "--report", "-", package.distribution]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (found,) = json.loads(done.stdout)["install"]
    return str(found["metadata"]["version"]), ""


def at(package: Package, version: str, commit: str) -> Package:
    """Return a package as it is asked at one version, by the accountants of its newest recorded
    one."""
    accountants = tuple(
        replace(one, versions=(version,))
        for one in package.accountants
        if package.versions[0] in package.versions_of(one)
    )
    commits = {version: commit} if commit else {}
    return replace(package, versions=(version,), accountants=accountants, commits=commits)


def changes(
    before: Iterable[Mapping[str, str]], after: Iterable[Mapping[str, str]]
) -> Iterator[Change]:
    """Yield the differences of two versions' answers, given as they are recorded."""
    told = pd.DataFrame(
        [{**row, "version": "before"} for row in before]
        + [{**row, "version": "after"} for row in after]
    )
    for question in QUESTIONS:
        both = recorded_for(question, told)
        if both.empty:
            continue
        ends = ends_of(question, quick=True, finest=1e-5)
        judged = {
            (answer["accountant"], answer["version"]): JudgedAnswer(
                answer["claimed"], VERDICTS.get(answer["holds"], "open")
            )
            for answer in judged_answers(both, ends, "version")
        }
        for accountant in dict.fromkeys(name for name, _ in judged):
            old, new = (judged.get((accountant, which)) for which in ("before", "after"))
            change = Change(question, accountant, old, new)
            if old and new and abs(new.epsilon - old.epsilon) <= MOVED * old.epsilon:
                # The verdicts of answers that agree to the last digits may differ by rounding.
                continue
            yield change


def judged_anew(package: Package, folder: Path) -> list[Change] | None:
    """Return what changed in the newest version of a package; None if it is recorded."""
    version, commit = newest(package)
    if version in package.versions:
        return None
    last = f"v{package.versions[0]}"
    names = {one.name for one in package.accountants}
    known = [
        row
        for row in ask_packages.recorded()
        if row["accountant"] in names and row["version"] == last
    ]
    new = at(package, version, commit)
    python = ask_packages.environment(new, version, folder)
    return list(changes(known, ask_packages.rows(new, version, python)))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="PACKAGE", choices=[[], *packages()])
    parser.add_argument("--environments", type=Path, required=True, metavar="FOLDER")
    arguments = parser.parse_args()
    status = 0
    for name in arguments.names or packages():
        package = packages()[name]
        version = package.versions[0]
        try:
            found = judged_anew(package, arguments.environments)
        except subprocess.CalledProcessError as problem:
            # One package that cannot be installed must not hide the others.
            print(f"{package.title}: cannot be asked, {problem}")
            status = 1
            continue
        if found is None:
            print(f"{package.title}: {version} is the newest version, and recorded")
            continue
        print(f"{package.title}: {len(found)} answers differ from those of {version}")
        for change in found:
            print(f"  {change}")
            status = max(status, int(change.matters))
    return status
