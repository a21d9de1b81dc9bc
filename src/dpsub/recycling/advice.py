"""Advice on recycling for one budget: plain noise, the paper's parameters, the best recycler, and
the ceiling."""

from __future__ import annotations

from dataclasses import dataclass

from dpsub.accounting.engine import work
from dpsub.errors import NumericalError
from dpsub.recycling import paper
from dpsub.recycling.ceiling import Ceiling, ceiling
from dpsub.recycling.choice import Choice, best_recycler, plain_noise
from dpsub.recycling.composition import account
from dpsub.recycling.kernels import Family, LaplaceKernel


@dataclass(frozen=True)
class RecyclingAdvice:
    """The choices that one budget allows.

    Attributes
    ----------
    plain : Choice
        The kernel without recycling.
    paper : Choice or None
        The parameters of the paper's algorithms; None where they have no answer, for the reason in
        `no_paper`.
    optimum : Choice
        The best recycler that was found.
    paper_delta : float or None
        Upper bound on the delta at epsilon of all releases with the paper's parameters.
    ceiling : Ceiling or None
        Bounds on the acceptance of any noise; for one release only.
    complete : bool
        Whether the search for the optimum came to its end within the budget of work.
    """

    plain: Choice
    paper: Choice | None
    optimum: Choice
    paper_delta: float | None
    ceiling: Ceiling | None
    no_paper: str = ""
    complete: bool = True

    @property
    def gain(self) -> float:
        """Gain in acceptance of the best recycler over plain noise, at least 0."""
        return max(0.0, self.optimum.acceptance - self.plain.acceptance)

    @property
    def as_good(self) -> bool:
        """Whether plain noise is as good: the relative gain in acceptance is below 0.1 %."""
        return self.gain <= 1e-3 * self.plain.acceptance

    @property
    def verdict(self) -> str:
        """One sentence on whether to recycle."""
        law = self.plain.law
        if not self.as_good:
            moved = f"the standard deviation goes from {law.sd:.4g} to {self.optimum.law.sd:.4g}"
            return f"recycling raises acceptance by {self.gain:.3g}; {moved}"
        # The two cases of docs/recycling.md, section 5, in which a proof says so.
        wide = law.upper >= law.sensitivity
        proved = wide or self.plain.epsilon <= 1
        if isinstance(law.kernel, LaplaceKernel) and self.plain.steps == 1 and proved:
            case = "bound >= sensitivity" if wide else "epsilon <= 1"
            return (
                f"plain Laplace noise is as good: with {case} recycling gains no more "
                "than order delta"
            )
        if not self.complete:
            return "plain noise is as good as every recycler tried within the budget of work"
        return f"plain {law.kernel.name} noise is as good: acceptance rises by less than 0.1 %"


def advise(
    family: Family,
    epsilon: float,
    delta: float,
    bound: float,
    sensitivity: float,
    steps: int = 1,
) -> RecyclingAdvice:
    """Compare the recyclers for `steps` releases that share the budget."""
    budget = (family, epsilon, delta, bound, sensitivity, steps)
    before = work.refusals()
    # Half of the work that is left goes to the search, the other half to the paper's parameters.
    with work.share(1 / 2):
        plain = plain_noise(*budget)
        recycler = best_recycler(*budget)
        complete = steps == 1 or work.refusals() == before
    optimum = recycler if recycler.acceptance > plain.acceptance else plain
    highest = ceiling(epsilon, delta, bound, sensitivity) if steps == 1 else None
    try:
        claimed = paper.algorithm2_composed(*budget)
    except NumericalError as error:
        return RecyclingAdvice(plain, None, optimum, None, highest, str(error), complete)
    # The exact delta of the paper's parameters, whatever its theorems say.
    paper_delta = account(claimed.law, steps, epsilon=plain.epsilon).upper
    return RecyclingAdvice(plain, claimed, optimum, paper_delta, highest, complete=complete)
