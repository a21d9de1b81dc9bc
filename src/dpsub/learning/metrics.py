"""Measures of linear predictors of two classes: log loss, area under the curve."""

from __future__ import annotations

import numpy as np


def log_loss(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return log(1 + exp(z)) - y z: the logistic loss of each record at its linear predictor z
    (nats)."""
    # log(1 + exp(z)) = max(z, 0) + log1p(exp(-|z|)): no overflow, one pass
    return np.asarray(np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z))) - y * z)


def area_under_curve(z: np.ndarray, y: np.ndarray) -> float:
    """Return the area under the ROC curve: the chance that a positive record gets a larger linear
    predictor z than a negative one, ties counting one half; NaN if one class of y in {0, 1} is
    absent.
    """
    from scipy.stats import rankdata  # here, as its import takes longer than most jobs compute

    actual = y > 0.5
    positive = int(np.count_nonzero(actual))
    negative = len(actual) - positive
    if not positive or not negative:
        return float("nan")
    # Mann and Whitney: the sum of the ranks of the positive records, less the least that it can be.
    return (float(rankdata(z)[actual].sum()) - positive * (positive + 1) / 2) / (
        positive * negative
    )
