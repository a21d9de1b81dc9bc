"""Numbers in the prose of pages that no command next to them prints are computed here."""

from __future__ import annotations

import math
import re

import pytest

import dpsub
from dpsub.accounting.engine.fourier import ComposedLoss
from dpsub.importance.approximate import NormPair
from dpsub.recycling import GaussianKernel, LaplaceKernel, Recycled, paper
from dpsub.recycling.choice import best_recycler, plain_noise, true_delta
from dpsub.recycling.composition import account
from tests.documentation.console import ROOT

DELTA = 1e-5


def numbers(page: str, begin: str, end: str) -> list[float]:
    """Return the numbers of a page between two texts."""
    text = " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())
    assert text.count(begin) == 1, begin
    part = text.partition(begin)[2].partition(end)[0]
    return [float(one) for one in re.findall(r"(?<![\w.])\d*\.?\d+(?![\w]|\.\d)", part)]


def shown(number: float, value: float, digits: int) -> bool:
    """Whether a number shows a value in so many digits, rounded to either side."""
    place = 10.0 ** (math.floor(math.log10(abs(value))) + 1 - digits)
    return abs(number - value) < place * (1 + 1e-9)


@pytest.mark.slow
def test_the_table_of_shuffled_batches_in_the_tutorial() -> None:
    stated = numbers("tutorial.md", "shuffled: proved | |---|---|---|---| |", "With little noise")
    rows = [stated[start : start + 4] for start in range(0, len(stated), 4)]
    assert len(rows) == 5 and len(rows[-1]) == 4
    for noise, poisson, attained, proved in rows:
        asked = {"noise_multiplier": noise, "delta": DELTA, "adjacency": "zero_out"}
        ends = dpsub.account(dpsub.Shuffle(600), 60_000, epochs=10, **asked)
        assert shown(poisson, dpsub.account(dpsub.Poisson(0.01), steps=1000, **asked).upper, 3)
        assert shown(attained, ends.lower, 3) and attained <= ends.lower
        assert shown(proved, ends.upper, 3) and proved >= ends.upper


def test_recycled_noise_over_many_releases() -> None:
    law = paper.algorithm2(GaussianKernel, 1.0, DELTA, 1.0, 1.0).law
    plain = plain_noise(GaussianKernel, 1.0, DELTA, 1.0, 1.0).law
    best = best_recycler(GaussianKernel, 1.0, DELTA, 1.0, 1.0).law

    def composed(law: Recycled, times: int) -> float:
        return account(law, times, delta=DELTA, width=1e-3).upper

    found = numbers("recycling.md", "the composed epsilon is", "whereas for Gaussian noise")
    for number, times in zip(found, (1, 10, 100), strict=True):
        assert shown(number, composed(law, times), 4), times
    for number, times in zip(
        numbers("recycling.md", "each time it is", ":"), (1, 10, 100), strict=True
    ):
        assert shown(number, composed(plain, times), 4), times
    found = numbers("recycling.md", "has composed epsilon", "after a hundred")
    for number, times in zip(found, (10, 100), strict=True):
        assert shown(number, composed(best, times), 3), times


def test_the_factor_of_theorem_2() -> None:
    law = Recycled.within(
        LaplaceKernel.calibrated(0.05, 0.1, 1.0), paper.baseline_rate(10.05, 0.05), 0.016, 1.0
    )
    (*_, stated) = numbers("recycling.md", "bound .016: ", " delta)")
    assert shown(stated, true_delta(law, 10.05) / 0.1, 3)


def test_sums_of_importance_sampling() -> None:
    stated = numbers("importance.md", "Sums alone, T = 10, 3.0 pure, δ = 1e-6:", ", each proved")
    for epsilon, d in zip(stated[::2], stated[1::2], strict=True):
        law = NormPair(int(d), 0.3).upper_law(0.3 / 400)
        assert shown(epsilon, ComposedLoss([law], [10]).epsilon(1e-6), 4), d


def test_once_or_in_every_round() -> None:
    def loss(unsampled: float) -> float:
        return math.log1p(0.1 * math.expm1(unsampled / 0.1))

    short = numbers("importance.md", "A = 0.5, q = 0.1, T = 10 has", ". Once")
    long = numbers("importance.md", "A = 30 has", ".")
    for unsampled, digits, (resampled, once) in ((0.5, 2, short), (30.0, 3, long)):
        assert shown(resampled, 10 * loss(unsampled / 10), digits), unsampled
        assert shown(once, loss(unsampled), 3), unsampled
