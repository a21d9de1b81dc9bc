"""The noise that subsampling schemes need for a target, and which of them needs least.

`recommend` asks `needed` for the noise of every scheme, within its share of the time, and puts the
answers in words. `needed` is a search (`dpsub.accounting.search`) whose bounds are those of one
grid each, on any of which they hold: grids are made finer only where they add more to the noise
than the accuracy allows.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from dpsub import checks
from dpsub.accounting.account import crossed
from dpsub.accounting.composition import Composition
from dpsub.accounting.pairs import MIN_SCALE
from dpsub.accounting.pld import time_limited
from dpsub.accounting.release import Release
from dpsub.accounting.roots import SafeRoot
from dpsub.accounting.search import NOISE, Candidates, Goal, Level, Search
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling import Schedule
from dpsub.sampling.schemes import FIXED_SIZE, Plan, fresh_steps, scheme, scheme_names

_ORDER = (
    "poisson",
    "deterministic",
    "wor",
    "random_allocation",
    "truncated_poisson",
    "k_of_t",
    "wr",
    "cyclic_poisson",
    "shuffle",
    "three_stage",
    "must_ow",
    "must_ww",
)
"""In which `recommend` asks for the noise of schemes: what few use, and takes long, comes last."""
_ACCURACY = 3e-3
_LATE = "nothing was proved of it in its share of the time; allow more"
_SHARE = 0.5  # of the time that is left, for the next scheme
_EXCEEDED = 1e-3  # probability that some batch of the training is larger than `likely_batch`
_RANDOM_SIZES = ("poisson", "truncated_poisson", "random_allocation", "k_of_t", "cyclic_poisson")
"""Schemes whose batches differ in size."""
# relative, what is added to a noise that is proved, and taken from a refuted one, before both are
# printed with five digits: rounding then ends on the safe side
_PRINTED = 5e-5

# steps of a grid in a standard deviation of the loss: of proofs and of attacks at first, where half
# a step already tells (PLDs of allocations are never coarser than a sixth), and from where on they
# are refined no more
_FIRST_STEPS, _FIRST_ATTACK_STEPS, _MOST_STEPS = 4.0, 8.0, 64.0
# accuracy at first, and what grids may add to the noise, in units of the accuracy
_ROUGH, _CHARGED = 0.05, 0.25
# least accuracy of attacks where there are several: none of them attains what is proved
_SEVERAL = 0.01


@dataclass(frozen=True)
class SchemeNoise:
    """What one scheme needs and costs.

    Attributes
    ----------
    name : str
        Of `dpsub.sampling.schemes.SCHEMES`.
    sampler : Sampler or Schedule
        What draws its batches.
    noise_multiplier : float
        Proved.
    refuted : float
        With this noise multiplier or less an attack exceeds the target; 0 if none is known to.
    ratio : float
        Of the noise multiplier to that of the first scheme.
    steps : int
        Number of batches.
    gradients : float
        Expected number of gradients of the training: records of all batches, copies within a batch
        counted once.
    largest_batch, likely_batch : int
        Size of the largest batch possible, and one that no batch of the training exceeds with
        probability 99.9 %.
    every_epoch : bool
        Whether each record is in one batch of each epoch.
    """

    name: str
    sampler: Plan
    noise_multiplier: float
    refuted: float
    ratio: float
    steps: int
    gradients: float
    largest_batch: int
    likely_batch: int
    every_epoch: bool


@dataclass(frozen=True)
class Recommendation:
    """Schemes by the noise that is proved for them.

    Attributes
    ----------
    schemes : tuple of SchemeNoise
        The least noise first; those that are as close as the search is accurate, 0.3 %, in the
        order of their use.
    even : tuple of str
        Schemes for which no attack refutes the noise of the first one: they may need as little.
    left_out : dict
        Why the others are not among them, by name.
    noise_on_mean : float
        Noise on the mean gradient of a batch over the clipping norm: noise multiplier of the first
        over batch size.
    reasons : tuple of str
        The answer in sentences.
    """

    schemes: tuple[SchemeNoise, ...]
    even: tuple[str, ...]
    left_out: dict[str, str]
    noise_on_mean: float
    reasons: tuple[str, ...]


def recommend(
    n: int,
    *,
    batch_size: int,
    epochs: int,
    epsilon: float,
    delta: float,
    adjacency: str = "add_remove",
    time_limit: float = 10.0,
) -> Recommendation:
    """Say which subsampling scheme needs the least noise for a target, by what is proved, and what
    each costs.

    Parameters
    ----------
    n, batch_size, epochs : int
        Number of records, (expected) size of a batch, and epochs. Batches that are drawn afresh are
        epochs n / batch_size, rounded up, as `dpsub account --epochs` counts them; in schedules
        each epoch has n / batch_size of them, rounded up.
    epsilon, delta : float
        Target for the whole training: epsilon in nats, above 0, and delta in (0, 1).
    adjacency : {"add_remove", "zero_out", "substitute"}
        As in `dpsub.account`, the same for all schemes.
    time_limit : float
        Seconds, for all schemes together; those of which nothing was proved in their share of it
        are left out.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    UnsupportedError
        If no scheme was proved to meet the target.

    Examples
    --------
    >>> import dpsub
    >>> target = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "zero_out"}
    >>> answer = dpsub.recommend(1000, batch_size=250, epochs=1, **target, time_limit=60)
    >>> first = answer.schemes[0]
    >>> first.name, 2.03 < first.noise_multiplier < 2.05
    ('random_allocation', True)
    >>> wor = next(scheme for scheme in answer.schemes if scheme.name == "wor")
    >>> wor.refuted > first.noise_multiplier    # an attack shows that WOR needs more
    True
    """
    epsilon = checks.real("epsilon", epsilon, above=0)
    delta = checks.real("delta", delta, above=0, below=1)
    adjacency = checks.one_of("adjacency", adjacency, list(Relation))
    # the limit is for all schemes together, each of which gets half of what is left
    deadline = time.monotonic() + checks.real("time_limit", time_limit, above=0)
    n = checks.integer("n", n, at_least=1)
    m = checks.integer("batch_size", batch_size, at_least=1, at_most=n, at_most_name="n")
    epochs = checks.integer("epochs", epochs, at_least=1)
    proved: dict[str, _ProvedScheme] = {}
    left_out: dict[str, str] = {}
    others = (name for name in scheme_names() if name not in _ORDER)
    for name in (*_ORDER, *others):
        try:
            plan, steps = scheme(name, n, m, epochs)
            if not isinstance(plan, Schedule):
                # a schedule rounds each epoch up to whole batches, fresh samples all of them once
                steps = fresh_steps(m / n, epochs)
            share = max(_SHARE * (deadline - time.monotonic()), 1e-3)
            goal = Goal(epsilon, delta, adjacency, _ACCURACY, share)
            noise = needed(Release(plan, n, 1.0, steps), goal)
            proved[name] = _ProvedScheme(plan, steps, noise)
        except NumericalError:
            left_out[name] = _LATE
        except (ArgumentError, UnsupportedError) as error:
            left_out[name] = str(error)
    if not proved:
        raise UnsupportedError(
            f"no scheme was proved to meet the target, poisson not as: {left_out['poisson']}"
        )
    schemes = _ranked(proved, n, m)
    least = schemes[0].noise_multiplier
    # what no attack refutes may need as little as the first, whose noise alone is known to do
    even = tuple(other.name for other in schemes[1:] if other.refuted < least)
    reasons = _reasons(schemes, even, left_out)
    return Recommendation(tuple(schemes), even, left_out, least / m, reasons)


class _ProvedScheme(NamedTuple):
    """A scheme for which noise is proved, and how much."""

    plan: Plan
    steps: int
    noise: Needed


def _ranked(proved: dict[str, _ProvedScheme], n: int, m: int) -> list[SchemeNoise]:
    """The schemes by their noise, and what each costs."""
    # what the search cannot tell apart stays in the order of its use
    close = min(answer.noise.noise_multiplier for answer in proved.values()) * (1 + _ACCURACY)
    names = sorted(proved, key=lambda name: max(proved[name].noise.noise_multiplier, close))
    least = proved[names[0]].noise.noise_multiplier
    schemes = []
    for name in names:
        plan, steps, noise = proved[name]
        largest_batch, likely_batch = _batches(plan, n, m, steps)
        answer = SchemeNoise(
            name=name,
            sampler=plan,
            noise_multiplier=noise.noise_multiplier,
            refuted=noise.necessary,
            ratio=noise.noise_multiplier / least,
            steps=steps,
            gradients=plan.expected_distinct(n) * steps,
            largest_batch=largest_batch,
            likely_batch=likely_batch,
            every_epoch=_every_epoch(plan, n),
        )
        schemes.append(answer)
    return schemes


def _every_epoch(plan: Plan, n: int) -> bool:
    """Whether each record is in one batch of each epoch."""
    if isinstance(plan, Schedule):
        return plan.occurrences == 1
    return plan.has_all_once(n)


def _batches(plan: Plan, n: int, m: int, steps: int) -> tuple[int, int]:
    """The largest batch possible, and one that no batch exceeds but with probability
    `_EXCEEDED`."""
    largest = plan.largest_size(n)
    if largest <= m:
        return largest, largest  # all batches have one size
    # Bernstein's inequality for each batch, a sum of independent inclusions of mean m, and a union
    # bound over the steps
    log_odds = math.log(steps / _EXCEEDED)
    likely = math.ceil(m + log_odds / 3 + math.sqrt((log_odds / 3) ** 2 + 2 * log_odds * m))
    return largest, min(largest, likely)


def _reasons(
    schemes: list[SchemeNoise], even: tuple[str, ...], left_out: dict[str, str]
) -> tuple[str, ...]:
    """What follows from the numbers, those of proofs rounded up and those of attacks down."""
    first = schemes[0]
    by_name = {answer.name: answer for answer in schemes}
    noise, others = _proved_text(first), _others(schemes, even)
    reasons = [f"{first.name} needs the least noise that is proved, {noise}; {others}."]
    fixed = [answer for answer in schemes if answer.name in FIXED_SIZE]
    if fixed and fixed[0] is not first:
        reasons.append(_of_fixed_size(fixed[0], first))
    shuffle = by_name.get("shuffle")
    if shuffle is None and left_out["shuffle"] != _LATE:
        reasons.append(
            f"Do not give a shuffled loader the noise of poisson: {left_out['shuffle']}."
        )
    elif shuffle is not None and shuffle is not first and "poisson" in by_name:
        reasons.append(_of_shuffling(shuffle, by_name["poisson"]))
    if late := [name for name, reason in left_out.items() if reason == _LATE]:
        reasons.append(
            f"Time was too short for {', '.join(late)}, which may need less: allow more."
        )
    if first.noise_multiplier == MIN_SCALE:
        reasons.append(
            f"{MIN_SCALE:g} is the least noise that is considered: ratios to it say little."
        )
    return tuple(reasons)


def _others(schemes: list[SchemeNoise], even: tuple[str, ...]) -> str:
    """What is known of the schemes that come after the first one."""
    if len(schemes) == 1:
        return "nothing is proved of another"
    if not even:
        return "attacks refute that noise for all others"
    attacked = {answer.name for answer in schemes if answer.refuted > 0}
    known = ", ".join(name for name in even if name in attacked)
    unknown = ", ".join(name for name in even if name not in attacked)
    clauses = []
    if known:
        clauses.append(f"no attack refutes that noise for {known}, which may need as little")
    if unknown:
        clauses.append(f"no attack at all is known for {unknown}")
    return "; ".join(clauses)


def _of_fixed_size(fixed: SchemeNoise, first: SchemeNoise) -> str:
    certain = fixed.refuted / first.noise_multiplier - 1
    attacked = f", and at least {certain:.1%} more by an attack" if certain > 0 else ""
    return (
        f"Independent batches of one size ({fixed.name}) are proved with {fixed.ratio - 1:.1%} "
        f"more noise{attacked}."
    )


def _of_shuffling(shuffle: SchemeNoise, poisson: SchemeNoise) -> str:
    attacked = "no attack on it is known"
    if shuffle.refuted:
        attacked = f"an attack refutes {shuffle.refuted * (1 - _PRINTED):.5g}"
    verdict = "refuted" if shuffle.refuted >= poisson.noise_multiplier else "not proved"
    return (
        f"A shuffled loader is proved with {_proved_text(shuffle)}, as if nothing were random, and "
        f"{attacked}: the noise of poisson, {_proved_text(poisson)}, is {verdict} for it."
    )


def _proved_text(answer: SchemeNoise) -> str:
    return f"{answer.noise_multiplier * (1 + _PRINTED):.5g}"


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


def needed(release: Release, goal: Goal) -> Needed:
    """Find noise that is proved for a goal, and the most that an attack refutes.

    As `dpsub.calibrate`, several times as fast: each end is that of one grid, on any of which it
    holds; grids are made finer only where they add more than `goal.accuracy`; and of several
    attacks only those that overtake the best are sought.

    Parameters
    ----------
    release : Release
        With any noise multiplier.
    goal : Goal
        Its accuracy is the relative distance between the answer and a smaller multiplier that is
        not proved, and what grids may add to it; its time limit ends the search with what was found
        by then.

    Raises
    ------
    UnsupportedError, NumericalError
        As `dpsub.calibrate`.
    """
    candidates = Candidates(lambda noise: [replace(release, noise_multiplier=noise)], NOISE, goal)
    with time_limited(goal.deadline):
        candidates.proof(1.0)  # what no theorem covers is said before the time is up
        grids = SingleGrids(candidates)
        proved, upper = _least_proved(grids, release.times)
        necessary, lower = _most_refuted(grids, proved)
    # an attack above the proof at one noise would be a fault of one of them
    if lower > upper * (1 + 1e-9):
        raise crossed(lower, upper)
    return Needed(proved.safe, necessary, min(lower, upper), upper)


def _least_proved(grids: SingleGrids, times: int) -> tuple[SafeRoot, float]:
    """Where the upper end meets the target, and its value there."""
    candidates, accuracy = grids.candidates, grids.candidates.goal.accuracy
    search = ProofSearch(grids, *candidates.start_by_variance(times))
    proved = search.found(Level(_FIRST_STEPS, max(_ROUGH, accuracy)))
    return proved, search.upper


def _most_refuted(grids: SingleGrids, proved: SafeRoot) -> tuple[float, float]:
    """The most noise at which an attack was seen to exceed the target, 0 if none was.

    And what that attack attains at the noise that is proved.
    """
    goal, choices = grids.candidates.goal, grids.candidates.composition(proved.safe).attack_choices
    accuracy = goal.accuracy if len(choices) == 1 else max(goal.accuracy, _SEVERAL)
    # an attack cannot refute what is proved: it is sought from the next number below
    nearest = proved.safe if proved.unsafe is None else proved.unsafe
    start = nearest * (1 - goal.accuracy)
    # what an attack must attain at the most noise so far, to move it by the accuracy
    overtaking = goal.epsilon * (1 + accuracy * proved.steepness)
    refuted, lower = 0.0, 0.0
    with suppress(NumericalError):  # what is not found in the time
        for choice, composition in enumerate(choices):
            if not composition.attacked:
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
    """Bounds of a candidates from one grid each, with as many steps as are asked for."""

    def __init__(self, candidates: Candidates) -> None:
        self.candidates = candidates
        self.bound = cache(self._bound)
        self._units: dict[tuple[int, int | None], float] = {}

    def _bound(self, noise: float, steps: float, choice: int | None) -> float:
        """The upper end (`choice` None), or what a choice of data sets attains.

        By a grid of so many `steps` in a standard deviation of the loss. That falls about as
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
        composition = self.candidates.composition(noise)
        if choice is None:
            return composition
        # less noise may leave fewer choices of data sets: any of them is an attack
        choices = composition.attack_choices
        return choices[min(choice, len(choices) - 1)]


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
        """Level after one whose root has this noise, and where to start there."""
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
    """Search for the least noise that is proved; `upper` is what is proved at the best root."""

    def __init__(self, grids: SingleGrids, start: float, steepness: float) -> None:
        super().__init__(grids, None, start, steepness, grids.candidates.goal.accuracy)
        self.upper = math.inf
        self._last: SafeRoot | None = None

    def accept(self, root: SafeRoot, level: Level) -> None:
        self.steepness = root.steepness
        self._last = root
        # both grids bound the truth: the smaller one counts
        bound = self.bound(root.safe, level)
        sharper = self.grids.bound(root.safe, 2 * level.steps, None)
        if self.best is None or root.safe < self.best.safe:
            self.best, self.upper = root, min(bound, sharper)

    def finer(self, level: Level) -> Level | None:
        assert self._last is not None
        return self.next_level(self._last.safe, level)

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
        """Of the last grid."""
        self.refuted = 0.0
        self._last: float | None = None

    def most_noise(self) -> float:
        """That noise, 0 if none is found in the time."""
        with suppress(NumericalError):
            if self._is_seen():
                self.run(Level(self.steps, self.accuracy))
        return self.refuted

    def _is_seen(self) -> bool:
        """Whether a grid, `steps`, shows that the attack attains anything where it starts."""
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
        self._last = root.unsafe
        self.refuted = max(self.refuted, root.unsafe or 0.0)

    def finer(self, level: Level) -> Level | None:
        return None if self._last is None else self.next_level(self._last, level)
