"""Small records in the shape of the fair comparison, in which it is known who is better, and by how much."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

SAMPLERS = ("poisson", "wor", "must_oo", "must_ow")
NOISE = {"poisson": 2.0, "wor": 2.2, "must_oo": 2.2, "must_ow": 3.0}
WORSE = {"poisson": 0.0, "wor": 0.0, "must_oo": 0.0, "must_ow": 0.2}
"""By how much a sampler's loss lies above Poisson's at proved privacy; by the papers' pair MUST.OW is better."""

GRADIENTS = {"poisson": 100.0, "wor": 100.0, "must_oo": 100.0, "must_ow": 79.0}
MEASURES = ("accuracy", "auc", "log_loss", "coefficient_error", "estimate_error", "covered", "interval_width")
TASKS = {"linear": "coefficient_error", "adult": "log_loss", "digits": "log_loss", "bootstrap_mean": "estimate_error"}
TARGETS = (0.5, 2.0)


def fair_comparison(replicates: int = 20, worse: dict[str, float] | None = None) -> pd.DataFrame:
    """Return seeds of every task: losses 1 + `worse` / epsilon, with a seed's own shift that pairing takes out."""
    rng = np.random.default_rng(7)
    rows = []
    for variant, task, epsilon in itertools.product(("rigorous", "consistent"), TASKS, TARGETS):
        sign = 1 if variant == "rigorous" else -1
        seed = rng.normal(0, 0.3, replicates)
        for sampler, r in itertools.product((*SAMPLERS, "nonprivate"), range(replicates)):
            private = sampler != "nonprivate"
            if not private and epsilon != TARGETS[0]:
                continue
            loss = 1 + seed[r] + 0.01 * rng.standard_normal()
            loss += sign * (WORSE if worse is None else worse).get(sampler, 0.0) / epsilon if private else -0.1
            measures = dict.fromkeys(MEASURES, float("nan")) | {TASKS[task]: loss}
            if TASKS[task] == "log_loss":
                measures |= {"accuracy": 0.8, "auc": 0.9}
            if task == "bootstrap_mean":
                measures |= {"covered": float(r % 20 != 0), "interval_width": 0.3}
            proof = epsilon if variant == "rigorous" else 3 * epsilon
            rows.append({
                "variant": variant, "data": "synthetic", "replicate": r, "dataset": task,
                "data_label": "synthetic" if task == "adult" else "real", "n": 1000, "sampler": sampler, "m": 100,
                "b": 200 if sampler.startswith("must") else 0, "steps": 50,
                "target_epsilon": epsilon if private else float("nan"),
                "target_delta": 1e-5 if private else float("nan"),
                "convention": "rigorous" if variant == "rigorous" else "paper",
                "noise_multiplier": NOISE[sampler] / epsilon if private else 0.0,
                "epsilon_lower": 0.9 * proof if private else float("nan"),
                "epsilon_upper": proof if private else float("nan"), **measures,
                "gradients": GRADIENTS.get(sampler, 100.0), "gradients_expected": GRADIENTS.get(sampler, 100.0),
            })  # fmt: skip
    return pd.DataFrame(rows)


def fair_noise() -> pd.DataFrame:
    """Return noise multipliers of a grid and of a surface in b and m."""
    rows = []
    for variant in ("rigorous", "consistent"):
        share = 1.0 if variant == "rigorous" else 0.6
        cells = [("linear", name, 100, 200 if name.startswith("must") else 0, 0) for name in SAMPLERS]
        cells += [("linear", "must_ow", 100, b, 1) for b in (100, 400)]
        cells += [("linear", name, m, 200 if name == "must_ow" else 0, 1) for m in (50, 150)
                  for name in ("poisson", "wor", "must_ow")]  # fmt: skip
        for number, (task, name, m, b, surface) in enumerate(cells):
            noise = share * NOISE[name] * (m / 100) ** 0.5 * (1 + 20 / b if b else 1)
            poisson = name == "poisson"
            rows.append({
                "variant": variant, "data": "", "replicate": number, "dataset": task, "n": 1000, "sampler": name,
                "m": m, "b": b, "steps": 50, "target_epsilon": 0.5, "target_delta": 1e-5, "surface": surface,
                "noise_multiplier": noise, "necessary": 0.9 * noise if share == 1 else 0.0,
                "epsilon_lower": 0.45 / share, "epsilon_upper": 0.5 / share,
                "epsilon_add_remove": 0.25 if poisson else float("nan"),
                "noise_add_remove": noise / 2 if poisson else float("nan"),
                "expected_distinct": GRADIENTS[name] * m / 100,
            })  # fmt: skip
    return pd.DataFrame(rows)


def fair_times() -> pd.DataFrame:
    """Return times of a step."""
    return pd.DataFrame([
        {"variant": "rigorous", "data": "", "replicate": 0, "dataset": "linear", "sampler": name, "m": 100,
         "b": 200 if name.startswith("must") else 0, "steps": 50, "seconds_per_step": 2e-5,
         "gradients_expected": GRADIENTS[name]}
        for name in SAMPLERS
    ])  # fmt: skip
