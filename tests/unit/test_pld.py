"""Composed laws of the loss: closed forms, tiny deltas, extreme but legal questions, planted
faults."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.special import ndtr

import dpsub
from dpsub.accounting.engine import fourier, lower_law, privacy_events
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.engine.discretise import (
    LAW_ERROR,
    DirectedPair,
    _inversion,
    loss_indices,
    lower_pld,
    upper_pld,
)
from dpsub.accounting.engine.fourier import ComposedLoss, Cumulants
from dpsub.accounting.engine.laplace_pairs import LaplacePair
from dpsub.accounting.engine.pairs import (
    LOSS_TOLERANCE,
    FillerPair,
    GaussianPair,
    MixturePair,
    PoissonPair,
    WorPair,
)
from dpsub.accounting.engine.pld import (
    PrivacyLossDistribution,
    order_indices,
    symmetric_pld,
    two_sided_pld,
)
from dpsub.accounting.engine.privacy_events import PairEvent
from dpsub.accounting.engine.profiles import GroupLemma
from dpsub.accounting.games.filler_flip import AdaptiveAttack
from dpsub.accounting.questions.account import WIDTH_MISSED
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.conditions import CONDITIONS, LAPLACE_CONDITIONS
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.noise import GaussianProfile
from dpsub.sampling import Multistage, MustOW, MustWW, Poisson, Sampler, Wor, Wr, base, of_sizes
from dpsub.sampling.laws import MultiplicityLaw

GAUSSIANS = [
    (10.0, 1, 1.0),
    (30.0, 100, 2.0),
    (50.0, 1000, 5.0),
    (5.0, 10, 6.0),
    (1000.0, 10**6, 1.0),
    (0.5, 1, 0.1),
]
GAUSSIANS += [
    (20.0, 100, float(GaussianProfile(0.5).epsilon(10.0**-k))) for k in (5, 12, 20, 30, 100)
]


@pytest.mark.parametrize(("scale", "k", "epsilon"), GAUSSIANS)
def test_many_gaussians_are_one(scale: float, k: int, epsilon: float) -> None:
    exact = float(GaussianProfile(math.sqrt(k) / scale).delta(epsilon))
    composition = Composition([(PairEvent(PoissonPair(1.0, scale)), k)])
    lower, upper, *_ = composition.answer(Target(epsilon=epsilon, width=0.01))
    assert lower <= exact <= upper <= exact * 1.011
    if scale == 20:  # far below what a plain transform can tell from 0
        assert 0 < lower <= upper <= lower * 1.011


def test_gaussians_of_different_scales_add_their_squares() -> None:
    ledger = Composition(
        [(PairEvent(PoissonPair(1.0, s)), k) for s, k in ((10.0, 30), (25.0, 200), (40.0, 7))]
    )
    ratio = math.sqrt(30 / 10**2 + 200 / 25**2 + 7 / 40**2)
    lower, upper = ledger.answer(Target(epsilon=2.0, width=0.01))[:2]
    assert lower <= float(GaussianProfile(ratio).delta(2.0)) <= upper <= lower * 1.011


def between(low: float, high: float) -> Callable[[float, float], bool]:
    """Check that both bounds lie in an interval."""
    return lambda lower, upper: low <= lower <= upper <= high


Ends = Callable[[float, float], bool]
# the record is ever included with probability at most 10 rate; what an inversion of the loss may
# lack is charged, at most 2 (e^tolerance - 1) a step
EVER = 10 * 2 * math.expm1(LOSS_TOLERANCE)
HARD: list[tuple[Sampler, int | None, float, int, dict[str, Any], Ends]] = [
    # tilts of 1e9 and more: the charge for round-off was the root of a difference that could be
    # negative
    *((Poisson(q), None, 10.0, 10, {"delta": 1e-5}, between(0, 1e-9)) for q in (1e-6, 1e-9, 1e-12)),
    *(
        (Poisson(q), None, 10.0, 10, {"epsilon": 1.0}, between(0, 10 * q + EVER))
        for q in (1e-6, 1e-9, 1e-12)
    ),
    (
        Poisson(1e-250),
        None,
        0.06,
        10,
        {"epsilon": 1.0, "adjacency": "substitute"},
        between(0, 1e-10),
    ),
    # what underflows is rounded up
    *(
        (Wor(5), 100, 10.0, k, {"epsilon": epsilon}, lambda low, high: low == 0 < high < 1e-30)
        for k in (1, 5, 100)
        for epsilon in (100.0, 1e3, 1e6)
    ),
    *(
        (
            Wor(5),
            100,
            10.0,
            10,
            {"epsilon": epsilon},
            lambda low, high: 0 <= low <= high < 1e-250 and high > 0,
        )
        for epsilon in (50.0, 100.0, 1e4)
    ),
    *(
        (
            Poisson(0.1),
            None,
            1.0,
            10,
            {"epsilon": epsilon},
            lambda low, high: low == 0 < high < 1e-240,
        )
        for epsilon in (1e6, 1e20, 1e300)
    ),
    (
        Wr(10**4),
        10**4,
        100.0,
        10,
        {"epsilon": 1.0},
        lambda low, high: 1e-60 < low < high < 1e3 * low,
    ),
    # five Laplace losses of at most 1 each end there
    (
        Poisson(1.0),
        None,
        1.0,
        5,
        {"epsilon": 4.9, "mechanism": "laplace"},
        lambda low, high: 0 < low <= high,
    ),
    (
        Poisson(1.0),
        None,
        1.0,
        5,
        {"epsilon": 5.1, "mechanism": "laplace"},
        lambda low, high: low == high == 0,
    ),
    # one inclusion is a loss of about 555, and e^600 is the last order: most of it counts as
    # infinite
    (
        Wor(300),
        30_969,
        0.06,
        1000,
        {"epsilon": 2.0},
        lambda low, high: low <= -math.expm1(1000 * math.log1p(-300 / 30_969)) <= high,
    ),
    # losses that cannot be inverted on a grid: closed forms bound them
    (MustWW(3, 3), 1, 0.05, 10, {"delta": 0.1}, lambda low, high: 7e4 < low < high < 1.001 * low),
    # two inclusions of ten, each of probability 1/3 and worth 555 nats, are far more likely than
    # delta
    (Wor(1), 3, 0.06, 10, {"delta": 1e-40}, lambda low, high: low > 2 * 500),
]


@pytest.mark.parametrize(("sampler", "n", "noise", "steps", "asked", "expected"), HARD)
def test_hard_questions(
    sampler: Sampler, n: int | None, noise: float, steps: int, asked: dict[str, Any], expected: Ends
) -> None:
    if not isinstance(sampler, Poisson):
        asked = {"adjacency": "substitute", **asked}
    answer = dpsub.account(sampler, n, noise_multiplier=noise, steps=steps, **asked)
    assert answer.lower <= answer.upper and expected(answer.lower, answer.upper)
    if noise < 0.1 and "delta" in asked:
        assert not answer.width_met


@pytest.mark.parametrize("rate", [1e-8, 1e-9])
@pytest.mark.parametrize("question", [{"epsilon": 1.0}, {"delta": 1e-10}])
def test_one_release_of_a_rare_inclusion_is_quick(rate: float, question: dict[str, float]) -> None:
    for sampler, n, relation in (
        (Poisson(rate), None, "add_remove"),
        (Wor(1), round(1 / rate), "substitute"),
    ):
        begin = time.process_time()
        answer = dpsub.account(
            sampler, n, noise_multiplier=0.3, steps=1, adjacency=relation, **question
        )
        assert time.process_time() - begin < 2 and answer.width_met
        if "epsilon" in question:
            lifted, shift = math.log1p(math.expm1(1.0) / rate), (1 if n is None else 2) / 0.3
            assert (
                answer.lower <= rate * float(GaussianProfile(shift).delta(lifted)) <= answer.upper
            )


def test_more_steps_less_noise_and_coarser_grids_never_lower_a_bound() -> None:
    def upper(q: float, s: float, k: int, step: float) -> float:
        return ComposedLoss([upper_pld(PoissonPair(q, s), step, tail=1e-18)], [k]).delta(1.0)

    assert upper(0.02, 1.5, 100, 1e-3) < upper(0.02, 1.5, 300, 1e-3)
    assert upper(0.02, 1.6, 300, 1e-3) < upper(0.02, 1.5, 300, 1e-3) < upper(0.03, 1.5, 300, 1e-3)
    widths = []
    for step in (2e-3, 1e-3, 5e-4):
        low = ComposedLoss([lower_pld(PoissonPair(0.02, 1.5), step, tail=1e-18)], [300]).delta(1.0)
        widths.append(upper(0.02, 1.5, 300, step) - low)
    assert widths[0] > 2 * widths[1] > 4 * widths[2] > 0


MANY = (  # pair, steps, delta
    (PoissonPair(0.001, 0.6), 100_000, 1e-6),
    (PoissonPair(0.02, 0.5), 20_000, 1e-5),
    (WorPair(0.01, 1.0), 50_000, 1e-5),
    (FillerPair(MultiplicityLaw(np.log([0.9, 0.07, 0.02, 0.01])), 2.0), 30_000, 1e-5),
)


@pytest.mark.parametrize(("pair", "steps", "delta"), MANY, ids=lambda value: str(value)[:12])
@pytest.mark.parametrize("swapped", [False, True])
def test_bins_that_exchange_shares_stay_below_and_come_close(
    pair: GaussianPair, steps: int, delta: float, swapped: bool
) -> None:
    step = 3e-4
    lower = lower_pld(pair, step, tail=1e-18, swapped=swapped, exchange=True)
    upper = upper_pld(pair, step, tail=1e-18, swapped=swapped)
    low = ComposedLoss([lower], [steps]).epsilon(delta)
    high = ComposedLoss([upper], [steps]).epsilon(delta)
    assert 0.995 * high < low < high
    # of one step, too, at every order
    points = np.linspace(-2.0, 6.0, 33)
    fine = upper_pld(pair, 1e-5, tail=1e-18, swapped=swapped)
    below = ComposedLoss([lower], [1]).curve(points, 0.0)
    above = ComposedLoss([fine], [1]).curve(points, 0.0)
    assert np.all(below <= above)


def test_bins_that_only_move_may_lose_half_of_a_long_sum() -> None:
    """Bins exchange shares for this reason; the finer grids that they would need take longer than
    all of dp-accounting."""
    pair, steps, delta = MANY[0]
    moved = ComposedLoss([lower_pld(pair, 3.22e-4, tail=1e-18)], [steps]).epsilon(delta)
    assert moved < 0.6 * ComposedLoss([upper_pld(pair, 3.22e-4, tail=1e-18)], [steps]).epsilon(
        delta
    )


def test_shares_of_one_law_alone_are_no_processing(monkeypatch: pytest.MonkeyPatch) -> None:
    right = lower_law.exchanged

    def fault(
        first: np.ndarray, second: np.ndarray, grid: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return right(first, second, grid)[0], second * (1 - 1e-3)

    monkeypatch.setattr(lower_law, "exchanged", fault)
    pair, steps, delta = MANY[0]
    low = ComposedLoss([lower_pld(pair, 3e-4, tail=1e-18, exchange=True)], [steps]).epsilon(delta)
    assert low > ComposedLoss([upper_pld(pair, 3.22e-4, tail=1e-18)], [steps]).epsilon(delta)


def test_long_runs_are_answered_on_coarse_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    """A law of a single loss holds few points, however many steps there are."""
    sizes: list[int] = []

    def counted(*args: Any, exchange: bool = False, **named: Any) -> PrivacyLossDistribution:
        law = lower_pld(*args, exchange=exchange, **named)
        if exchange:
            sizes.append(law.masses.size)
        return law

    monkeypatch.setattr(privacy_events, "lower_pld", counted)
    answer = dpsub.account(dpsub.Poisson(0.001), noise_multiplier=0.6, steps=100_000, delta=1e-6)
    assert answer.width_met and answer.lower <= 6.9610 <= answer.upper + 1e-3
    assert sizes and max(sizes) < 20_000


def test_swapping_a_pair_twice_is_the_pair() -> None:
    law = MultiplicityLaw(np.log([0.9, 0.07, 0.02, 0.01]))
    pair = MixturePair(law, 1.5)
    for make in (lower_pld, upper_pld):
        one, two = (
            ComposedLoss([make(pair, 1e-3, tail=1e-18, swapped=swapped)], [50])
            for swapped in (False, True)
        )
        assert one.delta(0.5) == pytest.approx(two.delta(0.5), rel=2e-3)


def test_a_loss_beyond_every_bound_counts_once_in_each_step() -> None:
    law = PrivacyLossDistribution(0.1, np.array([0]), np.array([0.99]), "upper", infinity=0.01)
    assert ComposedLoss([law], [100]).delta(1.0) == pytest.approx(1 - 0.99**100, rel=1e-9)
    assert ComposedLoss([law], [100]).epsilon(0.5) == math.inf


@pytest.mark.parametrize("side", ["upper", "lower"])
def test_aliasing_is_charged_and_ignoring_it_is_caught(
    side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scale, k, epsilon = 20.0, 100, 0.5
    exact = float(GaussianProfile(math.sqrt(k) / scale).delta(epsilon))
    make = upper_pld if side == "upper" else lower_pld
    composed = ComposedLoss([make(PoissonPair(1.0, scale), 1e-3, tail=1e-18)], [k])
    # windows that half of the sums leave, to come back on the other side: mean 1/8, standard
    # deviation 1/2
    window = (-2.0, 0.8) if side == "upper" else (-0.1, 2.5)
    monkeypatch.setattr(fourier, "_LOG_TAIL", math.log(0.7))
    monkeypatch.setattr(Cumulants, "reach", lambda *_: window)
    tilted = composed.masses(0.0)
    honest = float(tilted.delta(np.array([epsilon]))[0])
    careless = float(dataclasses.replace(tilted, tail=0.0).delta(np.array([epsilon]))[0])
    if side == "upper":
        assert careless < exact <= honest
    else:
        assert honest <= exact < careless


def test_a_missing_mirror_is_caught() -> None:
    pair = PoissonPair(1.0, 2.0)
    full = upper_pld(pair, 1e-3, tail=1e-18)
    right = full.losses > 0
    faulty = PrivacyLossDistribution(
        full.step, full.indices[right], full.masses[right], "upper", full.infinity
    )
    exact = float(GaussianProfile(math.sqrt(20) / 2).delta(1.0))
    assert ComposedLoss([faulty], [20]).delta(1.0) < exact <= ComposedLoss([full], [20]).delta(1.0)


def test_what_cannot_be_composed_is_refused_in_a_sentence() -> None:
    one = PrivacyLossDistribution(0.1, np.array([0]), np.array([1.0]), "upper")
    two = PrivacyLossDistribution(0.2, np.array([0]), np.array([1.0]), "upper")
    with pytest.raises(ArgumentError, match="same step"):
        ComposedLoss([one, two], [1, 1])
    with pytest.raises(ArgumentError, match="same side"):
        ComposedLoss(
            [one, PrivacyLossDistribution(0.1, np.array([0]), np.array([1.0]), "lower")], [1, 1]
        )
    with pytest.raises(ArgumentError, match="either epsilon or delta"):
        Target()
    with pytest.raises(ArgumentError, match="either epsilon or delta"):
        Target(epsilon=1.0, delta=1e-5)


@pytest.mark.parametrize(("sampler", "n"), [(Poisson(0.02), None), (Wor(5), 100)])
@pytest.mark.parametrize("delta", [1e-12, 1e-30])
def test_subsampled_deltas_have_two_sides(sampler: Sampler, n: int | None, delta: float) -> None:
    asked = {"noise_multiplier": 4.0, "steps": 50}
    epsilon = dpsub.account(sampler, n, **asked, delta=delta)
    assert 0 < epsilon.lower <= epsilon.upper
    if epsilon.kind == "exact":
        assert epsilon.upper - epsilon.lower <= 1e-3
    above = dpsub.account(sampler, n, **asked, epsilon=epsilon.upper)
    below = dpsub.account(sampler, n, **asked, epsilon=epsilon.lower)
    assert above.lower <= delta <= below.upper
    assert above.upper <= delta * 1.02
    # the attack's epsilon is asked for to 5e-3 only, and delta falls fast there
    assert below.lower >= delta * (0.9 if epsilon.kind == "exact" else 0.1)
    assert above.lower > 0


def test_a_dropped_infinite_loss_is_caught() -> None:
    exact = float(GaussianProfile(math.sqrt(20) / 2).delta(6.0))
    pair = upper_pld(PoissonPair(1.0, 2.0), 1e-3, tail=1e-4)
    by_profile = symmetric_pld(
        lambda x: GaussianProfile(0.5).delta(x), 1e-3, order_indices(1e-3, 0.8, 0.9)
    )
    for law in (pair, by_profile):
        assert law.infinity > 0
        faulty = dataclasses.replace(law, infinity=0.0)
        assert (
            ComposedLoss([faulty], [20]).delta(6.0) < exact <= ComposedLoss([law], [20]).delta(6.0)
        )


def test_tilts_of_masses_near_the_smallest_double() -> None:
    # e^(tilt loss) overflows alone, and its product with the mass does not
    pair = PoissonPair(0.05, 1.0)
    law = upper_pld(pair, 0.05, tail=1e-305)
    values = [ComposedLoss([law], [1]).delta(epsilon) for epsilon in (20.0, 40.0, 60.0)]
    assert np.all(np.isfinite(values))
    assert values[0] > values[1] >= values[2] > 0
    for epsilon, value in zip((20.0, 40.0, 60.0), values, strict=True):
        t = pair.inverse_loss(np.array([epsilon]))
        with np.errstate(over="ignore"):
            assert value >= float(pair.sf(t)[0] - math.exp(epsilon) * pair.sf_prime(t)[0]) * (
                1 - 1e-9
            )


@pytest.mark.parametrize(
    ("points", "spacing", "tilt"),
    [
        (20_000, 1, 0.3),
        (20_000, 1, -2.0),
        # neither a full row nor a full column
        (20_003, 2, 0.7),
        # short, sparse, and with a tiny mass at the largest loss
        (100, 1, 0.3),
        (20_000, 5, -0.3),
        (20_000, 1, 90.0),
    ],
)
def test_exponential_moments_row_by_row_are_those_of_all_losses(
    points: int, spacing: int, tilt: float
) -> None:
    rng = np.random.default_rng(0)
    indices = spacing * (np.arange(points) - points // 3)
    masses = rng.random(points) * np.exp(-(((indices / indices.max()) * 27) ** 2))
    order = rng.permutation(points)
    law = PrivacyLossDistribution(1e-2, indices[order], masses[order], "upper")
    assert law.quick_log_mgf(tilt) == pytest.approx(law.log_mgf(tilt), rel=1e-13, abs=1e-13)


def test_an_infinite_loss_leaves_the_finite_mass_alone() -> None:
    # randomised response with a sure giveaway: P = (1 - w, w), Q = P with the giveaway elsewhere;
    # H_a = w for a >= 1
    w = 0.3
    law = symmetric_pld(lambda x: np.full(x.shape, w), 1e-2, np.arange(100))
    for k in (1, 2, 5):
        assert ComposedLoss([law], [k]).delta(0.5) == pytest.approx(1 - (1 - w) ** k, rel=1e-9)
    assert law.masses.sum() + law.infinity == pytest.approx(1, abs=1e-12)


def test_the_value_at_order_one_is_on_the_hull() -> None:
    # no mass may be missing at loss 0, however different the directions and however coarse the
    # orders are
    def forward(x: np.ndarray) -> np.ndarray:
        return np.where(x < 0.7, 0.9, 0.05 * np.exp(-x))

    def backward(x: np.ndarray) -> np.ndarray:
        return np.where(x < 2.2, 0.8, 0.4 * np.exp(-x))

    sides: list[tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]]
    sides = [(forward, backward), (backward, forward)]
    for first, second in sides:
        law = two_sided_pld(first, second, 0.5, np.arange(60))
        assert law.masses.sum() + law.infinity == pytest.approx(1, abs=1e-9)
        x = np.arange(60) * 0.5
        delta = np.array([ComposedLoss([law], [1]).delta(at) for at in x])
        assert np.all(delta <= np.minimum(first(x), 1) + 1e-9)
        assert np.all(delta >= 0)


def test_an_answer_says_that_the_width_was_met() -> None:
    # one inclusion is a loss of about 797, beyond the last order of the upper bound and the last
    # point of the attack
    loud = dpsub.account(
        Wor(2), 4, noise_multiplier=0.0501, steps=1, epsilon=2.0, adjacency="substitute"
    )
    assert 0.4999 < loud.lower <= 0.5 <= loud.upper < 0.5001
    assert loud.width_met
    met = dpsub.account(
        Wor(2), 4, noise_multiplier=1.0, steps=1, epsilon=1.0, adjacency="substitute"
    )
    assert met.width_met
    assert met.upper - met.lower <= 1e-3 * met.upper
    assert WIDTH_MISSED not in met.conditions


def test_a_transform_that_would_be_too_large_leaves_the_width_unmet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = {"noise_multiplier": 1.0, "steps": 1000, "delta": 1e-5}
    monkeypatch.setattr(fourier, "MAX_GRID", 300)
    for answer in (
        dpsub.account(Poisson(0.01), **asked),
        dpsub.account(Poisson(0.01), **asked, variant="paper"),
    ):
        assert not answer.width_met
        assert answer.upper - answer.lower > 1e-3
        assert answer.lower <= 1.82824
    monkeypatch.setattr(fourier, "MAX_GRID", 4000)
    bounds = dpsub.account(Wor(10), 1000, **asked, width=1e-5)
    assert not bounds.width_met
    assert bounds.conditions[-1] == WIDTH_MISSED
    monkeypatch.undo()
    assert dpsub.account(Poisson(0.01), **asked).width_met
    assert dpsub.account(Wor(10), 1000, **asked).width_met


def test_laplace_noise_is_described_as_what_it_is() -> None:
    answer = dpsub.account(
        Wor(10),
        100,
        noise_multiplier=8.0,
        steps=10,
        epsilon=1.0,
        mechanism="laplace",
        adjacency="substitute",
    )
    text = " ".join(answer.conditions)
    assert "scalar" in text and "Laplace" in text and "N(0" not in text
    assert answer.conditions[: len(LAPLACE_CONDITIONS)] == LAPLACE_CONDITIONS
    mixed = [Release(Wor(10), 100, 2.0, 3), Release(Wor(10), 100, 8.0, 2, "laplace")]
    assert set(CONDITIONS) | set(LAPLACE_CONDITIONS) <= set(
        dpsub.Ledger(mixed).account(epsilon=1.0, adjacency="substitute").conditions
    )


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("rate", "scale"), [(1e-13, 1.0), (1e-11, 0.5), (1e-9, 0.5), (0.1, 1.0), (0.5, 0.06)]
)
def test_the_move_for_inversion_is_charged_where_it_does_not_suffice(
    rate: float, scale: float, swapped: bool
) -> None:
    pair = PoissonPair(rate, scale)
    step = 1e-3 if scale > 0.1 else 0.1
    law = upper_pld(pair, step, tail=1e-18, swapped=swapped)
    direction = DirectedPair(pair, swapped)
    points = step * loss_indices(direction, step, 1e-18)
    tolerance = LOSS_TOLERANCE * max(1.0, float(np.abs(points[[0, -1]]).max()))
    masses = direction.masses(direction.place(points))
    moved, charge = _inversion(direction, points, masses, tolerance)
    assert law.infinity >= charge
    assert law.offset >= moved
    # the condition itself, at all inner points: Q(|L - x| <= tolerance) <= 2 Q(L > x + 2
    # tolerance), or charged
    edges = np.append(
        (points[1:-1, None] + tolerance * np.array([-1.0, 1.0, 2.0])).ravel(), points[-1]
    )
    t = direction.place(edges)
    q = direction.masses(np.minimum.accumulate(t) if swapped else np.maximum.accumulate(t)).q
    near, after = q[0::3], np.cumsum(q[::-1])[::-1][2::3]
    lacking = np.exp(points[1:-1]) * np.expm1(tolerance) * near
    assert np.all((near <= 2 * after) | (lacking <= charge))
    if rate >= 0.1:
        assert charge <= 1e-20  # nothing is lost where the loss is spread
    else:
        assert charge < 1e-8


def test_laws_of_counts_are_as_accurate_as_the_allowances_assume() -> None:
    assert LAW_ERROR > 6 * 6e-13  # which tests/unit/test_sampling.py finds for up to 10^6 draws
    exact = base.WithoutReplacement(10**8).count_law(3 * 10**8, 1)
    np.testing.assert_allclose(exact, [2 / 3, 1 / 3], rtol=1e-15)
    with pytest.raises(UnsupportedError, match="1000000 slots"):
        Release(Wr(10**6 + 1), 10**8, 1.0).chain()
    Release(MustOW(10**7, 1000), 10**9, 1.0).chain()


@pytest.mark.thorough
def test_a_chain_that_would_take_minutes_is_refused_at_once() -> None:
    asked = {"noise_multiplier": 3.0, "steps": 100, "epsilon": 1.0}
    for depth in (3, 4):
        with pytest.raises(UnsupportedError, match="fewer or smaller stages"):
            dpsub.account(Multistage([base.WithReplacement(300)] * depth), 300, **asked)
    light = Multistage(
        [base.WithoutReplacement(50), base.WithReplacement(20), base.WithReplacement(10)]
    )
    assert dpsub.account(light, 1000, **asked, width=0.05).upper < 1


def laplace_mass(left: float, right: float, centre: float) -> mpf:
    def below(t: float) -> mpf:
        t = mpf(t) - mpf(centre)
        return mp.exp(t) / 2 if t <= 0 else 1 - mp.exp(-t) / 2

    return below(right) - below(left)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("theta", [1e-3, 0.1, 1.0, 20.0])
@pytest.mark.parametrize("relative_width", [1e-1, 1e-3, 1e-5])
def test_masses_of_narrow_laplace_cells_are_within_their_stated_errors(
    theta: float, relative_width: float, mirrored: bool
) -> None:
    rate = 0.3
    left = np.random.default_rng(5).uniform(0, theta, 6)
    edges = np.sort(np.concatenate([left, left + relative_width * theta]))
    cells = LaplacePair(rate, theta, mirrored).masses(edges)
    with mp.workdps(50):
        for i, (a, b) in enumerate(pairwise(edges)):
            base = (1 - mpf(rate)) * laplace_mass(a, b, 0)
            first = base + mpf(rate) * laplace_mass(a, b, theta)
            second = (
                base + mpf(rate) * laplace_mass(a, b, -theta) if mirrored else laplace_mass(a, b, 0)
            )
            assert abs(mpf(cells.p[i]) - first) <= cells.p_error[i]
            assert abs(mpf(cells.q[i]) - second) <= cells.q_error[i]


@pytest.mark.parametrize(("n", "m", "noise"), [(10**6, 1, 0.0501), (10_000, 2, 0.3)])
def test_a_rare_inclusion_with_little_noise_is_attacked_without_a_crash(
    n: int, m: int, noise: float
) -> None:
    proof = Proof.of([Release(of_sizes("wor", n=n, m=m), n, noise, 1000)], "substitute")
    assert proof.cases[0].filler_flip is not None
    found = AdaptiveAttack(proof.cases[0].filler_flip, 1000).answer(Target(epsilon=1e6))
    assert 0 <= found <= 1000 * m / n  # the chance that the record is drawn at all


@pytest.mark.parametrize("rate", [1e-130, 1e-250, 1e-300])
def test_losses_of_tiny_rates_are_inverted(rate: float) -> None:
    pair, x = WorPair(rate, 0.06), np.array([-600.0, -30.0, -1e-3, 0.0, 1e-3, 1.0, 600.0])
    t = pair.inverse_loss(x)
    assert np.all(np.abs(pair.loss(t) - x) <= 1e-12 * np.maximum(1, np.abs(x)))


def test_noise_beyond_all_doubles_is_refused() -> None:
    with pytest.raises(ArgumentError, match="noise_multiplier must be at most"):
        Release(of_sizes("wor", n=4, m=2), 4, 1e300, 1)


def test_wide_laws_get_wider_cells_and_stay_above_the_supremum() -> None:
    weights = np.full(401, 1 / 401)
    lemma = GroupLemma(weights, 0.5)
    assert all(table.size <= 2**23 for table in lemma._tables)
    # at order 1 one test, c = 0, is the best one for every count
    supremum = float((1 - 2 * ndtr(-np.arange(1, 401) / 0.5)).sum()) / 401
    assert supremum * (1 - 1e-12) <= lemma(np.array([0.0]))[0] <= supremum * (1 + 1e-3)


def test_no_grid_is_coarser_than_doubles_can_hold() -> None:
    law = PrivacyLossDistribution(800.0, np.array([0, 1]), np.array([0.5, 0.5]), "upper")
    with pytest.raises(NumericalError, match="step of 800"):
        ComposedLoss([law], [1])


def test_a_negligible_profile_has_two_orders() -> None:
    assert list(order_indices(0.1, 0.0, 0.0)) == [0, 1]


@pytest.mark.parametrize("rate", [2e-4, 5e-4])
def test_the_spread_of_a_rare_inclusion_with_little_noise_is_estimated_on_few_points(
    rate: float,
) -> None:
    """Its tail of 1e-4 lies hundreds of nats away, its bulk within 1e-9: a grid of the second never
    ended."""
    spread = PairEvent(PoissonPair(rate, 0.06)).spread()
    assert 0.1 < spread < 100


def test_a_grid_with_too_many_points_is_refused_in_a_sentence() -> None:
    with pytest.raises(NumericalError, match="grid points"):
        upper_pld(PoissonPair(5e-4, 0.06), 1e-9, tail=1e-18)


def looped(values: np.ndarray, damp: float) -> np.ndarray:
    result, last = np.zeros(values.size), 0.0
    for place, value in enumerate(values.tolist()):
        last = value + damp * last
        result[place] = last
    return result


@pytest.mark.parametrize("piece", [100, fourier._PIECE])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 15, 16, 17, 1000])
@pytest.mark.parametrize("damp", [0.0, 1e-30, 0.5, 0.999, 1 - 1e-6, 1.0])
def test_damped_sums_are_the_plain_loop(
    size: int, damp: float, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fourier, "_PIECE", piece)
    values = np.random.default_rng(size).exponential(size=size) ** 8
    np.testing.assert_allclose(fourier.damped_sums(values, damp), looped(values, damp), rtol=1e-14)


def test_errors_of_a_product_of_powers_are_charged_times_the_sizes_of_the_others() -> None:
    """For entries of any size, the error of the one that is multiplied last counts times the size
    of the product so far."""
    draws = np.random.default_rng(5)

    def spectrum(size: float) -> tuple[np.ndarray, fourier.Spectrum]:
        true = size * np.exp(2j * math.pi * draws.random(500))
        error = draws.uniform(0, 1e-3, 500) * size
        values = true + error * np.exp(2j * math.pi * draws.random(500))
        return true, fourier.Spectrum(values, size + error, error)

    (first, large), (second, small) = spectrum(5.0), spectrum(0.2)
    for one, other in ((large, small), (small, large)):
        found = one.times(other)
        assert np.all(np.abs(found.values - first * second) <= found.error)
        assert np.all(
            np.maximum(np.abs(found.values), np.abs(first * second)) <= found.size * (1 + 1e-12)
        )
        assert np.all(found.error <= 3e-3)
