"""Private selection: the privacy cost of releasing the best of a random number of runs.

Each run is a whole training on the same records, and the best one by a score that is part of its
output is released. The bound takes the whole privacy curve of one run (docs/proofs/selection.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NoReturn, Unpack

import numpy as np

from dpsub import checks
from dpsub.accounting.engine import work
from dpsub.accounting.questions import hooks, words
from dpsub.accounting.questions.account import Account, crossed, joined
from dpsub.accounting.questions.export import ComposedLaw, laws_of
from dpsub.accounting.questions.question import (
    Question,
    QuickKeywords,
    check_names,
    separated,
)
from dpsub.accounting.release import Release, ReleaseKeywords
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.sampling import Schedule
from dpsub.sampling.base import Sampler

DISTRIBUTIONS = ("geometric", "logarithmic", "negative_binomial", "poisson", "fixed")
"""Laws of the number of runs."""
MOST_RUNS = 1e6
"""Largest mean of the number of runs."""
_EPS = float(np.finfo(float).eps)
# of a generating function and its derivative, relative: far more than a few powers and logarithms
# lose
_MARGIN = 1e-12
_BISECTIONS = 60
_LEAST_LOG_GAMMA = -688.0  # beyond it 1 / gamma would leave the range of doubles
_UNDERFLOW = 1e-300
_LARGEST = 600.0  # nats, beyond which e^epsilon is no double
_ACCURACY = 1e-9  # of epsilon, relative and absolute
# ranks at which the cells of a bound end; events of an attack, its cuts, the least of the masses
# that it tries
_SMALL_RANKS, _LARGE_RANKS = 16_000, 4_000
_EVENTS, _CUTS, _RAREST = 2_000, 60, 1e-14
# of the grid of losses, in standard deviations of the loss of one event
_STEP, _QUICK_STEP = 1 / 48, 1 / 12
_SELECTED = (
    "the number of runs is drawn as stated, independently of the data, and it and the runs that "
    "are not selected stay secret",
    "every run is as described, with fresh randomness; its other settings are the same for all "
    "runs, or drawn for each run from one distribution",
    "the score is computed from the private output of its run alone; a score on private records "
    "is a release of its own and part of the run",
)


@dataclass(frozen=True)
class NumberOfRuns:
    """The law of the number of runs K, with generating function f(x) = E x^K.

    Parameters
    ----------
    distribution : str
        One of `DISTRIBUTIONS`. geometric, logarithmic and negative_binomial (truncated, K >= 1)
        have P(K = k) proportional to (1 - gamma)^k Gamma(k + shape) / k!, with shape 1, 0 or the
        one given.
    mean : float
        Mean of the number of runs, up to 1e6: above 1 for these three, a whole number if fixed.
    shape : float, optional
        That of negative_binomial, above -1, at most 20, and not so close to -1 that gamma, about
        mean^(-1 / (1 + shape)), falls below 1e-299.

    Raises
    ------
    ArgumentError
        If a parameter is out of range.

    References
    ----------
    Papernot and Steinke, Hyperparameter tuning with Renyi differential privacy, ICLR 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsub.accounting.questions.selection import NumberOfRuns
    >>> runs = NumberOfRuns("geometric", 12)
    >>> round(runs.gamma, 6), runs.draw(np.random.default_rng(0)) >= 1
    (0.083333, True)
    """

    distribution: str
    mean: float
    shape: float | None = None

    def __post_init__(self) -> None:
        checks.one_of("distribution", self.distribution, DISTRIBUTIONS)
        if self.distribution == "fixed":
            mean: float = checks.integer("runs_mean", self.mean, at_least=1, at_most=int(MOST_RUNS))
        else:
            least = 0.0 if self.distribution == "poisson" else 1.0
            mean = checks.real("runs_mean", self.mean, above=least, at_most=MOST_RUNS)
        object.__setattr__(self, "mean", float(mean))
        if (self.distribution == "negative_binomial") != (self.shape is not None):
            raise ArgumentError(
                "shape is the parameter of negative_binomial, and needed for it alone, got "
                f"distribution = {self.distribution} and shape = {self.shape}; "
                f"{'give' if self.shape is None else 'drop'} it"
            )
        if self.shape is not None:
            shape = checks.real("shape", self.shape, above=-1, at_most=20)
            object.__setattr__(self, "shape", shape)
            if self._mean(_LEAST_LOG_GAMMA) < self.mean:
                raise ArgumentError(
                    "shape must not be so close to -1 that gamma falls below 1e-299, got shape = "
                    f"{shape:g} for a mean of {self.mean:g}; take a larger shape"
                )

    @cached_property
    def _shape(self) -> float:
        shapes = {"geometric": 1.0, "logarithmic": 0.0}
        return shapes.get(self.distribution, self.shape or 0.0)

    @cached_property
    def _is_truncated(self) -> bool:
        return self.distribution not in ("poisson", "fixed")

    @cached_property
    def gamma(self) -> float:
        """The parameter of the geometric, logarithmic and negative binomial laws; 1 / mean of the
        geometric one. NaN of the others."""
        if not self._is_truncated:
            return math.nan
        # the mean falls with gamma; bounds are about the law with the gamma that is found
        low, high = max(-60.0 - 30.0 / (1 + self._shape), _LEAST_LOG_GAMMA), 0.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._mean(middle) > self.mean else (low, middle)
        return math.exp(high)

    def _mean(self, log_gamma: float) -> float:
        gamma, shape = math.exp(log_gamma), self._shape
        if log_gamma == 0:
            return 1.0
        odds = -math.expm1(log_gamma) / gamma
        # shape / (1 - gamma^shape), which is -1 / ln gamma at shape 0
        power = shape * log_gamma
        return odds / -log_gamma * (power / math.expm1(power) if power else 1.0)

    @cached_property
    def _slope(self) -> float:
        """f'(1), the mean."""
        return self._mean(math.log(self.gamma)) if self._is_truncated else self.mean

    def derivative(self, rest: np.ndarray) -> np.ndarray:
        """Return f'(1 - rest), for rest in [0, 1], shape (r,), up to a relative rounding of
        1e-12."""
        if self.distribution == "poisson":
            return self.mean * np.exp(-self.mean * rest)
        if self.distribution == "fixed":
            with np.errstate(divide="ignore"):
                logs = np.log1p(-rest)
            powers = (self.mean - 1) * logs if self.mean > 1 else np.zeros(rest.shape)
            return self.mean * np.exp(powers)
        return self._slope * np.exp((1 + self._shape) * -np.log1p(self._odds * rest))

    def generating(self, rest: np.ndarray) -> np.ndarray:
        """Return f(1 - rest), for rest in [0, 1], shape (r,), up to a few roundings of 1."""
        if self.distribution == "poisson":
            return np.exp(-self.mean * rest)
        if self.distribution == "fixed":
            with np.errstate(divide="ignore"):
                return np.exp(self.mean * np.log1p(-rest))
        # (1 - (1 - gamma) x) / gamma
        logs, last = np.log1p(self._odds * rest), -math.log(self.gamma)
        if self._shape == 0:
            return 1 - logs / last
        # y^-shape with y = gamma e^logs, between its values at y = 1 and y = gamma
        floor = math.expm1(-self._shape * last)
        return 1 - np.expm1(-self._shape * logs) / floor

    @cached_property
    def _odds(self) -> float:
        return (1 - self.gamma) / self.gamma

    def draw(self, rng: np.random.Generator) -> int:
        """Draw one number of runs. It must stay secret."""
        if self.distribution == "poisson":
            return int(rng.poisson(self.mean))
        if self.distribution == "fixed":
            return int(self.mean)
        # by inversion, term by term
        level, runs = rng.random(), 1
        mass = total = float(self._slope * self.gamma ** (1 + self._shape))  # f'(0)
        while total <= level and mass > 0:
            mass *= (1 - self.gamma) * (runs + self._shape) / (runs + 1)
            runs += 1
            total += mass
        return runs

    def __str__(self) -> str:
        if self.distribution == "fixed":
            return f"exactly {self.mean:g} runs"
        law = f"shape {self.shape:g}, " if self.shape is not None else ""
        law += f"gamma = {self.gamma:.6g}, " if self._is_truncated else ""
        return f"a {self.distribution} number of runs ({law}mean {self.mean:g})"


@dataclass(frozen=True)
class Selection(Account):
    """The account of the best of several runs.

    Attributes
    ----------
    runs : NumberOfRuns
        The law of their number, and `runs.draw`, which draws it.
    releases : tuple of Release
        Releases of one run.
    at : float
        The epsilon or delta of the question.
    """

    runs: NumberOfRuns = NumberOfRuns("fixed", 1)
    releases: tuple[Release, ...] = ()
    at: float = math.nan

    def certificate(self) -> NoReturn:
        """Refuse: the verifier knows the laws of one run, not Theorems 44 and 46."""
        raise UnsupportedError(
            "certificates are about one run, and this answer is about the best of several; "
            "ask dpsub.account about a run"
        )

    def statement(self, clip: float | str = "C", prior: float | None = None) -> words.Statement:
        """Return the statement of an account, with the number of runs; its trade-off and mu are not
        known, and a prior is refused."""
        return hooks.statement(self, clip, selected=str(self.runs), prior=prior)

    def plot(self, path: str | Path | None = None) -> NoReturn:
        """Refuse: the picture of an account is about one run."""
        raise UnsupportedError(
            "a picture is about one run, and this answer is about the best of several; ask "
            "dpsub.account about a run"
        )

    def text(self) -> words.Text:
        """Both bounds in a few lines."""
        given = "delta" if self.quantity == "epsilon" else "epsilon"
        title = (
            f"{self.quantity} at {given} = {words.near(self.at)} of the best of {self.runs}, each "
            f"{words.releases_text(self.releases)}"
        )
        return words.Text(title, words.account_lines(self))


class SelectKeywords(QuickKeywords, ReleaseKeywords, total=False):
    """One run, and how bounds on the best of several are asked for."""


def select(
    sampler: Sampler | Schedule | Release,
    n: int | None = None,
    *,
    runs_mean: float,
    distribution: str = "geometric",
    shape: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    **described: Unpack[SelectKeywords],
) -> Selection:
    """Bound delta at `epsilon`, or epsilon at `delta`, of the best of a random number of runs.

    Parameters
    ----------
    releases_per_sample, records_per_user, strategy
        As in `dpsub.account`.
    sampler, n, noise_multiplier, sigma, steps, epochs, adjacency, mechanism, denominator, group
        One run, as in `dpsub.account`.
    runs_mean, distribution, shape
        The law of the number of runs, which stays secret: see
        `dpsub.accounting.questions.selection.NumberOfRuns`, whose `draw` draws it.
    epsilon, delta : float
        Exactly one: epsilon in nats, >= 0; delta in (0, 1).
    effort, time_limit : float, optional
        As in `dpsub.account`, by default without limit: there is one grid, and nothing to refine,
        so that NumericalError says where they do not suffice.
    quick : bool
        A coarser grid, whose ends are farther apart.

    Raises
    ------
    ArgumentError, UnsupportedError
        As `dpsub.account`.

    References
    ----------
    docs/proofs/selection.md, Theorems 44 to 46.

    Examples
    --------
    >>> import dpsub
    >>> run = {"noise_multiplier": 1.0, "steps": 100, "delta": 1e-5}
    >>> once = dpsub.account(dpsub.Poisson(0.01), **run)
    >>> best = dpsub.select(dpsub.Poisson(0.01), **run, runs_mean=12)
    >>> best.kind, once.upper < best.lower < best.upper < 3 * once.upper
    ('bounds', True)
    """
    released, asked = separated(SelectKeywords, described)
    release = Release.of(sampler, n, **released)
    runs = NumberOfRuns(distribution, runs_mean, shape)
    return select_of([release], runs, epsilon, delta, **asked)


def select_of(
    releases: Sequence[Release],
    runs: NumberOfRuns,
    epsilon: float | None,
    delta: float | None,
    **asked: Unpack[QuickKeywords],
) -> Selection:
    """Bound the best of several runs. Each run makes all these releases."""
    check_names(asked, QuickKeywords)
    # on one grid a budget that does not suffice leaves no answer: none unless it is asked for
    asked.setdefault("effort", None)
    question = Question.about(releases, **asked)
    if (epsilon is None) == (delta is None):
        got = "neither" if epsilon is None else "both"
        raise ArgumentError(f"exactly one of epsilon and delta is needed, got {got}; give one")
    with question.proof() as proof:
        step = proof.composition.spread * (_QUICK_STEP if question.quick else _STEP)
        laws = laws_of(proof, step)
        uppers = [_UpperEnd(law, runs).delta for law in laws if law.side == "upper"]
        lowers = [_LowerEnd(law, runs).delta for law in laws if law.side == "lower"]
        if delta is None:
            point = checks.real("epsilon", epsilon, at_least=0, at_most=_LARGEST)
            upper = min(1.0, max(end(point) for end in uppers))
            lower = max((end(point) for end in lowers), default=0.0)
        else:
            level = checks.real("delta", delta, above=0, below=1)
            upper = max(_epsilons(end, level)[1] for end in uppers)
            lower = max((_epsilons(end, level)[0] for end in lowers), default=0.0)
        together = _released_all(question, runs, epsilon, delta)
    theorem = "Theorem 44, docs/proofs/selection.md"
    if together < upper:
        upper, theorem = together, "Theorem 8, docs/proofs/composition.md, of all runs together"
    if lower > upper * (1 + 1e-9) + 1e-12:
        raise crossed(lower, upper)
    at = float(delta if epsilon is None else epsilon)  # type: ignore[arg-type]
    conditions = [line for case in proof.cases for line in case.conditions]
    attack = joined(filter(None, (case.attained for case in proof.cases)))
    return Selection(
        min(lower, upper),
        upper,
        kind="bounds" if lowers else "upper",
        pair=f"the best of {runs}, from the privacy curve of one run",
        lower_pair=f"{attack}; runs with a small loss are ranked best" if lowers else "",
        adjacency=proof.relation,
        sensitivity=proof.cases[0].sensitivity,
        quantity="epsilon" if epsilon is None else "delta",
        conditions=tuple(dict.fromkeys([*conditions, *_SELECTED])),
        theorem=theorem,
        lower_theorem="Theorem 46, docs/proofs/selection.md" if lowers else "",
        runs=runs,
        releases=tuple(question.releases),
        at=at,
        asked=words.Asked(tuple(question.releases), (at,)),
        attack_known=proof.composition.attacked,
    )


def _released_all(
    question: Question, runs: NumberOfRuns, epsilon: float | None, delta: float | None
) -> float:
    """Return the proved bound of a release of all runs, since the best one is a function of them;
    infinite where their number is random."""
    if runs.distribution != "fixed":
        return math.inf
    together: list[Release] = []
    for release in question.releases:
        # each run has a strategy matrix of its own
        if release.strategy is not None:
            together += [release] * int(runs.mean)
        else:
            together.append(replace(release, steps=release.steps * int(runs.mean)))
    first = replace(question, releases=together, effort=None, quick=True)
    answer = first.account(epsilon, delta)
    return float(answer.upper)


def _epsilons(delta: Callable[[float], float], level: float) -> tuple[float, float]:
    """Return two epsilons next to each other: delta is above the level at the first one (or it is
    0), and at most the level at the second."""
    if delta(0.0) <= level:
        return 0.0, 0.0
    low, high = 0.0, 1.0
    while delta(high) > level:
        low, high = high, 2 * high
        if high > _LARGEST:
            return low, math.inf
    while high - low > _ACCURACY * (1 + low):
        work.spend(0)
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) > level else (low, middle)
    return low, high


class _UpperEnd:
    """Upper bound by Theorem 44, from a law that dominates one run, in one direction."""

    def __init__(self, law: ComposedLaw, runs: NumberOfRuns) -> None:
        filled = law.masses > 0
        # by falling loss; masses under Q are rounded down, under which no hockey-stick divergence
        # falls
        self._p = law.masses[filled][::-1]
        self._losses = law.losses[filled][::-1]
        with np.errstate(under="ignore"):
            self._q = self._p * np.exp(-self._losses) * (1 - 8 * _EPS)
        self._slack = 64 * _EPS * runs.mean
        self._infinite = law.infinity * runs.mean * (1 + _MARGIN)
        self._lines(law.infinity, runs)

    def _lines(self, infinity: float, runs: NumberOfRuns) -> None:
        """Return the upper envelope of the lines f'(U(x)) y - f'(x) over the cells of ranks x:
        their slopes and intercepts, and the y at which one follows another."""
        # 1 - x, where small ones matter most
        ends = np.unique(
            np.concatenate(
                [
                    [0.0, 1.0],
                    np.geomspace(1e-9, 1.0, _SMALL_RANKS),
                    1 - np.geomspace(1e-9, 0.5, _LARGE_RANKS),
                ]
            )
        )
        above_q = np.concatenate([[0.0], np.cumsum(self._q)])
        above_p = np.concatenate([[0.0], np.cumsum(self._p)])
        # the most that P gives to the ranks below x: what Neyman and Pearson's best event of this
        # size under Q has; sums are off by a rounding for each of their terms
        ranks = 1 - ends[:-1]
        largest = infinity + np.interp(ranks, above_q, above_p) + 8 * _EPS * above_p.size
        slopes = runs.derivative(np.clip(1 - largest, 0.0, 1.0)) * (1 + _MARGIN)
        intercepts = runs.derivative(ends[1:]) * (1 - _MARGIN)
        order = np.lexsort((intercepts, slopes))
        hull: list[tuple[float, float]] = [(0.0, 0.0)]
        for slope, height in zip(slopes[order].tolist(), intercepts[order].tolist(), strict=True):
            if slope == hull[-1][0]:
                continue  # the higher line of this slope came first
            while len(hull) > 1:
                (first, low), (second, middle) = hull[-2:]
                if (middle - low) * (slope - first) < (height - low) * (second - first):
                    break
                hull.pop()
            hull.append((slope, height))
        self._slopes, self._heights = np.array(hull).T
        self._turns = np.diff(self._heights) / np.diff(self._slopes)

    def delta(self, epsilon: float) -> float:
        """Return the bound on delta."""
        order = math.exp(epsilon)
        # below the first turn all lines are negative; that it is off by a rounding is charged
        first = epsilon + math.log(max(self._turns[0], _UNDERFLOW)) - 1e-9
        seen = int(np.searchsorted(-self._losses, -first, side="right"))
        p, q = self._p[:seen], self._q[:seen]
        with np.errstate(over="ignore"):
            best = np.searchsorted(self._turns, np.exp(self._losses[:seen] - epsilon))
        gains = self._slopes[best] * p - order * self._heights[best] * q
        # where two lines nearly meet the wrong one may be taken: by a few roundings of the terms
        slack = self._slack * float(p.sum())
        total = float(np.maximum(gains, 0.0).sum()) + slack + self._infinite
        return total * (1 + 4 * _EPS * self._p.size) * (1 + _MARGIN)


class _LowerEnd:
    """Lower bound by Theorem 46, from a law that one run dominates, in one direction."""

    def __init__(self, law: ComposedLaw, runs: NumberOfRuns) -> None:
        filled = law.masses > 0
        # a smaller loss at the same mass under P lowers every divergence
        p, losses = law.masses[filled][::-1], np.minimum(law.losses[filled][::-1], _LARGEST)
        orders = np.exp(losses)
        with np.errstate(under="ignore"):
            q = p / orders * (1 + 8 * _EPS) + _UNDERFLOW
        p = np.concatenate([[law.infinity], p]) * (1 - 8 * _EPS)
        q = np.concatenate([[0.0], q])
        above_p = np.cumsum(p) * (1 - 2 * _EPS * p.size)
        above_q = np.cumsum(q) * (1 + 2 * _EPS * p.size)
        # all that is left is one outcome: its masses make both sums 1
        keeps = np.append(True, 1 - orders < above_p[1:] - orders * above_q[1:])
        keeps &= (above_p <= 1) & (above_q <= 1)
        last = keeps.size if keeps.all() else int(np.argmin(keeps))
        # any of these events will do
        rarest = min(int(np.searchsorted(above_p, _RAREST)), last - 1)
        places = np.unique(np.linspace(rarest, last - 1, _EVENTS).astype(int))
        self._p, self._q = above_p[places], above_q[places]
        self._runs = runs
        self._cuts = np.unique(np.linspace(0, places.size - 1, _CUTS).astype(int))

    def delta(self, epsilon: float) -> float:
        """Return the delta that the best of these rankings attains."""
        order, best = math.exp(epsilon), 0.0
        for cut in self._cuts.tolist():
            # losses down to the cut come first, increasing, then the smaller ones: the event is the
            # largest losses
            top_p, top_q = 1 - self._p[cut], 1 - self._q[cut]
            attained = self._between(top_p, self._p[: cut + 1])
            attained -= order * self._between(top_q, self._q[: cut + 1])
            best = max(best, float(attained.max()))
        return max(0.0, best - (64 + 4 * self._runs.mean) * _EPS * (1 + order))

    def _between(self, rest: float, size: np.ndarray) -> np.ndarray:
        """Return the probability that the best run is in each event of these sizes with so much
        above."""
        values = self._runs.generating(np.append(np.minimum(rest + size, 1.0), rest))
        return values[-1] - values[:-1]
