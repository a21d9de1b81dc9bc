"""The filler flip for one law of multiplicity: outcomes, tilt, window, grid and answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsub.accountants import law_trimming
from dpsub.accountants.composition import Composition
from dpsub.accountants.directed_pair import DirectedPair
from dpsub.accountants.filler_flip import Fillers, FlipGame
from dpsub.accountants.filler_pair import FillerPair
from dpsub.accountants.laplace_pair import LaplacePair
from dpsub.accountants.loss_law import LossLaw
from dpsub.accountants.pair_losses import LAW_ERROR, MAX_LOSS
from dpsub.accountants.refinement import Question
from dpsub.errors import NumericalError

_TAIL, _BULK = 1e-15, 1e-3
_COARSE, _FINE, _COARSEST = 1 / 14, 1 / 48, 1 / 4
"""Steps in units of the standard deviation of one loss: wanted, enough, and the last resort for long windows."""
_MOST_CELLS = 1e5
_CHEAP_WINDOW, _LARGEST_WINDOW = 12_000, 40_000
_TINY = 1e-300
_ACCEPTED = -12.0
"""Where the policy accepts at once: from there on no policy gains more than e^-12 of what it has."""
_RARE = -14.0


@dataclass(frozen=True, eq=False)
class FlipAttack:
    """The filler flip against sums of m records, m fixed.

    Attributes
    ----------
    pair : FillerPair or LaplacePair
        Outputs with fillers at -C on the two data sets.
    n_compositions : int
    """

    pair: FillerPair | LaplacePair
    n_compositions: int

    def answer(self, question: Question) -> float:
        """delta at epsilon, or epsilon at delta, that the attack proves from below; 0 where its grid would be too
        large, or blocks of many steps need a larger transform than there is, or losses cannot be told apart."""
        try:
            return self._proved(question)
        except NumericalError:
            return 0.0

    def _proved(self, question: Question) -> float:
        pair = self.pair
        if isinstance(pair, FillerPair):
            pair = FillerPair(law_trimming.capped(pair.law, _TAIL), pair.scale)
        # where inclusions are rare the bulk may be one loss: then a share of the whole range is fine enough
        (below, above), (lowest, highest) = _range(pair, _BULK), _range(pair, _TAIL)
        first = max((above - below) / 400, (highest - lowest) / _MOST_CELLS)
        spread = float(np.sqrt(choices(pair, first)[0].accepted.moments(0.0)[1]))
        if spread * _COARSEST < (1 - _ACCEPTED) / _LARGEST_WINDOW:
            # the shortest window is too long already
            return 0.0
        rough = choices(pair, spread / 8)
        tilt, epsilon = _saddle(rough, self.n_compositions, question)
        highest = 0.0
        for one in rough:
            lowest, _ = Composition([one.accepted], [self.n_compositions]).cumulants.reach(tilt, _RARE)
            highest = max(highest, epsilon + max(1.0, -lowest))
        step = max(spread * _FINE, (highest - _ACCEPTED) / _CHEAP_WINDOW)
        if step > spread * _COARSE:
            step = max(spread * _COARSE, (highest - _ACCEPTED) / _LARGEST_WINDOW)
        if step > spread * _COARSEST:
            return 0.0
        policy = FlipGame(choices(pair, step), self.n_compositions, tilt).played(_ACCEPTED, highest)
        return policy.delta(epsilon) if question.delta is None else policy.epsilon(question.delta)


def _range(pair: FillerPair | LaplacePair, tail: float) -> tuple[float, float]:
    """Losses between which the grid of a pair lies."""
    below, above = (pair if isinstance(pair, LaplacePair) else DirectedPair(pair)).range(tail)
    return max(below, -MAX_LOSS), min(above, MAX_LOSS)


def choices(pair: FillerPair | LaplacePair, step: float) -> tuple[Fillers, Fillers]:
    """Outcomes of one step with fillers at -C and at +C, on the grid of this step.

    Cells of outputs are told apart by losses half-way between grid points.  Their masses go to the two grid points next
    to their own loss, in shares that keep it on average; with fillers at +C the two data sets change places.
    """
    direction = pair if isinstance(pair, LaplacePair) else DirectedPair(pair)
    below, above = _range(pair, _TAIL)
    losses = (np.arange(np.floor(below / step), np.ceil(above / step)) + 0.5) * step
    edges = np.concatenate([[-np.inf], np.maximum.accumulate(direction.place(losses)), [np.inf]])
    cells = direction.masses(edges)
    with np.errstate(divide="ignore"):
        own = np.log(cells.p + _TINY) - np.log(cells.q + _TINY)
    # any place is a valid memory; one that is off by more than a cell is not a good one
    own = np.clip(own, losses[0] - step, losses[-1] + step)
    index = np.floor(own / step).astype(int)
    share = np.clip(own / step - index, 0.0, 1.0)
    places, shares = np.concatenate([index, index + 1]), np.stack([1 - share, share])

    def law(masses: np.ndarray, errors: np.ndarray, side: str, sign: int) -> LossLaw:
        return LossLaw(step, sign * places, (shares * _rounded(masses, errors, side)).ravel(), side)

    p, q = (cells.p, cells.p_error), (cells.q, cells.q_error)
    return (Fillers(law(*p, "lower", 1), law(*q, "upper", 1)), Fillers(law(*q, "lower", -1), law(*p, "upper", -1)))


def _rounded(masses: np.ndarray, errors: np.ndarray, side: str) -> np.ndarray:
    sign = 1 if side == "upper" else -1
    return np.maximum(masses * (1 + sign * 2 * LAW_ERROR) + sign * (errors + _TINY), 0.0)


def _saddle(fillers: Sequence[Fillers], k: int, question: Question) -> tuple[float, float]:
    """The tilt at which no choice of fillers has a smaller Chernoff bound, and the epsilon asked for, or its bound.

    Any tilt and epsilon are valid.
    """
    laws = [one.accepted for one in fillers]
    unit = 1 / max(float(np.sqrt(k * max(law.moments(0.0)[1] for law in laws))), 1e-12)
    tilts = unit * np.geomspace(1e-3, 1e3, 61)
    tilts = tilts[tilts * laws[0].step < 20]
    growth = np.array([k * max(law.log_mgf(tilt) for law in laws) for tilt in tilts])
    if question.delta is None:
        assert question.epsilon is not None
        best = int(np.argmin(growth - tilts * question.epsilon))
        return (0.0 if best == 0 else float(tilts[best])), question.epsilon
    bounds = (growth - np.log(question.delta)) / tilts
    best = int(np.argmin(bounds))
    return float(tilts[best]), max(0.0, float(bounds[best]))
