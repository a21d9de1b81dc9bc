"""From cells of outputs to a lower PLD: one construction, whatever the cells are.

A bin, one cell or several, is collapsed to one point with the loss ln(p / q), p rounded down and q
up. That is grouping, a processing (F2), so *any* bins are valid; then losses are rounded down to
the grid (docs/proofs/numerics.md, "Pairs, lower"). How bins are chosen is a policy, and
decides how much the last step loses:

- edges are moved until losses lie on the grid (`discretise`, pairs of Gaussian mixtures);
- bins exchange shares (`exchange_law`: long sums, epochs of a random allocation);
- cells of one loss are united (`statistic`, where the loss need not be monotone);
- cells are symmetric about places of grid losses (`laplace`).
"""

from __future__ import annotations

import numpy as np

from dpsub.accounting.engine.pld import MAX_LOSS, PrivacyLossDistribution

_EPS = float(np.finfo(float).eps)
_EXCHANGES = 6
_ORIGINS = 4
# share of a group that goes to one neighbour, at most
_MOST_GIVEN = 0.5
# products of smaller masses lose their digits
_SMALL = 1e-270


def collapsed_losses(
    least: np.ndarray, most: np.ndarray, roundings: int = 8, law_error: float = 0.0
) -> np.ndarray:
    """Losses ln(p / q) of bins, rounded down; -inf where p is 0.

    Parameters
    ----------
    least, most : ndarray
        Masses of the bins under P from below, and under Q from above (above 0).
    roundings : int
        In eps, charged for both logarithms and their difference, relative to 1 + |loss|.
    law_error : float
        Charged on top, in nats, for weights of both laws that are known to so much only.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.log(least) - np.log(most)
    losses -= roundings * _EPS * (1 + np.abs(losses)) + law_error
    return np.asarray(losses)


def lower_law(
    losses: np.ndarray,
    masses: np.ndarray,
    step: float,
    *,
    origin: float,
    slack: float,
    tolerance: float = 0.0,
) -> PrivacyLossDistribution:
    """Round losses down to the grid `origin` + i `step`, with masses that were rounded down.

    Parameters
    ----------
    losses, masses : ndarray, shape (n,)
        Of bins that hold mass; losses in nats, finite.
    step, origin : float
        Of the grid, in nats.
    slack : float
        What losses may be too large by, in nats: the whole grid is moved down by it.
    tolerance : float
        In steps: a loss that lies below a grid point by so little counts as at it. What this lifts
        any bin by is taken back from all of them.
    """
    places = np.floor((losses - origin) / step + tolerance)
    # the division may round up: no bin may be lifted by more than the tolerance
    lifted_too_far = places * step + origin > losses + tolerance * step
    places = np.where(lifted_too_far, places - 1, places).astype(int)
    lifted = float(np.max(places * step + origin - losses, initial=0.0))
    offset = origin - lifted - slack
    return PrivacyLossDistribution(step, places, masses, "lower", offset=offset)


def best_origin(losses: np.ndarray, masses: np.ndarray, step: float) -> float:
    """Place, modulo the step, for the grid such that rounding down to it costs least: at one of the
    losses. Bins without mass are left out."""
    filled = masses > 0
    rest = losses[filled] - step * np.round(losses[filled] / step)
    order = np.argsort(rest)
    heights, weights = rest[order], masses[filled][order]
    # with the grid at a height, bins below it lose a step, and all of them the height
    cost = step * (np.cumsum(weights) - weights) - heights * weights.sum()
    return float(heights[int(np.argmin(cost))])


def heavier_end(losses: np.ndarray, masses: np.ndarray, step: float) -> float:
    """The origin, modulo the step, of a grid that holds the bin at one of the ends: it has a
    neighbour on one side alone to exchange shares with, and may hold much of the mass."""
    filled = np.flatnonzero(masses > 0)
    if not filled.size:
        return 0.0
    end = max(filled[0], filled[-1], key=lambda place: masses[place])
    return float(losses[end] - step * np.round(losses[end] / step))


def heaviest_loss(first: np.ndarray, second: np.ndarray, step: float) -> float:
    """The origin, modulo the step, of a grid that holds the loss of the heaviest of its own groups:
    its neighbours may have too little mass to bring it there by an exchange of shares."""
    first, second, losses = _seen(first, second)
    if not first.size:
        return 0.0
    origin = 0.0
    # another origin makes other groups
    for _ in range(_ORIGINS):
        _, group = _groups(losses, step, origin)
        masses, others = np.bincount(group, first), np.bincount(group, second)
        heaviest = int(np.argmax(masses))
        loss = float(np.log(masses[heaviest]) - np.log(others[heaviest]))
        origin = loss - step * round(loss / step)
    return origin


def exchange_law(
    first: np.ndarray, second: np.ndarray, step: float, slack: float, origin: float = 0.0
) -> PrivacyLossDistribution:
    """The law of ln(first / second) under the first of two measures on the same points, from below:
    points are grouped about the losses `origin` + i `step`, and groups exchange shares until their
    losses are those, up to `slack`.

    Grouping and exchanging are a processing (F2) of what tells the points apart, whatever the
    groups and the shares.
    """
    first, second, losses = _seen(first, second)
    levels, group = _groups(losses, step, origin)
    first, second = np.bincount(group, first), np.bincount(group, second)
    most_terms = int(np.bincount(group).max(initial=0))
    grid = origin + levels * step
    for _ in range(_EXCHANGES):
        first, second = exchanged(first, second, np.exp(grid))
    # each exchange rounds what is left of a group and what it takes by some ten eps of themselves:
    # 256 eps in loss for all of them (docs/proofs/numerics.md, "Pairs, lower")
    slack += 256 * _EPS * (1 + float(np.abs(grid).max(initial=0.0)))
    # one of the two sums may be too large, and the other one too small
    slack += 2 * most_terms * _EPS
    filled = (first > 0) & (second > 0)
    if not filled.any():
        return PrivacyLossDistribution(step, np.zeros(1, dtype=int), np.zeros(1), "lower")
    first, second = first[filled], second[filled]
    # losses lie on the grid up to the slack: all are lifted by it, and the grid is moved down by it
    # twice, once for the lift and once for what the slack is charged for
    lifted = np.log(first) - np.log(second) + slack
    # sums of so many terms each, and what six exchanges round
    masses = first * (1 - (128 + most_terms) * _EPS)
    return lower_law(lifted, masses, step, origin=origin, slack=2 * slack)


def _seen(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masses of the points that both measures have, and their losses."""
    seen = (first > 0) & (second > 0)
    first, second = first[seen], second[seen]
    return first, second, np.clip(np.log(first) - np.log(second), -MAX_LOSS, MAX_LOSS)


def _groups(losses: np.ndarray, step: float, origin: float) -> tuple[np.ndarray, np.ndarray]:
    """The grid points that are nearest to losses, and the place among these of each loss's own."""
    levels, group = np.unique(np.rint((losses - origin) / step).astype(int), return_inverse=True)
    return levels, group


def exchanged(
    first: np.ndarray, second: np.ndarray, grid: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Let groups about the ratios `grid` exchange shares: one whose ratio is too small takes a
    share of the next group above it, one whose ratio is too large a share of the next one below.

    A share is a coin that is thrown where the group is seen, and the same one for both measures:
    any shares are valid (F2). These bring all ratios near the grid.
    """
    excess = first - grid * second
    richer = first[1:] - grid[:-1] * second[1:]
    poorer = grid[1:] * second[:-1] - first[:-1]
    least_first = np.minimum(first[1:], first[:-1])
    least_second = np.minimum(second[1:], second[:-1])
    seen = np.minimum(least_first, least_second) > _SMALL
    from_above, from_below = np.zeros(grid.size), np.zeros(grid.size)
    too_small = seen & (excess[:-1] < 0) & (richer > 0)
    too_large = seen & (excess[1:] > 0) & (poorer > 0)
    np.divide(-excess[:-1], richer, out=from_above[:-1], where=too_small)
    np.divide(excess[1:], poorer, out=from_below[1:], where=too_large)
    # between neighbours
    down = np.minimum(from_above[:-1], _MOST_GIVEN)
    up = np.minimum(from_below[1:], _MOST_GIVEN)

    def after(measure: np.ndarray, rounding: float) -> np.ndarray:
        # what is left may be a small difference: its rounding is charged as a share of all
        left = 1 - np.append(0.0, down) - np.append(up, 0.0) + rounding
        kept = measure * np.maximum(left, 0.0)
        kept[:-1] += down * measure[1:]
        kept[1:] += up * measure[:-1]
        return kept

    # the first measure is rounded down, the second up
    return after(first, -4 * _EPS), after(second, 4 * _EPS)
