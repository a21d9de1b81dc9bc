"""Random questions: every sampler and schedule, relation, noise and group for which the package has
a theorem, at sizes that take moments."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import dpsub
from dpsub.sampling.base import PoissonStage, WithoutReplacement, WithReplacement
from dpsub.sampling.schedules import Schedule

RELATIONS = ("add_remove", "substitute", "zero_out")


class Question(NamedTuple):
    """Arguments of a question to `dpsub.account`."""

    sampler: Any
    n: int | None
    asked: dict[str, Any]

    def answered(self) -> dpsub.Account:
        return dpsub.account(self.sampler, self.n, **self.asked)

    def __str__(self) -> str:
        return f"{self.sampler}, n = {self.n}, {self.asked}"


def question(seed: int) -> Question:
    """Return the question of a number, which the package may refuse."""
    generator = np.random.default_rng([41, seed])
    pick = generator.choice
    n = int(generator.integers(2, 13))
    sampler = _samplers(generator, n)[str(pick(KINDS))]
    # without a draw, so that other questions stay the same
    if isinstance(sampler, dpsub.Shuffle | dpsub.Deterministic) and seed % 2:
        sampler = replace(sampler, drop_last=True)
    if seed % 3 == 0 and type(sampler) is dpsub.CyclicPoisson:
        sampler = dpsub.SecretCyclicPoisson(sampler.rate, sampler.cycle)
    if seed % 3 == 0 and isinstance(sampler, dpsub.RandomAllocation):
        sampler = dpsub.MinSeparation(0.3, sampler.k, sampler.t, warm_start=bool(seed % 2))
    is_schedule = isinstance(sampler, Schedule)
    asked: dict[str, Any] = {
        "noise_multiplier": _rounded(math.exp(generator.uniform(math.log(0.8), math.log(8)))),
        "epochs" if is_schedule else "steps": int(pick([1, 1, 2, 3])),
        "adjacency": str(pick(RELATIONS)),
        "quick": True,
    }
    if generator.random() < 0.7:
        asked["delta"] = float(pick([0.1, 1e-2, 1e-3, 1e-5]))
    else:
        asked["epsilon"] = float(pick([0.0, 0.05, 0.2]))
    if generator.random() < 0.2:
        asked["mechanism"] = "laplace"
    if generator.random() < 0.25:
        asked["group"] = int(pick([2, 3]))
    elif generator.random() < 0.05:
        asked["group"], asked["adjacency"] = (2, 1), "add_remove"
    needs_n = not isinstance(sampler, dpsub.Poisson | dpsub.CyclicPoisson | dpsub.RandomAllocation)
    return Question(sampler, n if needs_n or generator.random() < 0.3 else None, asked)


KINDS = (
    *("poisson", "wor", "wr", "must_oo", "must_ow", "must_wo", "must_ww", "multistage"),
    *("truncated_poisson", "deterministic", "cyclic_poisson", "shuffle", "random_allocation"),
)


def _samplers(generator: np.random.Generator, n: int) -> dict[str, Any]:
    def size(most: int) -> int:
        return int(generator.integers(1, most + 1))

    rate = _rounded(generator.uniform(0.01, 0.6)) if generator.random() < 0.9 else 1.0
    first, t = size(n), size(6)
    last = [WithReplacement(size(4)), WithoutReplacement(size(first)), PoissonStage(rate)]
    chain = [WithoutReplacement(first), last[int(generator.integers(3))]]
    if generator.random() < 0.3:
        chain = [PoissonStage(rate)]
    return {
        "poisson": dpsub.Poisson(rate),
        "wor": dpsub.Wor(size(n)),
        "wr": dpsub.Wr(size(4)),
        "must_oo": dpsub.MustOO(first, size(first)),
        "must_ow": dpsub.MustOW(first, size(4)),
        "must_wo": dpsub.MustWO(first, size(min(first, 4))),
        "must_ww": dpsub.MustWW(size(3), size(3)),
        "multistage": dpsub.Multistage(chain),
        "truncated_poisson": dpsub.TruncatedPoisson(rate, size(n)),
        "deterministic": dpsub.Deterministic(size(n) if generator.random() < 0.8 else None),
        "cyclic_poisson": dpsub.CyclicPoisson(rate, size(n)),
        "shuffle": dpsub.Shuffle(size(n)),
        "random_allocation": dpsub.RandomAllocation(t, size(t) if generator.random() < 0.5 else 1),
    }


def _rounded(x: float) -> float:
    return float(f"{x:.3g}")
