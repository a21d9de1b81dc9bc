"""What recycling offers for one budget: plain noise, the paper's parameters, the best recycler, the ceiling."""

from __future__ import annotations

from dataclasses import dataclass

from dpsub.errors import NumericalError
from dpsub.recycling import composed_budget, paper_composition
from dpsub.recycling.ceiling import Ceiling, ceiling
from dpsub.recycling.choice import Choice
from dpsub.recycling.composed import account
from dpsub.recycling.kernels import Family, LaplaceKernel

_NO_GAIN = 1e-3
"""Smaller relative gains of acceptance than this are of no use."""


@dataclass(frozen=True)
class Advice:
    """Choices for one budget.

    Attributes
    ----------
    plain, optimum : Choice
        The kernel alone; the best recycler that the exact profile allows.
    paper : Choice or None
        The paper's algorithms; None if they end at rate 1, of which its composition theorem says nothing.
    paper_delta : float or None
        What all releases with the paper's parameters really have at epsilon, rounded up.
    ceiling : Ceiling or None
        For one release.
    """

    plain: Choice
    paper: Choice | None
    optimum: Choice
    paper_delta: float | None
    ceiling: Ceiling | None

    @property
    def gain(self) -> float:
        """By how much the best recycler's acceptance exceeds that of plain noise, at least 0."""
        return max(0.0, self.optimum.acceptance - self.plain.acceptance)

    @property
    def as_good(self) -> bool:
        """Whether plain noise is as good."""
        return self.gain <= _NO_GAIN * self.plain.acceptance

    @property
    def _theorem(self) -> str | None:
        """The case of one release with Laplace noise, where recycling is proved to gain nothing but order delta."""
        law = self.plain.law
        if not isinstance(law.kernel, LaplaceKernel) or self.plain.n_compositions > 1:
            return None
        if law.upper >= law.sensitivity:
            return "bound >= sensitivity"
        return "epsilon <= 1" if self.plain.epsilon <= 1 else None

    @property
    def verdict(self) -> str:
        """One sentence on whether to recycle."""
        if self.as_good and self._theorem is not None:
            return f"plain Laplace noise is as good: with {self._theorem} recycling gains nothing but order delta"
        if self.as_good:
            return f"plain {self.plain.law.kernel.name} noise is as good: acceptance rises by less than 0.1 %"
        moved = f"the standard deviation goes from {self.plain.law.sd:.4g} to {self.optimum.law.sd:.4g}"
        return f"recycling raises acceptance by {self.gain:.3g}; {moved}"


def advise(
    family: Family, epsilon: float, delta: float, bound: float, sensitivity: float, n_compositions: int = 1
) -> Advice:
    """All of it, for `n_compositions` releases that share the budget.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    """
    budgeted = (family, epsilon, delta, n_compositions, bound, sensitivity)
    plain = composed_budget.plain(*budgeted)
    try:
        paper = paper_composition.algorithm2(*budgeted)
    except NumericalError:
        paper = None
    found = composed_budget.optimum(*budgeted)
    true = None if paper is None else account(paper.law, plain.n_compositions, epsilon=plain.epsilon).upper
    most = ceiling(epsilon, delta, bound, sensitivity) if plain.n_compositions == 1 else None
    return Advice(plain, paper, found if found.acceptance > plain.acceptance else plain, true, most)
