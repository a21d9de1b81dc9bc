"""Measures of a linear predictor, by hand and by scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from dpsub.learning.metrics import area_under_curve, log_loss


def test_log_loss_survives_large_arguments() -> None:
    z, y = np.array([0.0, 800.0, -800.0, 2.0]), np.array([1.0, 1.0, 1.0, 0.0])
    expected = [np.log(2), 0.0, 800.0, np.log1p(np.exp(2.0))]
    assert log_loss(z, y) == pytest.approx(expected, rel=1e-15)


def test_area_under_the_curve_is_scikit_learns() -> None:
    """Its digits end differently: ranks are exact where trapezoids are rounded."""
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(1)
    for size in (5, 40, 2000):
        z, y = rng.integers(0, 30, size) / 7.0, np.arange(size) % 3 == 0
        assert area_under_curve(z, y.astype(float)) == pytest.approx(roc_auc_score(y, z), rel=1e-13)
