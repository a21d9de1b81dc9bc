"""Our two bounds for the releases about which other accountants were asked, and the verdicts on
their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

import dpsub
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.questions.check import ClaimJudge
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.schemes import case_of
from dpsub.accounting.schemes.groups.scheme import by_composition
from dpsub.accounting.schemes.poisson import poisson as poisson_scheme
from dpsub.papers.practice.packages import says
from dpsub.papers.practice.settings import (
    GRID,
    GROUPS,
    LOWER,
    NOISES,
    QUESTIONS,
    SHUFFLED,
    STATEMENTS,
    UNITS,
    AccountingQuestion,
    Epochs,
    StatedEpochs,
    Units,
)
from dpsub.relations import Relation
from dpsub.reproduce import published, recording
from dpsub.reproduce.experiment import Grid, Run, columns
from dpsub.reproduce.settings import (
    Delta,
    Effort,
    ExperimentSettings,
    Listed,
    NoiseMultiplier,
    SampleSize,
    Several,
)
from dpsub.sampling import Schedule
from dpsub.sampling.base import Sampler


class PracticeAnswers(Grid):
    """One record for each setting and accountant: its recorded answer, our ends, and 1, 0 or NaN
    for proved, refuted, open."""

    name = "practice_answers"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "mechanism": "str",
        "sampler": "str",
        "adjacency": "str",
        "rate": "float64",
        "n": "int64",
        "m": "int64",
        "noise_multiplier": "float64",
        "steps": "int64",
        "delta": "float64",
        "accountant": "str",
        "claimed": "float64",
        "epsilon_lower": "float64",
        "epsilon_upper": "float64",
        "holds": "float64",
    }
    variants = ("rigorous",)

    class Settings(ExperimentSettings):
        grid: Several[AccountingQuestion] = Field(
            GRID, description="Releases; judged if an answer is recorded."
        )

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        answers = published.load("practice", "accountants")
        for setting in settings.grid:
            recorded, ends = recorded_for(setting, answers), ends_of(setting)
            for answer in judged_answers(recorded, ends):
                yield {**setting.model_dump(), **answer}


class PracticePackages(Grid):
    """Recorded answers of all packages at their versions: one record for each setting, accountant
    and version, with the columns of `PracticeAnswers`.

    Ends are refined to about 1e-5 of a claim and no game is played, so that they cost little:
    a claim closer to the truth may stay open.
    """

    name = "practice_packages"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {**PracticeAnswers.columns, "version": "str"}
    variants = ("rigorous",)

    class Settings(ExperimentSettings):
        grid: Several[AccountingQuestion] = Field(
            QUESTIONS, description="Releases; judged if an answer is recorded."
        )

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        answers = published.load("practice", "packages")
        for setting in settings.grid:
            recorded = recorded_for(setting, answers)
            ends = ends_of(setting, quick=True, finest=1e-5)
            for answer in judged_answers(recorded, ends, "version"):
                yield {**setting.model_dump(), **answer}


SIZES = {"n", "m", "epochs"}
EPOCHS = "adjacency n m epochs noise_multiplier"
"""Columns that name epochs and their noise."""


class PracticeShuffling(Grid):
    """One record for each noise multiplier and size of epochs: Poisson's epsilon, and both bounds
    of that of shuffling."""

    name = "practice_shuffling"
    stage = "account"
    columns: ClassVar[dict[str, str]] = columns(
        f"{EPOCHS} delta epsilon_poisson epsilon_lower epsilon_upper",
        text={"adjacency"},
        whole=SIZES,
    )
    variants = ("rigorous",)

    class Settings(ExperimentSettings):
        grid: Several[Epochs] = Field(SHUFFLED, description="Sizes of epochs.")
        noise_multipliers: Listed[NoiseMultiplier] = NOISES
        delta: Delta = 1e-5
        effort: Effort = 1

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        for training in settings.grid:
            shuffle = dpsub.Shuffle(training.m)
            # Poisson gets as many steps as the schedule has batches: the practice that the
            # comparison is about.
            steps = training.epochs * shuffle.steps_per_epoch(training.n)
            for noise in settings.noise_multipliers:
                question: dict[str, Any] = {
                    "noise_multiplier": noise,
                    "delta": settings.delta,
                    "adjacency": training.adjacency,
                    # Numerical accuracy only: proof and attack of shuffling are apart for other
                    # reasons.
                    "width": 0.005,
                    "effort": settings.effort,
                }
                account = dpsub.account(shuffle, training.n, epochs=training.epochs, **question)
                # The usual account of shuffled batches: Poisson sampling at the expected batch
                # size.
                poisson = dpsub.account(
                    dpsub.Poisson(training.m / training.n), steps=steps, **question
                )
                yield {
                    **training.model_dump(),
                    "noise_multiplier": noise,
                    "delta": settings.delta,
                    # Proved for Poisson samples, hence the most favourable number that this
                    # practice can report in good faith.
                    "epsilon_poisson": poisson.upper,
                    "epsilon_lower": account.lower,
                    "epsilon_upper": account.upper,
                }


class PracticeStatements(Grid):
    """One record for each release that a statement is about: both bounds of epsilon, or of delta at
    epsilon = 0."""

    name = "practice_statements"
    stage = "account"
    columns: ClassVar[dict[str, str]] = columns(
        f"{EPOCHS} delta least most lower upper", text={"adjacency"}, whole=SIZES
    )
    variants = ("stated",)

    class Settings(ExperimentSettings):
        grid: Several[StatedEpochs] = Field(STATEMENTS, description="Releases.")

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        for release in settings.grid:
            # The bounds that exist at once, so that the record costs little.
            asked: dict[str, Any] = {"adjacency": release.adjacency, "quick": True, "effort": None}
            asked |= {"delta": release.delta} if release.delta else {"epsilon": 0.0}
            account = dpsub.account(
                dpsub.Shuffle(release.m),
                release.n,
                epochs=release.epochs,
                noise_multiplier=release.noise_multiplier,
                **asked,
            )
            yield {**release.model_dump(), "lower": account.lower, "upper": account.upper}


class PracticeGroups(Grid):
    """One record for each size of groups and bound: the epsilon that is proved for all records of a
    user together, by the law of their number, by the curve of one record composed with itself at
    each step, and by group privacy of the composed epsilon."""

    name = "practice_groups"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "rate": "float64",
        "noise_multiplier": "float64",
        "steps": "int64",
        "delta": "float64",
        "group": "int64",
        "bound": "str",
        "epsilon_upper": "float64",
    }
    variants = ("rigorous",)

    class Settings(ExperimentSettings):
        grid: Several[Units] = Field(UNITS, description="Releases.")
        groups: Listed[SampleSize] = GROUPS
        delta: Delta = 1e-5

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        for unit in settings.grid:
            for group in settings.groups:
                for bound, epsilon in bounds_of_group(unit, group, settings.delta).items():
                    yield {
                        **unit.model_dump(),
                        "delta": settings.delta,
                        "group": group,
                        "bound": bound,
                        "epsilon_upper": epsilon,
                    }


def bounds_of_group(unit: Units, group: int, delta: float) -> dict[str, float]:
    """Three proved epsilons for `group` records of one user under add_remove."""
    poisson = dpsub.Poisson(unit.rate)
    asked: dict[str, Any] = {
        "noise_multiplier": unit.noise_multiplier,
        "steps": unit.steps,
        "effort": None,
        "quick": True,
    }
    release = dpsub.Release(poisson, None, unit.noise_multiplier, unit.steps, group=group)
    alone = dpsub.Release(poisson, None, unit.noise_multiplier, unit.steps)
    case = case_of(alone, Relation.ADD_REMOVE)
    if group > 1:
        case = by_composition(release, Relation.ADD_REMOVE, poisson_scheme)
    composed = Composition([(case.event, unit.steps)])
    # epsilon of one record at a smaller delta, since delta grows with each further record
    deltas = np.geomspace(delta * 1e-40, delta, 161)
    epsilons = np.asarray(dpsub.account(poisson, delta=deltas, **asked).upper)
    grown = deltas * np.exp(np.multiply.outer(np.arange(group), epsilons)).sum(axis=0)
    return {
        "direct": float(dpsub.account(poisson, delta=delta, group=group, **asked).upper),
        "composed": composed.bound(Target(delta=delta, width=1e-3)).value,
        "converted": float(np.min(group * epsilons, where=grown <= delta, initial=np.inf)),
    }


def recorded_for(setting: AccountingQuestion, answers: pd.DataFrame) -> pd.DataFrame:
    """Return the recorded answers to one question."""
    fields = setting.model_dump()
    # Settings that do not apply are 0 here and empty in the recorded answers.
    key = [published.key_text(value) if value != 0 else "" for value in fields.values()]
    return answers[(answers[list(fields)] == key).all(axis=1)]


def judged_answers(
    recorded: pd.DataFrame, ends: ClaimJudge, *also: str
) -> Iterator[dict[str, Any]]:
    """Yield the answers to one question, the fields `also`, their verdicts and both bounds."""
    if recorded.empty:
        return
    # One account is refined until all claims about it are decided; its ends are read after that, so
    # that all rows of a setting show the same ones.
    claims = recorded["printed"].astype(float)
    for claimed in claims:
        ends.judge(claimed)
    account = ends.account
    for answer, claimed in zip(recorded.to_dict("records"), claims, strict=True):
        below = says()[answer["accountant"]] != LOWER
        yield {
            **{name: answer[name] for name in ("accountant", *also)},
            "claimed": claimed,
            "epsilon_lower": account.lower,
            "epsilon_upper": account.upper,
            "holds": recording.judged(claimed, account.lower, account.upper, below=below),
        }


def ends_of(setting: AccountingQuestion, **limits: Any) -> ClaimJudge:
    """Return the bounds on epsilon of a setting, to be refined from both sides until the claims
    about it are decided."""
    release = dpsub.Release(
        sampler_of(setting),
        setting.n or None,
        setting.noise_multiplier,
        setting.steps,
        setting.mechanism,
    )
    return ClaimJudge(Proof.of([release], setting.adjacency), None, setting.delta, **limits)


def sampler_of(setting: AccountingQuestion) -> Sampler | Schedule:
    """Return the sampler of a setting, or its schedule."""
    samplers: dict[str, Callable[[], Sampler | Schedule]] = {
        "poisson": lambda: dpsub.Poisson(setting.rate),
        "wor": lambda: dpsub.Wor(setting.m),
        "truncated_poisson": lambda: dpsub.TruncatedPoisson(setting.rate, setting.m),
        "random_allocation": lambda: dpsub.RandomAllocation(setting.steps),
        "shuffle": lambda: dpsub.Shuffle(setting.m),
    }
    return samplers[setting.sampler]()
