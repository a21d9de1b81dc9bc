"""The samplers that docs/adding.md shows, each one file in a copy of the package, and a schedule
with the scheme that has its proof: all commands and experiments work on them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.few import few
from tests.packaging.scratch import ROOT, copied, ran, tried

PAGE = (ROOT / "docs/adding.md").read_text(encoding="utf-8")
FILES = dict(
    re.findall(
        r"^```python\n# "
        r"src/dpsub/((?:sampling|accounting/schemes)/\w+\.py)\n(.*?)^```$",
        PAGE,
        flags=re.M | re.S,
    )
)
SIZES = {"wow": "--n 60 --a 12 --b 8 --m 4", "blb": "--n 100 --b 10"}
SOLVED = {"wow": "--n 60 --a 12 --b 8", "blb": "--n 100"}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_the_page(tmp_path_factory.mktemp("clone"))


def with_the_page(top: Path) -> Path:
    """Make a copy in which the files of the page stand, and nothing else is changed."""
    copied(top)
    for name, text in FILES.items():
        (top / "src/dpsub" / name).write_text(text, encoding="utf-8")
    return top


def answer(scratch: Path, command: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(
        ran(scratch, "-m", "dpsub", *shlex.split(command), "--json")
    )
    return found


def test_the_page_shows_samplers_and_a_scheme() -> None:
    samplers = {"sampling/little_bootstraps.py", "sampling/three_stages.py"}
    assert samplers | {"sampling/halves.py", "accounting/schemes/halves.py"} == set(FILES)


@pytest.mark.parametrize("name", few(SIZES, most=0, more=1))
def test_the_command_line_answers(scratch: Path, name: str) -> None:
    law = answer(scratch, f"law {name} {SIZES[name]}")
    assert 0 < float(str(law["eta"])) < 0.1 + 1e-9
    # answers that no clock ends
    noise = "--noise-multiplier 60 --steps 20 --quick --effort none"
    account = answer(scratch, f"account {name} {SIZES[name]} {noise} --delta 1e-6")
    assert 0 < float(str(account["lower"])) <= float(str(account["upper"])) < 20
    target = "--steps 1 --epsilon 3 --delta 1e-5"
    calibrated = answer(scratch, f"calibrate {name} {SIZES[name]} {target}")
    assert float(str(calibrated["noise_multiplier"])) > 0
    largest = answer(
        scratch, f"calibrate {name} {SOLVED[name]} --solve size --noise-multiplier 400 {target}"
    )
    assert int(str(largest["size"])) >= 1


@pytest.mark.parametrize("name", few(SIZES))
def test_a_missing_size_is_named_with_what_it_is_for(scratch: Path, name: str) -> None:
    first = SIZES[name].split()[2]
    done = tried(scratch, "-m", "dpsub", "law", name, "--n", "100")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{first} (size of the first stage)" in done.stderr and done.stderr.count("\n") == 1


SCHEME = """
import pytest
import dpsub
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.sampling import schemes
from dpsub.sampling.halves import Halves

with pytest.raises(UnsupportedError, match="steps of halves depend on one another"):
    dpsub.law(Halves(), 30)
noise = {"noise_multiplier": 1.0, "epochs": 2}
for adjacency in ("zero_out", "substitute"):
    question = {**noise, "epsilon": 1.0, "adjacency": adjacency}
    account = dpsub.account(Halves(), 30, **question)
    batches = dpsub.account(dpsub.Shuffle(15), 30, **question)
    assert account.kind == "bounds" and account.upper == batches.upper
    assert 0.5 * batches.lower < account.lower <= batches.lower * (1 + 1e-9)
    assert "halves are drawn afresh and secret" in account.conditions
    certificate = account.certificate()
    assert certificate["upper"]["forward"][0]["theorem"] == "19"
    assert certificate["lower"]["parts"][0]["data"]["filler"] == -1
    assert dpsub.audit(Halves(), 30, **question, draws=4000, seed=2).consistent
    found = dpsub.check(
        Halves(), 30, **noise, delta=1e-3, claimed_epsilon=0.1, adjacency=adjacency
    )
    assert found.verdict == "refuted"
with pytest.raises(UnsupportedError, match="under add_remove, where an extra record"):
    dpsub.account(Halves(), 30, **noise, epsilon=1.0, adjacency="add_remove")
target = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "zero_out"}
needed = dpsub.recommend(30, batch_size=15, epochs=1, **target, effort=None)
[halves] = [scheme for scheme in needed.schemes if scheme.name == "halves"]
[shuffle] = [scheme for scheme in needed.schemes if scheme.name == "shuffle"]
# shuffled batches have one more theorem, so that the search of their noise has other trials
assert abs(halves.noise_multiplier / shuffle.noise_multiplier - 1) < 3e-3
assert halves.every_epoch
assert (halves.steps, halves.largest_batch) == (2, 15)
with pytest.raises(ArgumentError, match="halves must have epochs of n / m steps"):
    schemes.scheme("halves", 30, m=10, epochs=1)
"""


@pytest.mark.slow
def test_a_scheme_is_one_file_more(scratch: Path) -> None:
    ran(scratch, "-c", SCHEME)
    account = answer(scratch, "account halves --n 30 --epochs 2 --noise-multiplier 1 --delta 1e-5")
    assert 0 < float(str(account["lower"])) < float(str(account["upper"]))


def test_a_schedule_without_a_scheme_is_refused_with_the_way_out(scratch: Path) -> None:
    scheme = scratch / "src/dpsub/accounting/schemes/halves.py"
    text = scheme.read_text(encoding="utf-8")
    scheme.unlink()
    try:
        asked = "account halves --n 30 --epochs 2 --noise-multiplier 1 --delta 1e-5"
        done = tried(scratch, "-m", "dpsub", *asked.split())
    finally:
        scheme.write_text(text, encoding="utf-8")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "no scheme in dpsub.accounting.schemes covers them" in done.stderr
