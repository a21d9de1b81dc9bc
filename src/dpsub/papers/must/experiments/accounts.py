"""Questions to the accountant, one record each: what is refuted, what is proved, and what the paper's pair gives."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsub import checks, sampling
from dpsub.accounting import account as accounting
from dpsub.papers.must.experiments.realised_batches import attack_on_realised_batches
from dpsub.relations import Relation
from dpsub.reproduce.experiment import Experiment, Run

PAIR_WIDTH = 1e-3
"""Of the bracket of the paper's pair: absolute for epsilon, relative for delta."""


@dataclass(frozen=True)
class Asked:
    """One question: delta at an epsilon, or epsilon at a delta, after `n_compositions` releases.

    Attributes
    ----------
    table : str
        What the answer is for.
    sampler : str
    n, b, m : int
    noise_multiplier : float
        Scale of the noise on the sum over the norm bound of one record.
    n_compositions : int
    quantity : {"delta", "epsilon"}
        What is asked for.
    given : float
        The other one.
    adjacency : {"add_remove", "substitute"}
    denominator : {"fixed", "realised"}
        What the sum is divided by, with its noise; "realised" for Poisson samples only.
    """

    table: str
    sampler: str
    n: int
    b: int
    m: int
    noise_multiplier: float
    n_compositions: int
    quantity: str
    given: float
    adjacency: str
    denominator: str = "fixed"

    def __post_init__(self) -> None:
        if self.quantity == "delta":
            checks.real("epsilon", self.given, above=0)
        else:
            checks.real("delta", self.given, above=0, below=1)
        self.release()

    def release(self) -> accounting.Release:
        """The releases, checked."""
        sampler = sampling.of_sizes(self.sampler, n=self.n, m=self.m, b=self.b)
        return accounting.Release(
            sampler, self.n, self.noise_multiplier, self.n_compositions, denominator=self.denominator
        )

    def answer(self) -> dict[str, Any]:
        """Return the fields `kind`, `pair_lower`, `pair_upper`, `attack`, `proved`; NaN where there is none."""
        none = {"pair_lower": np.nan, "pair_upper": np.nan}
        if self.denominator == "realised":
            attack = attack_on_realised_batches(self.release(), epsilon=self.given)
            return {"kind": "attack", **none, "attack": attack, "proved": np.nan}
        release = self.release()
        known: dict[str, Any] = {"epsilon" if self.quantity == "delta" else "delta": self.given}
        found = accounting.Ledger([release]).account(adjacency=self.adjacency, **known)
        if self.adjacency == release.sampler.relation:
            pair = accounting.account(
                release.sampler, self.n, noise_multiplier=self.noise_multiplier, steps=self.n_compositions,
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
