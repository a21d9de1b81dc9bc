"""Releases on samples: Algorithm 4 by number of records, and six methods on subsets of Adult and of
Gowalla."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from dpsub.data import individuals
from dpsub.papers.brdp.queries import KINDS, Count, Query
from dpsub.papers.brdp.releases import METHODS, Budget, row, sampled_row
from dpsub.papers.brdp.settings import (
    BUDGET,
    RELEASE,
    Amount,
    Number,
    PanelSettings,
    QueryAnswers,
    QueryName,
    schema,
)
from dpsub.recycling import GaussianKernel, Recycled
from dpsub.recycling.choice import Choice, best_recycler
from dpsub.reproduce.experiment import Grid, Run
from dpsub.reproduce.settings import (
    Closed,
    Delta,
    ExperimentSettings,
    Listed,
    NonNegative,
    Several,
    Share,
)

RULES = {
    "stated": {
        "printed": ("unscaled", "printed"),
        "swapped": ("unscaled", "eq13"),
        "true_error": ("unscaled", "convolution"),
    },
    "consistent": {"corrected": ("scaled", "convolution")},
}
"""By variant and rule: sensitivity and objective of Algorithm 4."""

ALIKE = 1e-9  # of acceptances: a smaller rate that gains no more is no better
WHISKERS = ("low_whisker", "low_box", "median", "high_box", "high_whisker")


class Queries(Closed):
    """One query."""

    query: QueryName
    clip: Amount
    bound: Amount


class BrdpSampling(Grid):
    """Sampling rates and acceptance of sampled releases (Figure 6): a record for each query, number
    of records and rule.

    Rules: "printed" and "swapped" calibrate to the sensitivity at p = 1 and maximise Equation 13,
    as printed and with q and 1 - q exchanged; "true_error" maximises the true acceptance with that
    sensitivity (variant stated). "corrected" has the sensitivity D / p and the true acceptance
    (consistent); "exact" the same with the best release by exact accounting at each of a few rates
    (rigorous). `acceptance` is P(|E + N| <= bound), `exact_delta` what the release has with its
    true sensitivity D / p, `whole` the acceptance of the same rule without sampling.
    """

    name = "brdp_sampling"
    stage = "simulate"
    columns = schema(
        f"query n rule sigma_x share {BUDGET} sampling_rate scale rate claimed acceptance whole "
        "exact_delta"
    )
    variants = ("stated", "consistent", "rigorous")
    keys = ("query", "n", "rule")

    class Settings(ExperimentSettings):
        sigma_x: Amount = 10
        share: Share = Field(0.1, description="Share p_c of records that are counted.")
        epsilon: Amount = 0.1
        delta: Delta = 1e-5
        # From where sampling costs most to where its error vanishes; the paper shows no numbers
        # (BR21).
        sizes: Several[Number] = Field(
            (100, 300, 1000, 3000, 10000, 30000, 100000), description="Numbers of records."
        )
        queries: Several[Queries] = Field(
            (
                Queries(query="sum", clip=1, bound=3),
                Queries(query="avg", clip=22, bound=0.3),
                Queries(query="cnt", clip=1, bound=3),
            ),
            description="Queries with clipping range and bound.",
        )
        # A search by exact accounting for each rate: fewer sizes and rates.
        exact_sizes: Several[Number] = Field(
            (100, 1000, 100000), description="Numbers of records, exact accounting."
        )
        exact_rates: Listed[Annotated[float, Field(gt=0, le=1)]] = Field(
            (0.1, 0.3, 0.6, 0.9), description="Sampling rates that are tried."
        )

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        exact, sigma_x, share = run.variant == "rigorous", settings.sigma_x, settings.share
        for n, chosen in itertools.product(
            settings.exact_sizes if exact else settings.sizes, settings.queries
        ):
            kind = KINDS[chosen.query]
            query = Count.of_share(n, share) if kind is Count else kind(n, chosen.clip, sigma_x)
            # The sensitivity at p = 1, as the paper calibrates.
            cell = Budget(
                sensitivity=query.sensitivity(),
                bound=chosen.bound,
                epsilon=settings.epsilon,
                delta=settings.delta,
            )
            base = {"query": query.name, "n": n, "sigma_x": sigma_x, "share": share, **cell.fields}
            if exact:
                yield {**base, **_exact(query, cell, settings.exact_rates)}
                continue
            # The paper's release without sampling is what Algorithm 4 must beat.
            unsampled = cell.chosen("gau_br").acceptance
            for rule, (sensitivity, objective) in RULES[run.variant].items():
                release = cell.algorithm4(query, sensitivity=sensitivity, objective=objective)
                yield {
                    **base,
                    "rule": rule,
                    "claimed": release.claimed,
                    "whole": unsampled,
                    **sampled_row(query, cell, release.law, release.sampling_rate),
                }


def _exact(query: Query, cell: Budget, rates: tuple[float, ...]) -> dict[str, Any]:
    tried = []
    # p = 1 is always tried: no sampling at all is the claim of BR9.
    for rate in sorted({*rates, 1.0}):
        # Theorem 4 holds at every epsilon of the exact profile, and gives the inner budget.
        inner = cell.inner(rate)
        law = best_recycler(
            GaussianKernel, inner.epsilon, inner.delta, cell.bound, query.sensitivity(rate)
        ).law
        tried.append(sampled_row(query, cell, law, rate))
    accepted = np.array([row["acceptance"] for row in tried])
    # Of rates that are alike the largest one, as sampling has costs of its own.
    best = tried[int(np.flatnonzero(accepted >= accepted.max() - ALIKE)[-1])]
    return {
        "rule": "exact",
        "claimed": best["acceptance"],
        "whole": tried[-1]["acceptance"],
        **best,
    }


class QueryPanel:
    """One panel at one epsilon: its budget, its query on the subsets, and the releases of the six
    methods.

    The sampled ones calibrate to the unscaled sensitivity and maximise Equation 13 with q and 1 - q
    exchanged, for the mean spread of the subsets.
    """

    def __init__(
        self,
        settings: QueryExperiment.Settings,
        panel: PanelSettings,
        epsilon: float,
        subsets: np.ndarray,
    ) -> None:
        self.cell = Budget.of(panel, epsilon=epsilon, delta=settings.delta)
        counted = panel.query == "cnt"
        # A count is a sum of indicators with clipping bound 1.
        self.values = (subsets > settings.count_above).astype(float) if counted else subsets
        queries = [
            KINDS[panel.query].of_values(part, 1.0 if counted else panel.clip)
            for part in self.values
        ]
        self.queries, self.spread = queries, float(np.mean([query.spread for query in queries]))
        # One sampling rate serves all subsets, chosen for their mean spread.
        self.sampled = self.cell.algorithm4(replace(queries[0], spread=self.spread))

    def described(self, method: str) -> tuple[Recycled, dict[str, Any]]:
        """Return a method's noise, and the fields that describe it in a record."""
        if not method.endswith("smp"):
            chosen = self.cell.chosen(method)
            return chosen.law, {**row(method, chosen), "sampling_rate": 1.0}
        rate = self.sampled.sampling_rate
        inner = self.cell.inner(rate)
        # The paper chooses the sampling rate for the Gaussian kernel, and Laplace noise takes it
        # over.
        law = self.sampled.law if method == "gau_smp" else inner.chosen("lap_br").law
        # the query whose sensitivity at p = 1 is the panel's: what the release on a sample is held
        # against
        first = self.queries[0]
        query = replace(first, clip=self.cell.sensitivity / first.per_record, spread=self.spread)
        return law, {
            **sampled_row(query, self.cell, law, rate),
            "method": method,
            "epsilon_y": Choice(law, inner.epsilon, inner.delta, "paper").kernel_epsilon,
            # Sampling error and noise are independent: variances add up.
            "sd": float(np.hypot(law.sd, query.stated_sampling_sd(rate))),
        }

    def errors(
        self, law: Recycled, rate: float, repeats: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Return released less true answers, shape (subsets, repeats)."""
        return np.array(
            [
                # Samples have a fixed size, for which Proposition 6 and substitution hold (BR16).
                query.estimates(values, max(1, round(rate * query.n)), repeats, rng)
                - query.answer(values)
                + law.draw(repeats, rng)
                for query, values in zip(self.queries, self.values, strict=True)
            ]
        )


class QueryExperiment(Grid):
    """Six methods on subsets of one data set.

    A "box" record has the quantiles of released less true answers, pooled over subsets, and the
    share within the bound (`drawn`); a "curve" record has the acceptance alone. Without sampling
    neither depends on the data.
    """

    stage = "simulate"
    columns = schema(
        f"panel view query stated_epsilon {BUDGET} {RELEASE} sampling_rate drawn low_whisker "
        "low_box median high_box high_whisker spread n_individuals n_subsets n_repeats "
        "box_mass_pct whisker_mass_pct n_records n_events n_attributes"
    )
    variants = ("stated",)
    axes = ("panels",)
    keys = ("panel", "epsilon", "method")

    class Settings(ExperimentSettings, QueryAnswers):
        count_above: NonNegative = Field(0, description="Values above it are counted.")

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        (path,) = run.data.values()
        people = individuals.load(path)
        size = settings.individuals // settings.subsets
        # Named by the size alone: all panels and methods see the same subsets.
        rng = run.streams.data({"size": size}, 0)
        subsets = individuals.disjoint_subsets(people.values, size, settings.subsets, rng)
        # Shares in percent, half of each on either side of the median.
        box, whisker = settings.box_mass_pct / 200, settings.whisker_mass_pct / 200
        levels = [0.5 - whisker, 0.5 - box, 0.5, 0.5 + box, 0.5 + whisker]
        base = {
            "n_individuals": subsets.size,
            "n_subsets": len(subsets),
            "n_repeats": settings.repeats,
            "box_mass_pct": settings.box_mass_pct,
            "whisker_mass_pct": settings.whisker_mass_pct,
            "n_records": len(people.values),
            "n_events": people.events,
            "n_attributes": people.attributes,
        }
        for panel in settings.panels:
            for epsilon in [panel.epsilon] if panel.view == "box" else panel.epsilons:
                shown = QueryPanel(settings, panel, epsilon, subsets)
                for method in METHODS:
                    law, facts = shown.described(method)
                    # Curves draw no answers: acceptance follows from the law.
                    drawn, quantiles = -1.0, np.zeros(len(WHISKERS))
                    if panel.view == "box":
                        # The stream is named by panel and method, so that adding a panel changes no
                        # other.
                        rng = run.streams.noise({"panel": panel.panel, "method": method}, 0)
                        errors = shown.errors(law, facts["sampling_rate"], settings.repeats, rng)
                        drawn = float((np.abs(errors) <= shown.cell.bound).mean())
                        quantiles = np.quantile(errors, levels)
                    yield {
                        **base,
                        "panel": panel.panel,
                        "view": panel.view,
                        "query": panel.query,
                        "spread": shown.spread,
                        "stated_epsilon": panel.epsilon,
                        "drawn": drawn,
                        **shown.cell.fields,
                        **facts,
                        **dict(zip(WHISKERS, quantiles, strict=True)),
                    }


class BrdpAdult(QueryExperiment):
    """Capital gains in thousands of dollars (Figure 7)."""

    name = "brdp_adult"
    needs_data = ("adult_gains",)


class BrdpGowalla(QueryExperiment):
    """Days between the first and the last check-in of a user (Figure 8)."""

    name = "brdp_gowalla"
    needs_data = ("gowalla",)

    class Settings(QueryExperiment.Settings):
        count_above: NonNegative = Field(150, description="Days above which a user is counted.")
