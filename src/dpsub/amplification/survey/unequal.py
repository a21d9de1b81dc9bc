"""Unequal probabilities and known orders: lower bounds from inclusion, PPS, PPS clusters,
systematic samples."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import logsumexp

from dpsub import checks
from dpsub.amplification.survey.clusters import checked_sizes
from dpsub.amplification.survey.rates import amplified


def inclusion_bound(
    a: Sequence[float],
    a_other: Sequence[float],
    p: Sequence[float],
    p_other: Sequence[float],
    q: Sequence[float],
    q_other: Sequence[float],
    *,
    weak: bool = False,
) -> float:
    """Return the loss that one event proves, the largest over records i (bun, Proposition 6.1,
    Equations 4 and 5).

    a_i, p_i, q_i: chance that record i is in the sample, and of the event given that it is in, or
    out; `_other` on the neighbour. The log ratio is log (p a + q (1 - a)) / (p' a' + q' (1 - a'));
    `weak` drops q (1 - a), as printed first, and only then records with a'_i = 0 or p'_i = 0 are
    skipped.
    """
    best = -math.inf
    for ai, bi, pi, ri, qi, si in zip(a, a_other, p, p_other, q, q_other, strict=True):
        if weak:
            if bi > 0 and ri > 0 and ai * pi > 0:
                best = max(
                    best, math.log(pi * ai / (ri * bi)) - math.log1p(si * (1 - bi) / (ri * bi))
                )
        elif ri * bi + si * (1 - bi) > 0 and pi * ai + qi * (1 - ai) > 0:
            best = max(best, math.log((pi * ai + qi * (1 - ai)) / (ri * bi + si * (1 - bi))))
    return best


def pps_bounds(inclusion: float, epsilon: float) -> tuple[float, float]:
    """Return the weak and the strong lower bound of a PPS sample: max(0, eps + log a) and log(1 +
    a(e^eps - 1)).

    Randomised response on the record of largest inclusion probability a exceeds both (bun, Section
    6.1).
    """
    inclusion = checks.real("inclusion", inclusion, above=0, at_most=1)
    return max(0.0, checks.real("epsilon", epsilon, above=0) + math.log(inclusion)), amplified(
        inclusion, epsilon
    )


def pps_cluster(sizes: Sequence[int], cluster: int, epsilon: float) -> float:
    """Return the exact worst loss when one cluster is drawn with chance proportional to size,
    adding a record to it.

    The worst event has probability e^(-epsilon d) at distance d from the cluster with the record
    (bun, Section 6.2, erratum BN14). As the other clusters get far away it tends to
    `pps_cluster_limit`, above epsilon.
    """
    sizes = checked_sizes(sizes)
    own, others, n = sizes[cluster], sizes[:cluster] + sizes[cluster + 1 :], sum(sizes)
    # in logarithms: e^(-epsilon d) underflows for clusters of a thousand records
    far = [math.log(size) - epsilon * (own + 1 + size) for size in others]
    above = logsumexp([math.log(own + 1), *far]) - math.log(n + 1)
    below = logsumexp([math.log(own) - epsilon, *far]) - math.log(n)
    return float(above - below)


def pps_cluster_limit(sizes: Sequence[int], cluster: int, epsilon: float) -> float:
    """Return epsilon + log((n_1 + 1) n/(n_1 (n + 1))) for n records in all, n_1 in the cluster."""
    sizes = checked_sizes(sizes)
    own, n = sizes[cluster], sum(sizes)
    return epsilon + math.log1p((n - own) / (own * (n + 1)))


def systematic_insertion(n: int, step: int, place: int, epsilon: float) -> tuple[float, float]:
    """Return lower and upper bound of the loss when a record is inserted at `place` of a known
    order of n records.

    Every unit behind the new one changes its class. With F_j and B_j the members of class j before
    and behind the place, a sample changes by min over the two ways to pair classes; the lower bound
    is the ratio at the event that decays with the distance from one sample. Both grow linearly in n
    (bun, Section 6.3, erratum BN15).
    """
    n = checks.integer("n", n, at_least=2)
    step = checks.integer("step", step, at_least=2, at_most=n, at_most_name="n")
    place = checks.integer("place", place, at_least=0, at_most=n, at_most_name="n")
    epsilon = checks.real("epsilon", epsilon, above=0)
    front = [len(range(j, place, step)) for j in range(step)]
    # units at positions place, ..., n - 1 whose position is j modulo step
    behind = [len(range(j, n, step)) - front[j] for j in range(step)]
    # after the insertion a unit of class j moves to class j + 1, and the new record has class place
    # modulo step
    new = place % step
    kept = max(behind[j] + behind[j - 1] + (j == new) for j in range(step))
    moved = max(front[j] + front[j - 1] + (j == new) for j in range(step))
    lower = 0.0
    for chosen in {new, (new + 1) % step}:
        back = (chosen - 1) % step  # the class that its back part had before

        def log_decay(
            j_front: int, j_back: int, holds: bool, *, at: int = chosen, old: int = back
        ) -> float:
            apart = int(holds != (at == new))
            apart += 0 if j_front == at else front[j_front] + front[at]
            apart += 0 if j_back == old else behind[j_back] + behind[old]
            return -epsilon * apart

        before = logsumexp([log_decay(j, j, False) for j in range(step)])
        after = logsumexp([log_decay(j, (j - 1) % step, j == new) for j in range(step)])
        lower = max(lower, float(after - before))
    return lower, epsilon * min(kept, moved)
