"""Budget recycling on a sample of fixed size: amplification, total error, queries, and the paper's
Algorithm 4.

The released statistic of m = p n records has the error E + N, E a sampling error that the recycler
must not see (it depends on the data): the acceptance is that of the sum. One record moves a
statistic on the sample by 1 / p times what it moves it by on all records: a release must be
calibrated to this.  p, and within it the inner budget's share, are found by ternary search, as in
the paper: a global search of (13) takes its other optimum, q near 1 without privacy.
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
_RATES, _SHARES = 40, 200


def amplified(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """(log(1 + p (e^epsilon - 1)), p delta), a guarantee on a sample of rate p (brdp, Theorem 4):
    under substitution for fixed sizes without replacement, under add_remove for Poisson samples."""
    delta = checks.real("delta", delta, at_least=0, below=1)
    return float(amplified_epsilon(epsilon, rate)), rate * delta


def inner_budget(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """(log(1 + (e^epsilon - 1) / p), delta / p), the inverse of :func:`amplified`: what step 6 of
    Algorithm 4 needs. A delta that is not below the rate is refused: the sample would need no noise
    at all."""
    rate = checks.real("rate", rate, above=0, at_most=1)
    delta = checks.real("delta", delta, at_least=0, below=rate)
    return float(base_epsilon(epsilon, rate)), delta / rate


def total_acceptance(law: Recycled, sampling_sd: float, bound: float) -> float:
    """P(|E + N| <= bound) for E ~ N(0, sampling_sd^2) and symmetric noise N with the law `law`, by
    Gauss-Legendre quadrature between the kinks of its cdf. Proposition 7 claims another formula:
    :func:`printed_acceptance`."""
    sd, theta = (
        checks.real("sampling_sd", sampling_sd, at_least=0),
        checks.real("bound", bound, above=0),
    )
    if sd == 0:
        return float(law.cdf(theta) - law.cdf(-theta))
    last = 8.5 * sd  # what lies beyond has less than 2e-17 of the mass
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
    """brdp, Equation 13 and Proposition 7: 1 / (1 - q + q / P(|Z| <= bound)), Z ~ N(0, sigma^2 +
    sampling_sd^2); `swapped` exchanges q and 1 - q, as (10) needs. Neither is the acceptance: the
    recycler sees N and not E + N."""
    whole = np.hypot(np.asarray(sigma, dtype=float), sampling_sd)
    inside = special.erf(bound / whole / math.sqrt(2))
    q = np.asarray(rate, dtype=float)
    return 1 / (q + (1 - q) / inside) if swapped else 1 / (1 - q + q / inside)


@dataclass(frozen=True)
class Query:
    """A linear query of `n` records with values clipped to [0, `clip`], whose standard deviation
    (divisor n) is `spread` (brdp, Sections 7 and 8). A count is over indicators: `clip` 1, `spread`
    sqrt(p_c (1 - p_c))."""

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
        """The query of these records, whose spread is that of their clipped values."""
        clipped = np.clip(checks.finite_array("values", values, ndim=1), 0.0, clip)
        return cls(len(clipped), clip, float(clipped.std()))

    def sensitivity(self, rate: float = 1.0) -> float:
        """Largest change of the statistic at sampling rate `rate`, in (0, 1], when one record is
        substituted."""
        return self.clip / checks.real("rate", rate, above=0, at_most=1)

    def sampling_sd(self, rate: float) -> float:
        """Of the statistic on m = rate n records without replacement: sigma_x sqrt(n (1 - p) / p)
        sqrt(n / (n - 1))."""
        rate = checks.real("rate", rate, above=0, at_most=1)
        return (
            self.n
            * self.spread
            * math.sqrt((1 - rate) / rate / max(1, self.n - 1))
            * self.per_record
        )

    def stated_sampling_sd(self, rate: float) -> float:
        """The paper's Proposition 6, which leaves out the factor sqrt(n / (n - 1)) of a finite
        population."""
        rate = checks.real("rate", rate, above=0, at_most=1)
        return self.spread * math.sqrt(self.n * (1 - rate) / rate) * self.per_record

    @property
    def per_record(self) -> float:
        """What the statistic on all records moves by per unit of a record's value: 1, or 1 / n for
        an average."""
        return 1.0

    def answer(self, values: np.ndarray) -> float:
        """The exact answer on all records, shape (n,)."""
        return float(np.clip(values, 0.0, self.clip).sum() * self.per_record)

    def estimates(
        self, values: np.ndarray, size: int, repeats: int, rng: np.random.Generator
    ) -> np.ndarray:
        """The statistic on `repeats` independent samples of `size` records, shape (repeats,)."""
        size = checks.integer("size", size, at_least=1, at_most=self.n, at_most_name="n")
        if size == self.n:
            return np.full(repeats, self.answer(values))
        order = np.argpartition(rng.random((repeats, self.n)), size, axis=1)[:, :size]
        return (
            np.clip(values, 0.0, self.clip)[order].sum(axis=1) * (self.n / size) * self.per_record
        )


class Total(Query):
    """Sum of the values: a record moves it by at most the clipping range."""

    name: ClassVar[str] = "sum"


class Average(Query):
    """Mean of the values; the number of records is public, so that only substitution is bounded, by
    clip / m."""

    name: ClassVar[str] = "avg"

    @property
    def per_record(self) -> float:
        return 1.0 / self.n

    def sensitivity(self, rate: float = 1.0) -> float:
        return self.clip / (self.n * checks.real("rate", rate, above=0, at_most=1))


class Count(Query):
    """Number of records with a property: values are indicators, `clip` is 1."""

    name: ClassVar[str] = "cnt"

    @classmethod
    def of_share(cls, n: int, share: float) -> Count:
        """The count over n records of which the share p_c has the property."""
        share = checks.real("share", share, at_least=0, at_most=1)
        return cls(n, 1.0, math.sqrt(share * (1 - share)))


KINDS: dict[str, type[Query]] = {kind.name: kind for kind in (Total, Average, Count)}


class SampledChoice(NamedTuple):
    """The release that the search found, with the sensitivity that it was calibrated to, and its
    sampling rate. `claimed` is the objective's acceptance: the true one only for "convolution"."""

    sampling_rate: float
    law: Recycled
    claimed: float


def _gaussian_delta(epsilon: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """delta_Z(epsilon) of Gaussian noise, by arrays of epsilon and of sensitivity over scale; for
    searches only."""
    first = special.ndtr(ratio / 2 - epsilon / ratio)
    return np.asarray(
        first - np.exp(np.minimum(epsilon + special.log_ndtr(-ratio / 2 - epsilon / ratio), 0.0))
    )


def _last(
    keeps: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Where conditions that hold at `low` cease to hold, entry by entry, rounded down."""
    for _ in range(44):
        middle = (low + high) / 2
        kept = keeps(middle)
        low, high = np.where(kept, middle, low), np.where(kept, high, middle)
    return low


def _splits(
    epsilon: np.ndarray, delta: np.ndarray, bound_ratio: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1 for all shares of inner budgets of shape (rates,): scales in units of the
    sensitivity and rates q, both of shape (rates, shares)."""
    inner, target, theta = (
        np.asarray(x, dtype=float)[:, None] for x in (epsilon, delta, bound_ratio)
    )
    spent = inner * np.linspace(1 / _SHARES, 1.0, _SHARES)
    log_ratio = _last(
        lambda log: _gaussian_delta(spent, np.exp(log)) <= target,
        np.full(spent.shape, -12.0),
        np.full(spent.shape, 6.0),
    )
    ratio = np.exp(log_ratio)
    # (7) for symmetric bounds, in units of the sensitivity
    weight = special.ndtr(np.minimum(1 - theta, theta) * ratio) - special.ndtr(-theta * ratio)
    alone = (1 - weight) * _gaussian_delta(inner, ratio)

    def keeps(rate: np.ndarray) -> np.ndarray:
        # at a rate near 1 the shifted epsilon is very negative: the kernel's delta there is 1
        shifted = np.maximum(inner + np.log1p(-np.minimum(rate, 1 - 1e-15)), -40.0)
        return np.asarray(alone + weight * _gaussian_delta(shifted, ratio) <= target)

    return 1 / ratio, _last(keeps, np.zeros(spent.shape), np.ones(spent.shape))


def _peaks(values: np.ndarray) -> np.ndarray:
    """The column where ternary search for a maximum ends, row by row."""
    rows = np.arange(values.shape[0])
    low, high = np.zeros(rows.size, dtype=int), np.full(rows.size, values.shape[1] - 1)
    while (high - low).max() > 2:
        third = (high - low) // 3  # 0 in a row that is done, which therefore stays
        first, second = low + third, high - third
        better = values[rows, first] >= values[rows, second]
        low, high = np.where(better, low, first), np.where(better, second, high)
    return np.array(
        [i + int(row[i : j + 1].argmax()) for i, j, row in zip(low, high, values, strict=True)]
    )


def _last_best(values: np.ndarray) -> int:
    """Of rates that are alike the largest: sampling that gains nothing is not worth its error."""
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
    """The sampling rate and the release that brdp, Algorithm 4, chooses for the budget of the
    whole. It calibrates to D = `stated_sensitivity` ("unscaled"), as the paper does, or to D / p
    ("scaled"), which is how far the statistic really moves. Its objective is Equation 13 as
    "printed", with q and 1 - q exchanged ("eq13"), or the acceptance of E + N ("convolution"),
    kernel and rate by Equation 10. Step 7 states no rule: delta_1 is delta / p."""
    order, target = checked_budget(epsilon, delta)
    theta = checks.real("bound", bound, above=0)
    checks.one_of("sensitivity rule", sensitivity, SENSITIVITIES)
    checks.one_of("objective", objective, OBJECTIVES)
    span = checks.real("stated_sensitivity", stated_sensitivity, above=0)
    convolved = objective == "convolution"

    def tried(rates: np.ndarray) -> tuple[np.ndarray, Callable[[int], Recycled]]:
        """The objective at each rate, and what makes the release at a position."""
        inner = np.array([inner_budget(order, target, float(rate)) for rate in rates])
        spans = span / rates if sensitivity == "scaled" else np.full(rates.shape, span)
        scales, redrawn = _splits(inner[:, 0], inner[:, 1], theta / spans)
        sigma = scales * spans[:, None]
        errors = np.array([query.stated_sampling_sd(float(rate)) for rate in rates])
        seen = 0.0 if convolved else errors[:, None]
        values = printed_acceptance(sigma, redrawn, seen, theta, swapped=objective != "printed")
        best = _peaks(values)

        def law(place: int) -> Recycled:
            at = place, int(best[place])
            return Recycled.within(
                GaussianKernel(float(sigma[at])), float(redrawn[at]), theta, float(spans[place])
            )

        if convolved:
            return np.array(
                [total_acceptance(law(i), errors[i], theta) for i in range(len(rates))]
            ), law
        return values[np.arange(len(rates)), best], law

    low, high = max(1 / query.n, 2 * target), 1.0  # a sample holds a record, and needs noise
    if convolved:
        # a grid that holds 1, where the printed search never arrives
        coarse = np.geomspace(low, high, _RATES)
        best = _last_best(tried(coarse)[0])
        rates = np.linspace(coarse[max(best - 1, 0)], coarse[min(best + 1, _RATES - 1)], _RATES)
    else:
        # steps 1 to 18 as printed: the middle of the last interval, whose ends were never both
        # tried
        while high - low > 1e-4:
            third = (high - low) / 3
            first, second = tried(np.array([low + third, high - third]))[0]
            low, high = (low + third, high) if first < second else (low, high - third)
        rates = np.array([(low + high) / 2])
    values, law = tried(rates)
    best = _last_best(values)
    return SampledChoice(float(rates[best]), law(best), float(values[best]))


def sampled_delta(
    law: Recycled, sampling_rate: float, true_sensitivity: float, epsilon: float
) -> float:
    """delta(epsilon) that a release on a fixed-size sample really has, rounded up: p
    delta_exact(epsilon_1), where the statistic moves by `true_sensitivity` with one record,
    whatever `law` was calibrated to."""
    inner, _ = inner_budget(epsilon, 0.0, sampling_rate)
    return min(1.0, sampling_rate * true_delta(replace(law, sensitivity=true_sensitivity), inner))
