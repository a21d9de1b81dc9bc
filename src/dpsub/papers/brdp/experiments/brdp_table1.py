"""Epsilon after 1000 releases of six methods (Jiang et al., Table I)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import pandas as pd

from dpsub.papers.brdp.experiments.brdp_cells.methods import FAMILIES, STATED, Budget
from dpsub.papers.brdp.settings import Table1
from dpsub.recycling import Recycled, paper
from dpsub.recycling.composition import account
from dpsub.recycling.sampled import Count, algorithm4, amplified, inner_budget
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import ExperimentSettings

LOW_SPLIT = "lap_low"  # a Laplace kernel that spends little of the budget: where the printed number is met


class BrdpTable1(Experiment):
    """One record a method, delta, and conversion of Renyi divergences.

    Stated: the paper's accountant, `lower` and `upper` repeat its value. Subsampled methods ("gau_smp", "lap_smp") are
    composed at the inner budget and amplified once, which is only valid if one sample is used for all queries.
    Rigorous: both ends of the exact value for the others. Method "lap_low" is Laplace noise with
    `low_split` of the budget for the kernel, whose acceptance is below that of plain Laplace noise.
    """

    name: ClassVar[str] = "brdp_table1"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "method": "str", "delta": "float64", "conversion": "str", "n_compositions": "int64",
        "epsilon": "float64", "query_delta": "float64", "sensitivity": "float64", "bound": "float64",
        "sampling_rate": "float64", "scale": "float64", "rate": "float64", "acceptance": "float64",
        "composed": "float64", "lower": "float64", "upper": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated", "rigorous")

    class Settings(ExperimentSettings, Table1):
        pass

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        cell, times = Budget.of(settings, delta=settings.query_delta), int(settings.n_compositions)
        rows = []
        for method, law, rate in self.laws(settings, cell):
            for delta in (float(value) for value in settings.deltas):
                for conversion, ends in self._answers(run.variant, law, rate, times, delta):
                    rows.append({
                        "replicate": 0, "method": method, "delta": delta, "conversion": conversion,
                        "n_compositions": times, "epsilon": cell.epsilon, "query_delta": cell.delta,
                        "sensitivity": cell.sensitivity, "bound": cell.bound, "sampling_rate": rate,
                        "scale": law.kernel.scale, "rate": law.rate, "acceptance": law.acceptance,
                        "composed": ends[1], "lower": ends[0], "upper": ends[1],
                    })  # fmt: skip
        return self.frame(pd.DataFrame(rows))

    def laws(self, settings: Settings, cell: Budget) -> Iterator[tuple[str, Recycled, float]]:
        """Yield each method's noise and sampling rate."""
        for method in STATED:
            yield method, cell.chosen(method).law, 1.0
        query = Count.of_share(int(settings.n), float(settings.share))
        found = algorithm4(query, cell.epsilon, cell.delta, cell.bound, cell.sensitivity)
        rate = found.sampling_rate
        inner = Budget(cell.sensitivity, cell.bound, *inner_budget(cell.epsilon, cell.delta, rate))
        yield "gau_smp", found.law, rate
        yield "lap_smp", inner.chosen("lap_br").law, rate
        kernel = FAMILIES["lap"].calibrated(settings.low_split, cell.delta, cell.sensitivity)
        kept = paper.algorithm1(kernel, cell.epsilon, cell.delta, -cell.bound, cell.bound, cell.sensitivity)
        yield LOW_SPLIT, Recycled.within(kernel, kept, cell.bound, cell.sensitivity), 1.0

    def _answers(
        self, variant: str, law: Recycled, rate: float, times: int, delta: float
    ) -> Iterator[tuple[str, tuple[float, float]]]:
        """(conversion, ends); a recycler on a sample has no exact answer for all samples together."""
        if variant == "stated":
            conversions = paper.CONVERSIONS if law.kernel.name == "laplace" else ("closed form",)
            for conversion in conversions:
                used = conversion if conversion in paper.CONVERSIONS else paper.CONVERSIONS[0]
                inner = paper.theorem3_epsilon(law, times, delta / rate, conversion=used)
                value = amplified(inner, delta, rate)[0]
                yield conversion, (value, value)
        elif math.isclose(rate, 1.0):
            found = account(law, times, delta=delta)
            yield "exact", (found.lower, found.upper)
