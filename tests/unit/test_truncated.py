"""Poisson samples cut to a largest size, against every sample of tiny data sets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.stats import norm

import dpsub
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.engine.privacy_events import Event
from dpsub.accounting.release import Release
from dpsub.accounting.schemes import case_of
from dpsub.accounting.schemes.truncated.cut_samples import CutSample, FilledSample
from dpsub.noise import GaussianProfile
from dpsub.relations import Relation
from dpsub.streams import stream
from tests.few import few

EPSILONS = (0.0, 0.5, 1.5)
QUADRATURE = 1e-4
"""Relative error of sums over a grid, whose integrands have kinks."""
OTHERS = {Relation.ADD_REMOVE: (), Relation.ZERO_OUT: (0.0,), Relation.SUBSTITUTE: (-1.0,)}
SIZES = [(3, 0.5, 1), (3, 0.5, 2), (4, 0.3, 2), (4, 0.8, 2), (2, 0.6, 1)]


def law_of_sum(values: Sequence[float], rate: float, most: int) -> dict[float, float]:
    """Return the law of the sum over a cut Poisson sample, by enumeration."""
    law: dict[float, float] = {}
    for size in range(len(values) + 1):
        for drawn in itertools.combinations(values, size):
            chance = rate**size * (1 - rate) ** (len(values) - size)
            kept = min(size, most)
            for sample in itertools.combinations(drawn, kept):
                total = round(sum(sample), 9)
                law[total] = law.get(total, 0.0) + chance / math.comb(size, kept)
    return law


def larger_divergence(
    first: dict[float, float], second: dict[float, float], s: float
) -> np.ndarray:
    """Return the larger direction of H at each of `EPSILONS`."""
    t = np.linspace(-6 - 9 * s, 6 + 9 * s, 4001)
    p, q = (
        sum(weight * norm.pdf(t, mean, s) for mean, weight in law.items())
        for law in (first, second)
    )
    a = np.exp(EPSILONS)[:, None]
    gains = np.maximum(p - a * q, 0).sum(axis=1), np.maximum(q - a * p, 0).sum(axis=1)
    return np.asarray(np.maximum(*gains) * (t[1] - t[0]))


def neighbours(
    relation: Relation, n: int, v: float, filler: float | Sequence[float]
) -> tuple[list[float], list[float]]:
    """Return data sets of n records, under add_remove n + 1 against n."""
    count = n if relation is Relation.ADD_REMOVE else n - 1
    others = [filler] * count if isinstance(filler, float) else list(filler)[:count]
    return [v, *others], [*OTHERS[relation], *others]


def cut(n: int, rate: float, most: int, relation: Relation, s: float) -> Event:
    """Return the event of one sample, from its scheme."""
    return case_of(Release(dpsub.TruncatedPoisson(rate, most), n, s), relation).event


def ends(
    n: int, rate: float, most: int, relation: Relation, s: float, epsilon: float
) -> tuple[float, float]:
    event = cut(n, rate, most, relation, s)
    return Composition([(event, 1)]).answer(Target(epsilon=epsilon, width=1e-3))[:2]


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("n", "rate", "most"), SIZES)
def test_every_sample_of_tiny_data_sets(relation: Relation, n: int, rate: float, most: int) -> None:
    """No data set exceeds the upper bound, in either direction, and one of the two that are named
    attains the lower."""
    s, found = 0.8, {}
    for v, *fillers in itertools.product((1.0, 0.4), *[(-1.0, 0.0, 1.0)] * n):
        pair = neighbours(relation, n, v, fillers)
        if tuple(pair[0]) not in found:
            found[tuple(pair[0])] = larger_divergence(
                *(law_of_sum(values, rate, most) for values in pair), s
            )
    named = [found[tuple(neighbours(relation, n, 1.0, filler)[0])] for filler in (0.0, -1.0)]
    for epsilon, most_found, attained in zip(
        EPSILONS, np.max(list(found.values()), axis=0), np.maximum(*named), strict=True
    ):
        lower, upper = ends(n, rate, most, relation, s, epsilon)
        assert most_found <= upper * (1 + QUADRATURE)
        # vectors that are no numbers may attain more (tests/properties/test_told_sizes.py)
        assert attained * (1 - 3e-3) <= lower <= upper


def test_the_enumeration_would_find_faults() -> None:
    """The planted fault is the bound of uncut samples: a record that displaces another moves the
    sum by 2 C."""
    uncut = dpsub.account(dpsub.Poisson(0.8), noise_multiplier=0.8, epsilon=0.5)
    laws = [law_of_sum(values, 0.8, 2) for values in neighbours(Relation.ADD_REMOVE, 4, 1.0, -1.0)]
    assert larger_divergence(*laws, 0.8)[1] > uncut.upper * 1.01


@pytest.mark.parametrize(("n", "rate", "most"), [*SIZES, (40, 0.2, 9)])
def test_probabilities_of_one_record(n: int, rate: float, most: int) -> None:
    sample, others = CutSample(n, rate, most), np.arange(n)
    weights = np.array([math.comb(n - 1, k) * rate**k * (1 - rate) ** (n - 1 - k) for k in others])
    kept = np.minimum(1, most / (others + 1))
    assert sample.full == pytest.approx(weights[most:].sum(), rel=1e-12)
    assert sample.room == pytest.approx(weights[:most].sum(), rel=1e-12)
    assert sample.displacing == pytest.approx(rate * (weights * kept)[most:].sum(), rel=1e-12)
    assert sample.included == pytest.approx(rate * (weights * kept).sum(), rel=1e-12)


@pytest.mark.parametrize("relation", list(Relation))
def test_simulated_samples(relation: Relation) -> None:
    """Samples are drawn, cut and summed, with noise: the law of the sum is the one of the
    attack."""
    n, rate, most, s, runs = 60, 0.3, 18, 0.7, 200_000
    rng = stream(5, experiment="truncated", cell={}, role="noise", replicate=0)
    records = n + 1 if relation is Relation.ADD_REMOVE else n
    others = rng.binomial(records - 1, rate, runs)
    drawn = rng.random(runs) < rate
    kept = drawn & (rng.random(runs) < most / np.maximum(others + 1, most))
    size = np.minimum(others + drawn, most)
    cells = np.concatenate([[-np.inf], np.linspace(-2, 5, 15)])
    other = int(OTHERS[relation][0]) if OTHERS[relation] else None
    under_p, under_q = FilledSample(CutSample(records, rate, most), other, s).masses(cells)
    for value, (least, masses) in ((1, under_p), (other, under_q)):
        assert np.all((least <= masses) & (masses <= least * (1 + 1e-6) + 1e-9))
        total = -np.minimum(others, most) if value is None else -(size - kept) + value * kept
        noisy = total + most + s * rng.standard_normal(runs)
        counts = np.histogram(noisy, cells)[0]
        assert np.all(np.abs(counts - runs * masses) <= 5 * np.sqrt(runs * masses) + 1)


@pytest.mark.parametrize("relation", list(Relation))
def test_room_for_all_is_poisson_sampling(relation: Relation) -> None:
    event = cut(50, 0.1, 51, relation, 1.0)
    lower, upper, _ = Composition([(event, 20)]).answer(Target(delta=1e-5))
    known = dpsub.account(
        dpsub.Poisson(0.1), noise_multiplier=1.0, steps=20, delta=1e-5, adjacency=str(relation)
    )
    assert event.exact
    assert (lower, upper) == (known.lower, known.upper)


def test_samples_that_are_always_cut_are_those_of_fixed_size() -> None:
    event = cut(100, 1.0, 10, Relation.ADD_REMOVE, 1.0)
    lower, upper, _ = Composition([(event, 10)]).answer(Target(delta=1e-5))
    known = dpsub.account(
        dpsub.Wor(10), 100, noise_multiplier=1.0, steps=10, delta=1e-5, adjacency="add_remove"
    )
    assert lower == pytest.approx(known.lower, rel=2e-3)
    assert known.lower <= upper <= known.upper * 1.002


def test_seldom_cut_samples_are_nearly_poisson() -> None:
    """Both bounds meet Poisson's value where cuts are rarer than delta."""
    event = cut(10_000, 0.01, 180, Relation.ADD_REMOVE, 1.0)
    lower, upper, _ = Composition([(event, 100)]).answer(Target(delta=1e-5))
    known = dpsub.account(dpsub.Poisson(0.01), noise_multiplier=1.0, steps=100, delta=1e-5)
    assert known.lower * 0.99 < lower <= known.upper < upper * 1.002 < known.upper * 1.01


@pytest.mark.parametrize(
    ("n", "rate", "most", "s"),
    few([(10**9, 1e-3, 10**6, 0.5), (5, 0.5, 2, 1e9), (10**6, 0.5, 1, 0.1)], most=2),
)
def test_extreme_sizes_and_noise(n: int, rate: float, most: int, s: float) -> None:
    for relation in Relation:
        event = cut(n, rate, most, relation, s)
        lower, upper, _ = Composition([(event, 2)]).answer(Target(delta=1e-6, width=0.1))
        assert 0 <= lower <= upper < math.inf


def test_one_step_without_room_has_closed_forms() -> None:
    """All records are sampled and all but one cut: under zero_out the two directions differ, and
    the larger one is attained."""
    event = cut(4, 1.0, 1, Relation.SUBSTITUTE, 1.0)
    lower, upper, _ = Composition([(event, 1)]).answer(Target(epsilon=1.0))
    exact = 0.25 * float(GaussianProfile(2.0).delta(math.log(1 + (math.e - 1) / 0.25)))
    assert lower == pytest.approx(exact, rel=5e-3)
    assert exact <= upper <= exact * 1.005


@pytest.mark.parametrize("other", [None, 0, -1])
def test_both_laws_of_the_attack_are_bounded_from_both_sides(other: int | None) -> None:
    """In either direction the law that comes first must not exceed the truth, nor 1 as a whole."""
    whole = np.array([-np.inf, np.inf])
    for sample, apart in ((CutSample(3, 0.1, 1), 1e-8), (CutSample(2000, 0.05, 90), 1.0)):
        for (least,), (most,) in FilledSample(sample, other, 0.06).masses(whole):
            assert most - apart < least <= 1 <= most


def tail_and_displacing(n: int, rate: float, most: int) -> tuple[mpf, mpf]:
    """Return P(Binomial(n - 1, q) >= B), and the chance that the record takes a place given
    that."""
    q = mpf(rate)
    law = [mp.binomial(n - 1, k) * q**k * (1 - q) ** (n - 1 - k) for k in range(most, n)]
    full = mp.fsum(law)
    return full, q * mp.fsum(
        weight * mpf(most) / (most + i + 1) for i, weight in enumerate(law)
    ) / full


RARE_CUTS = [
    (300, 0.02, 230),
    (300, 0.003, 163),
    (200, 1e-6, 62),
    (143, 0.0015, 115),
    (120, 2.148e-4, 87),
]


@pytest.mark.parametrize(
    ("n", "rate", "most"), [*RARE_CUTS, (300, 0.02, 200), (60, 0.3, 18), (300, 0.01, 299)]
)
def test_probabilities_that_underflow_are_rounded_up(n: int, rate: float, most: int) -> None:
    sample = CutSample(n, rate, most)
    with mp.workdps(40):
        full, displacing = tail_and_displacing(n, rate, most)
        assert full <= sample.full_at_most <= max(100 * full, mpf(10) ** -307)
        assert displacing <= sample.displacing_rate <= displacing * (1 + mpf(10) ** -2)


@pytest.mark.parametrize("relation", few(list(Relation)))
@pytest.mark.parametrize(
    ("n", "rate", "most"), few([*RARE_CUTS, (10, 1e-310, 2), (5, 1e-200, 1)], most=2, more=2)
)
def test_cuts_that_never_happen(n: int, rate: float, most: int, relation: Relation) -> None:
    """The probability of a cut is below every double, or next to it: Poisson sampling to all
    intents and purposes."""
    asked = {"noise_multiplier": 0.7, "steps": 10, "adjacency": str(relation), "delta": 1e-5}
    found = dpsub.account(dpsub.TruncatedPoisson(rate, most), n, **asked)
    if 10 * rate <= 1e-5:
        assert found.upper <= 1e-9
        return
    known = dpsub.account(dpsub.Poisson(rate), **asked)
    assert known.lower <= found.upper * (1 + 1e-9) and found.lower <= known.upper * (1 + 1e-9)
    assert found.upper - found.lower <= 1e-2 * found.upper + 1e-9
