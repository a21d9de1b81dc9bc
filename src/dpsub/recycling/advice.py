"""What recycling offers for one budget: plain noise, the paper's parameters, the best recycler, the
ceiling."""

from __future__ import annotations

import time
from dataclasses import dataclass

from dpsub.accounting.pld import time_limited
from dpsub.errors import NumericalError
from dpsub.recycling import paper
from dpsub.recycling.ceiling import Ceiling, ceiling
from dpsub.recycling.choice import Choice, best_recycler, out_of_time, plain_noise
from dpsub.recycling.composition import account
from dpsub.recycling.kernels import Family, LaplaceKernel


@dataclass(frozen=True)
class RecyclingAdvice:
    """What one budget allows. Where the paper's algorithms have no answer `paper` is None, for the
    reason in `no_paper`; `paper_delta` is what all releases with their parameters really have at
    epsilon, rounded up; the `ceiling` is for one release; `complete` says whether the search for
    the `optimum` ended before the time limit."""

    plain: Choice
    paper: Choice | None
    optimum: Choice
    paper_delta: float | None
    ceiling: Ceiling | None
    no_paper: str = ""
    complete: bool = True

    @property
    def gain(self) -> float:
        """By how much the best recycler's acceptance exceeds that of plain noise, at least 0."""
        return max(0.0, self.optimum.acceptance - self.plain.acceptance)

    @property
    def as_good(self) -> bool:
        """Whether plain noise is as good: smaller relative gains of acceptance than 0.1 % are of no
        use."""
        return self.gain <= 1e-3 * self.plain.acceptance

    @property
    def verdict(self) -> str:
        """One sentence on whether to recycle."""
        law = self.plain.law
        if not self.as_good:
            moved = f"the standard deviation goes from {law.sd:.4g} to {self.optimum.law.sd:.4g}"
            return f"recycling raises acceptance by {self.gain:.3g}; {moved}"
        wide = law.upper >= law.sensitivity
        if (
            isinstance(law.kernel, LaplaceKernel)
            and self.plain.steps == 1
            and (wide or self.plain.epsilon <= 1)
        ):
            case = "bound >= sensitivity" if wide else "epsilon <= 1"
            return (
                f"plain Laplace noise is as good: with {case} recycling gains nothing but "
                "order delta"
            )
        if not self.complete:
            return "plain noise is as good as all recyclers that were tried before the time limit"
        return f"plain {law.kernel.name} noise is as good: acceptance rises by less than 0.1 %"


def advise(
    family: Family,
    epsilon: float,
    delta: float,
    bound: float,
    sensitivity: float,
    steps: int = 1,
    deadline: float | None = None,
) -> RecyclingAdvice:
    """All of it for `steps` releases that share the budget, up to `deadline`, a reading of
    `time.monotonic`."""
    budgeted = (family, epsilon, delta, bound, sensitivity, steps)
    with time_limited(None if deadline is None else (time.monotonic() + deadline) / 2):
        plain, found = plain_noise(*budgeted), best_recycler(*budgeted)
        complete = steps == 1 or not out_of_time()
    optimum = found if found.acceptance > plain.acceptance else plain
    with time_limited(deadline):
        most = ceiling(epsilon, delta, bound, sensitivity) if steps == 1 else None
        try:
            claimed = paper.algorithm2_composed(*budgeted)
        except NumericalError as error:
            return RecyclingAdvice(plain, None, optimum, None, most, str(error), complete)
        true = account(claimed.law, steps, epsilon=plain.epsilon).upper
    return RecyclingAdvice(plain, claimed, optimum, true, most, complete=complete)
