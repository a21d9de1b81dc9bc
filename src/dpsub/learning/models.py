"""Models whose gradients are sums over layers of outer products, so that the norm of a record's
gradient needs no gradient of its own.

A layer that maps inputs u to W u has the gradient (delta u') in W, of norm |delta| |u|: the norm of
a record's gradient is the root of the sum of |delta|^2 |u|^2 over layers, and a sum of clipped
gradients is one matrix product a layer.

In shapes, ... stands for leading axes that broadcast, K for runs that share records, B for records.

References
----------
Goodfellow, arXiv 1510.01799 (norms without gradients).
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from dpsub.learning.metrics import log_loss

Layer = tuple[np.ndarray, np.ndarray]
"""delta, shape (..., K, a, B), and inputs, (..., B, c) if all runs share them, else (..., K, B,
c)."""
NUMBERS_AT_ONCE = 1 << 18
"""Bounds the memory, and keeps work in a cache: numbers of the arrays of a product, or of steps
that are prepared together. It has no influence on results."""
_MEASURED = 2048  # records whose losses are added before they are added to others


class Model(abc.ABC):
    """A loss with parameters. Subclasses are frozen dataclasses whose fields are sizes."""

    d: int  # features of a record

    @property
    @abc.abstractmethod
    def n_parameters(self) -> int:
        """Number p of parameters of one run."""

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """Approximate number of array entries that `backward` needs for one record of one run; it
        sets the size of portions."""

    @abc.abstractmethod
    def backward(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> list[Layer]:
        """Return the layers of the gradients, one after the other; each has a * c parameters.

        Parameters
        ----------
        parameters : shape (..., K, p).
        x, y : shape (..., B, d) and (..., B).
        """

    @abc.abstractmethod
    def losses(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return each record's loss, shape (..., K, B), for arguments as in `backward`."""

    def hits(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return a mask of the correctly classified records, shape (..., K, B); NaN if the model
        has no classes."""
        # NaN and not 0: a table leaves the column out.
        return np.full((*parameters.shape[:-1], x.shape[-2]), np.nan)

    def initial(self, rng: np.random.Generator) -> np.ndarray:
        """Return parameters to start from, shape (p,), chosen without looking at the data: 0
        unless that is a saddle point."""
        return np.zeros(self.n_parameters)

    def loss(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the mean loss of each run, shape (R,), for parameters (R, p) and records (N, d),
        (N,)."""
        return self._mean(self.losses, parameters, x, y)

    def accuracy(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return each run's share of records that are classified correctly, as `loss`; NaN if there
        are no classes."""
        return self._mean(self.hits, parameters, x, y)

    def _mean(
        self, what: Callable[..., np.ndarray], parameters: np.ndarray, x: np.ndarray, y: np.ndarray
    ) -> np.ndarray:
        # in portions of one size whatever is asked together: the bytes do not depend on it
        total = np.zeros(len(parameters))
        for rows in slices(len(x), _MEASURED):
            records, values = x[None, rows].astype(float, copy=False), y[None, rows]
            for runs in slices(len(total), NUMBERS_AT_ONCE // (_MEASURED * self.width)):
                total[runs] += what(parameters[runs, None], records, values)[:, 0].sum(axis=-1)
        return total / len(x)


def _linear(weights: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """W u for weights (..., K, a, d) and shared inputs (..., B, d), as one product; shape (..., K,
    a, B)."""
    *leading, k, a, d = weights.shape
    # One product of a large matrix instead of K small ones.
    flat = np.matmul(weights.reshape(*leading, k * a, d), inputs.swapaxes(-1, -2))
    return flat.reshape(*flat.shape[:-2], k, a, flat.shape[-1])


class _Predictor(Model):
    """A loss of x'w alone."""

    @property
    def n_parameters(self) -> int:
        return self.d

    @property
    def width(self) -> int:
        return 4


@dataclass(frozen=True)
class Linear(_Predictor):
    """Squared error (x'w - y)^2."""

    d: int

    def backward(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> list[Layer]:
        errors = _linear(parameters[..., None, :], x) - y[..., None, None, :]
        # The derivative of the square, not of half of it: as in MUST's experiment 2.
        return [(2 * errors, x)]

    def losses(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        predicted = np.matmul(parameters, x.swapaxes(-1, -2))
        return np.asarray((predicted - y[..., None, :]) ** 2)


@dataclass(frozen=True)
class Logistic(_Predictor):
    """Cross-entropy (nats) of P(y = 1) = 1 / (1 + exp(-x'w)), y in {0, 1}."""

    d: int

    def backward(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> list[Layer]:
        chances = expit(_linear(parameters[..., None, :], x))
        return [(chances - y[..., None, None, :], x)]

    def losses(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return log_loss(np.matmul(parameters, x.swapaxes(-1, -2)), y[..., None, :])

    def hits(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        predicted = np.matmul(parameters, x.swapaxes(-1, -2)) > 0
        return np.asarray(predicted == (y[..., None, :] > 0.5))


class _Classes(Model):
    """Cross-entropy (nats) of scores, one score per class; y holds whole numbers from 0."""

    classes: int

    @abc.abstractmethod
    def scores(self, parameters: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Logarithms of the classes' chances up to a constant, shape (..., K, classes, B)."""

    def losses(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        z = self.scores(parameters, x)
        z -= z.max(axis=-2, keepdims=True)  # no overflow; the loss is the same
        # The score of the record's own class.
        own = np.take_along_axis(z, y.astype(np.intp)[..., None, None, :], axis=-2)[..., 0, :]
        return np.asarray(np.log(np.exp(z).sum(axis=-2)) - own)

    def hits(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(self.scores(parameters, x).argmax(axis=-2) == y[..., None, :])


def _excess(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the derivative of the cross-entropy in the scores z: the chances, less 1 at the class
    of the record; z is overwritten."""
    z -= z.max(axis=-2, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=-2, keepdims=True)
    z -= y[..., None, None, :] == np.arange(z.shape[-2])[:, None]
    return z


@dataclass(frozen=True)
class Softmax(_Classes):
    """Multinomial regression: scores W x."""

    d: int
    classes: int

    @property
    def n_parameters(self) -> int:
        return self.d * self.classes

    @property
    def width(self) -> int:
        return 4 * self.classes

    def scores(self, parameters: np.ndarray, x: np.ndarray) -> np.ndarray:
        return _linear(parameters.reshape(*parameters.shape[:-1], self.classes, self.d), x)

    def backward(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> list[Layer]:
        return [(_excess(self.scores(parameters, x), y), x)]


@dataclass(frozen=True)
class Perceptron(_Classes):
    """One hidden layer: scores V (tanh(W x), 1). Not convex."""

    d: int
    hidden: int
    classes: int

    @property
    def n_parameters(self) -> int:
        return self.hidden * self.d + self.classes * (self.hidden + 1)

    @property
    def width(self) -> int:
        return 4 * (self.hidden + self.classes)

    def initial(self, rng: np.random.Generator) -> np.ndarray:
        """Normal weights, for records of norm about 1; the scores are 0 at first."""
        return np.concatenate(
            [rng.standard_normal(self.hidden * self.d), np.zeros(self.classes * (self.hidden + 1))]
        )

    def scores(self, parameters: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.matmul(self._outer(parameters), self._hidden(parameters, x))

    def backward(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> list[Layer]:
        active, outer = self._hidden(parameters, x), self._outer(parameters)
        excess = _excess(np.matmul(outer, active), y)
        # The last input of the outer layer is the constant 1, which nothing is passed back through.
        back = np.matmul(outer[..., :-1].swapaxes(-1, -2), excess)
        # The derivative of tanh by its own value.
        back *= 1 - active[..., :-1, :] ** 2
        return [(back, x), (excess, active.swapaxes(-1, -2))]

    def _hidden(self, parameters: np.ndarray, x: np.ndarray) -> np.ndarray:
        """tanh(W x) and a 1, shape (..., K, hidden + 1, B)."""
        inner = parameters[..., : self.hidden * self.d].reshape(
            *parameters.shape[:-1], self.hidden, self.d
        )
        z = _linear(inner, x)
        active = np.ones((*z.shape[:-2], self.hidden + 1, z.shape[-1]))
        np.tanh(z, out=active[..., :-1, :])
        return active

    def _outer(self, parameters: np.ndarray) -> np.ndarray:
        return parameters[..., self.hidden * self.d :].reshape(
            *parameters.shape[:-1], self.classes, self.hidden + 1
        )


@dataclass(frozen=True)
class KMeans(Model):
    """Squared distance to the nearest of k centres; y is not used."""

    d: int
    k: int

    @property
    def n_parameters(self) -> int:
        return self.d * self.k

    @property
    def width(self) -> int:
        return 4 * (self.d + self.k)

    def initial(self, rng: np.random.Generator) -> np.ndarray:
        """Independent normal centres of norm about 0.3, for records of norm at most 1: none is out
        of reach of them."""
        return 0.3 / self.d**0.5 * rng.standard_normal(self.k * self.d)

    def backward(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> list[Layer]:
        chosen, away = self._nearest(parameters, x)
        return [(chosen, 2 * away)]

    def losses(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        away = self._nearest(parameters, x)[1]
        return np.einsum("...i,...i->...", away, away)

    def _nearest(self, parameters: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """1 at the nearest centre, else 0, shape (..., K, k, B), and that centre less the record,
        (..., K, B, d)."""
        centres = parameters.reshape(*parameters.shape[:-1], self.k, self.d)
        # |c - x|^2 less |x|^2, which is the same for all centres of a record.
        score = np.einsum("...i,...i->...", centres, centres)[..., None] - 2 * _linear(centres, x)
        # the first of equally near centres: two would count the record twice
        chosen = (score.argmin(axis=-2)[..., None, :] == np.arange(self.k)[:, None]).astype(float)
        away = np.matmul(chosen.swapaxes(-1, -2), centres)
        # Formed from the difference itself, as the score would cancel near a centre.
        away -= x[..., None, :, :]
        return chosen, away


def squared_norms(layers: Sequence[Layer]) -> np.ndarray:
    """Return the squared norm of each record's gradient, shape (..., K, B)."""
    total = 0.0
    for delta, inputs in layers:
        own = np.einsum("...i,...i->...", inputs, inputs)
        if inputs.ndim < delta.ndim:
            own = own[..., None, :]
        # |delta u'|^2 = |delta|^2 |u|^2, a rank of one.
        total = total + own * np.einsum("...ij,...ij->...j", delta, delta)
    return np.asarray(total)


def weighted_sum(layers: Sequence[Layer], weights: np.ndarray) -> np.ndarray:
    """Return the sum over records of the gradients times `weights`, shape (..., K, B); the sum has
    (..., K, p)."""
    sums = []
    for delta, inputs in layers:
        *leading, k, a, b = delta.shape
        scaled = delta * weights[..., None, :]
        if inputs.ndim < delta.ndim:
            # inputs that all runs share: one product for all of them
            scaled = scaled.reshape(*leading, k * a, b)
        gradients = np.matmul(scaled, inputs)
        sums.append(gradients.reshape(*leading, k, a * inputs.shape[-1]))
    return np.concatenate(sums, axis=-1) if len(sums) > 1 else sums[0]


def slices(n: int, at_once: int) -> Iterator[slice]:
    """Yield 0, ..., n - 1 in portions of `at_once`, at least 1."""
    size = max(1, at_once)
    return (slice(start, min(start + size, n)) for start in range(0, n, size))
