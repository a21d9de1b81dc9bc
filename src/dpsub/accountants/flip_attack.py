"""The filler flip for one law of multiplicity: window, grid and answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsub.accountants import law_trimming
from dpsub.accountants.composition import Composition
from dpsub.accountants.events import PairEvent
from dpsub.accountants.filler_flip import FlipGame
from dpsub.accountants.filler_pair import FillerPair
from dpsub.accountants.pair_losses import lower_law
from dpsub.accountants.refinement import Question
from dpsub.errors import NumericalError
from dpsub.multiplicity import MultiplicityLaw

_STAGES = 32
_CHEAP_WINDOW = 30_000
_LARGEST_WINDOW = 150_000
_TAIL = 1e-15


@dataclass(frozen=True, eq=False)
class FlipAttack:
    """The filler flip against sums of m records, m fixed.

    Attributes
    ----------
    law : MultiplicityLaw
    noise_multiplier : float
    n_compositions : int
    """

    law: MultiplicityLaw
    noise_multiplier: float
    n_compositions: int

    def answer(self, question: Question) -> float:
        """delta at epsilon, or epsilon at delta, that the attack proves from below; 0 where its grid would be too
        large."""
        pair = FillerPair(law_trimming.capped(self.law, _TAIL), self.noise_multiplier / 2)
        spread = PairEvent(pair).spread()
        rough = lower_law(pair, spread / 12, tail=_TAIL, aligned=False)
        low, high = Composition([rough], [self.n_compositions]).cumulants.reach(0.0, -25.0)
        top = max(high, (question.epsilon or 0.0) + 1)
        bottom = -max(5.0, min(high - low, 40.0))
        # fine enough for the loss, and finer where the window is narrow enough for that to be cheap
        step = min(spread / 36, max(spread / 500, (top - bottom) / _CHEAP_WINDOW))
        if (top - bottom) / step > _LARGEST_WINDOW:
            return 0.0
        laws = [lower_law(pair, step, tail=_TAIL, swapped=swapped, aligned=False) for swapped in (False, True)]
        try:
            epsilons, deltas = FlipGame(laws, self.n_compositions, _STAGES).curve(bottom, top)
        except NumericalError:
            # blocks of many steps may need a larger transform than there is
            return 0.0
        if question.epsilon is not None:
            # the next grid point to the right has the smaller delta
            place = int(np.searchsorted(epsilons, question.epsilon))
            return float(deltas[place]) if place < deltas.size else 0.0
        above = np.flatnonzero(deltas > question.delta)
        return max(0.0, float(epsilons[above[-1]])) if above.size else 0.0
