"""Many releases: the paper's composition next to exact accounting, Table I and its clock times, when recycling pays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from dpsub.papers.brdp.experiments import BUDGET, Grid, schema
from dpsub.papers.brdp.releases import FAMILIES, STATED, Budget
from dpsub.papers.brdp.settings import Amount, Release, Table1, Times
from dpsub.recycling import Recycled, paper
from dpsub.recycling.choice import checked_budget
from dpsub.recycling.composition import account
from dpsub.recycling.sampled import Count, amplified
from dpsub.reproduce.experiment import Run
from dpsub.reproduce.settings import Closed, Delta, ExperimentSettings, Listed, Positive


class BrdpComposition(Grid):
    """Epsilon at delta after T releases, each calibrated for (epsilon, delta) alone (Figure 5).

    Variant stated: Theorem 3 for "br", for "dp" the same accountant without a recycler; `lower` and `upper` repeat the
    value. Rigorous: both ends of the exact value for the same releases, and for "best", the Gaussian recycler that
    spends all that exact accounting of one release allows.
    """

    name = "brdp_composition"
    columns = schema(f"kernel method n_compositions {BUDGET} scale rate composed lower upper exact_delta")
    variants = ("stated", "rigorous")
    axes = ("n_compositions",)
    keys = ("kernel", "method", "n_compositions")

    class Settings(ExperimentSettings, Release):
        conversion: Literal["balle2020", "mironov"] = Field(
            "balle2020", description="From Renyi divergences to epsilon and delta."
        )
        width: Amount = 0.005
        n_compositions: Listed[Times] = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        cell, stated = Budget.of(settings), run.variant == "stated"
        for kernel in FAMILIES:
            for kind in ("dp", "br", "best") if kernel == "gau" and not stated else ("dp", "br"):
                chosen = cell.chosen(f"{kernel}_{kind}")
                law = chosen.law
                for times in settings.n_compositions:
                    if stated:
                        value = paper.theorem3_epsilon(law, times, cell.delta, conversion=settings.conversion)
                        ends = (value, value)
                    else:
                        found = account(law, times, delta=cell.delta, width=settings.width)
                        ends = (found.lower, found.upper)
                    yield {
                        **cell.fields, "kernel": kernel, "method": kind, "n_compositions": times,
                        "scale": law.kernel.scale, "rate": law.rate, "composed": ends[1], "lower": ends[0],
                        "upper": ends[1], "exact_delta": chosen.true_delta,
                    }  # fmt: skip


def table1_laws(settings: Table1, cell: Budget) -> Iterator[tuple[str, Recycled, float]]:
    """Yield each method of Table I, its noise and its sampling rate."""
    for method in STATED:
        yield method, cell.chosen(method).law, 1.0
    found = cell.algorithm4(Count.of_share(settings.n, settings.share))
    rate = found.sampling_rate
    yield "gau_smp", found.law, rate
    yield "lap_smp", cell.inner(rate).chosen("lap_br").law, rate
    yield "lap_low", cell.algorithm1(cell.kernel("lap", settings.low_split)), 1.0


class BrdpTable1(Grid):
    """Epsilon after 1000 releases of six methods (Table I): a record a method, delta, and conversion.

    Stated: the paper's accountant, `lower` and `upper` repeat its value. Subsampled methods ("gau_smp", "lap_smp") are
    composed at the inner budget and amplified once, which is only valid if one sample is used for all queries.
    Rigorous: both ends of the exact value for the others. Method "lap_low" is Laplace noise with `low_split` of the
    budget for the kernel, where the printed number is met; its acceptance is below that of plain Laplace noise.
    """

    name = "brdp_table1"
    columns = schema(
        "method delta conversion n_compositions epsilon query_delta sensitivity bound sampling_rate scale rate "
        "acceptance composed lower upper"
    )
    variants = ("stated", "rigorous")
    axes = ("deltas",)
    keys = ("method", "delta", "conversion")

    class Settings(ExperimentSettings, Table1):
        pass

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        cell, times = Budget.of(settings, delta=settings.query_delta), settings.n_compositions
        for method, law, rate in table1_laws(settings, cell):
            for delta in settings.deltas:
                for conversion, ends in _composed(run.variant, law, rate, times, delta):
                    yield {
                        "method": method, "delta": delta, "conversion": conversion, "n_compositions": times,
                        "epsilon": cell.epsilon, "query_delta": cell.delta, "sensitivity": cell.sensitivity,
                        "bound": cell.bound, "sampling_rate": rate, "scale": law.kernel.scale, "rate": law.rate,
                        "acceptance": law.acceptance, "composed": ends[1], "lower": ends[0], "upper": ends[1],
                    }  # fmt: skip


def _composed(
    variant: str, law: Recycled, rate: float, times: int, delta: float
) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield (conversion, ends); a recycler on a sample has no exact answer for all samples together."""
    if variant == "stated":
        for conversion in paper.CONVERSIONS if law.kernel.name == "laplace" else ("closed form",):
            used = conversion if conversion in paper.CONVERSIONS else paper.CONVERSIONS[0]
            value = amplified(paper.theorem3_epsilon(law, times, delta / rate, conversion=used), delta, rate)[0]
            yield conversion, (value, value)
    elif math.isclose(rate, 1.0):
        found = account(law, times, delta=delta)
        yield "exact", (found.lower, found.upper)


class BrdpTimes(Grid):
    """Median seconds over turns of choosing the parameters and of composing, by method and number of releases.

    Task "parameters": Algorithms 1 and 2, for sampled methods Algorithm 4 too; task "theorem3": epsilon by the paper's
    composition; task "exact": both ends of the exact epsilon.
    """

    name = "brdp_times"
    columns = schema("method task n_compositions seconds")
    variants = ("stated",)
    keys = ("method", "task", "n_compositions")
    timed = True

    class Settings(BrdpTable1.Settings):
        turns: Annotated[int, Field(ge=1, le=10_000_000)] = Field(3, description="Repetitions of each measurement.")
        times: Listed[Times] = Field((10, 100, 1000), description="Numbers of releases T.")

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        for method, task, times, work in self._tasks(settings):
            work()  # the first one warms up
            seconds = float(np.median([_timed(work) for _ in range(settings.turns)]))
            yield {"method": method, "task": task, "n_compositions": times, "seconds": seconds}

    def _tasks(self, settings: Settings) -> Iterator[tuple[str, str, int, Callable[[], object]]]:
        cell, delta = Budget.of(settings, delta=settings.query_delta), settings.deltas[0]
        query = Count.of_share(settings.n, settings.share)
        for method, law, rate in table1_laws(settings, cell):
            if method == "lap_low":
                continue
            sampled = method.endswith("smp")
            yield method, "parameters", 1, partial(cell.algorithm4, query) if sampled else partial(cell.chosen, method)
            for times in settings.times:
                yield method, "theorem3", times, partial(paper.theorem3_epsilon, law, times, delta / rate)
                if rate == 1:
                    yield method, "exact", times, partial(account, law, times, delta=delta)


def _timed(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


class Frontier(Closed):
    """One budget, many numbers of releases."""

    epsilon: Amount
    bound: Amount
    n_compositions: Listed[Times]


class BrdpMap(Grid):
    """Acceptance of each release when all T together keep (epsilon, delta), by proved accounting.

    Methods: "gau_dp", "lap_dp" and "gau_best", "lap_best" (kernel and rate chosen for the composed budget), and for
    T = 1 "ceiling", the most that any symmetric unimodal noise accepts. Topic "map": the grid; topic "frontier": one
    epsilon and bound, more numbers of releases. The sensitivity is 1.
    """

    name = "brdp_map"
    columns = schema("topic epsilon delta bound n_compositions method acceptance rate scale")
    variants = ("rigorous",)
    keys = ("topic", "epsilon", "bound", "n_compositions", "method")

    class Settings(ExperimentSettings):
        delta: Delta = 1e-5
        epsilons: Listed[Positive] = Field((0.1, 0.5, 1, 2, 4), description="Epsilons of the grid, in nats.")
        bounds: Listed[Positive] = Field((0.2, 0.5, 1, 2), description="Bounds over the sensitivity.")
        n_compositions: Listed[Times] = (1, 10)
        frontier: Frontier = Field(
            Frontier(epsilon=1, bound=1, n_compositions=(1, 3, 10, 30, 100, 300, 1000)),
            description="One budget, many numbers of releases.",
        )

        def check(self) -> None:
            for epsilon in (*self.epsilons, self.frontier.epsilon):
                checked_budget(epsilon, self.delta)

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        line = settings.frontier
        places = [("map", epsilon, bound, times) for times in settings.n_compositions
                  for epsilon in settings.epsilons for bound in settings.bounds]  # fmt: skip
        for topic, epsilon, bound, times in (
            *places, *(("frontier", line.epsilon, line.bound, times) for times in line.n_compositions)
        ):  # fmt: skip
            cell = Budget(1.0, float(bound), float(epsilon), settings.delta)
            base = {"topic": topic, "epsilon": cell.epsilon, "delta": cell.delta, "bound": cell.bound,
                    "n_compositions": times}  # fmt: skip
            for method in ("gau_dp", "gau_best", "lap_dp", "lap_best"):
                law = cell.chosen(method, times).law
                yield {**base, "method": method, "acceptance": law.acceptance, "rate": law.rate,
                       "scale": law.kernel.scale}  # fmt: skip
            if times == 1:
                yield {**base, "method": "ceiling", "acceptance": cell.ceiling(), "rate": -1.0, "scale": -1.0}
