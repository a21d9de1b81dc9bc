"""One round of weighted Lloyd as loops over rows: what a plain implementation costs, and a second road for tests."""

from __future__ import annotations

import numpy as np

from dpsub.importance.lloyd import Lloyd


def clusters_by_rows(points: np.ndarray, centres: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts, shape (k,), and sums, shape (k, d), as `lloyd.clusters` for one set of centres, row by row."""
    counts, sums = np.zeros(centres.shape[0]), np.zeros(centres.shape)
    for row, weight in zip(points, weights, strict=True):
        nearest = int(np.argmin(((centres - row) ** 2).sum(axis=1)))
        counts[nearest] += weight
        sums[nearest] += weight * row
    return counts, sums


def run_by_rows(
    points: np.ndarray, weights: np.ndarray, plan: Lloyd, initial: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Run one plan on weighted rows; the same numbers as `lloyd.run` up to rounding, shape (k, d)."""
    centres = np.array(initial, dtype=float)
    for _ in range(plan.n_iterations):
        counts, sums = clusters_by_rows(points, centres, weights)
        on_counts, on_sums = plan.noise(points.shape[1], rng)
        centres = plan.update(sums + on_sums, counts + on_counts, centres)
    return centres
