"""MUST, experiment 3: private logistic regression by DP-SGD on Adult (Section 4.2.3, Table 8, Figure S4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub.data import adult
from dpsub.learning.descent import batch_width, binary_metrics, cross_entropy, descend, logistic_residual
from dpsub.papers.must.experiments.linear_regression import Cell, gradient_cells
from dpsub.papers.must.settings import SIX, Experiment3
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import (
    ExperimentSettings,
    Iterations,
    LearningRate,
    Parts,
    Replicates,
    Samplers,
)
from dpsub.sampling.frame import Frame
from dpsub.streams import Streams

N_TRAIN = adult.N_TRAIN
METRICS = ("accuracy", "sensitivity", "specificity", "ppv", "npv", "f1")


def design_matrix(features: np.ndarray, label: np.ndarray, variant: str) -> np.ndarray:
    """Return the predictors with a leading column of ones; `as_done` leaves the label among them (erratum E1)."""
    leaked = [label[:, None]] if variant == "as_done" else []
    return np.hstack([np.ones((len(features), 1)), features, *leaked])


class AdultLogistic(Experiment):
    """DP-SGD for logistic regression on Adult; a record is one seed of one sampler.

    Variants: `stated` predicts income from the 13 features; `as_done` keeps income among the predictors (E1) and draws
    MUST.WW with the MUST.OW sampler (E6); `consistent` scales the noise to the gradient's sensitivity (E4) and adds a
    second solver, "converged", with a step size at which the same number of iterations comes close to the optimum.
    The row of solver "scikit_learn" is the unpenalised maximum likelihood fit, without privacy.
    """

    name: ClassVar[str] = "adult_logistic"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "sampler": "str", "solver": "str", "sigma": "float64",
        **dict.fromkeys(METRICS, "float64"), "train_loss": "float64", "gradients": "float64",
        "n_train": "int64", "n_test": "int64", "n_parameters": "int64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated", "as_done", "consistent")
    needs_data: ClassVar[tuple[str, ...]] = ("adult",)

    class Settings(ExperimentSettings, Experiment3):
        parts: Parts = 2
        replicates: Replicates = 100
        iterations: Iterations = 1000
        learning_rate: LearningRate = 0.01
        learning_rate_converged: LearningRate | None = Field(
            2, description="Of the second solver in `consistent`, which comes close to the optimum in the same steps."
        )
        initial: float = Field(1, description="Initial value of every coefficient.")
        samplers: Samplers = SIX

        def check(self) -> None:
            for variant in AdultLogistic.variants:
                list(AdultLogistic.runs(self, variant))

    @staticmethod
    def runs(settings: Settings, variant: str) -> Iterator[tuple[str, Cell]]:
        """Yield (solver, cell), in the order of Table 8."""
        solvers = {"dp_sgd": settings.learning_rate}
        if variant == "consistent" and settings.learning_rate_converged is not None:
            solvers["converged"] = settings.learning_rate_converged
        for solver, rate in solvers.items():
            descent = {"residual": logistic_residual, "learning_rate": rate}
            for cell in gradient_cells(settings, variant, N_TRAIN, [settings.epsilon_amplified], descent):
                yield solver, cell

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        table = adult.load(run.data["adult"])
        x_train = design_matrix(table.X_train, table.y_train, run.variant)
        x_test = design_matrix(table.X_test, table.y_test, run.variant)
        sizes = {"n_train": len(x_train), "n_test": len(x_test), "n_parameters": x_train.shape[1]}
        rows: list[dict[str, Any]] = []
        for solver, cell in self.runs(settings, run.variant):
            betas, distinct = self.descent(cell, settings, x_train, table.y_train, run.replicates, run.streams)
            for current in betas:
                beta = current
            for i, replicate in enumerate(run.replicates):
                rows.append({
                    "replicate": replicate, "sampler": cell.sampler, "solver": solver, "sigma": cell.sigma,
                    **binary_metrics(x_test @ beta[i] > 0, table.y_test),
                    "train_loss": cross_entropy(x_train @ beta[i], table.y_train), "gradients": distinct[i],
                    **sizes,
                })  # fmt: skip
        if run.variant == "consistent" and 0 in run.replicates:
            # imported here: it takes a second, and only this row needs it
            from sklearn.linear_model import LogisticRegression

            fit = LogisticRegression(C=np.inf, fit_intercept=False, max_iter=5000, tol=1e-8)
            beta = fit.fit(x_train, table.y_train).coef_[0]
            rows.append({
                "replicate": 0, "sampler": "nonprivate", "solver": "scikit_learn", "sigma": 0.0,
                **binary_metrics(x_test @ beta > 0, table.y_test),
                "train_loss": cross_entropy(x_train @ beta, table.y_train), "gradients": float("nan"),
                **sizes,
            })  # fmt: skip
        return self.frame(rows)

    def descent(
        self, cell: Cell, settings: Settings, x: np.ndarray, y: np.ndarray, replicates: range, streams: Streams
    ) -> tuple[Iterator[np.ndarray], np.ndarray]:
        """Return the iterates, each of shape (replicates, p), and the gradients evaluated an iteration."""
        iterations, p = settings.iterations, x.shape[1]
        key = {**cell.key, "m": settings.m, "b": settings.b, "iterations": iterations}
        blocks, noise = [], None if cell.sigma == 0 else np.empty((len(replicates), iterations, p))
        for i, replicate in enumerate(replicates):
            rng = streams.sample(key, replicate)
            blocks.append(cell.drawn.draw_block(Frame(len(x)), iterations, rng))
            if noise is not None:
                rng = streams.noise(key, replicate)
                noise[i] = cell.sigma * rng.standard_normal((iterations, p))
        initial = np.full(p, settings.initial)
        width = batch_width(cell.drawn, len(x))
        distinct = np.array([block.distinct.mean() for block in blocks])
        return descend(x, y, blocks, noise, initial, cell.descent, width=width), distinct


class AdultLogisticTrace(AdultLogistic):
    """The training cross-entropy after each iteration (MUST, Figure S4)."""

    name: ClassVar[str] = "adult_logistic_trace"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "sampler": "str", "iteration": "int64", "loss": "float64",
    }  # fmt: skip

    streams_of: ClassVar[str] = AdultLogistic.name

    class Settings(AdultLogistic.Settings):
        parts: Parts = 1
        replicates: Replicates = 1
        learning_rate_converged: LearningRate | None = None

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        table = adult.load(run.data["adult"])
        x = design_matrix(table.X_train, table.y_train, run.variant)
        parts = []
        for _, cell in self.runs(settings, run.variant):
            betas, _ = self.descent(cell, settings, x, table.y_train, run.replicates, run.streams)
            loss = np.array([[cross_entropy(x @ one, table.y_train) for one in beta] for beta in betas])
            for i, replicate in enumerate(run.replicates):
                parts.append(pd.DataFrame({
                    "replicate": replicate, "sampler": cell.sampler, "iteration": np.arange(1, len(loss) + 1),
                    "loss": loss[:, i],
                }))  # fmt: skip
        return self.frame(pd.concat(parts, ignore_index=True))
