"""Clock time of the accountants that Table I compares: kept with the timings, never in compared files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Annotated, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub.papers.brdp.experiments.brdp_cells.methods import Budget
from dpsub.papers.brdp.experiments.brdp_table1 import BrdpTable1
from dpsub.papers.brdp.settings import Times
from dpsub.recycling import paper
from dpsub.recycling.composition import account
from dpsub.recycling.sampled import Count, algorithm4
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import (
    Listed,
)


class BrdpTimes(Experiment):
    """Median seconds over turns of choosing the parameters and of composing, by method and number of releases.

    Task "parameters": Algorithms 1 and 2, for sampled methods Algorithm 4 too; task "theorem3": epsilon by the paper's
    composition; task "exact": both ends of the exact epsilon.
    """

    name: ClassVar[str] = "brdp_times"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "method": "str", "task": "str", "n_compositions": "int64", "seconds": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated",)
    timed: ClassVar[bool] = True

    class Settings(BrdpTable1.Settings):
        turns: Annotated[int, Field(ge=1, le=10_000_000)] = Field(3, description="Repetitions of each measurement.")
        times: Listed[Times] = Field((10, 100, 1000), description="Numbers of releases T.")

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = []
        for method, task, times, work in self._tasks(settings):
            work()  # the first one warms up
            seconds = [_timed(work) for _ in range(int(settings.turns))]
            rows.append((0, method, task, times, float(np.median(seconds))))
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))

    def _tasks(self, settings: Settings) -> Iterator[tuple[str, str, int, Callable[[], object]]]:
        cell, delta = Budget.of(settings, delta=settings.query_delta), float(settings.deltas[0])
        query = Count.of_share(int(settings.n), float(settings.share))
        for method, law, rate in BrdpTable1().laws(settings, cell):
            kind = method.split("_")[1]
            if kind == "low":
                continue
            if kind == "smp":
                budget = (cell.epsilon, cell.delta, cell.bound, cell.sensitivity)
                yield method, "parameters", 1, partial(algorithm4, query, *budget)
            else:
                yield method, "parameters", 1, partial(cell.chosen, method)
            for times in settings.times:
                yield method, "theorem3", times, partial(paper.theorem3_epsilon, law, times, delta / rate)
                if rate == 1:
                    yield method, "exact", times, partial(account, law, times, delta=delta)


def _timed(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start
