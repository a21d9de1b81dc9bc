"""Many releases with recycled noise: delta at an epsilon, or epsilon at a delta, from both sides.

Under symmetric bounds the noise and its shift by the full sensitivity dominate every pair of neighbours, so that one
pair stands for adaptive compositions, and both ends are about its loss.  Under asymmetric ones the upper end takes the
larger profile of both directions at every order, the lower end one direction throughout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsub import checks
from dpsub.accountants.account import WIDTH_MISSED, Account
from dpsub.accountants.events import DominatedEvent, Event, order_grid
from dpsub.accountants.ledger import Ledger
from dpsub.accountants.loss_law import LossLaw
from dpsub.accountants.profile_losses import RememberedProfile
from dpsub.accountants.refinement import Question
from dpsub.recycling.exact import RecycledProfile, Stick, direction, infinite_mass
from dpsub.recycling.kernels import LaplaceKernel
from dpsub.recycling.law import Recycled
from dpsub.recycling.lower_losses import lower_law
from dpsub.relations import Relation

CONDITIONS = (
    "the value of the query moves by at most the sensitivity between neighbouring data sets, given past releases",
    "bounds, rate and scale are public and do not depend on the value",
    "the recycler tests the noise that was drawn, not the difference of release and value",
    "real arithmetic and exact sampling are assumed",
)
"""Under which every guarantee for recycled noise holds."""

_ALIGNMENTS = 4
"""Steps are looked for in this many times the number of those that fit one atom."""
_LARGEST = 2.0**20
_HALVINGS = 60


@dataclass(frozen=True)
class RecycledEvent(Event):
    """One release.

    Attributes
    ----------
    law : Recycled
    """

    law: Recycled

    @cached_property
    def _proved(self) -> DominatedEvent:
        profile = RememberedProfile(lambda log_order: RecycledProfile(self.law).bounds(log_order)[1])
        return DominatedEvent(lambda tail: (profile, None), None)

    def upper(self, step: float, tail: float, swapped: bool) -> LossLaw:
        return self._proved.upper(step, tail, swapped)

    def lower(self, step: float, tail: float, swapped: bool) -> LossLaw:
        first, second = (self.law.mirrored, self.law) if swapped else (self.law, self.law.mirrored)

        def forward(log_order: np.ndarray) -> Stick:
            return direction(first, log_order)

        def backward(log_order: np.ndarray) -> Stick:
            return direction(second, log_order)

        infinity = min(infinite_mass(first), infinite_mass(second)) * (1 - 1e-12)
        indices = order_grid(self._proved.profile(tail)[0], step, tail, infinity)
        return lower_law(forward, forward if self.symmetric else backward, step, indices, infinity)

    def fitting(self, step: float) -> float:
        """Atoms of the loss lie at sums of the kernel's largest loss and L: a step that nearly divides both."""
        if not isinstance(self.law.kernel, LaplaceKernel):
            return step
        largest = self.law.sensitivity / self.law.kernel.scale
        fewest = max(1, math.ceil(largest / step))
        if self.law.rate in (0.0, 1.0):
            return largest / fewest
        parts = np.arange(fewest, _ALIGNMENTS * fewest + 1)
        ratio = -math.log1p(-self.law.rate) / largest * parts
        return float(largest / parts[int(np.argmin(np.abs(ratio - np.round(ratio)) / parts))])

    @property
    def symmetric(self) -> bool:
        return self.law.symmetric

    @property
    def exact(self) -> bool:
        return self.law.symmetric

    def spread(self) -> float:
        return self._proved.spread()

    @property
    def upper_symmetric(self) -> bool:
        return True


def account(
    law: Recycled, n_compositions: int = 1, *, epsilon: float | None = None, delta: float | None = None,
    adjacency: str = "substitute", width: float | None = None,
) -> Account:  # fmt: skip
    """Bound delta at `epsilon`, or epsilon at `delta`, of many releases with one recycler.

    Parameters
    ----------
    law : Recycled
    n_compositions : int
        T >= 1.
    epsilon, delta : float
        Exactly one of them.
    adjacency : {"substitute", "add_remove"}
        The relation for which `law.sensitivity` holds; it only enters the answer's words.
    width : float, optional
        Accuracy wanted: absolute for epsilon (default 1e-3), relative for delta (default 5e-3).

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    """
    return composition([(law, n_compositions)], epsilon=epsilon, delta=delta, adjacency=adjacency, width=width)


def composition(
    releases: Sequence[tuple[Recycled, int]], *, epsilon: float | None = None, delta: float | None = None,
    adjacency: str = "substitute", width: float | None = None,
) -> Account:  # fmt: skip
    """As `account`, for releases of several kinds in any order that is fixed in advance."""
    relation = Relation(checks.one_of("adjacency", adjacency, list(Relation)))
    question = Question(epsilon, delta, width if width is not None else 1e-3 if epsilon is None else 5e-3)
    ledger = Ledger([(RecycledEvent(law), checks.integer("n_compositions", k, at_least=1)) for law, k in releases])
    if len(releases) == 1 and releases[0][1] == 1:
        lower, upper = _single(releases[0][0], question)
        width_met = True
    else:
        lower, upper, width_met = ledger.answer(question)
    return Account(
        lower=min(lower, upper),
        upper=upper,
        kind="exact" if ledger.one_number else "bounds",
        pair="; ".join(dict.fromkeys(_words(law) for law, _ in releases)),
        adjacency=relation,
        sensitivity=f"neighbours move the value by up to {releases[0][0].sensitivity:g}",
        quantity=question.quantity,
        lower_pair="the same pair",
        conditions=CONDITIONS if width_met else (*CONDITIONS, WIDTH_MISSED),
        width_met=width_met,
    )


def _words(law: Recycled) -> str:
    return (
        f"{law.kernel.name} noise of scale {law.kernel.scale:g}, redrawn with probability {law.rate:g} outside "
        f"[{law.lower:g}, {law.upper:g}], against itself moved by {law.sensitivity:g}"
    )


def _single(law: Recycled, question: Question) -> tuple[float, float]:
    """One release from the closed form; epsilon by bisection of both ends of delta."""
    profile = RecycledProfile(law)
    if question.epsilon is not None:
        lower, upper = profile.bounds(question.epsilon)
        return float(lower), float(upper)
    assert question.delta is not None
    return _root(profile, 0, question.delta), _root(profile, 1, question.delta)


def _root(profile: RecycledProfile, end: int, delta: float) -> float:
    """Where an end of delta(epsilon), epsilon >= 0, falls to `delta`: rounded down for the lower end, else up."""
    low, high = 0.0, 1.0
    if float(profile.bounds(low)[end]) <= delta:
        return 0.0
    while float(profile.bounds(high)[end]) > delta:
        low, high = high, 2 * high
        if high > _LARGEST:
            return math.inf
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if float(profile.bounds(middle)[end]) <= delta else (middle, high)
    return high if end else low
