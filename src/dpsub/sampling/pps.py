"""Samples with inclusion probabilities proportional to a measure of size."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise, product

import numpy as np

from dpsub import checks
from dpsub.errors import NumericalError
from dpsub.sampling.allocation import inclusion_probabilities
from dpsub.sampling.designs import Counts, Drawer, FrameSampler, collected, counts_of
from dpsub.sampling.frame import Frame


@dataclass(frozen=True)
class _OfFixedSize(FrameSampler):
    m: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", checks.integer("m", self.m, at_least=1))

    def inclusion_probabilities(self, frame: Frame) -> np.ndarray:
        return inclusion_probabilities(frame.needed("sizes"), self.m)

    @classmethod
    def examples(cls) -> list[tuple[FrameSampler, Frame]]:
        return [
            (cls(3), Frame(6, sizes=np.array([1.0, 2, 2, 3, 5, 30]))),
            (cls(2), Frame(5, sizes=np.ones(5))),
        ]


@dataclass(frozen=True)
class PpsSystematic(_OfFixedSize):
    """m records: points one unit apart, from a uniform start, on the cumulated inclusion
    probabilities in frame order.

    Joint inclusion depends on the order, and many samples are impossible, also where all sizes are
    equal.
    """

    name, label = "pps_systematic", "PPS systematic"

    def law(self, frame: Frame) -> dict[Counts, float]:
        ends = np.cumsum(self.inclusion_probabilities(frame))
        cuts = np.unique(np.concatenate([[0.0, 1.0], np.mod(ends, 1.0)]))
        return collected(
            (counts_of(frame.n, self._at(ends, (low + high) / 2)), high - low)
            for low, high in pairwise(cuts.tolist())
            if high - low > 1e-12
        )

    def _at(self, ends: np.ndarray, start: float) -> np.ndarray:
        return np.minimum(
            np.searchsorted(ends, start + np.arange(self.m), side="right"), len(ends) - 1
        )

    def drawer(self, frame: Frame) -> Drawer:
        ends = np.cumsum(self.inclusion_probabilities(frame))
        return lambda rng: self._at(ends, rng.random())


@dataclass(frozen=True)
class PpsConditionalPoisson(_OfFixedSize):
    """m records: Poisson trials given that m succeed, with odds that make the inclusion
    probabilities as wanted.

    P(S) is proportional to the product of its members' odds: of all designs with these inclusion
    probabilities it has the largest entropy, and with equal sizes it is simple random sampling.
    """

    name, label = "pps_conditional_poisson", "PPS conditional Poisson"

    def law(self, frame: Frame) -> dict[Counts, float]:
        certain, rest, odds = self._odds(frame)
        chances = [
            (chosen, float(np.prod(odds[list(chosen)])))
            for chosen in combinations(range(len(rest)), self.m - len(certain))
        ]
        total = sum(chance for _, chance in chances)
        return collected(
            (counts_of(frame.n, [*certain, *rest[list(chosen)]]), chance / total)
            for chosen, chance in chances
        )

    def drawer(self, frame: Frame) -> Drawer:
        certain, rest, odds = self._odds(frame)
        tails = _tail_polynomials(odds, self.m - len(certain))

        def draw(rng: np.random.Generator) -> np.ndarray:
            left, chosen = self.m - len(certain), list(certain)
            for i, record in enumerate(rest):
                if left and rng.random() * tails[i, left] < odds[i] * tails[i + 1, left - 1]:
                    chosen.append(record)
                    left -= 1
            return np.array(chosen, dtype=np.int64)

        return draw

    def _odds(self, frame: Frame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return units taken for certain, the others, and their odds, scaled so that polynomials
        stay near 1."""
        pi = self.inclusion_probabilities(frame)
        certain, rest = np.flatnonzero(pi >= 1), np.flatnonzero(pi < 1)
        return certain, rest, conditional_odds(pi[rest], self.m - len(certain))


@dataclass(frozen=True)
class PpsWithReplacement(_OfFixedSize):
    """m independent draws, each with chances proportional to size; a record may come several
    times."""

    name, label = "pps_with_replacement", "PPS with replacement"

    def inclusion_probabilities(self, frame: Frame) -> np.ndarray:
        return -np.expm1(self.m * np.log1p(-self._chances(frame)))

    def law(self, frame: Frame) -> dict[Counts, float]:
        p = self._chances(frame)
        return collected(
            (counts_of(frame.n, drawn), float(np.prod(p[list(drawn)])))
            for drawn in product(range(frame.n), repeat=self.m)
        )

    def drawer(self, frame: Frame) -> Drawer:
        chances = self._chances(frame)
        return lambda rng: rng.choice(frame.n, self.m, p=chances)

    def _chances(self, frame: Frame) -> np.ndarray:
        return inclusion_probabilities(frame.needed("sizes"), 1)


def conditional_odds(pi: np.ndarray, m: int) -> np.ndarray:
    """Return odds of Poisson trials whose inclusion probabilities, given m successes, are `pi`
    (they sum to m).

    Each odds are multiplied by wanted over found inclusion probability, until all agree to 1e-12.
    """
    if m == 0 or not len(pi):
        return np.zeros(len(pi))
    odds = pi / (1 - pi)
    for _ in range(2000):
        # a common factor changes nothing; this one keeps the polynomials near 1
        odds = odds / (odds / (1 + odds)).sum() * m
        inclusion = _conditional_inclusion(odds, m)
        if np.max(np.abs(inclusion / pi - 1)) < 1e-12:
            return odds
        odds = odds * pi / inclusion
    error = np.max(inclusion - pi)
    raise NumericalError(
        f"odds of conditional Poisson sampling must settle, got an error of {error:g}"
    )


def _conditional_inclusion(odds: np.ndarray, m: int) -> np.ndarray:
    """P(i in S) = w_i E_{m-1}(others) / E_m(all), from the polynomials of the units before and
    behind i."""
    front, back = _tail_polynomials(odds[::-1], m)[::-1], _tail_polynomials(odds, m)
    # front[i]: polynomials of units 0..i-1; back[i + 1]: of units i+1..
    without = np.einsum("ij,ij->i", front[:-1, :m], back[1:, :m][:, ::-1])
    return odds * without / back[0, m]


def _tail_polynomials(odds: np.ndarray, m: int) -> np.ndarray:
    """E[i, d] = E_d of the odds i, i+1, ..., shape (n + 1, m + 1)."""
    table = np.zeros((len(odds) + 1, m + 1))
    table[-1, 0] = 1.0
    for i in range(len(odds) - 1, -1, -1):
        table[i] = table[i + 1]
        table[i, 1:] += odds[i] * table[i + 1, :-1]
    return table
