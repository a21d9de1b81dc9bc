"""Inclusion probabilities of the compared samplers, the Poisson importance sampler, and weighted
sums.

Rates are inclusion probabilities, one per record. The weighted sum with Laplace noise is the
simplest weighted mechanism: its losses are linear in the weights, and its mean squared error is
known exactly for any rates.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.importance.losses import MOST, checked_lengths, inclusion, moderate
from dpsub.importance.weights import optimal_weights
from dpsub.noise import Laplace
from dpsub.noise.base import nonnegative

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def checked_points(points: ArrayLike) -> np.ndarray:
    """Return rows as a float array, else raise ArgumentError.

    Rows that are float32 or float64 already are not copied.
    """
    rows = np.asarray(points)
    if rows.ndim != 2 or rows.shape[0] == 0 or rows.shape[1] == 0:
        raise ArgumentError(
            f"points must be a table with rows and columns, got shape {rows.shape}; check the data"
        )
    if not np.issubdtype(rows.dtype, np.number) or np.iscomplexobj(rows):
        raise ArgumentError(f"columns must be numeric, got {rows.dtype}; encode or drop the others")
    if rows.dtype not in FLOATS:
        rows = rows.astype(np.float64)
    # In blocks, so that no mask of all rows is needed.
    for start in range(0, rows.shape[0], 8192):
        if not np.isfinite(rows[start : start + 8192]).all():
            raise ArgumentError(
                f"points must be finite, got NaN or infinity at row {start} or after; "
                "remove such rows"
            )
    return rows


@dataclass(frozen=True, eq=False)
class WeightedSample:
    """Increasing indices of the sampled records, shape (s,), and their weights 1/q >= 1."""

    indices: np.ndarray
    weights: np.ndarray

    @property
    def size(self) -> int:
        return int(self.indices.size)

    def refuse_light_weights(self) -> None:
        """Raise ArgumentError if a weight is below 1 or NaN: no loss is proved for it."""
        if self.size and not self.weights.min() >= 1:
            raise ArgumentError(
                f"weights must be at least 1, got {self.weights.min():g}; use 1/q with q <= 1"
            )


@dataclass(frozen=True, eq=False)
class PoissonImportance:
    """Include record i independently with probability q_i in (0, 1] and the weight 1/q_i.

    `q` has the shape (n,). Weighted sums of values l_i are unbiased, with the variance
    sum (1/q_i - 1) l_i^2. The guarantee needs q_i to be a function of record i and public numbers;
    neither q nor the sample may be released.
    """

    q: np.ndarray

    def __post_init__(self) -> None:
        q = checks.finite_array("inclusion probabilities", inclusion(self.q), ndim=1)
        if q.size == 0:
            raise ArgumentError("a sampler needs at least one record, got none; check the data")
        object.__setattr__(self, "q", q)

    def draw(self, rng: np.random.Generator) -> WeightedSample:
        """Draw one sample: one uniform number a record, in the order of the records."""
        return self.select(rng.random(self.q.size))

    def select(self, uniforms: np.ndarray) -> WeightedSample:
        """Return the sample that these uniform numbers in [0, 1) give.

        Samplers that share the numbers can be compared on common randomness.
        """
        indices = np.flatnonzero(uniforms < self.q)
        return WeightedSample(indices, 1 / self.q[indices])


def expected_size(m: float, n: int) -> float:
    """Return m, an expected sample size from 1e-6 to n, else raise ArgumentError."""
    records = checks.integer("n", n, at_least=1, at_most=MOST)
    return checks.real("m", m, above=0, at_least=1e-6, at_most=records)


def uniform_rates(n: int, m: float) -> np.ndarray:
    """q = m/n for n records."""
    rate = expected_size(m, n) / n
    return np.full(int(n), rate)


def coreset_rates(
    norms: ArrayLike, m: float, *, n: int, mean_square: float, mixing: float = 0.5
) -> np.ndarray:
    """Return q(z) = mixing m/n + (1 - mixing) m z^2 / (n mean_square) at the l2 norms z of centred
    records.

    Parameters
    ----------
    norms : array_like
        z >= 0, of any shape.
    m : float
        Expected sample size over all n records. It is refused, and no probability is clipped, if a
        probability would exceed 1.
    n : int
    mean_square : float
        Mean of z^2 over the n records, above 0.
    mixing : float
        Share of uniform sampling in [0, 1].

    References
    ----------
    importance, Section 4, after the coresets of Bachem et al. (2018).
    """
    z = checked_lengths("norms", norms)
    moment = checks.real("mean_square", mean_square, above=0, at_least=1e-60)
    size = expected_size(m, n)
    share = checks.real("mixing", mixing, at_least=0, at_most=1)
    if share == 0 and z.size and z.min() == 0:
        raise ArgumentError(
            "a record of norm 0 is never drawn with mixing = 0, got such a record; raise mixing"
        )
    q = size / n * (share + (1 - share) * z * z / moment)
    # The largest feasible size, as computed by a caller, may give 1 plus a rounding.
    if q.size and q.max() > 1 + 1e-12:
        largest = n / (share + (1 - share) * float(z.max()) ** 2 / moment)
        raise ArgumentError(
            f"m must be at most {largest:.6g} for q <= 1 at the largest norm, got m = {size:g}"
        )
    return np.minimum(q, 1.0)


def optimal_rates(slopes: ArrayLike, target: float) -> np.ndarray:
    """q = 1/w*: the smallest probabilities that keep log(1 + q (e^{a/q} - 1)) <= eps*."""
    return 1 / optimal_weights(slopes, target)


def oracle_rates(sizes: ArrayLike, m: float) -> np.ndarray:
    """Return q = min(1, c |x|) with sum m, which has the smallest variance at size m.

    It is a baseline and not private, because c depends on all records. Errors are those of
    :func:`filled_rates`.
    """
    z = checked_lengths("sizes", sizes)
    return filled_rates(np.zeros(z.shape), z, m)


def filled_rates(floors: ArrayLike, sizes: ArrayLike, m: float) -> np.ndarray:
    """Return q = min(1, max(floor, c |x|)) with sum m, of smallest variance, shape (n,).

    See docs/importance.md, section 3.

    Parameters
    ----------
    floors : array_like, shape (n,)
        In [0, 1], and 0 only where the size is above 0. The floors 1/w* keep every target loss that
        is linear in the weight.
    sizes : array_like, shape (n,)
        |x| >= 0.
    m : float
        From the sum of the floors to n.
    """
    lowest = nonnegative("floors", floors)
    z = checked_lengths("sizes", sizes)
    if lowest.shape != z.shape or lowest.ndim != 1:
        raise ArgumentError(
            "floors and sizes must have one number per record, got shapes "
            f"{lowest.shape} and {z.shape}"
        )
    if lowest.size and lowest.max() > 1:
        raise ArgumentError(
            f"floors must be at most 1, got {lowest.max():g}; they are inclusion probabilities"
        )
    goal = expected_size(m, z.size)
    if (total := float(lowest.sum())) > goal * (1 + 1e-12):
        raise ArgumentError(
            f"m must be at least the sum of the floors = {total:.6g}, got m = {goal:g}"
        )
    if not (lowest + z > 0).all():
        raise ArgumentError(
            "a record of size 0 without a floor is never drawn, got such a record; leave it out"
        )
    positive = z > 0
    if float(np.where(positive, 1.0, lowest).sum()) < goal:
        raise ArgumentError(
            f"m must be attainable by the records of size above 0, got m = {goal:g}"
        )
    if positive.any():
        moderate("sizes above 0", z[positive].min())
    floor, size = lowest[positive], z[positive]
    zero_size_total = float(lowest[~positive].sum())
    # Rates are linear in c between the corners, at which a record leaves its floor or reaches 1.
    corners = np.unique(np.concatenate([floor / size, 1 / size]))

    def rates(corner: int) -> np.ndarray:
        return np.minimum(1.0, np.maximum(floor, corners[corner] * size))

    def total_rate(corner: int) -> float:
        # Summed again at each corner: running sums lose their digits where sizes differ by many
        # orders of magnitude.
        return zero_size_total + float(rates(corner).sum())

    corner = bisect.bisect_left(range(corners.size), goal, key=total_rate)
    if corner == 0:
        return lowest
    left = rates(corner - 1)
    right = rates(min(corner, corners.size - 1))
    gain = float((right - left).sum())
    missing = goal - zero_size_total - float(left.sum())
    share = min(1.0, missing / gain) if gain > 0 else 0.0
    filled = lowest.copy()
    filled[positive] = left + share * (right - left)
    return filled


@dataclass(frozen=True)
class WeightedLaplaceSum:
    """Release sum w_i x_i with independent Laplace noise of scale b > 0 in each coordinate.

    See importance, Section 3.3.
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", moderate("scale", self.scale))

    def slopes(self, points: ArrayLike) -> np.ndarray:
        """Loss of each record at weight 1, |x|_1 / b, shape (n,); it is linear in the weight."""
        rows, _ = _rows_and_rates(points)
        return np.asarray(np.abs(rows).sum(axis=1) / self.scale)

    def release(
        self, points: np.ndarray, sample: WeightedSample, rng: np.random.Generator
    ) -> np.ndarray:
        """Return the noisy weighted sum over a sample, shape (d,).

        ArgumentError if a weight is below 1.
        """
        sample.refuse_light_weights()
        weighted_sum = sample.weights @ points[sample.indices]
        return np.asarray(Laplace(self.scale).release(weighted_sum, rng))

    def mean_squared_error(self, points: ArrayLike, q: ArrayLike) -> float:
        """E |release - sum of all records|^2 = 2 b^2 d + sum (1/q_i - 1) |x_i|^2, exact."""
        rows, rates = _rows_and_rates(points, q)
        noise_variance = 2 * self.scale**2 * rows.shape[1]
        squares = np.einsum("ij,ij->i", rows, rows)
        return float(noise_variance + (1 / rates - 1) @ squares)

    def squared_errors(
        self, points: ArrayLike, q: ArrayLike, runs: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Draw samples and noise, and return the squared error of each run, shape (runs,)."""
        rows, rates = _rows_and_rates(points, q)
        weighted, total = rows / rates[:, None], rows.sum(axis=0)
        errors = np.empty(checks.integer("runs", runs, at_least=1, at_most=10**8))
        # As many runs together as need four million uniform numbers.
        block = max(1, (1 << 22) // rows.shape[0])
        for start in range(0, errors.size, block):
            part = errors[start : start + block]
            included = rng.random((part.size, rows.shape[0])) < rates
            released = Laplace(self.scale).release(included.astype(float) @ weighted, rng)
            part[:] = ((released - total) ** 2).sum(axis=1)
        return errors


def _rows_and_rates(points: ArrayLike, q: ArrayLike = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and an inclusion probability for each."""
    rows = np.asarray(checked_points(points), dtype=float)
    checked_lengths("entries of points", np.abs(rows))
    return rows, np.broadcast_to(inclusion(q), rows.shape[:1])
