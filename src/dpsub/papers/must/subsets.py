"""Noisy statistics of subsets: their sensitivities, the scale of their noise, and their average.

Of the L2 sensitivities, `stated` and `as_done` take range / n and C / n, although statistics and
gradients are averages over m records (erratum E4). `consistent` takes what one copy of a
substituted record can move; Poisson sampling is there analysed under add_remove with the fixed
divisor m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsub import checks
from dpsub.amplification import amplify, base_epsilon
from dpsub.noise import Gaussian
from dpsub.sampling.frame import Samples
from dpsub.sampling.laws import MultiplicityLaw


def subset_statistics(
    x: np.ndarray, samples: Samples, fixed_size: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance (divisor size - 1) of each subset of `x`, repeats counted; NaN where
    it is too small. `fixed_size` replaces the realised size: Poisson sampling with a known
    sensitivity (MUST, erratum E4).
    """
    # Every record is read once, with its count as weight: the same sums as over the copies.
    values = x[samples.indices]
    weighted = samples.counts * values
    total = samples.totals(weighted)
    square = samples.totals(weighted * values)
    size = samples.sizes.astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        centred = square - total * np.where(size > 0, total / size, 0.0)
        # Poisson with the divisor m: adding one record moves the sum, and the divisor stays.
        if fixed_size is not None:
            return total / fixed_size, centred / (fixed_size - 1)
        # Dividing by the realised size of a Poisson sample, as the paper does; an empty subset
        # releases nothing.
        mean = np.where(size >= 1, total / size, np.nan)
        variance = np.where(size >= 2, centred / (size - 1), np.nan)
    return mean, variance


def release(statistic: np.ndarray, sigma: float, rng: np.random.Generator) -> float:
    """Average of the subsets' statistics, shape (T,), each with noise N(0, sigma^2); NaN ones are
    left out."""
    # Section 4.2.1: each of the T subset statistics gets its own noise before they are averaged.
    noisy = statistic + sigma * rng.standard_normal(len(statistic)) if sigma > 0 else statistic
    return float(np.nanmean(noisy))


def of_gradient(sampler: str, *, n: int, m: int, clip: float, variant: str) -> float:
    """Return the sensitivity of the mean of gradients clipped at C: C / n, or consistently 2C / m
    (Poisson: C / m)."""
    clip = checks.real("clip", clip, above=0)
    if variant != "consistent":
        return clip / n
    # A substituted record replaces one clipped gradient by another one, up to 2 C apart; an added
    # one (Poisson) only adds one of norm at most C (erratum E4).
    return clip * (1 if sampler == "poisson" else 2) / m


def of_statistics(
    sampler: str, *, n: int, m: int, lower: float, upper: float, variant: str
) -> dict[str, float]:
    """Return the sensitivities of the mean and of the variance (divisor m - 1) of data in [lower,
    upper].

    Range / n and range^2 / n; consistently range / m and range^2 / m, and for Poisson max |x| / m,
    since one record is added to a sum, and range^2 / (m - 1), since a record moves a centred sum of
    squares by at most range^2.
    """
    lower = checks.real("lower", lower)
    upper = checks.real("upper", upper, above=lower)
    m = checks.integer("m", m, at_least=2)
    width = upper - lower
    if variant != "consistent":
        return {"mean": width / n, "variance": width**2 / n}
    if sampler == "poisson":
        return {"mean": max(abs(lower), abs(upper)) / m, "variance": width**2 / (m - 1)}
    return {"mean": width / m, "variance": width**2 / m}


@dataclass(frozen=True)
class NoisePlan:
    """The Gaussian noise of one subsampled query."""

    eta: float  # inclusion probability of the sampler
    epsilon: float  # of the base mechanism, nats
    delta: float  # of the base mechanism
    sensitivity: float  # L2, that the noise is scaled to
    sigma: float  # standard deviation of the noise
    delta_amplified: float  # of the subsampled query


def plan_noise(
    law: MultiplicityLaw,
    *,
    epsilon_amplified: float,
    delta: float,
    sensitivity: float,
    calibration: str,
    group_sensitivity: float | None = None,
    nominal_delta: bool = False,
) -> NoisePlan:
    """Back-calculate the base ε from ε', calibrate the noise, and account for multiple copies in δ'
    (MUST, Theorem 5).

    Parameters
    ----------
    law : MultiplicityLaw
        How often the sampler takes one record.
    epsilon_amplified : float
        ε' > 0 of the subsampled query, in nats.
    delta : float
        δ in (0, 1) of the base mechanism.
    sensitivity : float
        L2 sensitivity that the noise is scaled to.
    calibration : {"classical", "analytic"}
        MUST, Equation 9, or the smallest scale whose exact profile meets (ε, δ).
    group_sensitivity : float, optional
        Sensitivity of the group profile δ_u, where it differs (MUST, Table 6: see erratum E3).
    nominal_delta : bool
        Report η δ with the nominal δ instead of the exact profile at the calibrated scale, as MUST
        does for samplers that take a record at most once (erratum E5).
    """
    # Equation 9 is stated for epsilon < 1 only; experiment 1 leaves that range at b = 10 and 20
    # (erratum E5).
    makers = {"classical": Gaussian.classical, "analytic": Gaussian.calibrated}
    calibrate = makers[checks.one_of("calibration", calibration, makers)]
    target = checks.real("epsilon_amplified", epsilon_amplified, above=0)
    # As done, Table 6 puts C in the group profile where sigma was scaled for C / n: the ratio is n
    # times too large (erratum E3).
    group = (
        sensitivity
        if group_sensitivity is None
        else checks.real("group_sensitivity", group_sensitivity, above=0)
    )
    eta = law.eta
    # Experiments fix epsilon' and not the base epsilon: a sampler with a smaller eta may have the
    # larger base epsilon, hence less noise.
    epsilon = float(base_epsilon(target, eta))
    sigma = calibrate(epsilon, delta, sensitivity).scale
    # Theorem 5: with no repeats delta' = eta delta, at the nominal delta = 1 / n of Equation 9,
    # whose noise attains far less (erratum E5).
    if nominal_delta:
        delta_amplified = eta * delta
    else:
        # Theorem 5: sum over u of w_u delta_u at the base epsilon, u copies moving the
        # statistic by u times its sensitivity.
        delta_amplified = float(
            amplify(law, Gaussian(sigma).profile(group), epsilon).delta_amplified
        )
    return NoisePlan(eta, epsilon, delta, sensitivity, sigma, delta_amplified)
