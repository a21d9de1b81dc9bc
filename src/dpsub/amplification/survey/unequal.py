"""Designs with unequal probabilities or a known order: bounds from inclusion probabilities, PPS
samples, PPS clusters and systematic samples."""

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
    """Return the largest loss that one event proves, over records i.

    a_i is the probability that record i is in the sample; p_i and q_i are the probabilities of the
    event given that it is in, or out; `_other` are those on the neighbour. The log-ratio is
    log (p a + q (1 - a)) / (p' a' + q' (1 - a')). `weak` drops q (1 - a), as printed first, and
    then skips records with a'_i = 0 or p'_i = 0 (bun, Proposition 6.1, Equations 4 and 5).
    """
    best = -math.inf
    # `bi`, `ri` and `si` are a'_i, p'_i and q'_i.
    for ai, bi, pi, ri, qi, si in zip(a, a_other, p, p_other, q, q_other, strict=True):
        inside, inside_other = pi * ai, ri * bi
        outside_other = si * (1 - bi)
        if weak:
            if bi > 0 and ri > 0 and ai * pi > 0:
                loss = math.log(inside / inside_other) - math.log1p(outside_other / inside_other)
                best = max(best, loss)
            continue
        event, event_other = inside + qi * (1 - ai), inside_other + outside_other
        if event > 0 and event_other > 0:
            best = max(best, math.log(event / event_other))
    return best


def pps_bounds(inclusion: float, epsilon: float) -> tuple[float, float]:
    """Return the weak and the strong lower bound on the loss of a PPS sample.

    They are max(0, eps + log a) and log(1 + a (e^eps - 1)). Randomised response on the record with
    the largest inclusion probability a exceeds both (bun, Section 6.1).
    """
    inclusion = checks.real("inclusion", inclusion, above=0, at_most=1)
    weak = max(0.0, checks.real("epsilon", epsilon, above=0) + math.log(inclusion))
    return weak, amplified(inclusion, epsilon)


def pps_cluster(sizes: Sequence[int], cluster: int, epsilon: float) -> float:
    """Return the exact worst loss of adding a record where one cluster is drawn by size.

    The worst event has probability e^(-epsilon d) at distance d from the cluster with the record.
    As the other clusters get larger the loss tends to `pps_cluster_limit`, which is above epsilon
    (bun, Section 6.2, erratum BN14).
    """
    sizes = checked_sizes(sizes)
    own, others, n = sizes[cluster], sizes[:cluster] + sizes[cluster + 1 :], sum(sizes)
    # In logarithms: e^(-epsilon d) underflows for clusters of a thousand records.
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
    """Return bounds on the loss when a record is inserted at `place` in a known order.

    Every unit behind the new one changes its class. F_j and B_j are the members of class j before
    and behind the place; the classes can be paired in two ways, and the better one bounds the
    change of a sample. The lower bound is the ratio at the event that decays with the distance from
    one sample. Both bounds grow linearly in n (bun, Section 6.3, erratum BN15).
    """
    n = checks.integer("n", n, at_least=2)
    step = checks.integer("step", step, at_least=2, at_most=n, at_most_name="n")
    place = checks.integer("place", place, at_least=0, at_most=n, at_most_name="n")
    epsilon = checks.real("epsilon", epsilon, above=0)
    front = [len(range(j, place, step)) for j in range(step)]
    # Units at positions place, ..., n - 1 whose position is j modulo step.
    behind = [len(range(j, n, step)) - front[j] for j in range(step)]
    # The insertion moves a unit behind it from class j to class j + 1.
    new = place % step
    same_front = max(behind[j] + behind[j - 1] + (j == new) for j in range(step))
    same_back = max(front[j] + front[j - 1] + (j == new) for j in range(step))
    lower = 0.0
    for chosen in {new, (new + 1) % step}:
        # The class that the back part of the chosen sample had before.
        back = (chosen - 1) % step

        def log_decay(
            j_front: int, j_back: int, holds: bool, *, at: int = chosen, old: int = back
        ) -> float:
            distance = int(holds != (at == new))
            distance += 0 if j_front == at else front[j_front] + front[at]
            distance += 0 if j_back == old else behind[j_back] + behind[old]
            return -epsilon * distance

        before = logsumexp([log_decay(j, j, False) for j in range(step)])
        after = logsumexp([log_decay(j, (j - 1) % step, j == new) for j in range(step)])
        lower = max(lower, float(after - before))
    return lower, epsilon * min(same_front, same_back)
