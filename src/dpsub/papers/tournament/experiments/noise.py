"""The noise that every scheme needs over sizes, epochs and targets: proved multipliers, and those
that an attack refutes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar

import pandas as pd

from dpsub.papers.tournament.settings import (
    NoiseEntry,
    TournamentGrid,
    entry_of,
    expanded,
    law_of,
    needed,
)
from dpsub.reproduce.experiment import Cost, Experiment, Run
from dpsub.reproduce.settings import ExperimentSettings, Parts
from dpsub.reproduce.study.cells import Cell

SECONDS = {
    "poisson": 0.15,
    "truncated_poisson": 0.7,
    "wor": 0.2,
    "wr": 0.4,
    "must_ow": 5.0,
    "must_ww": 6.0,
    "three_stage": 1.0,
    "random_allocation": 0.5,
    "k_of_t": 1.2,
    "shuffle": 3.5,
    "cyclic_poisson": 0.1,
    "deterministic": 0.05,
}
"""Seconds of one target for each scheme, on average over a random part of the grid."""
SUBSTITUTED = {"random_allocation": 3.0, "k_of_t": 1.5, "shuffle": 0.6, "tight": 2.0}
"""Seconds of one target where a record is replaced, and by the tight bound."""
MEMORY = 500.0
HANDS = 24  # jobs of a run


# Calls of one process mostly ask for the same grid.
@lru_cache(maxsize=4)
def laws(grid: tuple[NoiseEntry, ...]) -> tuple[tuple[Cell, ...], ...]:
    """Return the cells of a grid, each once, gathered by their laws."""
    by_law: dict[Any, dict[Cell, None]] = {}
    for cell in expanded(grid):
        by_law.setdefault(law_of(cell), {})[cell] = None
    gathered = [tuple(cells) for cells in by_law.values()]
    # dealt out: the jobs of a run take laws in turn, and schemes that are slow stand together
    return tuple(cells for hand in range(HANDS) for cells in gathered[hand::HANDS])


def seconds(cell: Cell) -> float:
    """Return the seconds that the noise of a cell takes on one core."""
    kind = "tight" if cell.tight else cell.sampler
    return (
        # Under substitution these schemes have other proofs, and other times.
        SUBSTITUTED.get(kind, SECONDS.get(kind, 0.0))
        if cell.adjacency == "substitute"
        else SECONDS[kind]
    )


class TournamentNoise(Experiment):
    """Noise multipliers that are proved to meet a target; a record is one cell of the grid.

    The column `replicate` is the number of the cell's law: all cells that share it are computed
    together, and once.
    """

    name: ClassVar[str] = "tournament_noise"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "adjacency": "str",
        "sampler": "str",
        **dict.fromkeys(("n", "m", "epochs", "steps"), "int64"),
        **dict.fromkeys(("target_epsilon", "target_delta"), "float64"),
        "tight": "int64",
        **dict.fromkeys(
            ("noise_multiplier", "necessary", "epsilon_lower", "epsilon_upper"), "float64"
        ),
    }
    keys: ClassVar[tuple[str, ...]] = (
        "adjacency",
        "sampler",
        "n",
        "m",
        "epochs",
        "target_epsilon",
        "target_delta",
        "tight",
    )
    variants: ClassVar[tuple[str, ...]] = ("rigorous",)

    class Settings(ExperimentSettings, TournamentGrid):
        parts: Parts = HANDS

    def replicates(self, settings: Settings) -> int:
        """Return the number of laws."""
        return len(laws(settings.grid))

    def records_a_replicate(self, settings: Settings) -> int:
        """Return the number of cells of the one law that a cell of a sweep is."""
        return sum(1 for _ in expanded(settings.grid))

    def cells(self, settings: Settings) -> Iterator[Settings]:
        """Yield the settings of one law each."""
        for cells in laws(settings.grid):
            yield settings.model_copy(update={"grid": tuple(map(entry_of, cells))})

    def cost(self, settings: Settings) -> Cost:
        """Return the sum over laws and targets; the rates were measured on one core, over a random
        part of the grid."""
        # Cells of one law and target cost one calculation.
        cells = {(law_of(cell), cell.target_epsilon): cell for cell in expanded(settings.grid)}
        return Cost(sum(map(seconds, cells.values())), 0.0, MEMORY)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        by_law = laws(settings.grid)
        rows = []
        for number in run.replicates:
            # All cells of a law in one job, which computes their common noise once.
            for cell in by_law[number]:
                fields = {name: getattr(cell, name) for name in (*self.keys, "steps")}
                rows.append({"replicate": number, **fields, **needed(cell)._asdict()})
        return self.frame(rows)
