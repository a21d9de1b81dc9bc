"""Noise for k-means at a target loss and an expected sample size, for each sampler.

One scalar s = T / beta_sum says everything: a record of norm z has the unsampled loss s (z + offset), where the offset
1/kappa (or that of the repaired split) is the share of the count query, beta_sum / beta_count.

Noise with a density proportional to exp(-|z|_p / scale) in d dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import ArgumentError, NumericalError
from dpsub.importance import samplers, weights
from dpsub.importance import weights as norm_minimum
from dpsub.importance import weights as printed_weights
from dpsub.importance.losses import Power
from dpsub.noise.base import nonnegative

SAMPLERS = ("full", "unif", "core", "opt")
MODES = ("released", "stated", "repaired")
RHO = 0.225
"""The constant of the printed split (after Su et al. 2016)."""
RELEASED_GRID = 100
RELEASED_BUDGETS = (1e-7, 5e4)
_NORM_SLACK = 1e-9
_STEPS = 100


@dataclass(frozen=True)
class DataFacts:
    """What calibration needs to know of centred data: all of it is treated as public.

    Attributes
    ----------
    n, d : int
        Rows and columns.
    radius : float
        Largest l2 norm r > 0.
    mean_square : float
        Mean squared l2 norm, above 0 and at most r^2.

    Raises
    ------
    ArgumentError
        If a number is out of range.
    """

    n: int
    d: int
    radius: float
    mean_square: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.integer("n", self.n, at_least=1))
        object.__setattr__(self, "d", checks.integer("d", self.d, at_least=1))
        radius = checks.real("radius", self.radius, above=0)
        object.__setattr__(self, "radius", radius)
        # printed facts are rounded
        moment = checks.real("mean_square", self.mean_square, above=0, at_most=radius * radius * (1 + 1e-2))
        object.__setattr__(self, "mean_square", moment)

    @classmethod
    def of(cls, points: np.ndarray) -> DataFacts:
        """Facts of centred data, shape (n, d); use `samplers.check_centred` to make sure that they are.

        Raises
        ------
        ArgumentError
            If there are no rows or columns, or rows are not finite or all 0.
        """
        if points.ndim != 2 or 0 in points.shape:
            raise ArgumentError(f"points must be a table with rows and columns, got shape {points.shape}")
        squares = np.einsum("ij,ij->i", points, points, dtype=float)
        return cls(points.shape[0], points.shape[1], math.sqrt(squares.max(initial=0.0)), float(squares.mean()))


def within(norms: ArrayLike, facts: DataFacts) -> np.ndarray:
    """Return norms, those of a rounding above the radius lowered to it.

    Raises
    ------
    ArgumentError
        If a norm is negative, not finite, or exceeds the radius by more than a share of 1e-9.
    """
    z = nonnegative("norms", norms)
    if z.size and float(z.max()) > facts.radius * (1 + _NORM_SLACK):
        raise ArgumentError(
            f"norms must be at most the radius {facts.radius:g}, got {float(z.max()):g}; leave out or scale down such "
            "rows"
        )
    return np.asarray(np.minimum(z, facts.radius))


def kappa(d: int) -> float:
    """beta_count / beta_sum of the printed split, (4 d rho^2)^{1/3}."""
    return (4 * checks.integer("d", d, at_least=1) * RHO**2) ** (1 / 3)


def count_offset(facts: DataFacts, mode: str, centre_norm: float | None = None) -> float:
    """Return beta_sum / beta_count, in units of the data.

    `released` and `stated`: 1 / kappa, whatever the units of the data (erratum E8).  `repaired`: r (2 (c/r)^2 / (d (d
    + 1)))^{1/3}, which minimises d (d + 1) beta_sum^2 + 2 c^2 beta_count^2 at a given loss of a record of norm r, c a
    public size of the centres, by default the root of the mean square.  It scales with the data.
    """
    if checks.one_of("mode", mode, MODES) != "repaired":
        return 1 / kappa(facts.d)
    c = math.sqrt(facts.mean_square) if centre_norm is None else checks.real("centre_norm", centre_norm, above=0)
    return facts.radius * (2 * (c / facts.radius) ** 2 / (facts.d * (facts.d + 1))) ** (1 / 3)


@dataclass(frozen=True)
class Calibration:
    """Noise of weighted DP-Lloyd for one sampler, target and size.

    Attributes
    ----------
    sampler, mode : str
    facts : DataFacts
    target : float
        eps*, nats; infinite for runs without noise.
    m : float
        Expected sample size that was asked for; n for `full`.
    mixing : float
        Of the core-set sampler.
    n_iterations : int
        T.
    offset : float
        beta_sum / beta_count.
    s : float
        T / beta_sum; NaN where the cell is infeasible, infinite without noise.
    psi : float
        Proved largest loss over the ball of radius r, at most the target in `repaired` and `stated`; in `released` what
        the weights and the grid of that code give, which may exceed it.
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
        """Whether the size can be had at this target: if not, noise and probabilities are not available."""
        return not math.isnan(self.s)

    @property
    def beta_sum(self) -> float:
        """Scale of the noise on sums, in units of the data; 0 without noise, NaN where infeasible."""
        return self.n_iterations / self.s

    @property
    def beta_count(self) -> float:
        """Scale of the noise on counts; 0 without noise, NaN where infeasible."""
        return self.beta_sum / self.offset

    @property
    def released_budget(self) -> float:
        """B = T r (d / 2 rho)^{2/3} / beta_sum^2, the unknown that the released code searches in `RELEASED_BUDGETS`."""
        return self.n_iterations * self.facts.radius * (self.facts.d / (2 * RHO)) ** (2 / 3) / self.beta_sum**2

    def slopes(self, norms: ArrayLike) -> np.ndarray:
        """Unsampled losses s (z + offset) at norms z at most r.

        Raises
        ------
        ArgumentError
            If a norm exceeds r, or the cell is infeasible.
        """
        return np.asarray(self.s * (self._lengths(norms) + self.offset))

    def rates(self, norms: ArrayLike) -> np.ndarray:
        """Return the inclusion probabilities of records with these norms.

        Raises
        ------
        ArgumentError
            If a norm exceeds r, or the cell is infeasible.
        """
        z, facts = self._lengths(norms), self.facts
        if self.sampler == "full":
            return np.ones(z.shape)
        if self.sampler == "unif":
            return np.full(z.shape, self.m / facts.n)
        if self.sampler == "core":
            return samplers.coreset_rates(
                z, self.m, n=facts.n, mean_square=facts.mean_square, mixing=self.mixing
            )
        slopes = self.slopes(z)
        if self.mode == "released":
            return 1 / printed_weights.released_weights(Power(slopes), self.target)
        return samplers.optimal_rates(slopes, self.target)

    def _lengths(self, norms: ArrayLike) -> np.ndarray:
        """Norms that the guarantee is about, those of a rounding above r lowered to it."""
        if not self.feasible:
            raise ArgumentError(
                f"m must be at most {self.m_max:.6g} at epsilon = {self.target:g} for the sampler {self.sampler}, got "
                f"m = {self.m:g}; lower m or raise epsilon"
            )
        return within(norms, self.facts)


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
) -> Calibration:
    """Return the least noise for which every record of norm at most r has a loss of at most the target.

    Parameters
    ----------
    sampler : {"full", "unif", "core", "opt"}
    facts : DataFacts
    target : float
        eps* > 0; infinite for no noise (not for `opt`, whose probabilities come from the target).
    m : float
        Expected sample size in (0, n]; not for `full`.
    mode : {"released", "stated", "repaired"}
        `released`: core-set minimum on a grid of 100 points, weights of `opt` as midpoints; `repaired`: the split that
        scales with the data.
    norms : array_like, shape (n,)
        Needed by `opt` only, whose size depends on all of them.
    n_iterations : int
        T.
    mixing : float
        Of the core-set sampler, in (0, 1].
    centre_norm : float, optional
        Of the repaired split, see :func:`count_offset`.

    Returns
    -------
    Calibration
        With s = NaN and the attainable m where `opt` or `core` can't have the size.

    Raises
    ------
    ArgumentError
        If an argument is out of range or missing.

    References
    ----------
    importance, Section 4 and Proposition 13.
    """
    checks.one_of("sampler", sampler, SAMPLERS)
    iterations = checks.integer("n_iterations", n_iterations, at_least=1)
    offset = count_offset(facts, mode, centre_norm)
    noiseless = target == math.inf and sampler != "opt"
    goal = math.inf if noiseless else checks.real("target epsilon", target, above=0)
    if sampler == "full":
        size = float(facts.n)
    elif m is None:
        raise ArgumentError(f"m must be given for the sampler {sampler}, got none; only full needs no size")
    else:
        size = checks.real("m", m, above=0, at_most=facts.n)
    share = checks.real("mixing", mixing, above=0, at_most=1)
    m_max = float(facts.n)
    if sampler == "core":
        m_max = min(m_max, facts.n / (share + (1 - share) * facts.radius**2 / facts.mean_square))
    if size > m_max:
        s, psi = math.nan, math.nan
    elif noiseless:
        s, psi = math.inf, math.inf
    elif sampler == "opt":
        if norms is None:
            raise ArgumentError("opt needs the norms of all records to attain a size, got none; pass norms")
        s, psi, m_max = _optimal(facts, offset, goal, size, checks.finite_array("norms", norms, ndim=1), mode)
    elif sampler == "core":
        s, psi = _coreset(facts, offset, goal, size, share, mode)
    else:
        rate, radius = np.array(size / facts.n), np.array(facts.radius)
        s = float(np.exp(norm_minimum.log_factor(radius, rate, offset, goal))) * (1 - norm_minimum.ROUNDING)
        psi = goal
    return Calibration(sampler, mode, facts, goal, size, share, iterations, offset, s, psi, m_max)


def _coreset(facts: DataFacts, offset: float, goal: float, m: float, share: float, mode: str) -> tuple[float, float]:
    constant = share * m / facts.n
    square = (1 - share) * m / (facts.n * facts.mean_square)
    proved, _ = norm_minimum.smallest_factor(constant, square, facts.radius, offset, goal)
    if mode != "released":
        return proved, goal
    z = np.linspace(0.0, facts.radius, RELEASED_GRID)
    s = float(np.exp(norm_minimum.log_factor(z, np.minimum(constant + square * z * z, 1.0), offset, goal).min()))

    def excess(log_target: float) -> float:
        """Log of the factor that is proved at a target over that of the grid; it rises with the target."""
        proved, _ = norm_minimum.smallest_factor(constant, square, facts.radius, offset, math.exp(log_target))
        return math.log(proved / s)

    return s, math.exp(_least_above(excess, math.log(goal)))


def _least_above(function: Callable[[float], float], low: float) -> float:
    """The least place from `low` on where an increasing function is at least 0, at most about 1e-11 above it."""
    at_low, step = function(low), 1e-9
    if at_low >= 0:
        return low
    while (at_high := function(low + step)) < 0:
        step *= 4
    place = _root_between(function, low, at_low, low + step, at_high)
    while function(place) < 0:
        place += 1e-12
    return place


def _optimal(
    facts: DataFacts, offset: float, goal: float, m: float, norms: np.ndarray, mode: str
) -> tuple[float, float, float]:
    """Find s with sum 1/w* = m: the sum grows with s, nearly as a power of it, so secants in logarithms settle soon."""
    if norms.size != facts.n:
        raise ArgumentError(f"opt needs one norm a record, n = {facts.n}, got {norms.size}")
    lengths = within(norms, facts) + offset
    limit = goal / (facts.radius + offset)

    def log_size(log_s: float) -> float:
        return math.log(weights.expected_size(weights.optimal_weights(math.exp(log_s) * lengths, goal)) / m)

    high = math.log(limit)
    at_high = log_size(high)
    m_max = m * math.exp(at_high)
    if at_high < -1e-12:
        return math.nan, math.nan, m_max
    s = math.exp(_rising_root(log_size, high, at_high)) if at_high > 1e-12 else limit
    if mode != "released":
        return s, goal, m_max
    # the middles of the released brackets may lie on the wrong side; their losses at the records, not over the ball
    profile = Power(s * lengths)
    return s, float(profile.sampled(1 / printed_weights.released_weights(profile, goal)).max()), m_max


def _rising_root(function: Callable[[float], float], high: float, at_high: float) -> float:
    """Root of an increasing function below `high`, to 1e-12 in its value: secants kept inside a bracket."""
    low, at_low = high - at_high, function(high - at_high)
    while at_low > 0:
        low, at_low, high, at_high = low - at_low - 0.1, function(low - at_low - 0.1), low, at_low
    return _root_between(function, low, at_low, high, at_high)


def _root_between(
    function: Callable[[float], float], low: float, at_low: float, high: float, at_high: float
) -> float:
    for step in range(_STEPS):
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


RADII = ("gamma", "exponential")
"""`gamma`: the radius has the law Gamma(d, scale), as the density says.  `exponential`: that of one dimension, whose
density in d > 1 has a pole at 0 and bounds no loss (R1)."""


def norm_order(value: float) -> float:
    """Return the order of the norm.

    Raises
    ------
    ArgumentError
        If it is below 1, where |.|_p is no norm and the loss is not bounded by it.
    """
    if value == math.inf:
        return math.inf
    return checks.real("the norm order", value, at_least=1)


def norms(vectors: np.ndarray, order: float) -> np.ndarray:
    """|v|_order along the last axis, in float64, without overflow at large orders."""
    if order == 2:
        return np.asarray(np.sqrt(np.einsum("...j,...j->...", vectors, vectors, dtype=float)))
    sizes = np.abs(vectors, dtype=float)
    largest = sizes.max(axis=-1)
    if order == math.inf:
        return np.asarray(largest)
    shares = sizes / np.where(largest > 0, largest, 1.0)[..., None]
    return np.asarray(largest * (shares**order).sum(axis=-1) ** (1 / order))


def norm_noise(
    shape: tuple[int, ...], scale: float, rng: np.random.Generator, *, order: float = 2.0, radius: str = "gamma"
) -> np.ndarray:
    """Draw vectors of the last axis' dimension with a density proportional to exp(-|z|_order / scale).

    The direction u / |u|_p of independent coordinates with density proportional to exp(-|u|^p) is independent of the
    radius |z|_p, whose law is Gamma(d, scale) as |z|_p^{d-1} is what a shell has in volume.

    Parameters
    ----------
    shape : tuple of int
        The last entry is d.
    scale : float
        At least 0; 0 gives zeros.
    order : float
        p in [1, inf].
    radius : {"gamma", "exponential"}

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    """
    p = norm_order(order)
    beta = checks.real("scale", scale, at_least=0)
    law = checks.one_of("radius", radius, RADII)
    if beta == 0:
        return np.zeros(shape)
    if p == 2:
        u = rng.standard_normal(shape)
    elif p == math.inf:
        u = rng.uniform(-1.0, 1.0, shape)
    else:
        # Gamma(1/p) is Gamma(1 + 1/p) times the p-th power of a uniform number, and would underflow at large p
        u = rng.gamma(1 + 1 / p, 1.0, shape) ** (1 / p) * rng.uniform(-1.0, 1.0, shape)
    size = rng.gamma(shape[-1], beta, shape[:-1]) if law == "gamma" else rng.exponential(beta, shape[:-1])
    return np.asarray(u * (size / norms(u, p))[..., None])
