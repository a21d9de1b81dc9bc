"""Small records in the shape of every experiment of the main paper; the numbers are made up, the laws are real."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from dpsub import noise
from dpsub.amplification import amplify
from dpsub.sampling import of_sizes

SAMPLERS = ("poisson", "wor", "wr", "must_wo", "must_ow", "must_ww")
PRINTED = ("poisson", "wor", "wr", "must_ow", "must_ww")
SIZES = {"n": 60, "m": 24, "b": 30}


def amplification_grid(epsilons: tuple[float, ...] = (0.05, 0.5, 1.0, 2.0, 3.0, 4.5)) -> pd.DataFrame:
    """Return the grid of amplified parameters for a small frame, through the real laws."""
    frames = []
    for mechanism, ratio, sampler in itertools.product(("laplace", "gaussian"), (0.25, 1.0), SAMPLERS):
        law = of_sizes(sampler, **SIZES).multiplicity_law(SIZES["n"])
        found = amplify(law, noise.of(mechanism, ratio), np.array(epsilons))
        frames.append(pd.DataFrame({
            "replicate": 0, "mechanism": mechanism, "ratio": ratio, "sampler": sampler, "epsilon": found.epsilon,
            "delta": found.delta, "epsilon_amplified": found.epsilon_amplified,
            "delta_amplified": found.delta_amplified, "eta": found.eta, "category": "strong",
        }))
    return _labelled(pd.concat(frames, ignore_index=True), "stated")


def amplification_crossings() -> pd.DataFrame:
    """Return thresholds of three samplers and crossovers of their pairs."""
    rows = []
    samplers = tuple(enumerate(("wr", "must_ow", "must_ww")))
    for mechanism, (rank, sampler) in itertools.product(("laplace", "gaussian"), samplers):
        rows.append((mechanism, "threshold", sampler, "", 1.0 + rank, 0.0376 + 0.01 * rank, np.nan))
    for mechanism, (first, second) in itertools.product(
        ("laplace", "gaussian"), itertools.combinations(("wor", "wr", "must_ow", "must_ww"), 2)
    ):
        rows.append((mechanism, "crossover", first, second, 0.5, 0.25, 0.1))
    names = ["mechanism", "kind", "sampler", "other", "epsilon", "delta", "delta_amplified"]
    frame = pd.DataFrame(rows, columns=names).assign(replicate=0)
    return pd.concat([_labelled(frame, "stated"), _labelled(frame[frame["kind"] == "threshold"], "as_done")])


def design_surface(m: range = range(10, 16), b: range = range(16, 24)) -> pd.DataFrame:
    """Return smooth surfaces over a small grid of sizes."""
    rows = [
        (0, sampler, i, j, mechanism, i / 100 - 1 / j + shift, 0.1, 0.1 + i / j / 100 + shift, i / j / 100 + shift)
        for (sampler, shift), i, j, mechanism in itertools.product(
            (("must_ow", 0.0), ("must_ww", 0.005)), m, b, ("laplace", "gaussian")
        )
    ]
    names = ["replicate", "sampler", "m", "b", "mechanism", "eta", "delta", "delta_amplified", "delta_difference"]
    return _labelled(pd.DataFrame(rows, columns=names), "stated")


def noise_calibration() -> pd.DataFrame:
    """Return noise scales of the three tables; one cell lies outside the classical rule."""
    rows = []
    for sampler in SAMPLERS:
        for b, statistic in itertools.product((10, 20) if sampler.startswith("must") else (0,), ("mean", "variance")):
            rows.append(("table4", sampler, b, 0.1, statistic, 0.13 * (1 + (statistic == "variance")), int(b != 10)))
        for epsilon in (0.01, 0.001):
            rows.append(("table6", sampler, 200 if sampler.startswith("must") else 0, epsilon, "gradient", 0.118, 1))
        rows.append(("table8", sampler, 500 if sampler.startswith("must") else 0, 0.0005, "gradient", 2.6536 / 300, 1))
    names = ["table", "sampler", "b", "epsilon_amplified", "statistic", "sigma", "epsilon_valid"]
    frame = pd.DataFrame(rows, columns=names).assign(
        replicate=0, m=300, eta=0.1, epsilon=0.5, delta=1 / 300, sensitivity=0.03, delta_amplified=1 / 3000
    )
    return pd.concat([_labelled(frame, variant) for variant in ("stated", "as_done", "consistent")])


def composition() -> pd.DataFrame:
    """Return bounds of delta for Table 8 and Figure S2 by the three methods."""
    frames = []
    for variant, method in (("stated", "printed"), ("as_done", "as_done"), ("consistent", "cell_mass")):
        rows = [("table8", sampler, method, 1000, 2.0, 2.6536, 0.0, 2e-6, 4.17e-6) for sampler in PRINTED]
        rows += [
            ("figure_s2", sampler, method, k, 1.0, 4.0, 1e-9 * k, 2e-9 * k, 4e-9 * k)
            for sampler, k in itertools.product(("must_ow", "must_ww"), (200, 400, 600))
        ]
        names = ["table", "sampler", "method", "n_compositions", "epsilon", "scale"]
        names += ["delta_lower", "delta", "delta_upper"]
        frame = pd.DataFrame(rows, columns=names).assign(replicate=0, half_width=6.0, grid_size=1000)
        frames.append(_labelled(frame, variant))
    return pd.concat(frames)


def accounts(*keys: tuple[str, str, str, str, int, str, float], scale: float = 4.0) -> pd.DataFrame:
    """Return answers of the accountant: (table, sampler, adjacency, denominator, steps, quantity, attack) each.

    The proof is twice the attack, the paper's pair a tenth of it; a realised denominator has neither.
    """
    rows = [
        (i, table, sampler, adjacency, denominator, scale, k, quantity, 1.0, "bounds",
         *((np.nan, np.nan, low, np.nan) if denominator == "realised" else (low / 10, low / 9.9, low, 2 * low)))
        for i, (table, sampler, adjacency, denominator, k, quantity, low) in enumerate(keys)
    ]  # fmt: skip
    names = ["replicate", "table", "sampler", "adjacency", "denominator", "noise_multiplier", "n_compositions",
             "quantity", "given", "kind", "pair_lower", "pair_upper", "attack", "proved"]
    return _labelled(pd.DataFrame(rows, columns=names), "rigorous")


def proved_composition() -> pd.DataFrame:
    """Return both sides for Table 8 at its three noises, and for Figure S2."""
    keys: list[tuple[str, str, str, str, int, str, float]] = [
        ("table8", "poisson", "add_remove", "realised", 1000, "delta", 0.3)
    ]
    for i, sampler in enumerate(PRINTED):
        relation = "add_remove" if sampler == "poisson" else "substitute"
        keys.append(("table8", sampler, relation, "fixed", 1000, "delta", 0.01 * (i + 1)))
        keys.append(("table8_printed_scale", sampler, relation, "fixed", 1000, "delta", 1e-6 * 10**i))
        keys.append(("table8_consistent_noise", sampler, relation, "fixed", 1000, "epsilon", 0.013 + i / 1000))
    keys += [
        ("figure_s2", sampler, "substitute", "fixed", k, "delta", 5e-5 * k)
        for sampler, k in itertools.product(("must_ow", "must_ww"), (200, 400, 600))
    ]
    return accounts(*keys)


def proved_steps() -> pd.DataFrame:
    """Return epsilon growing with the root of the number of steps."""
    relations = [("poisson", "add_remove"), *((sampler, "substitute") for sampler in PRINTED)]
    return accounts(*(
        ("proved_steps", sampler, relation, "fixed", k, "epsilon", (i + 1) * k**0.5 / 100)
        for (i, (sampler, relation)), k in itertools.product(enumerate(relations), (1, 30, 1000))
    ))


def proved_noise() -> pd.DataFrame:
    """Return noise falling with the target."""
    relations = [("poisson", "add_remove"), *((sampler, "substitute") for sampler in PRINTED)]
    rows = [
        (j, sampler, relation, 1000, 1e-5, target, (i + 2) / target**0.5, (i + 1.8) / target**0.5,
         np.nan if (sampler, relation) == ("poisson", "substitute") else 2 / target**0.5)
        for j, ((i, (sampler, relation)), target) in enumerate(itertools.product(enumerate(relations), (1.0, 2.0, 4.0)))
    ]  # fmt: skip
    names = ["replicate", "sampler", "adjacency", "n_compositions", "delta", "target_epsilon", "proved", "refuted",
             "pair"]
    return _labelled(pd.DataFrame(rows, columns=names), "rigorous")


def peer_bounds() -> pd.DataFrame:
    """Return answers of three tools, one of which is not installed and one lies below an attack."""
    rows = [
        (0, "poisson", "add_remove", 10000, 100, 1.0, 1000, 1e-5, "dpsub", "bracket", 1.0, 1.8282, 1.8283, ""),
        (1, "poisson", "add_remove", 10000, 100, 1.0, 1000, 1e-5, "peer", "interval", 1.0, 1.81, 1.84, ""),
        (2, "poisson", "add_remove", 10000, 100, 1.0, 1000, 1e-5, "absent", "interval", 1.0, np.nan, np.nan,
         "absent is not installed (no module absent); install it to compare"),
        (3, "wor", "substitute", 1000, 20, 4.0, 1000, 1e-5, "dpsub", "attack and proof", 4.0, 1.06, 1.28, ""),
        (4, "wor", "substitute", 1000, 20, 4.0, 1000, 1e-5, "peer", "upper value", 4.0, np.nan, 0.99, ""),
    ]  # fmt: skip
    names = ["replicate", "sampler", "adjacency", "n", "m", "noise_multiplier", "n_compositions", "delta", "tool",
             "kind", "tool_noise", "lower", "upper", "note"]
    return _labelled(pd.DataFrame(rows, columns=names), "rigorous")


def peer_times() -> pd.DataFrame:
    """Return times of the same."""
    return peer_bounds().assign(seconds=[0.1, 1.0, 0.0, 0.2, 0.4])


def subset_statistics(replicates: int = 12) -> pd.DataFrame:
    """Return released means and variances around their true values."""
    rng = np.random.default_rng(1)
    frames = []
    for variant, sampler in itertools.product(("stated", "consistent"), ("nonprivate", *SAMPLERS)):
        for b in (10, 20) if sampler.startswith("must") else (0,):
            frames.append(_labelled(pd.DataFrame({
                "replicate": range(replicates), "sampler": sampler, "b": b, "sigma_mean": 0.1, "sigma_variance": 1.0,
                "mean": rng.normal(0, 0.06, replicates), "variance": rng.normal(1, 0.09, replicates),
                "expected_variance": 1 - 1 / b if b else 1.0, "distinct": 28.0,
            }), variant))
    return pd.concat(frames)


def linear_regression(replicates: int = 12) -> pd.DataFrame:
    """Return errors of three coefficients and of the predictions."""
    rng = np.random.default_rng(2)
    frames = []
    for variant, sampler in itertools.product(("stated", "as_done", "consistent"), ("nonprivate", *SAMPLERS)):
        for epsilon in (np.nan,) if sampler == "nonprivate" else (0.01, 0.001):
            errors = {f"error_beta{i}": rng.normal(0, 0.04, replicates) for i in range(3)}
            frames.append(_labelled(pd.DataFrame({
                "replicate": range(replicates), "sampler": sampler, "epsilon_amplified": epsilon, "sigma": 0.1,
                **errors, "rmse": rng.normal(1, 0.023, replicates), "gradients": 95.0,
            }), variant))
    return pd.concat(frames)


def linear_regression_trace(replicates: int = 1, iterations: int = 30) -> pd.DataFrame:
    """Return falling losses of experiment 2."""
    rng = np.random.default_rng(3)
    frames = []
    for variant, sampler, replicate in itertools.product(
        ("stated", "as_done", "consistent"), ("nonprivate", *SAMPLERS), range(replicates)
    ):
        for epsilon in (np.nan,) if sampler == "nonprivate" else (0.01, 0.001):
            t = np.arange(1, iterations + 1)
            loss = 1 + 6 * np.exp(-t / 8) + rng.normal(0, 0.1, iterations)
            frames.append(_labelled(pd.DataFrame({
                "replicate": replicate, "sampler": sampler, "epsilon_amplified": epsilon, "iteration": t, "mse": loss,
            }), variant))
    return pd.concat(frames)


def adult_logistic(replicates: int = 6, data: str = "synthetic") -> pd.DataFrame:
    """Return metrics of experiment 3; one value is undefined."""
    rng = np.random.default_rng(4)
    frames = []
    for variant, (sampler, solver) in itertools.product(
        ("stated", "as_done", "consistent"),
        [*itertools.product(("nonprivate", *SAMPLERS), ("dp_sgd", "converged")), ("nonprivate", "scikit_learn")],
    ):
        count = 1 if solver == "scikit_learn" else replicates
        metrics = {name: rng.normal(0.8, 0.01, count) for name in
                   ("accuracy", "sensitivity", "specificity", "ppv", "npv", "f1")}
        metrics["ppv"][0] = np.nan if sampler == "wr" else metrics["ppv"][0]
        frames.append(_labelled(pd.DataFrame({
            "replicate": range(count), "sampler": sampler, "solver": solver, "sigma": 0.01, **metrics,
            "train_loss": 0.5, "gradients": 290.0, "n_train": 300, "n_test": 100, "n_parameters": 14,
        }), variant, data))
    return pd.concat(frames)


def adult_logistic_trace(replicates: int = 1, iterations: int = 40, data: str = "synthetic") -> pd.DataFrame:
    """Return falling losses of experiment 3."""
    t = np.arange(1, iterations + 1)
    return pd.concat([
        _labelled(pd.DataFrame({"replicate": replicate, "sampler": sampler, "iteration": t,
                                "loss": 0.5 + 2.5 * np.exp(-t / 9) + 0.01 * replicate}), variant, data)
        for variant, sampler, replicate in itertools.product(
            ("stated", "as_done", "consistent"), ("nonprivate", *SAMPLERS), range(replicates)
        )
    ])


def distinct_counts() -> pd.DataFrame:
    """Return counts of distinct records in one of the settings."""
    rows = [
        (0, 1, 300, 50, 30, sampler, 20.0 + i, 28.0 + i / 10, 30.0, 1.5, 28.05 + i / 10, 19.0, 24.0, 29.0, 31.0)
        for i, sampler in enumerate(SAMPLERS)
    ]
    names = ["replicate", "experiment", "n", "b", "m", "sampler", "distinct_min", "distinct_mean", "distinct_max", "sd",
             "law_mean", "min_lower", "min_upper", "max_lower", "max_upper"]
    return _labelled(pd.DataFrame(rows, columns=names).assign(draws=10000), "stated")


def sampling_time() -> pd.DataFrame:
    """Return times of each sampler, Poisson both ways."""
    rows = [(0, 1, 300, 50, 30, sampler, 1e-6 * (2 + i), 0) for i, sampler in enumerate(SAMPLERS)]
    rows.append((0, 1, 300, 50, 30, "poisson", 9e-6, 1))
    names = ["replicate", "experiment", "n", "b", "m", "sampler", "seconds", "naive"]
    return _labelled(pd.DataFrame(rows, columns=names), "stated")


def everything() -> dict[str, pd.DataFrame]:
    """Return records of every experiment."""
    makers = (amplification_grid, amplification_crossings, design_surface, noise_calibration, composition,
              subset_statistics, linear_regression, linear_regression_trace, adult_logistic, adult_logistic_trace,
              distinct_counts, sampling_time, proved_composition, proved_steps, proved_noise, peer_bounds,
              peer_times)  # fmt: skip
    return {maker.__name__: maker().reset_index(drop=True) for maker in makers}


def _labelled(frame: pd.DataFrame, variant: str, data: str = "") -> pd.DataFrame:
    return pd.concat([pd.DataFrame({"variant": variant, "data": data}, index=frame.index), frame], axis=1)
