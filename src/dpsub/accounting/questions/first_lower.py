"""A closed-form lower bound: tests of known outputs (docs/proofs/first_ends.md)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.outputs import CellOutputs, EpochOutputs, LaplaceOutputs
from dpsub.accounting.engine.pairs import GaussianPair, ZeroedPair
from dpsub.accounting.engine.privacy_events import (
    DominatedEvent,
    EnclosedEvent,
    Event,
    PairEvent,
)
from dpsub.accounting.questions.first_ends import EPS, SLACK, FirstEnd, divergence
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.case import Case
from dpsub.sampling.laws import log_binomial

_SEVERAL = "a sum of the outputs"
_LARGE = "how many outputs are large"
_FEW_KINDS = 2  # of the strongest, which are attacked alone
_RARE = 1e-15
_DEEP = 1e-290  # probabilities below it may have lost their digits
_BLOCKS = 56  # points of the law of a count
_THRESHOLDS = 40


class _Tests(NamedTuple):
    """Tests of one step or epoch: logarithms of the probability of accepting under one data set,
    rounded down, and under the other one, rounded up; and of their difference, rounded down."""

    accept: np.ndarray
    charge: np.ndarray
    difference: np.ndarray

    @classmethod
    def of(
        cls, accept: np.ndarray, charge: np.ndarray, difference: np.ndarray | None = None
    ) -> _Tests:
        # logarithms of tails are off by less than 1e-13 of themselves
        accept = accept - 1e-12 * (1 + np.abs(np.maximum(accept, -1e300)))
        rounding = 1e-12 * (1 + np.abs(np.maximum(charge, -1e300)))
        charge = np.minimum(charge + rounding, 0.0)
        if difference is None:
            difference = np.full(accept.shape, -np.inf)
        return cls(accept, charge, difference)

    def values(self, target: Target) -> np.ndarray:
        """Return the bound that each of these tests attains, rounded down.

        It is P - e^epsilon Q = (P - Q) - (e^epsilon - 1) Q.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            accept, charge = np.exp(self.accept), np.exp(self.charge)
            difference = np.exp(self.difference) * (1 - SLACK)
            if target.delta is not None:
                # log((P - delta) / Q), of small ones in the second form
                rest = accept - target.delta * (1 + 4 * EPS)
                large = np.log(np.maximum(rest, 0.0)) - self.charge
                rounding = 16 * EPS * (1 + accept / np.maximum(rest, 0.0) + np.abs(self.charge))
                gain = (difference - target.delta) * (1 - SLACK)
                # of charges that do not underflow
                small = np.log1p(np.where(charge > _DEEP, gain / charge, 0.0))
                values = np.fmax(np.where(rest > 0, large - rounding, -np.inf), small)
                return np.fmax(values * (1 - SLACK), 0.0)
            assert target.epsilon is not None
            epsilon = target.epsilon * (1 + 4 * EPS)
            gain = -np.expm1(np.minimum(epsilon + self.charge - self.accept, 0.0))
            # the exponent is a difference of numbers that were rounded
            gain -= 8 * EPS * (1 + epsilon + np.abs(self.accept))
            values = accept * gain
            if epsilon < 1:
                values = np.fmax(values, difference - math.expm1(epsilon) * charge)
            return np.fmax(values * (1 - SLACK), 0.0)

    def best(self, target: Target) -> float:
        return float(self.values(target).max(initial=0.0))


class _Sums(NamedTuple):
    """Sums of outputs: N(S, v) under one data set, and N(0, v) or less, or N(-S, v) if `mirrored`,
    under the other one; S >= 0 a sum of independent numbers, each of one step.

    `values` and `weights` are those of one step's number, 0 left out.
    """

    times: int
    values: np.ndarray
    weights: np.ndarray
    variance: float  # of one step
    mirrored: bool

    @property
    def mean(self) -> float:
        return float(self.values @ self.weights)

    @property
    def square(self) -> float:
        return float(self.values**2 @ self.weights)


def first_lower(cases: Sequence[Case], releases: Sequence[Release], target: Target) -> FirstEnd:
    """Return a lower bound on epsilon at delta, or on delta at epsilon, that data sets attain; 0 if
    no attack is known or these tests show nothing.

    The parameters are those of `first_upper`.
    """
    kinds = [_Kind.of(case, release) for case, release in zip(cases, releases, strict=True)]
    best = FirstEnd(0.0, "")

    def improve(tests: _Tests, given_by: str) -> None:
        nonlocal best
        best = max(best, FirstEnd(tests.best(target), given_by), key=lambda end: end.value)

    # of many kinds the strongest ones alone, and all together
    for kind in _strongest(kinds):
        for tests in _step_tests(kind.event):
            improve(_repeated(tests, kind.times), _LARGE)
        if kind.sums is not None:
            for tests in _sum_tests([kind.sums], target):
                improve(tests, _SEVERAL)
    sums = [kind.sums for kind in kinds if kind.sums is not None]
    if len(sums) > 1:
        for tests in _sum_tests(sums, target):
            improve(tests, _SEVERAL)
    return best


class _Kind(NamedTuple):
    """Steps of one kind, as lower bounds see them; their sums, if they have them, are those of the
    data sets that move them most."""

    event: Event
    times: int
    distance: float
    sums: _Sums | None

    @classmethod
    def of(cls, case: Case, release: Release) -> _Kind:
        sums = max(
            _sums_of(case.event, release.times),
            key=lambda each: each.mean**2 / each.variance,
            default=None,
        )
        return cls(case.event, release.times, case.shift / release.noise_multiplier, sums)

    @property
    def signal(self) -> float:
        """Square of the mean of all outputs, in deviations."""
        return 0.0 if self.sums is None else self.times * self.sums.mean**2 / self.sums.variance


def _strongest(kinds: Sequence[_Kind]) -> list[_Kind]:
    """Kinds with the largest distances, and with the largest means of their outputs."""
    ranks = (lambda place: kinds[place].distance), (lambda place: kinds[place].signal)
    places = range(len(kinds))
    few = {place for rank in ranks for place in sorted(places, key=rank)[-_FEW_KINDS:]}
    return [kinds[place] for place in sorted(few)]


def _choices(event: Event) -> Iterator[Event]:
    """Yield events of data sets that attain the bounds of the attacks on a step."""
    if not event.attacked:
        return
    if event.outputs is not None:
        yield event
    elif isinstance(event, DominatedEvent):
        if event.attack is not None:
            yield PairEvent(event.attack)
    elif isinstance(event, EnclosedEvent) or event.attack_choices != (event,):
        for each in event.attack_choices:
            yield from _choices(each)
    else:
        yield event


def _gaussian_pair(event: Event) -> GaussianPair | None:
    """Return a pair whose second distribution has means of at most 0, or is the mirror image of the
    first; None if there is none."""
    if not isinstance(event, PairEvent):
        return None
    # fillers and record at -C: N(0) where the record is 0 as they are
    return event.pair.without_record if isinstance(event.pair, ZeroedPair) else event.pair


def _sums_of(event: Event, times: int) -> Iterator[_Sums]:
    for choice in _choices(event):
        pair, outputs = _gaussian_pair(choice), choice.outputs
        if pair is not None:
            counts, log_weights = pair.components
            seen = (counts > 0) & np.isfinite(log_weights)
            weights = np.exp(log_weights[seen]) * (1 - SLACK)
            yield _Sums(times, counts[seen], weights, pair.deviation**2, pair.mirrored)
        elif isinstance(outputs, EpochOutputs):
            shift = np.array([outputs.k * (outputs.x - outputs.y)])
            variance = outputs.t * outputs.deviation**2
            yield _Sums(times, shift, np.ones(1), variance, mirrored=False)


def _sum_tests(sums: Sequence[_Sums], target: Target) -> Iterator[_Tests]:
    """Yield tests of a weighted sum of the outputs."""
    # in proportion to what a unit of each output tells on the average
    factors = [each.mean / each.variance for each in sums]
    variance = math.fsum(
        each.times * factor**2 * each.variance for each, factor in zip(sums, factors, strict=True)
    )
    if not variance > 0:
        return
    unit = math.sqrt(variance)
    scaled = [
        each._replace(values=each.values * (factor / unit))
        for each, factor in zip(sums, factors, strict=True)
    ]
    mirrored = all(each.mirrored for each in sums)
    laws: list[Law] = []
    if len(scaled) == 1:
        laws += _of_one_kind(scaled[0], target)
    if len(scaled) > 1 or scaled[0].values.size > 1:
        laws.append(_by_moments(scaled))
    for places, masses in laws:
        yield from _half_lines(places, masses, mirrored, target)


Law = tuple[np.ndarray, np.ndarray]
"""Places above 0, shape (n,), and their masses, of a law that lies below another one: the
rest of 1 is at 0."""


def _of_one_kind(sums: _Sums, target: Target) -> Iterator[Law]:
    """Laws below that of a sum of as many independent numbers of one law."""
    if sums.times == 1:
        yield _thinned(sums.values, sums.weights)
    drawn = min(float(sums.weights.sum()), 1.0)
    least = float(sums.values[0])
    if drawn >= 1 - 2 * SLACK and len(sums.values) == 1:
        # in every step: by (1 - weight)^times at most it is not in all
        yield np.array([sums.times * least]), np.array([1.0])
    elif sums.times > 1:
        # an occurrence counts once
        if target.delta is None or target.delta > _RARE:
            yield _binomial(sums.times, drawn, least, 40.0)
        if target.delta is None or target.delta <= _RARE:
            yield _binomial(sums.times, drawn, least, 745.0)


def _thinned(values: np.ndarray, weights: np.ndarray) -> Law:
    """The law with neighbours merged into the smallest one."""
    if values.size <= _BLOCKS:
        return values, weights
    starts = np.unique(np.round(np.linspace(0, values.size, _BLOCKS, endpoint=False)).astype(int))
    return values[starts], np.add.reduceat(weights, starts)


def _binomial(times: int, rate: float, unit: float, log_rare: float) -> Law:
    """A law below that of `unit` times a binomial number, in blocks: it is log-concave, so that a
    block has at least the geometric mean of its ends for each of its numbers."""
    mean = times * rate
    low = max(1, math.floor(mean - math.sqrt(2 * mean * log_rare)))
    high = min(times, math.ceil(mean + log_rare / 3 + math.sqrt(2 * mean * log_rare)) + 1)
    starts = np.unique(np.linspace(low, high + 1, _BLOCKS + 1).astype(np.int64))
    first, last = starts[:-1], np.maximum(starts[1:] - 1, starts[:-1])
    ends = log_binomial(np.stack([first, last]), times, rate)
    log_masses = ends.mean(axis=0) + np.log(last - first + 1.0) - SLACK
    return first * unit, np.exp(log_masses)


def _by_moments(sums: Sequence[_Sums]) -> Law:
    """A law below that of a sum, by Cantelli's inequality, Bernstein's, and Maurer's for sums of
    numbers that are not negative."""
    mean = math.fsum(each.times * each.mean for each in sums)
    square = math.fsum(each.times * each.square for each in sums)
    variance = max(square - math.fsum(each.times * each.mean**2 for each in sums), 0.0)
    variance += SLACK * square
    largest = max(each.mean for each in sums)
    below = np.geomspace(1e-2, 40.0, _BLOCKS)[::-1] * math.sqrt(variance)
    below = below[below < mean]
    if not below.size:
        return np.zeros(0), np.zeros(0)
    missing = np.minimum(
        variance / (variance + below**2),
        np.exp(-(below**2) / 2 / np.minimum(variance + largest * below / 3, square)),
    )
    # of P(S >= mean - t) what is proved of a larger place holds of smaller ones
    at_least = np.maximum.accumulate((1 - missing * (1 + SLACK))[::-1])[::-1]
    masses = at_least - np.append(at_least[1:], 0.0)
    return (mean - below) * (1 - SLACK), np.maximum(masses, 0.0)


def _half_lines(
    places: np.ndarray, masses: np.ndarray, mirrored: bool, target: Target
) -> Iterator[_Tests]:
    """Tests of N(S, 1) by thresholds, in both directions, coarse ones first."""
    if not places.size:
        return
    rest = 1 - float(masses.sum())
    with np.errstate(divide="ignore"):
        log_masses = np.log(masses)
        # nothing is missing of a law of one place
        log_rest = float(np.log(max(rest, 4 * masses.size * EPS) if rest else 0.0))
    low, high = -4.0, float(places[-1]) + 38.0
    for upwards in (True,) if mirrored else (True, False):
        edges = np.concatenate(
            [np.linspace(low, 9.0, _THRESHOLDS // 2), np.linspace(low, high, _THRESHOLDS)]
        )
        edges = np.append(edges, float(places @ masses) / 2)
        edges.sort()
        for _ in range(2):
            tests = (_above if upwards else _below)(edges, places, log_masses, log_rest, mirrored)
            yield tests
            best = int(np.argmax(tests.values(target)))
            edges = np.linspace(
                edges[max(best - 1, 0)], edges[min(best + 1, edges.size - 1)], _THRESHOLDS
            )


def _above(
    edges: np.ndarray, places: np.ndarray, log_masses: np.ndarray, log_rest: float, mirrored: bool
) -> _Tests:
    """Acceptance above each edge: under N(S) it grows with S, so that a law below S has less."""
    distance = places[None, :] - edges[:, None]
    at_rest = log_ndtr(-edges)
    accept = np.logaddexp(
        np.logaddexp.reduce(log_ndtr(distance) + log_masses, axis=1), at_rest + log_rest
    )
    charge = at_rest
    factor = places
    smaller = np.maximum(np.abs(edges)[:, None], np.abs(distance))
    if mirrored:
        opposite = -places[None, :] - edges[:, None]
        charge = np.logaddexp(
            np.logaddexp.reduce(log_ndtr(opposite) + log_masses, axis=1), at_rest + log_rest
        )
        factor = 2 * places
        smaller = np.maximum(np.abs(opposite), np.abs(distance))
    # the mass between two places is at least their distance times the smaller density at its ends
    between = log_masses + np.log(factor) - 0.5 * smaller**2 - 0.5 * math.log(2 * math.pi)
    return _Tests.of(accept, charge, np.logaddexp.reduce(between, axis=1) - SLACK)


def _below(
    edges: np.ndarray, places: np.ndarray, log_masses: np.ndarray, log_rest: float, mirrored: bool
) -> _Tests:
    """Acceptance below each edge, of N(0) against N(S)."""
    distance = edges[:, None] - places[None, :]
    accept = log_ndtr(edges)
    charge = np.logaddexp(
        np.logaddexp.reduce(log_ndtr(distance) + log_masses, axis=1), accept + log_rest
    )
    return _Tests.of(accept, charge)


# how many steps are large


def _step_tests(event: Event) -> Iterator[_Tests]:
    """Tests of one step, or of one epoch by its largest step; in both directions."""
    for choice in _choices(event):
        pair, outputs = _gaussian_pair(choice), choice.outputs
        if pair is not None:
            yield from _pair_tests(pair)
        elif isinstance(outputs, EpochOutputs):
            yield from _epoch_tests(outputs)
        elif isinstance(outputs, LaplaceOutputs):
            yield from _laplace_tests(*outputs)
        elif isinstance(outputs, CellOutputs):
            yield from itertools.starmap(_cell_tests, outputs.directions)


def _thresholds(deviation: float, x: float) -> np.ndarray:
    """Places between 0 and x, and some deviations to either side of them."""
    around = np.concatenate([np.linspace(-8, 8, 33), np.arange(9.0, 39.0, 3.0)])
    near_0 = np.linspace(-3, 9, 25)
    points = np.concatenate([near_0 * deviation, x + around * deviation, [x / 2]])
    return np.unique(points)


def _pair_tests(pair: GaussianPair) -> Iterator[_Tests]:
    counts, log_weights = pair.components
    if counts.size > 256:
        # rare counts that lie far out are told by sums
        return
    edges = _thresholds(pair.deviation, float(counts[counts > 0][0]))

    def tails(sign: float, centres: np.ndarray, log_shares: np.ndarray) -> np.ndarray:
        z = sign * np.subtract.outer(edges, centres) / pair.deviation
        return np.asarray(np.logaddexp.reduce(log_ndtr(z) + log_shares, axis=1))

    first, second = (counts, log_weights), pair.components_prime
    slack = SLACK
    yield _Tests.of(tails(-1, *first) - slack, tails(-1, *second) + slack)
    if not pair.mirrored:
        yield _Tests.of(tails(1, *second) - slack, tails(1, *first) + slack)


def _epoch_tests(epoch: EpochOutputs) -> Iterator[_Tests]:
    """By the largest of t outputs."""
    t, k, x, y, s = epoch
    far = s * (math.sqrt(2 * math.log(t)) + 2)
    edges = np.unique(np.concatenate([_thresholds(s, x), np.linspace(0, far, 20)]))
    others = (t - k) * log_ndtr(edges / s)
    below_x = others + k * log_ndtr((edges - x) / s)
    below_y = others + k * log_ndtr((edges - y) / s)
    # small tails by the record's steps alone, and by the sum of all
    few = log_ndtr((x - edges) / s)
    with np.errstate(divide="ignore"):
        union = np.logaddexp(
            np.log(float(t - k)) + log_ndtr(-edges / s), math.log(k) + log_ndtr((y - edges) / s)
        )
        accept = np.where(below_x < -_DEEP, np.log(-np.expm1(below_x * (1 - 1e-12))), few)
        charge = np.where(below_y < -_DEEP, np.log(-np.expm1(below_y * (1 + 1e-12))), union)
    yield _Tests.of(np.maximum(accept, few) - SLACK, np.minimum(charge, union) + SLACK)
    yield _Tests.of(below_y - SLACK, below_x + SLACK)


def _laplace_tests(rate: float, x: float, y: float) -> Iterator[_Tests]:
    """(1 - q) Lap(0) + q Lap(x) against (1 - q) Lap(0) + q Lap(y), by thresholds."""
    low, high = min(x, y, 0.0), max(x, y, 0.0)
    edges = np.unique(np.concatenate([np.linspace(low, high, 41), [(x + y) / 2]]))

    def tails(sign: float, centre: float) -> np.ndarray:
        at_0, at_centre = sign * edges, sign * (edges - centre)
        missed = math.log1p(-rate) if rate < 1 else -math.inf
        return np.logaddexp(missed + _log_laplace(at_0), math.log(rate) + _log_laplace(at_centre))

    # the density is at least that at the farther end
    farther = np.maximum(np.abs(edges - x), np.abs(edges - y))
    difference = math.log(rate * abs(x - y) / 2) - farther
    toward = -1.0 if x > y else 1.0
    yield _Tests.of(tails(toward, x) - SLACK, tails(toward, y) + SLACK, difference)
    yield _Tests.of(tails(-toward, y) - SLACK, tails(-toward, x) + SLACK, difference)


def _log_laplace(z: np.ndarray) -> np.ndarray:
    """log P(Lap(0) <= z)."""
    return np.where(z < 0, z - math.log(2), np.log1p(-0.5 * np.exp(-np.abs(z))))


def _cell_tests(p: np.ndarray, q: np.ndarray) -> _Tests:
    """Of a mechanism of one's own: the outputs of the largest losses."""
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.where(p > 0, np.log(p) - np.log(q), -np.inf)
        order = np.argsort(-loss, kind="stable")
        # sums of positive terms
        error = 2 * (p.size + 16) * EPS
        accept = np.log(np.cumsum(p[order]) * (1 - error))
        charge = np.log(np.cumsum(q[order]) * (1 + error))
    ends = np.unique(np.linspace(0, p.size - 1, 80).astype(int))
    return _Tests.of(accept[ends], charge[ends])


_DEVIATIONS = np.linspace(-8, 8, 17)


def _repeated(tests: _Tests, times: int) -> _Tests:
    """Tests of as many steps, by how many of them accept; each test with several numbers."""
    if times == 1:
        return tests
    accept, charge = tests.accept[:, None], tests.charge[:, None]
    p, q = np.exp(accept), np.exp(charge)
    around = times * p + _DEVIATIONS * np.sqrt(times * p * (1 - p))
    few = np.broadcast_to(np.array([1.0, 2.0, 4.0, 8.0, 16.0]), (p.size, 5))
    count = np.clip(np.round(np.concatenate([few, around], axis=1)), 1, times)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # at least one
        one = np.log(-np.expm1(times * np.log1p(-p))) - SLACK
        # at least this many: by Chernoff's bound of fewer, or exactly as many
        fewer = divergence(count - 1, times, np.broadcast_to(p, count.shape))
        by_rest = np.where(
            count - 1 < times * p, np.log(-np.expm1(-np.maximum(fewer, 0.0))), -np.inf
        )
        exactly = log_binomial(count, times, np.broadcast_to(p, count.shape)) - SLACK
        gain = np.where(count == 1, one, np.fmax(by_rest, exactly))
        any_one = np.log(-np.expm1(times * np.log1p(-np.minimum(q, 1.0)))) + SLACK
        # from log q, which may underflow
        # by their sum, of those that may underflow
        union = charge + math.log(times) + SLACK
        any_one = np.where(charge > -600, np.minimum(any_one, union), union)
        more = -_log_chernoff(count, times, charge)
        cost = np.where(count == 1, any_one, np.minimum(more, 0.0))
        # the derivative of P(at least j of k) in the chance p is k times the probability of j - 1
        # of k - 1, whose least value between two chances is at one of them
        apart = np.maximum(p * (1 - SLACK) - q * (1 + SLACK), np.exp(tests.difference[:, None]))
        slopes = [
            log_binomial(count - 1, times - 1, np.broadcast_to(chance, count.shape))
            for chance in (p, np.minimum(q, 1.0))
        ]
        difference = np.log(np.maximum(apart, 0.0)) + math.log(times) + np.minimum(*slopes)
    parts = (gain, cost, difference - SLACK)
    repeated = _Tests.of(*(part.ravel() for part in parts))
    # one of the steps alone
    return _Tests(*(np.concatenate(parts) for parts in zip(tests, repeated, strict=True)))


def _log_chernoff(count: np.ndarray, times: int, log_rate: np.ndarray) -> np.ndarray:
    """times KL(count / times, rate), rounded down, of rates that may underflow; 0 where the count
    is not above the mean."""
    rate = np.exp(log_rate)
    rest = times - count
    drawn = count * (np.log(count / times) - log_rate)
    missed = np.where(rest > 0, rest * (np.log(rest / times) - np.log1p(-rate)), 0.0)
    value = drawn + missed - 16 * EPS * (times + np.abs(drawn) + np.abs(missed))
    return np.where(count > times * rate, np.maximum(value, 0.0), 0.0)
