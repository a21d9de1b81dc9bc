"""Measures of a binary classifier."""

from __future__ import annotations

import numpy as np


def binary_metrics(predicted: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return accuracy, sensitivity, specificity, positive and negative predictive value, and F1.

    Parameters
    ----------
    predicted : ndarray of bool, shape (n,)
    truth : ndarray of {0, 1}, shape (n,)

    Returns
    -------
    dict
        A ratio with an empty denominator is NaN.
    """
    actual = truth > 0.5
    tp = float(np.count_nonzero(predicted & actual))
    fp = float(np.count_nonzero(predicted & ~actual))
    fn = float(np.count_nonzero(~predicted & actual))
    tn = len(actual) - tp - fp - fn

    def ratio(part: float, whole: float) -> float:
        return part / whole if whole else float("nan")

    return {
        "accuracy": ratio(tp + tn, len(actual)),
        "sensitivity": ratio(tp, tp + fn),
        "specificity": ratio(tn, tn + fp),
        "ppv": ratio(tp, tp + fp),
        "npv": ratio(tn, tn + fn),
        "f1": ratio(2 * tp, 2 * tp + fp + fn),
    }


def cross_entropy(z: np.ndarray, y: np.ndarray) -> float:
    """Mean of log(1 + exp(z)) - y z: the logistic loss of the linear predictor z (nats; MUST, Section S9)."""
    # log(1 + exp(z)) = max(z, 0) + log1p(exp(-|z|)): no overflow, one pass
    return float(np.mean(np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z))) - y * z))


def area_under_curve(z: np.ndarray, y: np.ndarray) -> float:
    """Return the chance that a positive record gets a larger z than a negative one, ties counting one half.

    Parameters
    ----------
    z : ndarray, shape (n,)
        Linear predictor.
    y : ndarray of {0, 1}, shape (n,)

    Returns
    -------
    float
        The area under the ROC curve; NaN if one class is absent.
    """
    from scipy.stats import rankdata  # here, as its import takes longer than most jobs compute

    actual = y > 0.5
    positive = int(np.count_nonzero(actual))
    negative = len(actual) - positive
    if not positive or not negative:
        return float("nan")
    ranks = float(rankdata(z)[actual].sum())
    return (ranks - positive * (positive + 1) / 2) / (positive * negative)
