"""The noise that subsampling schemes need for a target, and which of them needs least."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from dpsub import checks
from dpsub.accounting.account import Proof, crossed
from dpsub.accounting.bracket import Target
from dpsub.accounting.composition import Composition
from dpsub.accounting.pairs import MIN_SCALE
from dpsub.accounting.pld import deadline_after, time_limited
from dpsub.accounting.release import Release
from dpsub.accounting.search import MOST_NOISE, SafeRoot, safe_root
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.noise import Gaussian
from dpsub.relations import Relation
from dpsub.sampling import Schedule, TruncatedPoisson
from dpsub.sampling.schemes import CYCLE, FIXED_SIZE, Plan, fresh_steps, scheme

_LIMITS: dict[str, Any] = {"name": "a noise multiplier", "least": MIN_SCALE, "most": MOST_NOISE}
_FIRST, _FINEST = 4.0, 64.0
"""Steps of a grid in a standard deviation of the loss: at first, where half a step already tells
(laws of allocations are never coarser than a sixth), and from where on they are refined no more."""
_ATTACKED = 8.0  # likewise of attacks, at first
# least accuracy of attacks where there are several: none of them attains what is proved
_SEVERAL = 0.01
# accuracy at first, and what grids may add to the noise, in units of the accuracy
_ROUGH, _CHARGED = 0.05, 0.25

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
    plan: Plan,
    n: int,
    steps: int,
    *,
    epsilon: float,
    delta: float,
    adjacency: str,
    accuracy: float = 1e-2,
    time_limit: float | None = None,
) -> Needed:
    """Find noise that is proved for a target, and the most that an attack refutes.

    As `dpsub.calibrate`, several times as fast: each end is that of one grid, on any of which it
    holds; grids are made finer only where they add more than `accuracy`; and of several attacks
    only those that overtake the best are sought.

    Parameters
    ----------
    plan, n, steps
        The first and the last as `scheme` returns them for n records.
    epsilon, delta, adjacency
        As in `dpsub.calibrate`.
    accuracy : float
        Relative distance between the answer and a smaller multiplier that is not proved, and what
        grids may add to it.
    time_limit : float, optional
        Seconds after which the search ends with what was found by then.

    Raises
    ------
    ArgumentError, UnsupportedError, NumericalError
        As `dpsub.calibrate`.
    """
    with time_limited(deadline_after(time_limit)):
        search = _Search(
            Release(plan, n, 1.0, steps), adjacency, epsilon, delta, accuracy, time_limit
        )
        found, upper = search.proved()
        necessary, lower = search.refuted(found)
    if lower > upper * (1 + 1e-9):
        raise crossed(lower, upper)
    return Needed(found.safe, necessary, min(lower, upper), upper)


class _Search:
    """The ends of single grids, at every noise multiplier, and where they meet a target."""

    def __init__(
        self,
        release: Release,
        adjacency: str,
        epsilon: float,
        delta: float,
        accuracy: float,
        time_limit: float | None,
    ) -> None:
        self.epsilon = checks.real("epsilon", epsilon, above=0)
        self.accuracy = checks.real("accuracy", accuracy, above=0, below=1)
        self.target = Target(
            delta=delta, width=self.epsilon * self.accuracy, deadline=deadline_after(time_limit)
        )
        # where all losses were Gaussian, only their variance would matter
        self.spread = 1 / Gaussian.calibrated(self.epsilon, delta, math.sqrt(release.times)).scale
        self._proof = cache(
            lambda noise: (
                Proof.of([replace(release, noise_multiplier=noise)], adjacency).composition
            )
        )
        self.value = cache(self._value)
        self._units: dict[tuple[int, int | None], float] = {}
        self._proof(1.0)  # what no theorem covers is said before the time is up

    def proved(self) -> tuple[SafeRoot, float]:
        """Where the upper end meets the target, and its value there; on coarse grids first."""
        steepness, finer, accuracy = 1.0, _FIRST, max(_ROUGH, self.accuracy)
        try:
            near = safe_root(
                lambda s: self._proof(s).spread, self.spread, start=1.0, accuracy=0.5, **_LIMITS
            )
        except UnsupportedError:
            start = MOST_NOISE  # the proof is asked last, and gives the reason
        else:
            start, steepness = near.root, near.steepness
        best: tuple[SafeRoot, float] | None = None
        while True:
            try:
                found = self._root(finer, None, start, steepness, accuracy)
            except NumericalError:  # not in the time
                if best is None:
                    raise
                return best
            steepness = found.steepness
            better, charged = self._charged(found.safe, finer, None, steepness)
            if best is None or found.safe < best[0].safe:
                best = found, min(self.value(found.safe, finer, None), better)
            if (
                (charged <= 1 and accuracy == self.accuracy)
                or not 0 < better < math.inf
                or finer >= _FINEST
            ):
                return best
            start, accuracy = found.safe * (better / self.epsilon) ** (1 / steepness), self.accuracy
            finer *= _refined(charged)

    def refuted(self, found: SafeRoot) -> tuple[float, float]:
        """The most noise at which an attack was seen to exceed the target, 0 if none was, and what
        that attack attains at the noise found."""
        best, lower, choices = 0.0, 0.0, self._proof(found.safe).attack_choices
        accuracy = self.accuracy if len(choices) == 1 else max(self.accuracy, _SEVERAL)
        start = (found.safe if found.unsafe is None else found.unsafe) * (1 - self.accuracy)
        # at the best noise, if it is to be overtaken
        more = self.epsilon * (1 + accuracy * found.steepness)
        with suppress(NumericalError):  # what is not found in the time
            for choice, composition in enumerate(choices):
                if composition.attacked and (
                    not best or self.value(best, _ATTACKED, choice) > more
                ):
                    unsafe, finer = self._attacked(choice, best or start, found.steepness, accuracy)
                    if unsafe > best or not choice:
                        best, lower = unsafe, self.value(found.safe, finer, choice)
        return best, lower

    def _attacked(
        self, choice: int, start: float, steepness: float, accuracy: float
    ) -> tuple[float, float]:
        """The most noise at which one choice of data sets was seen to exceed the target, 0 if none,
        and the grid."""
        finer, best = _ATTACKED, 0.0
        with suppress(NumericalError):
            if self._played(start, choice).is_exact:
                # so near what is proved it attains something, if the grid can show it
                while not self.value(start, finer, choice):
                    if finer >= _FINEST:
                        return best, finer
                    finer *= 2
            while (
                unsafe := self._root(finer, choice, start, steepness, accuracy).unsafe
            ) is not None:
                best = max(best, unsafe)
                better, charged = self._charged(unsafe, finer, choice, steepness)
                if charged <= 1 or finer >= _FINEST:
                    break
                start, finer = (
                    unsafe * (better / self.epsilon) ** (1 / steepness),
                    finer * _refined(charged),
                )
        return best, finer

    def _charged(
        self, noise: float, finer: float, choice: int | None, steepness: float
    ) -> tuple[float, float]:
        """The end on a grid of half the step, and what the grid charges to the noise, over what it
        may."""
        value, better = (self.value(noise, finer * half, choice) for half in (1, 2))
        return better, abs(value - better) / (self.epsilon * steepness * self.accuracy * _CHARGED)

    def _root(
        self, finer: float, choice: int | None, start: float, steepness: float, accuracy: float
    ) -> SafeRoot:
        limits = {"start": start, "steepness": steepness, "accuracy": accuracy, **_LIMITS}
        return safe_root(lambda noise: self.value(noise, finer, choice), self.epsilon, **limits)

    def _value(self, noise: float, finer: float, choice: int | None) -> float:
        """The upper end (`choice` None), or what a choice of data sets attains, by a grid of
        `finer` steps in a standard deviation of the loss. That falls about as 1 / noise, and is
        asked for once an octave."""
        composition, octave = self._played(noise, choice), round(math.log2(noise))
        if (octave, choice) not in self._units:
            self._units[octave, choice] = noise * composition.spread
        step = self._units[octave, choice] / (noise * finer)
        return composition.rough(self.target, "upper" if choice is None else "lower", step)

    def _played(self, noise: float, choice: int | None) -> Composition:
        proof = self._proof(noise)
        # less noise may leave fewer choices of data sets: any of them is an attack
        return (
            proof
            if choice is None
            else proof.attack_choices[min(choice, len(proof.attack_choices) - 1)]
        )


def _refined(charged: float) -> float:
    """By how much a grid must be finer: what it charges falls with the square of its step."""
    return 2.0 ** math.ceil(math.log2(max(charged, 1.0)) / 2)


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
    >>> found = dpsub.recommend(1000, batch_size=250, epochs=1, **target, time_limit=60)
    >>> found.schemes[0].name, 2.03 < found.schemes[0].noise_multiplier < 2.05
    ('random_allocation', True)
    >>> wor = next(one for one in found.schemes if one.name == "wor")
    >>> wor.refuted > found.schemes[0].noise_multiplier    # an attack shows that WOR needs more
    True
    """
    target: dict[str, Any] = {
        "epsilon": checks.real("epsilon", epsilon, above=0),
        "delta": checks.real("delta", delta, above=0, below=1),
        "adjacency": checks.one_of("adjacency", adjacency, list(Relation)),
    }
    deadline = time.monotonic() + checks.real("time_limit", time_limit, above=0)
    n = checks.integer("n", n, at_least=1)
    m = checks.integer("batch_size", batch_size, at_least=1, at_most=n, at_most_name="n")
    epochs = checks.integer("epochs", epochs, at_least=1)
    noises: dict[str, tuple[Plan, int, Needed]] = {}
    left_out: dict[str, str] = {}
    for name in _ORDER:
        try:
            plan, steps = scheme(name, n, m, epochs)
            if not isinstance(plan, Schedule):
                steps = fresh_steps(m / n, epochs)
            share = max(_SHARE * (deadline - time.monotonic()), 1e-3)
            noises[name] = (
                plan,
                steps,
                needed(plan, n, steps, **target, accuracy=_ACCURACY, time_limit=share),
            )
        except NumericalError:
            left_out[name] = _LATE
        except (ArgumentError, UnsupportedError) as error:
            left_out[name] = str(error)
    if not noises:
        raise UnsupportedError(
            f"no scheme was proved to meet the target, poisson not as: {left_out['poisson']}"
        )
    once = {"random_allocation", "shuffle", "deterministic"}
    once |= {"k_of_t"} if epochs == 1 else set()
    once |= (
        {"poisson", "truncated_poisson", "wor"}
        if m == n
        else {"cyclic_poisson"}
        if CYCLE * m == n
        else set()
    )
    # what the search cannot tell apart stays in the order of its use
    close = min(found.noise_multiplier for *_, found in noises.values()) * (1 + _ACCURACY)
    ordered = sorted(noises.items(), key=lambda one: max(one[1][2].noise_multiplier, close))
    least = ordered[0][1][2].noise_multiplier
    schemes = [
        SchemeNoise(
            name,
            plan,
            found.noise_multiplier,
            found.necessary,
            found.noise_multiplier / least,
            steps,
            plan.expected_distinct(n) * steps,
            *_batches(name, plan, n, m, steps),
            every_epoch=name in once,
        )
        for name, (plan, steps, found) in ordered
    ]
    even = tuple(one.name for one in schemes[1:] if one.refuted < least)
    return Recommendation(
        tuple(schemes), even, left_out, least / m, _reasons(schemes, even, left_out)
    )


def _batches(name: str, plan: Plan, n: int, m: int, steps: int) -> tuple[int, int]:
    """The largest batch possible, and one that no batch exceeds but with probability
    `_EXCEEDED`."""
    if name not in (
        "poisson",
        "truncated_poisson",
        "random_allocation",
        "k_of_t",
        "cyclic_poisson",
    ):
        return m, m
    largest = -(-n // CYCLE) if name == "cyclic_poisson" else n
    if isinstance(plan, TruncatedPoisson):
        largest = plan.max_batch
    # Bernstein's inequality for each batch, a sum of independent inclusions of mean m, and a union
    # bound
    logs = math.log(steps / _EXCEEDED)
    return largest, min(
        largest, math.ceil(m + logs / 3 + math.sqrt((logs / 3) ** 2 + 2 * logs * m))
    )


def _reasons(
    schemes: list[SchemeNoise], even: tuple[str, ...], left_out: dict[str, str]
) -> tuple[str, ...]:
    """What follows from the numbers, those of proofs rounded up and those of attacks down."""
    first, by_name = schemes[0], {one.name: one for one in schemes}

    def proved(one: SchemeNoise) -> str:
        return f"{one.noise_multiplier * (1 + 5e-5):.5g}"

    def refuted(one: SchemeNoise) -> str:
        return f"{one.refuted * (1 - 5e-5):.5g}"

    others = (
        ("attacks refute that noise for all others")
        if len(schemes) > 1
        else "nothing is proved of another"
    )
    if even:
        known = ", ".join(name for name in even if by_name[name].refuted > 0)
        unknown = ", ".join(name for name in even if not by_name[name].refuted > 0)
        parts = (
            [f"no attack refutes that noise for {known}, which may need as little"] if known else []
        )
        others = "; ".join(
            [*parts, f"no attack at all is known for {unknown}"] if unknown else parts
        )
    reasons = [f"{first.name} needs the least noise that is proved, {proved(first)}; {others}."]
    fixed = [one for one in schemes if one.name in FIXED_SIZE]
    if fixed and fixed[0] is not first:
        more, certain = fixed[0].ratio - 1, fixed[0].refuted / first.noise_multiplier - 1
        known = f", and at least {certain:.1%} more by an attack" if certain > 0 else ""
        size = f"Independent batches of one size ({fixed[0].name})"
        reasons.append(f"{size} are proved with {more:.1%} more noise{known}.")
    poisson, shuffle = by_name.get("poisson"), by_name.get("shuffle")
    if shuffle is None and left_out["shuffle"] != _LATE:
        reasons.append(
            f"Do not give a shuffled loader the noise of poisson: {left_out['shuffle']}."
        )
    elif shuffle is not None and poisson is not None and shuffle is not first:
        failing = shuffle.refuted >= poisson.noise_multiplier
        attacked = (
            (f"an attack refutes {refuted(shuffle)}")
            if shuffle.refuted
            else "no attack on it is known"
        )
        reasons.append(
            f"A shuffled loader is proved with {proved(shuffle)}, as if nothing were random, and "
            f"{attacked}: the noise of poisson, {proved(poisson)}, is "
            f"{'refuted' if failing else 'not proved'} for it."
        )
    if late := [name for name, reason in left_out.items() if reason == _LATE]:
        reasons.append(
            f"Time was too short for {', '.join(late)}, which may need less: allow more."
        )
    if first.noise_multiplier == MIN_SCALE:
        reasons.append(
            f"{MIN_SCALE:g} is the least noise that is considered: ratios to it say little."
        )
    return tuple(reasons)
