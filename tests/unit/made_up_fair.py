"""Small records in the shape of the fair comparison, in which it is known who is better, and by how much."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

SAMPLERS = ("poisson", "wor", "must_oo", "must_ow")
NOISE = {"poisson": 2.0, "wor": 2.2, "must_oo": 2.2, "must_ow": 3.0}
WORSE = {"must_ow": 0.2}
"""By how much a sampler's loss lies above Poisson's at proved privacy; by the papers' pair MUST.OW is better."""

MEASURES = ("accuracy", "auc", "log_loss", "coefficient_error", "estimate_error", "covered", "interval_width")
TASKS = {"linear": "coefficient_error", "adult": "log_loss", "digits": "log_loss", "bootstrap_mean": "estimate_error"}
TARGETS = (0.5, 2.0)


def _cell(dataset: str, sampler: str, epsilon: float, m: int = 100, b: int = 200) -> dict[str, object]:
    delta = 1e-5 if epsilon == epsilon else float("nan")
    return {"data": "", "dataset": dataset, "n": 1000, "sampler": sampler, "m": m,
            "b": b * sampler.startswith("must"), "steps": 50, "target_epsilon": epsilon,
            "target_delta": delta}  # fmt: skip


def _gradients(sampler: str) -> float:
    return 79.0 if sampler == "must_ow" else 100.0


def fair_comparison(replicates: int = 20, worse: dict[str, float] = WORSE) -> pd.DataFrame:
    """Return seeds of every task: losses 1 + `worse` / epsilon, with a seed's own shift that pairing takes out."""
    rng = np.random.default_rng(7)
    rows = []
    for variant, task, target in itertools.product(("rigorous", "consistent"), TASKS, TARGETS):
        sign, proof = (1, target) if variant == "rigorous" else (-1, 3 * target)
        seed = rng.normal(0, 0.3, replicates)
        for sampler, r in itertools.product((*SAMPLERS, "nonprivate"), range(replicates)):
            if (private := sampler != "nonprivate") or target == TARGETS[0]:
                loss = 1 + seed[r] + 0.01 * rng.standard_normal()
                loss += sign * worse.get(sampler, 0.0) / target if private else -0.1
                epsilon, proved = (target, proof) if private else (float("nan"),) * 2
                measures = dict.fromkeys(MEASURES, float("nan")) | {TASKS[task]: loss}
                if task == "bootstrap_mean":
                    measures |= {"covered": float(r % 20 != 0), "interval_width": 0.3}
                rows.append({
                    **_cell(task, sampler, epsilon), "variant": variant, "data": "synthetic", "replicate": r,
                    "data_label": "synthetic" if task == "adult" else "real",
                    "noise_multiplier": NOISE[sampler] / target if private else 0.0, "epsilon_lower": 0.9 * proved,
                    "epsilon_upper": proved, **measures, "gradients": _gradients(sampler),
                    "gradients_expected": _gradients(sampler),
                })  # fmt: skip
    return pd.DataFrame(rows)


def fair_noise() -> pd.DataFrame:
    """Return noise multipliers of a grid and of a surface in b and m."""
    cells = [(name, 100, 200, 0) for name in SAMPLERS] + [("must_ow", 100, b, 1) for b in (100, 400)]
    cells += [(name, m, 200, 1) for m in (50, 150) for name in ("poisson", "wor", "must_ow")]
    rows = []
    for (variant, share), (number, (name, m, b, surface)) in itertools.product(
        (("rigorous", 1.0), ("consistent", 0.6)), enumerate(cells)
    ):
        noise = share * NOISE[name] * (m / 100) ** 0.5 * (1 + 20 / b if name.startswith("must") else 1)
        only = 1.0 if name == "poisson" else float("nan")
        rows.append({
            **_cell("linear", name, 0.5, m, b), "variant": variant, "replicate": number, "surface": surface,
            "noise_multiplier": noise, "necessary": 0.9 * noise if share == 1 else 0.0, "epsilon_lower": 0.45 / share,
            "epsilon_upper": 0.5 / share, "epsilon_add_remove": 0.25 * only, "noise_add_remove": noise / 2 * only,
            "expected_distinct": _gradients(name) * m / 100,
        })  # fmt: skip
    return pd.DataFrame(rows)


def fair_times() -> pd.DataFrame:
    """Return times of a step."""
    return pd.DataFrame([
        {**_cell("linear", name, 0.5), "variant": "rigorous", "replicate": 0, "seconds_per_step": 2e-5,
         "gradients_expected": _gradients(name)}
        for name in SAMPLERS
    ])  # fmt: skip
