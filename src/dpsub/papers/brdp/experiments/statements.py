"""Single cases of the paper's statements: claimed numbers next to the true ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from dpsub.papers.brdp.queries import Count, Total, printed_acceptance, total_acceptance
from dpsub.papers.brdp.releases import FAMILIES, Budget
from dpsub.papers.brdp.settings import Amount, Draws, KernelName, RecyclingRate, Times, schema
from dpsub.recycling import paper
from dpsub.recycling.choice import true_delta
from dpsub.reproduce.experiment import Grid, Run
from dpsub.reproduce.settings import Closed, Delta, ExperimentSettings, Listed, Several, Share
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


class KernelSettings(Closed):
    """A kernel for sensitivity 1, and recycling rates."""

    kernel: KernelName
    epsilon_y: Amount
    delta: Delta
    bound: Amount
    rates: Several[RecyclingRate]

    def exact(self, rate: float, epsilon: float) -> float:
        """Return the exact delta at epsilon."""
        cell = Budget(bound=self.bound, delta=self.delta)
        return true_delta(
            cell.recycled(cell.calibrated(self.kernel, self.epsilon_y), rate), epsilon
        )


class UShapeSettings(KernelSettings):
    """A kernel that spends more than epsilon."""

    epsilon: Amount


class Guarantee(Budget):
    """One budget."""

    kernel: KernelName
    scale: Amount | None = None


class BrdpChecks(Grid):
    """One record for each statement and case: `claimed`, and `true` by the exact law, another sum,
    or draws.

    "T1 mean", "T1 weight": E exp(-loss) and the weight of the shift; "P3": delta of the paper's
    parameters; "T2": delta at epsilon_y - log(1 - q); "degenerate": delta as epsilon_y goes to 0;
    "q": exact delta of one kernel by rate (`claimed` is that at rate 0); "(10)": acceptance from
    the printed objective; "A3": delta of the printed loop; "R5": terms of Theorem 3 and those that
    count; "P6": standard deviation of sampled sums; "P7", "P7 swapped": acceptance on a sample; "P7
    convolved": the true one against draws.
    """

    name = "brdp_checks"
    stage = "account"
    columns = schema("statement case claimed true")
    variants = ("stated",)

    class Settings(ExperimentSettings):
        draws: Draws = Field(400000, description="Draws of sampled releases.")
        # The cases of BR2 and BR3: too small and too large promises, for both kernels.
        guarantees: Several[Guarantee] = Field(
            (
                Guarantee(kernel="gau", epsilon=2),
                Guarantee(kernel="gau"),
                Guarantee(kernel="gau", epsilon=3),
                Guarantee(kernel="gau", bound=30, epsilon=0.5, scale=10),
                Guarantee(kernel="gau", sensitivity=10000),
                Guarantee(kernel="lap"),
                Guarantee(kernel="lap", sensitivity=5, epsilon=4),
            ),
            description="Budgets; with a scale Algorithm 1 for that kernel, else Algorithm 2.",
        )
        composition: Budget = Field(Budget(), description="Budget of one release of Theorem 3.")
        n_compositions: Listed[Times] = (1, 2, 10, 100, 1000)
        # From where the first term of Algorithm 3 matters (BR8) to Table I's T.
        u_shape: UShapeSettings = Field(
            UShapeSettings(
                kernel="gau", epsilon_y=1.05, epsilon=1, delta=1e-5, bound=1, rates=(0, 0.55, 0.7)
            ),
            description="A kernel that spends more than epsilon.",
        )
        theorem2: KernelSettings = Field(
            KernelSettings(
                kernel="lap", epsilon_y=0.5, delta=0.1, bound=0.1, rates=(0.5, 0.9, 0.99)
            ),
            description="A kernel and rates for Theorem 2.",
        )
        sampled: Sampled = Field(
            Sampled(n=1000, sampling_rate=0.2, share=0.1, bound=3, epsilon=0.1, delta=1e-5),
            description="A sampled count.",
        )

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        for part in (
            *map(_guarantee, settings.guarantees),
            _formulas(settings),
            _rates(settings),
            _samples(settings, run.streams),
        ):
            yield from (
                dict(zip(("statement", "case", "claimed", "true"), row, strict=True))
                for row in part
            )


def _guarantee(cell: Guarantee) -> Iterator[Row]:
    theta, span = cell.bound, cell.sensitivity
    name = (
        f"{cell.kernel}: D {span:g}, bound {theta:g}, epsilon {cell.epsilon:g}, delta "
        f"{cell.delta:g}"
    )
    if cell.scale is None:
        law = cell.chosen(f"{cell.kernel}_br").law
    # Algorithm 2 chooses its kernel: a given scale is a question to Algorithm 1.
    else:
        law, name = (
            cell.recycled(FAMILIES[cell.kernel](cell.scale)),
            (f"{name}, scale {cell.scale:g}"),
        )
    yield "P3", name, cell.delta, true_delta(law, cell.epsilon)
    weight = paper.crossing_mass(law.kernel, -theta, theta, span)
    # At q = 1 the shift L is infinite, and Theorems 1 and 2 say nothing.
    if law.rate < 1:
        yield "T1 mean", name, 1 - weight * law.rate, 1.0
        yield "T1 weight", name, weight, law.normaliser * weight
        # The kernel's epsilon at the same delta, as Theorem 2 takes it.
        spent = float(law.kernel.profile(span).epsilon(cell.delta))
        yield "T2", name, cell.delta, true_delta(law, spent - math.log1p(-law.rate))
    yield "(10)", name, 1 / paper.mean_trials(law, "printed"), law.acceptance
    # Where the paper's program has its second optimum, without privacy (BR14).
    smallest = cell.calibrated(cell.kernel, 1e-15 * cell.epsilon)
    yield "degenerate", name, cell.delta, true_delta(cell.recycled(smallest), cell.epsilon)


def _formulas(settings: BrdpChecks.Settings) -> Iterator[Row]:
    from scipy.stats import binom  # here, as its import takes longer than most jobs compute

    law = settings.composition.chosen("gau_br").law
    weight = paper.crossing_mass(law.kernel, law.lower, law.upper, law.sensitivity)
    for times in settings.n_compositions:
        # Both sums at the epsilon where the one from k = 0 meets delta.
        epsilon = paper.theorem3_epsilon(law, times, settings.composition.delta)
        printed, full_sum = (
            paper.theorem3_delta(law, times, first=first)(epsilon) for first in (1, 0)
        )
        yield "A3", f"T {times}", printed, full_sum
        # Weights of the T + 1 terms; the spec of Algorithm 3 lets the smallest be skipped.
        counts = binom.pmf(np.arange(times + 1), times, weight) > NEGLIGIBLE
        yield "R5", f"T {times}", times + 1, float(counts.sum())


def _rates(settings: BrdpChecks.Settings) -> Iterator[Row]:
    """Yield the cases of one kernel at several recycling rates."""
    shape, second = settings.u_shape, settings.theorem2
    deltas = [shape.exact(rate, shape.epsilon) for rate in shape.rates]
    for rate, delta in zip(shape.rates, deltas, strict=True):
        yield "q", f"rate {rate:g}", deltas[0], delta
    for rate in second.rates:
        name = (
            f"{second.kernel}: epsilon_y {second.epsilon_y:g}, delta {second.delta:g}, rate "
            f"{rate:g}"
        )
        yield "T2", name, second.delta, second.exact(rate, second.epsilon_y - math.log1p(-rate))


def _samples(settings: BrdpChecks.Settings, streams: Streams) -> Iterator[Row]:
    chosen, draws = settings.sampled, settings.draws
    n, p, theta, counted = (
        chosen.n,
        chosen.sampling_rate,
        chosen.bound,
        round(chosen.share * chosen.n),
    )
    rng = streams.sample(dict(chosen), 0)
    values = rng.exponential(size=n)
    # Skewed values, as incomes are; clipped, so that the sum has a sensitivity.
    total = Total.of_values(values, 20.0)
    # A sampled sum orders all n records a repeat: a tenth of the draws is enough for its deviation.
    sums = total.estimates(values, round(p * n), draws // 10, rng)
    yield "P6", f"sum, n {n}, p {p:g}", total.stated_sampling_sd(p), float(sums.std())
    law = Budget.of(chosen, sensitivity=1.0).inner(p).chosen("gau_br").law
    # The claim is about the deviation as printed; here the exact one enters both sides.
    error = Count.of_share(n, chosen.share).sampling_sd(p)
    # Members with the property among those sampled without replacement.
    members = rng.hypergeometric(counted, n - counted, round(p * n), draws)
    errors = members / p - counted + law.release_by_loop(np.zeros(draws), rng).released
    name, convolved = f"count, n {n}, p {p:g}, bound {theta:g}", total_acceptance(law, error, theta)
    for statement, swapped in (("P7", False), ("P7 swapped", True)):
        claimed = printed_acceptance(law.kernel.scale, law.rate, error, theta, swapped=swapped)
        yield statement, name, float(claimed), convolved
    yield "P7 convolved", name, convolved, float((np.abs(errors) <= theta).mean())
