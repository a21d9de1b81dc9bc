"""The filler flip: an adaptive attack on sums of m records, and the delta that it proves from
below.

The records that accompany the differing one are all at -C or all at +C, depending on past
outputs. Any policy that ends by accepting or rejecting proves
delta(epsilon) >= P(accept) - e^epsilon Q(accept). Here *one* is evaluated, which remembers a grid
point x_i instead of epsilon minus its losses: a coarse memory weakens the bound but keeps it valid.
Its alpha and e^x beta are kept as A = e^(tilt x) alpha and B = e^(tilt x) e^x beta.
docs/proofs/attacks.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy import fft

from dpsub.accounting.engine import pairs, work
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.cell_masses import TINY, rounded_masses
from dpsub.accounting.engine.discretise import DirectedPair
from dpsub.accounting.engine.fourier import ComposedLoss, TiltedSum
from dpsub.accounting.engine.laplace_pairs import LaplacePair
from dpsub.accounting.engine.pairs import FillerPair, GaussianPair, ZeroedPair
from dpsub.accounting.engine.pld import MAX_LOSS, PrivacyLossDistribution
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.errors import NumericalError

Attacked = FillerPair | LaplacePair | ZeroedPair
"""Outputs with fillers at -C."""

_EPS = float(np.finfo(float).eps)
# with r steps to come the fillers keep their sign for about r / 12 steps: the last steps matter
# most
_PATIENCE = 12
# P-mass, on each side, that the grid of one loss leaves out, and that lies beyond its bulk
_TAIL, _BULK = 1e-15, 1e-3
# grid steps in standard deviations of one loss: wanted, enough, last resort
_COARSE, _FINE, _COARSEST = 1 / 14, 1 / 48, 1 / 4
_MOST_CELLS = 2e5
_CHEAP_WINDOW, _LARGEST_WINDOW = 12_000, 40_000
# length of a transform over that of the window, often
_TRANSFORMED = 3.5
# where the policy accepts at once: from there on no policy gains more than e^-12 of what it has
_ACCEPTED = -12.0
# log of the probability, under the tilt, of a memory above the window
_RARE = -14.0
# games that are played for several targets, at most
_POLICIES = 3
# share of the largest A from which on round-off, which is relative to that, matters little
_SERVED = 1e-6


@dataclass(frozen=True, eq=False)
class Fillers:
    """The change of the remembered loss in one step by one choice of fillers: masses under P
    (`accepted`, of side "lower") and under Q on the same grid (`charged`, of side "upper")."""

    accepted: PrivacyLossDistribution
    charged: PrivacyLossDistribution


class PolicyGrid(NamedTuple):
    """The memory of a policy: what another program needs to play it again.

    Points are i `step` (nats) for i from `first` to `last`. `blocks` are pairs of the number of
    steps in which fillers keep their sign, and of how many such blocks follow one another, from the
    last step backwards.
    """

    step: float
    first: int
    last: int
    blocks: tuple[tuple[int, int], ...]


class Played(NamedTuple):
    """The question to a policy, the end that it attains, and the grid on which it was played."""

    target: Target
    answer: float
    grid: PolicyGrid


@dataclass(frozen=True, eq=False)
class FillerFlip:
    """The game of k steps, k >= 1, with choices on grids of one step; `tilt` >= 0."""

    choices: Sequence[Fillers]
    steps: int
    tilt: float = 0.0

    def played(self, low: float, high: float) -> Policy:
        """Return the policy that accepts at once where it remembers less than `low` nats, and gives
        up above `high`; any window around 0 is valid, and a wide one better."""
        step = self.choices[0].accepted.step
        first, last = math.floor(low / step), math.ceil(high / step)
        window = last - first + 1
        grid = PolicyGrid(step, first, last, tuple(_blocks(self.steps)))
        x = np.arange(first, last + 1) * step
        # after the last step whoever remembers less than 0 accepts
        at_the_end = _accepted(np.minimum(x, 0.0), self.tilt, 0.0)
        accept, charge = np.where(x < 0, at_the_end, 0.0)
        log_scale = 0.0
        for count, repeats in grid.blocks:
            block = [_FillerBlock.of(fillers, count, window, self.tilt) for fillers in self.choices]
            kernels = [
                kernel for fillers in block for kernel in (fillers.accepted, fillers.charged)
            ]
            reference = max(kernel.log_scale for kernel in kernels)
            left = max(0, *(kernel.last for kernel in kernels))
            right = max(0, *(-kernel.first for kernel in kernels))
            size = fft.next_fast_len(left + window + right, real=True)
            # what is accepted is rounded down, what it is charged for up
            spectra = [
                (
                    fillers.accepted.spectrum(size, reference, -1),
                    fillers.charged.spectrum(size, reference, 1),
                )
                for fillers in block
            ]
            beyond = (first - left + np.arange(left)) * step
            # transforms of size N lose at most 4 eps log2(N) of the product of the norms, each of
            # three times (docs/proofs/attacks.md, "Rounding")
            round_off = 16 * _EPS * math.log2(size)
            # one loop, no function of its own: arrays that live from step to step keep their
            # memory, where a call would give it back and ask for it again
            for _ in range(repeats):
                work.spend(_play_of_block(size))
                padded = np.zeros((2, size))
                # whoever remembers less than the window has accepted, whoever remembers more has
                # given up
                padded[:, :left] = _accepted(beyond, self.tilt, log_scale)
                padded[:, left : left + window] = accept, charge
                norms, largest = np.linalg.norm(padded, axis=1), padded.max(axis=1)
                transformed = fft.rfft(padded)
                # giving up at once is worth 0
                accept, charge = np.zeros(window), np.zeros(window)
                for fillers, spectrum in zip(block, spectra, strict=True):
                    moved = fft.irfft(transformed * np.stack(spectrum), n=size)
                    moved = moved[:, left : left + window]
                    # round-off goes by the norm of what is moved, misplaced mass by its largest
                    # entry: both are taken off the gain and added to the cost
                    gain = (
                        moved[0]
                        - norms[0] * (round_off + fillers.accepted.round_off)
                        - largest[0] * fillers.accepted.tail
                    )
                    cost = (
                        moved[1]
                        + norms[1] * (round_off + fillers.charged.round_off)
                        + largest[1] * fillers.charged.tail
                    )
                    better = gain - cost > accept - charge
                    accept, charge = np.where(better, gain, accept), np.where(better, cost, charge)
                log_scale += reference
        return Policy(x, accept, charge, self.tilt, log_scale, grid)


def _blocks(steps: int) -> Iterator[tuple[int, int]]:
    """(steps with one sign, number of such blocks) from the last step backwards; the lengths are
    powers of 2."""
    done, length, repeats = 0, 1, 0
    while done < steps:
        fitting = min(max(1, (done + 1) // _PATIENCE), steps - done)
        longest = 1 << (fitting.bit_length() - 1)
        if longest != length and repeats:
            yield length, repeats
            repeats = 0
        length, repeats, done = longest, repeats + 1, done + longest
    yield length, repeats


def _play_of_block(size: float) -> float:
    """The work of one block, whose transforms have this length."""
    return 6 * work.transform(math.ceil(size)) + work.NUMBER * 20 * size


@dataclass(frozen=True, eq=False)
class Policy:
    """Probabilities of accepting from every remembered point x (nats): a lower bound on delta at
    every epsilon. alpha = accept e^(log_scale - tilt x), rounded down, and beta = charge
    e^(log_scale - (1 + tilt) x), rounded up."""

    x: np.ndarray
    accept: np.ndarray
    charge: np.ndarray
    tilt: float
    log_scale: float
    grid: PolicyGrid

    def delta(self, epsilon: float) -> float:
        """The best alpha - e^epsilon beta of the points nearest to epsilon."""
        place = int(np.searchsorted(self.x, epsilon))
        near = slice(max(0, place - 2), place + 2)
        x, exponent = self.x[near], self.log_scale - self.tilt * self.x[near]
        # exponents are rounded, by eps of themselves and of their terms, and exponentials with them
        rounding = 8 * _EPS * (4 + abs(epsilon) + abs(self.log_scale) + np.abs(exponent))
        gain = self.accept[near] * (1 - rounding)
        cost = np.exp(epsilon - x) * self.charge[near] * (1 + rounding)
        untilted = np.exp(np.minimum(exponent, 700.0))
        deltas = np.maximum(gain - cost, 0.0) * untilted * (1 - rounding)
        return float(deltas.max(initial=0.0))

    def serves(self, epsilon: float) -> bool:
        """Whether round-off, which is relative to the largest A, matters little at this epsilon."""
        place = int(np.searchsorted(self.x, epsilon))
        if not 0 < place < self.x.size:
            return False
        return bool(self.accept[place] > _SERVED * self.accept.max())

    def epsilon(self, delta: float) -> float:
        """The largest epsilon at which alpha - e^epsilon beta is delta for some point; 0 if there
        is none."""
        with np.errstate(over="ignore", divide="ignore"):
            wanted = delta * np.exp(self.tilt * self.x - self.log_scale)
            rounding = 8 * _EPS * (4 + np.abs(self.tilt * self.x) + abs(self.log_scale))
            # A less the delta that is asked for: what the charge may come to
            rest = self.accept * (1 - rounding) - wanted * (1 + rounding)
            attained = (rest > 0) & (self.charge > 0)
            epsilons = self.x[attained] + np.log(rest[attained] / self.charge[attained])
        return max(0.0, float(epsilons.max(initial=0.0)) * (1 - 8 * _EPS) - 1e-14)


@dataclass(frozen=True, eq=False)
class _Kernel:
    """Tilted masses of a sum of losses at indices first, first + 1, ..., over e^log_scale; their
    error has the Euclidean norm `round_off`, after mass of at most `tail` was misplaced."""

    first: int
    masses: np.ndarray
    log_scale: float
    round_off: float
    tail: float

    @property
    def last(self) -> int:
        return self.first + self.masses.size - 1

    def spectrum(self, size: int, reference: float, sign: int) -> np.ndarray:
        """Transform over e^(reference - log_scale), rounded down or up."""
        rounding = 1 + sign * 16 * _EPS * (1 + abs(self.log_scale) + abs(reference))
        factor = math.exp(self.log_scale - reference) * rounding
        places = (self.first + np.arange(self.masses.size)) % size
        return np.asarray(fft.rfft(np.bincount(places, self.masses * factor, minlength=size)))


@dataclass(frozen=True, eq=False)
class _FillerBlock:
    accepted: _Kernel
    charged: _Kernel

    @classmethod
    def of(cls, fillers: Fillers, count: int, window: int, tilt: float) -> _FillerBlock:
        accepted = ComposedLoss([fillers.accepted], [count]).masses(tilt)
        # B has the factor e^x more than A
        charged = ComposedLoss([fillers.charged], [count]).masses(1 + tilt)
        return cls(_inside(accepted, window), _inside(charged, window))


def _inside(total: TiltedSum, window: int) -> _Kernel:
    """The law of a sum, with what leaves any window moved to just beyond it: accepted on one side,
    lost on the other. Where everything is accepted tilted values fall by e^(-tilt step) a step, and
    masses that move there grow by it."""
    indices = total.start + np.arange(total.values.size)
    kept = indices >= -window
    if not kept.any():
        return _Kernel(0, np.zeros(1), total.log_scale, 0.0, 2 * total.tail)
    places = np.minimum(indices[kept], window)
    outside = indices[kept] - places
    values = np.maximum(total.values[kept], 0.0) * np.exp(-total.tilt * total.step * outside)
    masses = np.bincount(places - places[0], values)
    # errors of masses that meet add up
    round_off = total.round_off * math.sqrt(1 + np.count_nonzero(outside))
    # tilted mass beyond either end of the transform's window may be missing, or have come back
    # (docs/proofs/numerics.md, "Truncation and aliasing")
    return _Kernel(int(places[0]), masses, total.log_scale, round_off, 2 * total.tail)


def _accepted(x: np.ndarray, tilt: float, log_scale: float) -> np.ndarray:
    """A, rounded down, and B, rounded up, of a policy that accepts at once; shape (2, n)."""
    exponents = np.stack([tilt * x, (1 + tilt) * x]) - log_scale
    rounding = 4 * _EPS * (1 + abs(log_scale) + np.abs(exponents))
    sides = np.array([[-1.0], [1.0]])
    return np.asarray(np.exp(exponents) * (1 + sides * rounding))


@dataclass(frozen=True, eq=False)
class AdaptiveAttack:
    """The filler flip against sums of m records, m fixed; `pair` has the fillers at -C."""

    pair: Attacked
    steps: int
    played: list[Played] = field(default_factory=list, repr=False)
    """All answers of policies, in the order in which they were computed."""

    def answer(self, question: Target) -> float:
        """delta at epsilon, or epsilon at delta, proved from below; 0 where grid or transform would
        be too large, or losses cannot be told apart."""
        return self.answers([question])[0]

    def answers(self, targets: Sequence[Target]) -> list[float]:
        """Return the answers for targets in order: a policy that suits one of them serves each,
        where its errors are seen nowhere else, so that few are played."""
        best, unserved = [0.0] * len(targets), list(range(len(targets)))
        for _ in range(_POLICIES):
            if not unserved:
                break
            # the one in the middle has most neighbours that its policy may serve
            place = unserved.pop(len(unserved) // 2)
            try:
                work.spend(0)
                policy = self._policy(targets[place])
            except NumericalError:
                continue
            if policy is None:
                continue
            for i, target in enumerate(targets):
                if target.delta is not None:
                    answer = epsilon = policy.epsilon(target.delta)
                else:
                    assert target.epsilon is not None
                    epsilon = target.epsilon
                    near = i == place or policy.x[0] <= epsilon <= policy.x[-1]
                    answer = policy.delta(epsilon) if near else 0.0
                best[i] = max(best[i], answer)
                self.played.append(Played(target, answer, policy.grid))
                if i in unserved and policy.serves(epsilon):
                    unserved.remove(i)
        return best

    def _policy(self, question: Target) -> Policy | None:
        """The policy on a grid that suits the question; None if none of an affordable size does."""
        pair = self.pair
        if isinstance(pair, FillerPair):
            # a capped law lies below in both directions, in products and in the game
            # (docs/proofs/attacks.md, "Capping")
            pair = FillerPair(pairs.capped(pair.law, _TAIL), pair.deviation)
        # where inclusions are rare the bulk may be one loss: then a share of the whole range is
        # fine enough
        (below, above), (lowest, highest) = _range(pair, _BULK), _range(pair, _TAIL)
        finest = (highest - lowest) / _MOST_CELLS
        first = max((above - below) / 400, 2 * finest)
        spread = float(np.sqrt(choices(pair, first)[0].accepted.moments(0.0)[1]))
        if spread * _COARSEST < (1 - _ACCEPTED) / _LARGEST_WINDOW:
            return None  # the shortest window is too long already
        rough = choices(pair, max(spread / 8, finest))
        tilt, epsilon = _saddle(rough, self.steps, question)
        # the window reaches up to what is remembered, rarely, before the epsilon asked for is left
        top = 0.0
        for fillers in rough:
            lowest, _ = ComposedLoss([fillers.accepted], [self.steps]).cumulants.reach(tilt, _RARE)
            top = max(top, epsilon + max(1.0, -lowest))
        step = max(spread * _FINE, (top - _ACCEPTED) / _CHEAP_WINDOW, finest)
        if step > spread * _COARSE:
            step = max(spread * _COARSE, (top - _ACCEPTED) / _LARGEST_WINDOW)
        # a coarser memory loses little, where the budget does not suffice for this one
        coarsest = spread * _COARSEST
        while step < coarsest and not work.affords(self._takes(step, top)):
            step = min(2 * step, coarsest)
        if step > coarsest:
            return None
        if self._takes(step, top) > work.left():
            raise OutOfWorkError("the budget of work does not suffice; raise effort")
        return FillerFlip(choices(pair, step), self.steps, tilt).played(_ACCEPTED, top)

    def _takes(self, step: float, top: float) -> float:
        """Estimate the work of a play with this memory."""
        blocks = sum(repeats for _, repeats in _blocks(self.steps))
        return blocks * _play_of_block(_TRANSFORMED * math.ceil((top - _ACCEPTED) / step))


def _range(pair: GaussianPair | LaplacePair, tail: float) -> tuple[float, float]:
    """Losses between which the grid of a pair lies."""
    direction = pair if isinstance(pair, LaplacePair) else DirectedPair(pair)
    below, above = direction.range(tail)
    return max(below, -MAX_LOSS), min(above, MAX_LOSS)


def choices(pair: Attacked, step: float) -> tuple[Fillers, Fillers]:
    """Return the outcomes of one step with fillers at -C and at +C, on the grid of this step. Under
    substitution the two data sets change places; under zero-out the outputs are those of fillers
    and record at -C, mirrored."""
    at_minus, exchanged = _both(pair, step)
    if isinstance(pair, ZeroedPair):
        return at_minus, _both(pair.without_record, step)[1]
    return at_minus, exchanged


def _both(pair: GaussianPair | LaplacePair, step: float) -> tuple[Fillers, Fillers]:
    """Return the outcomes of one step, and those with the two data sets exchanged.

    Cells of losses end half-way between grid points; masses go to the two next to their own loss,
    kept on average: the memory is a random one, and any memory is valid.
    """
    direction = pair if isinstance(pair, LaplacePair) else DirectedPair(pair)
    below, above = _range(pair, _TAIL)
    losses = (np.arange(np.floor(below / step), np.ceil(above / step)) + 0.5) * step
    inner = np.maximum.accumulate(direction.place(losses))
    cells = direction.masses(np.concatenate([[-np.inf], inner, [np.inf]]))
    with np.errstate(divide="ignore"):
        own = np.log(cells.p + TINY) - np.log(cells.q + TINY)
    # any place is a valid memory; one that is off by more than a cell is not a good one
    own = np.clip(own, losses[0] - step, losses[-1] + step)
    index = np.floor(own / step).astype(int)
    share = np.clip(own / step - index, 0.0, 1.0)
    places, shares = np.concatenate([index, index + 1]), np.stack([1 - share, share])

    def law(
        masses: np.ndarray, errors: np.ndarray, side: str, sign: int
    ) -> PrivacyLossDistribution:
        # what the policy accepts under the first is too small, what it is charged for under the
        # second too large
        shared = (shares * rounded_masses(masses, errors, side, TINY)).ravel()
        return PrivacyLossDistribution(step, sign * places, shared, side)

    p, q = (cells.p, cells.p_error), (cells.q, cells.q_error)
    return (
        Fillers(law(*p, "lower", 1), law(*q, "upper", 1)),
        Fillers(law(*q, "lower", -1), law(*p, "upper", -1)),
    )


def _saddle(fillers: Sequence[Fillers], k: int, question: Target) -> tuple[float, float]:
    """Return the tilt at which no choice of fillers has a smaller Chernoff bound, and the epsilon
    asked for, or its bound. Any tilt and epsilon are valid."""
    laws = [choice.accepted for choice in fillers]
    variance = k * max(law.moments(0.0)[1] for law in laws)
    unit = 1 / max(float(np.sqrt(variance)), 1e-12)
    tilts = unit * np.geomspace(1e-3, 1e3, 61)
    # of larger ones neighbours on the grid would differ by a factor that round-off swallows
    tilts = tilts[tilts * laws[0].step < 20]
    growth = np.array([k * max(law.log_mgf(tilt) for law in laws) for tilt in tilts])
    if question.delta is None:
        assert question.epsilon is not None
        best = int(np.argmin(growth - tilts * question.epsilon))
        return (0.0 if best == 0 else float(tilts[best])), question.epsilon
    bounds = (growth - np.log(question.delta)) / tilts
    best = int(np.argmin(bounds))
    return float(tilts[best]), max(0.0, float(bounds[best]))
