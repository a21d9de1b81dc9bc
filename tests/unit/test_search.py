"""Refinement, short cuts and searches of the accountant: each against the computation without it,
or a known answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.optimize import isotonic_regression, minimize_scalar
from scipy.special import ndtr
from scipy.stats import binom

import dpsub
from dpsub.accounting.engine import pld, profiles, work
from dpsub.accounting.engine.bracket import LossGrid, OneEnd, Target
from dpsub.accounting.engine.composition import Composition, answers_of
from dpsub.accounting.engine.fourier import ComposedLoss, TiltedSum, minimum
from dpsub.accounting.engine.pairs import PoissonPair
from dpsub.accounting.engine.pld import PrivacyLossDistribution
from dpsub.accounting.engine.privacy_events import PairEvent
from dpsub.accounting.engine.profiles import GroupLemma, law_of
from dpsub.accounting.engine.roots import Axis, safe_root
from dpsub.accounting.games.covers import FillerGame
from dpsub.accounting.games.filler_flip import AdaptiveAttack
from dpsub.accounting.questions.account import Account
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.questions.search import (
    TIGHT_MISSED,
    Calibration,
    largest_sample,
    largest_steps,
)
from dpsub.accounting.release import Release
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.noise import GaussianProfile
from dpsub.sampling import MustOW, MustWW, Poisson, Sampler, Shuffle, Wor, Wr
from dpsub.sampling.base import Chain, WithReplacement
from dpsub.sampling.schedules import RandomAllocation
from tests.few import few

S7 = 10_000


SUBSTITUTE: dict[str, Any] = {"adjacency": "substitute"}


def proved(sampler: Sampler, n: int | None, *, width: float | None = None, **asked: Any) -> Account:
    """Return the upper bound alone."""
    epsilon, delta = asked.pop("epsilon", None), asked.pop("delta", None)
    proof = Proof.of([Release(sampler, n, **asked)], "substitute")
    return proof.upper(Target(epsilon, delta, width or proof.width))


@pytest.mark.parametrize("side", ["upper", "lower"])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.3])
def test_epsilon_is_where_the_bound_crosses(side: str, delta: float) -> None:
    event = PairEvent(PoissonPair(0.1, 1.0))
    law = event.upper(5e-3, 1e-18, False) if side == "upper" else event.lower(5e-3, 1e-18, False)
    assert law is not None
    composed = ComposedLoss([law], [50])
    epsilon = composed.epsilon(delta)
    total = composed.masses(composed.cumulants.tilt_at_delta(math.log(delta)))
    near = np.array([epsilon - 1e-7, epsilon, epsilon + 1e-7])
    below, at, above = total.delta(near)
    assert below > delta >= above
    assert at <= delta if side == "upper" else at > delta


@pytest.mark.parametrize("width", few([1e-3, 1e-2, 1e-4]))
@pytest.mark.parametrize(("k", "scale"), [(100, 20.0), (7, 3.0), (1000, 200.0)])
def test_the_refinement_stops_inside_the_width(k: int, scale: float, width: float) -> None:
    # all records are drawn: k Gaussian steps at distance 2, whose answer is known
    sampler, asked = Wor(4), {"noise_multiplier": scale, "steps": k, **SUBSTITUTE}
    truth = GaussianProfile(2 * math.sqrt(k) / scale)
    for epsilon in (0.2, 1.0, 3.0):
        delta = float(truth.delta(epsilon))
        answer = dpsub.account(sampler, 4, **asked, epsilon=epsilon, width=width)
        assert answer.width_met
        assert delta <= answer.upper <= delta * (1 + width)
        assert delta * (1 - width) <= answer.lower <= delta
    epsilon = float(truth.epsilon(1e-6))
    answer = dpsub.account(sampler, 4, **asked, delta=1e-6, width=width)
    assert answer.width_met
    assert epsilon <= answer.upper <= epsilon + width
    assert epsilon - width <= answer.lower <= epsilon


@pytest.mark.parametrize(
    ("sampler", "scale", "k"),
    [(MustOW(20, 30), 2.0, 10), (Wr(30), 1.0, 100), (Wor(30), 1.0, 30), (MustWW(4, 6), 8.0, 200)],
)
def test_what_is_left_is_below_the_width(sampler: Sampler, scale: float, k: int) -> None:
    # no closed form here: eight times finer grids take the place of the truth
    release = Release(sampler, 100, scale, k)
    book = Proof.of([release]).composition
    for question in (Target(epsilon=1.0, width=5e-3), Target(delta=1e-5, width=1e-2)):
        end = book.bound(question)
        (finest,) = answers_of(book.upper(book.spread / 128, 1e-18, False), [question])
        assert end.width_met
        assert question.gap(finest, end.value) <= 1


@pytest.mark.parametrize("order", [1.6, 2.0, 3.0])
@pytest.mark.parametrize("size", [1e-4, 1e-2, 1.0, 50.0])
def test_the_stop_rule_is_honest_for_errors_that_fall_by_three(order: float, size: float) -> None:
    question = Target(delta=0.1, width=1e-2)
    tried: list[float] = []

    def build(grid: LossGrid, swapped: bool, targets: Sequence[Target]) -> np.ndarray:
        tried.append(grid.step)
        return np.array([3.0 + size * grid.step**order])

    (end,) = OneEnd([question], build, (False,), "upper").refined(LossGrid(1.0, 1e-18))
    if end.width_met:
        assert end.value - 3.0 <= 1e-2
    else:
        assert tried[-1] < 1 / 32
    assert all(math.log2(before / after) in (1, 2) for before, after in pairwise(tried))


def test_where_a_finer_grid_is_looser_no_fall_of_errors_is_relied_on() -> None:
    # found by random questions: coarse grids gave 6.87, 6.92 and 6.90, and the first was said to be
    # within 0.005
    asked = {
        "noise_multiplier": 6.065538468257471,
        "adjacency": "add_remove",
        "delta": 1.203016631204394e-156,
    }
    found, finer = (dpsub.account(MustOW(5, 1), 6, **asked, width=width) for width in (5e-3, 2e-3))
    assert not found.width_met or found.upper <= finer.upper + 5e-3


def test_a_tail_that_is_cut_off_later_does_not_loosen_a_tiny_delta() -> None:
    asked = {"noise_multiplier": 4.8, "steps": 6, "epsilon": 0.095, "width": 0.02, **SUBSTITUTE}
    small, large = (dpsub.account(Wor(m), 1027, **asked) for m in (1, 2))
    assert 0 < small.lower <= small.upper <= large.upper < 1e-20


def test_a_flip_that_fails_leaves_the_static_attack_sharp(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = MustOW(20, 30)
    asked = {"noise_multiplier": 4.0, "steps": 100, "epsilon": 1.0, **SUBSTITUTE}
    flipped = dpsub.account(sampler, 1000, **asked)
    assert "adaptively" in flipped.lower_pair
    monkeypatch.setattr(AdaptiveAttack, "answers", lambda self, targets: [0.0] * len(targets))
    static = dpsub.account(sampler, 1000, **asked)
    assert "adaptively" not in static.lower_pair
    assert static.upper == flipped.upper
    assert 0.8 * flipped.lower < static.lower < flipped.lower
    book = Proof.of([Release(sampler, 1000, 4.0, 100)], "substitute").composition
    lowest = book.lower(book.spread / 200, 1e-18, False)
    assert lowest is not None
    assert static.lower >= 0.995 * lowest.delta(1.0)


@pytest.mark.parametrize(
    ("sampler", "n", "kind"),
    [
        (Poisson(0.02), None, "exact"),
        (Wor(200), S7, "upper"),
        (MustOW(118, 200), S7, "upper"),
        (Wr(50), 500, "upper"),
    ],
)
def test_the_upper_end_alone_is_the_same(sampler: Sampler, n: int | None, kind: str) -> None:
    for asked in ({"epsilon": 0.2}, {"delta": 1e-6, "width": 1e-2}):
        both = dpsub.account(sampler, n, noise_multiplier=4.0, steps=100, **asked, **SUBSTITUTE)
        alone = proved(sampler, n, noise_multiplier=4.0, steps=100, **asked)
        assert alone.upper == both.upper
        assert (alone.quantity, alone.conditions, alone.pair) == (
            both.quantity,
            both.conditions,
            both.pair,
        )
        assert alone.kind == kind
        if kind == "upper":
            assert (alone.lower, alone.lower_pair) == (0.0, "")
            assert both.kind == "bounds"


def test_the_upper_end_alone_computes_no_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: object) -> float:
        raise AssertionError("an attack was computed")

    monkeypatch.setattr(Composition, "lower", never)
    monkeypatch.setattr(AdaptiveAttack, "answers", never)
    assert proved(Wor(200), S7, noise_multiplier=4.0, steps=50, epsilon=1.0).upper < 1e-3
    with pytest.raises(AssertionError, match="attack"):
        dpsub.account(
            Wor(200), S7, noise_multiplier=4.0, steps=50, epsilon=1.0, adjacency="substitute"
        )


@pytest.mark.parametrize(
    ("sampler", "n", "target", "mechanism"),
    few(
        [
            (Poisson(0.02), None, 2.0, "gaussian"),
            (Wor(200), S7, 2.0, "gaussian"),
            (Poisson(0.3), None, 0.05, "gaussian"),
            (MustOW(30, 40), 500, 20.0, "gaussian"),
            (Wor(20), 100, 0.5, "laplace"),
        ],
        most=2,
    ),
)
def test_calibrated_noise_is_proved_and_close(
    sampler: Sampler, n: int | None, target: float, mechanism: str
) -> None:
    asked = {"steps": 100, "mechanism": mechanism}
    found = dpsub.calibrate(sampler, n, epsilon=target, delta=1e-6, accuracy=1e-3, **asked)
    again = {"delta": 1e-6, "width": 1e-3 * target, **asked}
    # safe: the very bound that is reported is at most the target, and so is a sharper one
    at = dpsub.account(sampler, n, noise_multiplier=found.noise_multiplier, **again)
    assert at.upper == found.account.upper <= target
    sharper = dpsub.account(
        sampler, n, noise_multiplier=found.noise_multiplier, **{**again, "width": 3e-4}
    )
    assert sharper.upper <= target
    # tight: a little less noise is not proved
    less = proved(sampler, n, noise_multiplier=found.noise_multiplier / 1.003, **again)
    assert less.upper > target
    # refuted: the attack exceeds the target
    refuted = dpsub.account(sampler, n, noise_multiplier=found.refuted, **{**again, "width": 2e-4})
    assert refuted.lower > target
    assert found.refuted < found.noise_multiplier
    if n is None:
        assert found.noise_multiplier < found.refuted * 1.005


class TestTightCalibration:
    asked: ClassVar[dict[str, Any]] = {
        "steps": 100,
        "epsilon": 1.0,
        "delta": 1e-5,
        "adjacency": "substitute",
    }

    @pytest.mark.thorough
    def test_noise_is_proved_near_what_an_attack_refutes(self) -> None:
        quick, tight = (
            dpsub.calibrate(Wor(200), S7, **self.asked, quick=quick, effort=None)
            for quick in (True, False)
        )
        assert tight.refuted is not None
        assert (
            tight.refuted
            < tight.noise_multiplier
            <= 1.0301 * tight.refuted
            < quick.noise_multiplier
        )
        assert tight.account.width_met
        # asked again: the tight bound meets the target, the quick one does not, and an attack
        # exceeds it at `refuted`
        again = {"steps": 100, "delta": 1e-5, "noise_multiplier": tight.noise_multiplier}
        again |= SUBSTITUTE
        assert dpsub.account(Wor(200), S7, **again, quick=False).upper <= 1.0
        assert dpsub.account(Wor(200), S7, **again).upper > 1.0
        assert tight.account.upper <= 1.0
        refuted = dpsub.account(Wor(200), S7, **{**again, "noise_multiplier": tight.refuted})
        assert refuted.lower > 1.0

    def test_without_the_time_it_is_the_quick_answer_that_says_so(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        quick = dpsub.calibrate(Wor(200), S7, **self.asked)
        # the game takes longer than there is
        monkeypatch.setattr(FillerGame, "answer", lambda self, target, lower, upper: upper)
        tight = dpsub.calibrate(Wor(200), S7, **self.asked, quick=False)
        assert tight.noise_multiplier == quick.noise_multiplier
        assert not tight.account.width_met
        assert tight.account.conditions[-1] == TIGHT_MISSED

    def test_one_number_needs_no_game(self) -> None:
        assert dpsub.calibrate(Poisson(0.02), **self.asked, quick=False) == dpsub.calibrate(
            Poisson(0.02), **self.asked
        )


def test_calibration_survives_a_misleading_rough_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"steps": 100, "epsilon": 1.0, "delta": 1e-6}
    straight = dpsub.calibrate(Wor(20), 2000, **asked)
    true = Composition.rough

    def misled(factor: float) -> Calibration:
        def rough(self: Composition, question: Target, side: str, step: float) -> float:
            value = true(self, question, side, step)
            return factor * value if side == "upper" else value

        monkeypatch.setattr(Composition, "rough", rough)
        return dpsub.calibrate(Wor(20), 2000, **asked)

    for factor in (0.2, 5.0, math.inf):
        found = misled(factor)
        assert found.account.upper <= 1.0
        assert found.noise_multiplier == pytest.approx(straight.noise_multiplier, rel=2e-3)


def test_calibration_is_cheap() -> None:
    # full accuracy where it decides, and only there
    for sampler, n in ((Poisson(0.02), None), (Wor(200), S7), (MustOW(30, 40), 500)):
        found = dpsub.calibrate(sampler, n, steps=200, epsilon=2.0, delta=1e-6)
        assert found.evaluations <= 4


WEIGHTS = {
    "few": np.array([9, 6, 1]) / 16,
    "two stages": binom.pmf(np.arange(16), 200, 1 / 118),
    "many copies": binom.pmf(np.arange(31), 30, 0.5),
    "never absent": np.array([0.0, 0.5, 0.5]),
}


@pytest.mark.parametrize("scale", [0.1, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("name", WEIGHTS)
def test_the_group_lemma_is_above_a_dense_search_and_close(name: str, scale: float) -> None:
    weights = WEIGHTS[name]
    lemma = GroupLemma(weights, scale)
    top = 3 / scale
    x = np.concatenate([np.linspace(0, top, 40), np.linspace(1.1 * top, 20 * top, 10)])
    largest = float(np.flatnonzero(weights > 1e-12)[-1])
    c = np.linspace(-9 * scale, 2 * largest + 9 * scale, 4001)
    searched = np.array([_supremand(weights, scale, at, c).max() for at in x])
    got = lemma(x)
    assert np.all(got >= np.minimum(searched, 1.0) * (1 - 1e-12))
    # close in units of the whole profile: edges are a hundredth of a deviation apart
    assert np.all(got <= searched + 5e-4 * searched[0])


def _supremand(weights: np.ndarray, scale: float, x: float, c: np.ndarray) -> np.ndarray:
    a = math.exp(x)
    total = weights[0] * (1 - a) * ndtr(-c / scale)
    for count in np.flatnonzero(weights[1:]) + 1:
        z = np.clip(scale**2 * x / (2 * count), c - count, c + count)
        total = total + weights[count] * (
            ndtr((count - z) / scale) - a * ndtr((-count - z) / scale)
        )
    return np.asarray(total)


def test_the_group_lemma_does_not_depend_on_the_company_of_an_order() -> None:
    lemma = GroupLemma(WEIGHTS["two stages"], 4.0)
    x = np.linspace(0, 4, 2500)
    alone = np.array([lemma(np.array([at]))[0] for at in x[::173]])
    np.testing.assert_allclose(lemma(x)[::173], alone, rtol=2.1e-4)
    with pytest.raises(ArgumentError, match="increase"):
        lemma(x[::-1])


def test_a_bend_that_is_too_small_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    # the planted fault takes wide cells for flat: the bound falls below the supremum
    monkeypatch.setattr(
        GroupLemma, "_bend", lambda self, at, order, low, width: np.zeros(order.size)
    )
    monkeypatch.setattr(profiles, "_LEVELS", (128,))
    with pytest.raises(AssertionError):
        test_the_group_lemma_is_above_a_dense_search_and_close("two stages", 4.0)


def test_laws_without_their_impossible_ends_are_the_same() -> None:
    for size, rate in ((200, 1 / 118), (5000, 0.5), (3, 1.0), (1000, 1e-9)):
        law = WithReplacement(size).count_law(10**9, round(rate * 10**9))
        whole = binom.pmf(np.arange(size + 1), size, round(rate * 10**9) / 10**9)
        np.testing.assert_allclose(law, whole[: law.size], rtol=1e-9, atol=1e-300)
        assert np.all(whole[law.size :] < 1e-320)
    assert WithReplacement(10**6).count_law(10**6, 1).size < 300
    assert law_of(Chain(10**6, (WithReplacement(10**6),))).pmf.sum() == pytest.approx(1, abs=1e-11)


def test_a_tiny_mass_meets_a_large_tilt() -> None:
    law = PrivacyLossDistribution(0.5, np.array([-4, 0, 60]), np.array([0.5, 0.5, 1e-290]), "upper")
    truth = 3 * 1e-290 * 0.5**2 * (1 - math.exp(-1))
    # the transform charges 2e-15 of the tilted mass, of which 6e-11 decide
    assert truth <= ComposedLoss([law], [3]).delta(29.0) <= truth * (1 + 1e-4)


@pytest.mark.parametrize("most", [1, pld._MOST_POOLINGS])
@pytest.mark.parametrize("kind", ["convex", "noisy", "steps", "rising"])
def test_pooled_slopes_are_the_isotonic_regression(
    kind: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pld, "_MOST_POOLINGS", most)
    rng = np.random.default_rng(5)
    slopes = np.sort(rng.exponential(size=400))[::-1]
    slopes = {
        "convex": slopes,
        "noisy": slopes * (1 + 1e-3 * rng.standard_normal(400)),
        "steps": np.repeat(rng.exponential(size=40), 10),
        "rising": slopes[::-1].copy(),
    }[kind]
    weights = rng.exponential(size=400)
    want = isotonic_regression(slopes, weights=weights, increasing=False).x
    np.testing.assert_allclose(pld._falling(slopes, weights), want, rtol=1e-12)


def test_golden_sections_find_the_minimum() -> None:
    for centre in (-3.9, 0.0, 2.7, 4.0):
        place, least = minimum(lambda u, c=centre: (u - c) ** 4 + abs(u - c), -4.0, 4.0, 1e-3)
        found = minimize_scalar(
            lambda u, c=centre: (u - c) ** 4 + abs(u - c), bounds=(-4, 4), method="bounded"
        )
        assert place == pytest.approx(centre, abs=1.1e-3)
        assert least <= found.fun + 2e-3


@pytest.mark.parametrize("question", few([{"delta": 1e-5}, {"epsilon": 1.0}]))
def test_a_budget_ends_long_work_with_valid_ends(question: dict[str, float]) -> None:
    # 999 999 draws from ten slots: the first profile alone takes more
    proof = Proof.of([Release(MustWW(10, 999_999), 1_000_001, 4.0, 10)])
    with work.metered(1 / 16):
        lower, upper, width_met = proof.composition.answer(Target(**question))
    assert 0 <= lower <= upper
    assert not width_met


BOUNDS: list[tuple[Callable[[float], float], float]] = [
    (lambda x: math.sqrt(x), 100.0),
    (lambda x: x * x / 5000, math.sqrt(50000.0)),
    (lambda x: 0.0 if x < 400 else math.inf, 400.0),
    (lambda x: 10 * (x / 900) ** 0.01, 900.0),
    (lambda x: math.expm1(min(x, 1e4) / 50), 50 * math.log(11)),
]


@pytest.mark.parametrize("start", [1.0, 90.0, 1e6])
@pytest.mark.parametrize(("bound", "root"), BOUNDS)
def test_whole_numbers_are_told_apart(
    bound: Callable[[float], float], root: float, start: float
) -> None:
    tried: list[float] = []

    def noted(x: float) -> float:
        tried.append(x)
        return bound(x)

    found = safe_root(
        noted, 10.0, Axis("x", 1, 1e7, rising=True, whole=True), start=start, accuracy=1e-4
    )
    assert found.safe in tried
    assert bound(found.safe) <= 10
    assert found.unsafe == found.safe + 1
    assert bound(found.unsafe) > 10
    assert found.safe == pytest.approx(root, abs=1)
    assert found.evaluations == len(tried) <= 30
    assert all(x == int(x) for x in tried)


@pytest.mark.parametrize("rising", [True, False])
@pytest.mark.parametrize(("bound", "root"), BOUNDS)
def test_real_numbers_are_close(bound: Callable[[float], float], root: float, rising: bool) -> None:
    axis = Axis("x", 0.1, 1e7, rising=rising)
    tried: list[float] = []

    def noted(x: float) -> float:
        tried.append(x)
        return bound(x if rising else root * root / x)

    found = safe_root(noted, 10.0, axis, start=3.0, accuracy=1e-3)
    assert found.unsafe is not None and found.closed
    assert found.safe in tried and found.unsafe in tried
    low, high = sorted((found.safe, found.unsafe))
    assert low <= root * (1 + 1e-12) <= high * (1 + 2e-12)
    assert high <= low * 1.001
    assert low <= found.root <= high
    assert rising == (found.safe < found.unsafe)


def test_limits() -> None:
    falling = Axis("x", 0.05, 1e4)
    found = safe_root(lambda x: 1 / x, 100.0, falling, start=1.0, accuracy=1e-3)
    assert (found.safe, found.unsafe) == (0.05, None)
    start = {"start": 30.0, "accuracy": 1e-3}
    for whole in (True, False):
        axis = Axis("x", 1.0, 50.0, rising=True, whole=whole)
        found = safe_root(lambda x: 1.0, 10.0, axis, **start)
        assert (found.safe, found.unsafe, found.closed) == (50, None, True)
    with pytest.raises(
        UnsupportedError,
        match=r"even a thing of 1 \(the search limit\) gives epsilon up to 11, .*; add noise",
    ):
        safe_root(lambda x: 11.0, 10.0, Axis("a thing", 1.0, 50.0, rising=True), **start)
    with pytest.raises(
        UnsupportedError,
        match=r"even a thing of 50 \(the search limit\) .* above the target 10; choose a larger",
    ):
        safe_root(lambda x: 11.0, 10.0, Axis("a thing", 1.0, 50.0), **start)


def test_what_was_proved_within_the_budget_is_returned() -> None:
    axis, start = Axis("x", 1.0, 50.0, rising=True), {"start": 30.0, "accuracy": 1e-3}
    with work.metered(1.0):
        most = 0.6 * work.left()

        def slow(x: float) -> float:
            work.spend(most)
            return 1.0

        found = safe_root(slow, 10.0, axis, **start)
        assert (found.safe, found.evaluations, found.closed) == (30, 1, False)
        with pytest.raises(
            NumericalError, match="x: nothing tried within 0 accounts met the target"
        ):
            safe_root(slow, 10.0, replace(axis, rising=False), **start)


def test_a_bound_that_exceeds_the_target_by_one_rounding_is_not_met() -> None:
    target = 1.9
    over = math.nextafter(target, 2)
    found = safe_root(
        lambda x: over if x < 3 else 1.0,
        target,
        Axis("x", 1.0, 50.0),
        start=2.0,
        accuracy=1e-3,
    )
    assert found.safe >= 3


@pytest.mark.thorough
def test_a_calibration_with_little_work_returns_what_was_proved() -> None:
    asked = {"epsilon": 1.0, "delta": 1e-6, "steps": 50}
    full = dpsub.calibrate(Wor(20), 2000, **asked)
    for effort in (0.001, 0.01, 0.03, 0.1):
        found = dpsub.calibrate(Wor(20), 2000, **asked, effort=effort)
        assert found.noise_multiplier >= full.noise_multiplier * (1 - 1e-3)
        assert found.account.upper <= 1.0


@pytest.mark.parametrize(
    ("sampler", "n", "relation"),
    [
        (RandomAllocation(100), None, "substitute"),
        (RandomAllocation(100), None, "zero_out"),
        (Shuffle(10), 1000, "zero_out"),
        (Poisson(0.01), None, "add_remove"),
        (MustWW(50, 20), 2000, "substitute"),
    ],
)
def test_a_calibration_without_work_has_noise_by_closed_forms(
    sampler: Any, n: int | None, relation: str
) -> None:
    asked: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-6, "epochs": 1, "adjacency": relation}
    found = dpsub.calibrate(sampler, n, **asked, effort=1e-4, quick=False)
    assert 0 < found.account.lower <= found.account.upper <= 8.0
    assert found.refuted is not None and found.refuted < found.noise_multiplier
    assert "effort" in found.account.width_reason
    # and the noise is enough
    del asked["epsilon"]
    again = dpsub.account(
        sampler, n, noise_multiplier=found.noise_multiplier, **asked, effort=0.1, quick=False
    )
    assert again.lower <= 8.0


@pytest.mark.parametrize(("sampler", "n"), [(Wor(20), 2000), (Poisson(0.01), None)])
def test_the_largest_number_of_steps_is_safe_and_an_attack_refutes_more(
    sampler: Sampler, n: int | None
) -> None:
    question = {"noise_multiplier": 3.0, "delta": 1e-6}
    steps = largest_steps(sampler, n, **question, epsilon=1.0)
    assert dpsub.account(sampler, n, **question, steps=int(steps.value), width=1e-4).upper <= 1
    steps = largest_steps(sampler, n, **question, epsilon=1.0, accuracy=0.01)
    assert steps.not_proved is not None and steps.refuted is not None
    assert steps.value < steps.not_proved <= steps.refuted == int(steps.refuted)
    assert dpsub.account(sampler, n, **question, steps=int(steps.refuted), width=1e-3).lower > 1


def test_the_largest_rate_is_safe_and_refuted_where_there_is_an_attack() -> None:
    question = {"noise_multiplier": 3.0, "steps": 100, "delta": 1e-6}
    rate = largest_sample(Poisson, most=1.0, whole=False, **question, epsilon=1.0)
    assert rate.account.upper <= 1
    assert rate.account.upper == pytest.approx(1, rel=3e-3)
    assert dpsub.account(Poisson(rate.value), **question).upper <= 1.001
    rough = largest_sample(Poisson, most=1.0, whole=False, **question, epsilon=1.0, accuracy=0.01)
    assert rough.refuted is not None and rough.value < rough.refuted < 1.05 * rough.value
    assert dpsub.account(Poisson(rough.refuted), **question).lower > 1
    quiet = question | {"noise_multiplier": 30.0, "steps": 1, "accuracy": 0.01}
    assert largest_sample(Poisson, most=1.0, whole=False, **quiet, epsilon=1.0).refuted is None


@pytest.mark.parametrize(
    ("epsilon", "delta", "name"), [(0.0, 1e-6, "epsilon"), (1.0, 1.0, "delta")]
)
def test_targets_that_nothing_meets_are_refused(epsilon: float, delta: float, name: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{name} must be"):
        largest_steps(Wor(20), 2000, noise_multiplier=3.0, epsilon=epsilon, delta=delta)


@pytest.mark.parametrize("side", ["upper", "lower"])
def test_one_transform_serves_many_targets(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    book = Proof.of([Release(Poisson(1.0), None, 20.0, 400)]).composition
    composed = getattr(book, side)(book.spread / 30, 1e-60, False)
    epsilons, deltas, made = np.linspace(0.0, 20.0, 41), np.geomspace(1e-14, 1e-2, 41), []
    masses = ComposedLoss.masses
    monkeypatch.setattr(
        ComposedLoss, "masses", lambda self, tilt: made.append(tilt) or masses(self, tilt)
    )
    at_epsilon, at_delta = composed.deltas(epsilons, 1e-5), composed.epsilons(deltas, 1e-5)
    assert len(made) <= 12
    sign = 1 if side == "upper" else -1
    for several, alone in (
        (at_epsilon, np.array([composed.delta(x) for x in epsilons.tolist()])),
        (at_delta, np.array([composed.epsilon(x) for x in deltas.tolist()])),
    ):
        assert several == pytest.approx(alone, rel=2e-5, abs=0)
        # what is charged goes to the safe side
        assert np.all(sign * (several - alone) >= -1e-9 * alone)
    # far from its tilt a transform says little: without the look at what it charges the answers are
    # loose
    monkeypatch.setattr(
        TiltedSum, "sharp", lambda self, x, share, place: np.ones(x.shape, dtype=bool)
    )
    assert composed.deltas(epsilons, 1e-5) != pytest.approx(at_epsilon, rel=1e-2, abs=0)


def test_a_calibration_says_what_keeps_its_noise_from_what_is_refuted() -> None:
    asked: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "accuracy": 0.05}
    exact = dpsub.calibrate(Poisson(0.1), steps=5, **asked)
    assert exact.width_met and not exact.width_reason and exact.relative_width <= 0.05
    assert exact.theorem == exact.account.theorem == "Theorem 1, docs/proofs/poisson.md"
    quick = dpsub.calibrate(Wor(20), 1000, steps=5, **asked, **SUBSTITUTE)
    assert quick.width_reason.startswith("quick") and quick.lower_theorem
    assert quick.width_met
    shuffled = dpsub.calibrate(Shuffle(10), 100, epochs=2, **asked, quick=False)
    assert shuffled.width_reason.startswith("theory") and not shuffled.width_met


@pytest.mark.parametrize("effort", few([0.3, 0.1]))
def test_what_is_refuted_is_told_where_proofs_take_all_work(effort: float) -> None:
    asked: Any = {"epochs": 1, "delta": 1e-5, "adjacency": "substitute"}
    found = dpsub.calibrate(dpsub.RandomAllocation(4), epsilon=1, effort=effort, **asked)
    assert found.refuted is not None and found.refuted < found.noise_multiplier < 4
    again: Any = {**asked, "noise_multiplier": found.refuted, "quick": False, "effort": 0.05}
    assert dpsub.account(dpsub.RandomAllocation(4), **again).lower > 1
