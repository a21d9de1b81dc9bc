"""How samplers and data sets are named and drawn in the comparison."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from dpsub.reproduce.figures import sampler_style
from dpsub.reproduce.labels import sampler_label
from dpsub.reproduce.privacy import number_kind

DATASETS = {
    "linear": "linear model", "adult": "Adult", "breast_cancer": "breast cancer", "digits": "digits, odd or even",
    "ijcnn1": "ijcnn1", "bootstrap_mean": "bootstrap mean",
}  # fmt: skip
MEASURES = {
    "log_loss": "test log loss (nats)", "coefficient_error": "error of coefficients",
    "estimate_error": "error of the mean",
}  # fmt: skip
VARIANT_NAMES = {"rigorous": "proved", "consistent": "papers' pair, no guarantee", "stated": "as the paper"}


def style_of(sampler: str) -> dict[str, Any]:
    """Return how a sampler is drawn; a chain looks like a multistage sampler and is labelled by its stages."""
    return sampler_style("multistage") | {"label": sampler} if ":" in sampler else sampler_style(sampler)


def label_of(sampler: str) -> str:
    """Return a sampler's display name, the stages themselves for a chain."""
    return sampler if ":" in sampler else sampler_label(sampler)


def dataset_label(dataset: str, frame: pd.DataFrame) -> str:
    """Return a data set's display name, with its label where the data are a stand-in."""
    labels = sorted(set(frame.loc[frame["dataset"] == dataset, "data_label"]) - {"real", "simulated"})
    return DATASETS.get(dataset, dataset) + (f" ({', '.join(labels)})" if labels else "")


def listed(names: Iterable[str]) -> str:
    """Return names as a list in a sentence: "A", "A and B", "A, B and C"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else str(last)


def proved_of_noise(column: str, variant: str) -> str:
    """Return what a privacy number is; epsilon is attained or proved of a noise whatever variant chose it."""
    if column.startswith("epsilon"):
        return number_kind(column, "rigorous")
    return number_kind("noise_proved" if column == "noise_add_remove" else column, variant)
