"""Lower bounds that the filler flip attains (docs/proofs/attacks.md).

Lemma (a policy is an event). Whatever a policy sees of an output, whatever it remembers and draws,
and whichever sign of the fillers it takes for the next steps, it ends in an event A, "accept". So
P(A) - e^epsilon Q(A) <= delta(epsilon), if both probabilities are those of one policy.

So thresholds, shares, signs and the place where a memory saturates may be anything, and are chosen
in floating point. Masses of cells are balls. From there on all numbers are integers in units of
2^-bits, those on D (accept) rounded down and those on D' (charge) up, and products of polynomials
are exact. What is not followed counts as refused on D and as accepted on D'.
"""

import math
from dataclasses import dataclass
from itertools import accumulate

from attacks import noiseless
from balls import Refuted
from cells import Mixture, crossings, masses
from flint import arb, ctx, fmpz_poly
from theorems import Case
from work import fits

MOST_BITS = 20_000
LARGEST_WINDOW = 200_000
MOST_MOVES = 100_000_000  # moves of places of the window, of all blocks: some ten minutes


@dataclass(frozen=True)
class Kernel:
    """Masses, on D and on D', of the moves by low, low + 1, ... grid points to the left, and the
    mass on D' of all others.
    """

    low: int
    first: list[int]
    second: list[int]
    lost: int


@dataclass(frozen=True)
class Flip:
    """A policy: the distance of remembered losses, the window of them, and the precision of this
    replay."""

    step: float
    first: int
    last: int
    bits: int

    @property
    def _one(self) -> int:
        return 1 << self.bits

    @property
    def _reach(self) -> int:
        return self.last - self.first + 1

    @property
    def _rare(self) -> int:
        """Size below which a kernel drops masses."""
        return 1 << 16

    def value(self, signs, epsilon: arb, blocks: list[list[int]]) -> arb:
        """A lower bound on delta(epsilon); `signs` holds the pair of laws of one step for each sign
        of the fillers."""
        single = [self.kernel(*pair) for pair in signs]
        prices = [math.exp(i * self.step) for i in range(self.first, self.last + 1)]
        accept = [self._one if i < 0 else 0 for i in range(self.first, self.last + 1)]
        charge = list(accept)
        for length, repeats in blocks:
            kernels = [self.power(one, length) for one in single]
            for _ in range(repeats):
                played = [self.play(block, accept, charge) for block in kernels]
                accept, charge = best(played, prices)
        worth = [(a - epsilon.exp() * b).lower() for a, b in zip(accept, charge, strict=True)]
        return max(worth) / self._one

    def kernel(self, first, second) -> Kernel:
        """Kernel of one step: cells of one rounded loss go to the grid points next to their own
        loss, in shares that keep the mean.
        """
        edges = crossings(first, second, self.step, self._reach, 2.0**-self.bits)
        cells: dict[int, tuple[arb, arb]] = {}
        for p, q in zip(masses(first, edges), masses(second, edges), strict=True):
            rounded = round(self._place(p, q))
            p_there, q_there = cells.get(rounded, (arb(0), arb(0)))
            cells[rounded] = (p_there + p, q_there + q)
        reach = self._reach
        size = 2 * reach + 2
        p_moves, q_moves = [0] * size, [0] * size
        for p, q in cells.values():
            place = self._place(p, q)
            left = math.floor(place)
            share = place - left
            for move, part in ((left, 1 - arb(share)), (left + 1, arb(share))):
                p_moves[reach + move] += self._down(part * p)
                q_moves[reach + move] += self._up(part * q)
        return self._trimmed(Kernel(-reach, p_moves, q_moves, self._up(second.rest)))

    def _place(self, p: arb, q: arb) -> float:
        p_middle, q_middle = float(p.mid()), float(q.mid())
        if p_middle <= 0 or q_middle <= 0:
            return float(self._reach if p_middle > 0 else -self._reach)
        loss = (math.log(p_middle) - math.log(q_middle)) / self.step
        return min(max(loss, -self._reach), self._reach)

    def power(self, one: Kernel, length: int) -> Kernel:
        """Kernel of a block of `length` steps, by squares."""
        if length == 1:
            return one
        half = self.power(one, length // 2)
        block = self._joined(half, half)
        return self._joined(block, one) if length % 2 else block

    def _joined(self, a: Kernel, b: Kernel) -> Kernel:
        first = [c >> self.bits for c in product(a.first, b.first)]
        second = [-(-c >> self.bits) for c in product(a.second, b.second)]
        return self._trimmed(Kernel(a.low + b.low, first, second, a.lost + b.lost))

    def _trimmed(self, block: Kernel) -> Kernel:
        """Kernel whose moves beyond the reach saturate there; those that are rare on D and on D'
        are not followed."""
        low, first, second = block.low, block.first, block.second
        below = max(-self._reach - low, 0)
        if below:
            first = [sum(first[: below + 1]), *first[below + 1 :]]
            second = [sum(second[: below + 1]), *second[below + 1 :]]
            low += below
        above = self._reach - low
        first = [*first[:above], sum(first[above:])]
        second = [*second[:above], sum(second[above:])]
        followed = [
            i for i, (p, q) in enumerate(zip(first, second, strict=True)) if max(p, q) > self._rare
        ]
        start, stop = followed[0], followed[-1] + 1
        lost = block.lost + sum(second[:start]) + sum(second[stop:])
        return Kernel(low + start, first[start:stop], second[start:stop], lost)

    def play(
        self, block: Kernel, accept: list[int], charge: list[int]
    ) -> tuple[list[int], list[int]]:
        """Accept probabilities a block earlier: below the window all is accepted, above it nothing
        is."""
        alpha = [c >> self.bits for c in self._moved(block.first, block.low, accept)]
        beta = [
            min(block.lost - (-c >> self.bits), self._one)
            for c in self._moved(block.second, block.low, charge)
        ]
        return alpha, beta

    def _moved(self, kernel: list[int], low: int, after: list[int]) -> list[int]:
        """sum over d of kernel(d) after(i - d), with 1 for places left of the window and 0 right of
        it, in units of 4^-bits.
        """
        size = len(after)
        inside = [0] * max(low, 0) + product(kernel, after)[max(-low, 0) :]
        inside = (inside + [0] * size)[:size]
        # masses of the moves by low + 0, 1, 2, ... or more
        beyond = list(accumulate(reversed(kernel), initial=0))[::-1]
        beyond = [beyond[0]] * max(low - 1, 0) + beyond[max(1 - low, 0) :]
        beyond = (beyond + [0] * size)[:size]
        return [c + (b << self.bits) for c, b in zip(inside, beyond, strict=True)]

    def _down(self, mass: arb) -> int:
        return max(int((mass * self._one).floor().lower().floor().unique_fmpz()), 0)

    def _up(self, mass: arb) -> int:
        return max(int((mass * self._one).ceil().upper().ceil().unique_fmpz()), 0)


def product(a: list[int], b: list[int]) -> list[int]:
    """Coefficients of a product of polynomials."""
    found = [int(c) for c in (fmpz_poly(a) * fmpz_poly(b)).coeffs()]
    return found + [0] * (len(a) + len(b) - 1 - len(found))


def best(played, prices: list[float]) -> tuple[list[int], list[int]]:
    """At each remembered loss the better sign by its own numbers, or giving up, which is worth
    0."""
    accept, charge = [], []
    for price, *offers in zip(
        prices, *(zip(alpha, beta, strict=True) for alpha, beta in played), strict=True
    ):
        most, chosen = 0.0, (0, 0)
        for alpha, beta in offers:
            worth = alpha - price * beta
            if worth > most:
                most, chosen = worth, (alpha, beta)
        accept.append(chosen[0])
        charge.append(chosen[1])
    return accept, charge


def filler_flip(question, lower: dict) -> tuple[arb, str]:
    """Lower bound on delta at the question's epsilon that the policy of `lower` proves; other
    releases than its own are ignored.

    All that the file gives decides which policy is played, not what it is worth. A false claim
    would have to play more steps than there are.
    """
    place = lower["release"]
    if not place < len(question.releases):
        raise Refuted("the policy is of no release of the question")
    release = question.releases[place]
    (first, last), step = lower["window"], lower["step"]
    if first > last:
        raise Refuted("the policy's window must not fall")
    fits(last - first + 1, LARGEST_WINDOW, "places of a policy's window")
    # a policy may play fewer steps, which attain no more
    steps = sum(length * repeats for length, repeats in lower["blocks"])
    if steps > release.rounds:
        raise Refuted(f"the policy plays {steps} steps, of {release.rounds}")
    plays = sum(repeats + length.bit_length() for length, repeats in lower["blocks"])
    fits(plays * (last - first + 1), MOST_MOVES, "places of a policy's window in all its blocks")
    # Charges are e^epsilon / delta times as small as 1.
    digits = (
        (question.epsilon.exp() / question.delta).log() / arb.const_log2()
        if question.delta > 0
        else arb(1100)
    )
    bits = 112 + int(digits.ceil().upper().ceil().unique_fmpz())
    fits(bits, MOST_BITS, "bits of a policy's numbers, as e^epsilon / delta is so large")
    flip = Flip(step, first, last, bits)
    ctx.prec = max(ctx.prec, flip.bits + 32)
    signs = [pair_of(question, release, lower, filler) for filler in (-1, 1)]
    delta = flip.value(signs, question.epsilon, lower["blocks"])
    return delta, f"filler flip, {steps} steps; {last - first + 1} points"


def pair_of(question, release, lower: dict, filler: int) -> tuple[Mixture, Mixture]:
    """Laws of one step's sum on D and on D', or the other way round, with all fillers at
    `filler`."""
    part = {"data": {**lower["data"], "filler": filler}}
    # what is not followed counts as accepted on D', where a probability is charged e^epsilon times
    negligible = question.cut() * (-question.epsilon).exp()
    case = Case(release, question.adjacency, lower["direction"], part, None, negligible)
    scale = float(release.s.mid())
    laws = [Mixture.of(sums, scale, laplace=release.laplace) for sums in noiseless(case)]
    return tuple(laws if lower["direction"] == "forward" else reversed(laws))
