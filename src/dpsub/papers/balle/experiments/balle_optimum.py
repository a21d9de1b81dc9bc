"""How tight a bound is for one finite design: the worst mechanism by linear programming."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub.amplification import DeclaredProfile
from dpsub.amplification.small_universes import BoundRow
from dpsub.divergences import worst_mechanism
from dpsub.noise import PointGuarantee
from dpsub.papers.balle.experiments.balle_couplings import rows_of
from dpsub.papers.balle.experiments.balle_enumeration import OWN
from dpsub.papers.balle.settings import TinyM, TinyN
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import (
    Epsilons,
    ExperimentSettings,
    Listed,
    Positive,
    Probability,
    Rates,
)

TIE = 1e-12  # optima closer than this are equal up to the solver's accuracy


class BalleOptimum(Experiment):
    """The bound for all (epsilon0, delta0)-DP mechanisms next to the largest divergence that any of them has.

    Epsilon is the base epsilon at which both are evaluated, a share of epsilon0.
    """

    name: ClassVar[str] = "balle_optimum"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "theorem": "str", "n": "int64", "size": "float64", "epsilon0": "float64",
        "delta0": "float64", "share": "float64", "epsilon_amplified": "float64", "bound": "float64",
        "optimum": "float64", "dual": "float64", "direction": "str",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("rigorous",)

    class Settings(ExperimentSettings):
        n: Listed[TinyN] = (4,)
        m: Listed[TinyM] = (2, 3)
        rates: Rates = (0.1, 0.5)
        epsilon0: Listed[Positive] = Field((0.5, 1), description="epsilon of the base guarantee, in nats.")
        delta0: Listed[Probability] = Field((0, 0.01), description="delta of the base guarantee.")
        shares: Epsilons = Field((0, 0.5, 1), description="Base epsilons as shares of epsilon0.")

        def check(self) -> None:
            for epsilon0 in self.epsilon0:
                for delta0 in self.delta0:
                    PointGuarantee(epsilon0, delta0)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = []
        for theorem, n, size in rows_of(settings):
            rows += list(_points(BoundRow(theorem, n, size), settings))
            if theorem in OWN:
                rows += list(_points(BoundRow(OWN[theorem], n, size), settings))
        return self.frame(pd.DataFrame(rows))


def _points(row: BoundRow, settings: BalleOptimum.Settings) -> Iterator[dict[str, object]]:
    # all pairs of neighbours are the same up to the names of records, and the class of mechanisms knows no names
    first, second = (laws[0] for laws in row.laws)
    near = row.space.neighbours()
    for epsilon0 in settings.epsilon0:
        for delta0 in settings.delta0:
            base = DeclaredProfile.of(PointGuarantee(epsilon0, delta0), row.space.relation)
            for share in settings.shares:
                target = float(row.bound.epsilon_amplified(share * epsilon0))
                found = {
                    name: worst_mechanism(one, other, near, epsilon0, delta0, float(np.exp(target)))
                    for name, one, other in (("forward", first, second), ("backward", second, first))
                }
                worst = max(found, key=lambda name: found[name].divergence)
                apart = abs(found["forward"].divergence - found["backward"].divergence)
                yield {
                    "replicate": 0, "theorem": row.theorem, "n": row.n, "size": row.size, "epsilon0": float(epsilon0),
                    "delta0": float(delta0), "share": float(share), "epsilon_amplified": target,
                    "bound": float(row.bound.delta(base, target)), "optimum": found[worst].divergence,
                    "dual": found[worst].dual, "direction": worst if apart > TIE else "either",
                }  # fmt: skip
