"""Dominating and lower-bound pairs: two Gaussian mixtures with the same deviation, and the privacy
loss between them.

The deviation s of the components is that of the noise in units of their means. If an
occurrence of the differing record moves the mean by C, the unit is C and s is the noise
multiplier. A record that takes a filler's place moves it by 2 C; in this unit (`FillerPair`) s
is half the noise multiplier. The pages of docs/proofs say which pairs dominate all neighbours,
which are attained, and which only occur in a paper's computation (the mirrored ones of WOR, WR and
multistage samplers, one direction for Poisson; MUST, Sections 3.4, S5, S6).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import expit, ndtr

from dpsub import checks
from dpsub.accounting.engine import work
from dpsub.errors import ArgumentError, NumericalError
from dpsub.relations import Relation
from dpsub.sampling.laws import MultiplicityLaw

LOSS_TOLERANCE = 1e-12
"""|L(L^-1(x)) - x| is at most this times max(1, |x|); inverses that miss it are refused."""

MIN_SCALE = 0.05
"""Smallest noise multiplier: below it exp(1 / (2 s^2)) leaves the range where the loss has this
accuracy."""

MAX_SCALE = 1e9
"""Largest noise multiplier of a release: there, charges for rounding exceed the losses by far."""

# terms below exp(-60) of the largest are left out: 1e6 of them are below 1e-20 of the sum
_NEGLIGIBLE = 60.0
# total weight of components that need no cell masses; whoever bounds from above charges it
_NEGLIGIBLE_MASS = 1e-25
_BLOCK = 4096
_TERMS = 33_000  # so many are in the cache at once, with a copy
_NODES = 4096
_NEWTON_STEPS = 8
# deviations from which on a tail is 0 in double precision
_TAIL_IS_ZERO = 39.0
# up to so many pairs of a point and a component a loop over components costs more than it computes
_FEW = 20_000


def complement(rate: float, missed: float | None) -> float:
    """1 - q: `missed`, where that is known as a number of its own. A rounded q = m / n near 1 has
    few digits of it."""
    return 1 - rate if missed is None else missed


def log_complement(rate: float, missed: float | None) -> float:
    """log(1 - q); -inf at q = 1."""
    if rate <= 0.5:
        return math.log1p(-rate)
    rest = complement(rate, missed)
    return math.log(rest) if rest > 0 else -math.inf


def log_tilted_sum(
    log_weights: np.ndarray, counts: np.ndarray, tilt: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """log sum_u a_u e^{u tilt} and the mean of u under the tilted weights, for increasing u and any
    finite tilts.

    Each block of points (neighbouring tilts are the fastest) works on the terms that matter
    somewhere in it, found at its two ends: the tilted laws have monotone likelihood ratios in u, so
    a term to the left that is negligible at the smallest tilt is negligible at every larger one,
    and likewise on the right.
    """
    log_sum, mean = np.empty(tilt.size), np.empty(tilt.size)
    for start in range(0, tilt.size, _BLOCK):
        work.spend(work.TERM * counts.size * min(_BLOCK, tilt.size))
        block = slice(start, start + _BLOCK)
        points = tilt[block]
        at_low = log_weights + points.min() * counts
        at_high = log_weights + points.max() * counts
        seen_at_low = at_low >= at_low.max() - _NEGLIGIBLE
        seen_at_high = at_high >= at_high.max() - _NEGLIGIBLE
        first = int(np.argmax(seen_at_low))
        last = counts.size - int(np.argmax(seen_at_high[::-1]))
        kept, kept_weights = counts[first:last], log_weights[first:last, None]
        # a few points at a time, whose terms stay in the cache
        few = max(16, _TERMS // kept.size)
        for first_point in range(start, start + points.size, few):
            part = slice(first_point, min(first_point + few, start + points.size))
            # the largest of many short columns is found faster than that of short rows
            terms = np.multiply.outer(kept, tilt[part])
            terms += kept_weights
            largest = terms.max(axis=0)
            terms -= largest
            terms = np.exp(terms, out=terms).T.copy()
            total = terms.sum(axis=1)
            log_sum[part] = largest + np.log(total)
            mean[part] = np.einsum("ij,j", terms, kept) / total
    return log_sum, mean


class GaussianPair(ABC):
    """X ~ sum_u w_u N(u, s^2) against X', with the increasing loss L(t) = log f_X(t) - log f_X'(t).

    X' is the mirror image sum_u w_u N(-u, s^2) where `mirrored`, else N(0, s^2), or what
    `components_prime` says.

    Attributes
    ----------
    label : str
        The pair in a formula.
    relation : Relation
        The adjacency for which the paper states the pair.
    closed_form : bool
        Whether the inverse of the loss and its derivative are formulas.
    deviation : float
        s, in the unit of the means u.
    """

    label: ClassVar[str]
    relation: ClassVar[Relation]
    closed_form: ClassVar[bool]
    mirrored: ClassVar[bool]
    deviation: float

    @property
    @abstractmethod
    def components(self) -> tuple[np.ndarray, np.ndarray]:
        """(u, log w_u) for w_u > 0, u increasing."""

    @property
    def components_prime(self) -> tuple[np.ndarray, np.ndarray]:
        """(u, log w_u) of X', in any order."""
        counts, log_weights = self.components
        return (-counts, log_weights) if self.mirrored else (np.zeros(1), np.zeros(1))

    def branches(self, edges: np.ndarray) -> list[np.ndarray]:
        """Monotone edges of the pieces, one or more, that make up each cell of losses whose ends
        are those of `edges`."""
        return [edges]

    @property
    def loss_floor(self) -> float:
        """Infimum of the loss; -inf if it is unbounded."""
        return -np.inf

    @abstractmethod
    def loss(self, t: np.ndarray) -> np.ndarray:
        """L(t), in nats, for finite t."""

    @abstractmethod
    def loss_slope(self, t: np.ndarray) -> np.ndarray:
        """L'(t) > 0."""

    @abstractmethod
    def inverse_loss(self, x: np.ndarray) -> np.ndarray:
        """t with L(t) = x, to `LOSS_TOLERANCE`; -inf at and below the floor of the loss."""

    def inverse_slope(self, x: np.ndarray) -> np.ndarray:
        """dt/dx of the inverse; infinite at and below the floor of the loss."""
        with np.errstate(divide="ignore"):
            return 1 / self.loss_slope(self.inverse_loss(x))

    def loss_density(self, x: np.ndarray) -> np.ndarray:
        """Density of the loss under X, omega(x) = f_X(t) dt/dx at t = L^-1(x); 0 at and below the
        floor."""
        x = np.asarray(x, dtype=float)
        above = x > self.loss_floor
        # 0 is a loss of every pair: it stands in where there is no place
        inside = np.where(above, x, 0.0)
        t = self.inverse_loss(inside)
        return np.where(above, np.exp(self.log_density(t)) * self.inverse_slope(inside), 0.0)

    def log_density(self, t: np.ndarray) -> np.ndarray:
        """log f_X(t)."""
        t = np.asarray(t, dtype=float)
        counts, log_weights = self.components
        # with the factor of the density of N(0, s^2) taken out, the mixture is a sum of tilts
        shifted = log_weights - 0.5 * (counts / self.deviation) ** 2
        log_sum, _ = log_tilted_sum(shifted, counts, np.ravel(t) / self.deviation**2)
        centred = 0.5 * ((t / self.deviation) ** 2 + np.log(2 * np.pi))
        return log_sum.reshape(t.shape) - centred - np.log(self.deviation)

    def cdf(self, t: np.ndarray) -> np.ndarray:
        """P(X <= t), a sum of positive terms: small values keep their relative accuracy."""
        return self._mixture_of(lambda z: ndtr(z), t)

    def sf(self, t: np.ndarray) -> np.ndarray:
        """P(X > t), likewise."""
        return self._mixture_of(lambda z: ndtr(-z), t)

    def cdf_prime(self, t: np.ndarray) -> np.ndarray:
        """P(X' <= t)."""
        t = np.asarray(t, dtype=float)
        return self.sf(-t) if self.mirrored else ndtr(t / self.deviation)

    def sf_prime(self, t: np.ndarray) -> np.ndarray:
        """P(X' > t)."""
        t = np.asarray(t, dtype=float)
        return self.cdf(-t) if self.mirrored else ndtr(-t / self.deviation)

    def _mixture_of(self, tail: Callable[[np.ndarray], np.ndarray], t: np.ndarray) -> np.ndarray:
        t = np.asarray(t, dtype=float)
        counts, log_weights = self.components
        weights = np.exp(log_weights)
        if t.size * counts.size <= _FEW:
            tails = tail(np.subtract.outer(t, counts) / self.deviation)
            return np.einsum("...j,j", tails, weights)
        # component by component, the largest counts, which are rare, first
        total = np.zeros(t.shape)
        for count, weight in zip(counts[::-1], weights[::-1], strict=True):
            total += weight * tail((t - count) / self.deviation)
        return total

    @cached_property
    def bulk(self) -> tuple[np.ndarray, np.ndarray, float]:
        """(u, w_u) without the rarest components, and the total weight of those, at most 1e-25:
        whoever bounds from above charges it."""
        counts, log_weights = self.components
        weights = np.exp(log_weights)
        # as many of the rarest as may be left out together
        rarest_first = np.argsort(weights)
        running = np.cumsum(weights[rarest_first])
        left_out = int(np.searchsorted(running, _NEGLIGIBLE_MASS))
        kept = np.sort(rarest_first[left_out:])
        return counts[kept], weights[kept], float(running[left_out - 1]) if left_out else 0.0

    def interval_masses(self, edges: np.ndarray) -> np.ndarray:
        """P(edges[i] < X <= edges[i + 1]) of the `bulk`, shape (len(edges) - 1,); edges
        nondecreasing, -inf allowed.

        Each component is differenced on the side of its centre where the tail is small; the one
        interval that holds the centre gets the missing 1. So the masses are those of tails
        perturbed by a few roundings of min(cdf, sf). `cell_masses.mixture_masses` gives bounds of
        errors as well.
        """
        masses, reach = np.zeros(len(edges) - 1), _TAIL_IS_ZERO * self.deviation
        for count, weight in zip(*self.bulk[:2], strict=True):
            # the component has mass between the outermost edges whose tails are 0, and only there
            ends = (count - reach, count + reach)
            first, last = np.searchsorted(edges, ends).tolist()
            near = slice(max(first - 1, 0), last + 1)
            z = edges[near] - count
            z /= self.deviation
            # left of the centre masses are differences of lower tails, right of it of upper ones
            right = int(np.searchsorted(z, 0.0, side="right"))
            np.negative(z[right:], out=z[right:])
            tail = ndtr(z, out=z)
            np.negative(tail[right:], out=tail[right:])
            step = np.diff(tail)
            if 0 < right < tail.size:
                step[right - 1] += 1.0
            step *= weight
            masses[near.start : near.start + step.size] += step
        return masses


@dataclass(frozen=True, eq=False)
class _LawPair(GaussianPair):
    """A pair of any multiplicity law, which must include the record."""

    law: MultiplicityLaw = field(repr=False)
    deviation: float
    relation: ClassVar[Relation] = Relation.SUBSTITUTE
    closed_form: ClassVar[bool] = False

    def __post_init__(self) -> None:
        # only the mirrored pair loses its accuracy at small deviations
        limit = {"at_least": MIN_SCALE} if self.mirrored else {"above": 0.0}
        deviation = checks.real("deviation", self.deviation, **limit)
        object.__setattr__(self, "deviation", deviation)
        if not self.law.eta > 0:
            raise ArgumentError(
                "the law must include the record with positive probability, got "
                f"eta = {self.law.eta}"
            )

    @cached_property
    def components(self) -> tuple[np.ndarray, np.ndarray]:
        # counts without mass have no component
        counts = np.flatnonzero(np.isfinite(self.law.log_pmf))
        return counts.astype(float), self.law.log_pmf[counts]

    @cached_property
    def _terms(self) -> tuple[np.ndarray, np.ndarray]:
        """log w_u e^{-u^2 / (2 s^2)} and u, of the counts whose terms the loss is inverted with."""
        counts, log_weights = self.components
        # without a mirror the loss is inverted through the sum over l >= 1 (`FillerPair`)
        taken = counts >= (0 if self.mirrored else 1)
        log_terms = log_weights[taken] - 0.5 * (counts[taken] / self.deviation) ** 2
        return log_terms, counts[taken]


class _TwoSidedPair(GaussianPair):
    """Several Gaussians on either side: what the loss and its slope take is computed once."""

    @abstractmethod
    def _loss_and_slope(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """L(t) and L'(t), for flat t."""

    def loss(self, t: np.ndarray) -> np.ndarray:
        t = np.asarray(t, dtype=float)
        return self._loss_and_slope(t.ravel())[0].reshape(t.shape)

    def loss_slope(self, t: np.ndarray) -> np.ndarray:
        t = np.asarray(t, dtype=float)
        return self._loss_and_slope(t.ravel())[1].reshape(t.shape)


class MixturePair(_TwoSidedPair, _LawPair):
    """X ~ sum_u w_u N(u, s^2) against its mirror image, s >= 0.05, w any law with eta > 0 (MUST,
    Section S5).

    L(t) = A(t) - A(-t), A(t) = log sum_u w_u e^{-u^2/(2 s^2) + t u/s^2}: odd and strictly
    increasing. It is inverted by Newton steps from a table, whose nodes suit the largest loss.
    """

    label: ClassVar[str] = "sum_u w_u N(u, s^2) against sum_u w_u N(-u, s^2)"
    mirrored: ClassVar[bool] = True

    def _loss_and_slope(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tau = t / self.deviation**2
        up, mean_up = log_tilted_sum(*self._terms, tau)
        down, mean_down = log_tilted_sum(*self._terms, -tau)
        return up - down, (mean_up + mean_down) / self.deviation**2

    def inverse_loss(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, dtype=float)
        flat = x.ravel()
        half = flat.size // 2
        if flat.size > 1 and np.array_equal(flat[:half], -flat[: -half - 1 : -1]):
            # an accountant's grid is its own mirror image, and the loss is odd
            upper = self._inverse_positive(np.abs(flat[half:]))
            t = np.concatenate([-upper[: -half - 1 : -1], upper])
        else:
            t = np.copysign(self._inverse_positive(np.abs(flat)), flat)
        return t.reshape(x.shape)

    def _inverse_positive(self, x: np.ndarray) -> np.ndarray:
        return _inverted(self._loss_and_slope, x, *self._table(float(x.max(initial=0.0))))

    @cached_property
    def _rungs(self) -> tuple[np.ndarray, np.ndarray]:
        """Points that grow by halves, and the loss there."""
        t = np.multiply.accumulate(np.append(self.deviation, np.full(99, 1.5)))
        return t, self.loss(t)

    @cached_property
    def _tables(self) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        return {}

    def _table(self, largest: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points from 0 to the first rung with a loss of at least `largest`, the loss and its slope
        there; kept."""
        # of few sizes, so that grids of nearby tails share a table
        points, losses = self._rungs
        rung = int(np.argmax((losses >= largest) & (losses > 0)))
        if rung not in self._tables:
            nodes = np.linspace(0.0, points[rung], _NODES + 1)
            self._tables[rung] = (nodes, *self._loss_and_slope(nodes))
        return self._tables[rung]

    def loss_density(self, x: np.ndarray) -> np.ndarray:
        t = self.inverse_loss(x)
        return np.exp(self.log_density(t)) / self.loss_slope(t)


class FillerPair(_LawPair):
    """X ~ sum_l p_l N(l, s^2) against X' ~ N(0, s^2), s > 0: the static filler of
    docs/proofs/attacks.md.

    Where the record takes the place of a filler at -C the unit of means is 2 C and s = sigma / (2
    C), half the noise multiplier; where it is an additional record among others at 0, the unit is
    C.
    The loss L(t) = log sum_l p_l e^{l t / s^2 - l^2 / (2 s^2)} increases from log p_0. It is
    inverted through R(t) = log sum_{l >= 1} p_l e^{...} = log(e^L - p_0), whose slope is at least 1
    / s^2 everywhere. The sum of the law may fall short of 1 by what was trimmed.
    """

    label: ClassVar[str] = "sum_l p_l N(l, s^2) against N(0, s^2)"
    mirrored: ClassVar[bool] = False

    @property
    def loss_floor(self) -> float:
        return float(self.law.log_pmf[0])

    def _included(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R(t) and its slope, for flat t."""
        value, mean = log_tilted_sum(*self._terms, t / self.deviation**2)
        return value, mean / self.deviation**2

    def loss(self, t: np.ndarray) -> np.ndarray:
        t = np.asarray(t, dtype=float)
        return np.logaddexp(self._included(t.ravel())[0], self.loss_floor).reshape(t.shape)

    def loss_slope(self, t: np.ndarray) -> np.ndarray:
        t = np.asarray(t, dtype=float)
        value, slope = self._included(t.ravel())
        # of the output's density under X, the share with the record
        log_share = value - np.logaddexp(value, self.loss_floor)
        return (slope * np.exp(log_share)).reshape(t.shape)

    def inverse_loss(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, dtype=float)
        height = np.maximum(x.ravel() - self.loss_floor, 0.0)
        with np.errstate(divide="ignore"):
            # log(e^x - p_0) without a difference of nearly equal numbers
            goal = x.ravel() + np.log(-np.expm1(-height))
        t = np.full(goal.shape, -np.inf)
        inside = np.isfinite(goal)
        if inside.any():
            goal = goal[inside]
            low, high = self._bracket(float(goal.min()), float(goal.max()))
            nodes = np.linspace(low, high, _NODES + 1)
            t[inside] = _inverted(self._included, goal, nodes, self._included(nodes)[0])
        return t.reshape(x.shape)

    def _bracket(self, smallest: float, largest: float) -> tuple[float, float]:
        """An interval on which R, convex with a slope of at least 1 / s^2, takes all values between
        the two."""
        # R is convex and rises by at least 1 / s^2: both ends are reached after few steps
        low, high = 0.0, self.deviation
        while self._included(np.array([low]))[0][0] > smallest:
            low = 1.5 * low - self.deviation
        while self._included(np.array([high]))[0][0] < largest:
            high = 1.5 * high + self.deviation
        return low, high


@dataclass(frozen=True, eq=False)
class MixedPair(_TwoSidedPair):
    """X ~ sum_l p_l N(l, s^2) against X' ~ sum_l p'_l N(-l, s^2), p = `law` and p' = `opposite`,
    with p_0, p'_0 < 1: records that are added against others that are removed
    (docs/proofs/groups.md, Theorem 35).

    L(t) = A(t) - A'(-t), A as for `MixturePair`, is strictly increasing and takes all values.
    """

    law: MultiplicityLaw = field(repr=False)
    opposite: MultiplicityLaw = field(repr=False)
    deviation: float
    label: ClassVar[str] = "sum_l p_l N(l, s^2) against sum_l p'_l N(-l, s^2)"
    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    closed_form: ClassVar[bool] = False
    mirrored: ClassVar[bool] = False

    @cached_property
    def _sides(self) -> tuple[MixturePair, MixturePair]:
        """The pairs whose X are this X, and the mirror image of this X'."""
        return MixturePair(self.law, self.deviation), MixturePair(self.opposite, self.deviation)

    @property
    def components(self) -> tuple[np.ndarray, np.ndarray]:
        return self._sides[0].components

    @property
    def components_prime(self) -> tuple[np.ndarray, np.ndarray]:
        return self._sides[1].components_prime

    def cdf_prime(self, t: np.ndarray) -> np.ndarray:
        return self._sides[1].sf(-np.asarray(t, dtype=float))

    def sf_prime(self, t: np.ndarray) -> np.ndarray:
        return self._sides[1].cdf(-np.asarray(t, dtype=float))

    def _loss_and_slope(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tau = t / self.deviation**2
        up, mean_up = log_tilted_sum(*self._sides[0]._terms, tau)
        down, mean_down = log_tilted_sum(*self._sides[1]._terms, -tau)
        return up - down, (mean_up + mean_down) / self.deviation**2

    def inverse_loss(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, dtype=float)
        goal = x.ravel()
        low, high = -self.deviation, self.deviation
        while self.loss(np.array([low]))[0] > goal.min():
            low *= 1.5
        while self.loss(np.array([high]))[0] < goal.max():
            high *= 1.5
        nodes = np.linspace(low, high, _NODES + 1)
        table, slope = self._loss_and_slope(nodes)
        return _inverted(self._loss_and_slope, goal, nodes, table, slope).reshape(x.shape)


def _inverted(
    value_and_slope: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    goal: np.ndarray,
    nodes: np.ndarray,
    table: np.ndarray,
    slope: np.ndarray | None = None,
) -> np.ndarray:
    """Points at which an increasing function, tabulated with or without its slope, equals `goal`.

    Interpolation (cubic Hermite where the slope is given), then Newton steps kept in the table's
    cell.

    Raises
    ------
    NumericalError
        If the residual stays above `LOSS_TOLERANCE`.
    """
    cell = np.clip(np.searchsorted(table, goal, side="right") - 1, 0, _NODES - 1)
    low, high = nodes[cell], nodes[cell + 1]
    if slope is None:
        guess = np.interp(goal, table, nodes)
    else:
        guess = _hermite(goal, table, nodes, 1 / slope, cell)
    t = np.clip(guess, low, high)
    # what an upper law is moved by for inexact edges (docs/proofs/numerics.md, "Inversion") holds
    # only for inverses that keep to this
    tolerance = LOSS_TOLERANCE * np.maximum(1.0, np.abs(goal))
    for _ in range(_NEWTON_STEPS):
        work.spend(work.TERM * 2 * t.size)
        value, slope_at_t = value_and_slope(t)
        residual = value - goal
        if np.all(np.abs(residual) <= tolerance):
            return t
        t = np.clip(t - residual / slope_at_t, low, high)
    worst = float(np.max(np.abs(residual)))
    raise NumericalError(
        f"the loss could not be inverted to {LOSS_TOLERANCE:g}, residual {worst:.3g}; use a "
        "deviation nearer 1"
    )


def _hermite(
    x: np.ndarray, at: np.ndarray, value: np.ndarray, slope: np.ndarray, cell: np.ndarray
) -> np.ndarray:
    """Cubic Hermite interpolation of (at, value, slope) at x, x in [at[cell], at[cell + 1]]."""
    width = at[cell + 1] - at[cell]
    v = (x - at[cell]) / width
    w = 1 - v
    from_left = value[cell] * w * w * (1 + 2 * v)
    from_right = value[cell + 1] * v * v * (3 - 2 * v)
    bend = width * v * w * (slope[cell] * w - slope[cell + 1] * v)
    return from_left + from_right + bend


@dataclass(frozen=True)
class _RatePair(GaussianPair):
    """A pair of the law of one inclusion, with closed formulas.

    Of a rate near 1, rounded, 1 - rate keeps few digits: `missed` is a number of its own
    (`complement`; docs/proofs/numerics.md, "1 - q").
    """

    rate: float
    deviation: float
    missed: float | None = None
    closed_form: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checks.real("rate", self.rate, above=0, at_most=1))
        object.__setattr__(
            self, "deviation", checks.real("deviation", self.deviation, at_least=MIN_SCALE)
        )

    @property
    def components(self) -> tuple[np.ndarray, np.ndarray]:
        # at rate 1 the record is always there
        if math.isinf(self._log_missed):
            return np.ones(1), np.zeros(1)
        return np.array([0.0, 1.0]), np.array([self._log_missed, np.log(self.rate)])

    @property
    def _log_missed(self) -> float:
        return log_complement(self.rate, self.missed)


class PoissonPair(_RatePair):
    """X ~ q N(1, s^2) + (1 - q) N(0, s^2) against X' ~ N(0, s^2): the pair for Poisson sampling,
    and the paper's (MUST, Section S6).

    L(t) = log(q e^{(2t - 1) / (2 s^2)} + 1 - q) > log(1 - q); q = `rate` in (0, 1], s = `deviation`
    >= 0.05. Under add/remove both directions must be composed; the paper uses only this one.
    """

    label: ClassVar[str] = "q N(1, s^2) + (1 - q) N(0, s^2) against N(0, s^2), one direction"
    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    mirrored: ClassVar[bool] = False

    @property
    def loss_floor(self) -> float:
        return self._log_missed

    def loss(self, t: np.ndarray) -> np.ndarray:
        z = (2 * np.asarray(t, dtype=float) - 1) / (2 * self.deviation**2)
        change = self.rate * np.expm1(np.minimum(z, 700.0))
        # log1p keeps small losses exact; where the argument nears -1 or grows, the sum of two
        # positive terms does
        return np.where(
            (z <= 1) & (change > -0.5),
            np.log1p(np.maximum(change, -0.5)),
            np.logaddexp(np.log(self.rate) + z, self.loss_floor),
        )

    def loss_slope(self, t: np.ndarray) -> np.ndarray:
        z = (2 * np.asarray(t, dtype=float) - 1) / (2 * self.deviation**2)
        log_included = np.log(self.rate) + z
        # of the output's density under X, the share with the record
        log_share = log_included - np.logaddexp(log_included, self.loss_floor)
        return np.exp(log_share) / self.deviation**2

    def inverse_loss(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, dtype=float)
        height = np.maximum(x - self.loss_floor, 0.0)
        with np.errstate(divide="ignore"):
            # e^x - (1 - q) = e^x (1 - e^{-height}): no difference of nearly equal numbers
            log_included = x + np.log(-np.expm1(-height)) - np.log(self.rate)
            return self.deviation**2 * log_included + 0.5

    def inverse_slope(self, x: np.ndarray) -> np.ndarray:
        height = np.maximum(np.asarray(x, dtype=float) - self.loss_floor, 0.0)
        with np.errstate(divide="ignore"):
            return self.deviation**2 / -np.expm1(-height)


class WorPair(_RatePair):
    """X ~ q N(1, s^2) + (1 - q) N(0, s^2) against its mirror image: the paper's pair for WOR (MUST,
    Section S6).

    L(t) = log((c e^{t/s^2} + p) / (c e^{-t/s^2} + p)), p = 1 - q, c = q e^{-1 / (2 s^2)}, is odd,
    and its inverse is t = s^2 (x/2 + arcsinh((p/c) sinh(x/2))); q = `rate` in (0, 1], s =
    `deviation` >= 0.05."""

    label: ClassVar[str] = (
        "q N(1, s^2) + (1 - q) N(0, s^2) against q N(-1, s^2) + (1 - q) N(0, s^2)"
    )
    relation: ClassVar[Relation] = Relation.SUBSTITUTE
    mirrored: ClassVar[bool] = True

    @property
    def _log_ratio(self) -> float:
        """log(c / p); inf at q = 1."""
        return math.log(self.rate) - self._log_missed - 0.5 / self.deviation**2

    def loss(self, t: np.ndarray) -> np.ndarray:
        tau = np.asarray(t, dtype=float) / self.deviation**2
        a = np.abs(tau)
        if math.isinf(self._log_missed):
            # at rate 1 two Gaussians at a distance of 2
            return 2 * tau
        # (e^L - 1) = 2 c sinh(a) / (c e^{-a} + p): exact for small losses; in logarithms where sinh
        # would overflow
        small = np.minimum(a, 1.0)
        ratio = np.exp(self._log_ratio)
        near = np.log1p(2 * ratio * np.sinh(small) / (ratio * np.exp(-small) + 1))
        far = np.logaddexp(self._log_ratio + a, 0.0) - np.log1p(ratio * np.exp(-a))
        return np.copysign(np.where(a <= 1, near, far), tau)

    def loss_slope(self, t: np.ndarray) -> np.ndarray:
        tau = np.asarray(t, dtype=float) / self.deviation**2
        # each term is the posterior weight of one occurrence, seen from t and from -t
        return (expit(self._log_ratio + tau) + expit(self._log_ratio - tau)) / self.deviation**2

    def inverse_loss(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, dtype=float)
        # below -300 (p/c) nears overflow, and arcsinh(y) = log(2 y) for all y that matter
        if self._log_ratio > -300:
            return self.deviation**2 * (
                x / 2 + np.arcsinh(np.exp(-self._log_ratio) * np.sinh(x / 2))
            )
        # in logarithms log(2 sinh(|x| / 2)) = log(1 - e^{-|x|}) + |x| / 2
        with np.errstate(divide="ignore"):
            height = np.log(-np.expm1(-np.abs(x))) + np.abs(x) / 2 - self._log_ratio
        return self.deviation**2 * (x / 2 + np.copysign(np.maximum(height, 0.0), x))

    def inverse_slope(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, dtype=float)
        ratio = np.exp(-self._log_ratio)
        return (
            self.deviation**2
            / 2
            * (1 + ratio * np.cosh(x / 2) / np.hypot(1.0, ratio * np.sinh(x / 2)))
        )


class ZeroedPair(_RatePair):
    """X ~ q N(2, s^2) + (1 - q) N(0, s^2) against X' ~ q N(1, s^2) + (1 - q) N(0, s^2): fillers at
    -C and a record at C or at 0, without replacement; q = `rate` in (0, 1), s =
    `deviation` >= 0.05.

    With u = e^{(t - 3/2) / s^2} and r = e^{-1 / s^2} (1 - q) / q, e^L = (u^2 + r) / (u + r): the
    loss falls from 0 to `loss_floor`, at `valley`, and rises from there on, where it is inverted;
    `cdf` is that of losses up to L(t)."""

    label: ClassVar[str] = "q N(2, s^2) + (1 - q) N(0, s^2) against q N(1, s^2) + (1 - q) N(0, s^2)"
    relation: ClassVar[Relation] = Relation.ZERO_OUT
    mirrored: ClassVar[bool] = False

    @property
    def components(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array([0.0, 2.0]), np.array([self._log_missed, np.log(self.rate)])

    @property
    def components_prime(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array([0.0, 1.0]), self.components[1]

    @property
    def _log_r(self) -> float:
        return self._log_missed - math.log(self.rate) - 1 / self.deviation**2

    @property
    def loss_floor(self) -> float:
        # of the two roots of y^2 + 4 r y - 4 r = 0 the positive one: 2 / (1 + sqrt(1 + 1 / r))
        return float(np.log(2) - np.logaddexp(0.0, 0.5 * np.logaddexp(0.0, -self._log_r)))

    @property
    def valley(self) -> float:
        return self.deviation**2 * (self.loss_floor - math.log(2)) + 1.5

    def loss(self, t: np.ndarray) -> np.ndarray:
        v = (np.asarray(t, dtype=float) - 1.5) / self.deviation**2
        near = np.minimum(v, 1.0)
        # e^L - 1 = (u - 1) u / (u + r)
        change = np.expm1(near) * expit(near - self._log_r)
        # log1p keeps small losses exact; elsewhere two sums of positive terms do
        return np.where(
            (v <= 1) & (change > -0.5),
            np.log1p(np.maximum(change, -0.5)),
            np.logaddexp(2 * v, self._log_r) - np.logaddexp(v, self._log_r),
        )

    def loss_slope(self, t: np.ndarray) -> np.ndarray:
        v = (np.asarray(t, dtype=float) - 1.5) / self.deviation**2
        return (2 * expit(2 * v - self._log_r) - expit(v - self._log_r)) / self.deviation**2

    def inverse_loss(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, dtype=float)
        above = x > self.loss_floor
        inside = np.where(above, x, 0.0)
        # u^2 - y u + r (1 - y) = 0, y = e^x: the larger root
        with np.errstate(divide="ignore"):
            # 4 r (y - 1) / y^2 in logarithms, as r may leave the range of doubles
            log_bend = math.log(4) + self._log_r - inside + np.log(np.abs(np.expm1(-inside)))
            bend = np.copysign(np.exp(log_bend), inside)
        log_u = inside + np.log1p(np.sqrt(np.maximum(1 + bend, 0.0))) - math.log(2)
        return np.where(above, self.deviation**2 * log_u + 1.5, -np.inf)

    def _twins(self, t: np.ndarray) -> np.ndarray:
        """Points left of the valley with the same losses as those right of it; -inf where the loss
        is not below 0."""
        with np.errstate(divide="ignore"):
            # the product of the roots is r (1 - y)
            log_product = self._log_r + np.log(-np.expm1(np.minimum(self.loss(t), 0.0)))
            v = log_product - (t - 1.5) / self.deviation**2
        return np.minimum(self.deviation**2 * v + 1.5, self.valley)

    def branches(self, edges: np.ndarray) -> list[np.ndarray]:
        # a cell of losses is the union of two intervals of outputs (docs/proofs/numerics.md, "A
        # loss that falls before it rises")
        right = np.maximum(edges, self.valley)
        finite = np.isfinite(right)
        left = np.where(finite, self._twins(np.where(finite, right, self.valley)), -np.inf)
        return [right, np.minimum.accumulate(left)]

    def cdf(self, t: np.ndarray) -> np.ndarray:
        return self._up_to(super().cdf, t)

    def sf(self, t: np.ndarray) -> np.ndarray:
        return self._above(super().sf, super().cdf, t)

    def cdf_prime(self, t: np.ndarray) -> np.ndarray:
        return self._up_to(self.without_record.cdf, t)

    def sf_prime(self, t: np.ndarray) -> np.ndarray:
        return self._above(self.without_record.sf, self.without_record.cdf, t)

    @property
    def without_record(self) -> PoissonPair:
        """The pair whose X is this X': X and its X' are the outputs where fillers and record are at
        -C, the record of X being 0."""
        return PoissonPair(self.rate, self.deviation, self.missed)

    def _up_to(self, cdf: Callable[[np.ndarray], np.ndarray], t: np.ndarray) -> np.ndarray:
        # losses up to L(t) lie between the two places that have it
        right, left = self.branches(np.atleast_1d(t))
        return np.maximum(cdf(right) - cdf(left), 0.0).reshape(np.shape(t))

    def _above(
        self,
        sf: Callable[[np.ndarray], np.ndarray],
        cdf: Callable[[np.ndarray], np.ndarray],
        t: np.ndarray,
    ) -> np.ndarray:
        right, left = self.branches(np.atleast_1d(t))
        return (sf(right) + cdf(left)).reshape(np.shape(t))


def _kept_counts(law: MultiplicityLaw, tail: float) -> int:
    """Smallest number of copies T such that more than T of them have probability at most `tail`."""
    beyond = np.cumsum(law.pmf[::-1])[::-1]
    return max(1, int(np.count_nonzero(beyond > tail)) - 1)


def dropped(law: MultiplicityLaw, tail: float) -> tuple[MultiplicityLaw, float]:
    """Return the law without counts of total probability at most `tail`, and that probability,
    rounded up.

    By joint convexity (F1) the pair is dominated by the sub-pair of the counts kept and an infinite
    loss of that probability (docs/proofs/numerics.md, "Trimming").
    """
    last = _kept_counts(law, tail)
    lost = float(law.pmf[:last:-1].sum())
    if lost <= 0:
        return law, 0.0
    return MultiplicityLaw(law.log_pmf[: last + 1]), lost * (1 + 1e-9)


def capped(law: MultiplicityLaw, tail: float) -> MultiplicityLaw:
    """Return the law of min(L, T): the mass of the tail is given to T.

    For location pairs that move apart with l, in either direction, the optimal tests are
    half-lines, on which a smaller l has less mass under X and more under X': the capped pair is
    dominated by the pair (docs/proofs/attacks.md, "Capping").
    """
    last = _kept_counts(law, tail)
    if last + 1 >= law.log_pmf.size:
        return law
    log_pmf = np.array(law.log_pmf[: last + 1])
    log_pmf[last] = np.logaddexp.reduce(law.log_pmf[last:])
    return MultiplicityLaw(log_pmf)
