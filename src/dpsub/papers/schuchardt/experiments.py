"""The paper's bounds for groups, next to our two bounds."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from typing import Any, ClassVar

import numpy as np

import dpsub
from dpsub.papers.schuchardt import bounds
from dpsub.papers.schuchardt import settings as own
from dpsub.reproduce import settings as kinds
from dpsub.reproduce.experiment import Grid, Run, columns

WIDTH = 0.05  # relative distance of our two bounds on delta that suffices for comparisons
MOST_STEPS = 50_000
CLOSE = 1.03  # ratio of two numbers of steps at which the search ends


@cache
def ends(
    noise: float, rate: float, group: int, steps: int, epsilons: tuple[float, ...], law: str
) -> tuple[list[float], list[float]]:
    """Return our two bounds on delta of a group in Poisson samples: its records are all added, or
    all removed."""
    account = dpsub.account(
        dpsub.Poisson(rate),
        mechanism=law,
        noise_multiplier=noise,
        steps=steps,
        epsilon=list(epsilons),
        group=group,
        width=WIDTH,
        effort=None,
        quick=True,
    )
    return list(np.atleast_1d(account.lower)), list(np.atleast_1d(account.upper))


def specific(
    noise: float, rate: float, group: int, steps: int, epsilon: float
) -> tuple[float, float]:
    """Return both bounds on delta of a group after steps with Gaussian noise."""
    lower, upper = ends(noise, rate, group, steps, (epsilon,), "gaussian")
    return lower[0], upper[0]


def posthoc(
    of: int, noise: float, rate: float, group: int, steps: int, epsilon: float
) -> tuple[float, float]:
    """Return both bounds on the delta that the group privacy property gives, from the delta of `of`
    records: one record, or in the released code of composed steps the whole group."""
    lower, upper = specific(noise, rate, of, steps, epsilon / group)
    factor = bounds.group_factor(epsilon, group)
    return lower * factor, upper * factor


class Rows(Grid):
    """Records that are given as values, in the order of the columns."""

    stage = "account"

    def rows(self, settings: Any, run: Run) -> Iterator[dict[str, Any]]:
        names = [name for name in self.columns if name != "replicate"]
        for values in self.values(settings, run.variant):
            yield dict(zip(names, values, strict=True))

    @abstractmethod
    def values(self, settings: Any, variant: str) -> Iterator[tuple[Any, ...]]:
        """Yield the values of one record after the other."""


class OneStep(Rows):
    """One record for each base mechanism, rate, group and epsilon: delta of one step, by the
    paper, by Balle et al. and by the group privacy property, and our two bounds."""

    name = "schuchardt_step"
    columns: ClassVar[dict[str, str]] = columns(
        "law noise rate group epsilon specific same_kind agnostic posthoc delta_lower delta_upper",
        text={"law"},
        whole={"group"},
    )
    variants = ("stated",)

    class Settings(kinds.ExperimentSettings):
        noises: own.Noises = (1.0, 2.0)
        scale: kinds.NoiseMultiplier = 1.0
        theta: own.Truth = 0.75
        rates: kinds.Rates = (0.2, 0.01)
        groups: own.Groups = (1, 2, 4, 8)
        epsilons: kinds.Epsilons = (0.5, 1.0, 2.0)

    def values(self, settings: Settings, variant: str) -> Iterator[tuple[Any, ...]]:
        laws = [("gaussian", noise) for noise in settings.noises]
        laws += [("laplace", settings.scale), ("response", settings.theta)]
        for (law, noise), rate, group in product(laws, settings.rates, settings.groups):
            lower = upper = [math.nan] * len(settings.epsilons)
            if law != "response":
                lower, upper = ends(noise, rate, group, 1, settings.epsilons, law)
            for epsilon, *both in zip(settings.epsilons, lower, upper, strict=True):
                several = one_step(law, noise, rate, group, epsilon)
                one = one_step(law, noise, rate, 1, epsilon / group)[0]
                several += (one * bounds.group_factor(epsilon, group),)
                yield law, noise, rate, group, epsilon, *several, *both


def one_step(law: str, noise: float, rate: float, group: int, epsilon: float) -> tuple[float, ...]:
    """Return the paper's delta over all insertions and removals, the one where all records of the
    group are inserted or all removed, and the bound of Balle et al."""
    if law == "response":
        included = 1 - (1 - rate) ** group
        found = bounds.response_delta(epsilon, noise, included)
        return found, found, bounds.response_agnostic(epsilon, noise, included)
    deltas = [bounds.delta(epsilon, law, noise, *pair) for pair in bounds.splits(group, rate)]
    other = bounds.agnostic(epsilon, law, noise, bounds.poisson(group, rate)[:, 1])
    return max(deltas), max(deltas[0], deltas[-1]), other


class OneStepEpsilon(Rows):
    """One record for each noise and rate: epsilon of one step at a delta, by the paper's bound and
    by the group privacy property, for Gaussian noise and a group that is removed."""

    name = "schuchardt_step_epsilon"
    columns: ClassVar[dict[str, str]] = columns("noise rate specific posthoc", text=(), whole=())
    variants = ("stated",)

    class Settings(kinds.ExperimentSettings):
        noises: own.Noises = (1.0, 2.0, 5.0)
        rates: kinds.Rates = (1e-3, 0.1, 0.2)
        group: own.GroupSize = 4
        delta: kinds.Delta = 1e-5

    def values(self, settings: Settings, variant: str) -> Iterator[tuple[Any, ...]]:
        for known in product(settings.noises, settings.rates):
            curves = (partial(curve, *known, settings.group) for curve in (removed, converted))
            yield *known, *(bounds.epsilon_at(curve, settings.delta) for curve in curves)


def removed(noise: float, rate: float, group: int, epsilon: float) -> float:
    """Return the paper's delta of one step with Gaussian noise, a group removed."""
    return bounds.delta(epsilon, "gaussian", noise, bounds.poisson(group, rate), bounds.NOTHING)


def converted(noise: float, rate: float, group: int, epsilon: float) -> float:
    """Return the delta that the group privacy property derives from that of one record."""
    return removed(noise, rate, 1, epsilon / group) * bounds.group_factor(epsilon, group)


class Composed(Rows):
    """One record for each noise, rate and number of steps: delta of a group after steps, by the
    paper's pair and by the group privacy property, each from both sides (Figures 6, 18 and 19)."""

    name = "schuchardt_composed"
    columns: ClassVar[dict[str, str]] = columns(
        "noise rate steps specific_lower specific_upper posthoc_lower posthoc_upper",
        text=(),
        whole={"steps"},
    )
    variants = ("stated", "as_done")

    class Settings(kinds.ExperimentSettings):
        noises: own.Noises = (1.0, 5.0)
        rates: kinds.Rates = (1e-3, 1e-2)
        group: own.GroupSize = 16
        steps: own.Steps = (1000, 3000, 10_000, 20_000, 30_000)
        early: own.Steps = (20, 50, 100, 300)
        epsilon: kinds.Epsilon = 2.0

    def values(self, settings: Settings, variant: str) -> Iterator[tuple[Any, ...]]:
        group, epsilon = settings.group, settings.epsilon
        # after fewer of them delta may be far below what arithmetic holds
        early = settings.early if variant == "as_done" else ()
        for noise, rate, steps in product(
            settings.noises, settings.rates, (*early, *settings.steps)
        ):
            tight = (math.nan, math.nan)
            if steps not in early:
                tight = specific(noise, rate, group, steps, epsilon)
            of = group if variant == "as_done" else 1
            yield noise, rate, steps, *tight, *posthoc(of, noise, rate, group, steps, epsilon)


def change(holds: Callable[[int], bool], start: int) -> tuple[int, int]:
    """Return a number of steps at which a statement holds and a larger one, up to `CLOSE`, at which
    it does not; it holds after few steps."""
    yes, no = (start, MOST_STEPS) if holds(start) else (1, start)
    while no > max(yes + 1, CLOSE * yes):
        steps = round(math.sqrt(yes * no))
        yes, no = (steps, no) if holds(steps) else (yes, steps)
    return yes, no


class Iterations(Rows):
    """One record for each budget and analysis: the number of steps that a group's epsilon and delta
    allow, and delta after the steps of the figure."""

    name = "schuchardt_iterations"
    columns: ClassVar[dict[str, str]] = columns(
        "budget analysis kept broken delta_lower delta_upper",
        text={"budget", "analysis"},
        whole={"kept", "broken"},
    )
    variants = ("stated", "as_done")

    class Settings(kinds.ExperimentSettings):
        figure6: own.Budget = own.Budget()
        training: own.Training = own.Training()

    def values(self, settings: Settings, variant: str) -> Iterator[tuple[Any, ...]]:
        for name, budget in (("figure6", settings.figure6), ("training", settings.training)):
            of = budget.group if variant == "as_done" else 1
            for analysis, both in (("specific", specific), ("posthoc", partial(posthoc, of))):
                yield name, analysis, *self._of_budget(budget, both)

    def _of_budget(
        self, budget: own.Budget, both: Callable[..., tuple[float, float]]
    ) -> tuple[float, ...]:
        def of_steps(steps: int) -> tuple[float, float]:
            known = budget.noise_multiplier, budget.rate, budget.group
            return both(*known, steps, budget.epsilon)

        kept, _ = change(lambda steps: of_steps(steps)[1] <= budget.delta, budget.steps)
        _, broken = change(lambda steps: of_steps(steps)[0] <= budget.delta, budget.steps)
        return kept, broken, *of_steps(budget.steps)


class FixedSize(Rows):
    """One record for each sampler and epsilon: delta of one step when a record is replaced, by the
    paper's pair, by the bound of Balle et al., and our two bounds (Figure 13)."""

    name = "schuchardt_fixed"
    columns: ClassVar[dict[str, str]] = columns(
        "sampler epsilon pair agnostic delta_lower delta_upper", text={"sampler"}, whole=()
    )
    variants = ("stated", "as_done")

    class Settings(kinds.ExperimentSettings):
        n: kinds.FrameSize = 100
        batch: kinds.SampleSize = 8
        noise_multiplier: kinds.NoiseMultiplier = 1.0
        epsilons: kinds.Epsilons = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0)

    def values(self, settings: Settings, variant: str) -> Iterator[tuple[Any, ...]]:
        n, batch, noise = settings.n, settings.batch, settings.noise_multiplier
        samplers = {
            "wr": (dpsub.Wr(batch), bounds.drawn(batch, 1 / n)),
            "wor": (dpsub.Wor(batch), np.log([1 - batch / n, batch / n])),
        }
        for name, (sampler, log_weights) in samplers.items():
            first = bounds.mixture(log_weights)
            if name == "wr" and variant == "stated":
                first = bounds.printed_components(n, batch)
            account = dpsub.account(
                sampler,
                n,
                # a record that takes the place of another one moves a sum by up to 2 C
                noise_multiplier=2 * noise,
                epsilon=list(settings.epsilons),
                adjacency="substitute",
                effort=None,
                quick=True,
            )
            both = np.atleast_1d(account.lower), np.atleast_1d(account.upper)
            for epsilon, *known in zip(settings.epsilons, *both, strict=True):
                pair = bounds.delta(epsilon, "gaussian", noise, first, first * np.array([-1, 1]))
                other = bounds.agnostic(epsilon, "gaussian", noise, log_weights)
                yield name, epsilon, pair, other, *known


class Renyi(Rows):
    """One record for each noise, rate, group and order: D_alpha of one step by the paper's bound,
    by the mechanism-agnostic one (Figure 11) and by the group privacy property (Figure 17)."""

    name = "schuchardt_renyi"
    columns: ClassVar[dict[str, str]] = columns(
        "noise rate group alpha specific agnostic posthoc", text=(), whole={"group", "alpha"}
    )
    variants = ("stated",)

    class Settings(kinds.ExperimentSettings):
        noises: own.Noises = (1.0, 5.0)
        rates: kinds.Rates = (0.1, 1e-3)
        groups: own.Groups = (2, 4)
        orders: own.Orders = (2, 4, 8, 16, 32, 64)

    def values(self, settings: Settings, variant: str) -> Iterator[tuple[Any, ...]]:
        for known in product(settings.noises, settings.rates, settings.groups, settings.orders):
            noise, rate, group, alpha = known
            one = partial(bounds.renyi_of_one, noise=noise, rate=rate)
            tight = max(bounds.renyi(alpha, noise, *pair) for pair in bounds.splits(group, rate))
            agnostic = bounds.renyi_agnostic(alpha, noise, rate, group)
            yield *known, tight, agnostic, bounds.renyi_posthoc(alpha, group, one)
