"""The utility experiments against plain loops: data, noise, batches, averaging and metrics of every
variant.

The loops below see the documented streams and the samplers' draws, and compute everything else on
their own: sizes of the noise from the formulas of the paper, gradients record by record, errors
from all records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.optimize import brentq
from scipy.stats import norm

from dpsub import sampling
from dpsub.data import adult
from dpsub.papers.must.experiments.utility import confusion_rates
from dpsub.reproduce import sweep
from dpsub.reproduce.experiments import REGISTRY
from dpsub.sampling.frame import Frame
from dpsub.streams import stream
from tests.experiment_runs import only

ROOT = 7
REPLICATES = range(1, 3)
TARGETS = [0.01, 0.1]
BETA, START = np.array([1.0, 0.5, 0.2]), np.array([-1.0, -1.0, -1.0])
SAMPLERS = ("nonprivate", "poisson", "wor", "wr", "must_wo", "must_ow", "must_ww")
VARIANTS = ("stated", "as_done", "consistent")


def records(
    name: str, variant: str, replicates: range, sizes: dict[str, Any], **data: Path
) -> pd.DataFrame:
    return REGISTRY.get(name)().compute(
        sizes, variant=variant, replicates=replicates, seed=ROOT, data=data
    )


def inclusion(sampler: str, n: int, m: int, b: int) -> float:
    """Return the probability that a record is drawn, from the closed forms of Table 2."""
    if sampler in ("poisson", "wor"):
        return m / n
    if sampler in ("wr", "must_wo"):
        return 1 - (1 - 1 / n) ** m
    if sampler == "must_ow":
        return b / n * (1 - (1 - 1 / b) ** m)
    return sum(
        math.comb(b, j) / n**j * (1 - 1 / n) ** (b - j) * (1 - (1 - j / b) ** m)
        for j in range(1, b + 1)
    )


def noise_scale(variant: str, target: float, eta: float, n: int, sensitivity: float) -> float:
    """Return the scale of Equation 9 at the base epsilon, or, consistently, the scale at which the
    exact delta is 1 / n."""
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


def descent(
    name: str,
    variant: str,
    sampler: str,
    target: float | None,
    replicate: int,
    sizes: dict[str, int],
    x: np.ndarray,
    slope: Callable[[np.ndarray, np.ndarray], np.ndarray],
    beta: np.ndarray,
    rate: float,
) -> Iterator[np.ndarray]:
    """Yield beta after each iteration: gradients record by record and copy by copy.

    `x` are the training records, `slope` the derivative of the loss of the records `rows` by their
    predictor, from beta and rows; `sizes` are the fields of the streams' keys, n among them where
    they have it.
    """
    n, m, b, iterations = len(x), sizes["m"], sizes["b"], sizes["iterations"]
    key = {"scheme": sampler, "epsilon_amplified": target, **sizes}  # "scheme": see SAMPLER_KEY
    sample, noisy = (
        stream(ROOT, experiment=name, cell=key, role=role, replicate=replicate)
        for role in ("sample", "noise")
    )
    block = sampler_of(sampler, variant, n, m, b).draw_block(Frame(n), iterations, sample)
    noise, consistent = np.zeros((iterations, x.shape[1])), variant == "consistent"
    if target is not None:
        moved = (3 if sampler == "poisson" else 6) / m if consistent else 3 / n
        sigma = noise_scale(variant, target, inclusion(sampler, n, m, b), n, moved)
        noise = sigma * noisy.standard_normal(noise.shape)
    for t in range(iterations):
        rows, total, copies = block[t].indices, np.zeros_like(beta), 0
        for gradient, count in zip(
            x[rows] * slope(beta, rows)[:, None], block[t].counts, strict=True
        ):
            size = float(np.linalg.norm(gradient))
            for _ in range(int(count)):
                total = total + (gradient if target is None or size <= 3 else gradient * 3 / size)
                copies += 1
        beta = beta - rate * (
            total / (m if consistent and sampler == "poisson" else copies) + noise[t]
        )
        yield beta


class TestLinearRegression:
    n, m, b, iterations = 60, 10, 20, 20

    @classmethod
    @cache
    def found(cls, variant: str, name: str = "linear_regression") -> pd.DataFrame:
        sizes = {
            "n": cls.n,
            "m": cls.m,
            "b": cls.b,
            "iterations": cls.iterations,
            "epsilon_amplified": TARGETS,
        }
        return records(name, variant, REPLICATES, sizes)

    def path(
        self, variant: str, sampler: str, target: float | None, replicate: int
    ) -> Iterator[tuple[np.ndarray, float]]:
        """Yield beta and the mean squared error of all records after each iteration."""
        n, name = self.n, "linear_regression"
        cell = {
            "n": n,
            "beta": BETA,
            **({"scheme": sampler, "epsilon_amplified": target} if variant == "as_done" else {}),
        }
        rng = stream(ROOT, experiment=name, cell=cell, role="data", replicate=replicate)
        x = np.column_stack([np.ones(n), rng.standard_normal((n, 2))])
        y = x @ BETA + rng.standard_normal(n)
        sizes = {"n": n, "m": self.m, "b": self.b, "iterations": self.iterations}
        for beta in descent(
            name,
            variant,
            sampler,
            target,
            replicate,
            sizes,
            x,
            lambda beta, rows: 2 * (x[rows] @ beta - y[rows]),
            START,
            0.04,
        ):
            yield beta, float(np.mean((y - x @ beta) ** 2))

    @pytest.mark.parametrize("variant", VARIANTS)
    @pytest.mark.parametrize("sampler", SAMPLERS)
    def test_equals_the_loop(self, variant: str, sampler: str) -> None:
        frame = self.found(variant)
        frame = frame.assign(epsilon_amplified=frame["epsilon_amplified"].fillna(-1))
        for target in [None] if sampler == "nonprivate" else TARGETS:
            for replicate in REPLICATES:
                row = only(
                    frame, sampler=sampler, epsilon_amplified=target or -1, replicate=replicate
                )
                betas, errors = zip(*self.path(variant, sampler, target, replicate), strict=True)
                last = np.mean(errors[-16:]) if variant == "as_done" else errors[-1]
                assert row["rmse"] == pytest.approx(math.sqrt(last), rel=1e-9)
                assert [row[f"error_beta{i}"] for i in range(3)] == pytest.approx(
                    betas[-1] - BETA, rel=1e-8, abs=1e-12
                )

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_the_trace_is_the_path(self, variant: str) -> None:
        trace = self.found(variant, "linear_regression_trace")
        curve = trace[
            (trace["sampler"] == "must_ww")
            & (trace["epsilon_amplified"] == 0.1)
            & (trace["replicate"] == 1)
        ]
        errors = [error for _, error in self.path(variant, "must_ww", 0.1, 1)]
        assert curve["mse"].tolist() == pytest.approx(errors, rel=1e-9)


@pytest.mark.parametrize("variant", ["stated", "consistent"])
def test_subset_statistics_equal_the_loop(variant: str) -> None:
    n, m, subsets, name, consistent = 40, 8, 12, "subset_statistics", variant == "consistent"
    # narrow bounds, so that clipping is seen
    sizes = {"n": n, "m": m, "b": [10, 15], "subsets": subsets, "lower": -1, "upper": 2}
    for row in records(name, variant, REPLICATES, sizes).to_dict("records"):
        sampler, b, replicate = row["sampler"], row["b"], row["replicate"]
        key = {"scheme": sampler, "b": b, "n": n, "m": m, "subsets": subsets}
        data, sample, noise = (
            stream(ROOT, experiment=name, cell=cell, role=role, replicate=replicate)
            for cell, role in (({"n": n}, "data"), (key, "sample"), (key, "noise"))
        )
        x = data.standard_normal(n)
        x = np.clip(x, -1, 2) if consistent else x
        block = sampler_of(sampler, variant, n, m, b or n).draw_block(Frame(n), subsets, sample)
        fixed = m if consistent and sampler == "poisson" else None
        means, variances = [], []
        drawn = [block[i] for i in range(subsets)]
        for subset in drawn:
            values = np.repeat(x[subset.indices], subset.counts)
            means.append(values.sum() / (fixed or len(values)))
            variances.append(((values - values.mean()) ** 2).sum() / ((fixed or len(values)) - 1))
        for quantity, statistics in (("mean", means), ("variance", variances)):
            sigma = 0.0
            if sampler != "nonprivate":
                moved = {"mean": 3, "variance": 9}[quantity] / (m if consistent else n)
                if fixed:
                    moved = {"mean": 2 / m, "variance": 9 / (m - 1)}[quantity]
                sigma = noise_scale(variant, 0.1, inclusion(sampler, n, m, b), n, moved)
            assert row[f"sigma_{quantity}"] == pytest.approx(sigma, rel=1e-8)
            noisy = np.array(statistics) + (sigma * noise.standard_normal(subsets) if sigma else 0)
            assert row[quantity] == pytest.approx(noisy.mean(), rel=1e-9)
        assert row["distinct"] == pytest.approx(np.mean([len(subset.indices) for subset in drawn]))


@pytest.fixture(scope="module")
def found(prepared: dict[str, Path]) -> dict[str, pd.DataFrame]:
    sizes = {"m": 30, "b": 50, "iterations": 25, "epsilon_amplified": 0.01, "initial": 0.2}
    return {
        name: records("adult_logistic", name, REPLICATES, sizes, **prepared) for name in VARIANTS
    }


class TestAdultLogistic:
    @pytest.mark.parametrize(
        ("variant", "sampler", "solver"),
        [
            ("stated", "nonprivate", "dp_sgd"),
            ("stated", "poisson", "dp_sgd"),
            ("stated", "must_ww", "dp_sgd"),
            ("as_done", "must_ow", "dp_sgd"),
            ("as_done", "must_ww", "dp_sgd"),
            ("consistent", "poisson", "dp_sgd"),
            ("consistent", "wr", "dp_sgd"),
            ("consistent", "must_ww", "converged"),
        ],
    )
    def test_equals_the_loop(
        self, found: dict[str, pd.DataFrame], variant: str, sampler: str, solver: str
    ) -> None:
        n, table = adult.N_TRAIN, adult.scaled(adult.stand_in())
        y = table[adult.TARGET].to_numpy(float)
        x = np.column_stack(
            [
                np.ones(len(table)),
                table[list(adult.FEATURES)],
                *([y] if variant == "as_done" else []),
            ]
        )
        *_, beta = descent(
            "adult_logistic",
            variant,
            sampler,
            None if sampler == "nonprivate" else 0.01,
            2,
            {"m": 30, "b": 50, "iterations": 25},
            x[:n],
            lambda beta, rows: 1 / (1 + np.exp(-x[rows] @ beta)) - y[rows],
            np.full(x.shape[1], 0.2),
            2 if solver == "converged" else 0.01,
        )
        row = only(found[variant], sampler=sampler, solver=solver, replicate=2)
        score, actual = x[n:] @ beta, y[n:] == 1
        predicted = score > 0
        assert row["accuracy"] == (predicted == actual).mean()
        assert row["sensitivity"] == predicted[actual].mean()
        assert row["specificity"] == (~predicted[~actual]).mean()
        train = x[:n] @ beta
        assert row["train_loss"] == pytest.approx(
            np.mean(np.log1p(np.exp(train)) - y[:n] * train), rel=1e-9
        )

    def test_solvers_of_the_variants(
        self, found: dict[str, pd.DataFrame], prepared: dict[str, Path]
    ) -> None:
        """The reference fit comes once, with the first replicate."""
        solvers = {name: set(found[name]["solver"]) for name in VARIANTS}
        assert solvers == {
            "stated": {"dp_sgd"},
            "as_done": {"dp_sgd"},
            "consistent": {"dp_sgd", "converged"},
        }
        sizes = {"m": 5, "b": 5, "iterations": 1}
        frame = records("adult_logistic", "consistent", range(1), sizes, **prepared)
        assert (frame["solver"] == "scikit_learn").sum() == 1


def test_a_utility_experiment_can_be_swept(tmp_path: Path) -> None:
    block = {
        "experiment": "linear_regression",
        "variants": ["stated"],
        "replicates": 2,
        "vary": {"m": [50, 100]},
    }
    whole = {"seed": 1, "results_dir": str(tmp_path / "results"), "sweep": [block]}
    path = tmp_path / "sweep.yaml"
    path.write_text(yaml.safe_dump(whole), encoding="utf-8")
    found = sweep.SweepPlan(sweep.load([path])).wanted.values()
    assert {cell.varied["m"] for cell, _ in found} == {50, 100}
    assert len({cell.settings.samplers for cell, _ in found}) > 3


def test_rates_of_the_confusion_table_by_hand() -> None:
    truth = np.array([1, 1, 1, 0, 0, 0, 0, 1])
    predicted = np.array([1, 1, 0, 0, 0, 1, 0, 0], dtype=bool)
    found = confusion_rates(predicted, truth)
    expected = {
        "accuracy": 5 / 8,
        "sensitivity": 1 / 2,
        "specificity": 3 / 4,
        "ppv": 2 / 3,
        "npv": 3 / 5,
        "f1": 4 / 7,
    }
    assert found == pytest.approx(expected, rel=1e-15)
    assert np.isnan(confusion_rates(np.zeros(3, dtype=bool), np.zeros(3))["ppv"])
