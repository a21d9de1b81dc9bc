"""One test an erratum of Fay et al.: what errata.md says, shown by a computation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from dpsub.data import described
from dpsub.data.point_sets import squared_norms, twin
from dpsub.errors import ArgumentError
from dpsub.importance import samplers
from dpsub.importance.audit import audit_first_centres, audit_noise
from dpsub.importance.calibrate import MODES, RHO, DataFacts, calibrate
from dpsub.importance.lloyd import Lloyd
from dpsub.importance.losses import Power, loss_when_removed
from dpsub.importance.samplers import WeightedLaplaceSum
from dpsub.importance.weights import optimal_weights
from dpsub.papers.importance.experiments.cells import facts_of
from tests.experiment_runs import settings_of

SLOPES = np.geomspace(0.02, 0.9, 25)
CONVEXITY = SLOPES**2 * np.exp(SLOPES)
ROUNDS = 10


def facts(name: str) -> DataFacts:
    return facts_of(described.of(name))


@pytest.fixture(scope="module")
def song() -> tuple[DataFacts, np.ndarray]:
    points, _ = twin(described.of("song"), 2000)
    return DataFacts.of(points), np.sqrt(squared_norms(points))


def bracket_end(
    slope: np.ndarray, target: float, convexity: np.ndarray, offset: float
) -> np.ndarray:
    """Return the end of Algorithm 1, line 6, for eps(w) = slope w: 2 (e^eps* - v) / mu + offset."""
    v = np.minimum(np.exp(slope) + convexity / 2, slope * np.exp(slope) + 1)
    return 2 * (math.exp(target) - v) / convexity + offset


def test_im1_equation_4_lacks_a_square() -> None:
    a, step = 0.05 * ROUNDS, 1e-4
    second = (math.exp(a * (1 + step)) - 2 * math.exp(a) + math.exp(a * (1 - step))) / step**2
    assert second == pytest.approx(a**2 * math.exp(a), rel=1e-6) == pytest.approx(0.412, abs=1e-3)
    assert ROUNDS**2 * 0.05 * math.exp(a) == pytest.approx(8.24, abs=5e-3)
    printed = ROUNDS * SLOPES * np.exp(SLOPES)
    assert (bracket_end(SLOPES, 1.0, printed, 1) < optimal_weights(SLOPES, 1.0)).mean() > 0.8


def test_im2_the_bracket_of_algorithm_1_is_short_by_1() -> None:
    short = 0
    for target in (1.0, 3.0, 10.0):
        best = optimal_weights(SLOPES, target)
        short += int((bracket_end(SLOPES, target, CONVEXITY, 1) < best).sum())
        assert (bracket_end(SLOPES, target, CONVEXITY, 2) >= best * (1 - 1e-12)).all()
    assert short > 0
    # e^eps(w) = e + 2 (w - 1) + (w - 1)^2 / 10, eps* = eps(1) = 1: printed is the bracket [1, 0],
    # proved [1, 1]
    v = min(math.e + 0.1, 2 + 1)
    assert 2 * (math.e - v) / 0.2 + np.array([1, 2]) == pytest.approx([0, 1], abs=1e-12)


def test_im3_the_test_of_line_7_misses_an_optimum() -> None:
    """For e^{eps(w)} = e + (w - 1)/2 + (w - 1)^2/2 and eps* = 1, w = 1 is a root, and the bracket
    is closed as eps' > 0."""

    def residual(w: float) -> float:
        return math.e + (w - 1) / 2 + (w - 1) ** 2 / 2 - 1 - w * math.expm1(1)

    assert residual(1) == pytest.approx(0, abs=1e-15) and residual(1.5) < 0
    assert 0 < 0.5 / math.e < 1 - math.exp(-1)
    assert brentq(residual, 1.5, 10) == pytest.approx(3.437, abs=5e-4)


def test_im4_proposition_12_counts_too_few_halvings() -> None:
    half_width = 1e-3
    shorter, span = (bracket_end(SLOPES, 1.0, CONVEXITY, offset) - 1 for offset in (1, 2))
    printed = np.log2(np.maximum(np.ceil(shorter / (2 * half_width)), 1))
    needed = np.ceil(np.log2(np.maximum(span / (2 * half_width), 1)))
    assert (printed != np.round(printed)).any() and (printed <= needed).all()
    assert (span / 2.0**needed <= 2e-3 * (1 + 1e-12)).all()
    assert (span / 2.0 ** np.floor(printed) > 2e-3).any() and (np.floor(printed) < needed).any()


def test_im5_the_inequality_of_proposition_17s_proof() -> None:
    x = np.linspace(1e-3, 5, 500)
    value = np.exp(x) * (x - 1) + 1
    assert (value[x < 1] < x[x < 1] ** 2).any() and (value >= x**2 / 2).all()
    assert (Power(np.full(x.size, 0.7)).sampled(np.linspace(0.01, 1, x.size)) >= 0.7 - 1e-12).all()


def test_im6_the_size_limit_is_not_necessary() -> None:
    kdd = facts("kdd_protein")
    limit = kdd.n * kdd.mean_square / kdd.radius**2
    assert limit == pytest.approx(15532, abs=1)
    noise = calibrate("core", kdd, target=3.0, m=20000)
    assert noise.m_max == pytest.approx(28004, abs=1) and noise.feasible
    assert noise.rates(np.array([kdd.radius]))[0] < 1


def test_im7_first_centres_from_the_data_are_outside_of_proposition_13() -> None:
    for mode in MODES:
        assert audit_first_centres(mode, np.random.default_rng(7), draws=20_000).flagged == (
            mode != "repaired"
        )


def test_im8_the_split_mixes_units() -> None:
    kdd = facts("kdd_protein")
    large = replace(kdd, radius=1000 * kdd.radius, mean_square=1e6 * kdd.mean_square)
    for mode, alike in (("released", False), ("stated", False), ("repaired", True)):
        one, other = (calibrate("full", of, target=3.0, mode=mode) for of in (kdd, large))
        shares = [noise.offset / (noise.facts.radius + noise.offset) for noise in (one, other)]
        assert (shares[1] == pytest.approx(shares[0], rel=1e-9)) is alike
        assert (other.beta_count == pytest.approx(one.beta_count, rel=1e-9)) is alike
        assert (other.beta_sum == pytest.approx(1000 * one.beta_sum, rel=1e-9)) is alike
    stated = calibrate("full", kdd, target=3.0, mode="stated")
    assert stated.offset / (kdd.radius + stated.offset) < 1e-4
    assert stated.beta_count == pytest.approx(65917, abs=1) and kdd.n / 25 == pytest.approx(
        5684, abs=1
    )


def test_im9_the_approximation_for_large_epsilon() -> None:
    value = float(loss_when_removed(1.1, 0.01))
    assert value == pytest.approx(0.0198, abs=5e-5) and 1.1 + math.log(0.01) == pytest.approx(
        -3.51, abs=5e-3
    )
    assert float(loss_when_removed(30.0, 0.01)) == pytest.approx(30 + math.log(0.01), abs=1e-9)


def test_im10_without_lower_semicontinuity_there_is_no_largest_weight() -> None:
    def growth(w: float) -> float:
        return math.expm1(0.5 if w < 2 else 10 + w) / w

    gain = math.expm1(1.0)
    assert (
        growth(1) <= gain
        and all(growth(2 - 10.0**-k) <= gain for k in range(1, 15))
        and growth(2) > gain
    )


def test_im11_norm_orders_below_1() -> None:
    def size(x: np.ndarray) -> float:
        return float((np.abs(x) ** 0.5).sum() ** 2)

    assert size(np.array([1.0, 1.0])) > size(np.array([1.0, 0.0])) + size(np.array([0.0, 1.0]))
    with pytest.raises(ArgumentError, match="order"):
        Lloyd(2, 1.0, 1.0, "stated", 1.0, 1, 0.5)


def test_im12_misprints_of_theorem_6_and_section_33() -> None:
    q, loss = 0.5, 0.1
    assert float(loss_when_removed(loss, q)) == pytest.approx(0.0513, abs=5e-4)
    assert math.log1p(q * math.expm1(1 / q)) > 1.4
    rows = np.ones((4, 2))
    errors = [WeightedLaplaceSum(b).mean_squared_error(rows, np.full(4, 0.5)) for b in (1.0, 3.0)]
    assert errors[1] - errors[0] == pytest.approx(2 * 2 * (9 - 1))


def test_im13_the_stated_target_of_opt_fixes_its_size(song: tuple[DataFacts, np.ndarray]) -> None:
    data, norms = song
    noise = calibrate("opt", data, target=3.0, m=0.05 * data.n, mode="stated", norms=norms)
    implied = samplers.optimal_rates(noise.slopes(norms), float(noise.slopes(norms).max())).sum()
    assert implied > 2 * 0.05 * data.n


def test_im14_rates_depend_on_the_other_records(song: tuple[DataFacts, np.ndarray]) -> None:
    data, norms = song
    m = 0.1 * data.n
    before = samplers.coreset_rates(norms, m, n=data.n, mean_square=data.mean_square)
    more = (data.n * data.mean_square + data.radius**2) / (data.n + 1)
    after = samplers.coreset_rates(norms, m, n=data.n + 1, mean_square=more)
    assert abs(float((before * (1 / after - 1 / before)).sum())) > 0.1


def test_im15_the_radius_of_the_released_noise() -> None:
    d, rng = 8, np.random.default_rng(1)
    lengths = {}
    for mode in ("released", "stated"):
        _, sums = Lloyd(20000, 1.0, 1.0, mode, 1.0, 1).noise(d, rng)
        lengths[mode] = float(np.linalg.norm(sums, axis=1).mean())
    assert lengths["released"] == pytest.approx(1, rel=0.05) and lengths["stated"] == pytest.approx(
        d, rel=0.05
    )
    for mode in MODES:
        shown = audit_noise(mode, np.random.default_rng(2))
        assert shown.flagged == (mode == "released") and shown.lower > 0


def test_im16_the_searched_budgets_exclude_needed_ones() -> None:
    data = facts("ijcnn1")
    for target, excluded in ((1000.0, True), (3.0, False)):
        noise = calibrate("core", data, target=target, m=15000, mode="released")
        budget = (
            noise.n_iterations * data.radius * (data.d / (2 * RHO)) ** (2 / 3) / noise.beta_sum**2
        )
        assert (1e-7 < budget < 5e4) is not excluded


def test_im17_halving_the_upper_end_loses_attainable_sizes(
    song: tuple[DataFacts, np.ndarray],
) -> None:
    data, norms = song
    largest = calibrate("opt", data, target=3.0, m=0.01 * data.n, mode="stated", norms=norms)
    limit = 3.0 / (data.radius + largest.offset)
    halved = samplers.optimal_rates(0.5 * limit * (norms + largest.offset), 3.0).sum()
    wanted = 0.98 * largest.m_max
    assert halved < 0.9 * wanted
    assert calibrate("opt", data, target=3.0, m=wanted, mode="stated", norms=norms).feasible


def test_im18_released_weights_exceed_the_target(song: tuple[DataFacts, np.ndarray]) -> None:
    data, norms = song
    noise = calibrate("opt", data, target=1000.0, m=0.05 * data.n, mode="released", norms=norms)
    assert 0.05 < noise.psi - 1000 < 0.4
    assert (
        calibrate("opt", data, target=1000.0, m=0.05 * data.n, mode="stated", norms=norms).psi
        <= 1000
    )


def test_im19_a_bracket_with_the_target_for_its_exponential() -> None:
    target, slopes = 10.0, np.linspace(1, 3, 20)
    end = 2 * (target - np.exp(slopes)) / (slopes**2 * np.exp(slopes)) + 2
    assert (end < optimal_weights(slopes, target)).all()


def test_im20_files_and_comments_beside_the_code() -> None:
    grid = settings_of("importance_clustering")["cells"]["epsilons"]
    assert {30, 50} <= set(grid)
    limits = {
        name: round(of.n * of.mean_square / of.radius**2)
        for name in ("pose", "fma")
        for of in [facts(name)]
    }
    assert limits == {"pose": 8619, "fma": 16740}
