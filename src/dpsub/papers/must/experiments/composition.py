"""Privacy of many compositions: by the paper's pair, and what is refuted and proved (MUST, Table 8, Figure S2)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import checks, sampling
from dpsub.accounting import account as accounting
from dpsub.accounting.algorithm1 import LossGrid, cell_mass_bounds, check_size, compose
from dpsub.accounting.bracket import Composition, PairEvent, Target
from dpsub.accounting.pairs import FillerPair, GaussianPair, MixturePair, PoissonPair, WorPair
from dpsub.errors import UnsupportedError
from dpsub.learning.subsets import of_gradient, plan_noise
from dpsub.papers.must.settings import (
    CONSISTENT_NOISE,
    FIVE,
    PRINTED_SCALE,
    FigureS2,
    GridSize,
    HalfWidth,
    SizesOfFigureS2,
    Table8,
)  # fmt: skip
from dpsub.relations import Relation
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import Delta, ExperimentSettings, NoiseMultiplier, Parts, Samplers, Sizes
from dpsub.sampling import Poisson
from dpsub.sampling.laws import MultiplicityLaw

METHODS = {"stated": "printed", "as_done": "as_done", "consistent": "cell_mass"}
MAX_DOUBLINGS = 4

CHARGED_SHARE = 0.01
"""Largest share of delta that a bracket may be widened by for losses outside the grid, before the grid is doubled."""

NOISES = {
    "stated": [("table8", "stated", "classical")],
    "as_done": [("table8", "stated", "classical")],
    "consistent": [("table8", "stated", "classical"), (CONSISTENT_NOISE, "consistent", "analytic")],
}
"""Which noise each variant composes: name in the records, variant of the sensitivity, calibration."""


@dataclass(frozen=True, eq=False)
class Task:
    """One pair, composed up to several numbers of times."""

    table: str
    sampler: str
    pair: GaussianPair
    n_compositions: list[int]
    epsilon: float
    half_width: float
    grid_size: int


def pair_of(sampler: str, sizes: Any, scale: float, rate_digits: int | None = None) -> GaussianPair:
    """Return the paper's pair of a sampler at the sizes n, b, m.

    Parameters
    ----------
    sampler : str
    sizes
        With n, b, m.
    scale : float
        s, in units of the shift by one occurrence.
    rate_digits : int, optional
        Decimals to which q = m/n is rounded for Poisson and WOR (erratum E2); None: exact.
    """
    n, m = sizes.n, sizes.m
    drawn = sampling.of_sizes(sampler, n=n, m=m, b=sizes.b)
    if sampler not in ("poisson", "wor"):
        return MixturePair(drawn.multiplicity_law(n), scale)
    rate = m / n if rate_digits is None else round(m / n, rate_digits)
    return PoissonPair(rate, scale) if sampler == "poisson" else WorPair(rate, scale)


def noise_of_sum(sampler: str, table: Table8, variant: str, calibration: str) -> float:
    """Return m sigma of Table 8: the scale of the noise on the sum of a subset's clipped gradients.

    The variant is that of the sensitivity, the calibration the rule for the scale.
    """
    n, m, clip, target = table.n, table.m, table.clip, table.epsilon_amplified
    law = sampling.of_sizes(sampler, n=n, m=m, b=table.b).multiplicity_law(n)
    size = of_gradient(sampler, n=n, m=m, clip=clip, variant=variant)
    return m * plan_noise(law, epsilon_amplified=target, delta=1 / n, sensitivity=size, calibration=calibration).sigma


class ComposedTable8(Table8):
    """Table 8, with the accountant's grid."""

    half_width: HalfWidth = 6
    grid_size: GridSize = 300_000
    grid_size_wr: GridSize = Field(200_000, description="Points of the grid for WR.")


class ComposedFigureS2(FigureS2):
    """Figure S2, with the accountant's grid."""

    half_width: HalfWidth = 10
    grid_size: GridSize = 500_000


class MustComposition(Experiment):
    """delta(epsilon) after k compositions, per the paper's pair: no guarantee for the samplers.

    Variants, for the noise sigma of Algorithm 2: `stated` runs Algorithm 1 as printed with s = m sigma; `as_done` adds
    what made the published bounds (q rounded to 0.01 for Poisson and WOR, s to 3 decimals, an error term, clipping);
    `consistent` brackets the pair by exact cell masses at s = m sigma / C, the scale in units of one gradient's norm
    bound (erratum E2), on a grid as wide as that takes: once for the noise that the paper states ("table8") and once
    for the larger noise of the consistent utilities. Figure S2 fixes its scale, so only the method differs there.
    """

    name: ClassVar[str] = "composition"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "table": "str", "sampler": "str", "method": "str", "n_compositions": "int64",
        "epsilon": "float64", "scale": "float64", "half_width": "float64", "grid_size": "int64",
        "delta_lower": "float64", "delta": "float64", "delta_upper": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated", "as_done", "consistent")
    keys: ClassVar[tuple[str, ...]] = ("table", "sampler", "method", "n_compositions")

    class Settings(ExperimentSettings):
        table8: ComposedTable8 = Field(ComposedTable8(), description="Settings of Table 8.")
        figure_s2: ComposedFigureS2 = Field(ComposedFigureS2(), description="Settings of Figure S2.")

        def check(self) -> None:
            for variant in MustComposition.variants:
                for task in MustComposition.tasks(self, variant):
                    grid = LossGrid(task.half_width, task.grid_size)
                    if METHODS[variant] == "cell_mass" and variant in self.variants:
                        check_size(grid.size)
                    checks.real("epsilon", task.epsilon, below=grid.half_width)

    @staticmethod
    def tasks(settings: Settings, variant: str) -> Iterator[Task]:
        """Yield what is to be composed, Table 8 first."""
        table, figure, as_done = settings.table8, settings.figure_s2, variant == "as_done"
        unit = table.clip if variant == "consistent" else 1.0
        for sampler in table.samplers:
            for name, noise, calibration in NOISES[variant]:
                scale = noise_of_sum(sampler, table, noise, calibration) / unit
                pair = pair_of(sampler, table, round(scale, 3) if as_done else scale, 2 if as_done else None)
                grid_size = table.grid_size_wr if sampler == "wr" else table.grid_size
                k = [table.n_compositions]
                yield Task(name, sampler, pair, k, table.epsilon, table.half_width, grid_size)
        for sampler in figure.samplers:
            pair, k = pair_of(sampler, figure, figure.scale), list(figure.n_compositions)
            yield Task("figure_s2", sampler, pair, k, figure.epsilon, figure.half_width, figure.grid_size)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        method = METHODS[run.variant]
        rows = []
        for task in self.tasks(settings, run.variant):
            if method == "cell_mass":
                grid, found = bracket(task)
            else:
                grid, found = LossGrid(task.half_width, task.grid_size), by_density(task, method)
            used = (task.epsilon, task.pair.scale, grid.half_width, grid.size)
            rows += [
                (0, task.table, task.sampler, method, k, *used, *bounds)
                for k, bounds in zip(task.n_compositions, found, strict=True)
            ]
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))


def by_density(task: Task, method: str) -> list[tuple[float, float, float]]:
    """Return (lower, value, upper) of delta for each k by Algorithm 1.

    Below the floor of round-off a lower bound becomes 0, an upper bound the floor.
    """
    result = compose(
        task.pair, steps=task.n_compositions, epsilon=task.epsilon, half_width=task.half_width,
        grid_size=task.grid_size, method=method,
    )  # fmt: skip
    intervals = [result.interval(i) for i in range(len(task.n_compositions))]
    return [(bounds.lower, float(value), bounds.upper) for bounds, value in zip(intervals, result.delta, strict=True)]


def bracket(task: Task) -> tuple[LossGrid, list[tuple[float, float, float]]]:
    """Return (lower, value, upper) of delta for each k from exact cell masses, and the grid that they needed.

    The grid of the settings is doubled, at the same step, until what is charged for losses that leave it no longer
    counts: at the consistent scale of MUST.OW and MUST.WW the sum of 1000 losses lies far outside [-6, 6].
    """
    k = np.array(task.n_compositions)
    for doubling in range(MAX_DOUBLINGS + 1):
        grid = LossGrid(task.half_width * 2**doubling, task.grid_size * 2**doubling)
        bounds = cell_mass_bounds(task.pair, grid, task.epsilon, k)
        charged = bounds.beyond + bounds.aliasing_lower + bounds.aliasing_upper
        if np.all(charged <= CHARGED_SHARE * bounds.middle):
            break
    return grid, list(zip(bounds.lower.tolist(), bounds.middle.tolist(), bounds.upper.tolist(), strict=True))


# What is refuted and proved

SHIFTS = 1024
"""Steps into which the largest shift, that of the smallest sample, is divided."""

ROUND_DOWN = 1 - 1e-12
"""Factor that keeps a quotient which floating point rounded up from counting as a larger shift."""

_TAIL = 1e-15
_WIDTH = 5e-3


def law_of_shifts(n: int, rate: float) -> tuple[MultiplicityLaw, float]:
    """Return the law of the shift that the differing record causes (Algorithm 2, step 4), rounded down, and the step.

    With D = (+C, -C, ..., -C), D' = (-C, ..., -C) and the record drawn together with J others, the mean of the sample
    moves by 2 C / (J + 1), J ~ Binomial(n - 1, q).  Where it is not drawn nothing moves.  The tails of J beyond 1e-15
    count as smaller shifts than they are.  The step is in units of 2 C / m, m = n q: the largest shift over `SHIFTS`.
    """
    from scipy.stats import binom  # here, as its import takes longer than most jobs compute

    others = np.arange(int(binom.ppf(_TAIL, n - 1, rate)), int(binom.isf(_TAIL, n - 1, rate)) + 1)
    shifts = n * rate / (others + 1)
    step = float(shifts[0]) / SHIFTS
    drawn = binom.pmf(others, n - 1, rate)
    drawn[0] = binom.cdf(others[0], n - 1, rate)
    weights = np.bincount(np.floor(shifts / step * ROUND_DOWN).astype(int), rate * drawn)
    weights[0] += 1 - rate + rate * binom.sf(others[-1], n - 1, rate)
    with np.errstate(divide="ignore"):
        return MultiplicityLaw(np.log(weights)), step


def attack_on_realised_batches(release: accounting.Release, epsilon: float) -> float:
    """Return a lower bound of delta(epsilon), both directions, for either adjacency.

    Rounding shifts down lowers delta: the loss of the rounded pair increases with the output, so each test by a sum of
    losses gains from larger shifts and keeps its probability under D'.  An empty sample, whatever it releases, moves
    the probability of a test by no more than its own, k (1 - q)^(n - 1), which is charged under both data sets.

    The release is of Poisson sampling, its noise multiplier that of a sample of the expected size: the noise on the
    mean is noise_multiplier C / (n rate), whatever the size drawn.

    Raises
    ------
    UnsupportedError
        If the sampler is another one.
    """
    if not isinstance(release.sampler, Poisson) or release.n is None:
        raise UnsupportedError(
            f"only a Poisson sample has a random size to divide by, got {type(release.sampler).__name__}; "
            "use the denominator fixed"
        )
    rate, times = release.sampler.rate, release.steps
    law, step = law_of_shifts(release.n, rate)
    pair = FillerPair(law, release.noise_multiplier / 2 / step)
    found = Composition([(PairEvent(pair), times)]).attack(Target(epsilon=epsilon, width=_WIDTH)).value
    empty = times * math.exp((release.n - 1) * math.log1p(-rate)) if rate < 1 else 0.0
    return max(0.0, found - empty * (1 + math.exp(epsilon)))


PAIR_WIDTH = 1e-3
"""Of the bracket of the paper's pair: absolute for epsilon, relative for delta."""


@dataclass(frozen=True)
class Asked:
    """One question: delta at an epsilon, or epsilon at a delta, after `n_compositions` releases.

    Attributes
    ----------
    table : what the answer is for.
    noise_multiplier : scale of the noise on the sum over the norm bound of one record.
    quantity : "delta" or "epsilon", what is asked for; `given` is the other one.
    adjacency : "add_remove" or "substitute".
    denominator : "fixed" or "realised", what sum and noise are divided by; "realised" for Poisson samples only.
    """

    table: str
    sampler: str
    sizes: SizesOfFigureS2 | Table8
    noise_multiplier: float
    n_compositions: int
    quantity: str
    given: float
    adjacency: str
    denominator: str = "fixed"

    def release(self) -> accounting.Release:
        """The releases, checked."""
        n = self.sizes.n
        drawn = sampling.of_sizes(self.sampler, n=n, m=self.sizes.m, b=self.sizes.b)
        return accounting.Release(drawn, n, self.noise_multiplier, self.n_compositions, denominator=self.denominator)

    def answer(self) -> dict[str, Any]:
        """Return the fields `kind`, `pair_lower`, `pair_upper`, `attack`, `proved`; NaN where there is none."""
        none, release = {"pair_lower": np.nan, "pair_upper": np.nan}, self.release()
        if self.denominator == "realised":
            attack = attack_on_realised_batches(release, epsilon=self.given)
            return {"kind": "attack", **none, "attack": attack, "proved": np.nan}
        known: dict[str, Any] = {"epsilon" if self.quantity == "delta" else "delta": self.given}
        found = accounting.Ledger([release]).account(adjacency=self.adjacency, **known)
        if self.adjacency == release.sampler.relation:
            pair = accounting.account(
                release.sampler, release.n, noise_multiplier=self.noise_multiplier, steps=self.n_compositions,
                variant="paper", width=PAIR_WIDTH, **known,
            )  # fmt: skip
            none = {"pair_lower": pair.lower, "pair_upper": pair.upper}
        return {"kind": found.kind, **none, "attack": found.lower, "proved": found.upper}


class AccountsExperiment(Experiment):
    """A list of questions; a replicate is the number of a question, so that jobs share the list.

    The columns `pair_lower` and `pair_upper` bracket the paper's pair, which is no guarantee; `attack` is attained by
    explicit data sets, so that no guarantee below it can hold; `proved` is an upper bound for clipped sums under the
    conditions of `dpsub.accounting.account.CONDITIONS` and `adjacency`.  Where `kind` is "exact" attack and proof
    bracket one number; where it is "attack" nothing is proved.
    """

    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "table": "str", "sampler": "str", "adjacency": "str", "denominator": "str",
        "noise_multiplier": "float64", "n_compositions": "int64", "quantity": "str", "given": "float64", "kind": "str",
        "pair_lower": "float64", "pair_upper": "float64", "attack": "float64", "proved": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("rigorous",)
    keys: ClassVar[tuple[str, ...]] = ("table", "sampler", "adjacency", "denominator", "n_compositions")

    @staticmethod
    @abstractmethod
    def questions(settings: Any) -> list[Asked]:
        """Return what is asked, in order."""

    def replicates(self, settings: Any) -> int:
        return len(self.questions(settings))

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        asked = self.questions(settings)
        rows = []
        for replicate in run.replicates:
            question = asked[replicate]
            facts = {name: getattr(question, name) for name in self.columns if hasattr(question, name)}
            rows.append({"replicate": replicate, **facts, **question.answer()})
        return self.frame(rows)


def adjacencies(sampler: str) -> tuple[Relation, ...]:
    """Return the relations under which a sampler has a proof: both for Poisson, whose size does not depend on n."""
    own = sampling.REGISTRY.get(sampler).relation
    return (own,) if own == Relation.SUBSTITUTE else (own, Relation.SUBSTITUTE)


class ProvedComposition(AccountsExperiment):
    """delta(epsilon) after k compositions from both sides, next to the paper's pair; epsilon(1/n) where delta is tiny.

    "table8" is experiment 3 as it was run: noise as stated in units of the clipping bound, Poisson divided by the
    realised size of its samples, and by the fixed m as well; PRINTED_SCALE is the scale that made the printed bounds;
    CONSISTENT_NOISE is the larger noise of the consistent utilities, for which delta(2) is far below anything of
    interest and epsilon at delta = 1/n is asked for.
    """

    name: ClassVar[str] = "proved_composition"

    class Settings(ExperimentSettings):
        parts: Parts = 4
        table8: Table8 = Field(Table8(), description="Settings of Table 8.")
        figure_s2: FigureS2 = Field(FigureS2(), description="Settings of Figure S2.")

        def check(self) -> None:
            for question in ProvedComposition.questions(self):
                question.release()

    @staticmethod
    def questions(settings: Settings) -> list[Asked]:
        table, figure = settings.table8, settings.figure_s2
        (_, *stated), (_, *consistent) = NOISES["consistent"]
        at_epsilon, k = ("delta", table.epsilon), table.n_compositions
        asked = []
        for name, noise, unit, quantity in (
            ("table8", stated, table.clip, at_epsilon),
            (PRINTED_SCALE, stated, 1.0, at_epsilon),
            (CONSISTENT_NOISE, consistent, table.clip, ("epsilon", 1 / table.n)),
        ):
            for sampler in table.samplers:
                scale, relation = noise_of_sum(sampler, table, *noise) / unit, adjacencies(sampler)[0]
                as_run = name == "table8" and sampler == "poisson"
                asked += [
                    Asked(name, sampler, table, scale, k, *quantity, relation, denominator)
                    for denominator in (("realised", "fixed") if as_run else ("fixed",))
                ]
        return asked + [
            Asked("figure_s2", sampler, figure, figure.scale, k, "delta", figure.epsilon, adjacencies(sampler)[0])
            for k in figure.n_compositions
            for sampler in figure.samplers
        ]


class ProvedSteps(AccountsExperiment):
    """epsilon(delta) after k steps from both sides, at one noise multiplier for all samplers.

    Poisson comes under both relations: adding or removing a record, and substituting one, as the others.
    """

    name: ClassVar[str] = "proved_steps"

    class Settings(ExperimentSettings, SizesOfFigureS2):
        parts: Parts = 4
        noise_multiplier: NoiseMultiplier = 4
        delta: Delta = 1e-5
        n_compositions: Sizes = Field((1, 3, 10, 30, 100, 300, 1000), description="Numbers of composed releases.")
        samplers: Samplers = FIVE

        def check(self) -> None:
            for question in ProvedSteps.questions(self):
                question.release()

    @staticmethod
    def questions(settings: Settings) -> list[Asked]:
        noise = settings.noise_multiplier
        return [
            Asked(ProvedSteps.name, sampler, settings, noise, k, "epsilon", settings.delta, relation)
            for k in settings.n_compositions
            for sampler in settings.samplers
            for relation in adjacencies(sampler)
        ]
