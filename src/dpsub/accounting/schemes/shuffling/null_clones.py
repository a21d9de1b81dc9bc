"""Shuffled epochs: the record hidden among records that look as if they contributed nothing
(docs/proofs/shuffling.md, Theorem 89).

The output of a step around another record is, up to a small total variation, a mixture with the
weight p of the output of a step that holds no record. Those of the other records for which the
latter is drawn are its null clones. Where all others, and their steps, are revealed, the record is
in 1 of K steps, K - 1 the number of clones, and none of the other steps tells which. Any p is
valid, at each order another one.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import betaincc

from dpsub.accounting.engine import work
from dpsub.accounting.engine.grid_sums import GridLaw
from dpsub.accounting.engine.profiles import gaussian_profile
from dpsub.accounting.schemes.allocation.one_step import MeanLaw, mean_laws
from dpsub.accounting.schemes.allocation.opposite import upper_means
from dpsub.accounting.schemes.shuffling.among_nulls import AmongNulls, ValueGrid

_WEIGHTS = 96  # weights p that are tried
# charges at order 1 of the largest and of the smallest weight; and the mean number of clones from
# which on a weight is tried
_MOST_CHARGE, _LEAST_CHARGE, _FEWEST_CLONES = 0.3, 1e-24, 0.02
_FACTORS = (1, 3, 5)  # of powers of 2: numbers of steps to which they are rounded down
_NODES = 160  # log orders, where the laws do not depend on the order
# cells of laws of means, in deviations, where noise is 1, and at most; the square of those for each
# time that a number of terms is doubled, so that the work is limited; and what is cut off
_FINENESS, _COARSEST, _DOUBLED, _TAIL = 0.07, 0.12, 1e-3, 1e-24
# by how much the logarithm of the bound falls from one order to the next where laws depend on it,
# and where it is rare; the bound at which it ends, and by how much steps grow
_FALL, _RARE_FALL, _RARE, _UNSEEN, _GROWTH = 1.0, 1.8, 1e-10, 1e-20, 1.6
_ORDERS = 32  # of them, about
_CUT = 1e-6  # of a bound: what may be cut off
_GAIN = 0.9  # of the bound of a revealed step: with more nothing is gained
_PROBES, _USUAL = 24, 0.1  # log orders at which this is asked, and the largest such bound there
# of scipy's incomplete beta function; by comparison with sums of 30 digits it is off by less
# than 1e-9 of itself
_BINOMIAL_ERROR, _BINOMIAL_UNDERFLOW = 1e-6, 1e-40
_ROUNDING = 1 + 1e-9
# for a certificate: of a bound, what rounding the number of steps down may add, and what a grid of
# half the unit may take off, and about what may be cut off; and the most places of a grid
_ROUNDED_DOWN, _HALVED, _CERTIFIED_CUT, _MOST_PLACES = 3e-3, 3e-3, 1e-5, 2**13
# places of the longest sum, and of all, which a verifier forms in a minute; sums reach so far
_LONGEST, _LONG, _SEEN_DEVIATIONS = 2**16, 4_000_000, 16
_CERTIFIED_ROUNDING, _CERTIFIED_CHARGE = 1 + 1e-7, 1 + 2.0**-10
_EPS = float(np.finfo(float).eps)


class CloneBounds(NamedTuple):
    """Bounds of H_a at increasing log orders, shape (n,) each."""

    log_order: np.ndarray
    value: np.ndarray


class CertifiedClones(NamedTuple):
    """A bound of H_a at one order, and what proves it: a weight p, the numbers of steps to which K
    is rounded down, from 2 on, and a grid for each order of the data sets."""

    log_order: float
    value: float
    weight: float
    counts: tuple[int, ...]
    grids: tuple[ValueGrid, ...]
    work: int
    """Number of places of all sums that a verifier forms, about."""


def affordable(bounds: list[CertifiedClones]) -> list[CertifiedClones]:
    """Return the bounds, or every other one, and so on, if a verifier takes long for all."""
    while sum(bound.work for bound in bounds) > _LONG:
        bounds = bounds[::2]
    return bounds


class NullClones:
    """One epoch of T steps that hold a record each: Theorem 89, for a >= 1 and both orders of the
    data sets.

    Parameters
    ----------
    steps : int
        T.
    s : float
        Noise multiplier.
    distance : float
        Of the differing record's two vectors: 2 under `substitute`, 1 under `zero_out`.
    last_order : float
        Log order up to which bounds are asked for.
    """

    def __init__(self, steps: int, s: float, distance: float, last_order: float) -> None:
        self.steps, self.s, self.distance, self.last_order = steps, s, distance, last_order

    @property
    def gains(self) -> bool:
        """Whether the bound may be less than that of a revealed step: it is no less than with the
        step known where there are no clones, and hidden altogether elsewhere."""
        if self.weights.size == 0:
            return False
        x = np.linspace(0.0, self.last_order, _PROBES)
        known = self._known(x)
        alone = np.exp((self.steps - 1) * np.log1p(-self.weights))
        least = alone[:, None] * known + np.multiply.outer(self.charges, 1 + np.exp(x))
        return bool(np.any((least.min(axis=0) < _GAIN * known) & (known < _USUAL)))

    @cached_property
    def weights(self) -> np.ndarray:
        """Return weights p that are tried, decreasing."""
        log_odds = np.linspace(0.01, 1 / self.s**2 + 15 / self.s, 500)
        weights, charge = np.exp(-log_odds), self._charges(log_odds)
        tried = 2 * charge <= _MOST_CHARGE
        tried &= (2 * charge >= _LEAST_CHARGE) & ((self.steps - 1) * weights >= _FEWEST_CLONES)
        if not tried.any():
            return np.zeros(0)
        first, last = log_odds[tried][[0, -1]]
        chosen: np.ndarray = np.exp(-np.linspace(first, last, _WEIGHTS))
        return chosen

    @cached_property
    def charges(self) -> np.ndarray:
        """Return (T - 1) gamma(p) for each weight."""
        # p is the double, whose logarithm is off by eps of itself
        return self._charges(-np.log(self.weights) * (1 - 4 * _EPS))

    def _charges(self, log_odds: np.ndarray) -> np.ndarray:
        of_one = np.exp(-log_odds) * gaussian_profile(log_odds, np.full(1, 1 / self.s))
        return np.asarray((self.steps - 1) * of_one * _ROUNDING)

    @cached_property
    def counts(self) -> np.ndarray:
        """Return numbers of steps K to which they are rounded down, shape (c,), from 1 on."""
        most = 1 + (self.steps - 1) * float(self.weights.max())
        doubled = 2 ** np.arange(math.ceil(math.log2(most)) + 1)
        counts = np.unique(np.concatenate([[1], *(factor * doubled for factor in _FACTORS)]))
        return counts[counts <= most]

    @cached_property
    def _fewer(self) -> np.ndarray:
        """Return probabilities that K is less than the next number, for each weight and number, of
        shape (w, c): 1 for the last number."""
        # P(K < k) is that of k - 2 clones or fewer among all others
        k = self.counts[1:].astype(float)
        fewer = betaincc(k - 1, self.steps + 1 - k, self.weights[:, None])
        raised = np.minimum(fewer * (1 + _BINOMIAL_ERROR) + _BINOMIAL_UNDERFLOW, 1.0)
        return np.append(raised, np.ones((self.weights.size, 1)), axis=1)

    def mixed(self, log_order: np.ndarray, divergences: np.ndarray) -> np.ndarray:
        """Return the least bound over all weights, shape (n,), from bounds of an allocation to 1 of
        as many steps as each of the numbers, shape (c, n)."""
        bounds = self._by_weight(self._fewer, divergences)
        bounds += np.multiply.outer(self.charges, 1 + np.exp(log_order))
        return np.asarray(bounds.min(axis=0) * _ROUNDING)

    @staticmethod
    def _by_weight(fewer: np.ndarray, divergences: np.ndarray) -> np.ndarray:
        """Return means over the number of clones, shape (w, n), for each weight."""
        # they fall with the number: the mean is that of their falls
        falling = np.minimum.accumulate(divergences, axis=0)
        falls = falling - np.append(falling[1:], np.zeros((1, falling.shape[1])), axis=0)
        means: np.ndarray = np.einsum("wc,cn->wn", fewer, falls)
        return means

    @cached_property
    def bounds(self) -> CloneBounds:
        """Return bounds, down to where they are no longer seen."""
        return self._replaced() if self.distance > 1 else self._set_to_zero()

    def _set_to_zero(self) -> CloneBounds:
        # the laws of the likelihood ratio are the same for all orders
        x = np.append(0.0, np.geomspace(1e-4 * self.last_order, self.last_order, _NODES))
        counts = self.counts.tolist()
        laws = {
            joined.law.terms: joined.law
            for most in [k for k in counts if 2 * k > counts[-1]]  # of each factor
            for joined in mean_laws(most, self.s, self._fineness, _TAIL, True)
        }
        work.spend(work.NUMBER * 6 * x.size * sum(laws[k].mass.size for k in counts))
        both = np.array([_divergences(laws[k], np.exp(x)) for k in counts])
        hidden = np.fmin(both, self._known(x))
        directions = [self.mixed(x, hidden[:, way]) for way in range(2)]
        return CloneBounds(x, np.max(directions, axis=0))

    def _replaced(self) -> CloneBounds:
        before = work.spent()
        x, value = 0.0, self.at(0.0, 1.0)
        # nothing is begun that is not finished
        work.ensure(_ORDERS * (work.spent() - before), "the bound by null clones")
        found, step = [(x, value)], value / 2
        while _UNSEEN < value < self._known(np.array([x]))[0] and x < self.last_order:
            x, least = min(x + step, self.last_order), value
            value = self.at(x, least)
            found.append((x, value))
            wanted = _FALL if value > _RARE else _RARE_FALL
            fell = max(math.log(least / value), 1e-9)
            step *= min(max(wanted / fell, 1 / 4), _GROWTH)
        return CloneBounds(*np.array(found).T)

    def at(self, log_order: float, about: float) -> float:
        """Return the bound under `substitute` at one order, where it is about so much."""
        order, x = math.exp(log_order), np.array([log_order])
        tail = _CUT * about / self.counts[-1]
        hidden = upper_means(order, 1 / self.s, self.counts.tolist(), self._fineness, tail)
        divergences = np.fmin(np.array(hidden)[:, None], self._known(x))
        return float(self.mixed(x, divergences)[0])

    def certified_at(self, log_order: float, about: float) -> CertifiedClones | None:
        """Return a bound for a certificate at one order, where it is about so much: with few
        numbers of steps, and grids of equal steps as coarse as suffice. None where clones give
        nothing."""
        laws, order = self._laws(math.exp(log_order)), 1 + math.exp(log_order)
        unseen = _CERTIFIED_CUT * about
        units = [law.coarsest(unseen, _MOST_PLACES) for law in laws]
        hidden = self._on_grids(laws, units, self.counts, unseen)
        bounds = self._by_weight(self._fewer, hidden).max(axis=1) + self.charges * order
        best = int(np.argmin(bounds))
        places = _needed(self._fewer[best], hidden, _ROUNDED_DOWN * float(bounds[best]))
        if len(places) == 1:
            return None
        counts, fewer = self.counts[places], self._fewer[best, [*(i - 1 for i in places[1:]), -1]]
        charged = self.charges[best] * order * _CERTIFIED_CHARGE

        def value() -> float:
            hidden = self._on_grids(laws, units, counts, unseen)
            mean = float(self._by_weight(fewer[None], hidden).max())
            return (mean + charged) * _CERTIFIED_ROUNDING

        found, grids = value(), self._grids(laws, units, unseen)
        while max(grid.last - grid.first for grid in grids) <= _MOST_PLACES // 2:
            units = [unit / 2 for unit in units]
            finer = value()
            if found <= finer * (1 + _HALVED):
                break
            found, grids = finer, self._grids(laws, units, unseen)
        lengths = [
            length
            for law, grid in zip(laws, grids, strict=True)
            for length in _lengths_of_sums(law.law(grid), counts.tolist())
        ]
        if max(lengths) > _LONGEST:
            return None
        weight = float(self.weights[best])
        return CertifiedClones(
            log_order, found, weight, tuple(counts[1:].tolist()), grids, sum(lengths)
        )

    def _laws(self, order: float) -> list[AmongNulls]:
        u = 1 / self.s
        if self.distance > 1:
            return [AmongNulls(order, u, -u)]
        return [AmongNulls(order, u, 0.0), AmongNulls(order, 0.0, -u)]

    def _grids(
        self, laws: list[AmongNulls], units: list[float], unseen: float
    ) -> tuple[ValueGrid, ...]:
        return tuple(law.grid(unit, unseen) for law, unit in zip(laws, units, strict=True))

    def _on_grids(
        self, laws: list[AmongNulls], units: list[float], counts: np.ndarray, unseen: float
    ) -> np.ndarray:
        """Return bounds of an allocation to 1 of as many steps as each of some numbers, 1 the first
        one, by grids; shape (c, laws)."""
        hidden = []
        for law, grid in zip(laws, self._grids(laws, units, unseen), strict=True):
            on_grid = law.law(grid)
            means = [on_grid.mean_of(k, on_grid.deviation, unseen).value for k in counts[1:]]
            known = self._known(np.array([math.log(law.order)]))
            hidden.append([*known, *means])
        return np.array(hidden).T

    @property
    def _fineness(self) -> float:
        wanted = min(_FINENESS * self.s, _COARSEST)
        if self.distance == 1:
            return wanted
        # there are laws for each order
        return max(wanted, math.sqrt(_DOUBLED * math.log2(self.counts[-1])))

    def _known(self, log_order: np.ndarray) -> np.ndarray:
        return gaussian_profile(log_order, np.full(1, self.distance / self.s))


def _lengths_of_sums(law: GridLaw, counts: list[int]) -> list[int]:
    """Return numbers of places of the sums from which those of so many terms are formed, without
    their tails, about."""
    width = int(law.places[-1] - law.places[0])
    doubled = [2**i for i in range(1, counts[-1].bit_length())]
    others = [k for k in counts if k & (k - 1)]
    return [
        min(k * width, width + round(_SEEN_DEVIATIONS * math.sqrt(k) * law.deviation / law.step))
        for k in (*doubled, *others)
    ]


def _needed(fewer: np.ndarray, divergences: np.ndarray, allowed: float) -> list[int]:
    """Return places of numbers of steps, the first one among them, without which a mean over the
    number of clones is larger by no more than is allowed."""
    falling = np.minimum.accumulate(divergences, axis=0)
    # the chance that there are fewer steps than each number, and than all
    below = np.append(0.0, fewer)
    kept = list(range(falling.shape[0]))
    while len(kept) > 1:
        following = [*kept[2:], falling.shape[0]]
        # what is left out counts as the number before it
        rises = [
            float((falling[before] - falling[at]).max() * (below[after] - below[at]))
            for before, at, after in zip(kept, kept[1:], following, strict=False)
        ]
        least = int(np.argmin(rises))
        allowed -= rises[least]
        if allowed < 0:
            break
        del kept[1 + least]
    return kept


def _divergences(law: MeanLaw, order: np.ndarray) -> np.ndarray:
    """Return E (L - a)_+ and E (1 - a L)_+ from above, shape (2, n)."""
    # as the law has it: masses and ratios are off by shares of themselves
    off = law.ratio_error + 4 * _EPS
    above = np.maximum(law.ratio * (1 + off) - order[:, None], 0.0)
    below = np.maximum(1 - order[:, None] * (law.ratio * (1 - off)), 0.0)
    grown = 1 + 2 * law.mass_error + 2 * _EPS * law.mass.size
    means = [np.einsum("ni,i", part, law.mass) for part in (above, below)]
    return (np.array(means) + law.lost) * grown
