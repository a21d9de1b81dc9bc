"""Compare exact losses of sampling designs with a direct linear programme at the largest size that
this still solves."""

from __future__ import annotations

import numpy as np
from board import Board

from dpsub.amplification.survey import clusters
from dpsub.amplification.survey.auditor import audit
from dpsub.amplification.survey.laws import cluster_laws
from dpsub.amplification.survey.sizes import log_sizes_of, random_size_exact
from dpsub.sampling.allocation import log_normal_sizes

EPSILON = 0.01
LIMIT = 2.0  # seconds for one exact loss


def designs(board: Board) -> None:
    """Time randomised sizes at n = 10^5 and 10^4 clusters, each below two seconds; the programme on
    far smaller frames."""
    n, count = board.sized((10**5, 10**4), (10**3, 2000))
    for epsilon in (EPSILON, 1.0):
        law = log_normal_sizes(n, n // 2, n / 250)
        ours, _ = board.timed(lambda law=law, epsilon=epsilon: random_size_exact(law, epsilon))
        # 3 * 74 + 2 samples: the largest n below the auditor's limit of 300 with both directions
        small = 74
        t = np.full(small + 1, 1 / (small + 1))
        states: list[dict[tuple[int, ...], float]] = [{}, {}]
        for m, p in enumerate(t.tolist()):
            for held, chance in ((1, p * m / small), (0, p * (1 - m / small))):
                if chance:
                    states[0][held, 0, m - held], states[1][0, held, m - held] = chance, chance
        theirs, loss = board.timed(lambda states=states: audit(*states, EPSILON).loss)
        again = random_size_exact(log_sizes_of(t), EPSILON)
        print(f"  the programme at n = {small} differs by {abs(loss - again):.1e} nats", flush=True)
        board.line(
            f"random sizes, n = {n:,}, epsilon {epsilon:g}", ours, "the limit", LIMIT, at_most=1
        )
        board.line(
            f"random sizes, a record (epsilon {epsilon:g})",
            ours / n,
            f"LP at n = {small}, a record",
            theirs / small,
            at_most=0.1,
        )
    rng = np.random.default_rng(0)
    sizes = tuple(rng.integers(1, 200, count).tolist())
    for drawn in (100, 1000):
        design = clusters.ClusterDesign(sizes, drawn)
        ours, _ = board.timed(lambda design=design: design.exact(EPSILON, 0))
        board.line(f"{drawn} of {count:,} unequal clusters", ours, "the limit", LIMIT, at_most=1)
    few, taken = (3, 5, 2, 4, 1, 6, 2, 3), 4
    theirs, loss = board.timed(lambda: audit(*cluster_laws(few, taken), 0.2).loss)
    ours, exact = board.timed(lambda: clusters.ClusterDesign(few, taken).exact(0.2, 0))
    print(
        f"  the programme on {len(few)} clusters differs by {abs(loss - exact):.1e} nats",
        flush=True,
    )
    board.line(
        "4 of 8 unequal clusters", max(ours, 1e-6), "LP of the same design", theirs, at_most=0.1
    )
