"""Renew the table of docs/how-to/coming-from.md: one question, put to dpsub and to other
accountants.

    python benchmarks/compare_accountants.py

Needs the group `test`, which brings dp-accounting and prv-accountant; takes half a minute.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpsub.cli import main as dpsub
from dpsub.cli.answers import down, near, up
from dpsub.errors import DataError

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/coming-from.md"
BEGIN, END = (
    ("<!-- answers: made by benchmarks/compare_accountants.py -->"),
    "<!-- end of answers -->",
)

N, BATCH, EPOCHS, SIGMA, DELTA, EPSILON = 60_000, 256, 60, 1.1, 1 / 60_000, 2
RATE, STEPS = BATCH / N, math.ceil(EPOCHS * N / BATCH)
COMMAND = f"account poisson --n {N} --batch-size {BATCH} --epochs {EPOCHS} --sigma {SIGMA}"
QUESTIONS = {
    "ε at δ = 1/60000": "--delta 1/60000",
    "δ at ε = 2": "--epsilon 2",
    "ε at δ = 1/60000, one record replaced": "--delta 1/60000 --adjacency substitute",
}
"""Heads of the columns, and what each adds to the command."""
OPACUS_ORDERS = [*(1 + x / 10 for x in range(1, 100)), *range(12, 64)]


def ours(question: str) -> str:
    """Return the two ends that the command line gives, rounded outwards."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = dpsub([*COMMAND.split(), *question.split(), "--json"])
    found = json.loads(out.getvalue())
    if status:
        raise DataError(f"dpsub must answer {question!r}, got {found}")
    return f"{down(found['lower'])} to {up(found['upper'])}"


def privacy_loss(question: str) -> str:
    """Return epsilon of dp-accounting by privacy loss distributions, pessimistic."""
    import dp_accounting
    from dp_accounting import pld

    relation = dp_accounting.NeighboringRelation
    replaced = relation.REPLACE_ONE if "substitute" in question else relation.ADD_OR_REMOVE_ONE
    return _asked(pld.PLDAccountant(replaced), question)


def renyi(question: str) -> str:
    """Return epsilon of dp-accounting by Rényi divergences at the orders of Opacus, which uses the
    same formula."""
    from dp_accounting import rdp

    return "-" if "substitute" in question else _asked(rdp.RdpAccountant(OPACUS_ORDERS), question)


def prv(question: str) -> str:
    """Return prv-accountant's lower bound, estimate and upper bound."""
    from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

    if "substitute" in question:
        return "-"
    mechanism = PoissonSubsampledGaussianMechanism(
        sampling_probability=RATE, noise_multiplier=SIGMA
    )
    accountant = PRVAccountant(
        prvs=[mechanism], max_self_compositions=[STEPS], eps_error=0.01, delta_error=1e-10
    )
    ask, given = (
        (accountant.compute_epsilon, DELTA)
        if "--delta" in question
        else (accountant.compute_delta, EPSILON)
    )
    lower, estimate, upper = ask(given, [STEPS])
    return f"{near(estimate)}, in {down(lower)} to {up(upper)}"


ANSWERS: dict[str, Callable[[str], str]] = {
    "dpsub": ours,
    "dp-accounting, PLD": privacy_loss,
    'dp-accounting, RDP; Opacus, `accountant="rdp"`': renyi,
    'prv-accountant; Opacus, `accountant="prv"`': prv,
}


def _asked(accountant: Any, question: str) -> str:
    import dp_accounting

    release = dp_accounting.PoissonSampledDpEvent(RATE, dp_accounting.GaussianDpEvent(SIGMA))
    accountant.compose(dp_accounting.SelfComposedDpEvent(release, STEPS))
    return near(
        accountant.get_epsilon(DELTA) if "--delta" in question else accountant.get_delta(EPSILON)
    )


def row(name: str) -> str:
    """Return the line of the table for one accountant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (
            "| "
            + " | ".join([name, *(ANSWERS[name](question) for question in QUESTIONS.values())])
            + " |"
        )


def renewed(page: str) -> str:
    """Return the page with the answers of all accountants between the markers.

    Raises
    ------
    DataError
        If the page has no such markers.
    """
    between = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", flags=re.DOTALL)
    if not between.search(page):
        raise DataError(
            f"the page must have the lines {BEGIN} and {END}, got none; put them where "
            "the table goes"
        )
    head = "| | " + " | ".join(QUESTIONS) + " |"
    table = [BEGIN, "", head, "|---" * (len(QUESTIONS) + 1) + "|", *map(row, ANSWERS), "", END]
    return between.sub(lambda _: "\n".join(table), page)


def main() -> None:
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
