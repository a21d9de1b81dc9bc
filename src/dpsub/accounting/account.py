"""What an accountant answers: an interval that says what it is.

What the accountant answers about a sampler: an interval with its conditions.

Privacy of many releases from subsamples: what can be proved, refuted, and what the papers' pair gives.

Three kinds of answer, never mixed (`Account.kind`):

exact
    Both ends bracket the one number that the worst data sets attain.
bounds
    Upper end: proved for clipped sums under `Account.conditions`.  Lower end: attained by explicit data sets, perhaps
    adaptively; no guarantee below it can hold for this sampler, noise and clipping.
upper
    As bounds, with the trivial lower end 0.
paper
    The value of the papers' pair, bracketed: reproduces a published computation, not a guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from dpsub import checks
from dpsub.accounting.attacks import AdaptiveAttack
from dpsub.accounting.bracket import Composition, DominatedEvent, Event, PairEvent, ProfileMaker, Target
from dpsub.accounting.laplace import LaplacePair, laplace_case
from dpsub.accounting.pairs import MAX_SCALE, MIN_SCALE, FillerPair, MixturePair, PoissonPair, WorPair
from dpsub.accounting.pld import RememberedProfile
from dpsub.accounting.proofs import ChainProfile, SlotChain, SlotStage
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling import base
from dpsub.sampling.base import Sampler, StagedSampler
from dpsub.sampling.laws import MultiplicityLaw

KINDS = ("exact", "upper", "lower", "bounds", "paper")
"""exact: the value itself (lower = upper up to rounding); upper, lower: a proved bound on one side, the other side
trivial; bounds: proved on both sides; paper: what a paper's formula gives, bracketed, and not a guarantee."""


@dataclass(frozen=True)
class Interval:
    """A number that lies in [lower, upper], and what that statement is worth.

    Attributes
    ----------
    lower, upper : float
        Ends of the interval; lower <= upper.
    kind : str
        One of `KINDS`.
    pair : str
        The two distributions that were compared.
    adjacency : Relation
        When two data sets count as neighbours.
    sensitivity : str
        What one occurrence of the differing record does to the released value, in words.

    Raises
    ------
    ArgumentError
        If the ends are NaN or reversed, or the kind is unknown.
    """

    lower: float
    upper: float
    kind: str
    pair: str
    adjacency: Relation
    sensitivity: str

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, KINDS)
        lower, upper = float(self.lower), float(self.upper)
        if math.isnan(lower) or math.isnan(upper) or lower > upper:
            raise ArgumentError(f"an interval needs lower <= upper, got [{lower}, {upper}]")
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and self.lower <= value <= self.upper


_GENERAL = (
    "the noise does not depend on the sample or its size",
    "samples are fresh, independent and secret at every step, with all stages drawn anew",
    "the number of records and all sizes or rates are public",
    "real arithmetic and exact sampling are assumed",
)

CONDITIONS = (
    "each record enters by a vector of norm at most C that depends on that record and on past releases only",
    "the release is the sum over the sample plus N(0, (s C)^2 I), or that divided by a number fixed in advance",
    *_GENERAL,
)
"""Under which every guarantee for Gaussian noise holds."""

LAPLACE_CONDITIONS = (
    "the query is scalar: each record enters by a number in [-C, C] that depends on that record and on past releases "
    "only",
    "the release is the sum over the sample plus Laplace noise of scale s C, or that divided by a number fixed in "
    "advance",
    *_GENERAL,
)
"""Under which every guarantee for Laplace noise holds."""

WIDTH_MISSED = (
    "numerical limits stopped the refinement before the width that was asked for: both ends hold, but at least one is "
    "looser"
)
"""Added to the conditions where `Account.width_met` is false."""


@dataclass(frozen=True)
class Account(Interval):
    """An interval for delta at an epsilon, or epsilon at a delta, of a composed mechanism.

    Attributes
    ----------
    quantity : {"delta", "epsilon"}
    lower_pair : str
        What attains the lower end.
    conditions : tuple of str
        What the upper end needs; empty where it is not a guarantee.
    width_met : bool
        Whether both ends came out as sharp as asked for.  If not, `WIDTH_MISSED` is the last condition; both ends are
        valid in either case, and of kind exact then only says that they are about one number.
    """

    quantity: str = field(default="epsilon")
    lower_pair: str = field(default="")
    conditions: tuple[str, ...] = field(default=())
    width_met: bool = field(default=True)


MECHANISMS = ("gaussian", "laplace")
DENOMINATORS = ("fixed", "realised")


@dataclass(frozen=True)
class Release:
    """`steps` releases of one kind.

    Attributes
    ----------
    sampler : Sampler
        A chain of stages.
    n : int or None
        Number of records; not needed for Poisson sampling alone.
    noise_multiplier : float
        s = sigma / C: scale of the noise on the *sum* over the norm bound of one record (Laplace: scale over the
        bound).
    steps : int
    mechanism : {"gaussian", "laplace"}
    denominator : {"fixed", "realised"}
        What the sum is divided by, with its noise: a number fixed in advance, or the size of the sample drawn.
    """

    sampler: Sampler
    n: int | None
    noise_multiplier: float
    steps: int
    mechanism: str = "gaussian"
    denominator: str = "fixed"

    def __post_init__(self) -> None:
        checks.real("noise_multiplier", self.noise_multiplier, at_least=MIN_SCALE, at_most=MAX_SCALE)
        checks.integer("steps", self.steps, at_least=1)
        checks.one_of("mechanism", self.mechanism, MECHANISMS)
        checks.one_of("denominator", self.denominator, DENOMINATORS)

    def chain(self) -> SlotChain:
        """The sampler's stages as facts.

        Raises
        ------
        UnsupportedError
            If the sampler is not a chain of known stages, or its size is random and the sum is divided by it.
        """
        if not isinstance(self.sampler, StagedSampler):
            raise UnsupportedError(
                f"only chains of stages can be accounted for, got {type(self.sampler).__name__}; "
                "describe it as Multistage"
            )
        facts = [_fact(stage) for stage in self.sampler.stages]
        if facts[-1].kind == "poisson" and self.denominator == "realised":
            raise UnsupportedError(
                "no bound covers a Poisson sample divided by its realised size, whose noise then tells "
                "how many records were drawn; divide by a fixed number"
            )
        if self.n is None and [fact.kind for fact in facts] != ["poisson"]:
            raise UnsupportedError("the number of records n is needed for samplers of fixed size, got none; give n")
        return SlotChain(self.n if self.n is not None else 1, facts)


def rigorous(
    sampler: Sampler,
    n: int | None = None,
    *,
    noise_multiplier: float,
    steps: int,
    epsilon: float | None = None,
    delta: float | None = None,
    adjacency: str | None = None,
    mechanism: str = "gaussian",
    denominator: str = "fixed",
    width: float | None = None,
) -> Account:
    """Bound delta at `epsilon`, or epsilon at `delta`, of many releases, from both sides.

    Parameters
    ----------
    sampler, n, noise_multiplier, steps, mechanism, denominator
        See `Release`.
    epsilon, delta : float
        Exactly one of them.
    adjacency : {"add_remove", "substitute"}, optional
        Default: add_remove for Poisson sampling alone, substitute for the rest.
    width : float, optional
        Numerical accuracy wanted of each end: absolute for epsilon, relative for delta.  Default 1e-3 where both ends
        bracket one number, 5e-3 where attack and proof lie apart anyway.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    UnsupportedError
        If no theorem covers the case; the message gives the reason.

    Examples
    --------
    >>> from dpsub.sampling import Poisson
    >>> account = rigorous(Poisson(0.01), noise_multiplier=1.0, steps=100, delta=1e-5)
    >>> account.kind, str(account.adjacency)
    ('exact', 'add_remove')
    >>> 0.71 < account.lower <= account.upper < 0.73
    True
    """
    release = Release(sampler, n, noise_multiplier, steps, mechanism, denominator)
    return rigorous_composition([release], epsilon=epsilon, delta=delta, adjacency=adjacency, width=width)


def rigorous_composition(
    releases: Sequence[Release],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    adjacency: str | None = None,
    width: float | None = None,
) -> Account:
    """As `rigorous`, for releases of different kinds on the same records, in any order fixed in advance."""
    proof = Proof.of(releases, adjacency)
    return proof.account(proof.question(epsilon, delta, width))


def proved(
    sampler: Sampler,
    n: int | None = None,
    *,
    noise_multiplier: float,
    steps: int,
    epsilon: float | None = None,
    delta: float | None = None,
    adjacency: str | None = None,
    mechanism: str = "gaussian",
    denominator: str = "fixed",
    width: float | None = None,
) -> Account:
    """As `rigorous`, with the same upper end, but without an attack where that costs extra: then kind is upper."""
    proof = Proof.of([Release(sampler, n, noise_multiplier, steps, mechanism, denominator)], adjacency)
    return proof.upper(proof.question(epsilon, delta, width))


@dataclass(frozen=True, eq=False)
class Proof:
    """What is proved for releases of several kinds on the same records, before any number is computed.

    Attributes
    ----------
    releases : tuple of Release
    cases : tuple
        For each release its event, and words for it.
    relation : Relation
    ledger : Ledger
    """

    releases: tuple[Release, ...]
    cases: tuple[_Case, ...]
    relation: Relation
    ledger: Composition

    @classmethod
    def of(cls, releases: Sequence[Release], adjacency: str | None = None) -> Proof:
        """Find the theorems that apply.

        Raises
        ------
        UnsupportedError
            If none covers the case; the message gives the reason.
        """
        chains = [release.chain() for release in releases]
        relation = _relation(chains, adjacency)
        cases = tuple(_case(release, chain, relation) for release, chain in zip(releases, chains, strict=True))
        entries = [(case.event, release.steps) for case, release in zip(cases, releases, strict=True)]
        return cls(tuple(releases), cases, relation, Composition(entries))

    def question(self, epsilon: float | None, delta: float | None, width: float | None) -> Target:
        """The question, with the default width."""
        return Target(epsilon, delta, width if width is not None else 1e-3 if self.ledger.one_number else 5e-3)

    def account(self, question: Target) -> Account:
        """Both ends."""
        flipped = self._flipped(question)
        lower, upper, width_met = self.ledger.answer(question, known_lower=flipped)
        attack = "; ".join(dict.fromkeys(case.attack for case in self.cases))
        if flipped > lower:
            lower, attack = flipped, f"{attack}, the fillers' sign chosen adaptively"
        if lower > upper * (1 + 1e-9) + 1e-12:
            raise NumericalError(
                f"bounds must not cross, got lower {lower!r} and upper {upper!r}; report the arguments"
            )
        return self._account(question, min(lower, upper), upper, width_met, attack)

    def upper(self, question: Target) -> Account:
        """The upper end; both where they are computed together."""
        if self.ledger.one_number:
            return self.account(question)
        upper, width_met = self.ledger.bound(question)
        return self._account(question, 0.0, upper, width_met, "")

    def _flipped(self, question: Target) -> float:
        if len(self.releases) > 1 or self.ledger.one_number or self.cases[0].flipped is None:
            return 0.0
        return AdaptiveAttack(self.cases[0].flipped, self.releases[0].steps).answer(question)

    def _account(self, question: Target, lower: float, upper: float, width_met: bool, attack: str) -> Account:
        conditions = tuple(dict.fromkeys(line for case in self.cases for line in case.conditions))
        return Account(
            lower=lower,
            upper=upper,
            kind="exact" if self.ledger.one_number else "bounds" if attack else "upper",
            pair="; ".join(dict.fromkeys(case.pair for case in self.cases)),
            adjacency=self.relation,
            sensitivity=self.cases[0].sensitivity,
            quantity=question.quantity,
            lower_pair=attack,
            conditions=conditions if width_met else (*conditions, WIDTH_MISSED),
            width_met=width_met,
        )


def paper(
    sampler: Sampler,
    n: int | None = None,
    *,
    noise_multiplier: float,
    steps: int,
    epsilon: float | None = None,
    delta: float | None = None,
    width: float = 1e-3,
) -> Account:
    """Bracket what the papers' pair gives: unit shift per occurrence, one direction.  Not a guarantee.

    References
    ----------
    MUST, Section 3.4 and Sections S5 and S6 of its supplement.

    Examples
    --------
    >>> from dpsub.sampling import MustOW
    >>> question = {"noise_multiplier": 1.0, "steps": 1, "epsilon": 1.0}
    >>> printed = paper(MustOW(2, 2), 4, **question)
    >>> proved = rigorous(MustOW(2, 2), 4, **question)
    >>> printed.kind, proved.kind
    ('paper', 'bounds')
    >>> printed.upper < 0.09 < 0.19 < proved.lower      # data sets attain more than twice what the pair gives
    True
    """
    question = Target(epsilon, delta, width)
    release = Release(sampler, n, noise_multiplier, steps)
    chain = release.chain()
    pair = _papers_pair(chain, noise_multiplier)
    lower, upper, width_met = Composition([(PairEvent(pair, one_direction=True), steps)]).answer(question)
    return Account(
        lower=lower,
        upper=upper,
        kind="paper",
        pair=f"{pair.label}, s = {noise_multiplier:g}",
        adjacency=pair.relation,
        sensitivity="one occurrence of the record moves the sum by C",
        quantity=question.quantity,
        lower_pair="the same pair",
        width_met=width_met,
    )


@dataclass(frozen=True)
class _Case:
    """What is proved for one kind of release: its event, and words for it."""

    event: Event
    pair: str
    attack: str
    sensitivity: str
    flipped: FillerPair | LaplacePair | None = None
    conditions: tuple[str, ...] = CONDITIONS


def _fact(stage: base.Stage) -> SlotStage:
    if isinstance(stage, base.PoissonStage):
        return SlotStage("poisson", rate=stage.rate)
    if isinstance(stage, base.WithoutReplacement):
        return SlotStage("without", stage.size)
    if isinstance(stage, base.WithReplacement):
        return SlotStage("with", stage.size)
    raise UnsupportedError(f"no bound is proved for stages of kind {type(stage).__name__}, only for known ones")


def _relation(chains: Sequence[SlotChain], adjacency: str | None) -> Relation:
    poisson = all(chain.kinds == ("poisson",) for chain in chains)
    if adjacency is None:
        return Relation.ADD_REMOVE if poisson else Relation.SUBSTITUTE
    relation = Relation(checks.one_of("adjacency", adjacency, list(Relation)))
    if relation is Relation.ADD_REMOVE and not poisson:
        raise UnsupportedError(
            "adding or removing a record changes n, on which samplers of fixed size depend, and no bound covers that; "
            "use adjacency substitute"
        )
    return relation


def _case(release: Release, chain: SlotChain, relation: Relation) -> _Case:
    if release.mechanism == "laplace":
        return _laplace_case(release, chain, relation)
    s = release.noise_multiplier
    if chain.kinds == ("poisson",):
        q = chain.stages[0].rate
        if relation is Relation.ADD_REMOVE:
            pair = "(1 - q) N(0, s^2) + q N(1, s^2) against N(0, s^2), both directions"
            return _Case(PairEvent(PoissonPair(q, s)), pair, pair, "one record more or less moves the sum by C")
        pair = "(1 - q) N(0, s^2) + q N(1, s^2) against (1 - q) N(0, s^2) + q N(-1, s^2)"
        return _Case(PairEvent(WorPair(q, s)), pair, pair, "one occurrence replaced moves the sum by up to 2 C")
    with np.errstate(divide="ignore"):
        law = MultiplicityLaw(np.log(chain.multiplicity))
    sensitivity = "one occurrence replaced moves the sum by up to 2 C, l of them by up to 2 l C"
    profile = _profile_maker(chain, s)
    if chain.kinds[-1] == "poisson":
        attack = "records +C against -C among zero records"
        return _Case(DominatedEvent(profile, MixturePair(law, s)), _proved(chain), attack, sensitivity)
    attack = "data sets (C, -C, ..., -C) against (-C, ..., -C), both directions"
    once = chain.kinds == ("without",)
    filler = FillerPair(law, s / 2)
    return _Case(DominatedEvent(profile, filler, attained=once), _proved(chain), attack, sensitivity, filler)


def _profile_maker(chain: SlotChain, scale: float) -> ProfileMaker:
    return cache(lambda tail: (RememberedProfile(ChainProfile(chain, scale, tail)), None))


def _proved(chain: SlotChain) -> str:
    if chain.kinds == ("without",):
        return "profile q G(1 + (a - 1) / q, 2 / s), q = m / n"
    if chain.kinds == ("with",):
        return "group lemma at Binomial(m, 1/n)"
    return "group lemma at the last stage, the stages before it revealed"


def _laplace_case(release: Release, chain: SlotChain, relation: Relation) -> _Case:
    return _Case(*laplace_case(chain, relation, release.noise_multiplier), conditions=LAPLACE_CONDITIONS)


def _papers_pair(chain: SlotChain, scale: float) -> PoissonPair | WorPair | MixturePair:
    if chain.kinds == ("poisson",):
        return PoissonPair(chain.stages[0].rate, scale)
    if chain.kinds == ("without",):
        return WorPair(chain.stages[0].size / chain.n, scale)
    with np.errstate(divide="ignore"):
        return MixturePair(MultiplicityLaw(np.log(chain.multiplicity)), scale)
