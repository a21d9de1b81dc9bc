"""The noise, the number of steps or the size of a sample for a target (epsilon, delta), from the
proved side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from dpsub import checks
from dpsub.accounting.account import TIGHT_SECONDS, WIDTH_MISSED, Account, Proof
from dpsub.accounting.bracket import Target
from dpsub.accounting.pairs import MIN_SCALE
from dpsub.accounting.pld import OutOfTimeError, check_time, deadline_after, time_limited
from dpsub.accounting.release import Release, steps_of
from dpsub.errors import NumericalError, UnsupportedError
from dpsub.noise import Gaussian
from dpsub.sampling.base import Sampler
from dpsub.sampling.schedules import Schedule

MOST_NOISE = 1e4
MOST_STEPS_SEARCHED = 10_000_000
_LEAST_RATE = 1e-9
_MOST_ROUNDS = 60
_GUESS, _ROUGH = 0.5, 0.15
_STEPS_AWAY = 6
# how far above what an attack refutes tight noise is tried first, and is near enough
_NEAREST, _NEAR = 0.01, 0.03
TIGHT_MISSED = (
    "the time limit, or a numerical one, came before noise closer to what an attack refutes was "
    "proved: this noise is proved all the same"
)
"""Added to the conditions where the noise of a tight calibration is more than 3 % above one that is
refuted."""


@dataclass(frozen=True)
class Calibration:
    """A safe noise multiplier and what is known below it.

    Attributes
    ----------
    noise_multiplier : float
        Proved: the upper bound of epsilon at this noise is at most the target.
    refuted : float or None
        With this noise multiplier or less an attack exceeds the target; None if no attack is known.
    evaluations : int
        How many upper bounds of full accuracy were computed.
    account : Account
        At this noise and the target delta. Where its `width_met` is False, more time might have
        proved less noise.
    """

    noise_multiplier: float
    refuted: float | None
    evaluations: int
    account: Account


@dataclass(frozen=True)
class Found:
    """The largest number of steps or size of a sample that was proved, and what is known above it.

    Attributes
    ----------
    value : float
        Proved: at this value the upper bound of epsilon is at most the target.
    not_proved : float or None
        The smallest value tried whose upper bound exceeds the target; None if the search ended at
        its limit.
    refuted : float or None
        The smallest value tried at which an attack exceeds the target; None if there is none up to
        the limit.
    evaluations : int
        How many upper bounds were computed.
    account : Account
        At this value and the target delta. Where its `width_met` is False, more time might have
        proved more.
    """

    value: float
    not_proved: float | None
    refuted: float | None
    evaluations: int
    account: Account


def calibrate(
    sampler: Sampler | Schedule,
    n: int | None = None,
    *,
    epsilon: float,
    delta: float,
    steps: int | None = None,
    epochs: int | None = None,
    adjacency: str | None = None,
    mechanism: str = "gaussian",
    denominator: str = "fixed",
    accuracy: float = 1e-3,
    time_limit: float | None = None,
    tight: bool = False,
) -> Calibration:
    """Find a noise multiplier for which the releases are proved (epsilon, delta)-DP.

    Bounds on coarse grids say where to look; what is returned was computed to full accuracy
    (docs/accounting.md, section 7).

    Parameters
    ----------
    sampler, n, steps, epochs, adjacency, mechanism, denominator
        As in `dpsub.account`.
    epsilon, delta : float
        Target: epsilon in nats, above 0, and delta in (0, 1).
    accuracy : float
        Relative distance between the answer and a smaller multiplier that is not proved.
    time_limit : float, optional
        Seconds after which the search ends with the smallest noise multiplier that was proved by
        then.
    tight : bool
        Prove, by the tight bound of `dpsub.account`, a noise multiplier 1 % above one that an
        attack refutes, or, where that fails, 2, 4, ... % above it; by default within 30 s.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    UnsupportedError
        If no bound covers the case, or no multiplier up to 1e4 meets the target.
    NumericalError
        If no multiplier was proved in the time.

    Examples
    --------
    >>> import dpsub
    >>> target = {"epsilon": 1.0, "delta": 1e-5}
    >>> found = dpsub.calibrate(dpsub.Poisson(0.01), **target, steps=100, accuracy=0.01)
    >>> found.account.upper <= 1.0, 0.85 < found.noise_multiplier < 0.95     # proved at this noise
    (True, True)
    >>> found.refuted < found.noise_multiplier    # refuted at this and less
    True
    """
    release = Release(sampler, n, 1.0, steps_of(sampler, n, steps, epochs), mechanism, denominator)
    limit = TIGHT_SECONDS if tight and time_limit is None else time_limit
    return least_noise(release, (), epsilon, delta, adjacency, accuracy, limit, tight)


def least_noise(
    release: Release,
    past: Sequence[Release],
    epsilon: float,
    delta: float,
    adjacency: str | None,
    accuracy: float,
    time_limit: float | None,
    tight: bool = False,
) -> Calibration:
    """As `calibrate`, for what is released after `past`."""
    family = _Family(
        lambda s: replace(release, noise_multiplier=s),
        adjacency,
        epsilon,
        delta,
        accuracy,
        time_limit,
        past,
    )
    limits: dict[str, Any] = {"least": MIN_SCALE, "most": MOST_NOISE}
    # where all losses were Gaussian, only their variance would matter
    spread = 1 / Gaussian.calibrated(family.epsilon, delta, math.sqrt(release.times)).scale
    start, steepness = 1.0, 1.0
    searches: tuple[tuple[Callable[[float], float], float, float], ...] = (
        (lambda noise: family.at(noise).composition.spread, spread, _GUESS),
        (
            lambda noise: family.rough(noise, "upper", family.at(noise).composition.spread / 4),
            family.epsilon,
            _ROUGH,
        ),
    )
    name = "a noise multiplier"
    with time_limited(family.target.deadline):
        for measure, goal, rough in searches[1:] if past else searches:
            try:
                near = safe_root(
                    measure, goal, name, start=start, steepness=steepness, accuracy=rough, **limits
                )
            except UnsupportedError:
                # what is rough may miss by little what is proved: that is asked last, and gives the
                # reason
                start = MOST_NOISE
            else:
                start, steepness = near.root, near.steepness
        found = family.search(name, start=start, steepness=steepness, **limits)
        quick = Calibration(
            found.safe, family.refuted(found, **limits), found.evaluations, family.account(found)
        )
        return family.tightened(quick, found.steepness) if tight else quick


def largest_steps(
    sampler: Sampler | Schedule,
    n: int | None = None,
    *,
    noise_multiplier: float,
    epsilon: float,
    delta: float,
    adjacency: str | None = None,
    mechanism: str = "gaussian",
    denominator: str = "fixed",
    accuracy: float = 1e-3,
    time_limit: float | None = None,
) -> Found:
    """Find how many releases, or epochs of a schedule, are proved (epsilon, delta)-DP together.

    Parameters
    ----------
    sampler, n, noise_multiplier, adjacency, mechanism, denominator
        As in `dpsub.account`.
    epsilon, delta, time_limit
        As in `dpsub.calibrate`.
    accuracy : float
        Relative distance of the answer to a number that is not proved; numbers below 1 / accuracy
        are told apart.

    Raises
    ------
    ArgumentError, UnsupportedError, NumericalError
        As `dpsub.calibrate`; UnsupportedError if a single release exceeds the target.
    """
    release = Release(
        sampler, n, noise_multiplier, steps_of(sampler, n, None, None), mechanism, denominator
    )
    return most_steps(release, (), epsilon, delta, adjacency, accuracy, time_limit)


def most_steps(
    release: Release,
    past: Sequence[Release],
    epsilon: float,
    delta: float,
    adjacency: str | None,
    accuracy: float,
    time_limit: float | None,
) -> Found:
    """As `largest_steps`, for what is released after `past`, in units of the steps of `release`."""
    sampler = release.sampler
    family = _Family(
        lambda k: replace(release, steps=int(k) * release.steps),
        adjacency,
        epsilon,
        delta,
        accuracy,
        time_limit,
        past,
    )
    # epsilon grows like the root of the number of steps at most and at least linearly in the long
    # run: start low
    mean = (
        sampler.occurrences
        if isinstance(sampler, Schedule)
        else sampler.multiplicity_law(release.n or 1).mean
    )
    per_root = 2 * mean * math.sqrt(2 * math.log(1.25 / delta))
    start = (family.epsilon * release.noise_multiplier / per_root) ** 2 / 2 if mean > 0 else 1.0
    name = "epochs" if isinstance(sampler, Schedule) else "steps"
    return family.largest(name, start=start, least=1, most=MOST_STEPS_SEARCHED, whole=True)


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
    adjacency: str | None = None,
    mechanism: str = "gaussian",
    denominator: str = "fixed",
    accuracy: float = 1e-3,
    time_limit: float | None = None,
) -> Found:
    """Find how large a sample may be for the releases to be proved (epsilon, delta)-DP together.

    Parameters
    ----------
    make : callable
        From a size (`whole`) or a rate to the sampler.
    most : float
        Largest size or rate that makes a sampler.
    whole : bool
        Whether `make` wants a whole number.
    n, noise_multiplier, steps, adjacency, mechanism, denominator
        As in `dpsub.account`.
    epsilon, delta, accuracy, time_limit
        As in `largest_steps`, and it raises the same.
    """
    least = 1.0 if whole else _LEAST_RATE
    release = Release(make(least), n, noise_multiplier, steps, mechanism, denominator)
    family = _Family(
        lambda size: replace(release, sampler=make(size)),
        adjacency,
        epsilon,
        delta,
        accuracy,
        time_limit,
    )
    spread = 2 * math.sqrt(2 * release.steps * math.log(1.25 / delta))
    share = 0.7 * family.epsilon * release.noise_multiplier / spread
    name = "the size of the sample" if whole else "the rate"
    return family.largest(
        name, start=share * (n or 1) if whole else share, least=least, most=most, whole=whole
    )


class _Family:
    """Releases that differ in one number x, after those of the past, and the one target of all of
    them."""

    def __init__(
        self,
        release: Callable[[float], Release],
        adjacency: str | None,
        epsilon: float,
        delta: float,
        accuracy: float,
        time_limit: float | None,
        past: Sequence[Release] = (),
    ) -> None:
        self.epsilon = checks.real("epsilon", epsilon, above=0)
        self.accuracy = checks.real("accuracy", accuracy, above=0, below=1)
        width = max(self.epsilon * self.accuracy, 1e-9)
        self.target = Target(delta=delta, width=width, deadline=deadline_after(time_limit))
        self.at = cache(lambda x: Proof.of([*past, release(x)], adjacency))
        self.accounts: dict[float, Account] = {}

    def upper(self, x: float) -> float:
        self.accounts[x] = self.at(x).upper(self.target)
        return float(self.accounts[x].upper)

    def rough(self, x: float, side: str, step: float) -> float:
        return self.at(x).composition.rough(self.target, side, step)

    def search(self, name: str, **limits: Any) -> SafeRoot:
        return safe_root(self.upper, self.epsilon, name, accuracy=self.accuracy, **limits)

    def largest(self, name: str, *, start: float, **limits: Any) -> Found:
        with time_limited(self.target.deadline):
            found = self.search(name, start=start, steepness=1 / 1.2, rising=True, **limits)
            refuted = self.refuted(found, rising=True, **limits)
            return Found(found.safe, found.unsafe, refuted, found.evaluations, self.account(found))

    def account(self, found: SafeRoot) -> Account:
        """Both ends at the safe number, of which the search may have needed the upper one only."""
        account = self.accounts[found.safe]
        if not self.at(found.safe).composition.is_exact:
            # the upper end is computed again, which may not have had the time that it had in the
            # search
            both, upper = self.at(found.safe).account(self.target), account.upper
            account = replace(both, lower=min(both.lower, upper), upper=min(both.upper, upper))
        if found.closed or not account.width_met:
            return account
        return replace(account, width_met=False, conditions=(*account.conditions, WIDTH_MISSED))

    def tightened(self, quick: Calibration, steepness: float) -> Calibration:
        """Less noise, proved by tight bounds, which are asked for no more than to meet the target:
        a few percent above the noise where the attack, whose epsilon falls with about this
        steepness, meets it."""
        if quick.refuted is None or self.at(quick.noise_multiplier).composition.is_exact:
            return quick
        best, aim, share = quick, quick.refuted, _NEAREST
        try:
            while (noise := aim * (1 + share)) < quick.noise_multiplier:
                check_time()
                proof = self.at(noise)
                found = proof.account(self.target)
                if found.lower > self.epsilon:
                    best, aim = (
                        replace(best, refuted=noise),
                        noise * (found.lower / self.epsilon) ** (1 / steepness),
                    )
                    continue
                best = replace(best, evaluations=best.evaluations + 1)
                found = proof.tightened(found, self.target, self.epsilon - float(found.lower))
                if found.upper <= self.epsilon:
                    best = replace(best, noise_multiplier=noise, account=found)
                    break
                share *= 2
        except OutOfTimeError:
            pass
        assert best.refuted is not None
        close = best.noise_multiplier <= best.refuted * (1 + _NEAR)
        kept = tuple(line for line in best.account.conditions if line != WIDTH_MISSED)
        conditions = kept if close else (*kept, TIGHT_MISSED)
        return replace(best, account=replace(best.account, width_met=close, conditions=conditions))

    def refuted(
        self, found: SafeRoot, *, rising: bool = False, whole: bool = False, **limits: Any
    ) -> float | None:
        """The number nearest to the safe one that was tried and at which an attack exceeds the
        target."""
        composition = self.at(found.safe).composition
        if found.unsafe is None or not composition.attacked:
            return None

        def attack(x: float) -> float:
            return self.rough(x, "lower", composition.spread / 24)

        if not composition.is_exact:
            start = found.unsafe * (1 + self.accuracy if rising else 1 - self.accuracy)
            limits |= {
                "rising": rising,
                "whole": whole,
                "steepness": found.steepness,
                "start": start,
            }
            try:
                return safe_root(
                    attack, self.epsilon, "an attack", accuracy=self.accuracy, **limits
                ).unsafe
            except NumericalError:  # not in the time
                return None
        # both ends bracket one number: the attack succeeds where the proof fails, or a little
        # beyond
        if self.accounts[found.unsafe].lower > self.epsilon:
            return found.unsafe
        for far in (self.accuracy * 2**i for i in range(_STEPS_AWAY)):
            x = found.unsafe * (1 + far if rising else 1 - far)
            x = float(math.ceil(x)) if whole else x
            if limits["least"] <= x <= limits["most"] and attack(x) > self.epsilon:
                return x
        return None


class SafeRoot(NamedTuple):
    """A number `safe` with bound <= target, and the nearest one that misses it (None if there is
    none); both evaluated. `root` is where the bound may be the target, by interpolation, and
    `steepness` |d log bound / d log x| between them. `closed`: they are as close as was asked for,
    or `safe` is the last number; else the deadline came first."""

    safe: float
    unsafe: float | None
    root: float
    steepness: float
    evaluations: int
    closed: bool


def safe_root(
    bound: Callable[[float], float],
    target: float,
    name: str,
    *,
    start: float,
    least: float,
    most: float,
    accuracy: float,
    steepness: float = 1.0,
    rising: bool = False,
    whole: bool = False,
) -> SafeRoot:
    """Find the smallest x with bound(x) <= target (`rising`: the largest), by safeguarded secants
    of logarithms.

    The bound falls (`rising`: rises) with x, 0 and infinity allowed; where it does not, the answer
    still meets the target. `name`: what x is in messages; `accuracy`: relative distance of the two
    ends of the answer; `steepness`: a guess of |d log bound / d log x|; `whole`: whole numbers.
    UnsupportedError if even the limit on the safe side misses the target; NumericalError if nothing
    met it in 60 rounds or the time (of `time_limited`, after which what was found is returned).
    """
    side, safest, last = (-1, least, most) if rising else (1, most, least)
    # a little beyond where the root should be, so that the bracket closes on it from both sides
    margin = (0.3 if rising else 0.4) * math.log1p(accuracy)
    # steps outward grow, so that no bound, however flat, holds them up
    slack, widest = (accuracy, math.log(16)) if rising else (margin / 2, 1.0)
    safe: tuple[float, float] | None = None  # x and log(bound / target)
    over: tuple[float, float] | None = None
    x = min(max(start, least), most)
    x = float(math.floor(x)) if whole else x
    evaluations, closed, late = 0, False, False
    while not closed and evaluations < _MOST_ROUNDS:
        try:
            check_time()
            value = bound(x)
        except OutOfTimeError:
            late = True
            break
        evaluations += 1
        gap = (
            math.log(value / target)
            if 0 < value < math.inf
            else math.copysign(40.0, value - target)
        )
        if value <= target:
            safe = (x, gap)
        else:
            over = (x, max(gap, 1e-300))
        if over is not None and over[0] == safest:
            raise UnsupportedError(
                f"{name} of {safest:g} {'already' if rising else 'still'} has a bound of "
                f"{value:.4g} above the target {target:g}; {'add noise' if rising else 'raise it'}"
            )
        if safe is not None:
            end = over[0] if over is not None else last
            low, high = min(safe[0], end), max(safe[0], end)
            near = high <= low * (1 + accuracy) or (whole and high - low <= 1)
            closed = safe[0] == last or (near and (over is not None or not rising))
        if safe is None or over is None:
            reach = min(abs(gap) / steepness + slack * 2**evaluations, widest)
            moved = x * math.exp(side * math.copysign(reach, gap))
            if whole:
                moved = math.floor(min(moved, x - 1)) if moved < x else math.ceil(max(moved, x + 1))
            x = min(max(moved, least), most)
        else:
            (low, gap_low), (high, gap_high) = sorted((safe, over))
            u = math.log(low) + gap_low / (gap_low - gap_high) * math.log(high / low)
            u += margin if abs(gap_low) < abs(gap_high) else -margin
            inner = 0.02 * math.log(high / low)
            x = math.exp(min(max(u, math.log(low) + inner), math.log(high) - inner))
            x = min(max(float(round(x)), low + 1), high - 1) if whole else x
    if safe is None:
        kind = OutOfTimeError if late else NumericalError
        raise kind(
            f"{name}: nothing was found to meet the target within {evaluations} accounts; allow "
            "more time or raise it"
        )
    if over is None:
        return SafeRoot(safe[0], None, safe[0], steepness, evaluations, closed)
    (low, gap_low), (high, gap_high) = sorted((safe, over))
    apart = math.log(high / low)
    root = low * math.exp(gap_low / (gap_low - gap_high) * apart)
    slope = min(max(abs(gap_low - gap_high) / apart, 0.2), 20.0)
    return SafeRoot(safe[0], over[0], root, slope, evaluations, closed)
