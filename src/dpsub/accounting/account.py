"""Privacy of many releases from subsamples: upper bounds (proofs), lower bounds (attacks), and
the papers' formula."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.accounting import answer as words
from dpsub.accounting.answer import Asked, ShortText
from dpsub.accounting.attacks import AdaptiveAttack, Played
from dpsub.accounting.bracket import Target
from dpsub.accounting.composition import Composition
from dpsub.accounting.game import FillerGame, GamePlayed
from dpsub.accounting.pld import OutOfTimeError, deadline_after, time_limited
from dpsub.accounting.privacy_events import PairEvent
from dpsub.accounting.release import Group, Release
from dpsub.accounting.schemes import case_of, default_relation
from dpsub.accounting.schemes.case import Case
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.relations import Relation, relation_named
from dpsub.sampling.base import Sampler, StagedSampler
from dpsub.sampling.schedules import Schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpsub.accounting.statement import Statement

KINDS = ("exact", "bounds", "upper", "lower", "paper")
"""exact: both ends bracket the one number that the worst data sets attain.  bounds: the upper end
is proved, the lower one attained by explicit data sets, perhaps adaptively, so that no guarantee
below it can hold.  upper, lower: one of these ends, the other being trivial.  paper: brackets what
the papers' pair gives, and is not a guarantee."""
VARIANTS = ("rigorous", "paper")
WIDTH_MISSED = (
    "wider than requested: numerical limits stopped the refinement early; both ends are valid"
)
"""Added to the conditions where `Account.width_met` is false."""
TIGHT_SECONDS = 30.0
"""Time limit of a tight answer for which none is given."""
# of epsilon, how far apart exact ends of schedules may be at most where no width is given
_SCHEDULE_SHARE = 4e-3
# how far apart tight ends may be where no width is given, relative
_TIGHT_SHARE = {"epsilon": 5e-3, "delta": 5e-2}


@dataclass(frozen=True)
class Account(ShortText):
    """delta at an epsilon, or epsilon at a delta, of a composed mechanism, and the kind of this
    statement.

    Attributes
    ----------
    lower, upper : float, or ndarray with the shape of the question
        The number lies in [lower, upper]; epsilon in nats.
    kind : {"exact", "bounds", "upper", "lower", "paper"}
        See `KINDS`.
    pair, lower_pair : str
        The two distributions (or the proved profile) behind the upper end, and the attack behind
        the lower end.
    adjacency : Relation
    sensitivity : str
        By how much one occurrence of the differing record can change the released value.
    quantity : {"delta", "epsilon"}
    conditions : tuple of str
        The conditions of the upper end; empty if it is not a guarantee.
    width_met : bool
        Whether the requested width was reached. If not, both ends are still valid (`WIDTH_MISSED`
        is the last condition), and kind exact only says that they bracket one number.
    asked : Asked or None
        The releases, and where the number was asked for; None if that is not known.
    """

    lower: Any
    upper: Any
    kind: str
    pair: str
    adjacency: Relation
    sensitivity: str
    quantity: str = "epsilon"
    lower_pair: str = ""
    conditions: tuple[str, ...] = ()
    width_met: bool = True
    asked: Asked | None = field(default=None, repr=False, compare=False)
    _origin: tuple[Proof, Target] | None = field(default=None, repr=False, compare=False)

    def certificate(self) -> dict[str, Any]:
        """What another program needs to prove this answer again, as plain values that `json.dump`
        writes.

        Ends are claimed with nine digits, rounded outwards.  docs/certificates.md describes the
        entries, and the program `verifier` checks them.

        Raises
        ------
        ArgumentError
            If the answer has several values, or is not a proved one (variant = paper).
        UnsupportedError
            If what gave an end cannot be written down.
        """
        # what is made of answers stands above this module
        from dpsub.accounting.certificate import certificate_of

        if self._origin is None:
            raise ArgumentError(
                "a certificate needs one proved answer, got several values, variant = "
                "paper or a copy; ask for one epsilon or delta with variant rigorous, "
                "and take the certificate from the answer itself"
            )
        return certificate_of(self, *self._origin)

    def text(self) -> words.Text:
        """The answer in a few words, as `print` shows it."""
        return words.account_text(self)

    def statement(self, clip: float | str = "C") -> Statement:
        """The sentence and the table for a paper, a model card or a registry of deployments.

        Parameters
        ----------
        clip : float or str
            The norm to which each vector was clipped.

        Raises
        ------
        ArgumentError
            If the answer has several values, or guarantees nothing.
        """
        # what is made of answers stands above this module
        from dpsub.accounting.statement import statement_of

        return statement_of(self, clip)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw both ends over the number of steps, and write the picture if a path is given.

        Raises
        ------
        UnsupportedError
            Without matplotlib; pip install 'dpsub[plot]'.
        ArgumentError
            If the answer has several values, or guarantees nothing; or for a path that does not
            end in .png, .pdf or .svg.
        """
        from dpsub.accounting import plot

        return plot.drawn(plot.account_figure, self, path)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or another process gets: the answer without what it was computed from, which
        is large."""
        return {**self.__dict__, "_origin": None}

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, KINDS)
        if not np.all(np.less_equal(self.lower, self.upper)):
            raise ArgumentError(
                f"an interval needs lower <= upper, got [{self.lower}, {self.upper}]"
            )
        for name in ("lower", "upper"):
            end = np.asarray(getattr(self, name), dtype=float)
            object.__setattr__(self, name, end if end.ndim else float(end))


def account(
    sampler: Sampler | Schedule,
    n: int | None = None,
    *,
    noise_multiplier: float,
    steps: int | None = None,
    epochs: float | None = None,
    epsilon: ArrayLike | None = None,
    delta: ArrayLike | None = None,
    adjacency: str | None = None,
    mechanism: str = "gaussian",
    denominator: str = "fixed",
    group: Group = 1,
    variant: str = "rigorous",
    width: float | None = None,
    time_limit: float | None = None,
    tight: bool = False,
) -> Account:
    """Bound delta at `epsilon`, or epsilon at `delta`, of many releases from samples, from above
    and below.

    Parameters
    ----------
    sampler : Sampler or Schedule
        The sampler, drawn again at every step; or the schedule, drawn again for every epoch.
    n : int, optional
        Number of records; Poisson sampling, and schedules that do not depend on it, need none.
        Under add_remove it is that of the smaller data set; both have the same number of steps.
    noise_multiplier : float
        Scale of the noise on the sum over the norm bound of one record, from 0.05 to 1e9.
    steps : int, optional
        Number of releases, by default 1; for a schedule, whole epochs.
    epochs : int, optional
        For a schedule, instead of `steps`; by default 1.
    epsilon, delta : float or array_like
        Exactly one: epsilon in nats, >= 0; delta in (0, 1). An array costs little more than its
        most expensive value.
    adjacency : {"add_remove", "substitute", "zero_out"}, optional
        Default: add_remove for Poisson sampling (also cyclic or truncated) and random
        allocation, substitute otherwise. Under zero_out a record is replaced by one that
        contributes 0, and the number of records is public.
    mechanism : {"gaussian", "laplace"}
        Laplace noise is for scalar sums.
    denominator : {"fixed", "realised"}
        The sum and its noise are divided by a number fixed in advance, or by the realised size of
        the sample.
    group : int or tuple of int
        Number of records that one unit of privacy holds, at most: they are added, removed,
        replaced or put to 0 together. Under add_remove also (g_plus, g_minus): as many are added
        and removed.
    variant : {"rigorous", "paper"}
        Proof and attack; or the papers' pair (unit shift per occurrence, one direction), which is
        not a guarantee.
    width : float, optional
        Accuracy of each end, absolute for epsilon, relative for delta; by default 1e-3 for
        schedules and where both ends bracket one number, else 5e-3. By default exact answers for
        a schedule are also no wider than half a percent of epsilon.
    time_limit : float, optional
        Seconds after which the refinement stops: the ends reached by then are valid, and
        `width_met` is False.
    tight : bool
        If the ends do not bracket one number, lower the upper end until they are `width` apart
        (by default half a percent of epsilon, 5 % of delta) or the time limit, by default 30 s,
        has passed. For substitution only: sampling without replacement and, with Gaussian noise,
        sampling with replacement (also WO) or with replacement from a first stage without (OW,
        where 6 % and more of epsilon remain open).

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    UnsupportedError
        If no theorem covers the case; the message gives the reason.

    References
    ----------
    balle, Theorems 8 to 11; must, Section 3.4 (variant paper); docs/accounting.md, where each bound
    is proved.

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
    >>> question = {"noise_multiplier": 1.0, "epsilon": 1.0}
    >>> printed = dpsub.account(dpsub.MustOW(2, 2), 4, **question, variant="paper")
    >>> attained = dpsub.account(dpsub.MustOW(2, 2), 4, **question)
    >>> printed.upper < 0.09 < 0.19 < attained.lower  # the paper's number is far below an attack
    True
    """
    limit = TIGHT_SECONDS if tight and time_limit is None else time_limit
    deadline = deadline_after(limit)
    release = Release.of(
        sampler, n, noise_multiplier, steps, epochs, mechanism, denominator, group=group
    )
    proved = checks.one_of("variant", variant, VARIANTS) == "rigorous"
    if not proved and tight:
        raise ArgumentError(
            "the papers' pair has no tight bound, got tight with variant = paper; drop one of them"
        )
    with time_limited(deadline):
        source = Proof.of([release], adjacency) if proved else _PaperPair(release, adjacency)
        answer = answers(source, epsilon, delta, width, deadline, tight)
    if not tight or answer.width_met:
        return answer
    missed = (
        f"wider than requested: the time limit of {limit:g} s or a numerical limit "
        "stopped the refinement early; both ends are valid"
    )
    return replace(answer, conditions=(*answer.conditions[:-1], missed))


def answers(
    source: Proof | _PaperPair,
    epsilon: Any,
    delta: Any,
    width: float | None,
    deadline: float | None,
    tight: bool = False,
) -> Account:
    """The account of one target; of an array of them, with the ends in its shape."""

    def accounts_of(targets: Sequence[Target]) -> list[Account]:
        accounts = source.accounts(targets)
        if isinstance(source, _PaperPair):
            return accounts
        if width is None and source.has_schedule and source.composition.is_exact:
            accounts = list(map(source.sharpened, accounts, targets))
        if tight:
            accounts = [
                source.tightened(answer, target, width)
                for answer, target in zip(accounts, targets, strict=True)
            ]
        return accounts

    limits: dict[str, Any] = {
        "width": source.width if width is None else width,
        "deadline": deadline,
    }
    name, given = ("epsilon", epsilon) if delta is None else ("delta", delta)
    if np.ndim(given) == 0 or (epsilon is None) == (delta is None):
        [answer] = accounts_of([Target(epsilon, delta, **limits)])
        source.composition.forget()  # the answer knows what it was computed from, to certify it
        return answer
    values = checks.finite_array(name, given)
    if not values.size:
        raise ArgumentError(f"an array of {name} must hold at least one value, got none; give one")
    # in order: a grid that suits one value is tried first for the next
    unique, places = np.unique(values, return_inverse=True)
    accounts = accounts_of([Target(**{name: value}, **limits) for value in unique.tolist()])
    lower = np.array([answer.lower for answer in accounts])[places]
    upper = np.array([answer.upper for answer in accounts])[places]
    return replace(
        # of which the conditions say so if the width was missed for any
        min(accounts, key=lambda answer: answer.width_met),
        lower=lower.reshape(values.shape),
        upper=upper.reshape(values.shape),
        lower_pair=_joined(answer.lower_pair for answer in accounts),
        asked=Asked(source.releases, tuple(values.ravel().tolist())),
        _origin=None,
    )


def _given(target: Target) -> float:
    """The epsilon or delta at which the other one is asked for."""
    given = target.delta if target.epsilon is None else target.epsilon
    assert given is not None
    return float(given)


def _joined(phrases: Iterable[str]) -> str:
    """Phrases that differ, in one line."""
    return "; ".join(dict.fromkeys(phrases))


@dataclass(frozen=True, eq=False)
class Proof:
    """The theorems that apply to releases of several kinds on the same records, before any number
    is computed.

    `policies` and `games` are what filler flips and games of its answers were played with, for
    certificates.
    """

    releases: tuple[Release, ...]
    cases: tuple[Case, ...]
    relation: Relation
    composition: Composition
    policies: list[Played] = field(default_factory=list)
    games: list[GamePlayed] = field(default_factory=list)

    @classmethod
    def of(cls, releases: Sequence[Release], adjacency: str | None = None) -> Proof:
        """Find the theorems that apply; UnsupportedError, with the reason, if none does."""
        relation = relation_of(releases, adjacency)
        groups = sorted({str(release.group) for release in releases})
        if len(groups) > 1:
            raise ArgumentError(
                f"releases from the same records need one group, got {' and '.join(groups)}; give "
                "all of them the largest"
            )
        cases = tuple(case_of(release, relation) for release in releases)
        entries = [
            (case.event, release.times) for case, release in zip(cases, releases, strict=True)
        ]
        return cls(tuple(releases), cases, relation, Composition(entries))

    @property
    def has_schedule(self) -> bool:
        """Whether any of the releases follow a schedule."""
        return any(isinstance(release.sampler, Schedule) for release in self.releases)

    @property
    def width(self) -> float:
        """Default accuracy: finer where both ends bracket one number, and on schedules."""
        return 1e-3 if self.has_schedule or self.composition.is_exact else 5e-3

    def accounts(self, targets: Sequence[Target]) -> list[Account]:
        """Both ends for each of several targets, which share privacy loss distributions."""
        attack = _joined(case.attained for case in self.cases)
        if self.composition.is_exact:
            brackets = self.composition.brackets(targets)
            return [
                self._account(target, *bracket, attack)
                for target, bracket in zip(targets, brackets, strict=True)
            ]
        # the guarantee first: attacks get what time is left
        uppers = self.composition.bounds(targets)
        flips = self._filler_flips(targets)
        lowers = self.composition.attacks(targets, flips)
        accounts = []
        for target, upper, lower, flip in zip(targets, uppers, lowers, flips, strict=True):
            best_attack = attack
            if flip > lower.value:
                best_attack = f"{attack}, the fillers' sign chosen adaptively"
            width_met = lower.width_met and upper.width_met
            value = max(lower.value, flip)
            accounts.append(self._account(target, value, upper.value, width_met, best_attack))
        return accounts

    def _filler_flips(self, targets: Sequence[Target]) -> list[float]:
        """What the adaptive attack of section 5 attains; 0 where there is none."""
        pair = self.cases[0].filler_flip
        if len(self.releases) > 1 or pair is None:
            return [0.0] * len(targets)
        attack = AdaptiveAttack(pair, self.releases[0].steps, self.policies)
        with time_limited(targets[0].deadline):
            return attack.answers(targets)

    def account(self, target: Target) -> Account:
        return self.accounts([target])[0]

    def sharpened(self, answer: Account, target: Target) -> Account:
        """An exact epsilon with ends that are a share of it apart, as a schedule's may be large."""
        width = _SCHEDULE_SHARE * answer.upper
        if target.epsilon is not None or answer.upper - answer.lower <= width:
            return answer
        return self.account(replace(target, width=width))

    @property
    def tightens(self) -> bool:
        """Whether `tightened` brings the upper end closer to the lower one."""
        return (
            not self.composition.is_exact
            and len(self.releases) == 1
            and self.cases[0].game is not None
        )

    def tightened(self, answer: Account, target: Target, width: float | None) -> Account:
        """An account with an upper end from the game of the adaptive adversary, until both ends are
        `width` apart."""
        if self.composition.is_exact:
            return answer
        game = self.cases[0].game
        if not self.tightens or game is None:
            raise UnsupportedError(
                "tight bounds exist only under substitute: without replacement, and "
                "with Gaussian noise also with replacement, alone or after a first "
                "stage without replacement of 2 records or more; drop tight"
            )
        lower, upper = float(answer.lower), float(answer.upper)
        if not 0 < upper < np.inf:
            return answer  # nothing to bring closer, or nothing from which to start
        if width is None or width == 0:
            # an epsilon's own size is what its accuracy is measured by
            unit = upper if answer.quantity == "epsilon" else 1.0
            width = _TIGHT_SHARE[answer.quantity] * unit
        wanted = replace(target, width=width)
        tightest = upper
        # a play that does not end in time proves nothing: the quick bound stands
        with time_limited(target.deadline), suppress(OutOfTimeError):
            steps, spread = self.releases[0].steps, self.composition.spread
            played = FillerGame(game.cells(), steps, spread, self.games)
            tightest = max(played.answer(wanted, lower, upper), lower)
        pair = answer.pair
        if tightest != upper:
            pair = (
                "the game over v, v' and the replaced vectors, with such choices grouped into cells"
            )
        width_met = wanted.gap(lower, tightest) <= 1
        conditions = tuple(line for line in answer.conditions if line != WIDTH_MISSED)
        return replace(
            answer,
            upper=tightest,
            pair=pair,
            width_met=width_met,
            conditions=conditions if width_met else (*conditions, WIDTH_MISSED),
        )

    def upper(self, target: Target) -> Account:
        """The upper end alone, of kind upper; both where they are computed together."""
        if self.composition.is_exact:
            return self.account(target)
        upper, width_met = self.composition.bound(target)
        return self._account(target, 0.0, upper, width_met, attack="")

    def _account(
        self, target: Target, lower: float, upper: float, width_met: bool, attack: str
    ) -> Account:
        # no loss is larger, with Laplace noise: beyond it delta is 0
        largest_loss = self.composition.largest_loss
        if target.epsilon is None:
            upper = min(upper, largest_loss)
        elif target.epsilon >= largest_loss:
            upper = 0.0
        # ends of one number may cross by their rounding, which is of this size; by more, one is
        # wrong
        if lower > upper * (1 + 1e-9) + 1e-12:
            raise crossed(lower, upper)
        kind = "bounds" if attack else "upper"
        if self.composition.is_exact:
            kind = "exact"
        conditions = tuple(dict.fromkeys(line for case in self.cases for line in case.conditions))
        return Account(
            min(lower, upper),
            upper,
            kind=kind,
            pair=_joined(case.proved for case in self.cases),
            lower_pair=attack,
            adjacency=self.relation,
            sensitivity=self.cases[0].sensitivity,
            quantity=target.quantity,
            conditions=conditions if width_met else (*conditions, WIDTH_MISSED),
            width_met=width_met,
            asked=Asked(self.releases, (_given(target),)),
            _origin=(self, target),
        )


def relation_of(releases: Sequence[Release], adjacency: str | None) -> Relation:
    """The relation that is asked for; by default add_remove if it is that of all releases, else
    substitute."""
    if adjacency is not None:
        return relation_named(adjacency)
    defaults = {default_relation(release) for release in releases}
    return Relation.ADD_REMOVE if defaults <= {Relation.ADD_REMOVE} else Relation.SUBSTITUTE


def crossed(lower: float, upper: float) -> NumericalError:
    """The error of two ends that contradict each other, so that one is wrong. Its way out: what
    less noise guarantees is true of more."""
    return NumericalError(
        f"bounds must not cross, got lower {lower!r} and upper {upper!r}: one of them "
        "is wrong; report the arguments, and until this is fixed use the upper end of "
        "a slightly smaller noise_multiplier, which is valid here too"
    )


class _PaperPair:
    """What the papers' pair gives, from both sides (must, Section 3.4 and Sections S5 and S6 of its
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
        case = case_of(release, default_relation(release))
        assert case.papers_pair is not None  # which every chain has
        self.pair = case.papers_pair()
        self.releases = (release,)
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
                asked=Asked(self.releases, (_given(target),)),
            )
            for target, (lower, upper, width_met) in zip(targets, brackets, strict=True)
        ]
