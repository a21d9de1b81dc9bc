"""A closed-form upper bound: formulas that bound all steps (docs/proofs/first_ends.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln, log_ndtr, ndtri_exp

from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.own_mechanism import OwnEvent
from dpsub.accounting.engine.pairs import GaussianPair, MixedPair, PoissonPair, WorPair
from dpsub.accounting.engine.privacy_events import (
    EnclosedEvent,
    PairEvent,
)
from dpsub.accounting.engine.profiles import law_of
from dpsub.accounting.questions.first_ends import EPS, SLACK, FirstEnd, divergence
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.case import Case
from dpsub.divergences.mixtures import one_mixture_loss
from dpsub.noise.gaussian import GaussianProfile
from dpsub.relations import Relation
from dpsub.sampling.base import Chain, StagedSampler
from dpsub.sampling.schedules import TruncatedPoisson
from dpsub.sampling.separated import MinSeparation

_MOST_DISTANCES = 48  # of a law of counts; more are merged, upwards
_SELDOM = 1e-20  # times a step happens, what is left out where delta is not known
_UNDERFLOW = 1e-300  # charged for counts whose probability underflows
_SECTIONS = 33  # points of a root search that are tried at once


@dataclass(frozen=True, eq=False)
class _Steps:
    """Steps (or epochs) of one kind, as far as upper bounds need them.

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
        Probability of the counts that were left out of the law.
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
        lost = _UNDERFLOW if distances[-1] < farthest * (1 - SLACK) else 0.0
        weights = np.minimum(weights * (1 + SLACK), 1.0)
        rate = min(1.0, rate * (1 + SLACK))
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
        return -2 * float(ndtri_exp(-np.logaddexp(0.0, self.loss))) * (1 + SLACK)


@dataclass(frozen=True, eq=False)
class _Plan:
    """All steps of a question."""

    gaussian: tuple[_Steps, ...]
    bounded: tuple[_Bounded, ...]

    @property
    def lost(self) -> float:
        """Probability that any step has one of the outputs that its kind leaves out, rounded up."""
        kinds: tuple[_Steps | _Bounded, ...] = (*self.gaussian, *self.bounded)
        return math.fsum(each.times * each.lost for each in kinds) * (1 + SLACK)

    @property
    def loss(self) -> float:
        """Sum of the losses of bounded steps."""
        return math.fsum(each.times * each.loss for each in self.bounded) * (1 + SLACK)

    @property
    def unsampled(self) -> float:
        """mu of all Gaussian steps with the record in each as often as it may be."""
        return math.sqrt(math.fsum(each.times * each.farthest**2 for each in self.gaussian))

    @property
    def zeroed(self) -> _Plan | None:
        """Return the plan for a record that is set to 0, where it is of use: where a record that is
        replaced is hidden by coins."""
        if self.bounded or not any(each.zeroed for each in self.gaussian):
            return None
        return replace(self, gaussian=tuple(each.zeroed or each for each in self.gaussian))

    @property
    def mu_of_bounded(self) -> float:
        return math.sqrt(math.fsum(each.times * each.mu**2 for each in self.bounded))

    def without_rarest(self, lost: float) -> _Plan:
        """Return the plan in which each kind leaves out rare counts, of probability `lost`
        together."""
        total = sum(each.times for each in self.gaussian) or 1
        share = lost / total
        return replace(self, gaussian=tuple(each.without_rarest(share) for each in self.gaussian))


def first_upper(
    cases: Sequence[Case], releases: Sequence[Release], relation: Relation, target: Target
) -> FirstEnd:
    """Return a proved upper bound on epsilon at delta, or on delta at epsilon.

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
        return FirstEnd(best.value * (1 + SLACK), best.given_by)
    assert target.epsilon is not None
    ends = _deltas(plan, target.epsilon)
    best = min(ends, key=lambda end: end.value)
    return FirstEnd(min(best.value * (1 + SLACK), 1.0), best.given_by)


_BY_GAUSSIANS = "Gaussian steps with the record in all samples, docs/proofs/first_ends.md"
_BY_COUNTS = "Gaussian steps with the record's samples revealed, docs/proofs/first_ends.md"
_BY_MOMENTS = "Moments of the likelihood ratio, docs/proofs/first_ends.md"
_BY_ZERO = "Moments of the likelihood ratio, by way of a record of 0, docs/proofs/first_ends.md"
_BY_SUM = "Basic composition, docs/proofs/first_ends.md"
_TRIVIAL = "the trivial bound"


def _epsilons(plan: _Plan, delta: float) -> Iterator[FirstEnd]:
    """Return upper bounds on epsilon at delta."""
    yield FirstEnd(math.inf, _TRIVIAL)
    lost = math.fsum(each.times * each.lost for each in plan.bounded) * (1 + SLACK)
    if not (rest := (delta - lost) * (1 - SLACK)) > 0:
        return
    # losses of bounded steps add up, or are those of Gaussian steps
    both = math.hypot(plan.unsampled, plan.mu_of_bounded)
    yield FirstEnd(_gaussian_epsilon(both, rest), _BY_GAUSSIANS)
    if plan.bounded:
        yield FirstEnd(plan.loss + _gaussian_epsilon(plan.unsampled, rest), _BY_GAUSSIANS)
    for share in (1e-4, 0.1, 0.5):
        trimmed = plan.without_rarest(delta * share / 2)
        if not (rest := (delta - trimmed.lost) * (1 - SLACK)) > 0:
            continue
        for end in _by_counts(trimmed, share * rest):
            epsilon = _gaussian_epsilon(end, rest * (1 - share) * (1 - SLACK))
            yield FirstEnd(epsilon, _BY_COUNTS)
    trimmed = plan.without_rarest(delta * 1e-3)
    if not (rest := (delta - trimmed.lost) * (1 - SLACK)) > 0:
        return
    orders, log_bounds = _moment_bounds(trimmed)
    wanted = log_bounds - math.log(rest)
    epsilons = wanted / (orders - 1) + SLACK * np.abs(wanted)
    yield FirstEnd(max(float(np.min(epsilons)), 0.0), _BY_MOMENTS)
    if plan.zeroed is not None:
        yield FirstEnd(_epsilon_by_zero(plan.zeroed, delta), _BY_ZERO)
    if sum(each.times for each in plan.gaussian) <= _FEW_STEPS:
        yield FirstEnd(trimmed.loss + _basic_epsilon(trimmed.gaussian, rest), _BY_SUM)


def _deltas(plan: _Plan, epsilon: float) -> Iterator[FirstEnd]:
    """Return upper bounds on delta at epsilon."""
    yield FirstEnd(1.0, _TRIVIAL)
    lost = math.fsum(each.times * each.lost for each in plan.bounded) * (1 + SLACK)
    both = math.hypot(plan.unsampled, plan.mu_of_bounded)
    yield FirstEnd(lost + _gaussian_delta(epsilon, both), _BY_GAUSSIANS)
    left = epsilon * (1 - 4 * EPS) - plan.loss
    if plan.bounded and left >= 0:
        yield FirstEnd(lost + _gaussian_delta(left, plan.unsampled), _BY_GAUSSIANS)
    # what is left out should be small next to the answer, which is not known yet
    for tail in (1e-3, 1e-6, 1e-10, 1e-16, 1e-30, 1e-60, 1e-120, 1e-250):
        trimmed = plan.without_rarest(tail / 2)
        for end in _by_counts(trimmed, tail):
            yield FirstEnd(trimmed.lost + tail + _gaussian_delta(epsilon, end), _BY_COUNTS)
    # nothing is left out of laws of one distance
    has_rare = any(each.distances.size > 1 for each in plan.gaussian)
    for tail in (1e-6, 1e-16, 1e-100) if has_rare else (1e-100,):
        trimmed = plan.without_rarest(tail)
        yield FirstEnd(trimmed.lost + _moment_delta(trimmed, epsilon), _BY_MOMENTS)
        if (zeroed := trimmed.zeroed) is not None:
            # half of epsilon from the record to 0, and half from there to the other record
            half = epsilon / 2
            by_zero = (zeroed.lost + _moment_delta(zeroed, half)) * (1 + math.exp(min(half, 700.0)))
            yield FirstEnd(by_zero * (1 + SLACK), _BY_ZERO)
        if left >= 0:
            yield FirstEnd(trimmed.lost + _basic_delta(trimmed.gaussian, left), _BY_SUM)


def _moment_bounds(plan: _Plan) -> tuple[np.ndarray, np.ndarray]:
    """Orders, and log(delta(epsilon) e^((order - 1) epsilon)), at most, by each of them (Canonne,
    Kamath and Steinke 2020, Proposition 12)."""
    orders, log_moments = _log_moments(plan)
    return orders, log_moments + conversion(orders)


def conversion(orders: np.ndarray) -> np.ndarray:
    """Return log(delta e^((order - 1) epsilon)) for a moment of 1, at most."""
    return np.asarray((orders - 1) * np.log1p(-1 / orders) - np.log(orders) + SLACK)


def log_moments(case: Case, release: Release, relation: Relation) -> np.ndarray:
    """Return log E (P / Q)^order of these releases, of either data set first, at most, for each of
    `ORDERS`; all losses of a step must be known."""
    steps = _steps_of(case, release, relation, Target(epsilon=1.0))
    assert isinstance(steps, _Steps) and steps.lost == 0
    return _log_moments(_Plan((steps,), ()))[1]


def _moment_delta(plan: _Plan, epsilon: float) -> float:
    orders, log_moments = _log_moments(plan)
    log_delta = log_moments + conversion(orders) - (orders - 1) * epsilon * (1 - 1e-12)
    by_orders = max(math.exp(min(float(log_delta.min()), 0.0)), _UNDERFLOW)
    # delta(epsilon) <= delta(0), the total variation, which is at most sqrt(KL / 2) (Pinsker); KL
    # is at most the Renyi divergence of order 2
    return min(by_orders, math.sqrt(log_moments[0] / 2) * (1 + SLACK))


def _epsilon_by_zero(zeroed: _Plan, delta: float) -> float:
    """Twice an x at which delta_0(x) (1 + e^x) <= delta, delta_0 that of a record set to 0."""
    trimmed = zeroed.without_rarest(delta * 1e-6)
    orders, log_bounds = _moment_bounds(trimmed)
    orders, log_bounds = orders[1:], log_bounds[1:]
    # 1e-3 of delta for what is left out, which counts 1 + e^x times
    wanted = log_bounds - math.log(delta) + 2e-3
    at_least = np.maximum(wanted / (orders - 2), 0.0)
    wanted = wanted + np.log1p(np.exp(-at_least))
    x = max(float(np.min(wanted / (orders - 2) + SLACK * np.abs(wanted))), 0.0)
    if trimmed.lost * (1 + math.exp(min(x, 700.0))) > 1e-3 * delta:
        return math.inf
    return 2 * x


def _steps_of(
    case: Case, release: Release, relation: Relation, target: Target
) -> _Steps | _Bounded:
    """Return the facts about one kind of release that upper bounds need."""
    event = case.event.proved if isinstance(case.event, EnclosedEvent) else case.event
    if isinstance(event, OwnEvent):
        return _own_losses(event, release.times, target)
    s, times = release.noise_multiplier, release.times
    if release.mechanism == "laplace":
        return _Bounded(times, _laplace_loss(case, release, relation))
    if isinstance(event, PairEvent):
        return _steps_of_pair(event.pair, times, case.shift / s)
    if isinstance(release.sampler, StagedSampler):
        return _steps_of_chain(release.chain(), release, relation, case.shift / s)
    if isinstance(release.sampler, TruncatedPoisson) and release.group == 1:
        return _steps_of_cut_samples(release.sampler, release, relation, target)
    # of one record in steps that are released once each
    if isinstance(release.sampler, MinSeparation) and case.theorem.number == "87":
        return _steps_of_separated(release.sampler, release, relation, case.shift / s)
    # the steps of a schedule revealed, or the distance of a group, record by record
    return _Steps.revealed(times, case.shift / s)


def _steps_of_pair(pair: GaussianPair, times: int, farthest: float) -> _Steps:
    """Return the steps of worst data sets that are known: a base N(0), and shifts given the
    draw."""
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
    """Return the steps of samples in which a record takes others' places: Theorems 4, 6 and 10 with
    all stages but the first one revealed."""
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
    """Return the steps of cut samples by Theorem 18, with the rate of samples with room in both of
    its cases, or without full ones where these are very rare."""
    # its family is loaded where it is asked for
    from dpsub.accounting.schemes.truncated.cut_samples import CutSample

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


def _steps_of_separated(
    schedule: MinSeparation, release: Release, relation: Relation, revealed: float
) -> _Steps:
    """Return the steps of an epoch as those of Poisson sampling at the same rate, or the record's
    steps revealed, where it is in nearly as many as it may be."""
    s, rate, is_replaced = release.noise_multiplier, schedule.rate, relation is Relation.SUBSTITUTE
    # squares of deviations of the loss of an epoch, roughly
    if rate**2 * s**2 * math.expm1(s**-2) * schedule.separation >= 1:
        return _Steps.revealed(release.times, revealed)
    pair = WorPair(rate, s) if is_replaced else PoissonPair(rate, s)
    return _steps_of_pair(pair, release.times * schedule.t, (2.0 if is_replaced else 1.0) / s)


def _laplace_loss(case: Case, release: Release, relation: Relation) -> float:
    """Largest loss of a step with Laplace noise, for each record of a group."""
    group = release.records_moved
    loss = case.shift / group / release.noise_multiplier
    if isinstance(release.sampler, StagedSampler):
        chain = release.chain()
        if relation is Relation.ADD_REMOVE:
            chain = replace(chain, n=chain.n + 1)
        rate = min(1.0, float(law_of(chain).eta) * (1 + SLACK))
        # log(1 + q (e^loss - 1))
        loss = (
            loss + math.log(rate + (1 - rate) * math.exp(-loss))
            if loss > 1
            else one_mixture_loss(loss, rate)
        )
    return min(group * loss, case.event.largest_loss) * (1 + SLACK)


def _own_losses(event: OwnEvent, times: int, target: Target) -> _Bounded:
    """The largest loss of a mechanism of one's own, or one that is exceeded seldom enough."""
    if math.isfinite(event.largest_loss):
        return _Bounded(times, event.largest_loss * (1 + SLACK))
    losses = np.concatenate([[0.0], np.geomspace(1e-6, 700.0, 400)])
    if target.epsilon is not None:
        losses = np.array([target.epsilon / times * (1 - 4 * EPS)])
    beyond = np.maximum(*(profile(losses) for profile in event.profiles())) * (1 + SLACK)
    # half of delta for larger losses, or little more than the probability of infinite ones
    allowed = max(0.5 * (target.delta or 0.0) / times, float(beyond[-1]) * (1 + SLACK))
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
    yield math.sqrt(min(beyond, most) * (1 + SLACK) + bounded)
    if len(plan.gaussian) == 1 and len(plan.gaussian[0].distances) == 1:
        # a binomial law has a sharper one
        [(each, square)] = squares
        count = _most_drawn(each.times, float(each.weights[0]), log_tail)
        yield math.sqrt(count * float(square[0]) * (1 + SLACK) + bounded)


def _most_drawn(times: int, rate: float, log_tail: float) -> int:
    """A number that Binomial(times, rate) exceeds with probability at most e^-log_tail (Chernoff's
    bound)."""
    if rate >= 1:
        return times
    low, high = math.ceil(times * rate), times
    while low < high:
        middle = (low + high) // 2
        if float(divergence(middle + 1, times, rate)) >= log_tail:
            high = middle
        else:
            low = middle + 1
    return high


# moments

ORDERS = np.unique(
    np.concatenate([np.arange(2, 17), np.round(np.geomspace(17, 256, 14)), [512, 1024]])
).astype(int)
"""Orders of moments."""
# all pairs (order, j), 2 <= j <= order, one order after the other
_ORDER = np.repeat(ORDERS, ORDERS - 1)
_J = np.concatenate([np.arange(2, order + 1) for order in ORDERS.tolist()])
_STARTS = np.concatenate([[0], np.cumsum(ORDERS - 1)[:-1]])
_LOG_CHOICES = gammaln(_ORDER + 1) - gammaln(_J + 1) - gammaln(_ORDER - _J + 1)


def _log_moments(plan: _Plan) -> tuple[np.ndarray, np.ndarray]:
    """Orders, and log E_Q (P / Q)^order of all steps, rounded up."""
    orders = ORDERS.astype(float)
    total = np.zeros(orders.size)
    for steps in plan.gaussian:
        # work: about 2e5 for each kind; charged to no budget, as both bounds exist without one
        excess = np.minimum(_revealed_excess(steps, orders), _hidden_excess(steps))
        total += steps.times * np.logaddexp(0.0, excess) * (1 + SLACK)
    for each in plan.bounded:
        # (e, 0)-DP has Renyi divergences of at most order e^2 / 2 (Bun and Steinke 2016)
        total += each.times * (orders - 1) * np.minimum(each.loss, orders * each.loss**2 / 2)
    return orders, total * (1 + SLACK)


def _revealed_excess(steps: _Steps, orders: np.ndarray) -> np.ndarray:
    """log(E_Q (P / Q)^order - 1) with counts revealed: a mean over Gaussian steps."""
    exponents = np.multiply.outer(orders * (orders - 1) / 2, steps.distances**2)
    return _log_mean(_log_expm1(exponents), steps.weights)


def _hidden_excess(steps: _Steps) -> np.ndarray:
    """The same with the counts hidden: sums over j of choices of j factors."""
    if steps.rate >= 1:
        return np.full(ORDERS.size, np.inf)
    squares = (steps.lifted * steps.distances) ** 2
    j = np.arange(2.0, ORDERS[-1] + 1)
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
    terms += SLACK + 1e-13 * np.abs(by_j)
    peak = np.maximum.reduceat(terms, _STARTS)
    sums = np.add.reduceat(np.exp(terms - np.repeat(peak, ORDERS - 1)), _STARTS)
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
    # where the logarithm overflows a larger one is safe
    value = np.maximum(profile.group_log_delta(epsilon * (1 - 1e-12), mu), -1e300)
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
    goal = math.log(delta) * (1 + 4 * EPS) - 1e-14
    # G(e^epsilon, mu) <= Phi(mu / 2 - epsilon / mu)
    highest = mu * (mu / 2 + max(-float(ndtri_exp(goal)), 0.0)) * (1 + SLACK)
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
    return np.asarray(np.logaddexp.reduce(parts) + SLACK)


def _basic_delta(steps: Sequence[_Steps], epsilon: float) -> float:
    if not steps:
        return 0.0
    log_delta = float(_log_basic(steps, np.array([epsilon * (1 - 4 * EPS)]))[0])
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
