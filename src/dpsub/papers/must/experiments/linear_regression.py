"""MUST, experiment 2: private linear regression by DP-SGD on simulated data (Section 4.2.2, Tables 6, 7, Figure 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import sampling
from dpsub.data.simulated import linear_datasets
from dpsub.learning import subsets
from dpsub.learning.descent import Descent, batch_width, descend, squared_error_residual
from dpsub.learning.subsets import plan_noise
from dpsub.papers.must.settings import SIX, Coefficients, Experiment2
from dpsub.reproduce.experiment import SAMPLER_KEY, Experiment, Run
from dpsub.reproduce.settings import (
    ExperimentSettings,
    Iterations,
    LearningRate,
    Parts,
    Replicates,
    Samplers,
)
from dpsub.sampling import Sampler
from dpsub.sampling.frame import Frame
from dpsub.streams import Streams

AVERAGED_ITERATIONS = 16
"""How many of the last iterations the published RMSE averages over (as_done)."""


@dataclass(frozen=True)
class Cell:
    """One sampler at one ε' (NaN: no privacy)."""

    sampler: str
    epsilon_amplified: float
    drawn: Sampler
    sigma: float
    descent: Descent

    @property
    def key(self) -> dict[str, Any]:
        return {SAMPLER_KEY: self.sampler, "epsilon_amplified": None if self.sigma == 0 else self.epsilon_amplified}


def gradient_cells(
    settings: Any, variant: str, n: int, targets: Iterable[float], descent: Mapping[str, Any]
) -> Iterator[Cell]:
    """Yield the non-private baseline and each sampler at each ε', with the noise of the variant.

    `stated` and `as_done` scale the noise to C / n (Algorithm 2, step 2) and, in `as_done`, draw MUST.WW with the
    MUST.OW sampler (erratum E6). `consistent` scales it to 2C / m, the change that one copy of a substituted record
    makes to the mean of m clipped gradients, and for Poisson to C / m under add_remove with the fixed divisor m (E4).
    """
    m, b, clip = settings.m, settings.b, settings.clip
    poisson = sampling.of_sizes("poisson", n=n, m=m)
    yield Cell("nonprivate", float("nan"), poisson, 0.0, Descent(clip=None, **descent))
    for epsilon_amplified in targets:
        for sampler in settings.samplers:
            drawn = sampling.of_sizes(sampler, n=n, m=m, b=b)
            consistent = variant == "consistent"
            plan = plan_noise(
                drawn.multiplicity_law(n),
                epsilon_amplified=epsilon_amplified,
                delta=1 / n,
                sensitivity=subsets.of_gradient(sampler, n=n, m=m, clip=clip, variant=variant),
                calibration="analytic" if consistent else "classical",
            )
            if variant == "as_done" and sampler == "must_ww":
                drawn = sampling.of_sizes("must_ow", n=n, m=m, b=b)
            divisor = float(m) if consistent and sampler == "poisson" else None
            steps = Descent(clip=clip, divisor=divisor, **descent)
            yield Cell(sampler, float(epsilon_amplified), drawn, plan.sigma, steps)


@dataclass(frozen=True)
class Moments:
    """Second moments of R data sets: the full-data mean squared error of any beta at a cost of p^2."""

    gram: np.ndarray
    cross: np.ndarray
    square: np.ndarray
    n: int

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray) -> Moments:
        """`x` of shape (R, n, p), `y` of shape (R, n)."""
        flipped = np.swapaxes(x, 1, 2)
        return cls(np.matmul(flipped, x), np.matmul(flipped, y[:, :, None]), (y * y).sum(axis=1), x.shape[1])

    def mean_squared_error(self, beta: np.ndarray) -> np.ndarray:
        """Mean over the n records of (x'beta - y)^2, shape (R,), for `beta` of shape (R, p)."""
        column = beta[:, :, None]
        quadratic = (column * (np.matmul(self.gram, column) - 2 * self.cross)).sum(axis=(1, 2))
        return (quadratic + self.square) / self.n


class LinearRegression(Experiment):
    """DP-SGD for y = x'beta + N(0, 1), x = (1, x1, x2), x1 and x2 independent N(0, 1).

    Variants: `stated` and `consistent` meet all samplers with the same data sets and report the RMSE of the last
    iterate; `as_done` draws a fresh data set for each sampler, ε' and replicate, and reports the square root of the
    mean of the mean squared errors after each of the last 16 iterations. See :func:`gradient_cells` for noise and
    sampler.
    """

    name: ClassVar[str] = "linear_regression"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "sampler": "str", "epsilon_amplified": "float64", "sigma": "float64",
        "error_beta0": "float64", "error_beta1": "float64", "error_beta2": "float64", "rmse": "float64",
        "gradients": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated", "as_done", "consistent")
    axes: ClassVar[tuple[str, ...]] = ("epsilon_amplified", "samplers")
    keys: ClassVar[tuple[str, ...]] = ("sampler", "epsilon_amplified")

    class Settings(ExperimentSettings, Experiment2):
        parts: Parts = 2
        replicates: Replicates = 200
        iterations: Annotated[Iterations, Field(ge=AVERAGED_ITERATIONS)] = 200
        learning_rate: LearningRate = 0.04
        beta: Coefficients = (1, 0.5, 0.2)
        initial: Coefficients = (-1, -1, -1)
        samplers: Samplers = SIX

        def check(self) -> None:
            for variant in LinearRegression.variants:
                list(LinearRegression.runs(self, variant))

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        parts = []
        for cell, moments, betas, distinct in self.descents(settings, run.variant, run.replicates, run.streams):
            tail = np.empty((AVERAGED_ITERATIONS, len(run.replicates)))
            for t, current in enumerate(betas):
                beta = current
                tail[t % AVERAGED_ITERATIONS] = moments.mean_squared_error(beta)
            # added one by one: NumPy's order of summation, hence the last digit, depends on the number of replicates
            last = sum(tail) / AVERAGED_ITERATIONS if run.variant == "as_done" else moments.mean_squared_error(beta)
            error = beta - np.asarray(settings.beta, dtype=float)
            parts.append(pd.DataFrame({
                "replicate": list(run.replicates), "sampler": cell.sampler, "epsilon_amplified": cell.epsilon_amplified,
                "sigma": cell.sigma, "error_beta0": error[:, 0], "error_beta1": error[:, 1],
                "error_beta2": error[:, 2], "rmse": np.sqrt(last), "gradients": distinct,
            }))  # fmt: skip
        return self.frame(pd.concat(parts, ignore_index=True))

    @staticmethod
    def runs(settings: Settings, variant: str) -> Iterator[Cell]:
        """Yield the cells in the order of Table 6."""
        descent = {"residual": squared_error_residual, "learning_rate": settings.learning_rate}
        yield from gradient_cells(settings, variant, settings.n, settings.epsilon_amplified, descent)

    def descents(
        self, settings: Settings, variant: str, replicates: range, streams: Streams
    ) -> Iterator[tuple[Cell, Moments, Iterator[np.ndarray], np.ndarray]]:
        """Yield for each cell: the data's moments, the iterates, and the gradients evaluated an iteration."""
        n, iterations = settings.n, settings.iterations
        truth = np.asarray(settings.beta, dtype=float)
        fresh = variant == "as_done"
        moments = None
        for cell in self.runs(settings, variant):
            key = {**cell.key, "n": n, "m": settings.m, "b": settings.b, "iterations": iterations}
            if fresh or moments is None:
                paired = {"n": n, "beta": truth, **(cell.key if fresh else {})}
                x, y = linear_datasets(n, truth, [streams.data(paired, replicate) for replicate in replicates])
                moments = Moments.of(x, y)
            blocks, noise = [], None if cell.sigma == 0 else np.empty((len(replicates), iterations, 3))
            # the noise and the batches of a sampler are the same in all variants, so that these differ in nothing else
            for i, replicate in enumerate(replicates):
                rng = streams.sample(key, replicate)
                blocks.append(cell.drawn.draw_block(Frame(n), iterations, rng))
                if noise is not None:
                    rng = streams.noise(key, replicate)
                    noise[i] = cell.sigma * rng.standard_normal((iterations, 3))
            distinct = np.array([block.distinct.mean() for block in blocks])
            betas = descend(
                x, y, blocks, noise, np.asarray(settings.initial, dtype=float), cell.descent,
                width=batch_width(cell.drawn, n),
            )  # fmt: skip
            yield cell, moments, betas, distinct


class LinearRegressionTrace(LinearRegression):
    """The full-data mean squared error after each iteration (MUST, Figure 6)."""

    name: ClassVar[str] = "linear_regression_trace"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "sampler": "str", "epsilon_amplified": "float64", "iteration": "int64", "mse": "float64",
    }  # fmt: skip

    streams_of: ClassVar[str] = LinearRegression.name

    class Settings(LinearRegression.Settings):
        parts: Parts = 1
        replicates: Replicates = 1

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        parts = []
        for cell, moments, betas, _ in self.descents(settings, run.variant, run.replicates, run.streams):
            mse = np.array([moments.mean_squared_error(beta) for beta in betas])
            for i, replicate in enumerate(run.replicates):
                parts.append(pd.DataFrame({
                    "replicate": replicate, "sampler": cell.sampler, "epsilon_amplified": cell.epsilon_amplified,
                    "iteration": np.arange(1, len(mse) + 1), "mse": mse[:, i],
                }))  # fmt: skip
        return self.frame(pd.concat(parts, ignore_index=True))
