"""Simulated data sets: shapes, the model, and independence of how replicates are grouped."""

from __future__ import annotations

import numpy as np
import pytest

from dpsub import streams
from dpsub.data.simulated import linear_datasets, normal_datasets
from dpsub.errors import ArgumentError


def rngs(*replicates):
    return [
        streams.stream(5, experiment="toy", cell={"n": 40}, role="data", replicate=r)
        for r in replicates
    ]


def test_normal_data_sets_do_not_depend_on_their_grouping():
    together = normal_datasets(40, rngs(0, 1, 2))
    assert together.shape == (3, 40)
    np.testing.assert_array_equal(together[1:], normal_datasets(40, rngs(1, 2)))
    assert normal_datasets(40, []).shape == (0, 40)


def test_linear_data_sets_follow_the_model():
    X, y = linear_datasets(40, (1, 0.5, 0.2), rngs(0, 1))
    assert (X.shape, y.shape) == ((2, 40, 3), (2, 40))
    assert (X[:, :, 0] == 1).all()
    for i, rng in enumerate(rngs(0, 1)):
        np.testing.assert_array_equal(X[i, :, 1:], rng.standard_normal((40, 2)))
        np.testing.assert_allclose(
            y[i] - 1 - 0.5 * X[i, :, 1] - 0.2 * X[i, :, 2], rng.standard_normal(40), atol=1e-14
        )
    for both, alone in zip((X, y), linear_datasets(40, (1, 0.5, 0.2), rngs(1)), strict=True):
        np.testing.assert_array_equal(both[1], alone[0])
    X, y = linear_datasets(7, [2.0], rngs(0))  # an intercept alone is a model
    assert (X == 1).all() and y.shape == (1, 7)


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda: normal_datasets(0, []), "n must be at least 1, got n = 0"),
        (lambda: linear_datasets(5, [], []), "the number of slopes must be at least 0"),
        (lambda: linear_datasets(5, [np.nan], []), "beta must be finite"),
    ],
)
def test_bad_arguments_are_refused(call, rule):
    with pytest.raises(ArgumentError, match=rule):
        call()
