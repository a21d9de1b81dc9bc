"""Cost in epsilon of the choice of the settings, for the placeholders `computed`."""

from __future__ import annotations

from functools import cache

import dpsub
from dpsub.papers.tournament.experiments.training import candidates
from dpsub.papers.tournament.settings import Tuning, cell_of, needed

N, M, EPOCHS, DELTA = 1_000, 20, 10, 1e-5
"""One training, of Poisson batches under zero_out."""
EFFORT = 1.0
"""Work that each answer may take."""


def runs() -> int:
    """Return the number of candidates of the default grid, the mean number of runs."""
    return len(candidates(Tuning()))


def _noise(target: float) -> float:
    """Return the noise multiplier that is proved to meet the target for one training."""
    cell = cell_of("zero_out", "poisson", N, M, EPOCHS, target, DELTA)
    return needed(cell).noise_multiplier


@cache
def _best(target: float, distribution: str) -> dpsub.Account:
    return dpsub.select(
        dpsub.Poisson(M / N),
        noise_multiplier=_noise(target),
        runs_mean=runs(),
        distribution=distribution,
        epochs=EPOCHS,
        delta=DELTA,
        adjacency="zero_out",
        effort=EFFORT,
        quick=False,
    )


def best_at_least(target: float, distribution: str) -> float:
    """Return the epsilon that an attack attains on the best of a random number of trainings."""
    return _best(target, distribution).lower


def best_at_most(target: float, distribution: str) -> float:
    """Return the proved epsilon of the best of a random number of trainings."""
    return _best(target, distribution).upper


def all_released(target: float) -> float:
    """Return the proved epsilon if all trainings of a fixed grid are released."""
    return dpsub.account(
        dpsub.Poisson(M / N),
        noise_multiplier=_noise(target),
        epochs=runs() * EPOCHS,
        delta=DELTA,
        adjacency="zero_out",
        effort=EFFORT,
        quick=False,
    ).upper
