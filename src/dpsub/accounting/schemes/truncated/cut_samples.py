"""Poisson samples that are cut to a largest size: of a sample above B a uniform subset of B records
is kept.

A record that is drawn adds to a sample with room left, and takes the place of another one in a full
sample. One upper bound reveals whether the *other* records fill the sample, a sharper one does not
(Theorem 71); the smaller one at each order counts (docs/proofs/cut_samples.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.special import betainc, betaincc, ndtr

from dpsub import checks
from dpsub.accounting.engine.cell_masses import MassBounds, mixture_masses
from dpsub.accounting.engine.pld import Profile, RememberedProfile
from dpsub.accounting.engine.profiles import gaussian_profile, log_lift
from dpsub.accounting.engine.statistic import Statistic
from dpsub.accounting.games.game import replaced_profile
from dpsub.accounting.games.half_lines import best_half_line
from dpsub.relations import Relation
from dpsub.sampling.laws import MultiplicityLaw, log_binomial, log_hypergeometric

_EPS = float(np.finfo(float).eps)
_SMALLEST = float(np.finfo(float).tiny)
_DEEP = 1e-270  # incomplete beta functions below about 1e-280 lose their digits
_LEAST_RATE = 1e-300  # it bounds the losses of smaller rates
_SELDOM_CUT = 1e-12  # probabilities below which Theorem 71 is not used
_WIDEST = 1000  # sums that are told apart
PROBABILITY_ERROR = 1e-10
"""Relative error allowed for a binomial tail, by the regularised incomplete beta function."""


@dataclass(frozen=True)
class CutSample:
    """A Poisson sample of n records cut to `most` of them, 1 <= most < n, as one record sees it; q
    = `rate`."""

    n: int
    rate: float
    most: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checks.real("rate", self.rate, above=0, at_most=1))

    @cached_property
    def full(self) -> float:
        """Probability that the other records fill the sample, P(Binomial(n - 1, q) >= B)."""
        return _at_least(self.most, self.n - 1, self.rate)

    @property
    def full_at_most(self) -> float:
        """`full`, rounded up, and by Chernoff's bound where it is tiny."""
        others = self.n - 1
        if self.full >= _DEEP:
            return min(1.0, self.full * (1 + PROBABILITY_ERROR))
        # exp(-n KL(B / n, q)), the two terms of the divergence apart
        drawn = self.most * (math.log(self.most / others) - math.log(self.rate))
        left = others - self.most
        rest = left * (math.log(left / others) - math.log1p(-self.rate)) if left else 0.0
        rounding = 16 * _EPS * (1 + abs(drawn) + abs(rest))
        return max(math.exp(min(-drawn - rest + rounding, 0.0)), _SMALLEST)

    @cached_property
    def room(self) -> float:
        """Probability that the other records do not fill the sample."""
        return below(self.most, self.n - 1, self.rate)

    @cached_property
    def displacing(self) -> float:
        """Probability that the record takes the place of another, (B / n) P(Binomial(n, q) > B)."""
        return self.most / self.n * _at_least(self.most + 1, self.n, self.rate)

    @property
    def displacing_rate(self) -> float:
        """The chance that the record takes the place of another given that the others fill the
        sample, rounded up: at most q B / (B + 1), as at least B + 1 records are drawn then."""
        bound = self.rate * (self.most / (self.most + 1)) * (1 + 4 * _EPS)
        # of tails that have lost their digits the quotient says nothing
        if min(self.full, self.displacing) < _DEEP:
            return bound
        return min(bound, self.displacing / self.full * (1 + 2 * PROBABILITY_ERROR))

    @property
    def included(self) -> float:
        """Probability that the record is in the sample."""
        return self.rate * self.room + self.displacing

    @property
    def included_at_least(self) -> float:
        """`included`, rounded down: an attack with a smaller probability attains no more."""
        return self.included * (1 - 4 * PROBABILITY_ERROR)


def _at_least(count: int, n: int, rate: float) -> float:
    """Return P(Binomial(n, rate) >= count), count >= 1."""
    if count > n:
        return 0.0
    return float(betainc(count, n - count + 1, rate))


def below(count: int, n: int, rate: float) -> float:
    if not 0 < count <= n:
        return 1.0 if count > n else 0.0
    return float(betaincc(count, n - count + 1, rate))


def _included(rate: float, shift: float) -> Profile:
    """Return H_a((1 - r) N(0) + r N(d) || N(0)), r = `rate`, d = `shift`, in units of the noise."""
    return lambda x: rate * gaussian_profile(log_lift(x, rate), np.array(shift))


def _removed(rate: float, shift: float) -> Profile:
    """Return H_a(N(0) || (1 - r) N(0) + r N(d)) = k G(a r / k, d), k = 1 - a (1 - r), which grows
    with k."""

    def profile(x: np.ndarray) -> np.ndarray:
        # k is a difference, raised by more than its rounding loses: the value grows with it
        weight = rate * (1 + 8 * _EPS) - np.expm1(x) * (1 - rate)
        positive = np.maximum(weight, _EPS * rate)
        value = positive * gaussian_profile(x + np.log(rate / positive), np.array(shift))
        # from the order 1 / (1 - r) on nothing is left
        return np.where(weight > 0, value, 0.0)

    return profile


def proved_profiles(
    sample: CutSample, relation: Relation, s: float
) -> tuple[Profile, Profile | None]:
    """Return upper bounds of H_a, a >= 1, in both directions, None for the second where it is the
    first: Theorem 18, by the weighted sum of the two columns of its table."""
    # what a record does grows with its rate, so that both may be rounded up
    q, rate = max(sample.rate, _LEAST_RATE), max(sample.displacing_rate, _LEAST_RATE)
    one, two = 1 / s, 2 / s
    weights = (sample.room, sample.full_at_most)
    if relation is Relation.SUBSTITUTE:
        # with room 1 and -1 are the numbers in the places of x and y, which lie 2 apart
        return _weighted(weights, (replaced_profile(q, one, two), _included(rate, two))), None
    if relation is Relation.ADD_REMOVE:
        full = (_included(rate, two), _removed(rate, two))
    else:
        # in a full sample zero-out works as in one of fixed size: Theorem 16
        full = (replaced_profile(rate, two, one), _included(rate, one))
    room = (_included(q, one), _removed(q, one))
    first, second = (_weighted(weights, parts) for parts in zip(room, full, strict=True))
    return first, second


def merged_profiles(
    sample: CutSample, relation: Relation, s: float
) -> tuple[Profile, Profile | None]:
    """Return the bounds of `proved_profiles`, or those of Theorem 71, where it is not revealed
    whether B - 1 or more of the other records are drawn: the smaller ones at each order."""
    forward, backward = proved_profiles(sample, relation, s)
    last = float(np.exp(log_binomial(sample.most - 1, sample.n - 1, sample.rate)))
    if min(last, sample.full, sample.displacing, sample.rate) < _SELDOM_CUT:
        return forward, backward  # probabilities of rare events lose their digits
    merged = _Merged(sample, last, s)
    room = max(sample.room - last, 0.0) + 2 * PROBABILITY_ERROR
    q, one, weights = sample.rate, 1 / s, (room, 1.0)
    if relation is Relation.SUBSTITUTE:
        replaced = replaced_profile(q, one, 2 * one), merged.replaced
        return _least(forward, _weighted(weights, replaced)), None
    assert backward is not None
    zeroed = relation is Relation.ZERO_OUT
    added = _included(q, one), partial(merged.included, zeroed=zeroed)
    missing = _removed(q, one), merged.zeroed if zeroed else merged.removed
    return (
        _least(forward, _weighted(weights, added)),
        _least(backward, _weighted(weights, missing)),
    )


def _least(one: Profile, other: Profile) -> RememberedProfile:
    return RememberedProfile(lambda x: np.minimum(one(x), other(x)))


@dataclass(frozen=True)
class _Merged:
    """The contribution of B - 1 or more drawn others to H_a, a >= 1: N(0) stands for the sum of
    B - 1 of them, N(g) for that of B, N(v) for B - 1 of them and the record (Theorem 71)."""

    sample: CutSample
    last: float
    noise_multiplier: float

    @property
    def _drawn(self) -> float:
        """Weight of N(v), rounded up."""
        weight = self.last * self.sample.rate + self.sample.displacing
        return weight * (1 + 3 * PROBABILITY_ERROR)

    @property
    def _full(self) -> float:
        return self.sample.full * (1 - 3 * PROBABILITY_ERROR)

    @property
    def _stays(self) -> float:
        return max(self.sample.full - self.sample.displacing, 0.0) * (1 - 3 * PROBABILITY_ERROR)

    @property
    def _room(self) -> float:
        return self.last * (1 - 3 * PROBABILITY_ERROR)

    def _best(self, positive: np.ndarray | float, *points: tuple[np.ndarray, float]) -> np.ndarray:
        """Return sup over events of `positive` N(x) - sum of w N(y), y at most this far from x
        (over C)."""
        # a weight of 0 is raised to next to nothing, which what is charged for terms covers
        logs = [
            (
                np.log(np.maximum(weight, _LEAST_RATE)) - np.log(positive),
                far / self.noise_multiplier,
            )
            for weight, far in points
        ]
        return np.asarray(positive * best_half_line(*logs))

    def included(self, x: np.ndarray, *, zeroed: bool) -> np.ndarray:
        """Contribution where the record is in the first data set, and missing from the second one,
        or at 0."""
        more, q = np.expm1(x), self.sample.rate
        moved = self.sample.displacing * (1 - 3 * PROBABILITY_ERROR)
        near = self._room * (more + q)
        far = more * self._full + moved
        if zeroed:
            near, far = near + np.exp(x) * moved, more * self._stays
        return self._best(self._drawn, (near, 1.0), (far, 2.0))

    def replaced(self, x: np.ndarray) -> np.ndarray:
        more = np.expm1(x)
        near = self._room * (1 - self.sample.rate) * more
        opposite = np.exp(x) * self._drawn * (1 - 6 * PROBABILITY_ERROR)
        return self._best(self._drawn, (near, 1.0), (more * self._stays + opposite, 2.0))

    def zeroed(self, x: np.ndarray) -> np.ndarray:
        """Contribution where the record is at 0 in the first data set."""
        more, up = np.expm1(x), 1 + 3 * PROBABILITY_ERROR
        weight = (self.last * self.sample.rate * np.exp(x) + self.sample.displacing) * up
        weight = weight - more * self._room
        positive = np.maximum(weight, _LEAST_RATE)
        other = np.exp(x) * self._drawn * (1 - 6 * PROBABILITY_ERROR) + more * self._stays
        return np.where(weight > 0, self._best(positive, (other, 1.0)), 0.0)

    def removed(self, x: np.ndarray) -> np.ndarray:
        """Contribution where the record is missing from the first data set."""
        more, order, up = np.expm1(x), np.exp(x), 1 + 3 * PROBABILITY_ERROR
        near = order * self.last * self.sample.rate * up - more * self._room
        far = order * self.sample.displacing * up - more * self._full
        drawn = order * self._drawn * (1 - 6 * PROBABILITY_ERROR)
        least = np.maximum(near, _LEAST_RATE)
        # g apart from v where it counts for the first data set, else next to it
        one_sided = self._best(least, (np.maximum(-far, 0.0) + drawn, 1.0))
        both = near + far - drawn + self._best(drawn, (near, 1.0), (far, 2.0))
        rounding = 64 * _EPS * (np.abs(near) + np.abs(far) + drawn)
        value = np.where(far > 0, np.maximum(both, 0.0) + rounding, one_sided)
        # the first weight is the larger one but for rounding: then nothing is claimed
        return np.where(near > 0, value, np.where(far > 0, 1.0, 0.0))


def _weighted(weights: tuple[float, float], parts: tuple[Profile, Profile]) -> RememberedProfile:
    """Return the mean of the bounds with room and in a full sample; the error of both probabilities
    is charged (docs/proofs/numerics.md)."""
    room, full = weights
    with_room, in_full = parts
    return RememberedProfile(
        lambda x: (room * with_room(x) + full * in_full(x)) * (1 + 2 * PROBABILITY_ERROR)
    )


def drawn_of_group(sample: CutSample, group: int) -> MultiplicityLaw:
    """Return a law below that of the number of records of a group in a sample of all n: weights of
    numbers above 0 are rounded down, and what they lack is put at 0."""
    n, q, most = sample.n, sample.rate, sample.most
    counts = np.arange(1, min(group, most) + 1)
    # with room left all that are drawn are kept
    room = np.array([below(most - k, n - group, q) for k in counts.tolist()])
    with np.errstate(divide="ignore"):
        kept = np.exp(log_binomial(counts, group, q)) * room
        full = _at_least(most, n, q) * np.exp(log_hypergeometric(counts, n, group, most))
    weights = (kept + full) * (1 - 4 * PROBABILITY_ERROR)
    with np.errstate(divide="ignore"):
        return MultiplicityLaw(np.log(np.append(1 - weights.sum(), weights)))


@dataclass(frozen=True)
class FilledSample(Statistic):
    """The sum where the records of a group are 1, against `other`: -1, 0, or None where they are
    not there, and all other records are -1. Of samples whose sum is far above -B only those up to
    `window` above it are told apart."""

    sample: CutSample
    other: int | None
    noise_multiplier: float
    group: int = 1

    @cached_property
    def window(self) -> int:
        wide = math.ceil(min(10 * self.noise_multiplier, _WIDEST)) + 10
        return min(self.sample.most, wide)

    @cached_property
    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Return P and Q of the sum + B = 0, 1, ..., window + 2 g, as far as sums are told apart,
        up to `PROBABILITY_ERROR`."""
        n, q, most, group = self.sample.n, self.sample.rate, self.sample.most, self.group
        first, second = np.zeros(self.window + 2 * group + 1), np.zeros(self.window + 2 * group + 1)
        fillers = n - group
        # samples of k records with room left, k < B, and of l of the group, whose sum is 2 l - k
        drawn = np.arange(most - 1, most - self.window - 1, -1)
        full = _at_least(most, n, q)
        for count in range(min(group, most) + 1):
            others = np.maximum(drawn - count, 0)
            with np.errstate(divide="ignore"):
                room = np.exp(log_binomial(count, group, q) + log_binomial(others, fillers, q))
                held = full * np.exp(log_hypergeometric(count, n, group, most))
            room[drawn < count] = 0.0
            np.add.at(first, most - drawn + 2 * count, room)
            first[2 * count] += held
            if self.other is not None:
                np.add.at(second, most - drawn + (1 + self.other) * count, room)
                second[(1 + self.other) * count] += held
        if self.other is None:
            with np.errstate(divide="ignore"):
                np.add.at(second, most - drawn, np.exp(log_binomial(drawn, fillers, q)))
            second[0] += _at_least(most, fillers, q)
        return first, second

    @cached_property
    def beyond(self) -> float:
        """Return an upper bound of the probability of the sums that are not told apart, all at
        `window` or to its right."""
        fewest = self.sample.most - self.window
        if fewest <= 0:
            return 0.0
        # of fewer records fewer are drawn
        rest = below(fewest, self.sample.n - self.group, self.sample.rate)
        return max(rest * (1 + PROBABILITY_ERROR), _DEEP)

    def range(self, tail: float) -> tuple[float, float]:
        reach = math.sqrt(-2 * math.log(tail)) * self.noise_multiplier
        if self.window < self.sample.most:
            return -reach, float(self.window)
        return -reach, self.window + 2 * self.group + reach

    def masses(self, edges: np.ndarray) -> tuple[MassBounds, MassBounds]:
        # of sums that are not told apart nothing is certain, and all may be in any cell that they
        # reach
        reached = self.beyond * ndtr((edges[1:] - self.window) / self.noise_multiplier)

        def bounds(weights: np.ndarray) -> MassBounds:
            places = np.flatnonzero(weights)
            masses, errors = mixture_masses(
                edges, places.astype(float), weights[places], self.noise_multiplier
            )
            errors = errors + PROBABILITY_ERROR * masses
            return np.maximum(masses - errors, 0.0), masses + errors + reached

        under_p, under_q = self.weights
        return bounds(under_p), bounds(under_q)
