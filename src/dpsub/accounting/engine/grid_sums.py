"""Sums of independent values with a law on a grid, by tilted transforms whose windows are not cut:
what comes round is a sum of positive terms (docs/proofs/numerics.md, "Differences")."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import fft

from dpsub.accounting.engine import work
from dpsub.accounting.engine.cell_masses import TINY

_EPS = float(np.finfo(float).eps)
# tilts of a sum that are tried, over its deviation: any is valid. The smallest ones are at most one
# over the largest value
_TILTS, _LEAST_TILT, _MOST_TILT = 48, 1e-3, 24.0
_LOG_LOOSE = 5.0  # by how much Chernoff's bound at a tilt may exceed the best one
_LOG_SEEN = 26.0  # what comes round is e^26 times smaller than the mean, about
# log of the size below which entries of the k-th power are set to 0, and charged at that size
_LOG_VANISHING = -80.0
_MOST_TERMS = 2**22  # of a transform; with fewer more comes round, which only adds


class MeanAboveZero(NamedTuple):
    """An upper bound, and what of it is charged for floating point."""

    value: float
    charge: float


class _Power(NamedTuple):
    """The transform of a sum of tilted values, at the frequencies `kept` where it is not
    negligible."""

    value: np.ndarray
    largest: np.ndarray  # bounds of its size
    error: np.ndarray  # and of its relative error
    kept: np.ndarray
    pairs: np.ndarray  # how often each frequency counts
    decay: np.ndarray  # e^(-tilt h - i angle)
    rest: np.ndarray  # 1 less that, without cancellation
    middle: int  # the place at index 0 of a transform of one value
    stage_error: float  # of an entry of it


@dataclass(frozen=True)
class GridLaw:
    """A law on places of a grid of `step`, and the charges for bounds of its sums: the mean of
    values `beyond` the grid, and the mean by which values lie `off` their cells; `off_places`,
    shape (n - 1,), is that of each cell, in steps. So many tilts are tried for a sum, and nothing
    is told of one whose transform needs more than `most_terms`."""

    step: float
    places: np.ndarray
    masses: np.ndarray
    off_places: np.ndarray
    off: float
    beyond: float
    n_tilts: int = _TILTS
    most_terms: int = _MOST_TERMS + _MOST_TERMS // 8

    @cached_property
    def _values(self) -> np.ndarray:
        return self.step * self.places

    @cached_property
    def _log_masses(self) -> np.ndarray:
        return np.log(self.masses + TINY)

    @cached_property
    def deviation(self) -> float:
        """Standard deviation."""
        mean = float(np.einsum("i,i", self.masses, self._values))
        return math.sqrt(np.einsum("i,i", self.masses, (self._values - mean) ** 2))

    def mean_of(self, count: int, deviation: float, unseen: float) -> MeanAboveZero:
        """Return an upper bound of the mean of the positive part of the mean of `count` independent
        values, of about this standard deviation; a bound that is no more than `unseen` need not be
        close."""
        tilts = self.tilts(count, deviation)
        work.spend(work.TERM * tilts.size * self.places.size)
        cumulants = self.cumulants(tilts)
        # Chernoff's bound, x_+ <= e^(tilt x) / (e tilt), is enough where it is not seen
        log_bounds = count * cumulants - np.log(tilts * math.e * count)
        best = int(np.argmin(log_bounds))
        # of sums over so many values
        rounding = 1 + 1e-9 + 1e-14 * count
        mean = math.exp(min(log_bounds[best], 0.0)) * rounding
        if mean > unseen / 2:
            best, terms = self.tilted(count, tilts, cumulants, log_bounds)
            if terms > self.most_terms:
                return MeanAboveZero(math.inf, math.inf)
            mean = self.mean_above_zero(count, tilts[best], cumulants[best], terms) / count
        tilt, log_mgf = float(tilts[best]), float(cumulants[best])
        # values off their cells: each moves the mean by so much, or weighs so much more mass
        share = count * self.off_cells(tilt, log_mgf)
        by_mass = math.exp(min(count * log_mgf, 600.0)) * math.expm1(min(share, 600.0))
        charge = min(self.off, by_mass / (math.e * tilt * count) * rounding)
        return MeanAboveZero(mean + self.beyond + charge + TINY, charge)

    def tilts(self, count: int, deviation: float) -> np.ndarray:
        """Return tilts that are tried for a sum of values of about this standard deviation."""
        unit = 1 / (deviation * math.sqrt(count))
        least = min(_LEAST_TILT * unit, 1 / max(float(self.places[-1]) * self.step, 1e-300))
        return np.geomspace(least, _MOST_TILT * unit, self.n_tilts)

    def cumulants(self, tilts: np.ndarray) -> np.ndarray:
        """log E e^(tilt Z)."""
        exponents = np.multiply.outer(tilts, self._values) + self._log_masses
        largest = exponents.max(axis=1)
        exponents -= largest[:, None]
        return np.asarray(largest + np.log(np.exp(exponents).sum(axis=1)))

    def tilted(
        self,
        count: int,
        tilts: np.ndarray,
        cumulants: np.ndarray,
        log_bounds: np.ndarray,
        log_seen: float = _LOG_SEEN,
    ) -> tuple[int, int]:
        """Return the tilt that suits a sum, and the number of terms that a transform with it needs
        such that what comes round is e^log_seen times smaller, about."""
        # where Chernoff's bound is nearly the smallest, round-off is small, too; the last tilt only
        # tells how far those before it reach
        needed = self._needed(count, tilts, cumulants, log_seen)
        needed[log_bounds[:-1] > log_bounds[:-1].min() + _LOG_LOOSE] = np.inf
        fewest = int(np.argmin(needed))
        terms = math.ceil(min(needed[fewest], _MOST_TERMS)) + 2
        return fewest, int(fft.next_fast_len(max(terms, 16), real=True))

    def _needed(
        self, count: int, tilts: np.ndarray, cumulants: np.ndarray, log_seen: float
    ) -> np.ndarray:
        """Return the number of terms N of a transform with each tilt but the last such that mass
        that comes round is not seen, about: e^(-tilt N h) of the values below 0, and the mass above
        N h, by Chernoff's bound with a larger tilt."""
        below = (log_seen + 4 - count * cumulants[:-1]) / tilts[:-1]
        farther = np.subtract.outer(tilts, tilts[:-1])
        rise = count * np.subtract.outer(cumulants, cumulants[:-1]) + log_seen
        ends = np.divide(rise, farther, out=np.full(rise.shape, np.inf), where=farther > 0)
        above = np.minimum(ends.min(axis=0), count * float(self._values[-1]))
        return np.asarray(np.maximum(below, above) / self.step)

    def mean_above_zero(self, count: int, tilt: float, log_mgf: float, terms: int) -> float:
        """Return an upper bound of the mean of the positive part of a sum on the grid.

        It is the mean of P^k W over the frequencies of a transform, P that of the tilted masses and
        W that of the weights h j e^(-tilt h j), j >= 1. With N frequencies a sum S is weighed at
        all j >= 1 that differ from it by multiples of N, the one at S among them.
        """
        power = self._power(count, tilt, log_mgf, terms)
        weights = self.step * power.decay / power.rest**2
        total = float(np.sum(power.pairs * (power.value * np.conj(weights)).real))
        largest = power.pairs * np.abs(weights) * power.largest
        total += float(np.sum(largest * power.error))
        # no weight is larger than the first one
        most = self.step / math.expm1(-tilt * self.step) ** 2
        total += terms * math.exp(_LOG_VANISHING) * most
        rounding = 16 * _EPS * (8 + count * abs(log_mgf))
        return total / terms * math.exp(min(count * log_mgf, 600.0)) * (1 + rounding)

    def above_zero(
        self, count: int, others: Sequence[np.ndarray], deviation: float
    ) -> list[tuple[float, float]] | None:
        """Return bounds of the probability that the sum of `count` - 1 values of this law and one
        with other masses on the same places is above 0, for each of these masses; `deviation` is
        that of one value, about.

        As in `mean_above_zero`, with the weights e^(-tilt h j), j >= 1: sums that come round only
        add. What they add at most is taken off the lower bound (docs/proofs/numerics.md, "Opposite
        records").
        """
        tilts = self.tilts(count, deviation)
        work.spend(work.TERM * tilts.size * self.places.size)
        cumulants = self.cumulants(tilts)
        log_bounds = count * cumulants - np.log(tilts * math.e * count)
        # where other masses are larger, so is what they bring round
        ratio = max(1.0, *(float(np.max(masses / self.masses)) for masses in others))
        log_seen = _LOG_SEEN + math.log(ratio)
        best, terms = self.tilted(count, tilts, cumulants, log_bounds, log_seen)
        if terms > self.most_terms:
            return None
        tilt, log_mgf = float(tilts[best]), float(cumulants[best])
        power = self._power(count - 1, tilt, log_mgf, terms)
        turned = 2 * math.pi / terms * (power.middle % terms * power.kept % terms)
        rest = power.value * np.conj(power.decay / power.rest) * np.exp(-1j * turned)
        largest = power.pairs * power.largest / np.abs(power.rest)
        scale = math.exp(min(count * log_mgf, 600.0)) / terms
        own_sizes = float(self._tilted(self.masses, tilt, log_mgf)[1].max())
        # of sums up to 0, and of those beyond the window by Chernoff's bound with a larger tilt
        window = self.step * terms
        again = -math.expm1(-tilt * window)
        comes_round = math.exp(-tilt * window) / again
        if terms < count * int(self.places[-1]):
            farther = slice(best + 1, None)
            logs = count * cumulants[farther] - (tilts[farther] - tilt) * window
            comes_round += 2 * ratio * math.exp(min(float(logs.min()), 600.0)) / again
        bounds = []
        for masses in others:
            exponents, sizes = self._tilted(masses, tilt, log_mgf)
            tilted = np.exp(exponents)
            size = float(tilted.sum()) * (1 + 1e-9)
            spectrum = self._spectrum(tilted, power.middle, terms)[power.kept]
            total = float(np.sum(power.pairs * (rest * spectrum).real))
            charge = float(np.sum(largest * (power.error + power.stage_error)))
            charge += terms * math.exp(_LOG_VANISHING) / -math.expm1(-tilt * self.step)
            # of each of the masses that are multiplied
            rounding = 16 * _EPS * (8 + count * max(own_sizes, float(sizes.max())))
            low = max(total - charge * size, 0.0) * scale * max(1 - rounding, 0.0)
            bounds.append((low - comes_round, (total + charge * size) * scale * (1 + rounding)))
        return bounds

    def _tilted(
        self, masses: np.ndarray, tilt: float, log_mgf: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return logarithms of masses e^(tilt Z) over that of this law, and what they are off by,
        over some eps."""
        log_factors, log_masses = tilt * self._values, np.log(masses + TINY)
        sizes = 2 + np.abs(log_factors) + 2 * abs(log_mgf) + np.abs(log_masses)
        return log_factors - log_mgf + log_masses, sizes

    def _spectrum(self, masses: np.ndarray, middle: int, terms: int) -> np.ndarray:
        """Return the transform of masses, the middle place at index 0."""
        work.spend(work.transform(terms) + work.NUMBER * 12 * terms)
        cyclic = np.bincount((self.places - middle) % terms, masses, minlength=terms)
        return np.asarray(fft.rfft(cyclic))

    def _power(self, count: int, tilt: float, log_mgf: float, terms: int) -> _Power:
        """Return the transform of the sum of so many."""
        exponents, sizes = self._tilted(self.masses, tilt, log_mgf)
        masses = np.exp(exponents) * (1 + 4 * _EPS * sizes)
        # the mean at index 0 keeps the phases of all entries that matter small
        middle = round(float(np.einsum("i,i", masses, self.places)))
        spectrum = self._spectrum(masses, middle, terms)
        # of an entry of a transform of masses of total 1 ("Round-off of the transform")
        stage_error = 4 * _EPS * math.log2(terms)
        size = np.abs(spectrum) + stage_error
        kept = np.flatnonzero(size > math.exp(_LOG_VANISHING / max(count, 1)))
        work.spend(work.TERM * 16 * kept.size)
        spectrum, size = spectrum[kept], size[kept]
        angle = 2 * math.pi / terms * kept
        turned = (2 * math.pi / terms) * ((count * middle % terms) * kept % terms)
        # 1 - q for q = e^(-tilt h - i angle), without cancellation
        decay = math.exp(-tilt * self.step)
        rest = -math.expm1(-tilt * self.step) + 2 * decay * np.sin(angle / 2) ** 2
        rest = rest + 1j * decay * np.sin(angle)
        # of a real transform conjugate pairs are stored once
        pairs = np.where((kept == 0) | (2 * kept == terms), 1.0, 2.0)
        # |z^k - w^k| <= k max(|z|, |w|)^(k-1) |z - w|, and what powers round, which grows with the
        # phase
        relative = stage_error / size + 8 * _EPS * (1 + np.abs(np.angle(spectrum)))
        return _Power(
            value=spectrum**count * np.exp(-1j * turned),
            largest=np.exp(count * np.log(size)),
            error=count * relative + 128 * _EPS,
            kept=kept,
            pairs=pairs,
            decay=decay * np.exp(-1j * angle),
            rest=rest,
            middle=middle,
            stage_error=stage_error,
        )

    def off_cells(self, tilt: float, log_mgf: float) -> float:
        """Return the share of the tilted mass that weighs as much as values off their cells."""
        # twice at the lower end of a cell, once at each of the next two points
        factors = np.exp(np.minimum(tilt * self._values - log_mgf, 600.0))
        last = factors[-1]
        after = np.append(factors[2:], last)
        return float(np.sum(self.off_places * (2 * factors[:-1] + factors[1:] + after)))
