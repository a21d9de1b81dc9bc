"""Budget recycling on a sample of fixed size: amplification, total error, queries, and the paper's
Algorithm 4.

The statistic released from m = p n records has the error E + N. The recycler must not see the
sampling error E, which depends on the data, while acceptance is a matter of the sum. One record
moves the statistic on the sample by 1 / p times as much as the one on all records, and a release
must be calibrated to this. The sampling rate p, and for each rate the share of the inner budget,
are found by ternary search, as in the paper: a global search of (13) ends in its other optimum,
with q near 1 and no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpsub import checks
from dpsub.amplification import amplified_epsilon, base_epsilon
from dpsub.recycling.choice import checked_budget, true_delta
from dpsub.recycling.kernels import GaussianKernel
from dpsub.recycling.law import Recycled

SENSITIVITIES = ("unscaled", "scaled")
OBJECTIVES = ("printed", "eq13", "convolution")
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_RATES, _SHARES = 40, 200  # grid of sampling rates; grid of shares of the inner budget


def amplified(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """(log(1 + p (e^epsilon - 1)), p delta): the guarantee on a sample of rate p.

    It holds under substitution for samples of fixed size without replacement, and under add_remove
    for Poisson samples (brdp, Theorem 4).
    """
    delta = checks.real("delta", delta, at_least=0, below=1)
    return float(amplified_epsilon(epsilon, rate)), rate * delta


def inner_budget(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """(log(1 + (e^epsilon - 1) / p), delta / p): the inverse of :func:`amplified`.

    Step 6 of Algorithm 4 needs it. A delta that is not below the rate is refused, as the sample
    would need no noise at all.
    """
    rate = checks.real("rate", rate, above=0, at_most=1)
    delta = checks.real("delta", delta, at_least=0, below=rate)
    return float(base_epsilon(epsilon, rate)), delta / rate


def total_acceptance(law: Recycled, sampling_sd: float, bound: float) -> float:
    """P(|E + N| <= bound) for E ~ N(0, sampling_sd^2) and symmetric recycled noise N.

    Proposition 7 of the paper claims another formula: :func:`printed_acceptance`.
    """
    sd = checks.real("sampling_sd", sampling_sd, at_least=0)
    theta = checks.real("bound", bound, above=0)
    if sd == 0:
        return float(law.cdf(theta) - law.cdf(-theta))
    last = 8.5 * sd  # less than 2e-17 of the mass lies beyond
    # F(bound - e) and F(-bound - e) have kinks or steep flanks at e = 0, bound and 2 bound only:
    # Gauss-Legendre quadrature on cells that shrink towards these points.
    offsets = np.concatenate([[0.0], np.geomspace(min(sd, theta) / 256, last, 24)])
    kinks = np.array([0.0, theta, 2 * theta])[:, None]
    near_kinks = kinks + np.concatenate([-offsets, offsets])
    edges = np.unique(np.concatenate([near_kinks.ravel().clip(0.0, last), [last]]))
    left, width = edges[:-1, None], np.diff(edges)[:, None]
    errors = left + width * (_NODES + 1) / 2
    density = np.exp(-0.5 * (errors / sd) ** 2) / (sd * math.sqrt(2 * math.pi))
    accepted = np.asarray(law.cdf(theta - errors)) - np.asarray(law.cdf(-theta - errors))
    # The integrand is even: twice the integral over positive errors.
    return float(min(1.0, 2 * (density * accepted * _WEIGHTS * width / 2).sum()))


def printed_acceptance(
    sigma: ArrayLike, rate: ArrayLike, sampling_sd: ArrayLike, bound: float, *, swapped: bool
) -> np.ndarray:
    """1 / (1 - q + q / P(|Z| <= bound)) with Z ~ N(0, sigma^2 + sampling_sd^2).

    This is brdp, Equation 13 and Proposition 7; `swapped` exchanges q and 1 - q, as (10) needs.
    Neither is the acceptance, because the recycler sees N and not E + N.
    """
    total_sd = np.hypot(np.asarray(sigma, dtype=float), sampling_sd)
    inside = special.erf(bound / total_sd / math.sqrt(2))
    q = np.asarray(rate, dtype=float)
    if swapped:
        return np.asarray(1 / (q + (1 - q) / inside))
    return np.asarray(1 / (1 - q + q / inside))


@dataclass(frozen=True)
class Query:
    """A linear query over `n` records with values clipped to [0, `clip`].

    `spread` is the standard deviation of the clipped values, with divisor n. A count is over
    indicators, with `clip` 1 and `spread` sqrt(p_c (1 - p_c)). See brdp, Sections 7 and 8.
    """

    n: int
    clip: float
    spread: float

    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.integer("n", self.n, at_least=1))
        object.__setattr__(self, "clip", checks.real("clip", self.clip, above=0))
        object.__setattr__(self, "spread", checks.real("spread", self.spread, at_least=0))

    @classmethod
    def of_values(cls, values: np.ndarray, clip: float) -> Query:
        """The query over these records, with the spread of their clipped values."""
        clipped = np.clip(checks.finite_array("values", values, ndim=1), 0.0, clip)
        return cls(len(clipped), clip, float(clipped.std()))

    def sensitivity(self, rate: float = 1.0) -> float:
        """Largest change of the statistic at sampling rate `rate` by substituting one record."""
        return self.clip / checks.real("rate", rate, above=0, at_most=1)

    def sampling_sd(self, rate: float) -> float:
        """Standard deviation of the statistic on m = p n records without replacement.

        sigma_x sqrt(n (1 - p) / p) sqrt(n / (n - 1)).
        """
        rate = checks.real("rate", rate, above=0, at_most=1)
        relative_sd = math.sqrt((1 - rate) / rate / max(1, self.n - 1))
        return self.n * self.spread * relative_sd * self.per_record

    def stated_sampling_sd(self, rate: float) -> float:
        """Standard deviation by the paper's Proposition 6, without the factor sqrt(n / (n - 1)) of
        a finite population."""
        rate = checks.real("rate", rate, above=0, at_most=1)
        return self.spread * math.sqrt(self.n * (1 - rate) / rate) * self.per_record

    @property
    def per_record(self) -> float:
        """Weight of a value in the statistic on all records: 1, or 1 / n in an average."""
        return 1.0

    def answer(self, values: np.ndarray) -> float:
        """The exact answer on the values of all records, shape (n,)."""
        return float(np.clip(values, 0.0, self.clip).sum() * self.per_record)

    def estimates(
        self, values: np.ndarray, size: int, repeats: int, rng: np.random.Generator
    ) -> np.ndarray:
        """The statistic on `repeats` independent samples of `size` records, shape (repeats,)."""
        size = checks.integer("size", size, at_least=1, at_most=self.n, at_most_name="n")
        if size == self.n:
            return np.full(repeats, self.answer(values))
        # The positions of the `size` smallest of n uniform numbers are a uniform subset.
        samples = np.argpartition(rng.random((repeats, self.n)), size, axis=1)[:, :size]
        totals = np.clip(values, 0.0, self.clip)[samples].sum(axis=1)
        return np.asarray(totals * (self.n / size) * self.per_record)


class Total(Query):
    """Sum of the values: a record moves it by at most the clipping range."""

    name: ClassVar[str] = "sum"


class Average(Query):
    """Mean of the values.

    The number of records is public: only substitution is bounded, by clip / m.
    """

    name: ClassVar[str] = "avg"

    @property
    def per_record(self) -> float:
        return 1.0 / self.n

    def sensitivity(self, rate: float = 1.0) -> float:
        return self.clip / (self.n * checks.real("rate", rate, above=0, at_most=1))


class Count(Query):
    """Number of records with a property: the values are indicators and `clip` is 1."""

    name: ClassVar[str] = "cnt"

    @classmethod
    def of_share(cls, n: int, share: float) -> Count:
        """The count over n records; a share p_c of them has the property."""
        share = checks.real("share", share, at_least=0, at_most=1)
        return cls(n, 1.0, math.sqrt(share * (1 - share)))


KINDS: dict[str, type[Query]] = {kind.name: kind for kind in (Total, Average, Count)}


class SampledChoice(NamedTuple):
    """The sampling rate and the release that a search found.

    `law` has the sensitivity that the release was calibrated to. `claimed` is the acceptance by the
    objective, which is the true one for "convolution" only.
    """

    sampling_rate: float
    law: Recycled
    claimed: float


def _gaussian_delta(epsilon: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """delta_Z(epsilon) of Gaussian noise, by arrays of epsilon and of sensitivity over scale.

    It cancels in the far tail: for searches only.
    """
    first = special.ndtr(ratio / 2 - epsilon / ratio)
    log_second = epsilon + special.log_ndtr(-ratio / 2 - epsilon / ratio)
    return np.asarray(first - np.exp(np.minimum(log_second, 0.0)))


def _bisected(
    keeps: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """The points up to which conditions hold, entry by entry, rounded to the side of `low`."""
    # 44 halvings take the longest interval, of 18, below 1e-11.
    for _ in range(44):
        middle = (low + high) / 2
        holds = keeps(middle)
        low, high = np.where(holds, middle, low), np.where(holds, high, middle)
    return low


def _splits(
    epsilon: np.ndarray, delta: np.ndarray, bound_ratio: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1 for all splits of the inner budgets, which have the shape (rates,).

    Returns the scales in units of the sensitivity and the rates q, both of shape (rates, shares).
    """
    inner = np.asarray(epsilon, dtype=float)[:, None]
    target = np.asarray(delta, dtype=float)[:, None]
    theta = np.asarray(bound_ratio, dtype=float)[:, None]
    # The smallest share is not 0, where the paper's program has its optimum without privacy (BR14).
    kernel_epsilon = inner * np.linspace(1 / _SHARES, 1.0, _SHARES)
    # Scales from 1/400 to 160,000 sensitivities, on a log axis.
    log_ratio = _bisected(
        lambda log: _gaussian_delta(kernel_epsilon, np.exp(log)) <= target,
        np.full(kernel_epsilon.shape, -12.0),
        np.full(kernel_epsilon.shape, 6.0),
    )
    ratio = np.exp(log_ratio)
    # W of (7) for symmetric bounds, in units of the sensitivity.
    weight = special.ndtr(np.minimum(1 - theta, theta) * ratio) - special.ndtr(-theta * ratio)
    unshifted = (1 - weight) * _gaussian_delta(inner, ratio)

    def keeps(rate: np.ndarray) -> np.ndarray:
        # At a rate near 1 the shifted epsilon is very negative, and the kernel's delta there is 1.
        shifted = np.maximum(inner + np.log1p(-np.minimum(rate, 1 - 1e-15)), -40.0)
        return np.asarray(unshifted + weight * _gaussian_delta(shifted, ratio) <= target)

    recycling_rate = _bisected(keeps, np.zeros(kernel_epsilon.shape), np.ones(kernel_epsilon.shape))
    return 1 / ratio, recycling_rate


def _ternary_argmax(values: np.ndarray) -> np.ndarray:
    """The column at which a ternary search for the maximum ends, row by row."""
    rows = np.arange(values.shape[0])
    low = np.zeros(rows.size, dtype=int)
    high = np.full(rows.size, values.shape[1] - 1)
    while (high - low).max() > 2:
        # In a row that is done the third is 0, and its interval stays.
        third = (high - low) // 3
        first, second = low + third, high - third
        better = values[rows, first] >= values[rows, second]
        low, high = np.where(better, low, first), np.where(better, second, high)
    columns = [
        first + int(row[first : last + 1].argmax())
        for first, last, row in zip(low, high, values, strict=True)
    ]
    return np.array(columns)


def _largest_best_rate(values: np.ndarray) -> int:
    """Position of the largest rate among those with nearly the largest value."""
    # Sampling that gains nothing is not worth its error.
    return int(np.flatnonzero(values >= values.max() - 1e-9)[-1])


def algorithm4(
    query: Query,
    epsilon: float,
    delta: float,
    bound: float,
    stated_sensitivity: float,
    *,
    sensitivity: str = "unscaled",
    objective: str = "eq13",
) -> SampledChoice:
    """The sampling rate and the release that brdp, Algorithm 4, chooses for a budget.

    Parameters
    ----------
    query : Query
    epsilon, delta : float
        The budget of the release from the sample, with amplification. Step 7 of the algorithm
        states no rule for the inner delta; it is delta / p here.
    bound, stated_sensitivity : float
        Bound of the error, and the sensitivity D on all records.
    sensitivity : {"unscaled", "scaled"}
        Calibrate to D, as the paper does, or to D / p, the largest change of the statistic on the
        sample.
    objective : {"printed", "eq13", "convolution"}
        Maximise Equation 13 as printed, Equation 13 with q and 1 - q exchanged, or the acceptance
        of E + N with kernel and rate by Equation 10.
    """
    order, target = checked_budget(epsilon, delta)
    theta = checks.real("bound", bound, above=0)
    checks.one_of("sensitivity rule", sensitivity, SENSITIVITIES)
    checks.one_of("objective", objective, OBJECTIVES)
    stated = checks.real("stated_sensitivity", stated_sensitivity, above=0)
    convolved = objective == "convolution"

    def tried(rates: np.ndarray) -> tuple[np.ndarray, Callable[[int], Recycled]]:
        """The objective at each rate, and the release at a position."""
        inner = np.array([inner_budget(order, target, float(rate)) for rate in rates])
        sensitivities = np.full(rates.shape, stated)
        if sensitivity == "scaled":
            sensitivities = stated / rates
        scales, recycling_rates = _splits(inner[:, 0], inner[:, 1], theta / sensitivities)
        sigma = scales * sensitivities[:, None]
        sampling_sds = np.array([query.stated_sampling_sd(float(rate)) for rate in rates])
        # Equation 10, which the convolution takes for the split, knows no sampling error.
        split_sds = 0.0 if convolved else sampling_sds[:, None]
        values = printed_acceptance(
            sigma, recycling_rates, split_sds, theta, swapped=objective != "printed"
        )
        best_share = _ternary_argmax(values)

        def law(position: int) -> Recycled:
            split = position, int(best_share[position])
            kernel = GaussianKernel(float(sigma[split]))
            recycling_rate = float(recycling_rates[split])
            return Recycled.within(kernel, recycling_rate, theta, float(sensitivities[position]))

        if convolved:
            acceptances = [
                total_acceptance(law(i), sampling_sds[i], theta) for i in range(len(rates))
            ]
            return np.array(acceptances), law
        return values[np.arange(len(rates)), best_share], law

    # A sample holds at least one record, and at a rate of at most delta it would need no noise.
    low, high = max(1 / query.n, 2 * target), 1.0
    if convolved:
        # A grid that contains 1, which the printed search never reaches.
        coarse = np.geomspace(low, high, _RATES)
        values, _ = tried(coarse)
        best = _largest_best_rate(values)
        rates = np.linspace(coarse[max(best - 1, 0)], coarse[min(best + 1, _RATES - 1)], _RATES)
    else:
        # Steps 1 to 18 as printed end with the middle of the last interval.
        while high - low > 1e-4:
            third = (high - low) / 3
            (first, second), _ = tried(np.array([low + third, high - third]))
            low, high = (low + third, high) if first < second else (low, high - third)
        rates = np.array([(low + high) / 2])
    values, law = tried(rates)
    best = _largest_best_rate(values)
    return SampledChoice(float(rates[best]), law(best), float(values[best]))


def sampled_delta(
    law: Recycled, sampling_rate: float, true_sensitivity: float, epsilon: float
) -> float:
    """delta(epsilon) of a release from a sample of fixed size, p delta_exact(epsilon_1) rounded up.

    `true_sensitivity` is how far one record moves the statistic, whatever `law` was calibrated to.
    """
    inner, _ = inner_budget(epsilon, 0.0, sampling_rate)
    release = replace(law, sensitivity=true_sensitivity)
    return min(1.0, sampling_rate * true_delta(release, inner))
