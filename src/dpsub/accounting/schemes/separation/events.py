"""One epoch of separated steps, from both sides: docs/proofs/schedules.md, "Separated steps".

From above the record's availability is revealed, so that an epoch is a sum over the steps at which
it is available (Theorem 87). From below by a sum of functions of the steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.special import ndtr

from dpsub.accounting.engine import work
from dpsub.accounting.engine.cell_masses import TINY, UNDERFLOW, mixture_masses, normal_masses
from dpsub.accounting.engine.discretise import DirectedPair, loss_indices
from dpsub.accounting.engine.fourier import ComposedLoss
from dpsub.accounting.engine.pairs import LOSS_TOLERANCE, PoissonPair
from dpsub.accounting.engine.pld import (
    PrivacyLossDistribution,
    Profile,
    RememberedProfile,
    symmetric_pld,
)
from dpsub.accounting.engine.privacy_events import PairEvent, ProvedEvent, order_grid
from dpsub.accounting.schemes.allocation.occupancy import Occupancy
from dpsub.accounting.schemes.allocation.one_step import (
    LawsOfSum,
    SumAttack,
    SumLaws,
    by_reference,
    laws_of_sums,
    on_grid,
)
from dpsub.accounting.schemes.separation.renewal import RenewalLoss
from dpsub.noise import GaussianProfile
from dpsub.sampling.laws import binomial_range
from dpsub.sampling.separated import MinSeparation

_EPS = float(np.finfo(float).eps)
_ROUNDED = 1 + 16 * _EPS
_INNER = 4  # cells of the law of a step in its deviation
_FINEST = 32  # largest number of them in a cell of the epoch's law
_UNLIKELY = 1e-12  # counts that do not set the grid of a sum
_LEFT_OUT = 1e-40  # of larger counts
_COUNT_ERROR = 1e-11  # relative error allowed for probabilities of counts


def composed_steps(
    schedule: MinSeparation, laws: tuple[PrivacyLossDistribution, ...]
) -> RenewalLoss:
    """Return the sum of what the steps of an epoch add: by an available record that is not drawn,
    by one that is, and by one that waits, if it does."""
    return RenewalLoss(
        laws,
        [schedule.t] * len(laws),
        separation=schedule.separation,
        waiting=schedule.waiting,
    )


@work.remembered(32)
def counts_of(schedule: MinSeparation) -> np.ndarray:
    """Return the probabilities that a record is in 0, 1, ... steps of an epoch, up to where they
    are below e^-100."""
    p, b = schedule.rate, schedule.separation
    rows = min(b, schedule.t) + 1
    # Poisson sampling at this rate has as many or more: what is left out is below every tail
    most = min(schedule.most_occurrences, binomial_range(schedule.t, p, p)[1])
    work.spend(work.TERM * schedule.t * (most + 20))
    # of the last n steps, the record being available before them; the newest row at n % rows
    of_last = np.zeros((rows, most + 1))
    of_last[0, 0] = 1.0
    for n in range(1, schedule.t + 1):
        row = (1 - p) * of_last[(n - 1) % rows]
        row[1:] += p * of_last[max(n - b, 0) % rows, :-1]
        of_last[n % rows] = row
    never = np.zeros(most + 1)
    never[0] = 1.0
    law = np.zeros(most + 1)
    for wait, chance in enumerate(schedule.waiting.tolist()):
        n = schedule.t - wait
        law += chance * (of_last[n % rows] if n > 0 else never)
    return law


@dataclass(frozen=True)
class SeparatedEvent(ProvedEvent):
    """Upper bound of one epoch for a record that is added, removed or set to 0."""

    schedule: MinSeparation
    deviation: float

    @cached_property
    def pair(self) -> PoissonPair:
        """The pair of a step at which the record is available."""
        return PoissonPair(self.schedule.rate, self.deviation)

    def step_laws(
        self, step: float, tail: float, swapped: bool
    ) -> tuple[PrivacyLossDistribution, PrivacyLossDistribution]:
        """The laws of a step at which the record is available, not drawn and drawn, that `upper`
        composes."""
        # the losses of a step may need a finer grid than their sum
        wanted = step * _INNER / _spread(self.pair)
        finer = 2 ** math.ceil(math.log2(min(max(wanted, 1.0), _FINEST)))
        cells = _AvailableStep.of(self.pair, step / finer, tail / self.schedule.t)
        return cells.backward if swapped else cells.forward

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        composed = composed_steps(self.schedule, self.step_laws(step, tail, swapped))
        losses, masses, infinity = composed.law()
        return on_grid(losses, masses * _ROUNDED, infinity, step)

    @property
    def symmetric(self) -> bool:
        return False

    def spread(self) -> float:
        available = self.schedule.occurrences / self.schedule.rate
        return _spread(self.pair) * math.sqrt(max(available, 1.0))


@work.remembered(64)
def _spread(pair: PoissonPair) -> float:
    return PairEvent(pair).spread()


@dataclass(frozen=True, eq=False)
class _AvailableStep:
    """Cells of the likelihood ratio r of a step at which the record is available, between `low` and
    `high`: bounds of their masses under N(0) and N(1), and of the means of r under both."""

    rate: float
    step: float
    indices: np.ndarray
    off: float  # that edges may be off in loss
    low: np.ndarray
    high: np.ndarray
    base: tuple[np.ndarray, np.ndarray]
    drawn: tuple[np.ndarray, np.ndarray]
    mean: np.ndarray  # under N(0), at most
    mean_drawn: tuple[np.ndarray, np.ndarray]
    ends: tuple[tuple[float, float], tuple[float, float]]  # masses left and right of the cells

    @classmethod
    def of(cls, pair: PoissonPair, step: float, tail: float) -> _AvailableStep:
        direction, p, s = DirectedPair(pair), pair.rate, pair.deviation
        indices = loss_indices(direction, step, tail)
        points = indices * step
        t = direction.place(points)
        off = LOSS_TOLERANCE * max(1.0, float(np.abs(points[[0, -1]]).max()))
        low, high = np.exp(points[:-1] - off), np.exp(points[1:] + off)
        # r N(1) is p exp(1 / s^2) N(2) and a share of N(1)
        base, drawn, twice = (_mass_bounds(t, mean, s) for mean in (0.0, 1.0, 2.0))
        growth = p * math.exp(s**-2)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = ((1 - p) * base[1] + p * drawn[1]) / base[0]
            least = 1 - p + growth * twice[0] / drawn[1]
            most = 1 - p + growth * twice[1] / drawn[0]
        # where masses underflow their means are unknown
        mean = np.where(base[0] > TINY, mean * _ROUNDED, high)
        most = np.where(drawn[0] > TINY, most * _ROUNDED, high)
        least = np.where(drawn[1] > TINY, least / _ROUNDED, low)
        mean, most, least = (np.clip(each, low, high) for each in (mean, most, least))
        of_base, of_drawn = (
            (float(ndtr((t[0] - at) / s)), float(ndtr((at - t[-1]) / s))) for at in (0.0, 1.0)
        )
        ends = of_base, of_drawn
        return cls(p, step, indices, off, low, high, base, drawn, mean, (least, most), ends)

    @property
    def forward(self) -> tuple[PrivacyLossDistribution, PrivacyLossDistribution]:
        """Laws of the loss with the record not drawn, and with it drawn, for P first."""
        p, of_base, of_drawn = self.rate, *self.ends
        missed = self._with_record(1 - p, self.base[1], self.mean, of_base)
        return missed, self._with_record(p, self.drawn[1], self.mean_drawn[1], of_drawn)

    def _with_record(
        self, share: float, mass: np.ndarray, mean: np.ndarray, ends: tuple[float, float]
    ) -> PrivacyLossDistribution:
        # 1 / r has at least the mean 1 / mean: what goes to the upper ends keeps it
        width = 1 - self.low / self.high
        up = np.clip((1 - self.low / mean + 16 * _EPS) / width, 0.0, 1.0)
        mass = share * mass * _ROUNDED
        masses = np.append(share * ends[0] * _ROUNDED, mass * up)
        masses[:-1] += mass * (1 - up) * _ROUNDED
        infinity = min(share * ends[1] * _ROUNDED + TINY, 1.0)
        return PrivacyLossDistribution(
            self.step, self.indices, masses, "upper", infinity=infinity, offset=self.off
        )

    @property
    def backward(self) -> tuple[PrivacyLossDistribution, PrivacyLossDistribution]:
        """The same for Q first, whose mass with the record drawn may be counted as not drawn."""
        p, low, high = self.rate, self.low, self.high
        least, most = self.mean_drawn
        # of p N(1) / r, between Jensen's inequality and the chord
        drawn = p * self.drawn[0] / most / _ROUNDED
        chord = np.minimum((low + high - least) / (low * high), 1 / low)
        counted_as_missed = np.maximum(p * self.drawn[1] * chord * _ROUNDED - drawn, 0.0)
        missed = np.maximum(self.base[1] * _ROUNDED - drawn, 0.0)
        with_missed = (1 - p) * self.base[0] / _ROUNDED
        with_drawn = p * self.drawn[0] / _ROUNDED - high * counted_as_missed
        below, above = self.ends[0]
        return (
            self._without_record(missed, with_missed, (below, above)),
            self._without_record(drawn, with_drawn, (0.0, 0.0)),
        )

    def _without_record(
        self, mass: np.ndarray, other: np.ndarray, ends: tuple[float, float]
    ) -> PrivacyLossDistribution:
        """The law of cells with these masses under Q, and with at least `other` under P."""
        low, high = self.low, self.high
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(mass > TINY, other / mass, low)
        up = np.clip((mean / low - 1 - 16 * _EPS) / (high / low - 1), 0.0, 1.0)
        masses = np.append(0.0, mass * up * _ROUNDED)
        masses[:-1] += mass * (1 - up) * _ROUNDED
        # right of the cells losses are smaller
        masses[-1] += ends[1] * _ROUNDED
        infinity = min(ends[0] * _ROUNDED, 1.0)
        return PrivacyLossDistribution(
            self.step, -self.indices, masses, "upper", infinity=infinity, offset=self.off
        )


def _mass_bounds(t: np.ndarray, mean: float, s: float) -> tuple[np.ndarray, np.ndarray]:
    masses, errors = mixture_masses(t, np.array([mean]), np.ones(1), s)
    errors = errors + UNDERFLOW
    return np.maximum(masses - errors, 0.0), masses + errors


@dataclass(frozen=True)
class SeparatedReplaced(ProvedEvent):
    """Upper bound of one epoch for a record that is replaced: the smaller one of that by way of no
    record, and of Gaussians 2 C apart in each of its steps, these revealed."""

    schedule: MinSeparation
    deviation: float

    @cached_property
    def profile(self) -> Profile:
        """Upper bounds of H_a, a >= 1, in both directions."""
        removed = SeparatedEvent(self.schedule, self.deviation)

        # where it is asked for: a budget that does not suffice for it leaves closed-form bounds
        @cache
        def by_no_record() -> Profile:
            return by_reference(removed, removed)

        def least(log_order: np.ndarray) -> np.ndarray:
            return np.minimum(self.revealed(log_order), by_no_record()(log_order))

        return RememberedProfile(least)

    @cached_property
    def revealed(self) -> Profile:
        """The mean over the number of the record's steps."""
        shares = counts_of(self.schedule) * (1 + _COUNT_ERROR)
        apart = 2 * np.sqrt(np.arange(shares.size)) / self.deviation
        seen = np.flatnonzero(shares[1:]) + 1

        def bound(log_order: np.ndarray) -> np.ndarray:
            work.spend(work.TERM * 8 * seen.size * np.size(log_order))
            total = sum(shares[k] * GaussianProfile(apart[k]).delta(log_order) for k in seen)
            return np.asarray(np.minimum(total * (1 + 1e-9) + _LEFT_OUT, 1.0))

        return bound

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return symmetric_pld(self.profile, step, order_grid(self.profile, step, tail))

    @property
    def symmetric(self) -> bool:
        return True

    def spread(self) -> float:
        return 2 * SeparatedEvent(self.schedule, self.deviation).spread()


@dataclass(frozen=True)
class SeparatedSum(SumAttack):
    """Lower bound of one epoch by a sum of functions of its steps: of the logarithm of the
    likelihood ratio of a step, at `tilt` times the mean rate; the record moves its steps by x or by
    y."""

    schedule: MinSeparation
    deviation: float
    tilt: float
    x: float
    y: float

    @property
    def laws(self) -> SumLaws:
        return _sum_laws(self)


@work.remembered(8)
def _sum_laws(event: SeparatedSum) -> SumLaws:
    schedule, sigma = event.schedule, 1 / event.deviation
    x, y = event.x * sigma, event.y * sigma
    z = np.linspace(-12.0 + min(y, 0.0), 12.0 + x, 20_001)
    rate = min(event.tilt * schedule.occurrences / schedule.t, 0.999)

    def log_ratio(mean: float) -> np.ndarray:
        return np.logaddexp(math.log1p(-rate), math.log(rate) + mean * z - mean**2 / 2)

    value = log_ratio(x) - log_ratio(y) if y < 0 else log_ratio(x)
    counts = counts_of(schedule)
    most = int(np.flatnonzero(counts > _UNLIKELY)[-1])
    widest = Occupancy(((schedule.t - most, most),))
    return laws_of_sums(z, value, widest, (x, y), _laws_of(schedule))


def _laws_of(schedule: MinSeparation) -> LawsOfSum:
    p = schedule.rate

    def laws_of(
        h: float, integers: np.ndarray, edges: np.ndarray, _: Occupancy, shift: float
    ) -> list[tuple[ComposedLoss, ComposedLoss]]:
        base, drawn = normal_masses(edges, 0.0), normal_masses(edges, shift)

        def rounded(side: str, sign: int) -> ComposedLoss:
            def law(
                share: float, masses: np.ndarray, errors: np.ndarray
            ) -> PrivacyLossDistribution:
                bound = np.maximum(masses + sign * errors, 0.0) * share * (1 + sign * 4 * _EPS)
                return PrivacyLossDistribution(h, integers, bound, side)

            if not shift:
                return ComposedLoss([law(1.0, *base)], [schedule.t])
            laws = law(1 - p, *base), law(p, *drawn), law(1.0, *base)
            return composed_steps(schedule, laws)

        return [(rounded("lower", -1), rounded("upper", 1))]

    return laws_of
