"""Laws of multiplicity without their negligible tails, on the safe side of each bound."""

from __future__ import annotations

import numpy as np

from dpsub.multiplicity import MultiplicityLaw


def kept_counts(law: MultiplicityLaw, tail: float) -> int:
    """Smallest number of copies T such that more than T of them have probability at most `tail`."""
    beyond = np.cumsum(law.pmf[::-1])[::-1]
    return max(1, int(np.count_nonzero(beyond > tail)) - 1)


def dropped(law: MultiplicityLaw, tail: float) -> tuple[MultiplicityLaw, float]:
    """The law without counts of total probability at most `tail`, and that probability, rounded up.

    A pair (sum_l p_l A_l, sum_l p_l B_l) is dominated by the sub-pair of the counts kept and an infinite loss of the
    probability dropped, by joint convexity of the hockey-stick divergence.
    """
    last = kept_counts(law, tail)
    lost = float(law.pmf[:last:-1].sum())
    return (MultiplicityLaw(law.log_pmf[: last + 1]), lost * (1 + 1e-9)) if lost > 0 else (law, 0.0)


def capped(law: MultiplicityLaw, tail: float) -> MultiplicityLaw:
    """The law of min(L, T): what the tail weighs is given to T.

    For location pairs that move apart with l, in either direction, the optimal tests of the capped pair are half-lines,
    and on a half-line a smaller l has less mass under X and more under X': the capped pair is dominated by the pair.
    """
    last = kept_counts(law, tail)
    if last + 1 >= law.log_pmf.size:
        return law
    log_pmf = np.array(law.log_pmf[: last + 1])
    log_pmf[last] = np.logaddexp.reduce(law.log_pmf[last:])
    return MultiplicityLaw(log_pmf)
