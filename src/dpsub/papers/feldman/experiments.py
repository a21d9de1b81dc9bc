"""Our two bounds on epsilon of k of t steps, and the packages' answers judged by them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import Field

import dpsub
from dpsub.papers.feldman.settings import ASKED, LOWER, QUESTIONS, AllocationQuestion
from dpsub.reproduce import published, recording
from dpsub.reproduce import settings as kinds
from dpsub.reproduce.experiment import Grid, Run, columns


def ends(sampler: Any, asked: AllocationQuestion) -> tuple[float, float]:
    """Return both bounds on epsilon where the record is replaced by 0."""
    account = dpsub.account(
        sampler,
        noise_multiplier=asked.noise,
        steps=asked.t,
        delta=asked.delta,
        adjacency="zero_out",
        effort=None,
        quick=True,
    )
    return account.lower, account.upper


class Bounds(Grid):
    """One record for each question: both bounds on epsilon of k of t steps, of k epochs of 1 of t/k
    steps, by which both packages bound it, and of Poisson samples at rate k/t."""

    name = "feldman_bounds"
    stage = "account"
    columns: ClassVar[dict[str, str]] = columns(
        "t k noise delta allocation_lower allocation_upper epochs_lower epochs_upper "
        "poisson_lower poisson_upper",
        text=(),
        whole={"t", "k"},
    )
    variants = ("stated",)
    keys = ASKED

    class Settings(kinds.ExperimentSettings):
        questions: kinds.Several[AllocationQuestion] = Field(QUESTIONS, description="Releases.")

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        for asked in settings.questions:
            t, k = asked.t, asked.k
            samplers = {
                "allocation": dpsub.RandomAllocation(t, k),
                "epochs": dpsub.RandomAllocation(t // k),
                "poisson": dpsub.Poisson(k / t),
            }
            row: dict[str, Any] = asked.model_dump()
            for name, sampler in samplers.items():
                row[f"{name}_lower"], row[f"{name}_upper"] = ends(sampler, asked)
            yield row


class Answers(Grid):
    """One record for each recorded answer to these questions, with both bounds, and 1, 0 or NaN for
    proved, refuted, open."""

    name = "feldman_answers"
    stage = "account"
    columns: ClassVar[dict[str, str]] = columns(
        "package method t k noise delta claimed allocation_lower allocation_upper "
        "poisson_lower poisson_upper holds",
        text={"package", "method"},
        whole={"t", "k"},
    )
    variants = ("stated",)
    keys = ("package", "method", *ASKED)
    needs_records = (Bounds.name,)

    class Settings(kinds.ExperimentSettings):
        pass

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        answers = published.load("feldman", "answers")
        for record in run.records[Bounds.name].to_dict("records"):
            question = [published.key_text(record[name]) for name in ASKED]
            recorded = answers[(answers[[*ASKED]] == question).all(axis=1)]
            for answer in recorded.to_dict("records"):
                claimed = float(answer["printed"])
                ends = (record["allocation_lower"], record["allocation_upper"])
                yield {
                    **{name: record[name] for name in self.columns if name in record},
                    "package": answer["package"],
                    "method": answer["method"],
                    "claimed": claimed,
                    "holds": recording.judged(claimed, *ends, below=answer["method"] != LOWER),
                }
