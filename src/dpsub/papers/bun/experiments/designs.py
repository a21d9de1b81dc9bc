"""The design advisor on a simulated frame, and allocation rules at one promise (Bun et al.,
Equations 7 and 8)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import checks
from dpsub.amplification.survey.advisor import FrameTable, advise, neyman_change
from dpsub.amplification.survey.sizes import rounding_base
from dpsub.papers.bun import strata
from dpsub.papers.bun.experiments.bounds import BaseEpsilons
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import ExperimentSettings, Share
from dpsub.sampling import allocation
from dpsub.sampling.allocation import exact_rate
from dpsub.sampling.frame import Frame

ALLOCATION_SHARE = 0.25
"""Share of the promise that noisy weights N_i S_i spend before the sample is drawn."""
NUMBERS = (
    "lower",
    "upper",
    "exact",
    "size_mean",
    "size_sd",
    "sampling",
    "noise",
    "base",
    "noise_at_target",
)
Rules = Sequence[Sequence[int]]


def simulated_frame(rng: np.random.Generator, n: int, n_strata: int, n_clusters: int) -> FrameTable:
    """Return records with log-normal sizes, cut into strata of falling numbers by size, in clusters
    of unequal size."""
    sizes = np.sort(np.round(np.exp(rng.normal(3.0, 1.0, n)), 2))
    shares = np.cumsum(2.0 ** -np.arange(n_strata))
    limits = np.round(n * shares / shares[-1]).astype(int)
    labels = np.searchsorted(limits, np.arange(n), side="right")
    clusters = np.concatenate(
        [np.arange(n_clusters), rng.integers(n_clusters, size=n - n_clusters)]
    )
    frame = Frame(n, strata=labels, clusters=clusters, sizes=sizes)
    return FrameTable(frame, sizes, tuple(f"class {i + 1}" for i in range(n_strata)), None)


class BunDesigns(Experiment):
    """Topic "advice": one record for each design and epsilon. Topic "menu": allocation rules at one
    promise.

    -1 stands for what a design has no number for.
    """

    name: ClassVar[str] = "bun_designs"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "topic": "str",
        "design": "str",
        "relation": "str",
        "epsilon": "float64",
        "note": "str",
        **dict.fromkeys(NUMBERS, "float64"),
    }
    axes: ClassVar[tuple[str, ...]] = ("epsilons",)
    keys: ClassVar[tuple[str, ...]] = ("topic", "design", "epsilon")
    variants: ClassVar[tuple[str, ...]] = ("rigorous",)

    class Settings(ExperimentSettings):
        n: Annotated[int, Field(ge=20, le=100_000)] = Field(
            1200, description="Records of the simulated frame."
        )
        strata: Annotated[int, Field(ge=2, le=8)] = Field(4, description="Size classes.")
        clusters: Annotated[int, Field(ge=2)] = Field(60, description="Clusters of unequal size.")
        rate: Share = Field(0.1, description="Share of the records drawn.")
        epsilons: BaseEpsilons = (0.1, 1)

        def check(self) -> None:
            k = checks.integer("strata", self.strata, at_least=2, at_most=self.n // 10)
            checks.integer("clusters", self.clusters, at_least=2, at_most=self.n // 2)
            # the smallest stratum, for which Theorem 7.2 needs a record in the mean
            checks.real(
                "rate n / (2^strata - 1)",
                float(exact_rate(self.rate)) * self.n / (2**k - 1),
                at_least=1,
            )

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        sizes = (settings.n, settings.strata, settings.clusters)
        table = simulated_frame(run.streams.data({"sizes": sizes}, 0), *sizes)
        rows: list[dict[str, Any]] = []
        for epsilon in settings.epsilons:
            advice = advise(table, rate=settings.rate, epsilon=epsilon)[0]
            rows += [
                {
                    "topic": "advice",
                    "epsilon": epsilon,
                    **{
                        name: getattr(design, name)
                        for name in ("design", "relation", "note", *NUMBERS)
                    },
                }
                for design in advice
            ]
            rows += menu(table, settings.rate, epsilon, run.streams.noise({"epsilon": epsilon}, 0))
        return self.frame(
            pd.DataFrame(rows).assign(replicate=0).fillna(dict.fromkeys(NUMBERS, -1.0))
        )


def menu(
    table: FrameTable, rate: float, target: float, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Yield rules at one promise, worst of three populations: as simulated, more spread on top,
    more records on top."""
    counts = table.frame.stratum_sizes.tolist()
    values = [table.values[table.frame.needed("strata") == h] for h in range(len(counts))]
    deviations = [float(part.std(ddof=1)) for part in values]
    scenarios = [
        strata.Scenario(tuple(counts), tuple(deviations)),
        strata.Scenario(tuple(counts), (*deviations[:-1], 2 * deviations[-1])),
        strata.Scenario((*counts[:-1], 2 * counts[-1]), tuple(deviations)),
    ]
    m, limit = round(float(exact_rate(rate)) * table.frame.n), float(table.values.max())
    first = ALLOCATION_SHARE * target
    public = {
        "proportional": allocation.proportional(counts, m),
        "Neyman": allocation.neyman(counts, deviations, m),
        "square root of N": allocation.allocate(counts, np.sqrt(counts), m),
    }
    rounded = [allocation.proportional(s.sizes, m) for s in scenarios]
    noisy = [
        allocation.allocate(
            s.sizes, strata.private_weights(s.sizes, s.deviations, limit, first, rng), m
        )
        for s in scenarios
    ]
    own = [allocation.neyman(s.sizes, s.deviations, m) for s in scenarios]
    change = neyman_change(values, own[0])
    # the allocation by each rule in each scenario, and the base epsilon that it allows in one of
    # them
    offered: dict[str, tuple[Rules, Callable[[Sequence[int], Sequence[int]], float]]] = {
        **{
            f"{name}, public": (
                [rule] * 3,
                lambda rule, _: strata.base_for_public(rule, counts, target),
            )
            for name, rule in public.items()
        },
        "proportional, randomised rounding": (rounded, lambda *_: rounding_base(rate, target)),
        # given the noisy weights the allocation is fixed; what they cost adds up with the sample's
        # loss
        "Neyman, noisy weights": (
            noisy,
            lambda rule, sizes: strata.base_for_public(rule, sizes, target - first),
        ),
        "Neyman, from the data, at best": (
            own,
            lambda rule, sizes: strata.base_for_certificate(rule, sizes, change, target),
        ),
    }
    for name, (rules, base_for) in offered.items():
        base = min(base_for(rule, s.sizes) for rule, s in zip(rules, scenarios, strict=True))
        # the rule with the smallest of these worst totals is the answer to Equations 7 and 8 over
        # this menu
        sampling, noise = max(
            (
                (s.sampling_variance(rule), s.noise_variance(rule, base, limit))
                for rule, s in zip(rules, scenarios, strict=True)
            ),
            key=sum,
        )
        yield {
            "topic": "menu",
            "design": name,
            "relation": "as the rule's theorem",
            "epsilon": target,
            "note": "mean, worst of three populations",
            **dict.fromkeys(NUMBERS, math.nan),
            "upper": target,
            "size_mean": m,
            "size_sd": 0.0,
            "sampling": sampling,
            "noise_at_target": noise,
            "base": base,
        }
