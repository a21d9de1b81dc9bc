"""Searches for the noise, number of steps or sample size that is proved to meet (epsilon, delta).

The number that is returned was itself evaluated: its upper bound on epsilon is at most the target.
That bounds are monotone helps to find it, and is not needed to prove it (docs/proofs/numerics.md,
"Calibration").

The questions come first: `calibrate`, `largest_steps`, `largest_sample`. Each states a `Goal` and
`Candidates`, releases that differ in one number, and leaves the rest to a `Search`. There are two
policies of grids: `FullSearch`, here, refines the deciding bounds to the requested accuracy;
`SingleGridSearch`, in `fast_search`, takes each bound from one grid.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

from scipy.special import ndtri

from dpsub import checks
from dpsub.accounting.engine import work
from dpsub.accounting.engine.bracket import Refinement, Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.engine.pairs import MAX_SCALE, MIN_SCALE
from dpsub.accounting.engine.roots import Axis, SafeRoot, safe_root
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.accounting.questions import hooks, words
from dpsub.accounting.questions.account import (
    WIDTH_MISSED,
    WIDTH_REASONS,
    Account,
    closest,
    stopped_by,
)
from dpsub.accounting.questions.first_lower import first_lower
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.questions.question import (
    Question,
    QuestionKeywords,
    QuickKeywords,
    separated,
    with_tight,
)
from dpsub.accounting.questions.refinement import AccountRefinement
from dpsub.accounting.release import CalibratedKeywords, MechanismKeywords, Release
from dpsub.accounting.schemes import noise_factor
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.noise import Gaussian
from dpsub.sampling.base import Sampler
from dpsub.sampling.schedules import Schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_NOISE = 1e4
"""Largest noise multiplier that is tried."""
MOST_STEPS_SEARCHED = 10_000_000
NOISE = Axis("a noise multiplier", MIN_SCALE, MOST_NOISE)
_LEAST_RATE = 1e-9
_ACCURACY = 1e-3
# how close roots are of measures that only say where to look: of the variance, of one coarse grid
# with so many steps in a standard deviation of one loss
_GUESS, _ROUGH, _ROUGH_STEPS = 0.5, 0.15, 4
_ATTACK_STEPS = 24  # likewise of grids of attacks
# steepness at first: epsilon of many steps grows like a power of their number near this one
_RISING_STEEPNESS = 1 / 1.2
# how often the distance to a number that is not proved is doubled, until an attack exceeds there
_MOST_DOUBLINGS = 6
# how far above what an attack refutes tight noise is tried at least, and is near enough
_NEAREST, _NEAR = 0.01, 0.03
# of the work, what a game for one noise may take: some is left for noise farther off
_TRIAL = 4 / 5
TIGHT_MISSED = (
    "wider than requested: the budget of work or a numerical limit stopped the search "
    "before the proved noise came close to what an attack refutes; this noise is proved"
)
"""Condition that is added where the noise of a tight calibration is more than 3 % above one that is
refuted."""


@dataclass(frozen=True)
class Calibration(words.ShortText, words.OnAccount):
    """A noise multiplier that is proved to meet a target, and one that an attack refutes.

    `theorem`, `lower_theorem`, `relative_width`, `width_met` and `width_reason` are those of the
    account.

    Attributes
    ----------
    noise_multiplier : float
        Proved: the upper bound on epsilon at this noise is at most the target.
    refuted : float or None
        With this noise multiplier or less an attack exceeds the target; None if no noise is
        refuted.
    evaluations : int
        Number of upper bounds computed to full accuracy.
    account : Account
        At this noise and the target delta. Its `width_met` says whether the noise is as close as
        requested to one that is not proved and, unless both bounds are about one number, within 3 %
        of one that is refuted; if not, `width_reason` says why.
    target : float
        The epsilon of the target, or its advantage.
    """

    noise_multiplier: float
    refuted: float | None
    evaluations: int
    account: Account
    target: float = math.nan

    @property
    def is_close(self) -> bool:
        """Whether an attack refutes noise that is at most 3 % less."""
        return self.refuted is not None and self.noise_multiplier <= self.refuted * (1 + _NEAR)

    def text(self) -> words.Text:
        """The answer in a few words, as `print` shows it."""
        return words.calibration_text(self.noise_multiplier, self.refuted, self.account)

    def statement(self, clip: float | str = "C", prior: float | None = None) -> words.Statement:
        """Return the statement of the account with this noise; see `Account.statement`."""
        return self.account.statement(clip, prior)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the noise over the batch size, for as many records in all, and write the picture if
        a path is given; errors as in `Account.plot`."""
        figure: Figure = hooks.plot(self, path)
        return figure


@dataclass(frozen=True)
class Largest(words.OnAccount):
    """The largest number of steps or sample size that was proved, and the values that are not.

    Attributes
    ----------
    value : float
        Proved: at this value the upper bound on epsilon is at most the target.
    not_proved : float or None
        The smallest value tried whose upper bound exceeds the target; None if the search ended at
        its limit.
    refuted : float or None
        The smallest value tried at which an attack exceeds the target; None if no value up to the
        limit is refuted.
    evaluations : int
        Number of upper bounds computed.
    account : Account
        At this value and the target delta. If its `width_met` is False, more time might prove a
        larger value.
    """

    value: float
    not_proved: float | None
    refuted: float | None
    evaluations: int
    account: Account


class CalibrateKeywords(QuickKeywords, CalibratedKeywords, total=False):
    """Releases whose noise is searched for, and how bounds on them are asked for."""


class LargestKeywords(QuestionKeywords, MechanismKeywords, total=False):
    """The mechanism of releases whose number or sample is searched for, and how bounds on them are
    asked for."""


def calibrate(
    sampler: Sampler | Schedule | Release,
    n: int | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    advantage: float | None = None,
    accuracy: float = _ACCURACY,
    tight: bool | None = None,
    **described: Unpack[CalibrateKeywords],
) -> Calibration:
    """Find a noise multiplier for which the releases are proved (epsilon, delta)-DP, or to give no
    test more than an advantage.

    Bounds on coarse grids guide the search; the returned number was computed to full accuracy
    (docs/proofs/numerics.md).

    Parameters
    ----------
    releases_per_sample, records_per_user, strategy
        As in `dpsub.account`.
    sampler, n, steps, epochs, adjacency, mechanism, denominator, group
        As in `dpsub.account`.
    epsilon, delta : float
        Target: epsilon in nats, above 0, and delta in (0, 1).
    advantage : float
        Target in their place, in (0, 1): the largest difference between the rates of true and of
        false positives of any membership inference, which is delta at epsilon = 0.
    accuracy : float
        Relative distance between the answer and a smaller multiplier that is not proved.
    effort, time_limit : float or None
        As in `dpsub.account`: the search ends with the smallest noise multiplier proved so far.
    quick : bool
        Use the first bound of `dpsub.account` alone. Otherwise noise multipliers 1, 2, 4, 8, ... %
        above one that an attack refutes are tried, as far as the budget of work reaches: first one
        in the lower half of what is open, then those below it while they are proved, or those above
        it until one is.
    tight : bool, optional
        Deprecated: True asks for what is the default now.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    UnsupportedError
        If no bound covers the case, or no multiplier up to 1e4 meets the target.
    NumericalError
        If no multiplier was proved within the budget of work.

    Examples
    --------
    >>> import dpsub
    >>> target = {"epsilon": 1.0, "delta": 1e-5}
    >>> calibration = dpsub.calibrate(dpsub.Poisson(0.01), **target, steps=100, accuracy=0.01)
    >>> 0.85 < calibration.noise_multiplier < 0.95
    True
    >>> calibration.account.upper <= 1.0    # proved at this noise
    True
    >>> calibration.refuted < calibration.noise_multiplier    # refuted at this and less
    True
    """
    released, asked = separated(CalibrateKeywords, described)
    release = Release.to_calibrate(sampler, n, **released)
    question = with_tight(Question.about([release], **asked), tight)
    goal = goal_of(epsilon, delta, advantage, question.adjacency, accuracy)
    with question.metered():
        return least_noise(release, (), goal, question.quick)


def goal_of(
    epsilon: float | None,
    delta: float | None,
    advantage: float | None,
    adjacency: str | None,
    accuracy: float,
) -> Goal:
    """Return the goal of a calibration; ArgumentError unless it is given once."""
    if advantage is None and epsilon is not None and delta is not None:
        return Goal(epsilon, delta, adjacency, accuracy)
    if advantage is not None and epsilon is None and delta is None:
        return AdvantageGoal(0.0, advantage, adjacency, accuracy)
    given = {"epsilon": epsilon, "delta": delta, "advantage": advantage}
    got = ", ".join(name for name, value in given.items() if value is not None) or "nothing"
    raise ArgumentError(f"the target must be epsilon and delta, or an advantage, got {got}")


def least_noise(
    release: Release, past: Sequence[Release], goal: Goal, quick: bool = True
) -> Calibration:
    """Find the least noise for releases that follow `past`, as `calibrate` does."""
    axis = noise_axis(release)
    candidates = Candidates(lambda s: [*past, replace(release, noise_multiplier=s)], axis, goal)
    # the variance of these releases says nothing of others that come before them
    start = (1.0, 1.0) if past else candidates.start_by_variance(release.times)
    search = FullSearch(candidates, *start)
    # the slope of a coarse grid aims the evaluations that decide: two or three of them do
    proved = search.best_root(Level(_ROUGH_STEPS, _ROUGH))
    refuted = search.refuted(proved)
    account = search.account(proved)
    calibration = Calibration(proved.safe, refuted, proved.evaluations, account, goal.most)
    tightens = candidates.proof(proved.safe).tightens
    if quick or not tightens:
        return _explained(calibration, may_tighten=tightens)
    # a noise is proved: less is sought with the work that is left
    return search.tightened(calibration, proved.steepness)


def noise_axis(release: Release) -> Axis:
    """Return the noise multipliers that are tried: those at which the releases to which they amount
    have noise in the usual limits."""
    factor = noise_factor(release)
    if factor == 1:
        return NOISE
    # a little more, so that rounding keeps the least one within them
    least, most = MIN_SCALE * factor * (1 + 1e-12), min(MOST_NOISE * factor, MAX_SCALE)
    return replace(NOISE, least=least, most=most)


def _explained(found: Calibration, *, may_tighten: bool) -> Calibration:
    """Return a calibration by first bounds, with the reason why its noise is not closer to one that
    is refuted."""
    account = found.account
    if account.width_reason or account.kind == "exact" or found.is_close:
        return found
    # where there is no game, no other question helps
    reason = WIDTH_REASONS["quick" if may_tighten else "theory"]
    return replace(found, account=replace(account, width_met=may_tighten, width_reason=reason))


def largest_steps(
    sampler: Sampler | Schedule | Release,
    n: int | None = None,
    *,
    noise_multiplier: float | None = None,
    sigma: float | None = None,
    epsilon: float,
    delta: float,
    accuracy: float = _ACCURACY,
    **described: Unpack[LargestKeywords],
) -> Largest:
    """Find how many releases, or epochs of a schedule, are proved (epsilon, delta)-DP together.

    Parameters
    ----------
    sampler, n, noise_multiplier, sigma, adjacency, mechanism, denominator, group
        As in `dpsub.account`.
    epsilon, delta, effort, time_limit
        As in `dpsub.calibrate`.
    accuracy : float
        Relative distance of the answer to a number that is not proved; answers below 1 / accuracy
        are exact integers.

    Raises
    ------
    ArgumentError, UnsupportedError, NumericalError
        As `dpsub.calibrate`; UnsupportedError if a single release exceeds the target.
    """
    released, asked = separated(LargestKeywords, described)
    release = Release.one_of(sampler, n, noise_multiplier=noise_multiplier, sigma=sigma, **released)
    question = Question.about([release], **asked)
    goal = Goal(epsilon, delta, question.adjacency, accuracy)
    with question.metered():
        return most_steps(release, (), goal)


def most_steps(release: Release, past: Sequence[Release], goal: Goal) -> Largest:
    """Find the largest number of steps for releases that follow `past`, as `largest_steps` does, in
    units of the steps of `release`."""
    sampler = release.sampler
    # epsilon grows like the root of the number of steps at most and at least linearly in the long
    # run: start low
    if isinstance(sampler, Schedule):
        name, mean = "a number of epochs", float(sampler.occurrences)
    else:
        name, mean = "a number of steps", sampler.multiplicity_law(release.n or 1).mean
    start = 1.0
    if mean > 0:
        per_root = 2 * mean * math.sqrt(2 * math.log(1.25 / goal.delta))
        start = (goal.epsilon * release.noise_multiplier / per_root) ** 2 / 2
    axis = Axis(name, 1, MOST_STEPS_SEARCHED, rising=True, whole=True)

    def releases(times: float) -> list[Release]:
        return [*past, replace(release, steps=int(times) * release.steps)]

    return _largest(Candidates(releases, axis, goal), start)


def largest_sample(
    make: Callable[[float], Sampler],
    n: int | None = None,
    *,
    most: float,
    whole: bool,
    noise_multiplier: float,
    epsilon: float,
    delta: float,
    steps: int = 1,
    accuracy: float = _ACCURACY,
    **described: Unpack[LargestKeywords],
) -> Largest:
    """Find how large a sample may be for the releases to be proved (epsilon, delta)-DP together.

    Parameters
    ----------
    make : callable
        Maps a size (`whole`) or a rate to the sampler.
    most : float
        Largest size or rate that is valid.
    whole : bool
        Whether `make` takes a whole number.
    n, noise_multiplier, sigma, steps, adjacency, mechanism, denominator, group
        As in `dpsub.account`.
    epsilon, delta, accuracy, effort, time_limit
        As in `largest_steps`; it raises the same errors.
    """
    least = 1.0 if whole else _LEAST_RATE
    released, asked = separated(LargestKeywords, described)
    release = Release(make(least), n, noise_multiplier, steps, **released)
    question = Question.about([release], **asked)
    goal = Goal(epsilon, delta, question.adjacency, accuracy)
    # epsilon of Gaussian releases is about rate times this over the noise
    per_rate = 2 * math.sqrt(2 * release.steps * math.log(1.25 / delta))
    rate = 0.7 * goal.epsilon * release.noise_multiplier / per_rate
    name = "a batch size" if whole else "a rate"
    axis = Axis(name, least, most, rising=True, whole=whole)
    candidates = Candidates(lambda size: [replace(release, sampler=make(size))], axis, goal)
    with question.metered():
        return _largest(candidates, rate * (n or 1) if whole else rate)


def _largest(candidates: Candidates, start: float) -> Largest:
    search = FullSearch(candidates, start, _RISING_STEEPNESS)
    proved = search.best_root(search.full)
    refuted = search.refuted(proved)
    account = search.account(proved)
    return Largest(proved.safe, proved.unsafe, refuted, proved.evaluations, account)


@dataclass(frozen=True)
class Goal:
    """The target to be proved, and the accuracy of the search.

    Attributes
    ----------
    epsilon : float
        Nats, above 0.
    delta : float
        In (0, 1).
    adjacency : str or None
        As in `dpsub.account`.
    accuracy : float
        Relative distance of the answer to a number that is not proved, in (0, 1).
    """

    epsilon: float
    delta: float
    adjacency: str | None = None
    accuracy: float = _ACCURACY
    target: Target = field(init=False)
    """Epsilon at this delta, with bounds so close that they do not blur the accuracy."""

    @property
    def most(self) -> float:
        """What the quantity of the target may be at most."""
        return self.epsilon

    def gaussian_scale(self, sensitivity: float) -> float:
        """Return the scale of Gaussian noise that meets the goal for one sum."""
        return Gaussian.calibrated(self.epsilon, self.delta, sensitivity).scale

    def room(self, lower: float) -> float:
        """Return the width of an answer that meets the goal, if `lower` is its lower bound."""
        return self.epsilon - lower

    def __post_init__(self) -> None:
        epsilon = checks.real("epsilon", self.epsilon, above=0)
        accuracy = checks.real("accuracy", self.accuracy, above=0, below=1)
        # bounds that are wider than the accuracy would cost noise; below 1e-9 round-off decides
        width = max(epsilon * accuracy, 1e-9)
        target = Target(delta=self.delta, width=width)
        for name, value in (("epsilon", epsilon), ("accuracy", accuracy), ("target", target)):
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class AdvantageGoal(Goal):
    """An advantage to be proved: delta, at epsilon = 0."""

    def __post_init__(self) -> None:
        delta = checks.real("advantage", self.delta, above=0, below=1)
        accuracy = checks.real("accuracy", self.accuracy, above=0, below=1)
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "target", Target(epsilon=0.0, width=accuracy))

    @property
    def most(self) -> float:
        return self.delta

    def gaussian_scale(self, sensitivity: float) -> float:
        # N(mu, 1) against N(0, 1) has the advantage 2 Phi(mu / 2) - 1
        return sensitivity / (2 * float(ndtri((1 + self.delta) / 2)))

    def room(self, lower: float) -> float:
        return (self.delta - lower) / lower if lower > 0 else 0.0


class Candidates:
    """Releases that differ in one number x, with a common goal.

    Parameters
    ----------
    releases : callable
        Maps x to the releases, including those of the past.
    axis : Axis
        Name and limits of x.
    goal : Goal
    """

    def __init__(
        self, releases: Callable[[float], Sequence[Release]], axis: Axis, goal: Goal
    ) -> None:
        self.axis, self.goal = axis, goal
        # a number is looked at several times: roughly, fully, by an attack
        self.proof = cache(lambda x: Proof.of(releases(x), goal.adjacency))

    def composition(self, x: float) -> Composition:
        return self.proof(x).composition

    def attack(self, x: float, choice: int) -> Composition:
        """Return the composition that one choice of data sets attains."""
        # less noise may leave fewer choices: any of them is an attack
        choices = self.composition(x).attack_choices
        return choices[min(choice, len(choices) - 1)]

    def start_by_variance(self, times: int) -> tuple[float, float]:
        """Return the noise at which so many losses have the variance that meets the goal, and the
        steepness there.

        If losses were Gaussian only their variance would matter: this is where to look first.
        """
        scale = self.goal.gaussian_scale(math.sqrt(times))
        try:
            root = safe_root(
                lambda x: self.composition(x).spread,
                1 / scale,
                self.axis,
                start=1.0,
                accuracy=_GUESS,
            )
        except UnsupportedError:
            # a rough measure may miss by little what is proved: that is asked last, and gives the
            # reason
            return self.axis.safest, 1.0
        except OutOfWorkError:
            return 1.0, 1.0
        return root.root, root.steepness


class Level(NamedTuple):
    """The accuracy of one stage of a search.

    Attributes
    ----------
    steps : float
        Grid steps per standard deviation of one loss; infinite: as many as the width needs.
    accuracy : float
        Relative distance of the bounds of the root.
    """

    steps: float
    accuracy: float


class Search(Refinement[Level]):
    """The root at which a bound of the candidates meets their goal, at increasing accuracy.

    A subclass is a policy of grids. It gives the bound at a number x, and decides which root is
    kept and what to evaluate next.
    """

    def __init__(self, candidates: Candidates, start: float, steepness: float) -> None:
        self.candidates, self.goal = candidates, candidates.goal
        self.start, self.steepness = start, steepness
        self.root: SafeRoot | None = None
        """The search's last root."""
        self.best: SafeRoot | None = None

    @abstractmethod
    def bound(self, x: float, level: Level) -> float:
        """Return a bound on epsilon at x."""

    @abstractmethod
    def accept(self, root: SafeRoot, level: Level) -> None:
        """Keep a better root than before, and set where to start next."""

    def evaluate(self, level: Level) -> None:
        self.root = safe_root(
            lambda x: self.bound(x, level),
            self.goal.most,
            self.candidates.axis,
            start=self.start,
            steepness=self.steepness,
            accuracy=level.accuracy,
        )
        self.accept(self.root, level)

    def best_root(self, first: Level) -> SafeRoot:
        """Return the best root, from this level on; NumericalError if the budget suffices for
        none."""
        self.run(first)
        if self.best is None:
            assert self.out_of_work is not None
            raise self.out_of_work
        return self.best


class FullSearch(Search):
    """Search in which all deciding bounds are refined to the accuracy of the goal.

    A single coarse grid gives a first guess and the slope of the bound. An error there would
    cost time, not safety (docs/proofs/numerics.md, "Calibration").
    """

    def __init__(self, candidates: Candidates, start: float, steepness: float) -> None:
        super().__init__(candidates, start, steepness)
        self.full = Level(math.inf, self.goal.accuracy)
        self._accounts: dict[float, Account] = {}

    def best_root(self, first: Level) -> SafeRoot:
        """Return the best root, from this level on; of closed-form bounds if the budget suffices
        for no other."""
        try:
            return super().best_root(first)
        except OutOfWorkError as error:
            try:
                return self._proved_at_once()
            except (NumericalError, UnsupportedError):
                raise error from None

    def _proved_at_once(self) -> SafeRoot:
        """Return the root of closed-form bounds, which exist with any budget."""

        def proved(x: float) -> float:
            (self._accounts[x],) = self.candidates.proof(x).first_ends([self.goal.target])
            return float(self._accounts[x].upper)

        return self._at_once(proved, self.candidates.axis, self.start)

    def _at_once(self, closed_form: Callable[[float], float], axis: Axis, start: float) -> SafeRoot:
        """Return the root of bounds that cost nothing."""
        most, accuracy = self.goal.most, self.goal.accuracy
        with work.uncounted():
            return safe_root(closed_form, most, axis, start=start, accuracy=accuracy)

    def bound(self, x: float, level: Level) -> float:
        if level != self.full:
            return self._rough(x, "upper", self.candidates.composition(x).spread / level.steps)
        # the upper bound alone: what decides is the proof, and an attack is computed for the answer
        before = work.refusals()
        account = self.candidates.proof(x).upper(self.goal.target)
        if math.isinf(account.upper) and work.refusals() > before:
            raise OutOfWorkError("the budget of work does not suffice for a bound; raise effort")
        self._accounts[x] = account
        return float(account.upper)

    def _rough(self, x: float, side: str, step: float) -> float:
        return self.candidates.composition(x).rough(self.goal.target, side, step)

    def evaluate(self, level: Level) -> None:
        try:
            super().evaluate(level)
        except UnsupportedError:
            if level == self.full:
                raise
            self.start = self.candidates.axis.safest  # as in `start_by_variance`

    def accept(self, root: SafeRoot, level: Level) -> None:
        self.start, self.steepness = root.root, root.steepness
        if level == self.full:
            self.best = root

    def finer(self, level: Level) -> Level | None:
        return None if level == self.full else self.full

    def account(self, proved: SafeRoot) -> Account:
        """Return both bounds at the safe number; the search may have computed the upper one."""
        account, before = self._accounts[proved.safe], work.refusals()
        if not self.candidates.composition(proved.safe).is_exact:
            both = self.candidates.proof(proved.safe).account(self.goal.target)
            # the upper bound is computed again, for which less work may be left than the search had
            both = replace(both, lower=min(both.lower, account.upper))
            # the answer says whether both bounds are sharp
            account = replace(closest(account, both), width_met=both.width_met)
        if not account.width_met:
            is_stopped = self.out_of_work is not None or work.refusals() > before
            reason = stopped_by() if is_stopped else WIDTH_REASONS["numerics"]
            return replace(account, width_reason=reason)
        if proved.closed:
            return account
        # the budget ended the search: the bounds are sharp, but a better number might be proved
        return replace(
            account,
            width_met=False,
            width_reason=stopped_by(),
            conditions=(*account.conditions, WIDTH_MISSED),
        )

    def refuted(self, proved: SafeRoot) -> float | None:
        """Return the number nearest to the safe one that was tried and at which an attack exceeds
        the target."""
        composition, axis = self.candidates.composition(proved.safe), self.candidates.axis
        if not composition.attacked:
            return None
        if proved.unsafe is None:
            # the budget ended the search, or nothing is less safe
            return None if composition.is_exact else self._refuted_at_once(proved.safe)
        if composition.is_exact:
            with suppress(OutOfWorkError):
                step = composition.spread / _ATTACK_STEPS
                return self._refuted_beyond(proved.unsafe, lambda x: self._rough(x, "lower", step))
            return self._refuted_at_once(proved.unsafe)
        # an attack that falls short of the proof is searched for by itself. All less noise is
        # refuted with the one it refutes, as adding noise is processing (F2)
        away = self.goal.accuracy if axis.rising else -self.goal.accuracy
        start, refuted = proved.unsafe * (1 + away), None
        before = work.refusals()
        for choice in range(len(composition.attack_choices)):
            with suppress(NumericalError):  # not within the budget
                step = composition.spread / _ATTACK_STEPS
                # of the other choices only those that refute more are searched for
                if refuted is None or self._attained(refuted, choice, step) > self.goal.most:
                    found = self._refuted_by(choice, step, refuted or start, proved.steepness)
                    refuted = found or refuted
        if work.refusals() == before:
            return refuted
        # proofs may have left too little work
        both = [each for each in (refuted, self._refuted_at_once(start)) if each is not None]
        return (min if axis.rising else max)(both, default=None)

    def _refuted_at_once(self, start: float) -> float | None:
        """Return the number nearest to the safe one at which a closed-form attack, which exists
        with any budget, exceeds the target."""
        axis = replace(self.candidates.axis, name="an attack")

        def attained(x: float) -> float:
            proof = self.candidates.proof(x)
            return first_lower(proof.cases, proof.releases, self.goal.target).value

        with suppress(NumericalError, UnsupportedError):
            return self._at_once(attained, axis, start).unsafe
        return None

    def _attained(self, x: float, choice: int, step: float) -> float:
        return self.candidates.attack(x, choice).rough(self.goal.target, "lower", step)

    def _refuted_by(self, choice: int, step: float, start: float, steepness: float) -> float | None:
        """Return the number nearest to the safe one at which one choice exceeds the target."""
        root = safe_root(
            lambda x: self._attained(x, choice, step),
            self.goal.most,
            replace(self.candidates.axis, name="an attack"),
            start=start,
            steepness=steepness,
            accuracy=self.goal.accuracy,
        )
        return root.unsafe

    def _refuted_beyond(self, unsafe: float, attack: Callable[[float], float]) -> float | None:
        """Return where an attack exceeds the target if both bounds are about one number.

        It succeeds where the proof fails, or a little beyond.
        """
        epsilon, axis = self.goal.most, self.candidates.axis
        if self._accounts[unsafe].lower > epsilon:
            return unsafe
        # the grid of the attack is a single one, which may fall short of the target so near to it
        for doublings in range(_MOST_DOUBLINGS):
            away = self.goal.accuracy * 2**doublings
            x = unsafe * (1 + away if axis.rising else 1 - away)
            x = float(math.ceil(x)) if axis.whole else x
            if axis.least <= x <= axis.most and attack(x) > epsilon:
                return x
        return None

    def tightened(self, quick: Calibration, steepness: float) -> Calibration:
        """Find less noise, proved by tight bounds.

        They are asked for no more than to meet the target, a few percent above the noise where the
        attack, whose epsilon falls with about this steepness, meets it.
        """
        composition = self.candidates.composition(quick.noise_multiplier)
        if quick.refuted is None or composition.is_exact:
            return quick
        epsilon = self.goal.most
        target = self.goal.target
        best, refuted, aim = quick, quick.refuted, quick.refuted
        share, reason = _NEAREST, WIDTH_REASONS["theory"]
        # in the lower half of what is open: the closer, the longer a game takes
        while quick.refuted * (1 + 4 * share) < quick.noise_multiplier:
            share *= 2
        try:
            while (noise := aim * (1 + share)) < best.noise_multiplier:
                proof = self.candidates.proof(noise)
                account = proof.account(target)
                if account.lower > epsilon:
                    # the attack reaches farther than the quick search saw
                    refuted = noise
                    aim = noise * (account.lower / epsilon) ** (1 / steepness)
                    continue
                best = replace(best, evaluations=best.evaluations + 1)
                # the game ends once its bound meets the target, too
                room = self.goal.room(float(account.lower))
                with work.share(_TRIAL):
                    account = AccountRefinement(proof, room or None).tightened(account, target)
                is_proved = account.upper <= epsilon
                if is_proved:
                    best = replace(best, noise_multiplier=noise, account=account)
                reason = account.width_reason or reason
                # what is proved farther off is there if the budget ends
                if is_proved and share > _NEAREST:
                    share /= 2
                elif not is_proved and best.noise_multiplier == quick.noise_multiplier:
                    share *= 2
                else:
                    break
        except OutOfWorkError:
            reason = stopped_by()
        best = replace(best, refuted=refuted)
        conditions = [line for line in best.account.conditions if line != WIDTH_MISSED]
        if not best.is_close:
            conditions.append(TIGHT_MISSED)
        account = replace(
            best.account,
            width_met=best.is_close,
            conditions=tuple(conditions),
            width_reason="" if best.is_close else reason,
        )
        return replace(best, account=account)
