"""Proved (epsilon, delta) of weighted DP-Lloyd on one importance sample, with norm and with
Gaussian noise.

A record (w, x) moves one count by w and one sum by w x: NormPair(1, w / beta_count) times
NormPair(d, w |x| / beta_sum) dominates a round, whatever the past. T rounds are composed, and
sampling amplifies the whole once; the pair being symmetric, one bound serves both directions. The
loss of norm noise has an even law G in closed form (Theorem 5); one that is larger in convex order,
here on a grid, has larger divergences (Theorem 6): docs/importance.md, sections 5 to 7.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import kve

from dpsub import checks
from dpsub.accounting.compose import ComposedLoss
from dpsub.accounting.pld import PrivacyLossDistribution
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.importance.calibrate import LloydCalibration
from dpsub.importance.losses import MOST, base_order, inclusion, loss_when_removed
from dpsub.noise import GaussianProfile

# grid steps in the larger of the two shifts: epsilon is off by less than about 1e-3 of the pure
# loss
CELLS = 1000
_EPS = float(np.finfo(float).eps)
_GROWTH = 1.02
# weights of more than twice as many records are bracketed by a table's: a climb takes hundreds of
# steps
_TABLE = 1000


@dataclass(frozen=True)
class NormPair:
    """Noise of density exp(-|z|_2) in d dimensions on values at distance `shift`, in units of its
    scale; symmetric, losses in [-shift, shift]; d = 1 is Laplace. NumericalError beyond 600 nats
    (e^L is no double) or below 1e-300."""

    d: int
    shift: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", checks.integer("d", self.d, at_least=1, at_most=MOST))
        object.__setattr__(self, "shift", checks.real("shift", self.shift, above=0))
        if not 1e-300 <= self.shift <= 600:
            raise NumericalError(
                f"losses must be at most 600 nats (at least 1e-300), got {self.shift:g}; raise "
                "the noise"
            )

    @cached_property
    def flat_share(self) -> float:
        """Weight under G of the density proportional to (1 - nu^2)^{(d - 3) / 2}."""
        z = self.shift / 2
        # ratio K_{v+1} / K_v upwards from v = -1/2 or 0: a recurrence of positive terms
        order, ratio = (-0.5, 1.0) if self.d % 2 else (0.0, float(kve(1, z) / kve(0, z)))
        while order < self.d / 2 - 1:
            order += 1
            ratio = 2 * order / z + 1 / ratio
        return 1 / (1 + z / (self.d * ratio))

    @cached_property
    def log_normaliser(self) -> float:
        """log Z = log E_G e^{L/2}, by the series of 0F1(d/2; D^2/16) and 0F1(d/2 + 1; D^2/16)."""
        z = self.shift / 2
        terms = np.arange(int(2 * z + 60 + 8 * math.sqrt(z)))
        logs = []
        for share, first in ((self.flat_share, self.d / 2), (1 - self.flat_share, self.d / 2 + 1)):
            # log of (z/2)^{2j} / (j! (first)_j)
            steps = 2 * math.log(z / 2) - np.log(terms[1:]) - np.log(first + terms[:-1])
            if share > 0:
                logs.append(math.log(share) + np.concatenate([[0.0], np.cumsum(steps)]))
        return float(np.logaddexp.reduce(np.concatenate(logs)))

    def _shortfall(self, x: np.ndarray) -> np.ndarray:
        """E (x - L)_+ under G at -D <= x <= 0, from sums of positive terms alone: (1 + nu) / 2 has
        Beta(a, a) laws."""
        below, share = np.clip((1 + x / self.shift) / 2, 0.0, 0.5), self.flat_share
        other = 2 * (1 - share) * _beta_shortfall(below, (self.d + 1) / 2)
        if self.d == 1:  # the first part is atoms
            return (other + share * below) * self.shift
        return (2 * share * _beta_shortfall(below, (self.d - 1) / 2) + other) * self.shift

    def upper_law(self, step: float) -> PrivacyLossDistribution:
        """Bound the law of the loss from above on the multiples of `step`: second differences of x
        -> E (x - L)_+."""
        # no less than D / step after rounding: the ends of the grid must not lie inside of those of
        # the law
        reach = max(1, math.ceil(self.shift / step * (1 + 4 * _EPS)))
        # at and beyond -D the shortfall is 0
        shortfall = self._shortfall(np.maximum(np.arange(-reach, 1) * step, -self.shift))
        slope = np.diff(shortfall, prepend=0.0) / step
        # where rounding makes a mass negative it is 0, which moves mass from the middle outwards,
        # as does rounding up
        lower = np.maximum(np.diff(slope), 0.0)
        base = np.concatenate([lower, [max(0.0, 1 - 2 * float(lower.sum()))], lower[::-1]])
        indices = np.arange(-reach, reach + 1)
        tilt = indices * (step / 2) - self.log_normaliser
        masses = base * np.exp(tilt) * (1 + 8 * _EPS * (4 + np.abs(tilt)) + self.rounding(reach))
        return PrivacyLossDistribution(step, indices, masses, "upper")

    def rounding(self, reach: int) -> float:
        """Bound of the relative error of shortfalls and of the normaliser, hence of all divergences
        (Theorem 6)."""
        powers = (self.d + 3) * (2 + math.log(2 * reach + 2))
        return 8 * _EPS * (100 + powers + _terms(self.d) + self.shift)


def _terms(d: int) -> int:
    """Number of terms of the series: terms fall like j exp(-j^2 / (2 d)), then by a quarter or
    more; e^-60 is left."""
    return int(120 + 16 * math.sqrt(d))


def _beta_shortfall(x: np.ndarray, a: float) -> np.ndarray:
    """E (x - B)_+ for B ~ Beta(a, a), 0 <= x <= 1/2, as positive terms (Euler's transformation of
    2F1): it is x^{a+1} (1 - x)^{a+1} 2F1(2a + 1, 2; a + 2; x) / (a (a + 1) B(a, a))."""
    term, total = np.ones(x.shape), np.ones(x.shape)
    for j in range(_terms(int(2 * a + 1))):
        term *= x * ((2 * a + 1 + j) * (2 + j) / ((a + 2 + j) * (1 + j)))
        total += term
        # terms begin at 1 and their ratios fall: what is below the rounding of its sum falls, and
        # adds nothing any more
        if j % 16 == 15 and (term < 1e-17 * total).all():
            break
    log_beta = 2 * math.lgamma(a) - math.lgamma(2 * a)
    with np.errstate(divide="ignore"):
        log_front = (a + 1) * (np.log(x) + np.log1p(-x)) - math.log(a * (a + 1)) - log_beta
    return np.asarray(np.exp(log_front) * total)


@dataclass(frozen=True)
class LloydLoss:
    """`n_iterations` rounds of noisy count and sum in d dimensions for one record that moves them
    by count_shift = w / beta_count > 0 and sum_shift = w |x|_2 / beta_sum >= 0; `cells`: steps of
    the grid of losses in the larger shift."""

    d: int
    sum_shift: float
    count_shift: float
    n_iterations: int
    cells: int = CELLS

    def __post_init__(self) -> None:
        checks.integer("d", self.d, at_least=1, at_most=MOST)
        checks.real("sum_shift", self.sum_shift, at_least=0)
        checks.real("count_shift", self.count_shift, above=0)
        checks.integer("n_iterations", self.n_iterations, at_least=1, at_most=MOST)
        checks.integer("cells", self.cells, at_least=2, at_most=10**4)

    @property
    def pure(self) -> float:
        """The loss that is never exceeded, T (w / beta_count + w |x| / beta_sum)."""
        return self.n_iterations * (self.sum_shift + self.count_shift)

    @cached_property
    def composition(self) -> ComposedLoss:
        """Upper bounds of the loss of all rounds, either direction; NumericalError if a shift
        exceeds 600 nats."""
        step = max(self.sum_shift, self.count_shift) / self.cells
        shifts = [(1, self.count_shift)] + [(self.d, self.sum_shift)] * int(self.sum_shift > 0)
        # all, before one that is out of range spoils the grid
        pairs = [NormPair(d, shift) for d, shift in shifts]
        return ComposedLoss(
            [pair.upper_law(step) for pair in pairs], [self.n_iterations] * len(pairs)
        )

    def epsilon(self, delta: float) -> float:
        """An epsilon >= 0 at which delta is proved, at most the pure loss: the best of several
        tilts, as the steepest one certifies nothing below the top of the law where the largest loss
        alone is likelier than delta."""
        goal, best = checks.real("delta", delta, above=0, below=1), self.pure
        with contextlib.suppress(NumericalError):  # what has been found until then is proved
            law = self.composition
            tilt = law.cumulants.tilt_at_delta(math.log(goal))
            best = min(best, law.masses(tilt).epsilon(goal))
            near_pure = best > self.pure / 2
            while near_pure and tilt * self.pure > 4:  # flatter ones are not tried
                tilt /= 6
                best = min(best, law.masses(tilt).epsilon(goal))
        return best

    def sampled_epsilon(self, q: float, delta: float) -> float:
        """An epsilon that is proved at `delta` for a record that is included with probability at
        most q."""
        rate, goal = float(inclusion(q)), checks.real("delta", delta, above=0, below=1)
        return float(loss_when_removed(self.epsilon(goal / rate), rate)) if goal < rate else 0.0


def certified_epsilon(
    calibration: LloydCalibration, delta: float, *, tolerance: float = 0.01, cells: int = CELLS
) -> float:
    """Return an epsilon proved at `delta` for every record in the ball, whatever the data, if the
    first centres do not depend on them.

    The proof: docs/importance.md, section 6.

    Parameters
    ----------
    calibration : feasible, not `released`, whose noise bounds nothing; rates must not fall in the
    norm, as for all here delta : in (0, 1) tolerance : at least 0; the relative excess over what
    some record in the ball has at which the search ends cells : steps of the grid of losses, see
    :class:`LloydLoss`

    Returns
    -------
    float : nats, of all rounds; first centres that are drawn from the data, as in mode stated, are
    no part of it
    """
    radius, slack = calibration.facts.radius, checks.real("tolerance", tolerance, at_least=0)
    proved = partial(_proved_between, calibration, delta, cells)
    if calibration.sampler in ("full", "unif"):
        return proved(radius, radius)
    found = max(proved(z, z) for z in (0.0, radius))
    heap = [
        (-proved(low, high), low, high)
        for low, high in itertools.pairwise(np.linspace(0.0, radius, 17).tolist())
    ]
    heapq.heapify(heap)
    for _ in range(400):
        bound, low, high = heap[0]
        if -bound <= found * (1 + slack):
            break
        middle = 0.5 * (low + high)
        found = max(found, proved(middle, middle))
        heapq.heapreplace(heap, (-proved(low, middle), low, middle))
        heapq.heappush(heap, (-proved(middle, high), middle, high))
    return min(-heap[0][0], calibration.psi)


def _proved_between(
    calibration: LloydCalibration, delta: float, cells: int, low: float, high: float
) -> float:
    """Epsilon of all records with norms from low to high: no larger norm, weight or probability is
    among them."""
    if calibration.mode == "released":
        raise UnsupportedError(
            "the noise of mode released has an exponential radius, for which no loss is bounded; "
            "use stated or repaired"
        )
    rates = calibration.rates([low, high])
    if not math.isfinite(calibration.s):
        return math.inf
    weight = 1 / float(rates[0])
    sum_shift, count_shift = weight * high / calibration.beta_sum, weight / calibration.beta_count
    loss = LloydLoss(calibration.facts.d, sum_shift, count_shift, calibration.n_iterations, cells)
    return loss.sampled_epsilon(float(rates[1]), delta)


def sampled_gaussian_delta(epsilon: float, q: ArrayLike, mu: ArrayLike) -> np.ndarray:
    """Return q G(log(1 + (e^eps - 1) / q), mu), exact, G the profile of N(mu, 1) against N(0, 1),
    at eps >= 0, with q in (0, 1] and mu > 0, the shift at the weight that goes with q."""
    order = checks.real("epsilon", epsilon, at_least=0)
    chance, shift = np.broadcast_arrays(inclusion(q), checks.finite_array("mu", mu))
    if shift.size and shift.min() <= 0:
        raise ArgumentError(
            f"mu must be above 0, got {shift.min():g}; a record without influence needs no noise"
        )
    log_delta = GaussianProfile(1.0).group_log_delta(base_order(np.asarray(order), chance), shift)
    return np.asarray(chance * np.exp(log_delta))


def gaussian_weights(mu: ArrayLike, epsilon: float, delta: float) -> np.ndarray:
    """Return the end of the weights from 1 on at which records of shifts `mu` at weight 1, sqrt(T)
    sqrt(|x|^2 / sigma_sum^2 + 1 / sigma_count^2), are (epsilon, delta)-protected, rounded down,
    shape (n,); delta at least 1e-90. The useless weights from 1 / delta on are left out.
    ArgumentError if a record is not protected at weight 1."""
    first = np.atleast_1d(checks.finite_array("mu", mu))
    goal = checks.real("delta", delta, above=0, at_least=1e-90, below=1)

    def feasible(w: np.ndarray, chosen: np.ndarray | slice = slice(None)) -> np.ndarray:
        return np.asarray(sampled_gaussian_delta(epsilon, 1 / w, w * first[chosen]) <= goal)

    low = np.ones(first.size)
    if not feasible(low).all():
        worst = float(sampled_gaussian_delta(epsilon, 1.0, first).max())
        raise ArgumentError(
            f"delta must be at least {worst:.3g}, which no sampling attains, got "
            f"{goal:g}; add noise"
        )
    if first.size <= 2 * _TABLE:
        climbing = np.ones(first.size, dtype=bool)
        while climbing.any():
            higher = low[climbing] * _GROWTH
            good = feasible(higher, climbing) & (higher < 1 / goal)
            low[climbing] = np.where(good, higher, low[climbing])
            climbing[climbing] = good
        high = low * _GROWTH
    else:
        # a smaller mu is protected wherever a larger one is, and a larger one is not wherever a
        # smaller one is not
        places = np.geomspace(first.min(), first.max(), _TABLE)
        ends = gaussian_weights(places, epsilon, goal)
        above = np.clip(np.searchsorted(places, first), 1, _TABLE - 1)
        low, high = ends[above], ends[above - 1] * (1 + 1e-12)
    for _ in range(60):
        middle = 0.5 * (low + high)
        if not (high - low > 1e-15 * low).any():
            break
        good = feasible(middle)
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return low
