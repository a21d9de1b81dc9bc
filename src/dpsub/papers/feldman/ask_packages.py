"""Ask both packages about the questions of the settings, and record their answers.

    python -m dpsub.papers.feldman.ask_packages --environments FOLDER

Each package is installed by pip into an environment of its own below FOLDER, which is kept for the
next time. An infinite answer says nothing and is left out.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from dpsub.papers.feldman.settings import (
    ASKED,
    LOWER,
    PLD_ACCOUNTING,
    QUESTIONS,
    RANDOM_ALLOCATION,
)
from dpsub.reproduce import recording

PUBLISHED = Path(__file__).parent / "published/answers.csv"
KEYS = ("package", "method", *ASKED)
# Each runs in the environment of its package: `t`, `k`, `noise`, `delta` in, `answers` out.
CODE = {
    RANDOM_ALLOCATION: """
from random_allocation import random_allocation_scheme as scheme
parameters = scheme.PrivacyParams(
    sigma=noise, num_steps=t, num_selected=k, num_epochs=1, delta=delta
)
config = scheme.SchemeConfig(allocation_direct_alpha_orders=list(range(2, 61)))
answers = {
    "analytic": scheme.allocation_epsilon_analytic(parameters, config),
    "recursive": scheme.allocation_epsilon_recursive(parameters, config),
    "direct": scheme.allocation_epsilon_direct(parameters, config),
}
# these two are of 1 of t steps
if k == 1:
    answers["decomposition"] = scheme.allocation_epsilon_decomposition(parameters, config)
    answers["lower"] = scheme.allocation_epsilon_lower_bound(parameters, config)
""",
    PLD_ACCOUNTING: """
from PLD_accounting import gaussian_allocation_epsilon_range
answers = {}
# others take many minutes each
if k * t <= 2048:
    answers["upper"], answers["lower"] = gaussian_allocation_epsilon_range(
        sigma=noise, num_steps=t, num_selected=k, delta=delta
    )
""",
}
ASK = """
import contextlib, json, sys, warnings
warnings.simplefilter("ignore")
code, questions = json.load(sys.stdin)
found = []
for names in questions:
    with contextlib.redirect_stdout(sys.stderr):
        exec(code, names)
    found.append({method: float(epsilon) for method, epsilon in names["answers"].items()})
json.dump(found, sys.stdout)
"""


def environment(package: str, folder: Path) -> Path:
    """Return the Python of an environment with this package, which is made if need be."""
    home = folder / package.replace(" ", "-")
    python = home / "bin/python"
    if not home.exists():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        wanted = package.replace(" ", "==")
        subprocess.run([python, "-m", "pip", "install", "--quiet", wanted], check=True)
    return python


def rows(package: str, code: str, python: Path | str) -> Iterator[dict[str, str]]:
    """Yield the answers of one package, as they are recorded."""
    questions = [question.model_dump() for question in QUESTIONS]
    done = subprocess.run(
        [python, "-c", ASK],
        input=json.dumps([code, questions]),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    for question, answers in zip(questions, json.loads(done.stdout), strict=True):
        for method, epsilon in answers.items():
            if not math.isfinite(epsilon):
                continue
            several, is_lower = question["k"] > 1, method == LOWER
            yield recording.row(
                KEYS,
                question,
                recording.rounded(epsilon, is_lower=is_lower),
                package=package,
                method=method,
                erratum="FS1" if several and is_lower and package == PLD_ACCOUNTING else "",
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--environments", type=Path, required=True, metavar="FOLDER")
    folder = parser.parse_args().environments
    answers = [
        answer
        for package, code in CODE.items()
        for answer in rows(package, code, environment(package, folder))
    ]
    recording.write(PUBLISHED, KEYS, answers)


if __name__ == "__main__":
    main()
