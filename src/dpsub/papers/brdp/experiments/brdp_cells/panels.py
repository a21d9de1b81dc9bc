"""Answers of the six methods on disjoint subsets of one data set: boxes of drawn answers, curves of acceptance."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub.data import individuals
from dpsub.papers.brdp.experiments.brdp_cells.methods import COLUMNS, FAMILIES, STATED, Budget, row, sampled_row
from dpsub.papers.brdp.settings import PanelSettings, QueryAnswers
from dpsub.recycling import paper
from dpsub.recycling.choice import Choice
from dpsub.recycling.law import Recycled
from dpsub.recycling.sampled import KINDS, Count, Query, SampledChoice, algorithm4, inner_budget, total_acceptance
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import ExperimentSettings, NonNegative
from dpsub.streams import Streams

VIEWS = ("box", "curve")
WHISKERS = ("low_whisker", "low_box", "median", "high_box", "high_whisker")
METHODS = (*STATED, "gau_smp", "lap_smp")


class Panel:
    """One panel at one epsilon: its budget, its query on the subsets, and the releases of the six methods."""

    def __init__(self, settings: Answers.Settings, panel: PanelSettings, epsilon: float, subsets: np.ndarray) -> None:
        self.cell = Budget.of(panel, epsilon=epsilon, delta=settings.delta)
        self.kind = KINDS[panel.query]
        values = (subsets > settings.count_above).astype(float) if self.kind is Count else subsets
        self.values = values
        self.clip = 1.0 if self.kind is Count else panel.clip
        self.queries = [self.kind.of_values(part, self.clip) for part in values]
        self.spread = float(np.mean([query.spread for query in self.queries]))

    @cached_property
    def query(self) -> Query:
        """The query of a subset with the mean spread, by which the sampling rate is chosen."""
        return self.kind(self.queries[0].n, self.clip, self.spread)

    @cached_property
    def sampled(self) -> SampledChoice:
        """The Gaussian release on a sample: sensitivity unscaled, Equation 13 with q and 1 - q exchanged."""
        cell = self.cell
        return algorithm4(self.query, cell.epsilon, cell.delta, cell.bound, cell.sensitivity)

    def law(self, method: str) -> tuple[Recycled, Choice | None, float]:
        """Return a method's noise, how it was chosen if not with sampling, and its sampling rate."""
        kernel, kind = method.split("_")
        if kind != "smp":
            chosen = self.cell.chosen(method)
            return chosen.law, chosen, 1.0
        found = self.sampled
        if kernel == "gau":
            return found.law, None, found.sampling_rate
        epsilon, delta = inner_budget(self.cell.epsilon, self.cell.delta, found.sampling_rate)
        chosen = paper.algorithm2(FAMILIES[kernel], epsilon, delta, self.cell.bound, self.cell.sensitivity)
        return chosen.law, None, found.sampling_rate

    def described(self, method: str) -> tuple[Recycled, dict[str, Any]]:
        """Return a method's noise, and what a record says of it."""
        law, chosen, rate = self.law(method)
        if chosen is not None:
            return law, {**row(method, chosen), "sampling_rate": 1.0}
        found = sampled_row(self.true_query, self.cell, law, rate)
        error = self.query.stated_sampling_sd(rate)
        inner, delta = inner_budget(self.cell.epsilon, self.cell.delta, rate)
        return law, {
            **found, "method": method, "acceptance": total_acceptance(law, error, self.cell.bound),
            "epsilon_y": Choice(law, inner, delta, "paper").kernel_epsilon, "sd": float(np.hypot(law.sd, error)),
        }  # fmt: skip

    @cached_property
    def true_query(self) -> Query:
        """A query whose sensitivity at p = 1 is the panel's: what the release on a sample is held against."""
        return self.kind(self.query.n, self.cell.sensitivity / self.query.per_record, self.spread)

    def errors(self, law: Recycled, rate: float, repeats: int, rng: np.random.Generator) -> np.ndarray:
        """Return released less true answers, shape (subsets, repeats)."""
        drawn = np.empty((len(self.values), repeats))
        for i, (query, values) in enumerate(zip(self.queries, self.values, strict=True)):
            size = max(1, round(rate * query.n))
            drawn[i] = query.estimates(values, size, repeats, rng) - query.answer(values)
            drawn[i] += law.draw(repeats, rng)
        return drawn


class Answers(Experiment):
    """Six methods on subsets of one data set.

    A "box" record has the quantiles of released less true answers, pooled over subsets, and the share within the bound
    (`drawn`); a "curve" record has the acceptance alone. Without sampling neither depends on the data.
    """

    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "panel": "str", "view": "str", "query": "str", "stated_epsilon": "float64",
        "sensitivity": "float64",
        "bound": "float64", "epsilon": "float64", "delta": "float64", **COLUMNS, "sampling_rate": "float64",
        "drawn": "float64", **dict.fromkeys(WHISKERS, "float64"), "spread": "float64", "n_individuals": "int64",
        "n_subsets": "int64", "n_repeats": "int64", "box_mass_pct": "float64", "whisker_mass_pct": "float64",
        "n_records": "int64", "n_events": "int64", "n_attributes": "int64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated",)

    class Settings(ExperimentSettings, QueryAnswers):
        count_above: NonNegative = Field(0, description="Values above it are counted.")


    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        (path,) = run.data.values()
        people = individuals.load(path)
        size = int(settings.individuals) // int(settings.subsets)
        rng = run.streams.data({"size": size}, 0)
        subsets = individuals.disjoint_subsets(people.values, size, int(settings.subsets), rng)
        base = {
            "replicate": 0, "n_individuals": subsets.size, "n_subsets": len(subsets), "n_repeats": settings.repeats,
            "box_mass_pct": settings.box_mass_pct, "whisker_mass_pct": settings.whisker_mass_pct,
            "n_records": len(people.values), "n_events": people.events, "n_attributes": people.attributes,
        }  # fmt: skip
        rows = [{**base, **row} for panel in settings.panels for row in self._rows(settings, panel, subsets, run.streams)]
        return self.frame(pd.DataFrame(rows))

    def _rows(
        self, settings: Settings, panel: PanelSettings, subsets: np.ndarray, streams: Streams
    ) -> Iterator[dict[str, Any]]:
        box = panel.view == "box"
        for epsilon in [panel.epsilon] if box else panel.epsilons:
            shown = Panel(settings, panel, float(epsilon), subsets)
            for method in METHODS:
                law, found = shown.described(method)
                drawn, quantiles = -1.0, np.zeros(len(WHISKERS))
                if box:
                    rng = streams.noise({"panel": panel.panel, "method": method}, 0)  # fmt: skip
                    errors = shown.errors(law, found["sampling_rate"], int(settings.repeats), rng)
                    drawn = float((np.abs(errors) <= shown.cell.bound).mean())
                    quantiles = np.quantile(errors, _levels(settings))
                yield {
                    "panel": panel.panel, "view": panel.view, "query": panel.query, "spread": shown.spread,
                    "stated_epsilon": panel.epsilon, "drawn": drawn,
                    **shown.cell.fields, **found, **dict(zip(WHISKERS, quantiles, strict=True)),
                }  # fmt: skip


def _levels(settings: Answers.Settings) -> list[float]:
    box, whisker = (float(getattr(settings, name)) / 200 for name in ("box_mass_pct", "whisker_mass_pct"))
    return [0.5 - whisker, 0.5 - box, 0.5, 0.5 + box, 0.5 + whisker]
