"""The samplers that docs/adding.md shows, each one file in a copy of the package: everything there
is works on them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.few import few
from tests.packaging.scratch import ROOT, copied, ran, tried

PAGE = (ROOT / "docs/adding.md").read_text(encoding="utf-8")
SAMPLERS = dict(
    re.findall(
        r"^```python\n# "
        r"src/dpsub/(sampling/\w+\.py)\n(.*?)^```$",
        PAGE,
        flags=re.M | re.S,
    )
)
SIZES = {"wow": "--n 60 --a 12 --b 8 --m 4", "blb": "--n 100 --b 10"}
SOLVED = {"wow": "--n 60 --a 12 --b 8", "blb": "--n 100"}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy in which the files of the page stand, and nothing else is changed."""
    top = copied(tmp_path_factory.mktemp("clone"))
    for name, text in SAMPLERS.items():
        (top / "src/dpsub" / name).write_text(text, encoding="utf-8")
    return top


def answer(scratch: Path, command: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(
        ran(scratch, "-m", "dpsub", *shlex.split(command), "--json")
    )
    return found


def test_the_page_shows_samplers() -> None:
    assert {"sampling/little_bootstraps.py", "sampling/three_stages.py"} <= set(SAMPLERS)


@pytest.mark.parametrize("name", few(SIZES))
def test_the_command_line_answers(scratch: Path, name: str) -> None:
    law = answer(scratch, f"law {name} {SIZES[name]}")
    assert 0 < float(str(law["eta"])) < 0.1 + 1e-9
    noise = "--noise-multiplier 60 --steps 20"
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


def test_the_contract_of_samplers_holds(scratch: Path) -> None:
    theirs = "(Bag or ThreeStage or blb or wow or every_sampler) and not papers"
    tests = ("tests/conformance/test_samplers.py", "tests/statistical/test_draws.py")
    out = ran(scratch, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", theirs, *tests)
    assert int(re.findall(r"(\d+) passed", out)[0]) >= 35


TABLE = """
from dpsub import sampling
from dpsub.reproduce import experiments
from dpsub.reproduce.figures import style

experiment = experiments.REGISTRY.get("distinct_counts")()
settings = {"draws": 20, "samplers": ["poisson", "blb"], "settings": [{"n": 400, "m": 20, "b": 40}]}
records = experiment.compute(settings, variant="stated", replicates=range(2), seed=1)
expected = sampling.of_sizes("blb", n=400, b=40).expected_distinct(400)
assert set(records.loc[records["sampler"] == "blb", "law_mean"]) == {expected}
for name in ("blb", "wow"):
    assert style.sampler_style(name)["color"] == sampling.REGISTRY.get(name).colour
"""
SWEEP = """
seed: 1
results_dir: results
job_minutes: 1
memory_mib: 1000
sweep:
  - {experiment: linear_regression, variants: [stated], samplers: [wor, blb],
     replicates: 2, iterations: 16}
"""


def test_an_experiment_and_a_sweep_take_it(scratch: Path) -> None:
    ran(scratch, "-c", TABLE)
    (scratch / "sweep.yaml").write_text(SWEEP, encoding="utf-8")
    plan = answer(scratch, "plan sweep.yaml --cores 1")
    assert plan["cells"] == 4  # two samplers, two targets
