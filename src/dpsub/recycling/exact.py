"""The exact privacy profile of recycled noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.profiles.base import Profile, mirrored
from dpsub.recycling.divergence import Stick, ends
from dpsub.recycling.law import Recycled


@dataclass(frozen=True)
class RecycledProfile(Profile):
    """Exact profile of recycled noise: the larger one of both directions, at the full sensitivity.

    The full sensitivity is the worst shift: 1 - H_a is the integral over t of the length of the overlap of the level
    sets {f > t} and {a f(. - d) > t} of the released density f, which are intervals, nested in t, and overlap less the
    larger |d| is.  At q = 1 the profile does not fall to 0.

    Parameters
    ----------
    law : Recycled

    References
    ----------
    brdp, Section 4 (its Theorem 1 and Proposition 2 are another function, in `dpsub.recycling.paper`).
    """

    law: Recycled

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        order, distance = np.broadcast_arrays(np.asarray(epsilon, dtype=float), np.asarray(occurrences))
        log = np.empty(order.shape)
        for l in np.unique(distance).tolist():  # noqa: E741
            here = distance == l
            log[here] = np.max([found.log for found in self.sticks(np.abs(order[here]), l)], axis=0)
        return mirrored(order, np.minimum(log, 0.0))

    def sticks(self, epsilon: ArrayLike, occurrences: int = 1) -> list[Stick]:
        """The divergences upwards and, where the bounds are not symmetric, downwards; any real epsilon."""
        times = checks.integer("occurrences", occurrences, at_least=1)
        laws = [self.law] if self.law.symmetric else [self.law, self.law.mirrored]
        return [law.stick(epsilon, times) for law in laws]

    def bounds(self, epsilon: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Certified ends of delta(epsilon) at epsilon >= 0, of its shape: rounding and its propagation are charged."""
        order = checks.finite_array("epsilon", epsilon)
        return ends(self.sticks(order))
