"""Composition of privacy loss distributions (PLDs) by one fast Fourier transform, with every error
charged.

PLDs are tilted, m(x) -> m(x) e^{tilt x - kappa}, before the transform and untilted after it: at the
saddle point of the question round-off is small relative to delta, however small delta is. Aliasing,
round-off of transforms and tilts, and infinite losses are charged upwards on the upper side,
downwards on the lower: docs/proofs/numerics.md, "One tilted transform", whose paragraphs are
named where they are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import fft

from dpsub import checks
from dpsub.accounting.engine import work
from dpsub.accounting.engine.pld import PrivacyLossDistribution
from dpsub.errors import ArgumentError, NumericalError

_EPS = float(np.finfo(float).eps)
# largest tilt times step: neighbours differ by a factor that round-off does not swallow
_MOST_PER_STEP = 20.0
# log of the tilted probability that is left outside each end of the window: 1e-13
_LOG_TAIL = -30.0
# log of the size below which entries of the k-th power are set to 0, and charged at that size
_LOG_VANISHING = -80.0
# from this power on it is taken by modulus and phase
_BY_PHASE = 100
# charged for masses and profiles that are 0 because no double is as small: no delta is 0
_UNDERFLOW = 1e-300
# a tilt so many times that of its epsilon is doubted, if delta is off by as much
_FAR_TILT, _SHARP = 2.0, 0.02
_BISECTIONS = 24
# which tilts a law of plain masses is put together from
_LAW_DELTAS = (1e-4, 1e-10, 1e-20, 1e-40)
# each cuts the cell of the grid that holds an epsilon by 64: 4e-6 of a step is left
_CUTS_OF_A_CELL = 3
# largest step, in nats: the exponentials of it and of the largest loss, together, are doubles
_COARSEST = 100.0
# from so many points on the losses of a single release are summed as they are
_LONG_GRID = 2**20
MAX_GRID = 2**24
"""Largest transform; beyond it the answer asks for a larger step."""
# kinds whose spectra are multiplied before it is looked which of their entries matter
_TOGETHER = 8
# longer arrays leave the caches
_PIECE = 2**17


class Blends(NamedTuple):
    """Laws of many kinds of steps, each (1 - share) times that of plds[first] and share times that
    of plds[second], shape (kinds,) each."""

    first: np.ndarray
    second: np.ndarray
    share: np.ndarray

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of a number of each PLD over each kind's mixture, shape (kinds,)."""
        return (1 - self.share) * values[self.first] + self.share * values[self.second]

    def log_mean(self, logs: np.ndarray) -> np.ndarray:
        """Return the logarithm of the mean of an exponential over each kind's mixture, from
        logarithms."""
        with np.errstate(divide="ignore"):
            return np.logaddexp(
                np.log1p(-self.share) + logs[self.first], np.log(self.share) + logs[self.second]
            )

    def tilted(self, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of both tilted laws in a tilted kind, from the logs of their total
        masses."""
        total = self.log_mean(logs)
        with np.errstate(divide="ignore"):
            of_first = np.exp(np.log1p(-self.share) + logs[self.first] - total)
            of_second = np.exp(np.log(self.share) + logs[self.second] - total)
        return of_first, of_second


@dataclass(frozen=True, eq=False)
class Cumulants:
    """K(tilt) = sum over t of steps[t] log E e^{tilt L_t}, of finite losses without offsets."""

    plds: Sequence[PrivacyLossDistribution]
    steps: Sequence[int]
    blends: Blends | None = None

    def __call__(self, tilt: float) -> float:
        # it decides tilts, of which any is valid, and windows, where Chernoff's bound exceeds the
        # tail by far more than rounding takes away
        if self.blends is not None:
            logs = self.blends.log_mean(self._logs(tilt))
            return float(np.einsum("i,i", self._counts, logs))
        return sum(
            k * pld.quick_log_mgf(tilt) for pld, k in zip(self.plds, self.steps, strict=True)
        )

    def _logs(self, tilt: float) -> np.ndarray:
        """log E e^{tilt L} of every PLD, up to rounding."""
        log_masses, losses, starts = self._table
        work.spend(work.TERM * losses.size)
        exponents = log_masses + tilt * losses
        largest = np.maximum.reduceat(exponents, starts)
        sizes = np.diff(np.append(starts, losses.size))
        np.exp(exponents - np.repeat(largest, sizes), out=exponents)
        return np.asarray(largest + np.log(np.add.reduceat(exponents, starts)))

    @cached_property
    def _table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Masses, as logarithms, and losses of all PLDs, and where each of them starts."""
        log_masses = np.concatenate([pld.log_masses for pld in self.plds])
        losses = np.concatenate([pld.losses for pld in self.plds])
        starts = np.cumsum([0, *(pld.losses.size for pld in self.plds[:-1])])
        return log_masses, losses, starts

    @cached_property
    def _counts(self) -> np.ndarray:
        return np.array(self.steps, dtype=float)

    @cached_property
    def support(self) -> tuple[int, int]:
        """Smallest and largest index of the sum on the grid."""
        if self.blends is not None:
            ends = np.array([pld.support for pld in self.plds])
            first, second, _ = self.blends
            smallest = np.minimum(ends[first, 0], ends[second, 0])
            largest = np.maximum(ends[first, 1], ends[second, 1])
            steps = np.array(self.steps)
            return int((steps * smallest).sum()), int((steps * largest).sum())
        low = sum(k * pld.support[0] for pld, k in zip(self.plds, self.steps, strict=True))
        high = sum(k * pld.support[1] for pld, k in zip(self.plds, self.steps, strict=True))
        return low, high

    def moments(self, tilt: float) -> tuple[list[float], float]:
        """Mean of each single loss and variance of the sum, under the tilt."""
        if tilt not in self._moments:
            moments = [pld.moments(tilt) for pld in self.plds]
            if self.blends is not None:
                moments = self._blended(tilt, np.array(moments))
            variance = sum(k * v for (_, v), k in zip(moments, self.steps, strict=True))
            self._moments[tilt] = [mean for mean, _ in moments], variance
        return self._moments[tilt]

    def _blended(self, tilt: float, moments: np.ndarray) -> list[tuple[float, float]]:
        assert self.blends is not None
        of_first, of_second = self.blends.tilted(self._logs(tilt))
        (m, v), (n, w) = moments[self.blends.first].T, moments[self.blends.second].T
        mean = of_first * m + of_second * n
        variance = of_first * v + of_second * w + of_first * of_second * (n - m) ** 2
        return list(zip(mean.tolist(), variance.tolist(), strict=True))

    @cached_property
    def _moments(self) -> dict[float, tuple[list[float], float]]:
        return {}

    def tilt_at_epsilon(self, epsilon: float) -> float:
        """The tilt with the smallest bound K(tilt) - tilt epsilon of log P(S >= epsilon); 0 left of
        the mean."""
        return _best_tilt(lambda tilt: self(tilt) - tilt * epsilon, self._unit, self._largest)

    def tilt_at_delta(self, log_delta: float) -> float:
        """The tilt with the smallest epsilon that the Chernoff bound allows at the given delta."""
        return _best_tilt(lambda tilt: (self(tilt) - log_delta) / tilt, self._unit, self._largest)

    @cached_property
    def _unit(self) -> float:
        """One over the standard deviation of the sum: the unit of tilts."""
        return 1 / max(np.sqrt(self.moments(0.0)[1]), 1e-12)

    @property
    def _largest(self) -> float:
        return min(_MOST_PER_STEP / self.plds[0].step, 1e4 * self._unit)

    def reach(self, tilt: float, log_tail: float) -> tuple[float, float]:
        """(low, high) such that the tilted sum lies below low, and above high, with log probability
        <= log_tail: Chernoff's bound, which any exponent makes valid ("Truncation and
        aliasing")."""
        if (tilt, log_tail) not in self._reaches:
            self._reaches[tilt, log_tail] = self._reach(tilt, log_tail)
        return self._reaches[tilt, log_tail]

    @cached_property
    def _reaches(self) -> dict[tuple[float, float], tuple[float, float]]:
        return {}

    def _reach(self, tilt: float, log_tail: float) -> tuple[float, float]:
        base, step = self(tilt), self.plds[0].step
        unit = 1 / max(np.sqrt(self.moments(tilt)[1]), step)
        exponents = (float(np.log(unit * 1e-2)), float(np.log(unit * 1e3)))

        def beyond(sign: int) -> float:
            def end(log_theta: float) -> float:
                theta = float(np.exp(log_theta))
                return (self(tilt + sign * theta) - base - log_tail) / theta

            return minimum(end, *exponents, 0.02)[1]

        # no sum lies beyond its support, whatever Chernoff's bound allows
        smallest, largest = self.support
        low = max(-beyond(-1), (smallest - 0.5) * step)
        high = min(beyond(1), (largest + 0.5) * step)
        return low, high


def _best_tilt(exponent: Callable[[float], float], unit: float, largest: float) -> float:
    """Minimise over tilts in (0, largest) on a logarithmic axis; 0 if the smallest tilt is the
    best."""
    high = float(np.log(largest))
    low = min(float(np.log(unit * 1e-6)), high - 1)
    place, _ = minimum(lambda u: exponent(float(np.exp(u))), low, high, 0.01)
    return 0.0 if place < low + 0.1 else float(np.exp(place))


def minimum(
    value: Callable[[float], float], low: float, high: float, accuracy: float
) -> tuple[float, float]:
    """The minimum of a function that falls and then rises, by golden sections: place and value."""
    shrink = (math.sqrt(5) - 1) / 2
    left, right = high - shrink * (high - low), low + shrink * (high - low)
    at_left, at_right = value(left), value(right)
    while high - low > accuracy:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - shrink * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + shrink * (high - low)
            at_right = value(right)
    return (left, at_left) if at_left <= at_right else (right, at_right)


def damped_sums(values: np.ndarray, damp: float) -> np.ndarray:
    """y with y_j = values_j + damp y_{j-1}, y_{-1} = 0, 0 <= damp <= 1, piece by piece.

    Of values that are nonnegative each y_j is off by at most a few roundings of its value for each
    block of `_blockwise`.
    """
    sums, before = np.empty(values.size), 0.0
    for start in range(0, values.size, _PIECE):
        work.spend(work.NUMBER * 10 * min(_PIECE, values.size - start))
        piece = np.array(values[start : start + _PIECE])
        piece[0] += damp * before
        sums[start : start + _PIECE] = _blockwise(piece, damp)
        before = float(sums[start + piece.size - 1])
    return sums


def _blockwise(values: np.ndarray, damp: float) -> np.ndarray:
    """`damped_sums` of one piece, by about sqrt(p) blocks of that length that advance side by
    side."""
    length = math.isqrt(values.size - 1) + 1
    n_blocks = -(-values.size // length)
    padded = np.zeros(n_blocks * length)
    padded[: values.size] = values
    # row i holds entry i of every block, so that one step of all blocks is one operation on
    # neighbours in memory
    table = padded.reshape(n_blocks, length).T.copy()
    for before, row in pairwise(table):
        row += damp * before
    # what each block hands to the next one arrives there with the powers of the damping
    powers = damp ** np.arange(1, length + 1)
    across = float(powers[-1])
    handed, carry = np.zeros(n_blocks), 0.0
    for block, last in enumerate(table[-1].tolist()):
        handed[block] = carry
        carry = last + across * carry
    table += np.multiply.outer(powers, handed)
    return np.ascontiguousarray(table.T).reshape(-1)[: values.size]


def check_step(step: float) -> None:
    """Raise NumericalError if a grid of losses is so coarse that it tells nothing apart."""
    if step > _COARSEST:
        raise NumericalError(
            f"a loss grid with a step of {step:g} nats is too coarse to bound anything"
        )


@dataclass(frozen=True, eq=False)
class ComposedLoss:
    """One side of delta(epsilon): the sum of independent losses.

    Parameters
    ----------
    plds : sequence of PrivacyLossDistribution
        All of one step and side.
    steps : sequence of int
        How often each of them is composed.
    blends : Blends, optional
        Mixtures of the PLDs that are composed in their place; `steps` is then of each mixture.

    Raises
    ------
    NumericalError
        If the step is too coarse, or the transform would exceed `MAX_GRID` points.
    """

    plds: Sequence[PrivacyLossDistribution]
    steps: Sequence[int]
    blends: Blends | None = None

    def __post_init__(self) -> None:
        counts = tuple(checks.integer("steps", k, at_least=1) for k in self.steps)
        plds = tuple(self.plds)
        kinds = len(plds) if self.blends is None else self.blends.share.size
        if not plds or kinds != len(counts):
            raise ArgumentError(
                f"each PLD needs its number of compositions, got {kinds} and {len(counts)}"
            )
        for field in ("step", "side"):
            values = sorted({str(getattr(pld, field)) for pld in plds})
            if len(values) > 1:
                raise ArgumentError(
                    f"PLDs that are composed must have the same {field}, got {', '.join(values)}"
                )
        check_step(self.plds[0].step)
        object.__setattr__(self, "plds", plds)
        object.__setattr__(self, "steps", counts)

    @property
    def side(self) -> str:
        """ "upper" or "lower", as that of the PLDs."""
        return self.plds[0].side

    @property
    def step(self) -> float:
        """Step of the grid of losses, in nats."""
        return self.plds[0].step

    @cached_property
    def cumulants(self) -> Cumulants:
        """Cumulant generating function of the sum."""
        return Cumulants(self.plds, self.steps, self.blends)

    @cached_property
    def infinity(self) -> float:
        """Mass of an infinite sum, rounded up on the upper side."""
        # 1 - product of (1 - m_t)^(k_t) ("Infinite losses")
        masses = [pld.infinity for pld in self.plds]
        if self.blends is not None:
            masses = self.blends.mean(np.array(masses)).tolist()
        log_finite = sum(
            k * (math.log1p(-mass) if mass < 1 else -math.inf)
            for mass, k in zip(masses, self.steps, strict=True)
        )
        infinite = -math.expm1(log_finite)
        if self.side == "lower":
            return infinite * (1 - 8 * _EPS)
        charged = _UNDERFLOW if any(pld.infinity > 0 for pld in self.plds) else 0.0
        return min(1.0, infinite * (1 + 8 * _EPS) + charged)

    @cached_property
    def _largest(self) -> float:
        """No finite sum is larger, in nats."""
        largest = self.cumulants.support[1] * self.step + self._offset
        return max(0.0, largest + 1e-12 * (1 + abs(largest)))

    @cached_property
    def _offset(self) -> float:
        plds = self.plds
        if self.blends is not None:
            # laws that are mixed with one another have none, or the same
            plds = [plds[place] for place in self.blends.first.tolist()]
        return sum(k * pld.offset for pld, k in zip(plds, self.steps, strict=True))

    def delta(self, epsilon: float) -> float:
        """The bound on delta(epsilon), epsilon any real number in nats."""
        return float(self.curve(np.array([epsilon]))[0])

    def curve(self, epsilon: np.ndarray, around: float | None = None) -> np.ndarray:
        """The bound on delta at many epsilons, shape (e,), from one transform that is sharpest at
        `around`, by default the smallest of them; far from it the bounds stay valid and widen."""
        points = checks.finite_array("epsilon", epsilon, ndim=1)
        centre = float(points.min()) if around is None else around
        if self._sparse:
            deltas = np.array([self._summed(point) for point in points.tolist()])
        else:
            tilt = self.cumulants.tilt_at_epsilon(centre - self._offset)
            deltas = self.masses(tilt).delta(points)
        return self._not_underflown(points, deltas)

    def _not_underflown(self, points: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Upper bounds on delta; none is 0 unless delta is ("Underflow")."""
        if self.side == "lower":
            return bounds
        # no finite sum lies above the largest one; elsewhere no upper bound underflows
        return np.where(points > self._largest, self.infinity, np.maximum(bounds, _UNDERFLOW))

    def deltas(self, epsilons: np.ndarray, share: float) -> np.ndarray:
        """The bounds at epsilons in order, shape (e,). The transform for one of them serves those
        next to it, as long as what it charges there is at most `share` of the bound."""

        def near(place: int) -> tuple[np.ndarray, np.ndarray]:
            tilt = self.cumulants.tilt_at_epsilon(float(epsilons[place]) - self._offset)
            total = self.masses(tilt)
            deltas = self._not_underflown(epsilons, total.delta(epsilons))
            return deltas, total.sharp(epsilons, share, place)

        return self._shared(epsilons, near, self.delta)

    def epsilons(self, deltas: np.ndarray, share: float) -> np.ndarray:
        """The bounds on epsilon at deltas in order, shape (d,); transforms serve several, as in
        `deltas`."""

        def near(place: int) -> tuple[np.ndarray, np.ndarray]:
            total = self.masses(self.cumulants.tilt_at_delta(math.log(deltas[place])))
            epsilons = np.minimum(total.epsilons(deltas), self._largest)
            return epsilons, total.sharp(epsilons, share, place) & (deltas > self.infinity)

        return self._shared(deltas, near, self.epsilon)

    def _shared(
        self,
        questions: np.ndarray,
        near: Callable[[int], tuple[np.ndarray, np.ndarray]],
        alone: Callable[[float], float],
    ) -> np.ndarray:
        """Answers of questions in order, by transforms that serve as many as they are sharp for
        ("Many targets"): the one of the middle question first, then those of both remaining
        parts."""
        answers, pieces = np.empty(questions.size), [(0, questions.size)]
        while pieces:
            first, end = pieces.pop()
            if end - first < 2 or self._sparse:
                answers[first:end] = [alone(value) for value in questions[first:end].tolist()]
                continue
            middle = (first + end) // 2
            bounds, sharp = near(middle)
            if not sharp[middle]:
                bounds[middle], sharp[middle] = alone(float(questions[middle])), True
            left, right = middle, middle + 1
            while left > first and sharp[left - 1]:
                left -= 1
            while right < end and sharp[right]:
                right += 1
            answers[left:right] = bounds[left:right]
            pieces += [(first, left), (right, end)]
        return answers

    def epsilon(self, delta: float) -> float:
        """The bound of the smallest epsilon >= 0 with delta(epsilon) <= `delta`; inf if there is
        none."""
        target = checks.real("delta", delta, above=0, below=1)
        if self.side == "upper" and self.infinity >= target:
            return math.inf
        if self._sparse:
            start = self._largest if self.side == "upper" else 0.0
            return self._searched(start, target, 2 * _BISECTIONS)
        tilt = self.cumulants.tilt_at_delta(math.log(target))
        # no finite sum lies above the largest one, and the infinite ones are rarer than the target
        epsilon = min(self.masses(tilt).epsilon(target), self._largest)
        nearer = self.cumulants.tilt_at_epsilon(epsilon - self._offset)
        if tilt <= _FAR_TILT * nearer or self._sharp(epsilon, target):
            return epsilon
        return self._searched(epsilon, target)

    def _sharp(self, epsilon: float, target: float) -> bool:
        """Whether delta at the tilt of this epsilon comes out close to the target."""
        ratio = self.delta(epsilon) / target
        return ratio >= 1 - _SHARP if self.side == "upper" else ratio <= 1 + _SHARP

    @property
    def _sparse(self) -> bool:
        """Whether one release has far fewer losses than the grid between them has points, as where
        inclusions are rare and their losses large: then they are summed one by one ("One
        release")."""
        low, high = self.cumulants.support
        return sum(self.steps) == 1 and high - low > _LONG_GRID

    def _summed(self, epsilon: float) -> float:
        """delta of one release, a sum of positive terms."""
        work.spend(work.TERM * self.plds[0].indices.size)
        sign, losses = 1 if self.side == "upper" else -1, self.plds[0].losses + self._offset
        rounding = sign * 8 * _EPS * (1 + abs(epsilon) + float(np.abs(losses).max()))
        weights = -np.expm1(np.minimum(epsilon - rounding - losses, 0.0))
        finite = max(0.0, float(np.einsum("i,i", self.plds[0].masses, weights)))
        return min(1.0, finite * (1 + sign * 4 * _EPS * losses.size) + self.infinity)

    def _searched(self, start: float, target: float, rounds: int = _BISECTIONS) -> float:
        """epsilon by bisection of delta, each at its own tilt: Chernoff's bound looks at the
        largest sums alone if a target is about as probable as they are. The answer is an
        epsilon whose delta was evaluated, or `start`, where that is better."""
        upper = self.side == "upper"
        low, high = 0.0, max(0.0, self.cumulants.support[1] * self.step + self._offset)
        high = min(high, start) if upper else high
        for _ in range(rounds):
            work.spend(0)
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= target else (middle, high)
        best = high if upper else low
        if upper and self.delta(best) > target:
            return start
        return min(best, start) if upper else max(best, start)

    def law(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Losses, their masses, and the mass of an infinite one, each rounded to the side of the
        bound.

        A mass is the smallest of several upper bounds, or the largest of lower ones, from
        transforms with tilts from 0 on, whose errors are small in different places ("Exported
        laws").
        """
        sign = 1 if self.side == "upper" else -1
        if sum(self.steps) == 1:
            indices, which = np.unique(self.plds[0].indices, return_inverse=True)
            masses = np.bincount(which, self.plds[0].masses) * (1 + sign * 4 * _EPS * which.size)
            return self._rounded_losses(indices), masses, self.infinity + 0.0
        tilts = [0.0, *(self.cumulants.tilt_at_delta(math.log(delta)) for delta in _LAW_DELTAS)]
        sums: list[TiltedSum] = []
        for total in map(self.masses, tilts):
            if sums and total.start > sums[-1].end:
                break
            sums.append(total)
        first, last = min(total.start for total in sums), max(total.end for total in sums)
        bounds: np.ndarray = np.full(last - first, 1.0 if sign > 0 else 0.0)
        beyond, nearest = 1.0, np.minimum if sign > 0 else np.maximum
        for total in sums:
            place = slice(total.start - first, total.end - first)
            bounds[place] = nearest(bounds[place], total.bounds)
            # P(S > x) <= e^(K - tilt x) P_tilt(S > x), the first factor about 1 at most right of
            # the mean
            exponent = total.log_scale - total.tilt * (total.end - 1) * self.step
            beyond = min(beyond, math.exp(min(exponent, 0.0)) * total.tail)
        losses = self._rounded_losses(np.arange(first, last))
        if sign < 0:
            return losses, bounds, self.infinity + 0.0
        # what is left of the window without a tilt is put on its first point
        bounds[0] += 2 * sums[0].tail
        return losses, bounds, min(1.0, self.infinity + 2 * beyond)

    def _rounded_losses(self, indices: np.ndarray) -> np.ndarray:
        sign = 1 if self.side == "upper" else -1
        losses: np.ndarray = indices * self.step + self._offset
        return losses + sign * 8 * _EPS * (1 + np.abs(losses))

    def masses(self, tilt: float = 0.0) -> TiltedSum:
        """The masses of the sum on its grid, tilted, up to the errors that are named with them."""
        low, high = self.cumulants.reach(tilt, _LOG_TAIL)
        wanted = math.ceil((high - low) / self.step) + 2
        if wanted > MAX_GRID:
            raise NumericalError(
                f"the composed loss needs {wanted} grid points, more than {MAX_GRID}; take a step "
                f"above {self.step:g}"
            )
        size = fft.next_fast_len(max(wanted, 16), real=True)
        multiply = self._product if self.blends is None else self._product_of_blends
        product, log_scale, centre = multiply(tilt, size)
        work.spend(work.transform(size) + work.NUMBER * 10 * size)
        first = math.floor(low / self.step) - centre
        values = np.roll(fft.irfft(product.values, n=size), -first)
        # Parseval: errors of the spectrum are those of the masses in Euclidean norm, and the
        # transform back adds its own; a real spectrum stores each conjugate pair once
        squares = 2 * float(np.einsum("i,i", product.error, product.error))
        squares -= float(product.error[0]) ** 2
        back = transform_error(size) * math.sqrt(np.einsum("i,i", values, values))
        return TiltedSum(
            values=values,
            start=centre + first,
            step=self.step,
            offset=self._offset,
            tilt=tilt,
            log_scale=log_scale,
            round_off=math.sqrt(squares / size) + back,
            tail=math.exp(_LOG_TAIL),
            infinity=self.infinity,
            side=self.side,
        )

    def _product(self, tilt: float, size: int) -> tuple[Spectrum, float, int]:
        """The transform of the tilted sum on a cycle, its kappa, and the origin of its indices."""
        for_each = 2 * (work.transform(size) + work.TERM * size)
        work.ensure(len(self.plds) * for_each, "a transform of so many points")
        means, _ = self.cumulants.moments(tilt)
        product: Spectrum | None = None
        log_scale, centre = 0.0, 0
        stage_error = transform_error(size)
        for pld, k, mean in zip(self.plds, self.steps, means, strict=True):
            # the mean at index 0 keeps the phases of all entries that matter small, and powers of
            # them accurate
            middle, kappa = round(mean / pld.step), pld.log_mgf(tilt)
            masses = tilted_masses(pld, tilt, kappa)
            cyclic = np.bincount((pld.indices - middle) % size, masses, minlength=size)
            spectrum = np.asarray(fft.rfft(cyclic))
            power = _power(spectrum, k, stage_error)
            product = power if product is None else product.times(power)
            log_scale += k * kappa
            centre += k * middle
        assert product is not None
        return product, log_scale, centre

    def _product_of_blends(self, tilt: float, size: int) -> tuple[Spectrum, float, int]:
        """`_product` for mixtures, at the frequencies where the product is not yet negligible:
        after few kinds these are a small part ("Many kinds")."""
        assert self.blends is not None
        means, _ = self.cumulants.moments(tilt)
        logs = np.array([pld.log_mgf(tilt) for pld in self.plds])
        blends, kappas = self.blends, self.blends.log_mean(logs)
        of_first, of_second = blends.tilted(logs)
        counts, stage_error = np.array(self.steps, dtype=float), transform_error(size)
        middle = round(float(np.mean(means)) / self.step)
        kept: np.ndarray = np.arange(size // 2 + 1)
        product: np.ndarray = np.ones(kept.size, dtype=complex)
        log_size: np.ndarray = np.zeros(kept.size)
        relative: np.ndarray = np.zeros(kept.size)
        # kinds of the same laws are neighbours
        order = np.lexsort((blends.second, blends.first))
        laws = np.array([blends.first, blends.second])[:, order]
        starts = np.flatnonzero(np.append(True, np.any(np.diff(laws), axis=0)))
        # parts are off by roundings of their exponents, from ln 1e-12 on, or 0
        sign = 1 if self.side == "upper" else -1
        rounded = 1 + sign * 8 * _EPS * (40 + 2 * float(np.abs(logs).max()))
        for group in np.split(order, starts[1:]):
            one, other = int(blends.first[group[0]]), int(blends.second[group[0]])
            spectra = {
                place: self._spectrum(place, tilt, logs, middle, size) for place in {one, other}
            }
            for few in np.split(group, range(_TOGETHER, group.size, _TOGETHER)):
                work.spend(work.TERM * 8 * few.size * kept.size)
                k = counts[few, None]
                values = (of_first[few, None] * rounded) * spectra[one][kept]
                values += (of_second[few, None] * rounded) * spectra[other][kept]
                sizes = np.abs(values) + 2 * stage_error
                product *= np.multiply.reduce(values ** self._powers[few, None], axis=0)
                log_size += np.einsum("ik,ij->j", k, np.log(sizes))
                error = 2 * stage_error / sizes + 8 * _EPS * (2 + np.abs(np.angle(values)))
                relative += np.einsum("ik,ij->j", k, error)
                # most entries vanish: they are set to 0, and charged at their size
                large = log_size > _LOG_VANISHING
                if np.count_nonzero(large) < 0.9 * large.size:
                    kept, product = kept[large], product[large]
                    log_size, relative = log_size[large], relative[large]
        # what is left out was smaller than this, and a kind has masses of total 1 at most, rounded
        bound = np.full(size // 2 + 1, math.exp(_LOG_VANISHING + 1))
        values, error = np.zeros(bound.size, dtype=complex), bound.copy()
        bound[kept] = np.exp(log_size)
        values[kept], error[kept] = product, bound[kept] * relative
        log_scale = float(np.einsum("i,i", counts, kappas))
        return Spectrum(values, bound, error), log_scale, middle * sum(self.steps)

    @cached_property
    def _powers(self) -> np.ndarray:
        return np.array(self.steps)

    def _spectrum(
        self, place: int, tilt: float, logs: np.ndarray, middle: int, size: int
    ) -> np.ndarray:
        pld = self.plds[place]
        masses = tilted_masses(pld, tilt, float(logs[place]))
        cyclic = np.bincount((pld.indices - middle) % size, masses, minlength=size)
        work.spend(work.transform(size))
        return np.asarray(fft.rfft(cyclic))


def transform_error(size: int) -> float:
    """Round-off of an entry of a transform of masses of total 1 ("Round-off of the transform")."""
    return 4 * _EPS * math.log2(size)


def tilted_masses(pld: PrivacyLossDistribution, tilt: float, kappa: float) -> np.ndarray:
    """m(x) e^{tilt x - kappa}, rounded to the side of the PLD."""
    sign = 1 if pld.side == "upper" else -1
    log_masses, log_factors = pld.log_masses, tilt * pld.losses
    # in logarithms, as a tiny mass may meet a factor that is too large for a double ("Underflow")
    exponents = log_factors - kappa + log_masses
    # an exponent is off by eps of its terms, and its exponential with it
    sizes = 2 + np.abs(log_factors) + 2 * abs(kappa)
    sizes += np.where(pld.masses > 0, np.abs(exponents) + np.abs(log_masses), 0.0)
    masses = np.exp(exponents) * (1 + sign * 4 * _EPS * sizes)
    work.spend(work.TERM * log_masses.size)
    return masses


class Spectrum(NamedTuple):
    """Entries of a transform, bounds of their sizes, computed and true ones, and of their
    errors."""

    values: np.ndarray
    size: np.ndarray
    error: np.ndarray

    def times(self, other: Spectrum) -> Spectrum:
        """The product: |a b - A B| <= |a - A| |B| + |a| |b - B|, and what multiplying rounds."""
        size = self.size * other.size
        error = self.error * other.size + self.size * other.error + 4 * _EPS * size
        return Spectrum(self.values * other.values, size, error)


def _power(spectrum: np.ndarray, k: int, stage_error: float) -> Spectrum:
    """The k-th power of a spectrum of entries off by `stage_error`."""
    work.spend(work.TERM * 4 * spectrum.size)
    size = np.abs(spectrum) + stage_error
    # most entries vanish: they are set to 0, and charged at their size
    kept = size > math.exp(_LOG_VANISHING / k)
    power = np.zeros_like(spectrum)
    bound = np.full(size.shape, math.exp(_LOG_VANISHING))
    error = bound.copy()
    inside = spectrum[kept]
    phase = np.angle(inside)
    if k < _BY_PHASE:
        power[kept] = inside**k
    else:
        # as accurate as the power itself, whose exponents are at least `_LOG_VANISHING`, and faster
        modulus = np.exp(k * np.log(np.abs(inside)))
        power[kept] = modulus * np.cos(k * phase) + 1j * (modulus * np.sin(k * phase))
    bound[kept] = np.exp(k * np.log(size[kept]))
    # |z^k - w^k| <= k max(|z|, |w|)^(k-1) |z - w|, and what the power itself rounds, which grows
    # with the phase
    relative = stage_error / size[kept] + 8 * _EPS * (1 + np.abs(phase))
    error[kept] = k * bound[kept] * relative
    return Spectrum(power, bound, error)


@dataclass(frozen=True, eq=False)
class TiltedSum:
    """Masses of a tilted sum on a window of the grid, and the bounds on delta that follow from
    them.

    The mass at x = (start + j) step, the sum without the offset, is values_j e^{log_scale - tilt
    x}. `values` are off by an error of Euclidean norm `round_off`, and beyond each end of the
    window is tilted mass of at most `tail`.
    """

    values: np.ndarray
    start: int
    step: float
    offset: float
    tilt: float
    log_scale: float
    round_off: float
    tail: float
    infinity: float
    side: str

    @property
    def end(self) -> int:
        """The index after the last one."""
        return self.start + self.values.size

    @property
    def bounds(self) -> np.ndarray:
        """A bound of the mass at each point, without the tilt: values are off by `round_off` at
        most, and a sum from outside may have come back."""
        exponent = self.log_scale - self.tilt * self.step * np.arange(self.start, self.end)
        rounding = 16 * _EPS * (4 + abs(self.log_scale) + np.abs(exponent))
        factor = np.exp(np.minimum(exponent, 700.0))
        if self.side == "upper":
            at_most = (np.maximum(self.values, 0.0) + self.round_off) * factor
            return np.asarray(np.minimum(at_most * (1 + rounding), 1.0))
        certain = np.maximum(self.values - self.round_off - 2 * self.tail, 0.0)
        return np.asarray(certain * factor * np.maximum(1 - rounding, 0.0))

    @cached_property
    def _tilted_delta(self) -> np.ndarray:
        """sum over x > x_j of (1 - e^{x_j - x}) e^{-tilt (x - x_j)} values(x) for every j, by a
        positive recursion.

        With A_j = sum over x >= x_j of e^{-tilt (x - x_j)} values(x): A_{j-1} = values_{j-1} +
        e^{-tilt step} A_j and D_{j-1} = e^{-tilt step} ((1 - e^{-step}) A_j + e^{-step} D_j).
        """
        damp, decay = math.exp(-self.tilt * self.step), math.exp(-self.step)
        sums = damped_sums(self.values[::-1], damp)
        entering = np.concatenate([[0.0], -math.expm1(-self.step) * damp * sums[:-1]])
        return damped_sums(entering, damp * decay)[::-1]

    @cached_property
    def _error(self) -> float:
        """Bound the error of the tilted delta by aliasing and round-off at any point."""
        lam, width = self.tilt, self.values.size * self.step
        # w_max = lam^lam / (1 + lam)^(1 + lam), the largest weight of a sum in a tilted delta
        largest = (lam / (1 + lam)) ** lam / (1 + lam) if lam > 0 else 1.0
        # 1 / (2 lam) - 2 / (2 lam + 1) + 1 / (2 lam + 2), which cancels where lam is large: the
        # squares of the weights, by which Cauchy-Schwarz carries the norm of the round-off
        square = 1 / (2 * lam * (2 * lam + 1) * (lam + 1)) if lam > 1e-6 else math.inf
        norm = math.sqrt(min(square, width) / self.step + largest**2)
        # upwards what comes back only adds; downwards both ends of the window may come back
        tails = self.tail * (1 if self.side == "upper" else 2)
        return largest * tails + norm * self.round_off

    def _untilted(self, tilted: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Undo the tilt at the points x (without the offset), rounding to the safe side."""
        exponent = self.log_scale - self.tilt * x
        # the recursion makes at most a few roundings a point, relative to a sum of positive terms
        # and round-off
        size = 4 + abs(self.log_scale) + np.abs(self.tilt * x)
        rounding = _EPS * (8 * self.values.size + 16 * size)
        with np.errstate(over="ignore"):
            factor = np.exp(exponent)
        if self.side == "upper":
            at_most = (np.maximum(tilted, 0) + self._error) * factor * (1 + rounding)
            return np.minimum(at_most + self.infinity, 1.0)
        certain = np.maximum(tilted - self._error * (1 + rounding), 0.0)
        at_least = certain * np.minimum(factor, 1e300) * (1 - rounding)
        return np.clip(at_least + self.infinity, 0.0, 1.0)

    def delta(self, epsilon: np.ndarray) -> np.ndarray:
        """Bounds on delta, shape of `epsilon`."""
        points = np.asarray(epsilon, dtype=float).ravel()
        bounds = []
        for start in range(0, points.size, _PIECE):
            work.spend(0)
            bounds.append(self._delta(points[start : start + _PIECE]))
        return np.concatenate(bounds).reshape(np.shape(epsilon))

    def _delta(self, epsilon: np.ndarray) -> np.ndarray:
        x = epsilon - self.offset
        # far outside of the window all places are alike, and need not fit an integer
        place = np.clip(x / self.step - self.start, -1.0, self.values.size)
        cell = np.clip(np.floor(place).astype(int), 0, self.values.size - 2)
        within = self._between(x, cell)
        left = self._left(x) if np.any(place < 0) else within
        beyond = self._untilted(np.zeros_like(x), x)
        right = np.where(place >= self.values.size - 1, beyond, within)
        return np.where(place < 0, left, right)

    def _left(self, x: np.ndarray) -> np.ndarray:
        """Return delta left of the window, where all its mass counts: (1 - r) mass + r delta(left
        end), r = e^{x - left end}. The mass is known for the untilted law only; else 1, or the
        value at the left end, stands in for it."""
        upper = self.side == "upper"
        end = np.full(x.shape, self.start * self.step)
        at_end = self._between(end, np.zeros(x.shape, dtype=int))
        ratio = np.exp(np.minimum(x - end, 0.0))
        if self.tilt > 0:
            return np.ones_like(x) if upper else at_end
        # of the sum of all masses: what lies beyond both ends, and the round-off of each
        error = 2 * self.tail + self.round_off * math.sqrt(self.values.size)
        error += _EPS * self.values.size
        total = float(self.values.sum()) * math.exp(self.log_scale)
        if upper:
            mass = min(1.0, total + error + self.infinity)
            at_most = ((1 - ratio) * mass + ratio * at_end) * (1 + 8 * _EPS) + error
            return np.minimum(1.0, at_most)
        mass = total - error
        return np.maximum(at_end, ((1 - ratio) * mass + ratio * at_end) * (1 - 8 * _EPS))

    def _between(self, x: np.ndarray, cell: np.ndarray) -> np.ndarray:
        """delta between grid points is linear in e^epsilon ("Between grid points")."""
        left = (self.start + cell) * self.step
        inside = np.clip(x - left, 0.0, self.step)
        share = np.expm1(inside) / math.expm1(self.step)
        damp = math.exp(-self.tilt * self.step)
        at_left, at_right = self._tilted_delta[cell], self._tilted_delta[cell + 1]
        value = (1 - share) * at_left + share * at_right * damp
        return self._untilted(value * np.exp(self.tilt * inside), x)

    def sharp(self, epsilon: np.ndarray, share: float, place: int) -> np.ndarray:
        """Whether charges are a share of the bound on delta at most, or twice that at one place."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            charged = self._error * np.exp(self.log_scale - self.tilt * (epsilon - self.offset))
            bounds = self.delta(np.where(np.isfinite(epsilon), epsilon, 0.0))
            # `share` where both are 0, as no number is larger than their quotient
            most = max(share, 2 * charged[place] / bounds[place])
            return np.asarray(np.isfinite(epsilon) & (charged <= most * bounds))

    def epsilon(self, delta: float) -> float:
        """Return the answer of `epsilons` for one delta."""
        return float(self.epsilons(np.array([delta]))[0])

    def epsilons(self, delta: np.ndarray) -> np.ndarray:
        """The smallest epsilon >= 0 where an upper bound is at most delta; the largest where a
        lower one exceeds it; shape of `delta`, (d,).

        The answer was evaluated: that bounds fall with epsilon is used to find the point, not
        to certify it.
        """
        upper = self.side == "upper"
        # left: the bound exceeds delta, right: it does not; both were evaluated unless they are
        # beyond the window
        left, right = np.full(delta.shape, -1), np.full(delta.shape, self.values.size)
        while np.any(right - left > 1):
            work.spend(0)
            middle = np.clip((left + right) // 2, 0, self.values.size - 1)
            x = (self.start + middle) * self.step
            exceeds = self._untilted(self._tilted_delta[middle], x) > delta
            left = np.where(exceeds, np.maximum(left, middle), left)
            right = np.where(exceeds, right, np.minimum(right, middle))
        cell = right - 1 if upper else left
        low, high = ((self.start + end) * self.step + self.offset for end in (cell, cell + 1))
        # then inside the cell, at 63 points at once
        for _ in range(_CUTS_OF_A_CELL):
            points = np.linspace(low, high, 65)
            above = self.delta(points[1:-1]) > delta
            none = np.zeros((1, delta.size), dtype=bool)
            first = 1 + np.argmin(np.concatenate([above, none]), axis=0)
            low, high = (
                np.take_along_axis(points, end[None], axis=0)[0] for end in (first - 1, first)
            )
        epsilons = np.maximum(high if upper else low, 0.0)
        if upper:
            return np.where(right == self.values.size, math.inf, epsilons)
        return np.where(left < 0, 0.0, epsilons)
