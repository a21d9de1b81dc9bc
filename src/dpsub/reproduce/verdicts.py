"""The rules by which a reproduced number is judged against a printed one, kind by kind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from scipy import special

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.reproduce.published import Printed

VARIANTS = ("stated", "as_done", "consistent", "rigorous")
JUDGED = ("stated", "as_done")
LEVEL = 0.01  # of the family of one artefact, by Holm's procedure

# kind -> (verdict if it agrees, verdict if only `as_done` agrees, verdict if it does not agree)
WORDS = {
    "exact": ("reproduced", "reproduced_as_done", "differs"),
    "monte_carlo": ("within_error", "within_error_as_done", "differs"),
    "real_data": ("within_error", "within_error_as_done", "differs"),
    "extreme": ("within_error", "within_error_as_done", "differs"),
    "claim": ("holds", "reproduced_as_done", "fails"),
}
UNJUDGED = {"timing": "reported", "setting": "used", "structure": "structure_only"}


def rounds_into(value: float, printed: Printed, zero: float = 0.0) -> bool:
    """Return whether `value` lies in the half-unit interval of a printed number, both ends included.

    The shortest decimal that gives `value` back is compared in decimal arithmetic, so that a tie such as 0.0645
    agrees with both 0.064 and 0.065 and nothing beyond a tie agrees.

    Parameters
    ----------
    value : float
        Our number.
    printed : Printed
        The paper's number.
    zero : float
        Half-width of a bare "0", which has no last place: 0 where the paper means exactly zero, else the resolution
        below which its method cannot tell a number from zero.
    """
    if not math.isfinite(value):
        return False
    half = printed.half_unit or Decimal(repr(float(zero)))
    return abs(Decimal(repr(float(value))) - printed.value) <= half


def two_sided_p(value: float, printed: Printed, standard_error: float, paper_error: float) -> tuple[float, float]:
    """Return z and its two-sided normal p-value for a printed Monte Carlo number.

    z = max(0, |value - printed| - half unit) / sqrt(standard_error² + paper_error²): only what rounding cannot explain
    counts, so the test is conservative.

    Parameters
    ----------
    value : float
        Our estimate.
    printed : Printed
        The paper's estimate.
    standard_error, paper_error : float
        Standard errors of the two, at least 0. If both are 0, z is 0 or infinite.
    """
    checks.real("standard_error", standard_error, at_least=0)
    checks.real("paper_error", paper_error, at_least=0)
    if rounds_into(value, printed):
        return 0.0, 1.0
    gap = float(abs(Decimal(repr(float(value))) - printed.value) - printed.half_unit)
    error = math.hypot(standard_error, paper_error)
    z = gap / error if error > 0 else math.inf
    return z, float(2 * special.ndtr(-z))


def spread_error(spread: float, replicates: float) -> float:
    """Return the normal-theory standard error of a standard deviation, s / sqrt(2 (R - 1)).

    Raises
    ------
    ArgumentError
        If there are fewer than two replicates.
    """
    if not replicates >= 2:
        raise ArgumentError(f"a standard deviation needs at least 2 replicates, got {replicates:g}; run more")
    return abs(spread) / math.sqrt(2 * (replicates - 1))


def paper_error(standard_error: float, replicates: float, paper_replicates: float, paper_spread: float) -> float:
    """Return the standard error of a printed estimate.

    That is s_paper / sqrt(R_paper) where the paper prints the standard deviation behind a mean; elsewhere ours,
    rescaled: standard_error sqrt(R / R_paper). With R_paper = 1 this is our standard deviation over replicates.

    Parameters
    ----------
    standard_error, replicates : float
        Ours.
    paper_replicates : float
        The paper's, at least 1.
    paper_spread : float
        The paper's standard deviation over replicates; NaN where it prints none.
    """
    if math.isfinite(paper_spread):
        return paper_spread / math.sqrt(paper_replicates)
    if standard_error == 0:
        return 0.0
    if not replicates >= 1:
        raise ArgumentError(f"an estimate must come with its number of replicates, got {replicates}")
    return standard_error * math.sqrt(replicates / paper_replicates)


def holm(p_values: Sequence[float], level: float = LEVEL) -> np.ndarray:
    """Return which hypotheses Holm's step-down procedure rejects at family-wise `level`.

    The i-th smallest p-value (i = 0, 1, ...) is rejected while p <= level / (count - i).

    Raises
    ------
    ArgumentError
        If a p-value lies outside [0, 1].
    """
    p = checks.finite_array("p_values", p_values, ndim=1)
    if p.size and not (p.min() >= 0 and p.max() <= 1):
        raise ArgumentError(f"p_values must lie in [0, 1], got {p.min():g} to {p.max():g}")
    order = np.argsort(p, kind="stable")
    small = p[order] <= level / (p.size - np.arange(p.size)) if p.size else np.zeros(0, dtype=bool)
    rejected = np.zeros(p.size, dtype=bool)
    rejected[order] = np.logical_and.accumulate(small)
    return rejected


def word(kind: str, variant: str, agrees: bool, stated_agrees: bool) -> str:
    """Return the verdict of a judged cell.

    A cell that agrees only as done says so; its row of the variant `stated` says that it differs.
    """
    agree, only_as_done, differ = WORDS[kind]
    if not agrees:
        return differ
    return only_as_done if variant == "as_done" and not stated_agrees else agree
