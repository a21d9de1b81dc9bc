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
TOLERANCE = 1e-6
"""Largest distance, in nats, between the certified bounds of a loss."""

_ATTEMPTS = (
    ("highs-ds", 16.0, "one"),
    ("highs-ipm", 16.0, "one"),
    ("highs-ipm", 16.0, "most"),
    ("highs-ds", 23.0, "most"),
    ("highs-ds", 23.0, "one"),
    ("highs-ds", 16.0, "event"),
    ("highs-ipm", 10.0, "one"),
    ("highs-ds", 30.0, "most"),
)
"""Solver, largest log factor of a constraint that is kept, and scale of the unknowns. Large factors
cost the solver its digits; what is left out can only raise the optimum. Each attempt improves the
certified bounds until they meet."""


@dataclass(frozen=True)
class DesignAudit:
    """The worst loss, in nats, and an event that attains it."""

    # larger direction, from above by the dual; infinite if a mechanism tells the laws apart for
    # certain
    loss: float
    lower: float  # log ratio of the two laws' chances of `event`; within TOLERANCE of `loss`
    forward: float  # log max P[E] / Q[E] of the two output laws, from above
    backward: float  # the same of Q[E] / P[E]
    event: dict[State, float]
    """Relative chance, for each possible sample, that the output lies in the worst event of the
    larger direction: any multiple of it that stays below 1 is the behaviour of an epsilon-DP
    mechanism."""


def audit(p: Law, q: Law, epsilon: float, *, relation: str = "add_remove") -> DesignAudit:
    """Return the supremum of the privacy loss over all mechanisms that are epsilon-DP on samples
    under `relation`.

    Maximise sum P(y) f(y) subject to sum Q(y) f(y) = 1, f >= 0 and f(y) <= exp(epsilon d(y, y'))
    f(y') for all pairs of possible samples. Necessary, as f(y) may be the probability of an event
    on the sample y; sufficient, as log f extends to all data sets with the same constant, and a
    small multiple of f is the acceptance probability of an epsilon-DP test. The exact counterpart
    of the couplings of bun, Appendix A. NumericalError if the bounds do not meet within TOLERANCE.

    Parameters
    ----------
    p, q : laws of the sample for the two neighbouring populations, as counts of records of the same
    types (records that
        play the same part may share one); at most MOST_STATES different samples.
    relation : "add_remove", "substitute" or "both"; on samples, under which the mechanisms are
    epsilon-DP.

    Examples
    --------
    >>> import math
    >>> one_of_two = {(1, 0): 0.5, (0, 1): 0.5}  # which of two types of record is in the sample
    >>> worst = audit(one_of_two, {(1, 0): 1.0}, 1.0, relation="substitute")
    >>> math.isclose(worst.loss, math.log((1 + math.e) / 2), abs_tol=1e-6)
    True
    """
    epsilon, states = checks.real("epsilon", epsilon, above=0), _states(p, q)
    weights = [np.array([law.get(state, 0.0) for state in states]) for law in (p, q)]
    apart = epsilon * _distances(states, relation)
    forward, backward = (
        _optimum(weights[0], weights[1], apart),
        _optimum(weights[1], weights[0], apart),
    )
    worst = backward if backward.upper > forward.upper else forward
    event = dict(zip(states, worst.event.tolist(), strict=True))
    return DesignAudit(worst.upper, worst.lower, forward.upper, backward.upper, event)


def hockey_stick(
    p: Law, q: Law, epsilon: float, *, at: float, delta: float, relation: str = "add_remove"
) -> float:
    """Return max P[E] - exp(at) Q[E] over all (epsilon, delta)-DP mechanisms, rounded up by weak
    duality.

    The states must hold every sample on the shortest paths between possible ones, also with
    probability 0: an event and its complement both change by at most one step's factor at each.
    `at` is the epsilon' at which delta' is asked for; 0 gives the largest advantage of a test (bun,
    Proposition 4.1 and Theorem 2.2).
    """
    from scipy import sparse

    epsilon, delta = (
        checks.real("epsilon", epsilon, above=0),
        checks.real("delta", delta, at_least=0, below=1),
    )
    states = _states(p, q)
    gain = np.array([p.get(state, 0.0) - math.exp(at) * q.get(state, 0.0) for state in states])
    apart = _distances(states, relation)
    half = _constraints(epsilon * apart, apart <= 1)
    # f <= e^eps f' + delta, and the same of 1 - f: -f + e^eps f' <= e^eps - 1 + delta
    right = np.concatenate(
        [np.full(half.shape[0], delta), delta - np.asarray(half.sum(axis=1)).ravel()]
    )
    rows = sparse.vstack([half, -half])
    found = _solved(-gain, rows, right, (0, 1))
    if found.status != 0:
        raise NumericalError(f"the linear programme must reach an optimum, got {found.message!r}")
    multipliers = np.maximum(-found.ineqlin.marginals, 0.0)  # weak duality, as in `_certified`
    return max(0.0, float(right @ multipliers + np.maximum(gain - rows.T @ multipliers, 0.0).sum()))


def _solved(
    cost: np.ndarray,
    rows: Any,
    right: np.ndarray,
    bounds: tuple[float, float | None],
    method: Any = "highs-ds",
    **equal: Any,
) -> Any:
    from scipy.optimize import linprog  # takes longer to load than all the rest, and few need it

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
    """Steps of the relation from one sample to another, for all pairs; infinite if none lead there.
    add_remove: |S| + |T| - 2 |S and T|; substitute: |S - T| for samples of one size; both: max(|S|,
    |T|) - |S and T|.
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


def _constraints(apart: np.ndarray, kept: np.ndarray) -> Any:
    """Return the rows f(y) - exp(apart) f(y') <= 0 of the pairs that are kept, as a sparse
    matrix."""
    from scipy import sparse

    rows, columns = np.nonzero(kept & np.isfinite(apart) & ~np.eye(len(apart), dtype=bool))
    number = np.arange(len(rows))
    values = np.concatenate([np.ones(len(rows)), -np.exp(apart[rows, columns])])
    places = np.concatenate([number, number]), np.concatenate([rows, columns])
    return sparse.csr_matrix((values, places), (len(rows), len(apart)))


class _Optimum(NamedTuple):
    lower: float
    upper: float
    event: np.ndarray


def _optimum(above: np.ndarray, below: np.ndarray, apart: np.ndarray) -> _Optimum:
    """Return certified bounds of log max sum(above f) / sum(below f), and an event that attains the
    lower one."""
    linked = np.isfinite(apart)
    alone = (above > 0) & ~linked[:, below > 0].any(axis=1)
    if alone.any():
        return _Optimum(math.inf, math.inf, linked[np.argmax(alone)].astype(float))
    lower, upper, event = -math.inf, math.inf, np.ones(len(above))
    with np.errstate(divide="ignore"):
        # log of the largest value that f can have
        most = np.min(apart - np.log(below)[None, :], axis=1)
    for method, cut, scale in _ATTEMPTS:
        # f = exp(shift) g
        shift = {
            "one": np.zeros(len(above)),
            "most": most - most.max(),
            "event": np.log(event / event.max()),
        }[scale]
        scaled = apart - shift[:, None] + shift[None, :]
        rows = _constraints(scaled, scaled <= cut)
        equal = (below * np.exp(shift))[None, :]
        cost, right = -above * np.exp(shift), np.zeros(rows.shape[0])
        found = _solved(cost, rows, right, (0, None), method, A_eq=equal, b_eq=[1.0])
        if found.status != 0:
            continue
        optimum = _certified(above, below, apart, shift, most, rows, found)
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
    apart: np.ndarray,
    shift: np.ndarray,
    most: np.ndarray,
    rows: Any,
    found: Any,
) -> _Optimum:
    """Bound the optimum from both sides, whatever the solver's own accuracy.
    Lower: the smallest majorant of its f that keeps all constraints, max over y' of f(y')
    exp(-apart). Upper: weak duality; where its multipliers leave a surplus at a sample y, f(y) <=
    min over y' of exp(apart) / below(y') pays.
    """
    f = np.max((np.exp(shift) * np.maximum(found.x, 0.0))[None, :] * np.exp(-apart), axis=1)
    lower = math.log(float(above @ f) / float(below @ f))
    multipliers, value = np.minimum(found.ineqlin.marginals, 0.0), -float(found.eqlin.marginals[0])
    surplus = np.maximum(above + (rows.T @ multipliers) * np.exp(-shift) - value * below, 0.0)
    paid = math.fsum(
        s * math.exp(min(m, 700.0))
        for s, m in zip(surplus.tolist(), most.tolist(), strict=True)
        if s > 0
    )
    return _Optimum(lower, math.log(value + paid), f)


_ROUNDS = 200


class WorstRatio(NamedTuple):
    """The log of the largest ratio that was found, and a value above it that is verified not to be
    exceeded."""

    log_ratio: float
    upper: float


def worst_ratio(
    log_numerator: np.ndarray, log_denominator: np.ndarray, epsilon: float
) -> WorstRatio:
    """Return max over A > 0 with exp(-epsilon) <= A_{j+1}/A_j <= exp(epsilon) of sum(N A) / sum(D
    A).

    N, D come as logarithms. A linear-fractional programme whose extreme rays go up or down by the
    full factor at every step. For a trial lambda, V_j = N_j - lambda D_j + max(exp(epsilon)
    V_{j+1}, exp(-epsilon) V_{j+1}) decides in one O(n) pass whether some A exceeds it; the A of
    that pass gives the next lambda (Dinkelbach's method). With A_m the probability of an event on a
    sample of size m it is the worst event of all epsilon-DP mechanisms (bun, Sections 3 and 4).
    """
    epsilon = checks.real("epsilon", epsilon, above=0)
    n, d = np.asarray(log_numerator, dtype=float), np.asarray(log_denominator, dtype=float)
    if n.ndim != 1 or n.shape != d.shape:
        raise ArgumentError(
            f"the two weights must have one length, got shapes {n.shape} and {d.shape}"
        )
    for name, array in (("numerator", n), ("denominator", d)):
        if not np.all(array < np.inf) or not np.any(array > -np.inf):
            raise ArgumentError(
                f"the {name} must hold finite logarithms or -inf, not all -inf, got {array[:5]}..."
            )
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
    # for round-off; weights far below the others do not matter, however long their logarithms are
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
    """Return the sign-carrying V_0 (rescaled) and the slopes: entry j is the step from j - 1 to
    j."""
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
        if abs(value) > 1e200 or (value != 0.0 and abs(value) < 1e-200):
            reference += math.log(abs(value))
            value = math.copysign(1.0, value)
    return value, slopes
