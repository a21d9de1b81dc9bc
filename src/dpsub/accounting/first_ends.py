"""First ends: a proved upper end and an attained lower end of every question, from closed forms on
a few numbers (docs/accounting.md, section 4.10).

They cost milliseconds, whatever the question, and are what a refinement starts from. No privacy
loss distribution is made: upper ends compose Gaussian steps, moments of likelihood ratios, or
(epsilon, delta) pairs; lower ends are those of two tests, one of a sum of all outputs, the other
of how many of them are large.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, log_ndtr, ndtri_exp

from dpsub.accounting.allocation import AllocationEvent, SelectionEvent, SumEvent
from dpsub.accounting.bracket import Target
from dpsub.accounting.laplace import LaplaceEvent, ShiftedOutput
from dpsub.accounting.own import Cells, OwnEvent
from dpsub.accounting.pairs import GaussianPair, MixedPair, PoissonPair, WorPair, ZeroedPair
from dpsub.accounting.privacy_events import (
    DominatedEvent,
    EnclosedEvent,
    Event,
    PairEvent,
    StatisticEvent,
)
from dpsub.accounting.proofs import law_of
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.case import Case
from dpsub.accounting.shuffling import LargestStep
from dpsub.accounting.subsets import SubsetEvent
from dpsub.accounting.truncated import CutSample
from dpsub.noise.gaussian import GaussianProfile
from dpsub.relations import Relation
from dpsub.sampling.base import Chain, StagedSampler
from dpsub.sampling.laws import log_binomial
from dpsub.sampling.schedules import TruncatedPoisson

_EPS = float(np.finfo(float).eps)
_SLACK = 1e-9
"""Relative, of every probability and moment: far above what laws of counts (2e-11) and sums of a
few thousand terms are off by, far below what first ends are apart."""
_MOST_DISTANCES = 48  # of a law of counts; more are merged, upwards
_SELDOM = 1e-20  # times a step happens, what is left out where delta is not known
_UNDERFLOW = 1e-300  # charged for counts whose probability underflows
_SECTIONS = 33  # points of a root search that are tried at once


class End(NamedTuple):
    """One end of an answer, and what gives it."""

    value: float
    given_by: str


# Upper ends


@dataclass(frozen=True, eq=False)
class _Steps:
    """Steps (or epochs) of one kind, as upper ends see them.

    Attributes
    ----------
    times : int
    farthest : float
        Largest distance of the outputs of one step, given how often the record is drawn; in
        deviations of the noise.
    distances, weights : ndarray, shape (d,)
        Distances above 0, increasing, and their probabilities, rounded up.
    rate : float
        With probability 1 - `rate` the output is that of a base, from which those with the record
        are `lifted` times `distances` away, too: the profile at order a is at most sum weights
        G(1 + (a - 1) / rate, lifted distances).
    lifted : float
    is_added : bool
        Whether the base is what is released without the record.
    lost : float
        Probability of what was left out of the law.
    zeroed : _Steps, optional
        Of a record replaced: the same steps for one that is set to 0.
    """

    times: int
    farthest: float
    distances: np.ndarray
    weights: np.ndarray
    rate: float = 1.0
    lifted: float = 1.0
    is_added: bool = True
    lost: float = 0.0
    zeroed: _Steps | None = None

    @classmethod
    def revealed(cls, times: int, distance: float) -> _Steps:
        """Gaussian steps: nothing is hidden."""
        return cls(times, distance, np.array([distance]), np.ones(1))

    @classmethod
    def of_law(
        cls,
        times: int,
        farthest: float,
        distances: np.ndarray,
        log_weights: np.ndarray,
        rate: float,
        *,
        lifted: float = 1.0,
        is_added: bool,
    ) -> _Steps:
        seen = (distances > 0) & np.isfinite(log_weights)
        distances, weights = distances[seen], np.exp(log_weights[seen])
        # what underflows is not in the law
        lost = _UNDERFLOW if distances[-1] < farthest * (1 - _SLACK) else 0.0
        weights = np.minimum(weights * (1 + _SLACK), 1.0)
        rate = min(1.0, rate * (1 + _SLACK))
        return cls(times, farthest, distances, weights, rate, lifted, is_added, lost)

    def without_rarest(self, share: float) -> _Steps:
        """Steps whose largest distances, of probability at most `share` together, are left out;
        of what is left neighbours are merged into the larger one."""
        beyond = np.cumsum(self.weights[::-1])[::-1]
        kept = max(1, int(np.count_nonzero(beyond > share)))
        lost = self.lost + (float(beyond[kept]) if kept < beyond.size else 0.0)
        distances, weights = self.distances[:kept], self.weights[:kept]
        if kept > _MOST_DISTANCES:
            ends = np.unique(np.linspace(0, kept - 1, _MOST_DISTANCES + 1).astype(int))[1:]
            starts = np.concatenate([[0], ends[:-1] + 1])
            distances, weights = distances[ends], np.add.reduceat(weights, starts)
        return replace(self, distances=distances, weights=weights, lost=lost)


@dataclass(frozen=True)
class _Bounded:
    """Steps of one kind none of whose losses is above `loss`, up to probability `lost`."""

    times: int
    loss: float
    lost: float = 0.0

    @property
    def mu(self) -> float:
        """Gaussian DP that (loss, 0)-DP implies (Theorem 24), rounded up."""
        if self.loss < 1e-4:
            # Phi(y) >= 1 / 2 + y phi(y) >= 1 / 2 + loss / 4 at y = 1.2534 loss / 2
            return 1.2534 * self.loss
        return -2 * float(ndtri_exp(-np.logaddexp(0.0, self.loss))) * (1 + _SLACK)


@dataclass(frozen=True, eq=False)
class _Plan:
    """All steps of a question."""

    gaussian: tuple[_Steps, ...]
    bounded: tuple[_Bounded, ...]

    @property
    def lost(self) -> float:
        """Probability that a step is what its kind leaves out, rounded up."""
        kinds: tuple[_Steps | _Bounded, ...] = (*self.gaussian, *self.bounded)
        return math.fsum(each.times * each.lost for each in kinds) * (1 + _SLACK)

    @property
    def loss(self) -> float:
        """Sum of the losses of bounded steps."""
        return math.fsum(each.times * each.loss for each in self.bounded) * (1 + _SLACK)

    @property
    def unsampled(self) -> float:
        """mu of all Gaussian steps with the record in each as often as it may be."""
        return math.sqrt(math.fsum(each.times * each.farthest**2 for each in self.gaussian))

    @property
    def zeroed(self) -> _Plan | None:
        """The plan for a record that is set to 0, where it is of use: where a record that is
        replaced is hidden by coins."""
        if self.bounded or not any(each.zeroed for each in self.gaussian):
            return None
        return replace(self, gaussian=tuple(each.zeroed or each for each in self.gaussian))

    @property
    def mu_of_bounded(self) -> float:
        return math.sqrt(math.fsum(each.times * each.mu**2 for each in self.bounded))

    def without_rarest(self, lost: float) -> _Plan:
        """The plan in which each kind leaves out rare counts, of probability `lost` together."""
        total = sum(each.times for each in self.gaussian) or 1
        share = lost / total
        return replace(self, gaussian=tuple(each.without_rarest(share) for each in self.gaussian))


def first_upper(
    cases: Sequence[Case], releases: Sequence[Release], relation: Relation, target: Target
) -> End:
    """A proved upper end: of epsilon at delta, or of delta at epsilon.

    It is finite unless a mechanism of one's own has infinite losses of about probability delta.

    Parameters
    ----------
    cases, releases : sequence
        Of one length; the case of each release under the relation.
    relation : Relation
    target : Target
    """
    kinds = [
        _steps_of(case, release, relation, target)
        for case, release in zip(cases, releases, strict=True)
    ]
    plan = _Plan(
        tuple(kind for kind in kinds if isinstance(kind, _Steps)),
        tuple(kind for kind in kinds if isinstance(kind, _Bounded)),
    )
    if target.delta is not None:
        ends = _epsilons(plan, target.delta)
        best = min(ends, key=lambda end: end.value)
        return End(best.value * (1 + _SLACK), best.given_by)
    assert target.epsilon is not None
    ends = _deltas(plan, target.epsilon)
    best = min(ends, key=lambda end: end.value)
    return End(min(best.value * (1 + _SLACK), 1.0), best.given_by)


_BY_GAUSSIANS = "Gaussian steps with the record in all samples, docs/accounting.md 4.10"
_BY_COUNTS = "Gaussian steps with the record's samples revealed, docs/accounting.md 4.10"
_BY_MOMENTS = "Moments of the likelihood ratio, docs/accounting.md 4.10"
_BY_ZERO = "Moments of the likelihood ratio, by way of a record of 0, docs/accounting.md 4.10"
_BY_SUM = "Basic composition, docs/accounting.md 4.10"
_TRIVIAL = "the trivial bound"


def _epsilons(plan: _Plan, delta: float) -> Iterator[End]:
    """Upper ends of epsilon at delta."""
    yield End(math.inf, _TRIVIAL)
    lost = math.fsum(each.times * each.lost for each in plan.bounded) * (1 + _SLACK)
    if not (rest := (delta - lost) * (1 - _SLACK)) > 0:
        return
    # losses of bounded steps add up, or are those of Gaussian steps
    both = math.hypot(plan.unsampled, plan.mu_of_bounded)
    yield End(_gaussian_epsilon(both, rest), _BY_GAUSSIANS)
    if plan.bounded:
        yield End(plan.loss + _gaussian_epsilon(plan.unsampled, rest), _BY_GAUSSIANS)
    for share in (1e-4, 0.1, 0.5):
        trimmed = plan.without_rarest(delta * share / 2)
        if not (rest := (delta - trimmed.lost) * (1 - _SLACK)) > 0:
            continue
        for end in _by_counts(trimmed, share * rest):
            epsilon = _gaussian_epsilon(end, rest * (1 - share) * (1 - _SLACK))
            yield End(epsilon, _BY_COUNTS)
    trimmed = plan.without_rarest(delta * 1e-3)
    if not (rest := (delta - trimmed.lost) * (1 - _SLACK)) > 0:
        return
    orders, log_bounds = _moment_bounds(trimmed)
    wanted = log_bounds - math.log(rest)
    epsilons = wanted / (orders - 1) + _SLACK * np.abs(wanted)
    yield End(max(float(np.min(epsilons)), 0.0), _BY_MOMENTS)
    if plan.zeroed is not None:
        yield End(_epsilon_by_zero(plan.zeroed, delta), _BY_ZERO)
    if sum(each.times for each in plan.gaussian) <= _FEW_STEPS:
        yield End(trimmed.loss + _basic_epsilon(trimmed.gaussian, rest), _BY_SUM)


def _deltas(plan: _Plan, epsilon: float) -> Iterator[End]:
    """Upper ends of delta at epsilon."""
    yield End(1.0, _TRIVIAL)
    lost = math.fsum(each.times * each.lost for each in plan.bounded) * (1 + _SLACK)
    both = math.hypot(plan.unsampled, plan.mu_of_bounded)
    yield End(lost + _gaussian_delta(epsilon, both), _BY_GAUSSIANS)
    left = epsilon * (1 - 4 * _EPS) - plan.loss
    if plan.bounded and left >= 0:
        yield End(lost + _gaussian_delta(left, plan.unsampled), _BY_GAUSSIANS)
    # what is left out should be small next to the answer, which is not known yet
    for tail in (1e-3, 1e-6, 1e-10, 1e-16, 1e-30, 1e-60, 1e-120, 1e-250):
        trimmed = plan.without_rarest(tail / 2)
        for end in _by_counts(trimmed, tail):
            yield End(trimmed.lost + tail + _gaussian_delta(epsilon, end), _BY_COUNTS)
    # nothing is left out of laws of one distance
    has_rare = any(each.distances.size > 1 for each in plan.gaussian)
    for tail in (1e-6, 1e-16, 1e-100) if has_rare else (1e-100,):
        trimmed = plan.without_rarest(tail)
        yield End(trimmed.lost + _moment_delta(trimmed, epsilon), _BY_MOMENTS)
        if (zeroed := trimmed.zeroed) is not None:
            # half of epsilon from the record to 0, and half from there to the other record
            half = epsilon / 2
            by_zero = (zeroed.lost + _moment_delta(zeroed, half)) * (1 + math.exp(min(half, 700.0)))
            yield End(by_zero * (1 + _SLACK), _BY_ZERO)
        if left >= 0:
            yield End(trimmed.lost + _basic_delta(trimmed.gaussian, left), _BY_SUM)


def _moment_bounds(plan: _Plan) -> tuple[np.ndarray, np.ndarray]:
    """Orders, and log(delta(epsilon) e^((order - 1) epsilon)), at most, by each of them (Canonne,
    Kamath and Steinke 2020, Proposition 12)."""
    orders, log_moments = _log_moments(plan)
    return orders, log_moments + _conversion(orders)


def _conversion(orders: np.ndarray) -> np.ndarray:
    return np.asarray((orders - 1) * np.log1p(-1 / orders) - np.log(orders) + _SLACK)


def _moment_delta(plan: _Plan, epsilon: float) -> float:
    orders, log_moments = _log_moments(plan)
    log_delta = log_moments + _conversion(orders) - (orders - 1) * epsilon * (1 - 1e-12)
    by_orders = max(math.exp(min(float(log_delta.min()), 0.0)), _UNDERFLOW)
    # delta(epsilon) <= delta(0), the total variation, which is at most sqrt(KL / 2) (Pinsker); KL
    # is at most the Renyi divergence of order 2
    return min(by_orders, math.sqrt(log_moments[0] / 2) * (1 + _SLACK))


def _epsilon_by_zero(zeroed: _Plan, delta: float) -> float:
    """Twice an x at which delta_0(x) (1 + e^x) <= delta, delta_0 that of a record set to 0."""
    trimmed = zeroed.without_rarest(delta * 1e-6)
    orders, log_bounds = _moment_bounds(trimmed)
    orders, log_bounds = orders[1:], log_bounds[1:]
    # 1e-3 of delta for what is left out, which counts 1 + e^x times
    wanted = log_bounds - math.log(delta) + 2e-3
    at_least = np.maximum(wanted / (orders - 2), 0.0)
    wanted = wanted + np.log1p(np.exp(-at_least))
    x = max(float(np.min(wanted / (orders - 2) + _SLACK * np.abs(wanted))), 0.0)
    if trimmed.lost * (1 + math.exp(min(x, 700.0))) > 1e-3 * delta:
        return math.inf
    return 2 * x


def _steps_of(
    case: Case, release: Release, relation: Relation, target: Target
) -> _Steps | _Bounded:
    """What upper ends need of one kind of release."""
    if isinstance(case.event, OwnEvent):
        return _own_losses(case.event, release.times, target)
    s, times = release.noise_multiplier, release.times
    if release.mechanism == "laplace":
        return _Bounded(times, _laplace_loss(case, release, relation))
    event = case.event.proved if isinstance(case.event, EnclosedEvent) else case.event
    if isinstance(event, PairEvent):
        return _steps_of_pair(event.pair, times, case.shift / s)
    if isinstance(release.sampler, StagedSampler):
        return _steps_of_chain(release.chain(), release, relation, case.shift / s)
    if isinstance(release.sampler, TruncatedPoisson) and release.group == 1:
        return _steps_of_cut_samples(release.sampler, release, relation, target)
    # the steps of a schedule revealed, or the distance of a group, record by record
    return _Steps.revealed(times, case.shift / s)


def _steps_of_pair(pair: GaussianPair, times: int, farthest: float) -> _Steps:
    """Of worst data sets that are known: a base N(0), and shifts given what is drawn."""
    counts, log_weights = pair.components
    if isinstance(pair, MixedPair):
        # the records added and those removed, drawn independently
        others, log_others = pair.components_prime
        if counts.size * others.size > 2**16:
            return _Steps.revealed(times, farthest)
        counts = np.subtract.outer(counts, others).ravel()
        log_weights = np.add.outer(log_weights, log_others).ravel()
        order = np.argsort(counts, kind="stable")
        counts, log_weights = counts[order], log_weights[order]
    distances = counts * (2.0 if pair.mirrored else 1.0) / pair.deviation
    rate = float(np.exp(log_weights[counts != 0]).sum())
    is_added = not pair.mirrored and not isinstance(pair, MixedPair)
    law = times, farthest, distances, log_weights, rate
    steps = _Steps.of_law(*law, is_added=is_added)
    if not pair.mirrored or steps.rate >= 1:
        return steps
    zeroed = _Steps.of_law(times, farthest / 2, distances / 2, log_weights, rate, is_added=True)
    return replace(steps, zeroed=zeroed)


def _steps_of_chain(chain: Chain, release: Release, relation: Relation, farthest: float) -> _Steps:
    """Of samples in which a record takes others' places: Theorems 4, 6 and 10 with all stages but
    the first one revealed."""
    group = release.records_moved
    if relation is Relation.ADD_REMOVE:
        chain = replace(chain, n=chain.n + group)
    law = law_of(chain, group)
    rate = float(law.eta)
    if len(chain.stages) > 1:
        # the chance that the first stage draws any of the records, or its union bound
        first, rate = chain.stages[0], min(1.0, group * chain.stages[0].size / chain.n)
        if first.kind == "wr" and group < chain.n:
            rate = -math.expm1(first.size * math.log1p(-group / chain.n))
    # set to 0, an occurrence moves the sum by 1; from the base it is up to 2 away
    is_zeroed = relation is Relation.ZERO_OUT
    apart = 1.0 if is_zeroed else 2.0
    return _Steps.of_law(
        release.times,
        farthest / 2 if is_zeroed else farthest,
        np.arange(law.log_pmf.size) * apart / release.noise_multiplier,
        law.log_pmf,
        rate,
        lifted=2.0 / apart,
        is_added=relation is Relation.ADD_REMOVE,
    )


def _steps_of_cut_samples(
    sampler: TruncatedPoisson, release: Release, relation: Relation, target: Target
) -> _Steps:
    """Theorem 18, with the rate of samples with room in both of its cases, or without full ones
    where these are very rare."""
    assert release.n is not None
    s, q, times = release.noise_multiplier, sampler.rate, release.times
    sample = CutSample(release.n + (relation is Relation.ADD_REMOVE), q, sampler.max_batch)
    full = sample.full_at_most
    farthest = (1.0 if relation is Relation.ZERO_OUT else 2.0) / s
    if times * full <= 1e-6 * (target.delta or _SELDOM):
        pair = WorPair(q, s) if relation is Relation.SUBSTITUTE else PoissonPair(q, s)
        steps = _steps_of_pair(pair, times, farthest)
        zeroed = steps.zeroed and replace(steps.zeroed, lost=full)
        return replace(steps, lost=full, zeroed=zeroed)
    if relation is Relation.ADD_REMOVE:
        # 1 away with room, and 2 in a full sample
        distances = np.array([1.0, 2.0]) / s
        log_weights = np.log(np.array([1.0, full]) * q)
    else:
        distances, log_weights = np.array([farthest]), np.log(np.array([q]))
    return _Steps.of_law(
        times,
        farthest,
        distances,
        log_weights,
        q,
        # under zero_out from the base, in whose full samples it takes another's place
        lifted=2.0 / (farthest * s) if relation is Relation.ZERO_OUT else 1.0,
        is_added=relation is Relation.ADD_REMOVE,
    )


def _laplace_loss(case: Case, release: Release, relation: Relation) -> float:
    """Largest loss of a step with Laplace noise, for each record of a group."""
    group = release.records_moved
    loss = case.shift / group / release.noise_multiplier
    if isinstance(release.sampler, StagedSampler):
        chain = release.chain()
        if relation is Relation.ADD_REMOVE:
            chain = replace(chain, n=chain.n + 1)
        rate = min(1.0, float(law_of(chain).eta) * (1 + _SLACK))
        # log(1 + q (e^loss - 1))
        loss = (
            loss + math.log(rate + (1 - rate) * math.exp(-loss))
            if loss > 1
            else math.log1p(rate * math.expm1(loss))
        )
    return min(group * loss, case.event.largest_loss) * (1 + _SLACK)


def _own_losses(event: OwnEvent, times: int, target: Target) -> _Bounded:
    """The largest loss of a mechanism of one's own, or one that is exceeded seldom enough."""
    if math.isfinite(event.largest_loss):
        return _Bounded(times, event.largest_loss * (1 + _SLACK))
    losses = np.concatenate([[0.0], np.geomspace(1e-6, 700.0, 400)])
    if target.epsilon is not None:
        losses = np.array([target.epsilon / times * (1 - 4 * _EPS)])
    beyond = np.maximum(*(profile(losses) for profile in event.profiles())) * (1 + _SLACK)
    # half of delta for what is larger, or little more than the probability of infinite losses
    allowed = max(0.5 * (target.delta or 0.0) / times, float(beyond[-1]) * (1 + _SLACK))
    place = int(np.argmax(beyond <= allowed))
    return _Bounded(times, float(losses[place]), float(beyond[place]))


def _by_counts(plan: _Plan, tail: float) -> Iterator[float]:
    """mu of all steps, but for probability `tail` of counts that are larger."""
    if not plan.gaussian:
        return
    bounded = plan.mu_of_bounded**2
    log_tail = -math.log(tail)
    # sum of the squares of the distances: Bernstein's inequality
    squares = [(each, each.distances**2) for each in plan.gaussian]
    mean = math.fsum(each.times * float(each.weights @ square) for each, square in squares)
    variance = math.fsum(each.times * float(each.weights @ square**2) for each, square in squares)
    largest = max(float(square[-1]) for _, square in squares)
    share = largest * log_tail / 3
    most = math.fsum(each.times * float(square[-1]) for each, square in squares)
    beyond = mean + share + math.sqrt(share**2 + 2 * variance * log_tail)
    yield math.sqrt(min(beyond, most) * (1 + _SLACK) + bounded)
    if len(plan.gaussian) == 1 and len(plan.gaussian[0].distances) == 1:
        # a binomial law has a sharper one
        [(each, square)] = squares
        count = _most_drawn(each.times, float(each.weights[0]), log_tail)
        yield math.sqrt(count * float(square[0]) * (1 + _SLACK) + bounded)


def _most_drawn(times: int, rate: float, log_tail: float) -> int:
    """A number that Binomial(times, rate) exceeds with probability at most e^-log_tail (Chernoff's
    bound)."""
    if rate >= 1:
        return times
    low, high = math.ceil(times * rate), times
    while low < high:
        middle = (low + high) // 2
        if float(_divergence(middle + 1, times, rate)) >= log_tail:
            high = middle
        else:
            low = middle + 1
    return high


def _divergence(count: np.ndarray | int, times: int, rate: np.ndarray | float) -> np.ndarray:
    """times KL(count / times, rate), rounded down; 0 < rate < 1."""
    count, rate = np.asarray(count, dtype=float), np.asarray(rate, dtype=float)
    rest = times - count
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.where(count > 0, count * (np.log(count / times) - np.log(rate)), 0.0)
        missed = np.where(rest > 0, rest * (np.log(rest / times) - np.log1p(-rate)), 0.0)
    return drawn + missed - 16 * _EPS * (times + np.abs(drawn) + np.abs(missed))


# moments

_ORDERS = np.unique(
    np.concatenate([np.arange(2, 17), np.round(np.geomspace(17, 256, 14)), [512, 1024]])
).astype(int)
# all pairs (order, j), 2 <= j <= order, one order after the other
_ORDER = np.repeat(_ORDERS, _ORDERS - 1)
_J = np.concatenate([np.arange(2, order + 1) for order in _ORDERS.tolist()])
_STARTS = np.concatenate([[0], np.cumsum(_ORDERS - 1)[:-1]])
_LOG_CHOICES = gammaln(_ORDER + 1) - gammaln(_J + 1) - gammaln(_ORDER - _J + 1)


def _log_moments(plan: _Plan) -> tuple[np.ndarray, np.ndarray]:
    """Orders, and log E_Q (P / Q)^order of all steps, rounded up."""
    orders = _ORDERS.astype(float)
    total = np.zeros(orders.size)
    for steps in plan.gaussian:
        # work: orders x distances, and 4000 terms
        excess = np.minimum(_revealed_excess(steps, orders), _hidden_excess(steps))
        total += steps.times * np.logaddexp(0.0, excess) * (1 + _SLACK)
    for each in plan.bounded:
        # (e, 0)-DP has Renyi divergences of at most order e^2 / 2 (Bun and Steinke 2016)
        total += each.times * (orders - 1) * np.minimum(each.loss, orders * each.loss**2 / 2)
    return orders, total * (1 + _SLACK)


def _revealed_excess(steps: _Steps, orders: np.ndarray) -> np.ndarray:
    """log(E_Q (P / Q)^order - 1) with counts revealed: a mean over Gaussian steps."""
    exponents = np.multiply.outer(orders * (orders - 1) / 2, steps.distances**2)
    return _log_mean(_log_expm1(exponents), steps.weights)


def _hidden_excess(steps: _Steps) -> np.ndarray:
    """The same with the counts hidden: sums over j of choices of j factors."""
    if steps.rate >= 1:
        return np.full(_ORDERS.size, np.inf)
    squares = (steps.lifted * steps.distances) ** 2
    j = np.arange(2.0, _ORDERS[-1] + 1)
    if steps.is_added:
        factors = _log_expm1(np.multiply.outer(j * (j - 1) / 2, squares))
    else:
        # E (r - 1)^2 r^(j - 2), r the ratio of two Gaussians, as a sum of positive terms
        before = np.multiply.outer(j - 2, squares)
        with np.errstate(divide="ignore"):
            factors = np.logaddexp(
                2 * _log_expm1(before), 2 * before + _log_expm1(squares)
            ) + np.multiply.outer((j - 2) * (j - 3) / 2, squares)
        # twice E (r - 1)_+^2, for both orders of the two data sets
        factors[0] = math.log(2) + _log_expm1(squares) + log_ndtr(1.5 * np.sqrt(squares))
    by_j = _log_mean(factors, steps.weights / steps.rate)[_J - 2]
    terms = _LOG_CHOICES + _J * math.log(steps.rate) + by_j
    if steps.is_added:
        terms += (_ORDER - _J) * math.log1p(-steps.rate)
    terms += _SLACK + 1e-13 * np.abs(by_j)
    peak = np.maximum.reduceat(terms, _STARTS)
    sums = np.add.reduceat(np.exp(terms - np.repeat(peak, _ORDERS - 1)), _STARTS)
    return np.asarray(peak + np.log(sums))


def _log_expm1(x: np.ndarray) -> np.ndarray:
    """log(e^x - 1), x >= 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(x + np.log(-np.expm1(-x)))


def _log_mean(log_values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """log of the sum of weighted values along the last axis."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.logaddexp.reduce(log_values + np.log(weights), axis=-1))


# Gaussian steps, and basic composition

_FEW_STEPS = 64
"""Up to so many steps basic composition is tried for epsilon."""


def _log_gaussian_delta(epsilon: np.ndarray, mu: np.ndarray | float) -> np.ndarray:
    """log G(e^epsilon, mu), rounded up: both arguments are moved by more than they are off."""
    profile = GaussianProfile(1.0)
    mu = np.maximum(np.asarray(mu) * (1 + 1e-12), 1e-300)
    value = profile.group_log_delta(epsilon * (1 - 1e-12), mu)
    return np.asarray(value + 1e-11 * (1 + np.abs(value) * 1e-3))


def _gaussian_delta(epsilon: float, mu: float) -> float:
    if mu <= 0:
        return 0.0
    log_delta = float(_log_gaussian_delta(np.array([epsilon]), mu)[0])
    return max(math.exp(min(log_delta, 0.0)), _UNDERFLOW)


def _gaussian_epsilon(mu: float, delta: float) -> float:
    """epsilon of mu-Gaussian DP at delta, rounded up; infinite where mu is."""
    if mu <= 0:
        return 0.0
    if not math.isfinite(mu * mu) or not delta > 0:
        return math.inf
    goal = math.log(delta) * (1 + 4 * _EPS) - 1e-14
    # G(e^epsilon, mu) <= Phi(mu / 2 - epsilon / mu)
    highest = mu * (mu / 2 + max(-float(ndtri_exp(goal)), 0.0)) * (1 + _SLACK)
    return _falling_root(lambda epsilon: _log_gaussian_delta(epsilon, mu) <= goal, highest)


def _falling_root(holds: Callable[[np.ndarray], np.ndarray], guess: float) -> float:
    """A point at which `holds`, near the first one from which on it does; infinite where it does
    not up to 1e30 times the guess."""
    low, high = 0.0, guess
    for _ in range(100):
        if holds(np.array([high]))[0]:
            break
        low, high = high, 2 * high
    else:
        return math.inf
    for _ in range(9):
        points = np.linspace(low, high, _SECTIONS)
        first = int(np.argmax(np.append(holds(points[:-1]), True)))
        if first == 0:
            return float(points[0])
        low, high = float(points[first - 1]), float(points[first])
    return high


def _log_profile(steps: _Steps, epsilon: np.ndarray) -> np.ndarray:
    """log of the profile of one step, rounded up, at points epsilon >= 0, shape (e,)."""
    revealed = _log_mean(
        _log_gaussian_delta(epsilon[:, None], steps.distances[None, :]), steps.weights
    )
    if steps.rate >= 1:
        return np.minimum(revealed, 0.0)
    # log(1 + (e^epsilon - 1) / rate)
    with np.errstate(over="ignore"):
        order = np.where(
            epsilon < 1,
            np.log1p(np.expm1(np.minimum(epsilon, 1.0)) / steps.rate),
            epsilon + np.log(np.exp(-epsilon) * -(1 - steps.rate) + 1) - math.log(steps.rate),
        )
    lifted = _log_gaussian_delta(order[:, None], (steps.lifted * steps.distances)[None, :])
    return np.minimum(np.minimum(revealed, _log_mean(lifted, steps.weights)), 0.0)


def _log_basic(steps: Sequence[_Steps], epsilon: np.ndarray) -> np.ndarray:
    """log of the sum of the deltas of steps that share epsilon, by their distances."""
    total = math.fsum(each.times * each.farthest for each in steps)
    parts = [
        math.log(each.times) + _log_profile(each, epsilon * (each.farthest / total))
        for each in steps
    ]
    return np.asarray(np.logaddexp.reduce(parts) + _SLACK)


def _basic_delta(steps: Sequence[_Steps], epsilon: float) -> float:
    if not steps:
        return 0.0
    log_delta = float(_log_basic(steps, np.array([epsilon * (1 - 4 * _EPS)]))[0])
    return max(math.exp(min(log_delta, 0.0)), _UNDERFLOW)


def _basic_epsilon(steps: Sequence[_Steps], delta: float) -> float:
    if not steps:
        return 0.0
    goal = math.log(delta)
    count = sum(each.times for each in steps)
    guess = math.fsum(
        each.times * _gaussian_epsilon(each.farthest, delta / count) for each in steps
    )
    return _falling_root(lambda epsilon: _log_basic(steps, epsilon) <= goal, guess)


# Lower ends

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
        """What each of these tests attains, rounded down: P - e^epsilon Q = (P - Q) - (e^epsilon -
        1) Q."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            accept, charge = np.exp(self.accept), np.exp(self.charge)
            difference = np.exp(self.difference) * (1 - _SLACK)
            if target.delta is not None:
                # log((P - delta) / Q), of small ones in the second form
                rest = accept - target.delta * (1 + 4 * _EPS)
                large = np.log(np.maximum(rest, 0.0)) - self.charge
                rounding = 16 * _EPS * (1 + accept / np.maximum(rest, 0.0) + np.abs(self.charge))
                gain = (difference - target.delta) * (1 - _SLACK)
                # of charges that do not underflow
                small = np.log1p(np.where(charge > _DEEP, gain / charge, 0.0))
                values = np.fmax(np.where(rest > 0, large - rounding, -np.inf), small)
                return np.fmax(values * (1 - _SLACK), 0.0)
            assert target.epsilon is not None
            epsilon = target.epsilon * (1 + 4 * _EPS)
            gain = -np.expm1(np.minimum(epsilon + self.charge - self.accept, 0.0))
            # the exponent is a difference of numbers that were rounded
            gain -= 8 * _EPS * (1 + epsilon + np.abs(self.accept))
            values = accept * gain
            if epsilon < 1:
                values = np.fmax(values, difference - math.expm1(epsilon) * charge)
            return np.fmax(values * (1 - _SLACK), 0.0)

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


def first_lower(cases: Sequence[Case], releases: Sequence[Release], target: Target) -> End:
    """A lower end that data sets attain: of epsilon at delta, or of delta at epsilon; 0 where no
    attack is known, or these tests tell nothing.

    The parameters are those of `first_upper`.
    """
    kinds = [_Kind.of(case, release) for case, release in zip(cases, releases, strict=True)]
    best = End(0.0, "")

    def improve(tests: _Tests, given_by: str) -> None:
        nonlocal best
        best = max(best, End(tests.best(target), given_by), key=lambda end: end.value)

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
    """Steps of one kind, as lower ends see them; their sums, if they have them, are those of the
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
    """Events of data sets that attain what a step is attacked by."""
    if isinstance(event, SubsetEvent):
        yield event.blocks
    elif isinstance(event, DominatedEvent):
        if event.attack is not None:
            yield PairEvent(event.attack)
    elif isinstance(event, EnclosedEvent) or event.attack_choices != (event,):
        for each in event.attack_choices:
            yield from _choices(each)
    else:
        yield event


class _Epoch(NamedTuple):
    """Outputs of an epoch of t steps; the record is in k of them, with the mean x on one data set
    and y < x on the other, among others 0; `deviation` is that of the noise."""

    t: int
    k: int
    x: float
    y: float
    deviation: float


def _epoch_of(event: Event) -> _Epoch | None:
    if isinstance(event, AllocationEvent):
        return _Epoch(event.t, 1, 1.0, 0.0, event.deviation)
    if isinstance(event, SelectionEvent):
        return _Epoch(event.t, event.k, 1.0, 0.0, event.deviation)
    if isinstance(event, SumEvent):
        return _Epoch(event.t, event.k, event.x, event.y, event.deviation)
    if isinstance(event, StatisticEvent) and isinstance(event.statistic, LargestStep):
        largest = event.statistic
        return _Epoch(largest.steps, 1, largest.x, largest.y, largest.noise_multiplier)
    return None


def _gaussian_pair(event: Event) -> GaussianPair | None:
    """A pair whose second distribution has means of at most 0, or is the mirror image of the
    first."""
    if not isinstance(event, PairEvent):
        return None
    # fillers and record at -C: N(0) where the record is 0 as they are
    return event.pair.without_record if isinstance(event.pair, ZeroedPair) else event.pair


def _sums_of(event: Event, times: int) -> Iterator[_Sums]:
    for choice in _choices(event):
        pair, epoch = _gaussian_pair(choice), _epoch_of(choice)
        if pair is not None:
            counts, log_weights = pair.components
            seen = (counts > 0) & np.isfinite(log_weights)
            weights = np.exp(log_weights[seen]) * (1 - _SLACK)
            yield _Sums(times, counts[seen], weights, pair.deviation**2, pair.mirrored)
        elif epoch is not None:
            shift = np.array([epoch.k * (epoch.x - epoch.y)])
            variance = epoch.t * epoch.deviation**2
            yield _Sums(times, shift, np.ones(1), variance, mirrored=False)


def _sum_tests(sums: Sequence[_Sums], target: Target) -> Iterator[_Tests]:
    """Tests of a weighted sum of the outputs."""
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
"""Places above 0, shape (n,), and their masses, of a law that lies below another one: what is
missing of 1 is at 0."""


def _of_one_kind(sums: _Sums, target: Target) -> Iterator[Law]:
    """Laws below that of a sum of as many independent numbers of one law."""
    if sums.times == 1:
        yield _thinned(sums.values, sums.weights)
    drawn = min(float(sums.weights.sum()), 1.0)
    least = float(sums.values[0])
    if drawn >= 1 - 2 * _SLACK and len(sums.values) == 1:
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
    log_masses = ends.mean(axis=0) + np.log(last - first + 1.0) - _SLACK
    return first * unit, np.exp(log_masses)


def _by_moments(sums: Sequence[_Sums]) -> Law:
    """A law below that of a sum, by Cantelli's inequality, Bernstein's, and Maurer's for sums of
    numbers that are not negative."""
    mean = math.fsum(each.times * each.mean for each in sums)
    square = math.fsum(each.times * each.square for each in sums)
    variance = max(square - math.fsum(each.times * each.mean**2 for each in sums), 0.0)
    variance += _SLACK * square
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
    at_least = np.maximum.accumulate((1 - missing * (1 + _SLACK))[::-1])[::-1]
    masses = at_least - np.append(at_least[1:], 0.0)
    return (mean - below) * (1 - _SLACK), np.maximum(masses, 0.0)


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
        log_rest = float(np.log(max(rest, 4 * masses.size * _EPS) if rest else 0.0))
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
    return _Tests.of(accept, charge, np.logaddexp.reduce(between, axis=1) - _SLACK)


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
        pair, epoch = _gaussian_pair(choice), _epoch_of(choice)
        if pair is not None:
            yield from _pair_tests(pair)
        elif epoch is not None:
            yield from _epoch_tests(epoch)
        elif isinstance(choice, LaplaceEvent):
            laplace = choice.pair
            y = -laplace.ratio if laplace.mirrored else 0.0
            yield from _laplace_tests(laplace.rate, laplace.ratio, y)
        elif isinstance(choice, StatisticEvent) and isinstance(choice.statistic, ShiftedOutput):
            output = choice.statistic
            yield from _laplace_tests(output.rate, output.x, output.y)
        elif isinstance(choice, OwnEvent):
            for swapped in (False, True):
                cells = choice.cells(swapped)
                if cells is not None:
                    yield _cell_tests(cells)


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
    slack = _SLACK
    yield _Tests.of(tails(-1, *first) - slack, tails(-1, *second) + slack)
    if not pair.mirrored:
        yield _Tests.of(tails(1, *second) - slack, tails(1, *first) + slack)


def _epoch_tests(epoch: _Epoch) -> Iterator[_Tests]:
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
    yield _Tests.of(np.maximum(accept, few) - _SLACK, np.minimum(charge, union) + _SLACK)
    yield _Tests.of(below_y - _SLACK, below_x + _SLACK)


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
    yield _Tests.of(tails(toward, x) - _SLACK, tails(toward, y) + _SLACK, difference)
    yield _Tests.of(tails(-toward, y) - _SLACK, tails(-toward, x) + _SLACK, difference)


def _log_laplace(z: np.ndarray) -> np.ndarray:
    """log P(Lap(0) <= z)."""
    return np.where(z < 0, z - math.log(2), np.log1p(-0.5 * np.exp(-np.abs(z))))


def _cell_tests(cells: Cells) -> _Tests:
    """Of a mechanism of one's own: the outputs of the largest losses."""
    p = np.maximum(cells.p - cells.p_error, 0.0)
    q = cells.q + cells.q_error
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.where(p > 0, np.log(p) - np.log(q), -np.inf)
        order = np.argsort(-loss, kind="stable")
        # sums of positive terms
        error = 2 * (p.size + 16) * _EPS
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
        one = np.log(-np.expm1(times * np.log1p(-p))) - _SLACK
        # at least this many: by Chernoff's bound of fewer, or exactly as many
        fewer = _divergence(count - 1, times, np.broadcast_to(p, count.shape))
        by_rest = np.where(
            count - 1 < times * p, np.log(-np.expm1(-np.maximum(fewer, 0.0))), -np.inf
        )
        exactly = log_binomial(count, times, np.broadcast_to(p, count.shape)) - _SLACK
        gain = np.where(count == 1, one, np.fmax(by_rest, exactly))
        any_one = np.log(-np.expm1(times * np.log1p(-np.minimum(q, 1.0)))) + _SLACK
        # from log q, which may underflow
        # by their sum, of those that may underflow
        union = charge + math.log(times) + _SLACK
        any_one = np.where(charge > -600, np.minimum(any_one, union), union)
        more = -_log_chernoff(count, times, charge)
        cost = np.where(count == 1, any_one, np.minimum(more, 0.0))
        # the derivative of P(at least j of k) in the chance p is k times the probability of j - 1
        # of k - 1, whose least value between two chances is at one of them
        apart = np.maximum(p * (1 - _SLACK) - q * (1 + _SLACK), np.exp(tests.difference[:, None]))
        slopes = [
            log_binomial(count - 1, times - 1, np.broadcast_to(chance, count.shape))
            for chance in (p, np.minimum(q, 1.0))
        ]
        difference = np.log(np.maximum(apart, 0.0)) + math.log(times) + np.minimum(*slopes)
    parts = (gain, cost, difference - _SLACK)
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
    value = drawn + missed - 16 * _EPS * (times + np.abs(drawn) + np.abs(missed))
    return np.where(count > times * rate, np.maximum(value, 0.0), 0.0)
