"""The bounds of other accountants next to ours, on the same questions.

The others, dp-accounting and prv-accountant, are no requirement of this package: they are imported only when asked.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import Field

from dpsub import checks, sampling
from dpsub.accounting.account import account
from dpsub.errors import UnsupportedError
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import (
    Closed,
    Delta,
    ExperimentSettings,
    FrameSize,
    NoiseMultiplier,
    Parts,
    Positive,
    Releases,
    SamplerName,
    SampleSize,
    Several,
)  # fmt: skip

Ends = tuple[float, float]
"""Lower and upper answer; NaN for an end that a method does not give."""

PACKAGES = {
    "dp_accounting": "dp-accounting", "dp_accounting.rdp": "dp-accounting",
    "dp_accounting.pld.privacy_loss_distribution": "dp-accounting",
    "prv_accountant": "prv-accountant", "prv_accountant.privacy_random_variables": "prv-accountant",
}  # fmt: skip
"""Module -> the package that it comes with."""


def module(name: str) -> ModuleType:
    """Import a module of `PACKAGES`; UnsupportedError if its package is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as problem:
        raise UnsupportedError(
            f"{PACKAGES[name]} is not installed (no module {problem.name}); install it to compare"
        ) from None


def dots(rate: float, s: float, k: int, delta: float, adjacency: str) -> Ends:
    """dp-accounting's privacy loss distributions: the upper end connects the dots, the lower one rounds losses down."""
    pld = module("dp_accounting.pld.privacy_loss_distribution")
    relation = {"add_remove": "ADD_OR_REMOVE_ONE", "substitute": "REPLACE_ONE"}[adjacency]
    ends = [
        pld.from_gaussian_mechanism(
            s, pessimistic_estimate=upper, use_connect_dots=upper, sampling_prob=rate,
            neighboring_relation=pld.NeighborRel[relation],
        )
        for upper in (False, True)
    ]  # fmt: skip
    low, high = (float(end.self_compose(k).get_epsilon_for_delta(delta)) for end in ends)
    return low, high


def intervals(rate: float, s: float, k: int, delta: float, error: float) -> Ends:
    """prv-accountant's interval of epsilon, its own error of epsilon being `error`."""
    losses = module("prv_accountant.privacy_random_variables")
    variable = losses.PoissonSubsampledGaussianMechanism(sampling_probability=rate, noise_multiplier=s)
    accountant = module("prv_accountant").PRVAccountant(
        variable, max_self_compositions=k, eps_error=error, delta_error=delta / 1000
    )
    low, _, high = accountant.compute_epsilon(delta, k)
    return float(low), float(high)


def moments(n: int, m: int, s: float, k: int, delta: float) -> Ends:
    """dp-accounting's Rényi accountant for sampling without replacement, one record replaced."""
    events, rdp = module("dp_accounting"), module("dp_accounting.rdp")
    step = events.SampledWithoutReplacementDpEvent(n, m, events.GaussianDpEvent(s))
    accountant = rdp.RdpAccountant(neighboring_relation=events.NeighboringRelation.REPLACE_ONE)
    return math.nan, float(accountant.compose(step, k).get_epsilon(delta))


class Case(Closed):
    """One question; Poisson has the rate m/n."""

    sampler: SamplerName
    n: FrameSize = 10_000
    m: SampleSize
    noise_multiplier: NoiseMultiplier
    n_compositions: Releases = 1000
    adjacency: Literal["add_remove", "substitute"] = Field("substitute", description="Which data sets are neighbours.")
    width: Positive = Field(0.002, description="Accuracy of each end that this package is asked for.")
    prv_error: Positive = Field(0.01, description="Error of epsilon that prv-accountant is asked for.")

    def check(self) -> None:
        if self.sampler != "poisson":
            checks.one_of("adjacency", self.adjacency, ("substitute",))


@dataclass(frozen=True)
class Comparison:
    """One question and one tool that answers it, for the noise that it is given."""

    case: Case
    tool: str
    kind: str
    noise: float
    ask: Callable[[], Ends]


def tools(case: Case, delta: float) -> Iterator[Comparison]:
    """Yield what answers a case: this package, then the others that know its sampler and relation.

    The Rényi accountant is asked twice: with the noise in units of the bound C of one record, and of 2 C, by which
    replacing a record moves the sum.
    """
    n, m, s, k, adjacency = case.n, case.m, case.noise_multiplier, case.n_compositions, case.adjacency
    drawn = sampling.of_sizes(case.sampler, n=n, m=m)

    def ours() -> Ends:
        found = account(drawn, n, noise_multiplier=s, steps=k, delta=delta, adjacency=adjacency, width=case.width)
        return found.lower, found.upper

    poisson = case.sampler == "poisson"
    yield Comparison(case, "dpsub", "one number, bracketed" if poisson else "attack and proof", s, ours)
    if poisson:
        ask = partial(dots, m / n, s, k, delta, adjacency)
        yield Comparison(case, "dp-accounting, PLD", "lower and upper bound", s, ask)
        if adjacency == "add_remove":
            error = case.prv_error
            ask = partial(intervals, m / n, s, k, delta, error)
            yield Comparison(case, f"prv-accountant, error {error:g}", "interval", s, ask)
    elif case.sampler == "wor":
        for unit, noise in (("C", s), ("2 C", s / 2)):
            ask = partial(moments, n, m, noise, k, delta)
            yield Comparison(case, f"dp-accounting, RDP, unit {unit}", "upper value", noise, ask)


class PeerBounds(Experiment):
    """epsilon by this package, dp-accounting and prv-accountant; a replicate is one question put to one tool.

    Without one of the packages its rows hold no number, and `note` says so.
    """

    name: ClassVar[str] = "peer_bounds"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "sampler": "str", "adjacency": "str", "n": "int64", "m": "int64",
        "noise_multiplier": "float64", "n_compositions": "int64", "delta": "float64", "tool": "str", "kind": "str",
        "tool_noise": "float64", "lower": "float64", "upper": "float64", "note": "str",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("rigorous",)
    keys: ClassVar[tuple[str, ...]] = ("sampler", "adjacency", "n", "m", "noise_multiplier", "n_compositions", "tool")

    class Settings(ExperimentSettings):
        parts: Parts = 2
        delta: Delta = 1e-5
        cases: Several[Case] = Field(
            (
                Case(sampler="poisson", m=100, noise_multiplier=1, adjacency="add_remove", width=2e-4, prv_error=1e-3),
                Case(sampler="poisson", m=100, noise_multiplier=1, n_compositions=10_000, adjacency="add_remove"),
                Case(sampler="poisson", m=100, noise_multiplier=1, width=2e-4),
                Case(sampler="wor", m=200, noise_multiplier=4),
                Case(sampler="wor", n=30969, m=300, noise_multiplier=2.654),
                Case(sampler="wr", m=200, noise_multiplier=4),
            ),
            description="One entry a question.",
        )

        def check(self) -> None:
            PeerBounds.comparisons(self)

    @staticmethod
    def comparisons(settings: Settings) -> list[Comparison]:
        """Return all questions with all tools that know them, in order."""
        return [found for case in settings.cases for found in tools(case, settings.delta)]

    def replicates(self, settings: Settings) -> int:
        return len(self.comparisons(settings))

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        if self.timed:  # an answer does not pay for the imports
            for name in PACKAGES:
                with suppress(UnsupportedError):
                    module(name)
        asked, rows = self.comparisons(settings), []
        for replicate in run.replicates:
            one, note = asked[replicate], ""
            begin = time.process_time()
            try:
                lower, upper = one.ask()
            except UnsupportedError as reason:
                lower, upper, note = math.nan, math.nan, str(reason)
            seconds = {"seconds": time.process_time() - begin} if self.timed else {}
            facts: dict[str, Any] = {name: getattr(one.case, name) for name in self.columns if hasattr(one.case, name)}
            rows.append({
                "replicate": replicate, **facts, "delta": settings.delta, "tool": one.tool, "kind": one.kind,
                "tool_noise": one.noise, "lower": lower, "upper": upper, "note": note, **seconds,
            })  # fmt: skip
        return self.frame(rows)


class PeerTimes(PeerBounds):
    """As `PeerBounds`, with the processor time of each answer, imports left out."""

    name: ClassVar[str] = "peer_times"
    columns: ClassVar[dict[str, str]] = {**PeerBounds.columns, "seconds": "float64"}
    keys: ClassVar[tuple[str, ...]] = PeerBounds.keys
    timed: ClassVar[bool] = True

    class Settings(PeerBounds.Settings):
        parts: Parts = 1
