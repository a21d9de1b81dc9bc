"""The lemmas: joint convexity (A.4), coupled sizes (B.1), the exponential tilt (B.3), case 2 of Appendix C."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.optimize import linprog

from dpsub.amplification.survey import rates, sizes
from dpsub.amplification.survey.auditor import audit, worst_ratio
from dpsub.errors import NumericalError
from dpsub.papers.bun.experiments.bun_cases.cases import Case, added
from dpsub.streams import Streams


def cases(epsilons: list[float], random_laws: int, streams: Streams) -> Iterator[Case]:
    """Yield the cases of the lemmas."""
    for epsilon in epsilons:
        for share in (0.05, 0.3, 0.8):
            for further in (0.2, 1.0):
                bound = epsilon + rates.amplified(share, further)
                yield Case("Lemma A.4", f"q {share}, epsilon' {further}", "upper", epsilon, bound, bound,
                           joint_convexity(share, epsilon, further))  # fmt: skip
        for n, m, other in ((6, 2, 2), (6, 2, 3), (8, 3, 5), (9, 4, 3)):
            p, q = added({m: 1.0}, {other: 1.0}, n)
            bound = sizes.rounding_coupled(m, other, n, epsilon)
            case = f"m {m} of {n}, m' {other} of {n + 1}"
            yield Case("Lemma B.1", case, "upper", epsilon, bound, bound, audit(p, q, epsilon).loss)
            substitute = audit(p, q, epsilon, relation="substitute").loss
            yield Case("Lemma B.1 base", case, "upper", epsilon, bound, bound if m == other else math.inf, substitute)
        yield from _tilt(epsilon, random_laws, streams)
        n, m = 10, 4
        share = (m + 1) / (n + 1)
        p, q = added({m + 1: 1.0}, {m + 1: 1.0}, n)
        yield Case("Appendix C case 2", f"m {m}, n {n}", "upper", epsilon, math.log1p(share),
                   rates.amplified(share, 2 * epsilon), audit(p, q, epsilon).loss)  # fmt: skip


def joint_convexity(share: float, epsilon: float, further: float) -> float:
    """Return the largest log ratio of two mixtures whose parts are as close as Lemma A.4 supposes."""
    near, far = math.exp(epsilon), math.exp(epsilon + further)
    # x0, x1, y0, y1: probabilities of one event
    pairs = ((0, 2, near), (1, 3, far), (1, 2, far), (0, 3, far))
    rows = []
    for one, other, factor in pairs:
        for a, b in ((one, other), (other, one)):
            row = np.zeros(4)
            row[a], row[b] = 1.0, -factor
            rows.append(row)
    cost = -np.array([1 - share, share, 0.0, 0.0])
    below = np.array([[0.0, 0.0, 1 - share, share]])
    found = linprog(cost, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=below, b_eq=[1.0], method="highs")
    if found.fun is None:
        raise NumericalError(f"the linear programme must reach an optimum, got {found.message!r}")
    return math.log(-float(found.fun))


def _tilt(epsilon: float, random_laws: int, streams: Streams) -> Iterator[Case]:
    rng = streams.data({"lemma": "B.3"}, 0)
    for number in range(1, random_laws + 1):
        p, w = rng.dirichlet(np.ones(12)), np.sort(rng.random(12))
        tilted = p * np.exp(epsilon * np.arange(12))
        value = math.log(float(tilted @ w / tilted.sum()))
        best = worst_ratio(np.log(w * p), np.log(p), epsilon).log_ratio
        yield Case("Lemma B.3", f"random law {number}", "equal", epsilon, value, value, best)
