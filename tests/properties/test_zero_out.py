"""A record of a sample without replacement against one that contributes 0: no bound is below
enumerated truth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

import dpsub
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.engine.pairs import PoissonPair, ZeroedPair
from dpsub.accounting.engine.privacy_events import PairEvent
from dpsub.accounting.games.filler_flip import AdaptiveAttack
from dpsub.accounting.games.game import replaced_profile
from dpsub.accounting.schemes.chains.zeroed import ZeroedProfile
from dpsub.errors import UnsupportedError
from dpsub.sampling import Multistage, MustOW, MustWW, Poisson, Wor, Wr
from dpsub.streams import stream
from tests.tiny_mechanisms import (
    RECORDS,
    Step,
    both_sides,
    cell_masses,
    divergences,
    sample_counts,
    slot_chain,
    stages,
    two_steps,
)

SETTINGS = [(0.02, 4.0), (0.5, 1.0), (0.9, 0.6), (0.999, 3.0), (1e-4, 0.5)]


def shifted(rate: float, scale: float, x: float, y: float, order: float) -> float:
    """Return H_a of (1 - q) N(0) + q N(x) against (1 - q) N(0) + q N(y), by quadrature of
    densities."""
    means = (0.0, x, y)
    t = np.linspace(min(means) - 12 * scale, max(means) + 12 * scale, 200_001)
    base, one, other = (norm.pdf(t, mean, scale) for mean in means)
    return float(
        np.trapezoid(
            np.maximum((1 - rate) * (1 - order) * base + rate * (one - order * other), 0.0), t
        )
    )


@pytest.mark.parametrize(("rate", "scale"), SETTINGS)
def test_profiles_are_those_of_the_worst_vectors(rate: float, scale: float) -> None:
    logs = np.array([0.0, 1e-3, 0.1, 1.0, 4.0])
    for reach, swapped in ((2.0, False), (1.0, True)):
        found = replaced_profile(rate, reach / scale, 1 / scale)(logs)
        truth = [shifted(rate, scale, reach, reach - 1, math.exp(x)) for x in logs]
        np.testing.assert_allclose(found, truth, rtol=1e-7, atol=1e-12)
        # a third road: the half-line of the pair's own loss
        pair = PoissonPair(rate, scale) if swapped else ZeroedPair(rate, scale)
        t = pair.inverse_loss(logs)
        np.testing.assert_allclose(
            found, pair.sf(t) - np.exp(logs) * pair.sf_prime(t), rtol=1e-7, atol=1e-12
        )


def test_ten_thousand_random_cases_are_below_the_profiles() -> None:
    rng = stream(23, experiment="zero_out", cell={}, role="data", replicate=0)
    cases, largest, faults = 0, 0.0, 0
    for _ in range(60):
        n = int(rng.integers(2, 6))
        m = int(rng.integers(1, n))
        scale = float(np.exp(rng.uniform(math.log(0.2), math.log(4.0))))
        data = RECORDS[rng.integers(RECORDS.size, size=(30, n))]
        data[-2:] = -1.0  # the worst ones: the record apart from the others, and like them
        data[-2, 0] = 1.0
        other = data.copy()
        other[:, 0] = 0.0
        logs = np.sort(rng.uniform(-2.0, 2.0, size=6))
        truth = divergences(*sample_counts(n, stages(f"wor:{m}")), data, other, scale, np.exp(logs))
        forward, backward = (
            replaced_profile(m / n, reach / scale, 1 / scale) for reach in (2.0, 1.0)
        )
        bound = both_sides(forward, backward, logs)
        assert (truth <= bound + 1e-12).all()
        # attained, on either side of order 1, by the two last ones
        worst = np.where(logs >= 0, truth[-2], truth[-1])
        np.testing.assert_allclose(worst, bound, rtol=1e-3, atol=1e-4)
        # planted fault: the member that is replaced is forgotten, so that the sum moves by C alone
        faults += int((truth > both_sides(backward, backward, logs) + 1e-9).any())
        cases, largest = cases + truth.size, max(largest, float(truth.max()))
    assert cases >= 10_000
    assert largest > 0.5
    assert faults > 50


def zeroed(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all data sets in {-1, 0, 1}, and the same with the first record at 0."""
    rest = itertools.combinations_with_replacement((-1.0, 0.0, 1.0), n - 1)
    data = np.array([(v, *others) for others in rest for v in (-1.0, 1.0)])
    other = data.copy()
    other[:, 0] = 0.0
    return data, other


def played_twice(rate: float, scale: float, order: float) -> float:
    """Return the divergences of two steps, each with fillers of the sign that is better, from fine
    cells of the outputs."""
    edges = np.concatenate(
        [[-np.inf], np.arange(-9 * scale, 2 + 9 * scale, 0.005 * scale), [np.inf]]
    )
    base, one, two = (
        np.where(
            edges[1:] <= mean,
            np.diff(norm.cdf(edges, mean, scale)),
            -np.diff(norm.sf(edges, mean, scale)),
        )
        for mean in (0.0, 1.0, 2.0)
    )
    once, twice = ((1 - rate) * base + rate * part for part in (one, two))
    sides = [(twice, once), (base, once)]
    steps = [Step(p, q) for p, q in sides]
    values = [
        float(p[p > 0] @ np.max([step(order * q[p > 0] / p[p > 0]) for step in steps], axis=0))
        for p, q in sides
    ]
    return max(values)


@pytest.mark.parametrize("scale", [0.06, 0.3, 1.0, 3.0])
@pytest.mark.parametrize(("n", "m"), [(3, 1), (4, 2)])
def test_two_adaptive_steps_lie_between_the_ends(n: int, m: int, scale: float) -> None:
    epsilons = (0.0, 0.5, 2.0)
    p, q = cell_masses(
        *sample_counts(n, stages(f"wor:{m}")), *zeroed(n), scale, 0.05 if scale < 0.2 else 0.02
    )
    both = two_steps(p, q, epsilons), two_steps(q, p, epsilons)
    asked = {"noise_multiplier": scale, "steps": 2, "width": 1e-3}
    for place, epsilon in enumerate(epsilons):
        truth = max(found[place] for found in both)
        answer = dpsub.account(Wor(m), n, adjacency="zero_out", epsilon=epsilon, **asked)
        assert answer.kind == "bounds"
        assert truth <= answer.upper + 1e-12
        played = played_twice(m / n, scale, math.exp(epsilon))
        assert played * (1 - 5e-3) - 1e-6 <= answer.lower <= played * (1 + 1e-3) + 1e-9
        # between Poisson sampling at this rate, and substitution
        assert (
            dpsub.account(Poisson(m / n), adjacency="zero_out", epsilon=epsilon, **asked).lower
            <= answer.upper
        )
        assert (
            answer.lower
            <= dpsub.account(Wor(m), n, adjacency="substitute", epsilon=epsilon, **asked).upper
        )


@pytest.mark.parametrize(("rate", "scale"), SETTINGS[:3])
def test_the_attack_is_worth_more_when_it_adapts(rate: float, scale: float) -> None:
    pair, steps, target = ZeroedPair(rate, scale), 20, Target(delta=0.01, width=1e-3)
    static = Composition([(PairEvent(pair), steps)]).brackets([target], [False])[0]
    assert static.width_met
    adaptive = AdaptiveAttack(pair, steps).answer(target)
    asked = {"noise_multiplier": scale, "steps": steps, "delta": 0.01, "adjacency": "zero_out"}
    answer = dpsub.account(Wor(round(1000 * rate)), 1000, **asked)
    assert static.lower * (1 - 2e-3) <= adaptive <= answer.lower <= answer.upper


@pytest.mark.parametrize("steps", [1, 50])
def test_all_records_in_every_sample_are_plain_noise(steps: int) -> None:
    answer = dpsub.account(
        Wor(4), 4, noise_multiplier=5.0, steps=steps, epsilon=0.5, adjacency="zero_out"
    )
    assert answer.kind == "exact"
    truth = shifted(1.0, 5 / math.sqrt(steps), 1.0, 0.0, math.exp(0.5))
    assert answer.lower * (1 - 1e-6) <= truth <= answer.upper * (1 + 1e-6)


def test_a_single_step_is_exact() -> None:
    for rate, scale, epsilon in ((0.02, 4.0, 0.01), (0.5, 1.0, 0.5), (0.9, 0.3, 2.0)):
        n = 1000
        answer = dpsub.account(
            Wor(round(rate * n)), n, noise_multiplier=scale, epsilon=epsilon, adjacency="zero_out"
        )
        assert answer.kind == "exact"
        assert answer.lower <= shifted(rate, scale, 2.0, 1.0, math.exp(epsilon)) * (1 + 1e-9)
        assert answer.upper >= shifted(rate, scale, 2.0, 1.0, math.exp(epsilon)) * (1 - 1e-9)
        assert answer.upper <= answer.lower * (1 + 2e-3)


def test_noise_is_found_for_it() -> None:
    asked = {"epsilon": 1.0, "delta": 1e-5, "steps": 100, "accuracy": 0.01}
    found = [
        dpsub.calibrate(Wor(200), 10_000, adjacency=adjacency, **asked)
        for adjacency in ("zero_out", "substitute")
    ]
    assert all(one.account.upper <= 1.0 for one in found)
    assert found[0].refuted is not None
    assert found[0].refuted <= found[0].noise_multiplier < found[1].noise_multiplier


@pytest.mark.parametrize(
    ("sampler", "mechanism"),
    [
        (Wr(2), "laplace"),
        (Multistage.of_text("wr:2,poisson:0.5"), "gaussian"),
    ],
    ids=["wr-laplace", "chain-poisson"],
)
def test_what_is_not_proved_is_refused_with_what_covers_it(
    sampler: dpsub.Sampler, mechanism: str
) -> None:
    with pytest.raises(UnsupportedError, match=r"; use (substitute|mechanism gaussian)$"):
        dpsub.account(
            sampler, 4, noise_multiplier=1.0, epsilon=1.0, adjacency="zero_out", mechanism=mechanism
        )


CHAINS = [
    "wr:1",
    "wr:2",
    "wr:3",
    "wor:2,wr:2",
    "wor:3,wr:2",
    "wr:2,wr:2",
    "wr:3,wor:2",
    "wr:4,wr:1",
]
LONG = ["wr:2,wr:2,wr:2"]


@pytest.mark.parametrize("text", CHAINS + LONG)
def test_several_occurrences_are_below_the_profiles(text: str) -> None:
    """The test takes all data sets in {-1, 0, 1}, both directions, and orders on either side of
    1."""
    n, faults = 3 if text in LONG else 4, 0
    data, other = zeroed(n)
    counts = sample_counts(n, stages(text))
    chain = slot_chain(n, stages(text))
    logs = np.array([-2.0, -1.0, -0.3, -0.02, 0.0, 0.02, 0.1, 0.3, 0.7, 1.5, 3.0])
    for scale in (0.3, 0.7, 1.5, 4.0):
        truth = divergences(*counts, data, other, scale, np.exp(logs))
        forward = ZeroedProfile(chain, scale)
        backward = ZeroedProfile(chain, scale, removed=True)
        assert (truth <= both_sides(forward, backward, logs) + 1e-12).all()
        # planted fault: the vectors that an occurrence replaces are forgotten
        faults += int((truth > both_sides(backward, backward, logs) + 1e-9).any())
    assert faults > 0


def test_one_occurrence_has_the_bound_of_a_sample_without_replacement() -> None:
    logs = np.array([0.0, 0.01, 0.1, 0.5, 2.0])
    chain = slot_chain(5, stages("wr:1"))
    for reach, removed in ((2.0, False), (1.0, True)):
        found = ZeroedProfile(chain, 0.8, removed=removed)(logs)
        np.testing.assert_allclose(
            found, replaced_profile(0.2, reach / 0.8, 1 / 0.8)(logs), rtol=1e-9
        )


@pytest.mark.parametrize(
    "sampler", [Wr(2), MustOW(2, 2), MustWW(2, 2)], ids=["wr", "must_ow", "must_ww"]
)
def test_two_adaptive_steps_with_several_occurrences(sampler: dpsub.Sampler) -> None:
    n, epsilons = 3, (0.0, 0.5, 2.0)
    text = {"wr": "wr:2", "must_ow": "wor:2,wr:2", "must_ww": "wr:2,wr:2"}[sampler.name]
    p, q = cell_masses(*sample_counts(n, stages(text)), *zeroed(n), 1.0, 0.03)
    both = two_steps(p, q, epsilons), two_steps(q, p, epsilons)
    for place, epsilon in enumerate(epsilons):
        asked = {"noise_multiplier": 1.0, "steps": 2, "epsilon": epsilon, "adjacency": "zero_out"}
        answer = dpsub.account(sampler, n, **asked)
        truth = max(found[place] for found in both)
        assert 0 < answer.lower <= truth * (1 + 1e-3)
        assert truth <= answer.upper + 1e-12
        parts = answer.certificate()["upper"]["forward"]
        assert {part["theorem"] for part in parts} == {"47"}
