"""Compare training per gradient with scikit-learn's SGD and loops over records; measure how it
grows, and its memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import plain_loops
from board import Board
from sklearn.linear_model import SGDClassifier

from dpsub import sampling
from dpsub.learning.descent import train
from dpsub.learning.models import KMeans, Linear, Logistic, Model, Perceptron, Softmax
from dpsub.sampling.frame import Frame, Samples

N, D, CLASSES = 20_000, 64, 10
MODELS: dict[str, Model] = {
    "linear": Linear(D),
    "logistic": Logistic(D),
    "softmax": Softmax(D, CLASSES),
    "k-means": KMeans(D, CLASSES),
    "perceptron": Perceptron(D, 16, CLASSES),
}
STEPS = 100


def _data(n: int = N) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, D)) / D**0.5
    return x, rng.integers(2, size=n)


def _drawn(n: int, m: int, steps: int) -> Samples:
    return sampling.Wor(m).draw_block(Frame(n), steps, np.random.default_rng(m))


def _trained(
    model: Model,
    x: np.ndarray,
    y: np.ndarray,
    block: Samples,
    m: int,
    seeds: int = 1,
    candidates: int = 1,
) -> np.ndarray:
    """Train several seeds, each with candidates of the learning rate, with noise."""
    rngs = [np.random.default_rng(seed) for seed in range(seeds)]
    initial = np.repeat(model.initial(rngs[0])[None], seeds * candidates, axis=0)
    rates = np.tile(np.linspace(0.1, 1, candidates), seeds)
    return train(
        model,
        x,
        y,
        [block] * seeds,
        initial=initial,
        learning_rate=rates,
        clip=1.0,
        divisor=m,
        noise_multiplier=1.0,
        rngs=rngs,
    )


def learning(board: Board) -> None:
    """Print all lines; seconds are per gradient of a record."""
    x, y = _data()
    for m in (20, 100, 1000):
        block = _drawn(N, m, STEPS)
        ours = board.best(
            lambda m=m, block=block: _trained(MODELS["logistic"], x, y, block, m), 5
        ) / (m * STEPS)
        theirs = board.best(lambda block=block: _partial_fits(x, y, block), 5) / (m * STEPS)
        board.line(
            f"a gradient, clipped, logistic, m = {m}",
            ours,
            "scikit-learn SGDClassifier",
            theirs,
            at_most=1,
        )
    m = 100
    block = _drawn(N, m, STEPS)
    few = block[:5]
    for name, model in MODELS.items():
        # as the tournament trains: ten seeds at once
        ours = board.best(lambda model=model: _trained(model, x, y, block, m, 10), 5) / (
            10 * m * STEPS
        )
        noise, start = np.zeros((5, model.n_parameters)), model.initial(np.random.default_rng(1))
        theirs = board.best(
            lambda model=model, noise=noise, start=start: plain_loops.private_descent(
                model, x, y, few, noise, start, clip=1.0, learning_rate=0.1, divisor=m
            ),
            2,
        ) / (m * 5)
        board.line(
            f"a gradient, {name}, 10 seeds",
            ours,
            "loop over gradients of records",
            theirs,
            at_most=1 / 20,
        )
        twelve = board.best(lambda model=model: _trained(model, x, y, block, m, 10, 12), 2) / (
            120 * m * STEPS
        )
        board.line(
            f"a gradient, {name}, 12 candidates each", twelve, "one candidate", ours, at_most=1
        )
    _growth(board, x, y)


def _partial_fits(x: np.ndarray, y: np.ndarray, block: Samples) -> None:
    """Train with scikit-learn, without clipping or noise: less than is asked of ours."""
    peer, classes = (
        SGDClassifier(loss="log_loss", alpha=0.0, learning_rate="constant", eta0=0.1),
        np.arange(2),
    )
    for t in range(block.n_subsets):
        rows = block[t].indices
        peer.partial_fit(x[rows], y[rows], classes)


def _growth(board: Board, x: np.ndarray, y: np.ndarray) -> None:
    """Check that time grows no faster than linearly in batch and steps, and that memory does not
    grow with steps."""
    model = MODELS["logistic"]
    cost = {}
    for m in (100, 1000, 10_000):
        block = _drawn(N, m, 50)
        cost[m] = board.best(lambda m=m, block=block: _trained(model, x, y, block, m), 7) / (50 * m)
    for small, large in ((100, 1000), (1000, 10_000)):
        board.line(
            f"a step, a record, m = {large}", cost[large], f"m = {small}", cost[small], at_most=1.25
        )
    blocks = {steps: _drawn(N, 100, steps) for steps in (100, 1000)}
    a, b = (
        board.best(lambda block=block: _trained(model, x, y, block, 100), 3) / steps
        for steps, block in blocks.items()
    )
    board.line("a step of 1000", b, "a step of 100", a, at_most=1.1)
    peaks = []
    for block in blocks.values():
        tracemalloc.start()
        _trained(model, x, y, block, 100)
        peaks.append(tracemalloc.get_traced_memory()[1] / 2**20)
        tracemalloc.stop()
    print(
        f"  memory beside the data: {peaks[0]:.0f} MiB for 100 steps, {peaks[1]:.0f} MiB for 1000",
        flush=True,
    )
