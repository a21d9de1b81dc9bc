"""Tables: the best samplers at equal privacy, all measures, noise for a target, and rankings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

import pandas as pd

from dpsub.papers.fair.paired import fair_contests, in_variants, keys_of, label_of
from dpsub.papers.fair.settings import TASKS
from dpsub.reproduce import statistics, tables
from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.experiments import comparisons
from dpsub.reproduce.labels import listed, number_kind
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.paired import REFERENCE, with_interval
from dpsub.reproduce.records import NO_FIRST_STAGE
from dpsub.reproduce.statistics import Estimate, estimate_row
from dpsub.reproduce.study.contests import Contest
from dpsub.reproduce.tables import Column, Part, Row

COMPARISON = "fair_comparison"
STATED = comparisons()
"""Comparisons of other papers at one stated epsilon', by experiment; empty without them."""
WITH_STATED = (COMPARISON, *STATED)


def ranked(artefact: Artefact, records: Records) -> list[Contest]:
    """Return the contests that an artefact of the experiments `WITH_STATED` shows."""
    stated = {
        comparison.dataset: comparison.losses(artefact.needed(records, experiment))
        for experiment, comparison in STATED.items()
    }
    return in_variants(artefact.needed(records, COMPARISON), stated)


class FairTable(tables.Table):
    """A table of the comparison, a panel for each data set and target."""

    keys: ClassVar[tuple[str, ...]] = ("dataset", "epsilon", "sampler")
    layout = Layout(panels=("dataset", "epsilon"), stub=("sampler",), heads=("column",))

    def number_kind(self, column: str, variant: str) -> str:
        """Return the kind of a privacy number: epsilon is attained or proved for a noise, whichever
        variant chose that noise."""
        if column.startswith("epsilon"):
            # The papers' pair chooses the noise, but the bound for that noise is proved.
            return number_kind(column, "rigorous")
        if column.startswith(("noise_add", "noise_zero")):
            return number_kind("noise_proved", variant)
        return number_kind(column, variant)


class Winners(FairTable):
    """The samplers with the smallest loss at the same privacy."""

    title = "Which sampler is best at equal proved privacy"
    name = "winners"
    caption = (
        "Samplers at the same target for all steps together. The noise is set by the proved bound "
        "under substitution (rigorous), or by the papers' pair, which is not a guarantee "
        "(consistent). Loss is the test log loss for classification, and otherwise the Euclidean "
        "error of the coefficients or of the mean: means over seeds with standard errors and 95 % "
        "Student intervals. Differences from Poisson are paired by seed; the level of 95 % holds "
        "for each interval on its own. A sampler is among the best (1) unless another one is shown "
        "to be better by Holm's procedure over all pairs of samplers in a block at 5 %. More than "
        "one 1 in a block is a tie."
    )
    experiments = (COMPARISON,)

    def rows(self, records: Records) -> list[Row]:
        compared = fair_contests(self.needed(records, COMPARISON))
        return [row for contest in compared for row in _winners(contest)]


def _winners(contest: Contest) -> Iterator[Row]:
    variant, source = contest.variant, contest.source
    # rank 1 means that no other sampler is shown to be better, not that this one is the best
    best = [name for name, rank in contest.ranks.items() if rank == 1]
    tie = f"the best: {listed(map(label_of, best))}" + (", not told apart" if len(best) > 1 else "")
    measure = TASKS[str(contest.place["dataset"])].measure.replace("_", " ")
    for sampler, rank in contest.ranks.items():
        row = {**keys_of(contest), "sampler": sampler}
        loss = with_interval(contest.losses[sampler].to_numpy())
        yield estimate_row(row, "loss", variant, loss, noted(source, measure))
        # A grid may leave Poisson out: then losses stand without differences.
        if sampler != REFERENCE and REFERENCE in contest.samplers:
            difference = contest.difference(sampler)
            yield estimate_row(row, "difference_to_poisson", variant, difference, source)
        yield {
            **row,
            "column": "among_the_best",
            "variant": variant,
            "value": float(rank == 1),
            "note": noted(source, tie),
        }


def noted(*parts: str) -> str:
    """Return a note that joins its parts without the empty ones."""
    return "; ".join(filter(None, parts))


def first(name: str) -> Callable[[pd.DataFrame], float]:
    """Return the function for a group's first number, NaN where not all are numbers."""
    return lambda group: float(group[name].iloc[0]) if group[name].notna().all() else math.nan


def coverage(group: pd.DataFrame) -> Estimate:
    """Return the share of seeds whose interval covers the truth, with its exact (Clopper and
    Pearson) interval."""
    covered = group["covered"]
    # Only the bootstrap has intervals; trained models leave the column blank.
    if covered.isna().any():
        return Estimate(math.nan, math.nan, 0)
    share = statistics.proportion(int(covered.sum()), len(covered))
    # The binomial standard error next to the exact interval, as other rows have one.
    standard_error = math.sqrt(share.value * (1 - share.value) / share.replicates)
    return replace(share, standard_error=standard_error)


class Measures(FairTable):
    """Utility, cost and privacy of every sampler on every task."""

    title = "Utility, cost and proved privacy of every sampler"
    name = "measures"
    caption = (
        "Utility on the test part of each seed's split (linear model: error of the coefficients; "
        "bootstrap: error, and width and coverage of 95 % intervals for the population mean); "
        "distinct gradients per step, observed and expected; the noise multiplier (scale of the "
        "noise on the sum divided by the norm bound); and, for this noise, the ε that an attack "
        "attains (lower) and the ε that is proved (upper) at the target's δ under substitution. "
        "Means over seeds with standard errors and 95 % intervals (Student; Clopper-Pearson for "
        "coverage). The non-private rows clip but add no noise. The papers' pair (consistent) is "
        "not a guarantee: the upper ε is the bound that is proved for its noise."
    )
    keys = ("dataset", "sampler", "epsilon")
    parts = (
        Part(
            COMPARISON,
            {
                **{
                    # A task without a measure has no row of it.
                    name: Column(name, with_interval, drop=True)
                    for name in (
                        "accuracy",
                        "auc",
                        "log_loss",
                        "coefficient_error",
                        "estimate_error",
                        "interval_width",
                        "gradients",
                    )
                },
                "coverage": coverage,
                **{
                    name: first(name)
                    for name in (
                        "noise_multiplier",
                        "epsilon_lower",
                        "epsilon_upper",
                        "gradients_expected",
                    )
                },
            },
            keys={"epsilon": "target_epsilon"},
        ),
    )


class NoiseForTarget(FairTable):
    """Noise multipliers at fixed privacy, proved and refuted."""

    title = "Noise for one target, proved and by the papers' pair"
    name = "noise"
    caption = (
        "Noise multipliers (scale of the noise on the sum divided by the norm bound C of one "
        "record) for one target over all steps. Rigorous: the upper bound under substitution "
        "meets the target. At the necessary noise or less, an attack exceeds the target. "
        "Consistent: the papers' pair meets the target, which is not a guarantee; the two ε "
        "columns are the attained and the proved ε for this noise. ε add remove: proved for the "
        "same noise under add/remove, for samplers of one stage. The last columns: noise for the "
        "target under add/remove, which is computed for some sizes only if a sampler has several "
        "stages, and under zero-out."
    )
    keys = ("dataset", "epsilon", "steps", "sampler", "m", "b")
    layout = Layout(
        panels=("dataset", "epsilon", "steps"), stub=("sampler", "m", "b"), heads=("column",)
    )
    absent: ClassVar[Mapping[str, object]] = {"b": NO_FIRST_STAGE}
    parts = (
        Part(
            "fair_noise",
            {
                name: first(name)
                for name in (  # a cell of the grid may stand in the surface, too
                    "noise_multiplier",
                    "necessary",
                    "epsilon_lower",
                    "epsilon_upper",
                    "epsilon_add_remove",
                    "noise_add_remove",
                    "noise_zero_out",
                )
            },
            keys={"epsilon": "target_epsilon"},
            # 0 stands for no known attack, which is no noise.
            prepare=lambda frame: frame.assign(
                necessary=frame["necessary"].where(frame["necessary"] > 0)
            ),
        ),
    )


class Ranks(FairTable):
    """Ranks with ties, and pairs of samplers in the opposite order."""

    title = "Ranks of the samplers under three notions of equal privacy"
    name = "rankings"
    caption = (
        "Rank of each sampler: 1 plus the number of samplers that are shown to be better, by "
        "Holm's procedure over all pairs at 5 %, so that samplers can share a rank. As stated: the "
        "main paper's experiment at equal ε′ per query (the same for all targets; linear model "
        "and Adult). Consistent: noise for which the papers' pair meets the target. Rigorous: "
        "noise for which the target is proved. Pairs separated: pairs of samplers with one shown "
        "to be better. Pairs reversed: how many of these have the opposite order in the rigorous "
        "comparison."
    )
    experiments = WITH_STATED

    def rows(self, records: Records) -> list[Row]:
        compared = ranked(self, records)
        proved = {
            tuple(contest.place.values()): contest.better
            for contest in compared
            if contest.variant == "rigorous"
        }
        rows: list[Row] = []
        for contest in compared:
            rows += _rankings(contest, proved.get(tuple(contest.place.values()), {}))
        return rows


def _rankings(contest: Contest, proved: Mapping[tuple[str, str], bool]) -> Iterator[Row]:
    """Yield ranks, and how many pairs of samplers are told apart in the order that is not
    `proved`."""
    source = contest.source
    here: Row = {**keys_of(contest), "variant": contest.variant, "note": source}
    for sampler, rank in contest.ranks.items():
        yield {**here, "sampler": sampler, "column": "rank", "value": rank}
    yield {**here, "column": "pairs_separated", "value": sum(contest.better.values())}
    if contest.variant == "rigorous" or not proved:
        return
    # a pair counts where both orders are shown, this one and the opposite one with proved noise
    reversed_pairs = [
        (a, b)
        for a, b in itertools.permutations(contest.samplers, 2)
        if contest.better[a, b] and proved.get((b, a), False)
    ]
    words = [f"{label_of(b)} now before {label_of(a)}" for a, b in reversed_pairs]
    count = len(reversed_pairs)
    yield {**here, "column": "pairs_reversed", "value": count, "note": noted(source, *words)}


class Times(FairTable):
    """Microseconds a step, by sampler."""

    title = "Clock time of a training step"
    name = "times"
    caption = (
        "Clock time of one training step (batch, gradients and noise) on this machine, in "
        "microseconds for one seed at a time, median of several runs, next to the number of "
        "distinct gradients evaluated."
    )
    keys = ("dataset", "sampler")
    layout = Layout(panels=("dataset",), stub=("sampler",), heads=("column",))
    timed = True
    parts = (
        Part(
            "fair_times",
            {
                "microseconds_per_step": lambda group: (
                    1e6 * float(group["seconds_per_step"].mean())
                ),
                "gradients_expected": first("gradients_expected"),
            },
        ),
    )
