"""Additive noise: shapes, streams, moments and refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpsub import noise
from dpsub.errors import ArgumentError
from dpsub.noise import Gaussian, Laplace

NAMES = noise.REGISTRY.names()


def test_members_are_found_by_name() -> None:
    assert NAMES == ("gaussian", "laplace")


@pytest.mark.parametrize("name", NAMES)
def test_release_keeps_the_shape_and_adds_fresh_noise(name: str) -> None:
    mechanism = noise.REGISTRY.get(name)(2.0)
    value = np.arange(12.0).reshape(3, 4)
    released = mechanism.release(value, np.random.default_rng(1))
    assert released.shape == value.shape
    assert len(np.unique(released - value)) == value.size
    assert np.ndim(mechanism.release(3.0, np.random.default_rng(1))) == 0
    assert (value == np.arange(12.0).reshape(3, 4)).all()


@pytest.mark.parametrize("name", NAMES)
def test_same_stream_same_noise_and_scale_is_a_factor(name: str) -> None:
    make = noise.REGISTRY.get(name)
    value = np.zeros(50)
    one, again = (make(1.0).release(value, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(one, again)
    np.testing.assert_allclose(make(3.0).release(value, np.random.default_rng(5)), 3 * one, rtol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_global_state_is_untouched(name: str) -> None:
    before = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    noise.REGISTRY.get(name)(1.0).release(np.zeros(10), np.random.default_rng(0))
    after = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    assert before["pos"] == after["pos"]
    np.testing.assert_array_equal(before["key"], after["key"])


def test_densities_by_hand() -> None:
    assert float(Gaussian(2.0).log_density(3.0)) == pytest.approx(-9 / 8 - math.log(2 * math.sqrt(2 * math.pi)))
    assert float(Laplace(2.0).log_density(-3.0)) == pytest.approx(-1.5 - math.log(4))
    assert Gaussian(1.0).log_density(np.zeros((2, 2))).shape == (2, 2)


def test_variances_by_hand() -> None:
    assert Gaussian(3.0).variance == 9.0
    assert Laplace(3.0).variance == 18.0


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, "wide", True])
@pytest.mark.parametrize("name", NAMES)
def test_scale_is_validated_at_construction(name: str, scale: object) -> None:
    with pytest.raises(ArgumentError, match="scale must be"):
        noise.REGISTRY.get(name)(scale)  # type: ignore[arg-type]


def test_a_value_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ArgumentError, match="value must be finite, got 1 NaN or infinite among 2 values"):
        Gaussian(1.0).release([0.0, math.nan], np.random.default_rng(0))
