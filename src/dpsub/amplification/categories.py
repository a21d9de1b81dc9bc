"""How an amplification is judged: categories and the aligned profile."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.amplification.theorem import amplify
from dpsub.errors import ArgumentError
from dpsub.multiplicity import MultiplicityLaw
from dpsub.profiles.base import Profile


def category(epsilon: float, delta: float, epsilon_amplified: float, delta_amplified: float) -> str:
    """Name the kind of amplification from (epsilon, delta) to (epsilon', delta').

    ============== ==================== ====================
    category       epsilon              delta
    ============== ==================== ====================
    "strong"       epsilon' < epsilon   delta' < delta
    "weak_type_1"  epsilon' < epsilon   delta' >= delta
    "weak_type_2"  epsilon' >= epsilon  delta' < delta
    "dilution"     epsilon' >= epsilon  delta' >= delta
    "boundary"     epsilon' < epsilon   delta' = delta = 0
    ============== ==================== ====================

    This is the definition that Figure 3's caption implies: as printed, type I repeats the strong condition and
    dilution repeats type II (E13). "boundary" is ours: a delta of 0 can't shrink, so strict amplification is out of
    reach there although nothing is lost (Laplace noise, epsilon >= theta, at most one copy).

    Parameters
    ----------
    epsilon, epsilon_amplified : float
        Nats, at least 0.
    delta, delta_amplified : float
        In [0, 1].

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    References
    ----------
    must, Definition 5 and Figure 3.
    """
    base = checks.real("epsilon", epsilon, at_least=0)
    amplified = checks.real("epsilon_amplified", epsilon_amplified, at_least=0)
    base_delta = checks.real("delta", delta, at_least=0, at_most=1)
    amplified_delta = checks.real("delta_amplified", delta_amplified, at_least=0, at_most=1)
    if amplified < base:
        if amplified_delta < base_delta:
            return "strong"
        return "boundary" if amplified_delta == 0 else "weak_type_1"
    return "weak_type_2" if amplified_delta < base_delta else "dilution"


def aligned_profile(law: MultiplicityLaw, profile: Profile, epsilons: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return the curve (epsilon' / epsilon, delta' - delta), parametrised by the base epsilon.

    Two samplers can be compared on it although the same base epsilon gives them different epsilon'.

    Parameters
    ----------
    law : MultiplicityLaw
        Law of the sampler.
    profile : Profile
        Profile of the base mechanism.
    epsilons : array_like
        Base epsilons in nats, above 0.

    Returns
    -------
    ratio, difference : ndarray
        epsilon' / epsilon in [0, 1] and delta' - delta in [-1, 1], of the shape of `epsilons`.

    Raises
    ------
    ArgumentError
        If an epsilon is not above 0.

    References
    ----------
    must, Section 3.2 and Figure 4.
    """
    order = checks.finite_array("epsilons", epsilons)
    if order.size and order.min() <= 0:
        raise ArgumentError(f"epsilons must be above 0 for a ratio to exist, got {order.min():g}; drop it")
    result = amplify(law, profile, order)
    return result.epsilon_amplified / order, result.delta_amplified - result.delta
