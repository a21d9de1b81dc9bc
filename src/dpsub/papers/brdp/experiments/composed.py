"""Many releases: the paper's composition next to exact accounting, Table I and its clock times, and
the numbers of releases at which recycling pays."""

from __future__ import annotations

import itertools
import timeit
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from dpsub.papers.brdp.queries import Count, amplified
from dpsub.papers.brdp.releases import STATED, Budget
from dpsub.papers.brdp.settings import BUDGET, Amount, Table1, Times, schema
from dpsub.recycling import Recycled, paper
from dpsub.recycling.composition import Account, account
from dpsub.reproduce.experiment import Grid, Run
from dpsub.reproduce.settings import Closed, Delta, ExperimentSettings, Listed

Method = tuple[str, Recycled, float]
"""A method of Table I, its noise and its sampling rate."""


def composed(answer: Account | float) -> dict[str, float]:
    """Return the fields of a record about a composed epsilon: both bounds of the exact value, or
    the value of a formula."""
    lower, upper = (answer, answer) if isinstance(answer, float) else (answer.lower, answer.upper)
    return {"composed": upper, "lower": lower, "upper": upper}


class BrdpComposition(Grid):
    """Epsilon at delta after T releases, each calibrated for (epsilon, delta) alone (Figure 5).

    Variant stated: Theorem 3 for "br", for "dp" the same accountant without a recycler; `lower` and
    `upper` repeat the value. Rigorous: both bounds of the exact value for the same releases, and
    for "best", the Gaussian recycler that spends all that exact accounting of one release allows.
    """

    name = "brdp_composition"
    stage = "account"
    columns = schema(
        f"kernel method n_compositions {BUDGET} scale rate composed lower upper exact_delta"
    )
    variants = ("stated", "rigorous")
    axes = ("n_compositions",)
    keys = ("kernel", "method", "n_compositions")

    class Settings(ExperimentSettings, Budget):
        conversion: Literal["balle2020", "mironov"] = Field(
            "balle2020", description="From Renyi divergences to epsilon and delta."
        )
        width: Amount = 0.005
        n_compositions: Listed[Times] = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        stated, delta = run.variant == "stated", settings.delta
        # Recycled Laplace noise gains nothing in one release (BR6): no best one to compose.
        for method in ("gau_dp", "gau_br", *([] if stated else ["gau_best"]), "lap_dp", "lap_br"):
            kernel, kind = method.split("_")
            chosen = settings.chosen(method)
            law = chosen.law
            for times in settings.n_compositions:
                if stated:
                    # Theorem 3 has no error of its own that could be bracketed.
                    bounds = composed(
                        paper.theorem3_epsilon(law, times, delta, conversion=settings.conversion)
                    )
                else:
                    bounds = composed(account(law, times, delta=delta, width=settings.width))
                yield {
                    **settings.fields,
                    "kernel": kernel,
                    "method": kind,
                    "n_compositions": times,
                    "scale": law.kernel.scale,
                    "rate": law.rate,
                    **bounds,
                    "exact_delta": chosen.true_delta,
                }


def methods(settings: Table1, cell: Budget) -> Iterator[Method]:
    """Yield the methods of Table I, and Laplace noise with `low_split` of the budget for the
    kernel."""
    for method in STATED:
        yield method, cell.chosen(method).law, 1.0
    sampled = cell.algorithm4(Count.of_share(settings.n, settings.share))
    rate = sampled.sampling_rate
    yield "gau_smp", sampled.law, rate
    # The Laplace kernel takes the sampling rate of the Gaussian one, as in the paper.
    yield "lap_smp", cell.inner(rate).chosen("lap_br").law, rate
    yield "lap_low", cell.recycled(cell.calibrated("lap", settings.low_split)), 1.0


class BrdpTable1(Grid):
    """Epsilon after 1000 releases of six methods (Table I): a record for each method, delta, and
    conversion.

    Stated: the paper's accountant, `lower` and `upper` repeat its value. Subsampled methods
    ("gau_smp", "lap_smp") are composed at the inner budget and amplified once, which is only valid
    if one sample is used for all queries. Rigorous: both bounds of the exact value for the others.
    Method "lap_low" is Laplace noise with `low_split` of the budget for the kernel, where the
    printed number is met; its acceptance is below that of plain Laplace noise.
    """

    name = "brdp_table1"
    stage = "account"
    columns = schema(
        "method delta conversion n_compositions epsilon query_delta sensitivity bound "
        "sampling_rate scale rate acceptance composed lower upper"
    )
    variants = ("stated", "rigorous")
    axes = ("deltas",)
    keys = ("method", "delta", "conversion")

    class Settings(ExperimentSettings, Table1):
        pass

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        # Each query is calibrated at its own delta; the composed epsilon is asked at Table I's
        # deltas.
        cell, times = Budget.of(settings, delta=settings.query_delta), settings.n_compositions
        for method, law, rate in methods(settings, cell):
            base = {
                **cell.fields,
                "query_delta": cell.delta,
                "method": method,
                "n_compositions": times,
                "sampling_rate": rate,
                "scale": law.kernel.scale,
                "rate": law.rate,
                "acceptance": law.acceptance,
            }
            for delta in settings.deltas:
                if run.variant == "stated":
                    # Gaussian profiles compose in closed form; Laplace ones go through Renyi
                    # divergences.
                    for conversion in (
                        paper.CONVERSIONS if law.kernel.name == "laplace" else ("closed form",)
                    ):
                        used = {"conversion": conversion} if conversion in paper.CONVERSIONS else {}
                        # Amplified once for all queries: valid only if one sample serves them all.
                        inner = paper.theorem3_epsilon(law, times, delta / rate, **used)
                        bounds = composed(amplified(inner, delta, rate)[0])
                        yield {**base, "delta": delta, "conversion": conversion, **bounds}
                # a recycler on a sample has no exact answer for all samples together
                elif rate == 1:
                    yield {
                        **base,
                        "delta": delta,
                        "conversion": "exact",
                        **composed(account(law, times, delta=delta)),
                    }


class BrdpTimes(Grid):
    """Median seconds over turns of choosing the parameters and of composing, by method and number
    of releases.

    Task "parameters": Algorithms 1 and 2, for sampled methods Algorithm 4 too; task "theorem3":
    epsilon by the paper's composition; task "exact": both bounds of the exact epsilon.
    """

    name = "brdp_times"
    stage = "account"
    columns = schema("method task n_compositions seconds")
    variants = ("stated",)
    keys = ("method", "task", "n_compositions")
    timed = True

    class Settings(BrdpTable1.Settings):
        turns: Annotated[int, Field(ge=1, le=10_000_000)] = Field(
            3, description="Repetitions of each measurement."
        )
        times: Listed[Times] = Field((10, 100, 1000), description="Numbers of releases T.")

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        # One delta is enough: it changes no amount of work.
        cell, delta = Budget.of(settings, delta=settings.query_delta), settings.deltas[0]
        query = Count.of_share(settings.n, settings.share)
        tasks: list[tuple[str, str, int, Callable[[], object]]] = []
        for method, law, rate in methods(settings, cell):
            # It is ours, and no method whose time the paper reports.
            if method == "lap_low":
                continue
            sampled = method.endswith("smp")
            chosen = partial(cell.algorithm4, query) if sampled else partial(cell.chosen, method)
            tasks.append((method, "parameters", 1, chosen))
            for times in settings.times:
                tasks.append(
                    (
                        method,
                        "theorem3",
                        times,
                        # Composed within the sample, where delta / p may be spent (Theorem 4).
                        partial(paper.theorem3_epsilon, law, times, delta / rate),
                    )
                )
                if rate == 1:
                    tasks.append(
                        (method, "exact", times, partial(account, law, times, delta=delta))
                    )
        for method, task, times, work in tasks:
            # Caches and imports are paid here, outside the clock.
            work()  # the first one warms up
            # The median is not moved by one interruption of the machine.
            seconds = float(np.median(timeit.repeat(work, number=1, repeat=settings.turns)))
            yield {"method": method, "task": task, "n_compositions": times, "seconds": seconds}


class FrontierSettings(Closed):
    """One budget, many numbers of releases."""

    epsilon: Amount
    bound: Amount
    n_compositions: Listed[Times]


class BrdpMap(Grid):
    """Acceptance of each release when all T together keep (epsilon, delta), by proved accounting.

    Methods: "gau_dp", "lap_dp" and "gau_best", "lap_best" (kernel and rate chosen for the composed
    budget), and for T = 1 "ceiling", the most that any symmetric unimodal noise accepts. Topic
    "map": the grid; topic "frontier": one epsilon and bound, more numbers of releases. The
    sensitivity is 1.
    """

    name = "brdp_map"
    stage = "account"
    columns = schema("topic epsilon delta bound n_compositions method acceptance rate scale")
    variants = ("rigorous",)
    keys = ("topic", "epsilon", "bound", "n_compositions", "method")

    class Settings(ExperimentSettings):
        delta: Delta = 1e-5
        epsilons: Listed[Amount] = Field(
            (0.1, 0.5, 1, 2, 4), description="Epsilons of the grid, in nats."
        )
        bounds: Listed[Amount] = Field((0.2, 0.5, 1, 2), description="Bounds over the sensitivity.")
        n_compositions: Listed[Times] = (1, 10)
        frontier: FrontierSettings = Field(
            FrontierSettings(epsilon=1, bound=1, n_compositions=(1, 3, 10, 30, 100, 300, 1000)),
            description="One budget, many numbers of releases.",
        )

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        line = settings.frontier
        grid = itertools.product(
            ["map"], settings.n_compositions, settings.epsilons, settings.bounds
        )
        # The frontier takes more numbers of releases than the grid can afford.
        along = itertools.product(["frontier"], line.n_compositions, [line.epsilon], [line.bound])
        for topic, times, epsilon, bound in (*grid, *along):
            # Only bound over sensitivity matters: D = 1 without loss of generality.
            cell = Budget(bound=bound, epsilon=epsilon, delta=settings.delta)
            base = {
                "topic": topic,
                "epsilon": epsilon,
                "delta": cell.delta,
                "bound": bound,
                "n_compositions": times,
            }
            for method in ("gau_dp", "gau_best", "lap_dp", "lap_best"):
                law = cell.chosen(method, times).law
                yield {
                    **base,
                    "method": method,
                    "acceptance": law.acceptance,
                    "rate": law.rate,
                    "scale": law.kernel.scale,
                }
            # The linear programme bounds one release; none is known here for compositions.
            if times == 1:
                yield {
                    **base,
                    "method": "ceiling",
                    "acceptance": cell.ceiling(),
                    # Real columns of a record hold no blanks: -1 stands for what a bound over all
                    # noise lacks.
                    "rate": -1.0,
                    "scale": -1.0,
                }
