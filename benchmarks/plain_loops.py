"""The plain implementations that the vectorised ones are measured against: one subset, one record at a time.

They take the same draws, so the tests also use them as the second road: both must give the same numbers.
"""

from __future__ import annotations

import numpy as np

from dpsub.sampling.frame import Samples


def subset_statistics(x: np.ndarray, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each subset, from its records written out one by one."""
    means, variances = [], []
    for i in range(samples.n_subsets):
        sample = samples[i]
        values = np.repeat(x[sample.indices], sample.counts)
        means.append(values.mean())
        variances.append(values.var(ddof=1))
    return np.array(means), np.array(variances)


def linear_regression_path(
    x: np.ndarray,
    y: np.ndarray,
    samples: Samples,
    noise: np.ndarray | None,
    initial: np.ndarray,
    *,
    clip: float | None,
    learning_rate: float,
    divisor: float | None = None,
) -> np.ndarray:
    """DP-SGD on the squared error, as MUST's Algorithm 2 reads: a gradient for each record of a batch, clipped, summed.

    Shapes: x (n, p), y (n,), noise (T, p); returns the iterates, (T, p).
    """
    beta = np.array(initial, dtype=float)
    path = []
    for t in range(samples.n_subsets):
        batch = samples[t]
        total = np.zeros(len(beta))
        for index, count in zip(batch.indices, batch.counts, strict=True):
            gradient = 2 * x[index] * (x[index] @ beta - y[index])
            if clip is not None:
                gradient = gradient / max(1.0, float(np.linalg.norm(gradient)) / clip)
            total += count * gradient
        step = total / (max(batch.size, 1) if divisor is None else divisor)
        if noise is not None:
            step = step + noise[t]
        beta = beta - learning_rate * step
        path.append(beta)
    return np.array(path)
