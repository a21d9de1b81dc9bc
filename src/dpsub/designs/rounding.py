"""Samples of a share r of the population, whose size is rounded to an integer: deterministically or at random."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpsub import checks
from dpsub.designs.path_programme import worst_ratio
from dpsub.designs.rates import amplified
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.samplers.sizes import SizeLaw, exact_rate, rounded_sizes


def printed(rate: object, epsilon: float) -> float:
    """Return log(1 + 2r(e^(2 epsilon) - 1)) + log(1 + r(e^(2 epsilon) - 1)), upper for randomised rounding.

    Holds under add_remove for mechanisms that are epsilon-DP under add_remove, where r n >= 1 for both populations.

    Raises
    ------
    UnsupportedError
        If the rate is 1: the theorem asks for a rate below 1.

    References
    ----------
    bun, Theorems 4.3 and 7.2.
    """
    r = float(_below_one(rate))
    epsilon = checks.real("epsilon", epsilon, above=0)
    # 2r may exceed 1, where `amplified` has no meaning as a mixture but the formula still stands
    return math.log1p(2 * r * math.expm1(2 * epsilon)) + amplified(r, 2 * epsilon)


def size_aware(rate: object, epsilon: float, n: int) -> float:
    """Return the same bound with (floor(r n) + 1)/(n + 1) in place of 2r, n records in the smaller population.

    Valid for all n >= 0; upper, add_remove.
    """
    exact = _below_one(rate)
    n = checks.integer("n", n, at_least=0)
    share = Fraction(math.floor(exact * n) + 1, n + 1)
    return amplified(float(share), 2 * epsilon) + amplified(float(exact), 2 * epsilon)


def checked(rate: object, epsilon: float, n: int) -> float:
    """Return `printed` after a check that r n >= 1 for the smaller population of n records.

    Raises
    ------
    UnsupportedError
        If it is not; the message offers the form that knows the size.
    """
    exact = _below_one(rate)
    if exact * n < 1:
        raise UnsupportedError(
            f"the theorem needs rate * n of at least 1, got {float(exact * n):g} at n = {n}; use the form that "
            f"knows n, which gives {size_aware(rate, epsilon, n):.6g}"
        )
    return printed(rate, epsilon)


def break_even(epsilon: float) -> float:
    """Return the rate at which the printed bound equals epsilon: above it, sampling is not known to help.

    With u = r (e^(2 epsilon) - 1) the bound is epsilon where (1 + 2u)(1 + u) = e^epsilon.
    """
    epsilon = checks.real("epsilon", epsilon, above=0)
    return _root(epsilon) / math.expm1(2 * epsilon)


def base_for(rate: object, target: float) -> float:
    """Return the base epsilon at which the printed bound equals `target`: log(1 + u/r)/2.

    target/(6 r) is no substitute: it is close only while target is far below r.
    """
    target = checks.real("target", target, above=0)
    return 0.5 * math.log1p(_root(target) / float(_below_one(rate)))


def _root(target: float) -> float:
    """u > 0 with (1 + 2u)(1 + u) = e^target, without cancellation."""
    excess = math.expm1(target)
    return 2 * excess / (3 + math.sqrt(9 + 8 * excess))


def coupled(m: int, other: int, n: int, epsilon: float) -> float:
    """Return log(1 + m/(n+1) (e^(2 epsilon) - 1)) + |m - m'| epsilon for sizes m of n and m' of n + 1 records.

    Upper under add_remove for mechanisms that are epsilon-DP under add_remove (printed: under substitute, of which it
    is not true, as such mechanisms may show the size).

    References
    ----------
    bun, Lemma B.1 (erratum BN7).
    """
    m, other = (checks.integer(name, size, at_least=0) for name, size in (("m", m), ("m'", other)))
    n = checks.integer("n", n, at_least=max(m, 1))
    return amplified(min(1.0, m / (n + 1)), 2 * epsilon) + abs(m - other) * epsilon


def exact(smaller: SizeLaw, larger: SizeLaw, n: int, epsilon: float) -> float:
    """Return the worst loss under add_remove of samples of n and of n + 1 records with these laws of sizes.

    The sequence A_m is the probability of an event on a sample of size m without the record; a sample of m that holds
    it (chance m/(n+1)) has e^(+-epsilon) A_{m-1}. Both directions are programmes over A (`worst_ratio`), rounded up.

    Parameters
    ----------
    smaller, larger : mapping of size to probability
        For the populations without and with the record.
    """
    n = checks.integer("n", n, at_least=1)
    for name, law, most in (("smaller", smaller, n), ("larger", larger, n + 1)):
        if min(law) < 0 or max(law) > most or abs(math.fsum(law.values()) - 1) > 1e-9:
            raise ArgumentError(f"the sizes of the {name} population must be a law on 0..{most}, got {law}")
    low = max(0, min(min(smaller), min(larger) - 1))
    top = max(*smaller, *larger)
    plain = np.array([smaller.get(m, 0.0) for m in range(low, top + 1)])
    without = np.array([larger.get(m, 0.0) * (1 - m / (n + 1)) for m in range(low, top + 1)])
    holding = np.array([larger.get(m + 1, 0.0) * (m + 1) / (n + 1) for m in range(low, top + 1)])
    with np.errstate(divide="ignore"):
        a, up, down = (np.log(w) for w in (plain, without + math.exp(epsilon) * holding,
                                           without + math.exp(-epsilon) * holding))  # fmt: skip
    return max(worst_ratio(a, down, epsilon).upper, worst_ratio(up, a, epsilon).upper)


def exact_at(rate: object, epsilon: float, n: int, rounding: str) -> float:
    """Return `exact` for the sizes that rounding gives to n and n + 1 records."""
    return exact(rounded_sizes(rate, n, rounding), rounded_sizes(rate, n + 1, rounding), n, epsilon)


def worst_exact(rate: object, epsilon: float, n: int) -> float:
    """Return the larger exact loss of randomised rounding when a record is added to, or removed from, n >= 2."""
    n = checks.integer("n", n, at_least=2)
    return max(exact_at(rate, epsilon, n - 1, "randomised"), exact_at(rate, epsilon, n, "randomised"))


def _below_one(rate: object) -> Fraction:
    exact = exact_rate(rate)
    if exact == 1:
        raise UnsupportedError("the theorem asks for a rate below 1, got 1; without sampling the loss is epsilon")
    return exact
