"""Noise of weighted DP-Lloyd at a target loss and an expected sample size, for each sampler.

With s = T / beta_sum, offset = beta_sum / beta_count a record of norm z has the unsampled loss s (z
+ offset), and at inclusion probability q at most eps* iff s <= f(z) = q log(1 + E/q) / (z +
offset), E = e^{eps*} - 1. Full and uniform sampling have the least f at the radius. For coresets,
q(z) = A + B z^2, it is proved for all norms by halving cells: f'/f = e(u) q'/q - 1 / (z + offset),
e(u) = 1 - (u / (1 + u)) / log(1 + u), u = E/q (docs/importance.md, section 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import ArgumentError, NumericalError
from dpsub.importance.losses import MOST, Power, log_expm1, moderate
from dpsub.importance.samplers import checked_points, coreset_rates, expected_size
from dpsub.importance.weights import optimal_weights, released_weights
from dpsub.noise.base import nonnegative

SAMPLERS = ("full", "unif", "core", "opt")
MODES = ("released", "stated", "repaired")
RHO = 0.225  # the constant of the printed split (after Su et al. 2016)
RELEASED_GRID = 100
_GAP = 1e-12
_ROUNDING = 1e-12  # relative error allowed for the evaluation of f; the factor is lowered by it


@dataclass(frozen=True)
class DataFacts:
    """What calibration needs to know of centred data: all of it is treated as public.

    Attributes
    ----------
    n, d : rows and columns
    radius : largest l2 norm r, from 1e-30 to 1e30
    mean_square : mean squared l2 norm, at least 1e-60 and at most r^2
    """

    n: int
    d: int
    radius: float
    mean_square: float

    def __post_init__(self) -> None:
        for name in ("n", "d"):
            object.__setattr__(
                self, name, checks.integer(name, getattr(self, name), at_least=1, at_most=MOST)
            )
        radius = moderate("radius", self.radius)
        most = radius * radius * (1 + 1e-2)  # printed facts are rounded
        moment = checks.real("mean_square", self.mean_square, above=0, at_least=1e-60, at_most=most)
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "mean_square", moment)

    @classmethod
    def of(cls, points: np.ndarray) -> DataFacts:
        """Facts of data, shape (n, d); ArgumentError if rows are all 0, or their mean's norm
        exceeds 1e-6 r."""
        rows = checked_points(points)
        squares = np.einsum("ij,ij->i", rows, rows, dtype=float)
        facts = cls(rows.shape[0], rows.shape[1], math.sqrt(squares.max()), float(squares.mean()))
        off = float(np.linalg.norm(rows.mean(axis=0, dtype=float)))
        if off > 1e-6 * facts.radius:
            raise ArgumentError(
                f"data must be centred within 1e-6 of the radius {facts.radius:g}, "
                f"got a mean of norm {off:g}"
            )
        return facts


def count_offset(facts: DataFacts, mode: str, centre_norm: float | None = None) -> float:
    """Return beta_sum / beta_count, in units of the data: (4 d rho^2)^{-1/3} in `released` and
    `stated` (E8), else r (2 (c/r)^2 / (d (d + 1)))^{1/3} (docs/importance.md, section 4), c a
    public size of centres, by default sqrt(mean_square)."""
    if checks.one_of("mode", mode, MODES) != "repaired":
        return 1 / (4 * facts.d * RHO**2) ** (1 / 3)
    c = (
        math.sqrt(facts.mean_square)
        if centre_norm is None
        else moderate("centre_norm", centre_norm)
    )
    return facts.radius * (2 * (c / facts.radius) ** 2 / (facts.d * (facts.d + 1))) ** (1 / 3)


@dataclass(frozen=True)
class LloydCalibration:
    """Noise of weighted DP-Lloyd for one sampler, target and size.

    Attributes
    ----------
    target : eps*, nats; infinite for runs without noise
    m : expected sample size that was asked for; n for `full`
    offset : beta_sum / beta_count
    s : n_iterations / beta_sum; NaN where the cell is infeasible, infinite without noise
    psi : proved largest loss over the ball, at most the target; in `released` what that code gives,
    which may exceed it m_max : largest size that the sampler attains at this target (n for `full`
    and `unif`)
    """

    sampler: str
    mode: str
    facts: DataFacts
    target: float
    m: float
    mixing: float
    n_iterations: int
    offset: float
    s: float
    psi: float
    m_max: float

    @property
    def feasible(self) -> bool:
        """Whether the size can be attained at this target; if not, there are no noise and no
        probabilities."""
        return not math.isnan(self.s)

    @property
    def beta_sum(self) -> float:
        """Scale of the noise on sums, in units of the data; 0 without noise, NaN where
        infeasible."""
        return self.n_iterations / self.s

    @property
    def beta_count(self) -> float:
        """Scale of the noise on counts; 0 without noise, NaN where infeasible."""
        return self.beta_sum / self.offset

    def slopes(self, norms: ArrayLike) -> np.ndarray:
        """Unsampled losses s (z + offset) at norms z; ArgumentError if one exceeds r, or the cell
        is infeasible."""
        return np.asarray(self.s * (self._lengths(norms) + self.offset))

    def rates(self, norms: ArrayLike) -> np.ndarray:
        """Inclusion probabilities of records with these norms; errors as in :meth:`slopes`."""
        z, facts = self._lengths(norms), self.facts
        if self.sampler == "full":
            return np.ones(z.shape)
        if self.sampler == "unif":
            return np.full(z.shape, self.m / facts.n)
        if self.sampler == "core":
            return coreset_rates(
                z, self.m, n=facts.n, mean_square=facts.mean_square, mixing=self.mixing
            )
        weights = released_weights if self.mode == "released" else optimal_weights
        return 1 / weights(self.slopes(z), self.target)

    def _lengths(self, norms: ArrayLike) -> np.ndarray:
        if not self.feasible:
            raise ArgumentError(
                f"m must be at most {self.m_max:.6g} at epsilon = {self.target:g} for the sampler "
                f"{self.sampler}, got m = {self.m:g}; lower m or raise epsilon"
            )
        return _within(norms, self.facts)


def _within(norms: ArrayLike, facts: DataFacts) -> np.ndarray:
    """Norms that the guarantee is about, those of a rounding above the radius lowered to it."""
    z = nonnegative("norms", norms)
    if z.size and float(z.max()) > facts.radius * (1 + 1e-9):
        raise ArgumentError(
            f"norms must be at most the radius {facts.radius:g}, got {float(z.max()):g}; leave "
            "out or scale down such rows"
        )
    return np.asarray(np.minimum(z, facts.radius))


def calibrate(
    sampler: str,
    facts: DataFacts,
    *,
    target: float,
    m: float | None = None,
    mode: str = "repaired",
    norms: ArrayLike | None = None,
    n_iterations: int = 10,
    mixing: float = 0.5,
    centre_norm: float | None = None,
) -> LloydCalibration:
    """Return the least noise for which every record of norm at most r has a loss of at most the
    target.

    Where `opt` or `core` cannot have the size, s is NaN and m_max says what they can (importance,
    Section 4).

    Parameters
    ----------
    sampler : {"full", "unif", "core", "opt"}
    target : eps* from 1e-30 to 1e30; infinite for no noise (not for `opt`, whose probabilities come
    from the target) m : expected sample size from 1e-6 to n; not for `full` mode : {"released",
    "stated", "repaired"}
        `released`: coresets' least on a grid of 100, weights of `opt` as midpoints; `repaired`: a
        split that scales.
    norms : needed by `opt` only, whose size depends on all of them, shape (n,)
    mixing : of the coreset sampler, from 1e-9 to 1
    centre_norm : of the repaired split, see :func:`count_offset`
    """
    checks.one_of("sampler", sampler, SAMPLERS)
    iterations = checks.integer("n_iterations", n_iterations, at_least=1, at_most=MOST)
    offset = count_offset(facts, mode, centre_norm)
    noiseless = target == math.inf and sampler != "opt"
    goal = math.inf if noiseless else moderate("target epsilon", target)
    if m is None and sampler != "full":
        raise ArgumentError(
            f"m must be given for the sampler {sampler}, got none; only full needs no size"
        )
    size = float(facts.n) if m is None or sampler == "full" else expected_size(m, facts.n)
    share = checks.real("mixing", mixing, above=0, at_least=1e-9, at_most=1)
    m_max = float(facts.n)
    if sampler == "core":
        m_max = min(m_max, facts.n / (share + (1 - share) * facts.radius**2 / facts.mean_square))
    if size > m_max:
        s, psi = math.nan, math.nan
    elif noiseless:
        s, psi = math.inf, math.inf
    elif sampler == "opt":
        if norms is None:
            raise ArgumentError(
                "opt needs the norms of all records to attain a size, got none; pass norms"
            )
        s, psi, m_max = _optimal(
            facts, offset, goal, size, checks.finite_array("norms", norms, ndim=1), mode
        )
    elif sampler == "core":
        s, psi = _coreset(facts, offset, goal, size, share, mode)
    else:
        rate, radius = np.array(size / facts.n), np.array(facts.radius)
        s, psi = (
            float(np.exp(_log_factor(radius, rate, offset, float(log_expm1(goal)))[0]))
            * (1 - _ROUNDING),
            goal,
        )
    return LloydCalibration(
        sampler, mode, facts, goal, size, share, iterations, offset, s, psi, m_max
    )


def _coreset(
    facts: DataFacts, offset: float, goal: float, m: float, share: float, mode: str
) -> tuple[float, float]:
    """Factor s and proved loss psi; in `released` s is least on the grid, and psi the target at
    which it is proved."""
    constant = share * m / facts.n
    square = (1 - share) * m / (facts.n * facts.mean_square)
    if mode != "released":
        return _smallest_factor(constant, square, facts.radius, offset, goal), goal
    z = np.linspace(0.0, facts.radius, RELEASED_GRID)
    rates = np.minimum(constant + square * z * z, 1.0)
    s = float(np.exp(_log_factor(z, rates, offset, float(log_expm1(goal)))[0].min()))

    def excess(log_target: float) -> float:
        """Log of the factor that is proved at a target over that of the grid; it rises with the
        target."""
        return math.log(
            _smallest_factor(constant, square, facts.radius, offset, math.exp(log_target)) / s
        )

    low, step = math.log(goal), 1e-9  # the least target from `low` on, at most about 1e-11 above it
    at_low = excess(low)
    if at_low >= 0:
        return s, math.exp(low)
    while (at_high := excess(low + step)) < 0:
        step *= 4
    place = _root_between(excess, low, at_low, low + step, at_high)
    while excess(place) < 0:
        place += 1e-12
    return s, math.exp(place)


def _smallest_factor(
    constant: float, square: float, radius: float, offset: float, target: float
) -> float:
    """Lower bound, to 1e-12, of min f over [0, radius] for q(z) = constant + square z^2 <= 1: where
    bounds of f'/f on a cell have one sign f is least at an end, else at least its middle less half
    the width times the steepest slope."""
    log_gain = float(log_expm1(target))

    def curve(z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q = constant + square * z * z
        return q, *_log_factor(z, np.minimum(q, 1.0), offset, log_gain)

    def elasticity(log_u: np.ndarray) -> np.ndarray:
        return np.asarray(1 - 1 / (1 + np.exp(-log_u)) / np.logaddexp(0.0, log_u))

    edges = np.linspace(0.0, radius, 2049)
    left, right = edges[:-1], edges[1:]
    best, proved = np.inf, np.inf
    for _ in range(60):
        middle = 0.5 * (left + right)
        (q_left, at_left, u_left), (q_right, at_right, u_right), (_, at_middle, _) = map(
            curve, (left, right, middle)
        )
        steepest = elasticity(u_left) * 2 * square * right / q_left - 1 / (right + offset)
        flattest = elasticity(u_right) * 2 * square * left / q_right - 1 / (left + offset)
        ends = np.minimum(at_left, at_right)
        best = min(best, float(at_middle.min()), float(ends.min()))
        largest = np.maximum(np.abs(steepest), np.abs(flattest))
        bound = np.where(
            (steepest <= 0) | (flattest >= 0), ends, at_middle - largest * (right - left) / 2
        )
        open_ = bound < best - _GAP
        proved = min(proved, float(bound[~open_].min(initial=np.inf)))
        if not open_.any():
            return float(np.exp(proved)) * (1 - _ROUNDING)
        left = np.concatenate([left[open_], middle[open_]])
        right = np.concatenate([middle[open_], right[open_]])
    raise NumericalError(
        f"the minimum over norms must settle, got a value of exp({best:g}) and "
        f"{left.size} open cells"
    )


def _log_factor(
    z: np.ndarray, q: np.ndarray, offset: float, log_gain: float
) -> tuple[np.ndarray, np.ndarray]:
    """log f at norms z included with probability q, and log u there; log_gain is log E."""
    log_q = np.log(q)
    log_u = log_gain - log_q
    return np.asarray(log_q + np.log(np.logaddexp(0.0, log_u)) - np.log(z + offset)), log_u


def _optimal(
    facts: DataFacts, offset: float, goal: float, m: float, norms: np.ndarray, mode: str
) -> tuple[float, float, float]:
    """Find s with sum 1/w* = m: the sum grows with s, nearly as a power of it, so secants in
    logarithms settle soon."""
    if norms.size != facts.n:
        raise ArgumentError(f"opt needs one norm a record, n = {facts.n}, got {norms.size}")
    lengths = _within(norms, facts) + offset
    s = goal / (facts.radius + offset)

    def log_size(log_s: float) -> float:
        return math.log(float(np.sum(1 / optimal_weights(math.exp(log_s) * lengths, goal))) / m)

    high = math.log(s)
    at_high = log_size(high)
    m_max = m * math.exp(at_high)
    if at_high < -_GAP:
        return math.nan, math.nan, m_max
    if at_high > _GAP:
        low, at_low = high - at_high, log_size(high - at_high)
        while at_low > 0:
            high, at_high, low = low, at_low, low - at_low - 0.1
            at_low = log_size(low)
        s = math.exp(_root_between(log_size, low, at_low, high, at_high))
    if mode != "released":
        return s, goal, m_max
    # the middles of the released brackets may lie on the wrong side; their losses at the records,
    # not over the ball
    slopes = s * lengths
    return s, float(Power(slopes).sampled(1 / released_weights(slopes, goal)).max()), m_max


def _root_between(
    function: Callable[[float], float], low: float, at_low: float, high: float, at_high: float
) -> float:
    """Root of an increasing function, to 1e-12 in its value: secants, every third step a
    halving."""
    for step in range(100):
        place = low - at_low * (high - low) / (at_high - at_low)
        if step % 3 == 2:
            place = 0.5 * (low + high)
        found = function(place)
        if abs(found) < 1e-12:
            return place
        if found > 0:
            high, at_high = place, found
        else:
            low, at_low = place, found
        if high - low < 1e-15 * max(1.0, abs(high)):
            return low
    raise NumericalError(f"the root must settle, got {found:g} there; report the arguments")
