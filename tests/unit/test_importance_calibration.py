"""Noise of k-means: closed forms against root finding, proofs over all norms, infeasible cells, the released code."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from dpsub.errors import ArgumentError
from dpsub.importance.calibrate import MODES, RELEASED_GRID, DataFacts, LloydCalibration, calibrate, count_offset

TABLE_1 = {
    "KDD-Protein": (DataFacts(142_107, 74, 8020.65, 7_031_359.55), (5000, 15_000)),
    "Song": (DataFacts(502_461, 90, 7507.16, 6_769_375.49), (5000, 50_000)),
    "Ijcnn1": (DataFacts(48_740, 22, 1.51, 1.26), (5000, 15_000)),
    "MiniBooNE": (DataFacts(126_812, 50, 2213.05, 295_947.13), (4000, 7000)),
}
TARGETS = (0.5, 3.0, 100.0, 1000.0)
CELLS = [(facts, m, t) for facts, sizes in TABLE_1.values() for m in sizes for t in TARGETS]
NORMS = np.sqrt(np.random.default_rng(0).uniform(0.01, 1, 3000)) * 2.0
SMALL = DataFacts(3000, 5, 2.0, float((NORMS**2).mean()))


def losses(found: LloydCalibration, z: np.ndarray) -> np.ndarray:
    """psi at norms z, written again."""
    q = found.rates(z)
    return np.logaddexp(np.log1p(-np.minimum(q, 1 - 1e-16)), np.log(q) + found.slopes(z) / q)


@pytest.mark.parametrize(("facts", "m", "target"), CELLS)
def test_noise_scales_of_table_1_by_root_finding(facts: DataFacts, m: int, target: float) -> None:
    z = np.linspace(0, facts.radius, 20_001)
    offset = count_offset(facts, "stated")
    for sampler in ("full", "unif", "core"):
        found = calibrate(sampler, facts, target=target, m=m, mode="stated")
        q = found.rates(z)

        def excess(log_s: float, q: np.ndarray = q) -> float:
            exponent = math.exp(log_s) * (z + offset) / q
            psi = np.logaddexp(np.log1p(-np.minimum(q, 1 - 1e-16)), np.log(q) + exponent)
            return float(psi.max()) - target

        start = math.log(found.s)
        root = math.exp(brentq(excess, start - 1, start + 1, xtol=1e-13))
        assert found.s == pytest.approx(root, rel=1e-6)
        assert found.beta_sum == pytest.approx(10 / root, rel=1e-6)
        # the guarantee holds between the points of any grid
        assert losses(found, z).max() <= target * (1 + 1e-12)
        assert found.psi == target


def test_uniform_sampling_needs_more_noise_than_core_sets_on_table_1() -> None:
    ratios = [
        calibrate("unif", facts, target=t, m=m, mode="stated").beta_sum
        / calibrate("core", facts, target=t, m=m, mode="stated").beta_sum
        for facts, m, t in CELLS
    ]
    assert 1.12 < min(ratios) < 1.2
    assert 4 < max(ratios) < 4.12


@pytest.mark.parametrize("target", [0.5, 3.0, 1000.0])
@pytest.mark.parametrize("mode", MODES)
def test_optimal_sampling_attains_its_size_with_the_least_noise(mode: str, target: float) -> None:
    found = {
        s: calibrate(s, SMALL, target=target, m=300, mode=mode, norms=NORMS) for s in ("unif", "core", "opt", "full")
    }
    opt = found["opt"]
    assert opt.rates(NORMS).sum() == pytest.approx(300, rel=1e-3 if mode == "released" else 1e-9)
    assert opt.beta_sum <= found["unif"].beta_sum * (1 + 1e-9)
    assert opt.beta_sum <= found["core"].beta_sum * (1 + 1e-9)
    if mode != "released":
        assert losses(opt, NORMS).max() <= target * (1 + 1e-12)
    assert found["full"].beta_sum == pytest.approx(10 * (2 + opt.offset) / target)


def test_sizes_beyond_the_largest_are_not_available() -> None:
    found = calibrate("opt", SMALL, target=3.0, m=2900, norms=NORMS)
    assert not found.feasible and math.isnan(found.beta_sum) and math.isnan(found.beta_count)
    with pytest.raises(ArgumentError, match=f"m must be at most {found.m_max:.6g} at epsilon = 3 for the sampler opt"):
        found.rates(NORMS)
    edge = calibrate("opt", SMALL, target=3.0, m=found.m_max * (1 - 1e-9), norms=NORMS)
    assert edge.feasible
    assert edge.rates(NORMS).sum() == pytest.approx(found.m_max, rel=1e-8)
    core = calibrate("core", SMALL, target=3.0, m=2900)
    assert not core.feasible and core.m_max < 2900
    assert calibrate("core", SMALL, target=3.0, m=core.m_max).rates([2.0])[0] == pytest.approx(1)


def test_the_released_grid_misses_part_of_the_loss() -> None:
    """100 points miss up to 0.1 nats at eps* = 1000 (MiniBooNE), a relative 2e-4 at most."""
    facts, _ = TABLE_1["MiniBooNE"]
    found = calibrate("core", facts, target=1000.0, m=4000, mode="released")
    assert 0.09 < found.psi - 1000 < 0.11
    assert losses(found, np.linspace(0, facts.radius, 200_001)).max() == pytest.approx(found.psi, abs=1e-4)
    assert losses(found, np.linspace(0, facts.radius, RELEASED_GRID)).max() == pytest.approx(1000, rel=1e-12)


def test_the_repaired_split_has_the_least_error() -> None:
    facts = SMALL
    c2, d, r = facts.mean_square, facts.d, facts.radius

    def error(offset: float) -> float:
        beta_sum = r + offset  # s = 1: loss of the largest record r / beta_sum + 1 / beta_count fixed up to a factor
        return d * (d + 1) * beta_sum**2 + 2 * c2 * (beta_sum / offset) ** 2

    best = count_offset(facts, "repaired")
    assert error(best) <= min(error(best * 0.98), error(best * 1.02))
    assert error(best) < error(count_offset(facts, "stated"))


def test_runs_without_noise_have_scales_of_zero() -> None:
    found = calibrate("core", SMALL, target=math.inf, m=300)
    assert found.beta_sum == 0 and found.beta_count == 0
    assert found.rates(NORMS).sum() == pytest.approx(300)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibrate("opt", SMALL, target=0.0, m=3, norms=NORMS), "target epsilon must be above 0"),
        (lambda: calibrate("opt", SMALL, target=math.inf, m=3, norms=NORMS), "target epsilon must be finite"),
        (lambda: calibrate("unif", SMALL, target=math.nan, m=3), "target epsilon must be finite"),
        (lambda: calibrate("unif", SMALL, target=1.0), "m must be given for the sampler unif"),
        (lambda: calibrate("unif", SMALL, target=1.0, m=3001), "m must be at most 3000"),
        (lambda: calibrate("opt", SMALL, target=1.0, m=3), "opt needs the norms"),
        (lambda: calibrate("opt", SMALL, target=1.0, m=3, norms=NORMS[:5]), "one norm a record, n = 3000, got 5"),
        (lambda: calibrate("opt", SMALL, target=1.0, m=3, norms=2 * NORMS), "norms must be at most the radius 2"),
        (lambda: calibrate("core", SMALL, target=1.0, m=3, mixing=0.0), "mixing must be above 0"),
        (lambda: calibrate("cor", SMALL, target=1.0, m=3), "did you mean 'core'"),
        (lambda: calibrate("core", SMALL, target=1.0, m=3, mode="repair"), "did you mean 'repaired'"),
        (lambda: calibrate("unif", SMALL, target=1.0, m=3, n_iterations=0), "n_iterations must be at least 1"),
        (lambda: DataFacts(0, 5, 1.0, 1.0), "n must be at least 1"),
        (lambda: DataFacts(5, 0, 1.0, 1.0), "d must be at least 1"),
        (lambda: DataFacts(5, 5, 1.0, 0.0), "mean_square must be above 0"),
        (lambda: calibrate("unif", SMALL, target=1.0, m=3).slopes([3.0]), "norms must be at most the radius 2"),
    ],
)
def test_bad_inputs_are_refused_in_a_sentence(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ArgumentError, match=message):
        call()
