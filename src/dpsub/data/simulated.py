"""Simulated data of the main paper's first two experiments, one data set per replicate and
stream."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dpsub import checks


def normal_datasets(n: int, rngs: Iterable[np.random.Generator]) -> np.ndarray:
    """Draw `n` independent N(0, 1) values from each generator (must, Section 4.2.1); shape
    (replicates, n)."""
    n = checks.integer("n", n, at_least=1)
    return np.reshape([rng.standard_normal(n) for rng in rngs], (-1, n))


def linear_datasets(
    n: int, beta: Iterable[float], rngs: Iterable[np.random.Generator]
) -> tuple[np.ndarray, np.ndarray]:
    """Draw one regression data set y = beta_0 + beta_1 x_1 + ... + e of `n` records from each
    generator.

    The predictors and the errors are independent N(0, 1); each stream gives the predictors record
    by record, then e (must, Section 4.2.2). Return X, shape (replicates, n, len(beta)), whose first
    column is 1, and y, (replicates, n).
    """
    n = checks.integer("n", n, at_least=1)
    coefficients = checks.finite_array("beta", list(beta), ndim=1)
    slopes = checks.integer("the number of slopes", coefficients.size - 1, at_least=0)
    generators = list(rngs)
    X = np.ones((len(generators), n, slopes + 1))
    errors = np.empty((len(generators), n))
    for i, rng in enumerate(generators):
        X[i, :, 1:] = rng.standard_normal((n, slopes))
        errors[i] = rng.standard_normal(n)
    return X, X @ coefficients + errors
