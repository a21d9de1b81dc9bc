"""What statements of the paper claim in single cases, next to what is true."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub.papers.brdp.experiments.brdp_cells.methods import FAMILIES, Budget
from dpsub.papers.brdp.settings import Amount, RecyclingRate, Times
from dpsub.recycling import Recycled, RecycledProfile, paper
from dpsub.recycling.sampled import Count, Total, inner_budget, printed_acceptance, total_acceptance
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import (
    Closed,
    Delta,
    ExperimentSettings,
    Listed,
    Several,
    Share,
)
from dpsub.streams import Streams

Row = tuple[str, str, float, float]
NEGLIGIBLE = 1e-20  # of a binomial weight in Theorem 3


class Sampled(Closed):
    """A sampled count."""

    n: Annotated[int, Field(ge=10, le=10_000_000)] = Field(description="Records.")
    sampling_rate: Share = Field(description="Share of the records drawn.")
    share: Share = Field(description="Share of records that are counted.")
    bound: Amount
    epsilon: Amount
    delta: Delta


class Theorem2(Closed):
    """A kernel and rates for Theorem 2."""

    kernel: Literal["gau", "lap"] = Field(description="Gaussian or Laplace kernel.")
    epsilon_y: Amount
    delta: Delta
    bound: Amount
    rates: Several[RecyclingRate]


class UShape(Closed):
    """A kernel that spends more than epsilon."""

    epsilon_y: Amount
    epsilon: Amount
    delta: Delta
    bound: Amount
    rates: Several[RecyclingRate]


class Composition(Closed):
    """Budget of one release of Theorem 3."""

    sensitivity: Amount
    bound: Amount
    epsilon: Amount
    delta: Delta


class Guarantee(Closed):
    """One budget."""

    kernel: Literal["gau", "lap"] = Field(description="Gaussian or Laplace kernel.")
    sensitivity: Amount
    bound: Amount
    epsilon: Amount
    delta: Delta
    scale: Amount | None = None


class BrdpChecks(Experiment):
    """One record a statement and case: `claimed`, and `true` by the exact law, another sum, or draws.

    "T1 mean", "T1 weight": E exp(-loss) and the weight of the shift; "P3": delta of the paper's parameters; "T2":
    delta at epsilon_y - log(1 - q); "degenerate": delta as epsilon_y goes to 0; "q": exact delta of one kernel by rate
    (`claimed` is that at rate 0); "(10)": acceptance from the printed objective; "A3": delta of the printed loop;
    "R5": terms of Theorem 3 and those that count; "P6": standard deviation of sampled sums; "P7", "P7 swapped":
    acceptance on a sample; "P7 convolved": the true one against draws.
    """

    name: ClassVar[str] = "brdp_checks"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "statement": "str", "case": "str", "claimed": "float64", "true": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated",)

    class Settings(ExperimentSettings):
        draws: Annotated[int, Field(ge=100, le=10_000_000)] = Field(400000, description="Draws of sampled releases.")
        guarantees: Several[Guarantee] = Field((Guarantee(kernel="gau", sensitivity=1, bound=1, epsilon=2, delta=1e-5), Guarantee(kernel="gau", sensitivity=1, bound=1, epsilon=1, delta=1e-5), Guarantee(kernel="gau", sensitivity=1, bound=1, epsilon=3, delta=1e-5), Guarantee(kernel="gau", sensitivity=1, bound=30, epsilon=0.5, delta=1e-5, scale=10), Guarantee(kernel="gau", sensitivity=10000, bound=1, epsilon=1, delta=1e-5), Guarantee(kernel="lap", sensitivity=1, bound=1, epsilon=1, delta=1e-5), Guarantee(kernel="lap", sensitivity=5, bound=1, epsilon=4, delta=1e-5)), description="Budgets; with a scale Algorithm 1 for that kernel, else Algorithm 2.")
        composition: Composition = Field(Composition(sensitivity=1, bound=1, epsilon=1, delta=1e-5), description="Budget of one release of Theorem 3.")
        n_compositions: Listed[Times] = (1, 2, 10, 100, 1000)
        u_shape: UShape = Field(UShape(epsilon_y=1.05, epsilon=1, delta=1e-5, bound=1, rates=(0, 0.55, 0.7)), description="A kernel that spends more than epsilon.")
        theorem2: Theorem2 = Field(Theorem2(kernel="lap", epsilon_y=0.5, delta=0.1, bound=0.1, rates=(0.5, 0.9, 0.99)), description="A kernel and rates for Theorem 2.")
        sampled: Sampled = Field(Sampled(n=1000, sampling_rate=0.2, share=0.1, bound=3, epsilon=0.1, delta=1e-5), description="A sampled count.")

        def check(self) -> None:
            for case in self.guarantees:
                Budget.of(case)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = [*self._guarantees(settings), *self._formulas(settings), *self._samples(settings, run.streams)]
        return self.frame(pd.DataFrame(rows, columns=["statement", "case", "claimed", "true"]).assign(replicate=0))

    def _guarantees(self, settings: Settings) -> Iterator[Row]:
        for case in settings.guarantees:
            cell, family = Budget.of(case), FAMILIES[case.kernel]
            theta, span = cell.bound, cell.sensitivity
            name = f"{case.kernel}: D {span:g}, bound {theta:g}, epsilon {cell.epsilon:g}, delta {cell.delta:g}"
            if case.scale is None:
                law = cell.chosen(f"{case.kernel}_br").law
            else:
                kernel = family(case.scale)
                rate = paper.algorithm1(kernel, cell.epsilon, cell.delta, -theta, theta, span)
                law, name = Recycled.within(kernel, rate, theta, span), f"{name}, scale {case.scale:g}"
            yield "P3", name, cell.delta, _delta(law, cell.epsilon)
            weight = paper.crossing_mass(law.kernel, -theta, theta, span)
            if law.rate < 1:
                yield "T1 mean", name, 1 - weight * law.rate, 1.0
                yield "T1 weight", name, weight, law.normaliser * weight
                spent = float(law.kernel.profile(span).epsilon(cell.delta))
                yield "T2", name, cell.delta, _delta(law, spent - math.log1p(-law.rate))
            yield "(10)", name, 1 / paper.mean_trials(law, "printed"), law.acceptance
            smallest = 1e-15 * cell.epsilon
            kernel = family.calibrated(smallest, cell.delta, span)
            rate = paper.algorithm1(kernel, cell.epsilon, cell.delta, -theta, theta, span)
            yield "degenerate", name, cell.delta, _delta(Recycled.within(kernel, rate, theta, span), cell.epsilon)

    def _formulas(self, settings: Settings) -> Iterator[Row]:
        from scipy.stats import binom  # here, as its import takes longer than most jobs compute

        cell = Budget.of(settings.composition)
        law = cell.chosen("gau_br").law
        for times in settings.n_compositions:
            at = paper.theorem3_epsilon(law, times, cell.delta)
            printed, whole = (paper.theorem3_delta(law, times, first=first)(at) for first in (1, 0))
            yield "A3", f"T {times}", printed, whole
            weight = paper.crossing_mass(law.kernel, law.lower, law.upper, law.sensitivity)
            kept = binom.pmf(np.arange(times + 1), times, weight) > NEGLIGIBLE
            yield "R5", f"T {times}", times + 1, float(kept.sum())
        shape = settings.u_shape
        kernel = FAMILIES["gau"].calibrated(shape.epsilon_y, shape.delta, 1.0)
        laws = [Recycled.within(kernel, rate, shape.bound, 1.0) for rate in shape.rates]
        deltas = [_delta(law, shape.epsilon) for law in laws]
        for rate, found in zip(shape.rates, deltas, strict=True):
            yield "q", f"rate {rate:g}", deltas[0], found

        second = settings.theorem2
        spent, target = float(second.epsilon_y), float(second.delta)
        kernel = FAMILIES[second.kernel].calibrated(spent, target, 1.0)
        for rate in second.rates:
            found = _delta(Recycled.within(kernel, rate, second.bound, 1.0), spent - math.log1p(-rate))
            yield "T2", f"{second.kernel}: epsilon_y {spent:g}, delta {target:g}, rate {rate:g}", target, found

    def _samples(self, settings: Settings, streams: Streams) -> Iterator[Row]:
        chosen, draws = settings.sampled, int(settings.draws)
        n, p, theta = int(chosen.n), float(chosen.sampling_rate), float(chosen.bound)
        rng = streams.sample(dict(chosen), 0)
        values = rng.exponential(size=n)
        total = Total.of_values(values, 20.0)
        drawn = total.estimates(values, round(p * n), draws // 10, rng)
        yield "P6", f"sum, n {n}, p {p:g}", total.stated_sampling_sd(p), float(drawn.std())
        cell = Budget.of(chosen, sensitivity=1.0)
        law = Budget(1.0, theta, *inner_budget(cell.epsilon, cell.delta, p)).chosen("gau_br").law
        count = Count.of_share(n, float(chosen.share))
        error = count.sampling_sd(p)
        members = rng.hypergeometric(round(chosen.share * n), n - round(chosen.share * n), round(p * n), draws)
        errors = members / p - round(chosen.share * n) + law.release_by_loop(np.zeros(draws), rng).released
        seen = float((np.abs(errors) <= theta).mean())
        name = f"count, n {n}, p {p:g}, bound {theta:g}"
        scale, rate = law.kernel.scale, law.rate
        convolved = total_acceptance(law, error, theta)
        for statement, swapped in (("P7", False), ("P7 swapped", True)):
            yield statement, name, float(printed_acceptance(scale, rate, error, theta, swapped=swapped)), convolved
        yield "P7 convolved", name, convolved, seen


def _delta(law: Recycled, epsilon: float) -> float:
    return float(RecycledProfile(law).bounds(epsilon)[1])
