"""The cost of the first stage by its size: the order that docs/proofs/what_fails.md proves, and
pages that name the size."""

from __future__ import annotations

import csv
import itertools
import math
import re

import numpy as np
import pytest

from dpsub import sampling
from dpsub.papers.must.settings import SizesOfFigureS2
from tests.documentation.console import ROOT

N, M, S = 30, 6, 2.0
SIZES = (1, 2, 3, 5, 10, 20, 30)


def law(sampler: str, **sizes: int) -> np.ndarray:
    """Return the probabilities of 0 to m copies of a record."""
    drawn = sampling.of_sizes(sampler, n=N, m=M, **sizes)
    found = np.exp(drawn.multiplicity_law(N).log_pmf)
    return np.pad(found, (0, M + 1 - len(found)))


def moment(probabilities: np.ndarray, order: int) -> float:
    """Return the mean of exp((4/s^2) sum over i < j of L_i L_j), enumerated: e to the power of
    (order - 1) times the Renyi divergence."""
    total = 0.0
    for copies in itertools.product(range(M + 1), repeat=order):
        pairs = sum(one * other for one, other in itertools.combinations(copies, 2))
        total += math.prod(probabilities[list(copies)]) * math.exp(4 * pairs / S**2)
    return total


def falls(values: list[float]) -> bool:
    return all(after <= before * (1 + 1e-12) for before, after in itertools.pairwise(values))


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("sampler", ["must_ow", "must_ww"])
def test_a_larger_first_stage_costs_less_and_never_less_than_none(sampler: str, order: int) -> None:
    staged = [moment(law(sampler, b=b), order) for b in SIZES]
    wr, wor = (moment(law(name), order) for name in ("wr", "wor"))
    assert falls([*staged, wr, wor]) and staged[0] > 2 * wr
    if sampler == "must_ow":
        assert staged[-1] == pytest.approx(wr, rel=1e-12)
    # the chance to be drawn has the opposite order: an order by it would be false
    assert not falls([1 - law(sampler, b=b)[0] for b in SIZES])


@pytest.mark.parametrize("order", [2, 3])
def test_the_moment_is_that_of_the_densities(order: int) -> None:
    probabilities = law("must_ow", b=3)
    x = np.linspace(-15, 60, 200_001)
    ratio = sum(
        p * np.exp((2 * l * x - 2 * l**2) / S**2)
        for l, p in enumerate(probabilities)  # noqa: E741
    )
    density = np.exp(-((x / S) ** 2) / 2) / (S * math.sqrt(2 * math.pi))
    assert np.trapezoid(density * ratio**order, x) == pytest.approx(
        moment(probabilities, order), rel=1e-9
    )


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/found/must.md"])
def test_pages_name_the_first_stage_of_the_picture(page: str) -> None:
    """Each page with the picture gives its b near it, and so does every table of noise of MUST."""
    b = f"b = {SizesOfFigureS2().b}"
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    # the file itself, or its copy for the paper's page
    pictures = [found.end() for found in re.finditer(r"privacy_by_steps\.png", text)]
    assert pictures and all(b in text[at : at + 900] for at in pictures)
    for sentence in re.findall(r"[^.|]*?noise multiplier that is proved[^.|]*", text):
        assert b in sentence


def test_the_curves_of_the_first_pages_say_their_first_stage() -> None:
    with (ROOT / "docs/pictures/privacy_by_steps.csv").open(encoding="utf-8") as file:
        sizes = {(row["sampler"][:4] == "must", row["b"]) for row in csv.DictReader(file)}
    assert sizes == {(True, str(SizesOfFigureS2().b)), (False, "0")}
