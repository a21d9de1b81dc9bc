"""A record that contributes 0, in samples that may hold it several times: both bounds of one step.

The upper bound is Theorem 47, with the stages before the last revealed; the lower bound is an
attack with fillers at -C and the record at C (docs/proofs/zero_out.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from dpsub.accounting.engine import work
from dpsub.accounting.engine.cell_masses import LAW_ERROR, MassBounds, mixture_masses
from dpsub.accounting.engine.pairs import log_tilted_sum
from dpsub.accounting.engine.profiles import PROFILE_ERROR, ChainProfile
from dpsub.accounting.engine.statistic import Statistic
from dpsub.accounting.games.half_lines import best_half_line
from dpsub.sampling.base import Chain, Stage
from dpsub.sampling.laws import MultiplicityLaw

_LAW_ERROR = 1e-11  # relative error allowed for probabilities of counts
_LARGEST_ORDER = 690.0  # log order beyond which doubles overflow; profiles fall with the order
_THRESHOLDS, _BISECTIONS = 100, 50
# rarer branches are bounded at few orders, with chords between them
_MINOR, _FEW_ORDERS = 1e-4, 160


class _Distances(NamedTuple):
    """Largest distances, over C, from the record's vector in the first data set: to its vector in
    the second one, and to a filler."""

    other: float
    filler: float


_WITH_RECORD, _WITHOUT = _Distances(1.0, 2.0), _Distances(1.0, 1.0)


@dataclass(frozen=True, eq=False)
class ZeroedProfile:
    """H_a of a chain, a >= 1, rounded up, where a record in the first data set contributes 0 in the
    second one, or, `removed`, the other way round (Theorem 47).

    Counts of probability below `tail` are charged as a sure loss. A chain of three or more stages
    that would take minutes is refused.
    """

    chain: Chain
    noise_multiplier: float
    tail: float = 1e-18
    removed: bool = False

    def __post_init__(self) -> None:
        # the same combinations of counts are refused as under substitution
        ChainProfile(self.chain, self.noise_multiplier, self.tail)

    def __call__(self, log_order: np.ndarray) -> np.ndarray:
        """Upper bounds at the given ln a >= 0, increasing, shape (n,)."""
        x = np.minimum(np.asarray(log_order, dtype=float), _LARGEST_ORDER)
        bound = self._bound(x, self.chain.n, 1, self.chain.stages, 1.0, 1.0)
        return np.minimum(bound * (1 + _LAW_ERROR), 1.0)

    def _bound(
        self,
        x: np.ndarray,
        n_slots: int,
        marked: int,
        stages: Sequence[Stage],
        reached: float,
        weight: float,
    ) -> np.ndarray:
        """Return B of Theorem 47 on a branch of this weight; `reached` is the product of the
        chances that earlier stages drew a marked slot."""
        law = stages[0].count_law(n_slots, marked)
        if len(stages) == 1:
            few = np.unique(np.linspace(0, x.size - 1, _FEW_ORDERS).astype(int))
            if weight < _MINOR and few.size < x.size:
                return _chords(x, x[few], self._last(x[few], law, reached, weight))
            return self._last(x, law, reached, weight)
        inside = law[1:]
        # charges grow as eta falls, bounds fall with charges: eta is rounded up
        eta = 1.0 if law[0] == 0 else min(1.0, float(inside.sum()) * (1 + _LAW_ERROR))
        total = np.zeros_like(x)
        for marked_after in np.flatnonzero(inside) + 1:
            share = float(law[marked_after])
            if share * weight <= self.tail:
                total += share
                continue
            total += share * self._bound(
                x, stages[0].size, int(marked_after), stages[1:], reached * eta, weight * share
            )
        return np.minimum(total, 1.0)

    def _last(self, x: np.ndarray, law: np.ndarray, reached: float, weight: float) -> np.ndarray:
        kept = np.flatnonzero(law[1:] * weight > self.tail) + 1
        # counts that are left out are charged as a sure loss
        total = np.full(x.shape, float(np.delete(law, np.append(kept, 0)).sum()))
        if not kept.size:
            return np.minimum(total, 1.0)
        far = _WITHOUT if self.removed else _WITH_RECORD
        with np.errstate(divide="ignore"):
            log_excess = np.log(np.expm1(x)) - math.log(reached)
            # b - a of the theorem, and what the charges may cost
            log_fillers = log_excess + np.log(max(1 - reached, 0.0))
            log_budget = log_excess + np.log(law[0]) - 2 * _LAW_ERROR
        counts = kept / self.noise_multiplier
        charges = _charges(x, log_fillers, log_budget, counts, law[kept], far)
        for count, log_charge, probability in zip(counts, charges.T, law[kept], strict=True):
            work.spend(work.TERM * 20 * x.size)
            against_fillers = np.logaddexp(log_fillers, log_charge)
            points = [(x, count * far.other), (against_fillers, count * far.filler)]
            total += probability * best_half_line(*_merged(points))
        return np.minimum(total * (1 + PROFILE_ERROR), 1.0)


def _merged(points: Sequence[tuple[np.ndarray, float]]) -> list[tuple[np.ndarray, float]]:
    """Merge points of the same distance, and leave out those without weight."""
    by_distance: dict[float, np.ndarray] = {}
    for log_weight, distance in points:
        if distance in by_distance:
            by_distance[distance] = np.logaddexp(by_distance[distance], log_weight)
        else:
            by_distance[distance] = log_weight
    return [(weight, d) for d, weight in by_distance.items() if np.isfinite(weight).any()]


def _charges(
    x: np.ndarray,
    log_fillers: np.ndarray,
    log_budget: np.ndarray,
    counts: np.ndarray,
    probabilities: np.ndarray,
    far: _Distances,
) -> np.ndarray:
    """Return ln tau_l, shape (orders, counts), of mean e^log_budget: as far as they are above 0 one
    half-line {t > c} is the best for all l. Any charges of this mean are valid."""
    if not np.isfinite(log_budget).any():
        return np.full((x.size, counts.size), -np.inf)
    base, log_p = counts * far.filler, np.log(probabilities)
    few = np.unique(np.linspace(0, x.size - 1, _THRESHOLDS).astype(int))

    def paid(c: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Return ln p_l tau_l at thresholds c."""
        t = base - c[:, None]
        other = counts * far.other
        taken = np.logaddexp(
            x[at, None] + t * other - other**2 / 2,
            log_fillers[at, None] + t * base - base**2 / 2,
        )
        with np.errstate(divide="ignore"):
            room = np.log(-np.expm1(np.minimum(taken, 0.0)))
        return np.asarray(log_p + c[:, None] * base - base**2 / 2 + room)

    low = np.full(few.size, -40.0)
    most = np.maximum(log_budget[few] - log_p.min(), 0.0) + x[few] + 40
    high = base[-1] + 2 * most / base[0]
    for _ in range(_BISECTIONS):
        work.spend(work.TERM * 8 * few.size * counts.size)
        middle = (low + high) / 2
        above = np.logaddexp.reduce(paid(middle, few), axis=1) > log_budget[few]
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    shares = paid(np.interp(x, x[few], high), np.arange(x.size))
    # a budget that comes to nothing everywhere is shared evenly
    log_total = logsumexp(shares, axis=1, keepdims=True)
    empty = ~np.isfinite(log_total[:, 0])
    shares[empty] = log_p
    log_total[empty] = logsumexp(log_p)
    return np.asarray(shares - log_p - log_total + log_budget[:, None])


def _chords(x: np.ndarray, few: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return bounds at the orders e^x by chords between those at a few of them, the ends included:
    the bounded function is convex in the order."""
    left = np.clip(np.searchsorted(few, x, side="right") - 1, 0, few.size - 2)
    width = np.expm1(few[left + 1] - few[left])
    share = np.clip(np.expm1(x - few[left]) / width, 0.0, 1.0)
    return np.asarray(values[left] + share * (values[left + 1] - values[left]))


@dataclass(frozen=True, eq=False)
class ZeroedCopies(Statistic):
    """The sum of a sample of m records, in direction u and with m added, where fillers are at -C
    and a record that is drawn l times, l of the law given, is at C or contributes 0: sum p_l N(2 l)
    against sum p_l N(l)."""

    law: MultiplicityLaw
    noise_multiplier: float

    @property
    def components(self) -> tuple[np.ndarray, np.ndarray]:
        """Means of the Gaussians with the record, and logarithms of their weights."""
        return 2 * self._counts, self.law.log_pmf[self._counts.astype(int)]

    @property
    def components_prime(self) -> tuple[np.ndarray, np.ndarray]:
        """Means of the Gaussians where the record contributes 0, and logarithms of their
        weights."""
        return self._counts, self.components[1]

    @cached_property
    def _counts(self) -> np.ndarray:
        return np.flatnonzero(np.isfinite(self.law.log_pmf)).astype(float)

    def loss(self, t: np.ndarray) -> np.ndarray:
        """Return the log of the density with the record over that without, shape of `t`."""
        t, s = np.asarray(t, dtype=float), self.noise_multiplier
        (means, log_weights), (fewer, _) = self.components, self.components_prime
        tilt = t.ravel() / s**2
        first, _ = log_tilted_sum(log_weights - 0.5 * (means / s) ** 2, means, tilt)
        second, _ = log_tilted_sum(log_weights - 0.5 * (fewer / s) ** 2, fewer, tilt)
        return np.asarray((first - second).reshape(t.shape))

    def range(self, tail: float) -> tuple[float, float]:
        reach = math.sqrt(-2 * math.log(tail)) * self.noise_multiplier
        means, log_weights = self.components
        likely = means[np.exp(log_weights) > tail]
        return -reach, float(likely[-1]) + reach

    def masses(self, edges: np.ndarray) -> tuple[MassBounds, MassBounds]:
        bounds = []
        for means, log_weights in (self.components, self.components_prime):
            masses, errors = mixture_masses(
                edges, means, np.exp(log_weights), self.noise_multiplier
            )
            errors = errors + LAW_ERROR * masses
            bounds.append((np.maximum(masses - errors, 0.0), masses + errors))
        return bounds[0], bounds[1]
