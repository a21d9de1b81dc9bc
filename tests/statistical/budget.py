"""The error budget of all tests that draw, and the exact test that most of them use.

By chance, all of them together may fail once in 10,000 runs. Each test has a share of that, and
divides its share by the number of cases it looks at (Bonferroni): no retries, no normal
approximations in far tails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from scipy.stats import binom

from dpsub.streams import stream

TOTAL = 1e-4

SHARES = {
    "joint law": 2e-5,
    "multiplicity law": 1e-5,
    "distinct law": 1e-5,
    "pairs of records": 1e-5,
    "consecutive subsets": 1e-5,
    "paper sizes": 1e-5,
    "replicates": 1e-5,
    "mechanism noise": 6e-6,  # tests/conformance/test_mechanisms.py: six p-values at 1e-6
    "distinct counts": 3e-6,  # test_printed.py: 18 cells, six tails each
    "audit": 6e-7,  # tests/statistical/test_audit.py: an interval and a test a case
    # tests/conformance/test_frame_samplers.py: joint laws and inclusion of every example
    "design draws": 1e-7,
    "importance draws": 5e-8,  # tests/statistical/test_importance_draws.py and its audits
    # tests/conformance/test_schedules.py: epochs and pairs of steps of every example
    "schedules": 2e-7,
    "bernoulli loop": 2e-7,  # test_errata.py, a loop of draws: two bounds at 1e-7
}
"""Chance of a false alarm that each test may use up."""


def level(share: str, cases: int) -> float:
    """Return the level of one of `cases` p-values of the test that has this share."""
    return SHARES[share] / cases


def p_value(observed: np.ndarray, probabilities: np.ndarray, n_draws: int) -> float:
    """Return a p-value that is valid exactly: the smallest two-sided binomial one, times the number
    of cells.

    `observed`, shape (cells,), counts how many of the independent draws fell into each cell,
    `probabilities` are those of the cells under the null. The cells need not be disjoint.
    """
    p = np.clip(probabilities, 0.0, 1.0)
    lower, upper = binom.cdf(observed, n_draws, p), binom.sf(observed - 1, n_draws, p)
    two_sided = 2 * np.minimum(lower, upper)
    return float(min(1.0, two_sided.min() * len(p)))


def joint_p(
    outcomes: list[tuple[int, ...]], law: Mapping[tuple[int, ...], float | Fraction]
) -> float:
    """Return the p-value of draws against their enumerated law; 0 if an impossible one came."""
    seen = Counter(outcomes)
    if not set(seen) <= set(law):
        return 0.0
    return p_value(
        np.array([seen[each] for each in law]),
        np.array([float(p) for p in law.values()]),
        len(outcomes),
    )


def rng(test: str, case: object = 0, replicate: int = 0) -> np.random.Generator:
    """Return the stream of one case of one test."""
    return stream(
        20231220,
        experiment=f"test of {test}",
        cell={"case": str(case)},
        role="sample",
        replicate=replicate,
    )
