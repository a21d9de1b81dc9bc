"""Budget recycling on a sample of fixed size: amplification, total error, and what remains of its acceptance.

The statistic is computed on m = p n records drawn without replacement and released with recycled noise. Its error is
E + N with a sampling error E that the recycler must not see (it depends on the data), so the acceptance is that of the
sum and not of N alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpsub import checks
from dpsub.amplification import amplified_epsilon, base_epsilon
from dpsub.errors import UnsupportedError
from dpsub.profiles.base import Profile, mirrored

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_FAR = 8.5  # standard deviations; what lies beyond has less than 2e-17 of the mass


class NoiseLaw(Protocol):
    """What `total_acceptance` asks of a noise: its distribution function, for noise symmetric about 0."""

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """P(noise <= x)."""


def amplified(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """Return (log(1 + p (e^epsilon - 1)), p delta): what a guarantee becomes on a sample of rate p.

    Valid under substitution for samples of fixed size without replacement, under add_remove for Poisson samples.

    References
    ----------
    brdp, Theorem 4; balle, Theorems 8 and 9.
    """
    delta = checks.real("delta", delta, at_least=0, below=1)
    return float(amplified_epsilon(epsilon, rate)), rate * delta


def inner_budget(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """Return (log(1 + (e^epsilon - 1) / p), delta / p), the budget on the sample that the target allows.

    The inverse of :func:`amplified`, which step 6 of Algorithm 4 needs where the paper cites Theorem 4.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or `delta` is not below the rate: the sample would then need no noise at all.
    """
    rate = checks.real("rate", rate, above=0, at_most=1)
    delta = checks.real("delta", delta, at_least=0, below=rate)
    return float(base_epsilon(epsilon, rate)), delta / rate


@dataclass(frozen=True)
class SampledProfile(Profile):
    """Profile on a fixed-size sample under substitution: delta'(log(1 + p (e^e - 1))) = p delta(e) for e >= 0.

    Applied to the exact profile at every epsilon it gives an upper bound on that of the sampled mechanism which some
    pair of data sets attains; below 0 it follows since substitution is symmetric. `PoissonAddRemove` of
    `dpsub.amplification` has the other pairing of sampler and relation.

    Parameters
    ----------
    base : Profile
        Profile of the mechanism on the sample, calibrated to the sensitivity of the statistic on the sample.
    rate : float
        p = m / n, in (0, 1].

    References
    ----------
    balle, Theorem 9; brdp, Theorem 4 for one epsilon.
    """

    base: Profile
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checks.real("rate", self.rate, above=0, at_most=1))

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        if np.any(np.asarray(occurrences) != 1):
            raise UnsupportedError("a sampled profile is known for one substituted record, got a larger distance")
        order = np.asarray(epsilon, dtype=float)
        inner = np.asarray(base_epsilon(np.abs(order), self.rate))
        return mirrored(order, math.log(self.rate) + self.base.log_delta(inner))


def total_acceptance(law: NoiseLaw, sampling_sd: float, bound: float) -> float:
    """Return P(|E + N| <= bound) for E ~ N(0, sampling_sd^2) and symmetric noise N with the law `law`.

    Integrates F(bound - e) - F(-bound - e) against the density of E by Gauss-Legendre quadrature between the points
    where F has kinks, for kinks of the law at +-bound.

    References
    ----------
    brdp, Proposition 7 claims another formula (see :func:`printed_acceptance`).
    """
    sd, theta = checks.real("sampling_sd", sampling_sd, at_least=0), checks.real("bound", bound, above=0)
    if sd == 0:
        return float(law.cdf(theta) - law.cdf(-theta))
    last = _FAR * sd
    # F(bound - e) and F(-bound - e) have kinks or steep flanks at e = 0, bound and 2 bound only
    offsets = np.concatenate([[0.0], np.geomspace(min(sd, theta) / 256, last, 24)])
    around = np.array([0.0, theta, 2 * theta])[:, None] + np.concatenate([-offsets, offsets])
    edges = np.unique(np.concatenate([around.ravel().clip(0.0, last), [last]]))
    left, width = edges[:-1, None], np.diff(edges)[:, None]
    places = left + width * (_NODES + 1) / 2
    density = np.exp(-0.5 * (places / sd) ** 2) / (sd * math.sqrt(2 * math.pi))
    inside = np.asarray(law.cdf(theta - places)) - np.asarray(law.cdf(-theta - places))
    return float(min(1.0, 2 * (density * inside * _WEIGHTS * width / 2).sum()))


def printed_acceptance(
    sigma: ArrayLike, rate: ArrayLike, sampling_sd: ArrayLike, bound: float, *, swapped: bool
) -> np.ndarray:
    """Return 1 / O of the paper's Equation 13, the acceptance that Proposition 7 claims for a Gaussian kernel.

    O = 1 - q + q / P(|Z| <= bound) with Z ~ N(0, sigma^2 + sampling_sd^2) as printed; `swapped` exchanges q and 1 - q,
    as Equation 10 needs. Neither is the acceptance: the recycler sees N and not E + N.

    References
    ----------
    brdp, Proposition 7, Equation 13.
    """
    whole = np.hypot(np.asarray(sigma, dtype=float), sampling_sd)
    inside = special.erf(bound / whole / math.sqrt(2))
    q = np.asarray(rate, dtype=float)
    return 1 / (q + (1 - q) / inside) if swapped else 1 / (1 - q + q / inside)
