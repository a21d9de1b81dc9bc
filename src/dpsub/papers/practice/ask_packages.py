"""Ask packages about the questions of the study, and record their answers by version.

    python -m dpsub.papers.practice.ask_packages --environments FOLDER [PACKAGE ...]

PACKAGE is the name of a file in `packages`; by default all are asked. Each version is installed by
pip into an environment of its own below FOLDER, which is kept for the next time; one that is no
release is checked out by git. Recorded answers of other packages stay; with --only VERSION so do
those of other versions. Questions that a package has no method for, refuses, or answers by no
finite number are left out, and listed on the standard error.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from dpsub.papers.practice.packages import Package, asked, packages
from dpsub.papers.practice.settings import LOWER, PACKAGE_KEYS, QUESTIONS
from dpsub.reproduce import recording
from dpsub.reproduce.job import in_one_sentence

PUBLISHED = Path(__file__).parent / "published/packages.csv"
# Runs in the environment of a package, which need not have anything else.
ANSWER = """
import contextlib, json, sys, warnings
warnings.simplefilter("ignore")
answers = []
for code in json.load(sys.stdin):
    try:
        names = {}
        with contextlib.redirect_stdout(sys.stderr):
            exec(code, names)
        answers.append([float(names["epsilon"]), ""])
    except Exception as error:
        answers.append([None, f"{type(error).__name__}: {error}"])
json.dump(answers, sys.stdout)
"""


def environment(package: Package, version: str, folder: Path) -> Path:
    """Return the Python of an environment with this version, which is made if need be."""
    home = folder / f"{package.distribution}-{version}"
    python = home / "bin/python"
    if not home.exists():
        subprocess.run([package.python, "-m", "venv", home], check=True)
        commit = package.commits.get(version)
        released = [] if commit else [f"{package.distribution}=={version}"]
        if wanted := [*released, *package.requires]:
            subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
        if commit:
            source = check_out(package.repository, commit, home / "source")
            (packages_folder,) = home.glob("lib/python*/site-packages")
            # imported from where it is, as if it was installed
            (packages_folder / "source.pth").write_text(f"{source.resolve()}\n", encoding="utf-8")
    return python


def check_out(repository: str, commit: str, folder: Path) -> Path:
    """Return a folder with the files of a repository at a commit."""
    clone = ["git", "clone", "--quiet", "--no-checkout", repository, str(folder)]
    subprocess.run(clone, check=True)
    subprocess.run(["git", "-C", folder, "checkout", "--quiet", "--detach", commit], check=True)
    return folder


def answered(python: Path | str, codes: list[str]) -> list[tuple[float | None, str]]:
    """Return the epsilon of each code, or None and why, as one run of an interpreter gives them."""
    done = subprocess.run(
        [python, "-c", ANSWER], input=json.dumps(codes), capture_output=True, text=True, check=True
    )
    return [(epsilon, why) for epsilon, why in json.loads(done.stdout)]


def rows(package: Package, version: str, python: Path | str) -> Iterator[dict[str, str]]:
    """Yield the answers of one version of a package, as they are recorded."""
    put = [
        (question, accountant, way)
        for question in QUESTIONS
        for accountant in package.accountants
        if version in package.versions_of(accountant) and (way := accountant.way(question))
    ]
    codes = [asked(way.code, question) for question, _, way in put]
    found = answered(python, codes)
    for (question, accountant, way), (epsilon, why) in zip(put, found, strict=True):
        # An accountant that gives up has claimed nothing that could be judged.
        if epsilon is None or not math.isfinite(epsilon):
            print(f"{accountant.name} {version}, {question}: {why or epsilon}", file=sys.stderr)
            continue
        yield recording.row(
            PACKAGE_KEYS,
            question.given,
            recording.rounded(epsilon, is_lower=accountant.answer == LOWER),
            accountant=accountant.name,
            # not a number, of which 2 and 2.0 would be one key
            version=f"v{version}",
            erratum=way.erratum,
            note=accountant.answer,
        )


def recorded() -> list[dict[str, str]]:
    """Return the recorded answers."""
    if not PUBLISHED.exists():
        return []
    with PUBLISHED.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="PACKAGE", choices=[[], *packages()])
    parser.add_argument("--environments", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--only", metavar="VERSION", help="ask this version of the packages alone")
    arguments = parser.parse_args()
    asked_now = {
        (name, version)
        for name in arguments.names or list(packages())
        for version in packages()[name].versions
        if arguments.only in (None, version)
    }
    # in the order of the files, accountants and versions
    order = {
        (accountant.name, f"v{version}"): (name, version)
        for name, package in packages().items()
        for accountant in package.accountants
        for version in package.versions_of(accountant)
    }
    places = list(order)
    known = [row for row in recorded() if (row["accountant"], row["version"]) in order]
    answers = [row for row in known if order[row["accountant"], row["version"]] not in asked_now]
    for name, version in sorted(asked_now):
        python = environment(packages()[name], version, arguments.environments)
        answers.extend(rows(packages()[name], version, python))
    answers.sort(key=lambda row: places.index((row["accountant"], row["version"])))
    recording.write(PUBLISHED, PACKAGE_KEYS, answers)


if __name__ == "__main__":
    with in_one_sentence():
        main()
