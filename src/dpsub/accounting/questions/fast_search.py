"""A faster search for the noise that releases need, with bounds of a single grid each.

A bound holds on any grid, so a search need not refine each of them. This one finds the root on a
coarse grid and compares it with a grid of half the step. It takes a finer grid only if the coarse
one adds more to the noise than a quarter of the accuracy (docs/proofs/numerics.md, "Calibration").
That is several times as fast as `dpsub.calibrate`, for rankings of many schemes and studies of many
cells.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from dpsub.accounting.engine import work
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.engine.roots import SafeRoot, safe_root
from dpsub.accounting.questions.account import crossed
from dpsub.accounting.questions.search import (
    Calibration,
    Candidates,
    FullSearch,
    Goal,
    Level,
    Search,
    noise_axis,
)
from dpsub.accounting.release import Release
from dpsub.errors import NumericalError

# steps of a grid in a standard deviation of the loss: of proofs and of attacks at first, where half
# a step already tells (PLDs of allocations are never coarser than a sixth), and from where on they
# are refined no more
_FIRST_STEPS, _FIRST_ATTACK_STEPS, _MOST_STEPS = 4.0, 8.0, 64.0
# accuracy at first, and what grids may add to the noise, in units of the accuracy
_ROUGH, _CHARGED = 0.05, 0.25
_FIRST_ACCURACY = 0.02  # accuracy of noise by closed-form bounds
# least accuracy of attacks where there are several: none of them attains what is proved
_SEVERAL = 0.01


class Needed(NamedTuple):
    """The noise that releases need for a target (epsilon, delta).

    Attributes
    ----------
    noise_multiplier : float
        Proved.
    necessary : float
        An attack exceeds the target with this noise multiplier or less; 0 if none is known to.
    epsilon_lower, epsilon_upper : float
        The attained and the proved epsilon at `noise_multiplier` and the target delta.
    """

    noise_multiplier: float
    necessary: float
    epsilon_lower: float
    epsilon_upper: float


def needed(release: Release, goal: Goal) -> Needed:
    """Find noise that is proved for a goal, and the most that an attack refutes.

    This is `dpsub.calibrate`, several times as fast: each bound is computed on a single grid, which
    is made finer only if it adds more than `goal.accuracy`, and an attack is searched for only if
    it refutes more noise than the best one so far.

    Parameters
    ----------
    release : Release
        With any noise multiplier.
    goal : Goal
        Its accuracy is the relative distance between the answer and a smaller multiplier that is
        not proved, and what grids may add to it. The budget of work ends the search with what was
        found by then.

    Raises
    ------
    UnsupportedError, NumericalError
        As `dpsub.calibrate`.
    """
    candidates = _candidates(release, goal)
    grids = SingleGrids(candidates)
    proved, upper = _least_proved(grids, release.times)
    necessary, lower = _most_refuted(grids, proved)
    # an attack above the proof at one noise would be a fault of one of them
    if lower > upper * (1 + 1e-9):
        raise crossed(lower, upper)
    return Needed(proved.safe, necessary, min(lower, upper), upper)


def _candidates(release: Release, goal: Goal) -> Candidates:
    """Return the releases with any noise multiplier."""
    axis = noise_axis(release)
    return Candidates(lambda noise: [replace(release, noise_multiplier=noise)], axis, goal)


def first_needed(release: Release, goal: Goal) -> Needed:
    """Find the same as `needed`, by closed-form bounds alone, which cost milliseconds and are
    farther apart."""
    candidates = _candidates(release, goal)

    @cache
    def ends(noise: float) -> tuple[float, float]:
        [account] = candidates.proof(noise).first_ends([goal.target])
        return float(account.lower), float(account.upper)

    with work.uncounted():
        proved = safe_root(
            lambda x: ends(x)[1],
            goal.epsilon,
            candidates.axis,
            start=1.0,
            accuracy=_FIRST_ACCURACY,
        )
        attack = safe_root(
            lambda x: ends(x)[0],
            goal.epsilon,
            replace(candidates.axis, name="an attack"),
            start=proved.safe,
            accuracy=_FIRST_ACCURACY,
        )
    return Needed(proved.safe, attack.unsafe or 0.0, *ends(proved.safe))


def tightened(release: Release, goal: Goal, known: Needed) -> Needed:
    """Find less noise than is known to be needed, by the game of the adaptive adversary where there
    is one, as far as the budget of work reaches.

    Parameters
    ----------
    release, goal
        As in `needed`.
    known : Needed
        What it found.
    """
    candidates = _candidates(release, goal)
    proof = candidates.proof(known.noise_multiplier)
    if not (proof.tightens and known.necessary):
        return known
    account = proof.account(goal.target)
    first = Calibration(known.noise_multiplier, known.necessary, 0, account, goal.epsilon)
    # epsilon of many steps falls about as 1 / noise
    found = FullSearch(candidates, known.noise_multiplier, 1.0).tightened(first, 1.0)
    if found.noise_multiplier == known.noise_multiplier:
        return known
    return Needed(
        found.noise_multiplier,
        max(known.necessary, found.refuted or 0.0),
        float(found.account.lower),
        float(found.account.upper),
    )


def _least_proved(grids: SingleGrids, times: int) -> tuple[SafeRoot, float]:
    """Return the root at which the upper bound meets the target, and its value there."""
    candidates, accuracy = grids.candidates, grids.candidates.goal.accuracy
    search = ProofSearch(grids, *candidates.start_by_variance(times))
    proved = search.best_root(Level(_FIRST_STEPS, max(_ROUGH, accuracy)))
    return proved, search.upper


def _most_refuted(grids: SingleGrids, proved: SafeRoot) -> tuple[float, float]:
    """Return the most noise at which an attack was seen to exceed the target, 0 if none was.

    Also return the epsilon that this attack attains at the noise that is proved.
    """
    goal, composition = grids.candidates.goal, grids.candidates.composition(proved.safe)
    choices = composition.attack_choices
    fine = len(choices) == 1 or any(event.close_choices for event, _ in composition.entries)
    accuracy = goal.accuracy if fine else max(goal.accuracy, _SEVERAL)
    # an attack cannot refute what is proved: it is sought from the next number below
    nearest = proved.safe if proved.unsafe is None else proved.unsafe
    start = nearest * (1 - goal.accuracy)
    # what an attack must attain at the most noise so far, to move it by the accuracy
    overtaking = goal.epsilon * (1 + accuracy * proved.steepness)
    refuted, lower = 0.0, 0.0
    with suppress(NumericalError):  # the budget may end the search
        for choice, attacked in enumerate(choices):
            if not attacked.attacked:
                continue
            # of the other choices only those that refute more noise are sought
            if refuted and grids.bound(refuted, _FIRST_ATTACK_STEPS, choice) <= overtaking:
                continue
            attack = AttackSearch(grids, choice, refuted or start, proved.steepness, accuracy)
            unsafe = attack.most_noise()
            if unsafe > refuted or choice == 0:
                refuted = unsafe
                lower = grids.bound(proved.safe, attack.steps, choice)
    return refuted, lower


class SingleGrids:
    """Bounds of candidates from one grid each, with as many steps as are asked for."""

    def __init__(self, candidates: Candidates) -> None:
        self.candidates = candidates
        self.bound = cache(self._bound)
        self._units: dict[tuple[int, int | None], float] = {}

    def _bound(self, noise: float, steps: float, choice: int | None) -> float:
        """Return the upper bound (`choice` None), or the bound that a choice of data sets attains.

        It takes a grid of so many `steps` in a standard deviation of the loss. That falls about as
        1 / noise, and is computed once an octave.
        """
        composition, octave = self.composition(noise, choice), round(math.log2(noise))
        # the deviation takes as long as a coarse bound, and any unit of steps is valid
        if (octave, choice) not in self._units:
            self._units[octave, choice] = noise * composition.spread
        step = self._units[octave, choice] / (noise * steps)
        side = "upper" if choice is None else "lower"
        return composition.rough(self.candidates.goal.target, side, step)

    def composition(self, noise: float, choice: int | None) -> Composition:
        if choice is None:
            return self.candidates.composition(noise)
        return self.candidates.attack(noise, choice)


class SingleGridSearch(Search):
    """Search on single grids, which are made finer while they add too much to the noise.

    Parameters
    ----------
    grids : SingleGrids
    choice : int or None
        Of the data sets of the attack; None: the proof.
    start, steepness : float
        Where to look first, and how steep the bound may be there.
    accuracy : float
        Relative, of the last root.
    """

    def __init__(
        self,
        grids: SingleGrids,
        choice: int | None,
        start: float,
        steepness: float,
        accuracy: float,
    ) -> None:
        super().__init__(grids.candidates, start, steepness)
        self.grids, self.choice, self.accuracy = grids, choice, accuracy

    def bound(self, x: float, level: Level) -> float:
        return self.grids.bound(x, level.steps, self.choice)

    def next_level(self, noise: float, level: Level) -> Level | None:
        """Return the level after one whose root has this noise, and where to start there."""
        bound = self.bound(noise, level)
        # errors fall with the square of the step: a grid of half of it has a quarter of them
        sharper = self.grids.bound(noise, 2 * level.steps, self.choice)
        # what the grid adds to the noise, over what it may add
        allowed = self.goal.epsilon * self.steepness * self.goal.accuracy * _CHARGED
        charged = abs(bound - sharper) / allowed
        if charged <= 1 and level.accuracy == self.accuracy:
            return None
        if level.steps >= _MOST_STEPS or not 0 < sharper < math.inf:
            return None
        self.start = noise * (sharper / self.goal.epsilon) ** (1 / self.steepness)
        # in powers of 2, so that orders recur and their profile is known
        finer = 2.0 ** math.ceil(math.log2(max(charged, 1.0)) / 2)
        return Level(level.steps * finer, self.accuracy)


class ProofSearch(SingleGridSearch):
    """Search for the least noise that is proved; `upper` is the proved bound at the best root."""

    def __init__(self, grids: SingleGrids, start: float, steepness: float) -> None:
        super().__init__(grids, None, start, steepness, grids.candidates.goal.accuracy)
        self.upper = math.inf

    def accept(self, root: SafeRoot, level: Level) -> None:
        self.steepness = root.steepness
        # both grids bound the truth: the smaller one counts
        bound = self.bound(root.safe, level)
        sharper = self.grids.bound(root.safe, 2 * level.steps, None)
        if self.best is None or root.safe < self.best.safe:
            self.best, self.upper = root, min(bound, sharper)

    def finer(self, level: Level) -> Level | None:
        assert self.root is not None
        return self.next_level(self.root.safe, level)

    def coarser(self, level: Level, error: NumericalError) -> Level | None:
        if self.best is None:
            raise error
        return None  # what was proved on a coarser grid holds


class AttackSearch(SingleGridSearch):
    """Search for the most noise at which one choice of data sets is seen to exceed the target."""

    def __init__(
        self, grids: SingleGrids, choice: int, start: float, steepness: float, accuracy: float
    ) -> None:
        super().__init__(grids, choice, start, steepness, accuracy)
        self.steps = _FIRST_ATTACK_STEPS
        """The noise of the last grid."""
        self.refuted = 0.0

    def most_noise(self) -> float:
        """Return the most noise at which the attack exceeds the target, 0 if none is found within
        the budget."""
        with suppress(NumericalError):
            if self._is_seen():
                self.run(Level(self.steps, self.accuracy))
        return self.refuted

    def _is_seen(self) -> bool:
        """Whether a grid of `steps` shows that the attack attains anything where it starts."""
        if not self.grids.composition(self.start, self.choice).is_exact:
            return True
        # so near what is proved it attains something, if the grid can show it
        while not self.grids.bound(self.start, self.steps, self.choice):
            if self.steps >= _MOST_STEPS:
                return False
            self.steps *= 2
        return True

    def evaluate(self, level: Level) -> None:
        self.steps = level.steps
        super().evaluate(level)

    def accept(self, root: SafeRoot, level: Level) -> None:
        self.refuted = max(self.refuted, root.unsafe or 0.0)

    def finer(self, level: Level) -> Level | None:
        if self.root is None or self.root.unsafe is None:
            return None  # no noise was seen at which the attack exceeds the target
        return self.next_level(self.root.unsafe, level)
