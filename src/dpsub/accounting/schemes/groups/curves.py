"""Group bound built from the privacy curve of one record (docs/proofs/groups.md,
Theorem 39).

If D_0, ..., D_g differ in one record from each to the next, then for orders a = b c

    H_a(M(D_g) || M(D_0)) <= H_b(M(D_g) || M(D_(g-1))) + b H_c(M(D_(g-1)) || M(D_0)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dpsub.accounting.engine import work
from dpsub.accounting.engine.fourier import ComposedLoss
from dpsub.accounting.engine.pld import MAX_LOSS, PrivacyLossDistribution, Profile
from dpsub.accounting.engine.privacy_events import DominatedEvent, EnclosedEvent, Event
from dpsub.accounting.schemes.allocation.opposite_event import OppositeBlocks, OppositeEvent

_POINTS = 1500  # orders at which the curve of one record is known, on either side of 1
_FEW = 8  # records up to which there are as many
_PROBES = np.concatenate([[0.0], np.geomspace(1e-4, MAX_LOSS, 60)])
_ROUNDING = 1e-12  # relative, charged for each composition
FINE = 40  # grid steps in a standard deviation of the loss
_COARSE = (8, 16)  # of laws whose work grows fast with fineness, the first ones
_SHARE = 1e-3  # of a bound that its transform may charge


@dataclass(frozen=True, eq=False)
class GroupCurve:
    """Upper bounds for a group, from the events of its records one after the other: the j-th one is
    about data sets D_(j+1) and D_j."""

    events: tuple[Event, ...]

    @property
    def takes_work(self) -> bool:
        """Whether finer laws of one record take far more work."""
        proofs = (each.proved if isinstance(each, EnclosedEvent) else each for each in self.events)
        return any(isinstance(proof, OppositeEvent | OppositeBlocks) for proof in proofs)

    @cached_property
    def _tables(self) -> dict[tuple[float, int], tuple[Profile, Profile]]:
        return {}

    def profiles(self, tail: float, fine: int = FINE) -> tuple[Profile, Profile]:
        """Return H_a(P || Q) and H_a(Q || P) at orders a >= 1, P being the data set with all
        records, from laws with so many grid steps in a deviation."""
        if (tail, fine) not in self._tables:
            self._tables[tail, fine] = self._composed(tail, fine)
        return self._tables[tail, fine]

    def _composed(self, tail: float, fine: int) -> tuple[Profile, Profile]:
        singles: dict[int, tuple[Profile, Profile]] = {}
        for event in self.events:
            if id(event) not in singles:
                singles[id(event)] = _profiles_of(event, tail, fine)
        both = [singles[id(event)] for event in self.events]
        reach = max(_reach(profile, tail) for pair in both for profile in pair)
        points = _POINTS if len(both) <= _FEW else _POINTS * _FEW // len(both)
        step = reach / points
        tables = {key: _table(*pair, step, points) for key, pair in singles.items()}
        tables_of = [tables[id(event)] for event in self.events]
        # from D_1 || D_0 upwards the new record is on the left; backwards D_0 is
        forward, backward = tables_of[0]
        for more, less in tables_of[1:]:
            work.spend(work.TERM * points)
            forward = _joined(more, forward, step)
            backward = _joined(backward, less, step)
        return _chords(forward, step), _chords(backward, step)


@dataclass(frozen=True)
class GroupEvent(DominatedEvent):
    """A step or an epoch of a group whose curves take much work: they are the finer the finer the
    grid of losses is."""

    profiles_on: Callable[[float, int], tuple[Profile, Profile]] = field(kw_only=True)
    """Function of a tail, and of the grid steps in a deviation."""

    @classmethod
    def of(cls, profiles_on: Callable[[float, int], tuple[Profile, Profile]]) -> GroupEvent:
        """Return the event with these bounds."""
        return cls(lambda tail: profiles_on(tail, _COARSE[0]), None, profiles_on=profiles_on)

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        # first grids have as many steps in a deviation as the coarsest curves
        wanted = 0.99 * self.spread() / step
        fine = next((each for each in _COARSE if wanted <= each), FINE)
        profiles = self.profiles_on(tail, fine)
        return DominatedEvent(lambda _: profiles, None).upper(step, tail, swapped)


def _profiles_of(event: Event, tail: float, fine: int) -> tuple[Profile, Profile]:
    """Return both profiles of one record."""
    proved = event.proved if isinstance(event, EnclosedEvent) else event
    if isinstance(proved, DominatedEvent):
        forward, backward = proved.profile(tail)
        return forward, backward or forward
    step = proved.spread() / fine

    def of(swapped: bool) -> Profile:
        laws, times = zip(*proved.uppers(step, tail, swapped), strict=True)
        if len(laws) == 1 and times[0] == 1:
            return _profile_of_law(laws[0])
        composed = ComposedLoss(laws, times)
        return lambda log_order: np.minimum(composed.deltas(log_order, _SHARE), 1.0)

    forward = of(False)
    return forward, forward if proved.upper_symmetric else of(True)


def _profile_of_law(law: PrivacyLossDistribution) -> Profile:
    """Return the profile of a law: sum over losses L > ln a of mass (1 - a e^-L), and the infinite
    mass, rounded up."""
    order = np.argsort(law.indices)
    losses, masses = law.losses[order] + law.offset, law.masses[order]
    above = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    opposite = np.append(np.cumsum((masses * np.exp(-losses))[::-1])[::-1], 0.0)
    # of sums of as many positive terms, one after the other
    rounding = 4 * (losses.size + 16) * float(np.finfo(float).eps)

    def profile(log_order: np.ndarray) -> np.ndarray:
        place = np.searchsorted(losses, log_order, side="right")
        lost = np.exp(log_order) * opposite[place] * (1 - rounding)
        gained = above[place] * (1 + rounding) - lost
        return np.minimum(np.maximum(gained, 0.0) + law.infinity, 1.0)

    return profile


def _reach(profile: Profile, tail: float) -> float:
    """Return the log order at which less than the tail is left of a profile, or all that ever
    falls."""
    values = profile(_PROBES)
    small = np.flatnonzero(values <= max(tail, float(values[-1]) * 1.01))
    return float(_PROBES[max(1, int(small[0]))]) if small.size else MAX_LOSS


def _table(
    forward: Profile, backward: Profile, step: float, points: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return both profiles at log orders from -points to points steps."""
    x = np.arange(points + 1) * step
    first, second = (np.minimum.accumulate(profile(x)) for profile in (forward, backward))

    def whole(right: np.ndarray, mirrored: np.ndarray) -> np.ndarray:
        # H_(1/a)(P || Q) = 1 - 1/a + H_a(Q || P) / a
        left = -np.expm1(-x[1:]) + np.exp(-x[1:]) * mirrored[1:]
        return np.concatenate([left[::-1], right])

    return whole(first, second), whole(second, first)


def _joined(left: np.ndarray, right: np.ndarray, step: float) -> np.ndarray:
    """Return min over b c = a of left(b) + b right(c), both tables centred at order 1."""
    half, other = (left.size - 1) // 2, (right.size - 1) // 2
    with np.errstate(over="ignore"):
        orders = np.exp(np.arange(-half, half + 1) * step)
    joined = np.full(left.size + right.size - 1, np.inf)
    # from an infinite order on nothing is gained
    for place in range(int(np.isfinite(orders).sum())):
        candidates = left[place] + orders[place] * right
        window = joined[place : place + right.size]
        np.minimum(window, candidates, out=window)
    assert joined.size == 2 * (half + other) + 1
    return np.minimum(joined * (1 + _ROUNDING), 1.0)


def _chords(table: np.ndarray, step: float) -> Profile:
    """Return the profile at orders from 1 on by chords in a between those of a table, above the
    convex truth; beyond the last one it falls."""
    values = np.minimum.accumulate(table[(table.size - 1) // 2 :])

    def profile(log_order: np.ndarray) -> np.ndarray:
        x = np.asarray(log_order, dtype=float)
        cell = np.minimum((x / step).astype(int), values.size - 2)
        inside = np.clip(x - cell * step, 0.0, step)
        share = np.expm1(inside) / np.expm1(step)
        chord = values[cell] + share * (values[cell + 1] - values[cell])
        return np.asarray(np.minimum(chord * (1 + _ROUNDING), 1.0))

    return profile
