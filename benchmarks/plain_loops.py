"""Plain implementations that the vectorised ones are measured against: one subset, one record at a
time.

They take the same draws and must give the same numbers, so the tests use them as well.
"""

from __future__ import annotations

import numpy as np

from dpsub.learning.models import KMeans, Linear, Logistic, Model, Perceptron, Softmax
from dpsub.sampling.frame import Samples


def subset_statistics(x: np.ndarray, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of each subset, from its records written out one by one."""
    means, variances = [], []
    for i in range(samples.n_subsets):
        sample = samples[i]
        values = np.repeat(x[sample.indices], sample.counts)
        means.append(values.mean())
        variances.append(values.var(ddof=1))
    return np.array(means), np.array(variances)


def linear_regression_path(
    x: np.ndarray,
    y: np.ndarray,
    samples: Samples,
    noise: np.ndarray | None,
    initial: np.ndarray,
    *,
    clip: float | None,
    learning_rate: float,
    divisor: float | None = None,
) -> np.ndarray:
    """Run DP-SGD on the squared error, as in MUST's Algorithm 2: a gradient for each record of a
    batch, clipped, summed.

    Shapes: x (n, p), y (n,), noise (T, p); returns the iterates, (T, p).
    """
    beta = np.array(initial, dtype=float)
    path = []
    for t in range(samples.n_subsets):
        batch = samples[t]
        total = np.zeros(len(beta))
        for index, count in zip(batch.indices, batch.counts, strict=True):
            gradient = 2 * x[index] * (x[index] @ beta - y[index])
            if clip is not None:
                gradient = gradient / max(1.0, float(np.linalg.norm(gradient)) / clip)
            total += count * gradient
        step = total / (max(batch.size, 1) if divisor is None else divisor)
        if noise is not None:
            step = step + noise[t]
        beta = beta - learning_rate * step
        path.append(beta)
    return np.array(path)


def example_gradient(model: Model, parameters: np.ndarray, x: np.ndarray, y: float) -> np.ndarray:
    """Return the gradient of one record's loss, written out layer by layer, shape (p,)."""
    match model:
        case Linear():
            return np.asarray(2 * x * (x @ parameters - y))
        case Logistic():
            return np.asarray(x * (1 / (1 + np.exp(-(x @ parameters))) - y))
        case Softmax(d, classes):
            return np.outer(
                _chances(parameters.reshape(classes, d) @ x) - (np.arange(classes) == y), x
            ).ravel()
        case KMeans(d, k):
            centres = parameters.reshape(k, d)
            gradient = np.zeros((k, d))
            nearest = ((centres - x) ** 2).sum(axis=1).argmin()
            gradient[nearest] = 2 * (centres[nearest] - x)
            return gradient.ravel()
        case Perceptron(d, hidden, classes):
            inner = parameters[: hidden * d].reshape(hidden, d)
            outer = parameters[hidden * d :].reshape(classes, hidden + 1)
            active = np.append(np.tanh(inner @ x), 1.0)
            excess = _chances(outer @ active) - (np.arange(classes) == y)
            back = (outer.T @ excess)[:hidden] * (1 - active[:hidden] ** 2)
            return np.concatenate([np.outer(back, x).ravel(), np.outer(excess, active).ravel()])
    raise NotImplementedError(type(model).__name__)


def private_descent(
    model: Model,
    x: np.ndarray,
    y: np.ndarray,
    samples: Samples,
    noise: np.ndarray | None,
    initial: np.ndarray,
    *,
    clip: float,
    learning_rate: float,
    divisor: float,
) -> np.ndarray:
    """Run DP-SGD with an explicit gradient of each record, clipped; noise (T, p) on the sum; return
    the last parameters, (p,)."""
    parameters = np.array(initial, dtype=float)
    for t in range(samples.n_subsets):
        total = np.zeros(len(parameters)) if noise is None else noise[t].copy()
        for index, count in zip(samples[t].indices, samples[t].counts, strict=True):
            gradient = example_gradient(model, parameters, x[index], y[index])
            total += count * gradient / max(1.0, float(np.linalg.norm(gradient)) / clip)
        parameters = parameters - learning_rate * total / divisor
    return parameters


def _chances(z: np.ndarray) -> np.ndarray:
    chances = np.exp(z - z.max())
    return np.asarray(chances / chances.sum())
