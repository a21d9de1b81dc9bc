"""Certified (epsilon, delta) of weighted DP-Lloyd on one importance sample.

In a round the record (w, x) enters one count, which it moves by w under Laplace noise, and one sum, which it moves by
w x under noise of density exp(-|z|_2 / beta_sum): whatever the past, and whichever the cluster, the two outputs have
divergences no larger than those of NormPair(1, w / beta_count) times NormPair(d, w |x| / beta_sum).  T rounds are
composed, and the sampling of the record amplifies the whole once.  As the composed pair is symmetric, removing the
record is never the better-protected direction, so that one bound serves both.  Proofs: docs/importance.md, section 6.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsub import checks
from dpsub.accountants.composition import Composition
from dpsub.errors import NumericalError, UnsupportedError
from dpsub.importance.calibrate import Calibration
from dpsub.importance.losses import inclusion, loss_when_removed
from dpsub.importance.norm_pair import NormPair
from dpsub.importance.weights import optimal_weights

CELLS = 1000
"""Grid steps in the larger one of the two shifts: epsilon is then off by less than about 1e-3 of the pure loss."""
_FLATTEST = 4.0
"""Tilt times pure loss down to which tilts are tried where the answer is near the pure loss."""
_MOST_SPLITS = 400
_WEIGHT_WIDTH = 1e-3


@dataclass(frozen=True)
class LloydLoss:
    """T rounds of noisy count and noisy sum for one weighted record.

    Attributes
    ----------
    d : int
    sum_shift : float
        w |x|_2 / beta_sum >= 0.
    count_shift : float
        w / beta_count > 0.
    n_iterations : int
    cells : int
        Steps of the grid of losses in the larger shift.

    Raises
    ------
    ArgumentError
        If an attribute is out of range.
    """

    d: int
    sum_shift: float
    count_shift: float
    n_iterations: int
    cells: int = CELLS

    def __post_init__(self) -> None:
        checks.integer("d", self.d, at_least=1)
        checks.real("sum_shift", self.sum_shift, at_least=0)
        checks.real("count_shift", self.count_shift, above=0)
        checks.integer("n_iterations", self.n_iterations, at_least=1)
        checks.integer("cells", self.cells, at_least=2)

    @property
    def pure(self) -> float:
        """T (w / beta_count + w |x| / beta_sum): the loss that is never exceeded."""
        return self.n_iterations * (self.sum_shift + self.count_shift)

    @cached_property
    def composition(self) -> Composition:
        """Upper bounds of the loss of all rounds, either direction.

        Raises
        ------
        NumericalError
            If a shift exceeds 600 nats.
        """
        step = max(self.sum_shift, self.count_shift) / self.cells
        shifts = [(1, self.count_shift)] + [(self.d, self.sum_shift)] * int(self.sum_shift > 0)
        laws = [NormPair(d, shift).upper_law(step) for d, shift in shifts]
        return Composition(laws, [self.n_iterations] * len(laws))

    def delta(self, epsilon: np.ndarray) -> np.ndarray:
        """Upper bounds of delta at any real epsilons, shape of `epsilon`."""
        return np.where(epsilon >= self.pure, 0.0, self.composition.curve(epsilon))

    def epsilon(self, delta: float) -> float:
        """An epsilon >= 0 at which delta is proved, at most the pure loss.

        Where the largest loss alone has a probability above delta, as that of few counts has, no tilt is too steep for
        Chernoff's bound, but nothing is certified below the top of the law: of all tilts the best answer counts.
        """
        best = self.pure
        try:
            law = self.composition
            tilt = law.cumulants.tilt_at_delta(math.log(delta))
            best = min(best, law.masses(tilt).epsilon(delta))
            near_pure = best > self.pure / 2
            while near_pure and tilt * self.pure > _FLATTEST:
                tilt /= 6
                best = min(best, law.masses(tilt).epsilon(delta))
        except NumericalError:
            return best
        return best


def sampled_epsilon(loss: LloydLoss, q: float, delta: float) -> float:
    """Return an epsilon that is proved at `delta` for a record included with probability at most q.

    Parameters
    ----------
    loss : LloydLoss
        At a weight of at least that of the record.
    q : float
        In (0, 1].
    delta : float
        In (0, 1).

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    """
    rate, goal = float(inclusion(q)), checks.real("delta", delta, above=0, below=1)
    return float(loss_when_removed(loss.epsilon(goal / rate), rate)) if goal < rate else 0.0


def record_epsilon(calibration: Calibration, norm: float, delta: float, *, cells: int = CELLS) -> float:
    """Return what is proved at `delta` for a record of this norm under a calibrated sampler (fixed first centres).

    Raises
    ------
    UnsupportedError
        In mode `released`, whose noise bounds nothing.
    """
    return _cell_epsilon(calibration, np.array([norm, norm]), calibration.rates(np.array([norm, norm])), delta, cells)


def certified_weights(
    calibration: Calibration, norms: np.ndarray, delta: float, *, table: int = 24, cells: int = 300
) -> np.ndarray:
    """Return larger weights than the optimal ones of the pure loss: each record keeps (target, delta) by proof.

    On a table of norms the weight is raised from the pure one and bisected; a record gets that of the next norm in the
    table, at which every smaller norm is protected as well, or its own pure weight if that is larger.

    Parameters
    ----------
    calibration : Calibration
        Of `opt`: it says the noise and the target.
    norms : ndarray, shape (n,)
        At most r.
    delta : float
        In (0, 1).

    Returns
    -------
    ndarray, shape (n,)
        At least the optimal weights of the pure loss.

    Raises
    ------
    ArgumentError
        If the target is below the largest unsampled loss.
    UnsupportedError
        In mode `released`.
    """
    pure = optimal_weights(calibration.slopes(norms), calibration.target)
    places = np.linspace(0.0, calibration.facts.radius, table + 1)[1:]
    found = optimal_weights(calibration.slopes(places), calibration.target)

    def holds(place: float, weight: float) -> bool:
        rates = np.full(2, 1 / weight)
        return _cell_epsilon(calibration, np.array([place, place]), rates, delta, cells) <= calibration.target

    for i, place in enumerate(places):
        low, high = found[i], 2 * found[i]
        while holds(place, high) and high < 1 / delta:
            low, high = high, 2 * high
        while high > low * (1 + _WEIGHT_WIDTH):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if holds(place, middle) else (low, middle)
        found[i] = low
    above = np.minimum(np.searchsorted(places, np.minimum(norms, calibration.facts.radius)), table - 1)
    return np.maximum(pure, found[above])


def certified_epsilon(calibration: Calibration, delta: float, *, tolerance: float = 0.01, cells: int = CELLS) -> float:
    """Return an epsilon that is proved at `delta` for every record in the ball, whatever the data.

    On an interval of norms the largest norm, weight and probability bound all records; the worst interval is halved
    until it says no more than `tolerance` above what a record in it has.

    Parameters
    ----------
    calibration : Calibration
        Feasible, with noise; `rates` must not fall in the norm, as is so for all samplers here.
    delta : float
        In (0, 1).
    tolerance : float
        Relative.

    Raises
    ------
    UnsupportedError
        In mode `released`.
    """
    radius = calibration.facts.radius
    if calibration.sampler in ("full", "unif"):
        return record_epsilon(calibration, radius, delta, cells=cells)
    edges = np.linspace(0.0, radius, 17)
    rates = calibration.rates(edges)
    found = max(record_epsilon(calibration, z, delta, cells=cells) for z in (0.0, radius))
    heap = []
    for i in range(edges.size - 1):
        heap.append((-_cell_epsilon(calibration, edges[i : i + 2], rates[i : i + 2], delta, cells), *edges[i : i + 2]))
    heapq.heapify(heap)
    for _ in range(_MOST_SPLITS):
        bound, low, high = heap[0]
        if -bound <= found * (1 + tolerance):
            break
        middle = 0.5 * (low + high)
        found = max(found, record_epsilon(calibration, middle, delta, cells=cells))
        heapq.heappop(heap)
        for part in ((low, middle), (middle, high)):
            ends = np.array(part)
            heapq.heappush(heap, (-_cell_epsilon(calibration, ends, calibration.rates(ends), delta, cells), *part))
    return min(-heap[0][0], calibration.psi)


def _cell_epsilon(
    calibration: Calibration, norms: np.ndarray, rates: np.ndarray, delta: float, cells: int
) -> float:
    if calibration.mode == "released":
        raise UnsupportedError(
            "the noise of mode released has an exponential radius, for which no loss is bounded; use stated or repaired"
        )
    if not math.isfinite(calibration.s):
        return math.inf
    weight = 1 / float(rates[0])
    loss = LloydLoss(
        calibration.facts.d,
        weight * float(norms[1]) / calibration.beta_sum,
        weight / calibration.beta_count,
        calibration.n_iterations,
        cells,
    )
    return sampled_epsilon(loss, float(rates[1]), delta)
