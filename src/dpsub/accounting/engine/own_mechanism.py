"""Mechanisms of one's own: two output distributions, or a privacy profile, instead of noise.

A mechanism is given by two profiles, which bound its pair of outputs (P with the record, Q without
it) from above, and, where both distributions are known, by masses of cells of outputs, which bound
it from below (docs/proofs/own_pairs.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.accounting.engine.lower_law import collapsed_losses, exchange_law, lower_law
from dpsub.accounting.engine.outputs import CellOutputs
from dpsub.accounting.engine.pld import (
    MAX_LOSS,
    PrivacyLossDistribution,
    Profile,
    RememberedProfile,
    two_sided_pld,
)
from dpsub.accounting.engine.privacy_events import DominatedEvent, Event, order_grid
from dpsub.errors import ArgumentError
from dpsub.relations import Relation, relation_named

_EPS = float(np.finfo(float).eps)
# relative errors of SciPy's distribution functions and of its log densities that are charged
_CDF_ERROR, _LOG_ERROR = 1e-14, 1e-12
# so few outputs are worth a grid that meets the ends of their losses
_FEW = 32
# what masses may miss of a sum of 1
_MISSING = 1e-12


class Cells(NamedTuple):
    """Masses of cells of outputs under P and Q, shape (n,), and bounds of their errors."""

    p: np.ndarray
    q: np.ndarray
    p_error: np.ndarray
    q_error: np.ndarray

    @classmethod
    def exactly(cls, p: np.ndarray, q: np.ndarray) -> Cells:
        """Masses that are taken as they are."""
        return cls(p, q, np.zeros(p.size), np.zeros(p.size))

    def exchanged(self) -> Cells:
        """The cells with P and Q in each other's place."""
        return Cells(self.q, self.p, self.q_error, self.p_error)

    def sampled(self, rate: float) -> Cells:
        """The cells of (1 - rate) Q + rate P against Q."""
        p = (1 - rate) * self.q + rate * self.p
        error = (1 - rate) * self.q_error + rate * self.p_error + 4 * _EPS * p
        return Cells(p, self.q, error, self.q_error)


@dataclass(frozen=True, eq=False)
class OwnMechanism:
    """A mechanism of one's own, made by `pair`: bounds of its outputs on two neighbouring data
    sets, from above and, where they are known, from below.

    Attributes
    ----------
    name : str
        In answers.
    adjacency : Relation
        Of the two data sets.
    forward, backward : callable or None
        Upper bounds of H_a(P || Q) and H_a(Q || P) at increasing ln a >= 0; None where only lower
        bounds are known.
    cells, cells_back : Cells or None
        Bounds of both directions from below.
    exact : bool
        Whether both bounds are about one pair, exactly.
    conditions : tuple of str
        Conditions of the bounds on the caller.
    largest_loss : float
        No loss is larger, in either direction.
    sampled_from_below : bool
        Whether the lower bounds are those of two laws, so that they can be mixed.
    """

    name: str
    adjacency: Relation
    forward: Profile | None
    backward: Profile | None
    cells: Cells | None
    cells_back: Cells | None
    exact: bool
    conditions: tuple[str, ...]
    largest_loss: float = math.inf
    sampled_from_below: bool = True

    def __str__(self) -> str:
        return self.name


def pair(
    first: Any,
    second: Any = None,
    *,
    edges: ArrayLike | None = None,
    adjacency: str = "add_remove",
    name: str = "own mechanism",
) -> OwnMechanism:
    """A mechanism of one's own, for `account`, `curve`, `check` and `Ledger`, as their `mechanism`.

    With `Poisson` samples it is released from a sample at every step, with `Deterministic()` from
    all records. P is what it outputs with the differing record, Q without it (or with the other
    record). The pair must dominate the outputs on all neighbouring data sets.

    Parameters
    ----------
    first, second : array_like, SciPy distribution, callable or PrivacyLossDistribution
        - Arrays: masses of the same outputs under P and Q, shape (n,), each of sum 1.
        - Frozen distributions of scipy.stats: P and Q, with `edges`.
        - Functions: upper bounds of the privacy profiles, epsilon >= 0 -> delta, of P against Q and
          of Q against P; a single one holds for both.
        - Privacy loss distributions of dp-accounting: a pessimistic one, an optimistic one, or
          both. On samples only the pessimistic one counts, as losses that were rounded down are not
          those of two distributions; make an optimistic one of the sampled mechanism instead.
    edges : array_like, optional
        Increasing places between which the likelihood ratio of the SciPy distributions is monotone;
        beyond the outermost ones all is charged. The bounds approach each other as they get closer.
    adjacency : {"add_remove", "substitute", "zero_out"}
        Of the data sets of P and Q. Sampling needs add_remove.
    name : str
        In answers.

    Returns
    -------
    OwnMechanism

    Raises
    ------
    ArgumentError
        If the arguments are none of these, masses do not add up to 1, edges do not increase, or the
        likelihood ratio is seen not to be monotone between two edges.

    References
    ----------
    docs/proofs/own_pairs.md, Theorems 42 and 43.

    Examples
    --------
    >>> import dpsub
    >>> answers = dpsub.pair([0.75, 0.25], [0.25, 0.75], name="randomised response")
    >>> found = dpsub.account(dpsub.Deterministic(), mechanism=answers, epsilon=0.0)
    >>> round(found.upper, 6), found.kind
    (0.5, 'exact')
    >>> found = dpsub.account(dpsub.Poisson(0.1), mechanism=answers, steps=10, delta=1e-5)
    >>> bool(0.9 < found.lower <= found.upper < 1.9)
    True
    """
    relation = relation_named(adjacency)
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"name must be a text, got {name!r}; give one")
    parts = [part for part in (first, second) if part is not None]
    if all(_is_scipy(part) for part in parts) and len(parts) == 2:
        return _of_distributions(first, second, edges, relation, name)
    if edges is not None:
        raise ArgumentError("edges belong to two SciPy distributions, got others; drop edges")
    if parts and all(hasattr(part, "_pmf_remove") for part in parts):
        return _of_plds(parts, relation, name)
    if parts and all(callable(part) for part in parts):
        return _of_profiles(parts, relation, name)
    if len(parts) == 2 and not any(callable(part) or _is_scipy(part) for part in parts):
        return _of_masses(first, second, relation, name)
    kinds = " and ".join(type(part).__name__ for part in parts) or "nothing"
    raise ArgumentError(
        "a pair must be two arrays of masses, two SciPy distributions with edges, one or two "
        f"privacy profiles, or PLDs of dp-accounting, got {kinds}; give one of these"
    )


def _is_scipy(part: object) -> bool:
    return all(hasattr(part, needed) for needed in ("cdf", "sf", "logpdf"))


# From masses


def _of_masses(first: Any, second: Any, relation: Relation, name: str) -> OwnMechanism:
    p, q = (
        checks.finite_array("first", first, ndim=1),
        checks.finite_array("second", second, ndim=1),
    )
    if p.shape != q.shape or not p.size:
        raise ArgumentError(
            f"both need masses of the same outputs, got {p.size} and {q.size}; give as many"
        )
    for label, masses in (("first", p), ("second", q)):
        total = math.fsum(masses.tolist())
        if masses.min() < 0 or abs(total - 1) > _MISSING:
            raise ArgumentError(
                f"masses must be at least 0 and add up to 1, got {label} with least "
                f"{masses.min():g} and sum {total!r}; divide by the sum"
            )
    # what rounding leaves out of a total of 1 belongs to all masses
    p, q = p / math.fsum(p.tolist()), q / math.fsum(q.tolist())
    seen = (p > 0) | (q > 0)
    p, q = p[seen], q[seen]
    cells = Cells.exactly(p, q)
    both = bool(((p > 0) & (q > 0)).all())
    largest = math.inf
    if both:
        largest = float(np.abs(np.log(p) - np.log(q)).max()) * (1 + 8 * _EPS) + 8 * _EPS
    return OwnMechanism(
        name,
        relation,
        AtomProfile(p, q),
        AtomProfile(q, p),
        cells,
        cells.exchanged(),
        exact=True,
        conditions=("the masses, divided by their sum, are those of the outputs",),
        largest_loss=largest,
    )


class AtomProfile:
    """H_a of two measures on the same points, rounded up: the points of losses above ln a."""

    def __init__(self, p: np.ndarray, q: np.ndarray) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            losses = np.where(p > 0, np.log(p), -np.inf) - np.where(q > 0, np.log(q), -np.inf)
        losses = np.where(p > 0, losses, -np.inf)
        order = np.argsort(-losses, kind="stable")
        self._losses = -losses[order]  # increasing: what lies above an order comes first
        # sums of positive terms, from the largest loss down
        self._p = np.append(0.0, np.cumsum(p[order]))
        self._q = np.append(0.0, np.cumsum(q[order]))
        self._error = (2 * p.size + 16) * _EPS

    def __call__(self, log_order: np.ndarray) -> np.ndarray:
        """Upper bounds at ln a >= 0, shape (n,)."""
        above = np.searchsorted(self._losses, -np.asarray(log_order, dtype=float), side="left")
        p, q = self._p[above], self._q[above]
        # a q <= p for every point that is counted, so that p bounds all roundings
        return np.clip(p - np.exp(log_order) * q + self._error * p, 0.0, 1.0)


# From SciPy distributions


def _of_distributions(
    first: Any, second: Any, edges: ArrayLike | None, relation: Relation, name: str
) -> OwnMechanism:
    if edges is None:
        raise ArgumentError(
            "two SciPy distributions need edges between which their likelihood ratio is monotone, "
            "got none; give an increasing array that covers both"
        )
    at = checks.finite_array("edges", edges, ndim=1)
    if at.size < 2 or not (np.diff(at) > 0).all():
        raise ArgumentError("edges must be two or more and increase, got others; sort them")
    (p, p_error), (q, q_error) = _cell_masses(first, at), _cell_masses(second, at)
    cells = Cells(p, q, p_error, q_error)
    low, high = _loss_ranges(first, second, at)
    _check_monotone(cells, low, high, at)
    forward = _split(cells, low, high)
    backward = _split(cells.exchanged(), -high, -low)
    return OwnMechanism(
        name,
        relation,
        AtomProfile(*forward),
        AtomProfile(*backward),
        cells,
        cells.exchanged(),
        exact=False,
        conditions=(
            "the likelihood ratio of the two distributions is monotone between the given edges",
            "SciPy's distribution functions are right to 1e-14 of their values, its log densities "
            "to 1e-12",
        ),
    )


def _cell_masses(law: Any, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Masses of the cells between the edges, with those beyond the first and the last one."""
    below, above = np.asarray(law.cdf(edges), float), np.asarray(law.sf(edges), float)
    # of each cell the smaller of both numbers keeps its digits
    left = np.diff(below, prepend=0.0, append=1.0)
    right = -np.diff(above, prepend=1.0, append=0.0)
    low, high = np.append(below, 1.0), np.append(1.0, above)
    by_left = low <= high
    masses = np.maximum(np.where(by_left, left, right), 0.0)
    error = 2 * _CDF_ERROR * np.where(by_left, low, high)
    return masses, error


def _loss_ranges(first: Any, second: Any, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest loss of each cell, rounded outwards; infinite for those at the ends."""
    one, other = (np.asarray(law.logpdf(edges), float) for law in (first, second))
    with np.errstate(invalid="ignore"):
        loss = one - other
    slack = _LOG_ERROR * (1 + np.abs(one) + np.abs(other))
    with np.errstate(invalid="ignore"):
        below, above = loss - slack, loss + slack
    # where both densities are 0 nothing is known
    below, above = np.nan_to_num(below, nan=-np.inf), np.where(np.isnan(above), np.inf, above)
    low = np.concatenate([[-np.inf], np.minimum(below[:-1], below[1:]), [-np.inf]])
    high = np.concatenate([[np.inf], np.maximum(above[:-1], above[1:]), [np.inf]])
    return low, high


def _check_monotone(cells: Cells, low: np.ndarray, high: np.ndarray, edges: np.ndarray) -> None:
    """Refuse cells whose mean likelihood ratio lies outside of that at their ends."""
    with np.errstate(over="ignore"):
        most = np.exp(high) * (cells.q + cells.q_error)
        least = np.exp(low) * np.maximum(cells.q - cells.q_error, 0.0)
    wrong = (cells.p - cells.p_error > most * (1 + 1e-9)) | (
        cells.p + cells.p_error < least * (1 - 1e-9)
    )
    if wrong.any():
        place = int(np.argmax(wrong))
        raise ArgumentError(
            "the likelihood ratio must be monotone between neighbouring edges, got cells where it "
            f"is not, the first one from {edges[place - 1]:g} to {edges[place]:g}; put an edge at "
            "each of its extrema"
        )


def _split(cells: Cells, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two points for each cell that dominate it: its masses at its smallest and its largest loss
    (Theorem 43)."""
    p, q = cells.p + cells.p_error, np.maximum(cells.q - cells.q_error, 0.0)
    known = np.isfinite(low) & np.isfinite(high)
    least, most = np.exp(-np.where(known, high, 0.0)), np.exp(-np.where(known, low, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (q - least * p) / (most - least)
    # with nothing known of a loss, all of P has the largest
    at_low = np.where(known & (most > least), np.clip(share, 0.0, p), 0.0)
    at_high = p - at_low
    least = np.where(known, least, np.where(np.isfinite(high), np.exp(-high), 0.0))
    # roundings of the share: less mass under Q is a larger loss
    under_q = np.concatenate([least * at_high, most * at_low]) * (1 - 16 * _EPS)
    return np.concatenate([at_high, at_low]), under_q


# From profiles and privacy loss distributions


def _of_profiles(parts: list[Any], relation: Relation, name: str) -> OwnMechanism:
    profiles = [_checked_profile(part) for part in parts]
    return OwnMechanism(
        name,
        relation,
        profiles[0],
        profiles[-1],
        None,
        None,
        exact=False,
        conditions=(
            "the given functions are upper bounds of the mechanism's privacy profile at every "
            "epsilon >= 0",
        ),
    )


def _checked_profile(function: Callable[[Any], Any]) -> Profile:
    """A user's function as a profile: on arrays, with its values checked."""

    def profile(log_order: np.ndarray) -> np.ndarray:
        order = np.asarray(log_order, dtype=float)
        try:
            values = np.asarray(function(order), dtype=float)
        except (TypeError, ValueError):
            values = np.zeros(0)
        if values.shape != order.shape:
            # a function of one number
            values = np.array([float(function(float(x))) for x in order.tolist()])
        if not (np.isfinite(values) & (values >= 0) & (values <= 1)).all():
            raise ArgumentError(
                "a privacy profile must have values from 0 to 1, got others; check the function"
            )
        # it falls: a bound at a smaller order serves at a larger one
        return np.asarray(np.minimum.accumulate(values))

    profile(np.array([0.0, 1.0]))
    return RememberedProfile(profile)


def _of_plds(parts: list[Any], relation: Relation, name: str) -> OwnMechanism:
    sides: dict[bool, tuple[Cells, Cells]] = {}
    for part in parts:
        forward, backward = part._pmf_remove, getattr(part, "_pmf_add", part._pmf_remove)
        pessimistic = bool(forward._pessimistic_estimate)
        if pessimistic in sides:
            raise ArgumentError(
                "two PLDs must be a pessimistic and an optimistic one, got two of a kind; drop one"
            )
        sides[pessimistic] = _pld_cells(forward), _pld_cells(backward)
    upper, lower = sides.get(True), sides.get(False)
    return OwnMechanism(
        name,
        relation,
        AtomProfile(upper[0].p, upper[0].q) if upper else None,
        AtomProfile(upper[1].p, upper[1].q) if upper else None,
        lower[0] if lower else None,
        lower[1] if lower else None,
        exact=False,
        conditions=("the given PLDs of dp-accounting are right, roundings included",),
        # losses that were rounded down would need a Q of total mass above 1
        sampled_from_below=False,
    )


def _pld_cells(pmf: Any) -> Cells:
    """Return the pair of a PLD: its masses at its losses, and the rest of Q where P has no mass."""
    if hasattr(pmf, "_loss_probs"):
        places = np.array(list(pmf._loss_probs.keys()), dtype=float)
        p = np.array(list(pmf._loss_probs.values()), dtype=float)
    else:
        p = np.asarray(pmf._probs, dtype=float)
        places = pmf._lower_loss + np.arange(p.size, dtype=float)
    p = np.maximum(p, 0.0)
    losses = np.clip(places * pmf._discretization, -MAX_LOSS, MAX_LOSS)
    q = p * np.exp(-losses)
    rest = max(1 - math.fsum(q.tolist()) - _MISSING, 0.0)
    return Cells.exactly(
        np.concatenate([p, [float(pmf._infinity_mass), 0.0]]), np.concatenate([q, [0.0, rest]])
    )


# One step


@dataclass(frozen=True, eq=False)
class OwnEvent(Event):
    """A step of a mechanism of one's own, on a Poisson sample of this rate; rate 1: on all."""

    mechanism: OwnMechanism
    rate: float

    def profiles(self) -> tuple[Profile, Profile]:
        forward, backward = self.mechanism.forward, self.mechanism.backward
        if forward is None or backward is None:
            return _ones, _ones
        if self.rate == 1:
            return forward, backward
        return _included(forward, self.rate), _removed(backward, self.rate)

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        forward, backward = self.profiles()
        first, second = (backward, forward) if swapped else (forward, backward)
        # of what never falls, an infinite loss, no order has to be looked at
        farthest = np.array([MAX_LOSS])
        grids = [
            order_grid(profile, step, tail, float(profile(farthest)[0]))
            for profile in (first, second)
        ]
        # either direction may reach farther than the other
        return two_sided_pld(first, second, step, np.union1d(*grids))

    def cells(self, swapped: bool) -> Cells | None:
        """Return the lower bound of one direction, P first."""
        one, other = self.mechanism.cells, self.mechanism.cells_back
        if one is None or other is None or not self.attacked:
            return None
        if self.rate == 1:
            return other if swapped else one
        if swapped:
            # P is the second one here, and still what sampling changes
            return other.exchanged().sampled(self.rate).exchanged()
        return one.sampled(self.rate)

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution | None:
        return self._lower(step, swapped, exchange=not self._few)

    def lower_of_many(
        self, step: float, tail: float, swapped: bool
    ) -> PrivacyLossDistribution | None:
        return self._lower(step, swapped, exchange=True)

    def _lower(
        self, step: float, swapped: bool, *, exchange: bool
    ) -> PrivacyLossDistribution | None:
        cells = self.cells(swapped)
        if cells is None:
            return None
        p = np.maximum(cells.p - cells.p_error, 0.0) * (1 - 4 * _EPS)
        q = np.where(cells.p > 0, (cells.q + cells.q_error) * (1 + 4 * _EPS), 0.0)
        infinite = float(p[q == 0].sum()) * (1 - 2 * p.size * _EPS)
        # losses far below 0 count for nothing
        seen = (p > 0) & (q > 0) & (p > q * math.exp(-MAX_LOSS))
        p, q = p[seen], q[seen]
        if not p.size:
            law = PrivacyLossDistribution(step, np.zeros(1, dtype=int), np.zeros(1), "lower")
        elif exchange:
            law = exchange_law(p, q, step, 0.0)
        else:
            losses = np.minimum(collapsed_losses(p, q), MAX_LOSS)
            # the grid holds the smallest loss, and by `fitting` the largest, but for rounding
            slack = 8 * _EPS * (1 + float(np.abs(losses).max()))
            origin = float(losses.min())
            law = lower_law(losses, p, step, origin=origin, slack=slack, tolerance=1e-6)
        return replace(law, infinity=max(infinite, 0.0))

    @property
    def _few(self) -> bool:
        cells = self.mechanism.cells
        return cells is not None and cells.p.size <= _FEW

    def fitting(self, step: float) -> float:
        cells = self.cells(swapped=False)
        if cells is None or not self._few:
            return step
        seen = (cells.p > 0) & (cells.q > 0)
        losses = np.clip(np.log(cells.p[seen]) - np.log(cells.q[seen]), -MAX_LOSS, MAX_LOSS)
        span = float(np.ptp(losses)) if losses.size else 0.0
        return span / max(1, math.ceil(span / step - 1e-9)) if span > 0 else step

    @property
    def outputs(self) -> CellOutputs:
        both = self.cells(swapped=False), self.cells(swapped=True)
        return CellOutputs(
            tuple(
                (np.maximum(each.p - each.p_error, 0.0), each.q + each.q_error)
                for each in both
                if each is not None
            )
        )

    @property
    def symmetric(self) -> bool:
        return False

    @property
    def exact(self) -> bool:
        return self.mechanism.exact

    @property
    def attacked(self) -> bool:
        mechanism = self.mechanism
        return mechanism.cells is not None and (self.rate == 1 or mechanism.sampled_from_below)

    @property
    def largest_loss(self) -> float:
        # sampling lowers every loss
        return self.mechanism.largest_loss

    def spread(self) -> float:
        forward, backward = self.profiles()
        return DominatedEvent(lambda _: (forward, backward), None).spread()


def _ones(log_order: np.ndarray) -> np.ndarray:
    return np.ones(np.size(log_order))


def _included(profile: Profile, rate: float) -> Profile:
    """H_a((1 - q) Q + q P || Q) = q H_(1 + (a - 1) / q)(P || Q), rounded up (Theorem 42)."""

    def sampled(log_order: np.ndarray) -> np.ndarray:
        order = np.log1p(np.expm1(log_order) / rate) * (1 - 8 * _EPS)
        return np.asarray(rate * profile(order) * (1 + 4 * _EPS))

    return RememberedProfile(sampled)


def _removed(profile: Profile, rate: float) -> Profile:
    """H_a(Q || (1 - q) Q + q P) = c H_(a q / c)(Q || P), c = 1 - (1 - q) a, and 0 where c <= 0,
    rounded up (Theorem 42)."""
    top = -math.log1p(-rate)

    def sampled(log_order: np.ndarray) -> np.ndarray:
        x = np.asarray(log_order, dtype=float)
        left = -np.expm1(x - top) + 8 * _EPS * (1 + top)
        inside = left > 0
        left = np.where(inside, np.minimum(left, 1.0), 1.0)
        order = np.where(inside, x + math.log(rate) - np.log(left), 0.0)
        order = np.maximum(order - 16 * _EPS * (1 + np.abs(order) + x), 0.0)
        values = left * profile(order) * (1 + 4 * _EPS)
        return np.where(inside, values, 0.0)

    return RememberedProfile(sampled)
