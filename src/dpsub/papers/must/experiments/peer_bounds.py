"""The bounds of other accountants next to ours, on the same questions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from dpsub import checks, sampling
from dpsub.accounting.account import account
from dpsub.papers.must.experiments import other_accountants
from dpsub.papers.must.experiments.other_accountants import Ends
from dpsub.reproduce.experiment import Experiment


@dataclass(frozen=True)
class Comparison:
    """One question and one tool that answers it."""

    case: Mapping[str, Any]
    tool: str
    kind: str
    noise: float
    ask: Callable[[], Ends]


def tools(case: Mapping[str, Any], delta: float) -> Iterator[Comparison]:
    """Yield what answers a case: this package, then the others that know its sampler and relation.

    The Rényi accountant is asked twice: with the noise in units of the bound C of one record, and of 2 C, by which
    replacing a record moves the sum.
    """
    n, m, s, k, adjacency = (case[name] for name in ("n", "m", "noise_multiplier", "n_compositions", "adjacency"))
    drawn = sampling.of_sizes(case["sampler"], n=n, m=m)

    def ours() -> Ends:
        found = account(
            drawn, n, noise_multiplier=s, steps=k, delta=delta, adjacency=adjacency, width=case["width"]
        )
        return found.lower, found.upper

    poisson = case["sampler"] == "poisson"
    yield Comparison(case, "dpsub", "one number, bracketed" if poisson else "attack and proof", s, ours)
    if poisson:
        ask = partial(other_accountants.dots, m / n, s, k, delta, adjacency)
        yield Comparison(case, "dp-accounting, PLD", "lower and upper bound", s, ask)
        if adjacency == "add_remove":
            error = case["prv_error"]
            ask = partial(other_accountants.intervals, m / n, s, k, delta, error)
            yield Comparison(case, f"prv-accountant, error {error:g}", "interval", s, ask)
    elif case["sampler"] == "wor":
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

    def comparisons(self, settings: Mapping[str, Any]) -> list[Comparison]:
        """Return all questions with all tools that know them, in order."""
        delta = checks.real("delta", settings["delta"], above=0, below=1)
        return [found for case in settings["cases"] for found in tools(case, delta)]

    def replicates(self, settings: Mapping[str, Any]) -> int:
        return len(self.comparisons(settings))

    def check(self, settings: Mapping[str, Any]) -> None:
        for case in settings["cases"]:
            checks.real("noise_multiplier", case["noise_multiplier"], above=0)
            checks.integer("n_compositions", case["n_compositions"], at_least=1)
            for name in ("width", "prv_error"):
                checks.real(name, case[name], above=0)
            if case["sampler"] != "poisson":
                checks.one_of("adjacency", case["adjacency"], ("substitute",))
        self.comparisons(settings)

    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        asked = self.comparisons(settings)
        if self.timed:
            other_accountants.load()
        return self.frame([self._row(replicate, asked[replicate], settings["delta"]) for replicate in replicates])

    def _row(self, replicate: int, asked: Comparison, delta: float) -> dict[str, Any]:
        begin = time.process_time()
        (lower, upper), note = other_accountants.answered(asked.ask)
        seconds = time.process_time() - begin
        facts = {name: asked.case[name] for name in self.columns if name in asked.case}
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
