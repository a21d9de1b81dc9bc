"""Numbers of the errata that follow from no table of the run, for the placeholders `computed`."""

from __future__ import annotations

import math

import pandas as pd

from dpsub import sampling
from dpsub.amplification import base_epsilon
from dpsub.papers.must.subsets import NoisePlan, plan_noise
from dpsub.reproduce import published
from dpsub.sampling.laws import MultiplicityLaw


# Sizes of the three experiments are written out below: an erratum quotes the paper's own case,
# whatever sizes a run takes.
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
        # The nominal delta of Equation 9 in experiments 1 and 2.
        delta=1 / n,
        # Free: sigma grows with the sensitivity, and delta' depends on their ratio alone.
        sensitivity=1.0,
        calibration="classical",
    )
    return float(plan.delta_amplified)


def work_saved() -> float:
    """Return the share of gradients, in percent, that MUST.WW does not evaluate in experiment 3."""
    # Gradients are evaluated once per distinct record: 225 of 300 are expected, where the text says
    # 33 % = 300 / 225 - 1 (erratum E10).
    distinct = sampling.of_sizes("must_ww", n=30969, m=300, b=500).expected_distinct(30969)
    return 100 * (1 - distinct / 300)


def eta_of_must_ow(m: int) -> float:
    # b = 150, the lower edge of Figure 5, where the text has eta fall with m (erratum E12).
    return law("must_ow", 1000, m, 150).eta


def plan_of_experiment_1(sampler: str, numerator: float) -> NoisePlan:
    """Return the noise of a statistic with sensitivity `numerator` / n at b = 70."""
    return plan_noise(
        # The size of the first stage without a column in Table 4 (erratum E15).
        law(sampler, 300, 30, 70),
        epsilon_amplified=0.1,
        delta=1 / 300,
        sensitivity=numerator / 300,
        calibration="classical",
    )


def noise_of_experiment_1(sampler: str, numerator: float) -> float:
    return plan_of_experiment_1(sampler, numerator).sigma


def delta_of_experiment_1(sampler: str) -> float:
    # The range U - L = 8 of the mean; that of the variance, 64, gives the same delta', a function
    # of sensitivity / sigma.
    return plan_of_experiment_1(sampler, 8.0).delta_amplified


def printed_sd_of_the_mean(sampler: str) -> float:
    """Return the SD of the mean estimate that Table 5 prints, averaged over b (erratum E19)."""
    cells = published.load("must", "table5").query("parameter == 'mean' and column == 'sd'")
    return float(pd.to_numeric(cells.loc[cells["sampler"] == sampler, "printed"]).mean())


def sd_of_a_mean() -> float:
    """Return the SD of the mean of the 300 records of experiment 1, which have variance 1."""
    return math.sqrt(1 / 300)


def printed_above_baseline(table: str, column: str) -> int:
    """Return the number of printed errors of private runs above the error without privacy."""
    cells = published.load("must", table).query(f"column == '{column}'")
    # Table 7 has a baseline for each coefficient, Table 6 one.
    key = cells["coefficient"] if "coefficient" in cells else cells["column"]
    numbers, private = pd.to_numeric(cells["printed"]), cells["sampler"] != "nonprivate"
    baseline = key.map(dict(zip(key[~private], numbers[~private], strict=True)))
    return int((numbers > baseline)[private].sum())
