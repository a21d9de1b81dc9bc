"""Private statistics by subsampling bootstrap, and private regression by DP-SGD: experiments 1 to 3
(MUST, Section 4.2, Tables 5 to 8, Figures 6 and S4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import sampling
from dpsub.data import adult
from dpsub.data.simulated import linear_datasets, normal_datasets
from dpsub.errors import ArgumentError
from dpsub.learning import descent, metrics
from dpsub.learning.models import Linear, Logistic
from dpsub.papers.must.experiments.accounting import noise_plans
from dpsub.papers.must.settings import FIVE, METRICS, SIX, Experiment1, Experiment2, Experiment3
from dpsub.papers.must.subsets import release, subset_statistics
from dpsub.reproduce import settings as s
from dpsub.reproduce.experiment import (
    SAMPLER_KEY,
    Experiment,
    Run,
    StatedComparison,
    with_first_stages,
)
from dpsub.reproduce.records import recorded_first_stage
from dpsub.sampling import Sampler
from dpsub.sampling.base import StagedSampler, WithReplacement
from dpsub.sampling.frame import Frame

# Experiment 1: statistics of subsets


@dataclass(frozen=True)
class StatisticsCell:
    """One sampler at one size of its first stage, with its noise."""

    sampler: str
    b: int | None  # None for a sampler without a first stage
    drawn: StagedSampler
    sigma_mean: float
    sigma_variance: float


def expected_variance(sampler: StagedSampler, n: int) -> float:
    """Return the expected variance of a subset's slots for data of variance 1.

    It is the probability that two slots of a subset hold different records: a stage with
    replacement from N slots multiplies it by 1 - 1/N, any other stage leaves it.
    """
    slots = zip(sampler.slots(n), sampler.stages, strict=True)
    return math.prod(
        (1 - 1 / before for before, stage in slots if isinstance(stage, WithReplacement)), start=1.0
    )


class SubsetStatistics(Experiment):
    """Mean and variance of N(0, 1) data from the average of T noisy subset statistics.

    Variants: `stated` does not clip, as the paper says; `consistent` clips the data to [lower,
    upper], and Poisson divides by the fixed m (erratum E4); see `noise_plans` for the noise. All
    samplers of a replicate see the same data.
    """

    name: ClassVar[str] = "subset_statistics"
    stage = "simulate"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "sampler": "str",
        "b": "int64",
        "sigma_mean": "float64",
        "sigma_variance": "float64",
        "mean": "float64",
        "variance": "float64",
        "expected_variance": "float64",
        "distinct": "float64",
    }
    variants: ClassVar[tuple[str, ...]] = ("stated", "consistent")
    axes: ClassVar[tuple[str, ...]] = ("b", "samplers")
    keys: ClassVar[tuple[str, ...]] = ("sampler", "b")

    class Settings(s.ExperimentSettings, Experiment1):
        parts: s.Parts = 2
        replicates: s.Replicates = 200
        # T of Section 4.2.1.
        subsets: Annotated[
            int, Field(ge=1, le=10_000_000, description="Bootstrap subsets T per data set.")
        ] = 500
        samplers: s.Samplers = FIVE

        def check(self) -> None:
            for variant in SubsetStatistics.variants:
                list(SubsetStatistics.runs(self, variant))

    @staticmethod
    def runs(settings: Settings, variant: str) -> Iterator[StatisticsCell]:
        """Yield the runs in the order of Table 5: without privacy, then each sampler."""
        n, m, target = settings.n, settings.m, settings.epsilon_amplified
        sized = with_first_stages(settings.samplers, settings.b)
        # The baseline draws Poisson samples and adds no noise.
        for sampler, b in [("nonprivate", None), *sized]:
            drawn_by = "poisson" if sampler == "nonprivate" else sampler
            drawn = sampling.of_sizes(drawn_by, n=n, m=m, b=b)
            if not isinstance(drawn, StagedSampler):
                raise ArgumentError(
                    f"the samplers of Table 5 must be chains of stages, got {sampler}; name another"
                )
            sigmas = [0.0, 0.0]
            if sampler != "nonprivate":
                plans = noise_plans(sampler, drawn, n, settings, target, variant)
                sigmas = [plan().sigma for plan in plans.values()]
            yield StatisticsCell(sampler, b, drawn, *sigmas)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        n, m, subsets = settings.n, settings.m, settings.subsets
        sets = normal_datasets(
            n, [run.streams.data({"n": n}, replicate) for replicate in run.replicates]
        )
        if run.variant == "consistent":
            # The sensitivity (U - L) / m holds for clipped data only (erratum E4).
            sets = np.clip(sets, settings.lower, settings.upper)
        rows = []
        for cell in self.runs(settings, run.variant):
            b = recorded_first_stage(cell.b)
            # The streams are keyed by the recorded size of the first stage; another key would draw
            # other numbers.
            key = {SAMPLER_KEY: cell.sampler, "b": b, "n": n, "m": m, "subsets": subsets}
            # The consistent variant divides Poisson samples by the fixed m (erratum E4).
            fixed = m if run.variant == "consistent" and cell.sampler == "poisson" else None
            # All samplers meet the same data set in a replicate: their differences are of sampling
            # and noise alone.
            for x, replicate in zip(sets, run.replicates, strict=True):
                samples = cell.drawn.draw_block(
                    Frame(n), subsets, run.streams.sample(key, replicate)
                )
                mean, variance = subset_statistics(x, samples, fixed)
                noise = run.streams.noise(key, replicate)
                rows.append(
                    (
                        replicate,
                        cell.sampler,
                        b,
                        cell.sigma_mean,
                        cell.sigma_variance,
                        release(mean, cell.sigma_mean, noise),
                        release(variance, cell.sigma_variance, noise),
                        expected_variance(cell.drawn, n),
                        float(samples.distinct.mean()),
                    )
                )
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))


# Experiments 2 and 3: regression

AVERAGED_ITERATIONS = 16
"""Number of last iterations over which the published RMSE averages (as_done)."""

Coefficients = Annotated[
    tuple[float, ...],
    Field(min_length=3, max_length=3, strict=False, description="Intercept and two slopes."),
]


@dataclass(frozen=True)
class DescentCell:
    """DP-SGD with one sampler at one ε' (NaN: no privacy)."""

    sampler: str
    epsilon_amplified: float
    drawn: Sampler
    predictor: type[Linear | Logistic]
    learning_rate: float
    sigma: float
    """Standard deviation of the noise on the average gradient."""
    clip: float | None
    """Largest norm of a record's gradient; None for the baseline without privacy."""
    divisor: float | None
    """Divisor of the sum of gradients; None for the realised batch size, as in Algorithm 2."""

    @property
    def key(self) -> dict[str, Any]:
        """Fields of the random streams that are the cell's own."""
        private = self.sigma > 0
        return {
            SAMPLER_KEY: self.sampler,
            "epsilon_amplified": self.epsilon_amplified if private else None,
        }

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of the noise in units of the clip, where the trainer adds it: to the
        sum if its divisor is fixed, else to the average."""
        if self.clip is None:
            return 0.0
        # Algorithm 2 adds N(0, sigma^2) to the mean gradient whatever the realised size: in units
        # of C, that of one mean.
        return self.sigma * (self.divisor or 1.0) / self.clip

    def train(
        self,
        x: np.ndarray,
        y: np.ndarray,
        initial: np.ndarray,
        iterations: int,
        key: dict[str, Any],
        run: Run,
        after_step: Callable[[np.ndarray], None] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the last coefficients, shape (replicates, p), and the gradients evaluated an
        iteration.

        `x` has the shape (n, p), or (replicates, n, p). The noise and the batches of a sampler are
        the same in all variants, so that these differ in nothing else; their streams have the
        fields of `key`.
        """
        n, p = x.shape[-2:]
        key = {**self.key, **key, "iterations": iterations}
        blocks = [
            self.drawn.draw_block(Frame(n), iterations, run.streams.sample(key, replicate))
            for replicate in run.replicates
        ]
        # A record that is drawn twice needs one gradient.
        gradients = np.array([block.distinct.mean() for block in blocks])
        if x.ndim == 3:
            blocks = descent.on_own_records(blocks, n)
        rngs = None
        if self.sigma:
            rngs = [run.streams.noise(key, replicate) for replicate in run.replicates]
        betas = descent.train(
            self.predictor(p),
            x.reshape(-1, p),
            y.reshape(-1),
            blocks,
            initial=initial,
            learning_rate=self.learning_rate,
            clip=self.clip,
            divisor=self.divisor,
            noise_multiplier=self.noise_multiplier,
            rngs=rngs,
            after_step=after_step,
        )
        return betas, gradients


def descent_cells(
    settings: Any,
    variant: str,
    n: int,
    targets: Iterable[float],
    predictor: type[Linear | Logistic],
    rate: float,
) -> Iterator[DescentCell]:
    """Yield the non-private baseline and each sampler at each ε', with the noise of the variant
    (see `noise_plans`).

    `as_done` draws MUST.WW with the MUST.OW sampler (erratum E6); `consistent` divides by m for
    Poisson (E4).
    """
    m, b = settings.m, settings.b
    # The paper's baseline: Poisson batches, no noise, and no clipping either.
    poisson = sampling.of_sizes("poisson", n=n, m=m)
    yield DescentCell(
        "nonprivate", math.nan, poisson, predictor, rate, 0.0, clip=None, divisor=None
    )
    for target in targets:
        for sampler in settings.samplers:
            drawn = sampling.of_sizes(sampler, n=n, m=m, b=b)
            plans = noise_plans(sampler, drawn, n, settings, target, variant)
            sigma = plans["gradient"]().sigma
            # The published runs drew MUST.WW with the sampler of MUST.OW (E6).
            if variant == "as_done" and sampler == "must_ww":
                drawn = sampling.of_sizes("must_ow", n=n, m=m, b=b)
            divisor = float(m) if variant == "consistent" and sampler == "poisson" else None
            yield DescentCell(
                sampler, float(target), drawn, predictor, rate, sigma, settings.clip, divisor
            )


def curves(name: str, fields: dict[str, Any], losses: list[Any], run: Run) -> pd.DataFrame:
    """Return one trace a replicate from the losses of all replicates after each iteration."""
    every = np.array(losses).T
    return pd.DataFrame(
        {
            "replicate": np.repeat(run.replicates, every.shape[1]),
            **fields,
            "iteration": np.tile(np.arange(1, every.shape[1] + 1), len(every)),
            name: every.ravel(),
        }
    )


@dataclass(frozen=True)
class Moments:
    """Second moments of R data sets: the full-data mean squared error of any beta at a cost of
    p^2."""

    gram: np.ndarray
    cross: np.ndarray
    square: np.ndarray
    n: int

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray) -> Moments:
        """`x` of shape (R, n, p), `y` of shape (R, n)."""
        flipped = np.swapaxes(x, 1, 2)
        return cls(
            np.matmul(flipped, x),
            np.matmul(flipped, y[:, :, None]),
            (y * y).sum(axis=1),
            x.shape[1],
        )

    def mean_squared_error(self, beta: np.ndarray) -> np.ndarray:
        """Mean over the n records of (x'beta - y)^2, shape (R,), for `beta` of shape (R, p)."""
        column = beta[:, :, None]
        quadratic = (column * (np.matmul(self.gram, column) - 2 * self.cross)).sum(axis=(1, 2))
        return (quadratic + self.square) / self.n


class LinearTraining(NamedTuple):
    """Results of training one cell."""

    cell: DescentCell
    # last coefficients, shape (replicates, 3)
    betas: np.ndarray
    # evaluated an iteration, shape (replicates,)
    gradients: np.ndarray
    # mean squared errors after each iteration, each of shape (replicates,)
    errors: list[np.ndarray]


def coefficient_errors(records: pd.DataFrame) -> pd.DataFrame:
    """Return the error of all coefficients together, as stated.

    At the smallest epsilon', where noise counts most.
    """
    private = records.query("variant == 'stated' and sampler != 'nonprivate'")
    smallest = private["epsilon_amplified"].min()
    rows = private[private["epsilon_amplified"] == smallest]
    errors = rows[[f"error_beta{i}" for i in range(3)]].to_numpy()
    losses = rows.assign(loss=np.sqrt((errors**2).sum(axis=1)))
    return losses.pivot(index="replicate", columns="sampler", values="loss")


class LinearRegression(Experiment):
    """DP-SGD for y = x'beta + N(0, 1), x = (1, x1, x2), x1 and x2 independent N(0, 1).

    Variants: `stated` and `consistent` meet all samplers with the same data sets and report the
    RMSE of the last iterate; `as_done` draws a fresh data set for each sampler, ε' and replicate,
    and reports the square root of the mean of the mean squared errors after each of the last 16
    iterations. See :func:`descent_cells` for noise and sampler.
    """

    name: ClassVar[str] = "linear_regression"
    stage = "simulate"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "sampler": "str",
        "epsilon_amplified": "float64",
        "sigma": "float64",
        "error_beta0": "float64",
        "error_beta1": "float64",
        "error_beta2": "float64",
        "rmse": "float64",
        "gradients": "float64",
    }
    variants: ClassVar[tuple[str, ...]] = ("stated", "as_done", "consistent")
    axes: ClassVar[tuple[str, ...]] = ("epsilon_amplified", "samplers")
    keys: ClassVar[tuple[str, ...]] = ("sampler", "epsilon_amplified")
    compares: ClassVar[StatedComparison | None] = StatedComparison("linear", coefficient_errors)

    class Settings(s.ExperimentSettings, Experiment2):
        parts: s.Parts = 2
        replicates: s.Replicates = 200
        iterations: Annotated[s.Iterations, Field(ge=AVERAGED_ITERATIONS)] = 200
        learning_rate: s.LearningRate = 0.04
        beta: Coefficients = (1, 0.5, 0.2)
        # Not stated in the paper; the public code starts here.
        initial: Coefficients = (-1, -1, -1)
        samplers: s.Samplers = SIX

        def check(self) -> None:
            for variant in LinearRegression.variants:
                list(LinearRegression.runs(self, variant))

    @staticmethod
    def runs(settings: Settings, variant: str) -> Iterator[DescentCell]:
        """Yield the runs in the order of Table 6."""
        targets, rate = settings.epsilon_amplified, settings.learning_rate
        return descent_cells(settings, variant, settings.n, targets, Linear, rate)

    def trained(self, settings: Settings, run: Run) -> Iterator[LinearTraining]:
        """Train each cell on all replicates."""
        n = settings.n
        truth, initial = np.array(settings.beta, float), np.array(settings.initial, float)
        sizes = {"n": n, "m": settings.m, "b": settings.b}
        # The public code draws a data set for every scheme, epsilon' and repeat; stated and
        # consistent pair all samplers on one.
        fresh, moments = run.variant == "as_done", None
        for cell in self.runs(settings, run.variant):
            if fresh or moments is None:
                paired = {"n": n, "beta": truth, **(cell.key if fresh else {})}
                rngs = [run.streams.data(paired, replicate) for replicate in run.replicates]
                x, y = linear_datasets(n, truth, rngs)
                moments = Moments.of(x, y)
            errors: list[np.ndarray] = []

            def measure(
                betas: np.ndarray, moments: Moments = moments, errors: list[np.ndarray] = errors
            ) -> None:
                errors.append(moments.mean_squared_error(betas))

            betas, gradients = cell.train(x, y, initial, settings.iterations, sizes, run, measure)
            yield LinearTraining(cell, betas, gradients, errors)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        truth = np.array(settings.beta, float)
        parts = []
        for cell, betas, gradients, errors in self.trained(settings, run):
            # Which RMSE Table 6 reports is not stated: the public code averages the last 16
            # iterations.
            averaged = errors[-AVERAGED_ITERATIONS:] if run.variant == "as_done" else errors[-1:]
            # added one by one: NumPy's order of summation, hence the last digit, depends on the
            # number of replicates
            mean_squared_error = sum(averaged) / len(averaged)
            error = betas - truth
            columns = {
                "replicate": run.replicates,
                "sampler": cell.sampler,
                "epsilon_amplified": cell.epsilon_amplified,
                "sigma": cell.sigma,
                **{f"error_beta{i}": error[:, i] for i in range(3)},
                "rmse": np.sqrt(mean_squared_error),
                "gradients": gradients,
            }
            parts.append(pd.DataFrame(columns))
        return self.frame(pd.concat(parts, ignore_index=True))


class LinearRegressionTrace(LinearRegression):
    """The full-data mean squared error after each iteration (MUST, Figure 6)."""

    name: ClassVar[str] = "linear_regression_trace"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "sampler": "str",
        "epsilon_amplified": "float64",
        "iteration": "int64",
        "mse": "float64",
    }
    keys: ClassVar[tuple[str, ...]] = ("sampler", "epsilon_amplified", "iteration")
    streams_of: ClassVar[str] = LinearRegression.name
    compares: ClassVar[StatedComparison | None] = None

    class Settings(LinearRegression.Settings):
        parts: s.Parts = 1
        replicates: s.Replicates = 1

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        parts = []
        for cell, _, _, errors in self.trained(settings, run):
            fields = {"sampler": cell.sampler, "epsilon_amplified": cell.epsilon_amplified}
            parts.append(curves("mse", fields, errors, run))
        return self.frame(pd.concat(parts, ignore_index=True))


def design_matrix(features: np.ndarray, label: np.ndarray, variant: str) -> np.ndarray:
    """Return the predictors with a leading column of ones; `as_done` leaves the label among them
    (erratum E1)."""
    leaked = [label[:, None]] if variant == "as_done" else []
    return np.hstack([np.ones((len(features), 1)), features, *leaked])


def training_losses(records: pd.DataFrame) -> pd.DataFrame:
    """Return the training log loss, which the paper shows, as stated."""
    private = records.query("variant == 'stated' and sampler != 'nonprivate'")
    rows = private[private["solver"] == "dp_sgd"]
    return rows.pivot(index="replicate", columns="sampler", values="train_loss")


def confusion_rates(predicted: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return accuracy, sensitivity, specificity, positive and negative predictive value, and F1; 0
    / 0 is NaN. `predicted` is a boolean array, `truth` holds 0 and 1; both have shape (n,).
    """
    # here, as its import takes a second
    from sklearn.metrics import accuracy_score, precision_recall_fscore_support

    actual = truth > 0.5
    precision, recall, f1, _ = precision_recall_fscore_support(
        actual, predicted, labels=[False, True], zero_division=np.nan
    )
    return {
        "accuracy": float(accuracy_score(actual, predicted)),
        "sensitivity": float(recall[1]),
        "specificity": float(recall[0]),
        "ppv": float(precision[1]),
        "npv": float(precision[0]),
        "f1": float(f1[1]),
    }


class AdultLogistic(Experiment):
    """DP-SGD for logistic regression on Adult; a record is one seed of one sampler.

    Variants: `stated` predicts income from the 13 features; `as_done` keeps income among the
    predictors (E1) and draws MUST.WW with the MUST.OW sampler (E6); `consistent` scales the noise
    to the gradient's sensitivity (E4) and adds a second solver, "converged", with a step size at
    which the same number of iterations comes close to the optimum. The row of solver "scikit_learn"
    is the unpenalised maximum likelihood fit, without privacy.
    """

    name: ClassVar[str] = "adult_logistic"
    stage = "train"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "sampler": "str",
        "solver": "str",
        "sigma": "float64",
        **dict.fromkeys(METRICS, "float64"),
        "train_loss": "float64",
        "gradients": "float64",
        "n_train": "int64",
        "n_test": "int64",
        "n_parameters": "int64",
    }
    variants: ClassVar[tuple[str, ...]] = ("stated", "as_done", "consistent")
    axes: ClassVar[tuple[str, ...]] = ("samplers",)
    needs_data: ClassVar[tuple[str, ...]] = ("adult",)
    compares: ClassVar[StatedComparison | None] = StatedComparison("adult", training_losses)

    class Settings(s.ExperimentSettings, Experiment3):
        parts: s.Parts = 2
        replicates: s.Replicates = 100
        iterations: s.Iterations = 1000
        # With it 1000 steps from all ones do not converge (erratum E1).
        learning_rate: s.LearningRate = 0.01
        learning_rate_converged: s.LearningRate | None = Field(
            2,
            description="Of the second solver in `consistent`, which comes close to the optimum "
            "in the same steps.",
        )
        # All ones, by the public code; the paper does not say.
        initial: float = Field(1, description="Initial value of every coefficient.")
        samplers: s.Samplers = SIX

        def check(self) -> None:
            for variant in AdultLogistic.variants:
                list(AdultLogistic.runs(self, variant))

    @staticmethod
    def runs(settings: Settings, variant: str) -> Iterator[tuple[str, DescentCell]]:
        """Yield (solver, cell), in the order of Table 8."""
        solvers = {"dp_sgd": settings.learning_rate}
        if variant == "consistent" and settings.learning_rate_converged is not None:
            solvers["converged"] = settings.learning_rate_converged
        for solver, rate in solvers.items():
            targets = [settings.epsilon_amplified]
            for cell in descent_cells(settings, variant, adult.N_TRAIN, targets, Logistic, rate):
                yield solver, cell

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        table = adult.load(run.data["adult"])
        x = design_matrix(table.X_train, table.y_train, run.variant)
        x_test = design_matrix(table.X_test, table.y_test, run.variant)
        sizes = {"n_train": len(x), "n_test": len(x_test), "n_parameters": x.shape[1]}

        def measures(beta: np.ndarray) -> dict[str, float]:
            # In nats, on the training part, as in Figure S4.
            losses = metrics.log_loss(x @ beta, table.y_train)
            return {
                **confusion_rates(x_test @ beta > 0, table.y_test),
                "train_loss": float(np.mean(losses)),
            }

        rows = []
        initial, key = np.full(x.shape[1], settings.initial), {"m": settings.m, "b": settings.b}
        for solver, cell in self.runs(settings, run.variant):
            betas, gradients = cell.train(x, table.y_train, initial, settings.iterations, key, run)
            for i, replicate in enumerate(run.replicates):
                row = {
                    "replicate": replicate,
                    "sampler": cell.sampler,
                    "solver": solver,
                    "sigma": cell.sigma,
                    "gradients": gradients[i],
                }
                rows.append({**row, **measures(betas[i]), **sizes})
        if run.variant == "consistent" and 0 in run.replicates:
            # imported here: it takes a second, and only this row needs it
            from sklearn.linear_model import LogisticRegression

            # No penalty: the target that the private steps would reach in the end. The column of
            # ones is in x.
            fit = LogisticRegression(C=np.inf, fit_intercept=False, max_iter=5000, tol=1e-8)
            beta = fit.fit(x, table.y_train).coef_[0]
            row = {
                "replicate": 0,
                "sampler": "nonprivate",
                "solver": "scikit_learn",
                "sigma": 0.0,
                "gradients": math.nan,
            }
            rows.append({**row, **measures(beta), **sizes})
        return self.frame(rows)


class AdultLogisticTrace(AdultLogistic):
    """The training cross-entropy after each iteration (MUST, Figure S4)."""

    name: ClassVar[str] = "adult_logistic_trace"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "sampler": "str",
        "iteration": "int64",
        "loss": "float64",
    }
    keys: ClassVar[tuple[str, ...]] = ("sampler", "iteration")
    streams_of: ClassVar[str] = AdultLogistic.name
    compares: ClassVar[StatedComparison | None] = None

    class Settings(AdultLogistic.Settings):
        parts: s.Parts = 1
        replicates: s.Replicates = 1
        learning_rate_converged: s.LearningRate | None = None

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        table = adult.load(run.data["adult"])
        x, y = design_matrix(table.X_train, table.y_train, run.variant), table.y_train
        sizes, initial = {"m": settings.m, "b": settings.b}, np.full(x.shape[1], settings.initial)
        parts = []
        for _, cell in self.runs(settings, run.variant):
            losses: list[list[float]] = []

            def measure(betas: np.ndarray, losses: list[list[float]] = losses) -> None:
                losses.append([float(np.mean(metrics.log_loss(x @ beta, y))) for beta in betas])

            cell.train(x, y, initial, settings.iterations, sizes, run, measure)
            parts.append(curves("loss", {"sampler": cell.sampler}, losses, run))
        return self.frame(pd.concat(parts, ignore_index=True))
