"""The utility experiments against plain loops: data, noise, batches, averaging and metrics of every variant.

The loops below see the documented streams and the samplers' draws, and compute everything else on their own: sizes of
the noise from the formulas of the paper, gradients record by record, errors from all records.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from dpsub import sampling
from dpsub.data import adult
from dpsub.reproduce.experiments import REGISTRY
from dpsub.sampling.frame import Frame, Sample
from dpsub.streams import stream
from tests.experiment_runs import only, settings_of

ROOT = 7
REPLICATES = range(1, 3)
TARGETS = [0.01, 0.1]
BETA, START = np.array([1.0, 0.5, 0.2]), np.array([-1.0, -1.0, -1.0])
SAMPLERS = ("nonprivate", "poisson", "wor", "wr", "must_wo", "must_ow", "must_ww")
VARIANTS = ("stated", "as_done", "consistent")


def records(
    name: str, variant: str, replicates: range, sizes: dict[str, Any], data: dict[str, Path] | None = None
) -> pd.DataFrame:
    settings = settings_of(name, **sizes)
    return REGISTRY.get(name)().compute(settings, variant=variant, replicates=replicates, seed=ROOT, data=data or {})


def inclusion(sampler: str, n: int, m: int, b: int) -> float:
    """Probability that a record is drawn, from the closed forms of Table 2."""
    if sampler in ("poisson", "wor"):
        return m / n
    if sampler in ("wr", "must_wo"):
        return 1 - (1 - 1 / n) ** m
    if sampler == "must_ow":
        return b / n * (1 - (1 - 1 / b) ** m)
    return sum(math.comb(b, j) / n**j * (1 - 1 / n) ** (b - j) * (1 - (1 - j / b) ** m) for j in range(1, b + 1))


def noise_scale(variant: str, target: float, eta: float, n: int, sensitivity: float) -> float:
    """Equation 9 at the base epsilon, or, consistently, the scale at which the exact delta is 1 / n."""
    epsilon = math.log1p(math.expm1(target) / eta)
    if variant != "consistent":
        return sensitivity * math.sqrt(2 * math.log(1.25 * n)) / epsilon

    def excess(ratio: float) -> float:
        shift, half = epsilon / ratio, ratio / 2
        return float(norm.cdf(half - shift) - math.exp(epsilon) * norm.cdf(-half - shift)) - 1 / n

    return sensitivity / float(brentq(excess, 1e-3, 50, xtol=1e-14))


def sampler_of(sampler: str, variant: str, n: int, m: int, b: int) -> sampling.Sampler:
    drawn = "poisson" if sampler == "nonprivate" else sampler
    if variant == "as_done" and sampler == "must_ww":
        drawn = "must_ow"
    return sampling.of_sizes(drawn, n=n, m=m, b=b)


def step(
    beta: np.ndarray, gradients: np.ndarray, batch: Sample, clip: float | None, divisor: float | None
) -> np.ndarray:
    """Average of the gradients of a batch, record by record and copy by copy."""
    total, copies = np.zeros_like(beta), 0
    for gradient, count in zip(gradients, batch.counts, strict=True):
        size = float(np.linalg.norm(gradient))
        for _ in range(int(count)):
            total = total + (gradient if clip is None or size <= clip else gradient * clip / size)
            copies += 1
    return total / (divisor or copies)


class TestLinearRegression:
    n, m, b, iterations = 60, 10, 20, 20

    @classmethod
    def sizes(cls) -> dict[str, Any]:
        return {"n": cls.n, "m": cls.m, "b": cls.b, "iterations": cls.iterations, "epsilon_amplified": TARGETS}

    @classmethod
    @cache
    def found(cls, variant: str, name: str = "linear_regression") -> pd.DataFrame:
        return records(name, variant, REPLICATES, cls.sizes())

    def rng(self, role: str, cell: dict[str, Any], replicate: int) -> np.random.Generator:
        return stream(ROOT, experiment="linear_regression", cell=cell, role=role, replicate=replicate)

    def path(
        self, variant: str, sampler: str, target: float | None, replicate: int
    ) -> Iterator[tuple[np.ndarray, float]]:
        """Yield beta and the mean squared error of all records after each iteration."""
        n, m, b = self.n, self.m, self.b
        key = {"scheme": sampler, "epsilon_amplified": target}  # "scheme": see SAMPLER_KEY
        rng = self.rng("data", {"n": n, "beta": BETA, **(key if variant == "as_done" else {})}, replicate)
        x = np.column_stack([np.ones(n), rng.standard_normal((n, 2))])
        y = x @ BETA + rng.standard_normal(n)
        cell = {**key, "n": n, "m": m, "b": b, "iterations": self.iterations}
        block = sampler_of(sampler, variant, n, m, b).draw_block(
            Frame(n), self.iterations, self.rng("sample", cell, replicate)
        )
        noise = np.zeros((self.iterations, 3))
        fixed = variant == "consistent" and sampler == "poisson"
        if target is not None:
            moved = (3 if sampler == "poisson" else 6) / m if variant == "consistent" else 3 / n
            sigma = noise_scale(variant, target, inclusion(sampler, n, m, b), n, moved)
            noise = sigma * self.rng("noise", cell, replicate).standard_normal((self.iterations, 3))
        beta = START
        for t in range(self.iterations):
            rows = block[t].indices
            gradients = 2 * x[rows] * (x[rows] @ beta - y[rows])[:, None]
            clip = None if target is None else 3.0
            beta = beta - 0.04 * (step(beta, gradients, block[t], clip, m if fixed else None) + noise[t])
            yield beta, float(np.mean((y - x @ beta) ** 2))

    @pytest.mark.parametrize("variant", VARIANTS)
    @pytest.mark.parametrize("sampler", SAMPLERS)
    def test_equals_the_loop(self, variant: str, sampler: str) -> None:
        frame = self.found(variant)
        frame = frame.assign(epsilon_amplified=frame["epsilon_amplified"].fillna(-1))
        for target in [None] if sampler == "nonprivate" else TARGETS:
            for replicate in REPLICATES:
                row = only(frame, sampler=sampler, epsilon_amplified=target or -1, replicate=replicate)
                betas, errors = zip(*self.path(variant, sampler, target, replicate), strict=True)
                last = np.mean(errors[-16:]) if variant == "as_done" else errors[-1]
                assert row["rmse"] == pytest.approx(math.sqrt(last), rel=1e-9)
                assert [row[f"error_beta{i}"] for i in range(3)] == pytest.approx(betas[-1] - BETA, rel=1e-8, abs=1e-12)

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_the_trace_is_the_path(self, variant: str) -> None:
        trace = self.found(variant, "linear_regression_trace")
        curve = trace[(trace["sampler"] == "must_ww") & (trace["epsilon_amplified"] == 0.1) & (trace["replicate"] == 1)]
        errors = [error for _, error in self.path(variant, "must_ww", 0.1, 1)]
        assert curve["mse"].tolist() == pytest.approx(errors, rel=1e-9)


class TestSubsetStatistics:
    n, m, subsets = 40, 8, 12

    @classmethod
    @cache
    def found(cls, variant: str) -> pd.DataFrame:
        # narrow bounds, so that clipping is seen
        sizes = {"n": cls.n, "m": cls.m, "b": [10, 15], "subsets": cls.subsets, "lower": -1, "upper": 2}
        return records("subset_statistics", variant, REPLICATES, sizes)

    @pytest.mark.parametrize("variant", ["stated", "consistent"])
    def test_equals_the_loop(self, variant: str) -> None:
        n, m, consistent = self.n, self.m, variant == "consistent"
        for row in self.found(variant).to_dict("records"):
            sampler, b, replicate = row["sampler"], row["b"], row["replicate"]
            data = stream(ROOT, experiment="subset_statistics", cell={"n": n}, role="data", replicate=replicate)
            x = data.standard_normal(n)
            x = np.clip(x, -1, 2) if consistent else x
            key = {"scheme": sampler, "b": b, "n": n, "m": m, "subsets": self.subsets}
            rng = stream(ROOT, experiment="subset_statistics", cell=key, role="sample", replicate=replicate)
            block = sampler_of(sampler, variant, n, m, b or n).draw_block(Frame(n), self.subsets, rng)
            fixed = m if consistent and sampler == "poisson" else None
            means, variances = [], []
            drawn = [block[i] for i in range(self.subsets)]
            for subset in drawn:
                values = np.repeat(x[subset.indices], subset.counts)
                means.append(values.sum() / (fixed or len(values)))
                variances.append(((values - values.mean()) ** 2).sum() / ((fixed or len(values)) - 1))
            noise = stream(ROOT, experiment="subset_statistics", cell=key, role="noise", replicate=replicate)
            for name, statistics in (("mean", means), ("variance", variances)):
                sigma = 0.0
                if sampler != "nonprivate":
                    moved = {"mean": 3, "variance": 9}[name] / (m if consistent else n)
                    if fixed:
                        moved = {"mean": 2 / m, "variance": 9 / (m - 1)}[name]
                    sigma = noise_scale(variant, 0.1, inclusion(sampler, n, m, b), n, moved)
                assert row[f"sigma_{name}"] == pytest.approx(sigma, rel=1e-8)
                noisy = np.array(statistics) + (sigma * noise.standard_normal(self.subsets) if sigma else 0)
                assert row[name] == pytest.approx(noisy.mean(), rel=1e-9)
            assert row["distinct"] == pytest.approx(np.mean([len(subset.indices) for subset in drawn]))


ADULT_SIZES: dict[str, Any] = {"m": 30, "b": 50, "iterations": 25, "epsilon_amplified": 0.01, "initial": 0.2}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return adult.scaled(adult.stand_in())


@pytest.fixture(scope="module")
def found(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    path = tmp_path_factory.mktemp("adult") / "adult.parquet"
    adult.write(table, path, label="synthetic", sources={})
    return {name: records("adult_logistic", name, REPLICATES, ADULT_SIZES, {"adult": path}) for name in VARIANTS}


class TestAdultLogistic:
    m, b, iterations = ADULT_SIZES["m"], ADULT_SIZES["b"], ADULT_SIZES["iterations"]

    @pytest.mark.parametrize(
        ("variant", "sampler", "solver"),
        [
            ("stated", "nonprivate", "dp_sgd"), ("stated", "poisson", "dp_sgd"), ("stated", "must_ww", "dp_sgd"),
            ("as_done", "must_ow", "dp_sgd"), ("as_done", "must_ww", "dp_sgd"), ("consistent", "poisson", "dp_sgd"),
            ("consistent", "wr", "dp_sgd"), ("consistent", "must_ww", "converged"),
        ],
    )  # fmt: skip
    def test_equals_the_loop(
        self, found: dict[str, pd.DataFrame], table: pd.DataFrame, variant: str, sampler: str, solver: str
    ) -> None:
        n, replicate = adult.N_TRAIN, 2
        target = None if sampler == "nonprivate" else 0.01
        y = table[adult.TARGET].to_numpy(float)
        x = np.column_stack([np.ones(len(table)), table[list(adult.FEATURES)], *([y] if variant == "as_done" else [])])
        cell = {"scheme": sampler, "epsilon_amplified": target, "m": self.m, "b": self.b, "iterations": self.iterations}
        rng = stream(ROOT, experiment="adult_logistic", cell=cell, role="sample", replicate=replicate)
        block = sampler_of(sampler, variant, n, self.m, self.b).draw_block(Frame(n), self.iterations, rng)
        consistent = variant == "consistent"
        noise = np.zeros((self.iterations, x.shape[1]))
        if target is not None:
            moved = (3 if sampler == "poisson" else 6) / self.m if consistent else 3 / n
            sigma = noise_scale(variant, target, inclusion(sampler, n, self.m, self.b), n, moved)
            rng = stream(ROOT, experiment="adult_logistic", cell=cell, role="noise", replicate=replicate)
            noise = sigma * rng.standard_normal((self.iterations, x.shape[1]))
        beta = np.full(x.shape[1], 0.2)
        for t in range(self.iterations):
            rows = block[t].indices
            gradients = x[rows] * (1 / (1 + np.exp(-x[rows] @ beta)) - y[rows])[:, None]
            divisor = self.m if consistent and sampler == "poisson" else None
            moved_by = step(beta, gradients, block[t], None if target is None else 3.0, divisor) + noise[t]
            beta = beta - (2 if solver == "converged" else 0.01) * moved_by
        row = only(found[variant], sampler=sampler, solver=solver, replicate=replicate)
        score, actual = x[n:] @ beta, y[n:] == 1
        predicted = score > 0
        assert row["accuracy"] == (predicted == actual).mean()
        assert row["sensitivity"] == predicted[actual].mean()
        assert row["specificity"] == (~predicted[~actual]).mean()
        train = x[:n] @ beta
        assert row["train_loss"] == pytest.approx(np.mean(np.log1p(np.exp(train)) - y[:n] * train), rel=1e-9)

    def test_solvers_of_the_variants(self, found: dict[str, pd.DataFrame]) -> None:
        solvers = {name: set(found[name]["solver"]) for name in VARIANTS}
        assert solvers == {"stated": {"dp_sgd"}, "as_done": {"dp_sgd"}, "consistent": {"dp_sgd", "converged"}}

    def test_the_reference_fit_comes_once_with_the_first_replicate(self, table: pd.DataFrame, tmp_path: Path) -> None:
        path = tmp_path / "adult.parquet"
        adult.write(table, path, label="synthetic", sources={})
        sizes = {"m": 5, "b": 5, "iterations": 1}
        frame = records("adult_logistic", "consistent", range(1), sizes, {"adult": path})
        assert len(frame[frame["solver"] == "scikit_learn"]) == 1
