"""Differentially private stochastic gradient descent on linear predictors, vectorised over
replicates; binary metrics.

The loss of a record depends on its features x only through z = x'beta, so its gradient is r(z, y) x
with a scalar residual r: clipping needs |r| ||x|| alone, and a batch needs one matrix product, each
distinct record once, by count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from dpsub import checks
from dpsub.errors import ArgumentError, NumericalError
from dpsub.sampling import Sampler, Schedule
from dpsub.sampling.frame import Samples

Residual = Callable[[np.ndarray, np.ndarray], np.ndarray]
ITERATIONS_AT_ONCE = 50  # bounds the memory of the padded batches; has no influence on results


def squared_error_residual(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return d/dz (z - y)^2 = 2 (z - y)."""
    return 2 * (z - y)


def logistic_residual(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return d/dz of the cross-entropy of P(y = 1) = 1 / (1 + exp(-z)), for y in {0, 1}."""
    return expit(z) - y


@dataclass(frozen=True)
class Descent:
    """How the gradients of a batch become a step."""

    # derivative of a record's loss with respect to z = x'beta, a function of (z, y)
    residual: Residual
    learning_rate: float
    clip: float | None  # largest norm of a record's gradient; None for the non-private baseline
    # of the sum of gradients; None for the realised batch size, as in MUST's Algorithm 2
    divisor: float | None = None

    def __post_init__(self) -> None:
        checks.real("learning_rate", self.learning_rate, above=0)
        if self.clip is not None:
            checks.real("clip", self.clip, above=0)


def batch_width(sampler: Sampler | Schedule, n: int) -> int:
    """Return a number of distinct records that a batch exceeds with probability below 1e-30.

    Padding all batches to it keeps the last digit free of which replicates are computed together.
    """
    upper_tail = np.cumsum(sampler.distinct_law(n)[::-1])[::-1]
    return max(1, int(np.flatnonzero(upper_tail > 1e-30)[-1]))


def batches(blocks: Sequence[Samples], width: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (indices, counts), each of shape (replicates, width), by iteration; NumericalError if a
    batch is wider."""
    largest = max(int(block.distinct.max(initial=0)) for block in blocks)
    if largest > width:
        raise NumericalError(
            f"a batch must have at most {width} distinct records, got {largest}; use another seed"
        )
    for start in range(0, blocks[0].n_subsets, ITERATIONS_AT_ONCE):
        stop = min(start + ITERATIONS_AT_ONCE, blocks[0].n_subsets)
        padded = [block[start:stop].padded(width) for block in blocks]
        indices, counts = (np.stack(parts, axis=1) for parts in zip(*padded, strict=True))
        yield from zip(indices, counts, strict=True)


def descend(
    features: np.ndarray,
    targets: np.ndarray,
    blocks: Sequence[Samples],
    noise: np.ndarray | None,
    initial: np.ndarray,
    descent: Descent,
    *,
    width: int,
) -> Iterator[np.ndarray]:
    """Run DP-SGD (MUST, Algorithm 2) on R replicates at once and yield beta, shape (R, p), after
    each iteration.

    A step subtracts learning_rate times (the sum of the counted, clipped gradients / divisor +
    noise); an empty batch moves by the noise alone.

    Parameters
    ----------
    features : shape (R, n, p), or (n, p) if shared by all replicates, with a column of ones for an
    intercept. targets : shape (R, n) or (n,). blocks : the batches of each replicate, one subset an
    iteration. noise : added to the average gradient, already scaled, shape (R, T, p), or None.
    initial : shape (p,). width : see `batch_width`.
    """
    n_replicates, (n, p) = len(blocks), features.shape[-2:]
    if initial.shape != (p,):
        raise ArgumentError(
            f"initial must have one entry for each of the {p} features, got shape {initial.shape}"
        )
    table = np.ascontiguousarray(features).reshape(-1, p)
    values = np.ascontiguousarray(targets).reshape(-1)
    norms = np.sqrt(np.einsum("ij,ij->i", table, table))
    shared = features.ndim == 2
    origin = (
        np.zeros((n_replicates, 1), dtype=np.intp)
        if shared
        else n * np.arange(n_replicates)[:, None]
    )
    beta = np.repeat(initial[None, :].astype(float), n_replicates, axis=0)
    for t, (indices, counts) in enumerate(batches(blocks, width)):
        where = indices + origin
        x = table.take(where, axis=0)
        r = descent.residual(np.matmul(x, beta[:, :, None])[:, :, 0], values.take(where))
        weights = counts * r
        if descent.clip is not None:
            size = np.abs(r) * norms.take(where)
            weights *= descent.clip / np.maximum(size, descent.clip)
        gradient = np.matmul(weights[:, None, :], x)[:, 0, :]
        gradient /= (
            np.maximum(counts.sum(axis=1), 1.0)[:, None]
            if descent.divisor is None
            else descent.divisor
        )
        if noise is not None:
            gradient += noise[:, t, :]
        beta = beta - descent.learning_rate * gradient
        yield beta


def binary_metrics(predicted: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return accuracy, sensitivity, specificity, positive and negative predictive value, and F1; 0
    / 0 is NaN. `predicted` is a boolean array, `truth` holds 0 and 1; both have shape (n,).
    """
    actual = truth > 0.5
    tp = float(np.count_nonzero(predicted & actual))
    fp = float(np.count_nonzero(predicted & ~actual))
    fn = float(np.count_nonzero(~predicted & actual))
    tn = len(actual) - tp - fp - fn

    def ratio(part: float, whole: float) -> float:
        return part / whole if whole else float("nan")

    return {
        "accuracy": ratio(tp + tn, len(actual)),
        "sensitivity": ratio(tp, tp + fn),
        "specificity": ratio(tn, tn + fp),
        "ppv": ratio(tp, tp + fp),
        "npv": ratio(tn, tn + fn),
        "f1": ratio(2 * tp, 2 * tp + fp + fn),
    }


def cross_entropy(z: np.ndarray, y: np.ndarray) -> float:
    """Mean of log(1 + exp(z)) - y z: the logistic loss of the linear predictor z (nats; MUST,
    Section S9)."""
    # log(1 + exp(z)) = max(z, 0) + log1p(exp(-|z|)): no overflow, one pass
    return float(np.mean(np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z))) - y * z))


def area_under_curve(z: np.ndarray, y: np.ndarray) -> float:
    """Return the area under the ROC curve: the chance that a positive record gets a larger linear
    predictor z than a negative one, ties counting one half; NaN if one class of y in {0, 1} is
    absent.
    """
    from scipy.stats import rankdata  # here, as its import takes longer than most jobs compute

    actual = y > 0.5
    positive = int(np.count_nonzero(actual))
    negative = len(actual) - positive
    if not positive or not negative:
        return float("nan")
    return (float(rankdata(z)[actual].sum()) - positive * (positive + 1) / 2) / (
        positive * negative
    )
