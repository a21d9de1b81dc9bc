"""Validators: canonical values, and refusals in one sentence."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dpsub import checks
from dpsub.errors import ArgumentError, DpsubError


@pytest.mark.parametrize("value", [3, 3.0, np.int32(3), np.float64(3)])
def test_integers(value: object) -> None:
    result = checks.integer("b", value)
    assert result == 3 and type(result) is int


@pytest.mark.parametrize("value", [2.5, "3", None, True, np.bool_(True), float("nan"), float("inf"), [3]])
def test_not_integers(value: object) -> None:
    with pytest.raises(ArgumentError, match=re.escape(f"b must be a whole number, got b = {value!r}")):
        checks.integer("b", value)


def test_integer_limits() -> None:
    assert checks.integer("b", 300, at_least=300, at_most=300) == 300
    with pytest.raises(ArgumentError, match=r"^b must be at least 1, got b = 0$"):
        checks.integer("b", 0, at_least=1)
    with pytest.raises(ArgumentError, match=r"^b must be at most 300, got b = 500$"):
        checks.integer("b", 500, at_most=300)
    with pytest.raises(ArgumentError, match=r"^b must be at most n = 300, got b = 500$"):
        checks.integer("b", 500, at_most=300, at_most_name="n")


@pytest.mark.parametrize("value", [0.5, np.float32(0.5)])
def test_reals(value: object) -> None:
    result = checks.real("rate", value)
    assert result == 0.5 and type(result) is float


@pytest.mark.parametrize("value", ["0.5", None, True, [1.0, 2.0]])
def test_not_reals(value: object) -> None:
    with pytest.raises(ArgumentError, match=re.escape(f"rate must be a number, got rate = {value!r}")):
        checks.real("rate", value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_not_finite(value: float) -> None:
    with pytest.raises(ArgumentError, match=rf"^rate must be finite, got rate = {value}$"):
        checks.real("rate", value)


def test_real_limits() -> None:
    assert checks.real("rate", 0, at_least=0) == 0.0
    assert checks.real("rate", 1, at_most=1) == 1.0
    for limits, value, rule in (
        ({"above": 0}, 0, "above 0"),
        ({"at_least": 0}, -0.25, "at least 0"),
        ({"below": 1}, 1, "below 1"),
        ({"at_most": 1}, 1.25, "at most 1"),
    ):
        with pytest.raises(ArgumentError, match=rf"^rate must be {rule}, got rate = {value:g}$"):
            checks.real("rate", value, **limits)


def test_finite_arrays() -> None:
    assert checks.finite_array("x", [1, 2]).dtype == float
    with pytest.raises(ArgumentError, match=r"^x must have 2 dimension\(s\), got shape \(2,\)$"):
        checks.finite_array("x", [1, 2], ndim=2)
    with pytest.raises(ArgumentError, match=r"^x must be finite, got 2 NaN or infinite among 3 values; remove them$"):
        checks.finite_array("x", [1.0, np.nan, np.inf])


def test_one_of() -> None:
    assert checks.one_of("scheme", "wr", ["wor", "wr"]) == "wr"
    with pytest.raises(ArgumentError, match=r"^unknown scheme 'poison'; did you mean 'poisson'[?]$"):
        checks.one_of("scheme", "poison", ["wor", "poisson"])
    with pytest.raises(ArgumentError, match=r"^unknown scheme 7; known: poisson, wor$"):
        checks.one_of("scheme", 7, ["wor", "poisson"])


def test_errors_are_ours_and_value_errors() -> None:
    assert issubclass(ArgumentError, DpsubError) and issubclass(ArgumentError, ValueError)


def test_numbers_that_no_double_tells_apart_are_refused_in_few_words() -> None:
    with pytest.raises(ArgumentError, match=r"^n must be at most 9007199254740992, got n = about 1e5000$"):
        checks.integer("n", 10**5000)
    with pytest.raises(ArgumentError, match=r"^n must be at least 1, got n = about -1e400$"):
        checks.integer("n", -(10**400), at_least=1)
    assert checks.integer("seed", 10**400, at_most=None) == 10**400
    for value, shown in ((10**400, "inf"), (-(10**400), "-inf")):
        with pytest.raises(ArgumentError, match=f"^x must be finite, got x = {shown}$"):
            checks.real("x", value)
    with pytest.raises(ArgumentError, match=r"^x must be numbers within the range of a double"):
        checks.finite_array("x", [1.0, 10**400])


def test_the_nearest_word() -> None:
    assert checks.nearest("poison", ["wor", "poisson"]) == "did you mean 'poisson'?"
    assert checks.nearest("zzz", ["wor", "poisson"]) == "known: wor, poisson"
