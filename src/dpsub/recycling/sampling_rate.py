"""Algorithm 4: the sampling rate for recycled Gaussian noise, as the paper searches it and with what it leaves out.

The paper searches p and, within, the share of the inner budget by ternary search, which is done here too: a global
search of Equation 13 would take its second optimum, which has q near 1 and no privacy. For the true acceptance rates
are tried on a grid that holds 1, where the printed search never arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from dpsub import checks
from dpsub.recycling.choice import budget
from dpsub.recycling.exact import RecycledProfile
from dpsub.recycling.kernels import GaussianKernel
from dpsub.recycling.law import Recycled
from dpsub.recycling.queries import Query
from dpsub.recycling.sampled import inner_budget, printed_acceptance, total_acceptance

SENSITIVITIES = ("unscaled", "scaled")
OBJECTIVES = ("printed", "eq13", "convolution")
_RATES, _HALVINGS, _ROUNDS = 40, 44, 2
_SHARES = 200
_ALIKE, _TOLERANCE = 1e-9, 1e-4



Tried = Callable[[np.ndarray], tuple[np.ndarray, Callable[[int], Recycled]]]
"""Sampling rates -> the objective at each, and what makes the release at a position."""


class Splits(NamedTuple):
    """Kernel and rate at every share of the inner budget, both in units of the sensitivity; shape (rates, shares)."""

    sigma: np.ndarray
    rate: np.ndarray


@dataclass(frozen=True)
class SampledChoice:
    """What the search found.

    Attributes
    ----------
    sampling_rate : float
        p in (0, 1].
    law : Recycled
        Noise of the release, with the sensitivity that it was calibrated to.
    claimed : float
        The objective's acceptance at p: the true one only for "convolution".
    """

    sampling_rate: float
    law: Recycled
    claimed: float


def gaussian_delta(epsilon: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """delta_Z(epsilon) of Gaussian noise, by arrays of epsilon and of sensitivity over scale; for searches only."""
    first = special.ndtr(ratio / 2 - epsilon / ratio)
    return np.asarray(first - np.exp(np.minimum(epsilon + special.log_ndtr(-ratio / 2 - epsilon / ratio), 0.0)))


def splits(epsilon: np.ndarray, delta: np.ndarray, bound_ratio: np.ndarray) -> Splits:
    """Algorithm 1 for kernels of every share of inner budgets.

    Parameters
    ----------
    epsilon, delta, bound_ratio : ndarray, shape (rates,)
        Inner budgets, and bound over sensitivity.
    """
    inner, target, theta = (np.asarray(x, dtype=float)[:, None] for x in (epsilon, delta, bound_ratio))
    spent = inner * np.linspace(1 / _SHARES, 1.0, _SHARES)
    low, high = np.full(spent.shape, -12.0), np.full(spent.shape, 6.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = gaussian_delta(spent, np.exp(middle)) <= target
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    ratio = np.exp(low)
    # (7) for symmetric bounds, in units of the sensitivity
    weight = special.ndtr(np.minimum(1 - theta, theta) * ratio) - special.ndtr(-theta * ratio)
    alone = (1 - weight) * gaussian_delta(inner, ratio)
    rate, above = np.zeros(spent.shape), np.ones(spent.shape)
    for _ in range(_HALVINGS):
        middle = (rate + above) / 2
        # at a rate near 1 the shifted epsilon is very negative: the kernel's delta there is 1
        shifted = gaussian_delta(np.maximum(inner + np.log1p(-np.minimum(middle, 1 - 1e-15)), -40.0), ratio)
        kept = alone + weight * shifted <= target
        rate, above = np.where(kept, middle, rate), np.where(kept, above, middle)
    return Splits(1 / ratio, rate)


def peaks(values: np.ndarray) -> np.ndarray:
    """Return the column where ternary search for a maximum ends, row by row."""
    rows = np.arange(values.shape[0])
    low, high = np.zeros(rows.size, dtype=int), np.full(rows.size, values.shape[1] - 1)
    while (high - low).max() > 2:
        third = (high - low) // 3
        first, second = low + third, high - third
        better = values[rows, first] >= values[rows, second]
        low, high = np.where(better, low, first), np.where(better, second, high)
        # a row that is done stays: its third is 0
    return np.array([start + int(row[start : end + 1].argmax()) for start, end, row in
                     zip(low, high, values, strict=True)])  # fmt: skip


def algorithm4(
    query: Query, epsilon: float, delta: float, bound: float, stated_sensitivity: float, *,
    sensitivity: str = "unscaled", objective: str = "eq13",
) -> SampledChoice:  # fmt: skip
    """Return the sampling rate and the release that Algorithm 4 chooses.

    Parameters
    ----------
    query : Query
        For its sampling error.
    epsilon, delta, bound : float
        Budget of the whole, and the bound of the acceptance.
    stated_sensitivity : float
        D at p = 1.
    sensitivity : {"unscaled", "scaled"}
        Calibrate to D whatever the rate, as the paper does, or to D / p, which is how far the statistic really moves.
    objective : {"printed", "eq13", "convolution"}
        Equation 13 as printed; with q and 1 - q exchanged; or the acceptance of E + N, with kernel and recycling
        rate by Equation 10. Step 7 of the algorithm states no rule and is left out: delta_1 is delta / p.

    References
    ----------
    brdp, Algorithm 4, Proposition 7.
    """
    order, target = budget(epsilon, delta)
    theta = checks.real("bound", bound, above=0)
    checks.one_of("sensitivity rule", sensitivity, SENSITIVITIES)
    checks.one_of("objective", objective, OBJECTIVES)
    span = checks.real("stated_sensitivity", stated_sensitivity, above=0)

    def tried(rates: np.ndarray) -> tuple[np.ndarray, Callable[[int], Recycled]]:
        inner = np.array([inner_budget(order, target, float(rate)) for rate in rates])
        spans = span / rates if sensitivity == "scaled" else np.full(rates.shape, span)
        found = splits(inner[:, 0], inner[:, 1], theta / spans)
        sigma = found.sigma * spans[:, None]
        errors = np.array([query.stated_sampling_sd(float(rate)) for rate in rates])
        if objective == "convolution":
            values = printed_acceptance(sigma, found.rate, 0.0, theta, swapped=True)
        else:
            values = printed_acceptance(sigma, found.rate, errors[:, None], theta, swapped=objective == "eq13")
        best = peaks(values)

        def law(place: int) -> Recycled:
            share = int(best[place])
            return Recycled.within(GaussianKernel(float(sigma[place, share])), float(found.rate[place, share]), theta,
                                   float(spans[place]))  # fmt: skip

        if objective == "convolution":
            return np.array([total_acceptance(law(i), errors[i], theta) for i in range(len(rates))]), law
        return values[np.arange(len(rates)), best], law

    lowest = max(1 / query.n, 2 * target)  # a sample holds a record, and needs noise
    if objective != "convolution":
        return _ternary(tried, lowest)
    rates = np.geomspace(lowest, 1.0, _RATES)
    for round_ in range(_ROUNDS):
        values, law = tried(rates)
        # of rates that are alike the largest: sampling that gains nothing is not worth its error
        best = int(np.flatnonzero(values >= values.max() - _ALIKE)[-1])
        if round_ + 1 < _ROUNDS:
            rates = np.linspace(rates[max(best - 1, 0)], rates[min(best + 1, len(rates) - 1)], _RATES)
    return SampledChoice(float(rates[best]), law(best), float(values[best]))


def _ternary(tried: Tried, low: float) -> SampledChoice:
    """Steps 1 to 18 as printed: the middle of the last interval, whose ends were never both tried."""
    high = 1.0
    while high - low > _TOLERANCE:
        third = (high - low) / 3
        first, second = tried(np.array([low + third, high - third]))[0]
        low, high = (low + third, high) if first < second else (low, high - third)
    rate = (low + high) / 2
    values, law = tried(np.array([rate]))
    return SampledChoice(rate, law(0), float(values[0]))


def sampled_delta(law: Recycled, sampling_rate: float, true_sensitivity: float, epsilon: float) -> float:
    """Return delta(epsilon) that a release on a fixed-size sample really has, rounded up: p delta_exact(epsilon_1).

    Parameters
    ----------
    law : Recycled
    sampling_rate : float
    true_sensitivity : float
        How far the statistic on the sample moves with one record, whatever the noise was calibrated to.
    epsilon : float
    """
    inner, _ = inner_budget(epsilon, 0.0, sampling_rate)
    real = Recycled(law.kernel, law.rate, law.lower, law.upper, true_sensitivity)
    return min(1.0, sampling_rate * float(RecycledProfile(real).bounds(inner)[1]))
