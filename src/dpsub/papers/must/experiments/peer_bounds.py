"""The bounds of other accountants next to ours, on the same questions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import Field

from dpsub import checks, sampling
from dpsub.accounting.account import account
from dpsub.papers.must.experiments import other_accountants
from dpsub.papers.must.experiments.other_accountants import Ends
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
)


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
    """One question and one tool that answers it."""

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
        found = account(
            drawn, n, noise_multiplier=s, steps=k, delta=delta, adjacency=adjacency, width=case.width
        )
        return found.lower, found.upper

    poisson = case.sampler == "poisson"
    yield Comparison(case, "dpsub", "one number, bracketed" if poisson else "attack and proof", s, ours)
    if poisson:
        ask = partial(other_accountants.dots, m / n, s, k, delta, adjacency)
        yield Comparison(case, "dp-accounting, PLD", "lower and upper bound", s, ask)
        if adjacency == "add_remove":
            error = case.prv_error
            ask = partial(other_accountants.intervals, m / n, s, k, delta, error)
            yield Comparison(case, f"prv-accountant, error {error:g}", "interval", s, ask)
    elif case.sampler == "wor":
        for unit, noise in (("C", s), ("2 C", s / 2)):
            ask = partial(other_accountants.moments, n, m, noise, k, delta)
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

    class Settings(ExperimentSettings):
        parts: Parts = 2
        delta: Delta = 1e-5
        cases: Several[Case] = Field(
            (
                Case(
                    sampler="poisson", m=100, noise_multiplier=1, adjacency="add_remove", width=2e-4, prv_error=1e-3
                ),
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
        asked = self.comparisons(settings)
        if self.timed:
            other_accountants.load()
        return self.frame([self._row(replicate, asked[replicate], settings.delta) for replicate in run.replicates])

    def _row(self, replicate: int, asked: Comparison, delta: float) -> dict[str, Any]:
        begin = time.process_time()
        (lower, upper), note = other_accountants.answered(asked.ask)
        seconds = time.process_time() - begin
        facts = {name: getattr(asked.case, name) for name in self.columns if hasattr(asked.case, name)}
        row = {
            "replicate": replicate, **facts, "delta": delta, "tool": asked.tool, "kind": asked.kind,
            "tool_noise": asked.noise, "lower": lower, "upper": upper, "note": note,
        }  # fmt: skip
        return {**row, "seconds": seconds} if self.timed else row


class PeerTimes(PeerBounds):
    """As `PeerBounds`, with the processor time of each answer, imports left out."""

    name: ClassVar[str] = "peer_times"
    columns: ClassVar[dict[str, str]] = {**PeerBounds.columns, "seconds": "float64"}
    timed: ClassVar[bool] = True

    class Settings(PeerBounds.Settings):
        parts: Parts = 1
