"""The whole privacy curve of many releases: delta at every epsilon, errors of every test,
advantage, Gaussian DP."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri_exp

from dpsub import checks
from dpsub.accounting.engine.pairs import FillerPair, PoissonPair
from dpsub.accounting.engine.privacy_events import DominatedEvent, Event, PairEvent
from dpsub.accounting.questions import hooks, words
from dpsub.accounting.questions.account import Account
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.questions.question import AccountKeywords, Question, answers
from dpsub.accounting.release import Release
from dpsub.errors import ArgumentError
from dpsub.noise import GaussianProfile
from dpsub.sampling import Sampler, Schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS, _LAST_DELTA = 500, 1e-9  # epsilons where none are given; delta at the last one
# nats: lines of a trade-off function that are farther away cannot be told by a double
_FARTHEST = 300.0
_EPS = float(np.finfo(float).eps)
_ROUNDING = 32 * _EPS  # rounding of a few operations on numbers of at most 1
FALSE_POSITIVES = (0.001, 0.01, 0.1)
"""False positive rates at which the success of membership inference is told."""
_BISECTIONS, _ACCURACY = 70, 1e-9  # accuracy of mu, relative


class Interval(NamedTuple):
    """Both bounds of one number, or of several."""

    lower: Any
    upper: Any


@dataclass(frozen=True, eq=False)
class Curve(words.ShortText):
    """delta at many epsilons, and the numbers that follow from it.

    Attributes
    ----------
    epsilon : ndarray, shape (e,)
        Increasing from 0, nats.
    account : Account
        delta at these epsilons: its bounds have shape (e,).
    mu : Interval
        The smallest mu with mu-Gaussian DP. Sampling does not lower it, because it must hold for
        the rarest outputs, too (docs/proofs/composition.md). The upper bound is infinite if none is
        proved.
    mu_within : Interval
        The smallest mu whose delta is at least that of the releases at all epsilons up to the last
        one here.
    """

    epsilon: np.ndarray
    account: Account
    mu: Interval
    mu_within: Interval

    @property
    def delta(self) -> Interval:
        """Both bounds on delta, shape (e,)."""
        return Interval(self.account.lower, self.account.upper)

    @property
    def advantage(self) -> Interval:
        """The total variation: the largest difference between the probabilities of an event on
        neighbouring data sets."""
        return Interval(float(self.account.lower[0]), float(self.account.upper[0]))

    def text(self) -> words.Text:
        """The answer in a few words, as `print` shows it."""
        return words.Text(words.curve_title(self.account), self.short_lines())

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw delta over epsilon, and the trade-off of both errors of a test, and write the
        picture if a path is given; errors as in `Account.plot`."""
        figure: Figure = hooks.plot(self, path)
        return figure

    def short_lines(self) -> list[words.Line]:
        """Return a few of its numbers in words."""
        low, high = self.membership(FALSE_POSITIVES)
        success = (low.tolist(), high.tolist())
        measures = words.CurveSummary(self.advantage, self.mu, FALSE_POSITIVES, success)
        return words.curve_lines(self.account, self.epsilon.tolist(), measures)

    def trade_off(self, false_positive: ArrayLike) -> Interval:
        """Bound the smallest false negative rate of any test between neighbouring data sets, at
        false positive rates in [0, 1]; the bounds have the shape of the argument.

        This is the trade-off function, the largest symmetric convex f for which the releases are
        f-DP: f(x) = max over a > 0 of c(a) - a x, c(a) = 1 - delta(ln a). The bounds are valid
        whatever epsilons the curve has (docs/proofs/composition.md).
        """
        rates = checks.finite_array("false_positive", false_positive)
        if rates.size and not (rates.min() >= 0 and rates.max() <= 1):
            raise ArgumentError(
                f"false_positive must be in [0, 1], got {rates.min():g} to {rates.max():g}"
            )
        x = rates.ravel()
        slopes, heights = self._lines(self.account.upper)
        lower = np.max(heights[:, None] - slopes[:, None] * x, axis=0) - _ROUNDING
        places, tops = self._corners
        upper = np.minimum(np.max(tops[:, None] - places[:, None] * x, axis=0) + _ROUNDING, 1 - x)
        upper = np.maximum(upper, 0.0)
        lower = np.clip(lower, 0.0, upper)
        return Interval(lower.reshape(rates.shape), upper.reshape(rates.shape))

    def membership(self, false_positive: ArrayLike) -> Interval:
        """Bound the largest success of membership inference: the largest true positive rate of any
        test between neighbouring data sets, at these false positive rates.

        The upper bound is proved for everything that can be made of the releases; the lower one is
        attained by the attack on the data sets of the account. Under add_remove and zero_out the
        test is for a record that is there or not, under substitute for one of two records.
        """
        misses = self.trade_off(false_positive)
        return Interval(1 - misses.upper, 1 - misses.lower)

    def reconstruction(self, prior: ArrayLike) -> Interval:
        """Bound the largest success of attribute inference and reconstruction: how often anyone who
        sees the releases guesses a secret value of a record, if the best guess without them is
        right with probability `prior`.

        The upper bound is proved for all secrets, guesses and tolerances that have this prior, and
        all attackers who know the other records. The lower one is attained by the attack on the
        data sets of the account: two values, each with probability `prior` if that is at most 1/2,
        are those in which these data sets differ (under zero_out the one contributes 0, under
        add_remove it is no record). Guessing among more values may succeed more often.

        Parameters
        ----------
        prior : array_like
            Probabilities in (0, 1); the bounds have this shape.

        References
        ----------
        docs/proofs/composition.md, "Guesses"; Hayes et al., arXiv 2302.07225; Kulynych et al.,
        arXiv 2407.02191.
        """
        priors = checks.finite_array("prior", prior)
        if priors.size and not 0 < priors.min() <= priors.max() < 1:
            raise ArgumentError(
                f"prior must be above 0 and below 1, got {priors.min():g} to {priors.max():g}"
            )
        upper = 1 - self.trade_off(priors).lower
        # delta falls: at log(p / (1 - p)) it is at least that at the next epsilon
        odds = np.log(np.maximum(priors / (1 - priors), 1.0)) * (1 + _ROUNDING)
        delta = np.append(self.account.lower, 0.0)[np.searchsorted(self.epsilon, odds)]
        lower = priors + np.minimum(priors, 1 - priors) * delta - _ROUNDING
        return Interval(np.clip(lower, priors, upper), upper)

    def _lines(self, delta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a and c(a) for a = e^-epsilon and e^epsilon, increasing; by the mirror c(1/a) =
        c(a) / a."""
        inside = self.epsilon <= _FARTHEST
        orders, heights = np.exp(self.epsilon[inside]), 1 - delta[inside]
        # slopes that rounding cannot tell apart are one line
        differs = np.append(True, np.diff(orders) > 1e-14 * orders[1:])
        orders, heights = orders[differs], heights[differs]
        mirrored = heights[:0:-1] / orders[:0:-1]
        slopes = np.concatenate([1 / orders[:0:-1], orders])
        return slopes, np.concatenate([mirrored, heights])

    @cached_property
    def _corners(self) -> tuple[np.ndarray, np.ndarray]:
        """Return corners of a polygon above c, which is concave, does not fall and is at most a and
        1. In each cell of the grid it is below the chords of both neighbouring cells, prolonged."""
        a, high = self._lines(np.asarray(self.account.lower))
        _, low = self._lines(np.asarray(self.account.upper))
        before, at_before = np.append(0.0, a[:-1]), np.append(0.0, low[:-1])
        # of the chord that ends at each a: at least that of c
        rise = (high - at_before) / (a - before)
        # of the one that begins there
        fall = np.append(np.maximum((low[1:] - high[:-1]) / np.diff(a), 0.0), 0.0)
        left, right = rise[:-1], fall[1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            meet = (high[1:] - a[1:] * right - high[:-1] + a[:-1] * left) / (left - right)
        meet = np.where(np.isfinite(meet), np.clip(meet, a[:-1], a[1:]), a[:-1])
        top = np.minimum(high[:-1] + (meet - a[:-1]) * left, high[1:] - (a[1:] - meet) * right)
        # before the first order c is at most a, after the last one at most 1
        places = np.concatenate([a[:1], a, meet, a[-1:]])
        tops = np.concatenate([a[:1], high, top * (1 + _ROUNDING), [1.0]])
        return places, tops


def curve(
    sampler: Sampler | Schedule | Release,
    n: int | None = None,
    *,
    epsilon: ArrayLike | None = None,
    **described: Unpack[AccountKeywords],
) -> Curve:
    """Bound delta at many epsilons, the errors of all tests, the advantage and Gaussian DP, from
    above and below.

    Parameters
    ----------
    sampler, n, noise_multiplier, sigma, steps, epochs
        As in `dpsub.account`.
    releases_per_sample, records_per_user, strategy
        As in `dpsub.account`.
    adjacency, mechanism, denominator, group, width, effort, time_limit, quick
        As in `dpsub.account`; `width` is that of delta, relative, by default 5 %.
    epsilon : array_like, optional
        Where delta is asked, nats, >= 0; 0 is added. By default 500 values up to where delta is
        1e-9.

    Raises
    ------
    ArgumentError, UnsupportedError
        As `dpsub.account`.

    References
    ----------
    docs/proofs/composition.md.

    Examples
    --------
    >>> import dpsub
    >>> curve = dpsub.curve(dpsub.Poisson(0.01), noise_multiplier=1.0, steps=1000)
    >>> curve.account.kind, round(curve.advantage.lower, 3) <= round(curve.advantage.upper, 3)
    ('exact', True)
    >>> misses = curve.trade_off(0.05)  # tests that are wrong on 5 % of the one data set ...
    >>> bool(0.86 < misses.lower < misses.upper < 0.90)  # ... miss the other at least so often
    True
    """
    return curve_of(Question.of(sampler, n, **described), epsilon)


def curve_of(question: Question, epsilon: ArrayLike | None) -> Curve:
    """Return the curve of releases of several kinds together."""
    with question.proof() as proof:
        return _curve(proof, question, epsilon)


def _curve(proof: Proof, question: Question, epsilon: ArrayLike | None) -> Curve:
    if epsilon is None:
        epsilons = _epsilons(proof)
    else:
        epsilons = np.union1d(0.0, checks.finite_array("epsilon", epsilon))
    account = answers(proof, question, epsilons, None)
    deltas = Interval(np.asarray(account.lower), np.asarray(account.upper))
    mu = _mu_of(proof)
    lower = float(_mu(epsilons, deltas.lower).lower.max())
    upper = math.inf
    if epsilons.size > 1:
        # delta falls: between two epsilons it is at most the one at the first
        upper = float(_mu(epsilons[1:], deltas.upper[:-1]).upper.max(initial=0.0))
    within = Interval(lower, min(upper, mu.upper))
    return Curve(epsilons, account, Interval(max(mu.lower, lower), mu.upper), within)


def _epsilons(proof: Proof) -> np.ndarray:
    """Return epsilons from 0 to where delta is `_LAST_DELTA`, shape (e,)."""
    width = min(1e-3, proof.composition.spread)
    # the points do not depend on how far the bounds are refined
    ends = answers(proof, Question(proof.asked, width=width, quick=True), None, _LAST_DELTA)
    last = ends.upper if math.isfinite(ends.upper) else 2 * max(ends.lower, 1.0)
    return np.linspace(0.0, last, _POINTS) if last > 0 else np.zeros(1)


def _mu(epsilon: np.ndarray, delta: np.ndarray) -> Interval:
    """Return both bounds of the mu whose Gaussian mechanism has this delta at this epsilon, shape
    (e,)."""
    low, high = np.full(epsilon.shape, -60.0), np.full(epsilon.shape, 60.0)  # of ln mu
    with np.errstate(divide="ignore"):
        log_delta = np.log(delta)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        above = GaussianProfile(1.0).group_log_delta(epsilon, np.exp(middle)) >= log_delta
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    # the profile itself is off by its rounding, which the accuracy covers
    lower = np.where(delta <= 0, 0.0, np.exp(low) * (1 - _ACCURACY))
    upper = np.where(delta <= 0, 0.0, np.exp(high) * (1 + _ACCURACY))
    return Interval(lower, np.where(delta >= 1, math.inf, upper))


def _mu_of(proof: Proof) -> Interval:
    """Return the smallest mu with mu-Gaussian DP: at most that without sampling, and no less than
    in the farthest tails (Theorem 24)."""
    without_sampling = (
        _mu_of_shift(case.shift, release) * math.sqrt(release.times)
        for case, release in zip(proof.cases, proof.releases, strict=True)
    )
    in_tails = (_in_tails(event) * math.sqrt(times) for event, times in proof.composition.entries)
    lower = math.hypot(*in_tails) * (1 - _ACCURACY)
    return Interval(lower, math.hypot(*without_sampling) * (1 + _ACCURACY))


def _mu_of_shift(shift: float, release: Release) -> float:
    """Return mu of one step, or epoch of a schedule, that holds the record as often as it may,
    given where (Theorem 24)."""
    ratio = shift / release.noise_multiplier
    if release.mechanism == "gaussian":
        return ratio
    # Laplace noise of scale s C is (ratio, 0)-DP, whose trade-off function Gaussian DP has below it
    # from this mu on
    if ratio < 1e-4:
        # Phi(y) >= 1 / 2 + y phi(y) >= 1 / 2 + ratio / 4 at y = 1.2534 ratio / 2
        return 1.2534 * ratio
    return -2 * float(ndtri_exp(-np.logaddexp(0.0, ratio)))


def _in_tails(event: Event) -> float:
    """Return a mu that no smaller one can replace, for an attack whose second distribution is a
    single Gaussian; 0 for others."""
    pair = None
    if isinstance(event, PairEvent):
        pair = event.pair
    elif isinstance(event, DominatedEvent):
        pair = event.attack
    if not isinstance(pair, FillerPair | PoissonPair):
        return 0.0
    counts, log_weights = pair.components
    # the rarest outputs are those of a record that is drawn as often as it can be
    most_copies = counts[np.isfinite(log_weights)].max()
    return float(most_copies) / pair.deviation
