"""Calibrate the noise of weighted DP-Lloyd to a target loss and an expected sample size.

With s = T / beta_sum and offset = beta_sum / beta_count a record of norm z has the unsampled loss
s (z + offset). Sampled with probability q its loss is at most eps* if and only if
s <= f(z) = q log(1 + E/q) / (z + offset), with E = e^{eps*} - 1. For full and uniform sampling f is
smallest at the radius. For coresets, with q(z) = A + B z^2, its minimum over all norms is proved by
bisecting cells, with f'/f = e(u) q'/q - 1 / (z + offset) and
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
RHO = 0.225
"""Constant of the printed split between sums and counts (after Su et al. 2016)."""
RELEASED_GRID = 100
_GAP = 1e-12
_ROUNDING = 1e-12  # bound on the relative error of f, by which the factor s is lowered


@dataclass(frozen=True)
class DataFacts:
    """Facts about centred data that calibration needs, all of them treated as public.

    Attributes
    ----------
    n, d : int
        Numbers of rows and columns.
    radius : float
        Largest l2 norm r, from 1e-30 to 1e30.
    mean_square : float
        Mean squared l2 norm, at least 1e-60 and at most r^2.
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
        # Printed facts are rounded: one per cent is allowed for it.
        limit = radius * radius * (1 + 1e-2)
        mean_square = checks.real(
            "mean_square", self.mean_square, above=0, at_least=1e-60, at_most=limit
        )
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "mean_square", mean_square)

    @classmethod
    def of(cls, points: np.ndarray) -> DataFacts:
        """Compute the facts of data of shape (n, d).

        ArgumentError if all rows are 0, or if the norm of their mean exceeds 1e-6 r.
        """
        rows = checked_points(points)
        squares = np.einsum("ij,ij->i", rows, rows, dtype=float)
        facts = cls(rows.shape[0], rows.shape[1], math.sqrt(squares.max()), float(squares.mean()))
        mean_norm = float(np.linalg.norm(rows.mean(axis=0, dtype=float)))
        if mean_norm > 1e-6 * facts.radius:
            raise ArgumentError(
                f"data must be centred within 1e-6 of the radius {facts.radius:g}, "
                f"got a mean of norm {mean_norm:g}"
            )
        return facts


def count_offset(facts: DataFacts, mode: str, centre_norm: float | None = None) -> float:
    """Return beta_sum / beta_count, in units of the data.

    In the modes `released` and `stated` it is (4 d rho^2)^{-1/3} (IM8). In `repaired` it is
    r (2 (c/r)^2 / (d (d + 1)))^{1/3} (docs/importance.md, section 4), where c = `centre_norm` is a
    public size of centres, by default sqrt(mean_square).
    """
    if checks.one_of("mode", mode, MODES) != "repaired":
        return 1 / (4 * facts.d * RHO**2) ** (1 / 3)
    if centre_norm is None:
        c = math.sqrt(facts.mean_square)
    else:
        c = moderate("centre_norm", centre_norm)
    relative_cube = 2 * (c / facts.radius) ** 2 / (facts.d * (facts.d + 1))
    return facts.radius * relative_cube ** (1 / 3)


@dataclass(frozen=True)
class LloydCalibration:
    """Noise of weighted DP-Lloyd for one sampler, target and size.

    Attributes
    ----------
    target : float
        eps* in nats; infinite for runs without noise.
    m : float
        Requested expected sample size; n for `full`.
    offset : float
        beta_sum / beta_count.
    s : float
        n_iterations / beta_sum; NaN where the cell is infeasible, infinite without noise.
    psi : float
        Proved largest loss over the ball, at most the target. In mode `released` it is the loss of
        that code, which may exceed the target.
    m_max : float
        Largest size that the sampler attains at this target (n for `full` and `unif`).
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
        """Whether the expected size can be attained at this target.

        If not, there are neither noise nor probabilities.
        """
        return not math.isnan(self.s)

    @property
    def beta_sum(self) -> float:
        """Scale of the noise on sums, in units of the data; 0 without noise, NaN if infeasible."""
        return self.n_iterations / self.s

    @property
    def beta_count(self) -> float:
        """Scale of the noise on counts; 0 without noise, NaN if infeasible."""
        return self.beta_sum / self.offset

    def slopes(self, norms: ArrayLike) -> np.ndarray:
        """Unsampled losses s (z + offset) at norms z.

        ArgumentError if a norm exceeds r, or if the cell is infeasible.
        """
        return np.asarray(self.s * (self._checked_norms(norms) + self.offset))

    def rates(self, norms: ArrayLike) -> np.ndarray:
        """Inclusion probabilities of records with these norms; errors as in :meth:`slopes`."""
        z, facts = self._checked_norms(norms), self.facts
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

    def _checked_norms(self, norms: ArrayLike) -> np.ndarray:
        if not self.feasible:
            raise ArgumentError(
                f"m must be at most {self.m_max:.6g} at epsilon = {self.target:g} for the sampler "
                f"{self.sampler}, got m = {self.m:g}; lower m or raise epsilon"
            )
        return _norms_in_ball(norms, self.facts)


def _norms_in_ball(norms: ArrayLike, facts: DataFacts) -> np.ndarray:
    """Return the norms, or raise ArgumentError if one exceeds the radius."""
    z = nonnegative("norms", norms)
    # The guarantee is about records in the ball; a norm above the radius by a rounding is in it.
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
    """Return the smallest noise at which every record of norm at most r meets the target loss.

    Where `opt` or `core` cannot attain the size, s is NaN and m_max is the largest size that they
    attain (importance, Section 4).

    Parameters
    ----------
    sampler : {"full", "unif", "core", "opt"}
    facts : DataFacts
    target : float
        eps* from 1e-30 to 1e30, or infinite for no noise. It must be finite for `opt`, whose
        probabilities depend on it.
    m : float, optional
        Expected sample size from 1e-6 to n; not for `full`.
    mode : {"released", "stated", "repaired"}
        In `released` the noise of coresets is the smallest on a grid of 100 norms, and the weights
        of `opt` are midpoints of intervals. In `repaired` the split between sums and counts scales
        with the data.
    norms : array_like, shape (n,), optional
        Norms of all records, which the size of `opt` depends on.
    n_iterations : int
    mixing : float
        Share of uniform sampling in the coreset sampler, from 1e-9 to 1.
    centre_norm : float, optional
        See :func:`count_offset`.
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
        all_norms = checks.finite_array("norms", norms, ndim=1)
        s, psi, m_max = _optimal(facts, offset, goal, size, all_norms, mode)
    elif sampler == "core":
        s, psi = _coreset(facts, offset, goal, size, share, mode)
    else:
        # With one probability for all records f is smallest at the radius.
        rate, radius = np.array(size / facts.n), np.array(facts.radius)
        log_factor, _ = _log_factor(radius, rate, offset, float(log_expm1(goal)))
        s = float(np.exp(log_factor)) * (1 - _ROUNDING)
        psi = goal
    return LloydCalibration(
        sampler, mode, facts, goal, size, share, iterations, offset, s, psi, m_max
    )


def _coreset(
    facts: DataFacts, offset: float, goal: float, m: float, share: float, mode: str
) -> tuple[float, float]:
    """Factor s and proved loss psi of the coreset sampler.

    In mode `released` s is the smallest factor on the grid of norms, and psi is the target at which
    this factor is proved for all norms.
    """
    constant = share * m / facts.n
    square = (1 - share) * m / (facts.n * facts.mean_square)
    if mode != "released":
        return _smallest_factor(constant, square, facts.radius, offset, goal), goal
    z = np.linspace(0.0, facts.radius, RELEASED_GRID)
    rates = np.minimum(constant + square * z * z, 1.0)
    log_factors, _ = _log_factor(z, rates, offset, float(log_expm1(goal)))
    s = float(np.exp(log_factors.min()))

    def excess(log_target: float) -> float:
        """Log-ratio of the factor proved at a target to that of the grid; increasing."""
        proved = _smallest_factor(constant, square, facts.radius, offset, math.exp(log_target))
        return math.log(proved / s)

    # The smallest target at which s is proved, rounded up by at most about 1e-11.
    low, step = math.log(goal), 1e-9
    at_low = excess(low)
    if at_low >= 0:
        return s, math.exp(low)
    while (at_high := excess(low + step)) < 0:
        step *= 4
    log_target = _root_between(excess, low, at_low, low + step, at_high)
    while excess(log_target) < 0:
        log_target += 1e-12
    return s, math.exp(log_target)


def _smallest_factor(
    constant: float, square: float, radius: float, offset: float, target: float
) -> float:
    """Lower bound on min f over [0, radius] for q(z) = constant + square z^2 <= 1, to 1e-12."""
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
        q_left, at_left, u_left = curve(left)
        q_right, at_right, u_right = curve(right)
        _, at_middle, _ = curve(middle)
        # Bounds on f'/f on each cell: q increases in z, hence u and the elasticity decrease.
        steepest = elasticity(u_left) * 2 * square * right / q_left - 1 / (right + offset)
        flattest = elasticity(u_right) * 2 * square * left / q_right - 1 / (left + offset)
        ends = np.minimum(at_left, at_right)
        best = min(best, float(at_middle.min()), float(ends.min()))
        # Where the slope has one sign f is smallest at an end of the cell. Elsewhere it is at least
        # its value in the middle less half the width times the largest slope.
        monotone = (steepest <= 0) | (flattest >= 0)
        largest_slope = np.maximum(np.abs(steepest), np.abs(flattest))
        bound = np.where(monotone, ends, at_middle - largest_slope * (right - left) / 2)
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
    """log f at norms z included with probability q, and log u; `log_gain` is log E."""
    log_q = np.log(q)
    log_u = log_gain - log_q
    # In logarithms e^{eps*} may be beyond the range of doubles.
    log_factor = log_q + np.log(np.logaddexp(0.0, log_u)) - np.log(z + offset)
    return np.asarray(log_factor), log_u


def _optimal(
    facts: DataFacts, offset: float, goal: float, m: float, norms: np.ndarray, mode: str
) -> tuple[float, float, float]:
    """Factor s with sum 1/w* = m, proved loss psi, and largest size of the optimal sampler."""
    if norms.size != facts.n:
        raise ArgumentError(f"opt needs one norm per record, n = {facts.n}, got {norms.size}")
    lengths = _norms_in_ball(norms, facts) + offset
    # At this factor a record at the radius meets the target without sampling: larger ones are
    # infeasible.
    s = goal / (facts.radius + offset)

    def log_excess(log_s: float) -> float:
        """Log-ratio of the expected size to m; increasing, and nearly linear."""
        weights = optimal_weights(math.exp(log_s) * lengths, goal)
        return math.log(float(np.sum(1 / weights)) / m)

    high = math.log(s)
    at_high = log_excess(high)
    m_max = m * math.exp(at_high)
    if at_high < -_GAP:
        return math.nan, math.nan, m_max
    if at_high > _GAP:
        low = high - at_high
        at_low = log_excess(low)
        while at_low > 0:
            high, at_high = low, at_low
            low = low - at_low - 0.1
            at_low = log_excess(low)
        s = math.exp(_root_between(log_excess, low, at_low, high, at_high))
    if mode != "released":
        return s, goal, m_max
    # The released weights are midpoints, which may lie on the wrong side: their losses may exceed
    # the target. They are known at the records, not over the whole ball.
    slopes = s * lengths
    losses = Power(slopes).sampled(1 / released_weights(slopes, goal))
    return s, float(losses.max()), m_max


def _root_between(
    function: Callable[[float], float], low: float, at_low: float, high: float, at_high: float
) -> float:
    """Root of an increasing function, to 1e-12 in its value."""
    for step in range(100):
        # Secants converge fast where the function is nearly linear; every third step bisects, so
        # that the bracket shrinks in any case.
        point = low - at_low * (high - low) / (at_high - at_low)
        if step % 3 == 2:
            point = 0.5 * (low + high)
        value = function(point)
        if abs(value) < 1e-12:
            return point
        if value > 0:
            high, at_high = point, value
        else:
            low, at_low = point, value
        if high - low < 1e-15 * max(1.0, abs(high)):
            return low
    raise NumericalError(f"the root must settle, got {value:g} there; report the arguments")
