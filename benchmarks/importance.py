"""Compare optimal weights of a million records and DP-Lloyd on half a million with limits and other
packages."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
from board import Board
from sklearn.cluster import KMeans

from dpsub.importance import lloyd
from dpsub.importance.approximate import NormPair
from dpsub.importance.calibrate import DataFacts, calibrate
from dpsub.importance.losses import log_expm1
from dpsub.importance.samplers import WeightedSample
from dpsub.importance.weights import optimal_weights

WEIGHTS, ROWS, COLUMNS, CLUSTERS, ROUNDS = 10**6, 500_000, 90, 25, 10
WEIGHTS_LIMIT, RUN_LIMIT = 0.5, 4.0  # seconds of one core
MEMORY_LIMIT = 1.5  # times the memory of the data


def _bisected(slopes: np.ndarray, target: float) -> np.ndarray:
    """Optimal weights, found by halving until no double is left between the ends."""

    def feasible(w: np.ndarray) -> np.ndarray:
        return np.asarray(log_expm1(slopes * w) - np.log(w) <= log_expm1(target))

    low, high = np.ones(slopes.size), np.full(slopes.size, 2.0)
    while (good := feasible(high)).any():
        high = np.where(good, 2 * high, high)
    while ((low < (middle := 0.5 * (low + high))) & (middle < high)).any():
        good = feasible(middle)
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return low


def importance(board: Board, *, quick: bool) -> None:
    """Time weights, one complete run, one round against peers, and the row-by-row loop."""
    count, rows, looped = board.sized((WEIGHTS, ROWS, 20_000), (10**4, 2000, 500))
    rng = np.random.default_rng(0)
    slopes = rng.uniform(0.01, 3.0, count)
    for target in (3.0, 1000.0):
        ours, _ = board.timed(lambda target=target: optimal_weights(slopes, target))
        board.line(
            f"{count:,} optimal weights, epsilon {target:g}",
            ours,
            "the limit",
            WEIGHTS_LIMIT,
            at_most=1,
        )
    few = slopes[:20_000]
    ours, _ = board.timed(lambda: optimal_weights(few, 3.0))
    theirs, _ = board.timed(lambda: _bisected(few, 3.0))
    board.line(
        f"{few.size:,} optimal weights", ours, "bisection to the last bit", theirs, at_most=1 / 3
    )

    points = rng.standard_normal((rows, COLUMNS), dtype=np.float32)
    norms = np.sqrt(np.einsum("ij,ij->i", points, points))
    facts = DataFacts(
        rows, COLUMNS, float(norms.max()) * (1 + 1e-6), float((norms.astype(float) ** 2).mean())
    )
    noise = calibrate("full", facts, target=3.0)
    plan = lloyd.Lloyd(CLUSTERS, noise.beta_sum, noise.beta_count, "repaired", facts.radius, ROUNDS)
    first = lloyd.fixed_centres(facts, CLUSTERS, rng)
    ours, _ = board.timed(lambda: lloyd.run_full(points, plan, first, np.random.default_rng(1)))
    board.line(
        f"DP-Lloyd, n = {rows}, d = {COLUMNS}, k = {CLUSTERS}, T = {ROUNDS}",
        ours,
        "the limit",
        RUN_LIMIT,
        at_most=1,
    )
    once = lloyd.Lloyd(CLUSTERS, 0, 0, "repaired", facts.radius, 1)
    start = points[:CLUSTERS].astype(float)
    tracemalloc.start()
    lloyd.run_full(points, once, start, np.random.default_rng(1))
    share = 1 + tracemalloc.get_traced_memory()[1] / points.nbytes
    tracemalloc.stop()
    board.verdict("its memory beside that of the data", f"{share:.2f} times", share, MEMORY_LIMIT)

    ours, centres = board.timed(
        lambda: lloyd.run_full(points, once, start, np.random.default_rng(1))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one round is meant not to converge
        theirs, peer = board.timed(
            lambda: KMeans(
                CLUSTERS, init=points[:CLUSTERS], n_init=1, max_iter=1, algorithm="lloyd", tol=0
            ).fit(points)
        )
    board.line("one round of Lloyd, same centres", ours, "scikit-learn KMeans", theirs, at_most=1.5)
    print(
        f"  its centres differ by {np.abs(centres - peer.cluster_centers_).max():.1e}", flush=True
    )
    _against_diffprivlib(board, points, facts, plan, first, quick=quick)
    some = WeightedSample(np.arange(looped), np.ones(looped))
    few_rounds = lloyd.Lloyd(
        CLUSTERS, noise.beta_sum, noise.beta_count, "repaired", facts.radius, 1
    )
    ours, _ = board.timed(
        lambda: lloyd.run(points, some, [few_rounds], first[None], [np.random.default_rng(1)])
    )
    theirs, _ = board.timed(
        lambda: lloyd.run_by_rows(
            points[:looped], some.weights, few_rounds, first, np.random.default_rng(1)
        )
    )
    board.line(
        f"one round of DP-Lloyd, {looped:,} rows", ours, "loop over rows", theirs, at_most=1 / 10
    )
    ours, _ = board.timed(lambda: NormPair(518, 0.3).upper_law(0.3 / 1000))
    board.line("certified loss of norm noise, d = 518", ours, "the limit", 0.1, at_most=1)


def _against_diffprivlib(
    board: Board,
    points: np.ndarray,
    facts: DataFacts,
    plan: lloyd.Lloyd,
    first: np.ndarray,
    *,
    quick: bool,
) -> None:
    """Compare with diffprivlib, whose k-means chooses its own number of rounds, from two to seven:
    seconds are per round."""
    if quick:
        print("  diffprivlib is not compared (--quick)", flush=True)
        return
    from sklearn.tree import _tree

    for name, kind in {"DOUBLE": np.float64, "DTYPE": np.float32}.items():
        # newer scikit-learn lacks names that diffprivlib's forests import, but not its k-means
        if not hasattr(_tree, name):
            setattr(_tree, name, kind)
    from diffprivlib.models import KMeans as PrivateKMeans

    rows = points[:50_000].astype(float)
    ours, _ = board.timed(lambda: lloyd.run_full(rows, plan, first, np.random.default_rng(1)))
    side = facts.radius * np.ones(facts.d)
    peer = PrivateKMeans(n_clusters=CLUSTERS, epsilon=3.0, bounds=(-side, side), random_state=0)
    theirs, fitted = board.timed(lambda: peer.fit(rows))
    board.line(
        f"private k-means of {len(rows):,} rows, a round",
        ours / ROUNDS,
        "diffprivlib KMeans, a round",
        theirs / fitted.n_iter_,
        at_most=1,
    )
