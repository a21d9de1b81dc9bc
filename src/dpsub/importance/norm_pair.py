"""The loss of noise with density exp(-|z|) in d dimensions, moved by a vector of length D, in closed form.

In prolate spheroidal coordinates about the two centres, mu = (|y| + |y - v|) / D and nu = (|y| - |y - v|) / D, the
loss is L = D nu in [-D, D], and both densities are e^{-D mu / 2} e^{+-L / 2} times the volume element, which is

    (mu^2 - nu^2) ((mu^2 - 1)(1 - nu^2))^{(d - 3) / 2},   mu^2 - nu^2 = (mu^2 - 1) + (1 - nu^2).

So the pair is P = e^{L/2} G / Z, Q = e^{-L/2} G / Z with one even law G of L, and nu is under G the mixture of the
densities proportional to (1 - nu^2)^{(d - 3) / 2} and (1 - nu^2)^{(d - 1) / 2} with odds d K_{d/2}(z) : z K_{d/2 -
1}(z), z = D / 2. For d = 1 the first one is the atoms at both ends, and this is the Laplace law.  With E_0F1 below, Z
= E_G e^{L/2}.

*Bounds.*  H_a(P || Q) = (2 sqrt(a) / Z) E_G sinh((L - log a) / 2)_+, and x -> sinh(x/2)_+ is convex.  So a law that
is larger than G in convex order has larger divergences at every a.  The law that puts each cell's mass on the two
grid points beside it, with the cell's mean kept, is larger: its masses are second differences of E (x - L)_+.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import kve

from dpsub import checks
from dpsub.accountants.loss_law import LossLaw
from dpsub.errors import NumericalError

_EPS = float(np.finfo(float).eps)
_NOTHING = 1e-17
_SMALLEST, _LARGEST = 1e-300, 600.0


@dataclass(frozen=True)
class NormPair:
    """Noise of density exp(-|z|_2) in d dimensions on two values at distance `shift`, in units of the noise scale.

    Symmetric: the losses of the two directions have one law.

    Attributes
    ----------
    d : int
        Dimension; 1 is the Laplace law.
    shift : float
        D > 0: the loss lies in [-D, D].

    Raises
    ------
    ArgumentError
        If an attribute is out of range.
    NumericalError
        If the shift exceeds 600 nats, where e^L leaves the range of doubles, or is below 1e-300.
    """

    d: int
    shift: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", checks.integer("d", self.d, at_least=1))
        object.__setattr__(self, "shift", checks.real("shift", self.shift, above=0))
        if not _SMALLEST <= self.shift <= _LARGEST:
            raise NumericalError(
                f"losses must be at most {_LARGEST:g} nats (at least {_SMALLEST:g}), got {self.shift:g}"
            )

    @cached_property
    def flat_share(self) -> float:
        """Weight under G of the density proportional to (1 - nu^2)^{(d - 3) / 2}."""
        z = self.shift / 2
        # ratio K_{v+1} / K_v upwards from v = -1/2 or 0: a recurrence of positive terms
        order, ratio = (-0.5, 1.0) if self.d % 2 else (0.0, float(kve(1, z) / kve(0, z)))
        while order < self.d / 2 - 1:
            order += 1
            ratio = 2 * order / z + 1 / ratio
        return 1 / (1 + z / (self.d * ratio))

    @cached_property
    def log_normaliser(self) -> float:
        """log Z = log E_G e^{L/2}, by the series of 0F1(d/2; D^2/16) and 0F1(d/2 + 1; D^2/16)."""
        z = self.shift / 2
        terms = np.arange(int(2 * z + 60 + 8 * math.sqrt(z)))
        logs = []
        for share, first in ((self.flat_share, self.d / 2), (1 - self.flat_share, self.d / 2 + 1)):
            # log of (z/2)^{2j} / (j! (first)_j)
            steps = 2 * math.log(z / 2) - np.log(terms[1:]) - np.log(first + terms[:-1])
            if share > 0:
                logs.append(math.log(share) + np.concatenate([[0.0], np.cumsum(steps)]))
        return float(np.logaddexp.reduce(np.concatenate(logs)))

    def _components(self) -> list[tuple[float, float]]:
        """Weights and parameters a of the Beta(a, a) laws of (1 + nu) / 2 that are no atoms."""
        first = [] if self.d == 1 else [(self.flat_share, (self.d - 1) / 2)]
        return [*first, (1 - self.flat_share, (self.d + 1) / 2)]

    def _shortfall(self, x: np.ndarray) -> np.ndarray:
        """E (x - L)_+ under G at -D <= x <= 0, from sums of positive terms alone."""
        below = np.clip((1 + x / self.shift) / 2, 0.0, 0.5)
        total = np.zeros(x.shape)
        for weight, a in self._components():
            total += 2 * weight * _beta_shortfall(below, a)
        if self.d == 1:
            total += self.flat_share * below
        return total * self.shift

    def upper_law(self, step: float) -> LossLaw:
        """Bound the law of the loss from above on the multiples of `step`.

        The base mass at a point is the second difference of x -> E (x - L)_+ over the step, and that of its mirror
        image.
        """
        # no less than D / step after rounding: the ends of the grid must not lie inside of those of the law
        reach = max(1, math.ceil(self.shift / step * (1 + 4 * _EPS)))
        # at and beyond -D the shortfall is 0
        shortfall = self._shortfall(np.maximum(np.arange(-reach, 1) * step, -self.shift))
        slope = np.diff(shortfall, prepend=0.0) / step
        # where rounding makes a mass negative it is 0, which moves mass from the middle outwards, as does rounding up
        lower = np.maximum(np.diff(slope), 0.0)
        base = np.concatenate([lower, [max(0.0, 1 - 2 * float(lower.sum()))], lower[::-1]])
        indices = np.arange(-reach, reach + 1)
        tilt = indices * (step / 2) - self.log_normaliser
        masses = base * np.exp(tilt) * (1 + 8 * _EPS * (4 + np.abs(tilt)) + self.rounding(reach))
        return LossLaw(step, indices, masses, "upper")

    def rounding(self, reach: int) -> float:
        """Bound of the relative error of shortfalls and of the normaliser, hence of all divergences.

        With E (x - L)_+ for x < 0 and its mirror image for x > 0, E of a convex function is its value at 0 plus
        integrals of these against its second derivative: positive terms, whose relative errors are those of the sum.
        """
        powers = (self.d + 3) * (2 + math.log(2 * reach + 2))
        return 8 * _EPS * (100 + powers + _terms(self.d) + self.shift)


def _terms(d: int) -> int:
    """Number of terms of the series: terms fall like j exp(-j^2 / (2 d)), then by a quarter or more; e^-60 is left."""
    return int(120 + 16 * math.sqrt(d))


def _beta_shortfall(x: np.ndarray, a: float) -> np.ndarray:
    """E (x - B)_+ for B ~ Beta(a, a), 0 <= x <= 1/2.

    It is x^{a+1} (1 - x)^{a+1} 2F1(2a + 1, 2; a + 2; x) / (a (a + 1) B(a, a)), after Euler's transformation, whose
    series has positive terms.
    """
    term, total = np.ones(x.shape), np.ones(x.shape)
    for j in range(_terms(int(2 * a + 1))):
        term *= x * ((2 * a + 1 + j) * (2 + j) / ((a + 2 + j) * (1 + j)))
        total += term
        # terms begin at 1 and their ratios fall: what is below the rounding of its sum falls, and adds nothing any more
        if j % 16 == 15 and (term < _NOTHING * total).all():
            break
    log_beta = 2 * math.lgamma(a) - math.lgamma(2 * a)
    with np.errstate(divide="ignore"):
        log_front = (a + 1) * (np.log(x) + np.log1p(-x)) - math.log(a * (a + 1)) - log_beta
    return np.asarray(np.exp(log_front) * total)
