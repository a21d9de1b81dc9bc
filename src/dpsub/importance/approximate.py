"""Bounds of (epsilon, delta) for weighted DP-Lloyd on one importance sample, with norm noise and
with Gaussian noise.

A record (w, x) moves one count by w and one sum by w x. The product of NormPair(1, w / beta_count)
and NormPair(d, w |x| / beta_sum) dominates a round, whatever was released before. T rounds are
composed, and sampling amplifies the composition once; the pair is symmetric, so that one bound
serves both directions. The loss of norm noise has an even law G in closed form (Theorem 5). A law
that is larger in convex order, here one on a grid, has larger divergences (Theorem 6). See
docs/importance.md, sections 5 to 7.
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
from dpsub.accounting.engine.fourier import ComposedLoss
from dpsub.accounting.engine.pld import PrivacyLossDistribution
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.importance.calibrate import LloydCalibration
from dpsub.importance.losses import MOST, base_order, inclusion, loss_when_removed
from dpsub.noise import GaussianProfile

# Grid steps in the larger of the two shifts: the error of epsilon is below about 1e-3 of the pure
# loss.
CELLS = 1000
_EPS = float(np.finfo(float).eps)
_GROWTH = 1.02
# The climb to a weight takes hundreds of steps: the weights of more than twice as many records are
# bracketed by those of a table of this size.
_TABLE = 1000


@dataclass(frozen=True)
class NormPair:
    """Noise of density exp(-|z|_2) in d dimensions on two values at distance `shift`, in scales.

    The pair is symmetric with losses in [-shift, shift]; d = 1 is Laplace noise. NumericalError if
    the shift is above 600 nats, where e^L is no double, or below 1e-300.
    """

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
        """Weight in G of the density proportional to (1 - nu^2)^{(d - 3) / 2}."""
        z = self.shift / 2
        # K_{v+1} / K_v by upward recurrence from v = -1/2 or 0, whose terms are all positive: no
        # digits cancel.
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
        log_terms = []
        for share, first in ((self.flat_share, self.d / 2), (1 - self.flat_share, self.d / 2 + 1)):
            # log of (z/2)^{2j} / (j! (first)_j), as a running sum of log-ratios
            log_ratios = 2 * math.log(z / 2) - np.log(terms[1:]) - np.log(first + terms[:-1])
            if share > 0:
                series = np.concatenate([[0.0], np.cumsum(log_ratios)])
                log_terms.append(math.log(share) + series)
        return float(np.logaddexp.reduce(np.concatenate(log_terms)))

    def _shortfall(self, x: np.ndarray) -> np.ndarray:
        """E (x - L)_+ under G at -D <= x <= 0."""
        # (1 + nu) / 2 is a mixture of Beta(a, a) laws, and all terms of the sum are positive.
        position = np.clip((1 + x / self.shift) / 2, 0.0, 0.5)
        share = self.flat_share
        curved = 2 * (1 - share) * _beta_shortfall(position, (self.d + 1) / 2)
        if self.d == 1:
            # In one dimension the flat part is two atoms at the ends.
            return (curved + share * position) * self.shift
        flat = 2 * share * _beta_shortfall(position, (self.d - 1) / 2)
        return (flat + curved) * self.shift

    def upper_law(self, step: float) -> PrivacyLossDistribution:
        """Upper bound, in convex order, on the law of the loss by one on the multiples of `step`.

        Its masses are the second differences of x -> E (x - L)_+.
        """
        # Rounded up: the ends of the grid must not lie inside those of the law.
        reach = max(1, math.ceil(self.shift / step * (1 + 4 * _EPS)))
        # At and beyond -D the shortfall is 0.
        shortfall = self._shortfall(np.maximum(np.arange(-reach, 1) * step, -self.shift))
        slope = np.diff(shortfall, prepend=0.0) / step
        # A mass that rounding makes negative is set to 0. This moves mass from the middle outwards,
        # which is the safe side, as is rounding up.
        lower = np.maximum(np.diff(slope), 0.0)
        centre = max(0.0, 1 - 2 * float(lower.sum()))
        base = np.concatenate([lower, [centre], lower[::-1]])
        indices = np.arange(-reach, reach + 1)
        # The law of the loss under P is G tilted by e^{L/2} / Z. The relative errors of the tilt
        # and of G are charged to every mass.
        tilt = indices * (step / 2) - self.log_normaliser
        tilt_error = 8 * _EPS * (4 + np.abs(tilt))
        masses = base * np.exp(tilt) * (1 + tilt_error + self.rounding(reach))
        return PrivacyLossDistribution(step, indices, masses, "upper")

    def rounding(self, reach: int) -> float:
        """Bound on the relative error of shortfalls and normaliser.

        It bounds that of all divergences (Theorem 6).
        """
        powers = (self.d + 3) * (2 + math.log(2 * reach + 2))
        return 8 * _EPS * (100 + powers + _terms(self.d) + self.shift)


def _terms(d: int) -> int:
    """Number of terms of the series that leaves out e^-60 of it."""
    # The terms fall like j exp(-j^2 / (2 d)), later by a quarter or more.
    return int(120 + 16 * math.sqrt(d))


def _beta_shortfall(x: np.ndarray, a: float) -> np.ndarray:
    """E (x - B)_+ for B ~ Beta(a, a), 0 <= x <= 1/2.

    By Euler's transformation of 2F1 it is a sum of positive terms,
    x^{a+1} (1 - x)^{a+1} 2F1(2a + 1, 2; a + 2; x) / (a (a + 1) B(a, a)).
    """
    term, total = np.ones(x.shape), np.ones(x.shape)
    for j in range(_terms(int(2 * a + 1))):
        term *= x * ((2 * a + 1 + j) * (2 + j) / ((a + 2 + j) * (1 + j)))
        total += term
        # The terms begin at 1 and their ratios decrease: once a term is below the rounding of the
        # sum, all later ones are.
        if j % 16 == 15 and (term < 1e-17 * total).all():
            break
    log_beta = 2 * math.lgamma(a) - math.lgamma(2 * a)
    with np.errstate(divide="ignore"):
        log_front = (a + 1) * (np.log(x) + np.log1p(-x)) - math.log(a * (a + 1)) - log_beta
    return np.asarray(np.exp(log_front) * total)


@dataclass(frozen=True)
class LloydLoss:
    """Loss of `n_iterations` rounds of noisy count and sum in d dimensions for one record.

    The record moves the count by count_shift = w / beta_count > 0 and the sum by
    sum_shift = w |x|_2 / beta_sum >= 0, in scales of the noise. `cells` is the number of steps of
    the grid of losses in the larger shift.
    """

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
        """Pure loss T (w / beta_count + w |x| / beta_sum), which is never exceeded."""
        return self.n_iterations * (self.sum_shift + self.count_shift)

    @cached_property
    def composition(self) -> ComposedLoss:
        """Upper bound on the loss of all rounds, in either direction.

        NumericalError if a shift exceeds 600 nats.
        """
        step = max(self.sum_shift, self.count_shift) / self.cells
        # A record at 0 moves the count alone.
        shifts = [(1, self.count_shift)] + [(self.d, self.sum_shift)] * int(self.sum_shift > 0)
        # All pairs are checked before a shift that is out of range makes a grid of enormous size.
        pairs = [NormPair(d, shift) for d, shift in shifts]
        laws = [pair.upper_law(step) for pair in pairs]
        return ComposedLoss(laws, [self.n_iterations] * len(pairs))

    def epsilon(self, delta: float) -> float:
        """Upper bound on epsilon >= 0 at `delta`, at most the pure loss."""
        goal = checks.real("delta", delta, above=0, below=1)
        best = self.pure
        # Every bound found before a numerical error is proved.
        with contextlib.suppress(NumericalError):
            law = self.composition
            tilt = law.cumulants.tilt_at_delta(math.log(goal))
            best = min(best, law.masses(tilt).epsilon(goal))
            # Where the largest loss alone is likelier than delta, the steepest tilt certifies
            # nothing below the top of the law: flatter ones are tried, the best one counts.
            near_pure = best > self.pure / 2
            while near_pure and tilt * self.pure > 4:
                tilt /= 6
                best = min(best, law.masses(tilt).epsilon(goal))
        return best

    def sampled_epsilon(self, q: float, delta: float) -> float:
        """Upper bound on epsilon at `delta` for a record included with probability at most q."""
        rate = float(inclusion(q))
        goal = checks.real("delta", delta, above=0, below=1)
        # The record is in the sample with probability q at most: delta >= q needs no noise.
        if goal >= rate:
            return 0.0
        return float(loss_when_removed(self.epsilon(goal / rate), rate))


def certified_epsilon(
    calibration: LloydCalibration, delta: float, *, tolerance: float = 0.01, cells: int = CELLS
) -> float:
    """Upper bound on epsilon at `delta` for every record in the ball, whatever the data.

    The first centres must not depend on the data. The proof is in docs/importance.md, section 6.

    Parameters
    ----------
    calibration : LloydCalibration
        A feasible one, not of mode `released`, whose noise bounds no loss. Rates must not decrease
        in the norm, which holds for all samplers here.
    delta : float
        In (0, 1).
    tolerance : float
        At least 0; the search ends at this relative excess over the epsilon of some record in the
        ball.
    cells : int
        Steps of the grid of losses, see :class:`LloydLoss`.

    Returns
    -------
    float
        Epsilon in nats, of all rounds, without first centres drawn from the data as in mode
        `stated`.
    """
    radius = calibration.facts.radius
    slack = checks.real("tolerance", tolerance, at_least=0)
    proved = partial(_proved_between, calibration, delta, cells)
    # With one probability for all records, the one with the largest norm loses most.
    if calibration.sampler in ("full", "unif"):
        return proved(radius, radius)
    # Branch and bound over norms: `attained` is the largest epsilon of single norms, the heap has
    # the cells of norms by their bounds.
    attained = max(proved(z, z) for z in (0.0, radius))
    edges = np.linspace(0.0, radius, 17).tolist()
    heap = [(-proved(low, high), low, high) for low, high in itertools.pairwise(edges)]
    heapq.heapify(heap)
    for _ in range(400):
        bound, low, high = heap[0]
        if -bound <= attained * (1 + slack):
            break
        middle = 0.5 * (low + high)
        attained = max(attained, proved(middle, middle))
        heapq.heapreplace(heap, (-proved(low, middle), low, middle))
        heapq.heappush(heap, (-proved(middle, high), middle, high))
    # The calibration's pure loss bounds every record as well.
    return min(-heap[0][0], calibration.psi)


def _proved_between(
    calibration: LloydCalibration, delta: float, cells: int, low: float, high: float
) -> float:
    """Upper bound on epsilon of all records with norms from `low` to `high`."""
    if calibration.mode == "released":
        raise UnsupportedError(
            "mode released has noise with an exponential radius, whose loss is "
            "unbounded; use mode stated or repaired"
        )
    rates = calibration.rates([low, high])
    if not math.isfinite(calibration.s):
        return math.inf
    # The largest norm and probability, of the norm `high`, with the largest weight, of `low`,
    # dominate every record in between.
    weight = 1 / float(rates[0])
    sum_shift = weight * high / calibration.beta_sum
    count_shift = weight / calibration.beta_count
    loss = LloydLoss(calibration.facts.d, sum_shift, count_shift, calibration.n_iterations, cells)
    return loss.sampled_epsilon(float(rates[1]), delta)


def sampled_gaussian_delta(epsilon: float, q: ArrayLike, mu: ArrayLike) -> np.ndarray:
    """Exact delta of Gaussian noise on a sampled record, q G(log(1 + (e^eps - 1) / q), mu).

    G is the profile of N(mu, 1) against N(0, 1), for eps >= 0, q in (0, 1] and mu > 0, the shift
    at the weight that goes with q.
    """
    order = checks.real("epsilon", epsilon, at_least=0)
    chance, shift = np.broadcast_arrays(inclusion(q), checks.finite_array("mu", mu))
    if shift.size and shift.min() <= 0:
        raise ArgumentError(
            f"mu must be above 0, got {shift.min():g}; a record without influence needs no noise"
        )
    log_delta = GaussianProfile(1.0).group_log_delta(base_order(np.asarray(order), chance), shift)
    return np.asarray(chance * np.exp(log_delta))


def gaussian_weights(mu: ArrayLike, epsilon: float, delta: float) -> np.ndarray:
    """Largest weights up to which records are (epsilon, delta)-protected, rounded down.

    Parameters
    ----------
    mu : array_like, shape (n,)
        Shifts at weight 1, sqrt(T) sqrt(|x|^2 / sigma_sum^2 + 1 / sigma_count^2).
    epsilon, delta : float
        The protection; delta is at least 1e-90.

    Returns
    -------
    ndarray, shape (n,)
        At least 1 and below 1 / delta: larger weights are useless.

    Raises
    ------
    ArgumentError
        If a record is not protected at weight 1.
    """
    shifts = np.atleast_1d(checks.finite_array("mu", mu))
    goal = checks.real("delta", delta, above=0, at_least=1e-90, below=1)

    def feasible(weights: np.ndarray, records: np.ndarray | slice = slice(None)) -> np.ndarray:
        deltas = sampled_gaussian_delta(epsilon, 1 / weights, weights * shifts[records])
        return np.asarray(deltas <= goal)

    low = np.ones(shifts.size)
    if not feasible(low).all():
        worst = float(sampled_gaussian_delta(epsilon, 1.0, shifts).max())
        raise ArgumentError(
            f"delta must be at least {worst:.3g}, which no sampling attains, got "
            f"{goal:g}; add noise"
        )
    if shifts.size <= 2 * _TABLE:
        # Weights from 1 / delta on are feasible again, and bisection alone could end there: small
        # steps up from 1 find the end of the first interval.
        climbing = np.ones(shifts.size, dtype=bool)
        while climbing.any():
            higher = low[climbing] * _GROWTH
            good = feasible(higher, climbing) & (higher < 1 / goal)
            low[climbing] = np.where(good, higher, low[climbing])
            climbing[climbing] = good
        high = low * _GROWTH
    else:
        # The largest weight decreases in mu: that of the next larger mu in the table is feasible,
        # and that of the next smaller one is an upper bound.
        table = np.geomspace(shifts.min(), shifts.max(), _TABLE)
        table_weights = gaussian_weights(table, epsilon, goal)
        above = np.clip(np.searchsorted(table, shifts), 1, _TABLE - 1)
        low, high = table_weights[above], table_weights[above - 1] * (1 + 1e-12)
    # Bisection keeps `low` feasible.
    for _ in range(60):
        middle = 0.5 * (low + high)
        if not (high - low > 1e-15 * low).any():
            break
        good = feasible(middle)
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return low
