"""The exact worst loss of a finite sampling design over all epsilon-DP mechanisms, by linear
programming.

`audit` and `hockey_stick` take any two laws of samples; `worst_ratio` solves, in one pass a round,
the programmes in which only the size of the sample matters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from dpsub import checks
from dpsub.errors import ArgumentError, NumericalError

State = tuple[int, ...]
"""A sample as counts: entry i is how often records of type i are in it."""
Law = Mapping[State, float]

MOST_STATES = 300
"""Largest number of different samples."""
TOLERANCE = 1e-6
"""Largest distance, in nats, between the certified bounds of a loss."""

# Solver, largest log factor of a constraint, and scale of the unknowns. Large factors cost the
# solver its digits, so that constraints with larger ones are left out, which can only raise the
# optimum. The attempts improve the certified bounds until they meet.
_ATTEMPTS = (
    ("highs-ds", 16.0, "unit"),
    ("highs-ipm", 16.0, "unit"),
    ("highs-ipm", 16.0, "largest"),
    ("highs-ds", 23.0, "largest"),
    ("highs-ds", 23.0, "unit"),
    ("highs-ds", 16.0, "event"),
    ("highs-ipm", 10.0, "unit"),
    ("highs-ds", 30.0, "largest"),
)


@dataclass(frozen=True)
class DesignAudit:
    """The worst loss, in nats, and an event that attains it."""

    # Upper bound for the larger direction, by the dual; infinite if a mechanism distinguishes the
    # laws with certainty.
    loss: float
    lower: float  # log-ratio of the probabilities of `event`; within TOLERANCE of `loss`
    forward: float  # upper bound on log max P[E] / Q[E] of the two output laws
    backward: float  # the same for Q[E] / P[E]
    event: dict[State, float]
    """Relative probability, for each possible sample, that the output lies in the worst event of
    the larger direction. Any multiple of it below 1 is the acceptance probability of an epsilon-DP
    mechanism."""


def audit(p: Law, q: Law, epsilon: float, *, relation: str = "add_remove") -> DesignAudit:
    """Return the largest privacy loss of all mechanisms that are epsilon-DP on samples.

    Maximise sum P(y) f(y) subject to sum Q(y) f(y) = 1, f >= 0 and f(y) <= exp(epsilon d(y, y'))
    f(y') for all pairs of possible samples. Necessary, as f(y) may be the probability of an event
    on the sample y; sufficient, as log f extends to all data sets with the same constant, and a
    small multiple of f is the acceptance probability of an epsilon-DP test. The exact counterpart
    of the couplings of bun, Appendix A. NumericalError if the bounds do not meet within TOLERANCE.

    Parameters
    ----------
    p, q : laws of the sample for the two neighbouring populations, as counts of records of the same
        types (records in the same role may share one); at most MOST_STATES different samples.
    relation : "add_remove", "substitute" or "both"; the relation between samples under which the
        mechanisms are epsilon-DP.

    Examples
    --------
    >>> import math
    >>> one_of_two = {(1, 0): 0.5, (0, 1): 0.5}  # which of two types of record is in the sample
    >>> worst = audit(one_of_two, {(1, 0): 1.0}, 1.0, relation="substitute")
    >>> math.isclose(worst.loss, math.log((1 + math.e) / 2), abs_tol=1e-6)
    True
    """
    epsilon = checks.real("epsilon", epsilon, above=0)
    states = _states(p, q)
    first = np.array([p.get(state, 0.0) for state in states])
    second = np.array([q.get(state, 0.0) for state in states])
    # Group privacy: over a distance d an event changes by a factor of at most exp(epsilon d).
    log_factors = epsilon * _distances(states, relation)
    forward = _optimum(first, second, log_factors)
    backward = _optimum(second, first, log_factors)
    worst = backward if backward.upper > forward.upper else forward
    event = dict(zip(states, worst.event.tolist(), strict=True))
    return DesignAudit(worst.upper, worst.lower, forward.upper, backward.upper, event)


def hockey_stick(
    p: Law, q: Law, epsilon: float, *, at: float, delta: float, relation: str = "add_remove"
) -> float:
    """Return max P[E] - exp(at) Q[E] over all (epsilon, delta)-DP mechanisms, rounded up.

    The states must include every sample on the shortest paths between possible ones, also those of
    probability 0: an event and its complement change by at most the factor of one step at each.
    `at` is the epsilon' of delta'; 0 gives the largest advantage of a test (bun, Proposition 4.1
    and Theorem 2.2).
    """
    from scipy import sparse

    epsilon = checks.real("epsilon", epsilon, above=0)
    delta = checks.real("delta", delta, at_least=0, below=1)
    states = _states(p, q)
    gain = np.array([p.get(state, 0.0) - math.exp(at) * q.get(state, 0.0) for state in states])
    distances = _distances(states, relation)
    event_rows = _constraints(epsilon * distances, distances <= 1)
    # f <= e^eps f' + delta, and the same for the complement: -f + e^eps f' <= e^eps - 1 + delta.
    event_limits = np.full(event_rows.shape[0], delta)
    complement_limits = delta - np.asarray(event_rows.sum(axis=1)).ravel()
    limits = np.concatenate([event_limits, complement_limits])
    rows = sparse.vstack([event_rows, -event_rows])
    solution = _solved(-gain, rows, limits, (0, 1))
    if solution.status != 0:
        raise NumericalError(
            f"the linear programme must reach an optimum, got {solution.message!r}"
        )
    # Weak duality holds for any nonnegative multipliers. What they leave over is charged where
    # f = 1.
    multipliers = np.maximum(-solution.ineqlin.marginals, 0.0)
    surplus = np.maximum(gain - rows.T @ multipliers, 0.0)
    return max(0.0, float(limits @ multipliers + surplus.sum()))


def _solved(
    cost: np.ndarray,
    rows: Any,
    right: np.ndarray,
    bounds: tuple[float, float | None],
    method: Any = "highs-ds",
    **equal: Any,
) -> Any:
    # Imported here: it takes longer to load than everything else, and few callers need it.
    from scipy.optimize import linprog

    options: Any = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    return linprog(
        cost, A_ub=rows, b_ub=right, bounds=bounds, method=method, options=options, **equal
    )


def _states(p: Law, q: Law) -> list[State]:
    for law in (p, q):
        total = math.fsum(law.values())
        if abs(total - 1) > 1e-9 or any(not value >= 0 for value in law.values()):
            raise ArgumentError(
                f"a law of samples must hold probabilities that sum to 1, got a sum of {total!r}"
            )
    states = sorted({**p, **q})
    if len({len(state) for state in states}) != 1:
        raise ArgumentError(
            "samples of both populations must be counts of the same types, got different lengths"
        )
    if len(states) > MOST_STATES:
        rule = f"at most {MOST_STATES} different samples can be audited"
        raise ArgumentError(
            f"{rule}, got {len(states)}; merge records of one type or take a smaller frame"
        )
    return states


def _distances(states: list[State], relation: str) -> np.ndarray:
    """Number of steps of the relation between all pairs of samples; infinite if there is no path.

    With O = |S and T| it is |S| + |T| - 2 O for add_remove, |S| - O for substitute (samples of one
    size), and max(|S|, |T|) - O for both.
    """
    checks.one_of("relation", relation, ("add_remove", "substitute", "both"))
    counts = np.array(states)
    overlap = np.minimum(counts[:, None, :], counts[None, :, :]).sum(axis=2)
    size = counts.sum(axis=1)
    if relation == "add_remove":
        return (size[:, None] + size[None, :] - 2 * overlap).astype(float)
    if relation == "both":
        return (np.maximum(size[:, None], size[None, :]) - overlap).astype(float)
    return np.where(size[:, None] == size[None, :], size[:, None] - overlap, np.inf)


def _constraints(log_factors: np.ndarray, included: np.ndarray) -> Any:
    """Sparse rows f(y) - exp(log_factor) f(y') <= 0 of the pairs that are included."""
    from scipy import sparse

    n = len(log_factors)
    left, right = np.nonzero(included & np.isfinite(log_factors) & ~np.eye(n, dtype=bool))
    number = np.arange(len(left))
    values = np.concatenate([np.ones(len(left)), -np.exp(log_factors[left, right])])
    rows = np.concatenate([number, number])
    columns = np.concatenate([left, right])
    return sparse.csr_matrix((values, (rows, columns)), (len(left), n))


class _Optimum(NamedTuple):
    lower: float
    upper: float
    event: np.ndarray


def _optimum(above: np.ndarray, below: np.ndarray, log_factors: np.ndarray) -> _Optimum:
    """Certified bounds on log max sum(above f) / sum(below f), and an event attaining the lower."""
    connected = np.isfinite(log_factors)
    # A sample without a path to any sample of the second law gives the record away.
    isolated = (above > 0) & ~connected[:, below > 0].any(axis=1)
    if isolated.any():
        return _Optimum(math.inf, math.inf, connected[np.argmax(isolated)].astype(float))
    lower, upper, event = -math.inf, math.inf, np.ones(len(above))
    with np.errstate(divide="ignore"):
        # log of the largest value that f can have where sum(below f) = 1
        log_largest = np.min(log_factors - np.log(below)[None, :], axis=1)
    for method, cut, scale in _ATTEMPTS:
        # The unknowns are g with f = exp(shift) g.
        shift = {
            "unit": np.zeros(len(above)),
            "largest": log_largest - log_largest.max(),
            "event": np.log(event / event.max()),
        }[scale]
        scaled = log_factors - shift[:, None] + shift[None, :]
        rows = _constraints(scaled, scaled <= cut)
        normalised = (below * np.exp(shift))[None, :]
        cost, limits = -above * np.exp(shift), np.zeros(rows.shape[0])
        solution = _solved(cost, rows, limits, (0, None), method, A_eq=normalised, b_eq=[1.0])
        if solution.status != 0:
            continue
        optimum = _certified(above, below, log_factors, shift, log_largest, rows, solution)
        upper = min(upper, optimum.upper)
        if optimum.lower > lower:
            lower, event = optimum.lower, optimum.event
        if upper - lower <= TOLERANCE:
            return _Optimum(lower, upper, event)
    gap = upper - lower
    raise NumericalError(
        f"an audited loss must be certified to {TOLERANCE:g}, got a gap of {gap:g}; lower epsilon"
    )


def _certified(
    above: np.ndarray,
    below: np.ndarray,
    log_factors: np.ndarray,
    shift: np.ndarray,
    log_largest: np.ndarray,
    rows: Any,
    solution: Any,
) -> _Optimum:
    """Bound the optimum from both sides, whatever the accuracy of the solver."""
    # Lower bound: the smallest majorant of the solver's f that satisfies all constraints.
    solved = np.exp(shift) * np.maximum(solution.x, 0.0)
    f = np.max(solved[None, :] * np.exp(-log_factors), axis=1)
    lower = math.log(float(above @ f) / float(below @ f))
    # Upper bound: weak duality. Where the multipliers leave a surplus at a sample, the largest
    # value that f can have there is charged.
    multipliers = np.minimum(solution.ineqlin.marginals, 0.0)
    value = -float(solution.eqlin.marginals[0])
    surplus = np.maximum(above + (rows.T @ multipliers) * np.exp(-shift) - value * below, 0.0)
    charged = math.fsum(
        excess * math.exp(min(log_f, 700.0))
        for excess, log_f in zip(surplus.tolist(), log_largest.tolist(), strict=True)
        if excess > 0
    )
    return _Optimum(lower, math.log(value + charged), f)


_ROUNDS = 200


class WorstRatio(NamedTuple):
    """Logarithm of the largest ratio that was found, and a verified upper bound."""

    log_ratio: float
    upper: float


def worst_ratio(
    log_numerator: np.ndarray, log_denominator: np.ndarray, epsilon: float
) -> WorstRatio:
    """Return max sum(N A) / sum(D A) over A > 0 with |log(A_{j+1} / A_j)| <= epsilon.

    N and D are given as logarithms. The extreme rays of this linear-fractional programme go up or
    down by the full factor at every step. For a trial lambda, the recursion
    V_j = N_j - lambda D_j + max(exp(epsilon) V_{j+1}, exp(-epsilon) V_{j+1}) decides in one O(n)
    pass whether some A exceeds it, and the A of that pass gives the next lambda (Dinkelbach's
    method). With A_m the probability of an event on a sample of size m this is the worst event of
    all epsilon-DP mechanisms (bun, Sections 3 and 4).
    """
    epsilon = checks.real("epsilon", epsilon, above=0)
    n, d = np.asarray(log_numerator, dtype=float), np.asarray(log_denominator, dtype=float)
    if n.ndim != 1 or n.shape != d.shape:
        raise ArgumentError(
            f"the two weights must have equal lengths, got shapes {n.shape} and {d.shape}"
        )
    for name, array in (("numerator", n), ("denominator", d)):
        if not np.all(array < np.inf) or not np.any(array > -np.inf):
            raise ArgumentError(
                f"the {name} must hold finite logarithms or -inf, not all -inf, got {array[:5]}..."
            )
    # Every weight is taken relative to the larger one of its pair, so that none underflows.
    level = np.maximum(n, d)
    level = np.where(np.isneginf(level), np.max(level), level)
    above, below, levels = np.exp(n - level).tolist(), np.exp(d - level).tolist(), level.tolist()
    log_lambda, slopes = -math.inf, np.ones(len(n))
    for _ in range(_ROUNDS):
        candidate = epsilon * (np.cumsum(slopes) - slopes[0])
        value = float(logsumexp(n + candidate) - logsumexp(d + candidate))
        if value <= log_lambda + 4e-16 * (1 + abs(log_lambda)):
            break
        log_lambda = value
        slopes = _pass(above, below, levels, log_lambda, epsilon)[1]
    else:
        raise NumericalError(
            f"the worst ratio must settle within {_ROUNDS} rounds, got {log_lambda!r} at the end"
        )
    # The slack covers rounding. Weights far below the others do not matter, however large their
    # logarithms are.
    digits = min(float(np.ptp(level)), 2 * epsilon * len(n) + 2000)
    slack = 1e-11 + 1e-15 * (epsilon * len(n) + digits)
    if _pass(above, below, levels, log_lambda + slack, epsilon)[0] > 0:
        raise NumericalError(
            f"the worst ratio must be verified to {slack:g}, got exp({log_lambda!r}) exceeded"
        )
    return WorstRatio(log_lambda, log_lambda + slack)


def _pass(
    above: list[float], below: list[float], levels: list[float], log_lambda: float, epsilon: float
) -> tuple[float, np.ndarray]:
    """Return V_0, rescaled, and the slopes; entry j is the step from j - 1 to j."""
    up, down = math.exp(min(epsilon, 600.0)), math.exp(-epsilon)
    ratio = math.exp(min(log_lambda, 600.0))
    slopes = np.ones(len(above))
    value, reference = 0.0, levels[-1]
    for j in range(len(above) - 1, -1, -1):
        distance = levels[j] - reference
        if distance > 300.0 or value == 0.0:
            value *= math.exp(max(-distance, -745.0)) if value else 0.0
            reference, distance = levels[j], 0.0
        value += (above[j] - ratio * below[j]) * math.exp(distance) if distance > -745.0 else 0.0
        if value > 0:
            value *= up if j else 1.0
        else:
            slopes[j] = -1.0
            value *= down if j else 1.0
        # Only the sign of V_0 counts: V is rescaled before it leaves the range of doubles.
        if abs(value) > 1e200 or (value != 0.0 and abs(value) < 1e-200):
            reference += math.log(abs(value))
            value = math.copysign(1.0, value)
    return value, slopes
