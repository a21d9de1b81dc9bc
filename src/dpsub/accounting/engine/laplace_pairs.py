"""Laplace noise on scalar sums in which a record occurs at most once: pairs of mixtures, proved
profiles and attained bounds.

Profiles are the closed forms of docs/proofs/laplace.md, at orders a = e^x >= 1, rounded
up, with w = e^-theta, theta the distance over the noise scale. Each is 0 from its last order e^top
on, the largest likelihood ratio; written as multiples of 1 - e^(x - top) they keep their digits
there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsub import checks
from dpsub.accounting.engine.cell_masses import (
    CellMasses,
    MassBounds,
    laplace_densities,
    laplace_masses,
)
from dpsub.accounting.engine.chords import chords
from dpsub.accounting.engine.lower_law import collapsed_losses, lower_law
from dpsub.accounting.engine.outputs import LaplaceOutputs
from dpsub.accounting.engine.pairs import complement, log_complement
from dpsub.accounting.engine.pld import PrivacyLossDistribution, Profile
from dpsub.accounting.engine.privacy_events import DominatedEvent, Event
from dpsub.accounting.engine.profiles import PROFILE_ERROR
from dpsub.accounting.engine.statistic import Statistic
from dpsub.divergences.mixtures import one_mixture_loss

_EPS = float(np.finfo(float).eps)
_LARGEST_ORDER = 690.0  # log orders beyond which doubles overflow
_NODES = 4000  # thresholds at which a profile of several counts is known


def _ends(rate: float, ratio: float, missed: float | None) -> tuple[float, float]:
    """Smallest and largest loss of the mixture against its first component, log(1 - q + q e^-theta)
    and ...e^theta."""
    log_missed = log_complement(rate, missed)
    if math.isinf(log_missed):
        return -ratio, ratio
    log_rate = math.log(rate)
    low = float(np.logaddexp(log_rate - ratio, log_missed))
    high = float(np.logaddexp(log_rate + ratio, log_missed))
    # log1p keeps a small loss exact, and a sum of two positive terms a large one
    if low > -0.5:
        low = one_mixture_loss(-ratio, rate)
    if high < 0.5:
        high = one_mixture_loss(ratio, rate)
    return low, high


def included_once(rate: float, ratio: float, missed: float | None = None) -> Profile:
    """Profile of (1 - q) Lap(0) + q Lap(theta) against Lap(0), as without replacement: q - sqrt(q w
    (a - 1 + q)). Here and below `missed` is 1 - q (`complement`)."""
    _, top = _ends(rate, ratio, missed)
    q, w, rest = rate, math.exp(-ratio), complement(rate, missed)

    def profile(log_order: np.ndarray) -> np.ndarray:
        x, below = _below(log_order, top, ratio)
        # the difference times its sum over the sum: nothing cancels near the last order
        return below * (q * (q + w * rest) / (q + np.sqrt(q * w * (np.expm1(x) + q))))

    return profile


def removed_once(rate: float, ratio: float, missed: float | None = None) -> Profile:
    """Profile of Lap(0) against (1 - q) Lap(0) + q Lap(theta): r - sqrt(r a q w), r = 1 - a (1 -
    q)."""
    low, _ = _ends(rate, ratio, missed)
    top, q, w, rest = -low, rate, math.exp(-ratio), complement(rate, missed)

    def profile(log_order: np.ndarray) -> np.ndarray:
        x, below = _below(log_order, top, ratio)
        # the quotient grows with r, whose rounding is absolute
        r = np.maximum(q - np.expm1(x) * rest, q * w) + 8 * _EPS
        root = np.sqrt(np.exp(x) * q * w)
        return below * (np.sqrt(r) / (np.sqrt(r) + root))

    return profile


def replaced_once(rate: float, ratio: float, missed: float | None = None) -> Profile:
    """Profile of (1 - q) Lap(0) + q Lap(theta) against its mirror image: q - sqrt(q w E), E = (a -
    1)(1 - q) + a q w."""
    low, high = _ends(rate, ratio, missed)
    top, q, w, rest = high - low, rate, math.exp(-ratio), complement(rate, missed)

    def profile(log_order: np.ndarray) -> np.ndarray:
        x, below = _below(log_order, top, ratio)
        inner = np.expm1(x) * rest + np.exp(x) * q * w
        return below * (q * (q + w * rest) / (q + np.sqrt(q * w * inner)))

    return profile


def zeroed_once(rate: float, ratio: float, missed: float | None = None) -> Profile:
    """Profile of (1 - q) Lap(0) + q Lap(2 theta) against (1 - q) Lap(0) + q Lap(theta), as without
    replacement under zero-out: q - sqrt(q w E), E = a q + (a - 1) (1 - q) w."""
    q, w, rest = rate, math.exp(-ratio), complement(rate, missed)
    # 0 from the order on at which E = q / w; both factors without differences
    top = ratio + math.log(q + rest * w**2) - math.log(q + rest * w)

    def profile(log_order: np.ndarray) -> np.ndarray:
        x, below = _below(log_order, top, ratio)
        inner = np.exp(x) * q + np.expm1(x) * rest * w
        return below * (q * (q + rest * w**2) / (q + np.sqrt(q * w * inner)))

    return profile


def _below(log_order: np.ndarray, top: float, ratio: float) -> tuple[np.ndarray, np.ndarray]:
    """Log orders, at most `top`, and 1 - e^(x - top) rounded up, by more than the roundings of all
    other factors (docs/proofs/numerics.md, "Profiles")."""
    x = np.asarray(log_order, dtype=float)
    slack = 16 * _EPS * (1 + ratio + np.abs(x))
    distance = np.minimum(x - top - slack, 0.0)
    return np.minimum(x, top), np.abs(np.expm1(distance)) * (1 + PROFILE_ERROR)


@dataclass(frozen=True)
class LaplacePair:
    """(1 - q) Lap(0) + q Lap(theta) against Lap(0), or, `mirrored`, against its mirror image;
    Lap(c) has scale 1.

    The loss increases between the outermost centres and is constant beyond.

    Parameters
    ----------
    rate : float
        q, in (0, 1].
    ratio : float
        theta > 0, the distance of the centres over the scale of the noise.
    mirrored : bool
        Whether the second law is the mirror image of the first.
    missed : float, optional
        1 - q, where it is known as a number of its own (`complement`).
    """

    rate: float
    ratio: float
    mirrored: bool = False
    missed: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checks.real("rate", self.rate, above=0, at_most=1))
        object.__setattr__(self, "ratio", checks.real("ratio", self.ratio, above=0))

    def loss(self, t: np.ndarray) -> np.ndarray:
        """log of the density of the first law over that of the second, at t in units of the noise
        scale."""
        t = np.asarray(t, dtype=float)
        above = self._against_first(np.clip(2 * t - self.ratio, -self.ratio, self.ratio))
        if not self.mirrored:
            return above
        return above - self._against_first(np.clip(-2 * t - self.ratio, -self.ratio, self.ratio))

    def _against_first(self, shifted: np.ndarray) -> np.ndarray:
        """log(1 - q + q e^u): log1p keeps small losses exact, and a sum of two positive terms those
        near the least."""
        change = self.rate * np.expm1(shifted)
        near = np.log1p(np.maximum(change, -0.5))
        far = np.logaddexp(math.log(self.rate) + shifted, log_complement(self.rate, self.missed))
        return np.where(change > -0.5, near, far)

    @property
    def ends(self) -> tuple[float, float]:
        """Smallest and largest loss."""
        low, high = _ends(self.rate, self.ratio, self.missed)
        return (low - high, high - low) if self.mirrored else (low, high)

    @property
    def _lowest(self) -> float:
        """The smallest loss that a grid of the lower law is laid from: the other half of a mirrored
        pair follows from this one."""
        return 0.0 if self.mirrored else self.ends[0]

    def inverse_loss(self, x: np.ndarray) -> np.ndarray:
        """t with this loss, infinite at and beyond the ends."""
        x = np.asarray(x, dtype=float)
        low, high = _ends(self.rate, self.ratio, self.missed)
        # right of 0 the mirror image has its smallest ratio to Lap(0), so that the loss is the
        # other one moved
        moved = np.abs(x) + low if self.mirrored else x
        change = np.expm1(np.clip(moved, low, high)) / self.rate
        inside = np.clip(change, np.expm1(-self.ratio), np.expm1(self.ratio))
        with np.errstate(divide="ignore"):
            t = (self.ratio + np.log1p(inside)) / 2
        t = np.where(moved >= high, np.inf, t)
        return np.copysign(t, x) if self.mirrored else np.where(moved <= low, -np.inf, t)

    def place(self, losses: np.ndarray) -> np.ndarray:
        """`inverse_loss`, under the name that `DirectedPair` has for it."""
        return self.inverse_loss(losses)

    def range(self, tail: float) -> tuple[float, float]:
        """All losses, whatever the tail: they are bounded."""
        return self.ends

    def masses(self, t: np.ndarray) -> CellMasses:
        """Masses of the cells between neighbouring places, and bounds of their floating-point
        errors."""
        q, theta, rest = self.rate, self.ratio, complement(self.rate, self.missed)
        base = laplace_masses(t, 0.0)
        first = rest * base + q * laplace_masses(t, theta)
        second = rest * base + q * laplace_masses(t, -theta) if self.mirrored else base
        # distances from the centres are off by eps (theta + |t|), and |t| <= theta where cells end:
        # each end of a cell moves by that (a cell may be narrow in comparison), and masses by it
        # times the largest density
        moved = 2 * _EPS * theta
        first_error = moved * laplace_densities(t, q, theta)
        second_error = np.zeros(base.size)
        if self.mirrored:
            second_error = moved * laplace_densities(t, q, -theta)
        # exponentials are off by eps of their exponents, at most theta
        error = 16 * _EPS * (1 + theta)
        return CellMasses(first, second, error * first + first_error, error * second + second_error)

    def lower_pld(self, step: float, swapped: bool) -> PrivacyLossDistribution:
        """Bound the law of the loss, of the other direction if `swapped`, from below.

        A cell between two centres that is symmetric about the place of a loss has that loss
        exactly. From the top down, cells about the places of grid losses tile the line, down to the
        smallest loss (`mirrored`: 0); `fitting` makes the grid end at the largest.
        """
        cells = self.masses(self._edges(step))
        if swapped:
            cells = cells.exchanged()
        masses = np.maximum(cells.p - cells.p_error, 0.0)
        kept = (masses > 0) & (cells.q > 0)
        losses = collapsed_losses(masses[kept], cells.q[kept] + cells.q_error[kept])
        origin = -self._lowest if swapped else self._lowest
        # losses lie on the grid but for rounding: a small tolerance, of a step, keeps them there,
        # and what it lifts is taken back
        slack = 8 * _EPS * (1 + self.ratio)
        return lower_law(losses, masses[kept], step, origin=origin, slack=slack, tolerance=1e-6)

    def fitting(self, step: float) -> float:
        """The largest step, at most the one given, of a grid that meets both ends of the loss."""
        span = self.ends[1] - self._lowest
        return span / max(1, math.ceil(span / step - 1e-9))

    def _edges(self, step: float) -> np.ndarray:
        count = int((self.ends[1] - self._lowest) / step + 1e-9)
        # places of grid losses, decreasing from the top; the cell about each one begins where the
        # one above it ends
        losses = self._lowest + np.arange(count, 0, -1) * step
        places = np.clip(self.inverse_loss(losses), 0.0, self.ratio)
        signs = np.where(np.arange(count) % 2, -1.0, 1.0)
        ends = signs * (2 * np.cumsum(signs * places) - self.ratio)
        falling = np.minimum.accumulate(np.clip(np.append(self.ratio, ends), 0.0, self.ratio))
        rising = falling[::-1]
        inner = np.concatenate([-falling, rising]) if self.mirrored else np.append(0.0, rising)
        return np.concatenate([[-np.inf], inner, [np.inf]])


@dataclass(frozen=True)
class ShiftedOutput(Statistic):
    """(1 - q) Lap(0) + q Lap(x) against (1 - q) Lap(0) + q Lap(y), x and y over the noise scale: an
    output where a record takes another one's place in both data sets. The loss need not be
    monotone."""

    rate: float
    x: float
    y: float
    missed: float | None = None

    @property
    def outputs(self) -> LaplaceOutputs:
        return LaplaceOutputs(self.rate, self.x, self.y)

    def range(self, tail: float) -> tuple[float, float]:
        # beyond the outermost centres the loss is constant
        return min(0.0, self.x, self.y), max(0.0, self.x, self.y)

    def masses(self, edges: np.ndarray) -> tuple[MassBounds, MassBounds]:
        return self._mixture(edges, self.x), self._mixture(edges, self.y)

    def _mixture(self, edges: np.ndarray, centre: float) -> MassBounds:
        rest, farthest = complement(self.rate, self.missed), abs(self.x) + abs(self.y)
        base, drawn = laplace_masses(edges, 0.0), laplace_masses(edges, centre)
        masses = rest * base + self.rate * drawn
        # as in `LaplacePair.masses`
        moved = 2 * _EPS * farthest * laplace_densities(edges, self.rate, centre)
        error = 16 * _EPS * (1 + farthest) * masses + moved
        return np.maximum(masses - error, 0.0), masses + error


@dataclass(frozen=True)
class LaplaceCounts(Statistic):
    """sum p_l Lap(l x) against sum p_l Lap(l y), over the noise scale: outputs where l records of a
    group, each drawn once at most, move the sum; p_l = `weights[l]`."""

    weights: tuple[float, ...]
    x: float
    y: float

    def range(self, tail: float) -> tuple[float, float]:
        # beyond the outermost centres the loss is constant
        most = len(self.weights) - 1
        return most * min(0.0, self.x, self.y), most * max(0.0, self.x, self.y)

    def masses(self, edges: np.ndarray) -> tuple[MassBounds, MassBounds]:
        return self._mixture(edges, self.x), self._mixture(edges, self.y)

    def _mixture(self, edges: np.ndarray, centre: float) -> MassBounds:
        masses, moved = np.zeros(edges.size - 1), np.zeros(edges.size - 1)
        farthest = (len(self.weights) - 1) * (abs(self.x) + abs(self.y))
        for count, weight in enumerate(self.weights):
            if weight:
                masses += weight * laplace_masses(edges, count * centre)
                # as in `LaplacePair.masses`
                moved += laplace_densities(edges, weight, count * centre)
        error = 16 * _EPS * (1 + farthest + len(self.weights)) * masses
        error += 2 * _EPS * farthest * moved
        return np.maximum(masses - error, 0.0), masses + error


def counts_profiles(weights: tuple[float, ...], x: float, y: float) -> tuple[Profile, Profile]:
    """Return H_a(P || Q) and H_a(Q || P), a >= 1, rounded up, for P and Q of `LaplaceCounts`,
    y <= 0 < x, so that the loss rises with the output.

    At a threshold c the half-line {t > c} has the largest P - a Q of the order a = p(c) / q(c), and
    chords between such orders lie above the profile, which is convex.
    """
    laws = LaplaceCounts(weights, x, y)
    low, high = laws.range(0.0)
    # places of the centres, where the slope of the loss jumps, and as many close to either end
    near = np.geomspace(1e-6, 1.0, _NODES // 4) * (high - low) / 2
    inner = np.concatenate([np.linspace(low, high, _NODES), low + near, high - near])
    centres = np.outer([x, y], np.arange(len(weights))).ravel()
    nodes = np.unique(np.concatenate([np.clip(inner, low, high), centres]))
    logs, above = zip(*(_densities_and_tails(weights, nodes, each) for each in (x, y)), strict=True)
    below = [_densities_and_tails(weights, -nodes, -each)[1] for each in (x, y)]
    losses = logs[0] - logs[1]
    # what a loss is off by, and a tail, of itself
    error = 32 * _EPS * (1 + high - low + len(weights))

    def profile(rising: np.ndarray, first: np.ndarray, second: np.ndarray) -> Profile:
        # an order that is too large by up to twice the error has a best half-line inside this one
        orders = rising + error
        kept = np.flatnonzero(np.append(np.diff(orders) > 0, True) & (orders < _LARGEST_ORDER))
        orders, first, second = orders[kept], first[kept], np.exp(orders[kept]) * second[kept]
        values = np.minimum(np.maximum(first - second, 0.0) + 4 * error * (first + second), 1.0)
        # from the largest loss on nothing is left
        beyond = values[-1] if rising[-1] >= _LARGEST_ORDER - 1 else 0.0

        def bounds(log_order: np.ndarray) -> np.ndarray:
            at = np.asarray(log_order, dtype=float)
            return np.asarray(np.where(at > orders[-1], beyond, chords(at, orders, values)))

        return bounds

    return (
        profile(losses, above[0], above[1]),
        profile(-losses[::-1], below[1][::-1], below[0][::-1]),
    )


def _densities_and_tails(
    weights: tuple[float, ...], t: np.ndarray, centre: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return logarithms of the densities of sum p_l Lap(l centre) at t, up to a constant, and the
    masses above t."""
    counts = np.flatnonzero(weights)
    away = np.subtract.outer(t, counts * centre)
    shares = np.array(weights)[counts]
    near = 0.5 * np.exp(-np.abs(away))
    log_density = np.logaddexp.reduce(np.log(shares) - np.abs(away), axis=1)
    # not a product of matrices: see `pld`
    return log_density, np.einsum("ij,j->i", np.where(away > 0, near, 1 - near), shares)


@dataclass(frozen=True)
class LaplaceEvent(Event):
    """A step whose profile, bounded by `forward` and `backward` for its two directions, is that of
    `pair`: of both directions and any number of steps if `attained`; else of the first direction,
    for one step."""

    pair: LaplacePair
    forward: Profile
    backward: Profile
    attained: bool

    @property
    def _bound(self) -> DominatedEvent:
        both = None if self.backward is self.forward else self.backward
        return DominatedEvent(lambda _: (self.forward, both), None)

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return self._bound.upper(step, tail, swapped)

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution | None:
        return self.pair.lower_pld(step, swapped)

    def fitting(self, step: float) -> float:
        return self.pair.fitting(step)

    @property
    def outputs(self) -> LaplaceOutputs:
        ratio = self.pair.ratio
        return LaplaceOutputs(self.pair.rate, ratio, -ratio if self.pair.mirrored else 0.0)

    @property
    def symmetric(self) -> bool:
        return self.upper_symmetric and self.pair.mirrored

    @property
    def upper_symmetric(self) -> bool:
        return self.backward is self.forward

    @property
    def exact(self) -> bool:
        return self.attained

    @property
    def tight_for_one_step(self) -> bool:
        return True

    @property
    def largest_loss(self) -> float:
        # the last order of both profiles, with room for its rounding
        return max(map(abs, self.pair.ends)) * (1 + 1e-12)

    def spread(self) -> float:
        return self._bound.spread()
