"""Measures of a linear predictor by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dpsub.learning.metrics import binary_metrics, log_loss


def test_binary_metrics_by_hand() -> None:
    truth = np.array([1, 1, 1, 0, 0, 0, 0, 1])
    predicted = np.array([1, 1, 0, 0, 0, 1, 0, 0], dtype=bool)
    found = binary_metrics(predicted, truth)
    expected = {
        "accuracy": 5 / 8,
        "sensitivity": 1 / 2,
        "specificity": 3 / 4,
        "ppv": 2 / 3,
        "npv": 3 / 5,
        "f1": 4 / 7,
    }
    assert found == pytest.approx(expected, rel=1e-15)
    assert np.isnan(binary_metrics(np.zeros(3, dtype=bool), np.zeros(3))["ppv"])


def test_log_loss_survives_large_arguments() -> None:
    z, y = np.array([0.0, 800.0, -800.0, 2.0]), np.array([1.0, 1.0, 1.0, 0.0])
    expected = [np.log(2), 0.0, 800.0, np.log1p(np.exp(2.0))]
    assert log_loss(z, y) == pytest.approx(expected, rel=1e-15)
