"""Noisy averages of subsets: their noise, and an interval for the mean behind the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from dpsub import checks
from dpsub.sampling.laws import MultiplicityLaw


def noise_of_average(
    noise_multiplier: float,
    clip: float,
    divisor: float,
    steps: int,
    p: int,
    rngs: Sequence[np.random.Generator],
) -> np.ndarray:
    """Return the noise that is added to sum / divisor: N(0, (s C / divisor)^2), shape (len(rngs),
    steps, p).

    The accountant's noise multiplier s is the standard deviation of the noise on the *sum* in units
    of C = `clip`, the largest norm of one record's vector (not of 2C, by which a replaced record
    may move the sum: the accountant's pair holds that factor).
    """
    s = checks.real("noise_multiplier", noise_multiplier, above=0)
    scale = s * checks.real("clip", clip, above=0) / checks.real("divisor", divisor, above=0)
    return np.stack([scale * rng.standard_normal((steps, p)) for rng in rngs])


def mean_interval(
    releases: np.ndarray, law: MultiplicityLaw, n: int, m: int, noise_scale: float, level: float
) -> tuple[float, float, float]:
    """Return the average of noisy subset means, and an interval (lower, upper) for the population
    mean behind the data.

    Uses the releases only, so it costs no privacy. Given the data, a release has the variance v S^2
    + tau^2 with v = n Var(L) / m^2, L the multiplicity of a record, S^2 the sample variance of the
    data (for Poisson sampling, whose size is random, of data with a mean near 0) and tau the scale
    of the noise. So S^2 is estimated by (spread^2 - tau^2) / v, at least 0, and the average has the
    variance S^2 / n + spread^2 / T. Much noise makes that estimate uncertain: the quantile is
    Student's, with Satterthwaite's degrees of freedom, at least 5, as with fewer the spread tells
    nothing of S^2. An approximation: its coverage is what an experiment must show.

    Parameters
    ----------
    releases : sums over subsets, divided by m, plus noise, shape (T,).
    law, n, m : of the sampler; sizes of data and sample.
    noise_scale, level : tau, of the noise on sum / m; of the interval, in (0, 1).
    """
    t = len(releases)
    spread = float(releases.var(ddof=1))
    counts = np.arange(len(law.pmf))
    v = n * (float(counts**2 @ law.pmf) - law.mean**2) / m**2
    # The spread from the noise alone is subtracted; v = 0 leaves nothing to estimate.
    own = max(0.0, spread - noise_scale**2) / v if v > 0 else 0.0
    variance = own / n + spread / t
    # of the variance's estimate in the spread^2 that is observed
    slope = (1 / (v * n) if v > 0 else 0.0) + 1 / t
    freedom = min(max((t - 1) * (variance / (slope * spread)) ** 2, 5.0), t - 1.0)
    centre = float(releases.mean())
    half = float(stdtrit(freedom, (1 + level) / 2)) * variance**0.5
    return centre, centre - half, centre + half
