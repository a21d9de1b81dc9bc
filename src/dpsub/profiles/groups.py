"""Profiles at a distance: what is known of data sets that differ in more than one record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpsub.profiles.base import Profile, log_group_factor, mirrored


@dataclass(frozen=True)
class BlackBoxGroups(Profile):
    """The profile `base`, with the bound at distances above 1 that holds for every mechanism.

        delta_l(epsilon) <= min(1, (exp(epsilon) - 1) / (exp(epsilon / l) - 1) delta(epsilon / l)),  epsilon >= 0.

    An upper bound; the profile of noise at l times the ratio is never larger.

    References
    ----------
    balle, Section 3 (after Vadhan 2017, Lemma 2.2).
    """

    base: Profile

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        order, distance = np.broadcast_arrays(np.asarray(epsilon, dtype=float), np.asarray(occurrences, dtype=float))
        share = np.abs(order) / distance
        bound = log_group_factor(np.abs(order), distance) + self.base.log_delta(share)
        return mirrored(order, np.minimum(bound, 0.0))


@dataclass(frozen=True)
class ConstantGroups(Profile):
    """The profile `base` at every distance, as if a second copy of a record said no more than the first.

    True of membership. For other mechanisms it is no bound: it shows how much of one is due to groups.
    """

    base: Profile

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        order, _ = np.broadcast_arrays(np.asarray(epsilon, dtype=float), np.asarray(occurrences))
        return self.base.log_delta(order)


@dataclass(frozen=True)
class PairedSteps(Profile):
    """The profile under substitution of a mechanism whose profile `base` is given under adding and removing.

    A substitution is one removal and one addition, so that distance l here is distance 2 l there; an upper bound.
    """

    base: Profile

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        return self.base.group_log_delta(epsilon, 2 * np.asarray(occurrences))
