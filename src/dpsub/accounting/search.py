"""The smallest noise for which a decreasing bound meets a target, from the safe side.

The least noise that is proved to meet a target (epsilon, delta), and the noise that an attack refutes.

How many steps, or how large a sample, a given noise allows for a target (epsilon, delta): from the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from dpsub import checks
from dpsub.accounting.account import Account, Proof, Release, proved, rigorous
from dpsub.accounting.bracket import Target
from dpsub.accounting.pairs import MIN_SCALE
from dpsub.errors import UnsupportedError
from dpsub.noise import Gaussian
from dpsub.sampling.base import Sampler

_MOST = 60
_WIDEST = 1.0


@dataclass(frozen=True)
class SafeRoot:
    """A number x with bound(x) <= target that was checked, and one below it with bound > target.

    Attributes
    ----------
    safe, unsafe : float
        unsafe < safe; both were evaluated, except that unsafe is 0 where no x was found to miss the target.
    root : float
        Where the bound may be the target, by interpolation between the two.
    steepness : float
        How fast the logarithm of the bound falls with that of x between the two.
    value : float
        The bound at `safe`.
    evaluations : int
    """

    safe: float
    unsafe: float
    root: float
    steepness: float
    value: float
    evaluations: int


def smallest_noise(
    bound: Callable[[float], float],
    target: float,
    *,
    start: float,
    least: float,
    most: float,
    accuracy: float,
    steepness: float = 1.0,
) -> SafeRoot:
    """Find the smallest x with bound(x) <= target, to a relative accuracy, by safeguarded secants of logarithms.

    Parameters
    ----------
    bound : callable
        Decreasing in x, positive; may be infinite.
    target : float
    start, least, most : float
        First guess and limits of x.
    accuracy : float
        Relative distance of the two ends of the answer.
    steepness : float
        A guess of -d log bound / d log x near the root.

    Raises
    ------
    UnsupportedError
        If even x = most does not meet the target.
    """
    seen: list[tuple[float, float]] = []

    def gap(x: float) -> float:
        value = bound(x)
        seen.append((x, value))
        return math.log(value / target) if 0 < value < math.inf else math.copysign(40.0, value - target)

    low, high = least, most
    gap_low, gap_high = math.nan, math.nan
    x = min(max(start, least), most)
    # a little beyond where the root should be, so that the bracket closes on it from both sides
    margin = 0.4 * math.log1p(accuracy)
    for _ in range(_MOST):
        g = gap(x)
        if g <= 0:
            high, gap_high = x, g
        else:
            low, gap_low = x, g
        if (not math.isnan(gap_high) and high <= low * (1 + accuracy)) or high == least:
            break
        if math.isnan(gap_high) or math.isnan(gap_low):
            if low == most:
                raise UnsupportedError(
                    f"the target cannot be met with noise up to {most:g}, where the bound is {seen[-1][1]:g}; raise it"
                )
            reach = min(abs(g) / steepness + margin * 2 ** (len(seen) - 1), _WIDEST)
            x = min(max(x * math.exp(math.copysign(reach, g)), least), most)
        else:
            u = math.log(low) + gap_low / (gap_low - gap_high) * math.log(high / low)
            u += margin if gap_low < -gap_high else -margin
            inner = 0.02 * math.log(high / low)
            x = math.exp(min(max(u, math.log(low) + inner), math.log(high) - inner))
    value = next(v for at, v in reversed(seen) if at == high)
    if math.isnan(gap_low):
        # `low` is still the limit that it began with, of which nothing is known
        return SafeRoot(high, 0.0, high, steepness, value, len(seen))
    apart = math.log(high / low)
    root = low * math.exp(gap_low / (gap_low - gap_high) * apart)
    fall = min(max((gap_low - gap_high) / apart, 0.2), 20.0)
    return SafeRoot(high, low, root, fall, value, len(seen))


MOST_NOISE = 1e4
_GUESS, _ROUGH = 0.5, 0.15
_STEPS_DOWN = 6


@dataclass(frozen=True)
class NoiseCalibration:
    """A safe noise multiplier and what is known below it.

    Attributes
    ----------
    noise_multiplier : float
        Proved: the upper bound of epsilon at this noise is at most the target.
    necessary : float
        Refuted: with this noise multiplier or less an attack exceeds the target; 0 if no attack is known.
    evaluations : int
        How many upper bounds of full accuracy were computed.
    account : Account
        Bounds of epsilon at `noise_multiplier` and the target delta.
    """

    noise_multiplier: float
    necessary: float
    evaluations: int
    account: Account


def calibrate_noise(
    sampler: Sampler,
    n: int | None = None,
    *,
    steps: int,
    target_epsilon: float,
    target_delta: float,
    adjacency: str | None = None,
    mechanism: str = "gaussian",
    accuracy: float = 1e-3,
) -> NoiseCalibration:
    """Find a noise multiplier for which the releases are proved (target_epsilon, target_delta)-DP.

    Bounds on single coarse grids say where to look; what is returned was computed to full accuracy.

    Parameters
    ----------
    sampler, n, steps, mechanism, adjacency
        As in `dpsub.accounting.account.rigorous`.
    target_epsilon : float
        Nats, above 0.
    target_delta : float
        In (0, 1).
    accuracy : float
        Relative distance between the answer and a smaller multiplier that is not proved.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    UnsupportedError
        If no bound covers the case, or no multiplier up to 1e4 meets the target.

    Examples
    --------
    >>> from dpsub.sampling import Poisson
    >>> target = {"steps": 100, "target_epsilon": 1.0, "target_delta": 1e-5}
    >>> found = calibrate_noise(Poisson(0.01), accuracy=0.01, **target)
    >>> found.account.upper <= 1.0                  # proved at this noise
    True
    >>> found.necessary < found.noise_multiplier    # refuted at this and less
    True
    >>> 0.85 < found.noise_multiplier < 0.95
    True
    """
    target = checks.real("target_epsilon", target_epsilon, above=0)
    closeness = checks.real("accuracy", accuracy, above=0, below=1)
    question = Target(delta=target_delta, width=max(target * closeness, 1e-9))
    accounts: dict[float, Account] = {}

    @cache
    def at(noise: float) -> Proof:
        return Proof.of([Release(sampler, n, noise, steps, mechanism)], adjacency)

    def bound(noise: float) -> float:
        accounts[noise] = at(noise).upper(question)
        return accounts[noise].upper

    def rough(noise: float) -> float:
        return at(noise).ledger.rough(question, "upper", at(noise).ledger.spread / 4)

    limits = {"least": MIN_SCALE, "most": MOST_NOISE}
    # where all losses were Gaussian, only their variance would matter
    spread = 1 / Gaussian.calibrated(target, target_delta, math.sqrt(steps)).scale
    start, steepness = 1.0, 1.0
    searches: tuple[tuple[Callable[[float], float], float, float], ...] = (
        (lambda noise: at(noise).ledger.spread, spread, _GUESS),
        (rough, target, _ROUGH),
    )
    for measure, goal, rough_accuracy in searches:
        try:
            near = smallest_noise(measure, goal, start=start, accuracy=rough_accuracy, steepness=steepness, **limits)
        except UnsupportedError:
            # what is rough may miss by little what is proved: that is asked last, and gives the reason
            start = MOST_NOISE
        else:
            start, steepness = near.root, near.steepness
    found = smallest_noise(bound, target, start=start, accuracy=closeness, steepness=steepness, **limits)
    proof = at(found.safe)
    exact = proof.ledger.one_number
    account = accounts[found.safe] if exact else proof.account(question)

    def attack(noise: float) -> float:
        return at(noise).ledger.rough(question, "lower", proof.ledger.spread / 24)

    necessary = 0.0
    if found.unsafe > 0 and exact:
        # both ends bracket one number: the attack succeeds where the proof fails, or a little below
        reached = accounts[found.unsafe].lower > target
        tried = (found.unsafe * (1 - closeness * 2**i) for i in range(_STEPS_DOWN) if closeness * 2**i < 1)
        necessary = found.unsafe if reached else next((noise for noise in tried if attack(noise) > target), 0.0)
    elif found.unsafe > 0 and proof.ledger.attacked:
        below = found.unsafe * (1 - closeness)
        necessary = smallest_noise(
            attack, target, start=below, accuracy=closeness, steepness=found.steepness, **limits
        ).unsafe
    return NoiseCalibration(found.safe, necessary, found.evaluations, account)


Bounds = Callable[..., Account]
"""`proved` or `rigorous`."""

MOST_STEPS = 10_000_000
_LEAST_RATE = 1e-9
_MOST_ROUNDS = 60
_WIDEST_STRETCH = math.log(16)


@dataclass(frozen=True)
class Found:
    """The largest value that was proved, and what stops it.

    Attributes
    ----------
    value : float
        Proved: at this value the upper bound of epsilon is at most the target.
    not_proved : float or None
        The smallest value tried whose upper bound exceeds the target; None if the search ended at its limit.
    evaluations : int
        How many upper bounds were computed.
    account : Account
        Bounds of epsilon at `value` and the target delta.
    """

    value: float
    not_proved: float | None
    evaluations: int
    account: Account


def largest_steps(
    sampler: Sampler,
    n: int | None = None,
    *,
    noise_multiplier: float,
    target_epsilon: float,
    target_delta: float,
    adjacency: str | None = None,
    mechanism: str = "gaussian",
    accuracy: float = 1e-3,
) -> Found:
    """Find how many releases are proved (target_epsilon, target_delta)-DP together.

    Parameters
    ----------
    sampler, n, noise_multiplier, adjacency, mechanism
        As in `dpsub.accounting.account.rigorous`.
    target_epsilon : float
        Nats, above 0.
    target_delta : float
        In (0, 1).
    accuracy : float
        Relative distance of the answer to a number that is not proved; numbers below 1 / accuracy are told apart.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    UnsupportedError
        If no bound covers the case, or a single release exceeds the target.
    """
    target = checks.real("target_epsilon", target_epsilon, above=0)

    def account(steps: float, bounds: Bounds = proved) -> Account:
        return bounds(
            sampler, n, noise_multiplier=noise_multiplier, steps=int(steps), delta=target_delta,
            adjacency=adjacency, mechanism=mechanism, width=_width(target, accuracy),
        )  # fmt: skip

    # epsilon grows like the root of the number of steps at most and at least linearly in the long run: start low
    mean = sampler.multiplicity_law(1 if n is None else n).mean
    per_root = 2 * mean * math.sqrt(2 * math.log(1.25 / checks.real("target_delta", target_delta, above=0, below=1)))
    start = (target * noise_multiplier / per_root) ** 2 / 2 if mean > 0 else 1.0
    found = largest(account, target, "steps", start=start, least=1, most=MOST_STEPS, accuracy=accuracy, whole=True)
    return _attacked(found, lambda steps: account(steps, rigorous))


def largest_sample(
    make: Callable[[float], Sampler],
    n: int | None = None,
    *,
    most: float,
    whole: bool,
    noise_multiplier: float,
    steps: int,
    target_epsilon: float,
    target_delta: float,
    adjacency: str | None = None,
    mechanism: str = "gaussian",
    accuracy: float = 1e-3,
) -> Found:
    """Find how large a sample may be for the releases to be proved (target_epsilon, target_delta)-DP together.

    Parameters
    ----------
    make : callable
        From a size (`whole`) or a rate to the sampler.
    most : float
        Largest size or rate that makes a sampler.
    whole : bool
        Whether `make` wants a whole number.
    n, noise_multiplier, steps, adjacency, mechanism
        As in `dpsub.accounting.account.rigorous`.
    target_epsilon, target_delta, accuracy
        As in `largest_steps`.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    UnsupportedError
        If no bound covers the case, or the smallest sample exceeds the target.
    """
    target = checks.real("target_epsilon", target_epsilon, above=0)
    steps = checks.integer("steps", steps, at_least=1)
    noise = checks.real("noise_multiplier", noise_multiplier, above=0)

    def account(size: float, bounds: Bounds = proved) -> Account:
        return bounds(
            make(size), n, noise_multiplier=noise, steps=steps, delta=target_delta,
            adjacency=adjacency, mechanism=mechanism, width=_width(target, accuracy),
        )  # fmt: skip

    spread = 2 * math.sqrt(2 * steps * math.log(1.25 / checks.real("target_delta", target_delta, above=0, below=1)))
    share = 0.7 * target * noise / spread
    least = 1.0 if whole else _LEAST_RATE
    start = share * (n or 1) if whole else share
    name = "the size of the sample" if whole else "the rate"
    found = largest(account, target, name, start=start, least=least, most=most, accuracy=accuracy, whole=whole)
    return _attacked(found, lambda size: account(size, rigorous))


def largest(
    account: Callable[[float], Account],
    target: float,
    name: str,
    *,
    start: float,
    least: float,
    most: float,
    accuracy: float,
    whole: bool,
) -> Found:
    """Find the largest x whose account has an upper end of at most `target`, by safeguarded secants of logarithms.

    Parameters
    ----------
    account : callable
        From x to an account whose upper end grows with x; where it does not, the answer is still proved.
    target : float
    name : str
        What x is, for messages.
    start, least, most : float
        First guess and limits of x.
    accuracy : float
        Relative distance between the answer and a value that is not proved.
    whole : bool
        Whether x is a whole number.

    Raises
    ------
    UnsupportedError
        If x = least is not proved.
    """
    closeness = checks.real("accuracy", accuracy, above=0, below=1)
    safe: tuple[float, float, Account] | None = None
    over: tuple[float, float] | None = None
    x, evaluations, one_sided = _rounded(min(max(start, least), most), whole), 0, 0
    while evaluations < _MOST_ROUNDS:
        found = account(x)
        evaluations += 1
        usual = 0 < found.upper < math.inf
        gap = math.log(found.upper / target) if usual else math.copysign(40.0, found.upper - target)
        if found.upper <= target:
            safe = (x, gap, found)
        else:
            over = (x, gap)
        if over is not None and over[0] <= least:
            raise UnsupportedError(
                f"{name} of {least:g} already has a bound of {found.upper:.4g} above the target {target:g}; add noise"
            )
        if safe is not None and (safe[0] >= most or (over is not None and _close(safe[0], over[0], closeness, whole))):
            break
        if safe is not None and over is not None:
            x = _between(safe, over, closeness, whole)
        else:
            one_sided += 1
            x = min(max(_further(x, gap, closeness * 2**one_sided, whole), least), most)
    if safe is None:
        raise UnsupportedError(f"no {name} from {least:g} was proved within {evaluations} accounts; add noise")
    return Found(safe[0], None if over is None else over[0], evaluations, safe[2])


def _attacked(found: Found, account: Callable[[float], Account]) -> Found:
    """The same with both ends of the account, of which the search needed the upper one only."""
    return replace(found, account=account(found.value)) if found.account.kind == "upper" else found


def _further(x: float, gap: float, reach: float, whole: bool) -> float:
    """Beyond x, where the sign of the gap points to; `reach` is added so that no bound, however flat, holds it up."""
    moved = x * math.exp(-math.copysign(min(1.2 * abs(gap) + reach, _WIDEST_STRETCH), gap))
    if not whole:
        return moved
    return math.floor(min(moved, x - 1)) if gap > 0 else math.ceil(max(moved, x + 1))


def _between(safe: tuple[float, float, Account], over: tuple[float, float], closeness: float, whole: bool) -> float:
    log_safe, log_over = math.log(safe[0]), math.log(over[0])
    share = -safe[1] / (over[1] - safe[1])
    u = log_safe + share * (log_over - log_safe)
    # aimed a little to the far side of the root, so that the bracket closes from both sides
    margin = 0.3 * math.log1p(closeness)
    u += margin if -safe[1] < over[1] else -margin
    inner = 0.02 * (log_over - log_safe)
    x = math.exp(min(max(u, log_safe + inner), log_over - inner))
    return min(max(float(round(x)), safe[0] + 1), over[0] - 1) if whole else x


def _close(safe: float, over: float, closeness: float, whole: bool) -> bool:
    return over <= safe * (1 + closeness) or (whole and over - safe <= 1)


def _rounded(x: float, whole: bool) -> float:
    return float(math.floor(x)) if whole else x


def _width(target: float, accuracy: float) -> float:
    """Numerical accuracy of accounts: as close as the search is to be."""
    return max(target * checks.real("accuracy", accuracy, above=0, below=1), 1e-9)
