"""Random allocation to k of t steps from above: the moments of the likelihood ratio given a sum.

The likelihood ratio L of an epoch is the mean over the k-subsets of the steps of products of k
log-normal terms X_j; its law is not computed. But a sum T of functions of the steps tells most of
L, and the moments E_Q[L^n; T] are laws of T under other measures: L^n is a mean over n subsets, and
a step that is in i of them is moved by i deviations' worth of the record. A polynomial that lies
above (x - a)_+ then bounds the contribution of each value of T to H_a (docs/proofs/allocation.md,
Theorem 72; numerics.md, "Moments given a sum").
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np
from scipy import fft

from dpsub.accounting.engine import work
from dpsub.accounting.engine.cell_masses import normal_masses
from dpsub.errors import NumericalError

_EPS = float(np.finfo(float).eps)
_ORDERS = range(5)  # of moments: fourth ones bound tails well enough
# tilts of the law of T under P, from that of Q to beyond rare losses under P
_TILTS = (-1.0, -0.5, 0.0, 0.5, 1.0)
# exponents of Chernoff's bound that are tried
_THETAS = tuple(2.0**i for i in range(-3, 5))
_LOG_TAIL = -45.0  # of each tilted law beyond either end of its window
# of both ends together, with what the bounds of Chernoff's round
_TAILS = 2.1 * math.exp(_LOG_TAIL)
_LOG_VANISHING = -44.0  # entries of a transform below it are set to 0, and charged
_REACH = 11.0  # deviations beyond which all outputs of a step are one cell
_FARTHEST = 36.0  # deviations: normal tails beyond have lost their digits
# variance of T that rounding to its grid adds
_ROUNDING = 2e-4
_FINEST, _COARSEST = 1e-4, 0.02  # steps of the grid of T
_MOST_PLACES = 2**18  # of the grid of T
_MOST_CELLS = 3000  # into which its places are gathered


@work.remembered(16)
def overlaps(t: int, k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how n independent k-subsets of t steps overlap: rows (c_0, ..., c_n), c_i the steps
    that are in i of them, and the logarithm of the probability of each."""
    ways: dict[tuple[int, ...], int] = {(t,): 1}
    for _ in range(n):
        longer: dict[tuple[int, ...], int] = {}
        for counts, number in ways.items():
            for drawn in product(*(range(min(k, c) + 1) for c in counts[1:])):
                fresh = k - sum(drawn)
                if not 0 <= fresh <= counts[0]:
                    continue
                taken = (fresh, *drawn)
                kept = [c - x for c, x in zip(counts, taken, strict=True)] + [0]
                for i, x in enumerate(taken):
                    kept[i + 1] += x
                chosen = math.prod(map(math.comb, counts, taken))
                key = tuple(kept)
                longer[key] = longer.get(key, 0) + number * chosen
        ways = longer
    # exact integers: only the logarithms are rounded
    log_all = n * math.log(math.comb(t, k))
    log_weights = [math.log(number) - log_all for number in ways.values()]
    return np.array(list(ways), dtype=int), np.array(log_weights)


@dataclass(frozen=True, eq=False)
class MomentsGivenSum:
    """Bounds of E_Q[L^n; T = tau] for the values tau of T, n = 0, ..., 4, each an array of shape
    (5, number of values), and of the probability that T has none of these values, under P and under
    Q.

    A step adds to T how many of the `edges` its output exceeds, in deviations; from `first` on,
    `together` neighbouring values of T are not told apart.
    """

    at_least: np.ndarray
    at_most: np.ndarray
    outside: float
    edges: np.ndarray = field(default_factory=lambda: np.zeros(0))
    first: int = 0
    together: int = 1


@dataclass(frozen=True)
class _Sum:
    """T = sum over the t steps of the integer nearest to ln(1 + c X_j) / h."""

    t: int
    k: int
    deviation: float
    c: float
    h: float

    @property
    def sigma(self) -> float:
        return 1 / self.deviation

    @cached_property
    def edges(self) -> np.ndarray:
        """Places where the integer changes, in deviations of one output: any increasing numbers are
        valid, as T is defined by them."""
        largest = max(_ORDERS) * self.sigma + _REACH
        log_x = self.sigma * largest - self.sigma**2 / 2
        top = float(np.logaddexp(0.0, math.log(self.c) + log_x))
        values = (np.arange(max(1, math.floor(top / self.h))) + 0.5) * self.h
        z = (np.log(np.expm1(values)) - math.log(self.c)) / self.sigma + self.sigma / 2
        return np.asarray(z[(z > -_REACH) & (z < largest)])

    @cached_property
    def integers(self) -> np.ndarray:
        """The integers of the cells between the edges."""
        log_x = self.sigma * self.edges - self.sigma**2 / 2
        first = round(float(np.logaddexp(0.0, math.log(self.c) + log_x[0])) / self.h - 0.5)
        return first + np.arange(self.edges.size + 1)

    @cached_property
    def log_masses(self) -> np.ndarray:
        """ln E_Q[X^i; cell], i = 0, ..., 4: of e^(i (i - 1) sigma^2 / 2) times N(i sigma)."""
        rows = [self._masses[i][0] for i in _ORDERS]
        with np.errstate(divide="ignore"):
            logs = np.log(rows)
        powers = np.array(_ORDERS)[:, None]
        return np.asarray(logs + powers * (powers - 1) / 2 * self.sigma**2)

    @cached_property
    def _masses(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [normal_masses(self.edges, i * self.sigma) for i in _ORDERS]

    @cached_property
    def step_error(self) -> float:
        """Largest share of a mass that its error is, with the rounding of its logarithm."""
        with np.errstate(divide="ignore", invalid="ignore"):
            share = max(float(np.max(error / mass)) for mass, error in self._masses)
        if not share < 1e-6:
            raise NumericalError("a sum of functions of the steps has cells without mass")
        return share + 8 * _EPS * (4 + float(np.abs(self.log_masses).max()))

    @cached_property
    def _log_totals(self) -> dict[tuple[int, float], float]:
        return {}

    def log_total(self, i: int, tilt: float) -> float:
        """ln E_Q[X^i e^(tilt h integer)] of one step."""
        # moments of several orders ask for the same tilts
        if (i, tilt) not in self._log_totals:
            exponents = self.log_masses[i] + tilt * self.h * self.integers
            self._log_totals[i, tilt] = _log_sum(exponents)
        return self._log_totals[i, tilt]

    def log_terms(self, n: int, tilt: float) -> np.ndarray:
        """Logarithms of the terms of all overlaps in E_Q[L^n e^(tilt h T)]."""
        counts, log_weights = overlaps(self.t, self.k, n)
        totals = np.array([self.log_total(i, tilt) for i in range(n + 1)])
        # not a product of matrices: see `pld`
        return np.asarray(log_weights + np.einsum("ij,j->i", counts, totals))

    def term_error(self, n: int, tilt: float) -> float:
        """Bound the rounding error of the terms above: their sizes together, times a few eps."""
        counts, _ = overlaps(self.t, self.k, n)
        totals = np.array([abs(self.log_total(i, tilt)) for i in range(n + 1)])
        sizes = float(np.einsum("ij,j->i", counts, totals).max())
        return 8 * _EPS * (8 + sizes + 2 * n * math.log(math.comb(self.t, self.k)))

    def log_moment(self, n: int, tilt: float) -> float:
        """ln E_Q[L^n e^(tilt h T)]."""
        return _log_sum(self.log_terms(n, tilt))

    def reach(self, n: int, tilt: float) -> tuple[float, float]:
        """Return (low, high) such that the tilted n-th moment below low, and above high, is at most
        e^_LOG_TAIL of all of it (Chernoff)."""
        base = self.log_moment(n, tilt)
        up, down = (
            [
                (self.log_moment(n, tilt + sign * theta) - base - _LOG_TAIL) / theta
                for theta in _THETAS
            ]
            for sign in (1, -1)
        )
        return -min(down), min(up)

    def window(self) -> tuple[int, int]:
        """Return the first place of T, and one after the last, beyond which all tilted moments are
        of the size of the tail."""
        reaches = [self.reach(n, tilt + 1 - n) for n in _ORDERS for tilt in _TILTS]
        first = math.floor(min(low for low, _ in reaches) / self.h)
        last = math.ceil(max(high for _, high in reaches) / self.h)
        return first, last + 1

    def tilted(self, n: int, tilt: float, first: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of E_Q[L^n; T = first + j], j < size, by a transform of the tilted
        moment."""
        counts, _ = overlaps(self.t, self.k, n)
        log_terms = self.log_terms(n, tilt)
        scale = _log_sum(log_terms)
        stage_error = 4 * _EPS * math.log2(size)
        spectra = [self._spectrum(i, tilt, size) for i in range(n + 1)]
        sizes = [np.abs(spectrum) + stage_error for spectrum in spectra]
        fewest = int(counts[:, 0].min())
        # every term has at least so many factors of steps that are in no subset
        kept = fewest * np.log(sizes[0]) > _LOG_VANISHING
        terms, bounds = np.zeros(kept.sum(), dtype=complex), np.zeros(kept.sum())
        powers = [_powers(spectrum[kept], counts[:, i]) for i, spectrum in enumerate(spectra)]
        largest = [_powers(of[kept], counts[:, i]) for i, of in enumerate(sizes)]
        for row, weight in zip(counts.tolist(), np.exp(log_terms - scale).tolist(), strict=True):
            factors = sum(count > 0 for count in row)
            work.spend(work.NUMBER * 12 * terms.size * factors)
            term, bound = np.full(terms.size, weight, dtype=complex), np.full(bounds.size, weight)
            for i, count in enumerate(row):
                if count:
                    term *= powers[i][count]
                    bound *= largest[i][count]
            terms += term
            bounds += bound
        most = counts.max(axis=0)
        share = 4 * _EPS * (len(counts) + 8 * (n + 1))
        for i, spectrum in enumerate(spectra):
            # |z^c - w^c| <= c max(|z|, |w|)^(c - 1) |z - w|, and what the power itself rounds
            angle = np.abs(np.angle(spectrum[kept]))
            share = share + most[i] * (stage_error / sizes[i][kept] + 8 * _EPS * (1 + angle))
        values = np.zeros(kept.size, dtype=complex)
        values[kept] = terms
        errors = np.full(kept.size, math.exp(_LOG_VANISHING))
        errors[kept] = bounds * share
        masses = np.roll(fft.irfft(values, n=size), -(first % size))
        # Parseval: errors of the spectrum are those of the masses in Euclidean norm
        round_off = math.sqrt(2 * float(np.einsum("i,i", errors, errors)) / size)
        round_off += stage_error * math.sqrt(float(np.einsum("i,i", masses, masses)))
        return self._untilted(masses, round_off, scale, n, tilt, first)

    def _spectrum(self, i: int, tilt: float, size: int) -> np.ndarray:
        exponents = self.log_masses[i] + tilt * self.h * self.integers
        masses = np.exp(exponents - self.log_total(i, tilt))
        cyclic = np.bincount(self.integers % size, masses, minlength=size)
        return np.asarray(fft.rfft(cyclic))

    def _untilted(
        self, masses: np.ndarray, round_off: float, scale: float, n: int, tilt: float, first: int
    ) -> tuple[np.ndarray, np.ndarray]:
        exponent = scale - tilt * self.h * (first + np.arange(masses.size))
        # t factors, each off by the share of its mass and by what the tilt rounds, and the terms
        steepest = abs(tilt) * self.h * float(self.integers[-1])
        of_steps = self.step_error + 8 * _EPS * steepest
        of_sums = 8 * _EPS * (8 + np.abs(exponent) + 2 * abs(scale)) + self.term_error(n, tilt)
        rounding = np.expm1(self.t * of_steps) + of_sums
        factor = np.exp(np.minimum(exponent, 700.0))
        at_most = (np.maximum(masses, 0.0) + round_off) * factor * (1 + rounding)
        # mass beyond either end of the window may have been added to any place
        charge = round_off + _TAILS
        at_least = np.maximum(masses - charge, 0.0) * factor * np.maximum(1 - rounding, 0.0)
        return at_least, np.where(exponent > 700.0, np.inf, at_most)


def _log_sum(exponents: np.ndarray) -> float:
    largest = float(exponents.max())
    return largest + math.log(float(np.exp(exponents - largest).sum()))


def _powers(values: np.ndarray, exponents: np.ndarray) -> dict[int, np.ndarray]:
    return {power: values**power for power in {*exponents.tolist()} if power}


@work.remembered(16)  # both ends ask for it
def moments_given_sum(t: int, k: int, deviation: float, c: float) -> MomentsGivenSum:
    """Return the moments of the likelihood ratio of k of t steps given the sum with the weight c.

    Raises
    ------
    NumericalError
        If there is too little noise, or the sum has too many values.
    """
    if max(_ORDERS) / deviation + _REACH > _FARTHEST:
        raise NumericalError(f"moments given a sum need more noise, got {deviation:g}")
    h = min(max(math.sqrt(12 * _ROUNDING / t), _FINEST), _COARSEST)
    total = _Sum(t, k, deviation, c, h)
    if total.edges.size < 2:
        raise NumericalError("a sum whose steps all round to one integer tells nothing")
    first, end = total.window()
    if end - first > _MOST_PLACES:
        raise NumericalError(f"a sum with {end - first} values is too long for a transform")
    size = fft.next_fast_len(max(end - first, 16), real=True)
    # places are gathered: a coarser sum is a function of the outputs, too
    together = -(-size // _MOST_CELLS)
    starts = np.arange(0, size, together)
    at_least, at_most = [], []
    for n in _ORDERS:
        tilted = [total.tilted(n, tilt + 1 - n, first, size) for tilt in _TILTS]
        lower = np.max([low for low, _ in tilted], axis=0)
        upper = np.min([high for _, high in tilted], axis=0)
        at_least.append(np.add.reduceat(lower, starts) * (1 - 2 * together * _EPS))
        at_most.append(np.add.reduceat(upper, starts) * (1 + 2 * together * _EPS))
    # values are counted from that of a step whose output exceeds no edge
    first -= t * int(total.integers[0])
    bounds = np.array(at_least), np.array(at_most)
    return MomentsGivenSum(*bounds, _TAILS, total.edges, first, together)


# of a fourth power (x - x_0)^4 / d^3, x_0 at the distance d from a: the least multiple above
# (x - a)_+
_QUARTIC = 27 / 256
_ROUNDED = 1 + 1e-12


class PolynomialBounds:
    """Bounds of H_a(P || Q) and of H_a(Q || P) at single orders, by polynomials, from the moments
    given one sum."""

    def __init__(self, moments: MomentsGivenSum) -> None:
        filled = moments.at_most[0] > 0
        low, high = moments.at_least[:, filled], moments.at_most[:, filled]
        # where the mass under Q underflows, that under P counts as infinite loss
        self._outside = moments.outside + float(moments.at_most[1, ~filled].sum())
        self._low, self._high = low, high
        with np.errstate(all="ignore"):
            # powers are taken about a centre, any number: the mean where it is known
            centre = np.where(low[0] > 0, high[1] / low[0], 0.0)
            x = np.where(np.isfinite(centre), centre, 0.0)
            self._centre = x
            # what the mean may differ from the centre by, times the mass
            above, below = high[1] - x * low[0], x * high[0] - low[1]
            rounding = 8 * _EPS * (high[1] + x * high[0])
            self._apart = np.maximum(np.maximum(above, below), 0.0) + rounding
            self._second = _charged([high[2], -2 * x * low[1], x**2 * high[0]])
            fourth = [high[4], -4 * x * low[3], 6 * x**2 * high[2]]
            self._fourth = _charged([*fourth, -4 * x**3 * low[1], x**4 * high[0]])

    def above(self, log_order: float) -> float:
        """Return a bound of E_Q (L - a)_+ = H_a(P || Q)."""
        work.spend(work.NUMBER * 40 * self._centre.size)
        # profiles fall: a smaller order is safe
        log_order -= 4 * _EPS * (1 + abs(log_order))
        a = math.exp(log_order)
        low, high, y = self._low, self._high, self._centre - a
        rounding = 4 * _EPS * (self._centre + a)
        bound = np.minimum(self._quadratic(y, rounding), high[1])
        tail = self._quartic(y, rounding)
        # left of a, or right of it by way of (x - a) + (a - x)_+
        right = np.maximum(high[1] - a * low[0], 0.0) + 8 * _EPS * high[1]
        bound = np.minimum(bound, np.where(y < 0, tail, right + tail))
        # about 0, where no moment is taken off
        fourth = _QUARTIC * high[4] * math.exp(-3 * log_order) * _ROUNDED
        return self._summed(np.minimum(bound, fourth))

    def below(self, log_order: float) -> float:
        """Return a bound of E_Q (1 - a L)_+ = H_a(Q || P)."""
        work.spend(work.NUMBER * 40 * self._centre.size)
        log_order -= 4 * _EPS * (1 + abs(log_order))
        b = math.exp(-log_order)
        low, high, y = self._low, self._high, b - self._centre
        rounding = 4 * _EPS * (self._centre + b)
        bound = np.minimum(self._quadratic(y, rounding), b * high[0])
        tail = self._quartic(y, rounding)
        left = np.maximum(b * high[0] - low[1], 0.0) + 8 * _EPS * b * high[0]
        bound = np.minimum(bound, np.where(y < 0, tail, left + tail))
        return min(1.0, self._summed(bound) / b * (1 + 16 * _EPS))

    def _quadratic(self, y: np.ndarray, rounding: np.ndarray) -> np.ndarray:
        """Return bounds by (u + r)^2 / (4 r), which lies above u_+ for every r > 0, here for u = x
        - a or a - x, whose centre is y; squares about the centre are those of x."""
        with np.errstate(all="ignore"):
            r = np.sqrt(y**2 + self._second / self._high[0])
            root = np.abs(y + r) + rounding + 4 * _EPS * r
            value = self._second + 2 * root * self._apart + root**2 * self._high[0]
            value = value / (4 * r) * (1 + 32 * _EPS)
        return np.where(np.isfinite(value), value, np.inf)

    def _quartic(self, y: np.ndarray, rounding: np.ndarray) -> np.ndarray:
        """Return bounds by 27 / 256 (x - x_0)^4 / d^3, which lies above (x - a)_+ where x_0 is d
        left of a, and above (a - x)_+ where it is d right of a."""
        with np.errstate(all="ignore"):
            distance = np.maximum(np.abs(y) - rounding, 0.0)
            value = _QUARTIC * self._fourth / distance**3 * (1 + 32 * _EPS)
        return np.where(np.isfinite(value), value, np.inf)

    def _summed(self, bound: np.ndarray) -> float:
        return float(bound.sum()) * (1 + 2 * _EPS * bound.size) + self._outside


def _charged(terms: list[np.ndarray]) -> np.ndarray:
    """Return a sum that cancels, at least 0, with its rounding added."""
    total = np.sum(terms, axis=0)
    charged: np.ndarray = np.maximum(total, 0.0) + 16 * _EPS * np.sum(np.abs(terms), axis=0)
    return charged
