"""Weighted DP-Lloyd on samples, for many runs at once, its noise, and the cost of many sets of
centres on all rows.

Rows are float32, read in chunks; one matrix product a chunk serves many sets of centres, rows on
the last axis, so that comparisons run along thousands of numbers in the cache. Sums and counts are
added up in float64: what a record adds is its own share and not the rounding of others. Runs that
share a sample are computed together.
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
_SCORES = 1 << 20  # of one matrix product, if one set has no more
_KEPT = 1_500_000  # numbers of a sample that is kept in every form that rounds need


def _norm_order(value: float) -> float:
    """The order p of a norm; below 1, |.|_p is none and does not bound the loss."""
    return math.inf if value == math.inf else checks.real("the norm order", value, at_least=1)


def row_norms(vectors: np.ndarray, order: float) -> np.ndarray:
    """|v|_order along the last axis, in float64, without overflow at large orders."""
    if order == 2:
        return np.asarray(np.sqrt(np.einsum("...j,...j->...", vectors, vectors, dtype=float)))
    sizes = np.abs(vectors, dtype=float)
    largest = sizes.max(axis=-1)
    if order == math.inf:
        return np.asarray(largest)
    shares = sizes / np.where(largest > 0, largest, 1.0)[..., None]
    return np.asarray(largest * (shares**order).sum(axis=-1) ** (1 / order))


def norm_noise(
    shape: tuple[int, ...],
    scale: float,
    rng: np.random.Generator,
    *,
    order: float = 2.0,
    radius: str = "gamma",
) -> np.ndarray:
    """Draw vectors of density proportional to exp(-|z|_order / scale): direction u / |u|_p, radius
    Gamma(d, scale).

    The coordinates of u are independent with a density proportional to exp(-|u|^p), and independent
    of the radius.

    Parameters
    ----------
    shape : the last entry is d
    scale : at least 0; 0 gives zeros
    order : p in [1, inf]
    radius : {"gamma", "exponential"}; the latter, of the released code, bounds no loss in d > 1: a
    pole at 0 (R1)
    """
    p = _norm_order(order)
    law = checks.one_of("radius", radius, ("gamma", "exponential"))
    if scale == 0:
        return np.zeros(shape)
    beta = moderate("scale", scale)
    if p == 2:
        u = rng.standard_normal(shape)
    elif p == math.inf:
        u = rng.uniform(-1.0, 1.0, shape)
    else:
        # Gamma(1/p) is Gamma(1 + 1/p) times the p-th power of a uniform number, and would underflow
        # at large p
        u = rng.gamma(1 + 1 / p, 1.0, shape) ** (1 / p) * rng.uniform(-1.0, 1.0, shape)
    size = (
        rng.gamma(shape[-1], beta, shape[:-1])
        if law == "gamma"
        else rng.exponential(beta, shape[:-1])
    )
    return np.asarray(u * (size / row_norms(u, p))[..., None])


@dataclass(frozen=True)
class Lloyd:
    """Algorithm 2: T rounds of noisy weighted sums and counts of the points nearest to each of k
    centres (Prop. 13).

    Attributes
    ----------
    n_clusters : k
    beta_sum, beta_count : scales of the noise; both 0 for Lloyd's algorithm, never just one
    mode : {"released", "stated", "repaired"}
        The radius of the noise is exponential in `released`, else Gamma. Counts are used as they
        are and an empty cluster without noise gives NaN that spreads, but in `repaired` noisy
        counts are at least 1, centres are moved into the ball of radius `radius`, and such a
        cluster keeps its centre.
    radius : r, the largest norm of a row, in the norm of `order`
    n_iterations : T
    order : p of the norm, at least 1
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
        """T (1/beta_count + |x|_p/beta_sum), infinite without noise: the loss at weight 1, first
        centres fixed."""
        if self.noiseless:
            return np.full(np.shape(lengths), math.inf)
        return np.asarray(self.n_iterations * (1 / self.beta_count + lengths / self.beta_sum))

    def noise(self, d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Noise of one round: on counts, shape (k,), and on sums, shape (k, d)."""
        if self.noiseless:
            return np.zeros(self.n_clusters), np.zeros((self.n_clusters, d))
        counts = rng.laplace(0.0, self.beta_count, self.n_clusters)
        radius = "exponential" if self.mode == "released" else "gamma"
        return counts, norm_noise(
            (self.n_clusters, d), self.beta_sum, rng, order=self.order, radius=radius
        )

    def update(self, sums: np.ndarray, counts: np.ndarray, centres: np.ndarray) -> np.ndarray:
        """New centres from noisy sums, shape (k, d), and noisy counts, shape (k,): what is done
        after the release."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.mode != "repaired":
                return sums / counts[:, None]
            if self.noiseless:
                return np.where((counts > 0)[:, None], sums / counts[:, None], centres)
        moved = sums / np.maximum(counts, 1.0)[:, None]
        return (
            moved
            * np.minimum(1.0, self.radius / np.maximum(row_norms(moved, self.order), 1e-300))[
                :, None
            ]
        )


def drawn_centres(
    points: np.ndarray, sample: WeightedSample, n_clusters: int, rng: np.random.Generator
) -> np.ndarray:
    """Return k sampled rows, without replacement: centres that depend on the data, for which
    nothing is proved (E7)."""
    k = checks.integer(
        "n_clusters", n_clusters, at_least=1, at_most=sample.size, at_most_name="the sample size"
    )
    chosen = rng.choice(sample.size, k, replace=False)
    return np.asarray(points[sample.indices[chosen]], dtype=float)


def fixed_centres(facts: DataFacts, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return k uniform directions of length sqrt(mean square), from public numbers alone, shape (k,
    d)."""
    # numbers drawn
    k = checks.integer("n_clusters", n_clusters, at_least=1, at_most=(1 << 28) // facts.d)
    u = rng.standard_normal((k, facts.d))
    return np.asarray(u * (math.sqrt(facts.mean_square) / np.linalg.norm(u, axis=1, keepdims=True)))


class CentreSets:
    """c sets of k centres, shape (c, k, d), ready for rows of one precision, float32 or float64."""

    def __init__(self, centres: np.ndarray, dtype: np.dtype) -> None:
        if dtype not in FLOATS:
            raise ArgumentError(
                f"rows must be float32 or float64, got {dtype}; convert them with checked_points"
            )
        self.n_sets, self.k, d = centres.shape
        self._blocks, self._room = [], np.empty(0, dtype=dtype)
        at_once = max(1, _SCORES // (self.k * _CHUNK))
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, self.n_sets, at_once):
                block = slice(start, min(start + at_once, self.n_sets))
                flat = centres[block].transpose(1, 0, 2).reshape(-1, d)
                squares = np.einsum("ij,ij->i", flat, flat).astype(dtype)[:, None]
                self._blocks.append(
                    (block, np.ascontiguousarray((2 * flat).astype(dtype)), squares)
                )

    def _scores(self, columns: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield |c|^2 - 2 x c, which orders centres as distances do, shape (k, sets of the block,
        rows)."""
        n = columns.shape[1]
        needed = max(doubled.shape[0] for _, doubled, _ in self._blocks) * n
        if self._room.size < needed:  # else the room of the last chunk, which is in the cache
            self._room = np.empty(needed, dtype=columns.dtype)
        for block, doubled, squares in self._blocks:
            scores = self._room[: doubled.shape[0] * n].reshape(doubled.shape[0], n)
            with np.errstate(over="ignore", invalid="ignore"):
                np.matmul(doubled, columns, out=scores)
                np.subtract(squares, scores, out=scores)
            yield block, scores.reshape(self.k, -1, n)

    def labels(self, columns: np.ndarray) -> np.ndarray:
        """Index of the nearest centre, shape (c, n): the lowest on ties, the first with a NaN if
        there is one. `columns` are rows, transposed, shape (d, n); the product is fastest if this
        is how they lie in memory."""
        labels = np.empty((self.n_sets, columns.shape[1]), dtype=np.min_scalar_type(self.k))
        for block, scores in self._scores(columns):
            labels[block] = _lowest(scores, labels.dtype)
        return labels

    def least(self, columns: np.ndarray) -> np.ndarray:
        """Squared distance to the nearest centre less |x|^2, shape (c, n), `columns` as above; NaN
        if a centre is."""
        least = np.empty((self.n_sets, columns.shape[1]), dtype=columns.dtype)
        for block, scores in self._scores(columns):
            scores.min(axis=0, out=least[block])
        return least


def _lowest(scores: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """scores.argmin(axis=0), by one comparison of all numbers a centre."""
    best = scores[0].copy()
    if best.size < 2048:  # then a search one by one is faster
        return np.asarray(scores.argmin(axis=0))
    labels, lower = np.zeros(best.shape, dtype), np.empty(best.shape, dtype)
    for j in range(1, scores.shape[0]):
        np.less(scores[j], best, out=lower)
        np.minimum(best, scores[j], out=best)
        # the last centre that lowers the best is the largest index among those that do
        np.multiply(lower, dtype.type(j), out=lower)
        np.maximum(labels, lower, out=labels)
    lost = np.isnan(best)
    if lost.any():
        labels[lost] = np.isnan(scores[:, lost]).argmax(axis=0)
    return labels


def clusters(
    points: np.ndarray, centres: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted counts, shape (c, k), and sums, shape (c, k, d), of the rows nearest to each of c
    sets of k centres.

    Ties go to the lowest index. A centre with a NaN takes all rows, as argmin finds it first. Sums
    are in float64."""
    return _tally(_pieces(points, weights), centres, points.dtype)


class _Piece:
    """A chunk of rows, also in float64, and who belongs where: a weight a row and set, at the row's
    cluster."""

    def __init__(self, rows: np.ndarray, share: np.ndarray) -> None:
        self.columns, self.share, self._doubles = rows.T, share, rows.astype(float)
        self._members: sparse.csc_array | None = None

    def tally(self, near: CentreSets) -> tuple[np.ndarray, np.ndarray]:
        """Weighted counts, shape (c k,), and sums, shape (c k, d)."""
        n, width = self.share.size, near.n_sets * near.k
        places = (near.labels(self.columns).T + np.arange(0, width, near.k, dtype=np.int32)).ravel()
        if self._members is None or self._members.shape[0] != width:
            parts, starts = (
                np.repeat(self.share, near.n_sets),
                np.arange(n + 1, dtype=np.int32) * near.n_sets,
            )
            self._members = sparse.csc_array((parts, places, starts), shape=(width, n))
        self._members.indices = places  # from round to round only the clusters change
        return np.bincount(
            places, self._members.data, minlength=width
        ), self._members @ self._doubles


def _pieces(rows: np.ndarray, weights: np.ndarray | None = None) -> Iterator[_Piece]:
    for start in range(0, rows.shape[0], _CHUNK):
        chunk = rows[start : start + _CHUNK]
        yield _Piece(
            chunk, np.ones(chunk.shape[0]) if weights is None else weights[start : start + _CHUNK]
        )


def _tally(
    pieces: Iterable[_Piece], centres: np.ndarray, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    near = CentreSets(centres, dtype)
    counts, sums = np.zeros(centres.shape[:2]), np.zeros(centres.shape)
    for piece in pieces:
        part_counts, part_sums = piece.tally(near)
        counts += part_counts.reshape(counts.shape)
        sums += part_sums.reshape(sums.shape)
    return counts, sums


def run(
    points: np.ndarray,
    sample: WeightedSample | None,
    plans: list[Lloyd],
    initial: np.ndarray,
    rngs: list[np.random.Generator],
) -> np.ndarray:
    """Run several plans on one sample, each with its own noise and its own first centres; their
    last centres.

    The result has the shape (c, k, d), with NaN where a run has failed; ArgumentError if a row
    exceeds a plan's radius.

    Parameters
    ----------
    points : all rows, preferably float32, shape (n, d); see :func:`checked_points`
    sample : those that are drawn, weights of at least 1; None for all rows with weight 1, without a
    copy of them plans : c of them, alike in n_clusters and n_iterations initial : first centres,
    shape (c, k, d) rngs : one a plan; each round draws k Laplace numbers, then the vectors
    """
    shapes = {(plan.n_clusters, plan.n_iterations) for plan in plans}
    if len(shapes) != 1 or len(plans) != len(rngs):
        raise ArgumentError(
            f"plans that run together need one k, one T and a generator each, got {sorted(shapes)}"
        )
    rows, weights, kept = points, None, None
    if sample is not None:
        sample.refuse_light_weights()
        rows, weights = points[sample.indices], sample.weights
        kept = list(_pieces(rows, weights)) if rows.size <= _KEPT else None
        for piece in kept or ():
            piece.columns = np.ascontiguousarray(piece.columns)
    centres = checks.finite_array("initial centres", initial).copy()
    shape = (len(plans), plans[0].n_clusters, rows.shape[1])
    if centres.shape != shape:
        raise ArgumentError(f"initial centres must have the shape {shape}, got {centres.shape}")
    _check_norms(rows, plans)
    for turn in range(plans[0].n_iterations):
        # often all plans start alike: their first clusters are those of one
        seen = centres[:1] if turn == 0 and (centres == centres[0]).all() else centres
        tallied = _tally(kept or _pieces(rows, weights), seen, rows.dtype)
        counts, sums = (np.broadcast_to(a, (len(plans), *a.shape[1:])) for a in tallied)
        for c, (plan, rng) in enumerate(zip(plans, rngs, strict=True)):
            on_counts, on_sums = plan.noise(rows.shape[1], rng)
            centres[c] = plan.update(sums[c] + on_sums, counts[c] + on_counts, centres[c])
    return centres


def run_full(
    points: np.ndarray, plan: Lloyd, initial: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Run one plan on all rows with weight 1; shape (k, d)."""
    return run(points, None, [plan], np.asarray(initial)[None], [rng])[0]


def _check_norms(points: np.ndarray, plans: list[Lloyd]) -> None:
    """Refuse rows beyond the radius of a plan, up to the rounding of their entries."""
    slack = 1e-9 if points.dtype == np.float64 else 1e-7
    for order in {plan.order for plan in plans}:
        radius = min(plan.radius for plan in plans if plan.order == order)
        for start in range(0, points.shape[0], _CHUNK):
            largest = float(row_norms(points[start : start + _CHUNK], order).max())
            # not the other way round: NaN is refused as well
            if not largest <= radius * (1 + slack):
                raise ArgumentError(
                    f"rows must have norms of at most {radius:g}, got {largest:g}; "
                    "scale or drop them"
                )


def costs(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Mean over all rows of the squared distance to the nearest centre, for c sets, shape (c,); NaN
    if a centre is."""
    return total_costs(points, centres) / points.shape[0]


def total_costs(
    points: np.ndarray, centres: np.ndarray, sample: WeightedSample | None = None
) -> np.ndarray:
    """Sum over all rows, or weighted over a sample, of squared distances to the nearest centre,
    shape (c,)."""
    near = CentreSets(centres, points.dtype)
    n = points.shape[0] if sample is None else sample.size
    total, sizes = np.zeros(near.n_sets), 0.0
    for start in range(0, n, _CHUNK):
        block = slice(start, min(start + _CHUNK, n))
        rows = points[block] if sample is None else points[sample.indices[block]]
        share = np.ones(rows.shape[0]) if sample is None else sample.weights[block]
        total += near.least(np.ascontiguousarray(rows.T)).astype(float) @ share
        sizes += float(share @ np.einsum("ij,ij->i", rows, rows, dtype=float))
    if not math.isfinite(sizes):
        raise ArgumentError(
            f"points must have finite squares, got a sum of {sizes:g}; see checked_points"
        )
    return np.asarray(total + sizes)


def run_by_rows(
    points: np.ndarray,
    weights: np.ndarray,
    plan: Lloyd,
    initial: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Run one plan on weighted rows by a plain loop; the same numbers as `run` up to rounding,
    shape (k, d)."""
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
