"""Numbers of the errata that follow from no table of the run: what placeholders `computed` ask
for."""

from __future__ import annotations

from dpsub import sampling
from dpsub.amplification import base_epsilon
from dpsub.papers.must.subsets import NoisePlan, plan_noise
from dpsub.sampling.laws import MultiplicityLaw


def law(sampler: str, n: int, m: int, b: int | None = None) -> MultiplicityLaw:
    return sampling.of_sizes(sampler, n=n, m=m, b=b).multiplicity_law(n)


def base_of_experiment_1(sampler: str, b: int) -> float:
    """Return the epsilon of the query whose amplified epsilon is 0.1."""
    return float(base_epsilon(0.1, law(sampler, 300, 30, b).eta))


def exact_delta(n: int, m: int, epsilon_amplified: float) -> float:
    """Return delta' of sampling without replacement by the exact profile at the noise of Equation
    9."""
    plan = plan_noise(
        law("wor", n, m),
        epsilon_amplified=epsilon_amplified,
        delta=1 / n,
        sensitivity=1.0,
        calibration="classical",
    )
    return float(plan.delta_amplified)


def work_saved() -> float:
    """Return the share of gradients, in percent, that MUST.WW does not evaluate in experiment 3."""
    distinct = sampling.of_sizes("must_ww", n=30969, m=300, b=500).expected_distinct(30969)
    return 100 * (1 - distinct / 300)


def eta_of_must_ow(m: int) -> float:
    return law("must_ow", 1000, m, 150).eta


def plan_of_experiment_1(sampler: str, numerator: float) -> NoisePlan:
    """Return the noise of a statistic with sensitivity `numerator` / n at b = 70."""
    return plan_noise(
        law(sampler, 300, 30, 70),
        epsilon_amplified=0.1,
        delta=1 / 300,
        sensitivity=numerator / 300,
        calibration="classical",
    )


def noise_of_experiment_1(sampler: str, numerator: float) -> float:
    return plan_of_experiment_1(sampler, numerator).sigma


def delta_of_experiment_1(sampler: str) -> float:
    return plan_of_experiment_1(sampler, 8.0).delta_amplified
