"""Lower and upper bounds of many compositions: delta and epsilon, noise for equal privacy, and
the bounds of other accountants on the same questions.

The others, dp-accounting and prv-accountant, are no requirement of this package: they are imported
only when asked.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import checks, sampling
from dpsub.accounting.engine import work
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.engine.pairs import FillerPair
from dpsub.accounting.engine.privacy_events import PairEvent
from dpsub.accounting.engine.roots import safe_root
from dpsub.accounting.questions.account import Account
from dpsub.accounting.questions.ledger import Ledger
from dpsub.accounting.questions.question import account
from dpsub.accounting.questions.search import NOISE, calibrate
from dpsub.accounting.release import Release
from dpsub.errors import UnsupportedError
from dpsub.papers.must.experiments.accounting import noise_of_sum
from dpsub.papers.must.settings import (
    CONSISTENT_NOISE,
    FIVE,
    MUST,
    PRINTED_SCALE,
    FigureS2,
    SizesOfFigureS2,
    Table8,
)
from dpsub.relations import Relation
from dpsub.reproduce import settings as s
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.records import recorded_first_stage
from dpsub.sampling import Poisson
from dpsub.sampling.laws import MultiplicityLaw

SHIFTS = 1024
"""Steps into which the largest shift, that of the smallest sample, is divided."""

ROUND_DOWN = 1 - 1e-12
"""Factor that keeps a quotient which floating point rounded up from counting as a larger shift."""

PAIR_WIDTH = 1e-3
"""Width of the bracket of the paper's pair: absolute for epsilon, relative for delta."""

MOST_NOISE = 1e4
_TAIL = 1e-15
_WIDTH = 5e-3


def law_of_shifts(n: int, rate: float) -> tuple[MultiplicityLaw, float]:
    """Return the law of the shift that the differing record causes (Algorithm 2, step 4), rounded
    down, and the step.

    With D = (+C, -C, ..., -C), D' = (-C, ..., -C) and the record drawn together with J others, the
    mean of the sample moves by 2 C / (J + 1), J ~ Binomial(n - 1, q). Where it is not drawn nothing
    moves. The tails of J beyond 1e-15 count as smaller shifts than they are. The step is in units
    of 2 C / m, m = n q: the largest shift over `SHIFTS`.
    """
    from scipy.stats import binom  # here, as its import takes longer than most jobs compute

    # Beyond these the number of other records has a probability of at most 1e-15 on each side.
    others = np.arange(int(binom.ppf(_TAIL, n - 1, rate)), int(binom.isf(_TAIL, n - 1, rate)) + 1)
    shifts = n * rate / (others + 1)
    step = float(shifts[0]) / SHIFTS
    drawn = binom.pmf(others, n - 1, rate)
    drawn[0] = binom.cdf(others[0], n - 1, rate)
    # Shifts are rounded down to the grid: delta of the rounded pair is a lower bound.
    weights = np.bincount(np.floor(shifts / step * ROUND_DOWN).astype(int), rate * drawn)
    # Not drawn, or drawn with so many others that the shift counts as none.
    weights[0] += 1 - rate + rate * binom.sf(others[-1], n - 1, rate)
    with np.errstate(divide="ignore"):
        return MultiplicityLaw(np.log(weights)), step


def attack_on_realised_batches(release: Release, epsilon: float) -> float:
    """Return a lower bound on delta(epsilon), both directions, for either adjacency;
    UnsupportedError but for Poisson.

    Rounding shifts down lowers delta: the loss of the rounded pair increases with the output, so
    each test by a sum of losses gains from larger shifts and keeps its probability under D'. An
    empty sample, whatever it releases, moves the probability of a test by no more than its own, k
    (1 - q)^(n - 1), which is charged under both data sets. The noise multiplier is that of a sample
    of the expected size: the noise on the mean is noise_multiplier C / (n rate), whatever the size
    drawn.
    """
    if not isinstance(release.sampler, Poisson) or release.n is None:
        raise UnsupportedError(
            "only a Poisson sample has a random size to divide by, got "
            f"{type(release.sampler).__name__}; use the denominator fixed"
        )
    rate, times = release.sampler.rate, release.steps
    law, step = law_of_shifts(release.n, rate)
    pair = FillerPair(law, release.noise_multiplier / 2 / step)
    delta = (
        Composition([(PairEvent(pair), times)]).attack(Target(epsilon=epsilon, width=_WIDTH)).value
    )
    empty = times * math.exp((release.n - 1) * math.log1p(-rate)) if rate < 1 else 0.0
    # Under both data sets: its own probability, and e^epsilon times it.
    return max(0.0, delta - empty * (1 + math.exp(epsilon)))


class Questions(Experiment):
    """A list of questions; a replicate is the number of a question, so that jobs share the list."""

    variants: ClassVar[tuple[str, ...]] = ("rigorous",)

    @staticmethod
    @abstractmethod
    def questions(settings: Any) -> Sequence[Any]:
        """Return the questions in their order, checked."""

    @abstractmethod
    def answer(self, settings: Any, question: Any) -> dict[str, Any]:
        """Return the record of a question, without its number."""

    def replicates(self, settings: Any) -> int:
        return len(self.questions(settings))

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        questions = self.questions(settings)
        answers = [
            {"replicate": number, **self.answer(settings, questions[number])}
            for number in run.replicates
        ]
        return self.frame(answers)


@dataclass(frozen=True)
class CompositionQuestion:
    """A question about releases under `adjacency`: their `quantity`, "delta" or "epsilon", where
    the other is given."""

    table: str
    sampler: str
    release: Release
    quantity: str
    given: float
    adjacency: str


def adjacencies(sampler: str) -> tuple[Relation, ...]:
    """Return the relations under which a sampler has a proof: both for Poisson, whose size does not
    depend on n."""
    own = sampling.REGISTRY.get(sampler).relation
    # Of a fixed size the chance of a record depends on n, which add_remove changes.
    return (own,) if own == Relation.SUBSTITUTE else (own, Relation.SUBSTITUTE)


def release_of(
    sampler: str, sizes: SizesOfFigureS2 | Table8, noise: float, k: int, by: str = "fixed"
) -> Release:
    """Return k releases at the sizes n, b, m, sum and noise divided `by` a "fixed" number or the
    "realised" size."""
    drawn = sampling.of_sizes(sampler, n=sizes.n, m=sizes.m, b=sizes.b)
    return Release(drawn, sizes.n, noise, k, denominator=by)


def first_stage(drawn: object) -> int:
    """Return the size of the first stage of a sampler, if it has one, as it is recorded."""
    return recorded_first_stage(getattr(drawn, "b", None))


class Accounts(Questions):
    """Answers of the accountant.

    The columns `pair_lower` and `pair_upper` bracket the paper's pair, which is no guarantee;
    `attack` is attained by explicit data sets, so that no guarantee below it can hold; `proved` is
    an upper bound for clipped sums under the conditions of docs/proofs/setting.md and
    `adjacency`. Where `kind` is "exact" attack and proof bracket one number; where it is
    "attack" nothing is proved. NaN where there is no such number.
    """

    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "table": "str",
        "sampler": "str",
        "b": "int64",
        "adjacency": "str",
        "denominator": "str",
        "noise_multiplier": "float64",
        "n_compositions": "int64",
        "quantity": "str",
        "given": "float64",
        "kind": "str",
        "pair_lower": "float64",
        "pair_upper": "float64",
        "attack": "float64",
        "proved": "float64",
    }
    keys: ClassVar[tuple[str, ...]] = (
        "table",
        "sampler",
        "b",
        "adjacency",
        "denominator",
        "n_compositions",
    )

    def both_ends(
        self, settings: Any, question: CompositionQuestion, known: dict[str, Any]
    ) -> Account:
        """Return the bounds from both sides, refined as far as their effort takes them."""
        return Ledger([question.release]).account(
            adjacency=question.adjacency, effort=self.effort(settings, question), **known
        )

    @staticmethod
    def effort(settings: Any, question: CompositionQuestion) -> float:
        """Return the work that the bounds of a question may take."""
        return float(settings.effort)

    def answer(self, settings: Any, question: CompositionQuestion) -> dict[str, Any]:
        release, given = question.release, question.given
        answers = {
            "table": question.table,
            "sampler": question.sampler,
            "b": first_stage(release.sampler),
            "adjacency": question.adjacency,
            "denominator": release.denominator,
            "noise_multiplier": release.noise_multiplier,
            "n_compositions": release.steps,
            "quantity": question.quantity,
            "given": given,
            "kind": "attack",
            "pair_lower": np.nan,
            "pair_upper": np.nan,
            "proved": np.nan,
        }
        # No proof covers a random divisor: an attack alone.
        if release.denominator == "realised":
            return {**answers, "attack": attack_on_realised_batches(release, epsilon=given)}
        known: dict[str, Any] = {"epsilon" if question.quantity == "delta" else "delta": given}
        ends = self.both_ends(settings, question, known)
        # The paper has a pair for this relation only.
        if question.adjacency == release.sampler.relation:
            pair = account(
                release.sampler,
                release.n,
                noise_multiplier=release.noise_multiplier,
                steps=release.steps,
                variant="paper",
                width=PAIR_WIDTH,
                effort=None,
                quick=True,
                **known,
            )
            answers |= {"pair_lower": pair.lower, "pair_upper": pair.upper}
        return {**answers, "kind": ends.kind, "attack": ends.lower, "proved": ends.upper}


class ProvedComposition(Accounts):
    """delta(epsilon) after k compositions from both sides, next to the paper's pair; epsilon(1/n)
    where delta is tiny.

    "table8" is experiment 3 as it was run: noise as stated in units of the clipping bound, Poisson
    divided by the realised size of its samples, and by the fixed m as well; PRINTED_SCALE is the
    scale that made the printed bounds; CONSISTENT_NOISE is the larger noise of the consistent
    utilities, for which delta(2) is far below anything of interest and epsilon at delta = 1/n is
    asked for.
    """

    name: ClassVar[str] = "proved_composition"

    class Settings(s.ExperimentSettings):
        parts: s.Parts = 4
        table8: Table8 = Field(Table8(), description="Settings of Table 8.")
        figure_s2: FigureS2 = Field(FigureS2(), description="Settings of Figure S2.")
        effort: s.Effort = 1
        effort_to_cite: s.Effort = Field(
            40, description="Of the rows of Table 8 at the stated noise, which pages cite."
        )

        def check(self) -> None:
            ProvedComposition.questions(self)

    @staticmethod
    def effort(settings: Any, question: CompositionQuestion) -> float:
        is_cited = question.table == "table8"
        return float(settings.effort_to_cite if is_cited else settings.effort)

    @staticmethod
    def questions(settings: Settings) -> list[CompositionQuestion]:
        table, figure = settings.table8, settings.figure_s2
        questions = []
        for name, noise, unit, target in (
            ("table8", "stated", table.clip, ("delta", table.epsilon)),
            (PRINTED_SCALE, "stated", 1.0, ("delta", table.epsilon)),
            (CONSISTENT_NOISE, "consistent", table.clip, ("epsilon", 1 / table.n)),
        ):
            for sampler in table.samplers:
                scale = noise_of_sum(sampler, table, noise) / unit
                for by in (
                    ("realised", "fixed")
                    if (name, sampler) == ("table8", "poisson")
                    else ("fixed",)
                ):
                    release = release_of(sampler, table, scale, table.n_compositions, by)
                    questions.append(
                        CompositionQuestion(
                            name, sampler, release, *target, adjacencies(sampler)[0]
                        )
                    )
        for k in figure.n_compositions:
            for sampler in figure.samplers:
                release = release_of(sampler, figure, figure.scale, k)
                questions.append(
                    CompositionQuestion(
                        "figure_s2",
                        sampler,
                        release,
                        "delta",
                        figure.epsilon,
                        adjacencies(sampler)[0],
                    )
                )
        return questions


class Effort(s.ExperimentSettings, SizesOfFigureS2):
    """Work that answers may take: pages cite them next to those of the command line, which must be
    the same where the question is the same."""

    effort: s.Effort = Field(
        work.EFFORT, description="Of samplers of one stage: what the command takes by default."
    )
    effort_of_two_stages: s.Effort = Field(4, description="Of samplers with a first stage.")

    def effort_of(self, sampler: sampling.Sampler) -> float:
        """Return the work that an answer about `sampler` may take."""
        return float(self.effort_of_two_stages if first_stage(sampler) else self.effort)


class AtEqualNoise(Accounts):
    """Answers of the command line, at one noise multiplier for all samplers."""

    def both_ends(
        self, settings: Any, question: CompositionQuestion, known: dict[str, Any]
    ) -> Account:
        release = question.release
        effort = settings.effort_of(release.sampler)
        return account(release, adjacency=question.adjacency, effort=effort, **known)


class ProvedSteps(AtEqualNoise):
    """epsilon(delta) after k steps from both sides, at one noise multiplier for all samplers.

    Poisson comes under both relations: adding or removing a record, and substituting one, as the
    others.
    """

    name: ClassVar[str] = "proved_steps"

    class Settings(Effort):
        parts: s.Parts = 4
        noise_multiplier: s.NoiseMultiplier = 4
        delta: s.Delta = 1e-5
        n_compositions: s.Sizes = Field(
            (1, 3, 10, 30, 100, 300, 1000), description="Numbers of composed releases."
        )
        samplers: s.Samplers = FIVE

        def check(self) -> None:
            ProvedSteps.questions(self)

    @staticmethod
    def questions(settings: Settings) -> list[CompositionQuestion]:
        noise, delta = settings.noise_multiplier, settings.delta
        return [
            CompositionQuestion(
                ProvedSteps.name,
                sampler,
                release_of(sampler, settings, noise, k),
                "epsilon",
                delta,
                relation,
            )
            for k in settings.n_compositions
            for sampler in settings.samplers
            for relation in adjacencies(sampler)
        ]


class ProvedFirstStages(AtEqualNoise):
    """epsilon(delta) of the two-stage samplers from both sides over the size of their first stage,
    at the noise and the number of steps of `ProvedSteps`; WOR, which has no first stage, once.

    The size of Figure S2 is always among them. MUST.OW at b = n is WR.
    """

    name: ClassVar[str] = "proved_first_stages"

    class Settings(Effort):
        parts: s.Parts = 4
        noise_multiplier: s.NoiseMultiplier = 4
        delta: s.Delta = 1e-5
        n_compositions: s.Releases = 1000
        first_stages: s.Sizes = Field(
            (60, 250, 500, 1000, 2000, 5000, 10_000),
            description="Sizes of the first stage, next to the size b.",
        )
        samplers: s.Samplers = MUST

        def check(self) -> None:
            ProvedFirstStages.questions(self)

    @staticmethod
    def questions(settings: Settings) -> list[CompositionQuestion]:
        n, m = settings.n, settings.m
        drawn = [
            (sampler, sampling.of_sizes(sampler, n=n, m=m, b=b))
            for b in sorted({settings.b, *settings.first_stages})
            for sampler in settings.samplers
        ]
        drawn.append(("wor", sampling.of_sizes("wor", n=n, m=m)))
        return [
            CompositionQuestion(
                ProvedFirstStages.name,
                name,
                Release(sampler, n, settings.noise_multiplier, settings.n_compositions),
                "epsilon",
                settings.delta,
                Relation.SUBSTITUTE,
            )
            for name, sampler in drawn
        ]


class ProvedNoise(Questions):
    """Noise multipliers that are proved, refuted, and that the paper's pair asks for, at equal
    (epsilon, delta).

    With `proved` or more noise (epsilon, delta) is proved under `adjacency`; with `refuted` or less
    explicit data sets exceed it; `pair` is where the paper's pair meets it, which is no guarantee
    (NaN where the paper has no pair). Rounded to four digits, `proved` up and `refuted` down, so
    that the digits shown are safe.
    """

    name: ClassVar[str] = "proved_noise"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "sampler": "str",
        "b": "int64",
        "adjacency": "str",
        "n_compositions": "int64",
        "delta": "float64",
        "target_epsilon": "float64",
        "proved": "float64",
        "refuted": "float64",
        "pair": "float64",
    }
    keys: ClassVar[tuple[str, ...]] = ("sampler", "adjacency", "target_epsilon")

    class Settings(Effort):
        parts: s.Parts = 6
        n_compositions: s.Releases = 1000
        delta: s.Delta = 1e-5
        target_epsilons: s.Listed[s.Positive] = Field(
            (1, 2, 4, 8), description="Targets of epsilon, in nats."
        )
        accuracy: s.Share = Field(0.001, description="Relative accuracy of the noise.")
        samplers: s.Samplers = FIVE

        def check(self) -> None:
            ProvedNoise.questions(self)

    @staticmethod
    def questions(settings: Settings) -> list[tuple[float, str, sampling.Sampler, Relation]]:
        sizes = {"n": settings.n, "m": settings.m, "b": settings.b}
        return [
            (epsilon, sampler, sampling.of_sizes(sampler, **sizes), adjacency)
            for epsilon in settings.target_epsilons
            for sampler in settings.samplers
            for adjacency in adjacencies(sampler)
        ]

    def answer(self, settings: Settings, question: Any) -> dict[str, Any]:
        epsilon, sampler, drawn, adjacency = question
        n, delta = settings.n, settings.delta
        steps, accuracy = settings.n_compositions, settings.accuracy
        calibration = calibrate(
            drawn,
            n,
            epsilon=epsilon,
            delta=delta,
            steps=steps,
            adjacency=adjacency,
            accuracy=accuracy,
            effort=settings.effort_of(drawn),
        )

        def of_pair(scale: float) -> float:
            return account(
                drawn,
                n,
                noise_multiplier=scale,
                steps=steps,
                delta=delta,
                variant="paper",
                width=epsilon * accuracy,
                effort=None,
                quick=True,
            ).upper

        pair = np.nan
        # The paper has a pair for this relation only.
        if adjacency == drawn.relation:
            root = safe_root(
                of_pair,
                epsilon,
                NOISE,
                start=calibration.noise_multiplier,
                accuracy=accuracy,
            )
            # Up: the noise that is enough for the pair.
            pair = rounded(root.safe, ROUND_CEILING)
        return {
            "sampler": sampler,
            "b": first_stage(drawn),
            "adjacency": adjacency,
            "n_compositions": steps,
            "delta": delta,
            "target_epsilon": epsilon,
            # Each number is rounded to the side on which it stays true.
            "proved": rounded(calibration.noise_multiplier, ROUND_CEILING),
            "refuted": rounded(calibration.refuted or 0.0, ROUND_FLOOR),
            "pair": pair,
        }


def rounded(value: float, rounding: str) -> float:
    """Return the decimal number `value` with four digits, rounded by `ROUND_CEILING` or
    `ROUND_FLOOR`."""
    return float(Context(prec=4, rounding=rounding).create_decimal(repr(float(value))))


# Other accountants

Interval = tuple[float, float]
"""Lower and upper answer; NaN for an end that a method does not give."""

EVENTS, RENYI, LOSSES = (
    "dp_accounting",
    "dp_accounting.rdp",
    "dp_accounting.pld.privacy_loss_distribution",
)
PRV, VARIABLES = "prv_accountant", "prv_accountant.privacy_random_variables"


def module(name: str) -> ModuleType:
    """Import a module of another accountant; UnsupportedError if its package is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as problem:
        package = name.partition(".")[0].replace("_", "-")
        raise UnsupportedError(
            f"{package} is not installed (no module {problem.name}); install it to compare"
        ) from None


def dots(rate: float, noise: float, k: int, delta: float, adjacency: str) -> Interval:
    """dp-accounting's privacy loss distributions: the upper bound connects the dots, the lower one
    rounds losses down."""
    pld = module(LOSSES)
    relation = pld.NeighborRel[
        {"add_remove": "ADD_OR_REMOVE_ONE", "substitute": "REPLACE_ONE"}[adjacency]
    ]
    ends = [
        pld.from_gaussian_mechanism(
            noise,
            pessimistic_estimate=upper,
            use_connect_dots=upper,
            sampling_prob=rate,
            neighboring_relation=relation,
        )
        # Its optimistic and its pessimistic discretisation bracket its own epsilon.
        for upper in (False, True)
    ]
    low, high = (float(end.self_compose(k).get_epsilon_for_delta(delta)) for end in ends)
    return low, high


def intervals(rate: float, noise: float, k: int, delta: float, error: float) -> Interval:
    """prv-accountant's interval of epsilon, its own error of epsilon being `error`."""
    variable = module(VARIABLES).PoissonSubsampledGaussianMechanism(
        sampling_probability=rate, noise_multiplier=noise
    )
    accountant = module(PRV).PRVAccountant(
        variable, max_self_compositions=k, eps_error=error, delta_error=delta / 1000
    )
    low, _, high = accountant.compute_epsilon(delta, k)
    return float(low), float(high)


def moments(n: int, m: int, noise: float, k: int, delta: float) -> Interval:
    """dp-accounting's Rényi accountant for sampling without replacement, one record replaced."""
    events = module(EVENTS)
    step = events.SampledWithoutReplacementDpEvent(n, m, events.GaussianDpEvent(noise))
    accountant = module(RENYI).RdpAccountant(
        neighboring_relation=events.NeighboringRelation.REPLACE_ONE
    )
    return math.nan, float(accountant.compose(step, k).get_epsilon(delta))


class PeerCase(s.Closed):
    """One question; Poisson has the rate m/n."""

    sampler: s.SamplerName
    n: s.FrameSize = 10_000
    m: s.SampleSize
    noise_multiplier: s.NoiseMultiplier
    n_compositions: s.Releases = 1000
    adjacency: Literal["add_remove", "substitute"] = Field(
        "substitute", description="Which data sets are neighbours."
    )
    width: s.Positive | None = Field(
        None, description="Width of the answer of this package; none is what the command asks for."
    )
    prv_error: s.Positive = Field(
        0.01, description="Error of epsilon that prv-accountant is asked for."
    )

    def check(self) -> None:
        if self.sampler != "poisson":
            checks.one_of("adjacency", self.adjacency, ("substitute",))


@dataclass(frozen=True)
class Comparison:
    """One question and one tool that answers it, for the noise that it is given."""

    case: PeerCase
    tool: str
    kind: str
    noise: float
    ask: Callable[[], Interval]


def tools(case: PeerCase, delta: float, effort: float) -> Iterator[Comparison]:
    """Yield the tools that answer a case: this package, then the others that know its sampler and
    relation.

    The Rényi accountant is asked twice: with the noise in units of the bound C of one record, and
    of 2 C, by which replacing a record moves the sum.
    """
    n, m, noise, k, adjacency = (
        case.n,
        case.m,
        case.noise_multiplier,
        case.n_compositions,
        case.adjacency,
    )
    drawn, poisson = sampling.of_sizes(case.sampler, n=n, m=m), case.sampler == "poisson"

    def ours() -> Interval:
        answer = account(
            drawn,
            n,
            noise_multiplier=noise,
            steps=k,
            delta=delta,
            adjacency=adjacency,
            width=case.width,
            effort=effort,
        )
        return answer.lower, answer.upper

    yield Comparison(
        case, "dpsub", "one number, bracketed" if poisson else "attack and proof", noise, ours
    )
    if poisson:
        ask = partial(dots, m / n, noise, k, delta, adjacency)
        yield Comparison(case, "dp-accounting, PLD", "lower and upper bound", noise, ask)
        if adjacency == "add_remove":
            ask = partial(intervals, m / n, noise, k, delta, case.prv_error)
            yield Comparison(
                case, f"prv-accountant, error {case.prv_error:g}", "interval", noise, ask
            )
    elif case.sampler == "wor":
        for unit, scaled in (("C", noise), ("2 C", noise / 2)):
            ask = partial(moments, n, m, scaled, k, delta)
            yield Comparison(case, f"dp-accounting, RDP, unit {unit}", "upper value", scaled, ask)


class PeerBounds(Questions):
    """epsilon by this package, dp-accounting and prv-accountant; a replicate is one question put to
    one tool.

    Without one of the packages its rows hold no number, and `note` says so.
    """

    name: ClassVar[str] = "peer_bounds"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "sampler": "str",
        "adjacency": "str",
        "n": "int64",
        "m": "int64",
        "noise_multiplier": "float64",
        "n_compositions": "int64",
        "delta": "float64",
        "tool": "str",
        "kind": "str",
        "tool_noise": "float64",
        "lower": "float64",
        "upper": "float64",
        "note": "str",
    }
    keys: ClassVar[tuple[str, ...]] = (
        "sampler",
        "adjacency",
        "n",
        "m",
        "noise_multiplier",
        "n_compositions",
        "tool",
    )

    class Settings(s.ExperimentSettings):
        parts: s.Parts = 2
        delta: s.Delta = 1e-5
        effort: s.Effort = 1
        cases: s.Several[PeerCase] = Field(
            (
                PeerCase(
                    sampler="poisson",
                    m=100,
                    noise_multiplier=1,
                    adjacency="add_remove",
                    width=2e-4,
                    prv_error=1e-3,
                ),
                PeerCase(
                    sampler="poisson",
                    m=100,
                    noise_multiplier=1,
                    n_compositions=10_000,
                    adjacency="add_remove",
                ),
                PeerCase(sampler="poisson", m=100, noise_multiplier=1, width=2e-4),
                PeerCase(sampler="wor", m=200, noise_multiplier=4),
                PeerCase(sampler="wor", n=30969, m=300, noise_multiplier=2.654),
                PeerCase(sampler="wr", m=200, noise_multiplier=4),
            ),
            description="One entry for each question.",
        )

        def check(self) -> None:
            PeerBounds.questions(self)

    @staticmethod
    def questions(settings: Settings) -> list[Comparison]:
        return [
            comparison
            for case in settings.cases
            for comparison in tools(case, settings.delta, settings.effort)
        ]

    def answer(self, settings: Settings, question: Comparison) -> dict[str, Any]:
        facts = question.case.model_dump(exclude={"width", "prv_error"})
        note, (lower, upper), begin = "", (math.nan, math.nan), time.process_time()
        try:
            lower, upper = question.ask()
        except UnsupportedError as reason:
            note = str(reason)
        seconds = {"seconds": time.process_time() - begin} if self.timed else {}
        return {
            **facts,
            "delta": settings.delta,
            "tool": question.tool,
            "kind": question.kind,
            "tool_noise": question.noise,
            "lower": lower,
            "upper": upper,
            "note": note,
            **seconds,
        }


class PeerTimes(PeerBounds):
    """Processor time of each answer of `PeerBounds`, imports left out, with the answer."""

    name: ClassVar[str] = "peer_times"
    columns: ClassVar[dict[str, str]] = {**PeerBounds.columns, "seconds": "float64"}
    keys: ClassVar[tuple[str, ...]] = PeerBounds.keys
    timed: ClassVar[bool] = True

    class Settings(PeerBounds.Settings):
        parts: s.Parts = 1

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        for name in (EVENTS, RENYI, LOSSES, PRV, VARIABLES):
            with suppress(UnsupportedError):
                module(name)
        return super().records(settings, run)
