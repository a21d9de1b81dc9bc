"""Sums over the steps of an epoch in which a record that was drawn waits: docs/proofs/schedules.md,
"Separated steps".

Each step at which the record is available adds a number of one law if it is drawn, and of another
one if it is not; steps at which it waits add nothing, or numbers of a third law. Seen from the end
of the epoch, the transform of what n steps add is a recursion of lag `separation`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import fft
from scipy.signal import lfilter

from dpsub.accounting.engine import work
from dpsub.accounting.engine.fourier import (
    ComposedLoss,
    Cumulants,
    Spectrum,
    tilted_masses,
    transform_error,
)

_EPS = float(np.finfo(float).eps)
_PIECE = 2**21  # entries of all steps that are remembered, at most
_BISECTIONS = 80
_LARGEST = 700.0  # exponent of a double
_HALVINGS = 24
_FEW = 32  # steps of a lag that one filter takes
# log of the size below which entries are set to 0, and charged at that size
_LOG_VANISHING = -46.0


@dataclass(frozen=True, eq=False)
class _Recursion:
    """u_n = missed u_(n-1) + drawn waited^(m-1) u_(n-m), m = min(separation, n), u_0 = 1: total
    masses, tilted, of what n steps add; divided by growth^n, so that they stay of a size. Of all
    but the result the logarithms are given."""

    separation: int
    missed: float
    drawn: float
    waited: float

    @cached_property
    def growth(self) -> float:
        """log of the root of g^b = missed g^(b-1) + drawn waited^(b-1)."""
        b = self.separation
        low = max(self.missed, (self.drawn + (b - 1) * self.waited) / b)
        high = low + math.log(2)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            drawn = self.drawn - middle + (b - 1) * (self.waited - middle)
            right = math.exp(self.missed - middle) + math.exp(drawn)
            low, high = (middle, high) if right > 1 else (low, middle)
        return high

    @cached_property
    def of_missed(self) -> float:
        """Coefficient of v_(n-1) = u_(n-1) / growth^(n-1)."""
        return math.exp(self.missed - self.growth)

    def of_drawn(self, lag: int) -> float:
        """Coefficient of v_(n-lag); infinite where it is no double."""
        exponent = self.drawn - self.growth + (lag - 1) * (self.waited - self.growth)
        return math.exp(exponent) if exponent < _LARGEST else math.inf

    def of_waits(self, waits: int) -> float:
        """Coefficient of v_(n-waits) where the record waits as many steps at the start."""
        return math.exp(min(waits * (self.waited - self.growth), _LARGEST))

    def values(self, steps: int) -> np.ndarray:
        """v_0, ..., v_steps."""
        b = self.separation
        first = np.array([1.0, *(self.of_drawn(n) for n in range(1, min(b, steps + 1)))])
        if not np.isfinite(first).all():
            return np.full(steps + 1, math.inf)
        if b <= _FEW:
            work.spend(work.NUMBER * steps * b)
            back = np.zeros(b + 1)
            back[0] = 1.0
            back[1] -= self.of_missed
            back[b] -= self.of_drawn(b)
            return np.asarray(lfilter([1.0], back, np.append(first, np.zeros(steps + 1))))[
                : steps + 1
            ]
        work.spend(work.TERM * (steps + 100 * (steps // b)))
        values = np.zeros(steps + 1)
        back = np.array([1.0, -self.of_missed])
        values[: first.size] = lfilter([1.0], back, first)
        # then block by block, as what is drawn in one is known from the steps before it
        for start in range(b, steps + 1, b - 1):
            end = min(start + b - 1, steps + 1)
            drawn = self.of_drawn(b) * values[start - b : end - b]
            carried = np.array([self.of_missed * values[start - 1]])
            values[start:end], _ = lfilter([1.0], back, drawn, zi=carried)
        return values

    def total(self, steps: int, starts: list[tuple[int, float]]) -> float:
        """Return v_steps, over the laws of the start."""
        values = self.values(steps)
        return math.fsum(
            chance * self.of_waits(wait) * float(values[steps - wait]) for wait, chance in starts
        )


@dataclass(frozen=True, eq=False)
class _RenewalCumulants(Cumulants):
    separation: int = 1
    waiting: np.ndarray | None = None

    def recursion(self, tilt: float) -> _Recursion:
        """The recursion of total masses under a tilt."""
        missed, drawn, *waited = (pld.log_mgf(tilt) for pld in self.plds)
        return _Recursion(self.separation, missed, drawn, waited[0] if waited else 0.0)

    def __call__(self, tilt: float) -> float:
        if tilt not in self._known:
            recursion, steps = self.recursion(tilt), self.steps[0]
            total = recursion.total(steps, self.starts(steps))
            self._known[tilt] = steps * recursion.growth + math.log(total)
        return self._known[tilt]

    @cached_property
    def _known(self) -> dict[float, float]:
        return {}

    def starts(self, steps: int) -> list[tuple[int, float]]:
        """Steps that the record waits at the start, and their probabilities; waits beyond the end
        are of all steps."""
        assert self.waiting is not None
        chances = self.waiting.tolist()
        if len(chances) > steps:
            chances = [*chances[:steps], math.fsum(chances[steps:])]
        return list(enumerate(chances))

    def moments(self, tilt: float) -> tuple[list[float], float]:
        """Means of the numbers of a step, and roughly the variance of the sum."""
        if tilt not in self._moments:
            moments = [pld.moments(tilt) for pld in self.plds]
            (m, v), (n, w) = moments[:2]
            missed, drawn = (pld.log_mgf(tilt) for pld in self.plds[:2])
            share = math.exp(drawn - np.logaddexp(missed, drawn))
            variance = (1 - share) * v + share * w + share * (1 - share) * (n - m) ** 2
            steps, waits = self.steps[0], (self.separation - 1) * share
            active = max(steps / (1 + waits), 1.0)
            if len(moments) > 2:
                variance += waits * moments[2][1]
            self._moments[tilt] = [mean for mean, _ in moments], active * variance
        return self._moments[tilt]


@dataclass(frozen=True, eq=False)
class RenewalLoss(ComposedLoss):
    """The sum of what the steps of an epoch add.

    Parameters
    ----------
    plds : sequence of PrivacyLossDistribution
        What an available record adds where it is not drawn, and where it is, with the probabilities
        of these; optionally what a waiting one adds, with total mass 1.
    steps : sequence of int
        The number of steps, once for each of them.
    separation : int
        Least distance of two steps at which it is drawn.
    waiting : ndarray
        Probabilities that it waits 0, 1, ... steps at the start.
    """

    separation: int = 1
    waiting: np.ndarray | None = None

    @cached_property
    def cumulants(self) -> _RenewalCumulants:
        return _RenewalCumulants(self.plds, self.steps, None, self.separation, self.waiting)

    @property
    def _sparse(self) -> bool:
        return False

    def _product(self, tilt: float, size: int) -> tuple[Spectrum, float, int]:
        steps, b, entries = self.steps[0], self.separation, size // 2 + 1
        spectra = []
        for pld in self.plds:
            masses = tilted_masses(pld, tilt, pld.log_mgf(tilt))
            cyclic = np.bincount(pld.indices % size, masses, minlength=size)
            spectra.append(np.asarray(fft.rfft(cyclic)))
            work.spend(work.transform(size))
        recursion = self.cumulants.recursion(tilt)
        # entries are at most their value at frequency 0
        largest = 1.01 * recursion.total(steps, self.cumulants.starts(steps))
        values = np.zeros(entries, dtype=complex)
        kept = np.flatnonzero(self._log_sizes(spectra, recursion) > _LOG_VANISHING)
        work.ensure(work.TERM * 2 * steps * kept.size, "the steps of an epoch")
        for part in np.split(kept, range(0, kept.size, max(256, _PIECE // min(b, steps)))[1:]):
            values[part] = self._recurred([one[part] for one in spectra], recursion)
        # a sum over paths of products of at most one factor a step, each off by the round-off of a
        # transform
        logs = max(abs(pld.log_mgf(tilt)) for pld in self.plds)
        wrong = largest * steps * (2 * transform_error(size) + (32 + 8 * logs) * _EPS)
        error = np.full(entries, math.exp(_LOG_VANISHING))
        error[kept] = wrong
        spectrum = Spectrum(values, np.abs(values) + error, error)
        return spectrum, steps * recursion.growth, 0

    def _log_sizes(self, spectra: list[np.ndarray], recursion: _Recursion) -> np.ndarray:
        """Bounds of the logarithms of the sizes of the result: most entries vanish."""
        steps, b = self.steps[0], self.separation
        missed, drawn = (np.log(np.abs(each) + 1e-12) for each in spectra[:2])
        missed += recursion.missed
        drawn += recursion.drawn
        # the root of the recursion of sizes, of which waits take nothing away
        low = np.minimum(missed, drawn) - math.log(2) - abs(recursion.waited)
        high = np.full(missed.size, recursion.growth + 1e-9)
        work.spend(work.TERM * 2 * _HALVINGS * missed.size)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            with np.errstate(over="ignore"):
                right = np.exp(missed - middle) + np.exp(
                    drawn - middle + (b - 1) * (recursion.waited - middle)
                )
            low, high = np.where(right > 1, middle, low), np.where(right > 1, high, middle)
        before = np.maximum((b - 1) * (high - recursion.waited), 0.0)
        starts = max(recursion.of_waits(wait) for wait, _ in self.cumulants.starts(steps))
        back = (b - 1) * np.maximum(recursion.growth - high, 0.0)
        return np.asarray(steps * (high - recursion.growth) + before + back + math.log(starts))

    def _recurred(self, spectra: list[np.ndarray], recursion: _Recursion) -> np.ndarray:
        """v_steps at some frequencies, over the laws of the start."""
        steps, b = self.steps[0], self.separation
        missed, drawn, *waited = spectra
        work.spend(work.TERM * 2 * steps * missed.size)
        step = recursion.of_missed * missed
        # the last b arrays, the newest one at n % b
        kept = np.zeros((b, missed.size), dtype=complex)
        kept[0] = 1.0
        power, jump = np.ones_like(missed), np.zeros_like(missed)
        for n in range(1, steps + 1):
            newest = step * kept[(n - 1) % b]
            if n < b:
                newest += recursion.of_drawn(n) * drawn * power
                if waited:
                    power = power * waited[0]
            else:
                if n == b:
                    jump = recursion.of_drawn(b) * drawn * power
                newest += jump * kept[n % b]
            kept[n % b] = newest
        total = np.zeros_like(missed)
        wait_power = np.ones_like(missed)
        for wait, chance in self.cumulants.starts(steps):
            if wait and waited:
                wait_power = wait_power * waited[0]
            # u_0 = 1 has been replaced where all steps are waited for
            past = kept[(steps - wait) % b] if wait < steps else np.ones_like(missed)
            total += chance * recursion.of_waits(wait) * wait_power * past
        return total
