"""One step of a composed mechanism: what bounds its loss from above and from below, in both directions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dpsub.accountants import law_trimming
from dpsub.accountants.directed_pair import DirectedPair
from dpsub.accountants.filler_pair import FillerPair
from dpsub.accountants.gaussian_pair import GaussianPair
from dpsub.accountants.loss_law import LossLaw
from dpsub.accountants.mixture_pair import MixturePair
from dpsub.accountants.pair_losses import lower_law, upper_law
from dpsub.accountants.profile_losses import MAX_LOSS, Profile, order_indices, symmetric_law, two_sided_law

ProfileMaker = Callable[[float], tuple[Profile, Profile | None]]
"""tail -> (H_a(P || Q), H_a(Q || P)) for a >= 1; None for the second where it equals the first."""

_SEARCH = np.concatenate([[0.0], np.geomspace(1e-5, MAX_LOSS, 90)])


class Event(ABC):
    """A step of a composition."""

    @abstractmethod
    def upper(self, step: float, tail: float, swapped: bool) -> LossLaw:
        """A law that dominates the step, in one direction."""

    @abstractmethod
    def lower(self, step: float, tail: float, swapped: bool) -> LossLaw | None:
        """A law that an explicit pair of data sets attains, in one direction; None if none is known."""

    def fitting(self, step: float) -> float:
        """A step, at most the one given, that suits the lower law: any is valid."""
        return step

    @property
    @abstractmethod
    def symmetric(self) -> bool:
        """Whether both directions have the same laws."""

    @property
    def upper_symmetric(self) -> bool:
        """Whether both directions have the same upper law."""
        return self.symmetric

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether both bound the same loss."""

    @property
    def attacked(self) -> bool:
        """Whether an attack is known, so that `lower` gives laws."""
        return True

    @property
    def attained_once(self) -> bool:
        """Whether both bound the same loss if the step happens once, and alone."""
        return self.exact

    @abstractmethod
    def spread(self) -> float:
        """Standard deviation of the loss, roughly: the unit of grid steps."""


@dataclass(frozen=True)
class PairEvent(Event):
    """A step whose worst data sets are known: the pair itself.

    Attributes
    ----------
    pair : GaussianPair
    one_direction : bool
        Use X against X' only, as the papers do for Poisson sampling.
    """

    pair: GaussianPair
    one_direction: bool = False

    def upper(self, step: float, tail: float, swapped: bool) -> LossLaw:
        kept, lost = _dropped(self.pair, tail)
        return upper_law(kept, step, tail=tail, swapped=swapped, lost=lost)

    def lower(self, step: float, tail: float, swapped: bool) -> LossLaw | None:
        return lower_law(_capped(self.pair, tail), step, tail=tail, swapped=swapped)

    @property
    def symmetric(self) -> bool:
        # a pair and its mirror image have one loss in both directions
        return self.pair.mirrored or self.one_direction

    @property
    def exact(self) -> bool:
        return True

    def spread(self) -> float:
        pair = _capped(self.pair, 1e-12)
        below, above = DirectedPair(pair).range(1e-3)
        return float(np.sqrt(upper_law(pair, max(above - below, 1e-9) / 400, tail=1e-9).moments(0.0)[1]))


@dataclass(frozen=True)
class DominatedEvent(Event):
    """A step with a proved profile, and an attack that may fall short of it.

    Attributes
    ----------
    profile : callable
        `ProfileMaker`.
    attack : GaussianPair or None
        Outputs on two explicit data sets.
    attained : bool
        Whether the attack attains the profile, so that both bound one number if there is one step only.
    """

    profile: ProfileMaker
    attack: GaussianPair | None
    attained: bool = False

    def upper(self, step: float, tail: float, swapped: bool) -> LossLaw:
        forward, backward = self.profile(tail)
        indices = order_grid(forward, step, tail)
        if backward is None:
            return symmetric_law(forward, step, indices)
        first, second = (backward, forward) if swapped else (forward, backward)
        return two_sided_law(first, second, step, indices)

    def lower(self, step: float, tail: float, swapped: bool) -> LossLaw | None:
        return None if self.attack is None else PairEvent(self.attack).lower(step, tail, swapped)

    @property
    def symmetric(self) -> bool:
        return self.profile(1e-9)[1] is None and (self.attack is None or self.attack.mirrored)

    @property
    def upper_symmetric(self) -> bool:
        return self.profile(1e-9)[1] is None

    @property
    def exact(self) -> bool:
        return False

    @property
    def attacked(self) -> bool:
        return self.attack is not None

    @property
    def attained_once(self) -> bool:
        return self.attained

    def spread(self) -> float:
        forward, backward = self.profile(1e-9)
        values = forward(_SEARCH)
        rough = float(_SEARCH[int(np.argmax(values <= max(1e-6, values[0] * 1e-4)))]) or MAX_LOSS
        indices = np.concatenate([[0], np.unique(np.round(np.geomspace(1, 2e4, 150)).astype(int))])
        step = min(10 * rough, MAX_LOSS) / 2e4
        if backward is None:
            law = symmetric_law(forward, step, indices)
        else:
            law = two_sided_law(forward, backward, step, indices)
        # where all losses are so large that they count as infinite, none are left that could differ
        return float(np.sqrt(law.moments(0.0)[1])) or rough


def order_grid(profile: Profile, step: float, tail: float, floor: float = 0.0) -> np.ndarray:
    """Indices of the orders that suit a profile which falls to `floor`, up to where less than `tail` is left."""
    values = profile(_SEARCH) - floor
    below, bulk = values <= tail, values <= values[0] * 1e-3
    last = float(_SEARCH[int(np.argmax(below))]) if below.any() else MAX_LOSS
    fine = float(_SEARCH[int(np.argmax(bulk))]) if bulk.any() else last
    return order_indices(step, min(fine, last), last)


@lru_cache(maxsize=32)
def _dropped(pair: GaussianPair, tail: float) -> tuple[GaussianPair, float]:
    if isinstance(pair, FillerPair | MixturePair):
        law, lost = law_trimming.dropped(pair.law, tail)
        return replace(pair, law=law), lost
    return pair, 0.0


@lru_cache(maxsize=32)
def _capped(pair: GaussianPair, tail: float) -> GaussianPair:
    if isinstance(pair, FillerPair | MixturePair):
        return replace(pair, law=law_trimming.capped(pair.law, tail))
    return pair
