"""Recommendation of the subsampling scheme that needs the least noise for a target.

`recommend` searches for the noise of every scheme (`fast_search.needed`), each with a share of the
effort, and explains the ranking in words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

from dpsub import checks
from dpsub.accounting.engine import work
from dpsub.accounting.engine.pairs import MIN_SCALE
from dpsub.accounting.questions import plot, words
from dpsub.accounting.questions.fast_search import Needed, first_needed, needed, tightened
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.questions.question import (
    Question,
    QuickKeywords,
    check_names,
)
from dpsub.accounting.questions.search import Goal
from dpsub.accounting.release import Group, Release, group_text
from dpsub.accounting.schemes import DEFAULTS
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.relations import Relation, relation_named
from dpsub.sampling import Schedule
from dpsub.sampling.schemes import FIXED_SIZE, Plan, fresh_steps, scheme, scheme_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ORDER = (
    "poisson",
    "deterministic",
    "wor",
    "random_allocation",
    "truncated_poisson",
    "wr",
    "cyclic_poisson",
    "secret_cyclic_poisson",
    "shuffle",
    "persistent_shuffle",
    "three_stage",
    "must_ow",
    "must_ww",
    "k_of_t",
)
"""Order in which `recommend` asks for the noise of schemes: those that few use, and that take long,
come last."""
_SHUFFLE = "shuffle"
_ACCURACY = 3e-3
_DRAWN_SHARE = 0.5  # of the effort of the question, for one scheme at one batch size of a picture
_APART = 0.01  # relative distance of lines in a picture
_FACTORS = (0.25, 0.5, 1, 2, 4)
"""Batch sizes of a picture, over that of the question."""
_SHOWN = 4  # ratios of other schemes in a few words
# of the budget, for a first look at each scheme, and of what is left, for the next one that is open
_FIRST_SHARE, _NEXT_SHARE = 1 / 48, 2 / 3
# of what first looks leave, for shuffled batches where no theorem covers the relation: many train
# with them, and nothing looks at them again
_SHUFFLE_SHARE = 1 / 3
_EFFORT = 4.0  # for a dozen schemes together, times that of one question
_FIRST_ENDS = "Closed-form bounds, docs/proofs/first_ends.md"
_EXCEEDED = 1e-3  # probability that some batch of the training is larger than `likely_batch`
# relative, what is added to a noise that is proved, and taken from a refuted one, before both are
# printed with five digits: rounding then ends on the safe side
_PRINTED = 5e-5


@dataclass(frozen=True)
class SchemeNoise:
    """The noise that one scheme needs, and its costs.

    Attributes
    ----------
    name : str
        Its name in `dpsub.sampling.schemes.SCHEMES`.
    sampler : Sampler or Schedule
        Sampler or schedule that draws its batches.
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
    theorem, lower_theorem : str
        What proves the noise, and where the attack that refutes less stands, with the page of
        docs/proofs.
    adjacency : str
        The relation of this noise.
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
    theorem: str = ""
    lower_theorem: str = ""
    adjacency: str = ""

    @property
    def is_refined(self) -> bool:
        """Whether grids proved the noise; closed-form bounds may be far above what is needed."""
        return self.theorem != _FIRST_ENDS


@dataclass(frozen=True)
class Recommendation(words.ShortText):
    """Schemes ranked by the noise that is proved for them.

    Attributes
    ----------
    schemes : tuple of SchemeNoise
        The least noise first; those that are as close as the search is accurate, 0.3 %, in the
        order of their use.
    even : tuple of str
        Schemes for which no attack refutes the noise of the first one: they may need as little.
    left_out : dict
        Reasons why the others are not among them, by name.
    noise_on_mean : float
        Noise on the mean gradient of a batch over the clipping norm: noise multiplier of the first
        over batch size.
    reasons : tuple of str
        The answer in sentences.
    question : str
        The target and the training, in words.
    adjacency : str
        The relation.
    group : int or tuple of int
        Number of records that one unit of privacy holds.
    elsewhere : tuple of SchemeNoise
        Schemes without a theorem under this relation, with their noise under the first of
        add_remove, zero_out and substitute that covers them. They are not ranked: noise under
        different relations does not compare, but under add_remove and zero_out for Poisson samples,
        which need the same.
    """

    schemes: tuple[SchemeNoise, ...]
    even: tuple[str, ...]
    left_out: dict[str, str]
    noise_on_mean: float
    reasons: tuple[str, ...]
    question: str = ""
    adjacency: str = ""
    group: Group = 1
    elsewhere: tuple[SchemeNoise, ...] = ()
    _training: _Training | None = field(default=None, repr=False, compare=False)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the noise of the first schemes that differ by a percent, and of shuffled batches,
        over the batch size, and write the picture if a path is given; errors as in `Account.plot`.

        Each scheme is looked at again for each size, with half of the effort of this answer, which
        takes a minute or two by default.
        """
        return self.drawn(path)[0]

    def drawn(self, path: str | Path | None = None) -> tuple[Figure, dict[str, list[int]]]:
        """Draw as `plot` does; also return the batch sizes for which nothing was proved, by
        scheme."""
        plot.check_can_plot(path)
        assert self._training is not None
        goal = self._training.goal
        curves = self._training.curves(self)
        figure = plot.schemes_figure(curves, goal.epsilon, goal.delta)
        if path is not None:
            plot.save(figure, path)
        sizes = self._training.sizes()
        missing = {
            name: [m for m in sizes if m not in {point[0] for point in points}]
            for name, points in curves.items()
        }
        return figure, {name: left_out for name, left_out in missing.items() if left_out}

    def text(self) -> words.Text:
        """The answer in a few words, as `print` shows it."""
        first, *others = self.schemes
        best = f"one of {', '.join([first.name, *self.even])}" if self.even else first.name
        title = f"{best}: the least noise for {self.question}"
        noise = words.noise_text(first.noise_multiplier, first.refuted or None)
        ratios = [f"{other.name} {other.ratio:.3f}" for other in others[:_SHOWN]]
        more = ", ..." if len(others) > _SHOWN else ""
        mean = f"{words.near(self.noise_on_mean)} C on the mean of a batch"
        lines: list[words.Line] = [
            ("relation", self.relation_text()),
            ("noise multiplier", f"{noise}; {mean}"),
            ("times this noise", ", ".join(ratios) + more),
            ("theorem", words.theorem_text(first)),
        ]
        notes = []
        if self.even:
            notes.append(f"no attack refutes this noise for {', '.join(self.even)}")
        lines += [(each.name, self.elsewhere_text(each)) for each in self.elsewhere]
        lines.append(("note", "; ".join([*notes, *self.unrefined_text()])))
        return words.Text(title, [line for line in lines if line[1]])

    def unrefined_text(self) -> list[str]:
        """Return a sentence on the schemes whose noise is known by closed forms alone, if any."""
        coarse = [each for each in (*self.schemes, *self.elsewhere) if not each.is_refined]
        if not coarse:
            return []
        names = ", ".join(
            each.name if each.adjacency == self.adjacency else f"{each.name} under {each.adjacency}"
            for each in coarse
        )
        return [
            f"not refined, by closed forms alone: {names}; ask dpsub calibrate, or raise effort"
        ]

    def elsewhere_text(self, other: SchemeNoise) -> str:
        """Return the noise of a scheme under another relation, and why it is that one."""
        noise = words.noise_text(other.noise_multiplier, other.refuted or None)
        return f"no theorem covers {self.adjacency}; under {other.adjacency}: {noise}"

    def relation_text(self) -> str:
        """Return the relation of all schemes, and the relations under which their epsilons compare
        with those that Opacus prints."""
        relation = relation_named(self.adjacency)
        text = words.relation_of_group(relation, self.group)
        if self.group != 1:
            return text  # what Opacus prints is about one record
        if relation is Relation.ADD_REMOVE:
            return f"{text}, as in Opacus; at fixed sizes compare with zero_out"
        return f"{text}{words.compared_with_opacus(relation, ())}"


@dataclass(frozen=True)
class _Training:
    """The question of a recommendation."""

    n: int
    m: int
    epochs: int
    group: Group
    goal: Goal
    effort: float

    def release(self, name: str) -> Release | str:
        """Return the training with a scheme, or the reason why there is none."""
        try:
            return replace(training_with(name, self.n, self.m, self.epochs), group=self.group)
        except (ArgumentError, UnsupportedError) as error:
            return str(error)

    def curves(self, answer: Recommendation) -> dict[str, list[tuple[float, float, float]]]:
        """Return batch sizes with the noise that is proved and refuted for them, by scheme."""
        known = {each.name: each for each in answer.schemes}
        drawn = _apart(answer.schemes)[: plot.MOST_SCHEMES]
        if _SHUFFLE in known and _SHUFFLE not in drawn:
            drawn[plot.MOST_SCHEMES - 1 :] = [_SHUFFLE]
        curves: dict[str, list[tuple[float, float, float]]] = {name: [] for name in drawn}
        for size in self.sizes():
            resized = replace(self, m=size)
            for name in drawn:
                found = [noise] if (noise := resized.noise_of(name)) else []
                if size == self.m:
                    found.append(Needed(known[name].noise_multiplier, known[name].refuted, 0, 0))
                if found:
                    least = min(noise.noise_multiplier for noise in found)
                    most = max(noise.necessary for noise in found)
                    curves[name].append((size, least, most))
        return curves

    def sizes(self) -> list[int]:
        """Return the batch sizes of a picture."""
        sizes = [round(factor * self.m) for factor in _FACTORS]
        return [size for size in sizes if 0 < size <= self.n]

    def noise_of(self, name: str) -> Needed | None:
        """Return the noise of one scheme after a look at it; None if nothing is proved."""
        release = self.release(name)
        if isinstance(release, str):
            return None
        with (
            work.metered(_DRAWN_SHARE * self.effort),
            suppress(ArgumentError, UnsupportedError, NumericalError),
        ):
            return _looked_at(release, Proof.of([release], self.goal.adjacency), self.goal).noise
        return None


def _apart(schemes: Sequence[SchemeNoise]) -> list[str]:
    """Return the schemes, the least noise first, without those whose lines would hide others."""
    names: list[str] = []
    last = 0.0
    for each in sorted(schemes, key=lambda each: each.noise_multiplier):
        if each.noise_multiplier > (1 + _APART) * last:
            names.append(each.name)
            last = each.noise_multiplier
    return names


def training_with(name: str, n: int, m: int, epochs: int) -> Release:
    """Return the training of so many epochs whose batches of (expected) size m a scheme draws, with
    a noise multiplier of 1.

    Raises
    ------
    ArgumentError
        If there is no such scheme, or it does not fit these sizes.
    """
    plan, steps = scheme(name, n, m, epochs)
    if not isinstance(plan, Schedule):
        # a schedule rounds each epoch up to whole batches, fresh samples all of them once
        steps = fresh_steps(m / n, epochs)
    return Release(plan, n, 1.0, steps)


def noise_of_training(
    name: str,
    release: Release,
    m: int,
    goal: Goal,
    *,
    effort: float = _EFFORT,
    near: float = 0.0,
) -> SchemeNoise:
    """Return the noise that a training with one scheme needs, as `recommend` finds it for each of
    its schemes, with all of the effort for this one.

    Parameters
    ----------
    name : str
        What to call the scheme.
    release : Release
        The training, with any noise multiplier.
    m : int
        (Expected) size of a batch.
    goal : Goal
        What it must meet, with the relation.
    effort : float
        As in `recommend`.
    near : float
        Where the proved noise is at most this much above a refuted one, relative to it, less is not
        sought by the game.

    Raises
    ------
    UnsupportedError
        If no theorem covers the scheme, or none proves that any noise multiplier up to 1e4 meets
        the target: with the reason that `recommend` gives for leaving it out.
    """
    with work.metered(effort):
        proved, left_out = _first_bounds({name: release}, goal)
        if not proved:
            raise UnsupportedError(left_out[name])
        proved = _closer(proved, goal, quick=True)
        if proved[name].noise.noise_multiplier > (1 + near) * proved[name].noise.necessary:
            proved = _closer(proved, goal, quick=False)
    return _costs(name, proved[name], proved[name].noise.noise_multiplier, m)


def recommend(
    n: int,
    *,
    batch_size: int,
    epochs: int,
    epsilon: float,
    delta: float,
    group: Group = 1,
    **asked: Unpack[QuickKeywords],
) -> Recommendation:
    """Say which subsampling scheme needs the least noise for a target, by what is proved, and the
    costs of each.

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
    group : int or tuple of int
        As in `dpsub.account`: number of records that one unit of privacy holds.
    effort, time_limit : float or None
        As in `dpsub.account`, for all schemes together: first a look at each, then the ones that
        may need least.
    quick : bool
        Use first bounds alone. Otherwise less noise is sought by the game of `dpsub.account`,
        within the budget, for schemes that have one: some with batches of a fixed size, under
        substitute.

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
    >>> answer = dpsub.recommend(1000, batch_size=250, epochs=1, **target)
    >>> first = answer.schemes[0]
    >>> first.name, 2.03 < first.noise_multiplier < 2.05
    ('random_allocation', True)
    >>> wor = next(scheme for scheme in answer.schemes if scheme.name == "wor")
    >>> wor.refuted > first.noise_multiplier    # an attack shows that WOR needs more
    True
    """
    epsilon = checks.real("epsilon", epsilon, above=0)
    delta = checks.real("delta", delta, above=0, below=1)
    check_names(asked, QuickKeywords)
    asked.setdefault("adjacency", str(Relation.ADD_REMOVE))
    asked.setdefault("effort", _EFFORT * Question.about(()).budget)
    question = Question.about((), **asked)
    adjacency = relation_named(question.adjacency)
    n = checks.integer("n", n, at_least=1)
    m = checks.integer("batch_size", batch_size, at_least=1, at_most=n, at_most_name="n")
    epochs = checks.integer("epochs", epochs, at_least=1)
    goal = Goal(epsilon, delta, adjacency, _ACCURACY)
    with question.metered():
        training = _Training(n, m, epochs, group, goal, question.budget)
        trainings = {name: training.release(name) for name in _names()}
        proved, left_out = _first_bounds(trainings, goal)
        if not proved:
            raise UnsupportedError(
                "no scheme was proved to meet the target; poisson was left out because "
                f"{left_out['poisson']}"
            )
        others = _under_others(trainings, left_out, goal)
        proved = _closer(proved, goal, quick=question.quick)
    schemes = _ranked(proved, m)
    least = schemes[0].noise_multiplier
    # a scheme that no attack refutes may need as little as the first, whose noise is known to do
    even = tuple(other.name for other in schemes[1:] if other.refuted < least)
    elsewhere = tuple(_costs(name, other, least, m) for name, other in others.items())
    reasons = _reasons(schemes, even, elsewhere)
    target = (
        f"epsilon {words.near(epsilon)} at delta {words.near(delta)}, "
        f"{words.plural(epochs, 'epoch')} of batches of {m:,} out of {n:,} records"
        f"{group_text(group)}"
    )
    return Recommendation(
        tuple(schemes),
        even,
        left_out,
        least / m,
        reasons,
        target,
        str(adjacency),
        group,
        elsewhere,
        training,
    )


def _names() -> tuple[str, ...]:
    """Return the names of all schemes, in the order in which their noise is asked for."""
    return *_ORDER, *(name for name in scheme_names() if name not in _ORDER)


def _first_bounds(
    trainings: Mapping[str, Release | str], goal: Goal
) -> tuple[dict[str, _ProvedScheme], dict[str, str]]:
    """Return the schemes that are proved to meet the goal, each after a first look, and the reasons
    why the others are not."""
    proved: dict[str, _ProvedScheme] = {}
    left_out: dict[str, str] = {}
    budget = work.left() / work.UNITS
    for name, release in trainings.items():
        if isinstance(release, str):
            left_out[name] = release
            continue
        try:
            proof = Proof.of([release], goal.adjacency)
            before = work.refusals()
            with work.limited(_FIRST_SHARE * budget):
                found = _looked_at(release, proof, goal)
        except (ArgumentError, UnsupportedError) as error:
            left_out[name] = str(error)
            continue
        proved[name] = found._replace(is_open=work.refusals() > before)
    return proved, left_out


def _under_others(
    trainings: Mapping[str, Release | str], names: Iterable[str], goal: Goal
) -> dict[str, _ProvedScheme]:
    """Return the schemes that a theorem covers under another relation than that of the goal, each
    after a first look, under the first such relation; a closer look at shuffled batches."""
    found: dict[str, _ProvedScheme] = {}
    budget = work.left() / work.UNITS
    for name in names:
        release = trainings[name]
        for relation in () if isinstance(release, str) else DEFAULTS:
            assert isinstance(release, Release)
            share = _SHUFFLE_SHARE if name == _SHUFFLE else _FIRST_SHARE
            with suppress(ArgumentError, UnsupportedError), work.limited(share * budget):
                other = replace(goal, adjacency=relation)
                found[name] = _looked_at(release, Proof.of([release], relation), other)
                break
    return found


def _looked_at(release: Release, proof: Proof, goal: Goal) -> _ProvedScheme:
    """Return the scheme with its noise by grids, or by closed-form bounds where the budget does not
    suffice."""
    before = work.refusals()
    try:
        noise, by = needed(release, goal), proof.theorem
    except NumericalError:
        noise, by = first_needed(release, goal), _FIRST_ENDS
    # an attack that the budget ended may refute less than the closed forms do
    if by != _FIRST_ENDS and (not noise.necessary or work.refusals() > before):
        first = first_needed(release, goal)
        noise = noise._replace(necessary=max(noise.necessary, first.necessary))
    return _ProvedScheme(release, noise, proof, by)


def _closer(
    proved: dict[str, _ProvedScheme], goal: Goal, *, quick: bool
) -> dict[str, _ProvedScheme]:
    """Return the schemes with less noise, as far as the remaining work proves it: first those that
    may need least, as the ranking is open between them."""
    closer = dict(proved)

    def least() -> float:
        return min(each.noise.noise_multiplier for each in closer.values())

    def promise(name: str) -> tuple[bool, float]:
        return closer[name].noise.necessary >= least(), closer[name].noise.necessary

    looked_at: set[str] = set()
    while open_ones := [name for name in closer if closer[name].is_open and name not in looked_at]:
        name = min(open_ones, key=promise)
        looked_at.add(name)
        with work.share(_NEXT_SHARE), suppress(NumericalError):
            less = needed(closer[name].release, goal)
            closer[name] = closer[name].with_noise(less, closer[name].proof.theorem)
    for name in [] if quick else sorted(closer, key=promise):
        game = closer[name].proof.cases[0].game
        if game is None:
            continue
        with work.share(_NEXT_SHARE), suppress(NumericalError):
            less = tightened(closer[name].at_its_noise, goal, closer[name].noise)
            closer[name] = closer[name].with_noise(less, game.theorem.text)
    return closer


class _ProvedScheme(NamedTuple):
    """A scheme, and the noise that is proved for it."""

    release: Release
    noise: Needed
    proof: Proof
    theorem: str
    """The theorem that proves the noise."""
    is_open: bool = False
    """Whether more work may prove less noise, or refute more."""

    def with_noise(self, noise: Needed, theorem: str) -> _ProvedScheme:
        """Return the scheme with the better ones of its noise and of another, which a theorem
        proves."""
        most = max(noise.necessary, self.noise.necessary)
        if noise.noise_multiplier >= self.noise.noise_multiplier:
            noise, theorem = self.noise, self.theorem
        return self._replace(noise=noise._replace(necessary=most), theorem=theorem, is_open=False)

    @property
    def at_its_noise(self) -> Release:
        return replace(self.release, noise_multiplier=self.noise.noise_multiplier)

    @property
    def lower_theorem(self) -> str:
        """Page of the attack that refutes less noise."""
        return self.proof.attack_stands if self.noise.necessary else ""


def _ranked(proved: dict[str, _ProvedScheme], m: int) -> list[SchemeNoise]:
    """Return the schemes by their noise, with the costs of each."""
    # schemes that the search cannot tell apart stay in the order of their use
    close = min(answer.noise.noise_multiplier for answer in proved.values()) * (1 + _ACCURACY)
    names = sorted(proved, key=lambda name: max(proved[name].noise.noise_multiplier, close))
    least = proved[names[0]].noise.noise_multiplier
    return [_costs(name, proved[name], least, m) for name in names]


def _costs(name: str, proved: _ProvedScheme, least: float, m: int) -> SchemeNoise:
    """Return the noise of a scheme, its ratio to the least one, and its costs."""
    release, noise = proved.at_its_noise, proved.noise
    plan, n, steps = release.sampler, release.n, release.steps
    assert n is not None
    largest_batch, likely_batch = _batches(plan, n, m, steps)
    return SchemeNoise(
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
        theorem=proved.theorem,
        lower_theorem=proved.lower_theorem,
        adjacency=str(proved.proof.relation),
    )


def _every_epoch(plan: Plan, n: int) -> bool:
    """Whether each record is in one batch of each epoch."""
    if isinstance(plan, Schedule):
        return plan.occurrences == 1
    return plan.has_all_once(n)


def _batches(plan: Plan, n: int, m: int, steps: int) -> tuple[int, int]:
    """Return the largest batch possible, and one that no batch exceeds but with probability
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
    schemes: list[SchemeNoise], even: tuple[str, ...], elsewhere: Sequence[SchemeNoise]
) -> tuple[str, ...]:
    """Return sentences that follow from the numbers, those of proofs rounded up and those of
    attacks down."""
    first = schemes[0]
    by_name = {answer.name: answer for answer in schemes}
    noise, others = _proved_text(first), _others(schemes, even)
    if first.noise_multiplier > min(answer.noise_multiplier for answer in schemes):
        noise += f", to the {_ACCURACY:.1%} that the search resolves"
    reasons = [f"{first.name} has the least proved noise, {noise}; {others}."]
    fixed = [answer for answer in schemes if answer.name in FIXED_SIZE]
    if fixed and fixed[0] is not first:
        reasons.append(_of_fixed_size(fixed[0], first))
    # Poisson samples need the same noise under add_remove and zero_out
    covered = {answer.name: answer for answer in elsewhere} | by_name
    shuffle = covered.get(_SHUFFLE)
    if shuffle is not None and shuffle is not first and "poisson" in by_name:
        reasons.append(_of_shuffling(shuffle, by_name["poisson"], covered.get("deterministic")))
    if first.noise_multiplier == MIN_SCALE:
        reasons.append(f"{MIN_SCALE:g} is the least noise considered, so ratios to it say little.")
    return tuple(reasons)


def _others(schemes: list[SchemeNoise], even: tuple[str, ...]) -> str:
    """Return the bounds of the schemes that come after the first one."""
    if len(schemes) == 1:
        return "nothing is proved for any other scheme"
    if not even:
        return "attacks refute this noise for all others"
    attacked = {answer.name for answer in schemes if answer.refuted > 0}
    known = ", ".join(name for name in even if name in attacked)
    unknown = ", ".join(name for name in even if name not in attacked)
    clauses = []
    if known:
        clauses.append(f"no attack refutes this noise for {known}, which may need as little")
    if unknown:
        clauses.append(f"no attack refutes any noise for {unknown}")
    return "; ".join(clauses)


def _of_fixed_size(fixed: SchemeNoise, first: SchemeNoise) -> str:
    certain = fixed.refuted / first.noise_multiplier - 1
    attacked = (
        f"; an attack shows that they need at least {certain:.1%} more" if certain > 0 else ""
    )
    return (
        f"Independent batches of one size ({fixed.name}) are proved at "
        f"{fixed.ratio - 1:.1%} more noise{attacked}."
    )


_AS_MUCH = 0.99  # of the noise of a fixed order: as much, up to the accuracy of searches


def _of_shuffling(shuffle: SchemeNoise, poisson: SchemeNoise, fixed: SchemeNoise | None) -> str:
    attacked = "no attack refutes any noise"
    if shuffle.refuted:
        attacked = f"an attack refutes {shuffle.refuted * (1 - _PRINTED):.5g}"
    under = "" if shuffle.adjacency == poisson.adjacency else f" under {shuffle.adjacency}"
    verdict = "refuted" if shuffle.refuted >= poisson.noise_multiplier else "not proved"
    amplified = fixed is None or shuffle.noise_multiplier < _AS_MUCH * fixed.noise_multiplier
    order = "" if amplified else ", the noise of batches in a fixed order"
    return (
        f"A shuffled loader is proved at {_proved_text(shuffle)}{order}{under}, and {attacked}: "
        "the noise of poisson, "
        f"{_proved_text(poisson)}, is {verdict} for it."
    )


def _proved_text(answer: SchemeNoise) -> str:
    return f"{answer.noise_multiplier * (1 + _PRINTED):.5g}"
