"""Compare the speed of accounting for recycled releases with that of dp-accounting's connected dots
of the same profile.

Ours is two-sided; theirs is the upper side alone, at the step that library takes by itself and at
one ten times as wide.
"""

from __future__ import annotations

import peers
from board import Board

from dpsub.recycling import GaussianKernel, LaplaceKernel, Recycled, RecycledProfile
from dpsub.recycling.choice import best_recycler
from dpsub.recycling.composition import account
from dpsub.recycling.kernels import Family

RELEASES = 1000
CASES = (
    (
        "Gaussian scale 4.09, D = bound = 1",
        Recycled.within(GaussianKernel(4.08642), 0.208565, 1.0, 1.0),
        45.0,
        16.0,
    ),
    (
        "Gaussian scale 30.9, D = 1, bound 3",
        Recycled.within(GaussianKernel(30.9), 0.0226, 3.0, 1.0),
        4.5,
        1.0,
    ),
    (
        "Laplace scale 10, D = 1, bound 3",
        Recycled.within(LaplaceKernel(10.0), 0.05, 3.0, 1.0),
        17.6,
        0.3,
    ),
)
"""A name, the recycler, an epsilon, and the largest log order given to dp-accounting."""


def recycling(board: Board) -> None:
    """Time compositions, and the search for the best recycler."""
    compositions(board)
    families: tuple[Family, ...] = (GaussianKernel, LaplaceKernel)
    for family in families:
        seconds, _ = board.timed(lambda f=family: best_recycler(f, 1.0, 1e-5, 1.0, 1.0), 2)
        board.verdict(f"best recycled {family.name} noise", f"{seconds:.2f} s", seconds, 1.0)


def compositions(board: Board) -> None:
    """Time delta of a thousand releases, both ends within one per cent."""
    for what, law, epsilon, last in CASES:
        seconds, found = board.timed(
            lambda law=law, e=epsilon: account(law, RELEASES, epsilon=e, width=1e-2), 5
        )
        board.width(
            f"recycled {what}, T = {RELEASES}, delta",
            found.lower,
            found.upper,
            at_most=1e-2,
            relative=True,
        )
        for step, bound in ((peers.STEP, 1.0), (10 * peers.STEP, 3.0)):
            theirs, high = board.timed(
                lambda law=law, s=step, e=epsilon, end=last: dots(law, s, e, end), 3
            )
            peer = f"dp-accounting's dots at {step:g}, {high:.4e}"
            board.line(f"recycled {what}", seconds, peer, theirs, at_most=bound)


def dots(law: Recycled, step: float, epsilon: float, last: float) -> float:
    """Return dp-accounting's upper bound from our exact profile."""
    profile = RecycledProfile(law)
    found = peers.self_dual_upper(lambda order: profile.bounds(order)[1], step, last)
    return float(found.self_compose(RELEASES).get_delta_for_epsilon(epsilon))
