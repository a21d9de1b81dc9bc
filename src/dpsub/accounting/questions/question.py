"""`account`, and the `Question` that it shares with curves, exports, checks, audits and selections.

The keywords of a question are declared here once, with their defaults; `account` explains them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.accounting.engine import work
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.engine.privacy_events import PairEvent
from dpsub.accounting.questions.account import WIDTH_REASONS, Account, given, joined
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.questions.refinement import AccountRefinement
from dpsub.accounting.questions.words import Asked
from dpsub.accounting.release import MECHANISMS, Release, ReleaseKeywords
from dpsub.accounting.schemes import case_of, stated_relation
from dpsub.errors import ArgumentError
from dpsub.relations import relation_named
from dpsub.sampling.base import Sampler, StagedSampler
from dpsub.sampling.schedules import Schedule

VARIANTS = ("rigorous", "paper")
TIGHT_GOES = (
    "tight is what happens anyway, and goes in the next release: drop it; quick=True gives the "
    "bound that was the default"
)


class QuestionKeywords(TypedDict, total=False):
    """Options of every question about releases."""

    adjacency: str | None
    effort: float | None
    time_limit: float | None


class QuickKeywords(QuestionKeywords, total=False):
    """Options of questions whose first bound can be refined."""

    quick: bool


class WidthKeywords(QuickKeywords, total=False):
    """Options of questions that are refined until their bounds are close enough."""

    width: float | None


class AccountKeywords(WidthKeywords, ReleaseKeywords, total=False):
    """Options of an account, and the keywords that describe its releases."""


def account(
    sampler: Sampler | Schedule | Release,
    n: int | None = None,
    *,
    epsilon: ArrayLike | None = None,
    delta: ArrayLike | None = None,
    variant: str = "rigorous",
    tight: bool | None = None,
    **described: Unpack[AccountKeywords],
) -> Account:
    """Bound delta at `epsilon`, or epsilon at `delta`, of many releases from samples, from above
    and below.

    Parameters
    ----------
    sampler : Sampler, Schedule or Release
        The sampler, drawn again at every step; or the schedule, drawn again for every epoch. Or a
        `Release`, which says itself what `n`, `noise_multiplier`, `steps`, `mechanism`,
        `denominator` and `group` are.
    n : int, optional
        Number of records; Poisson sampling, and schedules that do not depend on it, need none.
        Under add_remove it is that of the smaller data set; both have the same number of steps.
    noise_multiplier, sigma : float
        One of them: scale of the noise on the sum over the norm bound of one record, from 0.05 to
        1e9.
    steps : int, optional
        Number of releases, by default 1; for a schedule, whole epochs.
    epochs : int, optional
        For a schedule, instead of `steps`; by default 1.
    epsilon, delta : float or array_like
        Exactly one: epsilon in nats, >= 0; delta in (0, 1). An array costs little more than its
        most expensive value.
    adjacency : {"add_remove", "substitute", "zero_out"}, optional
        Default: add_remove, or where no theorem covers it zero_out, or else substitute; the
        answer says so. Under zero_out a record is replaced by one that contributes 0, and the
        number of records is public.
    mechanism : {"gaussian", "laplace"}
        Laplace noise is for scalar sums.
    denominator : {"fixed", "realised"}
        The sum and its noise are divided by a number fixed in advance, or by the realised size of
        the sample.
    group : int or tuple of int
        Number of records that one unit of privacy holds, at most. All of them are added, removed,
        replaced or zeroed out at once. Under add_remove also (g_plus, g_minus): as many are added
        and removed.
    releases_per_sample : int
        Number of releases that are made of each sample before the next one is drawn, by default 1.
        `steps` counts releases, `epochs` samples.
    records_per_user : int, optional
        The sampler draws users in place of records, `n` of them in all, and of a user who is drawn
        at most so many records enter. Neighbouring data sets then differ in one user. Records of
        one unit that are drawn one by one are a `group`.
    strategy : BandedStrategy or array_like, optional
        The lower triangular, banded matrix C by which the noise of steps is correlated, shape
        (steps, steps), or its bands and column norms: C x + z is released, x the sums of all steps
        and z noise of this multiplier. For `CyclicPoisson` and `Deterministic`.
    variant : {"rigorous", "paper"}
        Proof and attack; or the papers' pair (unit shift per occurrence, one direction), which is
        not a guarantee.
    width : float, optional
        How far apart the bounds may be, absolute for epsilon, relative for delta; by default half a
        percent of epsilon, 5 % of delta, and 1e-3 if that is less and the answer is exact up to
        numerical error. If theory leaves the bounds farther apart, `width_reason` says so.
    effort : float or None
        How much work the refinement may take: 1 is about two seconds of one core for the hardest
        questions, 10 ten times as much, None as much as the width takes. Work is counted, not
        timed: an answer is a function of its question. More effort never gives wider bounds.
    time_limit : float, optional
        Seconds after which the refinement stops in any case: the bounds reached by then are valid,
        but another run may end elsewhere, and `width_reason` says so.
    quick : bool
        Return the first bounds: `width` is then the accuracy of each, by default 1e-3 for
        schedules and for answers that are exact up to numerical error, else 5e-3.
    tight : bool, optional
        Deprecated: True is the default now.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    UnsupportedError
        If no theorem covers the case; the message gives the reason.

    References
    ----------
    balle, Theorems 8 to 11; must, Section 3.4 (variant paper); docs/proofs, where each bound is
    proved.

    Examples
    --------
    >>> import dpsub
    >>> poisson = dpsub.Poisson(0.01)
    >>> answer = dpsub.account(poisson, noise_multiplier=1.0, steps=100, delta=1e-5)
    >>> answer.kind, str(answer.adjacency), 0.71 < answer.lower <= answer.upper < 0.73
    ('exact', 'add_remove', True)
    >>> answer = dpsub.account(poisson, noise_multiplier=1.0, steps=100, delta=[1e-6, 1e-5])
    >>> answer.upper.round(1).tolist()
    [1.0, 0.7]
    >>> question = {"noise_multiplier": 1.0, "epsilon": 1.0, "adjacency": "substitute"}
    >>> printed = dpsub.account(dpsub.MustOW(2, 2), 4, **question, variant="paper")
    >>> attained = dpsub.account(dpsub.MustOW(2, 2), 4, **question)
    >>> printed.upper < 0.09 < 0.19 < attained.lower  # the paper's number is far below an attack
    True
    """
    question = with_tight(Question.of(sampler, n, **described), tight)
    if checks.one_of("variant", variant, VARIANTS) == "rigorous":
        return question.account(epsilon, delta)
    [release] = question.releases
    with question.metered():
        return answers(_PaperPair(release, question.adjacency), question, epsilon, delta)


@dataclass(frozen=True)
class Question:
    """Releases from the same records, and the options of bounds on them.

    Attributes
    ----------
    releases : sequence of Release
    adjacency, width, effort, time_limit, quick
        As in `account`.

    Raises
    ------
    ArgumentError
        If the width or the effort is out of range.
    """

    releases: Sequence[Release]
    adjacency: str | None = None
    width: float | None = None
    effort: float | None = work.EFFORT
    time_limit: float | None = None
    quick: bool = False

    @classmethod
    def of(
        cls,
        sampler: Sampler | Schedule | Release,
        n: int | None = None,
        **described: Unpack[AccountKeywords],
    ) -> Question:
        """Return the question about releases of one kind, from the keywords of a caller."""
        released, asked = separated(AccountKeywords, described)
        return cls.about([Release.of(sampler, n, **released)], **asked)

    @classmethod
    def about(cls, releases: Sequence[Release], **asked: Unpack[WidthKeywords]) -> Question:
        """Return the question about these releases, with the options of `DEFAULT` that are not
        given."""
        check_names(asked, WidthKeywords)
        return replace(DEFAULT, releases=releases, **asked)

    def __post_init__(self) -> None:
        if self.width is not None:
            object.__setattr__(self, "width", checks.real("width", self.width, above=0))
        work.effort(self.effort)
        checks.boolean("quick", self.quick)

    @property
    def budget(self) -> float:
        """The effort as a number: infinite where there is no limit."""
        return work.effort(self.effort)

    def metered(self) -> AbstractContextManager[None]:
        """Count the work of the question, which ends with its budget."""
        return work.metered(self.budget, self.time_limit)

    @contextmanager
    def proof(self) -> Iterator[Proof]:
        """The theorems that apply, within the budget of the question."""
        with self.metered():
            yield Proof.of(self.releases, self.adjacency)

    def account(self, epsilon: ArrayLike | None, delta: ArrayLike | None) -> Account:
        """Bound delta at `epsilon`, or epsilon at `delta`."""
        with self.proof() as proof:
            return answers(proof, self, epsilon, delta)


DEFAULT = Question(())
"""The options that a question has unless its caller names others."""


def separated(
    kind: type[QuestionKeywords], keywords: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate the keywords that describe releases from the options of the question.

    Parameters
    ----------
    kind : type
        All keywords that a function takes.
    keywords : mapping
        Those that its caller gave.

    Raises
    ------
    TypeError
        For any others, with the nearest name.
    """
    check_names(keywords, kind)
    of_question = WidthKeywords.__annotations__
    released = {name: value for name, value in keywords.items() if name not in of_question}
    asked = {name: value for name, value in keywords.items() if name in of_question}
    return released, asked


_OF_SAMPLER = {"rate", "sample_rate", "m", "b", "batch_size"}


def check_names(keywords: Mapping[str, Any], kind: type[Any]) -> None:
    """Raise TypeError, which suggests the nearest name, for a keyword that is not in `kind`."""
    known = kind.__annotations__
    for name in keywords:
        if name not in known:
            if name in _OF_SAMPLER:
                raise TypeError(
                    f"unexpected keyword {name!r}, a size of the sampler; write "
                    "dpsub.Poisson(0.01) or dpsub.Wor(200), for example"
                )
            # as in noise="laplace"
            is_kind = "mechanism" in known and str(keywords[name]).lower() in MECHANISMS
            meant = "mechanism" if is_kind else name
            near = checks.nearest(meant, sorted({*known, "epsilon", "delta"} - {name}))
            raise TypeError(f"unexpected keyword {name!r}; {near}")


def with_tight(question: Question, tight: bool | None) -> Question:
    """Return the question with the deprecated option `tight` taken into account, if it is given."""
    if tight is None:
        return question
    warnings.warn(TIGHT_GOES, DeprecationWarning, stacklevel=3)
    return replace(question, quick=not tight)


def answers(source: Proof | _PaperPair, question: Question, epsilon: Any, delta: Any) -> Account:
    """Return the account of one target, or of an array of them, with bounds of its shape."""
    width = question.width

    def accounts_of(targets: Sequence[Target]) -> list[Account]:
        if isinstance(source, _PaperPair):
            return source.accounts(targets)
        refinement = AccountRefinement(source, question.width, question.quick)
        return refinement.accounts(targets, question.budget)

    limits: dict[str, Any] = {"width": source.width if width is None else width}
    name, asked = ("epsilon", epsilon) if delta is None else ("delta", delta)
    if np.ndim(asked) == 0 or (epsilon is None) == (delta is None):
        [answer] = accounts_of([Target(epsilon, delta, **limits)])
        source.composition.forget()  # the answer keeps its proof and target, to certify it
        return answer
    values = checks.finite_array(name, asked)
    if not values.size:
        raise ArgumentError(f"an array of {name} must hold at least one value, got none; give one")
    # in order: a grid that suits one value is tried first for the next
    unique, places = np.unique(values, return_inverse=True)
    accounts = accounts_of([Target(**{name: value}, **limits) for value in unique.tolist()])
    lower = np.array([answer.lower for answer in accounts])[places]
    upper = np.array([answer.upper for answer in accounts])[places]
    return replace(
        # the one that says so if the width was missed for any
        min(accounts, key=lambda answer: answer.width_met),
        lower=lower.reshape(values.shape),
        upper=upper.reshape(values.shape),
        # exact only if all of them are
        kind=next((answer.kind for answer in accounts if answer.kind != "exact"), accounts[0].kind),
        pair=joined(answer.pair for answer in accounts),
        lower_pair=joined(answer.lower_pair for answer in accounts),
        theorem=joined(answer.theorem for answer in accounts),
        lower_theorem=joined(answer.lower_theorem for answer in accounts),
        width_reason=joined(filter(None, (answer.width_reason for answer in accounts))),
        asked=Asked(source.asked, tuple(values.ravel().tolist())),
        _origin=None,
    )


class _PaperPair:
    """Bounds on the value of the papers' pair (must, Section 3.4 and Sections S5 and S6 of its
    supplement)."""

    width = 1e-3

    def __init__(self, release: Release, adjacency: str | None) -> None:
        if release.mechanism != "gaussian":
            raise ArgumentError(
                "variant paper covers Gaussian noise only, got mechanism = "
                f"{release.mechanism}; use variant rigorous"
            )
        if not isinstance(release.sampler, StagedSampler):
            raise ArgumentError(
                "variant paper covers chains of stages only, got "
                f"{release.sampler.name}; use variant rigorous"
            )
        if release.denominator != "fixed":
            raise ArgumentError(
                "variant paper takes no denominator, got denominator = "
                f"{release.denominator}; drop it"
            )
        if release.group != 1:
            raise ArgumentError(
                f"variant paper is about one record, got group = {release.group}; drop it"
            )
        if not release.is_plain:
            raise ArgumentError(
                "variant paper is about single records and one release of each sample, got "
                f"{release}; use variant rigorous"
            )
        case = case_of(release, stated_relation(release))
        assert case.papers_pair is not None  # every chain has such a pair
        self.pair = case.papers_pair()
        self.releases = self.asked = (release,)
        if adjacency is not None and relation_named(adjacency) != self.pair.relation:
            raise ArgumentError(
                f"variant paper covers this sampler under {self.pair.relation} only, "
                f"got adjacency = {adjacency}; drop it"
            )
        self.composition = Composition([(PairEvent(self.pair, one_direction=True), release.steps)])

    def accounts(self, targets: Sequence[Target]) -> list[Account]:
        brackets = self.composition.brackets(targets)
        return [
            Account(
                lower,
                upper,
                kind="paper",
                pair=f"{self.pair.label}, s = {self.pair.deviation:g}",
                adjacency=self.pair.relation,
                sensitivity="one occurrence of the record moves the sum by C",
                quantity=target.quantity,
                lower_pair="the same pair",
                width_met=width_met,
                width_reason="" if width_met else WIDTH_REASONS["numerics"],
                asked=Asked(self.releases, (given(target),)),
            )
            for target, (lower, upper, width_met) in zip(targets, brackets, strict=True)
        ]
