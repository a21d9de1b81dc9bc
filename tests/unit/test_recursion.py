"""The blocked recursion against the plain loop, on both sides of the length where it changes hands."""

from __future__ import annotations

import numpy as np
import pytest

from dpsub.accounting import compose


def looped(values: np.ndarray, damp: float) -> np.ndarray:
    result, last = np.zeros(values.size), 0.0
    for place, value in enumerate(values.tolist()):
        last = value + damp * last
        result[place] = last
    return result


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 15, 16, 17, 1000])
@pytest.mark.parametrize("damp", [0.0, 1e-30, 0.5, 1 - 1e-6, 1.0])
def test_is_the_plain_loop(size: int, damp: float) -> None:
    values = np.random.default_rng(size).exponential(size=size) ** 8
    np.testing.assert_allclose(compose.damped_sums(values, damp), looped(values, damp), rtol=1e-14)


def test_long_arrays_get_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(5).exponential(size=5000)
    short = compose.damped_sums(values, 0.999)
    monkeypatch.setattr(compose, "_LONG", 100)
    np.testing.assert_allclose(compose.damped_sums(values, 0.999), short, rtol=1e-13)
