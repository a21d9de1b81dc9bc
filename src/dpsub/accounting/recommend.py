"""Subsampling schemes of given sizes, by name: what `dpsub recommend` and the tournament compare."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from dpsub import checks
from dpsub.accounting.account import Proof, Release, deadline_after
from dpsub.accounting.bracket import Composition, Target
from dpsub.accounting.pairs import MIN_SCALE
from dpsub.accounting.pld import time_limited
from dpsub.accounting.search import MOST_NOISE, SafeRoot, safe_root
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.noise import Gaussian
from dpsub.sampling import (
    CyclicPoisson,
    Deterministic,
    Multistage,
    MustOW,
    MustWW,
    Poisson,
    RandomAllocation,
    Sampler,
    Schedule,
    Shuffle,
    TruncatedPoisson,
    Wor,
    Wr,
)

CYCLE = 10
"""Groups of cyclic Poisson sampling."""
_LIMITS: dict[str, Any] = {"name": "a noise multiplier", "least": MIN_SCALE, "most": MOST_NOISE}
_FINER, _ATTACKED, _FINEST = 0.8, 24.0, 64.0
"""Steps of a grid in a standard deviation of the loss: of proofs at first, times the root of 1 / accuracy, as what
grids add falls with the square of the step; of attacks; and after which proofs are refined no more."""

Plan = Sampler | Schedule


def _steps(n: int, m: int, epochs: int) -> int:
    return epochs * -(-n // m)


SCHEMES: dict[str, Callable[[int, int, int], Plan]] = {
    "poisson": lambda n, m, epochs: Poisson(m / n),
    # three standard deviations above the mean: about one batch in a thousand is cut
    "truncated_poisson": lambda n, m, epochs: TruncatedPoisson(m / n, min(n, m + math.ceil(3 * math.sqrt(m)))),
    "wor": lambda n, m, epochs: Wor(m),
    "wr": lambda n, m, epochs: Wr(m),
    "must_ow": lambda n, m, epochs: MustOW(2 * m, m),
    "must_ww": lambda n, m, epochs: MustWW(2 * m, m),
    "three_stage": lambda n, m, epochs: Multistage.of_text(f"wor:{4 * m},wr:{2 * m},wor:{m}"),
    "random_allocation": lambda n, m, epochs: RandomAllocation(-(-n // m)),
    "k_of_t": lambda n, m, epochs: RandomAllocation(_steps(n, m, epochs), epochs),
    "shuffle": lambda n, m, epochs: Shuffle(m),
    "cyclic_poisson": lambda n, m, epochs: CyclicPoisson(CYCLE * m / n, CYCLE),
    "deterministic": lambda n, m, epochs: Deterministic(m),
}
"""Each scheme's sampler or schedule for n records, batches of (expected) size m, and epochs."""


def scheme(name: str, n: int, m: int, epochs: int) -> tuple[Plan, int]:
    """Return the sampler or schedule called `name` in `SCHEMES`, and the steps of all epochs, n / m each, rounded up.

    Raises
    ------
    ArgumentError
        If there is no such scheme, or it is not there for these sizes.
    """
    checks.one_of("scheme", name, SCHEMES)
    n, epochs = checks.integer("n", n, at_least=1), checks.integer("epochs", epochs, at_least=1)
    m, steps = checks.integer("m", m, at_least=1, at_most=n, at_most_name="n"), _steps(n, m, epochs)
    if name == "cyclic_poisson" and (steps % CYCLE or CYCLE * m > n):
        raise ArgumentError(f"cyclic_poisson needs a number of steps that {CYCLE} divides, and {CYCLE} m <= n, "
                            f"got n = {n}, m = {m}, epochs = {epochs}")  # fmt: skip
    return SCHEMES[name](n, m, epochs), steps


class Needed(NamedTuple):
    """The noise that releases need for a target (epsilon, delta).

    Attributes
    ----------
    noise_multiplier : float
        Proved.
    necessary : float
        An attack exceeds the target with this noise multiplier or less; 0 if none is known to.
    epsilon_lower, epsilon_upper : float
        What that attack attains, and what is proved, at `noise_multiplier` and the target delta.
    """

    noise_multiplier: float
    necessary: float
    epsilon_lower: float
    epsilon_upper: float


def needed(
    plan: Plan, n: int, steps: int, *, epsilon: float, delta: float, adjacency: str, accuracy: float = 1e-2,
    time_limit: float | None = None, start: float | None = None,
) -> Needed:  # fmt: skip
    """Find noise that is proved for a target, and the most that an attack refutes.

    As `dpsub.calibrate`, several times as fast: each end is that of one grid, on any of which it holds; grids are made
    finer only where they add more than `accuracy`; and of several attacks only those that overtake the best are sought.

    Parameters
    ----------
    plan, n, steps
        The first and the last as `scheme` returns them for n records.
    epsilon, delta, adjacency
        As in `dpsub.calibrate`.
    accuracy : float
        Relative distance between the answer and a smaller multiplier that is not proved, and what grids may add to it.
    time_limit : float, optional
        Seconds after which the search ends with what was found by then.
    start : float, optional
        A noise multiplier to try first.

    Raises
    ------
    ArgumentError, UnsupportedError, NumericalError
        As `dpsub.calibrate`.
    """
    search = _Search(Release(plan, n, 1.0, steps), adjacency, epsilon, delta, accuracy, time_limit)
    with time_limited(search.target.deadline):
        found, upper = search.proved(start)
        necessary, lower = search.refuted(found)
    if lower > upper * (1 + 1e-9):
        raise NumericalError(f"bounds must not cross, got lower {lower!r} and upper {upper!r}; report the arguments")
    return Needed(found.safe, necessary, min(lower, upper), upper)


class _Search:
    """The ends of single grids, at every noise multiplier, and where they meet a target."""

    def __init__(
        self, release: Release, adjacency: str, epsilon: float, delta: float, accuracy: float, time_limit: float | None
    ) -> None:
        self.epsilon = checks.real("epsilon", epsilon, above=0)
        self.accuracy = checks.real("accuracy", accuracy, above=0, below=1)
        self.target = Target(delta=delta, width=self.epsilon * self.accuracy, deadline=deadline_after(time_limit))
        # where all losses were Gaussian, only their variance would matter
        self.spread = 1 / Gaussian.calibrated(self.epsilon, delta, math.sqrt(release.times)).scale
        self._proof = cache(lambda noise: Proof.of([replace(release, noise_multiplier=noise)], adjacency).composition)
        self.value, self._unit = cache(self._value), cache(self._unit_near)

    def proved(self, start: float | None) -> tuple[SafeRoot, float]:
        """Where the upper end meets the target, and its value there."""
        steepness, finer = 1.0, _FINER / math.sqrt(self.accuracy)
        if start is None:
            try:
                near = safe_root(lambda s: self._proof(s).spread, self.spread, start=1.0, accuracy=0.5, **_LIMITS)
            except UnsupportedError:
                start = MOST_NOISE  # the proof is asked last, and gives the reason
            else:
                start, steepness = near.root, near.steepness
        while True:
            found = self._root(finer, None, start, steepness)
            upper, better = (self.value(found.safe, finer * half, None) for half in (1, 2))
            charged, steepness = upper - better, found.steepness
            if charged <= self.accuracy * steepness * self.epsilon or not better or finer >= _FINEST:
                return found, min(upper, better)
            start, finer = found.safe * (better / self.epsilon) ** (1 / steepness), 4 * finer

    def refuted(self, found: SafeRoot) -> tuple[float, float]:
        """The most noise at which an attack was seen to exceed the target, 0 if none was, and what that attack attains
        at the noise found."""
        best, which = 0.0, 0
        start = (found.safe if found.unsafe is None else found.unsafe) * (1 - self.accuracy)
        for play, composition in enumerate(self._proof(found.safe).plays):
            if not composition.attacked or (best and self.value(best, _ATTACKED, play) <= self.epsilon):
                continue
            try:
                unsafe = self._root(_ATTACKED, play, best or start, found.steepness).unsafe
            except NumericalError:  # not in the time
                break
            if unsafe is not None and unsafe > best:
                best, which = unsafe, play
        return best, self.value(found.safe, _ATTACKED, which)

    def _root(self, finer: float, play: int | None, start: float, steepness: float) -> SafeRoot:
        limits = {"start": start, "steepness": steepness, "accuracy": self.accuracy, **_LIMITS}
        return safe_root(lambda noise: self.value(noise, finer, play), self.epsilon, **limits)

    def _value(self, noise: float, finer: float, play: int | None) -> float:
        """The upper end (`play` None), or what a choice of data sets attains, by a grid of `finer` steps in a standard
        deviation of the loss.  That falls about as 1 / noise, and is asked for at powers of 2 alone."""
        near = min(max(2.0 ** round(math.log2(noise)), MIN_SCALE), MOST_NOISE)
        step = self._unit(near, play) / (noise * finer)
        return self._played(noise, play).rough(self.target, "upper" if play is None else "lower", step)

    def _unit_near(self, noise: float, play: int | None) -> float:
        return noise * self._played(noise, play).spread

    def _played(self, noise: float, play: int | None) -> Composition:
        proof = self._proof(noise)
        # less noise may leave fewer choices of data sets: any of them is an attack
        return proof if play is None else proof.plays[min(play, len(proof.plays) - 1)]
