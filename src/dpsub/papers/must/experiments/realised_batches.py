"""What an attack proves from below when a Poisson sample's sum is divided by its realised size (MUST, Algorithm 2)."""

from __future__ import annotations

import math

import numpy as np

from dpsub.accounting.account import Release
from dpsub.accounting.bracket import Composition, PairEvent, Target
from dpsub.accounting.pairs import FillerPair
from dpsub.errors import UnsupportedError
from dpsub.sampling import Poisson
from dpsub.sampling.laws import MultiplicityLaw

SHIFTS = 1024
"""Steps into which the largest shift, that of the smallest sample, is divided."""

ROUND_DOWN = 1 - 1e-12
"""Factor that keeps a quotient which floating point rounded up from counting as a larger shift."""

_TAIL = 1e-15
_WIDTH = 5e-3


def law_of_shifts(n: int, rate: float) -> tuple[MultiplicityLaw, float]:
    """Return the law of the shift that the differing record causes, rounded down to steps, and the step.

    With D = (+C, -C, ..., -C), D' = (-C, ..., -C) and the record drawn together with J others, the mean of the sample
    moves by 2 C / (J + 1), J ~ Binomial(n - 1, q).  Where it is not drawn nothing moves.  The tails of J beyond 1e-15
    count as smaller shifts than they are.  The step is in units of 2 C / m, m = n q: the largest shift over `SHIFTS`.

    References
    ----------
    MUST, Algorithm 2, step 4.
    """
    from scipy.stats import binom  # here, as its import takes longer than most jobs compute

    others = np.arange(int(binom.ppf(_TAIL, n - 1, rate)), int(binom.isf(_TAIL, n - 1, rate)) + 1)
    shifts = n * rate / (others + 1)
    step = float(shifts[0]) / SHIFTS
    drawn = binom.pmf(others, n - 1, rate)
    drawn[0] = binom.cdf(others[0], n - 1, rate)
    weights = np.bincount(np.floor(shifts / step * ROUND_DOWN).astype(int), rate * drawn)
    weights[0] += 1 - rate + rate * binom.sf(others[-1], n - 1, rate)
    with np.errstate(divide="ignore"):
        return MultiplicityLaw(np.log(weights)), step


def attack_on_realised_batches(release: Release, epsilon: float) -> float:
    """Return a lower bound of delta(epsilon), both directions, for either adjacency.

    Rounding shifts down lowers delta: the loss of the rounded pair increases with the output, so each test by a sum of
    losses gains from larger shifts and keeps its probability under D'.  An empty sample, whatever it releases, moves
    the probability of a test by no more than its own, k (1 - q)^(n - 1), which is charged under both data sets.

    Parameters
    ----------
    release : Release
        Poisson sampling; its noise multiplier is that of a sample of the expected size: the noise on the mean is
        noise_multiplier C / (n rate), whatever the size drawn.
    epsilon : float

    Raises
    ------
    UnsupportedError
        If the sampler is another one.
    """
    if not isinstance(release.sampler, Poisson) or release.n is None:
        raise UnsupportedError(
            f"only a Poisson sample has a random size to divide by, got {type(release.sampler).__name__}; "
            "use the denominator fixed"
        )
    rate, times = release.sampler.rate, release.steps
    law, step = law_of_shifts(release.n, rate)
    pair = FillerPair(law, release.noise_multiplier / 2 / step)
    found = Composition([(PairEvent(pair), times)]).attack(Target(epsilon=epsilon, width=_WIDTH)).value
    empty = times * math.exp((release.n - 1) * math.log1p(-rate)) if rate < 1 else 0.0
    return max(0.0, found - empty * (1 + math.exp(epsilon)))
