"""The hockey-stick divergence of discrete laws: convexity, couplings, moments, and the worst
mechanism of a sampling design."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import ArgumentError, NumericalError

_INFEASIBLE = 2  # SciPy's status of a linear program without solution


def law_array(name: str, value: ArrayLike) -> np.ndarray:
    """Return `value` as an array of laws along its last axis, else raise ArgumentError.

    The probabilities of a law must sum to 1 within 1e-9.
    """
    array = checks.finite_array(name, value)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ArgumentError(
            f"{name} must hold probabilities along its last axis, got shape {array.shape}"
        )
    if array.size and array.min() < 0:
        raise ArgumentError(f"{name} must not be negative, got {array.min():g}")
    totals = array.sum(axis=-1).ravel()
    off = np.abs(totals - 1)
    if (off > 1e-9).any():
        raise ArgumentError(
            f"{name} must sum to 1 within 1e-9 in every row, got {totals[off.argmax()]:.12g}; "
            "normalise it"
        )
    return array


def _solved(**program: Any) -> Any:
    """Solve a linear program, which may be infeasible; NumericalError if the solver fails."""
    # Imported here: it takes longer to load than everything else in this module.
    from scipy.optimize import linprog

    solution = linprog(**program, method="highs")
    if solution.status not in (0, _INFEASIBLE):
        raise NumericalError(
            f"the linear program must be solved, got status {solution.status}: {solution.message}"
        )
    return solution


def hockey_stick(first: ArrayLike, second: ArrayLike, alpha: ArrayLike) -> np.ndarray:
    """Return D_alpha(mu || mu') = sum over z of max(0, mu(z) - alpha mu'(z)), in [0, 1].

    It is balle, Equation 2.

    Parameters
    ----------
    first, second : laws mu and mu', shape (..., outcomes); leading axes broadcast.
    alpha : exp(epsilon) >= 1, broadcasts with the leading axes. Below 1 use
        1 - alpha + alpha D_{1/alpha}(mu' || mu).

    Examples
    --------
    >>> float(hockey_stick([0.75, 0.25], [0.25, 0.75], 1.0))        # the total variation
    0.5
    >>> float(hockey_stick([0.75, 0.25], [0.25, 0.75], 3.0))        # no ratio is above 3
    0.0
    """
    orders = checks.finite_array("alpha", alpha)
    if orders.size:
        checks.real("alpha", orders.min(), at_least=1)
    return positive_part(law_array("first", first), law_array("second", second), orders)


def positive_part(first: np.ndarray, second: np.ndarray, alpha: ArrayLike) -> np.ndarray:
    """Return the sum of `hockey_stick` without checks, for any alpha >= 0 and any nonnegative
    measures."""
    return np.maximum(first - np.asarray(alpha)[..., np.newaxis] * second, 0.0).sum(axis=-1)


def total_variation(first: ArrayLike, second: ArrayLike) -> np.ndarray:
    """Return the total variation distance, D_1, along the last axis."""
    return hockey_stick(first, second, 1.0)


class ConvexitySides(NamedTuple):
    """The divergence D_{alpha'} of two mixtures with a common part, the expression that it equals,
    and the bound by convexity."""

    mixed: float
    identity: float
    bound: float


def advanced_joint_convexity(
    shared: ArrayLike, first: ArrayLike, second: ArrayLike, eta: float, alpha: float
) -> ConvexitySides:
    """Return both sides of advanced joint convexity for laws mu0, mu1, mu1' (balle, Theorem 2).

    With mu = (1 - eta) mu0 + eta mu1, mu' = (1 - eta) mu0 + eta mu1', alpha' = 1 + eta (alpha - 1)
    and beta = alpha' / alpha,

        D_{alpha'}(mu || mu') = eta D_alpha(mu1 || (1 - beta) mu0 + beta mu1')
                             <= eta ((1 - beta) D_alpha(mu1 || mu0) + beta D_alpha(mu1 || mu1')).
    """
    weight = checks.real("eta", eta, at_least=0, at_most=1)
    order = checks.real("alpha", alpha, at_least=1)
    mu0 = law_array("shared", shared)
    mu1 = law_array("first", first)
    mu1_other = law_array("second", second)
    amplified = 1 + weight * (order - 1)
    beta = amplified / order
    mu = (1 - weight) * mu0 + weight * mu1
    mu_other = (1 - weight) * mu0 + weight * mu1_other
    mixed = positive_part(mu, mu_other, amplified)
    identity = weight * positive_part(mu1, (1 - beta) * mu0 + beta * mu1_other, order)
    convex = (1 - beta) * positive_part(mu1, mu0, order) + beta * positive_part(
        mu1, mu1_other, order
    )
    return ConvexitySides(float(mixed), float(identity), float(weight * convex))


def profile_from_losses(first: ArrayLike, second: ArrayLike, epsilon: ArrayLike) -> np.ndarray:
    """Return the hockey-stick divergence Pr[L > epsilon] - exp(epsilon) Pr[L' < -epsilon].

    L = log(mu(z) / mu'(z)) under mu and L' = log(mu'(z) / mu(z)) under mu', in nats (balle, Theorem
    5). An outcome that only mu has is an infinite loss and enters the first probability alone.
    """
    mu = law_array("first", first)
    mu_other = law_array("second", second)
    orders = checks.finite_array("epsilon", epsilon)[..., np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.where(mu > 0, np.log(mu) - np.log(mu_other), -np.inf)
    exceeds = loss > orders
    probability = (mu * exceeds).sum(axis=-1)
    other_probability = (mu_other * exceeds).sum(axis=-1)
    return (probability - np.exp(orders[..., 0]) * other_probability)[()]


class MaximalCoupling(NamedTuple):
    """Maximal coupling (1 - eta) pi0 + eta pi1 of two laws nu and nu', where pi0 has y = y'.

    pi1(y, y') = (nu - min)(y) (nu' - min)(y') / eta^2 = nu1(y) nu1'(y'); the printed divisor eta
    would give it the mass eta.
    """

    eta: float  # total variation distance, the mass that is not shared
    shared: np.ndarray  # nu0 = min(nu, nu') / (1 - eta); zeros where eta = 1
    first: np.ndarray  # nu1 = (nu - min) / eta; nu0 where eta = 0
    second: np.ndarray  # nu1' = (nu' - min) / eta; nu0 where eta = 0


def maximal_coupling(first: ArrayLike, second: ArrayLike) -> MaximalCoupling:
    """Return nu = (1 - eta) nu0 + eta nu1 and nu' = (1 - eta) nu0 + eta nu1' with the largest
    common part (balle, Section 3)."""
    nu, nu_other = law_array("first", first), law_array("second", second)
    common = np.minimum(nu, nu_other)
    left, right = nu - common, nu_other - common
    eta = float(left.sum())
    if eta == 0:
        return MaximalCoupling(0.0, common, common, common)
    shared = common / common.sum() if common.any() else common
    return MaximalCoupling(eta, shared, left / left.sum(), right / right.sum())


def cheapest_coupling(
    first: ArrayLike, second: ArrayLike, costs: ArrayLike
) -> tuple[float, np.ndarray] | None:
    """Return the smallest expected cost over couplings of two laws, and a coupling that attains it.

    The laws have the shapes (rows,) and (columns,). An infinite cost forbids a pair; None if no
    coupling avoids such pairs (balle, Theorem 7, left-hand side of Equation 6).
    """
    nu, nu_other = law_array("first", first), law_array("second", second)
    prices = np.asarray(costs, dtype=float)
    if prices.shape != (nu.size, nu_other.size) or np.isnan(prices).any():
        raise ArgumentError(
            f"costs must have shape {(nu.size, nu_other.size)} without NaN, got shape "
            f"{prices.shape}"
        )
    rows, columns = np.nonzero(np.isfinite(prices))
    marginals = np.zeros((nu.size + nu_other.size, rows.size))
    marginals[rows, np.arange(rows.size)] = 1
    marginals[nu.size + columns, np.arange(rows.size)] = 1
    if rows.size == 0:
        return None
    # Both laws sum to 1 up to rounding only; the last equation follows from the others.
    totals = np.concatenate([nu, nu_other])
    solution = _solved(c=prices[rows, columns], A_eq=marginals[:-1], b_eq=totals[:-1])
    if solution.status == _INFEASIBLE:
        return None
    joint = np.zeros(prices.shape)
    joint[rows, columns] = solution.x
    return float(prices[rows, columns] @ joint[rows, columns]), joint


def compatible_sum(first: ArrayLike, distances: ArrayLike, group_deltas: ArrayLike) -> float:
    """Return the sum over k >= 1 of nu(Y_k) delta_k.

    Y_k are the points at distance k from the support of the other law. The sum is the cost of the
    cheapest coupling where a distance-compatible one exists, and never above it (balle, Theorem 7,
    right-hand side of Equation 6).

    Parameters
    ----------
    first : nu.
    distances : from the points of nu to those of the other support, shape (points, others).
    group_deltas : delta_k for k = 0, 1, ....
    """
    nu = law_array("first", first)
    deltas = checks.finite_array("group_deltas", group_deltas, ndim=1)
    nearest = np.asarray(distances, dtype=float).min(axis=1)
    support = nu > 0
    if not np.isfinite(nearest[support]).all() or nearest[support].max(initial=0) >= deltas.size:
        raise ArgumentError(
            f"every point must have a distance of at most {deltas.size - 1}, got "
            f"{nearest[support].max()}"
        )
    return float(nu[support] @ deltas[nearest[support].astype(int)])


Curve = Callable[[np.ndarray], np.ndarray]
"""log delta of one ordered pair at an array of epsilons >= 0; convex and not increasing as delta in
exp(epsilon)."""


class MomentInterval(NamedTuple):
    """Numbers between which E exp(s L) lies; log `upper` / s bounds the Renyi divergence of order s
    + 1."""

    lower: float
    upper: float


def moment_from_profiles(
    forward: Curve,
    backward: Curve,
    order: float,
    *,
    end: float,
    rate: float = math.inf,
    width: float = 5e-7,
) -> MomentInterval:
    """Return E exp(s L) of a pair from the profiles of its two orders (balle, Theorem 6),

        1 + s (s + 1) int_0^inf (exp(s eps) D(mu || mu') + exp(-(s + 1) eps) D(mu' || mu)) d eps.

    In alpha = exp(epsilon) a divergence is convex, so that between two points a chord lies above it
    and, by Jensen's inequality, its value at the centroid of the weight alpha^(s - 1) (or alpha^-(s
    + 2)), times the weight, lies below its integral. Panels are made smaller until both agree
    within the relative `width`.

    Parameters
    ----------
    forward, backward : log D_{exp(epsilon)} of the pair and of the pair reversed.
    order : s, above 0.
    end : where the integration stops, in nats.
    rate : both divergences fall at least like exp(-rate (epsilon - end)) beyond `end`, rate > s;
    infinite where they
        are 0 there. For a log-concave loss (Gaussian noise) the rate at `end` is minus the slope of
        log delta.
    """
    s = checks.real("order", order, above=0)
    last = checks.real("end", end, above=0)
    if not rate > s:
        raise ArgumentError(
            "the profiles must fall faster than exp(-s epsilon) beyond end for a finite moment, "
            f"got rate = {rate:g} and s = {s:g}; take a later end"
        )
    tail = 0.0
    if math.isfinite(rate):
        first, second = (float(curve(np.array([last]))[0]) for curve in (forward, backward))
        tail = math.exp(first + s * last) / (rate - s) + math.exp(second - (s + 1) * last) / (
            rate + s + 1
        )
    panels = 1024
    while True:
        edges = np.linspace(0.0, last, panels + 1)
        sides = zip(_enclose(forward, edges, s), _enclose(backward, edges, -(s + 1)), strict=True)
        factor = s * (s + 1)
        low, high = (1 + factor * (one + other) for one, other in sides)
        high += factor * tail
        if high - low <= width * low:
            slack = 1e-12 * high  # rounding of a million positive terms
            return MomentInterval(max(1.0, low - slack), high + slack)
        # the error is of second order in the width of a panel
        panels = math.ceil(panels * max(1.5, 1.1 * math.sqrt((high - low) / (width * low))))
        if panels > 2**20:
            raise NumericalError(
                f"the moment must be known within a relative {width:g}, got {low:.10g} to "
                f"{high:.10g}; take a larger width or a smaller order"
            )


def tail_rate(curve: Curve, end: float) -> float:
    """Return a rate at which a log-concave divergence falls beyond `end` at least: by a secant
    before it.

    It is log-concave if the density of the loss is (Gaussian noise), which it convolves with 1 -
    exp(-u) on u >= 0.
    """
    step = 1e-3 * end
    before, after = curve(np.array([end - step, end]))
    return float((before - after) / step)


def _enclose(curve: Curve, edges: np.ndarray, power: float) -> tuple[float, float]:
    """Bounds on the integral of exp(power eps) D(eps) d eps = alpha^(power - 1) D d alpha over the
    panels."""
    start, step = edges[:-1], np.diff(edges)
    # integrals over [eps, eps + h] of exp(power eps) and exp((power + 1) eps) d eps, relative to
    # the left end
    mass = _growth(power, step)
    # of alpha, relative to alpha at the left end: in [1, exp(h)]
    centroid = _growth(power + 1, step) / mass
    values = np.exp(curve(edges))
    weight = np.exp(power * start) * mass
    share = np.clip((centroid - 1) / np.expm1(step), 0.0, 1.0)
    upper = weight * ((1 - share) * values[:-1] + share * values[1:])
    lower = weight * np.exp(curve(start + np.log(centroid)))
    return float(lower.sum()), float(upper.sum())


def _growth(power: float, step: np.ndarray) -> np.ndarray:
    """int_0^h exp(power u) du, which is h for power 0."""
    return step if power == 0 else np.expm1(power * step) / power


class WorstMechanism(NamedTuple):
    """The largest divergence that any (epsilon, delta)-DP mechanism can have on two laws of
    samples."""

    divergence: float
    dual: float  # an upper bound for all mechanisms, by weak duality
    # probability of 1 on each sample, of a mechanism of one bit that attains the divergence
    event: np.ndarray


def worst_mechanism(
    first: ArrayLike,
    second: ArrayLike,
    neighbours: Sequence[tuple[int, int]],
    epsilon: float,
    delta: float,
    alpha: float,
) -> WorstMechanism:
    """Return the largest D_alpha(omega K || omega' K) over all (epsilon, delta)-DP mechanisms K.

    An event enters only through its probabilities f(y) given the sample y. They come from an
    (epsilon, delta)-DP mechanism exactly if, for neighbouring y and y' in both orders, f(y) <=
    exp(epsilon) f(y') + delta and 1 - f(y) <= exp(epsilon) (1 - f(y')) + delta. So the supremum
    over events is the linear program max sum over y of (omega(y) - alpha omega'(y)) f(y), and the
    bit that is 1 with probability f attains it. It decides for one design what balle, Section 5
    asks of all.

    Parameters
    ----------
    first, second : laws omega and omega' of the sample on two data sets, shape (samples,).
    neighbours : positions of neighbouring samples, each pair once; the relation is symmetric.
    epsilon, delta, alpha : the base guarantee; the order exp(epsilon') of the divergence, at least
    1.
    """
    one, other = law_array("first", first), law_array("second", second)
    order = checks.real("alpha", alpha, at_least=1)
    growth = math.exp(checks.real("epsilon", epsilon, at_least=0))
    gap = checks.real("delta", delta, at_least=0, at_most=1)
    pairs = np.array([*neighbours, *((b, a) for a, b in neighbours)], dtype=int).reshape(-1, 2)
    if one.shape != other.shape or (
        pairs.size and not (pairs.min() >= 0 and pairs.max() < one.size)
    ):
        raise ArgumentError(
            f"both laws and all neighbours must be about the same samples, got {one.size} and "
            f"{other.size} samples; give positions below that"
        )
    left, right = pairs.T
    # f(y) - e f(y') <= delta, and e f(y') - f(y) <= e - 1 + delta for the complement, its two
    # samples interchanged
    bound = np.zeros((len(pairs), one.size))
    bound[np.arange(len(pairs)), left] = 1
    bound[np.arange(len(pairs)), right] = -growth
    limits = np.repeat([gap, growth - 1 + gap], len(pairs))
    table = np.concatenate([bound, -bound])
    found = _solved(c=order * other - one, A_ub=table, b_ub=limits, bounds=(0, 1))
    # weak duality, whatever the solver's accuracy: what its multipliers leave over is paid where f
    # = 1
    multipliers = np.maximum(-found.ineqlin.marginals, 0.0)
    dual = float(
        limits @ multipliers + np.maximum(one - order * other - multipliers @ table, 0.0).sum()
    )
    event = np.asarray(found.x)
    return WorstMechanism(max(0.0, float((one - order * other) @ event)), max(0.0, dual), event)
