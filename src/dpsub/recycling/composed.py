"""Many releases with recycled noise: delta at an epsilon, or epsilon at a delta, from both sides.

Under symmetric bounds the noise and its shift by the full sensitivity dominate every pair of neighbours, so that one
pair stands for adaptive compositions, and both ends are about its loss.  Under asymmetric ones the upper end takes the
larger profile of both directions at every order, the lower end one direction throughout.

Recyclers for a budget of many releases together: spending all of it on one release is paid for many times.

A loss law on a grid that a pair of distributions dominates: the lower end of compositions.

Let H be the pair's divergence, convex in the order a, with values H_i and subgradients -S_i at the orders a_i of a
grid.  Between two orders H lies above its tangents at both of them, so that the chord exceeds H by at most

    g = A B / (A + B),    A = S_i w - (H_i - H_{i+1}),    B = (H_i - H_{i+1}) - S_{i+1} w,    w = a_{i+1} - a_i.

Values lowered by the larger g of the two cells around each order are therefore interpolated below H, and so is their
lower convex hull F.  The masses that F stands for, a_i drop(a_i) at loss log a_i, give a smaller divergence at every
order; as composition only averages divergences over losses, k of them stay below k of the pair.  The cost is of second
order in the step, like that of the upper law, if no atom of the loss lies between two orders.

At losses below 0 the same is done with the pair swapped.  With M and M' the totals of the masses under both laws,
orders below 1 need M <= 1 and M <= M': both sides get one value at order 1, and the right one is shrunk by what was
rounded.

How much of the noise can lie within the bounds at most: the ceiling of any symmetric unimodal noise.

Cut the line into cells of width h that divides both the sensitivity D = m h and the bound t h.  Averaging a density
over cells keeps its mass within the bound, symmetry and unimodality, and does not raise delta, a convex function of it:
so densities that are constant on cells lose nothing, and the best one solves a linear programme.  For unimodal noise
the shift by D is the worst, so that it is the only one with a constraint:

    maximise sum over |i| within the bound of f_i,    f_i - e^epsilon f_(i-m) <= s_i,    sum of s_i <= delta.

What lies beyond the last cell is left out of all constraints, which only raises the value.  The bound does not rest on
the solver: its dual values, made nonnegative, give one by weak duality, computed here.  The staircase, which has delta
= 0, attains nearly as much in closed form.

What recycling offers for one budget: plain noise, the paper's parameters, the best recycler, the ceiling.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from dpsub import checks
from dpsub.accounting.account import WIDTH_MISSED, Account
from dpsub.accounting.bracket import Composition, DominatedEvent, Event, Target, order_grid
from dpsub.accounting.pld import SLOPE_UNIT, PrivacyLossDistribution, RememberedProfile, hull_slopes, symmetric_law
from dpsub.errors import ArgumentError, NumericalError
from dpsub.recycling import budget as single
from dpsub.recycling import paper as paper_composition
from dpsub.recycling.budget import Choice, best_place, bracketed, budget
from dpsub.recycling.budget import plain as one_release
from dpsub.recycling.discrete import DiscreteRecycled
from dpsub.recycling.divergence import HockeyStickPieces, ends
from dpsub.recycling.kernels import Family, GaussianKernel, Kernel, LaplaceKernel
from dpsub.recycling.law import Recycled
from dpsub.relations import Relation

_EPS = float(np.finfo(float).eps)

Divergence = Callable[[np.ndarray], HockeyStickPieces]
"""log orders >= 0 -> the divergence there."""


def lower_law(
    forward: Divergence, backward: Divergence, step: float, indices: np.ndarray, infinity: float
) -> PrivacyLossDistribution:
    """The law below the loss of P against Q under P.

    Parameters
    ----------
    forward, backward : callable
        H_a(P || Q) and H_a(Q || P).
    step : float
    indices : ndarray of int, shape (n,)
        Increasing from 0: orders are e^{step index}.
    infinity : float
        Mass of infinite loss under P, rounded down; the pair swapped has as much or more.
    """
    x = indices * step
    first = _lowered(forward(x), x, infinity)
    second = first if backward is forward else _lowered(backward(x), x, infinity)
    at_one = min(first[0], second[0])
    first[0] = second[0] = at_one
    if at_one <= 0:
        nothing = np.array([(1 - infinity) * (1 - 8 * _EPS)])
        return PrivacyLossDistribution(step, np.zeros(1, dtype=int), nothing, "lower", infinity=infinity)
    right = np.exp(x[1:]) * _drops(hull_slopes(first, x)) * SLOPE_UNIT
    left = _drops(hull_slopes(second, x)) * SLOPE_UNIT
    # what rounding can make of the second total, against the value at order 1
    right *= max(0.0, 1 - 16 * _EPS * x.size * (1 + 1 / at_one))
    room = 1 - infinity - float(left.sum())
    total = float(right.sum())
    if total > room:
        right *= max(0.0, room) / total
        total = max(0.0, room)
    centre = max(0.0, room - total - 8 * _EPS * x.size)
    return PrivacyLossDistribution(
        step,
        np.concatenate([-indices[:0:-1], indices]),
        np.concatenate([left[::-1], [centre], right]),
        "lower",
        infinity=infinity,
    )


def _lowered(found: HockeyStickPieces, x: np.ndarray, infinity: float) -> np.ndarray:
    """Values without the infinite mass whose interpolation lies below the divergence; 0 from some order on."""
    values = found.end(-1)
    widths = np.exp(x[:-1]) * np.expm1(np.diff(x))
    falls = values[:-1] - values[1:]
    steep = widths * (found.steepness(1) / np.exp(x))[:-1]
    flat = widths * (found.steepness(-1) / np.exp(x))[1:]
    slack = 8 * _EPS * (values[:-1] + steep)
    before, behind = steep - falls + slack, falls - flat + slack
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.where((before > 0) & (behind > 0), before * behind / (before + behind), 0.0) * (1 + 8 * _EPS)
    gaps = np.where(np.isnan(gaps), 0.0, gaps)
    around = np.maximum(np.append(gaps, 0.0), np.append(0.0, gaps))
    lowered = values - infinity - around
    # the divergence is lowered to 0 one order before it would be
    vanished = np.flatnonzero(lowered <= 0)
    end = int(vanished[0]) - 1 if vanished.size else x.size - 1
    lowered[max(end, 0) :] = 0.0
    return np.asarray(lowered)


def _drops(slopes: np.ndarray) -> np.ndarray:
    """What the slope loses at each order but the first, rounded down."""
    return np.maximum(slopes - np.append(slopes[1:], 0.0) - 4 * _EPS * slopes, 0.0)


CONDITIONS = (
    "the value of the query moves by at most the sensitivity between neighbouring data sets, given past releases",
    "bounds, rate and scale are public and do not depend on the value",
    "the recycler tests the noise that was drawn, not the difference of release and value",
    "real arithmetic and exact sampling are assumed",
)
"""Under which every guarantee for recycled noise holds."""

Law = Recycled | DiscreteRecycled

_ALIGNMENTS = 4
"""Steps are looked for in this many times the number of those that fit one atom."""
_MOST_ATOMS = 8
"""Between two orders that atoms are put on the grid for."""
_BEYOND = 1e150
"""No finite loss is larger."""
_HALVINGS = 60


@dataclass(frozen=True)
class RecycledEvent(Event):
    """One release.

    Attributes
    ----------
    law : Recycled or DiscreteRecycled
    """

    law: Law

    @cached_property
    def _proved(self) -> DominatedEvent:
        profile = RememberedProfile(self._upper_end)
        return DominatedEvent(lambda tail: (profile, None), None)

    @cached_property
    def _infinite_above(self) -> float:
        """What the profile falls to: no orders are needed beyond."""
        return float(self._upper_end(np.array([_BEYOND]))[0]) if float(self.law.rate) == 1 else 0.0

    def _upper_end(self, log_order: np.ndarray) -> np.ndarray:
        laws = [self.law] if self.law.symmetric else [self.law, self.law.mirrored]
        return np.asarray(np.max([law.stick(log_order).end(1) for law in laws], axis=0))

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        profile = self._proved.profile(tail)[0]
        return symmetric_law(profile, step, order_grid(profile, step, tail, self._infinite_above))

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        first, second = (self.law.mirrored, self.law) if swapped else (self.law, self.law.mirrored)
        infinity = _surely_infinite(self.law)
        indices = order_grid(self._proved.profile(tail)[0], step, tail, self._infinite_above)
        backward = first.stick if self.symmetric else second.stick
        return lower_law(first.stick, backward, step, indices, infinity)

    def fitting(self, step: float) -> float:
        """A step that nearly divides both what all losses of the kernel are multiples of, and L.

        Lower laws are sharp where atoms of the loss lie on the grid.  Where many lie between two orders, none matters.
        """
        unit = atoms(self.law)
        if unit is None or unit < step / _MOST_ATOMS:
            return step
        rate = float(self.law.rate)
        fewest = max(1, math.ceil(unit / step))
        if rate in (0.0, 1.0):
            return unit / fewest
        parts = np.arange(fewest, _ALIGNMENTS * fewest + 1)
        ratio = -math.log1p(-rate) / unit * parts
        return float(unit / parts[int(np.argmin(np.abs(ratio - np.round(ratio)) / parts))])

    @property
    def symmetric(self) -> bool:
        return self.law.symmetric

    @property
    def exact(self) -> bool:
        return self.law.symmetric

    def spread(self) -> float:
        return self._proved.spread()

    @property
    def attained_once(self) -> bool:
        return True

    @property
    def upper_symmetric(self) -> bool:
        return True


def atoms(law: Law) -> float | None:
    """A number of which all atoms of the kernel's loss are multiples; None if it has none."""
    if isinstance(law, DiscreteRecycled):
        return law.kernel.loss_unit(law.sensitivity)
    return law.sensitivity / law.kernel.scale if isinstance(law.kernel, LaplaceKernel) else None


def account(
    law: Law,
    steps: int = 1,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    adjacency: str = "substitute",
    width: float | None = None,
) -> Account:
    """Bound delta at `epsilon`, or epsilon at `delta`, of many releases with one recycler.

    Parameters
    ----------
    law : Recycled or DiscreteRecycled
    steps : int
        T >= 1.
    epsilon, delta : float
        Exactly one of them.
    adjacency : {"substitute", "add_remove"}
        The relation for which `law.sensitivity` holds; it only enters the answer's words.
    width : float, optional
        Accuracy wanted: absolute for epsilon (default 1e-3), relative for delta (default 5e-3).

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    """
    return composition([(law, steps)], epsilon=epsilon, delta=delta, adjacency=adjacency, width=width)


def composition(
    releases: Sequence[tuple[Law, int]],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    adjacency: str = "substitute",
    width: float | None = None,
) -> Account:
    """As `account`, for releases of several kinds in any order that is fixed in advance."""
    relation = Relation(checks.one_of("adjacency", adjacency, list(Relation)))
    question = Target(epsilon, delta, width if width is not None else 1e-3 if epsilon is None else 5e-3)
    ledger = Composition([(RecycledEvent(law), checks.integer("steps", k, at_least=1)) for law, k in releases])
    if len(releases) == 1 and releases[0][1] == 1:
        lower, upper = _single(releases[0][0], question)
        width_met = True
    elif len(releases) == 1 and (together := _as_one(*releases[0])) is not None:
        lower, upper = _single(together, question)
        width_met = True
    elif question.delta is not None and _infinite(releases) > question.delta:
        lower, upper, width_met = math.inf, math.inf, True
    else:
        lower, upper, width_met = ledger.answer(question)
    return Account(
        lower=min(lower, upper),
        upper=upper,
        kind="exact" if ledger.one_number else "bounds",
        pair="; ".join(dict.fromkeys(_words(law) for law, _ in releases)),
        adjacency=relation,
        sensitivity=f"neighbours move the value by up to {releases[0][0].sensitivity:g}",
        quantity=question.quantity,
        lower_pair="the same pair",
        conditions=CONDITIONS if width_met else (*CONDITIONS, WIDTH_MISSED),
        width_met=width_met,
    )


def _surely_infinite(law: Law) -> float:
    """Probability of an infinite loss in the direction where it is smaller, rounded down."""
    if float(law.rate) < 1:
        return 0.0
    return min(float(each.stick(_BEYOND).end(-1)) for each in (law, law.mirrored))


def _infinite(releases: Sequence[tuple[Law, int]]) -> float:
    """Probability of an infinite loss in any release, rounded down."""
    masses = [_surely_infinite(law) for law, _ in releases]
    return -math.expm1(sum(k * math.log1p(-mass) for mass, (_, k) in zip(masses, releases, strict=True)))


def _words(law: Law) -> str:
    if isinstance(law, DiscreteRecycled):
        noise = f"{law.kernel.name} noise of parameter {law.kernel.parameter}"
    else:
        noise = f"{law.kernel.name} noise of scale {law.kernel.scale:g}"
    return (
        f"{noise}, redrawn with probability {float(law.rate):g} outside [{law.lower:g}, {law.upper:g}], against itself "
        f"moved by {law.sensitivity:g}"
    )


def _as_one(law: Law, times: int) -> Recycled | None:
    """Many releases with plain Gaussian noise have the loss of one whose sensitivity is sqrt(T) as large."""
    if isinstance(law, Recycled) and law.rate == 0 and isinstance(law.kernel, GaussianKernel):
        return replace(law, sensitivity=law.sensitivity * math.sqrt(times))
    return None


def _single(law: Law, question: Target) -> tuple[float, float]:
    """One release from the closed form; epsilon by bisection of both ends of delta."""
    laws = [law] if law.symmetric else [law, law.mirrored]

    def bounds(epsilon: float) -> tuple[float, float]:
        low, high = ends([each.stick(epsilon) for each in laws])
        return float(low), float(high)

    if question.epsilon is not None:
        return bounds(question.epsilon)
    assert question.delta is not None
    return _root(bounds, 0, question.delta), _root(bounds, 1, question.delta)


def _root(bounds: Callable[[float], tuple[float, float]], end: int, delta: float) -> float:
    """Where an end of delta(epsilon), epsilon >= 0, falls to `delta`: rounded down for the lower end, else up."""
    low, high = 0.0, 1.0
    if bounds(low)[end] <= delta:
        return 0.0
    if bounds(_BEYOND)[end] > delta:
        return math.inf
    while bounds(high)[end] > delta:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if bounds(middle)[end] <= delta else (middle, high)
    return high if end else low


_POINTS = 128
"""Of a grid in a standard deviation of the loss: delta then comes out accurate to a fraction of a per cent."""
_SCALE_STEPS, _RATE_STEPS, _PLAIN_STEPS = 12, 8, 24
_LARGEST_EXCESS = 3.0
_MOST = 12.0
"""Largest -log(1 - q) looked at."""


def plain(
    family: Family, epsilon: float, delta: float, steps: int, bound: float, sensitivity: float
) -> Choice:
    """The kernel alone whose releases together keep the budget.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    """
    order, target = budget(epsilon, delta)
    times = checks.integer("steps", steps, at_least=1)
    if times == 1:
        return one_release(family, order, target, bound, sensitivity)
    if family is GaussianKernel:
        # all releases together are one of that sensitivity
        scale = one_release(family, order, target, bound, sensitivity * math.sqrt(times)).law.kernel.scale
    else:
        scale = _plain_scale(family, order, target, times, bound, sensitivity)
    return Choice(Recycled.within(family(scale), 0.0, bound, sensitivity), order, target, "upper", times)


def _plain_scale(family: Family, epsilon: float, delta: float, times: int, bound: float, sensitivity: float) -> float:
    def excess(log_scale: float) -> float:
        law = Recycled.within(family(math.exp(log_scale)), 0.0, bound, sensitivity)
        return _excess(law, times, epsilon, delta)

    # with so much noise the loss of all releases together hardly ever exceeds epsilon, however coarse the grid
    high = math.log(sensitivity * times / epsilon) + 0.1
    while excess(high) > 0:
        high += 0.5
    low = math.log(family.for_budget(epsilon, delta, sensitivity).scale) - 1e-3
    return math.exp(bracketed(excess, low, high, _PLAIN_STEPS, 1e-5)[1])


def optimum(
    family: Family, epsilon: float, delta: float, steps: int, bound: float, sensitivity: float
) -> Choice:
    """The kernel and rate with the largest acceptance whose `steps` releases together keep (epsilon, delta).

    Golden sections over the scale, from that of the kernel alone upwards; at each the largest rate whose proved
    delta keeps the budget.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    """
    if steps == 1:
        return single.optimum(family, epsilon, delta, bound, sensitivity)
    start = plain(family, epsilon, delta, steps, bound, sensitivity)

    def law(log_factor: float) -> Recycled:
        kernel = family(start.law.kernel.scale * math.exp(log_factor))
        return _largest(kernel, start.epsilon, start.delta, start.steps, bound, sensitivity) or start.law

    widest = math.log(2 + 2 * start.epsilon / start.steps)
    place = best_place(lambda log_factor: law(log_factor).acceptance, 0.0, widest, _SCALE_STEPS)
    found = law(place)
    if found.acceptance <= start.acceptance:
        return start
    return Choice(found, start.epsilon, start.delta, "upper", start.steps)


def largest_rate(
    kernel: Kernel, epsilon: float, delta: float, steps: int, bound: float, sensitivity: float
) -> Choice:
    """The recycler of the kernel with the largest rate of which that many releases keep (epsilon, delta) together.

    Raises
    ------
    ArgumentError
        If the kernel alone does not keep it.
    """
    order, target = budget(epsilon, delta)
    times = checks.integer("steps", steps, at_least=1)
    if times == 1:
        return single.largest_rate(kernel, order, target, -bound, bound, sensitivity)
    found = _largest(kernel, order, target, times, bound, sensitivity)
    if found is None:
        raise ArgumentError(
            f"the budget must allow for the kernel, got delta = {target:g} at epsilon = {order:g} which {times} "
            f"releases at scale {kernel.scale:g} exceed without a recycler; take a larger scale or budget"
        )
    return Choice(found, order, target, "upper", times)


def _largest(
    kernel: Kernel, epsilon: float, delta: float, times: int, bound: float, sensitivity: float
) -> Recycled | None:
    """The kernel with the largest rate that keeps the budget; None if the kernel alone does not."""

    def law(loss: float) -> Recycled:
        return Recycled.within(kernel, -math.expm1(-loss), bound, sensitivity)

    def excess(loss: float) -> float:
        return _excess(law(loss), times, epsilon, delta)

    if excess(0.0) > 0:
        return None
    high = 0.25
    while excess(high) <= 0:
        if high > _MOST:
            return law(high)
        high *= 2
    return law(bracketed(excess, 0.0, high, _RATE_STEPS, 1e-5)[0])


def _excess(law: Recycled, times: int, epsilon: float, delta: float) -> float:
    """log of delta(epsilon) over the target, cut where it says no more than its sign to the search of a root."""
    found = upper_delta(law, times, epsilon)
    return max(-_LARGEST_EXCESS, min(_LARGEST_EXCESS, math.log(found / delta))) if found > 0 else -_LARGEST_EXCESS


def upper_delta(law: Recycled, steps: int, epsilon: float) -> float:
    """A proved delta(epsilon) of the composition from one grid, which is fine enough for searches."""
    ledger = Composition([(RecycledEvent(law), steps)])
    return ledger.rough(Target(epsilon=epsilon), "upper", ledger.spread / _POINTS)


_LARGEST_DENOMINATOR = 120
_LEFT_OUT = 1e-9
_MOST_CELLS = 4000
_LARGEST_EPSILON = 700.0
"""e^epsilon is a double."""


@dataclass(frozen=True)
class Ceiling:
    """Largest acceptance of symmetric unimodal noise with a delta at an epsilon.

    Attributes
    ----------
    lower : float
        Attained by the staircase, with delta = 0.
    upper : float
        Certified: no such noise has more.
    """

    lower: float
    upper: float


def staircase(epsilon: float, bound: float, sensitivity: float) -> float:
    """Acceptance of the best noise with delta = 0: steps by e^-epsilon at bound - k D, ..., bound, bound + D, ...

    With r = bound / D and k = floor(r), 1 - A = e^(-(k + 1) epsilon) / ((r - k)(1 - e^-epsilon) + e^-epsilon).
    """
    order = checks.real("epsilon", epsilon, above=0)
    ratio = checks.real("bound", bound, above=0) / checks.real("sensitivity", sensitivity, above=0)
    part, steps = math.modf(ratio)
    # the fraction in logarithms, times e^epsilon above and below: any epsilon will do
    log_rest = np.logaddexp(math.log(part) + order, math.log1p(-part)) if part > 0 else 0.0
    return -math.expm1(-steps * order - float(log_rest))


def ceiling(epsilon: float, delta: float, bound: float, sensitivity: float) -> Ceiling:
    """Solve the programme.

    A ratio of bound to sensitivity that is no fraction with a small denominator (up to 120, less where the line must be
    cut into many cells) is rounded up, which only raises the bound.  Where the programme would be too large, or its
    coefficients too far apart, the bound is 1.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    NumericalError
        If the solver fails.
    """
    order, target = budget(epsilon, delta)
    ratio = checks.real("bound", bound, above=0) / checks.real("sensitivity", sensitivity, above=0)
    lower = staircase(order, bound, sensitivity)
    if ratio > _MOST_CELLS or order > _LARGEST_EPSILON:
        return Ceiling(lower, 1.0)
    reach = min(-math.log(_LEFT_OUT) / order + 2, _MOST_CELLS)
    parts = max(1, min(_LARGEST_DENOMINATOR, int(_MOST_CELLS / (ratio + reach))))
    near = Fraction(ratio).limit_denominator(parts)
    if near == 0 or abs(float(near) - ratio) > 1e-12 * ratio:
        near = Fraction(math.ceil(ratio * parts), parts)
    cells = near.numerator + min(math.ceil(reach * near.denominator), _MOST_CELLS)
    programme = _Programme(order, target, near.denominator, near.numerator, cells)
    return Ceiling(lower, max(lower, _certified(programme, *_prices(programme))))


@dataclass(frozen=True)
class _Programme:
    """Masses of the cells 0 .. n - 1 on one side, slacks, and the mass further out.

    Rows: privacy of each cell nearer to 0 than the cell it is compared with, unimodality, the sum of the slacks.
    """

    epsilon: float
    delta: float
    shift: int
    accepted: int
    cells: int

    def matrices(self) -> tuple[np.ndarray, sparse.csr_array, np.ndarray, np.ndarray]:
        """Objective to maximise, inequality matrix and right side, and the row of the total mass."""
        n, m = self.cells, self.shift
        place = np.arange(-n + m, (m + 1) // 2)
        rows = np.arange(place.size)
        other = place - m
        slack = n + rows
        size = n + place.size + 1
        ones = np.ones(place.size)
        growth = math.exp(self.epsilon)
        # divided by e^epsilon, so that no coefficient is large
        values = np.concatenate([ones / growth, -ones, -ones / growth])
        columns = np.concatenate([_folded(place), _folded(other), slack])
        privacy = sparse.coo_array(
            (values, (np.concatenate([rows, rows, rows]), columns)), shape=(place.size, size)
        )
        steps = np.arange(n - 1)
        signs, both = np.repeat([1.0, -1.0], n - 1), np.concatenate([steps + 1, steps])
        unimodal = sparse.coo_array((signs, (np.tile(steps, 2), both)), shape=(n - 1, size))
        spent = np.zeros((1, size))
        spent[0, slack] = 1.0
        matrix = sparse.csr_array(sparse.vstack([privacy, unimodal, sparse.coo_array(spent)]))
        right = np.zeros(matrix.shape[0])
        right[-1] = self.delta
        total = np.zeros(size)
        total[:n] = 2.0
        total[-1] = 1.0
        objective = np.zeros(size)
        objective[: self.accepted] = 2.0
        return objective, matrix, right, total


def _folded(cells: np.ndarray) -> np.ndarray:
    """The cell on the right side with the same mass."""
    return np.where(cells >= 0, cells, -cells - 1)


def _prices(programme: _Programme) -> tuple[np.ndarray, float]:
    """Dual values of the inequalities, and of the total mass."""
    objective, matrix, right, total = programme.matrices()
    found = linprog(  # type: ignore[call-overload]  # the stubs know no sparse matrices
        -objective, A_ub=matrix, b_ub=right, A_eq=total[None, :], b_eq=[1.0], bounds=(0, None), method="highs"
    )
    if found.status != 0:
        raise NumericalError(f"the linear programme must have a solution, got {found.message!r}; report the arguments")
    return -found.ineqlin.marginals, float(-found.eqlin.marginals[0])


def _certified(programme: _Programme, prices: np.ndarray, mass_price: float) -> float:
    """The bound of weak duality: any nonnegative prices are valid, and what they leave over is charged.

    Twice the masses of the cells sum to at most 1, the slacks to at most delta, the mass further out to at most 1.
    """
    objective, matrix, right, total = programme.matrices()
    valid = np.maximum(prices, 0.0)
    left = np.maximum(objective - matrix.T @ valid - mass_price * total, 0.0)
    n = programme.cells
    charged = left[:n].max() / 2 + left[n:-1].max(initial=0.0) * programme.delta + left[-1]
    return min(1.0, float(right @ valid) + mass_price + float(charged) + 1e-12)


_NO_GAIN = 1e-3
"""Smaller relative gains of acceptance than this are of no use."""


@dataclass(frozen=True)
class RecyclingAdvice:
    """Choices for one budget.

    Attributes
    ----------
    plain, optimum : Choice
        The kernel alone; the best recycler that the exact profile allows.
    paper : Choice or None
        The paper's algorithms; None if they end at rate 1, of which its composition theorem says nothing.
    paper_delta : float or None
        What all releases with the paper's parameters really have at epsilon, rounded up.
    ceiling : Ceiling or None
        For one release.
    """

    plain: Choice
    paper: Choice | None
    optimum: Choice
    paper_delta: float | None
    ceiling: Ceiling | None

    @property
    def gain(self) -> float:
        """By how much the best recycler's acceptance exceeds that of plain noise, at least 0."""
        return max(0.0, self.optimum.acceptance - self.plain.acceptance)

    @property
    def as_good(self) -> bool:
        """Whether plain noise is as good."""
        return self.gain <= _NO_GAIN * self.plain.acceptance

    @property
    def _theorem(self) -> str | None:
        """The case of one release with Laplace noise, where recycling is proved to gain nothing but order delta."""
        law = self.plain.law
        if not isinstance(law.kernel, LaplaceKernel) or self.plain.steps > 1:
            return None
        if law.upper >= law.sensitivity:
            return "bound >= sensitivity"
        return "epsilon <= 1" if self.plain.epsilon <= 1 else None

    @property
    def verdict(self) -> str:
        """One sentence on whether to recycle."""
        if self.as_good and self._theorem is not None:
            return f"plain Laplace noise is as good: with {self._theorem} recycling gains nothing but order delta"
        if self.as_good:
            return f"plain {self.plain.law.kernel.name} noise is as good: acceptance rises by less than 0.1 %"
        moved = f"the standard deviation goes from {self.plain.law.sd:.4g} to {self.optimum.law.sd:.4g}"
        return f"recycling raises acceptance by {self.gain:.3g}; {moved}"


def advise(
    family: Family, epsilon: float, delta: float, bound: float, sensitivity: float, steps: int = 1
) -> RecyclingAdvice:
    """All of it, for `steps` releases that share the budget.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    """
    budgeted = (family, epsilon, delta, steps, bound, sensitivity)
    kernel = plain(*budgeted)
    try:
        paper = paper_composition.composed_algorithm2(*budgeted)
    except NumericalError:
        paper = None
    found = optimum(*budgeted)
    true = None if paper is None else account(paper.law, kernel.steps, epsilon=kernel.epsilon).upper
    most = ceiling(epsilon, delta, bound, sensitivity) if kernel.steps == 1 else None
    return RecyclingAdvice(kernel, paper, found if found.acceptance > kernel.acceptance else kernel, true, most)
