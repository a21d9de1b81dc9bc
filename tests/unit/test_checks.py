"""Validators: canonical values, and refusals in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from re import escape
from typing import Any

import numpy as np
import pytest

from dpsub import checks
from dpsub.errors import ArgumentError, DpsubError

NAN, INF = float("nan"), float("inf")


def test_values_are_canonical() -> None:
    for value in (3, 3.0, np.int32(3), np.float64(3)):
        whole = checks.integer("b", value)
        assert whole == 3 and type(whole) is int
    for value in (0.5, np.float32(0.5)):
        number = checks.real("rate", value)
        assert number == 0.5 and type(number) is float
    assert checks.integer("b", 300, at_least=300, at_most=300) == 300
    assert checks.integer("seed", 10**400, at_most=None) == 10**400
    assert checks.real("rate", 0, at_least=0) == 0.0
    assert checks.real("rate", 1, at_most=1) == 1.0
    assert checks.finite_array("x", [1, 2]).dtype == float
    assert checks.one_of("scheme", "wr", ["wor", "wr"]) == "wr"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        *(
            (
                lambda value=value: checks.integer("b", value),
                escape(f"b must be a whole number, got b = {value!r}"),
            )
            for value in (2.5, "3", None, True, np.bool_(True), NAN, INF, [3])
        ),
        (lambda: checks.integer("b", 0, at_least=1), "^b must be at least 1, got b = 0$"),
        (lambda: checks.integer("b", 500, at_most=300), "^b must be at most 300, got b = 500$"),
        (
            lambda: checks.integer("b", 500, at_most=300, at_most_name="n"),
            "^b must be at most n = 300, got b = 500$",
        ),
        *(
            (
                lambda value=value: checks.real("rate", value),
                escape(f"rate must be a number, got rate = {value!r}"),
            )
            for value in ("0.5", None, True, [1.0, 2.0])
        ),
        *(
            (
                lambda value=value: checks.real("rate", value),
                f"^rate must be finite, got rate = {value}$",
            )
            for value in (NAN, INF, -INF)
        ),
        (lambda: checks.real("rate", 0, above=0), "^rate must be above 0, got rate = 0$"),
        (
            lambda: checks.real("rate", -0.25, at_least=0),
            "^rate must be at least 0, got rate = -0.25$",
        ),
        (lambda: checks.real("rate", 1, below=1), "^rate must be below 1, got rate = 1$"),
        (lambda: checks.real("rate", 1.25, at_most=1), "^rate must be at most 1, got rate = 1.25$"),
        (
            lambda: checks.finite_array("x", [1, 2], ndim=2),
            r"^x must have 2 dimension\(s\), got "
            r"shape \(2,\)$",
        ),
        (
            lambda: checks.finite_array("x", [1.0, NAN, INF]),
            "^x must be finite, got 2 NaN or infinite among 3 values; remove them$",
        ),
        (
            lambda: checks.one_of("scheme", "poison", ["wor", "poisson"]),
            "^unknown scheme 'poison'; did you mean 'poisson'[?]$",
        ),
        (
            lambda: checks.one_of("scheme", 7, ["wor", "poisson"]),
            "^unknown scheme 7; known: poisson, wor$",
        ),
        # numbers that no double tells apart, in few words
        (
            lambda: checks.integer("n", 10**5000),
            "^n must be at most 9007199254740992, got n = about 1e5000$",
        ),
        (
            lambda: checks.integer("n", -(10**400), at_least=1),
            "^n must be at least 1, got n = about -1e400$",
        ),
        (lambda: checks.real("x", 10**400), "^x must be finite, got x = inf$"),
        (lambda: checks.real("x", -(10**400)), "^x must be finite, got x = -inf$"),
        (
            lambda: checks.finite_array("x", [1.0, 10**400]),
            "^x must be numbers within the range of a double",
        ),
    ],
)
def test_what_is_refused(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        call()


def test_errors_are_ours_and_value_errors() -> None:
    assert issubclass(ArgumentError, DpsubError) and issubclass(ArgumentError, ValueError)


def test_the_nearest_word() -> None:
    assert checks.nearest("poison", ["wor", "poisson"]) == "did you mean 'poisson'?"
    assert checks.nearest("zzz", ["wor", "poisson"]) == "known: wor, poisson"
