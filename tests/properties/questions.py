"""Random questions to the accountant: a sampler or schedule of random sizes, noise, steps, relation
and target.

Every question drawn is one that some theorem covers. A second question of a property differs from
it in one thing (`but`).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import dpsub
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.questions.account import Account
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.release import Release, steps_of
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling import REGISTRY, SCHEDULES, Multistage, Sampler, Schedule
from dpsub.streams import stream
from tests.fresh_seeds import seed
from tests.statistical.forward import random_chain

KINDS: tuple[type[Sampler] | type[Schedule], ...] = (
    *REGISTRY.members().values(),
    *SCHEDULES.members().values(),
)
WIDTH = 0.02
"""Accuracy of all questions: nats of an epsilon, a share of a delta."""
EFFORT = 0.5
"""Effort of all questions; bounds reached with it hold."""


@dataclass(frozen=True)
class Question:
    """One question to `dpsub.account`; `times`: steps of a sampler, epochs of a schedule."""

    sampler: Sampler | Schedule
    n: int
    noise_multiplier: float
    times: int
    adjacency: str
    mechanism: str
    target: dict[str, float] = field(default_factory=dict)

    @property
    def releases(self) -> dict[str, Any]:
        """Arguments of `dpsub.account` for the releases, but the noise multiplier."""
        counted = "epochs" if isinstance(self.sampler, Schedule) else "steps"
        return {
            "sampler": self.sampler,
            "n": self.n,
            counted: self.times,
            "mechanism": self.mechanism,
        }

    @property
    def release(self) -> Release:
        times = {"steps": None, "epochs": None} | {
            name: self.releases.get(name) for name in ("steps", "epochs")
        }
        steps = steps_of(self.sampler, self.n, **times)
        return Release(self.sampler, self.n, self.noise_multiplier, steps, self.mechanism)

    @property
    def covered(self) -> bool:
        """Whether a theorem covers the releases."""
        try:
            Proof.of([self.release], self.adjacency)
        except (ArgumentError, UnsupportedError):
            return False
        return True

    def but(self, **changes: Any) -> Question:
        return dataclasses.replace(self, **changes)

    def ask(self, **more: Any) -> Account:
        """Return the account; `more` replaces arguments of the question."""
        asked: dict[str, Any] = {
            "noise_multiplier": self.noise_multiplier,
            "adjacency": self.adjacency,
        }
        return dpsub.account(
            **self.releases | asked | self.target | {"width": WIDTH, "effort": EFFORT} | more
        )


def random_question(
    name: str, case: int, suits: Callable[[Question], bool] = lambda question: True
) -> Question:
    """Return the question of one case of a property; `suits` says which questions the property
    takes."""
    rng = stream(
        seed(), experiment="campaign", cell={"property": name}, role="data", replicate=case
    )
    for attempt in itertools.count():
        # one kind after the other, so that few cases meet all of them; where none of its questions
        # suits, the next one
        kind = KINDS[(case + attempt // 40) % len(KINDS)]
        question = _question(kind, rng)
        if question is not None and question.covered and suits(question):
            return question
    raise AssertionError


def ends_in_order(smaller: Account, larger: Account) -> None:
    """Check the order of the ends where the truth of one account is at most that of the other."""
    # both pairs of bounds lie around the truths: this holds to the last digit
    assert np.all(smaller.lower <= larger.upper), (
        f"{smaller.lower!r} was attained, {larger.upper!r} proved of more"
    )
    # the bounds that are proved have the same order; their upper bounds are above them by the width
    # at most, as is known where both bounds bracket one number and estimated where they do not
    # (docs/proofs/numerics.md)
    if smaller.width_met and larger.width_met:
        target = (
            Target(delta=0.5, width=WIDTH)
            if smaller.quantity == "epsilon"
            else Target(epsilon=0.0, width=WIDTH)
        )
        for low, high in zip(np.ravel(larger.upper), np.ravel(smaller.upper), strict=True):
            assert high <= low or target.gap(float(low), float(high)) <= 1, (
                f"{high!r} was proved, {low!r} of more"
            )


def _question(kind: type[Sampler] | type[Schedule], rng: np.random.Generator) -> Question | None:
    """Return a question, or None where the sizes drawn do not fit together."""
    n = _whole(rng, 2, 3000)
    try:
        sampler, n = _sampler(kind, n, rng)
    except ArgumentError:
        return None
    few = 20 if isinstance(sampler, Schedule) else 300
    return Question(
        sampler,
        n,
        noise_multiplier=_between(rng, 0.06, 0.4)
        if rng.random() < 0.1
        else _between(rng, 0.4, 20.0),
        times=1 if rng.random() < 0.2 else _whole(rng, 1, few),
        adjacency=str(rng.choice([relation.value for relation in Relation])),
        mechanism="laplace" if rng.random() < 0.25 else "gaussian",
        target=_target(rng),
    )


def _sampler(kind: Any, n: int, rng: np.random.Generator) -> tuple[Sampler | Schedule, int]:
    if kind is Multistage:
        chain, n = random_chain(
            ["ow", "ow", "owp"][: int(rng.integers(1, 4))], rng, n_max=60, size_max=30
        )
        return Multistage(chain), n
    if kind is dpsub.WeightedWr:
        return dpsub.WeightedWr(_whole(rng, 1, n), float(rng.uniform(1 / n, 1.0))), n
    if kind is dpsub.MinSeparation:
        separation, steps, warm = _whole(rng, 1, 5), _whole(rng, 1, 40), bool(rng.random() < 0.5)
        return dpsub.MinSeparation(float(rng.uniform()), separation, steps, warm), n
    if issubclass(kind, Schedule):
        most = {"t": 40, "k": 4, "m": n, "cycle": n}
        values = {
            name: rng.uniform() if name == "rate" else _whole(rng, 1, most[name])
            for name in kind.options
            if name in {"rate", *most}
        }
        if "drop_last" in kind.options:
            values["drop_last"] = bool(rng.random() < 0.5)
        return kind(**values), n
    return kind.of_sizes(n, **{name: _whole(rng, 1, n) for name in kind.sizes}), n


def _target(rng: np.random.Generator) -> dict[str, float]:
    if rng.random() < 0.3:
        return {"epsilon": 0.0 if rng.random() < 0.3 else _between(rng, 0.01, 20.0)}
    return {
        "delta": 10 ** rng.uniform(-250, -12) if rng.random() < 0.1 else _between(rng, 1e-12, 0.5)
    }


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


def _whole(rng: np.random.Generator, low: int, high: int) -> int:
    return max(low, round(_between(rng, low, high)))
