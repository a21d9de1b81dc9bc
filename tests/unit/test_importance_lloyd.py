"""Weighted DP-Lloyd: against loops over rows, its losses on whole transcripts, and what each mode does."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpsub.errors import ArgumentError
from dpsub.importance import lloyd
from dpsub.importance.calibrate import MODES, DataFacts, calibrate
from dpsub.importance.lloyd import CentreSets, Lloyd
from dpsub.importance.samplers import PoissonImportance, WeightedSample, checked_points

RNG = np.random.default_rng(3)
POINTS = RNG.standard_normal((900, 4))
POINTS -= POINTS.mean(axis=0)
FACTS = DataFacts.of(POINTS)
SAMPLE = PoissonImportance(RNG.uniform(0.2, 1, 900)).draw(RNG)


def plan_of(mode: str, noise: float = 1.0, k: int = 5, rounds: int = 4) -> Lloyd:
    return Lloyd(k, 3.0 * noise, 2.0 * noise, mode, FACTS.radius, rounds)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_chunks_and_stacks_agree_with_loops_over_rows(mode: str, noise: float) -> None:
    plans = [plan_of(mode, noise), plan_of(mode, 3 * noise)]
    first = np.stack([lloyd.drawn_centres(POINTS, SAMPLE, 5, np.random.default_rng(i)) for i in range(2)])
    together = lloyd.run(POINTS, SAMPLE, plans, first, [np.random.default_rng(i) for i in (5, 6)])
    for c, plan in enumerate(plans):
        by_rows = lloyd.run_by_rows(
            POINTS[SAMPLE.indices], SAMPLE.weights, plan, first[c], np.random.default_rng(5 + c)
        )
        assert together[c] == pytest.approx(by_rows, rel=1e-9, abs=1e-9)


def test_float32_rows_give_the_same_centres_up_to_their_rounding() -> None:
    plan, first = plan_of("repaired"), lloyd.fixed_centres(FACTS, 5, np.random.default_rng(0))
    double, single = (
        lloyd.run_full(rows, plan, first, np.random.default_rng(1)) for rows in (POINTS, POINTS.astype(np.float32))
    )
    assert single == pytest.approx(double, abs=2e-5)


def test_ties_go_to_the_lowest_index_and_counts_stay_exact_beyond_24_bits() -> None:
    points = np.zeros((3, 1), dtype=np.float32)
    counts, _ = lloyd.clusters(points, np.array([[[1.0], [-1.0], [1.0]]]), np.array([2.0**24, 1.0, 1.0]))
    assert counts[0].tolist() == [2.0**24 + 2, 0, 0]


def sought(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Labels by numpy's own search, shape (c, rows)."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = (centres**2).sum(axis=2).astype(rows.dtype)
        doubled = (2 * centres).astype(rows.dtype)
        return np.stack([(s - rows @ c.T).argmin(axis=1) for s, c in zip(squares, doubled, strict=True)])


@pytest.mark.parametrize("n", [300, 5000])  # searched one by one, and by comparisons of all
@pytest.mark.parametrize("k", [1, 7, 300])
def test_labels_are_those_of_a_search_row_by_row(n: int, k: int) -> None:
    rng = np.random.default_rng(k)
    # whole numbers make ties, and their products are exact
    rows = rng.integers(-3, 4, (n, 3)).astype(np.float32)
    centres = rng.integers(-3, 4, (6, k, 3)).astype(float)
    centres[1, k // 2, 1] = math.nan
    centres[2, k // 3 :, 0] = math.nan
    centres[3, -1] = 3e38  # its square is infinite
    sets = CentreSets(centres, rows.dtype)
    expected = sought(rows, centres)
    assert k == 1 or len(np.unique(expected[0])) > 1
    for columns in (rows.T, np.ascontiguousarray(rows.T)):
        assert (sets.labels(columns) == expected).all()
        # a planted fault: one row that is another's
        assert not (sets.labels(columns)[:, 1:] == expected[:, :-1]).all() or k == 1
    least = sets.least(rows.T)
    assert np.isnan(least).all(axis=1).tolist() == [False, True, True, False, False, False]


def test_plans_that_start_alike_or_apart_and_samples_of_any_size_agree_with_runs_alone() -> None:
    rng = np.random.default_rng(8)
    rows = rng.standard_normal((20_000, 2))
    radius = float(np.linalg.norm(rows, axis=1).max())
    plans = [Lloyd(3, noise, 2.0, "repaired", radius, 3) for noise in (1.0, 5.0)]
    alike = np.repeat(rng.standard_normal((1, 3, 2)), 2, axis=0)
    for kept in (1 << 22, 0):  # all forms of the sample are kept from round to round, or made again
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lloyd, "_KEPT", kept)
            for size in (500, 20_000):
                sample = WeightedSample(np.arange(size), rng.uniform(1, 2, size))
                for first in (alike, alike * np.array([1.0, 0.9])[:, None, None]):
                    both = lloyd.run(rows, sample, plans, first, [np.random.default_rng(i) for i in range(2)])
                    for c in range(2):
                        alone = lloyd.run(rows, sample, plans[c : c + 1], first[c : c + 1], [np.random.default_rng(c)])
                        assert both[c] == pytest.approx(alone[0], rel=1e-12)
                        if size == 500:
                            by_rows = lloyd.run_by_rows(
                                rows[:size], sample.weights, plans[c], first[c], np.random.default_rng(c)
                            )
                            assert both[c] == pytest.approx(by_rows, rel=1e-9)


def test_costs_are_mean_squared_distances_to_the_nearest_centre() -> None:
    centres = RNG.standard_normal((7, 5, 4))
    naive = [((POINTS[:, None, :] - c) ** 2).sum(axis=2).min(axis=1).mean() for c in centres]
    assert lloyd.costs(POINTS, centres) == pytest.approx(naive, rel=1e-12)
    assert lloyd.costs(POINTS.astype(np.float32), centres) == pytest.approx(naive, rel=1e-5)
    centres[3, 2, 0] = math.nan
    assert np.isnan(lloyd.costs(POINTS, centres)).tolist() == [False] * 3 + [True] + [False] * 3


def transcript_loss(points: np.ndarray, weights: np.ndarray, plan: Lloyd, rng: np.random.Generator) -> float:
    """log density of one transcript of noisy counts and sums with the last record, over that without it."""
    k, d = plan.n_clusters, points.shape[1]
    centres = np.array([[-1.0] * d, [1.0] * d])
    total = 0.0
    for _ in range(plan.n_iterations):
        counts, sums = (part[0] for part in lloyd.clusters(points, centres[None], weights))
        other_counts, other_sums = (part[0] for part in lloyd.clusters(points[:-1], centres[None], weights[:-1]))
        on_counts, on_sums = plan.noise(d, rng)
        seen_counts, seen_sums = counts + on_counts, sums + on_sums
        for j in range(k):
            total += (abs(seen_counts[j] - other_counts[j]) - abs(seen_counts[j] - counts[j])) / plan.beta_count
            far, near = (np.linalg.norm(seen_sums[j] - s[j], ord=plan.order) for s in (other_sums, sums))
            total += (far - near) / plan.beta_sum
        centres = plan.update(seen_sums, seen_counts, centres)
    return total


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0])
def test_whole_transcripts_keep_the_loss_of_proposition_13(order: float) -> None:
    rng = np.random.default_rng(int(order))
    points = rng.uniform(-1, 1, (6, 2))
    weights = rng.uniform(1, 4, 6)
    plan = Lloyd(2, 2.0, 1.5, "stated", 10.0, 2, order)
    promised = weights[-1] * float(plan.slopes(np.array(np.linalg.norm(points[-1], ord=order))))
    losses = [transcript_loss(points, weights, plan, rng) for _ in range(400)]
    assert np.abs(losses).max() <= promised * (1 + 1e-12)
    assert np.abs(losses).max() > 0.8 * promised
    # a planted fault: a weight that is forgotten
    assert np.abs(losses).max() > promised / weights[-1]


def test_released_failures_spread_and_repaired_runs_go_on() -> None:
    far = np.array([[0.0] * 4, [50.0] * 4])
    for mode in MODES:
        plan = Lloyd(2, 0, 0, mode, FACTS.radius, 3)
        centres = lloyd.run(POINTS, SAMPLE, [plan], far[None], [np.random.default_rng(0)])[0]
        # a centre that is NaN takes all rows, whose mean is finite again, and leaves NaN to the others
        assert np.isnan(centres).any() == (mode != "repaired")
        if mode == "repaired":
            assert centres[1] == pytest.approx(far[1])
        cost = lloyd.costs(POINTS, centres[None])
        assert np.isnan(cost[0]) == (mode != "repaired")


def test_negative_counts_are_used_as_they_are_except_in_repaired() -> None:
    sums, counts, old = np.array([[3.0, 4.0], [1.0, 0.0]]), np.array([-2.0, 0.5]), np.zeros((2, 2))
    released = Lloyd(2, 1.0, 1.0, "released", 1.5).update(sums, counts, old)
    assert released.tolist() == [[-1.5, -2.0], [2.0, 0.0]]
    repaired = Lloyd(2, 1.0, 1.0, "repaired", 1.5).update(sums, counts, old)
    assert repaired == pytest.approx(np.array([[0.9, 1.2], [1.0, 0.0]]))


@pytest.mark.parametrize("mode", ["stated", "repaired"])
def test_repaired_results_scale_with_the_data(mode: str) -> None:
    """E8: the same draws on data in other units give the same clusters, with the repaired split only."""
    found = []
    for factor in (1.0, 1000.0):
        rows = POINTS * factor
        facts = DataFacts.of(rows)
        c = calibrate("unif", facts, target=3.0, m=300, mode=mode, n_iterations=4)
        plan = Lloyd(5, c.beta_sum, c.beta_count, mode, facts.radius, 4)
        sample = PoissonImportance(c.rates(np.linalg.norm(rows, axis=1))).draw(np.random.default_rng(0))
        first = lloyd.fixed_centres(facts, 5, np.random.default_rng(1))
        centres = lloyd.run(rows, sample, [plan], first[None], [np.random.default_rng(2)])
        found.append(float(lloyd.costs(rows, centres)[0]) / facts.mean_square)
    assert (found[0] == pytest.approx(found[1], rel=1e-6)) == (mode == "repaired")


def test_one_round_without_noise_is_scikit_learns() -> None:
    from sklearn.cluster import KMeans

    first = POINTS[:6]
    peer = KMeans(6, init=first, n_init=1, max_iter=1, algorithm="lloyd", tol=0).fit(POINTS)
    plan = Lloyd(6, 0, 0, "repaired", 100.0, 1)
    ours = lloyd.run_full(POINTS, plan, first, np.random.default_rng(0))
    assert ours == pytest.approx(peer.cluster_centers_, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: checked_points(np.zeros((0, 3))), "points must be a table with rows and columns"),
        (lambda: checked_points(np.zeros(3)), "points must be a table with rows and columns"),
        (lambda: checked_points(np.zeros((3, 0))), "points must be a table with rows and columns"),
        (lambda: checked_points(np.array([["a", "b"]])), "columns must be numeric"),
        (lambda: checked_points(np.array([[1.0, math.nan]])), "points must be finite"),
        (lambda: Lloyd(0, 1.0, 1.0, "stated", 1.0), "n_clusters must be at least 1"),
        (lambda: Lloyd(2, 1.0, 1.0, "stated", 1.0, 0), "n_iterations must be at least 1"),
        (lambda: Lloyd(2, -1.0, 1.0, "stated", 1.0), "beta_sum must be above 0"),
        (lambda: Lloyd(2, 1.0, 0.0, "stated", 1.0), "beta_count must be above 0"),
        (lambda: Lloyd(2, 1.0, math.nan, "stated", 1.0), "beta_count must be finite"),
        (lambda: lloyd.drawn_centres(POINTS, SAMPLE, 10_000, RNG), "n_clusters must be at most the sample size"),
        (
            lambda: lloyd.run_full(np.full((2, 4), math.nan), plan_of("stated"), np.zeros((5, 4)), RNG),
            "rows must have norms of at most .* got nan",
        ),
        (
            lambda: lloyd.run(
                POINTS, SAMPLE, [plan_of("stated"), plan_of("stated", k=4)], np.zeros((2, 5, 4)), [RNG] * 2
            ),
            "plans that run together need one k",
        ),
    ],
)
def test_bad_inputs_are_refused_in_a_sentence(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ArgumentError, match=message):
        call()


def test_whole_numbers_become_floats_and_floats_are_not_copied() -> None:
    assert checked_points(np.ones((2, 2), dtype=np.int32)).dtype == np.float64
    assert checked_points(POINTS) is POINTS
