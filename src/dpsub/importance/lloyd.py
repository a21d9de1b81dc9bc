"""Weighted DP-Lloyd on samples for many runs at once, its noise, and the cost of many sets of
centres on all rows.

Rows are float32 and read in chunks. One matrix product a chunk serves many sets of centres, with
rows on the last axis, so that comparisons run along thousands of numbers in the cache. Sums and
counts are accumulated in float64: a record contributes its own share and not the rounding of
others. Runs that share a sample are computed together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.importance.calibrate import MODES, DataFacts
from dpsub.importance.losses import MOST, moderate
from dpsub.importance.samplers import FLOATS, WeightedSample

_CHUNK = 8192  # rows of one matrix product
_SCORES = 1 << 20  # largest number of scores of one matrix product, but at least one set's
_KEPT = 1_500_000  # largest number of entries of a sample that is kept in all forms rounds need


def _norm_order(value: float) -> float:
    """Return the order p of a norm; below 1, |.|_p is no norm and does not bound the loss."""
    return math.inf if value == math.inf else checks.real("the norm order", value, at_least=1)


def row_norms(vectors: np.ndarray, order: float) -> np.ndarray:
    """|v|_order along the last axis, in float64."""
    if order == 2:
        return np.asarray(np.sqrt(np.einsum("...j,...j->...", vectors, vectors, dtype=float)))
    sizes = np.abs(vectors, dtype=float)
    largest = sizes.max(axis=-1)
    if order == math.inf:
        return np.asarray(largest)
    # Relative to the largest entry, no power overflows at a large order.
    relative = sizes / np.where(largest > 0, largest, 1.0)[..., None]
    return np.asarray(largest * (relative**order).sum(axis=-1) ** (1 / order))


def norm_noise(
    shape: tuple[int, ...],
    scale: float,
    rng: np.random.Generator,
    *,
    order: float = 2.0,
    radius: str = "gamma",
) -> np.ndarray:
    """Draw vectors with a density proportional to exp(-|z|_p / scale).

    The direction is u / |u|_p, where the coordinates of u are independent with a density
    proportional to exp(-|u|^p). The radius is Gamma(d, scale), independent of u.

    Parameters
    ----------
    shape : tuple of int
        The last entry is d.
    scale : float
        At least 0; 0 gives zeros.
    order : float
        p in [1, inf].
    radius : {"gamma", "exponential"}
        The exponential radius is that of the released code. In d > 1 its density has a pole at 0,
        and no loss is bounded (IM15).
    """
    p = _norm_order(order)
    law = checks.one_of("radius", radius, ("gamma", "exponential"))
    if scale == 0:
        return np.zeros(shape)
    return _norm_noise(shape, moderate("scale", scale), rng, p, law)


def _norm_noise(
    shape: tuple[int, ...], beta: float, rng: np.random.Generator, p: float, law: str
) -> np.ndarray:
    """Draw as `norm_noise`, without its checks: a plan has checked the arguments once for all of
    its rounds."""
    if p == 2:
        u = rng.standard_normal(shape)
    elif p == math.inf:
        u = rng.uniform(-1.0, 1.0, shape)
    else:
        # |u|^p is Gamma(1/p), which is Gamma(1 + 1/p) times the p-th power of a uniform number;
        # drawn directly it would underflow at large p.
        u = rng.gamma(1 + 1 / p, 1.0, shape) ** (1 / p) * rng.uniform(-1.0, 1.0, shape)
    if law == "gamma":
        lengths = rng.gamma(shape[-1], beta, shape[:-1])
    else:
        lengths = rng.exponential(beta, shape[:-1])
    return np.asarray(u * (lengths / row_norms(u, p))[..., None])


@dataclass(frozen=True)
class Lloyd:
    """Algorithm 2: T rounds of noisy weighted sums and counts of the points nearest to k centres.

    See importance, Proposition 13.

    Attributes
    ----------
    n_clusters : int
        k.
    beta_sum, beta_count : float
        Scales of the noise; both are 0 for Lloyd's algorithm without noise, never just one.
    mode : {"released", "stated", "repaired"}
        In `released` and `stated` counts are used as they are, and an empty cluster without noise
        gives NaN, which spreads; the radius of the noise is exponential in `released`, else Gamma.
        In `repaired` noisy counts are at least 1, centres are moved into the ball of radius
        `radius`, and an empty cluster without noise keeps its centre.
    radius : float
        r, the largest norm of a row, in the norm of `order`.
    n_iterations : int
        T.
    order : float
        p of the norm, at least 1.
    """

    n_clusters: int
    beta_sum: float
    beta_count: float
    mode: str
    radius: float
    n_iterations: int = 10
    order: float = 2.0

    def __post_init__(self) -> None:
        for name in ("n_clusters", "n_iterations"):
            object.__setattr__(
                self, name, checks.integer(name, getattr(self, name), at_least=1, at_most=MOST)
            )
        object.__setattr__(self, "order", _norm_order(self.order))
        checks.one_of("mode", self.mode, MODES)
        scales = () if self.beta_sum == 0 and self.beta_count == 0 else ("beta_sum", "beta_count")
        for name in ("radius", *scales):
            object.__setattr__(self, name, moderate(name, getattr(self, name)))

    @property
    def noiseless(self) -> bool:
        return self.beta_sum == 0

    def slopes(self, lengths: np.ndarray) -> np.ndarray:
        """Loss at weight 1, T (1/beta_count + |x|_p/beta_sum); infinite without noise.

        The first centres must not depend on the data.
        """
        if self.noiseless:
            return np.full(np.shape(lengths), math.inf)
        return np.asarray(self.n_iterations * (1 / self.beta_count + lengths / self.beta_sum))

    def noise(self, d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Noise of one round: on counts, shape (k,), and on sums, shape (k, d)."""
        if self.noiseless:
            return np.zeros(self.n_clusters), np.zeros((self.n_clusters, d))
        counts = rng.laplace(0.0, self.beta_count, self.n_clusters)
        radius = "exponential" if self.mode == "released" else "gamma"
        shape = (self.n_clusters, d)
        return counts, _norm_noise(shape, self.beta_sum, rng, self.order, radius)

    def update(self, sums: np.ndarray, counts: np.ndarray, centres: np.ndarray) -> np.ndarray:
        """New centres from noisy sums, shape (k, d), and noisy counts, shape (k,).

        This is post-processing of the release.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.mode != "repaired":
                return sums / counts[:, None]
            if self.noiseless:
                return np.where((counts > 0)[:, None], sums / counts[:, None], centres)
        moved = sums / np.maximum(counts, 1.0)[:, None]
        norms = np.maximum(row_norms(moved, self.order), 1e-300)
        into_ball = np.minimum(1.0, self.radius / norms)
        return moved * into_ball[:, None]


def drawn_centres(
    points: np.ndarray, sample: WeightedSample, n_clusters: int, rng: np.random.Generator
) -> np.ndarray:
    """Return k rows of the sample, drawn without replacement.

    Such first centres depend on the data, and nothing is proved for them (IM7).
    """
    k = checks.integer(
        "n_clusters", n_clusters, at_least=1, at_most=sample.size, at_most_name="the sample size"
    )
    chosen = rng.choice(sample.size, k, replace=False)
    return np.asarray(points[sample.indices[chosen]], dtype=float)


def fixed_centres(facts: DataFacts, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return k uniform directions of length sqrt(mean_square), from public facts alone, (k, d)."""
    # At most 2^28 numbers are drawn.
    k = checks.integer("n_clusters", n_clusters, at_least=1, at_most=(1 << 28) // facts.d)
    directions = rng.standard_normal((k, facts.d))
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    return np.asarray(directions * (math.sqrt(facts.mean_square) / lengths))


class CentreSets:
    """c sets of k centres, shape (c, k, d), for rows of one precision, float32 or float64."""

    def __init__(self, centres: np.ndarray, dtype: np.dtype) -> None:
        if dtype not in FLOATS:
            raise ArgumentError(
                f"rows must be float32 or float64, got {dtype}; convert them with checked_points"
            )
        self.n_sets, self.k, d = centres.shape
        self._blocks, self._buffer = [], np.empty(0, dtype=dtype)
        sets_per_block = max(1, _SCORES // (self.k * _CHUNK))
        # Centres of a run that has failed are NaN or infinite.
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, self.n_sets, sets_per_block):
                block = slice(start, min(start + sets_per_block, self.n_sets))
                flat = centres[block].transpose(1, 0, 2).reshape(-1, d)
                squares = np.einsum("ij,ij->i", flat, flat).astype(dtype)[:, None]
                doubled = np.ascontiguousarray((2 * flat).astype(dtype))
                self._blocks.append((block, doubled, squares))

    def _scores(self, columns: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield |c|^2 - 2 x c, shape (k, sets of the block, rows).

        It orders centres as squared distances do, which exceed it by |x|^2.
        """
        n = columns.shape[1]
        needed = max(doubled.shape[0] for _, doubled, _ in self._blocks) * n
        # The buffer of the last chunk is in the cache.
        if self._buffer.size < needed:
            self._buffer = np.empty(needed, dtype=columns.dtype)
        for block, doubled, squares in self._blocks:
            scores = self._buffer[: doubled.shape[0] * n].reshape(doubled.shape[0], n)
            with np.errstate(over="ignore", invalid="ignore"):
                np.matmul(doubled, columns, out=scores)
                np.subtract(squares, scores, out=scores)
            yield block, scores.reshape(self.k, -1, n)

    def labels(self, columns: np.ndarray) -> np.ndarray:
        """Index of the nearest centre, shape (c, n).

        On ties it is the lowest index, and the first centre with a NaN if there is one. `columns`
        are the transposed rows, shape (d, n); the product is fastest if they are stored like this.
        """
        labels = np.empty((self.n_sets, columns.shape[1]), dtype=np.min_scalar_type(self.k))
        for block, scores in self._scores(columns):
            labels[block] = _argmin(scores, labels.dtype)
        return labels

    def smallest_scores(self, columns: np.ndarray) -> np.ndarray:
        """Squared distance to the nearest centre less |x|^2, shape (c, n); NaN if a centre is NaN.

        `columns` are as in :meth:`labels`.
        """
        smallest = np.empty((self.n_sets, columns.shape[1]), dtype=columns.dtype)
        for block, scores in self._scores(columns):
            scores.min(axis=0, out=smallest[block])
        return smallest


def _argmin(scores: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """scores.argmin(axis=0), by operations on whole arrays; `dtype` holds k."""
    k = scores.shape[0]
    smallest = scores.min(axis=0)
    # Of the centres with the smallest score the first one has the largest rank.
    ranks = np.arange(k, 0, -1, dtype=dtype).reshape(k, 1, 1)
    labels = k - (ranks * (scores == smallest)).max(axis=0)
    # NaN is equal to nothing.
    has_nan = labels == k
    if has_nan.any():
        labels[has_nan] = np.isnan(scores[:, has_nan]).argmax(axis=0)
    return labels


def clusters(
    points: np.ndarray, centres: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted counts, shape (c, k), and sums, shape (c, k, d), of the rows of each cluster.

    `centres` are c sets of k centres. Ties go to the lowest index. A centre with a NaN takes all
    rows, because argmin finds it first. Sums are in float64.
    """
    return _tally(_chunks(points, weights), centres, points.dtype)


class _Chunk:
    """A chunk of rows, also in float64, with the sparse matrix that assigns them to clusters.

    The matrix has one entry for each row and set of centres, the row's weight at its cluster.
    """

    def __init__(self, rows: np.ndarray, weights: np.ndarray) -> None:
        self.columns, self.weights, self._doubles = rows.T, weights, rows.astype(float)
        self._assignment: sparse.csc_array | None = None

    def tally(self, centre_sets: CentreSets) -> tuple[np.ndarray, np.ndarray]:
        """Weighted counts, shape (c k,), and sums, shape (c k, d)."""
        n, width = self.weights.size, centre_sets.n_sets * centre_sets.k
        first_clusters = np.arange(0, width, centre_sets.k, dtype=np.int32)
        assigned = (centre_sets.labels(self.columns).T + first_clusters).ravel()
        if self._assignment is None or self._assignment.shape[0] != width:
            entries = np.repeat(self.weights, centre_sets.n_sets)
            starts = np.arange(n + 1, dtype=np.int32) * centre_sets.n_sets
            self._assignment = sparse.csc_array((entries, assigned, starts), shape=(width, n))
        # From round to round only the clusters of the rows change.
        self._assignment.indices = assigned
        counts = np.bincount(assigned, self._assignment.data, minlength=width)
        return counts, self._assignment @ self._doubles


def _chunks(rows: np.ndarray, weights: np.ndarray | None = None) -> Iterator[_Chunk]:
    for start in range(0, rows.shape[0], _CHUNK):
        chunk = rows[start : start + _CHUNK]
        if weights is None:
            yield _Chunk(chunk, np.ones(chunk.shape[0]))
        else:
            yield _Chunk(chunk, weights[start : start + _CHUNK])


def _tally(
    chunks: Iterable[_Chunk], centres: np.ndarray, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Sum of the tallies of all chunks."""
    centre_sets = CentreSets(centres, dtype)
    counts, sums = np.zeros(centres.shape[:2]), np.zeros(centres.shape)
    for chunk in chunks:
        chunk_counts, chunk_sums = chunk.tally(centre_sets)
        counts += chunk_counts.reshape(counts.shape)
        sums += chunk_sums.reshape(sums.shape)
    return counts, sums


def run(
    points: np.ndarray,
    sample: WeightedSample | None,
    plans: list[Lloyd],
    initial: np.ndarray,
    rngs: list[np.random.Generator],
) -> np.ndarray:
    """Run several plans on one sample, each with its own noise and first centres.

    Parameters
    ----------
    points : ndarray, shape (n, d)
        All rows, preferably float32; see :func:`checked_points`.
    sample : WeightedSample or None
        The sampled rows, with weights of at least 1. None stands for all rows with weight 1, which
        are then not copied.
    plans : list of Lloyd
        c plans with the same n_clusters and n_iterations.
    initial : ndarray, shape (c, k, d)
        First centres.
    rngs : list of Generator
        One a plan. Each round draws k Laplace numbers, then the vectors.

    Returns
    -------
    ndarray, shape (c, k, d)
        Last centres, with NaN where a run has failed.

    Raises
    ------
    ArgumentError
        If the norm of a row exceeds the radius of a plan.
    """
    shapes = {(plan.n_clusters, plan.n_iterations) for plan in plans}
    if len(shapes) != 1 or len(plans) != len(rngs):
        raise ArgumentError(
            "plans that run together need the same k and T and a generator each, got "
            f"{sorted(shapes)}"
        )
    rows, weights, kept = points, None, None
    if sample is not None:
        sample.refuse_light_weights()
        rows, weights = points[sample.indices], sample.weights
        kept = list(_chunks(rows, weights)) if rows.size <= _KEPT else None
        for chunk in kept or ():
            chunk.columns = np.ascontiguousarray(chunk.columns)
    centres = checks.finite_array("initial centres", initial).copy()
    shape = (len(plans), plans[0].n_clusters, rows.shape[1])
    if centres.shape != shape:
        raise ArgumentError(f"initial centres must have the shape {shape}, got {centres.shape}")
    _check_norms(rows, plans)
    for turn in range(plans[0].n_iterations):
        # Plans often start from the same centres: their first clusters are computed once, and
        # serve all of them.
        distinct = centres[:1] if turn == 0 and (centres == centres[0]).all() else centres
        counts, sums = _tally(kept or _chunks(rows, weights), distinct, rows.dtype)
        for c, (plan, rng) in enumerate(zip(plans, rngs, strict=True)):
            own = min(c, len(distinct) - 1)
            on_counts, on_sums = plan.noise(rows.shape[1], rng)
            centres[c] = plan.update(sums[own] + on_sums, counts[own] + on_counts, centres[c])
    return centres


def run_full(
    points: np.ndarray, plan: Lloyd, initial: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Run one plan on all rows with weight 1; the last centres have the shape (k, d)."""
    return run(points, None, [plan], np.asarray(initial)[None], [rng])[0]


def _check_norms(points: np.ndarray, plans: list[Lloyd]) -> None:
    """Refuse rows beyond the radius of a plan, up to the rounding of their entries."""
    slack = 1e-9 if points.dtype == np.float64 else 1e-7
    for order in {plan.order for plan in plans}:
        radius = min(plan.radius for plan in plans if plan.order == order)
        for start in range(0, points.shape[0], _CHUNK):
            largest = float(row_norms(points[start : start + _CHUNK], order).max())
            # Negated, so that NaN is refused as well.
            if not largest <= radius * (1 + slack):
                raise ArgumentError(
                    f"rows must have norms of at most {radius:g}, got {largest:g}; "
                    "scale or drop them"
                )


def costs(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Mean over all rows of the squared distance to the nearest centre, shape (c,).

    `centres` are c sets of centres; the cost is NaN if a centre is.
    """
    return total_costs(points, centres) / points.shape[0]


def total_costs(
    points: np.ndarray, centres: np.ndarray, sample: WeightedSample | None = None
) -> np.ndarray:
    """Sum of the squared distances to the nearest centre, shape (c,).

    The sum is over all rows, or over a sample with its weights.
    """
    centre_sets = CentreSets(centres, points.dtype)
    n = points.shape[0] if sample is None else sample.size
    # The scores leave out |x|^2, which is the same for all centres: it is added once, in float64.
    scores, squares = np.zeros(centre_sets.n_sets), 0.0
    for start in range(0, n, _CHUNK):
        block = slice(start, min(start + _CHUNK, n))
        if sample is None:
            rows = points[block]
            weights = np.ones(rows.shape[0])
        else:
            rows = points[sample.indices[block]]
            weights = sample.weights[block]
        smallest = centre_sets.smallest_scores(np.ascontiguousarray(rows.T))
        scores += smallest.astype(float) @ weights
        squares += float(weights @ np.einsum("ij,ij->i", rows, rows, dtype=float))
    if not math.isfinite(squares):
        raise ArgumentError(
            f"points must have finite squares, got a sum of {squares:g}; see checked_points"
        )
    return np.asarray(scores + squares)


def run_by_rows(
    points: np.ndarray,
    weights: np.ndarray,
    plan: Lloyd,
    initial: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Run one plan on weighted rows by a plain loop, with the result of `run` up to rounding."""
    centres = np.array(initial, dtype=float)
    for _ in range(plan.n_iterations):
        counts, sums = np.zeros(centres.shape[0]), np.zeros(centres.shape)
        for row, weight in zip(points, weights, strict=True):
            nearest = int(np.argmin(((centres - row) ** 2).sum(axis=1)))
            counts[nearest] += weight
            sums[nearest] += weight * row
        on_counts, on_sums = plan.noise(points.shape[1], rng)
        centres = plan.update(sums + on_sums, counts + on_counts, centres)
    return centres
