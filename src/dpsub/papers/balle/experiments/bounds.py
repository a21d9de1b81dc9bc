"""The bounds on a grid, next to exact losses and to the best possible ones (Balle et al., Table 1
and Theorem 14)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from dpsub import checks, noise
from dpsub.amplification import DeclaredProfile
from dpsub.divergences import worst_mechanism
from dpsub.noise import BlackBoxGroups, PointGuarantee, Profile
from dpsub.papers.balle import universes
from dpsub.papers.balle.settings import KeepProbability, Tiny, TinyM, TinyN, schema
from dpsub.papers.balle.small_universes import BY_SIZE, ROWS, TRIPLES, BoundRow, bound_of, compare
from dpsub.relations import Relation
from dpsub.reproduce.experiment import Grid, Run
from dpsub.reproduce.settings import (
    Epsilons,
    ExperimentSettings,
    Listed,
    Mechanisms,
    Positive,
    Probability,
    Rates,
    Sizes,
)

SPREAD = (0.0, 0.25, 0.5, 0.75, 1.0)  # values of the records in a sum
SINGLE = (1.0, 0.0, 0.0, 0.0, 0.0)  # all records but one contribute nothing
OUTCOMES = 3
# our bounds stand behind the printed ones that they complete
OWN = {"Theorem 8": TRIPLES, "Theorem 14": BY_SIZE}
TIE = 1e-12  # optima closer than this are equal up to the solver's accuracy


class BalleBounds(Grid):
    """delta' at each epsilon' for every row, size, mechanism, and both ways to bound groups."""

    name = "balle_bounds"
    stage = "account"
    columns = schema(
        "theorem sampler base_relation relation n sampling_rate mechanism ratio groups eta "
        "epsilon_amplified epsilon delta_amplified"
    )
    variants = ("stated",)
    axes = ("n", "sampling_rates", "mechanisms", "ratios")
    keys = ("theorem", "n", "sampling_rate", "mechanism", "ratio", "groups", "epsilon_amplified")

    class Settings(ExperimentSettings):
        n: Sizes = Field((1000,), description="Sizes of the data set.")
        sampling_rates: Rates = Field((0.01, 0.1), description="Rates gamma; m = gamma n.")
        ratios: Listed[Positive] = Field((1,), description="Sensitivity over noise scale.")
        mechanisms: Mechanisms = ("laplace", "gaussian")
        epsilon_amplified: Epsilons = Field((0, 0.05, 0.1, 0.2), description="epsilon' in nats.")

        def check(self) -> None:
            for n, rate in itertools.product(self.n, self.sampling_rates):
                checks.integer(
                    # gamma and m = gamma n compare samplers at one size: it must be whole.
                    f"sampling rate {rate:g} times n = {n}",
                    round(rate * n, 9),
                    at_least=1,
                )
            for mechanism, ratio in itertools.product(self.mechanisms, self.ratios):
                noise.of(mechanism, ratio)

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        targets = np.array(settings.epsilon_amplified, dtype=float)
        sizes = itertools.product(settings.n, settings.sampling_rates, ROWS)
        for (n, rate, theorem), mechanism, ratio in itertools.product(
            sizes, settings.mechanisms, settings.ratios
        ):
            bound = bound_of(
                theorem, n=n, size=rate if ROWS[theorem][0] == "poisson" else round(rate * n)
            )
            profile = noise.of(mechanism, ratio)
            # Panel (e)'s comparison, as numbers.
            for groups, base in (("white_box", profile), ("black_box", BlackBoxGroups(profile))):
                yield {
                    "theorem": theorem,
                    "sampler": bound.sampler,
                    "base_relation": bound.base_relation.value,
                    "relation": bound.relation.value,
                    "n": n,
                    "sampling_rate": rate,
                    "mechanism": mechanism,
                    "ratio": ratio,
                    "groups": groups,
                    "eta": bound.eta,
                    "epsilon_amplified": targets,
                    "epsilon": bound.epsilon_base(targets),
                    "delta_amplified": bound.delta(DeclaredProfile.of(base, *Relation), targets),
                }


def rows_of(settings: Any, *, own: bool = False) -> Iterator[BoundRow]:
    """Yield the theorems at all configured sizes at which they speak; with `own` also our bounds
    that complete them."""
    for n in settings.n:
        sizes = [(name, rate) for rate in settings.rates for name in ("Theorem 8", "Theorem 14")]
        sizes += [
            (f"Theorem {number}", m)
            for m in settings.m
            for number in (9, 10, 11)
            # Drawing with replacement allows m > n.
            if m <= n or number != 9
        ]
        for theorem, size in sizes:
            yield BoundRow(theorem, n, float(size))
            if own and theorem in OWN:
                yield BoundRow(OWN[theorem], n, float(size))


@dataclass(frozen=True)
class PrintedResponse(Profile):
    """The printed profile of randomised response, max(0, p - exp(epsilon) (1 - p)), also below
    epsilon = 0."""

    keep_probability: float

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        order, _ = np.broadcast_arrays(np.asarray(epsilon, dtype=float), np.asarray(occurrences))
        p = self.keep_probability
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(0.0, p - np.exp(order) * (1 - p)))[()]


class BalleEnumeration(Grid):
    """One record for each theorem, size, kernel and base epsilon: the bound and the largest loss of
    all neighbours.

    Variants: `stated` evaluates Theorem 14 for membership with the printed profile, also where its
    argument is negative; `consistent` evaluates every bound with the exact profile of the kernel.
    """

    name = "balle_enumeration"
    stage = "account"
    columns = schema(
        "theorem kernel n size grows epsilon epsilon_amplified eta formula distance bound exact "
        "reverse reverse_bound"
    )
    variants = ("stated", "consistent")
    keys = ("theorem", "kernel", "n", "size", "grows", "epsilon")

    class Settings(ExperimentSettings, Tiny):
        epsilons: Epsilons = (0, 0.1, 0.5, 1, 2)
        keep_probability: KeepProbability = 0.75
        kernels: Annotated[int, Field(ge=1, le=1_000)] = Field(
            3, description="Random mechanisms a size."
        )

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        # One stream for all variants: they meet the same random mechanisms.
        rng = run.streams.data({}, 0)
        for row in rows_of(settings, own=True):
            # The statement is for data sets of n records and any neighbour: one record less, or one
            # more.
            for each in (row, replace(row, grow=True)) if row.theorem == "Theorem 11" else (row,):
                for name, kernel in _kernels(each.space, settings, rng):
                    yield from _enumerated(
                        each, name, kernel, settings, stated=run.variant == "stated"
                    )


def _kernels(
    space: universes.Space, settings: BalleEnumeration.Settings, rng: np.random.Generator
) -> Iterator[tuple[str, np.ndarray]]:
    p = settings.keep_probability
    yield "membership", universes.membership_kernel(space, 0, p)
    if space.relation is Relation.SUBSTITUTE:
        yield "size and membership", universes.size_and_membership_kernel(space, 0, p)
    for number in range(settings.kernels):
        yield f"random {number + 1}", universes.dirichlet_kernel(space, OUTCOMES, rng)
    for name, (kind, values) in itertools.product(
        ("laplace", "gaussian"), (("sum", SPREAD), ("single", SINGLE))
    ):
        yield f"{name} {kind}", universes.noisy_sum_kernel(space, name, values, 1.0)


def _enumerated(
    row: BoundRow,
    name: str,
    kernel: np.ndarray,
    settings: BalleEnumeration.Settings,
    *,
    stated: bool,
) -> Iterator[dict[str, Any]]:
    eta, distances = row.bound.eta, row.distances_in_law()
    # The pair that departs most from eta: the claim is about all pairs.
    worst = np.argmax(distances if row.grow else np.abs(distances - eta))
    # the inclusion probability by its formula in Table 1
    formula = {"poisson": row.size, "wor": row.size / row.n, "wr": 1 - (1 - 1 / row.n) ** row.size}[
        row.bound.sampler
    ]
    for comparison in compare(row, kernel, settings.epsilons):
        bound, target = comparison.bound, comparison.epsilon_amplified
        if stated and name.endswith("membership") and row.theorem == "Theorem 14":
            printed = DeclaredProfile.of(
                PrintedResponse(settings.keep_probability), row.bound.base_relation
            )
            bound = float(row.bound.delta(printed, target))
        yield {
            "theorem": row.theorem,
            "kernel": name,
            "n": row.n,
            "size": row.size,
            "grows": row.grow,
            "epsilon": comparison.epsilon,
            "epsilon_amplified": target,
            "eta": eta,
            "formula": formula,
            "distance": distances[worst],
            "bound": bound,
            "exact": comparison.exact,
            "reverse": comparison.reverse,
            "reverse_bound": math.exp(target - comparison.epsilon) * eta * comparison.base_delta,
        }


class BalleOptimum(Grid):
    """The bound for all (epsilon0, delta0)-DP mechanisms next to the largest divergence that any of
    them has.

    Epsilon is the base epsilon at which both are evaluated, a share of epsilon0.
    """

    name = "balle_optimum"
    stage = "account"
    columns = schema(
        "theorem n size epsilon0 delta0 share epsilon_amplified bound optimum dual direction"
    )
    variants = ("rigorous",)
    axes = ("n", "epsilon0", "delta0", "shares")
    keys = ("theorem", "n", "size", "epsilon0", "delta0", "share")

    class Settings(ExperimentSettings):
        n: Listed[TinyN] = (4,)
        m: Listed[TinyM] = (2, 3)
        rates: Rates = (0.1, 0.5)
        epsilon0: Listed[Positive] = Field(
            (0.5, 1), description="epsilon of the base guarantee, in nats."
        )
        delta0: Listed[Probability] = Field((0, 0.01), description="delta of the base guarantee.")
        shares: Epsilons = Field((0, 0.5, 1), description="Base epsilons as shares of epsilon0.")

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        points = list(itertools.product(settings.epsilon0, settings.delta0, settings.shares))
        for row, (epsilon0, delta0, share) in itertools.product(
            rows_of(settings, own=True), points
        ):
            # all pairs of neighbours are alike but for names of records, which the class of
            # mechanisms does not know
            first, second = (laws[0] for laws in row.laws)
            # The mechanism's guarantee is one point (epsilon0, delta0), as in the definition of DP.
            base = DeclaredProfile.of(PointGuarantee(epsilon0, delta0), row.space.relation)
            target = float(row.bound.epsilon_amplified(share * epsilon0))
            forward, backward = (
                worst_mechanism(
                    *pair, row.space.neighbours(), epsilon0, delta0, float(np.exp(target))
                )
                for pair in ((first, second), (second, first))
            )
            worst = max(forward, backward, key=lambda direction: direction.divergence)
            direction = "forward" if worst is forward else "backward"
            yield {
                "theorem": row.theorem,
                "n": row.n,
                "size": row.size,
                "epsilon0": epsilon0,
                "delta0": delta0,
                "share": share,
                "epsilon_amplified": target,
                "bound": float(row.bound.delta(base, target)),
                "optimum": worst.divergence,
                "dual": worst.dual,
                "direction": direction
                if abs(forward.divergence - backward.divergence) > TIE
                else "either",
            }
