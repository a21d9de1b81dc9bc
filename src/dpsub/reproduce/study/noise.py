"""The noise that a cell needs: proved, refuted by an attack, or from the pair of the papers."""

from __future__ import annotations

from functools import lru_cache

from dpsub.accounting.engine.profiles import ChainProfile
from dpsub.accounting.engine.roots import safe_root
from dpsub.accounting.questions import fast_search, search
from dpsub.accounting.questions.account import Account
from dpsub.accounting.questions.fast_search import Needed
from dpsub.accounting.questions.question import account
from dpsub.accounting.release import Release
from dpsub.errors import UnsupportedError
from dpsub.reproduce.study.cells import Cell
from dpsub.sampling import Multistage
from dpsub.sampling.base import StagedSampler

__all__ = ["ACCURACY", "Needed", "bounds", "calibrated", "check_reach", "needed", "papers_noise"]

ACCURACY = 5e-3
"""Relative distance of a noise multiplier from a smaller one that is not proved."""


def needed(cell: Cell) -> Needed:
    """Return the noise of a cell by the fast bounds, which recommendations use.

    Raises
    ------
    UnsupportedError
        If no bound covers the cell, or no noise multiplier up to 1e4 meets the target.
    """
    release = Release(cell.plan, cell.n, 1.0, cell.steps)
    goal = search.Goal(cell.target_epsilon, cell.target_delta, cell.adjacency, ACCURACY)
    return fast_search.needed(release, goal)


@lru_cache(maxsize=4096)
def calibrated(cell: Cell, effort: float | None = None) -> Needed:
    """Return the noise of a cell by the full bounds, the tight one where the cell says so.

    Parameters
    ----------
    effort : float, optional
        Work that the tight bound may take; by default as much as `ACCURACY` takes.

    Raises
    ------
    UnsupportedError
        As for `needed`.
    """
    calibration = search.calibrate(
        cell.plan,
        cell.n,
        epsilon=cell.target_epsilon,
        delta=cell.target_delta,
        steps=cell.steps,
        adjacency=cell.adjacency,
        accuracy=ACCURACY,
        quick=not cell.tight,
        effort=effort,
    )
    # a sampler without a known attack has no noise that is refuted
    necessary = calibration.refuted or 0.0
    known = calibration.account
    return Needed(calibration.noise_multiplier, necessary, known.lower, known.upper)


def bounds(
    cell: Cell,
    noise_multiplier: float,
    adjacency: str | None,
    *,
    width: float = 0.01,
    variant: str = "rigorous",
) -> Account:
    """Return bounds on epsilon at the target delta with this noise.

    Parameters
    ----------
    width : float
        Relative to the target.
    """
    return account(
        cell.plan,
        cell.n,
        noise_multiplier=noise_multiplier,
        steps=cell.steps,
        delta=cell.target_delta,
        adjacency=adjacency,
        variant=variant,
        width=width * cell.target_epsilon,
        effort=None,
        quick=True,
    )


def papers_noise(cell: Cell) -> float:
    """Return the smallest noise multiplier at which the papers' pair meets the target.

    It is not a guarantee: the pair is not that of neighbouring data sets.

    References
    ----------
    MUST, Section 3.4 and Sections S5 and S6 of its supplement.
    """

    def epsilon(noise_multiplier: float) -> float:
        return bounds(cell, noise_multiplier, None, variant="paper", width=ACCURACY).upper

    # The search begins at amplified Gaussian noise, to within some factor
    rough = 4 * cell.m / cell.n * cell.steps**0.5 / cell.target_epsilon
    root = safe_root(
        epsilon, cell.target_epsilon, search.NOISE, start=max(1.0, rough), accuracy=ACCURACY
    )
    return root.safe


def check_reach(cell: Cell) -> None:
    """Raise UnsupportedError if no bound covers the cell in the time of a calibration, or no noise
    multiplier up to 1e4 meets the target.

    The bound is computed only where a rough rule puts the noise needed within a factor of 100 of
    that limit.
    """
    if ":" in cell.sampler and isinstance(cell.plan, StagedSampler):
        _check_chain(cell.sampler, cell.n)
    # a bound for each cell of a large grid would take hours
    rough = 2 * cell.m / cell.n * (2 * cell.steps) ** 0.5 / cell.target_epsilon
    if rough < search.MOST_NOISE / 100:
        return
    if bounds(cell, search.MOST_NOISE, cell.adjacency).upper <= cell.target_epsilon:
        return
    raise UnsupportedError(
        f"the target epsilon = {cell.target_epsilon:g} at delta = {cell.target_delta:g} must be "
        f"met by a noise multiplier of at most {search.MOST_NOISE:g}, got {cell.sampler} with m = "
        f"{cell.m} and {cell.steps} steps on {cell.dataset}, which needs more; raise the target or "
        "take fewer steps"
    )


@lru_cache(maxsize=4096)
def _check_chain(stages: str, n: int) -> None:
    """Raise UnsupportedError if no bound covers the chain, or only one that takes too long."""
    release = Release(Multistage.of_text(stages), n, search.MOST_NOISE, 1)
    ChainProfile(release.chain(), search.MOST_NOISE)
