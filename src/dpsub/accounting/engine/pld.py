"""Privacy loss distributions (PLDs) on a grid, and those that dominate a profile.

A PLD, the law of log dP/dQ under P, is here a positive measure on the grid offset + index step and
at +infinity (mass at -infinity weighs nothing).  delta(epsilon) = sum over x > epsilon of (1 -
e^{epsilon - x}) mass(x) + mass(infinity) is nondecreasing in every mass and loss, also after
composition: every rounding has a safe direction, and total masses need not be exactly 1. From a
profile to a pair (connect the dots): docs/proofs/composition.md.

Sums of products are `np.einsum` here and in `fourier`, `pairs` and `profiles`, not `@`: the threads
of a BLAS take longer to meet than such a sum takes, and its last digits depend on how many there
are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from dpsub import checks
from dpsub.accounting.engine import work
from dpsub.errors import ArgumentError, NumericalError

# laws of so many losses, on at most so many points of the grid each, are summed row by row: for
# others that takes longer
_LONG, _SPARSE = 2**14, 2
# sums of smaller terms lose digits to those that underflow
_LEAST_TOTAL = 1e-280


@dataclass(frozen=True, eq=False)
class PrivacyLossDistribution:
    """A bound of one PLD on a grid of losses.

    Parameters
    ----------
    step : float
        Step of the grid, in nats.
    indices : ndarray, shape (n,)
        Of the losses offset + indices[i] step; any order, repeated ones add up.
    masses : ndarray, shape (n,)
        Nonnegative; their sum need not be exactly 1.
    side : {"upper", "lower"}
        delta computed from it is at least ("upper") or at most ("lower") that of the pair it stands
        for, after any number of compositions.
    infinity : float
        Mass at +infinity.
    offset : float
        In nats.
    """

    step: float
    indices: np.ndarray
    masses: np.ndarray
    side: str
    infinity: float = 0.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        checks.real("step", self.step, above=0)
        checks.one_of("side", self.side, ("upper", "lower"))
        checks.real("infinity", self.infinity, at_least=0, at_most=1)
        masses = checks.finite_array("masses", self.masses, ndim=1)
        indices = np.asarray(self.indices, dtype=np.int64)
        if masses.shape != indices.shape or masses.size == 0 or masses.min() < 0:
            raise ArgumentError(
                f"a PLD needs nonnegative masses, one per index, got {masses.size} and "
                f"{indices.size}"
            )
        # points without mass are left out; one stays, so that there is a support
        filled = masses > 0
        if not filled.any():
            filled[0] = True
        object.__setattr__(self, "masses", masses[filled])
        object.__setattr__(self, "indices", indices[filled])

    @cached_property
    def losses(self) -> np.ndarray:
        """Losses without the offset, shape (n,)."""
        return self.indices * self.step

    @cached_property
    def log_masses(self) -> np.ndarray:
        """Logarithms of the masses, shape (n,); a tilt or moment asks for them again and again."""
        with np.errstate(divide="ignore"):
            return np.log(self.masses)

    @cached_property
    def support(self) -> tuple[int, int]:
        """Smallest and largest index."""
        return int(self.indices.min()), int(self.indices.max())

    @property
    def _ends(self) -> tuple[float, float]:
        """Smallest and largest loss, without the offset."""
        low, high = self.support
        return low * self.step, high * self.step

    def log_mgf(self, tilt: float) -> float:
        """log sum of mass e^{tilt loss} over finite losses, without the offset."""
        work.spend(work.NUMBER * 4 * self.losses.size)
        exponents = tilt * self.losses
        smallest_loss, largest_loss = self._ends
        largest = tilt * (largest_loss if tilt > 0 else smallest_loss)
        relative = exponents - largest
        total = float(np.einsum("i,i", self.masses, np.exp(relative, out=relative)))
        if total > _LEAST_TOTAL:
            return largest + float(np.log(total))
        # where the largest loss has a tiny mass: in logarithms, which takes longer
        return float(logsumexp(self.log_masses + exponents))

    def quick_log_mgf(self, tilt: float) -> float:
        """`log_mgf` up to its rounding, in a fraction of the time if the law is long."""
        table = self._from_largest if tilt > 0 else self._from_smallest
        if table is None:
            return self.log_mgf(tilt)
        work.spend(work.NUMBER * table.size)
        # e^{tilt loss} is a product of that of a row and that of a column: an exponential for each
        # of these, not for each loss
        rows, columns = table.shape
        fall = abs(tilt) * self.step
        of_columns = np.einsum("ij,j->i", table, np.exp(-fall * np.arange(columns)))
        of_rows = np.exp(-fall * columns * np.arange(rows))
        total = float(np.einsum("i,i", of_rows, of_columns))
        smallest_loss, largest_loss = self._ends
        # as in `log_mgf`, the largest exponent is taken out
        largest = tilt * (largest_loss if tilt > 0 else smallest_loss)
        return largest + math.log(total) if total > _LEAST_TOTAL else self.log_mgf(tilt)

    @cached_property
    def _from_smallest(self) -> np.ndarray | None:
        """Masses row by row, from the smallest loss of the grid up; None for a law that is short or
        sparse."""
        return self._table(self.indices - self.support[0])

    @cached_property
    def _from_largest(self) -> np.ndarray | None:
        """Masses row by row, from the largest loss of the grid down; None for a law that is short
        or sparse."""
        return self._table(self.support[1] - self.indices)

    def _table(self, places: np.ndarray) -> np.ndarray | None:
        low, high = self.support
        if places.size < _LONG or high - low > _SPARSE * places.size:
            return None
        # about as many columns as rows
        columns = math.isqrt(high - low) + 1
        rows = (high - low) // columns + 1
        masses = np.bincount(places, self.masses, minlength=rows * columns)
        return masses.reshape(rows, columns)

    def moments(self, tilt: float) -> tuple[float, float]:
        """Mean and variance of the tilted, normalised PLD, without the offset; 0 and 0 where all of
        its losses are infinite."""
        if not self.masses.any():
            return 0.0, 0.0
        work.spend(work.TERM * self.losses.size)
        exponents = self.log_masses + tilt * self.losses
        weights = np.exp(exponents - exponents.max())
        weights /= weights.sum()
        mean = float(np.einsum("i,i", weights, self.losses))
        return mean, float(np.einsum("i,i", weights, (self.losses - mean) ** 2))


_EPS = float(np.finfo(float).eps)

Profile = Callable[[np.ndarray], np.ndarray]
"""Maps log orders >= 0, increasing from 0, to upper bounds of H at them, rounded up."""


class RememberedProfile:
    """A profile that evaluates no order twice: where a grid's step is halved, every other order
    recurs exactly."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._orders, self._values = np.zeros(0), np.zeros(0)

    def __call__(self, log_order: np.ndarray) -> np.ndarray:
        """Upper bounds at the given ln a >= 0, increasing, shape (n,)."""
        # profiles take most of the time of an upper law: each order is paid for once
        place = np.searchsorted(self._orders, log_order)
        known = np.append(self._orders, np.inf)[place] == log_order
        if not known.all():
            new = log_order[~known]
            orders = np.concatenate([self._orders, new])
            values = np.concatenate([self._values, self._profile(new)])
            rising = np.argsort(orders, kind="stable")
            self._orders, self._values = orders[rising], values[rising]
            place = np.searchsorted(self._orders, log_order)
        return self._values[place]


# largest distance of neighbouring orders, in nats
_WIDEST = 0.25
_NEWTON_STEPS = 40
_MOST_POOLINGS = 60
# orders between two counts of the work
_UNCOUNTED = 1000
MAX_LOSS = 600.0
"""Losses beyond it, where e^loss leaves the range of doubles, are charged as infinite, or moved up
to its negative. Orders end at e^600; what the profile still holds there is infinite loss, too."""
SLOPE_UNIT = 2.0**-850
"""Slopes are kept in this unit: a profile of 1e-300 falls by less than the smallest double at
orders near e^600 (docs/proofs/numerics.md, "Underflow")."""


def order_indices(step: float, fine: float, last: float) -> np.ndarray:
    """Indices i of the orders e^{i step} to evaluate: every one up to `fine`, then ever sparser
    ones up to `last`.

    Any choice of orders is valid; those far in the tail have little weight.
    """
    # at least two, where even the profile at order 1 is negligible
    inside = np.arange(0, max(1, int(np.ceil(fine / step))) + 1)
    # relative spacing in the tail: it falls with the step, so that finer grids converge there too
    ratio = min(0.04, 6 / inside.size)
    at, rest = int(inside[-1]), []
    while at * step < last:
        spacing = min(ratio * max(at * step - fine, 0.0), _WIDEST)
        at += max(1, int(spacing / step))
        rest.append(at)
        if not len(rest) % _UNCOUNTED:
            work.spend(work.ROUND * _UNCOUNTED)
    return np.concatenate([inside, np.array(rest, dtype=int)])


def symmetric_pld(profile: Profile, step: float, indices: np.ndarray) -> PrivacyLossDistribution:
    """Dominate a self-dual profile, H(a) = 1 - a + a H(1/a), by its values at orders e^{step
    index}, indices from 0."""
    return two_sided_pld(profile, profile, step, indices)


def two_sided_pld(
    forward: Profile, backward: Profile, step: float, indices: np.ndarray
) -> PrivacyLossDistribution:
    """Dominate a profile given for a >= 1 by `forward`, H_a(P || Q), and `backward`, H_a(Q || P),
    of one value at order 1. At orders 1/a the profile is 1 - 1/a + H_a(Q || P) / a (F3).

    The greatest convex minorant of upper bounds at some orders lies above the profile, which is
    convex; its kinks are the losses of the dominating pair (docs/proofs/composition.md).
    """
    x = indices * step
    # profiles fall: a bound at a smaller order serves at a larger one
    first = np.minimum(np.minimum.accumulate(forward(x)), 1.0)
    second = first
    if backward is not forward:
        second = np.minimum(np.minimum.accumulate(backward(x)), 1.0)
    return law_of_chords(step, indices, first, second, "upper")


def law_of_chords(
    step: float, indices: np.ndarray, first: np.ndarray, second: np.ndarray, side: str
) -> PrivacyLossDistribution:
    """The law whose profile is the greatest convex minorant of chords between values at orders
    e^{step index}, `first` of H_a(P || Q) and `second` of H_a(Q || P), rounded to a side."""
    x = indices * step
    at_one = _value_at_one(np.expm1(x)[1:], first, second)
    if side == "lower":
        at_one *= 1 - 32 * _EPS
    mirrored_is_same = second is first
    first = np.minimum(first, at_one)
    slopes = hull_slopes(first, x)
    mirrored = slopes if mirrored_is_same else hull_slopes(np.minimum(second, at_one), x)
    return _assemble(step, indices, float(first[-1]), slopes, mirrored, side)


def _value_at_one(gains: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """Return the hull's value at order 1: the lowest chord there between a point to the right and a
    mirrored one.

    With A = a_i - 1, B = a_j - 1 that chord has the value (1 + u_i / A + w_j / B) / (1 + 1 / A + 1
    / B). The lowest is the root of g(v) = v + max_i (v - u_i) / A_i + max_j (v - w_j) / B_j = 1,
    convex and increasing: each Newton step is a chord.
    """
    value = min(float(first[0]), float(second[0]))
    for _ in range(_NEWTON_STEPS):
        i = int(np.argmax((value - first[1:]) / gains))
        j = int(np.argmax((value - second[1:]) / gains))
        chord = 1 + first[i + 1] / gains[i] + second[j + 1] / gains[j]
        # rounded up by more than the roundings of these sums of positive terms
        chord *= (1 + 16 * _EPS) / (1 + 1 / gains[i] + 1 / gains[j])
        if chord >= value:
            break
        value = float(chord)
    return value


def hull_slopes(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Negated slopes, in `SLOPE_UNIT`, of the greatest convex minorant of values at orders e^x:
    isotonic regression."""
    # e^x' - e^x without a difference of nearly equal numbers; dividing by the unit first keeps
    # slopes of tiny profiles above the smallest double
    widths = np.exp(x[:-1]) * np.expm1(np.diff(x))
    slopes = -np.diff(values) / SLOPE_UNIT / widths
    return np.maximum(_falling(slopes, widths), 0.0)


def _falling(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The nearest nonincreasing sequence: neighbours that rise are pooled until none do; after many
    rounds scipy, whose import takes longer than most answers, does the rest."""
    pooled, sizes, counts = values, weights, np.ones(values.size, dtype=int)
    for _ in range(_MOST_POOLINGS):
        rising = pooled[1:] >= pooled[:-1]
        if not rising.any():
            return np.repeat(pooled, counts)
        starts = np.flatnonzero(np.append(True, ~rising))
        total = np.add.reduceat(sizes, starts)
        pooled = np.add.reduceat(pooled * sizes, starts) / total
        sizes, counts = total, np.add.reduceat(counts, starts)
    from scipy.optimize import isotonic_regression

    regression = isotonic_regression(pooled, weights=sizes, increasing=False)
    return np.repeat(regression.x, counts)


def _assemble(
    step: float,
    indices: np.ndarray,
    infinity: float,
    slopes: np.ndarray,
    mirrored_slopes: np.ndarray,
    side: str,
) -> PrivacyLossDistribution:
    """The PLD whose profile has these slopes right of order 1, and left of it, by (F3), those of
    the mirrored one; what a profile still holds at its last order is infinite loss."""
    a, sign = np.exp(indices * step), 1 if side == "upper" else -1
    # masses under P at losses above 0
    right = a[1:] * _drops(slopes, sign) * SLOPE_UNIT
    # masses under P at losses below 0: those under Q of the mirrored side
    left = _drops(mirrored_slopes, sign) * SLOPE_UNIT
    # Q has mass where P has none, at loss -infinity; it is no mass of P, which sums to 1 without it
    rest = 1 - float(right.sum()) - float(left.sum()) - infinity
    if rest < -1e-6:
        raise NumericalError(
            f"a dominating profile must be convex at order 1, got a missing mass of {-rest:.3g}; "
            "take a smaller step"
        )
    # rounding of the sums above goes to the loss 0, to the side of the bound
    centre = max(max(rest, 0.0) + sign * 8 * _EPS * indices.size, 0.0)
    places = np.concatenate([-indices[:0:-1], indices])
    masses = np.concatenate([left[::-1], [centre], right])
    infinity = min(1.0, infinity * (1 + sign * 4 * _EPS))
    return PrivacyLossDistribution(step, places, masses, side, infinity=infinity)


def _drops(slopes: np.ndarray, sign: int) -> np.ndarray:
    """Return how much the slope falls at each order but the first, rounded up or down."""
    drops = np.maximum(slopes - np.append(slopes[1:], 0.0), 0.0)
    return np.maximum(drops + sign * 4 * _EPS * slopes, 0.0)
