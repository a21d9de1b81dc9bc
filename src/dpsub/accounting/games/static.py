"""Static attacks: two data sets, the same at all steps, whose noisy sums have known densities.

An audit plays them; the accountant computes the delta or epsilon that the same data sets attain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

if TYPE_CHECKING:
    from dpsub.accounting.engine.pairs import GaussianPair
    from dpsub.accounting.schemes.chains.zeroed import ZeroedCopies

ANY_N = 100
"""Number of records where the attack's densities do not depend on it and none is given."""


@dataclass(frozen=True)
class Neighbours:
    """Records of two neighbouring data sets, numbers in [-C, C] in units of C.

    Attributes
    ----------
    record : float
        The record in which they differ, in the first data set.
    other : float or None
        The record of the second data set in its place; None if it is missing there.
    filler : float
        All other records.
    """

    record: float
    other: float | None
    filler: float


@dataclass(frozen=True, eq=False)
class _PlayedDataSets:
    """Neighbouring data sets with their numbers of records; they differ in the first records of
    each, as many as `group` says."""

    neighbours: Neighbours
    n_records: tuple[int, int]
    group: tuple[int, int] = field(default=(1, 1), kw_only=True)

    @property
    def records(self) -> tuple[float, float | None]:
        """The differing record in either data set."""
        return self.neighbours.record, self.neighbours.other

    def values(self, which: int, indices: np.ndarray) -> np.ndarray:
        """Records of data set 0 or 1, shape of `indices`."""
        filler = self.neighbours.filler
        record = self.records[which]
        return np.where(indices < self.group[which], filler if record is None else record, filler)


@dataclass(frozen=True, eq=False)
class StepAttack(_PlayedDataSets):
    """Noisy sums of independent steps: `pair` stands for the outputs y on the two data sets, as
    t = (y - origin) / unit."""

    pair: GaussianPair | ZeroedCopies
    noise_multiplier: float
    origin: float = 0.0
    unit: float = 1.0

    def density(self, which: int) -> tuple[np.ndarray, np.ndarray]:
        """Weights and means of the Gaussian mixture of the output, whose standard deviation is the
        noise multiplier."""
        components = self.pair.components_prime if which else self.pair.components
        counts, log_weights = components
        return np.exp(log_weights), self.origin + self.unit * counts

    def losses(self, outputs: np.ndarray) -> np.ndarray:
        """log of the density on data set 0 over that on data set 1, shape of `outputs`."""
        return self.pair.loss((outputs - self.origin) / self.unit)


@dataclass(frozen=True, eq=False)
class EpochAttack(_PlayedDataSets):
    """Noisy sums of an epoch, less the sum of the fillers.

    The record is in `k` of the first steps: for k = 1 in step j with chance `weights[j]`, and in
    none with what is left; else in any k of them, all choices alike. There it moves the sum by
    `shifts`, one for each data set. Several `epochs` that follow one plan are an epoch of the means
    of their outputs.
    """

    shifts: tuple[float, float]
    weights: np.ndarray
    noise_multiplier: float
    k: int = 1
    epochs: int = 1

    def losses(self, moved: np.ndarray) -> np.ndarray:
        """Return the log of the density of an epoch on data set 0 over that on data set 1; of
        outputs less the sum of as many fillers, shape (epochs, steps), or where several epochs
        follow one plan (runs, steps of all)."""
        moved = moved.reshape(len(moved), self.epochs, -1).mean(axis=1)
        moved = moved[:, : len(self.weights)]
        return self._log_mixture(moved, self.shifts[0]) - self._log_mixture(moved, self.shifts[1])

    def _log_mixture(self, outputs: np.ndarray, shift: float) -> np.ndarray:
        """log of the mean over the record's steps, over the density without it."""
        if shift == 0:
            return np.zeros(len(outputs))
        terms = (shift * outputs - 0.5 * shift * shift) * (self.epochs / self.noise_multiplier**2)
        if self.k > 1:
            return self._log_mean_of_products(terms)
        missing = 1 - float(self.weights.sum())
        # weights that should add up to 1 may miss it by their rounding
        missing = missing if missing > 1e-12 else 0.0
        # the largest term is taken out, so that no exponential overflows
        largest = terms.max(axis=1)
        if missing:
            largest = np.maximum(largest, 0.0)
        terms -= largest[:, None]
        mixture = np.exp(terms, out=terms) @ self.weights + missing * np.exp(-largest)
        return largest + np.log(mixture)

    def _log_mean_of_products(self, terms: np.ndarray) -> np.ndarray:
        """log of the mean, over all choices of k steps, of the product of their exp(terms)."""
        # logarithms of elementary symmetric polynomials of the steps so far, of degrees 0 to k
        log_sums = np.full((self.k + 1, len(terms)), -np.inf)
        log_sums[0] = 0.0
        for term in terms.T:
            log_sums[1:] = np.logaddexp(log_sums[1:], log_sums[:-1] + term)
        steps = len(self.weights)
        log_choices = gammaln(steps + 1) - gammaln(self.k + 1) - gammaln(steps - self.k + 1)
        return log_sums[self.k] - log_choices


@dataclass(frozen=True, eq=False)
class TurnsAttack(EpochAttack):
    """Noisy sums of epochs whose steps are the turns of groups, less the sum of the fillers: the
    record is in one group, with equal chances, and in each of its turns with a probability."""

    rate: float = 1.0

    def losses(self, moved: np.ndarray) -> np.ndarray:
        """As `EpochAttack.losses`, of outputs of shape (runs, steps of all epochs)."""
        turns = moved.reshape(len(moved), self.epochs, -1)
        return self._log_mean(turns, self.shifts[0]) - self._log_mean(turns, self.shifts[1])

    def _log_mean(self, outputs: np.ndarray, shift: float) -> np.ndarray:
        """log of the mean over the groups, over the density without the record."""
        terms = (shift * outputs - 0.5 * shift * shift) / self.noise_multiplier**2
        missed = np.log1p(-self.rate) if self.rate < 1 else -np.inf
        of_groups = np.logaddexp(missed, np.log(self.rate) + terms).sum(axis=1)
        return np.logaddexp.reduce(of_groups, axis=1) - np.log(outputs.shape[2])


@dataclass(frozen=True, eq=False)
class SeparatedAttack(EpochAttack):
    """An epoch of steps that a record waits between: it is drawn with probability `rate` where it
    is available, again `separation` steps later, at first after a wait with the probabilities
    `waiting`. `weights` are its chances to be in each step."""

    rate: float = field(kw_only=True)
    separation: int = field(kw_only=True)
    waiting: np.ndarray = field(kw_only=True)

    def _log_mixture(self, outputs: np.ndarray, shift: float) -> np.ndarray:
        if shift == 0:
            return np.zeros(len(outputs))
        terms = (shift * outputs - 0.5 * shift * shift) / self.noise_multiplier**2
        steps = len(self.weights)
        # likelihoods of the outputs so far, by the step at which the record is available next
        log_next = np.full((steps + self.separation, len(outputs)), -np.inf)
        with np.errstate(divide="ignore"):
            log_next[: self.waiting.size] = np.log(self.waiting)[:, None]
            log_missed, log_drawn = np.log1p(-self.rate), np.log(self.rate)
        for step, term in enumerate(terms.T):
            now = log_next[step].copy()
            log_next[step] = -np.inf
            for later, log_chance in (1, log_missed), (self.separation, log_drawn + term):
                log_next[step + later] = np.logaddexp(log_next[step + later], now + log_chance)
        return np.asarray(np.logaddexp.reduce(log_next[steps:], axis=0))
