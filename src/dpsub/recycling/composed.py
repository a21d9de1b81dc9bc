"""Many releases with recycled noise: delta at an epsilon, or epsilon at a delta, from both sides.

Under symmetric bounds the noise and its shift by the full sensitivity dominate every pair of neighbours, so that one
pair stands for adaptive compositions, and both ends are about its loss.  Under asymmetric ones the upper end takes the
larger profile of both directions at every order, the lower end one direction throughout.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpsub import checks
from dpsub.accountants.account import WIDTH_MISSED, Account
from dpsub.accountants.events import DominatedEvent, Event, order_grid
from dpsub.accountants.ledger import Ledger
from dpsub.accountants.loss_law import LossLaw
from dpsub.accountants.profile_losses import RememberedProfile, symmetric_law
from dpsub.accountants.refinement import Question
from dpsub.recycling.discrete_kernels import DiscreteRecycled
from dpsub.recycling.divergence import ends
from dpsub.recycling.kernels import GaussianKernel, LaplaceKernel
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

Law = Recycled | DiscreteRecycled

_ALIGNMENTS = 4
"""Steps are looked for in this many times the number of those that fit one atom."""
_MOST_ATOMS = 8
"""Between two orders that atoms are put on the grid for."""
_BEYOND = 1e150
"""No finite loss is larger."""
_HALVINGS = 60


@dataclass(frozen=True)
class RecycledEvent(Event):
    """One release.

    Attributes
    ----------
    law : Recycled or DiscreteRecycled
    """

    law: Law

    @cached_property
    def _proved(self) -> DominatedEvent:
        profile = RememberedProfile(self._upper_end)
        return DominatedEvent(lambda tail: (profile, None), None)

    @cached_property
    def _infinite_above(self) -> float:
        """What the profile falls to: no orders are needed beyond."""
        return float(self._upper_end(np.array([_BEYOND]))[0]) if float(self.law.rate) == 1 else 0.0

    def _upper_end(self, log_order: np.ndarray) -> np.ndarray:
        laws = [self.law] if self.law.symmetric else [self.law, self.law.mirrored]
        return np.asarray(np.max([law.stick(log_order).end(1) for law in laws], axis=0))

    def upper(self, step: float, tail: float, swapped: bool) -> LossLaw:
        profile = self._proved.profile(tail)[0]
        return symmetric_law(profile, step, order_grid(profile, step, tail, self._infinite_above))

    def lower(self, step: float, tail: float, swapped: bool) -> LossLaw:
        first, second = (self.law.mirrored, self.law) if swapped else (self.law, self.law.mirrored)
        infinity = _surely_infinite(self.law)
        indices = order_grid(self._proved.profile(tail)[0], step, tail, self._infinite_above)
        backward = first.stick if self.symmetric else second.stick
        return lower_law(first.stick, backward, step, indices, infinity)

    def fitting(self, step: float) -> float:
        """A step that nearly divides both what all losses of the kernel are multiples of, and L.

        Lower laws are sharp where atoms of the loss lie on the grid.  Where many lie between two orders, none matters.
        """
        unit = atoms(self.law)
        if unit is None or unit < step / _MOST_ATOMS:
            return step
        rate = float(self.law.rate)
        fewest = max(1, math.ceil(unit / step))
        if rate in (0.0, 1.0):
            return unit / fewest
        parts = np.arange(fewest, _ALIGNMENTS * fewest + 1)
        ratio = -math.log1p(-rate) / unit * parts
        return float(unit / parts[int(np.argmin(np.abs(ratio - np.round(ratio)) / parts))])

    @property
    def symmetric(self) -> bool:
        return self.law.symmetric

    @property
    def exact(self) -> bool:
        return self.law.symmetric

    def spread(self) -> float:
        return self._proved.spread()

    @property
    def attained_once(self) -> bool:
        return True

    @property
    def upper_symmetric(self) -> bool:
        return True


def atoms(law: Law) -> float | None:
    """A number of which all atoms of the kernel's loss are multiples; None if it has none."""
    if isinstance(law, DiscreteRecycled):
        return law.kernel.loss_unit(law.sensitivity)
    return law.sensitivity / law.kernel.scale if isinstance(law.kernel, LaplaceKernel) else None


def account(
    law: Law,
    n_compositions: int = 1,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    adjacency: str = "substitute",
    width: float | None = None,
) -> Account:
    """Bound delta at `epsilon`, or epsilon at `delta`, of many releases with one recycler.

    Parameters
    ----------
    law : Recycled or DiscreteRecycled
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
    releases: Sequence[tuple[Law, int]],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    adjacency: str = "substitute",
    width: float | None = None,
) -> Account:
    """As `account`, for releases of several kinds in any order that is fixed in advance."""
    relation = Relation(checks.one_of("adjacency", adjacency, list(Relation)))
    question = Question(epsilon, delta, width if width is not None else 1e-3 if epsilon is None else 5e-3)
    ledger = Ledger([(RecycledEvent(law), checks.integer("n_compositions", k, at_least=1)) for law, k in releases])
    if len(releases) == 1 and releases[0][1] == 1:
        lower, upper = _single(releases[0][0], question)
        width_met = True
    elif len(releases) == 1 and (together := _as_one(*releases[0])) is not None:
        lower, upper = _single(together, question)
        width_met = True
    elif question.delta is not None and _infinite(releases) > question.delta:
        lower, upper, width_met = math.inf, math.inf, True
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


def _surely_infinite(law: Law) -> float:
    """Probability of an infinite loss in the direction where it is smaller, rounded down."""
    if float(law.rate) < 1:
        return 0.0
    return min(float(each.stick(_BEYOND).end(-1)) for each in (law, law.mirrored))


def _infinite(releases: Sequence[tuple[Law, int]]) -> float:
    """Probability of an infinite loss in any release, rounded down."""
    masses = [_surely_infinite(law) for law, _ in releases]
    return -math.expm1(sum(k * math.log1p(-mass) for mass, (_, k) in zip(masses, releases, strict=True)))


def _words(law: Law) -> str:
    if isinstance(law, DiscreteRecycled):
        noise = f"{law.kernel.name} noise of parameter {law.kernel.parameter}"
    else:
        noise = f"{law.kernel.name} noise of scale {law.kernel.scale:g}"
    return (
        f"{noise}, redrawn with probability {float(law.rate):g} outside [{law.lower:g}, {law.upper:g}], against itself "
        f"moved by {law.sensitivity:g}"
    )


def _as_one(law: Law, times: int) -> Recycled | None:
    """Many releases with plain Gaussian noise have the loss of one whose sensitivity is sqrt(T) as large."""
    if isinstance(law, Recycled) and law.rate == 0 and isinstance(law.kernel, GaussianKernel):
        return replace(law, sensitivity=law.sensitivity * math.sqrt(times))
    return None


def _single(law: Law, question: Question) -> tuple[float, float]:
    """One release from the closed form; epsilon by bisection of both ends of delta."""
    laws = [law] if law.symmetric else [law, law.mirrored]

    def bounds(epsilon: float) -> tuple[float, float]:
        low, high = ends([each.stick(epsilon) for each in laws])
        return float(low), float(high)

    if question.epsilon is not None:
        return bounds(question.epsilon)
    assert question.delta is not None
    return _root(bounds, 0, question.delta), _root(bounds, 1, question.delta)


def _root(bounds: Callable[[float], tuple[float, float]], end: int, delta: float) -> float:
    """Where an end of delta(epsilon), epsilon >= 0, falls to `delta`: rounded down for the lower end, else up."""
    low, high = 0.0, 1.0
    if bounds(low)[end] <= delta:
        return 0.0
    if bounds(_BEYOND)[end] > delta:
        return math.inf
    while bounds(high)[end] > delta:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if bounds(middle)[end] <= delta else (middle, high)
    return high if end else low
