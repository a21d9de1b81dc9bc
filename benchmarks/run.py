"""Print how fast the package is, as ratios to named peers measured in the same run. Seconds are
indicative.

Run with ``make bench``. Each line ends with the bound that the ratio is meant to keep, and whether
it did.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import accountant
import designs
import importance
import learning
import numpy as np
import plain_loops
import questions
import recycling
import scale
from board import Board

from dpsub import sampling
from dpsub.reproduce import configuration
from dpsub.reproduce.experiments import REGISTRY
from dpsub.sampling import base
from dpsub.sampling.frame import Frame
from dpsub.streams import stream

SIZES = ((300, 50, 30), (1000, 200, 100), (30969, 500, 300), (10**7, 500, 300))
SUBSETS = 500
CLOCK = time.perf_counter


def draws(board: Board) -> None:
    """Time draws of one subset, against NumPy's own index draws for the same number of indices."""
    for n, b, m in SIZES:
        rng = np.random.default_rng(0)
        frame = Frame(n)
        tag = f"(n={n}, b={b}, m={m})"

        def choice(size: int, n: int = n, rng: np.random.Generator = rng) -> float:
            return board.best(
                lambda: [rng.choice(n, size, replace=False) for _ in range(SUBSETS)], 5, CLOCK
            )

        def integers(size: int, n: int = n, rng: np.random.Generator = rng) -> float:
            return board.best(lambda: rng.integers(n, size=(SUBSETS, size)), 25, CLOCK)

        peers = {
            "poisson": ("choice(n, m)", choice(m)),
            "wor": ("choice(n, m)", choice(m)),
            "wr": ("integers(n, m)", integers(m)),
            "must_wo": ("integers(n, b) + choice(b, m)", integers(b) + choice(m)),
            "must_ow": ("choice(n, b) + integers(b, m)", choice(b) + integers(m)),
            "must_ww": ("integers(n, b) + integers(b, m)", integers(b) + integers(m)),
        }
        raw = board.best(lambda n=n, m=m, rng=rng: base.uniform(rng, n, SUBSETS * m), 25, CLOCK)
        theirs = integers(m)
        board.line(
            f"indices with replacement {tag}",
            raw / SUBSETS,
            "integers(n, m)",
            theirs / SUBSETS,
            at_most=1.5,
        )
        sizes = np.full(SUBSETS, m)
        raw = board.best(
            lambda n=n, sizes=sizes, rng=rng: base.distinct_rows(rng, n, sizes), 15, CLOCK
        )
        theirs = choice(m)
        board.line(
            f"indices without replacement {tag}",
            raw / SUBSETS,
            "choice(n, m)",
            theirs / SUBSETS,
            at_most=1.5,
        )
        seconds = {}
        for name, (peer, theirs) in peers.items():
            sampler = sampling.of_sizes(name, n=n, m=m, b=b)
            taken = board.best(
                lambda s=sampler, f=frame, rng=rng: s.draw_block(f, SUBSETS, rng), 25, CLOCK
            )
            seconds[name] = taken / SUBSETS
            board.line(f"{name} {tag}", seconds[name], peer, theirs / SUBSETS, at_most=3)
        board.line(f"poisson {tag}", seconds["poisson"], "our wor", seconds["wor"], at_most=2)


def growth(board: Board) -> None:
    """Check that the cost of a draw does not grow with the frame."""
    rng = np.random.default_rng(0)
    for name, kind in sampling.REGISTRY.members().items():
        cost = []
        for n in (10**5, 10**8):
            sampler = of_some_size(kind, n)
            cost.append(
                board.best(lambda s=sampler, n=n: s.draw_block(Frame(n), SUBSETS, rng), 25, CLOCK)
                / SUBSETS
            )
        board.line(f"{name} at n = 10^8", cost[1], "itself at n = 10^5", cost[0], at_most=1.5)


def of_some_size(kind: type[base.Sampler], n: int) -> base.Sampler:
    """Return a sampler of this kind with samples of about 300 of n records, or one of its examples
    where no sizes make one."""
    if not kind.sizes:
        return kind.examples()[0][0]
    return kind.of_sizes(n, **{**dict.fromkeys(kind.sizes, 300), "b": 500})


def experiments(board: Board, config: dict) -> None:
    """Time a complete variant of experiments 1 and 2, against loops over the same draws, where the
    paper of these is there."""
    if not {"subset_statistics", "linear_regression"} <= set(REGISTRY.names()):
        return
    root = config["seed"]
    one = config["experiments"]["subset_statistics"]
    experiment: Any = REGISTRY.get("subset_statistics")()
    replicates = range(one["replicates"])
    ours = board.best(
        lambda: experiment.compute(
            one, variant="stated", replicates=replicates, seed=root, data={}
        ),
        2,
        CLOCK,
    )
    x = np.random.default_rng(0).standard_normal(one["n"])
    cells = list(experiment.runs(experiment.settings(one), "stated"))

    def loop_one() -> None:
        for cell in cells:
            block = cell.drawn.draw_block(Frame(one["n"]), one["subsets"], np.random.default_rng(1))
            plain_loops.subset_statistics(x, block)

    board.line(
        "experiment 1, one variant, a repeat",
        ours / len(replicates),
        "loop over subsets, a repeat",
        board.best(loop_one, 2, CLOCK),
        at_most=1 / 5,
    )
    print(f"  experiment 1, one variant complete ({len(replicates)} repeats): {ours:.2f} s")

    two = config["experiments"]["linear_regression"]
    regression: Any = REGISTRY.get("linear_regression")()
    replicates = range(two["replicates"])
    ours = board.best(
        lambda: regression.compute(
            two, variant="stated", replicates=replicates, seed=root, data={}
        ),
        2,
        CLOCK,
    )

    def loop_two() -> None:
        rng = stream(root, experiment="bench", cell={}, role="data", replicate=0)
        x = np.column_stack([np.ones(two["n"]), rng.standard_normal((two["n"], 2))])
        y = x @ np.asarray(two["beta"], dtype=float) + rng.standard_normal(two["n"])
        for cell in regression.runs(regression.settings(two), "stated"):
            block = cell.drawn.draw_block(Frame(two["n"]), two["iterations"], rng)
            noise = cell.sigma * rng.standard_normal((two["iterations"], 3)) if cell.sigma else None
            plain_loops.linear_regression_path(
                x,
                y,
                block,
                noise,
                np.asarray(two["initial"], dtype=float),
                clip=cell.clip,
                learning_rate=two["learning_rate"],
            )

    board.line(
        "experiment 2, one variant, a repeat",
        ours / len(replicates),
        "loop over records, a repeat",
        board.best(loop_two, 1, CLOCK),
        at_most=1 / 50,
    )
    print(f"  experiment 2, one variant complete ({len(replicates)} repeats): {ours:.2f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=Path("config.yaml"))
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a bound is broken")
    parser.add_argument(
        "--quick", action="store_true", help="leave out peers that need more than ten seconds"
    )
    parser.add_argument(
        "--short",
        action="store_true",
        help="make each line once, at small sizes, and judge no bound",
    )
    arguments = parser.parse_args()
    board = Board(short=arguments.short)
    accountant.accountant(board, quick=arguments.quick)
    questions.questions(board)
    recycling.recycling(board)
    draws(board)
    growth(board)
    designs.designs(board)
    scale.scale(board, seconds=board.sized(12.0, 0.5))
    importance.importance(board, quick=arguments.quick)
    learning.learning(board)
    small = [Path(__file__).resolve().parents[1] / "workflow/smoke.yaml"] if board.short else []
    experiments(board, configuration.load([arguments.config, *small]))
    if board.short:
        print("each line was made once, and no bound was judged")
        return 0
    print("all bounds kept" if board.kept else "some bounds are broken (see BROKEN above)")
    return int(arguments.strict and not board.kept)


if __name__ == "__main__":
    sys.exit(main())
