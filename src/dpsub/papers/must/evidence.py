"""Numbers of the errata that no table of the run has: what placeholders `computed` and `derived`
ask for."""

from __future__ import annotations

from dpsub import sampling
from dpsub.amplification import base_epsilon
from dpsub.papers.must.subsets import NoisePlan, plan_noise
from dpsub.reproduce.report.cited import LookUp
from dpsub.sampling.laws import MultiplicityLaw

CLIP = 3.0
"""The bound C of the norm of a gradient in experiment 3."""


def law(sampler: str, n: int, m: int, b: int | None = None) -> MultiplicityLaw:
    return sampling.of_sizes(sampler, n=n, m=m, b=b).multiplicity_law(n)


def majority_share(cells: LookUp) -> float:
    """Return the accuracy of always predicting the majority class: that of any other mixes the two
    rates by it."""
    metrics = ("accuracy", "sensitivity", "specificity")
    accuracy, sensitivity, specificity = (
        cells.number("table8", metric, "stated", sampler="nonprivate") for metric in metrics
    )
    return (accuracy - sensitivity) / (specificity - sensitivity)


def noise_over_c(cells: LookUp, sampler: str) -> float:
    """Return the noise of a clipped sum in units of the clipping bound, in experiment 3."""
    return cells.number("table8", "sigma_times_m", "stated", sampler=sampler) / CLIP


def too_large_in_table_6(cells: LookUp) -> float:
    """Return by how much, in percent, the printed error of MUST.OW is larger than ours."""
    place = {"epsilon_amplified": "0.001", "sampler": "must_ow"}
    printed, ours = (
        cells.number("table6", "rmse_mean", source, **place) for source in ("printed", "stated")
    )
    return 100 * (printed / ours - 1)


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
