"""Losses record by record: proved losses, what canaries and coresets show of them, and the gain
from a delta (Fay et al.)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import checks
from dpsub.accounting.engine.fourier import ComposedLoss
from dpsub.data import described
from dpsub.data.point_sets import PointSet
from dpsub.importance import audit
from dpsub.importance.approximate import CELLS, NormPair, certified_epsilon, gaussian_weights
from dpsub.importance.calibrate import calibrate
from dpsub.importance.losses import loss_when_removed
from dpsub.importance.samplers import PoissonImportance
from dpsub.papers.importance import settings as own
from dpsub.papers.importance.experiments.cells import (
    MODES,
    SAMPLERS,
    ClusteringCell,
    OnPointSets,
    facts_of,
    noise_of,
)
from dpsub.papers.importance.settings import QUANTILES, Clusters, FirstSizes, PointSetName
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import (
    Delta,
    ExperimentSettings,
    Listed,
    Positive,
    Replicates,
    SampleSize,
    Share,
    Sizes,
)

NEAR = 0.1  # of the largest loss
TOLERANCE = 0.05  # of what is proved, relative; smaller means more intervals of norms


class ImportanceLosses(OnPointSets):
    """Topics: "histogram", shares of records by loss; "group", quantiles by group; "sample", the
    rows of one sample.

    Losses are those proved for each record at the noise of its cell (target and size of the
    settings); `full` has no sampling. Samples are drawn on the data set `example` and shown in its
    first two principal components (Figure 1).
    """

    name = "importance_losses"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "topic": "str",
        "dataset": "str",
        "data_label": "str",
        "group": "str",
        "sampler": "str",
        "m": "float64",
        "epsilon": "float64",
        "place": "float64",
        "value": "float64",
        "second": "float64",
        "weight": "float64",
        "loss": "float64",
    }
    variants = ("stated", "consistent")
    keys = ("topic", "dataset", "data_label", "group", "sampler", "place")

    class Settings(ExperimentSettings, own.OnSets, own.ClusteringRounds, FirstSizes):
        epsilon: Positive = Field(3, description="Target, in nats.")
        bins: Annotated[int, Field(ge=2, le=1_000)] = Field(
            40, description="Bins of the histograms."
        )
        example: PointSetName = Field("song", description="Data set of the sampled set.")
        example_m: SampleSize = Field(50000, description="Its expected size.")
        example_epsilon: Positive = Field(3, description="Its target, in nats.")

        def check(self) -> None:
            super().check()
            own.check_sizes({self.example: (self.example_m,)})

    def rows(self, points: PointSet, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        if points.name in settings.sizes:
            yield from self._losses(points, settings, run)
        if points.name == settings.example:
            yield from self._sample(points, settings, run)

    def _losses(self, points: PointSet, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        groups = np.full(len(points.points), "all") if points.groups is None else points.groups
        epsilon = settings.epsilon
        # No loss exceeds the target: that is what the noise was calibrated for.
        edges = np.linspace(0, epsilon, settings.bins + 1)
        for sampler in (*SAMPLERS, "full"):
            cell = ClusteringCell(
                sampler, 0.0 if sampler == "full" else settings.sizes[points.name], epsilon
            )
            noise = noise_of(cell, points, settings, run.variant)
            if not noise.feasible:
                continue
            rates = noise.rates(points.norms)
            # Theorem 6, present over absent: the larger of both directions.
            losses = loss_when_removed(noise.slopes(points.norms) / rates, rates)
            for group in np.unique(groups).tolist():
                in_group = groups == group
                chosen = losses[in_group]
                base = {
                    "group": group,
                    "sampler": sampler,
                    "m": noise.m,
                    "epsilon": epsilon,
                    "second": math.nan,
                }
                # A loss that rounding puts a hair above the target belongs to the last bin.
                shares = (
                    np.histogram(np.clip(chosen, 0, epsilon * (1 - 1e-12)), edges)[0] / chosen.size
                )
                for place, share in zip((edges[:-1] + edges[1:]) / 2, shares, strict=True):
                    yield {**base, "topic": "histogram", "place": place, "value": share}
                # Shares within a tenth of the largest loss of any record, not of the group's own.
                near, rate = np.mean(chosen > (1 - NEAR) * losses.max()), np.mean(rates[in_group])
                for place, value in zip(QUANTILES, np.quantile(chosen, QUANTILES), strict=True):
                    yield {
                        **base,
                        "topic": "group",
                        "place": place,
                        "value": value,
                        "weight": rate,
                        "loss": near,
                    }

    def _sample(self, points: PointSet, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        rows, epsilon = points.points, settings.example_epsilon
        # The rows are centred: X^T X is their covariance up to a factor. `eigh` sorts upwards.
        _, directions = np.linalg.eigh(np.asarray(rows.T @ rows, dtype=float))
        # signs are free: make the largest entry of each direction positive
        axes = directions[:, :-3:-1]
        axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), range(2)])
        # The same uniform numbers for all samplers, as in the clustering.
        uniforms = run.streams.sample({"dataset": points.name}, 0).random(len(rows))
        for sampler in SAMPLERS:
            noise = noise_of(
                ClusteringCell(sampler, settings.example_m, epsilon), points, settings, run.variant
            )
            if not noise.feasible:
                continue
            drawn = PoissonImportance(noise.rates(points.norms)).select(uniforms)
            components = rows[drawn.indices].astype(float) @ axes
            # The colour of Figure 1 is the loss at weight 1.
            losses = noise.slopes(points.norms[drawn.indices])
            base = {
                "topic": "sample",
                "group": MODES[run.variant],
                "sampler": sampler,
                "m": noise.m,
                "epsilon": epsilon,
            }
            for (first, second), weight, loss in zip(
                components, drawn.weights, losses, strict=True
            ):
                yield {
                    **base,
                    "place": first,
                    "value": first,
                    "second": second,
                    "weight": weight,
                    "loss": loss,
                }


class ImportanceAudit(Experiment):
    """One record for each attack: the loss that is promised, and the one that the draws prove at
    the confidence.

    Attacks: noise, a lone canary under the noise on sums and counts; first_centres, an outlier that
    may become a first centre. Variants are the modes of the clustering.
    """

    name = "importance_audit"
    stage = "simulate"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "attack": "str",
        "promised": "float64",
        "lower": "float64",
        "event": "str",
        "hits_with": "int64",
        "hits_without": "int64",
        "draws": "int64",
        "confidence": "float64",
    }
    variants = tuple(MODES)
    keys = ("attack",)

    class Settings(ExperimentSettings):
        noise_draws: Annotated[int, Field(ge=100)] = Field(
            40000, description="Runs with and without the canary, each."
        )
        centre_draws: Annotated[int, Field(ge=100)] = Field(
            8000, description="Runs with and without the outlier, each."
        )
        confidence: Share = Field(0.99, description="Of the lower bounds.")

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        mode, confidence, rows = MODES[run.variant], settings.confidence, []
        for attack, play, draws in (
            ("noise", audit.audit_noise, settings.noise_draws),
            ("first_centres", audit.audit_first_centres, settings.centre_draws),
        ):
            # Each mode is another program: its draws have a stream of their own.
            rng = run.streams.noise({"attack": attack, "mode": mode}, 0)
            shown = play(mode, rng, draws=draws, confidence=confidence)
            rows.append(
                (
                    0,
                    attack,
                    shown.promised,
                    shown.lower,
                    shown.event,
                    *shown.hits,
                    shown.draws,
                    confidence,
                )
            )
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))


class ImportanceCoreset(OnPointSets):
    """One record for each repeat: the largest relative deviation over random centres, and over
    centres fitted to the sample.

    Both are below the supremum over all centres, which Theorem 15 bounds with a constant that it
    does not name. Kinds: independent draws, which the theorem is about, and the Poisson sampler,
    which it does not cover.
    """

    name = "importance_coreset"
    stage = "simulate"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "dataset": "str",
        "data_label": "str",
        "kind": "str",
        "m": "int64",
        "size": "int64",
        "random": "float64",
        "fitted": "float64",
    }
    variants = ("stated",)
    axes = ("sizes",)
    keys = ("dataset", "data_label", "kind", "m")

    class Settings(ExperimentSettings):
        replicates: Replicates = 5
        sets: own.PointSets = own.PointSets(twins=("song", "miniboone"))
        sizes: Sizes = Field((200, 400, 800), description="Sample sizes.")
        clusters: Clusters = 25
        centre_sets: Annotated[int, Field(ge=1, le=1_000)] = Field(
            5, description="Sets of centres that are tried."
        )

        def check(self) -> None:
            # With one row for each cluster the fitted centres would be the sample itself.
            for m in self.sizes:
                checks.integer("m", m, at_least=2 * self.clusters)

    def rows(self, points: PointSet, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        k = settings.clusters
        for kind, m, replicate in itertools.product(
            audit.CORESET_KINDS, settings.sizes, run.replicates
        ):
            rng = run.streams.sample({"dataset": points.name, "kind": kind, "m": m}, replicate)
            sample = audit.coreset_sample(points.points, m, kind, rng)
            random, fitted = audit.worst_coreset_deviation(
                points.points, sample, k, rng, sets=settings.centre_sets
            )
            yield {
                "replicate": replicate,
                "kind": kind,
                "m": m,
                "size": sample.size,
                "random": random,
                "fitted": fitted,
            }


class ImportanceGain(Experiment):
    """Proved epsilons at one delta for noise that was set for pure privacy; first centres do not
    depend on the data.

    Topics: "lloyd", counts and sums at the radius and mean square of Table 1, for full data,
    uniform and coreset sampling; "sums", sums only, by dimension; "gaussian", the largest weight of
    a record whose noise is Gaussian, by its shift mu at weight 1 (`proved` is the weight).
    """

    name = "importance_gain"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "topic": "str",
        "dataset": "str",
        "d": "int64",
        "sampler": "str",
        "mode": "str",
        "m": "float64",
        "pure": "float64",
        "delta": "float64",
        "mu": "float64",
        "proved": "float64",
    }
    variants = ("rigorous",)
    keys = ("topic", "dataset", "d", "sampler", "mode", "pure", "mu")

    class Settings(ExperimentSettings, FirstSizes):
        epsilons: Listed[Positive] = Field((3, 30), description="Pure targets, in nats.")
        delta: Delta = 1e-6
        dimensions: Sizes = Field((10, 90, 518), description="Dimensions of sums without counts.")
        shifts: Listed[Positive] = Field(
            (0.005, 0.02, 0.05, 0.1, 0.2), description="Shifts mu at weight 1 under Gaussian noise."
        )
        iterations: own.Rounds = 10

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = [*self._lloyd(settings), *self._sums(settings), *self._gaussian(settings)]
        frame = pd.DataFrame(rows).assign(replicate=0, delta=settings.delta)
        return self.frame(frame.fillna({"dataset": "", "mode": "", "d": 0}))

    def _lloyd(self, settings: Settings) -> Iterator[dict[str, Any]]:
        cells = itertools.product(
            settings.sizes, ("stated", "repaired"), ("full", "unif", "core"), settings.epsilons
        )
        for name, mode, sampler, epsilon in cells:
            # Counts and sums at the radius and mean square of Table 1: no data are needed.
            facts = facts_of(described.of(name))
            noise = calibrate(
                sampler,
                facts,
                target=epsilon,
                m=settings.sizes[name],
                mode=mode,
                n_iterations=settings.iterations,
            )
            proved = (
                certified_epsilon(noise, settings.delta, tolerance=TOLERANCE)
                if noise.feasible
                else math.nan
            )
            yield {
                "topic": "lloyd",
                "dataset": name,
                "d": facts.d,
                "sampler": sampler,
                "mode": mode,
                "m": noise.m,
                "pure": epsilon,
                "proved": proved,
            }

    def _sums(self, settings: Settings) -> Iterator[dict[str, Any]]:
        for d, epsilon in itertools.product(settings.dimensions, settings.epsilons):
            # The pure budget is spent in equal parts by the rounds.
            shift = epsilon / settings.iterations
            law = NormPair(d, shift).upper_law(shift / CELLS)
            proved = ComposedLoss([law], [settings.iterations]).epsilon(settings.delta)
            yield {
                "topic": "sums",
                "d": d,
                "sampler": "full",
                "pure": epsilon,
                # Pure privacy holds at every delta: a proved epsilon above the target says nothing
                # new.
                "proved": min(epsilon, proved),
            }

    def _gaussian(self, settings: Settings) -> Iterator[dict[str, Any]]:
        for mu in settings.shifts:
            weight = gaussian_weights([mu], 1.0, settings.delta)[0]
            yield {"topic": "gaussian", "sampler": "opt", "pure": 1.0, "mu": mu, "proved": weight}
