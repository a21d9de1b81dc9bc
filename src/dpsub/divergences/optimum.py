"""The worst mechanism for a finite design, by linear programming."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from dpsub import checks
from dpsub.divergences.hockey_stick import law_array
from dpsub.errors import ArgumentError, NumericalError


@dataclass(frozen=True)
class WorstMechanism:
    """The largest divergence that any (epsilon, delta)-DP mechanism can have on two laws of samples.

    Attributes
    ----------
    divergence : float
        max over mechanisms of D_alpha(omega K || omega' K); the dual solution certifies it from above.
    dual : float
        Value of the dual program; equal up to the solver's accuracy.
    event : ndarray, shape (samples,)
        Probability of the distinguishing event on each sample: a mechanism of one bit that attains the divergence.
    """

    divergence: float
    dual: float
    event: np.ndarray


def worst_mechanism(
    first: ArrayLike, second: ArrayLike, neighbours: Sequence[tuple[int, int]], epsilon: float, delta: float,
    alpha: float,
) -> WorstMechanism:
    """Return the largest D_alpha(omega K || omega' K) over all (epsilon, delta)-DP mechanisms K.

    The divergence is the supremum over events, and an event enters only through its probabilities f(y) given the
    sample y. They come from an (epsilon, delta)-DP mechanism exactly if, for neighbouring y and y' in both orders,
    f(y) <= exp(epsilon) f(y') + delta and 1 - f(y) <= exp(epsilon) (1 - f(y')) + delta. So the supremum is the linear
    program max sum over y of (omega(y) - alpha omega'(y)) f(y), and the bit that is 1 with probability f attains it.

    Parameters
    ----------
    first, second : array_like, shape (samples,)
        Laws omega and omega' of the sample on two data sets.
    neighbours : sequence of pairs
        Positions of neighbouring samples, each pair once; the relation is symmetric.
    epsilon, delta : float
        The base guarantee: at least 0; in [0, 1].
    alpha : float
        Order of the divergence, exp(epsilon'), at least 1.

    Raises
    ------
    ArgumentError
        If an argument is out of range or a position does not exist.
    NumericalError
        If the program is not solved.

    References
    ----------
    balle, Section 5 asks for tightness over mechanisms; this program decides it for one design.
    """
    one, other = law_array("first", first), law_array("second", second)
    order = checks.real("alpha", alpha, at_least=1)
    growth = math.exp(checks.real("epsilon", epsilon, at_least=0))
    gap = checks.real("delta", delta, at_least=0, at_most=1)
    pairs = np.array([*neighbours, *((b, a) for a, b in neighbours)], dtype=int).reshape(-1, 2)
    if one.shape != other.shape or (pairs.size and not (pairs.min() >= 0 and pairs.max() < one.size)):
        raise ArgumentError(f"both laws and all neighbours must be about the same samples, got {one.size} and "
                            f"{other.size} samples; give positions below that")
    left, right = pairs.T
    # f(y) - e f(y') <= delta, and e f(y') - f(y) <= e - 1 + delta for the complement, its two samples interchanged
    bound = np.zeros((len(pairs), one.size))
    bound[np.arange(len(pairs)), left] = 1
    bound[np.arange(len(pairs)), right] = -growth
    limits = np.repeat([gap, growth - 1 + gap], len(pairs))
    table = np.concatenate([bound, -bound])
    found = linprog(order * other - one, A_ub=table, b_ub=limits, bounds=(0, 1), method="highs")
    if found.status != 0:
        raise NumericalError(f"the program must be solved, got status {found.status}: {found.message}")
    dual = -float(limits @ found.ineqlin.marginals + found.upper.marginals.sum())
    event = np.asarray(found.x)
    return WorstMechanism(max(0.0, float((one - order * other) @ event)), max(0.0, dual), event)
