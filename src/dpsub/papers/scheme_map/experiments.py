"""The noise of the map: of each scheme the multiplier that is proved to meet a target, and the one
that an attack refutes, by what `recommend` does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, ClassVar

import pandas as pd

from dpsub.accounting.questions.recommend import SchemeNoise, noise_of_training
from dpsub.accounting.questions.search import Goal
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.papers.scheme_map.schemes import (
    EPOCHS,
    FRESH,
    KEPT,
    RELATIONS,
    SCHEMES,
    TRAININGS,
    USES,
    MappedScheme,
    MapTraining,
    in_group,
)
from dpsub.papers.scheme_map.settings import EFFORT, MapTargets, Rows
from dpsub.relations import Relation
from dpsub.reproduce.experiment import Cost, Experiment, Run, columns
from dpsub.reproduce.settings import ExperimentSettings, Parts

ACCURACY = 3e-3
"""Relative accuracy of each noise multiplier, that of `recommend`."""
NEAR = 0.05
"""Where the bounds of a cell are as close, relative to each other, closer ones are not sought."""
MORE = 10.0
"""How many times as much work cells may take whose bounds are farther apart."""
ENDS = ("steps", "noise_multiplier", "refuted", "theorem", "lower_theorem")
_SECONDS = 2.5  # of a cell, on average
_TEXT = {"training", "adjacency", "sampler", "theorem", "lower_theorem", "reason"}
_WHOLE = {"n", "m", "epochs", "steps"}


class MapNoise(Experiment):
    """Noise multipliers that schemes need; a record is a cell of the map.

    A replicate is one scheme at one training, under all relations and at all targets. A cell that
    no theorem covers has the reason in place of its numbers.
    """

    stage = "account"
    columns = columns(
        "training adjacency sampler n m epochs steps target_epsilon target_delta noise_multiplier "
        "refuted theorem lower_theorem reason",
        text=_TEXT,
        whole=_WHOLE,
    )
    keys: ClassVar[tuple[str, ...]] = ("training", "adjacency", "sampler", "target_epsilon")
    variants: ClassVar[tuple[str, ...]] = ("rigorous",)

    def pairs(self, settings: Any) -> list[tuple[MappedScheme, MapTraining]]:
        """Return the schemes and trainings of the replicates, in order."""
        pairs = product(settings.samplers, settings.trainings)
        return [(SCHEMES[scheme], TRAININGS[training]) for scheme, training in pairs]

    def replicates(self, settings: Any) -> int:
        return len(self.pairs(settings))

    def cost(self, settings: Any) -> Cost:
        cells = len(RELATIONS) * len(settings.target_epsilon)
        return Cost(0.0, _SECONDS * cells, 300.0)

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        pairs = self.pairs(settings)
        return self.frame(
            [
                {"replicate": replicate, **cell}
                for replicate in run.replicates
                for cell in cells_of(*pairs[replicate], settings)
            ]
        )


def cells_of(
    scheme: MappedScheme, training: MapTraining, settings: Any
) -> Iterator[dict[str, Any]]:
    """Yield the cells of one scheme at one training."""
    for relation, epsilon in product(RELATIONS, settings.target_epsilon):
        cell = {
            "training": training.name,
            "adjacency": str(relation),
            "sampler": scheme.name,
            "n": training.n,
            "m": training.m,
            "epochs": training.epochs,
            "target_epsilon": float(epsilon),
            "target_delta": training.delta,
        }
        yield {**cell, **noise_of(scheme, training, relation, epsilon, settings.effort)}


def noise_of(
    scheme: MappedScheme,
    training: MapTraining,
    relation: Relation,
    epsilon: float,
    effort: float = EFFORT,
) -> dict[str, Any]:
    """Return the number of steps, both bounds on the noise multiplier and what stands behind them;
    or the reason why there are none."""
    found = {
        "steps": 0,
        "noise_multiplier": math.nan,
        "refuted": math.nan,
        "theorem": "",
        "lower_theorem": "",
        "reason": "",
    }
    goal = Goal(epsilon, training.delta, relation, ACCURACY)
    try:
        release = scheme.releases(training)
        needed = noise_of_training(scheme.name, release, training.m, goal, effort=effort, near=NEAR)
        if needed.noise_multiplier > (1 + NEAR) * needed.refuted:
            # by first bounds alone, which for some schemes need more than a game
            more = noise_of_training(
                scheme.name, release, training.m, goal, effort=MORE * effort, near=math.inf
            )
            needed = _better(needed, more)
    except (ArgumentError, UnsupportedError) as refusal:
        return {**found, "reason": str(refusal)}
    return {**found, **{name: getattr(needed, name) for name in ENDS}}


def _better(one: SchemeNoise, other: SchemeNoise) -> SchemeNoise:
    """Return the smaller one of two proved multipliers, with the larger one of both that are
    refuted."""
    proved = min(one, other, key=lambda each: each.noise_multiplier)
    attacked = max(one, other, key=lambda each: each.refuted)
    return replace(proved, refuted=attacked.refuted, lower_theorem=attacked.lower_theorem)


class MapOfFreshBatches(MapNoise):
    """Schemes that draw each batch afresh."""

    name = "map_fresh"

    class Settings(ExperimentSettings, MapTargets):
        samplers: Rows = in_group(FRESH)
        # a job for each scheme at each training
        parts: Parts = len(in_group(FRESH)) * len(TRAININGS)


class MapOfEpochs(MapNoise):
    """Schemes that plan whole epochs."""

    name = "map_epochs"

    class Settings(ExperimentSettings, MapTargets):
        samplers: Rows = in_group(EPOCHS)
        parts: Parts = len(in_group(EPOCHS)) * len(TRAININGS)


class MapOfUses(MapNoise):
    """Schemes that use batches in other ways."""

    name = "map_uses"

    class Settings(ExperimentSettings, MapTargets):
        samplers: Rows = in_group(USES)
        parts: Parts = len(in_group(USES)) * len(TRAININGS)


class MapOfKeptPlans(MapNoise):
    """Schemes that keep one plan for the whole training."""

    name = "map_kept"

    class Settings(ExperimentSettings, MapTargets):
        samplers: Rows = in_group(KEPT)
        parts: Parts = len(in_group(KEPT)) * len(TRAININGS)
