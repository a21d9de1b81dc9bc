"""What statements of the paper claim in single cases, next to what is true."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsub import checks
from dpsub.papers.brdp.experiments.brdp_cells.methods import FAMILIES, Budget
from dpsub.recycling import Recycled, RecycledProfile, paper
from dpsub.recycling.sampled import Count, Total, inner_budget, printed_acceptance, total_acceptance
from dpsub.reproduce.experiment import Experiment
from dpsub.streams import stream

Row = tuple[str, str, float, float]
NEGLIGIBLE = 1e-20  # of a binomial weight in Theorem 3


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

    def check(self, settings: Mapping[str, Any]) -> None:
        for case in settings["guarantees"]:
            checks.one_of("kernel", case["kernel"], FAMILIES)
            Budget.of(case)
        checks.integer("draws", settings["draws"], at_least=100)
        for times in settings["n_compositions"]:
            checks.integer("n_compositions", times, at_least=1)

    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        rows = [*self._guarantees(settings), *self._formulas(settings), *self._samples(settings, root)]
        return self.frame(pd.DataFrame(rows, columns=["statement", "case", "claimed", "true"]).assign(replicate=0))

    def _guarantees(self, settings: Mapping[str, Any]) -> Iterator[Row]:
        for case in settings["guarantees"]:
            cell, family = Budget.of(case), FAMILIES[case["kernel"]]
            theta, span = cell.bound, cell.sensitivity
            name = f"{case['kernel']}: D {span:g}, bound {theta:g}, epsilon {cell.epsilon:g}, delta {cell.delta:g}"
            if case.get("scale") is None:
                law = cell.chosen(f"{case['kernel']}_br").law
            else:
                kernel = family(float(case["scale"]))
                rate = paper.algorithm1(kernel, cell.epsilon, cell.delta, -theta, theta, span)
                law, name = Recycled.within(kernel, rate, theta, span), f"{name}, scale {case['scale']:g}"
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

    def _formulas(self, settings: Mapping[str, Any]) -> Iterator[Row]:
        from scipy.stats import binom  # here, as its import takes longer than most jobs compute

        cell = Budget.of(settings["composition"])
        law = cell.chosen("gau_br").law
        for times in settings["n_compositions"]:
            at = paper.theorem3_epsilon(law, times, cell.delta)
            printed, whole = (paper.theorem3_delta(law, times, first=first)(at) for first in (1, 0))
            yield "A3", f"T {times}", printed, whole
            weight = paper.crossing_mass(law.kernel, law.lower, law.upper, law.sensitivity)
            kept = binom.pmf(np.arange(times + 1), times, weight) > NEGLIGIBLE
            yield "R5", f"T {times}", times + 1, float(kept.sum())
        shape = settings["u_shape"]
        kernel = FAMILIES["gau"].calibrated(shape["epsilon_y"], shape["delta"], 1.0)
        laws = [Recycled.within(kernel, rate, shape["bound"], 1.0) for rate in shape["rates"]]
        deltas = [_delta(law, shape["epsilon"]) for law in laws]
        for rate, found in zip(shape["rates"], deltas, strict=True):
            yield "q", f"rate {rate:g}", deltas[0], found

        second = settings["theorem2"]
        spent, target = float(second["epsilon_y"]), float(second["delta"])
        kernel = FAMILIES[second["kernel"]].calibrated(spent, target, 1.0)
        for rate in second["rates"]:
            found = _delta(Recycled.within(kernel, rate, second["bound"], 1.0), spent - math.log1p(-rate))
            yield "T2", f"{second['kernel']}: epsilon_y {spent:g}, delta {target:g}, rate {rate:g}", target, found

    def _samples(self, settings: Mapping[str, Any], root: int) -> Iterator[Row]:
        chosen, draws = settings["sampled"], int(settings["draws"])
        n, p, theta = int(chosen["n"]), float(chosen["sampling_rate"]), float(chosen["bound"])
        rng = stream(root, experiment=self.name, cell=dict(chosen), role="sample", replicate=0)
        values = rng.exponential(size=n)
        total = Total.of_values(values, 20.0)
        drawn = total.estimates(values, round(p * n), draws // 10, rng)
        yield "P6", f"sum, n {n}, p {p:g}", total.stated_sampling_sd(p), float(drawn.std())
        cell = Budget.of(chosen, sensitivity=1.0)
        law = Budget(1.0, theta, *inner_budget(cell.epsilon, cell.delta, p)).chosen("gau_br").law
        count = Count.of_share(n, float(chosen["share"]))
        error = count.sampling_sd(p)
        members = rng.hypergeometric(round(chosen["share"] * n), n - round(chosen["share"] * n), round(p * n), draws)
        errors = members / p - round(chosen["share"] * n) + law.release_by_loop(np.zeros(draws), rng).released
        seen = float((np.abs(errors) <= theta).mean())
        name = f"count, n {n}, p {p:g}, bound {theta:g}"
        scale, rate = law.kernel.scale, law.rate
        convolved = total_acceptance(law, error, theta)
        for statement, swapped in (("P7", False), ("P7 swapped", True)):
            yield statement, name, float(printed_acceptance(scale, rate, error, theta, swapped=swapped)), convolved
        yield "P7 convolved", name, convolved, seen


def _delta(law: Recycled, epsilon: float) -> float:
    return float(RecycledProfile(law).bounds(epsilon)[1])
